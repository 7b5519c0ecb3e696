"""The 2025-26 FluSight season, as commands and as boards worked out by hand; the source's format is not the project's.

A question is open from a week before the deadline of the first round that asks it until the season's truth was
published, because ensembles and retrospective models were handed in up to four months after the deadline. `at` is the
team's own clock for forecasts, the hub's for the removal of a file, the instant of publication for answers; the ledger
records what the hub received as it received it, then the answers. A removal withdraws what still stands of the file.
One distribution of the source misses one by 7.4e-5; it is divided by its sum.
"""

import gzip
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from tests.support.paths import ROOT

SOURCE = ROOT.parent / "shared" / "data" / "flusight_2025_26.jsonl.gz"
CLOSES_AT = "2026-07-01T00:00:00Z"
EAST = -300  # minutes: of the days by which a board counts
DAY = 86_400 * 10**6  # µs

Row = dict[str, Any]
Command = dict[str, Any]
Standing = dict[str, tuple[int, Fraction, int]]  # team -> rank, mean loss, number of questions


class Board(NamedTuple):
    """A contest on all questions of a family; at_deadline: what stands at the deadline of the last round counts."""

    family: str
    rules: str | dict[str, Any]
    at_deadline: bool = False
    pool: int = 0


def _mean(name: str, **fields: Any) -> dict[str, Any]:
    """A rule set of means of losses, each over what one covered."""
    return {"name": name, "period": "covered", "total": "mean", "least_probability_ppm": 0, **fields}


_ORDERED = {"kernel": "ordered_brier"}
_SPOT_BRIER = {"kernel": "brier", "sampling": "spot"}
_SPOT_PINBALL = {"quantile_kernel": "pinball", "sampling": "spot"}
BOARDS = {
    "trend-relative": Board("trend", "relative-2022-04", pool=10_000),
    "trend-peer": Board("trend", "peer-2024-03", pool=10_000),
    "trend-baseline": Board("trend", "baseline"),
    "trend-brier": Board("trend", _mean("brier, last", **_SPOT_BRIER)),
    "trend-ordered": Board("trend", _mean("ordered, last", sampling="spot", **_ORDERED)),
    "trend-claimed": Board("trend", _mean("brier, claimed in time", **_SPOT_BRIER), at_deadline=True),
    "trend-recorded": Board("trend", _mean("brier, in time", clock="recorded", **_SPOT_BRIER), at_deadline=True),
    "peakweek-seconds": Board("peakweek", _mean("ordered, by seconds", **_ORDERED)),
    "peakweek-days": Board("peakweek", _mean("ordered, by days", sampling="day", day_minutes=EAST, **_ORDERED)),
    "hosp-last": Board("hosp", _mean("pinball, last", **_SPOT_PINBALL)),
    "hosp-claimed": Board("hosp", _mean("pinball, claimed in time", **_SPOT_PINBALL), at_deadline=True),
    "hosp-recorded": Board("hosp", _mean("pinball, in time", clock="recorded", **_SPOT_PINBALL), at_deadline=True),
    "peakinc-seconds": Board("peakinc", _mean("pinball, by seconds", quantile_kernel="pinball")),
}


def rows() -> list[Row]:
    """The lines of the source, decimals kept as text."""
    return msgspec.json.Decoder(float_hook=str).decode_lines(gzip.decompress(SOURCE.read_bytes()))


def of_teams(source: Iterable[Row], teams: Collection[str]) -> list[Row]:
    """The lines of the source without the forecasts and withdrawals of other teams."""
    return [row for row in source if row["kind"] not in {"forecast", "withdrawal"} or row["forecaster"] in teams]


def by_round(source: Iterable[Row]) -> Iterator[Row]:
    """The hub's own view of the admissions: a question for each week and round, so that no update replaces another."""
    asked: dict[str, list[Row]] = {}
    source = list(source)
    for row in source:
        if row["kind"] == "forecast" and row["qid"].startswith("hosp-"):
            week = {"qid": _week(row), "round": row["round"]}
            if week not in asked.setdefault(row["qid"], []):
                asked[row["qid"]].append(week)
    for row in source:
        if "qid" not in row:
            yield row
        elif row["kind"] == "forecast" and row["qid"] in asked:
            yield {**row, "qid": _week(row)}
        elif row["qid"] in asked:
            yield from ({**row, **week} for week in asked[row["qid"]])


