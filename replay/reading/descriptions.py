"""Descriptions of rule sets in words."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from forecast_ledger.ledger.core.hints import in_list
from forecast_ledger.ledger.core.values import MONEY, format_fixed
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import (
    ALONE,
    LOGARITHMS,
    NEVER_LATE,
    PRESET_SOURCES,
    PRESETS,
    TAG,
    RuleSet,
    kernels_of,
    own_fields,
    shown_references,
)
from forecast_ledger.ledger.model.trading_rules import PERCENT, Trading
from forecast_ledger.projections.boards.leaderboard import TAKES, TOTALS
from forecast_ledger.projections.scores.community import AGGREGATIONS
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.range_kernels import TRANSFORMS, Transform
from forecast_ledger.projections.scores.sampling import SAMPLINGS
from forecast_ledger.projections.scores.score_terms import REFERENCES
from forecast_ledger.projections.scores.scored_questions import SCALES, unordered_kernel

_EDGES = {"both": "", "opening": ", without a last one that is cut short", "none": " that is not cut short"}
_PERIODS = {
    "scheduled": "over the scheduled period",
    "actual": "over the period until the answer is known",
    "covered": "over the time that the forecasts covered",
}


def describe_rules(rules: RuleSet, position: int, words: str, kernel: str = "none") -> dict[str, Any]:
    """Describe a rule set: its name, its description, the fields that differ from their defaults, and its source.

    position: log position of the event that holds the rule set. kernel: the kernel of a score; if the rule set is not
    a preset, the source of the kernel is added. If it is no score, the trading rules are described too.
    """
    trading = rules.trading if kernel == "none" else None
    source = "the contest's own"
    if PRESETS.get(rules.name) == rules:
        source = PRESET_SOURCES[rules.name]
    elif kernel != "none":
        source += f"; its kernel: {KERNELS[kernel].source}"
        transform = _transform_of(rules, kernel)
        source += f"; its transform: {transform.source}" * (transform.one is not None)
    return {
        "name": rules.name,
        "words": words,
        "also": [*further_rules(rules), *([] if trading is None else trading_words(trading))],
        "fields": own_fields(rules),
        "log_position": position,
        "source": source,
    }


def describe_score(rules: RuleSet, kernel: str) -> str:
    """Describe how a score is computed.

    >>> describe_score(PRESETS["baseline"], "ln").split(", ")[1]
    'minus the score of the uniform distribution'
    """
    average = f"{'recency-weighted ' * (rules.consensus_weights == 'recency')}{AGGREGATIONS[rules.consensus].words}"
    others = " of the other members" if rules.consensus_of == "others" else ""
    clauses = [
        f"{KERNELS[kernel].words} {_transform_of(rules, kernel).words}".rstrip(),
        REFERENCES[rules.reference].words.format(average=average, others=others),
        SAMPLINGS[rules.sampling].words + _EDGES[rules.day_edges],
        _PERIODS[rules.period],
        "payouts count as shares of an outcome" * (rules.payouts == "scored"),
        SCALES[rules.scale].words,
    ]
    return ", ".join(clause for clause in clauses if clause)


def describe_order(rules: RuleSet, questions: Iterable[QuestionOpened]) -> str:
    """Say which multiple-choice questions count as ordered, and which do not; empty if the rule set does not ask.

    >>> names = {"outcomes": ("a", "b", "c"), "opens_at": 0, "closes_at": 1}
    >>> question = QuestionOpened(at=0, question="q", kind="multiple_choice", **names)
    >>> describe_order(RuleSet(name="x", kernel="ordered_brier"), [question])
    'q does not say whether its outcomes have an order, and counts as ordered'
    """
    if unordered_kernel(rules) == rules.kernel:
        return ""
    choices = [question for question in questions if question.kind == "multiple_choice"]
    told = {
        "does not say whether its outcomes have an order, and counts as ordered": None,
        "says that its outcomes have no order, and is scored by the Brier score of unordered outcomes": False,
    }
    clauses = {words: [each.question for each in choices if each.ordered is said] for words, said in told.items()}
    return "; ".join(f"{_each(names)} {words}" for words, names in clauses.items() if names)


def _each(names: Sequence[str]) -> str:
    """Return a name; or, of several, how many they are, and the first five."""
    more = f" and {len(names) - 5:,} more" * (len(names) > 5)
    return names[0] if len(names) == 1 else f"each of {len(names):,} questions ({in_list(names[:5])}{more})"


def _transform_of(rules: RuleSet, kernel: str) -> Transform:
    """Return what a kernel's forecasts are turned into: only quantiles and samples are."""
    return TRANSFORMS[rules.transform if kernel == rules.quantile_kernel else "none"]


