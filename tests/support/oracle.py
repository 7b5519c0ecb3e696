"""The slow definition: every number worked out instant by instant, from the rules in words, and logs to try it on.

Sources: Metaculus, Tournament Scoring, "Question 1: a Binary Question" to "Battling the Bot"; Metaculus, Scores FAQ,
"What are the Hidden Period and Hidden Coverage Weights?". Fractions, and decimals of 60 digits.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise, repeat
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.support.origins import FIELDS, with_origins

EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
PICO = 10**12
PPM = 10**6
Instants = int | Iterable[int]  # µs, at which commands are recorded: all of them together, or each alone


# --- logarithms, to 60 digits and as the number scheme counts them: in 1e-12, rounded half-even once


def quotient(number: Fraction) -> Decimal:
    """A fraction to 60 digits."""
    return EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))


@cache
def logarithm(kernel: str, number: Fraction) -> Decimal:
    """Ln or log2 to 60 digits."""
    natural = EXACT.ln(quotient(number))
    return natural if kernel == "ln" else EXACT.divide(natural, EXACT.ln(Decimal(2)))


@cache
def picos(kernel: str, number: Fraction) -> int:
    """The same in 1e-12, rounded half-even."""
    return int(EXACT.quantize(EXACT.multiply(logarithm(kernel, number), Decimal(PICO)), Decimal(1)))


# --- what the log says


Statement = events.ForecastMade | events.ForecastWithdrawn


@dataclass
class Question:
    """A question, the statements of each participant about it (with log positions), and its answer."""

    opened: events.QuestionOpened
    closed_at: int
    statements: dict[str, list[tuple[int, Statement]]] = field(default_factory=dict)
    resolved: events.QuestionResolved | None = None
    quotes: list[tuple[int, int, tuple[int | None, ...]]] = field(default_factory=list)  # log position, at, prices
    changes: list[tuple[int, events.OutcomesChanged]] = field(default_factory=list)  # log position, the change

    def standing(self, instant: int, *, early: bool = True) -> dict[str, tuple[int, events.ForecastMade]]:
        """Everyone's last forecast up to that instant, unless a withdrawal follows it or it has ended by itself."""
        stands = {}
        for participant, statements in self.statements.items():
            heard = [(position, statement) for position, statement in statements if statement.at <= instant]
            if not heard:
                continue
            position, last = heard[-1]
            if not isinstance(last, events.ForecastMade) or (last.until is not None and last.until <= instant):
                continue
            if early or last.at >= self.opened.opens_at:
                stands[participant] = (position, last)
        return stands

    def stretches(self, until: int) -> Iterator[tuple[int, int]]:
        """From the opening until then, cut wherever anybody made a statement or a forecast ended by itself."""
        opens, made = self.opened.opens_at, [each for statements in self.statements.values() for _, each in statements]
        cuts = {each.at for each in made} | {each.until for each in made if isinstance(each, events.ForecastMade)}
        yield from pairwise(sorted({opens, until} | {at for at in cuts if at is not None and opens < at < until}))

    def move(self, event: events.QuestionClosed | events.QuestionRescheduled) -> None:
        """Take in an early close, or other times, of which a new close is where the question ends."""
        if isinstance(event, events.QuestionClosed):
            self.closed_at = event.at
            return
        for name in ("opens_at", "closes_at", "reveals_at"):
            if (at := getattr(event, name)) is not None:
                self.opened = msgspec.structs.replace(self.opened, **{name: at})
        if event.closes_at is not None:
            self.closed_at = event.closes_at

    def scored_until(self) -> int:
        """The early close, the instant the answer was known, or the scheduled close, whichever is first."""
        assert self.resolved
        return min(self.closed_at, self.resolved.known_at, self.opened.closes_at)


@dataclass
class Contest:
    """A contest, its questions, its exclusions and enrolments, and where it was frozen."""

    opened: events.ContestOpened
    entries: dict[str, events.QuestionAdded] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    enrolled: dict[str, events.ParticipantEnrolled] = field(default_factory=dict)
    finalized: int | None = None


