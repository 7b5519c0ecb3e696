"""The worked examples in data/: every expected table and every published figure."""

import csv
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.core.values import format_instant, read_instant
from forecast_ledger.ledger.model.commands import AnyCommand, OpenContest, read
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from tests.support import logs, oracle, rules_oracle
from tests.support.paths import ROOT

DATA = ROOT / "data"
STORIES = sorted(path.parent.name for path in DATA.glob("*/commands.jsonl"))
EXPECTED = [
    (story, path.stem)
    for story in STORIES
    for path in sorted((DATA / story / "expected").glob("*.csv"))
    if path.stem in CATALOGUE
]
ARENA, METACULUS, FAQ, AUTOCAST, DAILY, BRIER, SPOTS, GROUPS, BOARDS, MOVED, CHANGED, FEES, SIDES, HUB = (
    "arena-week",
    "metaculus-2022",
    "metaculus-faq",
    "autocast-2022",
    "daily-brier",
    "brier-tables",
    "spot-times",
    "question-groups",
    "board-rules",
    "moved-times",
    "changed-outcomes",
    "exchange-fees",
    "bids-and-asks",
    "hub-scores",
)
DAY = 86_400 * 10**6  # µs
WIS_PARTS = ("wis", "dispersion", "overprediction", "underprediction", "median_error")

Row = dict[str, Any]


def commands(story: str) -> list[AnyCommand]:
    """A story's commands."""
    return [read(line) for line in (DATA / story / "commands.jsonl").read_text(encoding="utf-8").splitlines()]


