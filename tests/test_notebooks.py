"""Every notebook runs from top to bottom, and is kept as short and as bare as it was written."""

import ast
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
CELLS = 15  # a notebook is one story
PROGRAM = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


# The kernel is another process with its own filters, and the client's own libraries may warn.
@pytest.mark.filterwarnings("default")
def test_a_notebook_runs_to_its_picture_without_a_word_on_stderr(notebook, tmp_path):
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert "image/png" in outputs[-1]["data"]  # the last cell shows a picture


def test_a_notebook_is_kept_without_outputs(notebook):
    for cell in code_cells(notebook):
        assert (cell.outputs, cell.execution_count) == ([], None)


def test_a_notebook_is_a_story_and_no_program(notebook):
    assert len(notebook.cells) <= CELLS
    for cell in code_cells(notebook):
        nodes = ast.walk(ast.parse(cell.source))
        assert not [node for node in nodes if isinstance(node, PROGRAM)]
