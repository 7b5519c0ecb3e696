"""Numbers taken apart: their parts add up exactly, and are what the documents' arithmetic makes of them."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching import batch
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, Spot
from forecast_ledger.ledger.model.rules import PRESETS, Level, RuleSet
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.explain import explain_boards as boards
from forecast_ledger.replay.explain import explain_intervals
from forecast_ledger.replay.explain.explain_scores import Explanation, rounded_parts, score
from forecast_ledger.replay.reading.board_notes import unmoved_note
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import replay
from tests.replay.cli.test_main import run
from tests.support import forging, oracle
from tests.support.effort import times
from tests.support.given import (
    addition,
    choices,
    contest,
    day,
    entry,
    exclusion,
    forecast,
    opened,
    removal,
    resolution,
    traded,
    trading_floor,
    withdrawal,
    won,
)
from tests.support.logs import written
from tests.system.test_stories import ARENA, AUTOCAST, BRIER, DAILY, FAQ, METACULUS, expected

DAY = 86_400 * 10**6  # µs
Logs = Callable[[str], str]


def shown(rows: list[dict[str, Any]], column: str) -> Fraction:
    """Return the sum of a column of printed decimals, as printed."""
    return sum((Fraction(row[column]) for row in rows), Fraction(0))


@pytest.mark.parametrize("story", [METACULUS, FAQ, AUTOCAST, DAILY, BRIER])
def test_the_parts_of_every_score_add_up_exactly_and_as_printed(story: str, log_of: Logs) -> None:
    """Contributions to the numerator, points to the published score; one row a forecast, or one a part."""
    rows = list(replay(log_of(story)).projections.table("scores").rows())
    assert rows
    for row in rows[:: len(rows) // times(64) + 1]:
        for every_part in (False, True):
            found = score(
                Log(log_of(story)), row["contest"], row["question"], row["participant"], every_part=every_part
            )
            assert {name: found.number[name] for name in row} == row
            assert sum(int(part["contribution"]) for part in found.parts) == int(row["numerator"])
            assert shown(found.parts, "points") == Fraction(row["score"])
            assert not every_part or {part["parts"] for part in found.parts} == {1}


@pytest.mark.parametrize(
    ("ordered", "kernel", "order"),
    [
        (
            None,
            "of ordered outcomes",
            "; colour does not say whether its outcomes have an order, and counts as ordered",
        ),
        (True, "of ordered outcomes", ""),
        (
            False,
            "Σ (p_k - o_k)²",
            "; colour says that its outcomes have no order, and is scored by the Brier score of ",
        ),
    ],
)
def test_a_score_says_whether_its_question_counts_as_ordered(
    ordered: bool | None, kernel: str, order: str, tmp_path: Path
) -> None:
    """A reader sees which formula was used, and why; only a question that says that it is ordered needs no remark."""
    path, rules = str(tmp_path / "log.db"), RuleSet(name="x", kernel="ordered_brier", period="covered", total="mean")
    told: list[AnyCommand] = [choices(ordered=ordered), contest(rules=rules), entry(question="colour")]
    names = choices().outcomes or ()
    made = forecast("colour", probabilities={name: int(name == names[0]) for name in names})
    written(path, [*told, made, resolution("colour", outcome=names[0])])
    words = score(Log(path), "cup", "colour", "ada").rule["words"]
    assert kernel in words.split(",")[0]
    assert order in words
    assert ("order, and" in words) == (ordered is not True)


def test_a_score_of_payouts_names_them_and_adds_up(tmp_path: Path) -> None:
    """(0.6 - 0.3)² = 0.09 for a market that paid 0.3 for yes; under rules that leave payouts unscored there is none.

    Source: ForecastBench's leaderboard.
    """
    path, paid = str(tmp_path / "log.db"), resolution(outcome=None, payouts={"yes": "0.3", "no": "0.7"})
    told: list[AnyCommand] = [opened(), contest(rules="forecastbench"), entry(), forecast(probability="0.6"), paid]
    unscored = RuleSet(name="plain", kernel="brier", period="covered", total="mean")
    told += [contest("plain", rules=unscored), entry("plain")]
    written(path, told)
    found = score(Log(path), "cup", "rain", "ada")
    assert (found.number["score"], found.number["outcome"]) == ("0.090000000", "yes 0.3, no 0.7")
    assert sum(int(part["contribution"]) for part in found.parts) == int(found.number["numerator"])
    assert [part["probability"] for part in found.parts] == [None]
    assert "payouts count as shares of an outcome" in found.rule["words"]
    with pytest.raises(Refused, match="not_resolved"):
        score(Log(path), "plain", "rain", "ada")
    log = replay(path).projections
    assert [row["contest"] for row in log.table("scores").rows()] == ["cup"]
    assert [*log.table("brier").rows(), *log.table("calibration").rows()] == []


def test_a_score_of_thirds_names_them(tmp_path: Path) -> None:
    """(0.6 - 1/3)² = 16/225."""
    path, paid = str(tmp_path / "log.db"), resolution(outcome=None, payouts={"yes": "1/3", "no": "2/3"})
    told: list[AnyCommand] = [opened(), contest(rules="forecastbench"), entry(), forecast(probability="0.6"), paid]
    written(path, told)
    found = score(Log(path), "cup", "rain", "ada")
    assert (found.number["score"], found.number["outcome"]) == ("0.071111111", "yes 1/3, no 2/3")


def test_a_relative_score_is_days_of_logarithms_less_the_medians(log_of: Logs) -> None:
    """Metaculus, Tournament Scoring, "Question 1": A says 10% on two days, medians 15% and 25%, then 55%, the median
    itself.
    """
    found = score(Log(log_of(METACULUS)), "plain", "olympics-2021", "A")
    ln = {percent: oracle.picos("ln", Fraction(percent, 100)) for percent in (10, 15, 25)}
    first = (2 * ln[10] - ln[15] - ln[25]) * DAY
    assert [int(part["contribution"]) for part in found.parts] == [first, 0]
    assert int(found.number["denominator"]) == 4 * DAY * 10**12
    assert [(part["forecast"], part["ended"]) for part in found.parts] == [(12, "replaced by #22"), (22, "close")]
    assert [(part["probability"], part["reference"]) for part in found.parts] == [("0.1", "0.15..0.25"), ("0.55",) * 2]
    assert (found.number["resolved"], found.number["outcome"]) == (32, "yes")
    assert found.others == {
        "compared_with": "consensus",
        "count": 3,
        "forecasts": 6,
        "first": 13,
        "last": 29,
        "named": ["B", "C", "bot"],
    }
    kinds = [(each["log_position"], each["type"]) for each in found.events]
    assert kinds == [
        (1, "question_opened"),
        (4, "contest_opened"),
        (5, "question_added"),
        (12, "forecast_made"),
        (22, "forecast_made"),
        (32, "question_resolved"),
    ]
    assert found.rule["name"] == "relative-2022-04"
    assert found.rule["fields"]["reference"] == "consensus"
    assert "Metaculus, Tournament Scoring, April 6th, 2022" in found.rule["source"]


def test_a_withdrawal_and_an_early_close_end_a_forecast(log_of: Logs) -> None:
    """Metaculus, Tournament Scoring, "Question 3": A withdraws as day 3 begins; the bot's forecast ends with the
    question, a day early.
    """
    withdrawn = score(Log(log_of(METACULUS)), "plain", "sp500-4500", "A")
    closed = score(Log(log_of(METACULUS)), "plain", "sp500-4500", "bot")
    assert [part["ended"] for part in withdrawn.parts] == ["withdrawn by #27"]
    assert [part["ended"] for part in closed.parts] == ["closed by #31"]
    assert [part["weight"] for part in (*withdrawn.parts, *closed.parts)] == [2 * DAY, DAY]


def test_a_baseline_score_is_days_of_logarithms_over_that_of_the_outcomes(log_of: Logs) -> None:
    """Metaculus, Scores FAQ: 40%, 70% twice, 80% from day 2 of five; a day is 100 (1 + log2 p) / 5."""
    found = score(Log(log_of(FAQ)), "five-days", "five-days", "you")
    two = oracle.picos("ln", Fraction(2))
    for part, (percent, days) in zip(found.parts, ((40, 1), (70, 2), (80, 1)), strict=True):
        exact = Fraction(100 * (oracle.picos("ln", Fraction(percent, 100)) + two) * days, two * 5)
        assert abs(Fraction(part["points"]) - exact) < Fraction(1, 10**9)
        assert part["weight"] == days * DAY
    assert found.number["score"] == "26.539949291"
    assert found.others["count"] == 0


def test_a_peer_score_says_how_many_peers_stand(log_of: Logs) -> None:
    """Metaculus, Scores FAQ: Alex's log score of -1 beside 1 and 2, times 50: fifty times -2.5."""
    [part] = score(Log(log_of(FAQ)), "tournament", "continuous", "Alex").parts
    assert (part["peers"], part["reference"], part["points"]) == ("3", None, "-125.000000019")


