"""Boards: totals, takes, ranks, exclusions, and sealing."""

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS, Level, RuleSet
from forecast_ledger.projections.boards.leaderboard import TAKES, positive_square, published_take, total
from forecast_ledger.projections.boards.totals import ParticipantSums
from forecast_ledger.projections.core.powers import Magnitude
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    OPENS,
    REVEALS,
    annulment,
    asked,
    choices,
    contest,
    day,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    numeric,
    opened,
    payment,
    resolution,
    revocation,
    withdrawal,
)
from tests.support.given import forecasts as said
from tests.support.logs import written
from tests.support.processes import Command
from tests.support.waiting import PATIENCE

Row = dict[str, Any]
CHANCES = {"ada": "0.5", "bob": "0.8", "cyd": "0.2", "dan": "0.5"}  # against a median of 0.5


def forecasts(question: str = "rain", chances: dict[str, str] = CHANCES) -> list[AnyCommand]:
    """Return forecasts that stand from the opening to the close."""
    return said(question, **chances)


def start(**rules: Any) -> list[AnyCommand]:
    """Return a contest with a pool of 100 over one question."""
    return [opened(reveals_at=REVEALS), contest(**({"pool": 100} | rules)), entry()]


def board(*commands: AnyCommand, contest: str = "cup") -> list[Row]:
    """Return the rows of a contest's board."""
    return list(oracle.projected(*commands).table("leaderboard").only("contest", contest).rows())


def columns(rows: Sequence[Row], *names: str) -> list[tuple[Any, ...]]:
    """Return some columns of a board."""
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize(
    ("score", "coverage", "name", "take"),
    [
        ("-0.229", "5/6", "coverage_exp", "0.662773778"),  # 5/6 · 0.795328533…
        ("3", "1/2", "coverage_exp2", "4.000000000"),
        ("0", "1/3", "coverage_exp", "0.333333333"),
        ("5", "0", "coverage_exp", "0.000000000"),
        ("-3000", "1", "coverage_exp", "0.000000000"),
        ("0", "0.0000000005", "coverage_exp2", "0.000000000"),
        ("0", "0.0000000015", "coverage_exp2", "0.000000002"),
        ("0", "0.00000000050001", "coverage_exp", "0.000000001"),
        ("0.9", "1/7", "positive_square", "0.810000000"),
        ("-0.9", "1", "positive_square", "0.000000000"),
        ("0", "1", "positive_square", "0.000000000"),
        ("1/3", "1", "positive_square", "0.111111111"),
    ],
)
def test_a_take_is_coverage_times_a_power_of_the_score_or_the_square_of_a_positive_score(
    score: str, coverage: str, name: str, take: str
) -> None:
    """Takes have nine decimals, rounded half-even; a square does not depend on coverage."""
    worth = TAKES[name].worth
    assert worth is not None
    assert published_take(worth(Fraction(score), Fraction(coverage))) == take


@pytest.mark.parametrize(
    ("exponent", "mantissa", "text"),
    [
        (20, Fraction(1), "1" + "0" * 20 + ".000000000"),
        (20, Fraction(15, 8), "1875" + "0" * 17 + ".000000000"),
        (21, Fraction(1), "1E+21"),
        (41, Fraction(21, 5), "4.2E+41"),
        (41, 10 - Fraction(1, 10**28), "9." + "9" * 28 + "E+41"),
        (41, 10 - Fraction(1, 10**30), "1E+42"),
        (41, 1 + Fraction(1, 2 * 10**29), "1E+41"),
        (-10, Fraction(5), "0.000000000"),
        (-10, Fraction(501, 100), "0.000000001"),
        (-40, Fraction(9), "0.000000000"),
    ],
)
def test_a_take_is_written_with_nine_decimals_or_thirty_digits(exponent: int, mantissa: Fraction, text: str) -> None:
    """From 1e21 on, thirty digits end before the ninth decimal; they are rounded half-even."""
    assert published_take(Magnitude(True, exponent, mantissa)) == text


@given(st.fractions(-1_000, 1_000), st.fractions(-1_000, 1_000))
def test_squares_compare_as_the_positive_scores_do(first: Fraction, second: Fraction) -> None:
    """The comparison is exact; all scores up to 0 have equal squares."""
    takes = positive_square(first, Fraction(1)), positive_square(second, Fraction(0))
    scores = max(first, Fraction(0)), max(second, Fraction(0))
    assert (takes[0] < takes[1], takes[0] == takes[1]) == (scores[0] < scores[1], scores[0] == scores[1])


def sums(score: str, weight: str, covered: str) -> ParticipantSums:
    """Return the sums of a participant's scores."""
    return ParticipantSums("ada", "", Fraction(score), Fraction(weight), Fraction(1, 2), Fraction(covered), 3, ())


