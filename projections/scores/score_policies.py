"""Score policies: how a rule set selects, limits and scales its kernels.

They say which kernel scores a question, to which limits probabilities are clipped, what the uniform distribution
scores, and how many points a difference of 1 is. To add a scale, add its function and its row in SCALES.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import RuleSet, kernels_of
from forecast_ledger.projections.core.powers import QUANTUM
from forecast_ledger.projections.facts.columns import CHANCE
from forecast_ledger.projections.scores.kernels import KERNELS, Uniform

_PPM = CHANCE // 10**6
_MILLION = 10**6


class Answer(NamedTuple):
    """A question and its answer.

    outcome: its index, -1 with payouts. value: the exact text of a numeric answer. payouts: what a share of each
    outcome is paid, if no single outcome happened.
    """

    question: QuestionOpened
    outcome: int
    value: str
    payouts: tuple[Fraction, ...] = ()

    def among(self, given: Sequence[int], catch_all: int) -> "Answer":
        """Return the question and its answer among some outcomes, by index: any other counts as the catch-all.

        >>> names = ("a", "b", "other", "c")
        >>> question = QuestionOpened(
        ...     at=0, question="q", kind="multiple_choice", outcomes=names, opens_at=0, closes_at=1
        ... )
        >>> found = Answer(question, 3, "").among([0, 2], 2)
        >>> found.question.outcomes, found.outcome
        (('a', 'other'), 1)
        """
        given = [*given]
        fields = {name: getattr(self.question, name) for name in self.question.__struct_fields__}
        question = QuestionOpened(**(fields | {"outcomes": tuple(self.question.outcomes[place] for place in given)}))
        rest = given.index(catch_all)
        if not self.payouts:
            return Answer(question, given.index(self.outcome) if self.outcome in given else rest, self.value)
        paid = [self.payouts[place] for place in given]
        paid[rest] += sum(self.payouts, Fraction(0)) - sum(paid, Fraction(0))
        return Answer(question, self.outcome, self.value, tuple(paid))


def kernel_of(rules: RuleSet, question: QuestionOpened) -> str:
    """Return the name of the kernel that scores a question.

    >>> question = QuestionOpened(at=0, question="q", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> kernel_of(RuleSet(name="x", kernel="ln", cdf_kernel="crps"), question)
    'ln'
    """
    if question.range is None:
        return unordered_kernel(rules) if question.ordered is False else rules.kernel
    return rules.quantile_kernel if question.range.measures else rules.cdf_kernel


def unordered_kernel(rules: RuleSet) -> str:
    """Return the name of the kernel that scores named outcomes of a question that says that they have no order.

    The Brier score takes the place of the Brier score of ordered outcomes. Both run from 0 to 2, and they are equal
    for two outcomes.

    Source: Jose, Nau and Winkler (2009), doi:10.1287/mnsc.1080.0955, on sensitivity to distance.

    >>> unordered_kernel(RuleSet(name="x", kernel="ordered_brier")), unordered_kernel(RuleSet(name="x", kernel="brier"))
    ('brier_sum', 'brier')
    """
    return "brier_sum" if rules.kernel == "ordered_brier" else rules.kernel


def lower_is_better(rules: RuleSet) -> bool:
    """Return whether lower scores are better; all kernels of a rule set agree on that.

    >>> lower_is_better(RuleSet(name="x", kernel="brier"))
    True
    """
    return any(KERNELS[name].lower_is_better for name in kernels_of(rules))


def least_chance(rules: RuleSet, outcome: int, bins: int) -> int:
    """Return the least probability of the outcome, 1e-10: a rule set counts a smaller one as this.

    bins: the bins of a numeric question, else 0. Outcomes 0 and bins + 1 of a numeric question are its open ends.

    >>> least_chance(RuleSet(name="x"), 0, 0), least_chance(RuleSet(name="x"), 1, 200)
    (10000000, 500000)
    """
    if bins and 1 <= outcome <= bins:
        return max(half_even(rules.least_density_ppm * _PPM, bins), int(rules.least_density_ppm > 0))
    return rules.least_probability_ppm * _PPM


def added_chance(rules: RuleSet, outcome: int, bins: int) -> int:
    """Return what is added to every probability of the outcome, 1e-10.

    It is the least probability if the rule set adds the least density to every bin, else 0.

    Source: Metaculus, Scores FAQ, "What is the log score for continuous questions?".

    >>> added = RuleSet(name="x", density_floor="added")
    >>> added_chance(added, 1, 200), added_chance(added, 0, 200), added_chance(RuleSet(name="x"), 1, 200)
    (500000, 0, 0)
    """
    inside = bins and 1 <= outcome <= bins
    return least_chance(rules, outcome, bins) if inside and rules.density_floor == "added" else 0


def greatest_chance(rules: RuleSet, outcome: int, bins: int) -> int:
    """Return the greatest probability of the outcome, 1e-10: a greater one counts as this. For a bin it may exceed 1.

    Source: Metaculus, Scores FAQ, "What is the Baseline score?": up to 99.9%, and densities up to about 35.

    >>> greatest_chance(RuleSet(name="x", greatest_density_ppm=35_000_000), 1, 200)
    1750000000
    """
    if bins and 1 <= outcome <= bins:
        return half_even(rules.greatest_density_ppm * _PPM, bins)
    return rules.greatest_probability_ppm * _PPM


def uniform_term(rules: RuleSet, answer: Answer) -> int:
    """Return the score of the uniform distribution, in the kernel's unit.

    It gives named outcomes equal probabilities. For a numeric question it gives every open end open_end_ppm and shares
    the rest equally among the bins.

    Raises:  ValueError if there is no uniform distribution for the kernel to score: quantiles have none.
    Source:  Metaculus, Scores FAQ, "What is the Baseline score?".

    >>> question = QuestionOpened(at=0, question="q", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> uniform_term(RuleSet(name="x", kernel="brier"), Answer(question, 0, ""))
    250000000000
    """
    span, outcomes = answer.question.range, len(answer.question.outcomes)
    name = kernel_of(rules, answer.question)
    if span is None:
        return _uniform(name, Uniform(outcomes, answer.outcome, (1, outcomes), payouts=answer.payouts))
    chance = rules.open_end_ppm, _MILLION
    if 1 <= answer.outcome <= span.bins:
        ends = span.open_lower + span.open_upper
        chance = _MILLION - rules.open_end_ppm * ends, _MILLION * span.bins
    return _uniform(name, Uniform(span.bins, answer.outcome, chance, span, answer.value))


def uniform_score(rules: RuleSet, answer: Answer) -> int | None:
    """Return `uniform_term`; None if the kernel has no score of its own for the uniform distribution.

    >>> question = QuestionOpened(at=0, question="q", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> uniform_score(RuleSet(name="x", kernel="brier"), Answer(question, 0, ""))
    250000000000
    """
    scored = KERNELS[kernel_of(rules, answer.question)].uniform
    return None if scored is None else uniform_term(rules, answer)


def _uniform(name: str, uniform: Uniform) -> int:
    scored = KERNELS[name].uniform
    if scored is None:
        raise ValueError(f"the kernel {name} cannot score a uniform distribution")
    return scored(uniform)


class Scale(NamedTuple):
    """The number of points that a score of 1 is. words: as `explain` prints them; empty for one point."""

    words: str
    points: Callable[[RuleSet, QuestionOpened], Fraction]
    source: str


def _plain(_: RuleSet, __: QuestionOpened) -> Fraction:
    return Fraction(1)


def _peer(_: RuleSet, question: QuestionOpened) -> Fraction:
    return Fraction(100 if question.range is None else 50)


def _peer_whole(_: RuleSet, __: QuestionOpened) -> Fraction:
    return Fraction(100)


def _baseline(rules: RuleSet, question: QuestionOpened) -> Fraction:
    """A certain forecast of the outcome, whose logarithmic score is 0, gets 100 points."""
    if question.range is not None:
        return Fraction(50)
    outcomes = len(question.outcomes)
    return Fraction(100 * QUANTUM, -_uniform(rules.kernel, Uniform(outcomes, 0, (1, outcomes))))


SCALES: dict[str, Scale] = {
    "plain": Scale("", _plain, "the kernel itself"),
    "peer": Scale(
        "times 100 (50 for numeric questions)",
        _peer,
        'Metaculus, Scores FAQ, "What is the Peer score?", halved for numeric questions as in its figures',
    ),
    "peer_whole": Scale(
        "times 100",
        _peer_whole,
        'Metaculus, Scores FAQ, "What is the Peer score?", the formula, which does not halve numeric questions',
    ),
    "baseline": Scale(
        "times 100 / log K for K outcomes in the base of the kernel (50 for numeric questions)",
        _baseline,
        'Metaculus, Scores FAQ, "What is the Baseline score?"',
    ),
}


def kernel_unit(rules: RuleSet, question: QuestionOpened) -> int:
    """Return how many units of the kernel that scores a question make 1."""
    if question.range is not None and question.range.measures and rules.transform != "none":
        return QUANTUM
    return KERNELS[kernel_of(rules, question)].unit.in_one(question.range)


def per_point(rules: RuleSet, question: QuestionOpened) -> Fraction:
    """Return how many units of the kernel one point is.

    >>> question = QuestionOpened(at=0, question="q", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> per_point(RuleSet(name="x", kernel="ln", scale="peer"), question)
    Fraction(10000000000, 1)
    """
    return Fraction(kernel_unit(rules, question), SCALES[rules.scale].points(rules, question))
