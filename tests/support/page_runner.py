"""Runs a page of the documentation as a reader would: every block of it, one after another, in one folder.

What a block is follows from the word behind its fence:

- `console`: lines that begin with `$ ` are commands for the shell, the others what they print. `...` stands for any
  text within a line; a line that is only `...` stands for any number of lines.
- `sh`: the two commands that set everything up, which `.ci/run` takes from the README and runs.
- `python` with `>>>`: examples, as doctest has them, all of a page in one namespace.
- any other word: a file to save, named behind that word.

`python -m tests.support.page_runner PAGE ...` puts what commands print today into the pages that have something else.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from forecast_ledger.replay.cli import main
from tests.support.paths import ROOT

FLAGS = doctest.ELLIPSIS
_FENCE = re.compile(r"(?ms)^```(\w+)(?: (\S+))?\n(.*?)^```$")
SETUP = ("&& .venv/bin/forecast-ledger demo", "&& .venv/bin/pytest")
# A command of ours, without words that the shell changes, and what the shell does with its output, or after it.
_LEDGER = re.compile(r"forecast-ledger ([^|&;<>$`*\\\n]*?)((?: 2(?=>))?(?:[|&;<>].*)?)", re.DOTALL)
# Such a command for each file of a pattern, with the name of the file in it.
_LOOP = re.compile(r"for (\w+) in (\S+); do (forecast-ledger .*); done")


class Block(NamedTuple):
    """A fenced block: the word behind its fence, the file it is to be saved as, its text, and its line in the page."""

    word: str
    name: str | None
    text: str
    line: int


class Step(NamedTuple):
    """A command for the shell, and what it prints."""

    command: str
    printed: str


Printed = Iterator[tuple[Step, str]]  # what was expected of each command, and what it prints
Report = Callable[[str, Block, Printed], None]  # where the block is


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in their order."""
    for match in _FENCE.finditer(page):
        word, name, text = match.groups()
        yield Block(word, name, text, page[: match.start()].count("\n") + 1)


def steps(text: str) -> list[Step]:
    r"""The commands of a console block; a command that ends in a backslash goes on in the next line.

    >>> steps("$ echo a \\\n  b\na b\n$ true\n")
    [Step(command='echo a \\\n  b', printed='a b\n'), Step(command='true', printed='')]
    """
    assert text.startswith("$ "), f"a console block begins with a command: {text[:40]!r}"
    sequence: list[Step] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            sequence.append(Step(line[2:], ""))
        elif sequence[-1].command.endswith("\\") and not sequence[-1].printed:
            sequence[-1] = sequence[-1]._replace(command=f"{sequence[-1].command}\n{line}")
        else:
            sequence[-1] = sequence[-1]._replace(printed=f"{sequence[-1].printed}{line}\n")
    return sequence


def run(path: Path, folder: Path, commands: Path, report: "Report | None" = None) -> None:
    """Run a page in a folder; raises AssertionError at the first block that does not do what the page says.

    commands: a folder in which `forecast-ledger` is this checkout's. report: what is done with the commands of a block
    and what each prints, other than to compare them.
    """
    page = path.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in blocks(page):
        where = f"{path.name}, line {block.line}"
        if block.word == "console":
            (report or _compare)(where, block, console(block.text, folder, commands))
        elif block.word == "python" and ">>> " in block.text:
            _examples(block, names, folder, path)
        elif block.word == "sh":
            assert block.text.rstrip().endswith(SETUP), f"{where}: only the commands that set everything up are not run"
        else:
            assert block.name, f"{where}: a block that is neither run nor saved"
            _save(block, page, folder, where)


