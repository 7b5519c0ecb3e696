"""Rule sets: how a contest turns forecasts into scores, takes and prizes, as data.

A score is kernel x reference x sampling x scale; a board is total x take x rank. Each has a table of its values.

>>> from forecast_ledger import rules
>>> rules.inconsistency(rules.RuleSet(name="mine", kernel="brier", take="coverage_exp"))
'a take needs kernels for which a higher score is better: ln, log2 or spherical'
"""

from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, cast, get_args

from msgspec import Meta, Struct, defstruct, json, structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import LARGEST_POOL
from forecast_ledger.ledger.model.trading_rules import (
    CURRENCY,
    MICROS,
    Trading,
    broken_trading_rules,
    encoded_fields,
    encoded_name,
    recorded_trading,
)

Level = Literal["no_prize", "no_rank", "hidden"]  # of exclusion; each has the effects of those before it
Logarithm = Literal["ln", "log2"]
Gain = Literal[Logarithm, "spherical"]  # a higher score is better; for every other kernel, a lower one
Unbounded = Literal["pinball", "squared"]  # a loss in the question's own unit, without a worst score
Absolute = Literal["absolute", "absolute_clipped"]  # they score a point forecast
KernelName = Literal["none", Gain, "brier", "brier_sum", "brier_mean", "ordered_brier", "error"]
CdfKernelName = Literal["none", Logarithm, "crps"]
QuantileKernelName = Literal["none", Unbounded, Absolute]
ReferenceName = Literal["none", "uniform", "peers", "consensus", "median_score", "mean_score"]
AverageName = Literal["median", "community", "mean", "squeezed"]
Weights = Literal["equal", "recency"]
SamplingName = Literal["time", "day", "spot"]
Period = Literal["scheduled", "actual", "covered"]
DayEdges = Literal["both", "opening", "none"]
CoveragePeriod = Literal["scheduled", "actual"]
Clock = Literal["claimed", "recorded"]
ScaleName = Literal["plain", "peer", "peer_whole", "baseline"]
TransformName = Literal["none", "log_shifted", "log", "log2", "log10", "sqrt"]
KindTotal = Literal["kind_means", "kind_means_third"]  # totals of one mean for each kind of question
TotalName = Literal["sum", "mean", "per_coverage", "per_question", KindTotal]
ReferenceRow = Literal["consensus", "always_half", "uniform", "market"]
ImputationName = Literal["none", "worst", ReferenceRow]
TakeName = Literal["none", "coverage_exp", "coverage_exp2", "positive_square"]
TAG = "tag:"  # before the name of a tag NAME=VALUE
ALONE = "question"  # each question is a cluster
Cluster = Annotated[str, Meta(pattern=f"^({ALONE}|group|category|{TAG}[^=]+)$", max_length=200)]
MOST_CLUSTERS = 2  # fields
Clusters = Annotated[tuple[Cluster, ...], Meta(min_length=1, max_length=MOST_CLUSTERS)]

PPM = {"unit": "1e-6 of a probability"}
DENSITY_PPM = {"unit": "1e-6 of the uniform density"}
QUESTIONS = {"unit": "questions"}
Ppm = Annotated[int, Meta(ge=0, le=500_000, extra=PPM)]
OpenEndPpm = Annotated[
    int, Meta(ge=0, le=499_999, extra=PPM)
]  # two open ends leave probability to the bins between them
GreatestPpm = Annotated[int, Meta(ge=500_000, le=1_000_000, extra=PPM)]
GreatestDensityPpm = Annotated[int, Meta(ge=1_000_000, le=10**12, extra=DENSITY_PPM)]
NEVER_LATE = 10**10  # minutes, more than lie between any two instants
LEVELS: tuple[Level, ...] = get_args(Level)
REFERENCE_ROWS: tuple[ReferenceRow, ...] = get_args(ReferenceRow)
LOGARITHMS: tuple[str, ...] = get_args(Logarithm)
GAINS: tuple[str, ...] = get_args(Gain)
_GAINS = f"{', '.join(GAINS[:-1])} or {GAINS[-1]}"
BRIERS = ("brier", "brier_sum", "brier_mean", "ordered_brier")  # they score payouts, too: shares of an outcome
UNBOUNDED: tuple[str, ...] = get_args(Unbounded)
WITHOUT_WORST = ("brier_mean", *UNBOUNDED)  # losses without one worst score: that of brier_mean is 2 / outcomes
_OTHERS = ", ".join(WITHOUT_WORST)
ABSOLUTES: tuple[str, ...] = get_args(Absolute)
KIND_TOTALS: tuple[str, ...] = get_args(KindTotal)


