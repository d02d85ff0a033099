"""The moment from which on a run is inside a region that is proven to hold it."""

import json
import math
import sys

import numpy as np
import pytest

pytest.importorskip("flint")

from popdyn import ClosedFormRisk, Head, gradient_flow, tube_entrance
from popdyn.cli import main
from popdyn.dynamics import capture as module
from popdyn.dynamics.capture import tube_capture
from popdyn.trapping import NotProven

ABOVE = Head.from_tube(1.5, 10.0)
INSIDE = Head.from_tube(0.7, 20.0)
CENTRE = math.log(2)  # of the tube at half width 1
MARGIN = 2e-9  # the head lies 1e-9 inside the edge


@pytest.fixture(scope="module")
def captured():
    return tube_capture(ABOVE, 1e6)


def test_the_moment_is_the_entrance_to_the_band(captured):
    first, _ = tube_entrance(ClosedFormRisk(), ABOVE, width=0.2, t_end=1e6)
    assert captured.hit.reached
    # dc/dt there is of order 1e-3, so that 1e-9 of c are 1e-6 of time
    assert captured.hit.time == pytest.approx(first.time, rel=0, abs=1e-5)
    assert 0 < captured.hit.time - first.time
    assert captured.hit.head.tube == pytest.approx(CENTRE + 0.2, rel=0, abs=MARGIN)


def test_the_region_holds_the_head_and_all_that_comes(captured):
    region, hit = captured.region, captured.hit
    assert (region.half_width, region.width) == (1.0, 0.2)
    assert region.scale < hit.head.scale < region.scale * (1 + MARGIN)
    later = gradient_flow(ClosedFormRisk(), hit.head, 1e9, t_eval=np.geomspace(1, 1e9, 20))
    assert (np.abs(later.tube - CENTRE) < 0.2).all() and (later.scale > region.scale).all()
    low, high = region.slopes
    growth = later.scale**4 - hit.head.scale**4
    assert (low * later.t <= growth).all() and (growth <= high * later.t).all()


def test_a_mirrored_run_is_captured_at_the_same_moment(captured):
    mirrored = tube_capture(ABOVE.reflected, 1e6)
    assert mirrored.hit.time == pytest.approx(captured.hit.time, rel=1e-9, abs=0)
    assert mirrored.hit.head.scale == pytest.approx(-captured.hit.head.scale, rel=1e-9, abs=0)
    assert mirrored.region.slopes == pytest.approx(captured.region.slopes, rel=1e-6, abs=0)


def test_a_run_that_starts_inside_is_captured_at_once():
    capture = tube_capture(INSIDE, 10.0, width=0.1)
    assert (capture.hit.time, capture.hit.head) == (0.0, INSIDE)
    assert capture.region.width == 0.1


# The search for the smallest proven scale takes 25 s at the width 0.2; it is tested with the proof.
def least_scale(half_width, width):
    assert (half_width, width) == (1.0, 0.05)
    return 5.938


def test_a_band_that_is_entered_too_early_counts_from_the_smallest_proven_scale(monkeypatch):
    monkeypatch.setattr(module, "smallest_trapping_scale", least_scale)
    capture = tube_capture(Head.from_tube(CENTRE, 5.9), 1e4, width=0.05)
    assert capture.hit.time > 0
    assert capture.hit.head.scale == pytest.approx(5.938, rel=MARGIN * 2, abs=0)
    assert 5.938 <= capture.region.scale


@pytest.mark.parametrize(
    ("head", "t_end", "width", "reason"),
    [
        (ABOVE, 1.0, 0.2, "the run ends outside"),
        (Head.from_scores(0.0, 0.0), 1e3, 0.2, "the run ends outside"),
        (Head.from_tube(CENTRE, 4.0), 1.0, 0.05, r"the run ends below 5\.938"),
    ],
    ids=["early", "origin", "small"],
)
def test_a_run_that_is_in_no_proven_region_says_why(head, t_end, width, reason, monkeypatch):
    monkeypatch.setattr(module, "smallest_trapping_scale", least_scale)
    capture = tube_capture(head, t_end, width=width)
    assert capture.region is None and not capture.hit.reached and capture.hit.time == math.inf
    assert capture.hit.message.startswith(reason.replace("\\", ""))


def test_a_band_that_holds_nothing_is_not_proven():
    with pytest.raises(NotProven):  # at half width 2 not from the width 0.1116 on
        tube_capture(Head.from_tube(1.2, 50.0, half_width=2.0), 1e4, width=0.2)


@pytest.mark.parametrize("width", [0.0, -1.0, 1e-10, math.nan, "wide"])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(ValueError, match="width must be"):
        tube_capture(INSIDE, 1.0, width=width)


def test_the_command_prints_the_moment_and_the_bounds(capsys, captured, tmp_path):
    out = str(tmp_path / "run.npz")
    words = ["flow", "--tube", "1.5", "--scale", "10", "--t-end", "1e6", "--points", "1"]
    assert main([*words, "--enclose", "--json", "--out", out]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["captured"] is True and record["band_width"] == 0.2
    assert record["capture_time"] == captured.hit.time
    assert record["capture_scale"] == captured.hit.head.scale
    assert (record["least_slope"], record["greatest_slope"]) == captured.region.slopes
    with np.load(out, allow_pickle=False) as arrays:
        assert arrays["capture_time"] == captured.hit.time


def test_a_run_that_is_not_captured_is_an_answer(capsys):
    words = ["flow", "--tube", "1.5", "--scale", "10", "--t-end", "1", "--points", "1", "--enclose"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "captured       False" in lines and "capture_time   inf" in lines
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["capture_time"] is None


def test_without_flint_the_command_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "popdyn.dynamics.capture", None)
    assert main(["flow", "--tube", "1.5", "--scale", "10", "--t-end", "1", "--enclose"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "popdyn-attention[enclosures]" in captured.err