def describe_board(rules: RuleSet) -> str:
    """Describe how a board is computed.

    >>> describe_board(PRESETS["relative-2022-04"])
    'total: the sum of weight x score; take: coverage x e^total; ranked by take'
    """
    take = "" if rules.take == "none" else f"; take: {TAKES[rules.take].words}"
    least = " and ".join(f"with {words}" for words in least_forecasts(rules))
    return f"total: {describe_total(rules)}{take}; ranked by {rules.rank_by}" + f", {least}" * bool(least)


def least_forecasts(rules: RuleSet) -> list[str]:
    """Return what a participant needs for a rank and a prize.

    >>> least_forecasts(RuleSet(name="x", least_questions=5, least_share_ppm=950_000))
    ['forecasts on at least 5 questions', 'forecasts on at least 95% of the questions']
    """
    share = f"{format_fixed(rules.least_share_ppm, 10**4)}% of the questions"
    needed = {f"{rules.least_questions:,} questions": rules.least_questions, share: rules.least_share_ppm}
    return [f"forecasts on at least {words}" for words, least in needed.items() if least]


def describe_total(rules: RuleSet) -> str:
    """Describe what scores add up to.

    >>> describe_total(PRESETS["baseline"]), describe_total(RuleSet(name="x", imputation="always_half"))[27:]
    ('the sum of weight x score', 'without a forecast, the score of [always-half])')
    """
    words = TOTALS[rules.total].words
    if rules.imputation == "none":
        return words
    label = "worst score" if rules.imputation == "worst" else f"score of [{rules.imputation.replace('_', '-')}]"
    return f"{words} (without a forecast, the {label})"


def further_rules(rules: RuleSet) -> list[str]:
    """Return what a rule set says besides how a score and a board are computed: limits, floors, who counts, prizes.

    >>> further_rules(PRESETS["peer-2025-06"])[-2]
    'the least prize is 50.00, and takes below it are dropped from the bottom up, equal ones together'
    """
    return [words for describe in FURTHER.values() if (words := describe(rules))]


def _percent(ppm: int) -> str:
    return f"{format_fixed(ppm, 10**4)}%"


def _zone(minutes: int) -> str:
    """Return the name of a zone so many minutes east of UTC.

    >>> _zone(-300), _zone(330)
    ('UTC-5', 'UTC+5:30')
    """
    hours, minutes_over = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{minutes_over:02}' * bool(minutes_over)}"


def _least_density(rules: RuleSet) -> str:
    least = f"{_percent(rules.least_density_ppm)} of the uniform density"
    return (
        f"a density below {least} counts as this"
        if rules.density_floor == "least"
        else f"{least} is added to every bin"
    )


def _least_prize(rules: RuleSet) -> str:
    dropped = f"takes below it are dropped {_PASSES[rules.least_prize_passes]}"
    return f"the least prize is {money(rules.least_prize_micros)}, and {dropped}"


_PASSES = {
    "many": "from the bottom up, equal ones together",
    "one": "all at once",
    "one_by_one": "from the bottom up, one by one",
}