class RuleSet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=encoded_name):
    """The rules of one contest, all recorded when it opens, so that no later change of a preset changes the contest.

    `forecast-ledger help rules` says what each field means, and each of its values. In JSON, an amount is a decimal in
    the currency; the fields of this class hold it in 1e-6, as the log does, and their names end in `_micros`.

    >>> from forecast_ledger import RuleSet, commands, open_ledger
    >>> mine = RuleSet(name="mine", kernel="brier", period="covered", total="mean")
    >>> with open_ledger(":memory:") as ledger:
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
    day_minutes: Annotated[int, Meta(ge=-1_440, le=1_440, extra={"unit": "minutes"})] = 0
    period: Period = "scheduled"
    clock: Clock = "claimed"
    scale: ScaleName = "plain"
    total: TotalName = "sum"
    least_coverage: Annotated[int, Meta(ge=0, le=1_000_000, extra=QUESTIONS)] = 0
    take: TakeName = "none"
    rank_by: Literal["take", "total"] = "total"
    least_prize_micros: Annotated[int, Meta(ge=0, le=LARGEST_POOL, extra=CURRENCY)] = 0
    bots: Literal["members", "scored_only"] = "members"
    scored_only_levels: tuple[Level, ...] = ()
    scored_only_factor: Literal["members", "one"] = "one"
    score_consensus: bool = False
    best_of_entrant: bool = False
    attested: bool = False
    early_forecasts: bool = True
    least_probability_ppm: Ppm = 1_000
    least_density_ppm: Annotated[int, Meta(ge=0, le=500_000, extra=DENSITY_PPM)] = 10_000
    open_end_ppm: OpenEndPpm = 50_000
    consensus_of: Literal["all", "others"] = "all"
    least_prize_passes: Literal["many", "one", "one_by_one"] = "many"
    density_floor: Literal["least", "added"] = "least"
    greatest_probability_ppm: GreatestPpm = 1_000_000
    greatest_density_ppm: GreatestDensityPpm = 10**12
    trading: Trading | None = None
    coverage_period: CoveragePeriod = "scheduled"
    day_edges: DayEdges = "both"
    least_questions: Annotated[int, Meta(ge=0, le=10**9, extra=QUESTIONS)] = 0
    least_share_ppm: Annotated[int, Meta(ge=0, le=1_000_000, extra={"unit": "1e-6 of the questions"})] = 0
    bot_level: Literal["none", Level] = "none"
    reference_rows: tuple[ReferenceRow, ...] = ()
    payouts: Literal["unscored", "scored"] = "unscored"
    replicates: Annotated[int, Meta(ge=19, le=3_999, extra={"unit": "replicates"})] = 1_999
    level_ppm: Annotated[int, Meta(ge=500_000, le=999_000, extra={"unit": "1e-6 of the replicates"})] = 950_000
    transform: TransformName = "none"
    imputation: ImputationName = "none"
    late_minutes: Annotated[int, Meta(ge=0, le=NEVER_LATE, extra={"unit": "minutes"})] = NEVER_LATE
    clusters: Clusters = ("group",)


# Fields that were added later, the newest last. They are left out of the log at their defaults, so that the bytes of
# older logs stay the same. Their defaults never change.
LATER_FIELDS = (
    "consensus_of",
    "least_prize_passes",
    "density_floor",
    "greatest_probability_ppm",
    "greatest_density_ppm",
    "trading",
    "coverage_period",
    "day_edges",
    "least_questions",
    "least_share_ppm",
    "bot_level",
    "reference_rows",
    "payouts",
    "replicates",
    "level_ppm",
    "transform",
    "imputation",
    "late_minutes",
    "clusters",
)
_DEFAULTS = encoded_fields(RuleSet(name="-"))


def recorded_fields(rules: RuleSet) -> dict[str, object]:
    """Return the fields of a rule set as the log holds them: all, except LATER_FIELDS that have their defaults.

    >>> list(recorded_fields(RuleSet(name="x", consensus_of="others")))[-2:]
    ['open_end_ppm', 'consensus_of']
    """
    fields = encoded_fields(rules)
    if isinstance(rules.trading, Trading):
        fields["trading"] = recorded_trading(rules.trading)
    return {field: value for field, value in fields.items() if field not in LATER_FIELDS or value != _DEFAULTS[field]}


def kernels_of(rules: RuleSet) -> set[str]:
    """Return the kernels of a rule set, for all forms of forecast.

    >>> sorted(kernels_of(RuleSet(name="x", kernel="brier", cdf_kernel="crps")))
    ['brier', 'crps']
    """
    names: set[str] = {rules.kernel, rules.cdf_kernel, rules.quantile_kernel}
    return names - {"none"}


def shown_references(rules: RuleSet) -> tuple[ReferenceRow, ...]:
    """Return the reference forecasters that have a row on the board, in the order of REFERENCE_ROWS.

    The field score_consensus, which is older, says the same as `consensus` in reference_rows.

    >>> shown_references(RuleSet(name="x", score_consensus=True, reference_rows=("market", "uniform")))
    ('consensus', 'uniform', 'market')
    """
    shown = {*rules.reference_rows, *(["consensus"] if rules.score_consensus else [])}
    return tuple(name for name in REFERENCE_ROWS if name in shown)


def inconsistency(rules: RuleSet) -> str:
    """Return the first rule of consistency that a rule set breaks; empty if it is consistent.

    >>> inconsistency(RuleSet(name="x", kernel="ln", least_probability_ppm=0))
    'a logarithm needs least_probability_ppm, least_density_ppm and open_end_ppm above 0'
    """
    kernels = kernels_of(rules)
    logarithms, losses = kernels & {*LOGARITHMS}, kernels - {*GAINS}
    broken = (
        _broken_kernel_rules(rules, kernels)
        | _broken_limit_rules(rules, logarithms)
        | _broken_total_rules(rules, losses)
        | broken_trading_rules(rules.trading or Trading())
    )
    return next((rule for rule, is_broken in broken.items() if is_broken), "")


def _broken_kernel_rules(rules: RuleSet, kernels: set[str]) -> dict[str, bool]:
    """Return the rules about kernels and references, each with whether it is broken."""
    logarithms, losses = kernels & {*LOGARITHMS}, kernels - {*GAINS}
    others = rules.consensus_of == "others"
    return {
        "the rule set has no kernel and no trading, so nothing can be scored": not kernels and rules.trading is None,
        "a logarithm needs least_probability_ppm, least_density_ppm and open_end_ppm above 0": bool(logarithms)
        and not (rules.least_probability_ppm and rules.least_density_ppm and rules.open_end_ppm),
        f"kernels must agree on the better score: it is the higher for {_GAINS}, and the lower for the others": bool(
            losses
        )
        and losses != kernels,
        "logarithms of two bases cannot be added: use ln or log2 for both kernels": len(logarithms) > 1,
        "the scales peer, peer_whole and baseline need kernels that are logarithms": rules.scale != "plain"
        and kernels != logarithms,
        "the scale baseline needs reference uniform": rules.scale == "baseline" and rules.reference != "uniform",
        "quantile_kernel needs reference none, peers, median_score or mean_score; no consensus row": (
            rules.quantile_kernel != "none"
        )
        and (rules.reference in {"uniform", "consensus"} or "consensus" in shown_references(rules)),
        "consensus_of others needs reference consensus, consensus median, and equal weights": others
        and (rules.reference, rules.consensus, rules.consensus_weights) != ("consensus", "median", "equal"),
        f"payouts scored needs the kernel {', '.join(BRIERS[:-1])} or {BRIERS[-1]}": rules.payouts == "scored"
        and rules.kernel not in BRIERS,
        "consensus_of others needs kernels that are logarithms": others and kernels != logarithms,
        "a transform needs the quantile_kernel pinball, and no cdf_kernel": rules.transform != "none"
        and (rules.quantile_kernel, rules.cdf_kernel) != ("pinball", "none"),
    }


def _broken_limit_rules(rules: RuleSet, logarithms: set[str]) -> dict[str, bool]:
    """Return the rules about limits of probabilities and densities, and about days, each with whether it is broken."""
    capped = (rules.greatest_probability_ppm, rules.greatest_density_ppm) != (1_000_000, 10**12)
    return {
        "greatest_probability_ppm must be above least_probability_ppm": rules.greatest_probability_ppm
        <= rules.least_probability_ppm,
        "greatest_probability_ppm and greatest_density_ppm need kernels that are logarithms": capped and not logarithms,
        "late_minutes needs clock claimed": rules.late_minutes != NEVER_LATE and rules.clock != "claimed",
        "day_edges opening and none need sampling day": rules.day_edges != "both" and rules.sampling != "day",
        "density_floor added needs the cdf_kernel ln or log2": rules.density_floor == "added"
        and rules.cdf_kernel not in LOGARITHMS,
    }


def _broken_total_rules(rules: RuleSet, losses: set[str]) -> dict[str, bool]:
    """Return the rules about totals, takes and prizes, each with whether it is broken."""
    return {
        f"a take needs kernels for which a higher score is better: {_GAINS}": rules.take != "none" and losses != set(),
        "per_coverage needs least_coverage above 0": rules.total == "per_coverage" and not rules.least_coverage,
        "per_question needs least_coverage above 0": rules.total == "per_question" and not rules.least_coverage,
        "reference_rows need a kernel": bool(rules.reference_rows) and not kernels_of(rules),
        "least_questions and least_share_ppm need a kernel": bool(rules.least_questions or rules.least_share_ppm)
        and not kernels_of(rules),
        "least_prize needs a take": rules.least_prize_micros > 0 and rules.take == "none",
        "least_prize_passes one and one_by_one need a least_prize": rules.least_prize_passes != "many"
        and not rules.least_prize_micros,
        "replicates and level_ppm must fit: (replicates + 1) x (1,000,000 - level_ppm) / 2,000,000 is a whole number": (
            (rules.replicates + 1) * (10**6 - rules.level_ppm) % (2 * 10**6) != 0
        ),
        "two clusters must be different fields, and neither question": len(rules.clusters) > 1
        and (ALONE in rules.clusters or len({*rules.clusters}) == 1),
        "the totals of kind means need clusters of one field": rules.total in KIND_TOTALS and len(rules.clusters) > 1,
        "rank_by take needs a take": rules.rank_by == "take" and rules.take == "none",
        f"the totals of kind means, and imputation worst, need reference none, and losses other than {_OTHERS}": (
            (rules.total in KIND_TOTALS or rules.imputation == "worst")
            and (not losses or rules.reference != "none" or bool(losses & {*WITHOUT_WORST}))
        ),
        "imputation needs total sum or mean": rules.imputation != "none" and rules.total not in {"sum", "mean"},
        "imputation by a reference forecaster needs it in reference_rows": rules.imputation in REFERENCE_ROWS
        and rules.imputation not in shown_references(rules),
        "a loss without a reference needs period covered, and a total that is a mean": bool(losses)
        and rules.reference == "none"
        and (rules.period != "covered" or rules.total in {"sum", "per_coverage", "per_question"}),
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
    # 2)"). The least probability, 0.1%, and the uniform 0.01 of a density: the Scores FAQ, "What is the Baseline
    # score?".
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
    # The same with a least prize of 50: smaller prizes go to the other participants, from the bottom up.
    (
        structs.replace(_PEER, name="peer-2025-06", least_prize_micros=_LEAST_PRIZE),
        f"{_PEERS}; the least prize of June 2025",
    ),
    # Both score one instant: the reveal of the community forecast, or else the close.
    (structs.replace(_PEER, name="spot-peer", sampling="spot"), _PEERS),
    (
        structs.replace(_BASELINE, name="spot-baseline", sampling="spot", take="positive_square"),
        f'{_FAQ}, "What is the Baseline score?"',
    ),
    # The divisor is a coverage of at least 30 questions.
    (
        structs.replace(_PEER, name="peer-average", take="none", total="per_coverage", least_coverage=30),
        'Metaculus\'s published code, leaderboard "peer_global", since January 2024',
    ),
    # The divisor is the number of questions forecast on, of at least 40.
    (
        structs.replace(_PEER, name="peer-average-2023", take="none", total="per_question", least_coverage=40),
        'Metaculus\'s published code, leaderboard "peer_global_legacy", before 2024',
    ),
    # The last forecast before the close counts.
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
    # The sum over outcomes, from 0 to 2, and its mean over the full days on which a forecast stood, as in the
    # forecasting tournaments of the 2010s: Cultivate Labs, Forecasts, support article "Why didn't I receive a score in
    # a question I forecasted?".
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
    # Trading, and forecasts by Brier score.
    (_ARENA, "Forecaster Arena, Methodology v1 and Scoring Methodology"),
    # The second methodology: all bets of a decision or none, with one cap; the five newest cohorts decide.
    (
        structs.replace(
            _ARENA, name="arena-v2", trading=Trading(legs="all_or_nothing", sum_capped=True, deciding_cohorts=5)
        ),
        "Forecaster Arena, Methodology v1 and Scoring Methodology",
    ),
    # The first methodology, with the fees of an exchange. Kalshi's is that of an order that is filled at once, of an
    # account that is kept in cents; some series have another rate or none. Polymarket's is that of economics, culture
    # and weather; other categories have 0, 0.03, 0.04 or 0.07.
    (
        structs.replace(
            _ARENA,
            name="arena-v1-kalshi",
            trading=Trading(fee_rate_ppm=70_000, fee_unit_micros=10_000, fee_rounding="cash"),
        ),
        'Kalshi, Fee Schedule, "General Trading Fees", and API documentation, "Fee Rounding"',
    ),
    (
        structs.replace(
            _ARENA,
            name="arena-v1-polymarket",
            trading=Trading(fee_rate_ppm=50_000, fee_unit_micros=10, fee_rounding="down"),
        ),
        'Polymarket, documentation, "Fees", "Fee Structure" and "Fee Precision"',
    ),
    # Forecasts by Brier score, as below, and trades that happened elsewhere: accounts start with nothing.
    (
        RuleSet(
            name="market-trades",
            kernel="brier",
            period="covered",
            total="mean",
            least_probability_ppm=0,
            payouts="scored",
            trading=Trading(
                starting_cash_micros=0,
                cohorts="none",
                period_days=0,
                snapshot_seconds=86_400,
                closed_marks="last",
                recorded_trades=True,
                overdrafts=True,
            ),
        ),
        "ForecastBench's leaderboard: (forecast - resolved_to)², averaged over questions",
    ),
    # Raw Brier scores, without the adjustment for the difficulty of questions.
    (
        RuleSet(
            name="forecastbench",
            kernel="brier",
            period="covered",
            total="mean",
            least_probability_ppm=0,
            payouts="scored",
        ),
        "ForecastBench's leaderboard: (forecast - resolved_to)², averaged over questions",
    ),
)
PRESET_SOURCES: dict[str, str] = {rules.name: source for rules, source in _PRESETS}
PRESETS: dict[str, RuleSet] = {rules.name: rules for rules, _ in _PRESETS}
# Presets as they were before a change. A contest that was opened by such a name keeps those rules.
FORMER_PRESETS: dict[str, tuple[RuleSet, ...]] = {
    "brier-daily": (structs.replace(PRESETS["brier-daily"], day_edges="both"),),  # days that are cut short counted
}


_READABLE = 10**30  # the largest number that a message repeats


def _text(micros: Any) -> str:
    return values.format_fixed(micros, values.MONEY)


_fields_of = cache(structs.fields)  # which reads all annotations at every call


def limits(kind: type[Struct], field: str) -> Meta | None:
    """Return the bounds of a number of a rule set, in 1e-6 if it is an amount, and its unit; None for other fields.

    >>> bounds = limits(Trading, "least_bet_micros")
    >>> None if bounds is None else (bounds.ge, bounds.extra)
    (1, {'unit': "the contest's currency"})
    """
    [info] = [each for each in _fields_of(kind) if each.name == field]
    return next(iter(getattr(info.type, "__metadata__", ())), None)


def _written(kind: type[Struct], parts: dict[str, Any]) -> type[Struct]:
    """Return the type of a rule set as it is written, made from the one that is recorded."""
    fields: list[Any] = []
    for field in _fields_of(kind):
        default = [] if field.required else [field.default]
        if field.name.endswith(MICROS):
            fields.append((field.encode_name, _amount(limits(kind, field.name)), _text(field.default)))
        else:
            fields.append((field.encode_name, parts.get(field.name, field.type), *default))
    named = {"__doc__": kind.__doc__}
    return defstruct(kind.__name__, fields, frozen=True, kw_only=True, forbid_unknown_fields=True, namespace=named)


def _amount(meta: Meta | None) -> Any:
    """Return the type of a written amount."""
    schema = {"type": "string", "pattern": f"^{values.WRITTEN_NUMBER}$"}
    return Annotated[Any, Meta(extra_json_schema=schema, extra=meta and meta.extra)]


WrittenTrading = _written(Trading, {})
WrittenRuleSet = _written(RuleSet, {"trading": cast("Any", WrittenTrading) | None})
_decode = json.Decoder(WrittenRuleSet, float_hook=Decimal).decode


def read_json(text: bytes | str, field: str) -> RuleSet:
    """Return the rule set that a JSON object gives. Raises msgspec.DecodeError, and what `as_recorded` refuses."""
    return as_recorded(_decode(text), field)


def as_recorded(written: Struct, field: str) -> RuleSet:
    """Return a rule set with its amounts in 1e-6; field: its path in the command.

    Refuses, first that applies: bad_number, amount_not_text, not_finite, out_of_range.
    """
    return cast("RuleSet", _recorded(written, RuleSet, field))


def _recorded(written: Struct, kind: type[Struct], path: str) -> Struct:
    fields: dict[str, Any] = {}
    for field in _fields_of(kind):
        value, name = getattr(written, field.encode_name), f"{path}.{field.encode_name}".lstrip(".")
        if field.name.endswith(MICROS):
            value = _read_amount(value, name, limits(kind, field.name))
        elif type(value) is WrittenTrading:
            value = _recorded(value, Trading, name)
        fields[field.name] = value
    return kind(**fields)


def _read_amount(value: Any, field: str, meta: Meta | None) -> int:
    unit, low, high = ("", 0, 0) if meta is None else ((meta.extra or {})["unit"], int(meta.ge or 0), int(meta.le or 0))
    if isinstance(value, int | Decimal) and type(value) is not bool:
        detail = f"an amount is a text in {unit}, because earlier versions read a number as 1e-6 of it"
        remedy = ""
        if type(value) is int and abs(value) <= _READABLE:
            remedy = f'write "{value}" for {value}, or "{_text(value)}" for what {value} was before'
        raise Refused("amount_not_text", field, str(value), detail, remedy=remedy)
    return values.read_fixed(value, values.MONEY, field, low, high)


def written_fields(rules: Struct) -> dict[str, Any]:
    """Return the fields of a rule set, or of trading rules, as they are written.

    >>> written_fields(Trading(least_bet_micros=12_500_000))["least_bet"]
    '12.5'
    """
    amounts = {field.encode_name for field in _fields_of(type(rules)) if field.name.endswith(MICROS)}
    plain: dict[str, Any] = {}
    for name, value in encoded_fields(rules).items():
        plain[name] = written_fields(value) if isinstance(value, Struct) else value
        if name in amounts:
            plain[name] = _text(value)
    return plain


def own_fields(rules: RuleSet) -> dict[str, Any]:
    """Return the fields of a rule set, as they are written, that differ from their defaults, without its name.

    >>> own_fields(RuleSet(name="mine", kernel="ln", least_prize_micros=50_000_000))
    {'kernel': 'ln', 'least_prize': '50'}
    """
    changed = _differing(rules, RuleSet(name=rules.name))
    return changed | ({} if rules.trading is None else {"trading": _differing(rules.trading, Trading())})


def _differing(rules: Struct, default: Struct) -> dict[str, Any]:
    usual = written_fields(default)
    return {field: value for field, value in written_fields(rules).items() if value != usual[field]}
