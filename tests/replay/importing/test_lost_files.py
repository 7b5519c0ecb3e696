"""Copies that would lose what stands: of another source, or with files of another form; nothing of it is taken back."""

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.importing.source_items import BARE
from tests.replay.importing.test_interrupted_imports import FORMS, SOURCES
from tests.support.effort import LONG
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, table, ticking

LATE = "2026-12-01T00:00:00Z"
OTHER_FORMS = ["<!DOCTYPE html>\n<h1>504 Gateway Time-out</h1>\n", "", "[]", "{}", "null", '"x"', "[[]]", '[{"a": 1}]']
OTHER_FORMS += ['{"error": "rate limit"}', '{"error": {"forecasts": 1}}']


def other(kind: str, folder: Path) -> Path:
    """A source that has the same questions as the sample, other forecasts, and nobody of those who forecast there."""
    there = Path(shutil.copytree(DATA / SOURCES[kind], folder))
    if kind == "hubverse":
        for path in sorted(there.rglob("*team*.csv")):
            edit(
                path,
                lambda text: re.sub(r"^.*rate.*\n", "", re.sub(r",(\d+)$", r",\g<1>9", text, flags=re.M), flags=re.M),
            )
            path.rename(path.with_name(path.name.replace("team", "other")))
        for path in sorted(there.glob("model-output/*")):
            path.rename(path.with_name(path.name.replace("team", "other")))
    elif kind == "forecastbench":
        for path in sorted(there.rglob("forecast_sets/*/*.json")):
            edit(path, lambda text: text.replace('"organization": "', '"organization": "Other '))
            edit(path, lambda text: text.replace('"forecast": 0.', '"forecast": 0.0'))
    elif kind == "metaculus":
        edit(there / "forecast_data.csv", lambda text: re.sub(r",(\d+),(ada|bo|cy-bot),", r",7\1,other \2,", text))
        edit(there / "forecast_data.csv", lambda text: text.replace(" 12:00:00", " 12:00:01"))
    elif kind == "manifold":
        edit(there / "users.json", lambda text: re.sub(r'"(id|username)": "', r'"\1": "other ', text))
        edit(there / "bets.json", lambda text: text.replace('"userId": "', '"userId": "other '))
        edit(there / "bets.json", lambda text: re.sub(r'("createdTime": \d+)000,', r"\g<1>001,", text))
    return there


def standing(ledger: Ledger) -> set[tuple[str, ...]]:
    """Who has a forecast on which question, and the answers."""
    projections = Projections(facts(ledger.read()))
    answers = {
        (str(row["question"]), str(row["outcome"])) for row in projections.table("questions").rows() if row["outcome"]
    }
    return answers | {(str(row["question"]), str(row["participant"])) for row in projections.table("standing").rows()}


def recorded(kind: str) -> Ledger:
    """A ledger with the sample of a format."""
    ledger = ticking()
    import_into(ledger, kind, DATA / SOURCES[kind])
    return ledger


@pytest.mark.parametrize("kind", ["forecastbench", "hubverse", "manifold", "metaculus"])
def test_a_copy_of_another_source_is_refused_whole(kind: str, tmp_path: Path) -> None:
    """It lacks more than half of what is recorded; it is added or followed if that is said."""
    there = other(kind, tmp_path / "other")
    with recorded(kind) as ledger:
        before, head = standing(ledger), ledger.head()
        with pytest.raises(Refused, match="it lacks") as refused:
            import_into(ledger, kind, there, now=LATE)
        assert "--name" in refused.value.remedy
        assert ledger.head() == head
        import_into(ledger, kind, there, now=LATE, keep_missing=True)
        assert before < standing(ledger)
    with recorded(kind) as ledger:
        import_into(ledger, kind, there, now=LATE, take_back=True)
        assert not before <= standing(ledger)


@pytest.mark.parametrize("kind", ["kalshi", "polymarket"])
def test_the_prices_of_a_platform_are_those_of_one_participant(kind: str) -> None:
    """So another copy of some of its markets takes nothing back: the ledger has nobody else's forecasts on them."""
    with recorded(kind) as ledger:
        assert len({who for (who,) in table(ledger, "forecasts", "participant")}) == 1


def test_another_hub_with_the_same_rounds_and_other_places_is_refused(tmp_path: Path) -> None:
    """Its questions are others, and it has none of the ledger's."""
    there = Path(shutil.copytree(DATA / "hub-import", tmp_path / "other"))
    for path in [*there.rglob("*.csv"), there / "hub-config/tasks.json"]:
        edit(path, lambda text: text.replace("US", "FR").replace("01", "75"))
    with recorded("hubverse") as ledger, pytest.raises(Refused, match="of another source"):
        import_into(ledger, "hubverse", there)


