"""A real season: 1,290 questions on flu admissions, forecast by 65 teams over seven months, answers often revised.

Expected numbers are known from the source's own files, or worked out here from its lines with Fractions. In a short run
the season is that of a few teams: those whose numbers are known, those that withdrew, and two whose order depends on
the clock.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from fractions import Fraction
from html import unescape
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import read
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.cli.main import FINDINGS, main
from forecast_ledger.replay.reading.replay import Replay, replay, summarize_tables
from forecast_ledger.replay.writing.append import append_lines
from tests import kept_digests, pictures
from tests.support import flusight
from tests.support.effort import LONG
from tests.support.flusight import (
    BOARDS,
    Command,
    Source,
    Standing,
    chances,
    days,
    in_time,
    micros,
    over,
    seconds,
    spot,
    stretches,
)

pytestmark = pytest.mark.skipif(
    not flusight.SOURCE.is_file(), reason=f"needs {flusight.SOURCE.name}, which is not here"
)
whole = pytest.mark.skipif(LONG == 1, reason="the season of all teams is for a long run")

TOLERANCE = Fraction(1, 10**9)  # of a published score
EXACT = Context(prec=50)
OUT_OF_ORDER = 15  # of one team's file, handed in a day after that of the next round, and claimed to be older
FEW_TEAMS = {"LosAlamos-DoSiDo", "FluSight-ensemble", "FluSight-ens_q_cat", "UMass-flusion"}  # the first has them
KNOWN = FEW_TEAMS | {"FluSight-baseline", "FluSight-baseline_cat"}
CHANGE_PLACES = {"NIH-Flu_ARIMA", "SigSci-TSENS"}  # by the other clock
ACCEPTED = {
    "open_contest": 13,
    "open_question": 1_290,
    "add_question": 7 * 1_120 + 3 * 155 + 2 * 10 + 5,
    "submit_forecast": 51_079 - OUT_OF_ORDER,
    "withdraw_forecast": 140,  # 40 + 75 + 20, and 5 of the file of which 30 forecasts had been replaced
    "resolve_question": 2_188,
    "revoke_resolution": 898,
}
LAST_OF = {"trend-recorded": "trend-brier", "hosp-recorded": "hosp-last"}  # by another clock: what was said last


# --- what follows from the source


def logarithms(source: Source, qid: str) -> dict[str, list[tuple[int, int, Fraction]]]:
    """For each team, the stretches [start, end) with ln of the probability of the outcome, at least 0.001."""
    question, outcome = source.questions[qid], source.answers[qid][-1]["outcome"]
    place, stretches_of_team = question["options"].index(outcome), {}
    for team in source.statements[qid]:
        stretches_of_team[team] = [
            (start, end, natural(max(chances(row, question)[place], Fraction(1, 1_000))))
            for start, end, row in stretches(source, qid, team)
        ]
    return stretches_of_team


def natural(number: Fraction) -> Fraction:
    """The logarithm, to 50 digits."""
    return Fraction(EXACT.ln(EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))))


def peer_scores(source: Source, qid: str) -> dict[str, Fraction]:
    """100 x the mean over time of a participant's logarithm less the mean of the others'; 0 while there are none."""
    opens, closes = source.period(qid)
    by_team = logarithms(source, qid)
    scores = {team: Fraction(0) for team, mine in by_team.items() if mine}
    cuts = sorted({instant for mine in by_team.values() for start, end, _ in mine for instant in (start, end)})
    for one, two in pairwise(cuts):
        now = {team: ln for team, mine in by_team.items() for start, end, ln in mine if start <= one < end}
        for team, ln in now.items() if len(now) > 1 else ():
            others = sum((other for who, other in now.items() if who != team), Fraction(0)) / (len(now) - 1)
            scores[team] += 100 * (ln - others) * (two - one) / (closes - opens)
    return scores


def baseline_scores(source: Source, qid: str) -> dict[str, Fraction]:
    """100 x (ln p + ln 5) / ln 5, as a mean over time."""
    opens, closes = source.period(qid)
    return {
        team: sum((100 * (ln / natural(Fraction(5)) + 1) * (end - start) for start, end, ln in mine), Fraction(0))
        / (closes - opens)
        for team, mine in logarithms(source, qid).items()
        if mine
    }


# --- the season in the engine


def build(path: Path, batches: Iterable[tuple[str, list[Command]]]) -> list[tuple[Command, Receipt | Refused]]:
    """Record a log by the hub's clock; return each command with its outcome."""
    now, outcomes_of_commands = [0], []
    with Ledger.open(path, clock=lambda: now[0]) as ledger:
        for instant, commands in batches:
            now[0] = micros(instant)
            outcomes = ledger.handle_many([read(json.dumps(command)) for command in commands])
            outcomes_of_commands += list(zip(commands, outcomes, strict=True))
    return outcomes_of_commands


