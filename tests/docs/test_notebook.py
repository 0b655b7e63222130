"""The notebook of the pages has the outputs that its code prints.

``python -m tests.docs.test_notebook FOLDER`` executes it in a work folder in which the demo has run, and stores the
outputs.
"""

import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT
from tests.docs.conftest import environment

NOTEBOOK = ROOT / "docs/features.ipynb"


def executed(work: Path) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of its code, in its folder of a checkout."""
    book = nbformat.read(NOTEBOOK, as_version=4)
    metadata = deepcopy(book.metadata)
    (work / "docs").mkdir(exist_ok=True)
    client = NotebookClient(
        book, coalesce_streams=True, record_timing=False, timeout=120, resources={"metadata": {"path": work / "docs"}}
    )
    client.execute(env=environment(IPYTHONDIR=str(work / ".ipython")))
    book.metadata = metadata  # without the kernel's version
    return book


def texts(book: nbformat.NotebookNode) -> dict[str, list[Any]]:
    """Return the outputs of each cell by its id, without the bytes of pictures."""
    return {cell.id: [text(output) for output in cell.outputs] for cell in book.cells if cell.cell_type == "code"}


def text(output: nbformat.NotebookNode) -> Any:
    return output.text if output.output_type == "stream" else sorted(output.data)


@pytest.mark.slow
def test_outputs_are_those_of_the_code(checkout: Path) -> None:
    assert texts(executed(checkout)) == texts(nbformat.read(NOTEBOOK, as_version=4))


if __name__ == "__main__":
    nbformat.write(executed(Path(sys.argv[1])), NOTEBOOK)
