"""An export as SQLite: keys, references, views, search, twins, and what datasette shows."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.core.columns import DECIMALS
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.files.export import default_tables
from forecast_ledger.replay.files.sqlite_export import VIEWS
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.support import oracle
from tests.support.effort import times
from tests.support.exports import EVERYTHING, TITLES, exported
from tests.support.given import choices, contest, day, entry, forecast, opened, removal, resolution, withdrawal
from tests.support.logs import written

Db = sqlite3.Connection


@pytest.fixture(scope="module")
def out(log: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything in one file."""
    path = tmp_path_factory.mktemp("out") / "season.sqlite"
    exported(log, path, "sqlite", tables=EVERYTHING)
    return path


@pytest.fixture
def db(out: Path) -> Iterator[Db]:
    """The file, opened."""
    with closing(sqlite3.connect(out)) as found:
        found.row_factory = sqlite3.Row
        yield found


def asked(db: Db, query: str, *values: Any) -> list[dict[str, Any]]:
    """The rows of an answer."""
    return [dict(row) for row in db.execute(query, values)]


def all_of(db: Db, name: str) -> list[dict[str, Any]]:
    """The rows of a table or view."""
    return asked(db, f'SELECT * FROM "{name}"')  # noqa: S608 - a name of ours


@pytest.fixture(scope="module")
def season(log: str) -> Replay:
    """A replay of the log."""
    return replay(log)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_table_holds_what_is_printed(season: Replay, db: Db, name: str) -> None:
    """Decimals and whole numbers of any size as text, counts as integers, instants with six decimals always."""
    kinds = {column.name: column.kind for column in CATALOGUE[name].columns}
    for ours, theirs in zip(season.table(name).rows(), all_of(db, name), strict=True):
        for column, value in ours.items():
            other = theirs[column]
            if kinds[column] == "instant" and value is not None:
                assert (len(other), other[:19], float(other[19:-1])) == (27, value[:19], float(value[19:-1] or 0))
            else:
                assert other == (value or None if kinds[column] == "id" and other is None else value)
            if kinds[column] in {*DECIMALS, "take"}:
                assert theirs[f"{column}_real"] == (None if value is None else float(Decimal(value)))


def test_keys_are_those_of_the_projections(db: Db) -> None:
    """The columns that name a row are the primary key."""
    for name in CATALOGUE:
        columns = sorted(asked(db, f"PRAGMA table_info('{name}')"), key=lambda column: column["pk"])
        assert tuple(column["name"] for column in columns if column["pk"]) == CATALOGUE[name].key