def rounds(question: Row, deadlines: Mapping[str, str]) -> list[str]:
    """The rounds that ask a question: its own, the four up to the week it is about, or all."""
    if "round" in question:
        return [question["round"]]
    if "period_end" in question:
        first = (date.fromisoformat(question["period_end"]) - timedelta(weeks=3)).isoformat()
        return [each for each in sorted(deadlines) if first <= each <= question["period_end"]]
    return sorted(deadlines)


def recorded(source: list[Row], boards: Mapping[str, Board] = BOARDS) -> Iterator[tuple[str, Command]]:
    """Each command with the instant at which it is recorded: questions and contests, what the teams did, answers."""
    questions = {row["qid"]: row for row in source if row["kind"] == "question"}
    deadlines = {row["round"]: row["deadline_at"] for row in source if row["kind"] == "round"}
    start = _week_before(min(deadlines.values()))
    yield from ((start, command) for command in _openings(start, questions, deadlines, boards))
    last = start
    for last, command in _said(source):
        yield last, command
    for command in _answers(source):
        yield max(last, command["at"]), command


def commands(source: list[Row], boards: Mapping[str, Board] = BOARDS) -> Iterator[Command]:
    """The season's commands, in the order in which they are recorded."""
    return (command for _, command in recorded(source, boards))


def batches(source: list[Row], boards: Mapping[str, Board] = BOARDS) -> Iterator[tuple[str, list[Command]]]:
    """Each instant with the commands recorded at it."""
    for instant, pairs in groupby(recorded(source, boards), itemgetter(0)):
        yield instant, [command for _, command in pairs]


def _openings(
    start: str, questions: Mapping[str, Row], deadlines: Mapping[str, str], boards: Mapping[str, Board]
) -> Iterator[Command]:
    for contest, board in boards.items():
        pool = {"pool": board.pool} if board.pool else {}
        yield _command(contest, "open_contest", start, contest=contest, rules=board.rules, **pool)
    for qid, question in questions.items():
        asked = rounds(question, deadlines)
        opens_at = _week_before(deadlines[asked[0]])
        fields = {**_form(question), **_details(question), "opens_at": opens_at, "closes_at": CLOSES_AT}
        yield _command(f"{qid}/open", "open_question", start, question=qid, **fields)
        for contest, board in boards.items():
            if board.family == qid.partition("-")[0]:
                spot = {"spot_at": deadlines[asked[-1]]} if board.at_deadline else {}
                yield _command(f"{qid}/{contest}", "add_question", start, contest=contest, question=qid, **spot)


def _details(question: Row) -> dict[str, Any]:
    """Its round, or the week that it is about, as its group, as in an import of the hub; its location as a tag."""
    week = question.get("round", question.get("period_end"))
    return {"tags": [f"location={question['location']}"], **({"group": week} if week else {})}


def _form(question: Row) -> dict[str, Any]:
    """Named outcomes, or admissions from 0, without an upper end, by quantiles of up to four decimals."""
    if question["qtype"] == "mcq":
        return {"kind": "multiple_choice", "outcomes": question["options"]}
    span = {"lower": 0, "upper": 1_000_000, "open_upper": True, "levels": question["levels"], "decimals": 4}
    return {"kind": "numeric", "range": span}


def _said(source: Iterable[Row]) -> Iterator[tuple[str, Command]]:
    """Forecasts, and withdrawals of those that still stand when the file they came in is removed."""
    standing: dict[str, dict[str, str]] = {}  # team -> question -> round of the file
    for number, row in enumerate(source):
        who, received_at = row.get("forecaster"), row.get("received_at")
        if row["kind"] == "forecast":
            standing.setdefault(row["forecaster"], {})[row["qid"]] = row["round"]
            yield row["received_at"], _forecast(f"{number}", row)
        elif row["kind"] == "withdrawal":
            for qid in [qid for qid, of in standing.get(row["forecaster"], {}).items() if of == row["round"]]:
                del standing[row["forecaster"]][qid]
                said = {"question": qid, "participant": who}
                yield row["received_at"], _command(f"{number}/{qid}", "withdraw_forecast", received_at, **said)


def _forecast(identity: str, row: Row) -> Command:
    said = {"question": row["qid"], "participant": row["forecaster"]}
    if "values" in row:
        return _command(identity, "submit_forecast", row["claimed_at"], quantiles=row["values"], **said)
    chances = {outcome: Fraction(chance) for outcome, chance in row["probs"].items()}
    total = sum(chances.values(), Fraction(0))
    probabilities: dict[str, Any] = row["probs"]
    if abs(total - 1) > Fraction(1, 10**6):
        probabilities = {outcome: float(chance / total) for outcome, chance in chances.items()}
    return _command(identity, "submit_forecast", row["claimed_at"], probabilities=probabilities, **said)


