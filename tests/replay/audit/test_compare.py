"""Two logs side by side: where they part, what each has there, and what that changes."""

import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.tables.catalogue import BUILT
from forecast_ledger.replay.audit.compare import (
    COMPARISON_COLUMNS,
    ComparedLog,
    _first_difference,
    compare_logs,
    parse_log,
)
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.reading.replay import replay
from tests.replay.audit.test_verify import another_number, forged, happened, kept
from tests.replay.cli.test_main import run
from tests.support.effort import LONG
from tests.support.exports import FORMS, exported
from tests.support.forging import enveloped
from tests.support.given import NOW, contest, entry, forecast, opened, resolution

SAID: list[AnyCommand] = [
    opened(),
    contest(rules="baseline"),
    entry(),
    forecast(),
    forecast(participant="bob", probability="0.2"),
    resolution(),
]
ANOTHER = [*SAID[:4], forecast(participant="bob", probability="0.3"), *SAID[5:]]


@pytest.fixture
def one(tmp_path: Path) -> str:
    """A log of six events."""
    return forged(tmp_path / "one.db", happened(*SAID))


@pytest.fixture
def other(tmp_path: Path) -> str:
    """A log in which Bob said something else, in the fifth."""
    return forged(tmp_path / "other.db", happened(*ANOTHER))


