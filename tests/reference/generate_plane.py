"""Write plane.json: the population risk and its derivatives over the whole plane, found twice.

Run as `python tests/reference/generate_plane.py`, with popdyn installed (about ten minutes on two
cores). With `--check population.json` another file of this folder is compared with the quadrature.

The values come from `popdyn.ArbitraryPrecisionRisk`. They are confirmed by quadrature of the
definition, which shares nothing with it: the risk is the mean of `(F - alpha)^2` over the
threshold, with `F` a ratio of integrals of `x^j exp(lam y + mu x)`; gradient and Hessian are means
of products of the second and third joint cumulants of label and feature under the softmax weights.
Every entry records how many digits all of its six numbers share with the quadrature.
"""

import argparse
import json
import math
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path

import mpmath

from popdyn import ArbitraryPrecisionRisk

HERE = Path(__file__).parent
DIGITS = 25
WANTED = 20  # digits of every number that the two routes must share

ORDER = 28  # Gauss-Legendre nodes a panel
PANEL = 2.0  # width of a panel, in the unit in which the integrand has poles at distance pi
REACH = 45  # panels on either side of a change of regime: its exponential is then below 1e-39
PLAIN = 0.05  # both scores below this: one panel, exact to the 53rd power of the scores
SMALL_SCALE = 1e-3  # below, the part of d/dlam that integrates to zero at scale 0 is taken off
NOTHING = 1e-40  # where a component vanishes exactly, quadrature leaves rounding errors
WORKING = 50  # digits, before those that cancel

ctx = mpmath.MPContext()
mpf = ctx.mpf


def cases():
    """(given, value, scale, half width): exact doubles."""
    found = []

    def add(given, value, scale, half_width=1.0):
        found.append((given, float(value), float(scale), float(half_width)))

    # Both zero, one zero, and everything tiny around the origin, across the signs.
    add("label_score", 0.0, 0.0)
    for lam in (1e-300, 1e-9, 1e-3, 0.3, 2.0, 25.0, 400.0, -1e-5, -0.7, -40.0):
        add("label_score", lam, 0.0)
    for mu in (1e-300, 1e-9, -1e-6, 1e-3, 0.5, -3.0, 30.0, -1e3, 1e6, 1e12):
        add("label_score", 0.0, mu)
    for radius in (1e-300, 1e-150, 1e-30, 1e-12, 1e-8, 1e-6, 1e-4, 1e-2):
        add("label_score", radius, 0.6 * radius)
        add("label_score", 1.37 * radius, -radius)
        add("excess", 0.3 * radius, radius)
    add("label_score", 1e-100, 1e-300)  # both terms of dL/dlam matter: mu and lam^3
    add("label_score", 1e-4, 1e-12)
    add("label_score", 1e-12, 1e-4)

    # Negative scale: either side of the reflected tube, and its far side.
    for mu in (-1e-3, -0.2, -1.0, -6.0, -50.0, -1e3, -1e6):
        add("label_score", 0.8, mu)
        add("label_score", 1.3 * mu, mu)
        add("excess", mu + 0.5, mu)
        add("label_score", -5.0, mu)

    # Tiny scale with a label score of any size.
    for mu in (1e-300, 1e-20, 1e-9, -1e-7, 1e-5, -1e-3, 0.03):
        for lam in (1e-3, 1.0, -3.0, 20.0, -300.0):
            add("label_score", lam, mu)

    # Label score of order one, either sign, where the scale is large.
    for mu in (20.0, 1e3, 1e5, 1e8, 1e12):
        for lam in (1e-10, 0.5, -0.5, 7.0, -30.0):
            add("label_score", lam, mu)

    # lam < 0 in proportion to the scale, and 0 < k < 1: the layer inside the interval.
    for mu in (0.5, 5.0, 80.0, 1e4, 1e9):
        for k in (-2.0, -0.4, 0.25, 0.75, 0.98):
            add("label_score", k * mu, mu)

    # Excess zero or tiny at every scale, and the tube itself.
    for mu in (1e-7, 1e-3, 0.4, 3.0, 40.0, 1e4, 1e8, 1e12):
        add("excess", 0.0, mu)
        add("excess", 1e-10, mu)
        add("excess", -1e-3, mu)
    for mu in (5.0, 30.0, 500.0, 1e5, 1e9, 1e12):
        for c in (0.1, math.log(2.0), 1.6):
            add("excess", c + math.log(mu), mu)

    # Label score huge at small and moderate scale.
    for mu in (1e-4, 0.3, 2.0, 15.0):
        for lam in (50.0, 700.0, -80.0, -1e4, 1e6):
            add("label_score", lam, mu)

    # Half widths.
    for width in (1e-50, 0.5, 2.0, 1e50):
        add("label_score", 0.7, 0.9 / width, width)
        add("label_score", -1.1, 4.0 / width, width)
        add("label_score", 2e-9, -3e-9 / width, width)
        add("label_score", 3.0, 0.0, width)
        add("excess", 0.0, 0.01 / width, width)
        add("excess", 4.0, 60.0 / width, width)
        add("excess", -2.5, 1e4 / width, width)
    return found