@pytest.mark.parametrize(
    ("name", "least_coverage", "expected"),
    [
        ("sum", 0, "7.5"),
        ("mean", 0, "1.875"),
        ("per_coverage", 1, "3"),
        ("per_coverage", 2, "3"),
        ("per_coverage", 3, "2.5"),
        ("per_coverage", 30, "0.25"),
    ],
)
def test_a_total_is_a_sum_or_a_mean_over_weights_or_over_coverage(
    name: Any, least_coverage: int, expected: str
) -> None:
    """7.5 is divided by the weight 4 or the coverage 2.5, or by at least 30 since January 2024."""
    rules = RuleSet(name="own", kernel="ln", total=name, least_coverage=least_coverage)
    assert total(rules, sums("7.5", "4", "2.5")) == Fraction(expected)


def test_equal_takes_share_a_rank_and_the_next_rank_is_left_out() -> None:
    """Ranks are 1, 2, 2, 4 for 0.8, twice 0.5, and 0.2, with the median 0.5; equals are in order of id."""
    rows = board(*start(), *forecasts(), resolution())
    assert columns(rows, "rank", "participant", "take") == [
        (1, "bob", "1.600000000"),
        (2, "ada", "1.000000000"),
        (2, "dan", "1.000000000"),
        (4, "cyd", "0.400000000"),
    ]


@pytest.mark.parametrize(
    ("ada", "bob", "take", "prizes"),
    [
        ("0.72", "0.3", "0.600000000", ["19.23", "19.23", "19.23", "19.23", "11.54", "11.54"]),
        ("0.0392", "0.07", "0.140000000", ["23.37", "23.37", "23.36", "23.36", "3.27", "3.27"]),
        ("0.018432", "0.048", "0.096000000", ["23.86", "23.86", "23.85", "23.85", "2.29", "2.29"]),
    ],
)
def test_under_base_2_takes_that_are_equal_as_powers_share_a_rank_and_a_prize(
    ada: str, bob: str, take: str, prizes: list[str]
) -> None:
    """Half the coverage and a score that is larger by exactly 1, neither an integer: p = 8 q² against 0.5.

    Ada says p for half the period, Bob q all along: log2(p / 0.5) / 2 - log2(q / 0.5) = 1, in 1e-12 too; takes are 2q.
    """
    chances = {"ada": ada, "bob": bob} | dict.fromkeys(("cyd", "dan", "eve", "fay"), "0.5")
    rows = board(*start(rules="relative-2021-11"), *forecasts(chances=chances), withdrawal(at=day(15)), resolution())
    assert columns(rows, "rank", "participant")[3:] == [(1, "fay"), (5, "ada"), (5, "bob")]
    assert Decimal(rows[4]["score"]) - Decimal(rows[5]["score"]) == 1
    assert rows[4]["take"] == rows[5]["take"] == take
    assert [row["prize"] for row in rows] == prizes


def test_a_row_of_the_board_has_score_coverage_take_share_prize_and_completion() -> None:
    """1.6 / 4 of 100; ln 1.6 = 0.470003629."""
    [first, *_] = board(*start(), *forecasts(), resolution())
    assert first == {
        "contest": "cup",
        "rank": 1,
        "participant": "bob",
        "score": "0.470003629",
        "coverage": "1.000000000",
        "attainable": "1.000000000",
        "take": "1.600000000",
        "share": "0.400000000",
        "prize": "40.00",
        "completion": "1/1",
        "submissions": 1,
        "excluded": "",
    }


def test_under_base_2_takes_that_are_equal_share_a_rank() -> None:
    """Half the coverage and twice the power: 1/2 · 2^1 = 1 · 2^0, for log2(0.8 / 0.2) = 2 over half the period."""
    chances = {"ada": "0.8", "bob": "0.2", "cyd": "0.2"}
    late = [*forecasts(chances=chances), withdrawal(at=day(15)), resolution()]
    rows = board(*start(rules="relative-2021-11"), *late)
    expected = [("ada", "1.000000000", "0.500000000"), ("bob", "0.000000000", "1.000000000")]
    assert columns(rows, "participant", "score", "coverage")[:2] == expected
    assert columns(rows, "rank", "take") == [(1, "1.000000000")] * 3


@pytest.mark.parametrize(
    ("level", "ranks", "prizes"),
    [
        ("no_prize", [("bob", 1), ("ada", 2), ("dan", 2), ("cyd", 4)], ["0.00", "41.67", "41.66", "16.67"]),
        ("no_rank", [("bob", None), ("ada", 1), ("dan", 1), ("cyd", 3)], ["0.00", "41.67", "41.66", "16.67"]),
        ("hidden", [("ada", 1), ("dan", 1), ("cyd", 3)], ["41.67", "41.66", "16.67"]),
    ],
)
def test_an_excluded_participant_loses_the_prize_then_the_rank_then_the_row(
    level: Level, ranks: list[tuple[str, int | None]], prizes: list[str]
) -> None:
    """It still counts in the median. 1, 1 and 0.4 of 2.4 share 100: 41.666…, 41.666…, 16.666…."""
    rows = board(*start(), *forecasts(), exclusion(participant="bob", level=level), resolution())
    assert columns(rows, "participant", "rank") == ranks
    assert [row["prize"] for row in rows] == prizes
    assert {row["excluded"] for row in rows if row["participant"] == "bob"} <= {level}
    assert {row["excluded"] for row in rows if row["participant"] != "bob"} == {""}
    assert {row["take"] for row in rows if row["participant"] in {"ada", "dan"}} == {"1.000000000"}


