"""What the fields of a rule set and of its trading rules mean, and each of their values."""

from forecast_ledger.projections.scores.kernels import KERNELS

RULES: dict[str, str] = {
    "name": "what the rule set is called",
    "kernel": "the formula for named outcomes; `none` where the contest takes no such question",
    "cdf_kernel": "the formula for numeric questions with bins; `none` where the contest takes no such question",
    "quantile_kernel": "the formula for numeric questions with levels; `none` where the contest takes no such question",
    "reference": "what a forecast is compared with",
    "consensus": "how the consensus is made of the forecasts that stand at an instant, one's own included",
    "consensus_weights": "how much each forecast weighs in the consensus",
    "sampling": "which instants of a question's period count",
    "day_minutes": "with sampling `day`: how many minutes east of UTC a day is",
    "period": "what the sum over time is divided by",
    "clock": "whose instants count",
    "scale": "what a score is multiplied by",
    "total": "what a contest's total is",
    "least_coverage": "with total `per_coverage`: the least that the total is divided by, in questions",
    "take": "what prizes are proportional to; without a take nobody is paid",
    "rank_by": "what the board is sorted by",
    "least_prize": (
        "whoever is worth less is dropped and the others share it; 1e-6 of the currency, so that 50000000 is 50. "
        "The largest takes stay if the pool is not below it, however many they are"
    ),
    "bots": "whether the forecasts of bots count among the peers and in the consensus",
    "scored_only_levels": "the levels of exclusion at which forecasts are scored without counting among the members",
    "scored_only_factor": "how who is no member is compared with n members",
    "score_consensus": (
        "whether the consensus is a row of the board. It is called `[consensus]`, in more brackets if somebody "
        "has that name; the tables `brier` and `calibration` have it in any case"
    ),
    "best_of_entrant": "whether only an entrant's best submission is ranked",
    "attested": "whether the table `admissions` says of each forecast what it may have known",
    "early_forecasts": "whether a forecast that is made before the opening stands from the opening on",
    "least_probability_ppm": (
        "what a smaller probability of an outcome, or of an open end, counts as in a logarithm; 1e-6"
    ),
    "least_density_ppm": (
        "what a smaller density of a numeric bin counts as in a logarithm; 1e-6 of the uniform density"
    ),
    "open_end_ppm": "the probability that the uniform distribution gives to an open end; 1e-6",
    "consensus_of": "whose median a member is compared with",
    "least_prize_passes": "in which order takes below the least prize are dropped",
    "density_floor": "how `least_density_ppm` counts",
    "greatest_probability_ppm": "what a greater probability counts as in a logarithm; 1e-6",
    "greatest_density_ppm": "what a greater density counts as in a logarithm; 1e-6 of the uniform density",
    "trading": "by what rules participants trade, if they do",
    "coverage_period": "of which period a coverage is a share",
    "day_edges": "with sampling `day`: which of the days count that the opening or the end of scored time cuts short",
    # Trading
    "starting_cash": "what a participant is granted, once; 1e-6 of the currency",
    "least_bet": "a bet of less is a fault; 1e-6 of the currency",
    "cap_divisor": (
        "the largest bet is cash / cap_divisor, rounded down; a reply is held to that of its start, each leg to "
        "that of the cash which the legs before left"
    ),
    "least_percentage": "the least part of a position that is sold at once; 1e-6 of a percent",
    "legs": "whether one refused bet refuses all bets of a decision",
    "sum_capped": "whether all bets of a decision together are held to the largest bet too",
    "attempts": "after so many malformed replies the decision is HOLD by default",
    "stale_after_seconds": "how old a quote may be at which one trades; an older mark is stale",
    "snapshot_seconds": "the time from one look at a portfolio to the next",
    "period_days": "how many days one decision is for, from the contest's start; 0 where a period is only a number",
    "cohorts": "when contests start",
    "deciding_cohorts": "how many of the newest contests of a series still decide; 0 for all",
    "recapitalisation": "whether cash may be deposited and withdrawn",
    "closed_marks": "what a closed question that is not resolved is valued at",
}
VALUES: dict[str, str] = {
    "kernel.none": "such questions are not taken",
    "reference.none": "nothing: a score is the kernel itself",
    "reference.uniform": "the uniform distribution, of which an open end has `open_end_ppm`",
    "reference.peers": (
        "the mean of the other members' kernels. A member earns nothing while no other member stands; who is no "
        "member is compared with a single one too, unless `scored_only_factor` is `members`"
    ),
    "reference.consensus": "the consensus, one's own forecast included",
    "consensus.median": "the median of the outcome's probabilities",
    "consensus.community": (
        "the median of every outcome, brought to one; of numeric questions the mean of the distributions"
    ),
    "consensus.mean": "the mean",
    "consensus.squeezed": (
        "like `community`, but with multiple choice 0.001 is taken off each median, and each outcome has 0.001 "
        "and its share of the rest"
    ),
    "consensus_weights.equal": "all the same",
    "consensus_weights.recency": (
        "the i-th oldest of n weighs e^(√i - √n), by when forecasts were made by the clock that counts, and of "
        "one instant by the participants' ids"
    ),
    "sampling.time": "every instant",
    "sampling.day": "the last forecast of each day",
    "sampling.spot": "one instant: `spot_at`, else the reveal, else the close",
    "period.scheduled": "the scheduled period, so that a question that resolves early earns less",
    "period.actual": "the period until the answer was known",
    "period.covered": "the time on which one's own forecasts stood",
    "clock.claimed": "forecasts count from the instant that their command claims",
    "clock.recorded": "forecasts count from when they were recorded by the ledger's own clock",
    "scale.plain": "1",
    "scale.peer": "100, and 50 for numeric questions",
    "scale.peer_whole": "100",
    "scale.baseline": "100 / log K of K outcomes, and 50 for numeric questions",
    "total.sum": "the weighted sum of its scores",
    "total.mean": "their weighted mean over the questions forecast on",
    "total.per_coverage": "the weighted sum over the larger of `least_coverage` and the summed coverage",
    "total.kind_means": (
        "100 times the sum of the means of each kind of question, a missing forecast counting as the worst. With "
        "the kernel `error` this is 200 less twice (accuracy + accuracy - distance) x 50, as the Autocast "
        "notebooks print it"
    ),
    "total.kind_means_third": "a third of that, whatever kinds there are",
    "take.none": "no take and no prizes",
    "take.coverage_exp": "coverage x e^total",
    "take.coverage_exp2": "coverage x 2^total",
    "take.positive_square": "max(total, 0)²",
    "rank_by.take": "the take",
    "rank_by.total": "the total",
    "bots.members": "they count like everybody",
    "bots.scored_only": "they are scored without counting",
    "scored_only_factor.members": "as if it were one of them: times n / (n - 1), and only while two or more stand",
    "scored_only_factor.one": "with all n, a single one too",
    "consensus_of.all": "that of everybody",
    "consensus_of.others": (
        "that of the other members, in logarithms only; nothing is earned alone. Who is no member, and the "
        "consensus itself, are compared with that of all"
    ),
    "least_prize_passes.many": "from the bottom up, equal takes together",
    "least_prize_passes.one": "all at once, without a second look",
    "least_prize_passes.one_by_one": "from the bottom up, of equal takes the last id first",
    "density_floor.least": "a smaller density counts as that",
    "density_floor.added": "it is added to every bin instead, and taken from none",
    "coverage_period.scheduled": "the scheduled period",
    "coverage_period.actual": "the period until the answer was known",
    "day_edges.both": "both: that of the opening, and that on which scored time ends",
    "day_edges.opening": "that of the opening",
    "day_edges.none": "neither: full days only",
    "scored_only_levels.no_prize": "ranked, not paid",
    "scored_only_levels.no_rank": "shown without a rank, not paid",
    "scored_only_levels.hidden": "not on the board",
    "legs.independent": "each bet is carried out or refused by itself",
    "legs.all_or_nothing": "all bets are carried out or none",
    "cohorts.weekly": "on a Sunday 00:00 UTC, one a week and series",
    "cohorts.none": "whenever they are opened",
    "closed_marks.prior": "at the last quote before its close",
    "closed_marks.last": "at the last quote",
}


def value_meaning(field: str, value: str) -> str:
    """What a value of a field means; what a kernel is stands in its row of KERNELS.

    >>> value_meaning("cdf_kernel", "none")
    'such questions are not taken'
    """
    if not field.endswith("kernel") or value == "none":
        return VALUES[f"{field.removeprefix('cdf_').removeprefix('quantile_')}.{value}"]
    kernel = KERNELS[value]
    return f"{kernel.words}; the {'least' if kernel.lower_is_better else 'greatest'} is best"
