"""The certificate against its definition, against drawn corpora, and on corpora made to fail."""

import numpy as np
import pytest

from popdyn import (
    Certificate,
    ClosedFormRisk,
    Corpus,
    CorpusRisk,
    Design,
    Head,
    cell_seed,
    certificate,
    default_start,
    gradient_descent,
    gradient_flow,
    sample_corpus,
)

ON_TUBE = Head.from_tube(np.log(2), 8.0)


def drawn(n_tasks, n_examples, replicate=0):
    return sample_corpus(
        Design(), n_tasks, n_examples, cell_seed(0, n_tasks, n_examples, replicate)
    )


@pytest.fixture(scope="module")
def of_256():
    return certificate(drawn(256, 256), scales=[8.0, 12.0, 20.0, 32.0, 50.0, 80.0])


# --- what it is -----------------------------------------------------------------------------------

ROUNDING = 1e-13  # relative; measured 1e-15


def test_gradients_are_those_of_the_risks_along_the_tube(of_256):
    for i, scale in enumerate(of_256.scales):
        head = Head.from_excess(of_256.heads.excess[i], scale)
        along = np.array([1.0 + 1.0 / scale, 1.0])
        for risk, found in (
            (ClosedFormRisk(), of_256.population_gradient[i]),
            (CorpusRisk(drawn(256, 256)), of_256.corpus_gradient[i]),
        ):
            terms = along * risk.gradient(head)
            assert found == pytest.approx(terms.sum(), abs=ROUNDING * np.abs(terms).sum())


FLOW_TOLERANCE = 1e-11  # what a flow is good to; measured 3e-13


def test_heads_are_those_of_the_population_flow(of_256):
    flow = gradient_flow(ClosedFormRisk(), default_start(), 1e8, scale_levels=of_256.scales)
    for i, hit in enumerate(flow.hits):
        assert of_256.heads.excess[i] == pytest.approx(hit.head.excess, abs=FLOW_TOLERANCE)
    assert of_256.scales == pytest.approx(
        [8.0, 12.0, 20.0, 32.0, 50.0, 80.0], rel=FLOW_TOLERANCE, abs=0
    )


def test_the_certified_scale_is_the_last_of_the_levels_that_hold(of_256):
    within = of_256.relative_error <= 0.5
    first_failure = int(np.argmin(within))
    assert 0 < first_failure < within.size
    assert of_256.certified_scale == of_256.scales[first_failure - 1]
    assert of_256.failing_scale == of_256.scales[first_failure]
    assert of_256.holds.sum() == first_failure


def test_a_certificate_may_fail_at_once_or_nowhere():
    corpus = drawn(256, 256)
    strict = certificate(corpus, scales=[8.0, 10.0], fraction=0.01)
    assert (strict.certified_scale, strict.failing_scale) == (0.0, strict.scales[0])
    loose = certificate(corpus, scales=[8.0, 10.0], fraction=0.9)
    assert (loose.certified_scale, loose.failing_scale) == (loose.scales[-1], np.inf)
    assert loose.responsible_tasks.size == 0


def test_default_levels_run_to_the_size_of_the_corpus():
    found = certificate(drawn(4, 32))
    assert found.scales == pytest.approx(8.0 * 2.0 ** (np.arange(5) / 4), rel=FLOW_TOLERANCE, abs=0)


def test_deviations_do_not_depend_on_the_unit_of_length():
    unit = drawn(40, 32)
    wide = Corpus.from_arrays(2 * unit.features, unit.labels, 2 * unit.thresholds, half_width=2.0)
    one = certificate(unit, start=Head.from_excess(2.0, 8.0), scales=[8.0])
    other = certificate(wide, start=Head.from_excess(2.0, 4.0, 2.0), scales=[4.0])
    for name in ("deviation", "expected_deviation", "expected_spread"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=ROUNDING, abs=0)


# --- along a trajectory ---------------------------------------------------------------------------


def test_a_corpus_run_is_certified_at_its_own_points():
    corpus = drawn(128, 128)
    run = gradient_descent(CorpusRisk(corpus), default_start(), 100.0, 1000, until_scale=13.0)
    found = certificate(corpus, run, scales=[8.0, 10.0, 12.0, 100.0])
    assert found.scales.shape == (3,)  # it does not come to 100
    for i, level in enumerate([8.0, 10.0, 12.0]):
        at = int(np.argmax(run.scale >= level))
        assert (found.scales[i], found.heads.excess[i]) == (run.scale[at], run.excess[at])


