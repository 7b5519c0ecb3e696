"""The log index: with a read model, a score is explained from only the rows that it depends on."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.explain.explain_scores import Explanation
from forecast_ledger.replay.explain.numbers import explain
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.readmodel import part_store
from forecast_ledger.replay.readmodel.part_store import LOG_INDEX
from forecast_ledger.replay.readmodel.runner import Runner, check_model
from tests.projections.incremental.test_refresh import trading
from tests.replay.cli.test_main import run
from tests.replay.readmodel.test_runner import record, stored
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, day, entry, forecast, opened, resolution, withdrawal

# --- The log index: with a read model, a score is explained from only the rows that it depends on.


SAID: list[AnyCommand] = [
    opened(),
    opened("wind"),
    contest(),
    entry(),
    entry(question="wind"),
    forecast(),
    forecast("wind", "bob", probability="0.25"),
    forecast(participant="bob", probability="0.2"),
    withdrawal(at=day(15)),
    resolution(),
    resolution("wind"),
]
KEYS = [("cup", question, who) for question in ("rain", "wind", "snow") for who in ("ada", "bob")]
Key = tuple[str, str, str]


def followed(folder: str | Path, recorded: Sequence[Recorded], until: int | None = None) -> tuple[str, str]:
    """A log, and a read model that has followed it up to a position, or to its end."""
    log, model = f"{folder}/log.db", f"{folder}/tables.db"
    first = recorded[:until]
    record(log, first)
    with Runner(log, model) as runner:
        runner.refresh()
    record(log, recorded[len(first) :])
    return log, model


def explained(log: str, key: Key, as_of: int | str | None, model: str | None = None) -> Any:
    """A score taken apart, or why it cannot be."""
    try:
        return explain(log, "score", *key, as_of=as_of, model=model)
    except Refused as refused:
        return refused.to_dict()


def assert_alike(log: str, model: str, key: Key, as_of: int | str | None) -> bool:
    """The same with a read model as without; whether there is such a score."""
    found = explained(log, key, as_of)
    assert explained(log, key, as_of, model) == found, (key, as_of)
    return isinstance(found, Explanation)


@pytest.mark.parametrize("until", [0, 7, None])
def test_with_a_read_model_a_score_is_explained_as_without_one(tmp_path: Path, until: int | None) -> None:
    """Number, parts, events and checkpoint, wherever the read model stopped; as of every third log position."""
    recorded = oracle.history(*SAID)
    log, model = followed(tmp_path, recorded, until)
    positions = [None, *range(2 if until is None else until % 3, len(recorded) + 2, 3)]
    assert {assert_alike(log, model, key, position) for position in positions for key in KEYS} == {True, False}


@given(oracle.logs(), st.data())
@settings(max_examples=times(20), deadline=None)
def test_so_is_any_score_of_any_log(asked: list[AnyCommand], data: st.DataObject) -> None:
    """Numeric questions, other rule sets, revoked answers, excluded participants, sealed boards."""
    recorded = oracle.attempted(asked)[0]
    rows = list(Projections(oracle.facts_in(recorded)).table("scores").rows())
    with TemporaryDirectory() as folder:
        log, model = followed(folder, recorded, data.draw(st.integers(0, len(recorded))))
        for row in rows[:4]:
            key = row["contest"], row["question"], row["participant"]
            assert assert_alike(log, model, key, None)
            assert_alike(log, model, key, data.draw(st.integers(0, len(recorded))))


def test_a_cut_by_the_clock_falls_where_it_does_without_a_read_model(tmp_path: Path) -> None:
    """The cuts lie before the first row, at and between two rows, and after the last."""
    recorded = oracle.history(*SAID)
    log, model = followed(tmp_path, recorded)
    clock = {each.recorded_at for each in recorded}
    found = {assert_alike(log, model, KEYS[0], format_instant(at + off)) for at in sorted(clock) for off in (-1, 0, 1)}
    assert found == {True, False}


def test_where_one_trades_the_books_are_read_whole(tmp_path: Path) -> None:
    """The whole log is read, with a read model too, because money depends on every event before."""
    recorded = trading(3)
    log, model = followed(tmp_path, recorded, len(recorded) // 2)
    rows = list(Projections(oracle.facts_in(recorded)).table("trades").rows())
    keys = {(row["contest"], row["question"], row["participant"]) for row in rows}
    assert keys
    for key in sorted(keys):
        assert_alike(log, model, key, None)


def tampered(log: str, position: int, old: str, new: str) -> None:
    """Change bytes of one row."""
    with closing(sqlite3.connect(log)) as connection, connection:
        change = "UPDATE stored_events SET state = CAST(replace(state, ?, ?) AS BLOB) WHERE originator_version = ?"
        assert connection.execute(change, (old, new, position)).rowcount == 1


def test_only_the_rows_a_score_stands_on_are_read(tmp_path: Path) -> None:
    """Rows that are read are checked, and the last row followed; `verify` finds damage elsewhere."""
    recorded = oracle.history(*SAID)
    elsewhere, read = (
        next(r.position for r in recorded if getattr(r.event, "participant", "") == who) for who in ("bob", "ada")
    )
    log, model = followed(tmp_path, recorded)
    tampered(log, elsewhere, "bob", "eve")
    explain(log, "score", *KEYS[0], model=model)
    with pytest.raises(Corrupt, match=f"log position {elsewhere}"):
        explain(log, "score", *KEYS[0])
    tampered(log, read, "ada", "eve")
    with pytest.raises(Corrupt, match=f"log position {read}"):
        explain(log, "score", *KEYS[0], model=model)


def test_a_log_that_is_not_the_one_followed_is_refused(tmp_path: Path) -> None:
    """Another row where the read model stopped, or none there; a row that it knows of and that is gone."""
    recorded = oracle.history(*SAID)
    _, model = followed(tmp_path, recorded)
    other, short, holed = (str(tmp_path / f"{name}.db") for name in ("other", "short", "holed"))
    record(other, oracle.history(*SAID[:-1], resolution("wind", outcome="no")))
    record(short, recorded[:-1])
    record(holed, recorded)
    with closing(sqlite3.connect(holed)) as connection, connection:
        connection.execute("DELETE FROM stored_events WHERE originator_version = 6")
    for log, position, said in (
        (other, len(recorded), "the read model has digest"),
        (short, len(recorded), "missing"),
        (holed, 6, "missing"),
    ):
        with pytest.raises(Corrupt, match=said) as raised:
            explain(log, "score", *KEYS[0], model=model)
        assert raised.value.position == position


def test_a_read_model_of_something_else_is_refused(tmp_path: Path) -> None:
    """Another ledger's, one that follows nothing yet, another database, or none, which is then not started."""
    log, model = followed(tmp_path, oracle.history(*SAID))
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
    sqlite3.connect(tmp_path / "empty.db").close()
    with closing(sqlite3.connect(model)) as connection, connection:
        connection.execute("UPDATE _tracking SET ledger = 'second'")
    for path in (model, str(tmp_path / "other.db"), str(tmp_path / "empty.db"), str(tmp_path / "none.db")):
        with pytest.raises(Unavailable, match=path):
            explain(log, "score", *KEYS[0], model=path)
    assert not (tmp_path / "none.db").exists()


