"""Scores of a question whose forecasts are compared in slices of time are those of the whole question."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores import score_terms
from forecast_ledger.projections.scores.score_terms import terms_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.scores.time_weighted import Scores, scores
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, day, entry, forecast, opened, resolution, withdrawal
from tests.support.seasons import Season, drawn_rules, median_rules, shown_rules

PEOPLE, FORECASTS = 6, 200
ROWS = ("question", "participant", "covered", "covered_hidden")


def columns(rows: Scores) -> list[list[int]]:
    """Every number of scores."""
    return [*(getattr(rows, name).tolist() for name in ROWS), rows.numerator.integers()]


def scored(facts: Facts, name: str, slice_size: int) -> list[list[int]]:
    """The scores of a contest, one question at a time, in slices of this size."""
    own = facts.contests[name]
    return columns(scores(facts, [own], scored_questions(facts, own), 1, slice_size))


def busy(rules: str) -> Facts:
    """A question on which a few people forecast often, several of them in the same minute, and withdraw at times."""
    random, said = Random(3), list[AnyCommand]()
    for minute in sorted(random.randrange(1, 600) for _ in range(FORECASTS)):
        who, at = f"p{random.randrange(PEOPLE)}", f"2026-03-11T{minute // 60:02}:{minute % 60:02}:00Z"
        said.append(forecast(participant=who, at=at, probability=f"0.{random.randrange(1, 100):02}"))
        if random.randrange(6) == 0:
            said.append(withdrawal(participant=who, at=at))
    return oracle.facts_in(oracle.attempted([contest(rules=rules), opened(), entry(), *said, resolution()])[0])


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slice every question, not only those whose forecasts are replaced often."""
    monkeypatch.setattr(score_terms, "OFTEN", 0)


@pytest.mark.parametrize("rules", [name for name, preset in PRESETS.items() if preset.kernel != "none"])
def test_slices_of_any_size_add_up_to_the_scores_of_the_question(rules: str) -> None:
    """Under every preset, of slices of one forecast, of a few, of many, and of one slice."""
    facts = busy(rules)
    whole = scored(facts, "cup", 0)
    assert whole[0]
    for size in (1, 2, 7, 50, 10**6):
        assert scored(facts, "cup", size) == whole


def drawn() -> Iterator[tuple[str, Facts]]:
    """Contests of random seasons, under rules drawn field by field; outcomes change in some."""
    for seed in range(times(90)):
        random = Random(seed)
        draw = (drawn_rules, median_rules, shown_rules)[seed % 3]
        changing = 0.5 if draw is drawn_rules else 0.0
        season = Season(random, *(draw(random) for _ in range(2)), uncounted=0.2, moved=0.3, changing=changing)
        facts = oracle.facts_in(season.recorded())
        yield from ((name, facts) for name, each in facts.contests.items() if each.opened.rules.trading is None)


def test_slices_are_those_of_the_question_under_rules_of_any_sort() -> None:
    """Every reference, average, sampling and clock; shown reference forecasters; members and others."""
    sliced = 0
    for name, facts in drawn():
        whole = scored(facts, name, 0)
        for size in (1, 4):
            assert scored(facts, name, size) == whole
        sliced += len(whole[0]) > 0
    assert sliced > times(90)


def test_slices_divide_the_time_that_forecasts_stand() -> None:
    """Slices do not overlap, and begin where an interval begins; in all of them intervals last as long as before."""
    facts = busy("peer-2024-03")
    own = facts.contests["cup"]
    questions = scored_questions(facts, own)
    [(_, whole)] = terms_in_chunks(facts, [own], questions, 1)
    parts = [terms.standing for _, terms in terms_in_chunks(facts, [own], questions, 1, 10)]
    assert len(parts) > 5
    ends = [(int(part.start.min()), int(part.end.max())) for part in parts]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))
    assert {begin for begin, _ in ends} <= {*whole.standing.start.tolist()}
    assert sum(int((part.end - part.start).sum()) for part in parts) == int(
        (whole.standing.end - whole.standing.start).sum()
    )
    assert all((part.end > part.start).all() for part in parts)


def test_a_question_of_forecasts_that_are_seldom_replaced_is_not_sliced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of them would be carried from slice to slice: they are compared at once, unless they are too many."""
    monkeypatch.setattr(score_terms, "OFTEN", FORECASTS)
    facts = busy("peer-2024-03")
    own = facts.contests["cup"]
    questions = scored_questions(facts, own)
    assert len([*terms_in_chunks(facts, [own], questions, 1, 10)]) == 1
    whole = scored(facts, "cup", 0)
    monkeypatch.setattr(score_terms, "LARGEST_COUNT", 64)
    assert len([*terms_in_chunks(facts, [own], questions, 1, 10)]) > 5
    assert scored(facts, "cup", 10) == whole
    with pytest.raises(OverflowError, match="63 can be scored at once"):
        scored(facts, "cup", 0)


def test_a_median_that_weighs_recent_forecasts_more_keeps_their_order() -> None:
    """Forecasts carried into a slice begin to stand together there, and still count from the oldest to the newest."""
    ages = {"name": "recent", "kernel": "ln", "reference": "consensus", "consensus_weights": "recency"}
    story: list[AnyCommand] = [contest(rules=ages), opened(), entry()]
    chances = np.linspace(0.1, 0.9, 9)
    story += [forecast(participant=f"p{n}", at=day(11, n), probability=f"{p:.2f}") for n, p in enumerate(chances)]
    recent = oracle.facts_in(oracle.attempted([*story, resolution()])[0])
    whole = scored(recent, "cup", 0)
    assert scored(recent, "cup", 1) == scored(recent, "cup", 3) == whole