@pytest.mark.parametrize(
    ("level", "own", "shown"),
    [
        ("none", None, ""),
        ("no_prize", None, "no_prize"),
        ("no_rank", None, "no_rank"),
        ("no_rank", "no_prize", "no_rank"),
        ("no_prize", "no_rank", "no_rank"),
        ("no_rank", "no_rank", "no_rank"),
        ("none", "no_prize", "no_prize"),
        ("hidden", "no_prize", None),
        ("no_prize", "hidden", None),
        ("hidden", None, None),
    ],
)
def test_of_a_bots_own_level_and_that_of_all_bots_the_higher_counts(
    level: str, own: Level | None, shown: str | None
) -> None:
    """A bot is excluded as the rules say, unless it is excluded at a higher level; people are not.

    Source: Metaculus's published code, leaderboards: the highest level of all records that apply and the board's own.
    """
    rules = structs.replace(PRESETS["relative-2022-04"], bot_level=level)
    bots: list[AnyCommand] = [enrolment(participant="bob", bot=True), enrolment(participant="ada")]
    excluded: list[AnyCommand] = [exclusion(participant="bob", level=own)] if own else []
    rows = board(*start(rules=rules), *bots, *forecasts(), *excluded, resolution())
    reasons = {row["participant"]: row["excluded"] for row in rows}
    assert reasons == {"ada": "", "cyd": "", "dan": ""} | ({} if shown is None else {"bob": shown})
    [rank_of_ada] = [row["rank"] for row in rows if row["participant"] == "ada"]
    assert rank_of_ada == (2 if shown in {"", "no_prize"} else 1)
    assert (sum(Fraction(row["prize"]) for row in rows if row["participant"] == "bob") > 0) == (shown == "")


def test_bots_excluded_by_the_rules_count_in_the_consensus_unless_their_level_is_scored_only() -> None:
    """Medians of 0.5 and 0.8, and of 0.8 alone: Ada's 0.8 against 0.65 is ln 0.8/0.65, against her own 0."""
    ruled = {"bot_level": "no_rank"}
    both = [enrolment(participant="bob", bot=True), *forecasts(chances={"ada": "0.8", "bob": "0.5"}), resolution()]
    for more, score in (({}, "0.207639365"), ({"scored_only_levels": ("no_rank",)}, "0.000000000")):
        rules = structs.replace(PRESETS["relative-2022-04"], **ruled, **more)
        rows = board(*start(rules=rules), *both)
        assert [row["score"] for row in rows if row["participant"] == "ada"] == [score]


THREE = ("rain", "hail", "snow")


def played(rules: RuleSet, *more: AnyCommand, **people: str) -> list[Row]:
    """Return the board of three questions that came true. people: those that each forecast on, by first letter."""
    commands: list[AnyCommand] = [contest(rules=rules, pool=100), *more]
    for question in THREE:
        commands += asked(question, {who: CHANCES[who] for who, letters in people.items() if question[0] in letters})
    return board(*commands)


@pytest.mark.parametrize(
    ("floor", "few"),
    [
        ({}, ""),
        ({"least_questions": 1}, ""),
        ({"least_questions": 2}, "bob"),
        ({"least_questions": 3}, "ada bob"),
        ({"least_questions": 4}, "ada bob cyd"),
        ({"least_share_ppm": 333_333}, ""),
        ({"least_share_ppm": 333_334}, "bob"),
        ({"least_share_ppm": 666_666}, "bob"),
        ({"least_share_ppm": 666_667}, "ada bob"),
        ({"least_share_ppm": 1_000_000}, "ada bob"),
        ({"least_questions": 2, "least_share_ppm": 950_000}, "ada bob"),
    ],
    ids=str,
)
def test_whoever_forecast_on_too_few_questions_is_shown_without_rank_and_prize(floor: dict[str, int], few: str) -> None:
    """The others are ranked and paid as if they were not there; a share is compared exactly.

    Takes: Bob (0.8) earns most a question, Cyd (0.2) is on all three. Source of the share: ForecastBench's
    leaderboard, which leaves out sets with more than 5% imputed forecasts.
    """
    rules = structs.replace(PRESETS["relative-2022-04"], **floor)
    rows = played(rules, ada="rh", bob="r", cyd="rhs")
    left_out = {row["participant"]: row for row in rows if row["excluded"]}
    assert set(left_out) == {*few.split()}
    assert {(row["excluded"], row["rank"], row["prize"]) for row in left_out.values()} <= {
        ("too_few_questions", None, "0.00")
    }
    ranks = [row["rank"] for row in rows if not row["excluded"]]
    assert ranks == [*range(1, len(ranks) + 1)]
    assert sum(Fraction(row["prize"]) for row in rows) == (100 if ranks else 0)
    assert {row["participant"]: row["completion"] for row in rows} == {"ada": "2/3", "bob": "1/3", "cyd": "3/3"}


