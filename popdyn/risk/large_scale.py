"""Population risk at scale one and more, unit half width: the polylogarithm closed form (MODEL §3).

With `V = s + 2 / expm1(2 delta)`, `z = (1 - q) / (1 - q e) exp(-mu s)` and `h = z / (1 - z)` the
error is `F - alpha = V h - 1 / mu`, and the risk is `1 / mu^2` plus the increment over the interval
of

    -V^2 (h + log(1 - z)) / (2 mu) + V Li2(z) / mu^2 + Li3(z) / mu^3.

Along the interval `dV/ds = 1` and `d log z/ds = -mu`, hence the derivatives below. The ends are
numbered 0 (`s = 0`) and 1 (`s = 2`), `eta = 1 / mu`, and at the ends `F` does not depend on the
label score.
"""

from math import exp, expm1, log, log1p

from popdyn.compiled import kernel
from popdyn.polylog import li2_and_li3, li2_and_li3_inverted
from popdyn.risk.reduced_polylogs import reduced_polylogs, twice_along_label_score

__all__ = [
    "hessian_in_y",
    "hessian_in_z",
    "hessian_near_zero_excess",
    "risk_in_y",
    "risk_in_z",
    "risk_near_zero_excess",
]

# exp(-2 * 345) is 1e-300: a larger excess changes no digit of the risk but would lose 0 / 0.
_LARGEST = 345.0


@kernel
def _ends_in_z(lam: float, delta: float, mu: float) -> tuple[float, ...]:
    """`h`, `h + log(1 - z)`, `Li2(z)`, `Li3(z)` at the end 0, then at the end 1."""
    one_minus_qe = -expm1(-2.0 * lam)
    e = exp(-2.0 * mu)
    if delta > 0.0:
        q = exp(-2.0 * delta)
        complement = q * -expm1(-2.0 * mu) / one_minus_qe
        z = -expm1(-2.0 * delta) / one_minus_qe
        h0 = z / complement
        log0 = log(complement)
        two0, three0 = li2_and_li3(z, complement, log0)
        z1 = z * e
    else:
        inverse_q = exp(2.0 * delta)
        inverse_z = one_minus_qe * inverse_q / expm1(2.0 * delta)
        if inverse_z < -1.0:
            z = 1.0 / inverse_z
            h0 = z / (1.0 - z)
            log0 = log1p(-z)
            two0, three0 = li2_and_li3(z, 1.0 - z, log0)
        else:
            log_minus_z = -2.0 * delta + log1p(-inverse_q) - log(one_minus_qe)
            h0 = 1.0 / (inverse_z - 1.0)
            log0 = log_minus_z + log1p(-inverse_z)
            two0, three0 = li2_and_li3_inverted(log_minus_z, inverse_z)
        z1 = (e - exp(-2.0 * lam)) / one_minus_qe
    log1 = log1p(-z1)
    two1, three1 = li2_and_li3(z1, 1.0 - z1, log1)
    h1 = z1 / (1.0 - z1)
    return h0, h0 + log0, two0, three0, h1, h1 + log1, two1, three1


