"""Looking into a log: which events are listed, what is said of each, and one row to its last byte."""

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from msgspec import structs

from forecast_ledger.ledger.model import events, plain_rows
from forecast_ledger.ledger.model.events import TAGS, AnyEvent
from forecast_ledger.ledger.model.log import Recorded, seal
from forecast_ledger.ledger.model.plain_rows import ReadPage
from forecast_ledger.replay.audit.browse import (
    EVENT_LIST_COLUMNS,
    SENTENCE_COLUMNS,
    EventFilter,
    event_fields,
    event_row,
    event_types,
)
from forecast_ledger.replay.cli.main import DAMAGED, FINE, UNREADABLE, USAGE
from tests.ledger.model.test_log import EVENTS
from tests.replay.audit.test_verify import another_number, changed, forged, happened, missing, of_no_known_type
from tests.replay.cli.test_main import run
from tests.support.given import NOW, contest, entry, forecast, opened, resolution, withdrawal
from tests.support.processes import Command
from tests.support.waiting import PATIENCE

SAID = happened(
    opened(),
    opened("wind"),
    contest(pool=100),
    entry(),
    forecast(),
    forecast("wind", participant="bob"),
    withdrawal(),
    resolution(),
)


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A log of eight events, recorded a second apart, the first at 00:00:01 of March 31st."""
    return forged(tmp_path / "log.db", SAID)


def listed(log: str, *options: str) -> list[dict[str, Any]]:
    """The rows of a list."""
    result = run("log", log, "--format", "json", *options)
    assert result.exit_code == FINE, result.stderr
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def positions(log: str, *options: str) -> list[int]:
    """Return the log positions of the events that are listed."""
    return [row["log_position"] for row in listed(log, *options)]


def test_every_event_is_listed_in_the_order_of_the_log(log: str) -> None:
    """Each line has both instants of the event and a short sentence; the checkpoint is on stderr."""
    rows = listed(log)
    assert [list(row) for row in rows] == [EVENT_LIST_COLUMNS] * 8
    assert [row["type"] for row in rows] == [TAGS[type(event)] for event in SAID]
    assert rows[4] == {
        "log_position": 5,
        "recorded_at": "2026-03-31T00:00:05Z",
        "at": "2026-03-11T00:00:00Z",
        "type": "forecast_made.v1",
        "contest": "",
        "question": "rain",
        "participant": "ada",
        "by": "",
        "reason": "",
        "evidence": "",
        "says": "ada on rain: yes 0.7, no 0.3",
    }
    told = run("log", log).stderr.splitlines()
    assert told[0] == "8 events"
    assert told[1] == run("verify", log).stderr.splitlines()[0]


FILTERS: dict[tuple[str, ...], Callable[[dict[str, Any]], bool]] = {
    ("--question", "rain"): lambda row: row["question"] == "rain",
    ("--participant", "bob"): lambda row: row["participant"] == "bob",
    ("--participant", "bob", "--question", "rain"): lambda row: (
        row["participant"] == "bob" and row["question"] == "rain"
    ),
    ("--contest", "cup"): lambda row: row["contest"] == "cup",
    ("--type", "forecast_made", "--question", "wind"): lambda row: row["log_position"] == 6,
    ("--type", "question_resolved"): lambda row: row["log_position"] == 8,
    ("--by", "ada"): lambda _: False,
    ("--question", "rain", "--after", "5"): lambda row: row["question"] == "rain" and row["log_position"] > 5,
}


@pytest.mark.parametrize("options", FILTERS)
def test_a_filter_passes_the_same_events_if_forecasts_are_read_as_columns(
    options: tuple[str, ...], log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows as of the whole list, up to the same checkpoint."""
    every, last = listed(log), run("log", log).stderr.splitlines()[1]
    pages, among = list[Any](), EventFilter.among

    def noted(selection: EventFilter, page: Any) -> Any:
        pages.append(page)
        return among(selection, page)

    monkeypatch.setattr(EventFilter, "among", noted)
    for name, value in (("_ENOUGH", 1), ("_SHARE", 1_000)):
        monkeypatch.setattr(plain_rows, name, value)
    assert listed(log, *options) == [row for row in every if FILTERS[options](row)]
    assert run("log", log, *options).stderr.splitlines()[1] == last
    short = forged(tmp_path / "short.db", SAID[:6])  # its last event is a forecast, which most filters leave out
    assert run("log", short, *options).stderr.splitlines()[1] == run("log", short).stderr.splitlines()[1]
    assert ReadPage in {*map(type, pages)}


