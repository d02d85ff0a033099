"""Drawn corpora: their laws, their streams, and what they refuse."""

import numpy as np
import pytest
from scipy import stats

from popdyn.design import Design
from popdyn.sampling import cell_seed, sample_contexts, sample_corpus

# A Kolmogorov-Smirnov test of the right law falls below this once in a million seeds.
NEVER = 1e-6

LAWS = {
    "uniform": (Design(), lambda x: (1 + x) / 2, lambda x: (1 + x) / 2),
    "tilted": (
        Design(feature_density=lambda x: (1 + 0.3 * x) / 2),
        lambda x: (1 + x) / 2 + 0.075 * (x**2 - 1),
        lambda x: (1 + x) / 2,
    ),
    "wave": (
        Design(
            feature_density=lambda x: (1 + 0.3 * np.cos(np.pi * x)) / 2,
            threshold_density=lambda x: 0.75 * (1 - x**2),
        ),
        lambda x: (1 + x) / 2 + 0.15 * np.sin(np.pi * x) / np.pi,
        lambda x: 0.5 + 0.75 * (x - x**3 / 3),
    ),
    "wide": (Design(half_width=3.0), lambda x: (3 + x) / 6, lambda x: (3 + x) / 6),
    "small and tilted": (
        Design(half_width=1e-3, feature_density=lambda x: 500 * (1 + 900 * x)),
        lambda x: (1 + 1e3 * x) / 2 + 0.225 * ((1e3 * x) ** 2 - 1),
        lambda x: (1 + 1e3 * x) / 2,
    ),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", [0, 1])
def test_features_and_thresholds_follow_their_laws(law, seed):
    design, of_features, of_thresholds = LAWS[law]
    corpus = sample_corpus(design, 4000, 5, seed)
    assert stats.kstest(corpus.features.ravel(), of_features).pvalue > NEVER
    assert stats.kstest(corpus.thresholds, of_thresholds).pvalue > NEVER


def test_inverse_transform_is_exact_to_rounding():
    """The same uniform numbers, read through a distribution function known in closed form."""
    uniform = sample_contexts(Design(), [0.0], 1000, 5).features
    waved = sample_contexts(LAWS["wave"][0], [0.0], 1000, 5).features
    worst = np.abs(LAWS["wave"][1](waved) - LAWS["uniform"][1](uniform)).max()
    assert worst < 2e-15  # measured 4e-16


def test_labels_are_positive_up_to_the_threshold():
    corpus = sample_corpus(Design(), 50, 40, 3)
    positive = corpus.features <= corpus.thresholds[:, None]
    assert np.array_equal(corpus.labels, np.where(positive, 1, -1))
    assert 0 < positive.sum() < positive.size


def test_features_are_independent_of_the_thresholds():
    corpus = sample_corpus(Design(), 20000, 1, 4)
    correlation = np.corrcoef(corpus.features[:, 0], corpus.thresholds)[0, 1]
    assert abs(correlation) < 5 / np.sqrt(20000)  # five standard errors


@pytest.mark.parametrize(
    "rng",
    [
        lambda: 7,
        lambda: np.random.SeedSequence(7),
        lambda: np.random.default_rng(7),
        lambda: cell_seed(7, 30, 20, 1),
    ],
    ids=["integer", "seed sequence", "generator", "cell"],
)
def test_the_same_seed_gives_the_same_corpus(rng):
    assert sample_corpus(Design(), 30, 20, rng()) == sample_corpus(Design(), 30, 20, rng())


def test_an_integer_a_seed_sequence_and_a_generator_are_one_stream():
    first, second, third = (
        sample_corpus(Design(), 3, 2, rng)
        for rng in (7, np.random.SeedSequence(7), np.random.default_rng(7))
    )
    assert first == second == third


def test_a_seed_sequence_is_left_as_it_was():
    seed = cell_seed(7, 30, 20, 1)
    assert sample_corpus(Design(), 30, 20, seed) == sample_corpus(Design(), 30, 20, seed)
    assert seed.n_children_spawned == 0


def test_a_generator_goes_on():
    rng = np.random.default_rng(7)
    assert sample_corpus(Design(), 30, 20, rng) != sample_corpus(Design(), 30, 20, rng)


def test_no_seed_is_fresh_entropy():
    assert sample_corpus(Design(), 30, 20) != sample_corpus(Design(), 30, 20)


def test_global_random_state_is_neither_read_nor_changed():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    sample_corpus(Design(), 3, 2, 0)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_thresholds_have_a_stream_of_their_own():
    few, many = (sample_corpus(Design(), 10, n, 7) for n in (3, 300))
    assert np.array_equal(few.thresholds, many.thresholds)
    other = LAWS["tilted"][0]
    assert np.array_equal(sample_corpus(other, 10, 3, 7).thresholds, few.thresholds)


def test_a_grid_cell_depends_on_its_four_numbers_alone():
    cells = [(0, 4, 8, 0), (1, 4, 8, 0), (0, 8, 8, 0), (0, 4, 4, 0), (0, 8, 4, 0), (0, 4, 8, 1)]
    states = {cell: tuple(cell_seed(*cell).generate_state(4)) for cell in cells}
    assert len(set(states.values())) == len(cells)
    assert all(
        tuple(cell_seed(*cell).generate_state(4)) == states[cell] for cell in reversed(cells)
    )


def test_a_grid_cell_is_the_same_for_ever():
    """The stream, spelled out: a changed one makes every stored sweep another experiment."""
    rng = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(2, 3, 0)))
    of_thresholds, of_features = rng.integers(2**32, size=(2, 8), dtype=np.uint32)
    corpus = sample_corpus(Design(), 2, 3, cell_seed(1, 2, 3, 0))
    thresholds = 2 * np.random.default_rng(of_thresholds).random(2) - 1
    features = 2 * np.random.default_rng(of_features).random((2, 3)) - 1
    assert np.array_equal(corpus.thresholds, thresholds)
    assert np.array_equal(corpus.features, np.sort(features))


