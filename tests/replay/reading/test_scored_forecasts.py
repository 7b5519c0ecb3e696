"""Scored forecasts as one frame, and what stands at an instant."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.support.given import (
    choices,
    contest,
    day,
    entry,
    forecast,
    opened,
    quartiles,
    renaming,
    resolution,
    withdrawal,
)
from tests.support.logs import commands_of, log_fixture, written
from tests.support.paths import DATA
from tests.support.sources import import_into, ticking


def told(folder: Path, *commands: AnyCommand) -> Replay:
    """The replay of a log of these commands."""
    return replay(written(folder / "log.db", commands))


def shown(rows: Replay, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of the frame."""
    return [tuple(row[column] for column in columns) for row in rows.scored_forecasts()]


groups = log_fixture(lambda: commands_of("question-groups"), "module", replay)


def test_a_score_has_its_question_its_forecast_and_its_answer(groups: Replay) -> None:
    """The forecast and the answer are those of the story's commands; score and coverage those that it expects.

    Ada said 0, ¼, ½, ¾, 1 at the edges of four spans of the thaw, Bo 0, 0, ½, 1, 1: the answer is in the second, to
    which Ada gives ¼ and Bo ½. Beyond the last edge of the storms Ada has 1 - 0.9.
    """
    columns = ("question", "participant", "probability", "outcome", "value", "score", "coverage")
    assert shown(groups, *columns) == [
        ("rain-west", "ada", "0.7", "yes", "", "0.090000000", "1.000000000"),
        ("rain-west", "bo", "0.9", "yes", "", "0.010000000", "0.500000000"),
        ("storms-east", "ada", "0.1", "5", "above_upper_bound", "0.311250000", "1.000000000"),
        ("thaw-east", "ada", "0.25", "2", "2026-03-03T00:00:00Z", "0.083333333", "1.000000000"),
        ("thaw-east", "bo", "0.5", "2", "2026-03-03T00:00:00Z", "0.041666667", "1.000000000"),
        ("vote-west", "ada", "0.9", "yes", "", "0.010000000", "1.000000000"),
    ]
    more = ("question", "made_at", "log_position", "weight", "kind", "group", "category", "tags", "horizon")
    first, *_, last = shown(groups, *more)
    about = ("2026-03-01T00:00:00Z", 10, "1.000000000", "binary", "west", "weather", "rain, river, upper", "")
    assert first == ("rain-west", *about)
    assert last[5:] == ("west", "politics", "", "")


def test_the_rows_are_those_of_the_scores(groups: Replay) -> None:
    """In one order, whatever the rules of a contest are."""
    for column in ("contest", "question", "participant", "score", "coverage"):
        assert groups.scored_forecasts()[column] == groups.scores[column]
    assert groups.scored_forecasts().only("category", "weather")["question"][-1] == "thaw-east"


BRIER: dict[str, Any] = {"name": "own", "kernel": "brier", "period": "covered", "total": "mean"}


def test_the_forecast_that_stood_last_is_shown(tmp_path: Path) -> None:
    """One that was replaced, or came after scored time, is not; of a withdrawn one, the last that stood."""
    said: list[AnyCommand] = [
        contest(rules=RuleSet(**BRIER)),
        opened(),
        entry(weight="2.5"),
        forecast(at=day(11), probability="0.6"),
        forecast(at=day(12), probability="0.8"),
        forecast(participant="bo", at=day(11), probability="0.3"),
        withdrawal(participant="bo"),
        forecast(participant="al", at=day(14), probability="0.5"),
        renaming("al", "cy"),
        resolution(outcome="no"),
    ]
    found = shown(told(tmp_path, *said), "participant", "probability", "outcome", "log_position", "made_at", "weight")
    assert found == [
        ("ada", "0.2", "no", 5, day(12), "2.500000000"),
        ("bo", "0.7", "no", 6, day(11), "2.500000000"),
        ("cy", "0.5", "no", 8, day(14), "2.500000000"),
    ]