# --- the definition, by quadrature --------------------------------------------------------------


@cache
def gauss_legendre(order, digits):
    """Nodes and weights on [-1, 1], to the digits that are set."""
    rule = []
    for i in range(order):
        x = mpf(math.cos(math.pi * (i + 0.75) / (order + 0.5)))
        for _ in range(math.ceil(math.log2(digits)) + 1):
            previous, value = mpf(1), x
            for n in range(1, order):
                previous, value = value, ((2 * n + 1) * x * value - n * previous) / (n + 1)
            slope = order * (x * value - previous) / (x * x - 1)
            x -= value / slope
        rule.append((x, 2 / ((1 - x * x) * slope**2)))
    return rule


def falling_moments(a, length):
    """`int_0^length u^j exp(-a u) du` for j = 0, 1, 2, 3, for `a` of either sign."""
    x = a * length
    if abs(x) < 3:
        # The series of the highest moment, then `a I_j + length^j exp(-x) = j I_{j-1}` downwards.
        term, total, n = mpf(1), mpf(0), 0
        while n < 4 or abs(term) > ctx.eps:
            total += term / (4 + n)
            n += 1
            term *= -x / n
        moments = [total * length**4]
        end = ctx.exp(-x)
        for j in (3, 2, 1):
            moments.insert(0, (a * moments[0] + length**j * end) / j)
        return moments
    end = ctx.exp(-x)
    moments = [-ctx.expm1(-x) / a]
    for j in range(1, 4):
        moments.append((j * moments[-1] - length**j * end) / a)
    return moments


def integrand(lam, mu, s, r):
    """The six integrands at one threshold, at distances `s` and `r` from the two ends.

    With features measured from the threshold, positives are at `-u`, `0 <= u <= s`, with weight
    `exp(-mu u)`, and negatives at `u`, `0 <= u <= r`, with weight `exp(mu u - 2 lam)`.
    """
    plus = [(-1) ** j * m for j, m in enumerate(falling_moments(mu, s))]
    minus = [ctx.exp(-2 * lam) * m for m in falling_moments(-mu, r)]
    P, M = plus[0] / (plus[0] + minus[0]), minus[0] / (plus[0] + minus[0])
    (a, va, ta), (b, vb, tb) = central_moments(plus), central_moments(minus)
    gap = a - b
    # Joint cumulants of label y and feature x of the mixture of the two labels.
    error = P * a + M * b
    xy = 2 * P * M * gap
    xx = P * va + M * vb + P * M * gap**2
    xyy = 4 * P * M * (M - P) * gap
    xxy = 2 * P * M * (va - vb + (M - P) * gap**2)
    xxx = P * ta + M * tb + 3 * P * M * gap * (va - vb) + P * M * (M - P) * gap**3
    return (
        error**2,
        2 * error * xy,
        2 * error * xx,
        2 * (xy**2 + error * xyy),
        2 * (xy * xx + error * xxy),
        2 * (xx**2 + error * xxx),
    )


def central_moments(raw):
    """Mean, variance and third central moment of one label's features."""
    mean, square, cube = (m / raw[0] for m in raw[1:])
    return mean, square - mean**2, cube - 3 * mean * square + 2 * mean**3


def around(low, high, changes, step):
    """Break points of `[low, high]`: panels of `step` around changes of regime, wide between."""
    points = {low, high}
    for change in changes:
        start, stop = max(low, change - REACH * step), min(high, change + REACH * step)
        if start < stop:
            count = int(ctx.ceil((stop - start) / step))
            points.update(start + (stop - start) * i / count for i in range(count + 1))
    return sorted(points)


