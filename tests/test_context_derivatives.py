"""Derivatives of the mean square error against the definition and high-precision differences."""

import numpy as np
import pytest
from two_examples import context, mean_square_error

from popdyn.context_derivatives import unit_gradient, unit_hessian
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.moments import unit_moments
from popdyn.noise import LabelFlips


def uniform(x):
    return np.full(x.shape, 0.5)


def tilted(x):
    return (1 + 0.3 * x) / 2


def task(head, alpha):
    return *map(float, (head.label_score, head.excess, head.scale)), 1 + alpha, 1 - alpha


# --- the definition, by nested quadrature ---------------------------------------------------------

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
# In units of the largest component.
NESTED_VALUE = 3e-14  # measured 1e-14
NESTED_GRADIENT = 2e-13  # measured 8e-14, where it is 1e-3 of the value
NESTED_HESSIAN = 2e-13  # measured 7e-14


def nested(lam, mu, alpha, n, density):
    """Error and derivatives from an n-fold tensor rule, with those of the softmax average."""
    halves = [(-1 + alpha + (1 + alpha) * NODES) / 2, (1 + alpha + (1 - alpha) * NODES) / 2]
    x = np.concatenate(halves)
    y = np.repeat([1.0, -1.0], NODES.size)
    mass = np.concatenate([(1 + alpha) / 2 * WEIGHTS, (1 - alpha) / 2 * WEIGHTS]) * density(x)
    weight = np.exp(lam * y + mu * x - np.max(lam * y + mu * x))
    grid = np.meshgrid(*[np.arange(x.size)] * n, indexing="ij")
    probability = np.prod([mass[axis] for axis in grid], axis=0)
    share = np.array([weight[axis] for axis in grid])
    share /= share.sum(axis=0)
    xs, ys = (np.array([row[axis] for axis in grid]) for row in (x, y))
    error = (share * (xs - alpha)).sum(axis=0)
    dx, dy = xs - (share * xs).sum(axis=0), ys - (share * ys).sum(axis=0)
    first = [(share * dx * d).sum(axis=0) for d in (dy, dx)]
    gradient = [np.sum(probability * 2 * error * f) for f in first]
    hessian = [
        np.sum(
            probability
            * 2
            * (first[i] * first[j] + error * (share * dx * (dy, dx)[i] * (dy, dx)[j]).sum(axis=0))
        )
        for i, j in ((0, 0), (0, 1), (1, 1))
    ]
    return np.sum(probability * error**2), np.array(gradient), np.array(hessian)


NESTED_CASES = [
    (5.0, 4.0, 0.3),
    (0.3, 0.2, -0.2),
    (2.0, 1e-9, 0.5),
    (0.7, 3.0, -1.0),
    (0.7, 3.0, 1.0),
    (-3.0, 2.0, 0.1),
    (4.0, 1.01, 0.9),
    (-3.0, -2.5, -0.4),
]


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(
    ("design", "density"),
    [
        (Design(), uniform),
        (Design(feature_density=uniform), uniform),
        (Design(feature_density=tilted), tilted),
    ],
    ids=["uniform", "uniform by tables", "tilted"],
)
@pytest.mark.parametrize(("lam", "mu", "alpha"), NESTED_CASES)
def test_small_contexts_agree_with_the_definition(lam, mu, alpha, n, design, density):
    value, gradient, hessian = nested(lam, mu, alpha, n, density)
    arguments = *task(Head.from_scores(lam, mu), alpha), n, design
    found = unit_gradient(*arguments)
    assert found[0] == pytest.approx(value, rel=NESTED_VALUE, abs=0)
    assert np.abs(found[1:] - gradient).max() < NESTED_GRADIENT * np.abs(gradient).max()
    departure = np.abs(unit_hessian(*arguments) - hessian).max()
    assert departure < NESTED_HESSIAN * np.abs(hessian).max()


def test_one_example_is_predicted_whatever_the_head():
    arguments = *task(Head.from_scores(7.5, 5.0), 0.3), 1, Design()
    assert unit_gradient(*arguments)[1:].tolist() == [0.0, 0.0]
    assert unit_hessian(*arguments).tolist() == [0.0, 0.0, 0.0]


# --- two examples at any scale, against 40-digit differences --------------------------------------