def test_only_the_scored_question_is_read_beside_the_contest(log_of: Logs) -> None:
    """A log with trading in the contest is read whole, for its books need everything; the score is the same."""
    source = Log(log_of(ARENA))
    rows = list(replay(source.location).projections.table("scores").rows())
    for row in rows:
        found = score(source, row["contest"], row["question"], row["participant"])
        assert found.number["score"] == row["score"]


def test_fitted_parts_add_up_to_what_is_published_by_largest_remainder() -> None:
    """Parts, also negative ones, are rounded down; the missing units go to the largest rests, ties to the first."""
    assert rounded_parts([Fraction(-1, 3), Fraction(2, 3)], Fraction(1, 3)) == ["-0.333333333", "0.666666666"]
    assert rounded_parts([Fraction(1, 6)] * 3, Fraction(1, 2)) == ["0.166666667", "0.166666667", "0.166666666"]
    assert rounded_parts([], Fraction(0)) == []


def _take(log_of: Logs, story: str, contest: str, participant: str) -> Explanation:
    return boards.take(Log(log_of(story)), contest, participant)


@pytest.mark.parametrize("story", [METACULUS, FAQ, AUTOCAST, DAILY])
def test_the_parts_of_every_total_and_coverage_add_up(story: str, log_of: Logs) -> None:
    """Sums, means, means of each kind with what is missing as the worst: contributions over one denominator."""
    board = list(replay(log_of(story)).projections.table("leaderboard").rows())
    for row in board[:: len(board) // 12 + 1]:
        found = _take(log_of, story, row["contest"], row["participant"])
        total = sum(int(part["contribution"]) for part in found.parts)
        assert total == int(found.number["numerator"])
        assert found.number["total"] == row["score"]
        assert oracle.nine(Fraction(total, int(found.number["denominator"]))) == oracle.nine(Fraction(row["score"]))
        assert shown(found.parts, "points") == Fraction(row["score"])
        assert shown(found.parts, "of_coverage") == Fraction(row["coverage"])
        assert found.number["take"] == row["take"]


def test_a_take_is_made_of_the_published_scores(log_of: Logs) -> None:
    """Metaculus, Tournament Scoring, "Leaderboard": A's three scores and coverages, as in the story's tables."""
    found = _take(log_of, METACULUS, "plain", "A")
    scores = {
        row["question"]: (row["score"], row["coverage"])
        for row in expected(METACULUS, "scores")
        if (row["contest"], row["participant"]) == ("plain", "A")
    }
    assert {part["question"]: (part["points"], part["coverage"]) for part in found.parts} == scores
    third = [oracle.nine(Fraction(coverage) / 3) for _, coverage in scores.values()]
    assert sorted(Fraction(part["of_coverage"]) for part in found.parts) == sorted(map(Fraction, third))
    [board] = [
        row for row in expected(METACULUS, "leaderboard") if (row["contest"], row["participant"]) == ("plain", "A")
    ]
    assert (found.number["total"], found.number["take"]) == (board["score"], board["take"])
    assert [part["resolved"] for part in found.parts] == [32, 33, 34]


def test_a_prize_is_whole_units_and_one_more_for_the_largest_remainders(log_of: Logs) -> None:
    """Metaculus, Tournament Scoring: of 100,000 cents, two are left after the whole ones; B's and A's remainders are
    the largest.
    """
    found = boards.prize(Log(log_of(METACULUS)), "plain", "A")
    takes = {row["participant"]: Fraction(row["take"]) for row in expected(METACULUS, "leaderboard")[4:]}
    for part in found.parts:
        cents = 100_000 * takes[part["participant"]] / sum(takes.values())
        assert abs(part["units"] + Fraction(part["remainder"]) - cents) < Fraction(1, 1000)
    assert [part["participant"] for part in found.parts if part["one_more"]] == ["A", "B"]
    assert found.number["left_over"] == 2
    assert sum(part["units"] + part["one_more"] for part in found.parts) == found.number["sum_of_units"] == 100_000
    assert {part["participant"]: part["prize"] for part in found.parts} == {
        row["participant"]: row["prize"] for row in expected(METACULUS, "prizes") if row["contest"] == "plain"
    }
    assert (found.number["prize"], found.number["paid"]) == ("108.00", None)


RELATIVE = PRESETS["relative-2022-04"]
TOO_FEW = (
    "excluded as too_few_questions: it has forecasts on 1 of the 1 questions that count so far, and a prize needs "
    "forecasts on at least 2 questions"
)


@pytest.mark.parametrize(
    ("fields", "excluded", "because"),
    [
        ({"rules": "baseline"}, None, "the rules baseline have no take"),
        ({"pool": 0}, None, "the contest has no pool"),
        ({}, "no_prize", "excluded as no_prize, so that there is no prize"),
        ({}, "no_rank", "excluded as no_rank, so that there is no prize"),
        ({"rules": structs.replace(RELATIVE, least_questions=2)}, None, TOO_FEW),
        ({"rules": "peer-2024-03"}, None, "the take is 0"),
        (
            {"rules": structs.replace(RELATIVE, least_prize_micros=20 * 10**6)},
            None,
            "the pool is below the least prize of 20.00",
        ),
        (
            {"rules": structs.replace(RELATIVE, least_prize_micros=4 * 10**6)},
            None,
            "its share of the pool is below the least prize of 4.00",
        ),
        ({"payable_unit": 10}, None, "its share of the pool is below the payable unit of 10.00"),
    ],
)
def test_a_prize_of_nothing_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], excluded: Level | None, because: str
) -> None:
    """Yes, called at 0.8 and 0.4, is worth 6.67 and 3.33 of a pool of 10; each rule leaves bob without his part."""
    monkeypatch.setattr(batch, "check_new_contests", lambda _: None)  # an old contest may have any pool
    story = won(chances={"ada": "0.8", "bob": "0.4"}, **fields)
    if excluded is not None:
        story.insert(-1, exclusion(participant="bob", level=excluded))
    found = boards.prize(Log(written(tmp_path / "log.db", story)), "cup", "bob")
    assert (found.number["prize"], found.number["because"]) == ("0.00", because)
    parts = {part["participant"]: part.get("because") for part in found.parts}
    assert parts.get("bob", because) == because


