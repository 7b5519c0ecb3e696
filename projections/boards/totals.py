"""From the scores of questions to what a participant's row on a board is made of: exact sums over questions."""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.lazy_fractions import quotient, sum_of_terms
from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import KIND_TOTALS, RuleSet
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.sorting import distinct, run_starts, stable_order
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.references.kinds import fine_bits
from forecast_ledger.projections.scores.coverage import KINDS, Alike, Divided, divided, divisor
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.time_weighted import Scores

CONSENSUS = -1  # in place of a participant's code: it counts before anybody who comes later


class OfKind(NamedTuple):
    """A participant's scores on one kind of question: Σ weight x score over all that count, the worst score where there
    is no forecast, and Σ weight; how many were forecast on, and how many there are.
    """

    kind: str
    score: Fraction
    weight: Fraction
    forecast_on: int
    questions: int

    @property
    def mean(self) -> Fraction:
        """The weighted mean, in percent."""
        return quotient(100 * self.score, self.weight)


class Sums(NamedTuple):
    """What one participant's scores on a contest's questions add up to; exact.

    score: Σ weight x score. weight: Σ weight of the questions forecast on. covered: Σ weight x coverage; coverage: that
    over Σ weight of all questions that count. kinds: of which there are questions that count; only where the rule set
    asks for them.
    """

    participant: str
    is_consensus: bool
    score: Fraction
    weight: Fraction
    coverage: Fraction
    covered: Fraction
    questions: int
    kinds: tuple[OfKind, ...]


class Earned(NamedTuple):
    """Of scores on some questions of one kind: Σ weight x score, Σ weight in 1e-6, and how many they are."""

    score: Fraction
    weight: int
    questions: int


class Own(NamedTuple):
    """Of scores on some questions: what each kind, as in KINDS, comes to, and Σ weight x coverage."""

    kinds: tuple[Earned, ...]
    covered: Fraction

    @property
    def weight(self) -> int:
        """Σ weight, 1e-6."""
        return sum(each.weight for each in self.kinds)

    @property
    def questions(self) -> int:
        """How many they are."""
        return sum(each.questions for each in self.kinds)

    def plus(self, other: "Own", sign: int = 1) -> "Own":
        """Of these and other questions; or, with -1, of these without some of them."""
        kinds = (
            Earned(
                mine.score + sign * more.score, mine.weight + sign * more.weight, mine.questions + sign * more.questions
            )
            for mine, more in zip(self.kinds, other.kinds, strict=True)
        )
        return Own(tuple(kinds), self.covered + sign * other.covered)


NOTHING = Own((Earned(Fraction(0), 0, 0),) * len(KINDS), Fraction(0))


class Tally(NamedTuple):
    """What scores on some questions of a contest come to, exact; those on other questions can be added.

    own: by code, of each participant with a score, and of CONSENSUS if it has one. every: of the questions there are,
    as if a forecast that scores 0 had stood on each until scored time ended.
    """

    own: dict[int, Own]
    every: Own

    @property
    def attainable(self) -> Fraction:
        """The weighted mean coverage of somebody whose forecasts stood all the time that was scored."""
        return self.coverage(self.every)

    def coverage(self, own: Own) -> Fraction:
        """The weighted mean coverage over all the questions there are."""
        return own.covered * Fraction(WEIGHT, max(self.every.weight, 1))

    def plus(self, other: "Tally", sign: int = 1) -> "Tally":
        """Of these and other questions; or, with -1, of these without some of them."""
        own = self.own | {code: self.own.get(code, NOTHING).plus(more, sign) for code, more in other.own.items()}
        return Tally({code: each for code, each in own.items() if each.questions}, self.every.plus(other.every, sign))


def worst(kernel: str) -> int:
    """What a missing forecast counts as under a total of kind means. Raises ValueError: nothing is the worst.

    >>> worst("brier_sum")
    2
    """
    score = KERNELS[kernel].worst
    if score is None:
        raise ValueError(f"no score by the kernel {kernel} is the worst")
    return score


def consensus_label(facts: Facts) -> str:
    """What the consensus is called in a table: no participant's id.

    >>> consensus_label(Facts())
    '[consensus]'
    """
    label = "[consensus]"
    while label in facts.participant_codes.codes:
        label = f"[{label}]"
    return label


def takes_its_name(participant: str) -> bool:
    """Whether the consensus has, or may get, another name because of a participant's.

    >>> takes_its_name("[[consensus]]"), takes_its_name("consensus")
    (True, False)
    """
    return participant.strip("[]") == "consensus" and participant.startswith("[")


def labels(facts: Facts) -> list[str]:
    """What everyone who can have a score is called, by code: the participants, and last the consensus.

    >>> labels(Facts())
    ['[consensus]']
    """
    return [*facts.participant_codes.labels, consensus_label(facts)]


def sums(facts: Facts, contest: Contest, whole: Tally) -> Iterator[Sums]:
    """What a tally of all questions of a contest says of each participant with a score, in order of code; the consensus
    last.
    """
    names, rules, every = facts.participant_codes.labels, contest.opened.rules, whole.every
    for code, own in sorted(whole.own.items(), key=lambda item: (item[0] == CONSENSUS, item[0])):
        yield Sums(
            participant=consensus_label(facts) if code == CONSENSUS else names[code],
            is_consensus=code == CONSENSUS,
            score=sum((each.score for each in own.kinds), Fraction(0)),
            weight=Fraction(own.weight, WEIGHT),
            coverage=whole.coverage(own),
            covered=own.covered,
            questions=own.questions,
            kinds=tuple(_with_missing(rules, own, every)),
        )


