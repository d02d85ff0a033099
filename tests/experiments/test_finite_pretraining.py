"""Pretraining on corpora and frozen transfer: the numbers of the claims."""

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

from popdyn import (
    ClosedFormRisk,
    CorpusRisk,
    Design,
    Head,
    cell_seed,
    context_moments,
    gradient_descent,
    limit_error,
    pretrain,
    sample_corpus,
)
from popdyn.experiments.finite_pretraining import Config, certified_scales, findings, run

CONFIG = Config.quick()
# From (1.3, 6) with steps of 60, near the tube.
NEAR = replace(
    CONFIG, sizes=(128, 256, 512), n_replicates=(4, 2, 1), ratio=1.3, scale=6.0, step_size=60.0
)
# Radius over the population's, of corpora that came to their scale. A slow corpus comes to its
# scale in up to 3 times the population's steps, with 3^(-1/4) = 0.76 of its radius then.
# Measured: 0.909, 0.806, 0.863 at 64, 128, 256 and from (1.3, 6) 0.794, 0.861, 0.959 at 128, 256,
# 512; at most 1.010.
SLOWEST, FASTEST = 0.76, 1.02
LARGE = 0.93  # from 512 tasks on
# Radius times the largest interior error, at the end: measured 1.458 to 1.63.
TUBE = (1.44, 1.70)
# Of the fit: 0.3966 and 1.285 measured, by another seed 0.3938 and 1.287. Without the corpora of 64
# tasks contexts count for more, in the law of a context as well, which is lower by 8 to 15 %: it is
# up to 6 % too low where both terms count.
A, B = (0.39, 0.01), (1.2, 1.4)
OVER_LAW = (1.05, 1.20)
RESIDUAL = (0.02, 0.04)  # of the corpora that reached their scale; measured 0.0235


@cache
def result():
    return run(CONFIG)


@cache
def near_the_tube():
    return run(NEAR)


def corpus_of(size, replicate):
    return sample_corpus(Design(), size, size, cell_seed(CONFIG.seed, size, size, replicate))


def index_of(shown, size, replicate):
    (i,) = np.flatnonzero((shown.corpus_sizes == size) & (shown.replicates == replicate))
    return i


@pytest.mark.parametrize(("size", "replicate"), [(64, 0), (128, 5), (256, 1)])
def test_a_path_ends_at_the_head_of_pretraining(size, replicate):
    checkpoint = pretrain(corpus_of(size, replicate), start=Head.from_ratio(1.5, 8), step_size=100)
    i = index_of(result(), size, replicate)
    assert result().stop_scales[i] == checkpoint.head.scale
    assert result().stopping_scales[i] == checkpoint.stopping_scale
    assert np.nanmax(result().steps[i]) == checkpoint.n_steps
    assert result().reached[i] == checkpoint.reached
    moments = context_moments(checkpoint.head, 0.0, CONFIG.context_sizes)
    np.testing.assert_allclose(result().root_mean_squares[i], moments.root_mean_square, rtol=1e-12)


def test_a_corpus_that_falls_short_does_so_as_in_pretraining():
    (i,) = np.flatnonzero(~result().reached)
    corpus = corpus_of(result().corpus_sizes[i], result().replicates[i])
    checkpoint = pretrain(corpus, start=Head.from_ratio(1.5, 8), step_size=100)
    assert not checkpoint.reached
    assert np.nanmax(result().steps[i]) == result().step_budgets[i] == checkpoint.step_budget
    assert result().stop_scales[i] == checkpoint.head.scale < result().stopping_scales[i]


def test_quantities_of_a_path_are_those_of_its_heads():
    i, steps = index_of(result(), 128, 2), [0, 1, 7]
    corpus, start = CorpusRisk(corpus_of(128, 2)), Head.from_ratio(1.5, 8)
    population = ClosedFormRisk()
    on_corpus = gradient_descent(corpus, start, 100, 7, record=steps)
    on_population = gradient_descent(population, start, 100, 7, record=steps)
    for j, step in enumerate(steps):
        (k,) = np.flatnonzero(result().steps[i] == step)
        head, other = on_corpus.head(j), on_population.head(j)
        radius = np.hypot(head.label_score, head.scale)
        ratio = radius / np.hypot(other.label_score, other.scale)
        assert result().radius_ratios[i, k] == pytest.approx(ratio, rel=1e-13, abs=0)
        error = np.abs(limit_error(head, np.linspace(-0.5, 0.5, 1001))).max()
        assert result().scaled_errors[i, k] == pytest.approx(radius * error, rel=1e-12, abs=0)
        along = np.array([1 + 1 / head.scale, 1.0])
        deviation = along @ corpus.gradient(head) / (along @ population.gradient(head)) - 1
        assert result().deviations[i, k] == pytest.approx(deviation, rel=1e-9, abs=0)


