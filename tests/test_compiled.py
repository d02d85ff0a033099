"""Compiled kernels: cached where possible, working where not, never out of date."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from popdyn import compiled

INNER = "from {package}.compiled import kernel\n\n@kernel\ndef inner(x):\n    return {factor} * x\n"
OUTER = """
from {package}.compiled import kernel
from {package}.inner import inner

@kernel
def outer(x):
    return inner(x) + 1.0
"""


@pytest.fixture
def package(tmp_path):
    """A small package, in a folder of any name, with a kernel that calls one of another file."""
    folder = tmp_path / "a folder é 数" / "smallpackage"
    folder.mkdir(parents=True)
    shutil.copy(compiled.__file__, folder / "compiled.py")
    (folder / "__init__.py").touch()
    (folder / "outer.py").write_text(OUTER.format(package=folder.name))
    write_inner(folder, factor=2.0)
    return folder


def write_inner(package: Path, factor: float) -> None:
    (package / "inner.py").write_text(INNER.format(package=package.name, factor=factor))


def outer_of_three(package: Path, **environment: str) -> str:
    printed = "outer(3.0), sum(outer.called.stats.cache_hits.values())"
    code = f"from {package.name}.outer import outer; print({printed})"
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=package.parent,
        env=os.environ | environment,
    ).stdout.strip()


def test_the_second_process_finds_the_machine_code_of_the_first(package):
    assert outer_of_three(package) == "7.0 0"
    assert outer_of_three(package) == "7.0 1"


def test_a_kernel_that_python_calls_is_not_taken_for_the_one_that_kernels_call(package):
    # The one for kernels has no entry for Python: to call it would end the process.
    both = "inner.inner(3.0), outer.outer(3.0), inner.inner(3.0)"
    code = f"from {package.name} import inner, outer; print({both})"
    for _ in range(2):
        assert outer_of_three(package).startswith("7.0")
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=package.parent
        )
        assert done.stdout == "6.0 7.0 6.0\n"
    hits = "inner.inner(3.0), sum(inner.inner.called.stats.cache_hits.values())"
    code = f"from {package.name} import inner; print({hits})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=package.parent
    )
    assert done.stdout == "6.0 1\n"


def test_a_kernel_is_renewed_when_one_that_it_calls_changes(package):
    outer_of_three(package)
    write_inner(package, factor=5.0)
    assert outer_of_three(package) == "16.0 0"


def test_kernels_work_where_neither_the_package_nor_the_home_can_be_written(package):
    # Root may write anywhere, so the folders are made impossible instead of forbidden.
    (package / "__pycache__").write_text("a file where the cache folder would be")
    nowhere = os.devnull + "/home"
    places = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
    assert outer_of_three(package, **places) == "7.0 0"
    assert outer_of_three(package, **places) == "7.0 0"
    assert sorted(path.name for path in package.iterdir()) == [
        "__init__.py", "__pycache__", "compiled.py", "inner.py", "outer.py",
    ]  # fmt: skip


def test_kernels_work_where_the_cache_folder_that_was_asked_for_cannot_be_made(package):
    assert outer_of_three(package, NUMBA_CACHE_DIR=os.devnull + "/cache").startswith("7.0")


@pytest.mark.parametrize(("kind", "length"), [("nbi", 0), ("nbc", 100)])
def test_a_cache_file_that_was_cut_off_is_replaced(package, kind, length):
    outer_of_three(package)
    damaged = list((package / "__pycache__").glob(f"*.{kind}"))
    assert damaged
    for path in damaged:
        os.truncate(path, length)
    assert outer_of_three(package) == "7.0 0"
    assert outer_of_three(package) == "7.0 1"


def test_code_for_other_types_than_it_stands_for_is_replaced(package):
    # What is left where two processes have compiled into the same files, each in its order.
    code = f"from {package.name}.outer import outer; print(outer(3.0), outer(3))"
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=package.parent
        )
        assert run.stdout == "7.0 7.0\n", run.stderr
        first, second = sorted((package / "__pycache__").glob("outer.outer-*.nbc"))
        one, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(one)
    assert outer_of_three(package) == "7.0 0"
    assert outer_of_three(package) == "7.0 1"


@pytest.mark.skipif(os.name != "posix", reason="the size of files is limited as on POSIX")
def test_kernels_work_where_the_disk_is_full(package):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, -1)); "
    code = limit + f"from {package.name}.outer import outer; print(outer(3.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=package.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"7.0\n", b"")
    assert outer_of_three(package) == "7.0 0"


def test_a_file_imported_under_another_name_leaves_no_code_that_cannot_be_loaded(package):
    # As by `python -m doctest smallpackage/outer.py`.
    code = "import sys; sys.path.insert(0, 'smallpackage'); import outer; print(outer.outer(3.0))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=package.parent)
    assert outer_of_three(package) == "7.0 0"
    assert outer_of_three(package) == "7.0 1"