def test_the_best_submission_is_chosen_among_those_with_enough_questions() -> None:
    """Bob's lower loss is on one question only, so that Ada's submission is the best of the team."""
    team = [enrolment(participant=who, entrant="team") for who in ("ada", "bob")]
    rows = played(brier(best_of_entrant=True, least_questions=2), *team, ada="rh", bob="r", cyd="rhs")
    assert columns(rows, "participant", "rank", "excluded") == [
        ("bob", None, "too_few_questions"),
        ("ada", 1, ""),
        ("cyd", 2, ""),
    ]


@pytest.mark.parametrize(
    ("level", "reason"), [("no_prize", "too_few_questions"), ("no_rank", "no_rank"), ("hidden", None)]
)
def test_of_two_reasons_the_board_shows_the_one_that_takes_more(level: Level, reason: str | None) -> None:
    """Too few questions takes the rank, which no_prize leaves."""
    rules = structs.replace(PRESETS["relative-2022-04"], least_questions=2)
    rows = played(rules, exclusion(participant="bob", level=level), bob="r", cyd="rhs")
    shown = {row["participant"]: row["excluded"] for row in rows}
    assert shown == {"cyd": ""} | ({} if reason is None else {"bob": reason})


@pytest.mark.parametrize(("least", "divisors"), [(1, (1, 2, 3)), (2, (2, 2, 3)), (40, (40, 40, 40))])
def test_a_total_per_question_is_divided_by_at_least_the_least_count(least: int, divisors: tuple[int, ...]) -> None:
    """Baseline scores of 0.8 are 100 (1 + log2 0.8) = 67.8071905112638; the sum is over max(questions, least).

    Source: Metaculus's published code, leaderboards, "peer_global_legacy": max(40, count).
    """
    rules = structs.replace(PRESETS["baseline"], total="per_question", least_coverage=least)
    counts = {"ann": "r", "bea": "rh", "cee": "rhs"}
    commands: list[AnyCommand] = [contest(rules=rules)]
    for question in THREE:
        commands += asked(question, {who: "0.8" for who, letters in counts.items() if question[0] in letters})
    totals = {row["participant"]: Decimal(row["score"]) for row in board(*commands)}
    for (who, letters), divisor in zip(counts.items(), divisors, strict=True):
        assert abs(totals[who] - Decimal("67.8071905112638") * len(letters) / divisor) < Decimal("1e-9")


def test_the_last_exclusion_of_a_participant_counts() -> None:
    """The last exclusion replaces earlier ones, stricter or milder; in another contest it has no effect."""
    levels: list[AnyCommand] = [exclusion(participant="bob", level=level) for level in ("hidden", "no_prize")]
    rows = board(*start(), *forecasts(), *levels, contest("league"), exclusion("league", "ada"), resolution())
    assert columns(rows, "participant", "excluded")[:2] == [("bob", "no_prize"), ("ada", "")]


def test_excluding_a_participant_without_a_forecast_changes_nothing() -> None:
    """There is no row that it could remove."""
    assert board(*start(), *forecasts(), exclusion(participant="zoe"), resolution()) == board(
        *start(), *forecasts(), resolution()
    )


def test_weights_multiply_scores_and_weigh_coverage() -> None:
    """The weights are 3 and 1: Bob has 3 · ln 1.6 and 3/4 of coverage; Ada ln(0.6 / 0.4) and full coverage."""
    rows = board(contest(), *asked("rain", CHANCES, weight=3), *asked("wind", {"ada": "0.6", "cyd": "0.2"}))
    assert columns(rows, "participant", "score", "coverage", "completion") == [
        ("bob", "1.410010888", "0.750000000", "1/2"),
        ("ada", "0.405465108", "1.000000000", "2/2"),
        ("dan", "0.000000000", "0.750000000", "1/2"),
        ("cyd", "-3.442019376", "1.000000000", "2/2"),
    ]


def test_a_question_of_weight_0_is_scored_and_its_board_does_not_count_it() -> None:
    """The board is that of rain alone: without cyd, who forecast on wind alone; the scores on wind are shown."""
    start: list[AnyCommand] = [opened(), opened("wind"), contest(pool=100), entry(weight=3)]
    start += [*forecasts(chances={"ada": "0.5", "bob": "0.8"}), resolution()]
    without = board(*start)
    wind = [*forecasts("wind", {"ada": "0.9", "cyd": "0.1"}), resolution("wind")]
    tables = oracle.projected(*start, entry(question="wind", weight=0), *wind)
    rows = list(tables.table("leaderboard").rows())
    assert rows == without
    assert {row["completion"] for row in rows} == {"1/1"}
    scored = tables.table("scores").only("question", "wind").rows()
    assert [(row["participant"], row["score"]) for row in scored] == [("ada", "0.587786665"), ("cyd", "-1.609437912")]


