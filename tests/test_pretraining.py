"""Pretraining on one corpus: the rule made beforehand, what it leads to, and the file of it."""

import dataclasses
import pickle
from functools import cache

import numpy as np
import pytest

from popdyn import (
    Checkpoint,
    ClosedFormRisk,
    Corpus,
    CorpusRisk,
    Design,
    Head,
    cell_seed,
    default_start,
    gradient_descent,
    pretrain,
    sample_corpus,
    stopping_scale,
)
from popdyn.asymptotics import tube_limit

SEED = 1
MANY_SHORT = 15  # of 100 corpora with 64 tasks; measured 6
# Population descent needs 520 steps to the scale for 256 tasks, the flow 520.7 times the step; the
# budget is rounded up.
DISCRETE = 0.004
JUMPED = 1e-11  # what a descent in jumps promises


def corpus_of(size: int, replicate: int, half_width: float = 1.0) -> Corpus:
    cell = cell_seed(SEED, size, size, replicate)
    return sample_corpus(Design(half_width), size, size, cell)


@cache
def checkpoint_of(size: int, replicate: int) -> Checkpoint:
    return pretrain(corpus_of(size, replicate), seed=SEED)


@pytest.mark.parametrize("size", [64, 128, 1024])
def test_the_stopping_scale_is_the_proxy_of_the_smaller_number(size):
    wanted = 2.5 * size / np.log(size) ** 2
    assert stopping_scale(size, 10**6) == stopping_scale(10**6, size)
    assert stopping_scale(size, size, half_width=2.0) == pytest.approx(
        wanted / 2.0, rel=1e-15, abs=0
    )


def test_the_stopping_scale_grows_with_the_corpus_from_one_task_on():
    assert (np.diff(stopping_scale(np.arange(1, 300), 10**6)) > 0).all()


def test_the_default_start_is_that_of_the_experiments():
    start = default_start()
    assert (start.ratio, start.scale) == (1.5, 8.0)


@pytest.mark.parametrize("half_width", [0.1, 0.5, 3.0])
def test_the_default_start_is_as_far_above_the_tube_at_every_half_width(half_width):
    start, unit = default_start(half_width), default_start()
    assert start.scale * half_width == pytest.approx(8.0, rel=1e-15, abs=0)
    above = start.tube - tube_limit(half_width)
    assert above == pytest.approx(unit.tube - tube_limit(), abs=1e-14)


def test_the_step_budget_is_three_times_the_steps_of_the_population():
    checkpoint = checkpoint_of(256, 0)
    start, until = checkpoint.start, checkpoint.stopping_scale
    population = gradient_descent(ClosedFormRisk(), start, 100.0, 10**5, until_scale=until)
    assert checkpoint.step_size == pytest.approx(100.0, rel=1e-15, abs=0)
    assert checkpoint.step_budget == pytest.approx(3 * population.n_steps, rel=DISCRETE, abs=0)


@pytest.mark.parametrize("size", [64, 128, 256])
def test_the_rule_knows_nothing_but_the_size_of_the_corpus(size):
    rules = {
        (k.start, k.step_size, k.stopping_scale, k.step_budget)
        for k in (checkpoint_of(size, replicate) for replicate in (0, 1, 2))
    }
    assert len(rules) == 1


@pytest.mark.parametrize("size", [128, 256])
@pytest.mark.parametrize("replicate", [0, 1, 2])
def test_corpora_of_128_and_256_tasks_reach_their_scale(size, replicate):
    checkpoint = checkpoint_of(size, replicate)
    assert checkpoint.reached
    assert checkpoint.head.scale >= checkpoint.stopping_scale
    assert 0 < checkpoint.n_steps < checkpoint.step_budget
    assert "reached" in checkpoint.message


def test_the_head_is_that_of_plain_descent_on_the_corpus():
    corpus, checkpoint = corpus_of(64, 0), checkpoint_of(64, 0)
    risk, head = CorpusRisk(corpus), default_start()
    for _ in range(checkpoint.n_steps):
        step = 100.0 * risk.gradient(head)
        head = Head.from_scores(head.label_score - step[0], head.scale - step[1])
    # rounding of a few steps
    assert checkpoint.head.scale == pytest.approx(head.scale, rel=1e-13, abs=0)
    assert checkpoint.head.label_score == pytest.approx(head.label_score, rel=1e-13, abs=0)


