"""Charts against the chain rule in arbitrary precision."""

import mpmath
import numpy as np
import pytest
from toy_risks import QuadraticRisk

from popdyn import Head
from popdyn.dynamics.charts import LinearChart, TubeChart, chart_at

CURVATURE = ((0.7, -0.3), (-0.3, 0.4))
HEADS = [
    Head.from_scores(1.5, 0.8),
    Head.from_scores(-0.4, -1.1, 0.5),
    Head.from_ratio(1.5, 5.0),
    Head.from_ratio(0.3, 7.0, 2.0),
    Head.from_scores(3.0, -6.0),
    Head.from_tube(0.6, 300.0, 0.5),
]
CHARTS = [
    pytest.param(chart, head, id=f"{chart.__name__}-{head!r}")
    for head in HEADS
    for chart in (LinearChart, TubeChart)
]
VELOCITY = 1e-15  # relative; worst measured 2.3e-16
JACOBIAN = 5e-9  # relative, of central differences with step 1e-5; worst measured 3e-10


@pytest.mark.parametrize(("chart", "head"), CHARTS)
def test_the_head_a_chart_is_made_for_is_carried_without_rounding(chart, head):
    made = chart.around(head)
    back = made.head(made.state(head))
    assert back.scale == head.scale
    if chart is LinearChart:
        assert back.label_score == head.label_score
    else:
        assert back.label_score == pytest.approx(head.label_score, rel=1e-15, abs=0)


def exact_state(ctx, chart, lam, mu):
    """The state by its definition, in 40 digits."""
    if isinstance(chart, LinearChart):
        return lam / chart.unit, mu / chart.scale_unit
    lam, mu = chart.sign * lam, chart.sign * mu
    return lam - mu * chart.half_width - ctx.log(mu), ctx.log(mu / chart.unit)


@pytest.mark.parametrize(("chart", "head"), CHARTS)
def test_velocity_is_the_image_of_minus_the_gradient(chart, head):
    made = chart.around(head)
    gradient = [0.31, -0.17]
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    lam, mu = ctx.mpf(float(head.label_score)), ctx.mpf(float(head.scale))

    def along(i):
        return ctx.diff(
            lambda t: exact_state(ctx, made, lam - t * gradient[0], mu - t * gradient[1])[i], 0
        )

    exact = [float(along(0)), float(along(1))]
    velocity = made.velocity(made.state(head), np.array(gradient))
    np.testing.assert_allclose(velocity, exact, rtol=VELOCITY)


@pytest.mark.parametrize(("chart", "head"), CHARTS)
def test_jacobian_is_the_derivative_of_the_velocity(chart, head):
    made = chart.around(head)
    risk = QuadraticRisk(CURVATURE, half_width=head.half_width)
    state = made.state(head)
    step = 1e-5

    def velocity(at):
        return made.velocity(at, risk.gradient(made.head(at)))

    differences = np.column_stack(
        [
            (velocity(state + step * unit) - velocity(state - step * unit)) / (2 * step)
            for unit in np.eye(2)
        ]
    )
    jacobian = made.jacobian(state, risk.gradient(head), risk.hessian(head))
    np.testing.assert_allclose(
        jacobian, differences, rtol=0, atol=JACOBIAN * abs(differences).max()
    )


@pytest.mark.parametrize(("chart", "head"), CHARTS)
@pytest.mark.parametrize("ulps", [-1, 0, 1])
def test_the_sign_of_a_scale_level_is_exact_for_neighbouring_doubles(chart, head, ulps):
    made = chart.around(head)
    level = float(head.scale) + ulps * float(np.spacing(head.scale))
    assert np.sign(made.scale_above(made.state(head), level)) == np.sign(float(head.scale) - level)


def test_tube_coordinate_is_infinite_where_the_scale_is_not_positive():
    linear = LinearChart.around(Head.from_scores(1.0, -0.5))
    assert linear.tube(np.array([[1.0, 1.0], [-0.5, 0.0]])).tolist() == [np.inf, np.inf]
    reflected = TubeChart.around(Head.from_scores(1.0, -5.0))
    assert reflected.tube(np.array([0.7, 0.0])) == np.inf


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (Head.from_scores(0.0, 0.0), "linear"),
        (Head.from_scores(1e6, 1.9), "linear"),
        (Head.from_scores(1.0, 2.0), "tube"),
        (Head.from_scores(1.0, 2.0, 0.5), "linear"),
        (Head.from_scores(1.0, -2.0), "reflected tube"),
    ],
)
def test_a_start_takes_the_tube_chart_from_two_half_widths_on(head, name):
    assert chart_at(head).name == name
