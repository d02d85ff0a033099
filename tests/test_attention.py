"""The limit error against known values, its definition, and its symmetries."""

import mpmath
import numpy as np
import pytest

from popdyn import ArbitraryPrecisionRisk, Design, Head, limit_error

# Relative, or relative to the larger of the two terms where the error changes sign.
TOLERANCE = 1e-14  # measured 4.8e-15 over 1500 draws


def test_large_scale_and_many_negatives_do_not_overflow():
    head = Head.from_ratio(0.2, 800.0)
    errors = limit_error(head, [-1, -0.999, 0, 0.999, 1])
    np.testing.assert_allclose(errors, [1.99875, 1.99775, 0.99875, -0.00125, -0.00125], rtol=1e-12)


@pytest.mark.parametrize("threshold", [-1.0, -0.3, 0.0, 0.999, 1.0])
def test_a_head_of_features_alone_predicts_near_the_upper_end(threshold):
    error = limit_error(Head.from_scores(0.0, 1000.0), threshold)
    assert error == pytest.approx(1.0 - 1e-3 - threshold, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("scale", [5.0, 100.0, 1e6])
def test_without_a_positive_example_the_error_stays_near_the_width(scale):
    error = limit_error(Head.from_ratio(1.5, scale), -1.0)
    assert error == pytest.approx(-2 / np.expm1(-2 * scale) - 1 / scale, rel=1e-15, abs=0)


def test_the_origin_predicts_the_mean_feature():
    thresholds = np.linspace(-2, 2, 9)
    head = Head.from_scores(0.0, 0.0, half_width=2.0)
    np.testing.assert_array_equal(limit_error(head, thresholds), -thresholds)


HEADS = {
    "tube": {"excess": 5.0, "scale": 1000.0},
    "far up the tube": {"excess": 20.0, "scale": 1e9},
    "order one": {"label_score": 1.3, "scale": 2.1},
    "wrong label": {"label_score": -3.0, "scale": 40.0},
    "interior": {"label_score": 60.0, "scale": 100.0},
    "negative scale": {"label_score": 2.0, "scale": -7.0},
    "no scale": {"label_score": 4.0, "scale": 0.0},
    "small": {"label_score": 1e-9, "scale": -3e-10},
}
THRESHOLDS = [-1.0, -1 + 2.0**-40, -1 + 1e-3, -0.4, 0.2, 0.9, 1 - 2.0**-40, 1.0]


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("case", HEADS.values(), ids=HEADS)
def test_the_closed_form_is_exact_everywhere(case, threshold):
    name = "excess" if "excess" in case else "label_score"
    make = Head.from_excess if name == "excess" else Head.from_scores
    exact = float(ArbitraryPrecisionRisk().limit_error(threshold, **case))
    assert limit_error(make(case[name], case["scale"]), threshold) == pytest.approx(
        exact, rel=TOLERANCE, abs=0
    )


def tilted(x):
    return (1 + 0.3 * x) / 2


def wavy(x):
    return (1 + 0.3 * np.cos(np.pi * x)) / 2


def by_definition(density, lam, mu, alpha):
    """F - alpha by adaptive quadrature of the definition, in 30 digits."""
    ctx = mpmath.mp.clone()
    ctx.dps = 30
    above = ctx.exp(-2 * ctx.mpf(lam))

    def moment(power):
        def integrand(x):
            return x**power * density(ctx, x) * ctx.exp(mu * x)

        cuts = [k * ctx.mpf(1) / 4 for k in range(-4, 5)]
        below = ctx.quad(integrand, [c for c in cuts if c < alpha] + [alpha])
        return below + above * ctx.quad(integrand, [alpha] + [c for c in cuts if c > alpha])

    return float(moment(1) / moment(0) - ctx.mpf(alpha))


EXACT = {
    "tilted": (tilted, lambda ctx, x: (1 + ctx.mpf(0.3) * x) / 2),
    "wavy": (wavy, lambda ctx, x: (1 + ctx.mpf(0.3) * ctx.cos(ctx.pi * x)) / 2),
    "flat": (lambda x: np.full_like(x, 0.5), lambda ctx, x: ctx.mpf(0.5)),
}


@pytest.mark.parametrize("threshold", [-0.875, 0.125, 0.625])
@pytest.mark.parametrize("scores", [(2.0, 5.0), (-1.0, 5.0), (0.3, -8.0), (1.5, 0.0), (30.0, 30.0)])
@pytest.mark.parametrize("law", EXACT)
def test_any_density_gives_the_error_of_the_definition(law, scores, threshold):
    density, exact = EXACT[law]
    error = limit_error(Head.from_scores(*scores), threshold, Design(feature_density=density))
    assert error == pytest.approx(by_definition(exact, *scores, threshold), rel=TOLERANCE, abs=0)


@pytest.mark.parametrize("design", [None, Design(), Design(feature_density=wavy)])
def test_the_reflected_head_errs_the_other_way_on_the_mirrored_task(design):
    head = Head.from_scores([1.0, 7.5, -2.0], [3.0, 5.0, 0.5])
    errors = limit_error(head, 0.3, design)
    np.testing.assert_array_equal(limit_error(head.reflected, -0.3, design), -errors)


def test_an_asymmetric_density_is_mirrored_with_the_head():
    design, head = Design(feature_density=tilted), Head.from_scores(1.0, 3.0)
    mirrored = limit_error(head.reflected, -0.3, design.mirrored)
    assert mirrored == pytest.approx(-limit_error(head, 0.3, design), rel=1e-15, abs=0)


@pytest.mark.parametrize("half_width", [1e-50, 0.25, 1e50])
def test_the_error_scales_with_the_interval(half_width):
    head = Head.from_scores(3.0, 4.0 / half_width, half_width=half_width)
    error = limit_error(head, 0.3 * half_width)
    exact = half_width * limit_error(Head.from_scores(3.0, 4.0), 0.3)
    assert error == pytest.approx(exact, rel=TOLERANCE, abs=0)


@pytest.mark.parametrize("design", [None, Design(feature_density=wavy)])
def test_threshold_and_head_broadcast(design):
    heads = Head.from_scores([[1.0], [2.0], [-3.0]], [[5.0], [-4.0], [0.0]])
    thresholds = np.array([-0.5, 0.25])
    errors = limit_error(heads, thresholds, design)
    assert errors.shape == (3, 2)
    one = limit_error(Head.from_scores(2.0, -4.0), 0.25, design)
    assert np.shape(one) == ()
    assert errors[1, 1] == pytest.approx(one, rel=1e-15, abs=0)


@pytest.mark.parametrize("threshold", [1.0000001, -3.0, np.nan, np.inf, [0.0, -1.5]])
def test_a_threshold_outside_the_interval_is_refused(threshold):
    with pytest.raises(ValueError, match=r"threshold must lie in \[-1.0, 1.0\], got"):
        limit_error(Head.from_scores(1.0, 1.0), threshold)


def test_a_design_of_another_half_width_is_refused():
    with pytest.raises(ValueError, match=r"one half width, got 1.0 and 2.0"):
        limit_error(Head.from_scores(1.0, 1.0), 0.0, Design(2.0))


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"must broadcast, got shapes \(2,\) and \(3,\)"):
        limit_error(Head.from_scores([1.0, 2.0, 3.0], 1.0), [0.0, 0.1])