@pytest.mark.parametrize("rules", ["brier-daily", "autocast-2022", "peer-average", "baseline", "arena-v1"])
def test_a_contest_whose_questions_all_have_weight_0_has_an_empty_board(rules: str) -> None:
    """No total is divided by a sum of weights that is 0, and nobody is on any of the boards."""
    start: list[AnyCommand] = [opened(), contest(rules=rules), entry(weight=0)]
    tables = oracle.projected(*start, *forecasts(), resolution())
    assert len(list(tables.table("scores").rows())) == 4
    for name in ("leaderboard", "kind_means", "brier", "calibration", "prizes"):
        assert list(tables.table(name).rows()) == []


def test_a_kind_whose_questions_have_weight_0_is_not_in_a_total_of_kind_means() -> None:
    """Autocast's total is the sum of one mean a kind; colour's would be the worst score for bob, who left it out."""
    questions: list[AnyCommand] = [opened(), choices(), contest(rules="autocast-2022"), entry()]
    questions += [entry(question="colour", weight=0), *forecasts(chances={"ada": "0.5", "bob": "0.8"})]
    painted = forecast("colour", "ada", probabilities={"red": 1, "green": 0, "blue": 0}, at=OPENS)
    rows = board(*questions, painted, resolution(), resolution("colour", outcome="green"))
    assert columns(rows, "participant", "score") == [("bob", "4.000000000"), ("ada", "25.000000000")]


def test_a_score_is_summed_before_it_is_rounded() -> None:
    """Three times ln(0.8 / 0.5) = 0.470003629246 is 1.410010888, and ten times 4.700036292, not 4.700036290."""
    commands = [command for number in range(10) for command in asked(f"q{number}", CHANCES)]
    assert board(contest(), *commands)[0]["score"] == "4.700036292"


def test_only_resolved_questions_count_towards_coverage_and_completion() -> None:
    """One of four counts: the others are open, annulled and revoked."""
    names = ("rain", "wind", "snow", "hail")
    commands: list[AnyCommand] = [
        contest(),
        *(opened(name) for name in names),
        *(entry(question=name) for name in names),
    ]
    commands += [made for name in names for made in forecasts(name)]
    commands += [resolution(), annulment("wind"), resolution("snow"), revocation("snow")]
    rows = board(*commands)
    assert {(row["coverage"], row["completion"]) for row in rows} == {("1.000000000", "1/1")}


def test_without_coverage_there_is_no_take_and_no_prize() -> None:
    """Only hidden days count, and Bob forecasts after them: he is last on the board, behind a worse score."""
    commands: list[AnyCommand] = [opened(reveals_at=REVEALS), contest(pool=100), entry(hidden_coverage_weight=1)]
    late = [forecast(participant=who, probability="0.9", at=day(13)) for who in ("bob", "abe")]
    early = forecast(participant="cyd", probability="0.2", at=OPENS)
    rows = board(*commands, *late, early, resolution())
    assert columns(rows, "rank", "participant", "coverage", "take", "prize") == [
        (1, "cyd", "1.000000000", rows[0]["take"], "100.00"),
        (2, "abe", "0.000000000", "0.000000000", "0.00"),
        (2, "bob", "0.000000000", "0.000000000", "0.00"),
    ]


def test_a_contest_without_a_counting_question_has_an_empty_board() -> None:
    """The contest has no question, no resolved one, or none with a forecast."""
    assert board(contest()) == []
    assert board(*start(), *forecasts()) == []
    assert board(*start(), resolution()) == []


def test_each_contest_has_its_own_board() -> None:
    """Boards are in order of contest id, each over its own questions."""
    second_contest = [opened("wind"), contest("cap", pool=10), entry("cap", "wind"), *forecasts("wind", {"zoe": "0.3"})]
    table = oracle.projected(*start(), *second_contest, *forecasts(), resolution(), resolution("wind")).table(
        "leaderboard"
    )
    assert columns(list(table.rows()), "contest", "participant") == [
        ("cap", "zoe"),
        *(("cup", who) for who in ("bob", "ada", "dan", "cyd")),
    ]


LATER: dict[str, list[AnyCommand]] = {
    "a revocation": [revocation()],
    "another resolution": [revocation(), resolution(outcome="no")],
    "an annulment": [annulment()],
    "a resolution that was missing": [resolution("wind")],
    "somebody's first forecast": [forecast("wind", "abe", at=day(19))],
    "a payment": [payment()],
    "a forecast, once revoked": [
        revocation(),
        forecast(participant="ada", probability="0.9", at=day(19)),
        resolution(),
    ],
}


