"""Forecasts on questions whose outcomes changed: their numbers, and the rows in which they count."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.facts.columns import Facts, Forecasts
from forecast_ledger.projections.facts.outcomes import as_counted, missing, with_retractions
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.given import (
    BEFORE,
    CLOSES,
    OPENS,
    addition,
    choices,
    contest,
    day,
    entry,
    finalization,
    forecast,
    micros,
    opened,
    removal,
    resolution,
    restatement,
    revocation,
    withdrawal,
)

# --- Retracted forecasts: they count in a replay as of an earlier log position, on sealed boards, and nowhere else.


# A mean over the time from the opening on the 10th to the close on the 20th, as far as a forecast stands.
BRIER = RuleSet(name="mean", kernel="brier", period="covered", total="mean", least_probability_ppm=0)
START: list[AnyCommand] = [opened(), contest(rules=BRIER), contest("sealed", rules=BRIER), entry(), entry("sealed")]
ADA, BO = forecast(at=day(10)), forecast(participant="bo", at=day(10), probability="0.5")
# 0.2 for half of the time, then 0.8: ((1 - 0.2)² + (1 - 0.8)²) / 2 = 0.34
HALVES = restatement(forecast(at=day(10), probability="0.2"), forecast(at=day(15), probability="0.8"))


def scores(*said: AnyCommand, contest: str = "cup", as_of: int | None = None) -> dict[str, str]:
    """The Brier score of each participant on rain."""
    recorded = oracle.history(*START, *said)
    table = Projections(oracle.facts_in(recorded[:as_of])).table("scores")
    return {row["participant"]: row["score"].rstrip("0") for row in table.rows() if row["contest"] == contest}


@pytest.mark.parametrize("late", [False, True])
def test_what_is_restated_counts_and_nothing_else(late: bool) -> None:
    """Before the answer or after it; the score of another participant stays: (1 - 0.7)² = 0.09, (1 - 0.5)² = 0.25."""
    told: list[AnyCommand] = [resolution(), HALVES] if late else [HALVES, resolution()]
    assert scores(ADA, BO, resolution()) == {"ada": "0.09", "bo": "0.25"}
    assert scores(ADA, BO, *told) == {"ada": "0.34", "bo": "0.25"}


def test_who_forecast_nothing_has_no_score() -> None:
    """Neither a forecast nor a withdrawal is left; a later forecast counts alone."""
    assert scores(ADA, BO, resolution(), restatement()) == {"bo": "0.25"}
    assert scores(ADA, withdrawal(at=day(12)), restatement(), resolution()) == {}
    assert scores(ADA, restatement(), forecast(at=day(10), probability="0.5"), resolution()) == {"ada": "0.25"}


def test_a_replay_as_of_an_earlier_position_shows_what_counted_then() -> None:
    """The restatement is at log positions 9 to 11, after five commands, two forecasts and the answer."""
    told: list[AnyCommand] = [ADA, BO, resolution(), HALVES]
    assert scores(*told, as_of=8) == {"ada": "0.09", "bo": "0.25"}
    assert scores(*told, as_of=9) == {"bo": "0.25"}
    assert scores(*told, as_of=11) == {"ada": "0.34", "bo": "0.25"}


def test_a_sealed_board_keeps_what_counted_when_it_was_sealed() -> None:
    """Another contest on the same question counts what was restated."""
    told: list[AnyCommand] = [ADA, BO, resolution(), finalization("sealed"), HALVES, restatement(participant="bo")]
    assert scores(*told, contest="sealed") == {"ada": "0.09", "bo": "0.25"}
    assert scores(*told) == {"ada": "0.34"}


def test_a_row_has_the_first_retraction_after_it() -> None:
    """Of the same participant on the same question; rows of other participants and questions have none."""
    told: list[AnyCommand] = [
        opened(),
        opened("dry"),
        forecast(),  # 3
        forecast(participant="bo"),  # 4
        forecast("dry"),  # 5
        restatement(forecast()),  # 6 and 7
        restatement(forecast()),  # 8 and 9
        restatement(forecast(participant="bo"), participant="bo"),  # 10 and 11
    ]
    facts = oracle.facts_in(oracle.history(*told))
    found = with_retractions(facts, facts.forecasts)
    never = np.iinfo(np.int64).max
    retracted = dict(zip(found.position.tolist(), found.retracted.tolist(), strict=True))
    assert retracted == {3: 6, 4: 10, 5: never, 7: 8, 9: never, 11: never}


TENTH = 10**8
FIRST = {"red": "0.2", "green": "0.1", "blue": "0.7"}
NONE = missing(2)  # whose probability is in blue, the last of the three


def read(*commands: AnyCommand) -> Facts:
    """The facts of a log that opens a question and has these commands about it."""
    return oracle.facts_in(oracle.history(choices(), *commands))


def made(at: str = OPENS, who: str = "ada", **fields: Any) -> AnyCommand:
    """A forecast on colour."""
    return forecast("colour", participant=who, **({"at": at, "probabilities": FIRST} | fields))


def table(facts: Facts, forecasts: Forecasts) -> list[tuple[int, int, bool, list[int]]]:
    """Log position, day of March, whether it is a forecast, and the numbers of each row."""
    width = len(facts.questions[0].outcomes)
    return [
        (
            int(position),
            (int(at) - micros(1)) // (micros(2) - micros(1)) + 1,
            bool(is_made),
            forecasts.chances[start : start + width].tolist() if is_made else [],
        )
        for position, at, is_made, start in zip(
            forecasts.position, forecasts.at, forecasts.made, forecasts.start, strict=True
        )
    ]


def tenths(*each: int) -> list[int]:
    """Numbers in 1e-9; NONE where a forecast has none."""
    return [number if number < 0 else number * TENTH for number in each]


def test_a_forecast_has_a_number_for_every_outcome_that_there_ever_was() -> None:
    """Where it gives none, the number says that the last outcome of the opening has the probability."""
    late = {"green": "0.2", "blue": "0.3", "violet": "0.5"}
    facts = read(made(), removal(at=day(12)), addition(at=day(13)), made(day(14), probabilities=late))
    assert table(facts, facts.forecasts) == [(2, 10, True, tenths(2, 1, 7, NONE)), (5, 14, True, tenths(NONE, 2, 3, 5))]
    both = np.array([0, 1])
    none = np.zeros(2, np.int64)
    for outcome, chances in ((0, [2, 3]), (1, [1, 2]), (2, [7, 3]), (3, [7, 5])):
        found = facts.forecasts.chance(both, np.full(2, outcome), none)
        assert found.tolist() == [10 * TENTH * each for each in chances]


def test_changes_add_rows_at_their_log_positions() -> None:
    """A removal replaces each standing forecast, the end of a grace period ends it, and one made in it has two rows."""
    late = {"green": "0.2", "blue": "0.3", "violet": "0.5"}
    facts = read(
        made(),
        made(who="bob", at=day(11)),
        withdrawal("colour", participant="bob", at=day(11)),
        removal(at=day(12)),
        addition(at=day(13), grace_ends_at=day(15)),
        made(day(14), probabilities=late),
    )
    assert table(facts, as_counted(facts.forecasts, facts.changed)) == [
        (2, 10, True, tenths(2, 1, 7, NONE)),
        (3, 11, True, tenths(2, 1, 7, NONE)),
        (4, 11, False, []),
        (5, 12, True, tenths(NONE, 1, 9, NONE)),
        (6, 15, False, []),
        (7, 14, True, tenths(NONE, 2, 8, NONE)),
        (7, 15, True, tenths(NONE, 2, 3, 5)),
    ]


def test_questions_whose_outcomes_never_change_keep_their_rows() -> None:
    """They are the same object, so that nothing is copied."""
    facts = read(made())
    assert as_counted(facts.forecasts, facts.changed) is facts.forecasts


def test_other_questions_keep_their_rows_beside_one_that_changes() -> None:
    """A forecast on another question counts as it was made."""
    facts = read(made(), opened(), forecast(at=day(11), probability="0.6"), removal(at=day(12)))
    counted = as_counted(facts.forecasts, facts.changed)
    rain = np.flatnonzero(counted.question == 1)
    assert counted.at[rain].tolist() == [micros(11)]
    assert counted.chance(rain, np.zeros(1, np.int64), np.zeros(1, np.int64)).tolist() == [6 * 10**9]


def scored(*commands: AnyCommand, **fields: Any) -> dict[str, str]:
    """Scores by participant, under the logarithm."""
    rules = RuleSet(name="own", kernel="ln", **fields)
    said = [choices(), contest(rules=rules), entry(question="colour"), *commands, resolution("colour", outcome="blue")]
    return {row["participant"]: row["score"] for row in oracle.projected(*said).table("scores").rows()}


def test_a_forecast_from_before_the_opening_does_not_begin_to_stand_by_a_removal() -> None:
    """Under rules by which it never stands."""
    early = [made(BEFORE), removal(at=day(12))]
    assert scored(*early, early_forecasts=False) == {}
    assert scored(*early).keys() == {"ada"}


def test_a_board_that_is_sealed_before_a_change_keeps_its_numbers() -> None:
    """Scores, and the exact fractions, are those of the log without the change."""
    sealed: list[AnyCommand] = [
        choices(),
        contest(rules="baseline"),
        entry(question="colour"),
        made(),
        resolution("colour", outcome="red"),
        finalization("cup"),
    ]
    reopened: list[AnyCommand] = [revocation("colour"), removal("green", at=day(13)), addition(at=day(14))]
    before, after = (oracle.projected(*commands) for commands in (sealed, [*sealed, *reopened]))
    for name in ("scores", "score_parts", "leaderboard"):
        rows = list(before.table(name).rows())
        assert rows == list(after.table(name).rows())
        assert rows


@pytest.mark.parametrize(
    ("changed_on", "made_on", "claimed", "expected"),
    [
        (13, 14, 13, [("0.1", 11, 15), ("0.5", 14, 15), ("0.25", 15, 20)]),  # the grace period ends on the 15th
        (13, 14, 16, [("0.1", 11, 15), ("0.5", 14, 15), ("0.25", 15, 20)]),
        (16, 17, 13, [("0.1", 11, 16), ("0.25", 17, 20)]),  # recorded late, the change counts at once
        (11, 15, 13, [("0.1", 11, 15), ("0.25", 15, 20)]),
    ],
)
def test_under_the_recorded_clock_a_grace_period_ends_when_it_is_recorded_at_the_earliest(
    changed_on: int, made_on: int, claimed: int, expected: list[tuple[str, int, int]]
) -> None:
    """The days on which the addition and Bob's forecast are recorded, and which he claims; Ada forecast on the 11th."""
    rules = RuleSet(name="own", kernel="ln", clock="recorded", period="actual")
    late = {"red": "0.3", "green": "0.2", "blue": "0.25", "violet": "0.25"}
    said: list[tuple[int, AnyCommand]] = [
        (9, choices()),
        (9, contest(rules=rules)),
        (9, entry(question="colour")),
        (11, made(probabilities={"red": "0.5", "green": "0.4", "blue": "0.1"})),
        (changed_on, addition(at=day(12), grace_ends_at=day(15))),
        (made_on, made(day(claimed), "bob", probabilities=late)),
        (25, resolution("colour", outcome="violet")),
    ]
    days, told = zip(*said, strict=True)
    parts = oracle.projected(*told, at=map(micros, days)).table("score_parts").rows()
    found = [(str(part["probability"]), int(part["from_at"][8:10]), int(part["to_at"][8:10])) for part in parts]
    assert found == expected