@dataclass
class World:
    """Everything a log says."""

    questions: dict[str, Question] = field(default_factory=dict)
    contests: dict[str, Contest] = field(default_factory=dict)
    recorded_at: dict[int, int] = field(default_factory=dict)  # by log position

    def learn(self, position: int, event: events.AnyEvent) -> None:
        """Take in one event."""
        match event:
            case events.QuestionOpened():
                self.questions[event.question] = Question(event, event.closes_at)
            case events.ForecastMade() | events.ForecastWithdrawn():
                self.questions[event.question].statements.setdefault(event.participant, []).append((position, event))
            case events.QuestionClosed() | events.QuestionRescheduled():
                self.questions[event.question].move(event)
            case events.QuestionResolved():
                self.questions[event.question].resolved = event
            case events.PricesQuoted():
                for quote in event.quotes:
                    self.questions[quote.question].quotes.append((position, event.at, quote.prices))
            case events.QuestionAnnulled() | events.ResolutionRevoked():
                self.questions[event.question].resolved = None
            case events.ContestOpened():
                self.contests[event.contest] = Contest(event)
            case events.QuestionAdded():
                self.contests[event.contest].entries[event.question] = event
            case events.ParticipantEnrolled():
                self.contests[event.contest].enrolled[event.participant] = event
            case events.ParticipantExcluded():
                self.contests[event.contest].levels[event.participant] = event.level
            case events.ContestFinalized():
                self.contests[event.contest].finalized = position


def world(recorded: Sequence[Recorded], as_of: int | None = None) -> World:
    """The world that the log describes as of a position.

    Of a participant with several ids, all is told as if the last one had always been used. What is restated under an id
    is what was said under the ids that it had until then.
    """
    state = World()
    for each in _with_last_ids([each for each in recorded if as_of is None or each.position <= as_of]):
        state.learn(each.position, each.event)
        if isinstance(each.event, events.QuestionAmended) and each.event.weight is not None:
            entries = state.contests[each.event.contest].entries
            entry = msgspec.structs.replace(entries[each.event.question], weight=each.event.weight)
            entries[each.event.question] = entry
        if isinstance(each.event, events.OutcomesChanged):
            state.questions[each.event.question].changes.append((each.position, each.event))
        state.recorded_at[each.position] = each.recorded_at
    for question in state.questions.values():
        for statements in question.statements.values():
            statements.sort(key=lambda each: (each[1].at, each[0]))
    return state


def last_ids(recorded: Sequence[Recorded]) -> dict[str, str]:
    """The last id of each participant who was renamed, by each that it had."""
    now: dict[str, str] = {}
    for event in (each.event for each in recorded):
        if isinstance(event, events.ParticipantRenamed):
            now = {who: event.to if last == event.participant else last for who, last in now.items()}
            now |= {event.participant: event.to, event.to: event.to}
    return now


def _with_last_ids(recorded: Sequence[Recorded]) -> Iterator[Recorded]:
    """The log under the last ids, without the forecasts and withdrawals that were restated."""
    now, restated = last_ids(recorded), set[int]()
    for place, event in enumerate(each.event for each in recorded):
        if isinstance(event, events.ForecastsRetracted):
            then = last_ids(recorded[:place])
            restated |= {
                other.position
                for other in recorded[:place]
                if isinstance(other.event, Statement)
                and other.event.question == event.question
                and then.get(other.event.participant, other.event.participant) == event.participant
            }
    for each in recorded:
        ids = {name: getattr(each.event, name, "") for name in ("participant", "entrant")}
        if each.position not in restated:
            told = {name: now[who] for name, who in ids.items() if who in now}
            yield msgspec.structs.replace(each, event=msgspec.structs.replace(each.event, **told))


# --- scores


