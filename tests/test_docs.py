"""The documentation builds without a warning, and every public name has its page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import popdyn

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
MODULES = {"asymptotics", "enclosures", "figures", "limit_laws", "risk.protocol"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site. Its notebooks are shown as they are kept: other tests execute them."""
    folder = tmp_path_factory.mktemp("site")
    command = "python -m sphinx -W docs docs/_build"
    assert f"    {command}\n" in README
    unexecuted = ["--keep-going", "-q", "-D", "nb_execution_mode=off"]
    words = [*command.split()[1:-1], str(folder), *unexecuted]
    build = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert (build.returncode, build.stderr) == (0, "")
    return folder


def test_the_reference_lists_every_public_name():
    page = (ROOT / "docs" / "reference.md").read_text()
    listed = re.findall(r"^   popdyn\.([\w.]+)$", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted([*popdyn.__all__, *MODULES])


@pytest.mark.parametrize("name", sorted([*popdyn.__all__, *MODULES]))
def test_a_public_name_has_its_page(site, name):
    page = (site / "reference" / f"popdyn.{name}.html").read_text()
    anchor = f"module-popdyn.{name}" if name in MODULES else f"popdyn.{name}"
    assert f'id="{anchor}"' in page


@pytest.mark.parametrize("folder", ["derivations", "notebooks"])
def test_every_script_and_notebook_has_its_page(site, folder):
    kept = {path.stem for path in (ROOT / folder).glob("[!_]*") if path.suffix in (".py", ".ipynb")}
    kept -= {"checks"}
    built = {path.stem.removeprefix("derivations.") for path in site.glob("*/*.html")}
    assert kept and kept <= built