def test_half_of_the_forecasts_may_be_gone(tmp_path: Path) -> None:
    """Two forecasters of four: followed, and counted; three of four: refused."""
    header = "Question ID,Question Title,Question Type,Default Project,Open Time,Scheduled Close Time"
    times = "2026-03-01 00:00:00+00:00,2026-03-11 00:00:00+00:00"
    question = f"{header},Resolution,Resolution Known Time\n1,Rain,binary,cup,{times},,\n"
    columns = "Question ID,Forecaster ID,Forecaster Username,Start Time,End Time,Probability Yes"
    rows = [f"1,{number},person {number},2026-03-02 00:00:00+00:00,,0.{number},,\n" for number in range(1, 5)]
    with ticking() as ledger:
        for some, changes in ((rows, {}), (rows[:2], {"the forecasts of a participant on a question retracted": 2})):
            (tmp_path / "question_data.csv").write_text(question)
            text = "".join([f"{columns},Probability Yes Per Category,Continuous CDF\n", *some])
            (tmp_path / "forecast_data.csv").write_text(text)
            assert import_into(ledger, "metaculus", tmp_path, now=LATE).changes == changes
    with ticking() as ledger:
        edit(tmp_path / "forecast_data.csv", lambda text: text + "".join(rows[2:]))
        import_into(ledger, "metaculus", tmp_path, now=LATE)
        edit(tmp_path / "forecast_data.csv", lambda text: text.replace("".join(rows[1:]), ""))
        with pytest.raises(Refused, match=r"of the 4 forecasts .* it lacks 3"):
            import_into(ledger, "metaculus", tmp_path, now=LATE)


@pytest.mark.parametrize(
    ("kind", "file", "content"),
    [
        ("metaculus", "forecast_data.csv", None),
        ("metaculus", "forecast_data.csv", "header"),
        ("manifold", "bets.json", None),
        ("manifold", "bets.json", "[]"),
    ],
)
def test_a_copy_without_any_forecast_says_that_they_stay(
    kind: str, file: str, content: str | None, tmp_path: Path
) -> None:
    """The file of forecasts is not there, or has none: each question with forecasts is counted, as other losses are."""
    there = Path(shutil.copytree(DATA / SOURCES[kind], tmp_path / "copy"))
    header = (there / file).read_text(encoding="utf-8").splitlines()[0] + "\n"
    (there / file).unlink()
    if content is not None:
        (there / file).write_text(header if content == "header" else content, encoding="utf-8")
    with recorded(kind) as ledger:
        before, head = standing(ledger), ledger.head()
        questions = {question for (question,) in table(ledger, "forecasts", "question")}
        questions -= {"504"}  # of Metaculus, discrete, and named for not being carried over without forecasts
        left_out = import_into(ledger, kind, there, now=LATE).left_out
        assert (left_out[BARE], standing(ledger), ledger.head()) == (len(questions), before, head)
        assert BARE not in import_into(ledger, kind, DATA / SOURCES[kind], now=LATE).left_out


def test_a_round_whose_forecast_sets_are_gone_says_that_its_forecasts_stay(tmp_path: Path) -> None:
    """A folder with question sets alone is not the whole round; one with resolution sets alone is a usual copy."""
    there = Path(shutil.copytree(DATA / SOURCES["forecastbench"], tmp_path / "copy"))
    shutil.rmtree(there / "forecast_sets")
    with recorded("forecastbench") as ledger:
        before = standing(ledger)
        questions = {question for (question,) in table(ledger, "forecasts", "question")}
        assert import_into(ledger, "forecastbench", there, now=LATE).left_out[BARE] == len(questions)
        shutil.rmtree(there / "question_sets")
        assert BARE not in import_into(ledger, "forecastbench", there, now=LATE).left_out
        assert standing(ledger) == before


# --- files of another form


def without(value: Any, at: tuple[str, ...], key: str) -> Any:
    """A JSON value whose objects at a path, with * for the items of a list, lack a key."""
    if isinstance(value, list):
        return [without(each, at[1:], key) for each in value]
    if not isinstance(value, dict):
        return value
    if not at:
        return {name: each for name, each in value.items() if name != key}
    return {name: without(each, at[1:], key) if name == at[0] else each for name, each in value.items()}


def put(value: Any, at: tuple[str, ...], new: Any) -> Any:
    """A JSON value with another one in the place of each list at a path."""
    if not at:
        return new
    if isinstance(value, list):
        return [put(each, at[1:], new) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: put(each, at[1:], new) if name == at[0] else each for name, each in value.items()}


