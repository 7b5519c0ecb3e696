"""The slow definition of every rule set: each number worked out unit by unit, from the rules in words.

Sources: the docstrings of ledger.rules; Metaculus, Tournament Scoring, "A Simple Scenario" to "Tournament Scoring";
Metaculus, Scores FAQ, "What is the Baseline score?", "What is the Peer score?" and the tournament's own headings;
Autocast competition of 2022, "Evaluation"; Metaculus's published code.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from math import floor, isqrt
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

from msgspec import structs

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import RuleSet
from tests.support import oracle
from tests.support.oracle import EXACT, PICO, PPM

DAY = 86_400 * 10**6
CONSENSUS, HALF, UNIFORM, MARKET = "[consensus]", "[always-half]", "[uniform]", "[market]"
UNRANKED = {"no_rank", "consensus", "reference", "too_few_questions"}
LOGARITHMS = ("ln", "log2")
WORST = {
    "brier": 1, "brier_sum": 2, "brier_mean": 1, "ordered_brier": 2, "error": 1, "crps": 1,
    "absolute": 1, "absolute_clipped": 1,
}  # fmt: skip
LOSSES = {*WORST, "pinball"}

Numbers = tuple[Fraction, ...]  # probabilities of the outcomes, heights of a cdf at its edges, or quantiles


@dataclass(frozen=True)
class Case:
    """One question in one contest: all that a score on it depends on."""

    rules: RuleSet
    question: oracle.Question
    entry: events.QuestionAdded
    recorded_at: Mapping[int, int]
    scored_only: frozenset[str]

    @property
    def opened(self) -> events.QuestionOpened:
        """The event that opened the question."""
        return self.question.opened

    @property
    def resolved(self) -> events.QuestionResolved:
        """The answer."""
        assert self.question.resolved
        return self.question.resolved

    @property
    def kernel(self) -> str:
        """The name of the formula for this form of distribution."""
        if self.opened.range is None:
            unordered = self.opened.ordered is False and self.rules.kernel == "ordered_brier"
            return "brier_sum" if unordered else self.rules.kernel
        return self.rules.quantile_kernel if self.opened.range.levels else self.rules.cdf_kernel

    @property
    def named(self) -> bool:
        """Return whether the outcomes have names."""
        return self.opened.range is None

    @property
    def span(self) -> events.NumericRange:
        """The range of a numeric question."""
        assert self.opened.range
        return self.opened.range

    @property
    def names(self) -> list[str]:
        """Every outcome that the question ever had."""
        return [*self.opened.outcomes, *(name for _, change in self.question.changes for name in change.added)]

    def among(self, given: Sequence[str]) -> "Case":
        """The same question if these were its outcomes: any other is part of the last one that it was opened with."""
        if not self.question.changes or not given:
            return self
        rest, names = self.opened.outcomes[-1], self.names
        shares = dict.fromkeys(given, 0)
        for name, paid in zip(names, self.resolved.payouts, strict=False):
            shares[name if name in given else rest] += paid
        outcome = self.resolved.outcome
        if outcome >= 0:
            outcome = given.index(names[outcome] if names[outcome] in given else rest)
        payouts = tuple(shares.values()) if self.resolved.payouts else ()
        resolved = structs.replace(self.resolved, outcome=outcome, payouts=payouts)
        opened = structs.replace(self.opened, outcomes=tuple(given))
        return replace(self, question=replace(self.question, opened=opened, resolved=resolved, changes=[]))


# --- outcomes that change: which there are, and what a forecast gives each of them


def takes_effect(case: Case, position: int, change: events.OutcomesChanged) -> int:
    """When a change counts: a removal at once, an addition at the end of its grace period.

    By the ledger's clock, this period ends at the latest when the next change is recorded.
    """
    at = change.at if change.grace_ends_at is None else change.grace_ends_at
    if case.rules.clock == "claimed":
        return at
    recorded = case.recorded_at[position]
    if change.grace_ends_at is None:
        return recorded
    return max(
        recorded, min([at, *(case.recorded_at[later] for later, _ in case.question.changes if later > position)])
    )


def changed(names: Sequence[str], change: events.OutcomesChanged) -> list[str]:
    """The outcomes after a change."""
    return [name for name in names if name not in change.removed] + [*change.added]


def outcomes_at(case: Case, instant: int) -> list[str]:
    """The outcomes that count at an instant."""
    names = [*case.opened.outcomes]
    for position, change in case.question.changes:
        if takes_effect(case, position, change) <= instant:
            names = changed(names, change)
    return names


def outcomes_after(case: Case, position: int) -> list[str]:
    """The outcomes that a forecast recorded at a log position gives."""
    names = [*case.opened.outcomes]
    for changed_at, change in case.question.changes:
        if changed_at < position:
            names = changed(names, change)
    return names


def has_ended(case: Case, position: int, instant: int) -> bool:
    """Whether outcomes were added after a forecast was recorded, and the grace period is over."""
    later = [each for each in case.question.changes if each[0] > position and each[1].added]
    return any(takes_effect(case, *each) <= instant for each in later)


def as_it_counts(case: Case, instant: int, position: int, given: Numbers) -> Numbers:
    """Probabilities of the outcomes that count at an instant: that of any other is added to the catch-all."""
    if not case.question.changes:
        return given
    counting, rest = outcomes_at(case, instant), case.opened.outcomes[-1]
    shares = dict.fromkeys(counting, Fraction(0))
    for name, share in zip(outcomes_after(case, position), given, strict=True):
        shares[name if name in shares else rest] += share
    return tuple(shares.values())


def counts_since(case: Case, instant: int, position: int, made: int) -> int:
    """From when on a forecast counts as it does at an instant: outcomes that it has, or lost, may begin to count."""
    ends = [takes_effect(case, *each) for each in case.question.changes if each[1].added and each[0] < position]
    cuts = [takes_effect(case, *each) for each in case.question.changes if each[1].removed and each[0] > position]
    return max([made, *(at for at in [*ends[-1:], *cuts] if at <= instant)])


# --- time: who stands in which unit


class Stand(NamedTuple):
    """A forecast that stands; made: the instant that counts of it."""

    participant: str
    made: int
    numbers: Numbers


class Step(NamedTuple):
    """Units [begins, ends) in which the same forecasts stand, and those of reference forecasters."""

    begins: int
    ends: int
    stands: tuple[Stand, ...]
    references: tuple[Stand, ...] = ()
    outcomes: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """The number of units."""
        return self.ends - self.begins


def heard_at(case: Case, position: int, said: events.ForecastMade | events.ForecastWithdrawn) -> int:
    """The instant that counts of a statement: of its recording, if it was recorded too long after what it claims."""
    recorded = case.recorded_at[position]
    is_late = recorded > said.at + case.rules.late_minutes * 60 * 10**6
    return recorded if is_late or case.rules.clock == "recorded" else said.at


def standing(case: Case, instant: int) -> dict[str, tuple[int, events.ForecastMade]]:
    """Everyone's last word up to that instant, unless it is a withdrawal, has ended or was too early."""
    stands = {}
    for who, statements in case.question.statements.items():
        order = sorted(statements, key=itemgetter(0)) if case.rules.clock == "recorded" else statements
        heard = [each for each in order if heard_at(case, *each) <= instant]
        position, last = heard[-1] if heard else (0, None)
        if last is None or not (case.rules.early_forecasts or heard_at(case, position, last) >= case.opened.opens_at):
            continue
        if has_ended(case, position, instant):
            continue
        if isinstance(last, events.ForecastMade) and (last.until is None or instant < last.until):
            stands[who] = position, last
    return stands