ROOT_3, E_4 = Decimal(1) / Decimal(3).sqrt(), Decimal("0.25").exp() / 3
THIRD = Decimal(1) / 3
FIRST_PMF, SECOND_PMF = (THIRD, 1 - ROOT_3 - THIRD, ROOT_3), (THIRD, 1 - E_4 - THIRD, E_4)
EVEN_PMF = (THIRD, THIRD, 1 - 2 * THIRD)


@pytest.mark.parametrize(
    ("preset", "forecasts", "answers"),
    [
        ("baseline", [FIRST_PMF], {"red": [0], "violet": [50], "blue": [50]}),
        ("spot-baseline", [FIRST_PMF], {"red": [0], "violet": [50], "blue": [50]}),
        ("peer-2025-06", [SECOND_PMF, EVEN_PMF], {"red": [0, 0], "violet": [25, -25], "blue": [25, -25]}),
        ("spot-peer", [SECOND_PMF, EVEN_PMF], {"red": [0, 0], "violet": [25, -25], "blue": [25, -25]}),
    ],
)
@pytest.mark.parametrize("removed", [False, True])
def test_scores_that_metaculus_publishes_for_an_option_without_a_probability(
    preset: str, forecasts: list[tuple[Decimal, ...]], answers: dict[str, list[int]], removed: bool
) -> None:
    """Metaculus, tests/unit/test_scoring/test_score_math.py: multiple choice with a placeholder; 1e-9 of probability is
    1e-6 points at most.

    The option is one whose grace period goes on until the close, or one that is removed at the opening.
    """
    for answer, expected in answers.items():
        if removed and answer == "violet":
            continue  # an option that was removed cannot be the answer
        names = ("red", "green", "violet", "blue") if removed else ("red", "green", "blue")
        change = removal("violet", at=OPENS) if removed else addition(at=OPENS, grace_ends_at=day(28))
        said: list[AnyCommand] = [
            forecast(
                "colour", f"p{number}", at=OPENS, probabilities=dict(zip(("red", "green", "blue"), each, strict=True))
            )
            for number, each in enumerate(forecasts)
        ]
        start: list[AnyCommand] = [choices(outcomes=names), contest(rules=preset), entry(question="colour")]
        told: list[AnyCommand] = [*start, *([change, *said] if removed else [*said, change])]
        rows = oracle.projected(*told, resolution("colour", outcome=answer, known_at=CLOSES)).table("scores").rows()
        found = [Decimal(row["score"]) for row in rows]
        assert len(found) == len(expected)
        assert all(abs(score - each) < Decimal("0.000001") for score, each in zip(found, expected, strict=True)), found