def test_every_reference_leads_somewhere(db: Db) -> None:
    """Every contest, question, participant and log position refers to a row that exists in its table."""
    assert asked(db, "PRAGMA foreign_key_check") == []
    assert asked(db, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    refers = {row["from"]: row["table"] for row in asked(db, "PRAGMA foreign_key_list('cash')")}
    assert refers == {
        "contest": "contests",
        "question": "questions",
        "participant": "participants",
        "log_position": "events",
    }
    indexed = {row["name"] for row in asked(db, "PRAGMA index_list('cash')")}
    assert {"idx_cash_participant", "idx_cash_question", "idx_cash_log_position"} <= indexed


def test_events_are_joined_by_their_ids(log: str, db: Db) -> None:
    """The ids of an event are columns with an index, NULL where it has none, and lead to rows of their tables."""
    rows = asked(db, "SELECT * FROM events")
    for name in ("contest", "question", "participant"):
        assert {row[name] for row in rows} <= {None, *(row[name] for row in all_of(db, f"{name}s"))}
        assert [row[name] for row in rows] == [json.loads(row["event"]).get(name) for row in rows]
        assert f"idx_events_{name}" in {row["name"] for row in asked(db, "PRAGMA index_list('events')")}
    joined = "SELECT position FROM events JOIN questions USING (question) WHERE type = 'forecast_made.v1' ORDER BY 1"
    forecasts = [row["log_position"] for row in replay(log).table("standing").rows()]
    assert {*forecasts} <= {row["position"] for row in asked(db, joined)}


@settings(max_examples=times(20), deadline=None)
@given(oracle.logs())
def test_references_hold_in_random_logs(tmp_path_factory: pytest.TempPathFactory, said: list[AnyCommand]) -> None:
    """Everybody who was enrolled, excluded or scored is a participant, the consensus too."""
    base = tmp_path_factory.mktemp("random")
    written(base / "log.db", said, refused=True)
    exported(str(base / "log.db"), base / "out.db", "sqlite")
    with closing(sqlite3.connect(base / "out.db")) as db:
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_current_leaderboard_is_whoever_is_ranked(log: str, db: Db) -> None:
    """Contest after contest, best first, with the contest's title."""
    board = [row for row in replay(log).table("leaderboard").rows() if row["rank"] is not None]
    ours = [(row["contest"], row["rank"], row["participant"], row["prize"]) for row in board]
    theirs = asked(db, "SELECT * FROM current_leaderboard")
    found = [(row["contest"], row["rank"], row["participant"], row["prize"]) for row in theirs]
    assert sorted(found) == sorted(ours)
    assert [row[:2] for row in found] == sorted(row[:2] for row in found)


def test_the_latest_forecast_is_the_last_that_stood(log: str, db: Db) -> None:
    """One a question and participant: that of the largest from_at; its numbers are decimals, by outcome or level."""
    season = replay(log)
    last = {(row["question"], row["participant"]): row for row in season.table("standing").rows()}
    theirs = asked(db, "SELECT * FROM latest_forecasts")
    assert {(row["question"], row["participant"]): row["log_position"] for row in theirs} == {
        key: row["log_position"] for key, row in last.items()
    }
    assert len(theirs) == len(last)
    said: dict[int, dict[str, Decimal]] = {}
    for row in season.table("forecasts").rows():
        number = Decimal(row["probability"] if row["value"] is None else row["value"])
        said.setdefault(row["log_position"], {})[row["outcome"] or row["level"]] = number
    for row in theirs:
        assert json.loads(row["forecast"], parse_float=Decimal, parse_int=Decimal) == said[row["log_position"]]


def test_the_latest_forecast_is_as_it_was_made_after_a_change_of_outcomes(tmp_path: Path) -> None:
    """What follows from the removal of an outcome is no forecast of its own; one without the first outcome is there."""
    made = forecast("colour", at=day(11), probabilities={"red": "0.2", "green": "0.3", "blue": "0.5"})
    later = forecast("colour", participant="bob", at=day(14), probabilities={"green": "0.4", "blue": "0.6"})
    gone = withdrawal("colour", participant="bob", at=day(15))
    log = written(tmp_path / "log.db", oracle.with_ids([choices(), made, removal(at=day(13)), later, gone]))
    exported(log, tmp_path / "out.db", "sqlite")
    with closing(sqlite3.connect(tmp_path / "out.db")) as db:
        db.row_factory = sqlite3.Row
        first, second = asked(db, "SELECT * FROM latest_forecasts")
    assert (first["log_position"], first["from_at"][:10], first["to_at"][:10]) == (2, "2026-03-11", "2026-03-20")
    assert (first["forecast"], first["ended_by"]) == ('{"red":0.2,"green":0.3,"blue":0.5}', None)
    assert (second["log_position"], second["from_at"][:10], second["to_at"][:10]) == (4, "2026-03-14", "2026-03-15")
    assert (second["forecast"], second["ended_by"]) == ('{"green":0.4,"blue":0.6}', "withdrawn")


def test_every_view_answers(db: Db) -> None:
    """Every view has rows for this log."""
    for name in VIEWS:
        assert all_of(db, name), name


def test_a_view_is_there_only_with_its_tables(log: str, tmp_path: Path) -> None:
    """Or it could not be asked."""
    exported(log, tmp_path / "out.db", "sqlite", tables=["leaderboard"])
    with closing(sqlite3.connect(tmp_path / "out.db")) as db:
        views = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    assert views == {"current_leaderboard"}


@pytest.mark.parametrize(
    ("word", "question"),
    [
        *[("wide OR 雨", "wide"), ("four", "lines"), ("SUM", "@at")],
        *[(word, "formula") for word in ("sheets", "category : traps", "cells", "Koln", "source : office")],
    ],
)
def test_titles_and_details_can_be_searched(db: Db, word: str, question: str) -> None:
    """A search by any word of a title, group, category, tag or source finds the question."""
    query = (
        "SELECT question FROM questions WHERE rowid IN (SELECT rowid FROM questions_fts WHERE questions_fts MATCH ?)"
    )
    assert [row["question"] for row in asked(db, query, word)] == [question]
    assert {row["question"]: row["title"] for row in asked(db, "SELECT * FROM questions")}.items() >= TITLES.items()


def test_a_question_says_what_has_become_of_it(db: Db) -> None:
    """The states follow from the commands of the worked examples."""
    [rain] = asked(db, "SELECT * FROM questions WHERE question = 'formula'")
    assert (rain["state"], rain["outcome"], json.loads(rain["outcomes"])) == ("resolved", "yes", ["yes", "no"])
    [wide] = asked(db, "SELECT * FROM questions WHERE question = 'wide'")
    assert (wide["state"], wide["outcome"], wide["closes_at"]) == ("unresolved", None, "2026-03-20T00:00:00.000000Z")


def test_a_number_beyond_floats_has_no_twin(tmp_path: Path) -> None:
    """Its text stays exact: e^(10000 ln(0.7 / 0.3505)) with a weight of 10000."""
    steep: list[AnyCommand] = [
        opened(),
        contest(),
        entry(weight=10_000),
        forecast(),
        forecast(participant="bo", probability="0.001"),
    ]
    location = written(tmp_path / "log.db", oracle.with_ids([*steep, resolution()]))
    exported(location, tmp_path / "out.db", "sqlite")
    with closing(sqlite3.connect(tmp_path / "out.db")) as db:
        takes = db.execute("SELECT take, take_real FROM leaderboard").fetchall()
    assert takes[0][0] == next(row["take"] for row in replay(location).table("leaderboard").rows())
    assert (Decimal(takes[0][0]) > 10**308, takes[0][1]) == (True, None)


def test_datasette_is_told_what_everything_means(out: Path, db: Db) -> None:
    """The metadata name the file, describe each table and view, and give the meaning of each column."""
    metadata = json.loads(out.with_suffix(".metadata.json").read_bytes())
    [(database, described)] = metadata["databases"].items()
    assert database == out.stem
    for name in [*CATALOGUE, "events", "questions", "participants", "data_dictionary"]:
        columns = [row["name"] for row in asked(db, f"PRAGMA table_info('{name}')")]
        assert described["tables"][name]["columns"].keys() == set(columns)
        said = asked(db, 'SELECT * FROM data_dictionary WHERE "table" = ?', name)
        assert name == "data_dictionary" or {row["column"] for row in said} == set(columns)
    assert all(described["tables"][view]["description"] for view in VIEWS)
    assert f"log position {len(all_of(db, 'events'))}" in described["description"]


def test_the_manifest_is_in_the_file(db: Db) -> None:
    """Log position and digest, and rows and digest of each table."""
    [row] = asked(db, "SELECT manifest FROM manifest")
    manifest = json.loads(row["manifest"])
    assert manifest["tables"].keys() >= {*default_tables(), "events"}
    for name, part in manifest["tables"].items():
        assert part["rows"] == len(all_of(db, name))