def test_the_formats_differ_in_form_alone(log: str) -> None:
    """Table, JSON and CSV."""
    rows = listed(log)
    as_csv = list(csv.DictReader(io.StringIO(run("log", log, "--format", "csv").stdout)))
    assert as_csv == [{name: str(value) for name, value in row.items()} for row in rows]
    as_table = run("log", log).stdout.splitlines()
    assert as_table[0].split() == SENTENCE_COLUMNS
    assert [text.split(maxsplit=4) for text in as_table[1:]] == [
        [str(row[name]) for name in SENTENCE_COLUMNS] for row in rows
    ]


def test_ids_of_events_are_columns(log: str) -> None:
    """JSON and CSV have them; a table prints them if they are asked for; conditions can use them."""
    ids = [(row["contest"], row["question"], row["participant"]) for row in listed(log)]
    assert ids == [
        ("", "rain", ""),
        ("", "wind", ""),
        ("cup", "", ""),
        ("cup", "rain", ""),
        ("", "rain", "ada"),
        ("", "wind", "bob"),
        ("", "rain", "ada"),
        ("", "rain", ""),
    ]
    assert positions(log, "--where", "question=rain", "--where", "participant=ada") == [5, 7]
    assert run("log", log, "--columns", "participant,question", "--where", "type=forecast_made.v1").stdout.split() == [
        *("participant", "question"),
        *("ada", "rain"),
        *("bob", "wind"),
    ]


def test_outcomes_have_their_names_wherever_the_list_begins(log: str) -> None:
    """The names are those of the event that opened the question, even if it is before the first row of the list."""
    says = {row["log_position"]: row["says"] for row in listed(log)}
    assert says[5] == "ada on rain: yes 0.7, no 0.3"
    assert {row["log_position"]: row["says"] for row in listed(log, "--after", "4")} == {
        position: said for position, said in says.items() if position > 4
    }


def test_a_row_shows_the_names_beside_the_numbers(log: str) -> None:
    """The numbers of the event stay as they are recorded; a question that is damaged gives no names."""

    def shown(position: int) -> dict[str, Any]:
        rows = json.loads(run("show", log, str(position), "--format", "json").stdout)
        return {row["field"]: row["value"] for row in rows}

    forecast, answer = shown(5), shown(8)
    assert (forecast["says"], forecast["outcomes"]) == ("ada on rain: yes 0.7, no 0.3", '["yes","no"]')
    assert forecast["event.probabilities"] == "[700000000,300000000]"
    assert (answer["outcome"], answer["event.outcome"]) == ("yes", 0)
    assert "outcome" not in shown(1)
    changed(log, "UPDATE stored_events SET state = ? WHERE originator_version = 1", b'{"question_opened.')
    assert shown(5)["says"] == "ada on rain: 0.7, 0.3"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], [1, 2, 3, 4, 5, 6, 7, 8]),
        (["--type", "forecast_made"], [5, 6]),
        (["--type", "forecast_made.v1", "--type", "contest_opened"], [3, 5, 6]),
        (["--question", "rain"], [1, 4, 5, 7, 8]),
        (["--question", "wind"], [2, 6]),
        (["--question", "rai"], []),
        (["--participant", "ada"], [5, 7]),
        (["--contest", "cup"], [3, 4]),
        (["--contest", "cup", "--question", "rain"], [4]),
        (["--participant", "ada", "--type", "forecast_withdrawn"], [7]),
        (["--after", "5"], [6, 7, 8]),
        (["--after", "8"], []),
        (["--limit", "3"], [1, 2, 3]),
        (["--after", "2", "--limit", "2", "--question", "rain"], [4, 5]),
        (["--from", "2026-03-31T00:00:06Z"], [6, 7, 8]),
        (["--until", "2026-03-31T00:00:03Z"], [1, 2]),
        (["--from", "2026-03-31T01:00:02+01:00", "--until", "2026-03-31T00:00:04Z"], [2, 3]),
        (["--from", "2026-04-01T00:00:00Z"], []),
    ],
)
def test_filters_hold_together(log: str, options: list[str], expected: list[int]) -> None:
    """Ids are whole ids; times are those of the ledger's own clock, from the first on, before the second."""
    assert positions(log, *options) == expected