@pytest.mark.parametrize("replicate", [0, 1])
def test_a_long_training_jumps_to_where_plain_steps_lead(replicate):
    corpus = corpus_of(128, replicate)
    checkpoint = pretrain(corpus, step_size=2.0)
    plain = gradient_descent(
        CorpusRisk(corpus),
        checkpoint.start,
        2.0,
        checkpoint.step_budget,
        until_scale=checkpoint.stopping_scale,
        record=[0],
    )
    assert checkpoint.n_steps == plain.n_steps > 3000
    # Measured: 8e-16 and 5e-15.
    assert checkpoint.head.scale == pytest.approx(plain.stop_head.scale, rel=JUMPED, abs=0)
    assert checkpoint.head.excess == pytest.approx(plain.stop_head.excess, abs=JUMPED)


def test_a_long_training_calls_back_on_the_way():
    seen = []
    checkpoint = pretrain(
        corpus_of(128, 0), step_size=0.1, callback=lambda t, head: seen.append(float(head.scale))
    )
    assert len(seen) > 1
    assert seen == sorted(seen) and seen[-1] == checkpoint.head.scale


def test_a_few_corpora_of_64_tasks_fall_short_and_have_tasks_without_positives():
    corpora = [corpus_of(64, replicate) for replicate in range(100)]
    checkpoints = [pretrain(corpus) for corpus in corpora]
    short = [i for i, checkpoint in enumerate(checkpoints) if not checkpoint.reached]
    assert 0 < len(short) < MANY_SHORT
    for i in short:
        assert checkpoints[i].n_steps == checkpoints[i].step_budget
        assert checkpoints[i].head.scale < checkpoints[i].stopping_scale
        assert (corpora[i].labels < 0).all(axis=1).any()


def test_the_message_counts_the_tasks_without_a_positive_example():
    corpus = corpus_of(64, 0)
    labels = corpus.labels.copy()
    labels[:10] = -1
    flooded = Corpus.from_arrays(corpus.features, labels, corpus.thresholds)
    wanted = int((labels.max(axis=1) < 0).sum())
    checkpoint = pretrain(flooded)
    assert not checkpoint.reached
    assert f"{wanted} of 64 tasks have no positive example" in checkpoint.message


@pytest.mark.parametrize("size", [1, 2, 16, 47])
def test_a_corpus_too_small_for_the_start_is_not_trained(size):
    checkpoint = pretrain(corpus_of(size, 0))
    assert checkpoint.stopping_scale <= checkpoint.start.scale
    assert checkpoint.head == checkpoint.start
    assert checkpoint.message.startswith("nothing to train")
    assert (checkpoint.reached, checkpoint.n_steps, checkpoint.step_budget) == (True, 0, 0)


def test_another_half_width_is_trained_in_its_own_units():
    checkpoint = pretrain(corpus_of(128, 0, half_width=0.5))
    assert checkpoint.reached
    assert checkpoint.half_width == checkpoint.head.half_width == 0.5
    assert checkpoint.stopping_scale == pytest.approx(
        2 * stopping_scale(128, 128), rel=1e-15, abs=0
    )


def test_start_step_and_scale_may_be_given():
    start = Head.from_ratio(1.3, 6.0)
    checkpoint = pretrain(corpus_of(128, 0), start=start, step_size=60.0, until_scale=9.0)
    assert (checkpoint.start, checkpoint.step_size, checkpoint.stopping_scale) == (start, 60.0, 9.0)
    assert checkpoint.reached


def test_a_callback_ends_the_training():
    checkpoint = pretrain(corpus_of(128, 0), callback=lambda t, head: True)
    assert not checkpoint.reached
    assert "callback" in checkpoint.message