def describe_clusters(rules: RuleSet) -> str:
    """Return what the samples of a contest draw together.

    >>> describe_clusters(RuleSet(name="x", clusters=("tag:round", "tag:place")))
    'samples draw questions of the same round together, and questions of the same place'
    """
    if ALONE in rules.clusters:
        return "samples draw each question alone"
    first, *others = (f"questions of the same {field.removeprefix(TAG)}" for field in rules.clusters)
    return ", and ".join([f"samples draw {first} together", *others])


# Field of a rule set -> what it says, "" where it has no effect.
FURTHER: dict[str, Callable[[RuleSet], str]] = {
    "clock": lambda rules: "a forecast counts from its recording" * (rules.clock == "recorded"),
    "late_minutes": lambda rules: (
        f"a forecast recorded more than {rules.late_minutes:,} minutes after the instant it claims counts from then on"
        * (rules.late_minutes != NEVER_LATE)
    ),
    "day_minutes": lambda rules: f"days are those of {_zone(rules.day_minutes)}" * bool(rules.day_minutes),
    "coverage_period": lambda rules: (
        "a coverage is a share of the period until the answer was known" * (rules.coverage_period == "actual")
    ),
    "early_forecasts": lambda rules: "a forecast made before the opening does not stand" * (not rules.early_forecasts),
    "least_coverage": lambda rules: (
        f"the least divisor of a total is {rules.least_coverage:,} questions" * bool(rules.least_coverage)
    ),
    "least_probability_ppm": lambda rules: (
        f"a probability below {_percent(rules.least_probability_ppm)} counts as this in a logarithm"
        * bool(kernels_of(rules) & {*LOGARITHMS})
    ),
    "greatest_probability_ppm": lambda rules: (
        f"a probability above {_percent(rules.greatest_probability_ppm)} counts as this in a logarithm"
        * (rules.greatest_probability_ppm != 10**6)
    ),
    "least_density_ppm": lambda rules: _least_density(rules) * (rules.cdf_kernel in LOGARITHMS),
    "greatest_density_ppm": lambda rules: (
        f"a density above {_percent(rules.greatest_density_ppm)} of the uniform density counts as this"
        * (rules.greatest_density_ppm != 10**12)
    ),
    "open_end_ppm": lambda rules: (
        f"the uniform distribution gives {_percent(rules.open_end_ppm)} to an open end" * (rules.cdf_kernel != "none")
    ),
    "bots": lambda rules: "bots count neither among the peers nor in the consensus" * (rules.bots == "scored_only"),
    "scored_only_levels": lambda rules: (
        f"nor do participants who are excluded as {', '.join(rules.scored_only_levels)}"
        * bool(rules.scored_only_levels)
    ),
    "scored_only_factor": lambda rules: (
        "who does not count is compared as a member would be" * (rules.scored_only_factor == "members")
    ),
    "bot_level": lambda rules: f"bots are excluded as {rules.bot_level}" * (rules.bot_level != "none"),
    "reference_rows": lambda rules: (
        f"the board also has rows of {', '.join(shown_references(rules))}" * bool(shown_references(rules))
    ),
    "best_of_entrant": lambda rules: "only the best submission of an entrant is ranked" * rules.best_of_entrant,
    "attested": lambda rules: "forecasts are attested, see the table admissions" * rules.attested,
    "least_prize_micros": lambda rules: _least_prize(rules) * bool(rules.least_prize_micros),
    "level_ppm": lambda rules: (
        f"intervals are of {_percent(rules.level_ppm)}, from {rules.replicates:,} samples" * bool(kernels_of(rules))
    ),
    "clusters": lambda rules: describe_clusters(rules) * (rules.clusters != ("group",) and bool(kernels_of(rules))),
}


def trading_words(trading: Trading) -> list[str]:
    """Return what trading rules say; amounts are in the contest's currency.

    >>> trading_words(Trading(cap_divisor=5))[2]
    'the largest bet is the cash / 5'
    """
    return [words for describe in TRADING_FIELDS.values() if (words := describe(trading))]