def by_contest(projections: Projections) -> dict[str, Standing]:
    """Every board, as published."""
    standings: dict[str, Standing] = {contest: {} for contest in projections.contests}
    for row in projections.table("leaderboard").rows():
        questions = int(row["completion"].partition("/")[0])
        standings[row["contest"]][row["participant"]] = row["rank"], Fraction(row["score"]), questions
    return standings


def agree(board: Standing, expected: Standing) -> None:
    """Check that teams, ranks and numbers of questions are equal, and scores to the last published decimal."""
    exact = {team: (rank, questions) for team, (rank, _, questions) in expected.items()}
    assert {team: (rank, questions) for team, (rank, _, questions) in board.items()} == exact
    assert all(abs(board[team][1] - expected[team][1]) <= TOLERANCE for team in board)


@pytest.fixture(scope="module")
def source() -> Source:
    """The file; in a short run, without the forecasts of most teams."""
    rows = flusight.rows()
    teams = {row["forecaster"] for row in rows if row["kind"] == "forecast"}
    withdrew = {row["forecaster"] for row in rows if row["kind"] == "withdrawal"}
    return Source(flusight.of_teams(rows, teams if LONG > 1 else KNOWN | withdrew | CHANGE_PLACES))


@pytest.fixture(scope="module")
def season(source: Source, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[Command, Any]]]:
    """The season's log, and the outcome of each command."""
    path = tmp_path_factory.mktemp("flusight") / "season.db"
    return path, build(path, flusight.batches(source.rows))


@pytest.fixture(scope="module")
def replayed(season: tuple[Path, Any]) -> Replay:
    """The season's log, replayed."""
    return replay(str(season[0]))


@pytest.fixture(scope="module")
def projections(replayed: Replay) -> Projections:
    """The projections over it."""
    return replayed.projections


@pytest.fixture(scope="module")
def few_rows(source: Source) -> list[flusight.Row]:
    """A few teams, with late files, on the questions of these files and, in a short run, on every fourth."""
    kept = {None, *source.refused, *list(source.questions)[:: 4 if LONG == 1 else 1]}
    return [row for row in flusight.of_teams(source.rows, FEW_TEAMS) if row.get("qid") in kept]


@pytest.fixture(scope="module")
def few(
    few_rows: list[flusight.Row], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Replay, list[tuple[Command, Any]]]:
    """A log of them, replayed; and the outcome of each command."""
    path = tmp_path_factory.mktemp("few") / "received.db"
    outcomes = build(path, flusight.batches(few_rows))
    return replay(str(path)), outcomes


@pytest.fixture(scope="module")
def boards(projections: Projections) -> dict[str, Standing]:
    """Its boards."""
    return by_contest(projections)


@pytest.fixture(scope="module")
def scores(projections: Projections) -> Table:
    """Its scores."""
    return projections.table("scores")


def test_every_command_of_the_season_is_recorded_once(season: tuple[Path, Any], source: Source) -> None:
    """Only commands that claim to be older than their team's standing forecast are refused."""
    path, outcomes = season
    said = [each for teams in source.statements.values() for each in chain.from_iterable(teams.values())]
    made = {"submit_forecast": sum(each.forecast is not None for each in said)}
    made["withdraw_forecast"] = len(said) - made["submit_forecast"]
    accepted = Counter(command["type"] for command, outcome in outcomes if isinstance(outcome, Receipt))
    assert accepted == ACCEPTED | ({} if LONG > 1 else made)
    refused = [(command["question"], outcome.code) for command, outcome in outcomes if isinstance(outcome, Refused)]
    assert refused == [(qid, "out_of_order") for qid in source.refused]
    assert len(refused) == OUT_OF_ORDER
    assert verify(str(path)).position == accepted.total()


@whole
def test_the_season_has_the_digests_that_are_kept_of_it(season: tuple[Path, Any], replayed: Replay) -> None:
    """The digests of its log and of every table are those in the file of kept digests."""
    kept_digests.check("flusight", kept_digests.taken(season[0], replayed, kept_digests.WITHOUT["flusight"]).digests)