def reader(folder: Path) -> Path:
    """A new folder that looks like the clone in which a reader is, by links to what is there."""
    folder.mkdir()
    for name in ("data", "forecast_ledger", "ledger", "projections", "pyproject.toml", "replay", "tests"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def command_folder(folder: Path) -> Path:
    """A folder, to be first on the path, in which `forecast-ledger` and `python` are those that run the tests."""
    folder.mkdir(exist_ok=True)
    for name, arguments in (("forecast-ledger", "-m forecast_ledger "), ("python", "")):
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n', encoding="utf-8")
        command.chmod(0o755)
    return folder


def _save(block: Block, page: str, folder: Path, where: str) -> None:
    """Write a block to its file; the line before the fence must tell a reader the file's name."""
    before = [line for line in page.splitlines()[: block.line - 1] if line.strip()][-1]
    assert f"`{block.name}`" in before, f"{where}: the line before the block does not name the file {block.name}"
    (folder / str(block.name)).write_text(block.text, encoding="utf-8")


def console(text: str, folder: Path, commands: Path) -> Printed:
    """Run the commands of a block, one after another; each with what it prints."""
    code = 0
    for step in steps(text):
        printed = ""
        for command in _unrolled(step.command, folder):
            ledger = _LEDGER.fullmatch(command)
            if ledger is None:
                code, more = _shell(f"(exit {code}); {command}", folder, commands)
            else:
                code, more = _here(shlex.split(ledger[1]), ledger[2], folder, commands)
            printed += more
        yield step, printed


def _unrolled(command: str, folder: Path) -> list[str]:
    """The commands of a loop over files, or a command itself."""
    loop = _LOOP.fullmatch(command)
    if loop is None:
        return [command]
    return [loop[3].replace(f"${loop[1]}", path.name) for path in sorted(folder.glob(loop[2]))]


def _here(arguments: list[str], rest: str, folder: Path, commands: Path) -> tuple[int, str]:
    """Run a command without a new process, which takes a fraction of the time; its exit code, and what it prints.

    rest: what the shell is to do with its output, and after it.
    """
    with chdir(folder):
        result = _Terminal().invoke(main.main, arguments, prog_name="forecast-ledger")
    if not rest:
        return result.exit_code, result.output
    with tempfile.TemporaryDirectory() as other:
        streams = Path(other, "stdout"), Path(other, "stderr")
        for stream, written in zip(streams, (result.stdout_bytes, result.stderr_bytes), strict=True):
            stream.write_bytes(written)
        return _shell(f"(cat {streams[0]}; cat {streams[1]} >&2; exit {result.exit_code}){rest}", folder, commands)


class _Terminal(CliRunner):
    """Keeps the order in which both streams are written, as a terminal shows them."""

    @contextmanager
    def isolation(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Without buffers, which are emptied one after the other."""
        with super().isolation(*arguments, **options) as streams:
            for stream in (sys.stdout, sys.stderr):
                assert isinstance(stream, TextIOWrapper)
                stream.reconfigure(write_through=True)
            yield streams


def _shell(command: str, folder: Path, commands: Path) -> tuple[int, str]:
    """Run a command by a shell; its exit code, and what it prints on either stream."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=_environment(commands),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def _compare(where: str, _: Block, printed: Printed) -> None:
    for step, got in printed:
        renewal = "if what is found is right: python -m tests.support.page_runner PAGE"
        assert agree(step.printed, got), (
            f"{where}: $ {step.command}\nexpected:\n{step.printed}\nfound:\n{got}\n{renewal}"
        )


def agree(expected: str, got: str) -> bool:
    r"""Return whether a command printed what a page says; two spaces stand for two or more.

    `...` stands for any text within a line, and a line that is only `...` for any number of lines.

    >>> agree("digest ...\n", "digest 12 \n"), agree("digest ...\n", "digest 12\nmore\n")
    (True, False)
    >>> agree("first\n...\nlast\n", "first\n2\n3\nlast\n")
    True
    """
    lines = [
        r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in _stripped(expected).splitlines()
    ]
    return re.fullmatch("".join(lines), _stripped(got)) is not None


def _stripped(text: str) -> str:
    return "".join(re.sub(" {2,}", "  ", line.rstrip()) + "\n" for line in text.splitlines())


def _environment(commands: Path) -> Mapping[str, str]:
    """The shell's environment: our commands first, output unbuffered so that both streams keep their order."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "80",
    }


def _examples(block: Block, names: dict[str, Any], folder: Path, path: Path) -> None:
    """Run a block's examples in the page's namespace; they see the folder as the current one."""
    test = doctest.DocTestParser().get_doctest(block.text, {}, path.name, str(path), block.line)
    test.globs = names
    output: list[str] = []
    with chdir(folder):
        result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=output.append, clear_globs=False)
    assert result.failed == 0, "".join(output)


def rewrite(path: Path) -> None:
    """Put what commands print into a page, where they print something else; what differs from run to run as `...`."""
    page = path.read_text(encoding="utf-8")
    lines = page.splitlines(keepends=True)
    changed: list[tuple[Block, str]] = []

    def report(_: str, block: Block, printed: Printed) -> None:
        own = [(step.command, step.printed if agree(step.printed, got) else masked(got)) for step, got in printed]
        changed.append((block, "".join(f"$ {command}\n{text}" for command, text in own)))

    with tempfile.TemporaryDirectory() as name:
        run(path, reader(Path(name, "reader")), command_folder(Path(name, "bin")), report)
    for block, text in reversed(changed):  # from the end, so that the lines before stay where they are
        lines[block.line : block.line + block.text.count("\n")] = text.splitlines(keepends=True)
    path.write_text("".join(lines), encoding="utf-8")


def masked(printed: str) -> str:
    """Without what differs from run to run: digests, and when rows were recorded; in columns as wide as before.

    >>> masked("at 2026-11-22T18:04:40.352179Z  log 2026-11-22T18:04:40.352179Z")
    'at ...                          log ...'
    """

    def dots(match: re.Match[str]) -> str:
        return "...".ljust(len(match[0])) if match[0].endswith("  ") else "..."

    own = re.sub(r"(?:\b[0-9a-f]{64}|20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)(?:  )?", dots, printed)
    return "".join(f"{line.rstrip()}\n" for line in own.splitlines())


if __name__ == "__main__":
    for page in sys.argv[1:]:
        rewrite(Path(page))