def test_a_rank_is_told_with_its_neighbours_and_by_how_much(log_of: Logs) -> None:
    """The differences are of published takes under the older rules, of totals under the newer."""
    found = boards.rank(Log(log_of(METACULUS)), "plain", "A")
    assert (found.number["rank"], found.number["of"], found.number["ranked_by"]) == (2, 4, "take")
    takes = {row["participant"]: Fraction(row["take"]) for row in expected(METACULUS, "leaderboard")[4:]}
    assert [part["participant"] for part in found.parts] == ["B", "A", "bot", "C"]
    for part in found.parts:
        assert abs(Fraction(part["ahead_by"]) - takes[part["participant"]] + takes["A"]) <= Fraction(1, 10**9)
    by_total = boards.rank(Log(log_of(FAQ)), "tournament", "Bailey")
    assert [part["ahead_by"] for part in by_total.parts] == ["5.685281957", "0.000000000", "-288.629436134"]


def test_where_one_trades_a_rank_is_by_profit(log_of: Logs) -> None:
    """2360, 1756.428572 and -11000."""
    found = boards.rank(Log(log_of(ARENA)), "week-1", "cy")
    assert [(part["participant"], part["ahead_by"]) for part in found.parts] == [
        ("ada", "603.571428"),
        ("cy", "0.00"),
        ("bo", "-12756.428572"),
    ]


