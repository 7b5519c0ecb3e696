"""The fields of rule sets, their values, and rule sets as rows."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from forecast_ledger.ledger.model.rules import PRESET_SOURCES, PRESETS, RuleSet, own_fields, written_fields
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.scores.kernels import KERNELS

RULES: dict[str, str] = {
    "name": "the name of the rule set",
    "kernel": "the formula for named outcomes; `none` if the contest has no such questions",
    "cdf_kernel": "the formula for numeric questions with bins; `none` if the contest has no such questions",
    "quantile_kernel": (
        "the formula for numeric questions with levels or samples; `none` if the contest has no such questions"
    ),
    "reference": "what a forecast is compared with",
    "consensus": (
        "how the consensus is computed from the forecasts that stand at an instant, a participant's own included"
    ),
    "consensus_weights": "the weight of each forecast in the consensus",
    "sampling": "which instants of a question's period count",
    "day_minutes": "with sampling `day`: the offset of the days from UTC, in minutes east",
    "period": "the period that the sum over time is divided by",
    "clock": "the clock whose instants count",
    "scale": "the factor that a score is multiplied by",
    "total": "how the total of a contest is computed",
    "least_coverage": "with total `per_coverage` or `per_question`: the least divisor of the total, in questions",
    "take": "the number that prizes are proportional to; without a take nobody is paid",
    "rank_by": "the number that the board is sorted by",
    "least_prize": (
        "the least prize that is paid, in the currency; in an event 1e-6 of it. A participant who would get less is "
        "dropped, and the others share the money"
    ),
    "bots": "whether the forecasts of bots count among the peers and in the consensus",
    "scored_only_levels": "the levels of exclusion at which forecasts are scored without counting among the members",
    "scored_only_factor": "how a participant who is not a member is compared with n members",
    "score_consensus": (
        "whether the consensus has a row on the board, like `consensus` in `reference_rows`; the tables `brier` and "
        "`calibration` have such a row in any case"
    ),
    "best_of_entrant": "whether only the best submission of an entrant is ranked",
    "attested": "whether the table `admissions` has a row for each forecast, with what it may have known",
    "early_forecasts": "whether a forecast that was made before the opening stands from the opening on",
    "least_probability_ppm": (
        "the least probability of an outcome or an open end in a logarithm; a smaller one counts as this one; 1e-6"
    ),
    "least_density_ppm": (
        "the least density of a numeric bin in a logarithm, as `density_floor` says; 1e-6 of the uniform density"
    ),
    "open_end_ppm": "the probability that the uniform distribution gives to an open end; 1e-6",
    "consensus_of": "whose median the forecasts of a member are compared with",
    "least_prize_passes": "how takes below the least prize are dropped",
    "density_floor": "how `least_density_ppm` is applied",
    "greatest_probability_ppm": "the greatest probability in a logarithm; a greater one counts as this one; 1e-6",
    "greatest_density_ppm": (
        "the greatest density in a logarithm; a greater one counts as this one; 1e-6 of the uniform density"
    ),
    "trading": "the rules of trading, if participants trade",
    "coverage_period": "the period that a coverage is a share of",
    "day_edges": "with sampling `day`: which of the days count that the opening or the end of scored time cuts short",
    "least_questions": (
        "the least number of questions with a forecast, for a rank and a prize; a participant with fewer is shown "
        "without a rank, as `too_few_questions`. Trading is ranked without it"
    ),
    "least_share_ppm": (
        "the least share of the questions that count, for a rank and a prize, like `least_questions`; 1e-6. "
        "950000 is the rule of ForecastBench, where at most 5% may be missing"
    ),
    "replicates": (
        "how many times questions are resampled for the table `intervals`. (replicates + 1) x the share outside an "
        "interval on each side must be a whole number, so that its ends are replicates: with 1999 and 950000, the 50th "
        "and the 1950th, or further out if clusters are few"
    ),
    "late_minutes": (
        "with clock `claimed`: a forecast or withdrawal that is recorded more than so many minutes after the instant "
        "that it claims counts from its recording; by default none does: 10000000000 minutes are longer than any time"
    ),
    "imputation": (
        "the score that counts in a total for a participant without a forecast on a question; only with the totals "
        "`sum` and `mean`. A reference forecaster must be in `reference_rows`; where it has no score, nothing counts. "
        "An imputed score covers no time, and is no forecast for `least_questions` and `least_share_ppm`"
    ),
    "transform": (
        "what quantiles or samples, and the answer, are turned into before they are scored; only with the "
        "quantile_kernel `pinball`"
    ),
    "clusters": (
        "what the samples of the tables `intervals`, `marginal_ranks`, `resolution` and `pairwise` draw together, "
        "because what happens to one question may happen to all: an array with `group` or `category`, the questions "
        "with the same one; `tag:NAME`, those with the same value of a tag `NAME=VALUE`, or of a task id NAME of a "
        "hub, such as `tag:location`; or `question`, each question alone. A question without a group, or without the "
        'tag, is drawn alone. With two fields, such as `["tag:round", "tag:location"]`, the clusters of each are '
        "drawn, and a question is in a sample as often as its cluster by the one times its cluster by the other"
    ),
    "level_ppm": (
        "the share of the cases in which an interval is to hold what it is of; 1e-6. 950000 means 95%. With few "
        "clusters, more of the replicates are inside of it"
    ),
    "bot_level": (
        "the level at which bots are excluded. If a bot is also excluded by itself, the higher level counts: "
        "`no_prize`, then `no_rank`, then `hidden`. With `no_rank` as on Metaculus's leaderboards"
    ),
    "reference_rows": (
        "the reference forecasters that are scored and have a row on the board, without a rank. They count neither "
        "among the peers nor in the consensus. Their names are `[consensus]`, `[always-half]`, `[uniform]` and "
        "`[market]`, with more brackets if a participant has that name"
    ),
    "payouts": (
        "whether forecasts are scored on a question that is resolved to payouts, such as a market that paid 0.3 for "
        "yes; only with the kernels `brier`, `brier_sum`, `brier_mean` and `ordered_brier`"
    ),
    # Trading
    "starting_cash": "the cash that a participant is granted, once, in the currency; in an event 1e-6 of it",
    "least_bet": "the least bet, in the currency; a reply with a smaller one is malformed; in an event 1e-6 of it",
    "cap_divisor": (
        "the largest bet is cash / cap_divisor, rounded down. A reply is checked with the cash at its start, each "
        "leg with the cash after the legs before it"
    ),
    "least_percentage": "the least part of a position that one sale may sell, in percent; in an event 1e-6 of it",
    "legs": "whether one refused bet refuses all bets of a decision",
    "sum_capped": "whether all bets of a decision together may not exceed the largest bet either",
    "attempts": "the number of malformed replies after which the decision is HOLD by default",
    "stale_after_seconds": "the greatest age of a quote for a trade; an older mark is stale",
    "snapshot_seconds": "the time from one snapshot of a portfolio to the next",
    "period_days": "the length of a period in days, from the contest's start; 0 if a period is only a number",
    "cohorts": "when contests start",
    "deciding_cohorts": "the number of the newest contests of a series that still accept decisions; 0 for all",
    "recapitalisation": "whether cash may be deposited and withdrawn",
    "recorded_trades": "whether trades that happened elsewhere may be recorded, with `record_trade`",
    "short_sales": "whether such a trade may sell shares that are not held, so that the account owes them",
    "overdrafts": "whether such a trade may make the cash negative",
    "shares_against": (
        "whether shares against one of several outcomes can be held: a bet with the side `not NAME` buys them, and "
        "`record_trade` with `all_but` records them"
    ),
    "closed_marks": "the price at which positions in a closed question are valued until it is resolved",
    "replies": "how the text of a reply is read",
    "fee_rate_ppm": (
        "the rate of the fee of a trade, 1e-6; 0 for no fee. The fee is rate x shares x (price x (1 - price)) to the "
        "power of `fee_exponent`. A purchase costs it on top of the amount, a sale brings it less"
    ),
    "fee_exponent": "the exponent of price x (1 - price) in the fee",
    "fee_unit": "the unit to which a fee is rounded, in the currency; in an event 1e-6 of it",
    "fee_rounding": "how a fee is rounded",
    "fills": "the price at which shares are bought and sold",
    "marks": "the price at which open positions are valued",
    "depth": "what happens if a leg needs more shares than the quote has, of which it gives the number",
    "completed_by": "the participants whose decisions and open positions a contest waits for before it is complete",
}
VALUES: dict[str, str] = {
    "kernel.none": "the contest has no such questions",
    "reference.none": "nothing: a score is the value of the kernel",
    "reference.uniform": "the uniform distribution, which gives `open_end_ppm` to an open end",
    "reference.peers": (
        "the mean of the other members' kernels. A member scores nothing while no other member's forecast stands; "
        "a participant who is not a member is also compared with a single member, unless `scored_only_factor` is "
        "`members`"
    ),
    "reference.consensus": "the consensus, a participant's own forecast included",
    "reference.median_score": (
        "the median of the members' kernels, a participant's own included. With the kernel `brier_sum` and sampling "
        "`day`, a score is the accuracy score of Good Judgment Open"
    ),
    "reference.mean_score": (
        "the mean of the members' kernels, a participant's own included: what members earn adds up to 0 at every "
        "instant. Of n members, it is (n - 1) / n of a score against `peers`, and 0 for one who stands alone"
    ),
    "consensus.median": "the median of the outcome's probabilities",
    "consensus.community": (
        "the medians of the outcomes, normalised to one; for numeric questions the mean of the distributions"
    ),
    "consensus.mean": "the mean",
    "consensus.squeezed": (
        "like `community`, but for multiple choice 0.001 is taken off each median, and each outcome gets 0.001 "
        "and its share of the rest"
    ),
    "consensus_weights.equal": "every forecast has the same weight",
    "consensus_weights.recency": (
        "the i-th oldest of n forecasts has the weight e^(√i - √n); forecasts are sorted by when they were made, "
        "by the clock that counts, then by the participants' ids"
    ),
    "sampling.time": "every instant",
    "sampling.day": "the forecast that stands at the end of each day",
    "sampling.spot": "one instant: `spot_at`, else the reveal, else the close; or several: `spots`",
    "period.scheduled": "the scheduled period, so that a question that resolves early earns less",
    "period.actual": "the period until the answer was known",
    "period.covered": "the time during which the participant's forecasts stood",
    "clock.claimed": "a forecast counts from the instant that its command claims",
    "clock.recorded": "a forecast counts from the instant at which it was recorded, by the ledger's own clock",
    "scale.plain": "1",
    "scale.peer": "100; for numeric questions 50",
    "scale.peer_whole": "100",
    "scale.baseline": "100 / log K, where K is the number of outcomes; for numeric questions 50",
    "total.sum": "the weighted sum of the scores",
    "total.mean": "the weighted mean of the scores, over the questions that the participant forecast on",
    "total.per_coverage": (
        "the weighted sum of the scores, divided by the larger of `least_coverage` and the sum of the coverages"
    ),
    "total.per_question": (
        "the weighted sum of the scores, divided by the larger of `least_coverage` and the number of questions that "
        "the participant forecast on"
    ),
    "total.kind_means": (
        "100 times the sum of the means of each kind of question, where a missing forecast counts as the worst. "
        "With the kernel `error` this is 200 less twice (accuracy + accuracy - distance) x 50, as printed by the "
        "Autocast notebooks"
    ),
    "total.kind_means_third": "a third of `kind_means`, however many kinds there are",
    "take.none": "no take, and no prizes",
    "take.coverage_exp": "coverage x e^total",
    "take.coverage_exp2": "coverage x 2^total",
    "take.positive_square": "max(total, 0)²",
    "rank_by.take": "the take",
    "rank_by.total": "the total",
    "bots.members": "they count like the forecasts of other participants",
    "bots.scored_only": "they are scored, but do not count",
    "scored_only_factor.members": (
        "as if the participant were a member: times n / (n - 1), and only while forecasts of two or more members stand"
    ),
    "scored_only_factor.one": "with all n members, even if n is 1",
    "consensus_of.all": "the median of all members",
    "consensus_of.others": (
        "the median of the other members, for logarithms only; a member alone scores nothing. A participant who "
        "is not a member, and the consensus itself, are compared with the median of all members"
    ),
    "least_prize_passes.many": (
        "from the bottom up, equal takes together; the largest takes stay, unless the pool is below the least prize"
    ),
    "least_prize_passes.one": "all at once, without a second pass",
    "least_prize_passes.one_by_one": "from the bottom up, one by one, the last id first among equal takes",
    "density_floor.least": "a smaller density counts as the least density",
    "density_floor.added": "the least density is added to every bin, and taken from none",
    "coverage_period.scheduled": "the scheduled period",
    "coverage_period.actual": "the period until the answer was known",
    "day_edges.both": "the day of the opening, and the day on which scored time ends",
    "day_edges.opening": "the day of the opening",
    "day_edges.none": "neither: only full days",
    "bot_level.none": "bots are excluded like others, by `exclude_participant` only",
    "bot_level.no_prize": "ranked, not paid",
    "bot_level.no_rank": "shown without a rank, not paid",
    "bot_level.hidden": "not on the board",
    "reference_rows.consensus": "the consensus of the members, as `consensus` says",
    "reference_rows.always_half": "one half for yes, from the opening; only on binary questions",
    "reference_rows.uniform": (
        "the uniform distribution, from the opening; on a question without bins its quantiles within the range"
    ),
    "reference_rows.market": (
        "the last quote of each outcome that is known, from when it is known; only on questions with named outcomes. "
        "The prices of three or more outcomes are divided by their sum"
    ),
    "imputation.none": "none: such a question adds nothing to a sum, and is left out of a mean",
    "imputation.worst": "the worst score of the kernel; only with reference `none` and a loss that has one",
    "imputation.consensus": "the score of `[consensus]`",
    "imputation.always_half": "the score of `[always-half]`",
    "imputation.uniform": "the score of `[uniform]`",
    "imputation.market": "the score of `[market]`",
    "transform.none": "nothing: they are scored as they are",
    "transform.log_shifted": (
        "ln(x + 1), in 1e-12 nat, rounded half-even once, as in Bosse et al. (2023); on ranges that are closed below, "
        "at 0 or above. Scores then compare ratios: small places count as much as large ones"
    ),
    "transform.log": (
        "ln x, rounded like `log_shifted`; on ranges that are closed below, at one unit of their last decimal or above"
    ),
    "transform.log2": "log2 x, as `log`",
    "transform.log10": "log10 x, as `log`",
    "transform.sqrt": (
        "√x, rounded like `log_shifted`, and on the same ranges. Counts then spread alike in small and in large places"
    ),
    "payouts.unscored": "they are not: no outcome happened",
    "payouts.scored": (
        "they are, with the payout of each outcome for o, its 1 or 0; for a binary question that is (p - payout)², as "
        "in ForecastBench. The tables `brier` and `calibration` leave such questions out"
    ),
    "scored_only_levels.no_prize": "ranked, not paid",
    "scored_only_levels.no_rank": "shown without a rank, not paid",
    "scored_only_levels.hidden": "not on the board",
    "legs.independent": "each bet is carried out or refused independently",
    "legs.all_or_nothing": "all bets are carried out or none",
    "cohorts.weekly": "on a Sunday 00:00 UTC, one a week in each series",
    "cohorts.none": "at any instant",
    "closed_marks.prior": "the last quote before the close",
    "closed_marks.last": "the last quote",
    "completed_by.all": "all",
    "completed_by.shown": "all but those who are excluded as `hidden`",
    "fills.price": "the price of the quote",
    "fills.bid_ask": (
        "bought at the ask and sold at the bid. If the last quote has none for the outcome, the leg is refused: "
        "`no_ask` or `no_bid`"
    ),
    "marks.price": "the price of the quote, which is the mean of bid and ask if the command gives no other",
    "marks.bid": "the bid, at which the shares could be sold; the price of a quote that has no bid for the outcome",
    "depth.unlimited": "nothing: the sizes of a quote do not count",
    "depth.refuse": "the leg is refused: `not_enough_depth`",
    "depth.partial": "it is filled with the shares that the quote has left, and refused if there are none",
    "fee_rounding.up": "up, to a multiple of `fee_unit`",
    "fee_rounding.half_even": "to the nearest multiple of `fee_unit`, of two to the even one",
    "fee_rounding.down": "down, to a multiple of `fee_unit`",
    "fee_rounding.cash": (
        "up, until the change of cash, amount and fee together, is a multiple of `fee_unit`, as on Kalshi"
    ),
    "replies.strict": "the text is one JSON object",
    "replies.lenient": (
        "like Forecaster Arena's parser: the object may be in a code fence or in quotes, in an array, or after other "
        "text (what follows it is then ignored); a byte order mark, and the list that the action does not use, are "
        "ignored. If a reply begins with an object, any text after it, even a second object, makes it unreadable"
    ),
}


def value_meaning(field: str, value: str) -> str:
    """Return the meaning of a value of a field; the meaning of a kernel is in its row of KERNELS.

    >>> value_meaning("cdf_kernel", "none")
    'the contest has no such questions'
    """
    if not field.endswith("kernel") or value == "none":
        return VALUES[f"{field.removeprefix('cdf_').removeprefix('quantile_')}.{value}"]
    kernel = KERNELS[value]
    return f"{kernel.words}; {'lower' if kernel.lower_is_better else 'higher'} is better"


PRESET_COLUMNS = ["preset", "source", "differs"]
FIELD_COLUMNS = ["field", "value", "default", "meaning"]


def presets() -> Iterator[dict[str, Any]]:
    """Yield each preset: its name, its source, and, as JSON, the fields that differ from their defaults."""
    for name, rules in PRESETS.items():
        differs = json_text(own_fields(rules))
        yield dict(zip(PRESET_COLUMNS, (name, PRESET_SOURCES[name], differs), strict=True))


def fields_of(rules: RuleSet) -> Iterator[dict[str, Any]]:
    """Yield each field of a rule set: its value, its default, and its meaning; those of trading rules come last."""
    whole, default = written_fields(rules), written_fields(RuleSet(name=""))
    del whole["trading"], default["name"]
    yield from _rows("", whole, default)
    if rules.trading is not None:
        yield from _rows("trading.", written_fields(rules.trading), written_fields(Trading()))


def _rows(prefix: str, whole: Mapping[str, Any], default: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for field, value in whole.items():
        usual = _text(default[field]) if field in default else None
        yield dict(zip(FIELD_COLUMNS, (f"{prefix}{field}", _text(value), usual, RULES[field]), strict=True))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()
