"""Rule sets: how a contest turns forecasts into scores, takes and prizes, as data.

A score is kernel x reference x sampling x scale; a board is total x take x rank. To add one, add a row to its table.

>>> from forecast_ledger import rules
>>> rules.inconsistency(rules.RuleSet(name="mine", kernel="brier", take="coverage_exp"))
'a take needs kernels of which the greatest is best: ln, log2 or spherical'
"""

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct, structs

from forecast_ledger.ledger.model.trading_rules import Trading

Level = Literal["no_prize", "no_rank", "hidden"]
Logarithm = Literal["ln", "log2"]
Gain = Literal[Logarithm, "spherical"]  # of which the greatest score is best; of every other kernel the least
Unbounded = Literal["pinball"]  # a loss in the question's own unit, without a worst score
Absolute = Literal["absolute", "absolute_clipped"]  # what asks for a point
KernelName = Literal["none", Gain, "brier", "brier_sum", "ordered_brier", "error"]
CdfKernelName = Literal["none", Logarithm, "crps"]
QuantileKernelName = Literal["none", Unbounded, Absolute]
ReferenceName = Literal["none", "uniform", "peers", "consensus"]
AverageName = Literal["median", "community", "mean", "squeezed"]
Weights = Literal["equal", "recency"]
SamplingName = Literal["time", "day", "spot"]
Period = Literal["scheduled", "actual", "covered"]
DayEdges = Literal["both", "opening", "none"]
CoveragePeriod = Literal["scheduled", "actual"]
Clock = Literal["claimed", "recorded"]
ScaleName = Literal["plain", "peer", "peer_whole", "baseline"]
KindTotal = Literal["kind_means", "kind_means_third"]  # what is made of a mean for each kind of question
TotalName = Literal["sum", "mean", "per_coverage", KindTotal]
TakeName = Literal["none", "coverage_exp", "coverage_exp2", "positive_square"]

Ppm = Annotated[int, Meta(ge=0, le=500_000)]
OpenEndPpm = Annotated[int, Meta(ge=0, le=499_999)]  # so that two open ends leave something to the bins between them
GreatestPpm = Annotated[int, Meta(ge=500_000, le=1_000_000)]
GreatestDensityPpm = Annotated[int, Meta(ge=1_000_000, le=10**12)]
LOGARITHMS: tuple[str, ...] = get_args(Logarithm)
GAINS: tuple[str, ...] = get_args(Gain)
_GAINS = f"{', '.join(GAINS[:-1])} or {GAINS[-1]}"
UNBOUNDED: tuple[str, ...] = get_args(Unbounded)
ABSOLUTES: tuple[str, ...] = get_args(Absolute)
KIND_TOTALS: tuple[str, ...] = get_args(KindTotal)


