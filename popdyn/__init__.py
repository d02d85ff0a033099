"""Population dynamics of a one-head softmax attention that learns thresholds in context.

Every public name is found here and loaded on first use, so that `import popdyn` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popdyn.coordinates import Head as Head

_MODULES = {
    "Head": "popdyn.coordinates",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("popdyn-attention")
    if name not in _MODULES:
        raise AttributeError(f"module 'popdyn' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
