"""The notebooks are true: each cell gives the text that the notebook keeps."""

import json
import re
from pathlib import Path

import pytest

from tests.support.notebooks import NOTEBOOKS, kept, outputs, read
from tests.support.page_runner import agree, command_folder


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_gives_what_the_notebook_keeps(notebook: Path, tmp_path: Path) -> None:
    """If what is found is right: python -m tests.support.notebooks NOTEBOOK."""
    (tmp_path / "run").mkdir()
    for cell, got in outputs(read(notebook), tmp_path / "run", command_folder(tmp_path / "bin")):
        assert agree(kept(cell), got), f"{''.join(cell['source'])}\nexpected:\n{kept(cell)}\nfound:\n{got}"


def test_a_cell_that_gives_something_else_is_found(tmp_path: Path) -> None:
    """What is printed, and the value of the last line; nothing of an assignment; the shell's output."""
    sources = ["print(1)\n2", "x = 3", "%%bash\necho four", "x"]
    cells = [{"cell_type": "code", "source": [source], "outputs": []} for source in sources]
    given = [got for _, got in outputs(cells, tmp_path, command_folder(tmp_path / "bin"))]
    assert given == ["1\n2\n", "", "four\n", "3\n"]
    assert [agree(kept(cell), got) for cell, got in zip(cells, given, strict=True)] == [False, True, False, False]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_form_that_jupyter_reads(notebook: Path) -> None:
    """Version 4.5 of the format: each cell has an id, and lines as a list; commands are cells of bash."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in content["cells"]]
    assert len({*ids}) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", each) for each in ids)
    for cell in content["cells"]:
        assert isinstance(cell["source"], list)
        assert not any(line.startswith("!") for line in cell["source"]), (
            "on a terminal of its own: progress, other tables"
        )