def places(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The path of each list, and of each key, in a JSON value."""
    if isinstance(value, list):
        yield "list", at
        for each in value:
            yield from places(each, (*at, "*"))
    elif isinstance(value, dict):
        for name, each in value.items():
            yield "key", (*at, name)
            yield from places(each, (*at, name))


def changed_tables(text: str) -> Iterator[tuple[str, str]]:
    """A CSV without each of its columns, and with each under another name."""
    header, *rows = csv.reader(io.StringIO(text))
    for number, name in enumerate(header):
        lacking = [row[:number] + row[number + 1 :] for row in (header, *rows)]
        renamed = [[*header[:number], f"x {name}", *header[number + 1 :]], *rows]
        for what, table_rows in ((f"without {name}", lacking), (f"{name} renamed", renamed)):
            written = io.StringIO()
            csv.writer(written).writerows(table_rows)
            yield what, written.getvalue()


def changed_values(text: str, *, by_line: bool) -> Iterator[tuple[str, str]]:
    """A JSON text without each of its keys, and with each of its lists empty, or an object."""
    value = [json.loads(line) for line in text.splitlines()] if by_line else json.loads(text)

    def dumped(new: Any) -> str:
        return "\n".join(map(json.dumps, new)) if by_line else json.dumps(new)

    for what, at in dict.fromkeys(places(value)):
        name = ".".join(at)
        if what == "key":
            yield f"without {name}", dumped(without(value, at[:-1], at[-1]))
        elif at or not by_line:
            yield f"{name} empty", dumped(put(value, at, []))
            yield f"{name} an object", dumped(put(value, at, {"a": 1}))


MEANT = {  # what takes something back, since the format says so
    ("hubverse", "tasks.json", "task_ids"): "questions are told by their task ids; half of them may be gone",
    ("hubverse", "tasks.json", "output_type_id_params"): "the number of samples is part of a question",
    ("hubverse", "time-series.csv", "as_of"): "rows of several versions then contradict each other: they are refused",
    ("kalshi", "candlesticks.json", "price"): "a period without a price is one without a trade",
    ("kalshi", "candlesticks.json", "close_dollars"): "a period without a price is one without a trade",
    ("kalshi", "markets.json", "settlement_value_dollars"): "a scalar market that does not say what it pays",
    ("kalshi", "settlements.json", "empty"): "an account may have no settlements",
    ("kalshi", "settlements.json", "[]"): "an account may have no settlements",
    ("kalshi", "settlements.json", "[[]]"): "an account may have no settlements",
    ("kalshi", "settlements.json", "ticker"): "an object with an event and without a market is an event",
    ("manifold", "bets.json", "answerId"): "bets whose answers are not known",
    ("manifold", "bets.json", "userId"): "a bet of nobody is a price of the platform",
    ("manifold", "markets.json", "answers"): "a market that does not say what its answers pay",
    ("manifold", "markets.json", "resolutionProbability"): "a market that does not say what it pays",
    ("manifold", "markets.json", "Time"): "without a time, another one of the record counts",
    ("manifold", "users.json", "empty"): "people whose name is not there are called by their ids",
    ("manifold", "users.json", "[]"): "people whose name is not there are called by their ids",
    ("manifold", "users.json", "[[]]"): "people whose name is not there are called by their ids",
    ("polymarket", "", "Date"): "without a time, another one of the record counts",
    ("polymarket", "", "closedTime"): "without a time, another one of the record counts",
    ("polymarket", "markets.ndjson", "umaResolutionStatus"): "prices that are not quite 0 and 1 need it",
}


@pytest.mark.parametrize(("kind", "name"), FORMS)
def test_a_file_of_another_form_takes_nothing_back(kind: str, name: str, tmp_path: Path) -> None:
    """A page of an error, an empty file or list, an object for a list, a column or a key that is not there.

    A third of such columns, keys and lists; in a long run, all.
    """
    there = Path(shutil.copytree(DATA / SOURCES[kind], tmp_path / "copy"))
    path = there / name
    text = path.read_text(encoding="utf-8")
    forms = [(form, form) for form in OTHER_FORMS]
    changed = changed_tables(text) if path.suffix == ".csv" else changed_values(text, by_line=path.suffix == ".ndjson")
    with recorded(kind) as ledger:
        before, head = standing(ledger), ledger.head()
        for what, new in (*forms, *islice(changed, 0, None, 3 if LONG == 1 else 1)):
            if any((each, file in name, part in what) == (kind, True, True) for each, file, part in MEANT):
                continue
            path.write_text(new, encoding="utf-8")
            with suppress(Refused):  # before anything is recorded
                import_into(ledger, kind, there, now=LATE, take_back=True)
            if head != (head := ledger.head()):
                assert before <= standing(ledger), what


def test_a_parquet_file_of_another_form_takes_nothing_back(tmp_path: Path) -> None:
    """As the same table in a CSV: without each of its columns, with numbers for output types, and no Parquet at all."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    there = Path(shutil.copytree(DATA / "hub-import", tmp_path / "hub"))
    path = there / "model-output/team1-a/2026-03-07-team1-a.csv"
    header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
    columns = {name: [row[at] for row in rows] for at, name in enumerate(header)}
    path.unlink()
    path = path.with_suffix(".parquet")
    tables = [{name: cells for name, cells in columns.items() if name != gone} for gone in columns]
    tables.append(columns | {"output_type": [*range(len(rows))]})
    with ticking() as ledger:
        parquet.write_table(arrow.table(columns), path)
        import_into(ledger, "hubverse", there)
        before = standing(ledger)
        for table_columns in tables:
            parquet.write_table(arrow.table(table_columns), path)
            import_into(ledger, "hubverse", there, now=LATE, take_back=True)
            assert before <= standing(ledger), [*table_columns]
        for content in (b"", b"PAR1", b"<html>"):
            path.write_bytes(content)
            import_into(ledger, "hubverse", there, now=LATE, take_back=True)
            assert before <= standing(ledger)
