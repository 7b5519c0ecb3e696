"""In what order different participants' forecasts were recorded is nothing that a number may depend on."""

from decimal import Decimal
from itertools import groupby
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import choices, contest, day, entry, forecast, opened, resolution
from tests.support.seasons import Season, drawn_rules

POSITIONS = {"log_position", "sealed_digest"}  # columns that show where in the log something is
RECENCY: dict[str, Any] = {"name": "own", "kernel": "ln", "reference": "consensus", "consensus_weights": "recency"}

Row = dict[str, Any]


def tables(asked: list[AnyCommand]) -> dict[str, list[Row]]:
    """Every table, without where in the log things are."""
    projections = Projections(oracle.facts_in(oracle.history(*asked)))
    by_table = {}
    for name in CATALOGUE:
        plain = [{key: row[key] for key in row if key not in POSITIONS} for row in projections.table(name).rows()]
        by_table[name] = sorted(plain, key=repr) if "log_position" in CATALOGUE[name].key else plain
    return by_table


def is_said(command: AnyCommand) -> bool:
    """Return whether a command is a participant's forecast or withdrawal."""
    return isinstance(command, commands.SubmitForecast | commands.WithdrawForecast)


def recorded_otherwise(season: Season, asked: list[AnyCommand]) -> list[AnyCommand]:
    """The same commands; between two of any other kind, what participants say comes in another order, that of one
    participant on one question in its own.
    """
    reordered: list[AnyCommand] = []
    for said, group in groupby(asked, is_said):
        run = list(group)
        threads: dict[tuple[str, str], list[AnyCommand]] = {}
        for command in run:
            if isinstance(command, commands.SubmitForecast | commands.WithdrawForecast):
                threads.setdefault((command.question, command.participant), []).append(command)
        reordered += season.interleaved(list(threads.values())) if said else run
    return reordered


FIVE = ("0.1", "0.2", "0.3", "0.8", "0.9")  # of p0 to p4
RECORDED = pytest.mark.parametrize("places", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)], ids=str)


@RECORDED
@pytest.mark.parametrize(
    ("fields", "hours", "reference"),
    [
        ({"sampling": "spot"}, (0, 1, 2, 3, 4), "0.8"),
        ({"sampling": "day"}, (0, 1, 2, 3, 4), "0.8"),
        ({"sampling": "time"}, (-5, -4, -3, -2, -1), "0.8"),
        ({"sampling": "spot"}, (-5, -4, -3, -2, -1), "0.8"),
        ({"sampling": "time"}, (0, 0, 0, 0, 0), "0.8"),
        ({"sampling": "day"}, (0, 0, 0, 0, 0), "0.8"),
        ({"sampling": "spot", "clock": "recorded"}, (4, 3, 2, 1, 0), "0.8"),
        ({"sampling": "spot"}, (4, 3, 2, 1, 0), "0.2"),
        ({"sampling": "day"}, (4, 3, 2, 1, 0), "0.2"),
        ({"sampling": "time"}, (-1, -2, -3, -4, -5), "0.2"),
    ],
    ids=str,
)
def test_the_newest_is_what_was_made_last_and_of_one_instant_the_last_id(
    fields: dict[str, Any], hours: tuple[int, ...], reference: str, places: tuple[int, ...]
) -> None:
    """They weigh .29 .44 .60 .79 and 1, and half of 3.12 is passed at 0.8; where the first is the newest, at 0.2.

    All are recorded at one instant.
    """
    made = [
        forecast(participant=f"p{who}", probability=p, at=day(10, hour) if hour >= 0 else day(9, 24 + hour))
        for who, (p, hour) in enumerate(zip(FIVE, hours, strict=True))
    ]
    rules = RuleSet(**(RECENCY | fields))
    said: list[AnyCommand] = [opened(opens_at=day(10)), contest(rules=rules), entry()]
    said += [made[place] for place in places]
    parts = list(oracle.projected(*said, resolution()).table("score_parts").rows())
    assert {row["reference"] for row in parts if row["to_at"] == parts[-1]["to_at"]} == {reference}


@RECORDED
def test_a_mean_by_recency_weighs_by_when_it_was_made(places: tuple[int, ...]) -> None:
    """The mean of several outcomes at one instant is Σ w p / Σ w, printed to ten decimals."""
    rules = RuleSet(**(RECENCY | {"consensus": "mean", "sampling": "spot"}))
    names = ("red", "green", "blue")
    made = [
        forecast(
            "colour", f"p{who}", probabilities=dict(zip(names, (p, 0, 1 - float(p)), strict=True)), at=day(10, who)
        )
        for who, p in enumerate(FIVE)
    ]
    said: list[AnyCommand] = [choices(), contest(rules=rules), entry(question="colour")]
    parts = oracle.projected(*said, *(made[place] for place in places), resolution("colour", outcome="red"))
    weights = [oracle.EXACT.exp(oracle.EXACT.sqrt(Decimal(i)) - oracle.EXACT.sqrt(Decimal(5))) for i in range(1, 6)]
    mean = sum((Decimal(p) * w for p, w in zip(FIVE, weights, strict=True)), Decimal(0)) / sum(weights, Decimal(0))
    [reference] = {row["reference"] for row in parts.table("score_parts").rows()}
    assert abs(Decimal(reference) - mean) < Decimal("1e-9")


@settings(max_examples=times(50), deadline=None)
@given(st.integers(0, 2**64).map(Random))
def test_no_table_depends_on_the_order_in_which_participants_forecasts_were_recorded(random: Random) -> None:
    """Rules are drawn field by field or are presets; forecasts have claimed times, or one recorded instant."""
    recent: Any = {"consensus_weights": "recency", "consensus_of": "all", "replicates": 19}
    rules = msgspec.structs.replace(drawn_rules(random), **recent)
    season = Season(
        random, rules, drawn_rules(random), random.choice(list(PRESETS)), uncounted=0.2, quoted=0.5, paid=0.3
    )
    every = [*season.questions, *(each for thread in [*season.threads, *season.contests] for each in thread)]
    accepted = {each.command_id for each in oracle.attempted(every)[0]}
    asked = [each for each in oracle.with_ids(every) if each.id in accepted]
    first = tables(asked)
    for _ in range(2):
        assert tables(recorded_otherwise(season, asked)) == first