def test_the_list_speaks_of_the_log_as_far_as_it_was_read(log: str) -> None:
    """The checkpoint is at the limit, at the end of the period, or at the end of the log."""
    told = [
        run("log", log, *options).stderr.splitlines()
        for options in (
            ["--limit", "2"],
            ["--until", "2026-03-31T00:00:04Z"],
            ["--participant", "zoe"],
            ["--after", "8"],
        )
    ]
    assert [(each[0], each[1].split(",")[0]) for each in told] == [
        ("2 events; --limit is reached, and there may be more", "as of log position 2"),
        ("3 events", "as of log position 3"),
        ("0 events", "as of log position 8"),
        ("0 events", "as of log position 8"),
    ]


def test_events_that_name_several_questions_are_found_by_each() -> None:
    """Quotes of several questions; bets on them."""
    quotes = events.PricesQuoted(
        at=NOW, source="feed", quoted_at=NOW, quotes=tuple(events.Quote(question=q, prices=(0, None)) for q in "ab")
    )
    bet = events.Bet(question="b", side="yes", amount=1)
    decided = events.DecisionRecorded(
        at=NOW, contest="week", participant="ada", period=1, attempt=1, action="BET", bets=(bet,), reasoning="So."
    )

    def found(event: AnyEvent) -> list[str]:
        recorded = Recorded(position=1, recorded_at=NOW, command_id="", command="", previous="", event=event)
        return [question for question in "abc" if EventFilter(question=question).includes(recorded)]

    assert (found(quotes), found(decided)) == (["a", "b"], ["b"])


def test_names_are_looked_up_only_for_events_with_numbers_of_outcomes() -> None:
    """Otherwise `show` would read the log from its beginning for any row."""

    def asked(event: AnyEvent) -> list[str]:
        questions: list[str] = []

        def outcomes(question: str) -> tuple[str, ...]:
            questions.append(question)
            return ()

        recorded = Recorded(position=1, recorded_at=NOW, command_id="", command="", previous="", event=event)
        assert list(event_fields(recorded, outcomes))
        return questions

    granted = events.CashGranted(at=NOW, contest="week", participant="ada", amount=1)
    withdrawn = events.ForecastWithdrawn(at=NOW, question="rain", participant="ada")
    answered = events.QuestionResolved(at=NOW, question="rain", outcome=0, known_at=NOW)
    assert (asked(granted), asked(withdrawn), {*asked(answered)}) == ([], [], {"rain"})


UNEVEN = events.StatedPoints(levels=(), quantiles=("0",), method="linear")  # which only a forged row has


@given(EVENTS)
@example(events.ForecastMade(at=0, question="q", participant="p", cdf=(0,), points=UNEVEN))
def test_every_event_there_can_be_says_something(event: AnyEvent) -> None:
    """A sentence has a bounded length if its fields have, whatever numbers a forged log holds."""
    recorded = Recorded(position=1, recorded_at=NOW, command_id="c", command="", previous="", event=event)
    row = event_row(recorded)
    assert isinstance(row["says"], str)
    shown = {each["field"]: each["value"] for each in event_fields(recorded)}
    assert {f"event.{name}" for name in event.__struct_fields__} <= set(shown)