def test_one_point_stands_for_all_levels_that_it_passes():
    run = gradient_descent(ClosedFormRisk(), default_start(), 100.0, 10, record=[0, 10])
    found = certificate(drawn(8, 16), run, scales=[1.0, 2.0, 8.0, 8.1])
    assert found.scales.tolist() == run.scale[:2].tolist()


# --- the prediction, against drawn corpora --------------------------------------------------------

STANDARD_ERRORS = 4.0
N_CORPORA = 150


def drawn_deviations(n_tasks, n_examples):
    """Relative deviations at scale 8 on the tube, by the risks alone."""
    along = np.array([1.0 + 1.0 / 8.0, 1.0])
    population = along @ ClosedFormRisk().gradient(ON_TUBE)
    corpora = (drawn(n_tasks, n_examples, i) for i in range(N_CORPORA))
    gradients = np.array([CorpusRisk(corpus).gradient(ON_TUBE) @ along for corpus in corpora])
    return gradients / population - 1.0


# Standard errors of the means: 0.040, 0.021, 0.029 and 0.013; of the squared spreads 13 to 25 %.
@pytest.mark.parametrize(("n_tasks", "n_examples"), [(64, 16), (256, 16), (64, 64), (256, 64)])
def test_mean_and_spread_over_corpora_are_as_predicted(n_tasks, n_examples):
    sample = drawn_deviations(n_tasks, n_examples)
    predicted = certificate(drawn(n_tasks, n_examples), start=ON_TUBE, scales=[8.0])
    off = sample - predicted.expected_deviation[0]
    mean_error = sample.std(ddof=1) / np.sqrt(N_CORPORA)
    assert mean_error < 0.06
    assert abs(off.mean()) < STANDARD_ERRORS * mean_error
    square_error = (off**2).std(ddof=1) / np.sqrt(N_CORPORA)
    assert square_error < 0.3 * predicted.expected_spread[0] ** 2
    assert abs((off**2).mean() - predicted.expected_spread[0] ** 2) < (
        STANDARD_ERRORS * square_error
    )


def test_the_predicted_spread_falls_like_the_root_of_the_number_of_tasks():
    few, many = (certificate(drawn(m, 16), start=ON_TUBE, scales=[8.0]) for m in (50, 800))
    assert few.expected_spread / many.expected_spread == pytest.approx(4.0, rel=ROUNDING, abs=0)
    assert few.expected_deviation == many.expected_deviation


# Means over corpora of 4096 tasks, as sampled beforehand with code of another origin, and the exact
# ones. The spread of one such corpus is 0.057 and 0.037.
@pytest.mark.parametrize(
    ("n", "sampled", "exact"), [(16, -0.798, -0.80107), (64, -0.285, -0.29006)]
)
def test_a_large_corpus_deviates_as_known(n, sampled, exact):
    found = certificate(drawn(4096, n), start=ON_TUBE, scales=[8.0])
    assert found.expected_deviation[0] == pytest.approx(exact, abs=1e-5)
    spread = found.expected_spread[0]
    assert abs(found.deviation[0] - exact) < STANDARD_ERRORS * spread
    assert abs(sampled - exact) < STANDARD_ERRORS * spread


def test_the_expected_scale_grows_like_the_corpus():
    scales = 8.0 * 2.0 ** (np.arange(0, 20) / 4)
    small = certificate(drawn(256, 256), scales=scales[:12]).expected_scale
    large = certificate(drawn(1024, 1024), scales=scales[8:]).expected_scale
    assert 0.1 * 256 < small < 0.3 * 256
    assert 3.0 < large / small < 5.5


def test_the_certified_scale_of_a_run_grows_with_the_corpus():
    # medians of 24 corpora: 0.15 n at 64, 0.12 n at 128
    medians = []
    for n in (64, 192):
        found = []
        for replicate in range(5):
            corpus = drawn(n, n, replicate)
            run = gradient_descent(
                CorpusRisk(corpus), default_start(), 200.0, 4000, until_scale=n / 5.0
            )
            scales = np.geomspace(8.0, n / 5.0, 5)
            found.append(certificate(corpus, run, scales=scales).certified_scale)
        medians.append(np.median(found))
    assert 0.05 < medians[0] / 64 < 0.25
    assert 0.05 < medians[1] / 192 < 0.25
    assert medians[1] > 1.5 * medians[0]


# --- the tasks responsible ------------------------------------------------------------------------