def _answers(source: Iterable[Row]) -> Iterator[Command]:
    """Each as it was published; one that replaces an earlier one after that is revoked."""
    answered = set()
    for number, row in enumerate(source):
        if row["kind"] != "resolution":
            continue
        identity, at = f"{number}/{row['qid']}", row["at"]
        if row["qid"] in answered:
            yield _command(f"{identity}/revoke", "revoke_resolution", at, question=row["qid"], reason="revised")
        answered.add(row["qid"])
        answer = {name: row[name] for name in ("value", "outcome") if name in row}
        yield _command(identity, "resolve_question", at, question=row["qid"], **answer)


def _week(row: Row) -> str:
    return f"{row['qid']}-h{row['horizon_weeks']}"


def _week_before(instant: str) -> str:
    return (datetime.fromisoformat(instant) - timedelta(days=7)).isoformat().replace("+00:00", "Z")


def _command(identity: str, type_: str, at: Any, **fields: Any) -> Command:
    return {"id": identity, "type": type_, "at": at, **fields}


# --- the source, read without the engine


class Said(NamedTuple):
    """A team's statement by both clocks; forecast: the source's line, None for a withdrawal."""

    claimed: str
    received: str
    round: str
    forecast: Row | None


class Source:
    """The source's content by question; its instants compare as text, whole seconds of UTC."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.questions = {row["qid"]: row for row in rows if row["kind"] == "question"}
        self.deadlines = {row["round"]: row["deadline_at"] for row in rows if row["kind"] == "round"}
        self.answers: dict[str, list[Row]] = {qid: [] for qid in self.questions}
        self.statements: dict[str, dict[str, list[Said]]] = {qid: {} for qid in self.questions}
        self.refused: list[str] = []
        for row in rows:
            if row["kind"] == "forecast":
                self._submitted(row)
            elif row["kind"] == "withdrawal":
                self._removed(row)
            elif row["kind"] == "resolution":
                self.answers[row["qid"]].append(row)

    def family(self, name: str) -> list[str]:
        """Questions of a family."""
        return [qid for qid in self.questions if qid.startswith(f"{name}-")]

    def period(self, qid: str) -> tuple[int, int]:
        """µs: from a week before the deadline of the first round that asks the question."""
        first = rounds(self.questions[qid], self.deadlines)[0]
        return micros(self.deadlines[first]) - 7 * DAY, micros(CLOSES_AT)

    def _submitted(self, row: Row) -> None:
        statements = self.statements[row["qid"]].setdefault(row["forecaster"], [])
        if statements and row["claimed_at"] < statements[-1].claimed:
            self.refused.append(row["qid"])
        else:
            statements.append(Said(row["claimed_at"], row["received_at"], row["round"], row))

    def _removed(self, row: Row) -> None:
        at, of = row["received_at"], row["round"]
        for teams in self.statements.values():
            statements = teams.get(row["forecaster"], [])
            if statements and statements[-1].forecast and statements[-1].round == of:
                statements.append(Said(at, at, of, None))


@cache
def micros(instant: str) -> int:
    """µs since the epoch."""
    return int(datetime.fromisoformat(instant).timestamp()) * 10**6


def chances(forecast: Row, question: Row) -> list[Fraction]:
    """In the question's order, in 1e-9; what little their sum misses of one goes to the largest."""
    return [*_mended(tuple(forecast["probs"][outcome] for outcome in question["options"]))]


@cache
def _mended(probabilities: tuple[str, ...]) -> list[Fraction]:
    row = [*map(Fraction, probabilities)]
    total = sum(row, Fraction(0))
    mended = total if abs(total - 1) > Fraction(1, 10**6) else Fraction(1)
    row = [Fraction(round(chance / mended * 10**9), 10**9) for chance in row]
    row[row.index(max(row))] += 1 - sum(row, Fraction(0))
    return row


def half_brier(forecast: Row, question: Row, answer: Row) -> Fraction:
    """Half of Σ (p - o)²."""
    happened = [Fraction(outcome == answer["outcome"]) for outcome in question["options"]]
    return sum(((p - o) ** 2 for p, o in zip(chances(forecast, question), happened, strict=True)), Fraction(0)) / 2