def test_types_are_named_with_or_without_their_version() -> None:
    """Every one of them."""
    for kind, tag in TAGS.items():
        assert event_types([tag]) == event_types([tag.removesuffix(".v1")]) == {kind}
    assert event_types([]) == frozenset()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--type", "forecast"], "there are: question_opened.v1, forecast_made.v1"),
        (["--from", "yesterday"], "bad_instant"),
        (["--until", "2026-03-31T00:00:00"], "naive_instant"),
        (["--after", "9"], "the log ends at position 8"),
        (["--after", "-1"], "--after"),
        (["--limit", "0"], "--limit"),
        (["--after", "9" * 30], "--after"),
    ],
)
def test_wrong_filters_say_what_would_be_right(log: str, options: list[str], says: str) -> None:
    """Exit code 2, nothing on stdout."""
    result = run("log", log, *options)
    assert (result.exit_code, result.stdout, says in result.stderr) == (USAGE, "", True), result.stderr


def test_what_is_no_ledger_is_not_looked_into(tmp_path: Path) -> None:
    """Exit code 3."""
    (tmp_path / "text").write_text("no database" * 100, encoding="utf-8")
    for name in ("none", "text"):
        assert run("log", str(tmp_path / name)).exit_code == UNREADABLE
        assert run("show", str(tmp_path / name), "1").exit_code == UNREADABLE


def test_a_list_stops_at_damage_after_what_came_before(tmp_path: Path) -> None:
    """Exit code 4, and where; after the row that follows it, one can read on."""
    path = another_number(tmp_path / "log.db")
    result = run("log", path)
    assert (result.exit_code, "log position 4" in result.stderr) == (DAMAGED, True)
    assert positions(path, "--after", "5") == [6, 7, 8, 9, 10, 11, 12, 13]


# Lists a log in each format, each time in a copy of a process that has its modules; reads a line, closes the pipe and
# prints the exit code.
def test_a_list_is_printed_as_it_is_read(tmp_path: Path) -> None:
    """A reader who has seen enough closes the pipe, and nothing more is read: neither a traceback nor a failure."""
    path = forged(tmp_path / "log.db", happened(*(opened(f"q{number}") for number in range(1_500))))
    changed(path, "UPDATE stored_events SET state = x'00' WHERE originator_version = 1400")
    for form in ("table", "json", "csv"):
        command = Command("log", path, "--format", form)
        assert command.stdout.readline()
        command.stdout.close()
        assert command.wait(PATIENCE) in {FINE, DAMAGED}
        with command.stderr as stream:
            told = stream.read()
        assert ("Traceback" in told, "Exception" in told) == (False, False)


# --- one row


def stored(log: str, position: int) -> bytes:
    """A row as SQLite has it."""
    with closing(sqlite3.connect(log)) as database:
        query = "SELECT state FROM stored_events WHERE originator_version = ?"
        state: bytes = database.execute(query, [position]).fetchone()[0]
    return state


def test_a_row_is_shown_to_its_last_byte(log: str) -> None:
    """All but the last 77 bytes are what the digest is of, as the guide for auditors has it."""
    for position in range(1, 9):
        raw = run("show", log, str(position), "--raw").stdout_bytes
        assert raw == stored(log, position)
        assert sha256(raw[:-77]).hexdigest() == json.loads(raw)["digest"]


def test_a_row_is_taken_apart(log: str) -> None:
    """The envelope comes first, then the event; instants are RFC 3339, other numbers in the unit of their type."""
    result = run("show", log, "5", "--format", "json")
    shown = {row["field"]: row["value"] for row in json.loads(result.stdout)}
    row = json.loads(stored(log, 5))
    for name in ("command_id", "command", "previous", "digest"):
        assert shown[name] == row[name]
    assert (shown["log_position"], shown["type"]) == (5, row["event"]["type"])
    assert (shown["event.at"], shown["event.probabilities"]) == ("2026-03-11T00:00:00Z", "[700000000,300000000]")
    assert result.stderr == f"as of log position 5, digest {row['digest']}\n"