def with_planted_tasks(corpus, tasks):
    """The corpus, with tasks whose thresholds no feature is below."""
    features, thresholds = corpus.features.copy(), corpus.thresholds.copy()
    labels = corpus.labels.copy()
    for task in tasks:
        features[task] = np.maximum(features[task], -0.999)
        thresholds[task] = -1.0
        labels[task] = -1
    return Corpus.from_arrays(features, labels, thresholds)


def test_planted_tasks_without_positives_are_found():
    sound = certificate(drawn(128, 1024), scales=[8.0, 16.0, 32.0])
    assert sound.failing_scale == np.inf
    corpus = with_planted_tasks(drawn(128, 1024), [17, 90])
    found = certificate(corpus, scales=[8.0, 16.0, 32.0])
    assert found.failing_scale < np.inf
    assert set(found.responsible_tasks) <= {17, 90}
    lacking = np.flatnonzero((corpus.labels > 0).sum(axis=1) == 0)
    assert found.tasks_without_positives.tolist() == lacking.tolist()
    assert {17, 90} <= set(lacking)
    mirrored = Corpus.from_arrays(-corpus.features, -corpus.labels, -corpus.thresholds)
    assert certificate(mirrored, scales=[8.0]).tasks_without_negatives.tolist() == lacking.tolist()


def test_the_responsible_tasks_are_the_fewest_that_make_the_difference():
    corpus = drawn(64, 64)
    found = certificate(corpus, scales=[8.0, 16.0], fraction=0.1)
    level = int(np.argmin(found.holds))
    head = Head.from_excess(found.heads.excess[level], found.scales[level])
    along = np.array([1.0 + 1.0 / found.scales[level], 1.0])
    errors = np.empty(64)
    for task in range(64):
        alone = Corpus.from_arrays(
            corpus.features[[task]], corpus.labels[[task]], corpus.thresholds[[task]]
        )
        errors[task] = along @ CorpusRisk(alone).gradient(head) / 64
    errors -= found.population_gradient[level] / 64
    allowed = 0.1 * abs(found.population_gradient[level])
    assert abs(errors.sum()) > allowed
    order = np.argsort(-errors / errors.sum())
    count = found.responsible_tasks.size
    assert found.responsible_tasks.tolist() == order[:count].tolist()
    assert found.responsible_shares == pytest.approx(
        errors[order[:count]] / errors.sum(), rel=ROUNDING, abs=0
    )
    assert abs(errors[order[count:]].sum()) <= allowed < abs(errors[order[count - 1 :]].sum())


# --- shown and refused ----------------------------------------------------------------------------


def test_it_prints_a_table_and_is_named_in_one_line(of_256):
    table = str(of_256)
    rows = table.splitlines()[3 : 3 + of_256.scales.size]
    assert [row.endswith("fails") for row in rows] == (~of_256.holds).tolist()
    assert f"tasks without positive examples: {of_256.tasks_without_positives.size}" in table
    assert "\n" not in repr(of_256)
    assert isinstance(of_256, Certificate)


SMALL = drawn(8, 16)
RUN = gradient_descent(ClosedFormRisk(), default_start(), 100.0, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"corpus": [1, 2]}, "corpus must be a Corpus, got list"),
        ({"fraction": 1.0}, "fraction must be a number between 0 and 1, got 1.0"),
        ({"fraction": "half"}, "fraction must be a number between 0 and 1, got 'half'"),
        ({"scales": [8.0, 8.0]}, "scales must be increasing, got .*; sort them"),
        ({"scales": [[8.0]]}, "scales must be a list of positive finite numbers"),
        ({"scales": [-8.0]}, "scales must be a list of positive finite numbers, got .-8.0"),
        ({"scales": []}, "scales must be a list of positive finite numbers, got .."),
        ({"start": 8.0}, "start must be one Head of positive scale, got 8.0"),
        ({"start": Head.from_scores(1.0, -1.0)}, "start must be one Head of positive scale"),
        ({"start": Head.from_excess(1, 8, 2.0)}, "start and corpus must have one half width"),
        ({"start": Head.from_scores(-20.0, 0.2)}, "scales must be ones that the population flow"),
        ({"start": Head.from_scores(1.0, 0.5), "scales": [0.5]}, "at least 1 .* larger scale"),
        ({"path": RUN, "start": default_start()}, "give a path or a start, not both"),
        ({"path": default_start()}, "path must be a Trajectory, got Head"),
        ({"path": RUN, "scales": [1e3]}, "scales must begin with one that the path comes to"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message):
    arguments = {"corpus": SMALL, **arguments}
    with pytest.raises(ValueError, match=message) as raised:
        certificate(arguments.pop("corpus"), **arguments)
    assert "\n" not in str(raised.value)