def test_a_balance_is_every_movement_with_what_it_rests_on(log_of: Logs) -> None:
    """Forecaster Arena, Methodology v1: 1,250 shares of rain at 0.40 pay 1,250; a settlement reversed names it, the
    next its own resolution.
    """
    found = boards.balance(Log(log_of(ARENA)), "week-1", "ada")
    assert shown(found.parts, "amount") == Fraction(found.number["balance"]) == 12_360
    table = [row for row in expected(ARENA, "cash") if (row["contest"], row["participant"]) == ("week-1", "ada")]
    assert [(part["amount"], part["balance"]) for part in found.parts] == [
        (row["amount"], row["balance"]) for row in table
    ]
    because = {part["log_position"]: (part["movement"], part["because"]) for part in found.parts}
    assert because[13] == ("granted", None)
    assert because[24] == ("bought", 18)  # the quote
    assert because[36] == ("settled", 35)  # the resolution
    assert because[48] == ("reversed", 36)  # what it reverses
    assert because[51] == ("settled", 50)
    assert "1250.00 shares that cost 500.00, at 1 for 1250.00" in found.parts[5]["says"]
    assert {each["type"] for each in found.events} >= {"contest_opened", "question_resolved", "resolution_revoked"}


def test_a_balance_has_trades_of_elsewhere_which_rest_on_nothing(tmp_path: Path) -> None:
    """100 shares for 40, of which yes pays 100: the cash is 60 where it started with nothing."""
    story = [*trading_floor(rules="market-trades"), traded(), resolution()]
    path = forging.written(tmp_path / "log.db", oracle.history(*story))
    found = boards.balance(Log(path), "week", "ada")
    assert [(part["movement"], part["amount"], part["because"]) for part in found.parts] == [
        ("granted", "0.00", None),
        ("bought", "-40.00", None),
        ("settled", "100.00", 11),
    ]
    assert found.number["balance"] == "60.00"
    assert "100.00 shares bought elsewhere for 40.00" in found.parts[1]["says"]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (("nowhere", "olympics-2021", "A"), "unknown_contest"),
        (("plain", "nothing", "A"), "unknown_question"),
        (("hidden-only", "olympics-2021", "nobody"), "nothing_standing"),
    ],
)
def test_what_there_is_not_is_refused(key: tuple[str, str, str], code: str, log_of: Logs) -> None:
    """The contest is checked first, then the question, then the participant."""
    with pytest.raises(Refused) as refused:
        score(Log(log_of(METACULUS)), *key)
    assert refused.value.code == code


