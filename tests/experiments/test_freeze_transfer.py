"""Frozen heads on fresh contexts: the numbers of the claims."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from popdyn import (
    Design,
    Head,
    cell_seed,
    context_moments,
    limit_error,
    pretrain,
    sample_corpus,
)
from popdyn.experiments.freeze_transfer import Config, findings, run

CONFIG = Config.quick()
# Of floor times scale from 128 tasks on. Measured 0.0084, at -1/2 and 128 tasks, where the boundary
# leaves its last trace; other seeds have up to 0.012 there.
FLOOR = 0.01
LARGEST_CONTEXT = 3e-4  # of the error of 65536 examples over its floor; measured 2.4e-4
LAW = 0.06  # of the law from 32 examples on; measured 0.0544, 0.058 is the most at any scale
# Of the floor against the stopping scale, at scales of 9 to 21. At -1/2 the smallest scale, 9, has
# exp(-9/2) of the boundary in it. Measured -0.984, -0.985 and -0.921.
POWERS = {0.0: 0.02, 0.5: 0.02, -0.5: 0.1}


@cache
def result():
    return run(CONFIG)


def at(threshold):
    (k,) = np.flatnonzero(result().thresholds == threshold)
    return k


def test_every_corpus_has_one_head_used_at_every_size_and_threshold():
    shown = result()
    n_heads = sum(CONFIG.n_replicates)
    assert shown.root_mean_squares.shape == (n_heads, 3, len(CONFIG.context_sizes))
    assert len({*zip(shown.corpus_sizes, shown.replicates, strict=True)}) == n_heads


def test_a_head_is_that_of_pretraining():
    corpus = sample_corpus(Design(), 128, 128, cell_seed(CONFIG.seed, 128, 128, 3))
    checkpoint = pretrain(corpus, start=Head.from_ratio(1.5, 8), step_size=100.0)
    (i,) = np.flatnonzero((result().corpus_sizes == 128) & (result().replicates == 3))
    assert result().scales[i] == checkpoint.head.scale
    assert result().stopping_scales[i] == checkpoint.stopping_scale
    moments = context_moments(checkpoint.head, -0.5, 512)
    (s,) = np.flatnonzero(result().context_sizes == 512)
    assert result().root_mean_squares[i, at(-0.5), s] == pytest.approx(
        moments.root_mean_square, rel=1e-12, abs=0
    )
    floor = np.abs(limit_error(checkpoint.head, result().thresholds))
    np.testing.assert_array_equal(result().floors[i], floor)


def test_the_floor_is_the_inverse_of_the_scale_from_128_tasks_on():
    large = result().corpus_sizes >= 128
    scaled = result().floors[large] * result().scales[large, None]
    np.testing.assert_allclose(scaled, 1.0, atol=FLOOR)


def test_the_largest_context_comes_down_to_the_floor():
    errors = result().root_mean_squares[..., -1]
    np.testing.assert_allclose(errors, result().floors, rtol=LARGEST_CONTEXT)


@pytest.mark.parametrize("threshold", POWERS)
def test_the_floor_falls_like_the_inverse_of_the_stopping_scale(threshold):
    reached = result().reached
    proxies = np.log(result().stopping_scales[reached])
    floors = np.log(result().floors[reached, at(threshold)])
    assert np.polyfit(proxies, floors, 1)[0] == pytest.approx(-1.0, abs=POWERS[threshold])


def test_errors_of_larger_contexts_are_smaller_down_to_the_floor():
    errors = result().root_mean_squares
    assert (np.diff(errors, axis=-1) < 0).all()
    assert (errors[..., -1] > result().floors * (1 - 1e-12)).all()


def test_errors_follow_the_law_of_a_context():
    large = result().corpus_sizes >= 128
    sizes = result().context_sizes >= 32
    n = result().context_sizes[sizes]
    law = np.sqrt(result().scales[large, None, None] ** -2 + 8.0 / n**2.0)
    np.testing.assert_allclose(result().root_mean_squares[large][..., sizes] / law, 1.0, atol=LAW)


def test_a_head_that_fell_short_is_kept_and_told():
    short = ~result().reached
    assert 0 < short.sum() <= 3 and (result().corpus_sizes[short] == 64).all()
    assert (result().scales[short] < result().stopping_scales[short]).all()
    told = {finding.claim: finding.measured for finding in findings(result())}
    claim = "heads of 64 tasks that fell short of their stopping scale"
    assert told[claim] == f"{short.sum()} of 16"


def test_findings_are_distinct_and_finite():
    said = findings(result())
    assert len({finding.claim for finding in said}) == len(said)
    for finding in said:
        assert isinstance(finding.measured, str) or np.isfinite(finding.measured)


def test_a_cell_keeps_its_numbers_when_the_sweep_shrinks():
    small = run(replace(CONFIG, sizes=(128,), n_replicates=(2,)))
    same = (result().corpus_sizes == 128) & (result().replicates < 2)
    np.testing.assert_array_equal(small.root_mean_squares, result().root_mean_squares[same])