def chance(forecast: events.ForecastMade, outcome: int) -> Fraction:
    """The probability of an outcome; of a numeric one, the step of the cdf over it, below and above the range too."""
    if forecast.probabilities:
        return Fraction(forecast.probabilities[outcome], 10**9)
    heights = (0, *forecast.cdf, 10**10)
    return Fraction(heights[outcome + 1] - heights[outcome], 10**10)


def least(question: events.QuestionOpened, outcome: int, rules: RuleSet) -> Fraction:
    """The least probability that is scored: in a range, a share of the uniform density, to 1e-10; else a flat one."""
    if question.range and 1 <= outcome <= question.range.bins:
        return Fraction(round(Fraction(rules.least_density_ppm * 10**10, PPM * question.range.bins)), 10**10)
    return Fraction(rules.least_probability_ppm, PPM)


class Score(NamedTuple):
    """numerator: in 1e-12 x µs, of logarithms rounded once. unrounded: the mean of log(f/m) to 60 digits."""

    numerator: int
    denominator: int
    unrounded: Decimal
    coverage: Fraction


class Slice(NamedTuple):
    """One stretch of time on which nothing changes for one participant."""

    participant: str
    start: int
    end: int
    position: int
    chance: Fraction
    median: Fraction


def slices(question: Question, rules: RuleSet) -> Iterator[Slice]:
    """The stretches of the scored time, each with the standing forecasts and their median."""
    assert question.resolved
    outcome = question.resolved.outcome
    floor = least(question.opened, outcome, rules)
    for start, end in question.stretches(question.scored_until()):
        stands = question.standing(start, early=rules.early_forecasts)
        chances = {who: max(chance(forecast, outcome), floor) for who, (_, forecast) in stands.items()}
        for who, (position, _) in stands.items():
            yield Slice(who, start, end, position, chances[who], median(chances.values()))


def scores(question: Question, rules: RuleSet, hidden_weight: Fraction | None) -> dict[str, Score]:
    """Each participant's score on a resolved question: (1 / scheduled period) · ∫ log(f/m) dt, and coverage."""
    mine: dict[str, list[Slice]] = {}
    for each in slices(question, rules):
        mine.setdefault(each.participant, []).append(each)
    period = question.opened.closes_at - question.opened.opens_at
    return {
        who: Score(
            sum((picos(rules.kernel, s.chance) - picos(rules.kernel, s.median)) * (s.end - s.start) for s in own),
            period * PICO,
            EXACT.divide(_integral(rules.kernel, own), Decimal(period)),
            coverage(question.opened, own, hidden_weight),
        )
        for who, own in mine.items()
    }


def _integral(kernel: str, own: Sequence[Slice]) -> Decimal:
    total = Decimal(0)
    for each in own:
        height = logarithm(kernel, each.chance / each.median)
        total = EXACT.add(total, EXACT.multiply(height, Decimal(each.end - each.start)))
    return total


def coverage(question: events.QuestionOpened, own: Sequence[Slice], hidden_weight: Fraction | None) -> Fraction:
    """Covered share of the period; or w x that of the hidden period + (1 - w) x that of the rest."""
    opens, reveals, closes = question.opens_at, question.reveals_at, question.closes_at
    if hidden_weight is None or reveals is None:
        return Fraction(sum(each.end - each.start for each in own), closes - opens)
    hidden = sum(max(min(each.end, reveals) - each.start, 0) for each in own)
    rest = sum(max(each.end - max(each.start, reveals), 0) for each in own)
    covered = hidden_weight * Fraction(hidden, reveals - opens)
    return covered + ((1 - hidden_weight) * Fraction(rest, closes - reveals) if closes > reveals else 0)


# --- boards


_RAISED = {"coverage_exp": "ln", "coverage_exp2": "log2"}  # of a take, the logarithm whose base its score is raised to


class Place(NamedTuple):
    """One row of a board; prize in 1e-6."""

    rank: int | None
    participant: str
    score: Fraction
    coverage: Fraction
    take: Decimal
    share: Fraction
    prize: int
    completion: str
    level: str