def test_a_cut_before_the_answer_has_no_score(log_of: Logs) -> None:
    """At log position 31 no question was resolved."""
    with pytest.raises(Refused) as refused:
        score(Log(log_of(METACULUS), as_of=31), "plain", "olympics-2021", "A")
    assert refused.value.code == "not_resolved"


def test_a_question_without_a_forecast_shows_what_is_imputed(tmp_path: Path) -> None:
    """A quarter for even odds: (0.01 + 0.25) / 2."""
    rules = RuleSet(name="x", kernel="brier", period="covered", total="mean", imputation="always_half",
                    reference_rows=("always_half",))  # fmt: skip
    story: list[Any] = [contest(rules=rules), opened(), opened("snow"), entry(), entry(question="snow")]
    story += [forecast(probability="0.9"), forecast("snow", "bob"), resolution(), resolution("snow")]
    written(str(tmp_path / "log.db"), story)
    source = Log(str(tmp_path / "log.db"))
    found = boards.take(source, "cup", "ada")
    sure = explain_intervals.interval(source, "cup", "ada")
    assert [(part["score"], part["imputed"]) for part in sure.parts] == [("0.010000000", None), (None, "0.250000000")]
    assert [part["imputed"] for part in found.parts] == [None, "0.250000000"]
    assert [part["points"] for part in found.parts] == ["0.005000000", "0.125000000"]
    assert found.number["total"] == "0.130000000"
    assert "(without a forecast, the score of [always-half])" in str(found.rule)