def test_the_season_sent_again_changes_nothing(season: tuple[Path, Any]) -> None:
    """A part of a file of commands can be sent again after any interruption; what was refused still is."""
    lines, part = season[0].with_suffix(".jsonl"), season[1][::8]
    lines.write_text("".join(json.dumps(command) + "\n" for command, _ in part))
    with Ledger.open(season[0]) as ledger, lines.open("rb") as file:
        before = ledger.head()
        again = append_lines(ledger, file, lambda *_: None, lambda _: None)
        accepted = sum(isinstance(outcome, Receipt) for _, outcome in part)
        assert again == {"accepted": 0, "duplicate": accepted, "refused": len(part) - accepted}
        assert ledger.head() == before


def test_a_history_that_is_imported_has_the_tables_of_the_one_that_was_received(
    few_rows: list[flusight.Row], few: tuple[Replay, Any], tmp_path: Path
) -> None:
    """Each line has its time of receipt; boards by the recorded clock, and all others, are those that were received."""
    path, lines = tmp_path / "imported.db", tmp_path / "received.jsonl"
    received = flusight.recorded(few_rows)
    lines.write_text("".join(json.dumps(command | {"received_at": time}) + "\n" for time, command in received))
    result = CliRunner().invoke(main, ["append", str(path), str(lines), "--recorded-at", "received_at"])
    assert result.exit_code == FINDINGS
    assert (
        result.stderr.splitlines()[-1]
        == f"refused: {OUT_OF_ORDER} x out_of_order; the first 3 are above, and --errors json prints all"
    )
    imported = replay(str(path))
    assert summarize_tables(imported.projections.facts) == summarize_tables(few[0].projections.facts)
    assert imported.checkpoint != few[0].checkpoint  # the rows say that their times are imported


def test_when_a_command_was_recorded_shows_only_where_the_rules_ask_for_it(
    few: tuple[Replay, list[tuple[Command, Any]]], tmp_path: Path
) -> None:
    """All recorded before the opening, in other batches: then what was said last counts as in time."""
    received, outcomes = few[0].projections, few[1]
    commands = [command for command, outcome in outcomes if isinstance(outcome, Receipt)]
    groups = [commands[at : at + 999] for at in range(0, len(commands), 999)]
    build(tmp_path / "again.db", [("1970-01-01T00:00:00Z", group) for group in groups])
    again = replay(str(tmp_path / "again.db")).projections
    for name in ("standing", "consensus"):
        assert again.table(name).digest() == received.table(name).digest()
    boards = by_contest(received)
    assert by_contest(again) == {contest: boards[LAST_OF.get(contest, contest)] for contest in BOARDS}
    assert all(boards[contest] != boards[other] for contest, other in LAST_OF.items())


@pytest.mark.parametrize("contest", ["trend-relative", "trend-peer"])
def test_the_prizes_sum_to_the_pool(projections: Projections, contest: str) -> None:
    """They sum to 10,000 in cents, although in one of the contests the takes span more than 400 powers of ten."""
    rows = projections.table("prizes").only("contest", contest).rows()
    assert sum(Fraction(row["prize"]) for row in rows) == 10_000


@pytest.mark.parametrize(
    ("contest", "times", "team", "expected"),
    [
        ("trend-brier", 1, "FluSight-ens_q_cat", "0.218519"),
        ("trend-brier", 1, "FluSight-baseline_cat", "0.352168"),
        ("trend-ordered", 2, "FluSight-ens_q_cat", "0.317045"),
        ("trend-ordered", 2, "FluSight-baseline_cat", "0.557935"),
    ],
)
def test_last_forecasts_of_trends_have_the_known_scores(
    boards: dict[str, Standing], contest: str, times: int, team: str, expected: str
) -> None:
    """Half the Brier sum, and the ranked probability score, which over five outcomes is twice the ordered Brier."""
    _, score, questions = boards[contest][team]
    assert (f"{float(times * score):.6f}", questions) == (expected, 1_120)


def test_last_forecasts_of_each_round_have_the_known_weighted_interval_scores(source: Source, tmp_path: Path) -> None:
    """As the hub scores them: every round's forecast of a week for itself, so every answer settles up to four."""
    path = tmp_path / "rounds.db"
    published = {
        "FluSight-ensemble": ("717.817919", 560),
        "FluSight-baseline": ("1129.510649", 560),
        "UMass-flusion": ("686.935682", 540),
    }
    rows = list(flusight.by_round(row for row in source.rows if row.get("forecaster") in {None, *published}))
    outcomes = build(path, flusight.batches(rows, {"hosp-last": BOARDS["hosp-last"]}))
    assert all(isinstance(outcome, Receipt) for _, outcome in outcomes)
    board = by_contest(replay(str(path)).projections)["hosp-last"]
    assert {team: (f"{float(score):.6f}", questions) for team, (_, score, questions) in board.items()} == published


