"""The worked examples in data/: every expected table and every published figure."""

import csv
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledger.commands import AnyCommand, OpenContest, read
from ledger.values import format_instant, instant
from projections.projection import CATALOGUE, Projections
from tests import oracle

DATA = Path(__file__).parent.parent / "data"
STORIES = sorted(path.parent.name for path in DATA.glob("*/commands.jsonl"))
EXPECTED = [
    (story, path.stem)
    for story in STORIES
    for path in sorted((DATA / story / "expected").glob("*.csv"))
    if path.stem in CATALOGUE
]
METACULUS = "metaculus-2022"
DAY = 86_400 * 10**6  # µs

Row = dict[str, Any]


def commands(story: str) -> list[AnyCommand]:
    """A story's commands."""
    return [read(line) for line in (DATA / story / "commands.jsonl").read_text(encoding="utf-8").splitlines()]


def expected(story: str, name: str) -> list[dict[str, str]]:
    """An expected table of a story."""
    with (DATA / story / "expected" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def told(story: str) -> Projections:
    """What follows from a story, all of whose commands are accepted."""
    return oracle.projected(*commands(story))


def rows(name: str, **where: str) -> list[Row]:
    """Rows of a table of the worked example of seed 000."""
    return [row for row in told(METACULUS).table(name).rows() if where.items() <= row.items()]


def rounded(printed: str, ours: str | Decimal) -> Decimal:
    """Ours, to as many decimals as a printed figure such as -0.41, $108 or 83%."""
    value = Decimal(ours) * (100 if printed.endswith("%") else 1)
    return value.quantize(Decimal(printed.strip("$%")), ROUND_HALF_EVEN)


def figure(printed: str) -> Decimal:
    """A printed figure as a number."""
    return Decimal(printed.strip("$%"))


def test_there_are_stories_with_expected_tables() -> None:
    """Else the tests below would test nothing."""
    assert METACULUS in STORIES
    assert {name for story, name in EXPECTED if story == METACULUS} == {"consensus", "leaderboard", "prizes", "scores"}


@pytest.mark.parametrize(("story", "name"), EXPECTED)
def test_a_story_leads_to_its_expected_table(story: str, name: str) -> None:
    """Row by row, in the columns that the table was worked out for."""
    worked_out = expected(story, name)
    found = [{column: str(row[column]) for column in worked_out[0]} for row in told(story).table(name).rows()]
    assert found == worked_out


@pytest.mark.parametrize("row", expected(METACULUS, "published_daily"), ids=lambda row: " ".join(row.values()))
def test_a_published_daily_score_is_the_term_of_that_day(row: dict[str, str]) -> None:
    """Nought where no forecast stands or the answer is known."""
    questions = {each.question: each.opens_at for each in told(METACULUS).facts.questions}
    start = questions[row["question"]] + (int(row["day"]) - 1) * DAY
    parts = rows("score_parts", contest="plain", question=row["question"], participant=row["participant"])
    terms = [
        Decimal(part["term"])
        for part in parts
        if instant(part["from_at"]) <= start and start + DAY <= instant(part["to_at"])
    ]
    assert len(terms) <= 1, format_instant(start)
    assert rounded(row["score"], sum(terms, Decimal(0))) == figure(row["score"])


@pytest.mark.parametrize("row", expected(METACULUS, "published_scores"), ids=lambda row: " ".join(row.values()))
def test_a_published_score_and_coverage_is_ours(row: dict[str, str]) -> None:
    """Who never forecast has no row, and counts as nought."""
    found = rows("scores", contest="plain", question=row["question"], participant=row["participant"])
    [ours] = found or [{"score": "0", "coverage": "0"}]
    assert rounded(row["score"], ours["score"]) == figure(row["score"])
    assert rounded(row["coverage"], ours["coverage"]) == figure(row["coverage"])


@pytest.mark.parametrize("row", expected(METACULUS, "published_leaderboard"), ids=lambda row: " ".join(row.values()))
def test_a_published_place_is_ours(row: dict[str, str]) -> None:
    """Score, coverage, take, prize, % prize and completion of each forecaster, with and without the visible days."""
    [ours] = rows("leaderboard", contest=row["contest"], participant=row["participant"])
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
    """And prizes are the whole 1000 dollars."""
    board = {row["participant"]: row for row in rows("leaderboard", contest=contest)}
    assert {who: str(rounded("0.000", row["take"])) for who, row in board.items()} == takes
    assert rounded(total, sum((Decimal(row["take"]) for row in board.values()), Decimal(0))) == Decimal(total)
    assert sum(Decimal(row["prize"]) for row in board.values()) == 1_000


def test_rankings_and_prizes_do_not_depend_on_the_base_of_the_logarithm() -> None:
    """Seed 000: "these changes do not affect rankings or prize payouts"; coverage, takes and shares agree too."""
    asked = [
        msgspec.structs.replace(each, rules="relative-2021-11") if isinstance(each, OpenContest) else each
        for each in commands(METACULUS)
    ]
    older = oracle.projected(*asked)
    columns = ("contest", "rank", "participant", "coverage", "take", "share", "prize", "completion")
    found = [{column: str(row[column]) for column in columns} for row in older.table("leaderboard").rows()]
    assert found == [{column: row[column] for column in columns} for row in expected(METACULUS, "leaderboard")]
    scores = {row["participant"]: row["score"] for row in older.table("leaderboard").only("contest", "plain").rows()}
    assert rounded("0.000", scores["B"]) == Decimal("2.673")  # 1.852570525 / ln 2


@pytest.mark.parametrize("story", STORIES)
def test_a_story_is_scored_as_by_the_slow_definition(story: str) -> None:
    """Every numerator of every contest."""
    recorded = oracle.history(*commands(story))
    table = list(told(story).table("scores").rows())
    for contest in told(story).contests:
        found = {
            (row["question"], row["participant"]): int(row["numerator"]) for row in table if row["contest"] == contest
        }
        assert found == {pair: each.numerator for pair, each in oracle.contest_scores(recorded, contest).items()}