@pytest.mark.parametrize("number", ["take", "prize", "rank"])
def test_who_is_not_on_the_board_has_no_place_to_explain(number: str, log_of: Logs) -> None:
    """The contest is looked for first."""
    for where, who, code in (("nowhere", "A", "unknown_contest"), ("plain", "nobody", "nothing_standing")):
        with pytest.raises(Refused) as refused:
            getattr(boards, number)(Log(log_of(METACULUS)), where, who)
        assert refused.value.code == code
    with pytest.raises(Refused, match="no such participant made a forecast; on the board are: bot, A, B, C") as refused:
        getattr(boards, number)(Log(log_of(METACULUS)), "plain", "Bot")
    assert refused.value.code == "nothing_standing"


@pytest.mark.parametrize(
    ("contest", "who", "code"), [("five-days", "you", "not_trading"), ("nowhere", "you", "unknown_contest")]
)
def test_a_balance_needs_an_account(contest: str, who: str, code: str, log_of: Logs) -> None:
    """Only a trading contest has accounts."""
    with pytest.raises(Refused) as refused:
        boards.balance(Log(log_of(FAQ)), contest, who)
    assert refused.value.code == code
    with pytest.raises(Refused) as refused:
        boards.balance(Log(log_of(ARENA)), "week-1", "nobody")
    assert refused.value.code == "not_enrolled"


def test_the_command_prints_a_table_or_one_json_object(log_of: Logs) -> None:
    """The same number in both; what it speaks about is on stderr."""
    arguments = ("explain", log_of(METACULUS), "score", "plain", "olympics-2021", "A")
    text, plain = run(*arguments), run(*arguments, "--json")
    assert (text.exit_code, plain.exit_code) == (FINE, FINE)
    said = json.loads(plain.stdout)
    assert list(said) == [
        "explained", "contest", "question", "participant", "score", "coverage", "attainable", "numerator",
        "denominator", "outcome", "resolved", "rule", "parts", "others", "events", "since", "subsequent", "as_of",
    ]  # fmt: skip
    assert "score        -0.330438960" in text.stdout.splitlines()
    assert "resolved     #32" in text.stdout.splitlines()
    assert run(*arguments, "--format", "json").stdout == plain.stdout
    assert run(*arguments, "--format", "table").stdout == text.stdout
    assert text.stderr == plain.stderr
    assert text.stderr.startswith("as of log position 34, digest ")
    parts = json.loads(run(*arguments, "--parts", "--json").stdout)["parts"]
    assert [part["reference"] for part in parts] == ["0.15", "0.25", "0.55"]


def test_a_name_with_a_comma_is_in_quotes_in_a_list(tmp_path: Path) -> None:
    """Of those on whose forecasts a score depends, of those that there are, and of sealed contests."""
    made = [forecast(participant=who) for who in ("ada", "bo", "Doe, Jane")]
    story: list[AnyCommand] = [opened(), contest(), entry(), *made, resolution()]
    log = written(tmp_path / "log.db", story)
    arguments = ("explain", log, "score", "cup", "rain")
    assert "depends on  2 other participants ('Doe, Jane', bo), " in run(*arguments, "ada").stdout
    assert "; there are: 'Doe, Jane', ada, bo" in run(*arguments, "x").stderr
    missing = run("table", log, "score_parts", "--where", "participant=Doe, Jan").stderr
    assert "; the nearest is 'Doe, Jane'; there are: " in missing
    assert ": 'a cup', cup; " in unmoved_note(["a cup", "cup"], "")