def prices(case: Case) -> list[tuple[int, tuple[Fraction | None, ...]]]:
    """From when on the market has which prices: those that each quote leaves out are as they were."""
    at, known, every = -(2**63), list[Fraction | None](), list[tuple[int, tuple[Fraction | None, ...]]]()
    for position, claimed, quoted in case.question.quotes:
        at = max(at, case.recorded_at[position] if case.rules.clock == "recorded" else claimed)
        known = known or [None] * len(quoted)
        known = [old if new is None else Fraction(new, 10**9) for old, new in zip(known, quoted, strict=True)]
        every.append((at, tuple(known)))
    return every


def references(case: Case, instant: int) -> Iterator[Stand]:
    """What reference forecasters say at an instant of the period; the consensus is not one of them here."""
    shown, opens = case.rules.reference_rows, case.opened.opens_at
    if "always_half" in shown and case.opened.kind == "binary":
        yield Stand(HALF, opens, (Fraction(1, 2), Fraction(1, 2)))
    if "uniform" in shown:
        yield Stand(UNIFORM, opens, even(case.among(outcomes_at(case, instant))))
    known = [each for at, each in prices(case) if at <= instant] if case.named else []
    if case.question.changes:  # none is quoted before the last change
        last = outcomes_after(case, 10**9)
        known = [tuple(each[case.names.index(name)] for name in last) for each in known]
    whole = [market(case, each) for each in known]
    if "market" in shown and any(whole):
        yield Stand(MARKET, opens, as_it_counts(case, instant, 10**9, [each for each in whole if each][-1]))


def market(case: Case, known: Sequence[Fraction | None]) -> Numbers:
    """Prices as a distribution: no is 1 - yes; otherwise over their sum, in 1e-9 by largest remainder."""
    if case.opened.kind == "binary":
        return () if known[0] is None else (known[0], 1 - known[0])
    each = [price for price in known if price is not None]
    if len(each) < len(known) or not sum(each):
        return ()
    units = oracle.largest_remainder(10**9, {f"{k:09}": price for k, price in enumerate(each)})
    return tuple(Fraction(units[f"{k:09}"], 10**9) for k in range(len(each)))