def test_a_log_is_the_same_as_a_copy_of_it(tmp_path: Path, one: str) -> None:
    """Exit code 0; every projection is there once, with its digest on both sides."""
    copy = forged(tmp_path / "copy.db", happened(*SAID))
    result = run("replay", one, "--compare", copy, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert result.exit_code == FINE
    assert [(row["projection"], row["same"]) for row in rows] == [(name, "yes") for name in BUILT]
    assert all(row["digest"] == row["other_digest"] and row["rows"] == row["other_rows"] for row in rows)
    plain = json.loads(run("replay", one, "--format", "json").stdout)
    assert [row["digest"] for row in rows] == [row["digest"] for row in plain]
    head = replay(one).checkpoint
    assert result.stderr.splitlines() == [
        "the logs are the same",
        "projections that differ: none",
        f"as of log position 6, digest {head.digest}",
        f"compared with {copy} as of log position 6, digest {head.digest}",
    ]


def test_two_logs_part_at_the_first_row_that_differs(one: str, other: str) -> None:
    """The report has the event of each there, and names only the projections that differ."""
    result = run("replay", one, "--compare", other, "--format", "json")
    assert result.exit_code == FINDINGS
    rows = json.loads(result.stdout)
    assert [list(row) for row in rows] == [COMPARISON_COLUMNS] * len(BUILT)
    ours, theirs = ({name: replay(log).projections.table(name).digest() for name in BUILT} for log in (one, other))
    assert {row["projection"]: (row["digest"], row["other_digest"]) for row in rows} == {
        name: (ours[name], theirs[name]) for name in BUILT
    }
    apart = [name for name in BUILT if ours[name] != theirs[name]]
    assert [row["projection"] for row in rows if row["same"] == "no"] == apart
    assert {"consensus", "scores", "leaderboard"} <= set(apart) < set(BUILT)
    told = result.stderr.splitlines()
    assert told[0] == "the logs first differ at log position 5, in command, event.probabilities"
    assert told[1] == (
        f"{one}: recorded at 2026-03-31T00:00:05Z, at 2026-03-11T00:00:00Z, forecast_made.v1: "
        "bob on rain: yes 0.2, no 0.8"
    )
    assert told[2].endswith("forecast_made.v1: bob on rain: yes 0.3, no 0.7")
    assert told[3] == f"projections that differ: {', '.join(apart)}"


def test_one_log_may_be_the_beginning_of_the_other(tmp_path: Path, one: str) -> None:
    """Either of the two; also the empty log; also of itself."""
    short = forged(tmp_path / "short.db", happened(*SAID[:4]))
    for arguments in ((one, short), (short, one)):
        told = run("replay", arguments[0], "--compare", arguments[1])
        assert told.exit_code == FINDINGS
        lines = told.stderr.splitlines()
        assert lines[0] == f"{short} is the beginning of {one}, which continues at log position 5"
        assert lines[1].startswith(f"{one}: recorded at 2026-03-31T00:00:05Z")
    itself = run("replay", one, "--compare", f"{one}@2")
    assert itself.stderr.splitlines()[0] == f"{one}@2 is the beginning of {one}, which continues at log position 3"
    from_nothing = compare_logs(ComparedLog(one), ComparedLog(one, as_of=0)).first_difference
    assert from_nothing
    assert (from_nothing.position, from_nothing.other) == (1, None)


def test_a_cut_holds_for_both_unless_one_has_its_own(one: str, other: str) -> None:
    """Up to the fourth event the two are the same."""
    assert run("replay", one, "--compare", other, "--as-of", "4").exit_code == FINE
    assert run("replay", one, "--compare", f"{other}@4", "--as-of", "4").exit_code == FINE
    assert run("replay", f"{one}@4", "--compare", other).exit_code == UNREADABLE  # a cut of LOG is --as-of
    assert run("replay", one, "--compare", f"{other}@4").exit_code == FINDINGS
    assert run("replay", one, "--compare", other, "--as-of", "2026-03-31T00:00:04Z").exit_code == FINE
    for wrong in (["--as-of", "7"], ["--as-of", "noon"]):
        assert run("replay", one, "--compare", other, *wrong).exit_code == USAGE
    beyond = run("replay", one, "--compare", f"{other}@7")
    assert (beyond.exit_code, "the log ends at position 6" in beyond.stderr) == (USAGE, True)


def rows(happened: list[Recorded]) -> list[bytes]:
    """The rows of these events."""
    return [log.seal(recorded)[0] for recorded in happened]


@pytest.mark.parametrize("exported", [False, True], ids=["rows", "export"])
def test_the_other_may_be_a_file_of_rows(tmp_path: Path, one: str, exported: bool) -> None:
    """One row a line as it stands, or as the text of a field `row` beside others; also as of a position of it."""
    lines = run_rows(one)
    path = tmp_path / "events.jsonl"
    written = [json.dumps({"position": 1, "row": row.decode()}).encode() if exported else row for row in lines]
    path.write_bytes(b"\n".join(written) + b"\n\n")
    assert run("replay", one, "--compare", str(path)).exit_code == FINE
    assert run("replay", one, "--compare", f"{path}@3").stderr.startswith(f"{path}@3 is the beginning of {one}, ")
    path.write_bytes(b"\n".join(written[:2]))
    assert run("replay", one, "--compare", str(path)).stderr.startswith(f"{path} is the beginning of {one}, ")
    path.write_bytes(b"\n".join([written[0], *written[2:]]))
    result = run("replay", one, "--compare", str(path))
    assert (result.exit_code, f"log position 2: {path}: " in result.stderr) == (DAMAGED, True)


@pytest.mark.parametrize("form", FORMS)
def test_either_may_be_an_export(tmp_path: Path, one: str, other: str, form: str) -> None:
    """An export in any format can be compared, also as of a position; its projections are rebuilt from its events.

    Each format is first, second or both; in a long run, all of these.
    """
    out = str(tmp_path / f"out.{form}")
    exported(one, Path(out), form, tables=["scores"])
    pairs, turn = [(one, out), (out, one), (out, out)], FORMS.index(form) % 3
    for pair in pairs if LONG > 1 else pairs[turn : turn + 1]:
        result = run("replay", pair[0], "--compare", pair[1], "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        assert (result.exit_code, [row["same"] for row in rows]) == (FINE, ["yes"] * len(BUILT)), result.stderr
    part = run("replay", one, "--compare", f"{out}@3")
    assert (part.exit_code, part.stderr.startswith(f"{out}@3 is the beginning of {one}, ")) == (FINDINGS, True)
    apart = run("replay", out, "--compare", other)
    assert apart.stderr.startswith("the logs first differ at log position 5, in command, event.probabilities\n")
    assert run("replay", one, "--compare", f"{out}@7").exit_code == USAGE


def test_an_export_that_has_lost_its_end_is_no_beginning_of_the_log(tmp_path: Path, one: str) -> None:
    """The manifest states how many events the export had."""
    out = tmp_path / "out"
    exported(one, out, "jsonl")
    lines = (out / "events.jsonl").read_bytes().splitlines(keepends=True)
    (out / "events.jsonl").write_bytes(b"".join(lines[:-1]))
    result = run("replay", one, "--compare", str(out))
    assert result.exit_code == UNREADABLE
    assert result.stderr == f"forecast-ledger: {out}: not a complete export: it has 5 events of 6\n"
    (out / "manifest.json").unlink()
    assert "not a complete export" in run("replay", one, "--compare", str(out)).stderr


def run_rows(path: str) -> list[bytes]:
    """The rows of a log as `show --raw` has them."""
    return [run("show", path, str(position), "--raw").stdout_bytes for position in range(1, 7)]


@pytest.mark.parametrize(
    "text", [b"{", b'{"row": 1}', b'{"row": "\\ud800"}', b'{"a":' * 100_000, b'{"row": ""}', b"{}\n{}"]
)
def test_a_file_that_holds_other_lines_is_damaged(tmp_path: Path, one: str, text: bytes) -> None:
    """The damage is at its first line; an empty file, or one without JSON, is not a log."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(text)
    result = run("replay", one, "--compare", str(path))
    assert (result.exit_code, f"log position 1: {path}: " in result.stderr) == (DAMAGED, True), result.stderr
    for content in (b"", b"no JSON" * 100):
        path.write_bytes(content)
        assert run("replay", one, "--compare", str(path)).exit_code in {UNREADABLE, FINDINGS}
    assert run("replay", one, "--compare", str(tmp_path / "none")).exit_code == UNREADABLE
    assert run("replay", one, "--compare", str(tmp_path)).exit_code == UNREADABLE


def test_damage_says_in_which_of_the_two(tmp_path: Path, one: str) -> None:
    """The message names the log and the position in it."""
    broken = another_number(tmp_path / "broken.db")
    for arguments in ((one, broken), (broken, one)):
        result = run("replay", arguments[0], "--compare", arguments[1])
        assert (result.exit_code, result.stdout) == (DAMAGED, "")
        assert f"log position 4: {broken}: the row's bytes have digest" in result.stderr


def test_logs_may_differ_in_when_and_by_what_an_event_was_recorded(tmp_path: Path, one: str) -> None:
    """The events are the same, so every projection that shows no recorded time and no digest is; the logs are not."""
    later = enveloped(happened(*SAID), NOW, 1)
    path = tmp_path / "later.db"
    kept(path, [(place, "any", row) for place, row in enumerate(rows(later), 1)])
    found = compare_logs(ComparedLog(one), ComparedLog(str(path)))
    assert found.first_difference
    assert (found.first_difference.position, found.first_difference.fields(), found.apart()) == (1, ["recorded_at"], [])
    command = structs.replace(later[0], command_id="x", command="y")
    assert found.first_difference._replace(one=later[0], other=command).fields() == ["command_id", "command"]
    assert found.first_difference._replace(one=later[0], other=later[1]).fields() == [
        "recorded_at",
        "command_id",
        "command",
        "type",
    ]


@given(st.integers(0, 6), st.integers(0, 6))
def test_the_place_is_that_of_the_slow_definition(first: int, second: int) -> None:
    """Every pair of prefixes of two histories: the first index at which the lists are not the same."""
    ours, theirs = enveloped(happened(*SAID), NOW, 1)[:first], enveloped(happened(*ANOTHER), NOW, 1)[:second]
    ours, theirs = ([structs.replace(each, digest=log.seal(each)[1]) for each in log_] for log_ in (ours, theirs))
    same = [a == b for a, b in zip(ours, theirs, strict=False)]
    slow = same.index(False) + 1 if False in same else min(first, second) + 1 if first != second else None
    found = _first_difference(iter(ours), iter(theirs))
    assert (found and found.position) == slow
    assert all(after.previous == before.digest for before, after in pairwise(ours))


def test_a_position_is_what_follows_the_last_at_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless there is a file of that whole name, or it is no number."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b@7").touch()
    assert parse_log("a@7") == ComparedLog("a", "main", 7)
    assert parse_log("b@7", as_of=3) == ComparedLog("b@7", "main", 3)
    assert parse_log("postgresql://ada@db/log@7") == ComparedLog("postgresql://ada@db/log", "main", 7)
    assert parse_log("postgresql://ada@db/log", "n") == ComparedLog("postgresql://ada@db/log", "n", None)
    for text in ("a@", "@7", "a@-1", "a@x", "a@٣", "a@" + "9" * 19):
        assert parse_log(text) == ComparedLog(text, "main", None)
    with pytest.raises(Refused):
        compare_logs(ComparedLog("a", as_of="noon"), ComparedLog("b"))
    assert str(ComparedLog("postgresql://ada:secret@db/log", as_of=7)) == "postgresql://ada:…@db/log@7"
