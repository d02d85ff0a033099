"""What is wrong with an argument is said in one line: what was wanted, got, and to be done."""

import numpy as np
import pytest

import popdyn
from popdyn import ClosedFormRisk, Design, Head

HEAD = Head.from_ratio(1.5, 5.0)
RISK = ClosedFormRisk()
DESIGN = Design()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: popdyn.gradient_flow(RISK, HEAD, "10"), "t_end must be one time .* got '10'"),
        (lambda: popdyn.hitting_time(RISK, HEAD, "10"), "must be one finite number, got '10'"),
        (lambda: popdyn.separatrix("a"), "scale must be a real number"),
        (lambda: popdyn.limit_error(HEAD, "a"), "threshold must be a real number"),
        (lambda: popdyn.limit_error(HEAD, 0.0, 8), "design must be a popdyn.Design, got 8"),
        (lambda: popdyn.midpoint_moments("a", 8), "threshold must be a real number"),
        (lambda: popdyn.pair_moments([1.0], 0.0, 8), "head must be a popdyn.Head"),
        (lambda: popdyn.context_moments_sampled(HEAD, 2.0, 8, 10, 0), "threshold must lie in"),
        (lambda: popdyn.context_moments_sampled(HEAD, 0.0, 8, 10, "a"), "rng must be a Generator"),
        (lambda: popdyn.context_moments_sampled(HEAD, 0.0, 8, 10, 0, 1), "design must be"),
        (lambda: popdyn.predictions([1.0], 3), "head must be a popdyn.Head"),
        (lambda: popdyn.predictions(HEAD, 3), "corpus must be a Corpus, got int"),
        (lambda: popdyn.pair_predictions((1, 2), 3), "head must be a popdyn.Head"),
        (lambda: popdyn.midpoints(3), "corpus must be a Corpus, got int"),
        (lambda: popdyn.bayes_estimates(3), "corpus must be a Corpus, got int"),
        (lambda: popdyn.hitting_time(RISK, HEAD, 10**400), "scale level must be one finite number"),
        (lambda: popdyn.massart("0.1"), "probability must be a number from 0 to 1, got '0.1'"),
        (lambda: popdyn.stopping_scale("a", 8), "n_tasks must be a real number"),
        (lambda: popdyn.fit_two_terms([1]), "curves must be a list of .* got 1 in it"),
        (lambda: popdyn.equal_weights("a"), "thresholds must be a row .* got 'a'"),
        (
            lambda: popdyn.InfiniteContextRisk(DESIGN, popdyn.gauss_legendre),
            "rule must be a quadrature rule, got <function gauss_legendre",
        ),
        (
            lambda: popdyn.pretrain(popdyn.sample_corpus(DESIGN, 8, 8, 0), seed="a"),
            "seed must be a whole number",
        ),
    ],
)
def test_a_wrong_argument_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_a_level_of_one_head_is_given_as_that_of_many():
    assert popdyn.hitting_time(RISK, HEAD, 10.0).time == popdyn.hitting_times(RISK, HEAD, 10.0)


def test_cells_and_work_are_not_taken_for_each_other():
    with pytest.raises(TypeError, match="wants cells and then the work to do"):
        popdyn.sweep(len, [1, 2])


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("trajectory", "did you mean Trajectory?"),
        ("hitting_tmes", "did you mean hitting_times or hitting_time?"),
        ("gradientflow", "did you mean gradient_flow?"),
        ("flow", "did you mean gradient_flow?"),
        ("knobs", "it is a module: import popdyn.knobs"),
    ],
)
def test_a_name_that_is_none_comes_with_what_may_be_meant(name, advice):
    with pytest.raises(AttributeError) as refusal:
        popdyn.__getattr__(name)
    assert str(refusal.value) == f"module 'popdyn' has no attribute {name!r}; {advice}"


@pytest.mark.parametrize("name", ["zzzz", "__wrapped__"])
def test_a_name_like_no_other_is_refused_plainly(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
        popdyn.__getattr__(name)


@pytest.mark.parametrize("save", [popdyn.Corpus.save, popdyn.Checkpoint.save])
@pytest.mark.parametrize("place", ["missing/file.npz", "."])
def test_what_cannot_be_written_is_named_as_it_was_asked_for(save, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = popdyn.sample_corpus(DESIGN, 8, 8, 0)
    result = corpus if save is popdyn.Corpus.save else popdyn.pretrain(corpus)
    with pytest.raises(OSError, match=r"No such file|Is a directory") as refusal:
        save(result, place)
    assert refusal.value.filename == place
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "named", "got"),
    [
        ((1.5, 5.0), {}, "Head(1.5, 5.0)"),
        ((), {"ratio": 1.5, "scale": 5.0}, "Head(ratio=1.5, scale=5.0)"),
    ],
)
def test_a_head_called_by_its_class_names_the_makers(fields, named, got):
    with pytest.raises(TypeError) as refusal:
        Head(*fields, **named)
    assert "Head.from_ratio(ratio, scale)" in str(refusal.value)
    assert str(refusal.value).endswith(f"got {got}")


@pytest.mark.parametrize("maker", [Head.from_ratio, Head.from_scores, Head.from_tube])
def test_an_array_of_heads_is_indexed_and_looped_over_as_an_array_is(maker):
    given = np.array([[1.5, 2.0, 0.3], [0.7, 1e-3, 8.0]])
    heads = maker(given, 5.0, 0.5)
    assert [list(row) for row in heads] == [[maker(k, 5.0, 0.5) for k in row] for row in given]
    assert heads[1, ::2] == maker(given[1, ::2], 5.0, 0.5)
    assert heads[0, 1].given == maker(2.0, 5.0, 0.5).given


def test_one_head_has_no_parts():
    with pytest.raises(TypeError, match="one Head has no parts"):
        list(HEAD)