def _fee(trading: Trading) -> str:
    power = f" to the power of {trading.fee_exponent}" * (trading.fee_exponent > 1)
    rounded = f"rounded {_FEE_ROUNDING[trading.fee_rounding]} multiple of {money(trading.fee_unit_micros)}"
    return f"the fee of a trade is {_percent(trading.fee_rate_ppm)} x shares x (price x (1 - price)){power}, {rounded}"


def money(micros: int) -> str:
    """Return an amount, 1e-6, as decimal text with two decimals or more."""
    return format_fixed(micros, MONEY, least=2)


_FEE_ROUNDING = {
    "up": "up to a",
    "half_even": "to the nearest",
    "down": "down to a",
    "cash": "up until the change of cash is a",
}
_DEPTHS = {
    "unlimited": "",
    "refuse": "a bet or sale of more shares than the quote has is refused",
    "partial": "a bet or sale of more shares than the quote has is filled with those that it has",
}
_WAITED_FOR = {"all": "all participants", "shown": "all participants who are not hidden"}
# Field of trading rules -> what it says, "" where it has no effect.
TRADING_FIELDS: dict[str, Callable[[Trading], str]] = {
    "starting_cash_micros": lambda trading: f"an account starts with {money(trading.starting_cash_micros)}",
    "least_bet_micros": lambda trading: f"the least bet is {money(trading.least_bet_micros)}",
    "cap_divisor": lambda trading: f"the largest bet is the cash / {trading.cap_divisor:,}",
    "sum_capped": lambda trading: "all bets of a decision together are at most the largest bet" * trading.sum_capped,
    "legs": lambda trading: (
        "one refused bet refuses all bets of a decision"
        if trading.legs == "all_or_nothing"
        else "each bet of a decision is carried out or refused by itself"
    ),
    "least_percentage_micros": lambda trading: (
        f"a sale sells {format_fixed(trading.least_percentage_micros, PERCENT)}% of a position or more"
    ),
    "fills": lambda trading: (
        "shares are bought at the ask and sold at the bid"
        if trading.fills == "bid_ask"
        else "shares are bought and sold at the price of the quote"
    ),
    "stale_after_seconds": lambda trading: (
        f"nothing is traded at a quote that is older than {trading.stale_after_seconds:,} seconds"
    ),
    "depth": lambda trading: _DEPTHS[trading.depth],
    "fee_rate_ppm": lambda trading: _fee(trading) * bool(trading.fee_rate_ppm),
    "marks": lambda trading: f"positions are valued at the {trading.marks} of the quote",
    "closed_marks": lambda trading: (
        f"in a closed question, this is the last quote{' before the close' * (trading.closed_marks == 'prior')}"
    ),
    "snapshot_seconds": lambda trading: f"portfolios are valued every {trading.snapshot_seconds:,} seconds",
    "period_days": lambda trading: (
        f"the period of a decision is {trading.period_days:,} days" * bool(trading.period_days)
    ),
    "attempts": lambda trading: f"the decision is HOLD after {trading.attempts:,} malformed replies",
    "replies": lambda trading: (
        "a reply is one JSON object" if trading.replies == "strict" else "a reply may have text around its JSON object"
    ),
    "cohorts": lambda trading: "contests start on a Sunday, one a week in each series" * (trading.cohorts == "weekly"),
    "deciding_cohorts": lambda trading: (
        f"decisions are accepted in the newest {trading.deciding_cohorts:,} contests of a series"
        * bool(trading.deciding_cohorts)
    ),
    "completed_by": lambda trading: (
        f"a contest is complete when {_WAITED_FOR[trading.completed_by]} have decided and hold nothing"
    ),
    "recapitalisation": lambda trading: "cash may be deposited and withdrawn" * trading.recapitalisation,
    "recorded_trades": lambda trading: "trades that happened elsewhere may be recorded" * trading.recorded_trades,
    "short_sales": lambda trading: "they may sell shares that are not held" * trading.short_sales,
    "overdrafts": lambda trading: "they may make the cash negative" * trading.overdrafts,
    "shares_against": lambda trading: "shares against one of several outcomes can be held" * trading.shares_against,
}