def counting(recorded: Sequence[Recorded], contest: str) -> dict[str, tuple[Question, events.QuestionAdded]]:
    """The contest's resolved questions, as its board saw them when it was last open."""
    state = world(recorded, world(recorded).contests[contest].finalized)
    entries, rules = state.contests[contest].entries, state.contests[contest].opened.rules
    return {
        name: (state.questions[name], entry)
        for name, entry in entries.items()
        if (answer := state.questions[name].resolved) and (rules.payouts == "scored" or not answer.payouts)
    }


def contest_scores(recorded: Sequence[Recorded], contest: str) -> dict[tuple[str, str], Score]:
    """By question and participant."""
    rules = world(recorded).contests[contest].opened.rules
    return {
        (name, who): score
        for name, (question, entry) in counting(recorded, contest).items()
        for who, score in scores(question, rules, _share(entry.hidden_coverage_weight)).items()
    }


def _share(ppm: int | None) -> Fraction | None:
    return None if ppm is None else Fraction(ppm, PPM)


def nine(number: Fraction) -> Decimal:
    """As published: nine decimals, rounded half-even once."""
    return Decimal(round(number * 10**9)).scaleb(-9)


def power(kernel: str, exponent: Fraction) -> Decimal:
    """E, or 2 under the logarithm base 2, to a power."""
    return EXACT.exp(quotient(exponent)) if kernel == "ln" else EXACT.power(Decimal(2), quotient(exponent))


def worths(places: Sequence[Place], kernel: str) -> dict[str, Fraction]:
    """Takes in proportion: coverage x power(score - somebody's score), so that what is equal or rational stays so."""
    base = next((place.score for place in places if place.coverage), Fraction(0))
    by_participant = {}
    for place in places:
        above = place.score - base
        whole = above.denominator == 1 and (above == 0 or kernel == "log2")
        grown = Fraction(2) ** int(above) if whole else Fraction(power(kernel, above))
        by_participant[place.participant] = place.coverage * grown
    return by_participant


def largest_remainder(amount: int, takes: dict[str, Fraction]) -> dict[str, int]:
    """Whole units in proportion; those left over go to the largest cut-off remainders, of equals to the first id."""
    total = sum(takes.values())
    if not total:
        return dict.fromkeys(takes, 0)
    quotas = {who: amount * own / total for who, own in takes.items()}
    parts = {who: int(quota) for who, quota in quotas.items()}
    left = amount - sum(parts.values())
    for who in sorted(quotas, key=lambda who: (parts[who] - quotas[who], who))[:left]:
        parts[who] += 1
    return parts


def board(recorded: Sequence[Recorded], contest: str) -> list[Place]:
    """A contest's board, best first, equal takes by id."""
    state = world(recorded, world(recorded).contests[contest].finalized)
    rules, levels = state.contests[contest].opened.rules, state.contests[contest].levels
    weights = {name: Fraction(entry.weight, PPM) for name, (_, entry) in counting(recorded, contest).items()}
    weights = {name: weight for name, weight in weights.items() if weight}  # the rest are scored, not counted
    own: dict[str, dict[str, Score]] = {}
    for (name, who), score in contest_scores(recorded, contest).items():
        if name in weights:
            own.setdefault(who, {})[name] = score
    places = []
    for who, by_question in own.items():
        total = sum(weights[name] * Fraction(s.numerator, s.denominator) for name, s in by_question.items())
        covered = sum(weights[name] * s.coverage for name, s in by_question.items()) / sum(weights.values())
        grown, count = power(_RAISED[rules.take], Fraction(total)), f"{len(by_question)}/{len(weights)}"
        worth = EXACT.multiply(grown, quotient(Fraction(covered)))
        places.append(
            Place(None, who, Fraction(total), Fraction(covered), worth, Fraction(0), 0, count, levels.get(who, ""))
        )
    shown = sorted((place for place in places if place.level != "hidden"), key=lambda place: place.participant)
    return _paid(state.contests[contest].opened, _ranked(shown, _RAISED[rules.take]))