def test_what_is_printed_can_be_read_without_knowing_this_code(log_of: Logs) -> None:
    """Log positions have their sign, what a number depends on is a sentence, a source is one that is published."""
    score = run("explain", log_of(METACULUS), "score", "plain", "olympics-2021", "A").stdout.splitlines()
    balance = run("explain", log_of(ARENA), "balance", "week-1", "ada").stdout.splitlines()
    assert (
        "depends on  3 other participants (B, C, bot), 6 forecasts from #13 to #29; compared with the consensus"
        in score
    )
    assert [line.split()[0] for line in score if "replaced by #22" in line] == ["#12"]
    assert "depends on  5 questions, 3 enrolled, 0 excluded; compared with nothing" in balance
    assert sum(" bought " in line and " #18 " in line for line in balance) == 3
    assert not any("seed " in line for line in (*score, *balance))


def test_the_command_says_which_key_a_number_has(log_of: Logs) -> None:
    """Wrong usage, in one line."""
    result = run("explain", log_of(METACULUS), "score", "plain", "A")
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert "`explain LOG score` needs CONTEST QUESTION PARTICIPANT" in result.stderr
    assert run("explain", log_of(METACULUS), "fame", "plain", "A").exit_code == USAGE


def test_a_resolution_that_was_revoked_is_shown_with_the_rest(log_of: Logs) -> None:
    """Every settlement of the question is among the events; the last one counts."""
    found = boards.balance(Log(log_of(ARENA)), "week-1", "ada")
    launch = [each["type"] for each in found.events if "launch" in each["says"]]
    assert launch == ["question_resolved", "resolution_revoked", "question_resolved"]


def test_an_explanation_says_which_forecast_ended_by_itself(tmp_path: Path) -> None:
    """A forecast replaced or withdrawn at its `until` or before is said to be replaced or withdrawn."""
    path = str(tmp_path / "log.db")
    rules = RuleSet(name="own", kernel="ln", reference="uniform")
    commands: list[AnyCommand] = [opened(), contest(rules=rules), entry()]
    commands += [forecast(at=day(10), until=day(12)), forecast(at=day(13), until=day(14))]
    commands += [forecast(at=day(14), until=day(16)), withdrawal(at=day(15)), forecast(at=day(17), until=day(21))]
    written(path, [*commands, resolution()])
    explained = score(Log(path), "cup", "rain", "ada")
    assert [(part["forecast"], part["ended"]) for part in explained.parts] == [
        (4, "ended by itself"),
        (5, "replaced by #6"),
        (6, "withdrawn by #7"),
        (8, "close"),
    ]
    assert [part["weight"] for part in explained.parts] == [2 * DAY, DAY, DAY, 3 * DAY]


def test_an_explanation_says_which_forecast_a_change_of_outcomes_ended(tmp_path: Path) -> None:
    """A removal, the end of a grace period, and a forecast of that period that goes on with the new outcomes."""
    path = str(tmp_path / "log.db")
    rules = RuleSet(name="own", kernel="ln", reference="uniform")
    commands: list[AnyCommand] = [choices(), contest(rules=rules), entry(question="colour")]
    early, late = {"red": "0.5", "green": "0.5", "blue": 0}, {"green": "0.25", "blue": "0.5", "violet": "0.25"}
    commands += [
        forecast("colour", participant="ada", at=day(10), probabilities=early),
        forecast("colour", participant="bob", at=day(10), probabilities=early),
        removal(at=day(11)),
        addition(at=day(12), grace_ends_at=day(15)),
        forecast("colour", participant="ada", at=day(13), probabilities=late),
    ]
    written(path, [*commands, resolution("colour", outcome="violet")])
    found = {who: score(Log(path), "cup", "colour", who).parts for who in ("ada", "bob")}
    assert [(part["forecast"], part["ended"], part["probability"]) for part in found["ada"]] == [
        (4, "outcomes removed by #6", "0.001"),
        (6, "replaced by #8", "0.5"),
        (8, "end of the grace period", "0.75"),
        (8, "close", "0.25"),
    ]
    assert [(part["forecast"], part["ended"]) for part in found["bob"]] == [
        (5, "outcomes removed by #6"),
        (6, "end of the grace period, #7"),
    ]


