"""The documentation site: `python -m sphinx -W docs docs/_build`, from the root of the project.

Docstrings become the reference, `docs/model.md` the mathematics; the derivations are quoted and the
notebooks executed while the site is built.
"""

import shutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))  # for derivations, which are not installed

project = "popdyn"
author = "the popdyn developers"
release = version = installed_version("popdyn-attention")
html_title = "popdyn"
html_theme = "furo"
html_show_copyright = False

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "figures"]
default_role = "literal"  # the docstrings' `x` is code
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"  # the docstrings say it better
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 180

shutil.rmtree(DOCS / "notebooks", ignore_errors=True)
shutil.copytree(ROOT / "notebooks", DOCS / "notebooks", ignore=shutil.ignore_patterns(".*"))