def expected(story: str, name: str) -> list[dict[str, str]]:
    """An expected table of a story."""
    with (DATA / story / "expected" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def printed(*stories: str, name: str) -> list[Any]:
    """Rows of published figures of these stories, one a test."""
    return [
        pytest.param(story, row, id=" ".join([story, *row.values()]))
        for story in stories
        for row in expected(story, name)
    ]


@cache
def recorded(story: str) -> list[Recorded]:
    """The events of a story that a ledger records if it accepts every command and receives each when it happens."""
    return logs.recorded(commands(story), at=[read_instant(each.at) for each in commands(story)])


@cache
def told(story: str) -> Projections:
    """The projections of a story."""
    return Projections(oracle.facts_in(recorded(story)))


@cache
def table(story: str, name: str) -> list[Row]:
    """A table that a story leads to."""
    return list(told(story).table(name).rows())


def rows(story: str, name: str, **where: str) -> list[Row]:
    """Rows of a table of a story."""
    return [row for row in table(story, name) if where.items() <= row.items()]


def rounded(printed: str, ours: str | Decimal | Fraction) -> Decimal:
    """Ours, to as many decimals as a printed figure such as -0.41, $108 or 83%."""
    value = oracle.quotient(ours) if isinstance(ours, Fraction) else Decimal(ours)
    value *= 100 if printed.endswith("%") else 1
    return value.quantize(figure(printed), ROUND_HALF_EVEN)


def figure(printed: str) -> Decimal:
    """A printed figure as a number."""
    return Decimal(printed.strip("$%"))


def exact(row: Row) -> Fraction:
    """A score before it is rounded."""
    return Fraction(int(row["numerator"]), int(row["denominator"]))


def test_there_are_stories_with_expected_tables() -> None:
    """Without them, the tests below would test nothing."""
    tables = {story: {name for of, name in EXPECTED if of == story} for story in STORIES}
    assert tables == {
        ARENA: {
            "accounts",
            "arena_leaderboard",
            "arena_overall",
            "bet_brier",
            "cash",
            "decisions",
            "journal",
            "marks",
            "portfolio_snapshots",
            "positions",
            "refused_legs",
            "scores",
            "trades",
        },
        METACULUS: {"consensus", "leaderboard", "prizes", "scores"},
        FAQ: {"leaderboard", "prizes", "scores"},
        AUTOCAST: {"admissions", "kind_means", "leaderboard", "scores"},
        DAILY: {"leaderboard", "scores"},
        BRIER: {"brier", "brier_overall", "calibration", "leaderboard", "scores"},
        SPOTS: {"leaderboard", "score_parts", "scores"},
        MOVED: {"leaderboard", "questions", "scores"},
        FEES: {"arena_leaderboard", "cash", "fees", "journal", "positions"},
        SIDES: {"accounts", "portfolio_snapshots", "positions", "quotes", "refused_legs", "trades"},
        CHANGED: {"consensus", "score_parts", "scores"},
        GROUPS: {"interval_coverage", "leaderboard", "leaderboard_by_group", "questions", "scores"},
        BOARDS: {"leaderboard", "scores"},
        HUB: {"interval_coverage", "wis_parts"},
    }


@pytest.mark.parametrize("story", STORIES)
def test_a_story_and_where_its_numbers_come_from_are_told_in_words(story: str) -> None:
    """Its folder has a README that names every file, and the README of all stories names the folder."""
    told_here = (DATA / story / "README.md").read_text(encoding="utf-8")
    assert f"[{story}]({story}/README.md)" in (DATA / "README.md").read_text(encoding="utf-8")
    for path in sorted((DATA / story / "expected").glob("*.csv")):
        assert f"`expected/{path.name}`" in told_here


@pytest.mark.parametrize(("story", "name"), EXPECTED)
def test_a_story_leads_to_its_expected_table(story: str, name: str) -> None:
    """The rows are equal in the columns that the expected table has."""
    worked_out = expected(story, name)
    actual = [
        {column: "" if row[column] is None else str(row[column]) for column in worked_out[0]}
        for row in table(story, name)
        if name != "portfolio_snapshots" or row["log_position"] is not None  # ticks are not told, being very many
    ]
    assert actual == worked_out


@pytest.mark.parametrize("story", STORIES)
def test_a_story_is_scored_as_by_the_slow_definition(story: str) -> None:
    """Every unrounded score of every contest is that of the slow definition."""
    log = recorded(story)
    for contest in told(story).contests:
        scores = {(row["question"], row["participant"]): exact(row) for row in rows(story, "scores", contest=contest)}
        assert scores == {
            (question, who): score.score
            for question, case in rules_oracle.cases(log, contest).items()
            for who, score in rules_oracle.scores(case).items()
        }


@pytest.mark.parametrize(("story", "row"), printed(METACULUS, FAQ, AUTOCAST, DAILY, BRIER, name="published_scores"))
def test_a_published_score_and_coverage_is_ours(story: str, row: dict[str, str]) -> None:
    """A participant without a forecast has no row, and counts as zero."""
    where = {"contest": "plain"} | {name: row[name] for name in ("contest", "question", "participant") if name in row}
    [ours] = rows(story, "scores", **where) or [{"numerator": 0, "denominator": 1, "coverage": "0"}]
    assert rounded(row["score"], exact(ours)) == figure(row["score"])
    if "coverage" in row:
        assert rounded(row["coverage"], ours["coverage"]) == figure(row["coverage"])


@pytest.mark.parametrize(("story", "row"), printed(FAQ, BRIER, name="published_totals"))
def test_a_published_total_is_ours(story: str, row: dict[str, str]) -> None:
    """Expected scores are totals over the cases that may come true, each of the weight of its probability."""
    [ours] = rows(story, "leaderboard", contest=row["contest"], participant=row["participant"])
    assert rounded(row["score"], ours["score"]) == figure(row["score"])


# --- hub-scores


@pytest.mark.parametrize(("story", "row"), printed(HUB, name="published_wis"))
def test_a_published_weighted_interval_score_and_its_parts_are_ours(story: str, row: dict[str, str]) -> None:
    """HubEvals prints the score, its three parts and the error of the median to three digits."""
    [ours] = rows(story, "wis_parts", contest=row["contest"], question=row["question"])
    for name in WIS_PARTS:
        assert rounded(row[name], ours[name]) == figure(row[name])


@pytest.mark.parametrize(("story", "row"), printed(HUB, name="published_mean_wis"))
def test_a_published_mean_of_weighted_interval_scores_and_parts_is_ours(story: str, row: dict[str, str]) -> None:
    """The means are over the forecasts of one horizon, or of all if the row names none."""
    of = [
        ours for ours in rows(story, "wis_parts", contest=row["contest"]) if ours["question"].endswith(row["horizon"])
    ]
    assert len(of) == (4 if row["horizon"] else 16)
    for name in filter(row.get, WIS_PARTS):
        mean = sum((Fraction(ours[name]) for ours in of), Fraction(0)) / len(of)
        assert rounded(row[name], mean) == figure(row[name])


# --- metaculus-2022


@pytest.mark.parametrize(("story", "row"), printed(METACULUS, name="published_daily"))
def test_a_published_daily_score_is_the_term_of_that_day(story: str, row: dict[str, str]) -> None:
    """The score is 0 on days without a forecast, and once the answer is known."""
    questions = {each.question: each.opens_at for each in told(story).facts.questions}
    start = questions[row["question"]] + (int(row["day"]) - 1) * DAY
    parts = rows(story, "score_parts", contest="plain", question=row["question"], participant=row["participant"])
    terms = [
        Decimal(part["term"])
        for part in parts
        if read_instant(part["from_at"]) <= start and start + DAY <= read_instant(part["to_at"])
    ]
    assert len(terms) <= 1, format_instant(start)
    assert rounded(row["score"], sum(terms, Decimal(0))) == figure(row["score"])


@pytest.mark.parametrize(("story", "row"), printed(METACULUS, name="published_leaderboard"))
def test_a_published_place_is_ours(story: str, row: dict[str, str]) -> None:
    """Score, coverage, take, prize, % prize and completion are equal, with and without the visible days."""
    [ours] = rows(story, "leaderboard", contest=row["contest"], participant=row["participant"])
    for name in ("score", "coverage", "take", "prize"):
        assert rounded(row[name], ours[name]) == figure(row[name])
    assert rounded(row["percent"], ours["share"]) == figure(row["percent"])
    assert ours["completion"] == row["completion"]


@pytest.mark.parametrize(
    ("contest", "takes", "total"),
    [
        ("plain", {"A": "0.663", "B": "4.782", "C": "0.275", "bot": "0.417"}, "6.14"),
        ("hidden-only", {"A": "0.795", "B": "4.251", "C": "0.275", "bot": "0.000"}, "5.32"),
    ],
)
def test_takes_to_three_decimals_and_their_total_are_those_of_the_seed(
    contest: str, takes: dict[str, str], total: str
) -> None:
    """Together the prizes are the whole 1000 dollars."""
    board = {row["participant"]: row for row in rows(METACULUS, "leaderboard", contest=contest)}
    assert {who: str(rounded("0.000", row["take"])) for who, row in board.items()} == takes
    assert rounded(total, sum((Decimal(row["take"]) for row in board.values()), Decimal(0))) == Decimal(total)
    assert sum(Decimal(row["prize"]) for row in board.values()) == 1_000


def test_rankings_and_prizes_do_not_depend_on_the_base_of_the_logarithm() -> None:
    """Metaculus, Tournament Scoring: "these changes do not affect rankings or prize payouts"; coverage, takes and
    shares agree too.
    """
    asked = [
        msgspec.structs.replace(each, rules="relative-2021-11") if isinstance(each, OpenContest) else each
        for each in commands(METACULUS)
    ]
    older = oracle.projected(*asked)
    columns = ("contest", "rank", "participant", "coverage", "take", "share", "prize", "completion")
    ranking = [{column: str(row[column]) for column in columns} for row in older.table("leaderboard").rows()]
    assert ranking == [{column: row[column] for column in columns} for row in expected(METACULUS, "leaderboard")]
    scores = {row["participant"]: row["score"] for row in older.table("leaderboard").only("contest", "plain").rows()}
    assert rounded("0.000", scores["B"]) == Decimal("2.673")  # 1.852570525 / ln 2


# --- metaculus-faq


@pytest.mark.parametrize(("story", "row"), printed(FAQ, name="published_daily"))
def test_a_published_daily_score_is_what_that_day_alone_would_score(story: str, row: dict[str, str]) -> None:
    """A part's contribution, spread over its time, against one day's worth of a point; 0 while nothing stands."""
    where = {name: row[name] for name in ("contest", "question", "participant")}
    [question] = [each for each in told(story).facts.questions if each.question == row["question"]]
    [score] = rows(story, "scores", **where)
    start = question.opens_at + (int(row["day"]) - 1) * DAY
    terms = [
        Fraction(int(part["contribution"]) * (question.closes_at - question.opens_at), int(part["weight"]))
        for part in rows(story, "score_parts", **where)
        if read_instant(part["from_at"]) <= start and start + DAY <= read_instant(part["to_at"])
    ]
    assert len(terms) == (row["day"] != "1")
    assert rounded(row["score"], sum(terms, Fraction(0)) / int(score["denominator"])) == figure(row["score"])


@pytest.mark.parametrize(("story", "row"), printed(FAQ, name="published_coverage"))
def test_a_published_coverage_is_ours(story: str, row: dict[str, str]) -> None:
    """A row is about one question, or about the whole tournament if it names none."""
    where = {name: row[name] for name in ("contest", "question", "participant") if row[name]}
    [ours] = rows(story, "scores" if row["question"] else "leaderboard", **where)
    assert rounded(row["coverage"], ours["coverage"]) == figure(row["coverage"])


@pytest.mark.parametrize(("story", "row"), printed(FAQ, name="published_errors"))
def test_a_figure_published_in_error_is_not_ours_but_what_its_own_formula_gives_is(
    story: str, row: dict[str, str]
) -> None:
    """A figure that is right after all belongs among the published ones."""
    where = {name: row[name] for name in ("contest", "question", "participant") if row[name]}
    [ours] = rows(story, "scores" if row["question"] else "leaderboard", **where)
    assert rounded(row["exact"], ours["score"]) == figure(row["exact"])
    assert rounded(row["printed"], ours["score"]) != figure(row["printed"])


@pytest.mark.parametrize("contest", ["peer-example", "notable-peer", "notable-peer-log2", "tournament"])
def test_peer_scores_on_a_question_sum_to_nothing(contest: str) -> None:
    """Metaculus, Scores FAQ: "on any given question, the sum of all participants' Peer scores is always 0"."""
    sums: dict[str, Fraction] = {}
    for row in rows(FAQ, "scores", contest=contest):
        sums[row["question"]] = sums.get(row["question"], Fraction(0)) + exact(row)
    assert sums
    assert set(sums.values()) == {Fraction(0)}


def test_a_peer_score_is_the_scale_times_the_mean_difference_of_log_scores() -> None:
    """The scale of a continuous question is 50."""
    unscaled = {row["participant"]: exact(row) for row in rows(FAQ, "scores", contest="peer-example")}
    scaled = rows(FAQ, "scores", contest="tournament", question="continuous")
    assert {row["participant"]: exact(row) for row in scaled} == {who: 50 * score for who, score in unscaled.items()}
    logs = {row["participant"]: exact(row) for row in rows(FAQ, "scores", contest="log-score-continuous")}
    for who, score in unscaled.items():
        assert score == sum((logs[who] - log) / 2 for other, log in logs.items() if other != who)


def test_it_pays_to_predict_what_one_believes() -> None:
    """Metaculus, Scores FAQ: the honest forecast has the highest expected score of all, unless early closing is not
    truncated.
    """
    first = {row["contest"]: row["participant"] for row in table(FAQ, "leaderboard") if row["rank"] == 1}
    assert {contest: first[contest] for contest in ("belief-80", "log-score", "truncated", "untruncated")} == {
        "belief-80": "p80",
        "log-score": "p17",
        "truncated": "honest",
        "untruncated": "gaming",
    }


def test_a_share_of_the_pool_is_the_square_of_a_total_over_the_sum_of_squares() -> None:
    """Metaculus, Scores FAQ: "squared. If the sum of your Peer scores is negative, you don't get any prize"."""
    board = {row["participant"]: row for row in rows(FAQ, "leaderboard", contest="tournament")}
    squares = {who: max(Decimal(row["score"]), Decimal(0)) ** 2 for who, row in board.items()}
    assert {who: rounded("0.00", row["prize"]) for who, row in board.items()} == {
        who: (1_000 * square / sum(squares.values())).quantize(Decimal("0.01")) for who, square in squares.items()
    }
    assert board["Alex"]["prize"] == "0.00"


# --- autocast-2022


@pytest.mark.parametrize(("story", "row"), printed(AUTOCAST, name="published_cutoffs"))
def test_a_published_cutoff_is_ours(story: str, row: dict[str, str]) -> None:
    """Autocast competition of 2022: of "a question closing at Mar 23, 2022, 10:19 UTC", it is "Mar 22, 2022, 23:59:59
    UTC".
    """
    [question] = [each for each in told(story).facts.questions if each.question == row["question"]]
    assert format_instant(question.closes_at) == row["closes_at"]
    assert {each["cutoff_at"] for each in rows(story, "admissions", question=row["question"])} == {row["cutoff_at"]}


def test_the_autocast_story_has_every_verdict() -> None:
    """Late receipt, possible leak and restricted source are three facts; each has all its values."""
    for column, verdicts in {
        "receipt": {"in_time", "late"},
        "information": {"certain", "possible", "clean", "undeclared"},
        "restricted": {"restricted", "clean", "undeclared"},
        "window": {"open", "empty"},
    }.items():
        assert {row[column] for row in rows(AUTOCAST, "admissions", contest="at-close")} == verdicts


def test_a_forecast_after_the_cutoff_counts_only_where_the_close_is_what_counts() -> None:
    """0.95 replaced 0.6 between the two, and the river rose."""
    scores = {
        row["contest"]: row["score"] for row in rows(AUTOCAST, "scores", question="river", participant="prompters-2")
    }
    assert scores == {"at-close": "0.002500000", "at-cutoff": "0.160000000"}


# --- daily-brier


@pytest.mark.parametrize(("story", "row"), printed(DAILY, name="published_rps"))
def test_an_ordered_brier_score_is_two_ranked_probability_scores_over_the_splits(
    story: str, row: dict[str, str]
) -> None:
    """Four levels have three splits."""
    [ours] = rows(story, "scores", contest="ordered", participant=row["participant"])
    assert exact(ours) == Fraction(round(Fraction(row["rps"]) * 2 / 3 * oracle.PICO), oracle.PICO)


# --- brier-tables


@pytest.mark.parametrize(("story", "row"), printed(BRIER, name="published_brier"))
def test_a_published_aggregate_is_ours(story: str, row: dict[str, str]) -> None:
    """Mean, parts and skill against always saying 50%; what is not published is left empty."""
    [ours] = rows(story, "brier", contest=row["contest"], participant=row["participant"])
    for name in row.keys() - {"contest", "participant"}:
        if row[name]:
            assert rounded(row[name], str(ours[name])) == figure(row[name])
