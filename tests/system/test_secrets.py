"""Passwords and tokens in locations are printed nowhere: not in messages, tables, files, or errors of the library."""

import pickle
import traceback
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import forecast_ledger as door
from forecast_ledger.ledger.core.errors import Corrupt, LedgerError, Unavailable, Uncertain
from forecast_ledger.ledger.core.redaction import redacted, redacted_text
from forecast_ledger.replay.cli.main import main
from tests.support.effort import LONG
from tests.support.logs import commands_of, written
from tests.support.menu import loaded

SECRET = "hunter2"  # noqa: S105 - it is what must not be seen
LOCATIONS = [
    f"postgresql://ada@127.0.0.1:1/d?password={SECRET}",
    f"postgresql://ada:x@127.0.0.1:1/d?sslmode=require&sslpassword={SECRET}",
    f"postgresql://ada:{SECRET}/x@@127.0.0.1:1/d/e",
    f"postgresql://ada:x@{SECRET}%2F,y@127.0.0.1:1/d",
    f"postgres://127.0.0.1:1/d?options=-c%20a={SECRET}#b",
    f"s3://bucket/season?token={SECRET}",
    f"s3://key:{SECRET}@bucket/season",
    f"memory://bucket/none?X-Amz-Signature={SECRET}",
    f"https://example.invalid/segments?a=b;sig={SECRET}",
    f"https://ada:{SECRET}@example.invalid/segments#x",
    f"file:///no/such/folder?password={SECRET}",
    f"sqlite:///no/such/file.db?key={SECRET}",
    f"mysql://ada:{SECRET}@host/x?password={SECRET}",
    f"s3:/bucket/season?token={SECRET}",
    f"no/such/host=127.0.0.1 user=ada password='{SECRET} {SECRET}' dbname=x",
]
GIVEN = {  # a value for each argument that a command needs, apart from the one that is a location with a secret
    "log": "season.db",
    "contest": "spring-cup",
    "projection": "scores",
    "file": "commands.jsonl",
    "claimed": "claimed.csv",
    "table": "leaderboard",
    "position": "1",
    "old": "1",
    "new": "2",
    "key": "score",
    "out": "out.html",
    "exported": "export",
    "readmodel": "tables.db",
    "path": "hub",
    "kind": "hubverse",
    "shell": "bash",
    "what": "board",
    "topic": "commands",
}
TEXTS = ["log", "segments", "compare", "readmodel", "exported", "rules", "as_of", "key", "model", "contest"]


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    """Every parameter that takes a location or a file, and those texts that an error message repeats."""
    for name, command in loaded().items():
        for parameter in command.params:
            if isinstance(parameter.type, click.Path | click.File) or (
                parameter.name in TEXTS and not isinstance(parameter.type, click.Choice)
            ):
                yield name, parameter


def arguments(command: click.Command, chosen: click.Parameter, location: str) -> list[str]:
    """The arguments of a command, with a location in one of them."""
    words = []
    for parameter in command.params:
        value = location if parameter is chosen else GIVEN.get(str(parameter.name), "x")
        if isinstance(parameter.type, click.Choice) and parameter is not chosen:
            value = str(parameter.type.choices[0])
        if isinstance(parameter, click.Argument) and (parameter.required or parameter is chosen):
            words.append(value)
        elif parameter.required or parameter is chosen:
            words += [parameter.opts[0], value]
    return words


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a log and files of commands."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "season.db", commands_of("metaculus-2022")[:6])
    (tmp_path / "commands.jsonl").write_bytes(b"")
    (tmp_path / "claimed.csv").write_bytes(b"participant,rank\n")
    return tmp_path


@pytest.mark.parametrize("location", LOCATIONS)
def test_no_command_prints_the_secret_of_a_location(folder: Path, location: str) -> None:
    """Given as any argument or option, it is in no output, error, traceback, or file that a command writes.

    In a short run, as every fourth of them, so that each is given three locations or more.
    """
    tried, every = 0, 1 if LONG > 1 else 4
    for name, parameter in [*parameters()][LOCATIONS.index(location) % every :: every]:
        done = CliRunner().invoke(main, [name, *arguments(loaded()[name], parameter, location)])
        assert isinstance(done.exception, SystemExit | None), (name, parameter.name, done.exception)  # no traceback
        assert SECRET not in done.stdout + done.stderr, (name, parameter.name, done.stderr)
        tried += 1
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert tried > 60 // every, "the parameters of every command"


