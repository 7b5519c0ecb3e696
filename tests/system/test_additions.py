"""A new command and its event change four files, and the checks name each missing part."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from forecast_ledger.ledger.auditing import rebuild
from forecast_ledger.ledger.core.values import Instant, Number
from forecast_ledger.ledger.deciding import decider, questions
from forecast_ledger.ledger.model import canonical, canonical_fields, commands, events
from forecast_ledger.ledger.model.commands import AnyCommand, Command
from forecast_ledger.ledger.model.provenance import NAMES
from tests.support.copies import command_line, copied, edit
from tests.support.paths import ROOT
from tests.system import test_architecture

ROOMS = decider._ROOMS


@pytest.mark.parametrize("kind", get_args(AnyCommand), ids=lambda kind: kind.__name__)
def test_every_command_is_decided_in_one_room_and_rebuilt(kind: type[Command]) -> None:
    """A command has a docstring, a row in the table DECIDE of one room, and a function that rebuilds it."""
    assert kind.__doc__
    assert len([room.__name__ for room in ROOMS if kind in room.DECIDE]) == 1, "needs a row in one room's DECIDE"
    sources = inspect.getsource(rebuild)
    assert f"commands.{kind.__name__}" in sources, "needs a function in rebuild that gives it"


@pytest.mark.parametrize("kind", events.TAGS, ids=lambda kind: kind.__name__)
def test_every_event_changes_the_state_in_one_room(kind: type[events.Event]) -> None:
    """An event has a docstring, a tag with its version, and a row in the table EVOLVE of one room."""
    assert kind.__doc__
    name, _, version = events.TAGS[kind].rpartition(".v")
    assert name.isidentifier()
    assert version.isdecimal()
    assert len([room.__name__ for room in ROOMS if kind in room.EVOLVE]) == 1, "needs a row in one room's EVOLVE"


def test_the_decider_has_the_rows_of_all_rooms() -> None:
    """The decider's tables have every row of the rooms' tables."""
    assert decider._DECIDE.keys() == {*get_args(AnyCommand)}
    assert decider._EVOLVE.keys() == events.TAGS.keys()


class Noted(Command, frozen=True, kw_only=True, tag="noted"):
    """A command with fields that no other has."""

    seen_at: Instant
    heard_at: Instant | None = None
    note: str = ""
    share: Number
    shares: tuple[Number, ...] | None = None
    by_name: dict[str, Number] | None = None
    loud: bool = False


def test_new_fields_are_converted_by_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """They follow the fields converted by name, in the order of their declaration; equal numbers give equal bytes."""
    monkeypatch.setitem(canonical_fields.FIELDS, Noted, canonical_fields._fields_of(Noted))
    at, seen = "2026-03-01T01:00:00+01:00", "2026-03-01T02:00:00+01:00"
    one = Noted(at=at, seen_at=seen, share="0.50", note="n", shares=("1.0", "1e1"), by_name={"ada": 2.0})
    same = Noted(at=at, seen_at="2026-03-01T01:00:00Z", share=0.5, note="n", shares=(1, 10), by_name={"ada": "2"})
    other = Noted(at=at, seen_at=seen, share="0.51", note="n", shares=("1.0", "1e1"), by_name={"ada": 2.0})
    assert canonical.canonical_content(one) == canonical.canonical_content(same) != canonical.canonical_content(other)  # type: ignore[arg-type]
    own = [name for name in Noted.__struct_fields__ if name not in {"id", "at", *NAMES}]
    assert [name for name, *_ in canonical_fields.FIELDS[Noted][1]] == ["at", *own, *NAMES]


class Odd(Command, frozen=True, kw_only=True, tag="odd"):
    """A command with a field whose type has no conversion."""

    things: list[bytes]


def test_a_field_without_a_conversion_is_named() -> None:
    """Otherwise, the digest of the command would not cover it."""
    with pytest.raises(TypeError, match=r"Odd\.things: add the field to _BY_NAME"):
        canonical_fields._fields_of(Odd)


# What a new command adds to each of four files: what stands before the insertion, and the insertion.
ADDED = {
    commands: [
        (
            "AnyCommand = (\n",
            '''class PostponeQuestion(Command, frozen=True, kw_only=True, tag="postpone_question"):
    """Announces that a question will be answered later."""

    question: str
    expected_at: Instant
    because: str
    likely: Probability | None = None


''',
            "    PostponeQuestion\n    | ",
        )
    ],
    events: [
        (
            "AnyEvent = (\n",
            '''class QuestionPostponed(Event, frozen=True, kw_only=True, tag="question_postponed.v1"):
    """The answer will come later; likely: 1e-9."""

    question: str
    expected_at: int
    because: str
    likely: int | None = None


''',
            "    QuestionPostponed\n    | ",
        )
    ],
    questions: [
        (
            "DECIDE: dict[type, Decide] = {\n",
            '''def postpone_question(command: commands.PostponeQuestion, state: State) -> events.QuestionPostponed:
    """Refuses, first that applies: out_of_range, unknown_question."""
    likely = None if command.likely is None else values.read_probability(command.likely, "likely")
    state.question(command.question)
    return events.QuestionPostponed(
        at=values.read_instant(command.at),
        question=command.question,
        expected_at=values.read_instant(command.expected_at),
        because=command.because,
        likely=likely,
    )


def question_postponed(event: events.QuestionPostponed, state: State, _: int) -> tuple[Write, ...]:
    """Nothing that a decision depends on."""
    state.questions[event.question]
    return ()


''',
            "    commands.PostponeQuestion: postpone_question,\n",
        ),
        ("EVOLVE: dict[type, Evolve] = {\n", "", "    events.QuestionPostponed: question_postponed,\n"),
    ],
    rebuild: [
        (
            "REBUILDERS: dict[type, Rebuilder] = {\n",
            "",
            "    events.QuestionPostponed: copies(commands.PostponeQuestion, likely=PROBABILITY),\n",
        )
    ],
}
DAY = "2026-03-01T00:00:00Z"
LINES: list[dict[str, object]] = [
    {
        "id": "c1",
        "type": "open_question",
        "at": DAY,
        "question": "rain",
        "kind": "binary",
        "opens_at": DAY,
        "closes_at": "2026-03-08T00:00:00Z",
    },
    {
        "id": "c2",
        "type": "postpone_question",
        "at": DAY,
        "question": "rain",
        "expected_at": "2026-04-01T02:00:00+02:00",
        "because": "no gauge",
        "likely": 0.75,
    },
    {"id": "c3", "type": "submit_forecast", "at": DAY, "question": "rain", "participant": "ada", "probability": 0.7},
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source in which four files have a command more."""
    folder = copied(tmp_path_factory.mktemp("copy"))
    assert len(ADDED) == 4
    for module, insertions in ADDED.items():
        for table, definitions, row in insertions:
            edit(folder, module, table, definitions + table + row)
    (folder / "lines.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return folder


def test_a_command_with_its_event_is_four_files(copy: Path) -> None:
    """It is recorded, sent again without effect, read back, listed in words, verified and exported."""
    log = str(copy / "log.db")
    retold = copy / "again.jsonl"
    retold.write_text(json.dumps(LINES[1] | {"likely": "0.750", "expected_at": "2026-04-01T00:00:00Z"}) + "\n")
    with command_line(copy) as run:
        run("append", log, "lines.jsonl")
        [again] = json.loads(run("append", log, "again.jsonl", "--format", "json"))
        assert (again["accepted"], again["duplicate"]) == (0, 1)
        listed = json.loads(run("log", log, "--type", "question_postponed", "--format", "json"))
        assert [each["says"] for each in listed] == [
            "question='rain' expected_at=2026-04-01T00:00:00Z because='no gauge' likely=750000000"
        ]
        assert "question_postponed" in run("show", log, "2")
        assert "damage" not in run("verify", log).lower()
        run("export", log, str(copy / "out"), "--format", "csv")
        assert "question_postponed.v1" in (copy / "out" / "events.csv").read_text("utf-8")


def test_there_is_room_for_a_command(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file or function is too long with it."""
    package = copy / "forecast_ledger"
    changed = [copy.joinpath(*module.__name__.split(".")).with_suffix(".py") for module in ADDED]
    monkeypatch.setattr(test_architecture, "ROOT", package)
    monkeypatch.setattr(test_architecture, "SOURCES", changed)
    test_architecture.test_files_and_functions_stay_small()


def test_the_kinds_of_facts_ask_for_the_event_of_a_command(copy: Path) -> None:
    """A test names an event that no table reads."""
    for name in ("ledger", "projections", "replay"):
        (copy / name).symlink_to(copy / "forecast_ledger" / name)
    (copy / "tests").symlink_to(ROOT / "tests")
    checks = ["-k", "test_every_event_but", "tests/projections/tables/test_schemas.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *checks]
    said = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False).stdout
    assert re.findall("(?m)^FAILED .*::(test_every_event)|(1 failed)", said) == [
        ("test_every_event", ""),
        ("", "1 failed"),
    ], said
    assert "QuestionPostponed" in said
