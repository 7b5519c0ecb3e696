"""Runs a notebook as Jupyter would, without it: cells of code, one after another, in one folder.

A cell is Python, whose last expression is shown, or begins with `%%bash` and has commands for the shell, one a line.

`python -m tests.support.notebooks NOTEBOOK ...` puts what the cells give today into the notebooks; what differs from
run to run, such as digests, as `...`.
"""

import ast
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from tests.support.page_runner import command_folder, console, masked
from tests.support.paths import ROOT

SHELL = "%%bash\n"
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def read(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def kept(cell: dict[str, Any]) -> str:
    """The text that the notebook keeps as the output of a cell."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def outputs(cells: list[dict[str, Any]], folder: Path, commands: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Run the cells of code in a folder; yield each with the text that it prints and shows.

    commands: a folder in which `forecast-ledger` is this checkout's.
    """
    names: dict[str, Any] = {}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        if source.startswith(SHELL):
            lines = "".join(f"$ {line}\n" for line in source.removeprefix(SHELL).splitlines())
            yield cell, "".join(printed for _, printed in console(lines, folder, commands))
        else:
            with chdir(folder):
                yield cell, _python(source, names)


def _python(source: str, names: dict[str, Any]) -> str:
    """Run a cell of Python; return what it prints, and the value of its last line if that is an expression."""
    module, printed, value = ast.parse(source), StringIO(), None
    last = module.body[-1]
    module.body = module.body[: -1 if isinstance(last, ast.Expr) else None]
    with redirect_stdout(printed):
        exec(compile(module, "cell", "exec"), names)  # noqa: S102 - the notebooks are ours
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    return printed.getvalue() + ("" if value is None else f"{value!r}\n")


def rewrite(path: Path) -> None:
    """Put what the cells give into a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        for number, (cell, text) in enumerate(
            outputs(notebook["cells"], Path(name), command_folder(Path(name, "bin"))), 1
        ):
            stream = {"name": "stdout", "output_type": "stream", "text": masked(text).splitlines(keepends=True)}
            cell["execution_count"], cell["outputs"] = number, [stream] if text else []
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        rewrite(Path(path))
