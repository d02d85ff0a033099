"""Mean square error for two examples and uniform features, from one-dimensional integrals."""

import mpmath

context = mpmath.MPContext()
context.dps = 40


def mean_square_error(lam, mu, alpha):
    """At half width 1 and `mu > 0`, to 40 digits.

    Two examples of one label at `top` and `top - g` give `F = top - g / (1 + exp(mu g))`; one of
    either label at `x` and `x + g` give `F = x + g / (1 + exp(2 lam - mu g))`. What is averaged
    over the position is a polynomial.
    """
    lam, mu, alpha = (context.mpf(number) for number in (lam, mu, alpha))
    s, r = alpha + 1, 1 - alpha

    def cuts(length, *centres):
        """Ends and break points for an integrand that lives within 100 / mu of these centres."""
        offsets = [0, *(sign * k / mu for k in (1, 3, 8, 20, 50, 110) for sign in (-1, 1))]
        inner = {centre + offset for centre in centres for offset in offsets}
        return [context.zero, *sorted(cut for cut in inner if 0 < cut < length), length]

    def squares(upper, lower):
        return (upper**3 - lower**3) / 3

    def alike(length, top):
        """Both in an interval of this length, with its upper end at `top`."""

        def over_positions(g):
            fall = g / (1 + context.exp(mu * g))
            return 2 * squares(top - fall, top - (length - g) - fall)

        return context.quad(over_positions, cuts(length, context.zero))

    def unlike(g):
        rise = g / (1 + context.exp(2 * lam - mu * g))
        return 2 * squares(min(context.zero, r - g) + rise, max(-s, -g) + rise)

    mixed = context.zero
    if s > 0 and r > 0:
        centres = context.zero, 2 * lam / mu, s + r
        mixed = context.quad(unlike, sorted({*cuts(s + r, *centres), s, r}))
    return (alike(s, context.zero) + alike(r, r) + mixed) / 4