def test_who_made_no_forecast_has_a_score_without_one(tmp_path: Path) -> None:
    """The consensus has no forecast of its own, a reference forecaster one without a log position."""
    rules = RuleSet(**BRIER, score_consensus=True, reference_rows=("uniform",))
    said: list[AnyCommand] = [contest(rules=rules), opened(), entry(), forecast(), resolution()]
    columns = ("participant", "probability", "log_position", "score")
    found = {who: rest for who, *rest in shown(told(tmp_path, *said), *columns)}
    assert found == {
        "ada": ["0.7", 4, "0.090000000"],
        "[consensus]": [None, None, "0.090000000"],
        "[uniform]": ["0.5", None, "0.250000000"],
    }


def test_answers_without_an_outcome_have_no_probability(tmp_path: Path) -> None:
    """Payouts are several outcomes, and quantiles give no probability to an answer."""
    rules = RuleSet(**BRIER, quantile_kernel="pinball", payouts="scored")
    said: list[AnyCommand] = [
        contest(rules=rules),
        choices(),
        entry(question="colour"),
        forecast("colour", probabilities={"red": "0.5", "green": "0.25", "blue": "0.25"}),
        resolution("colour", payouts={"red": "0.5", "green": "0.5", "blue": "0"}),
        quartiles(),
        entry(question="flow"),
        forecast("flow", quantiles=("1", "2", "3")),
        resolution("flow", value="2.5"),
    ]
    assert shown(told(tmp_path, *said), "question", "probability", "outcome", "value") == [
        ("colour", None, "", ""),
        ("flow", None, "1", "2.5"),
    ]


def test_questions_of_a_hub_have_their_location_and_horizon(tmp_path: Path) -> None:
    """They are task ids, which the id of such a question has."""
    with ticking() as ledger:
        import_into(ledger, "hubverse", DATA / "hub-import")
        found = {*shown(replay(ledger), "question", "location", "horizon")}
    for question, location, horizon in found:
        assert {f"location={location}", f"horizon={horizon}"} <= {*question.split("&")}
    assert {location for _, location, _ in found} == {"US"}


def test_a_log_without_scores_has_an_empty_frame(tmp_path: Path) -> None:
    """With its columns, as numbers and ids."""
    empty = told(tmp_path, opened()).scored_forecasts()
    assert (len(empty), empty.to_pandas(floats=True).score.dtype.kind) == (0, "f")


def stands(rows: Replay, at: Any, question: str = "rain-west") -> Iterator[tuple[str, str]]:
    """Who has a forecast that stands, and what it gives to yes."""
    for row in rows.standing_at(at).only("question", question).only("outcome", "yes"):
        yield row["participant"], row["probability"]


def test_what_stands_at_an_instant(groups: Replay) -> None:
    """Bo's forecast stands on [1st, 6th) of March, Ada's until the close; nothing stands before or after."""
    both, one = [("ada", "0.7"), ("bo", "0.9")], [("ada", "0.7")]
    assert [*stands(groups, "2026-03-01T00:00:00Z")] == [*stands(groups, "2026-03-05T23:59:59.999999Z")] == both
    assert [*stands(groups, "2026-03-06T00:00:00Z")] == [*stands(groups, "close")] == one
    assert [*stands(groups, "2026-03-05")] == both, "a plain date is the end of the day"
    assert [*stands(groups, datetime(2026, 3, 6, tzinfo=UTC))] == one
    assert [*stands(groups, "2026-02-28T23:59:59Z")] == [*stands(groups, "2026-03-11T00:00:00Z")] == []
    with pytest.raises(Refused, match="at"):
        groups.standing_at("noon")


def test_what_stands_at_the_close_was_not_replaced_or_withdrawn(tmp_path: Path) -> None:
    """The last word of each participant, also on a question that is still open."""
    said: list[AnyCommand] = [
        contest(rules=PRESETS["baseline"]),
        opened(),
        forecast(probability="0.6"),
        forecast(at=day(12), probability="0.8"),
        forecast(participant="bo"),
        withdrawal(participant="bo"),
    ]
    assert [*stands(told(tmp_path, *said), "close", "rain")] == [("ada", "0.8")]