def test_a_read_model_without_places_is_made_again(tmp_path: Path) -> None:
    """One that was made before places were kept gets them with its next refresh, though nothing is new."""
    log, model = followed(tmp_path, oracle.history(*SAID))
    before, every = stored(model), f"SELECT * FROM {LOG_INDEX}"  # noqa: S608 - a constant
    with closing(sqlite3.connect(model)) as connection, connection:
        places = connection.execute(every).fetchall()
        connection.execute(f"DROP TABLE {LOG_INDEX}")
    assert " ".join(positions for *_, positions in places) == "3 1 6 8 9 10 4 2 7 11 5"
    with pytest.raises(Unavailable, match="follow"):
        explain(log, "score", *KEYS[0], model=model)
    with Runner(log, model) as runner:
        assert runner.refresh().events == 0
    assert stored(model) == before
    with closing(sqlite3.connect(model)) as connection:
        assert connection.execute(every).fetchall() == places


def test_many_positions_take_several_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh fills the last row of the index before it begins another; a rebuild gives the same rows."""
    monkeypatch.setattr(part_store, "_POSITIONS_IN_ROW", 2)
    recorded = oracle.history(*SAID)
    log, model = followed(tmp_path, recorded, 4)
    with Runner(log, model) as runner:
        for _ in range(2):
            runner.refresh()
    with closing(sqlite3.connect(model)) as connection:
        rows = connection.execute(f"SELECT first, positions FROM {LOG_INDEX} WHERE question = 'rain'").fetchall()  # noqa: S608
    assert {positions.count(" ") for _, positions in rows} == {0, 1}
    assert all(positions.split()[0] == str(first) for first, positions in rows)
    assert check_model(Log(log), model).drifts == []
    assert {assert_alike(log, model, key, None) for key in KEYS} == {True, False}


def test_the_command_takes_a_read_model(tmp_path: Path) -> None:
    """The same output; of other numbers than scores it would not help, and that is said."""
    log, model = followed(tmp_path, oracle.history(*SAID))
    plain, fast = (run("explain", log, "score", *KEYS[0], *more) for more in ((), ("--model", model)))
    assert (fast.exit_code, fast.stdout) == (FINE, plain.stdout)
    refused = run("explain", log, "take", "cup", "ada", "--model", model)
    assert refused.exit_code == USAGE
    assert "--model can only be used with a score" in refused.stderr