def test_a_row_says_whether_its_digest_is_of_the_normal_form() -> None:
    """`normal` and `imported` are shown if the row has them, as in its bytes: true, or left out."""
    event = events.ForecastWithdrawn(at=NOW, question="rain", participant="ada")
    recorded = Recorded(position=1, recorded_at=NOW, command_id="c", command="", previous="", event=event)

    def flags(recorded: Recorded) -> dict[str, Any]:
        shown = {row["field"]: row["value"] for row in event_fields(recorded)}
        return {name: value for name, value in shown.items() if name in {"normal", "imported"}}

    assert flags(recorded) == {}
    assert flags(structs.replace(recorded, normal=True)) == {"normal": "true"}
    assert flags(structs.replace(recorded, normal=True, imported=True)) == {"normal": "true", "imported": "true"}


def test_a_damaged_row_is_shown_with_what_is_wrong_with_it(tmp_path: Path) -> None:
    """Exit code 4; its bytes are there for everybody to see."""
    path = another_number(tmp_path / "log.db")
    result = run("show", path, "4")
    assert (result.exit_code, "[600000000,600000000]" in result.stdout) == (DAMAGED, True)
    assert "log position 4: the row's bytes have digest" in result.stderr
    raw = run("show", path, "4", "--raw")
    assert (raw.exit_code, raw.stdout_bytes) == (FINE, stored(path, 4))
    unknown = of_no_known_type(tmp_path / "unknown.db")
    result = run("show", unknown, "4")
    assert (result.exit_code, result.stdout, "this version cannot read the row" in result.stderr) == (
        DAMAGED, "", True,
    )  # fmt: skip
    assert run("show", unknown, "4", "--raw").stdout_bytes == stored(unknown, 4)


def test_a_row_that_follows_another_is_shown_so(tmp_path: Path) -> None:
    """The row is whole, the row before it is not what it follows."""
    path = forged(tmp_path / "log.db", SAID)
    row, _ = seal(Recorded(position=3, recorded_at=NOW, command_id="", command="", previous="0" * 64, event=SAID[2]))
    changed(path, "UPDATE stored_events SET state = ? WHERE originator_version = 3", row)
    result = run("show", path, "3")
    assert (result.exit_code, f"this row follows {'0' * 64}" in result.stderr) == (DAMAGED, True)


def test_a_row_that_is_not_there_is_not_shown(tmp_path: Path, log: str) -> None:
    """Beyond the end it is wrong usage; in a gap, damage."""
    assert run("show", log, "9").exit_code == USAGE
    assert run("show", log, "0").exit_code == USAGE
    assert run("show", log, "9" * 30).exit_code == USAGE
    gap = missing(tmp_path / "gap.db")
    result = run("show", gap, "4", "--raw")
    assert (result.exit_code, result.stdout, "the next one is 5" in result.stderr) == (DAMAGED, "", True)


def test_rows_are_printed_whole(log: str) -> None:
    """One JSON object a line, in ASCII: the fields of the row, its event as `to_json` has it; filters hold."""
    done = run("log", log, "--rows", "--type", "forecast_made", "--limit", "1")
    assert done.exit_code == FINE
    [line] = done.stdout.splitlines()
    row = json.loads(line)
    assert line.isascii()
    assert (row["event"]["type"], row["event"]["probabilities"]) == ("forecast_made.v1", ["0.7", "0.3"])
    assert row["recorded_at"].endswith("Z")
    assert {"position", "digest", "command_id", "previous"} - row.keys() == set()
    assert run("log", log, "--rows", "--format", "json").exit_code == USAGE