def even(case: Case) -> Numbers:
    """The uniform distribution: outcomes in 1e-9, the first have the rest; heights in 1e-10; values in their unit."""
    if case.named:
        k = len(case.opened.outcomes)
        return tuple(Fraction(10**9 // k + (number < 10**9 % k), 10**9) for number in range(k))
    span = case.span
    if not span.levels:
        end = Fraction(case.rules.open_end_ppm, PPM) if case.kernel in LOGARITHMS else Fraction(0)
        below, above = end * span.open_lower, end * span.open_upper
        edges = (below + (1 - below - above) * Fraction(edge, span.bins) for edge in range(span.bins + 1))
        return tuple(nearest(each, 10**10) for each in edges)
    lower, upper = Fraction(span.lower), Fraction(span.upper)
    places = [Fraction(level, 10**9) for level in span.levels]
    if span.zero_point is None:
        return tuple(nearest(lower + place * (upper - lower), 10**span.decimals) for place in places)
    zero = Fraction(span.zero_point)
    whole = oracle.quotient((upper - zero) / (lower - zero))
    grown = (Fraction(EXACT.power(whole, oracle.quotient(place))) for place in places)
    return tuple(nearest(zero + (lower - zero) * each, 10**span.decimals) for each in grown)


def date(case: Case, instant: int) -> int:
    """The day of an instant, at the rules' minutes east of UTC."""
    return (instant + case.rules.day_minutes * 60 * 10**6) // DAY


def midnight_after(case: Case, instant: int) -> int:
    """The first instant of the next day."""
    return (date(case, instant) + 1) * DAY - case.rules.day_minutes * 60 * 10**6


def days(case: Case, until: int) -> list[tuple[int, int]]:
    """From when to when each day is that counts, of the time from the opening until then."""
    cuts = [case.opened.opens_at]
    while cuts[-1] < until:
        cuts.append(min(midnight_after(case, cuts[-1]), until))
    spans = list(pairwise(cuts))
    if case.rules.day_edges == "none":
        spans = [(begins, ends) for begins, ends in spans if midnight_after(case, begins - 1) == begins]
    if case.rules.day_edges != "both":
        spans = [(begins, ends) for begins, ends in spans if midnight_after(case, begins) == ends]
    return spans


def spots(case: Case) -> list[tuple[int, int]]:
    """The instants that count where single ones do, each with how many times it counts."""
    until = case.question.scored_until()
    if case.entry.spots:
        return [(each.at if each.at < until else until - 1, each.weight) for each in case.entry.spots]
    return [(spot(case), 1)]


def spot(case: Case) -> int:
    """The instant that counts where only one does."""
    opened, until = case.opened, case.question.scored_until()
    at = opened.closes_at if opened.reveals_at is None else opened.reveals_at
    at = at if case.entry.spot_at is None else case.entry.spot_at
    return at if at < until else until - 1


def looks(case: Case) -> Iterator[tuple[int, int, int]]:
    """The units of scored time, from and to, and the instant at which to look who stands in them."""
    opens, until = case.opened.opens_at, case.question.scored_until()
    if until <= opens:
        return
    if case.rules.sampling == "time":
        made = [each for statements in case.question.statements.values() for each in statements]
        said = {heard_at(case, *each) for each in made}
        said |= {each.until for _, each in made if isinstance(each, events.ForecastMade) and each.until is not None}
        said |= {takes_effect(case, *each) for each in case.question.changes}
        if "market" in case.rules.reference_rows:
            said |= {at for at, _ in prices(case)}
        cuts = sorted({opens, until} | {at for at in said if opens < at < until})
        yield from ((start - opens, end - opens, start) for start, end in pairwise(cuts))
    elif case.rules.sampling == "day":
        yield from ((unit, unit + 1, ends - 1) for unit, (_, ends) in enumerate(days(case, until)))
    else:
        unit = 0
        for instant, times in spots(case):
            yield unit, unit + times, instant
            unit += times


def steps(case: Case) -> list[Step]:
    """The standing forecasts, unit by unit."""
    sequence: list[Step] = []
    for begins, ends, instant in looks(case):
        stands = standing(case, instant)
        sequence.append(
            Step(
                begins,
                ends,
                tuple(
                    Stand(
                        who,
                        counts_since(case, instant, position, heard_at(case, position, said)),
                        as_it_counts(case, instant, position, numbers(case, said)),
                    )
                    for who, (position, said) in stands.items()
                ),
                tuple(references(case, instant)),
                tuple(outcomes_at(case, instant)) if case.question.changes else (),
            )
        )
    return sequence


def unit_of(case: Case, instant: int) -> int:
    """The unit that an instant is in."""
    if case.rules.sampling == "spot":
        return sum(times for at, times in spots(case) if at < instant)
    if case.rules.sampling == "time":
        return instant - case.opened.opens_at
    return sum(ends <= instant for _, ends in days(case, case.opened.closes_at))


def lengths(case: Case) -> tuple[int, int]:
    """Units of the whole scheduled period, and of the hidden period."""
    opens, closes, reveals = case.opened.opens_at, case.opened.closes_at, case.opened.reveals_at
    hidden_until = opens if reveals is None else reveals
    if case.rules.sampling == "time":
        return closes - opens, hidden_until - opens
    if case.rules.sampling == "spot":
        counted = [(each.at, each.weight) for each in case.entry.spots] or spots(case)
        looked_at = [(min(at, closes - 1), times) for at, times in counted]  # at the close, just before it
        hidden = sum(times for at, times in looked_at if at < hidden_until) if case.entry.spots else 0
        return sum(times for _, times in counted), hidden
    spans = days(case, closes)
    return len(spans), sum(ends <= hidden_until for _, ends in spans)  # a day is hidden if it ends hidden


# --- kernels: what a distribution is worth, given the answer


def numbers(case: Case, said: events.ForecastMade) -> Numbers:
    """A distribution in ones, or in units of the question."""
    if said.probabilities:
        return tuple(Fraction(each, 10**9) for each in said.probabilities)
    if said.cdf:
        return tuple(Fraction(each, 10**10) for each in said.cdf)
    return tuple(Fraction(each, 10**case.span.decimals) for each in said.quantiles)


def nearest(number: Fraction, units: int = PICO) -> Fraction:
    """Rounded half-even once to 1 / units."""
    return Fraction(round(number * units), units)


@cache
def log(name: str, number: Fraction) -> Fraction:
    """The logarithm of a probability, in 1e-12."""
    return Fraction(oracle.picos(name, number), PICO)


def scored_probability(case: Case, chance: Fraction) -> Fraction:
    """The probability whose logarithm is scored, for an outcome, an open end or a bin: at least the least probability;
    or, in a range where the least density is added, plus the least; then at most the greatest.
    """
    rules, least = case.rules, oracle.least(case.opened, case.resolved.outcome, case.rules)
    if case.named or not 1 <= case.resolved.outcome <= case.span.bins:
        return min(max(chance, least), Fraction(rules.greatest_probability_ppm, PPM))
    more = chance + least if rules.density_floor == "added" else max(chance, least)
    return min(more, nearest(Fraction(rules.greatest_density_ppm, PPM) / case.span.bins, 10**10))


def chance(case: Case, numbers: Numbers) -> Fraction:
    """The probability of the outcome as scored: of a cdf, its step over the bin, below and above the range too."""
    outcome = case.resolved.outcome
    heights = (Fraction(0), *numbers, Fraction(1))
    plain = numbers[outcome] if case.named else heights[outcome + 1] - heights[outcome]
    return scored_probability(case, plain) if case.kernel in LOGARITHMS else plain


@cache
def place(value: Fraction, span: events.NumericRange) -> Fraction:
    """The position of a value on a range as 0..1, clamped at its ends; to 60 digits on a logarithmic one."""
    lower, upper = Fraction(span.lower), Fraction(span.upper)
    inside = min(max(value, lower), upper)
    if span.zero_point is None:
        return (inside - lower) / (upper - lower)
    zero = Fraction(span.zero_point)
    logarithms = (oracle.logarithm("ln", abs(each - zero)) for each in (inside, lower, upper))
    at, low, high = map(Fraction, logarithms)
    return (at - low) / (high - low)


def answer_number(case: Case) -> Fraction:
    """The number of an answer: of a date its seconds since 1970, of a name the end that it is beyond."""
    value, span = case.resolved.value, case.span
    if value in {"below_lower_bound", "above_upper_bound"}:
        return Fraction(span.lower if value == "below_lower_bound" else span.upper)
    if case.opened.kind == "date":
        passed = datetime.fromisoformat(value.replace("Z", "+00:00")) - datetime(1970, 1, 1, tzinfo=UTC)
        return Fraction(passed // timedelta(microseconds=1), 10**6)
    return Fraction(value)


def answer(case: Case) -> Fraction:
    """The answer's place on the range."""
    return place(answer_number(case), case.span)


def happened(case: Case) -> list[Fraction]:
    """How much each outcome happened: 1 or 0, or what a share of it is paid."""
    unit = case.resolved.payout_unit or 10**9
    paid = case.resolved.payouts or [unit * (k == case.resolved.outcome) for k in range(len(case.opened.outcomes))]
    return [Fraction(each, unit) for each in paid]


def brier_sum(case: Case, numbers: Numbers) -> Fraction:
    """Σ (p - o)²."""
    return sum(((each - o) ** 2 for each, o in zip(numbers, happened(case), strict=True)), Fraction(0))


def brier(case: Case, numbers: Numbers) -> Fraction:
    """Half of that."""
    return brier_sum(case, numbers) / 2


def brier_mean(case: Case, numbers: Numbers) -> Fraction:
    """That sum over the number of outcomes."""
    return brier_sum(case, numbers) / len(numbers)


def ordered_brier(case: Case, numbers: Numbers) -> Fraction:
    """The two-sided Brier score of each of the K - 1 splits, on average."""
    heights, steps = list(accumulate(numbers))[:-1], accumulate(happened(case))
    two_sided = [2 * (height - step) ** 2 for height, step in zip(heights, steps, strict=False)]
    return sum(two_sided, Fraction(0)) / len(two_sided)


def error(case: Case, numbers: Numbers) -> Fraction:
    """1 if the first of the most probable outcomes did not happen, else 0."""
    return Fraction(numbers.index(max(numbers)) != case.resolved.outcome)


def spherical(case: Case, numbers: Numbers) -> Fraction:
    """P of what happened, over the length of the vector."""
    length = EXACT.sqrt(oracle.quotient(sum((each * each for each in numbers), Fraction(0))))
    return numbers[case.resolved.outcome] / Fraction(length)


def crps(case: Case, numbers: Numbers) -> Fraction:
    """∫ (F(x) - 1{x >= y})² dx; of a square of a line from a to b, (a² + ab + b²) / 3 of its length."""
    bins, at = len(numbers) - 1, answer(case)
    cuts = sorted({*(Fraction(k, bins) for k in range(bins + 1)), at})
    total = Fraction(0)
    for start, end in pairwise(cuts):
        k = floor(start * bins)
        a, b = (numbers[k] + (numbers[k + 1] - numbers[k]) * (x * bins - k) - (start >= at) for x in (start, end))
        total += (a * a + a * b + b * b) / 3 * (end - start)
    return total


def pinball(case: Case, numbers: Numbers) -> Fraction:
    """Twice the mean over levels of (1{y < q} - level)(q - y), perhaps of ln(x + 1) in 1e-12 for each x."""
    y, levels = Fraction(case.resolved.value), case.span.levels
    if case.rules.transform == "log_shifted":
        y, numbers = log("ln", y + 1), tuple(log("ln", each + 1) for each in numbers)
    losses = [((y < q) - Fraction(level, 10**9)) * (q - y) for q, level in zip(numbers, levels, strict=True)]
    return 2 * sum(losses, Fraction(0)) / len(losses)


def absolute(case: Case, numbers: Numbers) -> Fraction:
    """The distance from the answer on the range as 0..1."""
    return abs(place(numbers[0], case.span) - answer(case))


DISTRIBUTIONS: dict[str, Callable[[Case, Numbers], Fraction]] = {
    "brier": brier,
    "brier_sum": brier_sum,
    "brier_mean": brier_mean,
    "ordered_brier": ordered_brier,
    "error": error,
    "spherical": spherical,
    "crps": crps,
    "pinball": pinball,
    "absolute": absolute,
    "absolute_clipped": absolute,  # a place beyond the range is its end
}


def worth(case: Case, numbers: Numbers) -> Fraction:
    """The kernel of a distribution, rounded once: to 1e-12, by quantiles to four digits beyond their unit."""
    if case.kernel in LOGARITHMS:
        return log(case.kernel, chance(case, numbers))
    own_unit = case.kernel == "pinball" and case.rules.transform == "none"
    finest = 10 ** min(12, case.span.decimals + 4) if own_unit else PICO
    return nearest(DISTRIBUTIONS[case.kernel](case, numbers), finest)


def uniform(case: Case) -> Fraction:
    """The kernel of the uniform distribution; for logarithms an open end has a probability of its own."""
    if case.named:
        k = len(case.opened.outcomes)
        if case.kernel in LOGARITHMS:
            return log(case.kernel, Fraction(1, k))
        return worth(case, (Fraction(1, k),) * k)
    bins, end = case.span.bins, Fraction(case.rules.open_end_ppm, PPM)
    if case.kernel not in LOGARITHMS:
        return worth(case, tuple(Fraction(k, bins) for k in range(bins + 1)))
    if not 1 <= case.resolved.outcome <= bins:
        return log(case.kernel, end)
    return log(case.kernel, (1 - end * (case.span.open_lower + case.span.open_upper)) / bins)


# --- the consensus of those who stand


@cache
def recency(count: int, unit: int) -> tuple[int, ...]:
    """E^(√i - √n), the newest last: in 1 / unit of e^(⌈√n⌉ - √n) times that; two or fewer weigh the same."""
    if count <= 2:
        return (1,) * count
    root = isqrt(count - 1) + 1
    risen = (EXACT.exp(EXACT.subtract(EXACT.sqrt(Decimal(i)), Decimal(root))) for i in range(1, count + 1))
    return tuple(round(Fraction(each) * unit) for each in risen)


def weighted_median(values: Sequence[Fraction], weights: Sequence[int]) -> Fraction:
    """The mean of the first value with half of the weight or more up to it, and the first with more than half."""
    pairs = sorted(zip(values, weights, strict=True))
    upto = list(accumulate(weight for _, weight in pairs))
    low = next(value for (value, _), sofar in zip(pairs, upto, strict=True) if 2 * sofar >= upto[-1])
    high = next(value for (value, _), sofar in zip(pairs, upto, strict=True) if 2 * sofar > upto[-1])
    return (low + high) / 2


def averaged(case: Case, values: Sequence[Fraction], unit: int) -> Fraction:
    """The rule set's average of one number of each member, the oldest first; means are rounded to the unit."""
    mean = case.rules.consensus == "mean" or (case.rules.consensus != "median" and not case.named)
    weighs = (1,) * len(values)
    if case.rules.consensus_weights == "recency":
        weighs = recency(len(values), 10**18 if mean else 10**9)
    if mean:
        return nearest(sum((v * w for v, w in zip(values, weighs, strict=True)), Fraction(0)) / sum(weighs), unit)
    return weighted_median(values, weighs) if case.rules.consensus_weights == "recency" else median(values)


def brought_to_one(parts: Sequence[Fraction]) -> Numbers:
    """Shares in 1e-9; what they miss of one goes to the largest, the first of equals; all equal if all are 0."""
    parts = parts if any(parts) else (Fraction(1),) * len(parts)
    shares = [round(part / sum(parts) * 10**9) for part in parts]
    shares[shares.index(max(shares))] += 10**9 - sum(shares)
    return tuple(Fraction(share, 10**9) for share in shares)


def squeezed(parts: Sequence[Fraction]) -> Numbers:
    """Less 0.001 each, brought to one, all equal if nothing is left; then into [0.001, 1 - 0.001 (K - 1)]."""
    thousandth = Fraction(1, 1_000)
    less = [max(part - thousandth, Fraction(0)) for part in parts]
    less = less if any(less) else [Fraction(1)] * len(less)
    return tuple(part / sum(less) * (1 - len(less) * thousandth) + thousandth for part in less)


def consensus(case: Case, members: Sequence[Stand]) -> tuple[Fraction | None, Fraction]:
    """The consensus's probability of the outcome, if it is scored by that alone, and its kernel.

    The logarithm is that of the average to 1e-18; shown it is to half of 1e-10.
    """
    many = case.rules.consensus == "squeezed" and case.opened.kind == "multiple_choice"
    ordered = sorted(members, key=lambda stand: (stand.made, stand.participant))
    if case.kernel not in LOGARITHMS:
        unit = 10**9 if case.named else 10**10
        columns = zip(*(stand.numbers for stand in ordered), strict=True)
        values: Sequence[Fraction] = [averaged(case, column, unit) for column in columns]
        values = squeezed(values) if many else values
        whole = brought_to_one(values) if case.named else tuple(nearest(each, unit) for each in values)
        one_happened = case.named and not case.resolved.payouts
        return (whole[case.resolved.outcome] if one_happened else None), worth(case, whole)
    if many or (case.rules.consensus == "community" and case.named):
        columns = zip(*(stand.numbers for stand in ordered), strict=True)
        medians: Sequence[Fraction] = [
            averaged(case, [scored_probability(case, each) for each in column], 1) for column in columns
        ]
        medians = squeezed(medians) if many else medians
        one = nearest(medians[case.resolved.outcome] / sum(medians), 10**18)
    else:
        one = averaged(case, [chance(case, stand.numbers) for stand in ordered], 10**18)
    return nearest(one, 2 * 10**10), log(case.kernel, one)


# --- scores


class Part(NamedTuple):
    """A participant's score in each of the units [begins, ends). chance: None if no single outcome's is scored."""

    begins: int
    ends: int
    term: Fraction
    chance: Fraction | None
    reference: Fraction | None
    peers: int | None


class Score(NamedTuple):
    """score: Σ term x units over the period, in points."""

    score: Fraction
    period: int
    coverage: Fraction
    parts: tuple[Part, ...]


def terms(case: Case, step: Step) -> dict[str, Part]:
    """The parts of all standing forecasts in one unit, and of the consensus if it is scored."""
    whole, case = case, case.among(step.outcomes)
    members = [stand for stand in step.stands if stand.participant not in case.scored_only]
    own = {stand.participant: worth(case, stand.numbers) for stand in step.stands}
    shown = _chances(case, step)
    mean = sum((own[stand.participant] for stand in members), Fraction(0)) / max(len(members), 1)
    aggregate = None
    for stand in step.references:
        exactly = stand.participant == UNIFORM and not (case.opened.range is not None and case.span.levels)
        own[stand.participant] = uniform(case) if exactly else worth(case, stand.numbers)
        shown[stand.participant] = shown_of_reference(case, stand)
    consensus_shown = case.rules.score_consensus or "consensus" in case.rules.reference_rows
    if members and (case.rules.reference == "consensus" or consensus_shown):
        aggregate = consensus(case, members)
        if consensus_shown:
            own[CONSENSUS], shown[CONSENSUS] = aggregate[1], aggregate[0]
    parts = {}
    for who, kernel in own.items():
        member = who in {stand.participant for stand in members}
        reference, against = None, aggregate
        if member and aggregate and case.rules.consensus_of == "others":
            others = [stand for stand in members if stand.participant != who]
            against = consensus(case, others) if others else None
        if case.rules.reference == "none":
            term = kernel
        elif case.rules.reference == "uniform":
            term = kernel - uniform(case)
            if case is not whole:  # in points of the number of outcomes that count, as of those at the opening
                term = nearest(term * scale(case) / scale(whole))
        elif case.rules.reference == "consensus":
            term = Fraction(0) if against is None else kernel - against[1]
            reference = None if against is None else against[0]
        elif case.rules.reference == "median_score":
            scores = sorted(own[stand.participant] for stand in members)
            term = kernel - (scores[(len(scores) - 1) // 2] + scores[len(scores) // 2]) / 2 if scores else Fraction(0)
        elif case.rules.reference == "mean_score":
            term = kernel - mean if members else Fraction(0)
        else:
            n = len(members)
            counts_members = member or case.rules.scored_only_factor == "members"
            enough = n >= 2 if counts_members else n >= 1
            term = (kernel - mean) * (Fraction(n, n - 1) if counts_members else 1) if enough else Fraction(0)
        peers = len(members) if case.rules.reference in {"peers", "median_score", "mean_score"} else None
        parts[who] = Part(step.begins, step.ends, term, shown[who], reference, peers)
    return parts


def shown_of_reference(case: Case, stand: Stand) -> Fraction | None:
    """Its probability of the outcome: as scored, but the uniform one without limits."""
    if case.resolved.payouts or (case.opened.range is not None and case.span.levels):
        return None
    if stand.participant != UNIFORM:
        return chance(case, stand.numbers)
    heights = (Fraction(0), *stand.numbers, Fraction(1))
    outcome = case.resolved.outcome
    return stand.numbers[outcome] if case.named else heights[outcome + 1] - heights[outcome]


def _chances(case: Case, step: Step) -> dict[str, Fraction | None]:
    """Everyone's probability of the outcome as scored; none by quantiles, or with payouts."""
    if case.resolved.payouts or (case.opened.range is not None and case.span.levels):
        return dict.fromkeys((stand.participant for stand in step.stands), None)
    return {stand.participant: chance(case, stand.numbers) for stand in step.stands}


def scale(case: Case) -> Fraction:
    """Points for a difference of 1 between kernels."""
    if case.rules.scale == "peer_whole":
        return Fraction(100)
    if case.rules.scale == "plain":
        return Fraction(1)
    if not case.named:
        return Fraction(50)
    return Fraction(100) / (
        log(case.kernel, Fraction(len(case.opened.outcomes))) if case.rules.scale == "baseline" else 1
    )


def coverage(case: Case, covered: Sequence[tuple[int, int]]) -> Fraction:
    """Covered share of the period; under a hidden weight, w x that of the hidden part + (1 - w) x that of the rest.

    Of actual time the parts are what has been of them; where there is but one, the plain share counts.
    """
    length, hidden = lengths(case)
    if case.rules.coverage_period == "actual":
        length = sum(ends - begins for begins, ends, _ in looks(case))
        hidden = min(hidden, length)
    all_of_it = sum(end - begin for begin, end in covered)
    weight = case.entry.hidden_coverage_weight
    if weight is None or not hidden or hidden == length:
        return Fraction(all_of_it, length or 1)
    in_hidden = sum(max(min(end, hidden) - begin, 0) for begin, end in covered)
    share = Fraction(weight, PPM)
    return share * Fraction(in_hidden, hidden) + (1 - share) * Fraction(all_of_it - in_hidden, max(length - hidden, 1))


def attainable(case: Case) -> Fraction:
    """The coverage of a forecast that stood through all scored time."""
    return coverage(case, [(begins, ends) for begins, ends, _ in looks(case)])


def scores(case: Case) -> dict[str, Score]:
    """Everyone's score on a question: the sum of terms over the period."""
    mine: dict[str, list[Part]] = {}
    for step in steps(case):
        for who, part in terms(case, step).items():
            mine.setdefault(who, []).append(part)
    by_participant = {}
    for who, parts in mine.items():
        covered = [(part.begins, part.ends) for part in parts]
        total = sum((part.term * (part.ends - part.begins) for part in parts), Fraction(0))
        period = {
            "scheduled": lengths(case)[0],
            "actual": sum(end - begin for begin, end, _ in looks(case)),
            "covered": sum(end - begin for begin, end in covered),
        }[case.rules.period]
        by_participant[who] = Score(total * scale(case) / period, period, coverage(case, covered), tuple(parts))
    return by_participant


# --- boards


def level_of(rules: RuleSet, enrolled: Mapping[str, Any], levels: Mapping[str, str], who: str) -> str:
    """The higher of a participant's own level and, for a bot, the one of the rules."""
    of_bots = rules.bot_level if who in enrolled and enrolled[who].bot else "none"
    order = ["none", "no_prize", "no_rank", "hidden"]
    highest = max(order.index(levels.get(who, "none")), order.index(of_bots))
    return order[highest] if highest else ""


def cases(recorded: Sequence[Recorded], contest: str) -> dict[str, Case]:
    """The contest's resolved questions, as its board saw them when it was last open."""
    state = oracle.world(recorded, oracle.world(recorded).contests[contest].finalized)
    contest_state = state.contests[contest]
    rules = contest_state.opened.rules
    bots = {who for who, enrolled in contest_state.enrolled.items() if enrolled.bot and rules.bots == "scored_only"}
    enrolled, levels = contest_state.enrolled, contest_state.levels
    apart = {who for who in {*enrolled, *levels} if level_of(rules, enrolled, levels, who) in rules.scored_only_levels}
    return {
        name: Case(rules, question, entry, state.recorded_at, frozenset(bots | apart))
        for name, (question, entry) in oracle.counting(recorded, contest).items()
    }


class Place(NamedTuple):
    """One row of a board; prize in 1e-6."""

    rank: int | None
    participant: str
    score: Fraction
    coverage: Fraction
    attainable: Fraction
    take: Fraction | None
    share: Fraction
    prize: int
    completion: str
    submissions: int
    excluded: str


def losing(rules: RuleSet) -> bool:
    """Return whether the least score is best."""
    return bool({rules.kernel, rules.cdf_kernel, rules.quantile_kernel} & LOSSES)


Shares = Mapping[str, tuple[Fraction, Fraction]]  # score and coverage, by question


def total(rules: RuleSet, by_name: Mapping[str, Case], own: Shares) -> Fraction:
    """A participant's score in the contest."""
    weights = {name: Fraction(case.entry.weight, PPM) for name, case in by_name.items()}
    summed = sum((weights[name] * score for name, (score, _) in own.items()), Fraction(0))
    if rules.total == "mean":
        return summed / sum(weights[name] for name in own)
    if rules.total == "per_question":
        return summed / max(rules.least_coverage, len(own))
    if rules.total == "per_coverage":
        covered = sum((weights[name] * share for name, (_, share) in own.items()), Fraction(0))
        return summed / max(Fraction(rules.least_coverage), covered)
    if rules.total in {"kind_means", "kind_means_third"}:
        by_kind = Fraction(0)
        for kind in {case.opened.kind for case in by_name.values()}:
            names = [name for name, case in by_name.items() if case.opened.kind == kind]
            each = [weights[name] * (own[name][0] if name in own else WORST[by_name[name].kernel]) for name in names]
            by_kind += sum(each, Fraction(0)) / sum(weights[name] for name in names)
        return 100 * by_kind / (3 if rules.total == "kind_means_third" else 1)
    return summed


def imputed(rules: RuleSet, by_name: Mapping[str, Case], found: Mapping[tuple[str, str], Any], who: str) -> Shares:
    """What counts for a participant on each question: the worst score, or that of a reference forecaster."""
    labels = {"consensus": CONSENSUS, "always_half": HALF, "uniform": UNIFORM, "market": MARKET}
    if who in labels.values():
        return {}
    if rules.imputation == "worst":
        return {name: (Fraction(WORST[case.kernel]), Fraction(0)) for name, case in by_name.items()}
    keys = {name: (name, labels.get(rules.imputation, "")) for name in by_name}
    return {name: found[key] for name, key in keys.items() if key in found}


def take(rules: RuleSet, score: Fraction, coverage: Fraction) -> Fraction | None:
    """The weight by which prizes are shared; powers to 60 digits, whole powers of 2 exact."""
    if rules.take == "none":
        return None
    if rules.take == "positive_square":
        return max(score, Fraction(0)) ** 2
    if rules.take == "coverage_exp":
        return coverage * (Fraction(EXACT.exp(oracle.quotient(score))) if score else 1)
    whole = floor(score)
    return coverage * Fraction(2) ** whole * Fraction(EXACT.power(Decimal(2), oracle.quotient(score - whole)))


def board(
    recorded: Sequence[Recorded], contest: str, found: Mapping[tuple[str, str], tuple[Fraction, Fraction]]
) -> list[Place]:
    """A contest's board, best first; found: scores and coverages by question and participant.

    It is as if questions of weight 0 were not in the contest.
    """
    of = {name: case for name, case in cases(recorded, contest).items() if case.entry.weight}
    found = {(name, who): shares for (name, who), shares in found.items() if name in of}
    said = oracle.world(recorded, oracle.world(recorded).contests[contest].finalized)
    here = said.contests[contest]
    rules, weights = here.opened.rules, {name: Fraction(case.entry.weight, PPM) for name, case in of.items()}
    people = {who for _, who in found}
    entrants = {who: who for who in people} | {who: e.entrant or who for who, e in here.enrolled.items()}
    every = sum(weights.values(), Fraction(0))
    places = []
    for who in sorted(people):
        own = {name: shares for (name, whose), shares in found.items() if whose == who}
        level = (
            "reference"
            if who in {HALF, UNIFORM, MARKET}
            else "consensus"
            if who == CONSENSUS
            else level_of(rules, here.enrolled, here.levels, who)
        )
        enough = len(own) >= rules.least_questions and Fraction(len(own), len(of)) >= Fraction(
            rules.least_share_ppm, PPM
        )
        level = "too_few_questions" if level in {"", "no_prize"} and not enough else level
        score = total(rules, of, {**imputed(rules, of, found, who), **own})
        covered = sum((weights[name] * share for name, (_, share) in own.items()), Fraction(0)) / every
        most = sum((weights[name] * attainable(case) for name, case in of.items()), Fraction(0)) / every
        count, many = f"{len(own)}/{len(of)}", sum(each == entrants[who] for each in entrants.values())
        worth_it = take(rules, score, covered)
        places.append(Place(None, who, score, covered, most, worth_it, Fraction(0), 0, count, many, level))
    shown = [place for place in places if place.excluded != "hidden"]
    return _paid(here.opened, _ranked(rules, shown, entrants))


def _value(rules: RuleSet, place: Place) -> Fraction:
    """The sort key of the board; the greatest comes first."""
    if rules.rank_by == "take":
        assert place.take is not None
        return place.take
    return -place.score if losing(rules) else place.score


def _ranked(rules: RuleSet, places: list[Place], entrants: Mapping[str, str]) -> list[Place]:
    """One more than how many of those who are ranked are better; of an entrant's submissions only the first is."""
    in_order = sorted(places, key=lambda place: -_value(rules, place))  # stable: equals stay by id
    ranked: list[Place] = []
    for place in in_order:
        could = place.excluded not in UNRANKED
        taken = any(entrants[each.participant] == entrants[place.participant] for each in ranked)
        if could and not (rules.best_of_entrant and taken):
            ranked.append(place)
    with_ranks = []
    for place in in_order:
        better = sum(_value(rules, each) > _value(rules, place) for each in ranked)
        if place in ranked:
            with_ranks.append(place._replace(rank=1 + better))
        else:
            with_ranks.append(place._replace(excluded=place.excluded if place.excluded in UNRANKED else "not_best"))
    return with_ranks


def _paid(contest: events.ContestOpened, places: list[Place]) -> list[Place]:
    """The pool divided among who is not excluded at all, less those whose share is below the least prize: all who are
    at first, in one pass; in many, the smallest as long as there is one, equal ones together or one by one, the last id
    first. Together, the largest stay if the pool is not below the least prize.
    """
    takes = {place.participant: place.take for place in places if not place.excluded and place.take is not None}
    least, every = contest.rules.least_prize_micros, sum(takes.values(), Fraction(0))
    if contest.rules.least_prize_passes == "one":
        takes = {who: take if contest.pool * take >= least * every else Fraction(0) for who, take in takes.items()}
    else:
        together = contest.rules.least_prize_passes == "many"
        while smallest := min((take for take in takes.values() if take), default=None):
            equal = [who for who, take in sorted(takes.items()) if take == smallest]
            last = together and smallest == max(takes.values()) and contest.pool >= least
            if last or contest.pool * smallest >= least * sum(takes.values()):
                break
            takes |= dict.fromkeys(equal if together else equal[-1:], Fraction(0))
    units, pool = oracle.largest_remainder(contest.pool // contest.payable_unit, takes), sum(takes.values())
    return [
        place._replace(
            share=takes.get(place.participant, Fraction(0)) / (pool or 1),
            prize=units.get(place.participant, 0) * contest.payable_unit,
        )
        for place in places
    ]