@pytest.mark.parametrize("cut", ["2026-05-29T00:00:00Z", "2026-06-12T00:00:00Z", "2026-07-02T00:00:00Z"])
def test_a_board_stands_by_the_answers_published_until_the_cut(
    season: tuple[Path, Any], source: Source, cut: str
) -> None:
    """898 values replaced earlier ones, up to 21 a question; what the ledger knew before it still shows."""
    board = by_contest(replay(str(season[0]), as_of=cut).projections)["hosp-last"]
    agree(board, spot(source, "hosp", lambda *_: True, until=cut))


@pytest.mark.parametrize("family", ["trend", "hosp"])
def test_the_clock_of_the_rules_says_what_came_before_the_deadline(
    source: Source, boards: dict[str, Standing], family: str
) -> None:
    """By the teams' clocks or by the hub's, of one log: who is on the board, with what, and who is before whom."""
    claimed, received = (in_time(source, family, clock) for clock in ("claimed", "received"))
    agree(boards[f"{family}-claimed"], claimed)
    agree(boards[f"{family}-recorded"], received)
    assert sum(each[2] for each in received.values()) < sum(each[2] for each in claimed.values())
    ranks = [(claimed[team][0], received[team][0]) for team in received]
    assert any(one < two and late_one > late_two for one, late_one in ranks for two, late_two in ranks)


@pytest.mark.parametrize(
    ("contest", "weight"), [("peakweek-seconds", seconds), ("peakweek-days", days), ("peakinc-seconds", seconds)]
)
def test_weekly_updates_count_for_as_long_as_they_stand(
    source: Source, boards: dict[str, Standing], contest: str, weight: Callable[[tuple[int, int], int, int], int]
) -> None:
    """By time, or by the days, five hours west of Greenwich, that end while a forecast stands."""
    agree(boards[contest], over(source, contest.partition("-")[0], weight))


@pytest.mark.parametrize("qid", ["trend-36-2025-12-06-h1", "trend-06-2025-12-20-h0", "trend-US-2026-01-17-h3"])
@pytest.mark.parametrize(("contest", "expected"), [("trend-peer", peer_scores), ("trend-baseline", baseline_scores)])
def test_logarithmic_scores_follow_from_the_lines_of_the_source(
    source: Source, scores: Table, qid: str, contest: str, expected: Callable[[Source, str], dict[str, Fraction]]
) -> None:
    """On the question whose sum is mended, on one with a withdrawal, and on one with files months late."""
    rows = scores.only("contest", contest).only("question", qid).rows()
    points = {row["participant"]: Fraction(row["score"]) for row in rows}
    wanted = expected(source, qid)
    assert points.keys() == wanted.keys()
    assert all(abs(points[team] - wanted[team]) <= 2 * TOLERANCE for team in wanted)


def test_peers_score_nothing_together(scores: Table) -> None:
    """On every question the scores of all participants sum to zero."""
    sums: dict[str, list[Fraction]] = {}
    for row in scores.only("contest", "trend-peer").rows():
        sums.setdefault(row["question"], []).append(Fraction(row["score"]))
    assert len(sums) == 1_120
    assert all(abs(sum(each, Fraction(0))) <= len(each) * TOLERANCE for each in sums.values())


@whole
def test_the_picture_on_the_front_page_is_of_the_season(projections: Projections) -> None:
    """Its labels are the teams of the board that answered half of the questions or more, with the ranks that they have
    among themselves, and how much they answered; `python -m tests.pictures` draws it again.
    """
    shown = [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", pictures.FILE.read_text("utf-8"))]
    board = [*projections.table("leaderboard").only("contest", pictures.CONTEST).rows()]
    answered = {row["participant"]: [*map(int, row["completion"].split("/"))] for row in board}
    ranked = [row for row in board if 2 * answered[row["participant"]][0] >= answered[row["participant"]][1]]
    assert [text for text in shown if text[:1].isdigit() and " " in text] == [
        f"{1 + sum(other['rank'] < row['rank'] for other in ranked)} {row['participant']} "
        + "({:,} of {:,})".format(*answered[row["participant"]])
        for row in ranked
    ]