def test_the_consensus_and_one_instant_are_explained_too(tmp_path: Path) -> None:
    """The consensus has no forecast of its own; an instant that counts alone has the forecast that stood then."""
    path = str(tmp_path / "log.db")
    rules = RuleSet(name="own", kernel="ln", reference="consensus", score_consensus=True)
    spot = RuleSet(name="at one instant", kernel="ln", reference="peers", sampling="spot")
    commands: list[AnyCommand] = [opened(), contest(rules=rules), entry(), contest("spot", rules=spot), entry("spot")]
    commands += [forecast(participant=who, probability=p, at=day(11)) for who, p in (("ada", "0.5"), ("bo", "0.25"))]
    commands += [forecast(probability="0.9", at=day(12)), withdrawal(participant="bo"), resolution()]
    written(path, commands)
    own = score(Log(path), "cup", "rain", "[consensus]")
    assert {part["forecast"] for part in own.parts} == {None}
    assert [part["probability"] for part in own.parts] == ["0.375", "0.575", "0.9"]
    assert own.others["named"] == ["ada", "bo"]
    [part] = score(Log(path), "spot", "rain", "ada").parts
    assert (part["forecast"], part["ended"], part["weight"], part["points"]) == (8, "close", 1, "0.000000000")


@pytest.mark.parametrize("rules", ["baseline", "autocast-2022"])
def test_a_question_of_weight_0_adds_nothing_to_a_take(rules: str, tmp_path: Path) -> None:
    """Its score is among the parts, with 0 points and 0 of the coverage, even if it is the only one of its kind."""
    path = str(tmp_path / "log.db")
    commands: list[AnyCommand] = [
        opened(),
        choices(),
        contest(rules=rules),
        entry(),
        entry(question="colour", weight=0),
    ]
    painted = forecast("colour", probabilities={"red": 1, "green": 0, "blue": 0}, at=day(10))
    commands += [forecast(at=day(10)), painted, resolution(), resolution("colour", outcome="red")]
    written(path, commands)
    found = boards.take(Log(path), "cup", "ada")
    colour, rain = sorted(found.parts, key=lambda part: part["question"])
    assert (colour["weight"], colour["points"], colour["of_coverage"]) == ("0", "0.000000000", "0.000000000")
    assert colour["score"] == ("100.000000000" if rules == "baseline" else "0.000000000")
    assert (rain["points"], rain["of_coverage"]) == (found.number["total"], found.number["coverage"])


def test_a_score_at_several_instants_has_a_part_for_each(tmp_path: Path) -> None:
    """The forecast stands at both; 100 ln(0.8 / 0.2) is divided by their weights, 1 and 3."""
    path = str(tmp_path / "log.db")
    spots = (Spot(at=day(12)), Spot(at=day(14), weight=3))
    commands: list[AnyCommand] = [opened(), contest(rules="spot-peer"), entry(spots=spots)]
    commands += [forecast(participant=who, probability=p, at=day(10)) for who, p in (("ada", "0.8"), ("bo", "0.2"))]
    written(path, [*commands, resolution()])
    parts = score(Log(path), "cup", "rain", "ada").parts
    assert [(part["from_at"], part["ended"], part["weight"], part["points"]) for part in parts] == [
        (day(12), "counts again", 1, "34.657359028"),
        (day(14), "close", 3, "103.972077084"),
    ]