def test_training_twice_gives_the_same_checkpoint():
    assert pretrain(corpus_of(64, 1), seed=SEED) == checkpoint_of(64, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 8.0}, "start must be one Head of positive scale, got 8.0"),
        ({"start": Head.from_ratio(1.5, [8.0, 9.0])}, "start must be one Head of positive scale"),
        ({"start": Head.from_scores(-12.0, -8.0)}, "start must be one Head of positive scale"),
        ({"start": Head.from_ratio(3.0, 4.0, 2.0)}, "one half width, got 2.0 and 1.0"),
        ({"step_size": 0.0}, "step_size must be one positive finite number, got 0.0"),
        ({"step_size": "big"}, "step_size must be one positive finite number, got 'big'"),
        ({"start": Head.from_scores(1e-9, 1e-9)}, "sensible number of steps, .* a larger one"),
        ({"start": Head.from_scores(-50.0, 1.0)}, "until_scale must be one that the population"),
        ({"until_scale": np.inf}, "until_scale must be one positive finite number, got inf"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(options, message):
    with pytest.raises(ValueError, match=message) as refusal:
        pretrain(corpus_of(64, 0), **options)
    assert "\n" not in str(refusal.value)


def test_something_else_than_a_corpus_is_refused():
    with pytest.raises(ValueError, match="must be a Corpus"):
        pretrain([[0.5]])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 5), "n_tasks must be positive and finite, got 0"),
        ((5, 0), "n_examples must be positive and finite, got 0"),
        ((-1, 3), "n_tasks must be positive and finite, got -1"),
        ((0.5, 3), "n_tasks and n_examples must be at least 1, got 0.5 and 3"),
    ],
)
def test_a_corpus_has_at_least_one_task_and_example(numbers, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        stopping_scale(*numbers)


# the file


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"seed": None},
        {"seed": 2**200},
        {"reached": False, "message": "α ≠ β\n"},
        {"head": Head.from_ratio(1.3, 7.1), "start": Head.from_scores(-0.0, 1e-300)},
        {"head": Head.from_excess(1e-9, 1e9, 0.5), "start": Head.from_tube(0.1, 2.0, 0.5)},
    ],
    ids=["as it came", "no seed", "a long seed", "words", "by ratio", "a half width"],
)
def test_a_loaded_checkpoint_is_the_saved_one(tmp_path, changed):
    checkpoint = dataclasses.replace(checkpoint_of(64, 0), **changed)
    checkpoint.save(tmp_path / "checkpoint.npz")
    loaded = Checkpoint.load(tmp_path / "checkpoint.npz")
    assert loaded == checkpoint
    assert loaded.head.given == checkpoint.head.given
    assert loaded.half_width == checkpoint.half_width
    assert hash(loaded) == hash(checkpoint)


def test_a_file_holds_no_pickle_and_no_other_is_left_beside_it(tmp_path):
    checkpoint_of(64, 0).save(str(tmp_path / "checkpoint.npz"))
    checkpoint_of(64, 0).save(tmp_path / "checkpoint.npz")
    with np.load(tmp_path / "checkpoint.npz", allow_pickle=False) as archive:
        assert {archive[name].dtype.kind for name in archive} == {"b", "f", "i", "U"}
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.npz"]


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.npz"
    checkpoint_of(64, 0).save(path)

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        checkpoint_of(64, 1).save(path)
    assert Checkpoint.load(path) == checkpoint_of(64, 0)


def _truncated(path):
    checkpoint_of(64, 0).save(path)
    path.write_bytes(path.read_bytes()[:-300])


def _without_a_field(path):
    checkpoint_of(64, 0).save(path)
    with np.load(path) as archive:
        np.savez(path, **{name: archive[name] for name in archive if name != "n_steps"})


@pytest.mark.parametrize(
    "write",
    [
        _truncated,
        _without_a_field,
        lambda path: corpus_of(8, 0).save(path),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("scale,tube"),
        lambda path: np.savez(path, format=np.array([None], dtype=object)),
    ],
    ids=["truncated", "a field less", "a corpus", "empty", "text", "pickle"],
)
def test_a_damaged_or_foreign_file_is_refused_in_one_line(tmp_path, write):
    write(tmp_path / "checkpoint.npz")
    with pytest.raises(ValueError, match="is not a whole 'popdyn checkpoint 1' file") as refusal:
        Checkpoint.load(tmp_path / "checkpoint.npz")
    assert "\n" not in str(refusal.value)
    assert "Checkpoint.save" in str(refusal.value)


def test_a_checkpoint_is_frozen_and_survives_pickling():
    checkpoint = checkpoint_of(64, 0)
    with pytest.raises(AttributeError):
        checkpoint.n_steps = 0
    assert pickle.loads(pickle.dumps(checkpoint)) == checkpoint


def test_a_checkpoint_shows_itself_in_one_short_line():
    shown = repr(checkpoint_of(64, 0))
    assert len(shown) < 120
    assert "64 tasks with 64 examples" in shown