def by_quadrature(given, value, scale, width):
    """Risk, gradient and Hessian from the definition; the reflected head where the scale is < 0."""
    label_score = value if given == "label_score" else value + scale * width
    size = max(abs(label_score), abs(scale) * width)
    # Near the origin the gradient cancels to the first, d2L/dlam2 to the second power of the size;
    # at large scale the third central moment cancels to its third power.
    decades = int(math.log10(size)) if size else 0
    small = abs(scale) * width < SMALL_SCALE
    lost = -math.log10(abs(scale) * width) if small and scale else 0
    ctx.dps = WORKING + max(4 * abs(decades), int(lost))

    sign = -1 if scale < 0 else 1
    width, mu = mpf(width), sign * mpf(scale)
    lam = sign * mpf(value) + (mu * width if given == "excess" else 0)
    whole = 2 * width
    rule = gauss_legendre(ORDER, ctx.dps)
    total = [mpf(0)] * 6

    def add(low, high, ends):
        half = (high - low) / 2
        for x, weight in rule:
            s, r, jacobian = ends(low + half * (1 + x))
            parts = list(integrand(lam, mu, s, r))
            if small:
                # At scale 0 the integrands of dL/dlam and d2L/dlam2 are derivatives in s, of a
                # multiple of (s r/D)^2, D = s + exp(-2 lam) r, and of its derivative in lam.
                at_zero = integrand(lam, mpf(0), s, r)
                parts[1], parts[3] = parts[1] - at_zero[1], parts[3] - at_zero[3]
            for i, part in enumerate(parts):
                total[i] += weight * half * jacobian * part

    def from_below(s):
        return s, whole - s, 1

    def from_above(r):
        return whole - r, r, 1

    def log_from_below(v):
        return *from_below(ctx.exp(v))[:2], ctx.exp(v)

    def log_from_above(v):
        return *from_above(ctx.exp(v))[:2], ctx.exp(v)

    if size < PLAIN:
        add(mpf(0), whole, from_below)
    else:
        p = ctx.exp(-2 * lam)
        unit = min(whole / 2, 1 / mu) if mu else whole / 2
        # Distances from the two ends at which the two labels weigh the same.
        lower = p * falling_moments(-mu, whole)[0]
        upper = falling_moments(mu, whole)[0] / p
        for layer, plain, logarithmic in (
            (lower, from_below, log_from_below),
            (upper, from_above, log_from_above),
        ):
            end, change = ctx.log(unit), ctx.log(min(layer, unit))
            points = around(change - 2 * PANEL, end, (change, end), PANEL)
            add(mpf(0), ctx.exp(points[0]), plain)
            for low, high in pairwise(points):
                add(low, high, logarithmic)
        if unit < whole / 2:
            inside = ctx.log1p(mu * lower) / mu
            points = around(unit, whole - unit, (unit, inside, whole - unit), PANEL * unit)
            for low, high in pairwise(points):
                add(low, high, from_below)
    return [
        parity * part / whole for parity, part in zip((1, sign, sign, 1, 1, 1), total, strict=True)
    ]


# --- both together ------------------------------------------------------------------------------


def shared_digits(ours, theirs):
    """Decimal digits that two numbers have in common, at most `DIGITS`."""
    with ctx.workdps(DIGITS + 10):
        difference = abs(mpf(ours) - mpf(theirs))
        if difference == 0 or (ours == 0 and difference < NOTHING):
            return DIGITS
        return min(DIGITS, int(-ctx.log10(difference / max(abs(mpf(ours)), abs(mpf(theirs))))))


def check(name):
    """Compare another file of this folder, whose entries give the excess, with the quadrature."""
    for entry in json.loads((HERE / name).read_text()):
        found = by_quadrature("excess", entry["excess"], entry["scale"], entry["half_width"])
        stated = [entry["risk"], *entry["gradient"], *entry["hessian"]]
        shared = [shared_digits(a, mpf(b)) for a, b in zip(found, stated, strict=True)]
        if min(shared) < WANTED:
            print(f"{entry['half_width']!r} {entry['scale']!r} {entry['excess']!r}: {shared}")


def entry(case):
    """One case by both routes."""
    given, value, scale, width = case
    point = ArbitraryPrecisionRisk(width, DIGITS + 5).evaluate(scale=scale, **{given: value})
    numbers = [point.risk, *point.gradient, *point.hessian]
    confirmed = by_quadrature(*case)
    shared = min(shared_digits(a, b) for a, b in zip(numbers, confirmed, strict=True))
    texts = [mpmath.nstr(number, DIGITS) for number in numbers]
    return {
        "given": given,
        "value": value,
        "scale": scale,
        "half_width": width,
        "risk": texts[0],
        "gradient": texts[1:3],
        "hessian": texts[3:],
        "shared_digits": shared,
    }


def write():
    """Both routes at every case, into plane.json."""
    with ProcessPoolExecutor() as pool:
        entries = list(pool.map(entry, cases()))
    poor = [e for e in entries if e["shared_digits"] < WANTED]
    if poor:
        raise SystemExit("\n".join(["the two routes share too few digits:", *map(str, poor)]))
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    (HERE / "plane.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(entries)} entries, at least {min(e['shared_digits'] for e in entries)} digits")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", metavar="FILE", help="compare this file with the quadrature")
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.check)
    else:
        write()
