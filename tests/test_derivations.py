"""Every derivation holds, agrees with the functions that use it, and breaks when it is changed."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import mpmath
import numpy as np
import pytest
import sympy

import derivations.__main__ as command
from derivations.checks import Chain, DerivationError
from popdyn import ClosedFormRisk, Head, asymptotics, limit_laws
from popdyn.attention import limit_error

ROOT = Path(__file__).parents[1]
NAMES = command.names()
WIDTHS = (0.5, 1.0, 2.0)


@cache
def derived(name):
    chain = Chain()
    return importlib.import_module(f"derivations.{name}").derive(chain), chain.steps


@pytest.mark.parametrize("name", NAMES)
def test_a_derivation_proves_and_checks(name):
    _, steps = derived(name)
    assert {step.verdict for step in steps} == {"proved", "checked"}


@dataclass(frozen=True)
class Case:
    """A derived quantity, and the same from a predicted law, at some numbers."""

    script: str
    field: str
    law: Callable[..., float]  # called with the laws' module and the numbers
    points: list[dict[str, float]]
    tolerance: float = 1e-14  # relative; some roundings

    def __str__(self):
        return f"{self.script}.{self.field}"

    def holds_with(self, laws):
        expression = getattr(derived(self.script)[0], self.field)
        return all(
            self.law(laws, *point.values())
            == pytest.approx(value(expression, point), rel=self.tolerance, abs=0)
            for point in self.points
        )


def value(expression, point):
    """An expression at a point, its symbols found by name."""
    symbols = sorted(expression.free_symbols, key=str)
    with mpmath.workdps(40):
        numbers = [mpmath.mpf(point[symbol.name]) for symbol in symbols]
        return float(sympy.lambdify(symbols, expression, "mpmath")(*numbers))


def at(*scales, **others):
    return [{"l": width, "mu": mu, **others} for width in WIDTHS for mu in scales]


def widths(**others):
    return [{"l": width, **others} for width in WIDTHS]


def error_at_root(laws, ell, T):
    return laws.interior_error((1 + ell**2) / 8 * T**4, ell, order=1)


LAWS = [
    Case(
        "predictor",
        "lower_end_error",
        lambda laws, ell, mu: laws.boundary_error(mu, ell),
        at(3, 50),
    ),
    Case("threshold_error", "lower_end", lambda laws, ell, mu: laws.boundary_error(mu, ell), at(9)),
    Case(
        "threshold_error",
        "interior",
        lambda laws, ell, mu: laws.interior_error(laws.time_at(mu, ell), ell),
        at(70),
    ),
    Case("threshold_error", "constant", lambda laws, ell: laws.interior_error(1, ell, 0), widths()),
    Case("threshold_error", "interior_in_time", error_at_root, widths(T=1e8)),
    Case(
        "scale_growth",
        "tube_center",
        lambda laws, ell, mu: laws.tube_center(mu, ell, 1),
        at(7, 1e5),
    ),
    Case(
        "scale_growth", "growth_rate", lambda laws, ell, mu: laws.growth_rate(mu, ell, 1), at(1e8)
    ),
    Case("scale_growth", "time", lambda laws, ell, mu: laws.time_at(mu, ell, 1), at(7, 1e5)),
    Case("tube_stability", "rate", lambda laws, ell, mu: laws.relaxation_rate(ell), at(1e20)),
    Case(
        "saddle_at_origin",
        "growth_rate",
        lambda laws, ell: -laws.saddle_eigenvalues(ell)[0],
        widths(),
    ),
    Case(
        "saddle_at_origin",
        "decay_rate",
        lambda laws, ell: laws.saddle_eigenvalues(ell)[1],
        widths(),
    ),
    Case(
        "saddle_at_origin",
        "escape_time",
        lambda laws, ell: laws.escape_time(np.exp(-1), ell),
        widths(),
    ),
    Case(
        "descent_stability", "limit_step", lambda laws, ell, mu: laws.stable_step(mu, ell), at(1e20)
    ),
    Case(
        "descent_stability",
        "fourth_power_increment",
        lambda laws, ell, mu, eta: eta * laws.fourth_power_rate(ell),
        at(1e20, eta=3),
    ),
]
LIMIT_LAWS = [
    Case("label_noise", "score_cap", lambda laws, p: laws.label_score_cap(p), [{"p": 0.01}]),
    Case(
        "label_noise",
        "saturation_scale",
        lambda laws, ell, p: laws.saturation_scale(p, ell),
        widths(p=0.01),
    ),
    Case(
        "feature_density",
        "tube_center",
        lambda laws, ell, rho: laws.density_tube_center(rho, ell),
        widths(rho=1.75),
    ),
    Case("reflected_training", "layer", lambda laws, ell, mu: laws.pair_layer(ell), at(1e20)),
    Case(
        "reflected_training",
        "fifth_power",
        lambda laws, ell: laws.pair_fifth_power_rate(ell),
        widths(),
    ),
    Case(
        "reflected_training",
        "risk_at_time",
        lambda laws, ell, t: laws.pair_risk_at(t, ell),
        widths(t=1e12),
    ),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_a_law_is_the_derived_one(case):
    assert case.holds_with(asymptotics)


@pytest.mark.parametrize("case", LIMIT_LAWS, ids=str)
def test_a_limit_law_is_the_derived_one(case):
    assert case.holds_with(limit_laws)


def scores(width):
    return {"l": width, "lam": 2.25 * width, "mu": 2.0}


@pytest.mark.parametrize("width", WIDTHS)
def test_the_closed_form_is_the_derived_one(width):
    result, point = derived("closed_form_risk")[0], scores(width)
    head = Head.from_scores(point["lam"], point["mu"], width)
    risk = ClosedFormRisk(width)
    assert risk.value(head) == pytest.approx(value(result.risk, point), rel=1e-14, abs=0)
    for found, expected in (
        (risk.gradient(head), result.gradient),
        (risk.hessian(head), result.hessian),
    ):
        exact = [value(entry, point) for entry in expected]
        np.testing.assert_allclose(found.ravel(), exact, rtol=1e-13)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_risk_in_the_tube_is_the_derived_one(width):
    expansion = derived("tube_risk")[0].expansion
    scale, layer = 1e4, 0.3
    head = Head.from_tube(-np.log(layer) / 2, scale, width)
    logs = {"logQ": np.log(layer), "logmu": np.log(scale)}
    exact = value(expansion, {"l": width, "mu": scale, "Q": layer, **logs})
    # next is mu^-7 log(mu)
    assert ClosedFormRisk(width).value(head) == pytest.approx(exact, rel=1e-14, abs=0)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_predictor_and_its_pair_are_the_derived_ones(width):
    lower = 0.75 * width
    head = Head.from_scores(2.25 * width, 2.0, width)
    point = {"mu": 2.0, "s": lower, "r": 2 * width - lower, "q": np.exp(-2 * head.excess)}
    one, other = (limit_error(h, lower - width) for h in (head, head.reflected))
    assert one == pytest.approx(value(derived("predictor")[0].error, point), rel=1e-14, abs=0)
    assert (one + other) / 2 == pytest.approx(
        value(derived("reflected_pair")[0].error, point), rel=1e-14, abs=0
    )


def changed(path, before, after):
    """A module of the changed source, in which the text before occurs once."""
    source = (ROOT / path).read_text(encoding="utf-8")
    assert source.count(before) == 1
    module = ModuleType(path)
    module.__file__ = str(ROOT / path)
    exec(compile(source.replace(before, after), path, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("predictor", "claimed_end = 2 * ell", "claimed_end = 3 * ell"),
        ("tube_risk", "pi**2 / 3 * Q * mu**-4", "pi**2 / 4 * Q * mu**-4"),
        ("tube_risk", "Rational(7, 12)", "Rational(5, 12)"),
        ("scale_growth", "(3 * zeta(3) - 2", "(3 * zeta(3) - 1"),
        ("tube_stability", "Rational(2, 3) * ell", "Rational(1, 3) * ell"),
        ("tube_expansion", "SERIES(QQ(1, n))", "SERIES(QQ(1, n + 1))"),
    ],
)
def test_a_changed_coefficient_breaks_its_derivation(name, before, after):
    script = changed(f"derivations/{name}.py", before, after)
    with pytest.raises(DerivationError):
        script.derive(Chain())


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("time", "(1 + width**2) / 8 * mu**4", "(1 + width**2) / 9 * mu**4"),
        ("limit_step", "** 3 / (2 * one_width", "** 3 / (3 * one_width"),
        ("decay_rate", "root = sqrt(25 * width", "root = sqrt(24 * width"),
    ],
)
def test_a_changed_coefficient_of_a_law_is_seen(field, before, after):
    laws = changed("popdyn/asymptotics.py", before, after)
    assert not all(case.holds_with(laws) for case in LAWS if case.field == field)


def test_a_changed_coefficient_of_the_stored_expansion_is_seen(monkeypatch):
    stored = json.loads((ROOT / "popdyn/tube_coefficients.json").read_text(encoding="utf-8"))
    stored["tube_center"][1][0] = stored["tube_center"][1][0].replace("3/4*zeta3", "2/3*zeta3")
    laws = changed("popdyn/asymptotics.py", "MAX_ORDER = 8", "MAX_ORDER = 8")
    monkeypatch.setattr(laws, "_stored", lambda: stored)
    assert not all(case.holds_with(laws) for case in LAWS if case.field == "tube_center")


def test_a_failed_step_shows_what_is_left_over():
    x = sympy.Symbol("x")
    with pytest.raises(DerivationError, match=r"not proved: squares\n  left over: 2\*x"):
        Chain().proved("squares", (x + 1) ** 2, x**2 + 1)
    with pytest.raises(DerivationError, match=r"at x = 1/3: 0\.3\d* against 0\.34\d*"):
        Chain().checked("close", x, lambda mp, x: x + mp.mpf("0.01"), [{x: "1/3"}], digits=4)


def test_a_nan_is_not_an_agreement():
    x = sympy.Symbol("x")
    with pytest.raises(DerivationError):
        Chain().checked("nothing", x, lambda mp, x: mp.nan, [{x: 1}], digits=1)


def test_the_command_lists_every_derivation_with_its_claim(capsys):
    command.main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert all(len(line.split()) > 4 for line in lines)


def test_the_command_refuses_an_unknown_name(capsys):
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "NAME must be one of" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["derivations", "predictor"], ["derivations.predictor"]])
def test_a_script_runs_by_itself_and_prints_its_chain(arguments):
    run = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
    assert "proved " in run.stdout
    assert "lower_end_error = 2*l" in run.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_script_shows_its_derivation_when_run(name):
    source = (ROOT / "derivations" / f"{name}.py").read_text(encoding="utf-8")
    assert "show(derive)" in source.split('if __name__ == "__main__":')[1]
