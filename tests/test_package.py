"""What importing popdyn costs and leaves alone, and what the distribution says of itself."""

import configparser
import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import popdyn
from popdyn.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
IMPORT_SECONDS = 0.5  # measured 0.1 s: NumPy is not imported before a name is used

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(popdyn.__path__, prefix="popdyn.")
    if module.name != "popdyn.__main__"  # importing it runs the command
)


def run(code: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
        cwd=ROOT,
    ).stdout


def test_importing_is_quick():
    code = "import time; t = time.perf_counter(); import popdyn; print(time.perf_counter() - t)"
    assert min(float(run(code)) for _ in range(3)) < IMPORT_SECONDS


@pytest.mark.parametrize("heavy", ["sympy", "matplotlib", "scipy.integrate", "mpmath", "numba"])
def test_importing_leaves_a_heavy_module_alone(heavy):
    code = f"import sys, popdyn; popdyn.Head.from_ratio(1.5, 5); print({heavy!r} in sys.modules)"
    assert run(code) == "False\n"


def test_importing_every_module_changes_no_global_state():
    code = f"""
import importlib, locale, random, signal, sys, warnings
import matplotlib, mpmath, numpy as np, sympy

def state():
    # asking for the backend would choose one
    names = matplotlib.rcParams.keys() - {{"backend"}}
    settings = {{name: matplotlib.rcParams[name] for name in names}}
    return (
        np.geterr(), np.get_printoptions(), str(np.random.get_state()), mpmath.mp.dps,
        mpmath.mp.pretty, settings, warnings.filters[:], random.getstate(),
        locale.setlocale(locale.LC_ALL), signal.getsignal(signal.SIGINT), sys.excepthook,
    )

import numba, scipy.integrate, scipy.special
before = state()
for module in {MODULES!r}:
    importlib.import_module(module)
print(state() == before, "matplotlib.pyplot" in sys.modules)
"""
    assert run(code) == "True False\n"


@pytest.mark.parametrize("name", popdyn.__all__)
def test_a_public_name_loads_on_first_use(name):
    assert getattr(popdyn, name).__module__.startswith("popdyn.")
    assert name in dir(popdyn)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'heads'"):
        popdyn.heads  # noqa: B018


def test_the_version_is_that_of_the_installed_distribution():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert popdyn.__version__ == metadata.version("popdyn-attention")
    assert popdyn.__version__ == setup["metadata"]["version"]


def test_the_citation_names_the_version():
    assert f"version: {popdyn.__version__}" in (ROOT / "CITATION.cff").read_text().splitlines()


def test_the_changelog_has_an_entry_for_the_version():
    assert f"## {popdyn.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_are_true(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.failed == 0


def test_the_examples_in_the_readme_are_true():
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_continuous_integration_runs_the_test_command_of_the_readme():
    commands = re.findall(r"^    (python3 -m venv .* -m pytest)$", README, flags=re.MULTILINE)
    assert len(commands) == 1
    assert f"({commands[0]})" in (ROOT / ".ci" / "run").read_text().splitlines()


def test_the_readme_names_only_files_that_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_the_commands_of_the_readme_work_in_their_order(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    (popdyn .*)$", README, flags=re.MULTILINE)
    assert commands
    for command in commands:
        _, *words = command.split()
        if words[0] == "figures":  # all of them in full take minutes
            words += ["--quick", "--only", "9"]
        assert main(words) == 0, command
        assert capsys.readouterr().out, command