def ordered_brier(forecast: Row, question: Row, answer: Row) -> Fraction:
    """Twice the mean of (F - O)² over the splits: the ranked probability score x 2 / (K - 1)."""
    row, happened = chances(forecast, question), question["options"].index(answer["outcome"])
    upto, score = Fraction(0), Fraction(0)
    for k, chance in enumerate(row[:-1]):
        upto += chance
        score += (upto - (happened <= k)) ** 2
    return 2 * score / (len(row) - 1)


def interval_score(forecast: Row, question: Row, answer: Row) -> Fraction:
    """Twice the mean over the levels of (1{y < q} - level)(q - y), half-even to 1e-8: 1e-4 of the values' own unit."""
    y, levels = _scaled(answer["value"]), question["levels"]
    pairs = ((_scaled(level), _scaled(value) - y) for level, value in zip(levels, forecast["values"], strict=True))
    total = sum(((gap > 0) * 10**4 - level) * gap for level, gap in pairs)
    return Fraction(round(Fraction(2 * total, len(levels))), 10**8)


@cache
def _scaled(number: str | int) -> int:
    """A decimal of at most four places, in 1e-4."""
    scaled = Fraction(number) * 10**4
    assert scaled.denominator == 1
    return int(scaled)


LOSS = {"trend": half_brier, "peakweek": ordered_brier, "hosp": interval_score, "peakinc": interval_score}


def standing(losses: Mapping[tuple[str, str], Fraction]) -> Standing:
    """The board of (team, question) -> loss."""
    own: dict[str, list[Fraction]] = {}
    for (team, _), loss in losses.items():
        own.setdefault(team, []).append(loss)
    mean = {team: sum(each, Fraction(0)) / len(each) for team, each in own.items()}
    return {team: (1 + sum(m < mean[team] for m in mean.values()), mean[team], len(own[team])) for team in own}


def spot(source: Source, family: str, within: Callable[[str, Said], bool], until: str = "9") -> Standing:
    """The board of every team's last word `within` on each question, by the last answer published until then."""
    losses = {}
    for qid in source.family(family):
        answers = [row for row in source.answers[qid] if row["at"] <= until]
        for team, statements in source.statements[qid].items() if answers else ():
            heard = [said for said in statements if within(qid, said) and said.claimed < answers[-1]["at"]]
            if heard and heard[-1].forecast:
                losses[team, qid] = LOSS[family](heard[-1].forecast, source.questions[qid], answers[-1])
    return standing(losses)


def in_time(source: Source, family: str, clock: str) -> Standing:
    """The board of what had been "claimed", or "received", by the deadline of the last round that asks a question."""
    last = {qid: rounds(source.questions[qid], source.deadlines)[-1] for qid in source.family(family)}
    return spot(source, family, lambda qid, said: getattr(said, clock) <= source.deadlines[last[qid]])


def stretches(source: Source, qid: str, team: str) -> Iterator[tuple[int, int, Row]]:
    """[start, end), µs, and the forecast that stands on it."""
    opens, closes = source.period(qid)
    statements = source.statements[qid][team]
    instants = [min(max(micros(said.claimed), opens), closes) for said in statements]
    for (start, end), said in zip(pairwise([*instants, closes]), statements, strict=True):
        if said.forecast and start < end:
            yield start, end, said.forecast


def over(source: Source, family: str, weight: Callable[[tuple[int, int], int, int], int]) -> Standing:
    """The board of losses, each the mean over the time on which a team had a forecast."""
    losses = {}
    for qid in source.family(family):
        question, answer, period = source.questions[qid], source.answers[qid][-1], source.period(qid)
        for team in source.statements[qid]:
            weighted = [(weight(period, start, end), row) for start, end, row in stretches(source, qid, team)]
            total = sum((w * LOSS[family](row, question, answer) for w, row in weighted), Fraction(0))
            losses[team, qid] = total / sum(w for w, _ in weighted)
    return standing(losses)


def seconds(_: tuple[int, int], start: int, end: int) -> int:
    """Time itself."""
    return end - start


def days(period: tuple[int, int], start: int, end: int) -> int:
    """The number of days that end during [start, end), or with the period."""
    opens, closes = period
    east = EAST * DAY // 1_440
    first = (opens + east) // DAY
    midnights = (day * DAY - east for day in range(first + 1, first + 400))
    return sum(start < min(midnight, closes) <= end for midnight in midnights if midnight < closes + DAY)