def tallies(rules: RuleSet, questions: Questions, rows: Scores, consensus: int, part: Int64Array) -> list[Tally]:
    """What scores add up to, in tallies 0, 1 … up to the last that has a question; part: each question's, shape (q,).

    Questions that are alike are summed together as integers, and a participant's sums without common denominators.
    consensus: the code that it has in the rows.
    """
    parted, parts = divided(questions), int(part.max(initial=-1)) + 1
    people = int(rows.participant.max(initial=0)) + 1
    keys, owner = distinct(part[rows.question] * people + rows.participant)
    terms: list[list[list[tuple[int, int]]]] = [[[] for _ in KINDS] for _ in keys]
    covered: list[list[tuple[int, int]]] = [[] for _ in keys]
    divisors: dict[tuple[Alike, int], Fraction] = {}
    for group in _groups(rules, parted, rows, owner):
        of, common = group.of, group.of.common
        by = divisors.get((of, group.over))
        if by is None:
            by = divisor(rules, parted.per_point[of.per_point], of, group.over, fine_bits(rules))
            divisors[of, group.over] = by
        terms[group.owner][of.kind].append((group.numerator * of.weight * by.denominator, by.numerator * WEIGHT))
        share = of.coverage(group.covered, group.covered_hidden, common)
        covered[group.owner].append((of.weight * share, common * WEIGHT * WEIGHT))
    found = [Tally({}, each) for each in _every(questions, parted, part, parts)]
    weights, counts = _by_kind(questions, parted, rows.question, owner, len(keys))
    for i, (place, participant) in enumerate(zip(*(each.tolist() for each in np.divmod(keys, people)), strict=True)):
        kinds = (Earned(*kind) for kind in zip(map(sum_of_terms, terms[i]), weights[i], counts[i], strict=True))
        code = CONSENSUS if participant == consensus else participant
        found[place].own[code] = Own(tuple(kinds), sum_of_terms(covered[i]))
    return found


class _Group(NamedTuple):
    """What one owner's scores on questions that are alike add up to. over: what one stood on each of them."""

    owner: int
    of: Alike
    over: int
    numerator: int
    covered: int
    covered_hidden: int


def _groups(rules: RuleSet, parted: Divided, rows: Scores, owner: Int64Array) -> Iterator[_Group]:
    """Scores with one divisor, added up."""
    over = rows.covered if rules.period == "covered" else np.zeros_like(rows.covered)
    overs, place = distinct(over)
    pairs, pair = distinct(parted.which[rows.question] * len(overs) + place)
    key = owner * len(pairs) + pair
    order = stable_order(key)
    key = key[order]
    starts = run_starts(key)
    columns = (
        key[starts].tolist(),
        rows.numerator.take(order).unbounded_run_sums(starts),
        WideInt.from_int64(rows.covered[order]).run_sums(starts).integers(),
        WideInt.from_int64(rows.covered_hidden[order]).run_sums(starts).integers(),
    )
    for group, numerator, covered, hidden in zip(*columns, strict=True):
        i, number = divmod(group, len(pairs))
        which, number = divmod(int(pairs[number]), len(overs))
        yield _Group(i, parted.alike[which], int(overs[number]), numerator, covered, hidden)


def _by_kind(
    questions: Questions, parted: Divided, question: Int64Array, owner: Int64Array, owners: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Of each owner, the weight of these questions, 1e-6, and how many they are, by kind."""
    kind = int64_array([each.kind for each in parted.alike])[parted.which[question]]
    weights, counts = np.zeros((2, owners, len(KINDS)), np.int64)
    np.add.at(weights, (owner, kind), questions.weight[question])
    np.add.at(counts, (owner, kind), 1)
    return weights.tolist(), counts.tolist()


def _every(questions: Questions, parted: Divided, part: Int64Array, parts: int) -> Iterator[Own]:
    """Of each part, the questions there are; covered: as by a forecast that stood until scored time ended."""
    keys, count = np.unique(part * max(len(parted.alike), 1) + parted.which, return_counts=True)
    terms: list[list[tuple[int, int]]] = [[] for _ in range(parts)]
    for key, times in zip(keys.tolist(), count.tolist(), strict=True):
        place, which = divmod(key, len(parted.alike))
        share = parted.alike[which].attainable
        terms[place].append((times * parted.alike[which].weight * share.numerator, share.denominator * WEIGHT))
    weights, counts = _by_kind(questions, parted, np.arange(len(part)), part, parts)
    for place in range(parts):
        kinds = zip(weights[place], counts[place], strict=True)
        yield Own(tuple(Earned(Fraction(0), *kind) for kind in kinds), sum_of_terms(terms[place]))


def _with_missing(rules: RuleSet, own: Own, every: Own) -> Iterator[OfKind]:
    """The sums of each kind, the worst score standing in for every question without a forecast."""
    if rules.total not in KIND_TOTALS:
        return
    names = (rules.kernel, rules.kernel, rules.quantile_kernel if rules.cdf_kernel == "none" else rules.cdf_kernel)
    for kind, name, mine, of_all in zip(KINDS, names, own.kinds, every.kinds, strict=True):
        if of_all.questions:
            missing = Fraction(worst(name) * (of_all.weight - mine.weight), WEIGHT)
            yield OfKind(kind, mine.score + missing, Fraction(of_all.weight, WEIGHT), mine.questions, of_all.questions)