@pytest.mark.parametrize("of", [result, near_the_tube])
def test_corpora_that_reach_their_scale_keep_to_the_population_in_radius(of):
    ratios = of().radius_ratios[of().reached]
    assert SLOWEST < np.nanmin(ratios) and np.nanmax(ratios) < FASTEST


def test_large_corpora_keep_closer_to_it():
    shown = near_the_tube()
    ratios = shown.radius_ratios[shown.corpus_sizes >= 512]
    assert LARGE < np.nanmin(ratios) and np.nanmax(ratios) < FASTEST


@pytest.mark.parametrize("of", [result, near_the_tube])
def test_the_scaled_error_ends_between_constants(of):
    ends = np.array([row[np.isfinite(row)][-1] for row in of().scaled_errors[of().reached]])
    low, high = TUBE
    assert low < ends.min() and ends.max() < high


def test_the_scaled_error_falls_towards_the_root_of_two():
    falls = np.diff(result().scaled_errors[result().reached], axis=1)
    assert (falls[np.isfinite(falls)] < 0).all()
    assert np.nanmin(result().scaled_errors) > np.sqrt(2.0)
    last = [
        np.median([row[np.isfinite(row)][-1] for row in result().scaled_errors[of_size]])
        for of_size in (result().corpus_sizes == size for size in CONFIG.sizes)
    ]
    assert (np.diff(last) < 0).all()


@pytest.mark.parametrize("of", [result, near_the_tube])
def test_two_terms_describe_the_errors(of):
    assert of().A == pytest.approx(A[0], abs=A[1])
    low, high = OVER_LAW
    assert low < of().B / of().law_B < high
    fitted = of().context_sizes >= 32
    off = (of().fitted_errors / of().root_mean_squares - 1)[of().reached][:, fitted]
    low, high = RESIDUAL
    assert low < np.sqrt((off**2).mean()) < high


def test_the_share_of_a_fresh_context_is_the_expected_one():
    low, high = B
    assert low < result().B < high


def test_corpora_that_fell_short_are_kept_and_counted():
    short = ~result().reached
    assert short.sum() == 1 and (result().corpus_sizes[short] == 64).all()
    assert (result().one_sided[short] >= 2).all()  # they have tasks without positives
    told = {finding.claim: finding.measured for finding in findings(result())}
    assert told["corpora of 64 tasks that fell short of their stopping scale"] == "1 of 16"
    assert told["corpora of 128 tasks that fell short of their stopping scale"] == "0 of 8"


def test_the_certified_scale_grows_with_the_corpus():
    certified = certified_scales(result())
    medians = [np.median(certified[result().corpus_sizes == size]) for size in CONFIG.sizes]
    assert (np.diff(medians) > 1.0).all()
    # and some corpora of 64 tasks make too little progress from the start
    assert (certified[result().corpus_sizes == 64] == 0).any()


def test_nothing_is_certified_beyond_the_first_large_deviation():
    shown = near_the_tube()
    for scale, scales, deviations in zip(
        certified_scales(shown), shown.scales, shown.deviations, strict=True
    ):
        failing = np.flatnonzero(np.abs(deviations) > 0.5)
        end = failing[0] if failing.size else np.isfinite(scales).sum()
        assert scale == (scales[:end].max() if end else 0.0)


def test_findings_are_distinct_and_finite():
    said = findings(result())
    assert len({finding.claim for finding in said}) == len(said)
    for finding in said:
        assert isinstance(finding.measured, str) or np.isfinite(finding.measured)


def test_a_sweep_resumes_from_its_store(tmp_path):
    small = replace(CONFIG, sizes=(64,), n_replicates=(3,))
    first = run(small, store=tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = run(small, store=tmp_path)
    assert len(files) == 3
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    for field in fields(first):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(again, field.name))
    same = (result().corpus_sizes == 64) & (result().replicates < 3)
    np.testing.assert_array_equal(first.scales, result().scales[same])