class RuleSet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One contest's rules, recorded whole when it opens, so that no later edit of a preset changes it.

    `forecast-ledger help rules` says what each field means, and each of its values.

    >>> from forecast_ledger import RuleSet, commands, open
    >>> mine = RuleSet(name="mine", kernel="brier", period="covered", total="mean")
    >>> with open(":memory:") as ledger:
    ...     contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules=mine)
    ...     ledger.handle(contest, command_id="open-spring").last
    1
    """

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    kernel: KernelName = "none"
    cdf_kernel: CdfKernelName = "none"
    quantile_kernel: QuantileKernelName = "none"
    reference: ReferenceName = "none"
    consensus: AverageName = "median"
    consensus_weights: Weights = "equal"
    sampling: SamplingName = "time"
    day_minutes: Annotated[int, Meta(ge=-1_440, le=1_440)] = 0
    period: Period = "scheduled"
    clock: Clock = "claimed"
    scale: ScaleName = "plain"
    total: TotalName = "sum"
    least_coverage: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    take: TakeName = "none"
    rank_by: Literal["take", "total"] = "total"
    least_prize: Annotated[int, Meta(ge=0, le=10**18)] = 0
    bots: Literal["members", "scored_only"] = "members"
    scored_only_levels: tuple[Level, ...] = ()
    scored_only_factor: Literal["members", "one"] = "one"
    score_consensus: bool = False
    best_of_entrant: bool = False
    attested: bool = False
    early_forecasts: bool = True
    least_probability_ppm: Ppm = 1_000
    least_density_ppm: Ppm = 10_000
    open_end_ppm: OpenEndPpm = 50_000
    consensus_of: Literal["all", "others"] = "all"
    least_prize_passes: Literal["many", "one", "one_by_one"] = "many"
    density_floor: Literal["least", "added"] = "least"
    greatest_probability_ppm: GreatestPpm = 1_000_000
    greatest_density_ppm: GreatestDensityPpm = 10**12
    trading: Trading | None = None
    coverage_period: CoveragePeriod = "scheduled"
    day_edges: DayEdges = "both"


# Fields that rule sets have got since, the newest last: where they have their defaults they are not spelt, so that what
# was recorded before they existed keeps its bytes. Their defaults are for good.
LATER_FIELDS = (
    "consensus_of",
    "least_prize_passes",
    "density_floor",
    "greatest_probability_ppm",
    "greatest_density_ppm",
    "trading",
    "coverage_period",
    "day_edges",
)
_DEFAULTS = structs.asdict(RuleSet(name="-"))


def recorded_fields(rules: RuleSet) -> dict[str, object]:
    """A rule set as the log holds it: every field, but of those that were added none that has its default.

    >>> list(recorded_fields(RuleSet(name="x", consensus_of="others")))[-2:]
    ['open_end_ppm', 'consensus_of']
    """
    said = structs.asdict(rules)
    return {field: value for field, value in said.items() if field not in LATER_FIELDS or value != _DEFAULTS[field]}


def kernels_of(rules: RuleSet) -> set[str]:
    """The kernels of a rule set, whatever form of forecast each is for.

    >>> sorted(kernels_of(RuleSet(name="x", kernel="brier", cdf_kernel="crps")))
    ['brier', 'crps']
    """
    names: set[str] = {rules.kernel, rules.cdf_kernel, rules.quantile_kernel}
    return names - {"none"}


def inconsistency(rules: RuleSet) -> str:
    """What in a rule set does not go together; empty if all does.

    >>> inconsistency(RuleSet(name="x", kernel="ln", least_probability_ppm=0))
    'a logarithm needs least_probability_ppm, least_density_ppm and open_end_ppm above 0'
    """
    kernels = kernels_of(rules)
    logarithms, losses = kernels & {*LOGARITHMS}, kernels - {*GAINS}
    wrong = _wrong_kernels(rules, kernels) | _wrong_limits(rules, logarithms) | _wrong_totals(rules, losses)
    return next((what for what, is_wrong in wrong.items() if is_wrong), "")


def _wrong_kernels(rules: RuleSet, kernels: set[str]) -> dict[str, bool]:
    """Of the kernels, and what they are compared with."""
    logarithms, losses = kernels & {*LOGARITHMS}, kernels - {*GAINS}
    others = rules.consensus_of == "others"
    return {
        "no kernel and no trading: nothing could be scored": not kernels and rules.trading is None,
        "a logarithm needs least_probability_ppm, least_density_ppm and open_end_ppm above 0": bool(logarithms)
        and not (rules.least_probability_ppm and rules.least_density_ppm and rules.open_end_ppm),
        f"of some kernels the least score is best, of others ({', '.join(GAINS)}) the greatest": bool(losses)
        and losses != kernels,
        "the two logarithms do not add up: use ln or log2 for both": len(logarithms) > 1,
        "the scales peer and baseline are for logarithms": rules.scale != "plain" and kernels != logarithms,
        "the scale baseline needs the reference uniform": rules.scale == "baseline" and rules.reference != "uniform",
        "quantiles take reference none or peers, and no score_consensus": rules.quantile_kernel != "none"
        and (rules.reference in {"uniform", "consensus"} or rules.score_consensus),
        "consensus_of others needs reference consensus, consensus median, and equal weights": others
        and (rules.reference, rules.consensus, rules.consensus_weights) != ("consensus", "median", "equal"),
        "consensus_of others is for logarithms": others and kernels != logarithms,
    }


def _wrong_limits(rules: RuleSet, logarithms: set[str]) -> dict[str, bool]:
    """Of what a probability or a density may be to a logarithm, where a least density is always below the greatest; of
    days.
    """
    capped = (rules.greatest_probability_ppm, rules.greatest_density_ppm) != (1_000_000, 10**12)
    return {
        "greatest_probability_ppm must be above least_probability_ppm": rules.greatest_probability_ppm
        <= rules.least_probability_ppm,
        "greatest_probability_ppm and greatest_density_ppm are for logarithms": capped and not logarithms,
        "day_edges opening and none are for sampling day": rules.day_edges != "both" and rules.sampling != "day",
        "density_floor added is for the cdf_kernel ln or log2": rules.density_floor == "added"
        and rules.cdf_kernel not in LOGARITHMS,
    }


def _wrong_totals(rules: RuleSet, losses: set[str]) -> dict[str, bool]:
    """Of totals, takes and prizes."""
    return {
        f"a take needs kernels of which the greatest is best: {_GAINS}": rules.take != "none" and losses != set(),
        "per_coverage needs least_coverage above 0": rules.total == "per_coverage" and not rules.least_coverage,
        "least_prize needs a take": rules.least_prize > 0 and rules.take == "none",
        "least_prize_passes one and one_by_one need a least_prize": rules.least_prize_passes != "many"
        and not rules.least_prize,
        "rank_by take needs a take": rules.rank_by == "take" and rules.take == "none",
        f"a total of kind means needs reference none, and losses other than {', '.join(UNBOUNDED)}": rules.total
        in KIND_TOTALS
        and (not losses or rules.reference != "none" or bool(losses & {*UNBOUNDED})),
        "a loss without reference needs period covered, and a total of means": bool(losses)
        and rules.reference == "none"
        and (rules.period != "covered" or rules.total in {"sum", "per_coverage"}),
    }


_RELATIVE = RuleSet(
    name="relative-2022-04", kernel="ln", cdf_kernel="ln", reference="consensus", take="coverage_exp", rank_by="take"
)
_BASELINE = RuleSet(name="baseline", kernel="ln", cdf_kernel="ln", reference="uniform", scale="baseline")
_PEER = RuleSet(
    name="peer-2024-03",
    kernel="ln",
    cdf_kernel="ln",
    reference="peers",
    scale="peer",
    take="positive_square",
    bots="scored_only",
)
_LEAST_PRIZE = 50 * 10**6
_ARENA = RuleSet(
    name="arena-v1", kernel="brier", period="covered", total="mean", least_probability_ppm=0, trading=Trading()
)

_FAQ = "Metaculus, Scores FAQ"
_PEERS = f'{_FAQ}, "What is the Peer score?"'
_TOURNAMENTS = 'Metaculus, Tournament Scoring, April 6th, 2022, "A Simple Scenario" to "Tournament Scoring"'
# Each preset with its source.
_PRESETS: tuple[tuple[RuleSet, str], ...] = (
    # Before April 2022 the logarithm was base 2 ("we are now using the natural logarithm (instead of the logarithm base
    # 2)"). What a smaller probability counts as is of the Scores FAQ, "What is the Baseline score?": 0.1%, and a
    # uniform 0.01.
    (
        structs.replace(_RELATIVE, name="relative-2021-11", kernel="log2", cdf_kernel="log2", take="coverage_exp2"),
        _TOURNAMENTS,
    ),
    (_RELATIVE, _TOURNAMENTS),
    # Its take is e to the power of a sum of logarithms base 2: "How are my (legacy) tournament Score, Coverage, Take,
    # Prize and Rank calculated?".
    (
        structs.replace(_RELATIVE, name="relative-faq", kernel="log2", cdf_kernel="log2"),
        f'{_FAQ}, "What is the Relative score?"',
    ),
    (_BASELINE, f'{_FAQ}, "What is the Baseline score?"'),
    # Its take: "How are my tournament Score, Take, Prize and Rank calculated?".
    (_PEER, _PEERS),
    # The same with a least prize of 50; what cannot be paid goes to the others, from the bottom up.
    (
        structs.replace(_PEER, name="peer-2025-06", least_prize=_LEAST_PRIZE),
        f"{_PEERS}; the least prize of June 2025",
    ),
    # Both at one instant: the reveal of the community forecast, else the close.
    (structs.replace(_PEER, name="spot-peer", sampling="spot"), _PEERS),
    (
        structs.replace(_BASELINE, name="spot-baseline", sampling="spot", take="positive_square"),
        f'{_FAQ}, "What is the Baseline score?"',
    ),
    # Over at least 30 questions' worth.
    (
        structs.replace(_PEER, name="peer-average", take="none", total="per_coverage", least_coverage=30),
        'Metaculus\'s published code, leaderboard "peer_global", since January 2024',
    ),
    # The last forecast before the close.
    (
        RuleSet(
            name="autocast-2022",
            kernel="brier",
            quantile_kernel="absolute",
            sampling="spot",
            period="covered",
            total="kind_means",
            best_of_entrant=True,
            attested=True,
            least_probability_ppm=0,
        ),
        'Autocast competition of 2022, "Evaluation" and "Warm-up Round"',
    ),
    # The sum over outcomes, from 0 to 2; its mean over the full days on which one had a forecast, as the forecasting
    # tournaments of the 2010s took it: Cultivate Labs, Forecasts, support article "Why didn't I receive a score in a
    # question I forecasted?".
    (
        RuleSet(
            name="brier-daily",
            kernel="brier_sum",
            sampling="day",
            day_edges="none",
            period="covered",
            total="mean",
            least_probability_ppm=0,
        ),
        "Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2, by day",
    ),
    # Stakes, and beside them plain forecasts by Brier score.
    (_ARENA, "Forecaster Arena, Methodology v1 and Scoring Methodology"),
    # Its second methodology: all bets of a decision or none, capped together; the five newest cohorts decide.
    (
        structs.replace(
            _ARENA, name="arena-v2", trading=Trading(legs="all_or_nothing", sum_capped=True, deciding_cohorts=5)
        ),
        "Forecaster Arena, Methodology v1 and Scoring Methodology",
    ),
)
PRESET_SOURCES: dict[str, str] = {rules.name: source for rules, source in _PRESETS}
PRESETS: dict[str, RuleSet] = {rules.name: rules for rules, _ in _PRESETS}
# What a preset was before it was changed. A contest that was opened by its name then keeps those rules.
FORMER_PRESETS: dict[str, tuple[RuleSet, ...]] = {
    "brier-daily": (structs.replace(PRESETS["brier-daily"], day_edges="both"),),  # it counted days that are cut short
}