def test_contexts_keep_the_given_thresholds():
    thresholds = np.array([0.5, -1.0, 0.5])
    contexts = sample_contexts(Design(), thresholds, 6, 1)
    assert np.array_equal(contexts.thresholds, thresholds)
    assert contexts.features.shape == (3, 6)
    assert not np.array_equal(contexts.features[0], contexts.features[2])
    assert (contexts.labels[1] == -1).all()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, np.nan, True, "many", None])
def test_a_count_that_is_no_count_is_refused(wrong):
    with pytest.raises(ValueError, match=r"n_tasks must be a whole number of at least 1, got"):
        sample_corpus(Design(), wrong, 3, 0)
    with pytest.raises(ValueError, match=r"n_examples must be a whole number of at least 1, got"):
        sample_corpus(Design(), 3, wrong, 0)
    with pytest.raises(ValueError, match=r"n_examples must be a whole number of at least 1, got"):
        sample_contexts(Design(), [0.0], wrong, 0)


@pytest.mark.parametrize("thresholds", [0.0, [[0.0]], [np.nan], [1.5], ["a"]])
def test_thresholds_that_are_no_row_of_the_interval_are_refused(thresholds):
    with pytest.raises(ValueError, match="thresholds must"):
        sample_contexts(Design(), thresholds, 3, 0)


def test_contexts_of_no_task_are_refused():
    with pytest.raises(ValueError, match="at least one task"):
        sample_contexts(Design(), [], 3, 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sample_corpus(1.0, 3, 3), r"design must be a popdyn.Design, got 1.0"),
        (lambda: sample_contexts(None, [0.1], 3), r"design must be a popdyn.Design, got None"),
        (lambda: sample_corpus(Design(), 3, 3, "x"), r"rng must be a Generator.*got 'x'"),
        (lambda: sample_corpus(Design(), 3, 3, -1), r"rng must be a Generator.*got -1"),
        (lambda: cell_seed(-1, 2, 3, 4), r"seed must be a whole number of at least 0, got -1"),
        (lambda: cell_seed(1, 2, 3, 4.5), r"replicate must be a whole number.*got 4.5"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()