@kernel
def risk_in_z(label_score: float, excess: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient where `z` at the end 0 is not small, for `label_score > 0`."""
    delta = min(excess, _LARGEST)
    lam = min(label_score, _LARGEST)
    _, k0, two0, three0, _, k1, two1, three1 = _ends_in_z(lam, delta, mu)
    eta = 1.0 / mu
    v0, v1 = 2.0 / expm1(2.0 * delta), -2.0 / expm1(-2.0 * delta)
    f1 = 2.0 / expm1(2.0 * mu) - eta
    f0 = f1 + 2.0
    sigma = v0 * v1
    u_lam = 2.0 / expm1(2.0 * lam) - v0
    mean = eta * (eta * (two1 - two0) - (v1 * k1 - v0 * k0))
    tail = eta * (
        eta * (eta * (three1 - three0) + (v1 * two1 - v0 * two0))
        - 0.5 * (v1 * v1 * k1 - v0 * v0 * k0)
    )
    value = eta * eta + tail
    g_lam = -(sigma + eta * u_lam) * mean - eta * u_lam * (f0 + f1)
    g_mu = 0.5 * eta * (f1 * f1 * v1 - f0 * f0 * v0) + sigma * mean - 3.0 * eta * value
    return value, g_lam, g_mu


@kernel
def hessian_in_z(label_score: float, excess: float, mu: float) -> tuple[float, float, float]:
    """Hessian where `z` at the end 0 is not small, for `label_score > 0`."""
    delta = min(excess, _LARGEST)
    lam = min(label_score, _LARGEST)
    h0, k0, two0, _, h1, k1, two1, _ = _ends_in_z(lam, delta, mu)
    value, g_lam, g_mu = risk_in_z(label_score, excess, mu)
    eta = 1.0 / mu
    v0, v1 = 2.0 / expm1(2.0 * delta), -2.0 / expm1(-2.0 * delta)
    e1 = 2.0 / expm1(2.0 * mu)
    f1 = e1 - eta
    f0 = f1 + 2.0
    f_mu = eta * eta - e1 * (e1 + 2.0)
    sigma = v0 * v1
    sigma_lam = -sigma * (v0 + v1)
    g = 2.0 / expm1(2.0 * lam)
    u_lam = g - v0
    u_lam_lam = -g * (g + 2.0) + sigma
    squares = -(f0 + f1)  # half the increment of f^2, whose ends differ by 2
    mean = eta * (eta * (two1 - two0) - (v1 * k1 - v0 * k0))
    slope = -sigma - eta * u_lam
    curvature = -eta * (k1 - k0)
    mean_lam = slope * curvature + eta * u_lam * (f1 * h1 - f0 * h0)
    mean_mu = eta * (f1 * h1 * v1 - f0 * h0 * v0) + sigma * curvature - 2.0 * eta * mean
    lam_lam = (-sigma_lam - eta * u_lam_lam) * mean + slope * mean_lam + eta * u_lam_lam * squares
    lam_mu = -eta * sigma * squares + sigma_lam * mean + sigma * mean_lam - 3.0 * eta * g_lam
    mu_mu = (
        eta * f_mu * (f1 * v1 - f0 * v0)
        - 0.5 * eta * eta * (f1 * f1 * v1 - f0 * f0 * v0)
        + eta * sigma * squares
        - sigma_lam * mean
        + sigma * mean_mu
        + 3.0 * eta * (eta * value - g_mu)
    )
    return lam_lam, lam_mu, mu_mu


@kernel
def risk_near_zero_excess(lam: float, excess: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `z <= 1/2` at the end 0, in `z` and `T = V z`, both finite at `q = 1`.

    The risk is `eta^2` plus the increment of `eta (eta T M - T^2 H / 2 + eta^2 Li3(z))`.
    """
    z0 = expm1(-2.0 * excess) / expm1(-2.0 * lam)
    g0 = -2.0 / expm1(-2.0 * lam)
    value0, lam0, mu0 = _end_near_zero_excess(g0 - 2.0 * z0, z0, g0, 2.0, mu)
    z1 = z0 * exp(-2.0 * mu)
    g1 = 2.0 / expm1(2.0 * lam)
    value1, lam1, mu1 = _end_near_zero_excess(g1 + 2.0 * z1, z1, g1, -2.0, mu)
    eta = 1.0 / mu
    return eta * (eta + value1 - value0), eta * (lam1 - lam0), eta * (mu1 - mu0 - 2.0 * eta * eta)


@kernel
def _end_near_zero_excess(
    t: float, z: float, g: float, rate: float, mu: float
) -> tuple[float, float, float]:
    """`mu` times one end's share of the risk and its gradient.

    `dT/dlam = -g T`, `dz/dlam = g (1 - z)`, `dT/dmu = rate T`, `dz/dmu = -T`.
    """
    m, p, three, h, q = reduced_polylogs(z)
    eta = 1.0 / mu
    m_1, h_1 = (p + m) / (1.0 - z), (q + 2.0 * h) / (1.0 - z)
    return (
        t * (eta * m - 0.5 * t * h) + eta * eta * three,
        g * (t * (eta * p - 0.5 * t * q) + eta * eta * (1.0 - z) * m),
        _along_scale(t, rate, eta, m, m_1, three, m, h, h_1),
    )


@kernel
def _along_scale(
    t: float,
    rate: float,
    eta: float,
    m: float,
    m_1: float,
    n: float,
    n_1: float,
    h: float,
    h_1: float,
) -> float:
    """`mu` times the derivative by `mu` of `eta (eta T m - T^2 h / 2 + eta^2 n)`.

    `m`, `n`, `h` are functions of `z`, and `m_1`, `n_1`, `h_1` their derivatives.
    """
    along_t = eta * m - t * h
    along_z = t * (eta * m_1 - 0.5 * t * h_1) + eta * eta * n_1
    along_eta = t * (2.0 * eta * m - 0.5 * t * h) + 3.0 * eta * eta * n
    return t * (rate * along_t - along_z) - eta * along_eta


@kernel
def hessian_near_zero_excess(lam: float, excess: float, mu: float) -> tuple[float, float, float]:
    """Hessian for `z <= 1/2` at the end 0."""
    z0 = expm1(-2.0 * excess) / expm1(-2.0 * lam)
    g0 = -2.0 / expm1(-2.0 * lam)
    z1 = z0 * exp(-2.0 * mu)
    g1 = 2.0 / expm1(2.0 * lam)
    a0, b0, c0 = _end_hessian_near_zero_excess(g0 - 2.0 * z0, z0, g0, g1, 2.0, mu)
    a1, b1, c1 = _end_hessian_near_zero_excess(g1 + 2.0 * z1, z1, g1, g0, -2.0, mu)
    eta = 1.0 / mu
    return eta * (a1 - a0), eta * (b1 - b0), eta * (c1 - c0 + 6.0 * eta * eta * eta)


@kernel
def _end_hessian_near_zero_excess(
    t: float, z: float, g: float, other_g: float, rate: float, mu: float
) -> tuple[float, float, float]:
    """`mu` times one end's share of the Hessian; `dg/dlam = -g g'` with the other end's `g'`."""
    m, p, three, h, q = reduced_polylogs(z)
    p_p, q_q = twice_along_label_score(z, m, p, h, q)
    eta = 1.0 / mu
    square = eta * eta
    w = 1.0 - z
    m_1, h_1 = (p + m) / w, (q + 2.0 * h) / w
    p_1, q_1 = (p_p + p) / w, (q_q + 2.0 * q) / w
    m_2, h_2 = (p_1 + 2.0 * m_1) / w, (q_1 + 3.0 * h_1) / w
    once = t * (eta * p - 0.5 * t * q) + square * w * m
    twice = t * (eta * p_p - 0.5 * t * q_q) + square * w * p
    # subscripts: derivatives by T, z and eta of the share, times mu
    s_t = -t * h + eta * m
    s_z = t * (eta * m_1 - 0.5 * t * h_1) + square * m
    s_tz = -t * h_1 + eta * m_1
    s_zz = t * (eta * m_2 - 0.5 * t * h_2) + square * m_1
    s_e = t * (2.0 * m - 0.5 * t * h * mu) + 3.0 * eta * three
    s_te = -t * h * mu + 2.0 * m
    s_ze = t * (2.0 * m_1 - 0.5 * t * h_1 * mu) + 3.0 * eta * m
    s_ee = 2.0 * t * m * mu + 6.0 * three
    along_t = rate * (s_t - t * h) - s_z - t * s_tz - square * s_te
    along_z = t * (rate * s_tz - s_zz) - square * s_ze
    along_eta = t * (rate * s_te - s_ze) - 2.0 * eta * s_e - square * s_ee
    return (
        g * (g * twice - other_g * once),
        g * _along_scale(t, rate, eta, p, p_1, w * m, p, q, q_1),
        t * (rate * along_t - along_z) - square * along_eta,
    )


@kernel
def _end_in_y(
    y: float, log_minus_y: float, inverse: float, complement: float
) -> tuple[float, float, float, float, float, float]:
    """`y / (1 - y)`, `log(1 - y)`, `Li2(y)`, `Li3(y)` and `(1 - y) d/dy` of the last two.

    Reads `log(-y)` and `1 / y` where `y < -1` (`y` itself may overflow), else `y` and `1 - y`.
    """
    if y < -1.0:
        logarithm = log_minus_y + log1p(-inverse)
        two, three = li2_and_li3_inverted(log_minus_y, inverse)
        ratio = inverse - 1.0
        return 1.0 / ratio, logarithm, two, three, -ratio * logarithm, ratio * two
    if y == 0.0:
        return 0.0, 0.0, 0.0, 0.0, 1.0, 1.0
    logarithm = log(complement) if y > 0.5 else log1p(-y)
    two, three = li2_and_li3(y, complement, logarithm)
    return (
        y / complement,
        logarithm,
        two,
        three,
        -complement * (logarithm / y),
        complement * (two / y),
    )


@kernel
def _ends_in_y(lam: float, delta: float, mu: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What `_end_in_y` gives at the ends 0 and 1, after `y` and `1 - y` there."""
    e = exp(-2.0 * mu)
    y1 = expm1(2.0 * lam) / expm1(2.0 * delta)
    if y1 < -1.0:
        one_minus_qe = -expm1(-2.0 * lam)
        log1 = 2.0 * lam + log(one_minus_qe) - log1p(-exp(2.0 * delta))
        inverse1 = expm1(2.0 * delta) / expm1(2.0 * lam)
        y0 = exp(2.0 * delta) * one_minus_qe / expm1(2.0 * delta)
        return (
            (y0, 1.0 - y0, *_end_in_y(y0, log1 - 2.0 * mu, 1.0 / y0, 1.0 - y0)),
            (y1, 1.0 - y1, *_end_in_y(y1, log1, inverse1, 1.0 - y1)),
        )
    y0 = y1 * e
    complement1 = exp(2.0 * lam) * expm1(-2.0 * mu) / expm1(2.0 * delta)
    return (
        (y0, 1.0 - y0, *_end_in_y(y0, 0.0, 0.0, 1.0 - y0)),
        (y1, complement1, *_end_in_y(y1, 0.0, 0.0, complement1)),
    )


@kernel
def risk_in_y(label_score: float, delta: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `delta < 0` in `y = 1 / z < 1`, which is 0 at the label score 0.

    With `y` the risk is the increment of
    `(V + eta)^3 / 6 + eta V^2 (y / (1 - y) - log(1 - y)) / 2 - eta^2 V Li2(y) + eta^3 Li3(y)`.
    """
    lam = max(label_score, -_LARGEST)
    end0, end1 = _ends_in_y(lam, delta, mu)
    eta = 1.0 / mu
    v0, v1 = 2.0 / expm1(2.0 * delta), -2.0 / expm1(-2.0 * delta)
    sigma = v0 * v1
    a, b = v0 + eta, v1 + eta
    value0, lam0, mu0 = _end_share_in_y(v0, v1, sigma, eta, end0)
    value1, lam1, mu1 = _end_share_in_y(v1, v0, sigma, eta, end1)
    return (
        (a * a + a * b + b * b) / 3.0 + eta * (value1 - value0),
        -sigma * (a + b) + eta * (lam1 - lam0),
        (sigma - eta * eta) * (a + b) + eta * (mu1 - mu0),
    )


@kernel
def _end_share_in_y(
    v: float, other: float, sigma: float, eta: float, end: tuple[float, ...]
) -> tuple[float, float, float]:
    """`mu` times one end's share, without the cube, and its gradient; `other` is the other `V`.

    `dV/dlam = -sigma`, `dV/dmu = sigma`, `dy/dlam = (1 - y) V'`, `dy/dmu = V y`.
    """
    _, _, h, logarithm, two, three, two_1, three_1 = end
    k = h - logarithm
    vh = v * h
    share_v = v * k - eta * two
    value = v * (0.5 * v * k - eta * two) + eta * eta * three
    along_y = 0.5 * v * (vh + 2.0 * v) + eta * (eta * three_1 - v * two_1)
    along_u = 0.5 * vh * (vh + 2.0 * v) + eta * (v * logarithm + eta * two)
    along_eta = v * (0.5 * v * k - 2.0 * eta * two) + 3.0 * eta * eta * three
    return (
        value,
        other * along_y - sigma * share_v,
        sigma * share_v + v * along_u - eta * along_eta,
    )


@kernel
def hessian_in_y(label_score: float, delta: float, mu: float) -> tuple[float, float, float]:
    """Hessian for `delta < 0`, in `y`."""
    lam = max(label_score, -_LARGEST)
    end0, end1 = _ends_in_y(lam, delta, mu)
    eta = 1.0 / mu
    v0, v1 = 2.0 / expm1(2.0 * delta), -2.0 / expm1(-2.0 * delta)
    sigma = v0 * v1
    total = v0 + v1 + 2.0 * eta
    a0, b0, c0 = _end_hessian_in_y(v0, v1, eta, end0)
    a1, b1, c1 = _end_hessian_in_y(v1, v0, eta, end1)
    mixed = sigma * (v0 + v1) * total
    drift = sigma - eta * eta
    return (
        mixed + 2.0 * sigma * sigma + eta * (a1 - a0),
        -mixed - 2.0 * sigma * drift + eta * (b1 - b0),
        mixed + 2.0 * eta * eta * eta * total + 2.0 * drift * drift + eta * (c1 - c0),
    )


@kernel
def _end_hessian_in_y(
    v: float, other: float, eta: float, end: tuple[float, ...]
) -> tuple[float, float, float]:
    """`mu` times one end's share of the Hessian, without the cube."""
    y, complement, h, logarithm, two, three, two_1, three_1 = end
    sigma = v * other
    sigma_mu = sigma * (v + other)
    square = eta * eta
    k = h - logarithm
    vh = v * h
    # (1 - y)^2 times the second derivatives of the polylogarithms by y
    if abs(y) <= 0.5:
        m, p, _, h2, _ = reduced_polylogs(y)
        two_2, three_2 = complement * complement * h2, complement * (m + p)
    elif y < -1.0:
        ratio = 1.0 / h
        two_2 = ratio * ratio * (h + logarithm)
        three_2 = -ratio * ratio * (logarithm + two)
    else:
        ratio = complement / y
        two_2 = ratio * ratio * (h + logarithm)
        three_2 = -ratio * ratio * (logarithm + two)
    s_v = v * k - eta * two
    s_vv = k
    s_vy = v * (h + 2.0) - eta * two_1
    s_y = 0.5 * v * (vh + 2.0 * v) + eta * (eta * three_1 - v * two_1)
    s_yy = 0.5 * v * (2.0 * vh + 3.0 * v) + eta * (eta * three_2 - v * two_2)
    s_u = 0.5 * vh * (vh + 2.0 * v) + eta * (v * logarithm + eta * two)
    s_uv = h * (vh + 2.0 * v) + eta * logarithm
    s_uu = vh * (1.0 + h) * (v + vh) - eta * (vh + eta * logarithm)
    s_uy = (v + vh) * (v + vh) - eta * (v - eta * two_1)
    # derivatives by eta, of the share itself and not of mu times the share
    e = v * (0.5 * v * k - 2.0 * eta * two) + 3.0 * square * three
    e_v = v * k - 2.0 * eta * two
    e_y = 0.5 * v * (vh + 2.0 * v) + eta * (3.0 * eta * three_1 - 2.0 * v * two_1)
    e_u = 0.5 * vh * (vh + 2.0 * v) + eta * (2.0 * v * logarithm + 3.0 * eta * two)
    e_e = eta * (6.0 * eta * three - 2.0 * v * two)
    lam_lam = (
        sigma_mu * s_v
        + sigma * sigma * s_vv
        - 2.0 * sigma * other * s_vy
        - sigma * s_y
        + other * other * (s_yy - s_y)
    )
    lam_mu = (
        -sigma_mu * s_v
        + sigma * (other * s_vy - sigma * s_vv)
        - sigma * s_u
        + v * (other * s_uy - sigma * s_uv)
        - eta * (other * e_y - sigma * e_v)
    )
    mu_mu = (
        sigma_mu * s_v
        + sigma * (sigma * s_vv + 2.0 * v * s_uv + s_u)
        + v * v * s_uu
        - 2.0 * eta * (sigma * e_v + v * e_u)
        + square * (2.0 * e + e_e)
    )
    return lam_lam, lam_mu, mu_mu
