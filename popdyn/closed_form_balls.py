"""The closed forms of the risk and of the error in ball arithmetic, at half width 1 (MODEL §2, §3).

Arguments and results are balls, or series of two terms whose coefficients are balls.
"""

from typing import Any

from flint import acb_series, arb, arb_poly

from popdyn.ball_polylog import composed, divided_polylogs

__all__ = ["closed_form", "closed_form_error", "slope_at_scale_zero"]


def closed_form(lam: Any, mu: Any, excess: Any) -> Any:
    """The risk `1/mu^2 - (2/mu) E[R] + E[R^2]` at `mu > 0`, as a series of two terms."""
    low_label = bool(2 * lam[0].real < mu[0].real)
    of_R, of_R_squared = (_in_y if low_label else _in_z)(lam, mu, excess)
    return (1 / mu - of_R) / mu + of_R_squared / 2


def _in_z(lam: Any, mu: Any, excess: Any) -> tuple[Any, Any]:
    """Integrals of `R` and `R^2` over `0 < s < 2`, where `lam > 0` (MODEL §3).

    With `w = 1 - q`, `E = exp(-mu s)/(1 - q e)`, `z = w E < 1` and `N = 2 q + w s`,
    `R = (N/w) Li_0(z)`. Since `dz/ds = -mu z`, integration by parts lowers `N` and raises the order
    of the polylogarithms; divided by powers of `z` nothing is singular at `w = 0`.
    """
    q, w = _exp(-2 * excess), _one_minus_exp(-2 * excess)
    e, one_minus_e = _exp(-2 * mu), _one_minus_exp(-2 * mu)
    one_minus_qe = _one_minus_exp(-2 * lam)

    def antiderivatives(N: Any, E: Any, complement: Any) -> tuple[Any, Any]:
        P1, P2, _, T1, T2, T3 = divided_polylogs(w * E, complement)
        h = w / mu
        return (
            -E * (N * P1 + h * P2) / mu,
            E * E * (N * N * T1 + 2 * h * (N * T2 + h * T3)) / mu,
        )

    E, complement = 1 / one_minus_qe, one_minus_e / one_minus_qe
    low = antiderivatives(2 * q, E, q * complement)
    high = antiderivatives(_constant(2), e * E, complement)
    return high[0] - low[0], high[1] - low[1]


def _in_y(lam: Any, mu: Any, excess: Any) -> tuple[Any, Any]:
    """The same integrals where `lam < mu/2`, with `y = 1/z < 1` (MODEL §3).

    `R = v (1 + Li_0(y))` with `v = 2/(1 - 1/q) - s` and `dy/ds = mu y`.
    """
    Q, one_minus_Q = _exp(2 * excess), _one_minus_exp(2 * excess)
    P, one_minus_P = _exp(2 * lam), _one_minus_exp(2 * lam)
    e, one_minus_e = _exp(-2 * mu), _one_minus_exp(-2 * mu)

    def antiderivatives(s: int, v: Any, y: Any, complement: Any) -> tuple[Any, Any]:
        li1, li2, li3 = (y * P for P in divided_polylogs(y, complement)[:3])
        V1 = s + li1 / mu
        V2 = _constant(s * s) / 2 + li2 / (mu * mu)
        V3 = _constant(s**3) / 6 + li3 / (mu * mu * mu)
        U1, U2, U3 = V1 + y / (complement * mu), V2 + li1 / (mu * mu), V3 + li2 / (mu * mu * mu)
        return v * V1 + V2, v * v * U1 + 2 * (v * U2 + U3)

    y, complement = one_minus_P / one_minus_Q, one_minus_e / one_minus_Q
    low = antiderivatives(0, 2 / one_minus_Q, e * y, complement)
    high = antiderivatives(2, 2 * Q / one_minus_Q, y, P * complement)
    return high[0] - low[0], high[1] - low[1]


def _constant(number: int) -> Any:
    return acb_series([number], prec=2)


def _exp(x: Any) -> Any:
    value = x[0].real.exp()
    return composed(x, value, value)


def _one_minus_exp(x: Any) -> Any:
    value = x[0].real
    return composed(x, -value.expm1(), -value.exp())


def slope_at_scale_zero(lam: Any) -> Any:
    """`dL/dmu` at scale 0 and `lam > 0`.

    There the weights are 1 below and `p = exp(-2 lam)` above the threshold, so that with
    `D = s + p r` the error is `(p r^2 - s^2)/(2 D)`, the mean square of `x - alpha` is
    `(s^3 + p r^3)/(3 D)` and `dF/dmu` its excess over the squared error. All are rational in `s`;
    in powers of `D` the average over thresholds is elementary. (The risk is 1/3 at every `lam`:
    the integrand of `dL/dlam` is `-2 s r p/D^2` times twice the error, which is `-p` times the
    slope of `(s r/D)^2`, and that is 0 at both ends.)
    """
    p = (-2 * lam).exp()
    s, r = arb_poly([0, 1]), arb_poly([2, -1])
    D = s + p * r
    error = p * r * r - s * s  # times 2 D
    square = s * s * s + p * r * r * r  # times 3 D
    integrand = error * (square * D * (arb(1) / 3) - error * error * arb(0.25))  # times D^3
    slope = -(-2 * lam).expm1()  # dD/ds
    in_powers_of_D = integrand(arb_poly([-2 * p / slope, 1 / slope]))
    total = arb(0)
    for k in range(7):
        power = k - 2
        integral = 2 * lam if power == 0 else (arb(2) ** power - (2 * p) ** power) / power
        total += in_powers_of_D[k] * integral
    return total / (2 * slope)


def closed_form_error(s: Any, r: Any, lam: Any, mu: Any, excess: Any) -> Any:
    """`-1/mu + (s + q r)/(expm1(mu s) - q expm1(-mu r))`, or its limit at scale 0, `mu >= 0`."""
    if mu == 0:
        p = (-2 * lam).exp()
        return (p * r**2 - s**2) / (p * r + s) / 2
    q = (-2 * excess).exp()
    return (s + q * r) / ((mu * s).expm1() - q * (-mu * r).expm1()) - 1 / mu
