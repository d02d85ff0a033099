"""Print derivations with their verdicts: `python -m derivations [NAME ... | --list]`."""

import argparse
from importlib import import_module
from pathlib import Path

from derivations.checks import show

NOT_SCRIPTS = {"__init__", "__main__", "checks"}


def names() -> list[str]:
    """Names of all derivations, in alphabetical order."""
    return sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - NOT_SCRIPTS)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m derivations", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="which ones; all by default")
    parser.add_argument("--list", action="store_true", help="only list the names and claims")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - set(names())
    if unknown:
        parser.error(f"NAME must be one of {', '.join(names())}, got {', '.join(sorted(unknown))}")
    for name in chosen.names or names():
        script = import_module(f"derivations.{name}")
        if chosen.list:
            print(f"{name:20} {(script.__doc__ or '').splitlines()[0]}")
        else:
            show(script.derive)


if __name__ == "__main__":
    main()