# In units of the largest component.
TWO_GRADIENT = 1e-13  # measured 3e-14
TWO_HESSIAN = (
    2e-13  # measured 5e-14; a rounding times the scale, for its integrands carry x - alpha
)


def differences(lam, mu, alpha):
    step = context.mpf(10) ** -8
    at = {
        (i, j): mean_square_error(lam + i * step, mu + j * step, alpha)
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
    }
    gradient = [(at[1, 0] - at[-1, 0]) / (2 * step), (at[0, 1] - at[0, -1]) / (2 * step)]
    hessian = [
        (at[1, 0] - 2 * at[0, 0] + at[-1, 0]) / step**2,
        (at[1, 1] - at[1, -1] - at[-1, 1] + at[-1, -1]) / (4 * step**2),
        (at[0, 1] - 2 * at[0, 0] + at[0, -1]) / step**2,
    ]
    return np.array(gradient, dtype=float), np.array(hessian, dtype=float)


@pytest.mark.parametrize("mu", [5.0, 60.0, 400.0])
@pytest.mark.parametrize("excess", [-3.0, 1.0])
@pytest.mark.parametrize("alpha", [-1 + 2.0**-9, 0.25, 1 - 2.0**-9])
def test_two_examples_agree_with_differences(mu, excess, alpha):
    head = Head.from_excess(excess, mu)
    gradient, hessian = differences(context.mpf(mu) + context.mpf(excess), context.mpf(mu), alpha)
    arguments = *task(head, alpha), 2, Design()
    worst = np.abs(unit_gradient(*arguments)[1:] - gradient).max()
    assert worst < TWO_GRADIENT * np.abs(gradient).max()
    worst = np.abs(unit_hessian(*arguments) - hessian).max()
    assert worst < TWO_HESSIAN * np.abs(hessian).max()


# --- many examples, against differences of the exact value ----------------------------------------

STEP = 0.01
DIFFERENCE_TOLERANCE = 1e-10  # of the largest component; measured 2e-11, the differences' own error
COEFFICIENTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # error of order STEP^8


def difference(function, lam, mu, i):
    shifts = {k: (k * STEP, 0.0) if i == 0 else (0.0, k * STEP) for k in range(-4, 5)}
    values = {k: function(lam + a, mu + b) for k, (a, b) in shifts.items()}
    return sum(c * (values[k] - values[-k]) for k, c in COEFFICIENTS.items()) / STEP


FLIPS = LabelFlips(lambda gap: np.where(np.abs(gap) <= 0.125, 0.2, 0.01), (-0.125, 0.125))
STEPS = LabelFlips(FLIPS.probability, FLIPS.breaks, (0.01, 0.2, 0.01))


@pytest.mark.parametrize("noise", [None, FLIPS, STEPS], ids=["clean", "by tables", "levels"])
@pytest.mark.parametrize("n", [7, 100, 5000])
@pytest.mark.parametrize(
    ("lam", "mu", "alpha"),
    [(7.5, 5.0, -0.9), (21.0, 20.0, 0.3), (6.0, 12.0, 0.1), (-9.0, -7.0, 0.5)],
)
def test_many_examples_agree_with_differences_of_the_value(lam, mu, alpha, n, noise):
    design = Design(noise=noise)

    def value(lam, mu):
        head = Head.from_scores(lam, mu)
        return unit_moments(*task(head, alpha), np.array([float(n)]), design)[1, 0]

    def gradient(lam, mu):
        return unit_gradient(*task(Head.from_scores(lam, mu), alpha), n, design)[1:]

    found = gradient(lam, mu)
    expected = np.array([difference(value, lam, mu, i) for i in (0, 1)])
    hessian = unit_hessian(*task(Head.from_scores(lam, mu), alpha), n, design)
    slopes = np.array([difference(gradient, lam, mu, i) for i in (0, 1)])
    assert np.abs(found - expected).max() < DIFFERENCE_TOLERANCE * np.abs(found).max()
    worst = np.abs(hessian - [slopes[0, 0], slopes[0, 1], slopes[1, 1]]).max()
    assert worst < DIFFERENCE_TOLERANCE * np.abs(hessian).max()
    assert slopes[1, 0] == pytest.approx(
        hessian[1], abs=DIFFERENCE_TOLERANCE * np.abs(hessian).max()
    )