CALLS: dict[str, Any] = {
    "open": lambda location, _: door.open(location),
    "open segments": lambda location, folder: door.open(folder / "season.db", segments=location),
    "replay": lambda location, _: door.replay(location),
    "replay segments": lambda location, folder: door.replay(folder / "season.db", segments=location),
    "verify": lambda location, _: door.verify(location),
    "seal": lambda location, folder: door.seal(location, folder / "segments"),
    "seal into": lambda location, folder: door.seal(folder / "season.db", location),
    "export": lambda location, folder: door.export(location, folder / "out"),
    "restore": lambda location, folder: door.restore(location, folder / "copy.db"),
    "restore into": lambda location, folder: door.restore(folder, location),
    "report": lambda location, folder: door.report(location, folder / "out.html"),
    "audit": lambda location, folder: door.audit(location, folder / "out.md"),
    "WithSegments": lambda location, folder: door.replay(door.WithSegments(folder / "season.db", location)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_error_of_the_library_repeats_the_secret_of_a_location(folder: Path, call: Any) -> None:
    """Its text, its JSON, its traceback with all causes, and itself as printed in a debugger."""
    for location in (each for each in LOCATIONS if not each.startswith("no/")):
        try:
            call(location, folder)
        except (LedgerError, OSError, ValueError) as error:
            parts = chain(traceback.format_exception(error), [repr(error), str(error)])
            told = "".join(parts) + (error.as_json() if isinstance(error, LedgerError) else "")
            assert SECRET not in "\n".join(line for line in told.splitlines() if not line.startswith("    "))


def test_the_paper_of_a_log_names_it_without_its_secret(folder: Path) -> None:
    """Its title and the command that makes it again would name a database on a server with its password."""
    (folder / "s3:").mkdir()
    (folder / "season.db").rename(folder / f"s3:/season.db?token={SECRET}")
    for ending in (".md", ".html"):
        found = door.audit(f"./s3:/season.db?token={SECRET}", folder / f"out{ending}")
        assert found.paper.title == "Working paper: season.db?…"
        assert SECRET not in (folder / f"out{ending}").read_text()
    door.report(f"./s3:/season.db?token={SECRET}", folder / "report.html")
    assert SECRET not in (folder / "report.html").read_text()


@pytest.mark.parametrize("kind", [Unavailable, Uncertain, lambda text: Corrupt(1, text)])
def test_an_error_keeps_no_secret_that_its_text_had(kind: Any) -> None:
    """A driver's message may hold the URL; the error that carries it, sent to another process, does not."""
    error = kind(f"connection to postgresql://ada:{SECRET}@h/d?sslpassword={SECRET}: password={SECRET} was refused")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert str(again) == str(error)
    assert SECRET not in repr(again) + str(again) + again.as_json()
    assert "postgresql://ada:…@h/d?…: password=… was refused" in str(again)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("postgresql://ada:pw@h:5432/d", "postgresql://ada:…@h:5432/d"),
        ("postgresql://ada@h/d", "postgresql://ada@h/d"),
        ("postgresql://h/d?sslmode=verify-full&connect_timeout=3", "postgresql://h/d?sslmode=verify-full&connect_timeout=3"),
        ("postgresql://h/d?sslmode=a:b@c", "postgresql://h/d?…"),
        ("postgresql://h/d?SSLMODE=require", "postgresql://h/d?…"),
        ("s3://b/k?versionId", "s3://b/k?…"),
        ("s3://b/k?", "s3://b/k?…"),
        ("s3://b/k#frag", "s3://b/k#…"),
        ("host=h password = 'a b\\' c' dbname=d", "host=h password = … dbname=d"),
        ("AWS_SECRET_ACCESS_KEY=abc", "AWS_SECRET_ACCESS_KEY=…"),
        ("C:/what?.db", "C:/what?.db"),
        ("seasons/spring.db", "seasons/spring.db"),
        (":memory:", ":memory:"),
    ],
)  # fmt: skip
def test_what_is_known_to_be_harmless_stays(location: str, shown: str) -> None:
    """The user, the host, the database and a few parameters help whoever reads a message; a path is never changed."""
    assert redacted(location) == shown
    assert redacted(shown) == shown


def test_a_sentence_keeps_its_words_around_a_location() -> None:
    """A location ends at a blank or a quotation mark; the sign that ends the sentence is not a part of it."""
    told = "try 'https://h/a?b=c', or s3://x?y; max_tokens=3 stay"
    assert redacted_text(told) == "try 'https://h/a?…', or s3://x?…; max_tokens=3 stay"
