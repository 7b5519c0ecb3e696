"""Date and discrete questions are scored like numeric questions with the same bins, by every kernel."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import AnyCommand, Range
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.forging import audited
from tests.support.given import OPENS, contest, entry, forecast, opened, resolution
from tests.support.seasons import Season, drawn_rules

SPAN: dict[str, Any] = {"lower": "-0.5", "upper": "3.5", "bins": 4, "open_upper": True}
MAY = {"lower": "2026-05-01", "upper": "2026-05-05", "bins": 4, "open_upper": True}
CDF = ("0", "0.25", "0.5", "0.75", "0.9")
TABLES = ("score_parts", "scores", "leaderboard", "consensus", "standing")
CRPS = RuleSet(name="crps", kernel="brier", cdf_kernel="crps", period="covered", total="mean")


def scored(rules: RuleSet | str, question: AnyCommand, *answers: AnyCommand) -> str:
    """The score of one forecast on the question q that stood over the whole period."""
    asked: list[AnyCommand] = [question, contest(rules=rules), entry(question="q"), forecast("q", at=OPENS, cdf=CDF)]
    asked += answers
    [row] = oracle.projected(*asked).table("scores").rows()
    return str(row["score"])


@pytest.mark.parametrize(
    ("kind", "span", "answer"),
    [
        ("date", MAY, {"value": "2026-05-03T12:00:00Z"}),
        ("discrete", SPAN, {"value": 2}),
        ("numeric", SPAN, {"value": 2}),
    ],
)
def test_a_baseline_score_is_half_the_logarithm_over_the_uniform(
    kind: str, span: dict[str, Any], answer: dict[str, Any]
) -> None:
    """0.25 in the third of four bins, one end open: 50 ln(0.25 / (0.95 / 4)) = 50 ln(20/19) = 2.564664719….

    Source: Metaculus, Scores FAQ, "What is the Baseline score?".
    """
    asked = opened("q", kind=kind, range=Range(**span))
    assert scored("baseline", asked, resolution("q", **answer)) == "2.564664719"


@pytest.mark.parametrize(("kind", "span"), [("date", MAY), ("discrete", SPAN)])
def test_an_answer_above_the_upper_bound_is_scored_as_its_outcome(kind: str, span: dict[str, Any]) -> None:
    """0.1 above the open end, which has 0.05 uniformly: 50 ln 2 = 34.657359028.

    By the CRPS it counts as the end: ∫ F² over four bins from 0 to 1/4, …, 3/4 to 9/10: each adds
    (a² + ab + b²) / 12, in all (1/16 + 7/16 + 19/16 + (9/16 + 27/40 + 81/100)) / 12 = 0.311197916…; half-even to 9.
    """
    asked = opened("q", kind=kind, range=Range(**span))
    beyond = resolution("q", outcome="above_upper_bound")
    assert scored("baseline", asked, beyond) == "34.657359028"
    by_hand = sum((a * a + a * b + b * b) / 12 for a, b in pairwise(map(Fraction, CDF)))
    assert Fraction(scored(CRPS, asked, beyond)) == Fraction(round(by_hand * 10**9), 10**9)


def as_dates(asked: Sequence[AnyCommand]) -> list[AnyCommand]:
    """The same commands with every question of bins a date question, whose seconds are the numbers of the range."""
    return [
        msgspec.structs.replace(command, kind="date")
        if isinstance(command, commands.OpenQuestion) and command.range is not None and command.range.levels is None
        else command
        for command in asked
    ]


def to_micros(command: AnyCommand) -> AnyCommand:
    """The command with its answer rounded to a µs, if it is a number of seconds."""
    if isinstance(command, commands.ResolveQuestion) and command.value is not None:
        return msgspec.structs.replace(command, value=round(Decimal(str(command.value)), 6))
    return command


@settings(max_examples=times(12), deadline=None)
@given(st.integers(0, 2**64).map(Random))
def test_a_date_question_is_scored_like_its_seconds(random: Random) -> None:
    """Every table of any season is the same with dates, and the log is decided as it was."""
    asked = [to_micros(command) for command in Season(random, *(drawn_rules(random) for _ in range(2))).commands]
    (numbers, refused), (dates, refused_too) = oracle.attempted(asked), oracle.attempted(as_dates(asked))
    assert [each.code for each in refused] == [each.code for each in refused_too]
    audited(dates)
    plain, dated = Projections(oracle.facts_in(numbers)), Projections(oracle.facts_in(dates))
    assert [plain.table(name).digest() for name in TABLES] == [dated.table(name).digest() for name in TABLES]