@pytest.mark.parametrize("later", LATER.values(), ids=LATER.keys())
def test_a_finalized_board_does_not_move(later: list[AnyCommand]) -> None:
    """No digit of it changes, nor of its scores, their parts and prizes."""
    enrolled: list[AnyCommand] = [enrolment(participant=who, entrant="team") for who in ("ada", "abe")]
    commands = [
        *start(),
        opened("wind"),
        entry(question="wind"),
        *enrolled,
        *forecasts(),
        *forecasts("wind"),
        resolution(),
    ]
    before, after = oracle.projected(*commands, finalization()), oracle.projected(*commands, finalization(), *later)
    for name in ("leaderboard", "scores", "score_parts", "brier", "calibration"):
        assert before.table(name).digest() == after.table(name).digest()
    assert [prize[:3] for prize in before.prizes("cup")] == [prize[:3] for prize in after.prizes("cup")]
    assert len(before.table("leaderboard")) == 4


def test_a_finalized_board_takes_no_exclusion_and_no_question() -> None:
    """Both are refused, and the board stays the same."""
    commands = [*start(), opened("wind"), *forecasts(), resolution(), finalization()]
    recorded, refused = oracle.attempted(
        [*commands, exclusion(participant="bob"), entry(question="wind"), finalization()]
    )
    assert [each.code for each in refused] == ["contest_finalized"] * 3
    assert list(Projections(oracle.facts_in(recorded)).table("leaderboard").rows()) == board(*commands)


def test_a_resolution_after_a_board_was_sealed_counts_in_other_contests() -> None:
    """Each board is sealed at its own log position."""
    commands = [*start(), contest("open"), entry("open"), *forecasts(), finalization(), resolution()]
    assert board(*commands) == []
    assert len(board(*commands, contest="open")) == 4


def test_five_hundred_worst_scores_leave_prizes_that_sum_to_the_pool() -> None:
    """500 · ln 0.001 = -3453.877639491…: a take of 1e-1500 gets no cent, but ranks above 1e-1503."""
    names = [f"q{number:03}" for number in range(501)]
    commands: list[AnyCommand] = [contest(pool="0.03")]
    for name in names:
        others = dict.fromkeys(("bob", "cyd", "dan", "eve"), "1") | {"zed": "0"}
        commands += asked(name, others | {"abe": "0" if name != "q500" else "1"})
    rows = board(*commands)
    prizes = [("bob", "0.01"), ("cyd", "0.01"), ("dan", "0.01"), ("eve", "0.00"), ("abe", "0.00"), ("zed", "0.00")]
    assert columns(rows, "participant", "prize") == prizes
    assert [row["rank"] for row in rows] == [1, 1, 1, 1, 5, 6]
    assert columns(rows, "score", "take")[4] == ("-3453.877639491", "0.000000000")


def test_a_very_large_take_is_still_written_as_a_decimal() -> None:
    """With the weight 20,000 the score is 20,000 · ln 1.8, and the take 1.8^20000 has 5,106 digits."""
    commands = [opened(), contest(pool=100), entry(weight=20_000), *forecasts(chances={"ada": "0.9", "bob": "0.1"})]
    table = oracle.projected(*commands, resolution()).table("leaderboard")
    [row, _] = table.rows()
    power = oracle.EXACT.power(Decimal("1.8"), 20_000)
    assert abs(oracle.EXACT.divide(Decimal(row["take"]), power) - 1) < Decimal("1e-7")  # ln 1.8 is rounded to 1e-12
    assert len(table.digest()) == 64


def test_takes_of_very_different_size_cost_no_more_than_others(tmp_path: Path) -> None:
    """A weight of 1,000,000 is allowed, so e^-6,000,000 beside 1 must not be expanded."""
    made = forecasts(chances={"ada": "0.9", "bob": "0.9", "cyd": "0"})
    log = written(tmp_path / "log.db", [opened(), contest(pool=100), entry(weight=1_000_000), *made, resolution()])
    command = Command("leaderboard", log, "cup", "--columns", "prize", "--format", "csv")
    try:
        done = command.ended(PATIENCE)
    finally:
        command.kill()
    assert done.stdout.split() == ["prize", "50.00", "50.00", "0.00"]
    assert "Warning" not in done.stderr


@pytest.mark.parametrize("weight", [1, 1_000_000])
def test_a_program_that_works_with_few_digits_gets_the_same_board(weight: int) -> None:
    """The decimal context of the embedding program, its precision and range, changes nothing."""
    chances = {"ada": "0.9", "bob": "0.9001", "cyd": "0.8999"}
    projections = oracle.projected(opened(), contest(), entry(weight=weight), *forecasts(chances=chances), resolution())
    with localcontext(Context(prec=3, Emin=-9, Emax=9)):
        places = projections.board("cup")
    assert [place.participant for place in places] == ["bob", "ada", "cyd"]
    assert [place.rank for place in places] == [1, 2, 3]