def _ranked(places: list[Place], kernel: str) -> list[Place]:
    """Rank: one more than how many of those who are ranked have a larger take."""
    worth = worths(places, kernel)
    ranked = {place.participant for place in places if place.level != "no_rank"}
    ranks = {who: 1 + sum(worth[other] > worth[who] for other in ranked) for who in ranked}
    with_ranks = [place._replace(rank=ranks.get(place.participant)) for place in places]
    return sorted(
        with_ranks, key=lambda place: worth[place.participant], reverse=True
    )  # stable: equal takes stay by id


def _paid(contest: events.ContestOpened, places: list[Place]) -> list[Place]:
    included = sorted((place for place in places if not place.level), key=lambda place: place.participant)
    takes = worths(included, _RAISED[contest.rules.take])
    units, total = largest_remainder(contest.pool // contest.payable_unit, takes), sum(takes.values())
    return [
        place._replace(
            share=takes.get(place.participant, 0) / (total or Fraction(1)),
            prize=units.get(place.participant, 0) * contest.payable_unit,
        )
        for place in places
    ]


# --- the community forecast


def consensus(question: Question, outcome: int) -> list[tuple[int, int, int, Fraction]]:
    """From, to, how many, median: one row while the same forecasts stand, and none while nobody's does."""
    rows: list[tuple[int, int, int, Fraction]] = []
    before: list[int] = []
    for start, end in question.stretches(question.closed_at):
        stands = question.standing(start).values()
        who = sorted(position for position, _ in stands)
        if who and who == before:
            rows[-1] = (rows[-1][0], end, *rows[-1][2:])
        elif who:
            rows.append((start, end, len(who), median(chance(forecast, outcome) for _, forecast in stands)))
        before = who
    return rows


# --- logs


UNIT = 977_353  # µs: no round number, so that periods have no factors to share
PEOPLE = ("a", "b", "c", "d")
COLOURS = ("red", "green", "blue")
_LATE = {"name": "late", "early_forecasts": False, "least_probability_ppm": 1, "least_density_ppm": 1}
RELATIVE = tuple(  # with few samples, so that the tables that draw them are soon built
    msgspec.structs.replace(PRESETS[name], replicates=39, **fields)
    for name, fields in (
        ("relative-2021-11", {}),
        ("relative-2022-04", {}),
        ("relative-faq", {}),
        ("relative-2022-04", _LATE),
    )
)


def with_ids(commands: Sequence[AnyCommand]) -> list[AnyCommand]:
    """The same commands, each under an id of its own."""
    return [msgspec.structs.replace(command, id=f"c{number}") for number, command in enumerate(commands)]


def events_of(log: Ledger | Path | str, after: int = 0) -> list[Recorded]:
    """All that is in a ledger, or in the file of one, after a position."""
    if isinstance(log, Ledger):
        return [each for page in log.read(after) for each in page]
    with Ledger.open(log) as ledger:
        return events_of(ledger, after)


@contextmanager
def telling(
    path: Path | str, commands: Sequence[AnyCommand], at: Instants, name: str = "main"
) -> Iterator[tuple[Ledger, list[Refused]]]:
    """A ledger to which these commands were sent, and its refusals."""
    instants = repeat(at) if isinstance(at, int) else iter(at)
    with Ledger.open(path, name, clock=lambda: next(instants), prizes=prizes_from_log) as ledger:
        batches = [commands] if isinstance(at, int) else [[command] for command in commands]
        outcomes = [outcome for batch in batches for outcome in ledger.handle_many(batch)]
        yield ledger, [outcome for outcome in outcomes if isinstance(outcome, Refused)]


def attempted(commands: Sequence[AnyCommand], at: Instants = 0) -> tuple[list[Recorded], list[Refused]]:
    """The events that a new ledger records for these commands, and the refusals."""
    with telling(":memory:", with_ids(commands), at) as (ledger, refused):
        return events_of(ledger), refused


def history(*commands: AnyCommand, at: Instants = 0) -> list[Recorded]:
    """The events that a new ledger records for these commands, all of which it accepts."""
    recorded, refused = attempted(commands, at)
    assert not refused, refused
    return recorded


def followed(recorded: Sequence[Recorded], *happened: events.AnyEvent) -> list[Recorded]:
    """A log that goes on with these events, whatever a decider would say of them; its digests are not kept up."""
    last = len(recorded)
    return [
        *recorded,
        *(
            msgspec.structs.replace(recorded[-1], position=position, event=event)
            for position, event in enumerate(happened, last + 1)
        ),
    ]


def facts_in(recorded: Sequence[Recorded], page: int = 1_000_000) -> Facts:
    """The facts in recorded events, read in pages of this size."""
    return facts(recorded[first : first + page] for first in range(0, len(recorded), page))


def projected(*commands: AnyCommand, chunk: int = 1 << 20, at: Instants = 0) -> Projections:
    """The projections over what a new ledger records of these commands, all of which it accepts."""
    return Projections(facts_in(history(*commands, at=at)), chunk)


def moment(units: int) -> datetime:
    """The instant that many units after the opening of every question in a random log."""
    return datetime(2026, 3, 10, tzinfo=UTC) + timedelta(microseconds=units * UNIT)


# Each strategy is made once: one that is made for each draw is validated for each, which takes longer than to draw.
def _choice(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


_CUTS = _choice(0, 1, 5, 10, 500_000, 10**9, 2 * 10**9, 5 * 10**9, 10**10) | st.integers(0, 10**10)
_LASTS = _choice(None, None, 0, 1, 2, 5, 20)  # a forecast ends by itself after so many units; 0 is refused
_HEIGHTS = {edges: st.lists(_CUTS, min_size=edges, max_size=edges) for edges in range(2, 7)}
_KINDS = _choice("binary", "multiple_choice", "numeric")
_WHO, _OTHER = _choice(*PEOPLE), _choice(*PEOPLE, "e")
_SHUFFLES = st.randoms(use_true_random=False)
_REVEALS = {closes: st.none() | st.integers(1, closes) for closes in range(4, 13)}
_MADE_AT = {closes: st.lists(st.integers(-2, closes - 1), min_size=4, max_size=14) for closes in _REVEALS}
_RESTATED_AT = {closes: st.sets(st.integers(-2, closes), max_size=3) for closes in _REVEALS}
_OPENS = st.none() | st.integers(-1, 1)
_ENDS = {closes: st.none() | st.integers(1, closes + 3) for closes in _REVEALS}
_ANSWERS = _choice(*["resolve"] * 5, "revoke", "annul")
_KNOWN = st.none() | st.integers(0, 14).map(moment)
_VALUES = _choice("-1", "0", "1", "2.5", "4", "5")
_OUTCOMES = {"binary": _choice("yes", "no"), "multiple_choice": _choice(*COLOURS)}
_RULES, _UNITS = _choice(*RELATIVE), _choice("0.01", "1", "5")
_WEIGHTS = _choice("1", "1", "2", "0.5", "0.000001", "0")
_HIDDEN = st.none() | _choice("0", "0.25", "1")
_LEVELS, _SOME = _choice("no_prize", "no_rank", "hidden"), st.lists(_WHO, max_size=2)
_ORIGINS = st.lists(FIELDS, max_size=2)


@st.composite
def logs(draw: st.DrawFn) -> list[AnyCommand]:
    """Commands, most of which fit: questions of every kind, and contests over them, each at its own pace."""
    names = [f"q{number}" for number in range(draw(st.integers(1, 3)))]
    lasts = [draw(st.integers(4, 12)) for _ in names]
    openings = [_opening(draw, name, closes) for name, closes in zip(names, lasts, strict=True)]
    threads = [_doings(draw, opening, closes) for opening, closes in zip(openings, lasts, strict=True)]
    threads += [_contest(draw, f"cup{number}", names) for number in range(draw(st.integers(1, 2)))]
    threads += [[_renaming(draw) for _ in range(draw(st.integers(1, 4)))]] * draw(st.booleans())
    turns = [number for number, thread in enumerate(threads) for _ in thread]
    draw(_SHUFFLES).shuffle(turns)
    rests = [iter(thread) for thread in threads]
    made = [*openings, *(next(rests[turn]) for turn in turns)]
    return with_origins(made, draw(_ORIGINS), draw(st.integers(1, 4)))


def _opening(draw: st.DrawFn, name: str, closes: int) -> commands.OpenQuestion:
    reveals = draw(_REVEALS[closes])
    kind = draw(_KINDS)
    opened = commands.OpenQuestion(
        at=moment(-9),
        question=name,
        kind="binary",
        opens_at=moment(0),
        closes_at=moment(closes),
        reveals_at=None if reveals is None else moment(reveals),
    )
    if kind == "multiple_choice":
        return msgspec.structs.replace(opened, kind=kind, outcomes=COLOURS)
    if kind == "numeric":
        lower, upper = draw(st.booleans()), draw(st.booleans())
        span = commands.Range(lower=0, upper=4, bins=draw(st.integers(1, 5)), open_lower=lower, open_upper=upper)
        return msgspec.structs.replace(opened, kind=kind, range=span)
    return opened


def _doings(draw: st.DrawFn, opened: commands.OpenQuestion, closes: int) -> list[AnyCommand]:
    """Forecasts and withdrawals in order of time, other times, an early close recorded when due or later, and answers.

    Between the last forecasts the close can be later, so that some are accepted only because of that.
    """
    made = [_statement(draw, opened, at) for at in sorted(draw(_MADE_AT[closes]))]
    for _ in range(draw(st.integers(0, 2))):
        made.insert(draw(st.integers(0, len(made))), _rescheduling(draw, opened, closes))
    if draw(st.integers(0, 2)) == 0:
        close = commands.CloseQuestion(at=moment(draw(st.integers(1, closes))), question=opened.question)
        made.insert(draw(st.integers(0, len(made))), close)
    if draw(st.booleans()):
        made.insert(draw(st.integers(0, len(made))), _restatement(draw, opened, closes))
    return [*made, *(_after(draw, opened, closes) for _ in range(draw(st.integers(1, 5))))]


def _after(draw: st.DrawFn, opened: commands.OpenQuestion, closes: int) -> AnyCommand:
    """An answer, or a forecast again once it is revoked."""
    told = draw(st.integers(0, 3))
    if told < 2:
        return _answer(draw, opened)
    return _statement(draw, opened, closes - 1) if told == 2 else _restatement(draw, opened, closes)


def _rescheduling(draw: st.DrawFn, opened: commands.OpenQuestion, closes: int) -> commands.RescheduleQuestion:
    """Other times, most of them in order."""
    opens = draw(_OPENS)
    ends = draw(st.integers(1, closes + 3) if opens is None else _ENDS[closes])
    reveals = draw(_REVEALS[closes])
    times = {"opens_at": opens, "closes_at": ends, "reveals_at": reveals}
    given: dict[str, Any] = {name: moment(at) for name, at in times.items() if at is not None}
    return commands.RescheduleQuestion(at=moment(draw(st.integers(-2, closes))), question=opened.question, **given)


def _statement(draw: st.DrawFn, opened: commands.OpenQuestion, at: int) -> AnyCommand:
    who = draw(_WHO)
    if draw(st.integers(0, 4)) == 0:
        return commands.WithdrawForecast(at=moment(at), question=opened.question, participant=who)
    return _forecast(draw, opened, who, at)


def _restatement(draw: st.DrawFn, opened: commands.OpenQuestion, closes: int) -> commands.RestateForecasts:
    """What somebody forecast, as it is found later: nothing, or forecasts in order of time, most of them before the
    close.
    """
    who, instants = draw(_WHO), draw(_RESTATED_AT[closes])
    made = [restated(_forecast(draw, opened, who, at)) for at in sorted(instants)]
    return commands.RestateForecasts(
        at=moment(51), question=opened.question, participant=who, forecasts=tuple(made), reason="found later"
    )


def _renaming(draw: st.DrawFn) -> commands.RenameParticipant:
    """Another id of somebody, who may exist; some are refused."""
    return commands.RenameParticipant(at=moment(30), participant=draw(_WHO), to=draw(_OTHER), reason="one person")


def restated(command: commands.SubmitForecast) -> commands.RestatedForecast:
    """A forecast as a part of a restatement."""
    names = commands.RestatedForecast.__struct_fields__
    return commands.RestatedForecast(**{name: getattr(command, name) for name in names})


def _forecast(draw: st.DrawFn, opened: commands.OpenQuestion, who: str, at: int) -> commands.SubmitForecast:
    lasts = draw(_LASTS)
    until = None if lasts is None else moment(at + lasts)
    made = commands.SubmitForecast(at=moment(at), question=opened.question, participant=who, until=until)
    if opened.kind == "binary":
        return msgspec.structs.replace(made, probability=Decimal(draw(_CUTS) // 10).scaleb(-9))
    if opened.range is None:
        first, second = sorted((draw(_CUTS), draw(_CUTS)))
        parts = (first // 10, second // 10 - first // 10, 10**9 - second // 10)
        chances = {name: Decimal(part).scaleb(-9) for name, part in zip(COLOURS, parts, strict=True)}
        return msgspec.structs.replace(made, probabilities=chances)
    heights = sorted(draw(_HEIGHTS[(opened.range.bins or 0) + 1]))
    heights[0] *= opened.range.open_lower
    heights[-1] = heights[-1] if opened.range.open_upper else 10**10
    return msgspec.structs.replace(made, cdf=tuple(Decimal(height).scaleb(-10) for height in heights))


def _answer(draw: st.DrawFn, opened: commands.OpenQuestion) -> AnyCommand:
    question, at = opened.question, moment(50)
    move = draw(_ANSWERS)
    if move == "revoke":
        return commands.RevokeResolution(at=at, question=question, reason="misread")
    if move == "annul":
        return commands.AnnulQuestion(at=at, question=question, reason="no source")
    resolved = commands.ResolveQuestion(at=at, question=question, known_at=draw(_KNOWN))
    if opened.range is not None:
        return msgspec.structs.replace(resolved, value=draw(_VALUES))
    return msgspec.structs.replace(resolved, outcome=draw(_OUTCOMES[opened.kind]))


def _contest(draw: st.DrawFn, contest: str, names: list[str]) -> list[AnyCommand]:
    """A contest over some of the questions; now and then frozen, perhaps before all is known."""
    at = moment(60)
    unit = draw(_UNITS)
    requests: list[AnyCommand] = [
        commands.OpenContest(at=at, contest=contest, rules=draw(_RULES), pool=100, payable_unit=unit)
    ]
    for name in names:
        weight = draw(_WEIGHTS)
        hidden = draw(_HIDDEN)
        added = commands.AddQuestion(at=at, contest=contest, question=name, weight=weight)
        # If the first is refused, the second is accepted.
        requests += [msgspec.structs.replace(added, hidden_coverage_weight=hidden), added]
    for who in draw(_SOME):
        excluded = commands.ExcludeParticipant(at=at, contest=contest, participant=who, level="hidden", reason="staff")
        requests.append(msgspec.structs.replace(excluded, level=draw(_LEVELS)))
    if draw(st.integers(0, 3)) == 0:
        requests.append(commands.FinalizeContest(at=at, contest=contest))
    return requests
