"""Imports point up one list, so that every module can be read with those above it alone."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "popdyn"

# From the mathematics down to the surface. A module imports from those above it only.
LAYERS = {
    "mathematics": [
        "popdyn.compiled",
        "popdyn.machine_arithmetic",
        "popdyn.error_free",
        "popdyn.polylog",
        "popdyn.exponentials",
        "popdyn.legendre",
        "popdyn.ball_polylog",
    ],
    "model": [
        "popdyn.display",
        "popdyn.arguments",
        "popdyn.coordinates",
        "popdyn.asymptotics",
        "popdyn.limit_laws",
        "popdyn.noise",
        "popdyn.design",
        "popdyn.quadrature",
        "popdyn.attention",
        "popdyn.weight_transform",
        "popdyn.archive",
        "popdyn.corpus",
        "popdyn.sampling",
        "popdyn.uniform_moments",
        "popdyn.moments",
        "popdyn.context_derivatives",
        "popdyn.reflection",
        "popdyn.reflected_moments",
        "popdyn.sampled_moments",
    ],
    "risk": [
        "popdyn.risk",
        "popdyn.risk.protocol",
        "popdyn.risk.near_origin",
        "popdyn.risk.small_scale",
        "popdyn.risk.form_in_y",
        "popdyn.risk.form_in_z",
        "popdyn.risk.closed_form",
        "popdyn.risk.cut_panels",
        "popdyn.risk.infinite_context",
        "popdyn.risk.reflected_pair",
        "popdyn.risk.exponential_rows",
        "popdyn.risk.corpus_kernels",
        "popdyn.risk.corpus",
        "popdyn.risk.finite_context",
        "popdyn.risk.risk_jets",
        "popdyn.risk.arbitrary_precision",
        "popdyn.closed_form_balls",
        "popdyn.integrated_balls",
        "popdyn.trapping",
        "popdyn.enclosures",
        "popdyn.projected_gradient",
    ],
    "dynamics": [
        "popdyn.dynamics",
        "popdyn.dynamics.arguments",
        "popdyn.dynamics.charts",
        "popdyn.dynamics.integration",
        "popdyn.dynamics.levels",
        "popdyn.dynamics.collocation.radau",
        "popdyn.dynamics.collocation.newton",
        "popdyn.dynamics.collocation.pieces",
        "popdyn.dynamics.collocation.passages",
        "popdyn.dynamics.collocation.march",
        "popdyn.dynamics.collocation.path",
        "popdyn.dynamics.collocation",
        "popdyn.dynamics.trajectory",
        "popdyn.dynamics.hitting",
        "popdyn.dynamics.flow",
        "popdyn.dynamics.saddle",
        "popdyn.dynamics.capture",
        "popdyn.dynamics.arrivals",
        "popdyn.dynamics.descent_steps",
        "popdyn.dynamics.surrogate",
        "popdyn.dynamics.jumps",
        "popdyn.dynamics.descent",
        "popdyn.sweeping",
    ],
    "transfer": [
        "popdyn.pretraining",
        "popdyn.certification",
        "popdyn.transfer_curve",
    ],
    "experiments": [
        "popdyn.experiments",
        "popdyn.experiments.finding",
        "popdyn.experiments.observation",
        "popdyn.experiments.pretrained_corpora",
        "popdyn.experiments.population",
        "popdyn.experiments.symmetrization",
        "popdyn.experiments.finite_pretraining",
        "popdyn.experiments.freeze_transfer",
        "popdyn.experiments.scope",
        "popdyn.experiments.convergence",
        "popdyn.experiments.initialization",
        "popdyn.experiments.pair_training",
        "popdyn.experiments.matched_noise",
        "popdyn.experiments.inference_noise",
        "popdyn.experiments.step_sizes",
        "popdyn.experiments.infinite_tasks",
        "popdyn.experiments.frozen_head",
        "popdyn.experiments.hitting_map",
        "popdyn.experiments.phase_portrait",
    ],
    "surface": [
        "popdyn.plotting",
        "popdyn.plotting.look",
        "popdyn.plotting.population",
        "popdyn.plotting.symmetrization",
        "popdyn.plotting.finite_pretraining",
        "popdyn.plotting.freeze_transfer",
        "popdyn.plotting.scope",
        "popdyn.plotting.convergence",
        "popdyn.plotting.initialization",
        "popdyn.plotting.pair_training",
        "popdyn.plotting.matched_noise",
        "popdyn.plotting.inference_noise",
        "popdyn.plotting.step_sizes",
        "popdyn.plotting.infinite_tasks",
        "popdyn.plotting.transfer",
        "popdyn.plotting.trajectory",
        "popdyn.plotting.frozen_head",
        "popdyn.plotting.certification",
        "popdyn.plotting.phase_portrait",
        "popdyn.plotting.hitting_map",
        "popdyn.plotting.comparisons",
        "popdyn.plotting.expansion",
        "popdyn.knobs",
        "popdyn.figures",
        "popdyn.cli.parsing",
        "popdyn.cli.output",
        "popdyn.cli.progress",
        "popdyn.cli.risk",
        "popdyn.cli.flow",
        "popdyn.cli.hit",
        "popdyn.cli.pretrain",
        "popdyn.cli.transfer",
        "popdyn.cli.map",
        "popdyn.cli.figures",
        "popdyn.cli",
        "popdyn.__main__",
    ],
}
ORDER = [module for layer in LAYERS.values() for module in layer]
LINES = 420  # a module has one noun: at 400 lines look for the second


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# The package itself holds no code of its own: it hands out the public names when they are used.
MODULES = {_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if _name(path) != "popdyn"}


def _imports(path: Path) -> set[str]:
    """Every module of popdyn that a file imports, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out in full"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= submodules or {str(node.module)}
    return {name for name in found if name.partition(".")[0] == "popdyn"}


def test_the_list_names_every_module_and_nothing_else():
    assert sorted(ORDER) == sorted(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_up_the_list(module):
    above = set(ORDER[: ORDER.index(module)])
    assert _imports(MODULES[module]) <= above


def test_imports_by_name_lead_from_a_result_to_its_picture_and_nowhere_else():
    found = {}
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
                (name,) = node.args
                if isinstance(name, ast.Constant) and name.value.startswith("popdyn"):
                    found.setdefault(module, set()).add(name.value)
    assert found == {
        "popdyn.dynamics.trajectory": {"popdyn.plotting.trajectory"},
        "popdyn.pretraining": {"popdyn.experiments.frozen_head", "popdyn.plotting.frozen_head"},
        "popdyn.certification": {"popdyn.plotting.certification"},
        "popdyn.transfer_curve": {"popdyn.plotting.transfer"},
    }


def test_the_predicted_laws_are_an_independent_witness():
    assert _imports(MODULES["popdyn.asymptotics"]) <= {"popdyn.arguments"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_short_enough_to_have_one_noun(module):
    length = len(MODULES[module].read_text().splitlines())
    assert length <= LINES