def test_takes_that_differ_in_the_last_of_thirty_digits_are_ranked_by_take() -> None:
    """A billionth better for the last µs of a century, at a weight of 0.0001, is 6e-29 and no tie, for any ids."""
    span = {"opens_at": "1970-01-01T00:00:00Z", "closes_at": "2069-12-31T00:00:00Z"}
    late, last = "2100-01-01T00:00:00Z", "2069-12-30T23:59:59.999999Z"
    early = [forecast(participant=who, probability="0.5", at="1969-12-31T00:00:00Z") for who in ("ada", "bob", "cyd")]
    better = forecast(participant="bob", probability="0.500000001", at=last)
    [first, *rest] = board(opened(**span), contest(), entry(weight="0.0001"), *early, better, resolution(at=late))
    assert (first["participant"], first["rank"]) == ("bob", 1)
    assert columns(rest, "participant", "rank") == [("ada", 2), ("cyd", 2)]


# --- losses, submissions, and who is no member


def brier(**fields: Any) -> RuleSet:
    """Return rules with halved Brier scores, of which the least is best."""
    given: dict[str, Any] = {"name": "brier", "kernel": "brier", "period": "covered", "total": "mean"}
    return RuleSet(**(given | fields))


def test_the_least_loss_is_first() -> None:
    """Ranks are 1, 2, 2, 4, in order of id among equals; there is no take."""
    rows = board(*start(rules=brier()), *forecasts(), resolution())
    assert columns(rows, "rank", "participant", "score", "take") == [
        (1, "bob", "0.040000000", None),
        (2, "ada", "0.250000000", None),
        (2, "dan", "0.250000000", None),
        (4, "cyd", "0.640000000", None),
    ]


def test_a_board_may_be_sorted_by_total_and_paid_by_take() -> None:
    """All scores below 0 have the square 0: by take Cyd and Dan share the third rank, by total they do not."""
    peers = RuleSet(name="own", kernel="ln", reference="peers", take="positive_square")
    chances = {"ada": "0.5", "bob": "0.8", "cyd": "0.2", "dan": "0.4"}
    by_total = board(*start(rules=peers), *forecasts(chances=chances), resolution())
    by_take = board(*start(rules=structs.replace(peers, rank_by="take")), *forecasts(chances=chances), resolution())
    assert columns(by_total, "participant", "rank") == [("bob", 1), ("ada", 2), ("dan", 3), ("cyd", 4)]
    assert columns(by_take, "participant", "rank") == [("bob", 1), ("ada", 2), ("cyd", 3), ("dan", 3)]
    assert {tuple(row.values())[2:9] for row in by_total} == {tuple(row.values())[2:9] for row in by_take}
    assert sum(Fraction(row["prize"]) for row in by_total) == 100


TEAMS: list[AnyCommand] = [enrolment(participant=who, entrant="team") for who in ("ada", "bob", "zoe")]


def test_only_the_best_submission_of_an_entrant_is_ranked() -> None:
    """The others are shown after it without a rank and use none up; a submission without a forecast counts, too."""
    rules = brier(best_of_entrant=True)
    rows = board(*start(rules=rules), *TEAMS, *forecasts(), resolution())
    assert columns(rows, "participant", "rank", "excluded", "submissions") == [
        ("bob", 1, "", 3),
        ("ada", None, "not_best", 3),
        ("dan", 2, "", 1),
        ("cyd", 3, "", 1),
    ]


def test_without_best_of_entrant_every_submission_is_ranked() -> None:
    """They are counted as submissions."""
    rows = board(*start(rules=brier()), *TEAMS, *forecasts(), resolution())
    assert columns(rows, "participant", "rank", "submissions") == [
        ("bob", 1, 3),
        ("ada", 2, 3),
        ("dan", 2, 1),
        ("cyd", 4, 1),
    ]


def test_the_first_id_of_equal_submissions_is_the_best() -> None:
    """Ada and Dan both forecast 0.5."""
    team = [enrolment(participant=who, entrant="team") for who in ("dan", "ada")]
    rows = board(*start(rules=brier(best_of_entrant=True)), *team, *forecasts(), resolution())
    assert columns(rows, "participant", "rank")[1:3] == [("ada", 2), ("dan", None)]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("hidden", [("ada", 1, ""), ("dan", 1, ""), ("cyd", 3, "")]),
        ("no_rank", [("bob", None, "no_rank"), ("ada", 1, ""), ("dan", 1, ""), ("cyd", 3, "")]),
        ("no_prize", [("bob", 1, "no_prize"), ("ada", None, "not_best"), ("dan", 2, ""), ("cyd", 3, "")]),
    ],
)
def test_the_best_submission_is_chosen_among_those_that_can_be_ranked(
    level: Level, expected: list[tuple[str, int | None, str]]
) -> None:
    """A hidden or unranked submission is not the best; one without a prize can be, and the others have no rank."""
    exclusion_of_bob = exclusion(participant="bob", level=level)
    rows = board(*start(rules=brier(best_of_entrant=True)), *TEAMS, *forecasts(), exclusion_of_bob, resolution())
    assert columns(rows, "participant", "rank", "excluded") == expected


def test_only_the_best_submission_is_paid() -> None:
    """The best submissions share the pool by take; Ada's, which is not the best of its entrant, gets nothing."""
    rules = structs.replace(PRESETS["relative-2022-04"], best_of_entrant=True)
    rows = board(*start(rules=rules), *TEAMS, *forecasts(chances=CHANCES | {"dan": "0.2"}), resolution())
    actual = columns(rows, "participant", "rank", "take", "prize")
    assert [(who, rank) for who, rank, *_ in actual] == [("bob", 1), ("ada", None), ("cyd", 2), ("dan", 2)]
    takes = {who: Fraction(take) for who, _, take, _ in actual}
    paid = {who: Fraction(prize) for who, _, _, prize in actual}
    assert [paid["ada"], sum(paid.values())] == [0, 100]
    assert abs(paid["bob"] - 100 * takes["bob"] / (takes["bob"] + takes["cyd"] + takes["dan"])) < Fraction(1, 100)


def test_a_submission_without_another_entrant_plays_alone() -> None:
    """A later enrolment replaces an earlier one, and one in another contest has no effect."""
    enrolled: list[AnyCommand] = [
        *TEAMS,
        enrolment(participant="bob"),
        contest("league"),
        enrolment("league", "cyd", entrant="team"),
    ]
    rows = board(*start(rules=brier(best_of_entrant=True)), *enrolled, *forecasts(), resolution())
    assert columns(rows, "participant", "submissions", "excluded") == [
        ("bob", 1, ""), ("ada", 2, ""), ("dan", 1, ""), ("cyd", 1, ""),
    ]  # fmt: skip


def test_a_participant_with_the_id_of_an_entrant_is_one_of_its_submissions() -> None:
    """Its entrant is itself, even if others are enrolled for it."""
    enrolled: list[AnyCommand] = [enrolment(participant=who, entrant="dan") for who in ("ada", "bob")]
    rows = board(*start(rules=brier(best_of_entrant=True)), *enrolled, *forecasts(), resolution())
    assert columns(rows, "participant", "rank", "submissions") == [
        ("bob", 1, 3), ("ada", None, 3), ("dan", None, 3), ("cyd", 2, 1),
    ]  # fmt: skip


def test_the_combined_total_is_the_sum_of_the_means_of_kinds_in_percent() -> None:
    """Autocast competition of 2022, "Evaluation": 0.04, 0.39 and 0.15 make 58; without two of three kinds: 4 + 100 +
    100.
    """
    point = numeric("size", lower=0, upper=1, bins=None, levels=("0.5",), decimals=2)
    commands: list[AnyCommand] = [opened(), choices(), point, contest(rules="autocast-2022")]
    commands += [
        entry(),
        entry(question="colour"),
        entry(question="size"),
        *forecasts(chances={"ada": "0.8", "bob": "0.8"}),
    ]
    commands += [forecast("colour", probabilities={"red": "0.5", "green": "0.3", "blue": "0.2"})]
    commands += [forecast("size", quantiles=("0.55",)), resolution(), resolution("colour", outcome="green")]
    rows = board(*commands, resolution("size", value="0.7"))
    assert columns(rows, "rank", "participant", "score", "completion") == [
        (1, "ada", "58.000000000", "3/3"),
        (2, "bob", "204.000000000", "1/3"),
    ]


def test_a_board_has_the_attainable_coverage_beside_the_coverage() -> None:
    """Four of ten days are scored: Ada covers all of them, Bob half."""
    late = forecast(participant="bob", at=day(12))
    rows = board(*start(), forecast(at=OPENS), late, resolution(known_at=day(14)))
    assert columns(rows, "participant", "coverage", "attainable") == [
        ("ada", "0.400000000", "0.400000000"),
        ("bob", "0.200000000", "0.400000000"),
    ]


def slowly(recorded: list[Any], contest: str) -> list[Row]:
    """Return the columns of a board without money, by definition."""
    return [
        {
            "rank": place.rank,
            "participant": place.participant,
            "score": oracle.nine(place.score),
            "coverage": oracle.nine(place.coverage),
            "take": oracle.nine(Fraction(place.take)),
            "completion": place.completion,
            "excluded": place.level,
        }
        for place in oracle.board(recorded, contest)
    ]


@settings(max_examples=times(50), deadline=None)
@given(oracle.logs())
def test_a_board_agrees_with_the_slow_definition(commands: list[AnyCommand]) -> None:
    """They agree for logs of all kinds, with exclusions, weights, hidden weights and sealed boards."""
    recorded, _ = oracle.attempted(commands)
    projections = Projections(oracle.facts_in(recorded))
    rows = list(projections.table("leaderboard").rows())
    for name in projections.contests:
        slow = slowly(recorded, name)
        mine = [{key: row[key] for key in slow[0]} for row in rows if slow and row["contest"] == name]
        fast = [row | {key: Decimal(row[key]) for key in ("score", "coverage", "take")} for row in mine]
        assert fast == slow
