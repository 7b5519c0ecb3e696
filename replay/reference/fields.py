"""The meaning of each field of commands and events, and an example of each command."""

from msgspec import Struct

# The key is the field's name if it means the same everywhere, else `type.name` of a command, an event or a part.
FIELDS: dict[str, str] = {
    # common fields
    "id": "chosen by the sender; a command that is sent again with the same id is recorded once, so a retry is safe",
    "at": "the instant that the command claims; by default the one at which the ledger records it",
    "question": "the id of a question",
    "contest": "the id of a contest",
    "participant": "the id of a participant",
    "reason": "the reason, for people",
    "by": "who asks for this, as the sender knows: a name, an id or an address; nobody checks it",
    "evidence": "what shows that this is right, one piece or several, at most 20",
    "correlation": (
        "an id of the sender for all that one request leads to; a retry may have another, and is the same command"
    ),
    "causation": "the id of what this follows from, such as a command or a message; a retry may have another",
    "Evidence.url": "where it can be read, an address with http or https, which is never opened",
    "Evidence.text": "what it says",
    "Evidence.sha256": "the SHA-256 of a copy that was kept, in hexadecimal digits",
    **{
        f"Provenance.{name}": f"{what}; left out if the command did not say"
        for name, what in (
            ("by", "who asked for the command"),
            ("reason", "the reason, unless it is a field of the event"),
            ("evidence", "what shows that it is right"),
            ("correlation", "the sender's id for all that one request leads to"),
            ("causation", "the id of what the command follows from"),
        )
    },
    "title": "a title, for people",
    "group": "the group that the question belongs to, such as a parent question; boards are also made by group",
    "category": "the category of the question; boards are also made by category",
    "tags": "further words about the question, at most 100",
    "url": "where the question is described; the address is never opened",
    "ordered": (
        "whether the outcomes of a multiple_choice question have an order, the one in which they are listed: the "
        "kernel `ordered_brier` scores a question with false as `brier_sum` does, and one that does not say as ordered"
    ),
    "attestation": "the declaration of the forecast's maker about its sources and its model",
    "currency": "the currency of the pool and of cash, for people",
    "period": (
        "the number of the period, from 1, counted from the contest's start in steps of the rule set's `period_days`"
    ),
    "attempt": "the number of the attempt, from 1",
    "leg": "the number of the leg, from 1, among the bets and sales of a decision in their order",
    "outcome": "the index of the outcome among the question's outcomes, from 0",
    "position": "the number of the participant's position in the contest, from 1",
    "amount": "the amount of money, 1e-6 of the currency",
    "shares": "the number of shares, 1e-6",
    "cost": "the cost of these shares, 1e-6 of the currency",
    "proceeds": "the proceeds of the sale, 1e-6 of the currency",
    "price": "the price of one share, 1e-9",
    "quote": "the log position of the quote",
    "fee": "the fee of the trade, 1e-6 of the currency, on top of the amount or out of the proceeds",
    "trades_voided.fee": "the part of the amount that gives back fees, 1e-6 of the currency",
    "prompt": "the prompt: in a command its text, which is stored once; in an event its SHA-256",
    "response": "the reply: in a command its text, which is stored once; in an event its SHA-256",
    "reasoning": "the reasoning, for people; a decision needs one",
    "action": "`BET`, `SELL` or `HOLD`",
    "rules": "a preset's name, or a whole rule set as an object",
    "open_lower": "whether the answer can lie below `lower`",
    "open_upper": "whether the answer can lie above `upper`",
    # commands
    "Range.lower": "the lower end",
    "Range.upper": "the upper end, above `lower`",
    "Range.bins": "the number of bins, by default 200; not together with `levels` or `samples`",
    "Range.zero_point": (
        "makes the range logarithmic: bins are equal in the logarithm of the distance from this number, which "
        "must lie outside the range"
    ),
    "Range.levels": (
        "the levels of the quantiles, increasing, at most 10,000; the level 0.5 alone asks for a point forecast"
    ),
    "Range.decimals": "the number of decimals of quantiles or samples, by default 6; only together with these",
    "Range.samples": "the number of samples of a forecast; a single one is a point forecast, such as a mean",
    "open_question.kind": (
        "`binary` has the outcomes `yes` and `no`, `multiple_choice` has `outcomes`; `numeric`, `date` and `discrete` "
        "have a `range`"
    ),
    "open_question.outcomes": (
        "the outcomes of a multiple_choice question, two or more, in their order if they have one"
    ),
    "open_question.range": "the range of a numeric, date or discrete question",
    "open_question.opens_at": "the first instant at which forecasts count",
    "open_question.closes_at": (
        "the first instant at which no forecast counts any more, at most a century after `opens_at`"
    ),
    "open_question.reveals_at": "when the community forecast is shown, which ends the hidden period",
    "open_question.source": "who asked the question, or the text that its answer is taken from, for people",
    "reschedule_question.opens_at": "the new opening; by default the one that the question has",
    "reschedule_question.closes_at": (
        "the new close, which also ends an early close; by default the question closes when it would anyway"
    ),
    "reschedule_question.reveals_at": "when the community forecast is shown; by default as before",
    "submit_forecast.probability": "the probability of yes, for a binary question",
    "submit_forecast.probabilities": "an object from each outcome to its probability, for a multiple_choice question",
    "submit_forecast.cdf": "the cumulative probability at each of the bins + 1 edges, for a numeric question with bins",
    "submit_forecast.quantiles": "the value at each level, for a numeric question with levels",
    "submit_forecast.samples": (
        "equally likely values, in any order, for a numeric question with samples; recorded in increasing order"
    ),
    "submit_forecast.points": "for a question with bins, a few quantiles and the method that makes the cdf of them",
    "submit_forecast.normalized": (
        "the rule that makes probabilities of numbers that need not sum to 1: `by_sum` divides each by their sum"
    ),
    "Points.levels": "the levels of the quantiles, increasing, at most 1,000",
    "Points.quantiles": "the value at each level; the answer is at most the quantile of level 0.1 with probability 0.1",
    "Points.method": "how the cdf goes between the points",
    "submit_forecast.until": "when the forecast ends by itself, unless it is replaced or withdrawn before; after `at`",
    "rename_participant.to": "the id from here on; if it is in use, both are one participant",
    "participant_renamed.to": "the id as whose all of it counts from here on",
    "version": "the least version of this program that may write, as Python packages write it in normal form",
    "amend_question.title": "the new title; left out if it stays",
    "amend_question.tags": "the new tags, in place of all; left out if they stay",
    "amend_question.url": "the new address; left out if it stays",
    "amend_question.source": "the new source; left out if it stays",
    "amend_question.contest": "with `weight`: a contest that has the question",
    "amend_question.weight": "with `contest`: the new factor of the question's score in the total; 0 leaves it out",
    **{
        f"question_amended.{name}": f"the new {what}; null if it stays"
        for name, what in (("title", "title"), ("tags", "tags"), ("url", "address"), ("source", "source"))
    },
    "question_amended.contest": "the contest in which the question has another weight; empty if it has none",
    "question_amended.weight": "the new weight in that contest, 1e-6; null if no weight is given",
    "restate_forecasts.forecasts": (
        "what counts instead, each from its own `at`, in order of time; empty if the participant forecast nothing there"
    ),
    "RestatedForecast.at": "the instant from which the forecast counts, after that of the one before it",
    **{
        f"RestatedForecast.{name}": "as in `submit_forecast`"
        for name in ("probability", "probabilities", "cdf", "quantiles", "samples", "points", "normalized", "until")
    },
    "change_outcomes.add": "names of new outcomes, none of which the question has or had",
    "change_outcomes.remove": "names of outcomes to remove; not the last one that the question was opened with",
    "change_outcomes.grace_ends_at": "with `add`: when forecasts that do not have the new outcomes end",
    "resolve_question.outcome": (
        "the outcome that came true; beyond an open end of bins, `below_lower_bound` or `above_upper_bound`"
    ),
    "resolve_question.value": "the answer to a numeric, date or discrete question",
    "resolve_question.known_at": (
        "when the answer became known, by default the earlier of `at` and the close; scored time ends then, "
        "and the rest of the scheduled period counts as 0"
    ),
    "resolve_question.payouts": (
        "the payout of a share of each outcome, if no single outcome came true; they sum to one. Fractions such as "
        '`"1/3"` are exact'
    ),
    "cancel_market.policy": (
        "`refund_cost` gives back what open positions cost, `void_trades` undoes every trade in the question, "
        "`refund_stake` gives back what was paid for a position less what was received, if that is above 0"
    ),
    "open_contest.pool": "the money for prizes, in the contest's currency",
    "open_contest.payable_unit": "prizes and the pool are whole multiples of it; by default 0.01",
    "open_contest.starts_at": (
        "with trading: the start, by default `at`; a weekly contest starts on the latest Sunday 00:00 UTC that is "
        "not later"
    ),
    "open_contest.series": (
        "with trading: the id of the series of weekly contests that the contest belongs to; one starts each week"
    ),
    "add_question.weight": (
        "the factor of the question's score in the contest's total, by default 1; with 0 the question is scored, but "
        "the contest's boards do not count it"
    ),
    "add_question.hidden_coverage_weight": (
        "the part of the question's coverage that its hidden period makes up; by default the hidden period "
        "counts like the rest"
    ),
    "add_question.spot_at": (
        "the instant that counts if the rule set counts only one; by default the reveal, else the close"
    ),
    "add_question.spots": (
        "instead of `spot_at`: several instants that count, in increasing order, 1 to 365; the score is the weighted "
        "mean over all of them, 0 at those without a forecast, and the coverage is the share of the weight with one"
    ),
    "Spot.at": "the instant that counts; in an event µs",
    "Spot.weight": "how many times it counts, a whole number; by default 1",
    "enrol_participant.entrant": "who made the submission, if not the participant",
    "enrol_participant.bot": "whether the participant is a bot",
    "enrol_participant.family": "with trading: the competitor that the participant represents in several contests",
    "enrol_participant.release": "with trading: the exact competitor, such as the version of a model",
    "exclude_participant.level": (
        "`no_prize`: ranked, but not paid; `no_rank`: shown without a rank and not paid; `hidden`: left off the "
        "board, though every other table still has the participant"
    ),
    "Prices.prices": (
        "an object from each outcome to the price of its share; for a binary question only `yes`, as no is "
        "1 - yes; an outcome that is left out has the mean of its bid and ask, or no price"
    ),
    "bids": (
        "an object from each outcome to the price at which a share can be sold; for a binary question only `yes`: the "
        "ask of no is 1 - it; at most the ask"
    ),
    "asks": (
        "an object from each outcome to the price at which a share can be bought; for a binary question only `yes`: "
        "the bid of no is 1 - it"
    ),
    "bid_sizes": (
        "an object from each outcome to the number of shares that can be sold at the bid, or at the price; for a "
        "binary question only `yes`; an outcome that is left out is not limited"
    ),
    "ask_sizes": "the same for shares that can be bought at the ask, or at the price",
    "quote.source": "the source of the prices",
    "quote.prices": (
        "an object from each outcome to the price of its share; for a binary question only `yes`, as no is "
        "1 - yes; an outcome that is left out has the mean of its bid and ask, or no price"
    ),
    "quote.quotes": "the prices of several questions, each of which occurs once",
    "quote.quoted_at": "the instant of the prices, not after `at`",
    "quote.skip_bad": (
        "whether the good ones of `quotes` are recorded if others are bad: those are refused by name, in the receipt "
        "and in the event; if none is good, the command is refused"
    ),
    "Bet.market_id": "the id of the question",
    "Bet.side": "the outcome, or `not` and an outcome; in an event as it was written in the command",
    "Bet.amount": "the amount of money, in the contest's currency; in an event 1e-6 of it",
    "Sale.position_id": "the number of the position",
    "Sale.percentage": (
        "the percentage of the position's shares to sell; 100 closes the position; in an event 1e-6 of a percent"
    ),
    "record_decision.bets": "the bets of a `BET`",
    "record_decision.sells": "the sales of a `SELL`",
    "call": "the call of the model: tokens, cost, latency, settings, and the markets shown",
    "record_failed_call.error": "what went wrong, such as the provider's message",
    "call_failed.error": "what went wrong, such as the provider's message",
    "ModelCall.input_tokens": "the number of tokens of the input",
    "ModelCall.output_tokens": "the number of tokens of the output",
    "ModelCall.cost": "the cost of the call; in an event 1e-6 of the currency",
    "ModelCall.latency_ms": "the time that the call took, in milliseconds",
    "ModelCall.settings": "the settings of the model by name, such as its temperature; in an event as texts",
    "ModelCall.shown": (
        "the ids of the markets that the model was shown; in an event the digest of the text that lists them"
    ),
    "deposit_cash.amount": "the amount of money, in the contest's currency",
    "record_trade.outcome": "the outcome whose shares are traded",
    "record_trade.all_but": (
        "instead: a share of every outcome but this one, which is what `no` of it pays; or, with `shares_against`, "
        "a share against it"
    ),
    "record_trade.action": "`buy` or `sell`",
    "record_trade.shares": "the number of shares, of each outcome that is traded",
    "record_trade.amount": (
        "the amount of money that was paid or received for all of them, without the fee, in the contest's currency"
    ),
    "record_trade.fee": "the fee that was paid beside the amount",
    "withdraw_cash.amount": "the amount of money, in the contest's currency; at most the cash of the account",
    # events
    "Recorded.position": "the log position of the row: 1, 2, 3 … without gaps",
    "Recorded.recorded_at": "µs since the epoch by the ledger's own clock, never decreasing",
    "Recorded.imported": "true if recorded_at is a time of receipt that was imported, not of the ledger's own clock; "
    "left out otherwise. Such rows come before all others",
    "Recorded.command_id": "the id of the command that the event follows from",
    "Recorded.normal": "true if `command` is the digest of the command's normal form, with values as recorded; "
    "left out in rows from before, which come before all others",
    "Recorded.provenance": "where the command came from: who asked for it, why, and its evidence, in each of its rows; "
    "left out if the command did not say",
    "Recorded.command": "the digest of that command: the first 128 bits of a SHA-256",
    "Recorded.previous": "the digest of the row before; 64 zeros in the first row",
    "Recorded.event": "the event",
    "Recorded.digest": "the SHA-256 of the row's bytes up to the comma before this field",
    "NumericRange.lower": "the lower end, as decimal text",
    "NumericRange.upper": "the upper end, as decimal text",
    "NumericRange.bins": "the number of bins; 0 if the question asks for quantiles or samples",
    "NumericRange.zero_point": "the zero point of a logarithmic range, as decimal text",
    "NumericRange.levels": "the levels of the quantiles, 1e-9 each, increasing",
    "NumericRange.decimals": "the number of decimals of quantiles and samples: their unit is 10^-decimals",
    "NumericRange.samples": "the number of samples of a forecast; 0 if the question asks for another form",
    "Attestation.newest_source": "when the newest source was published, at the precision known",
    "Attestation.model_released": "when the model was released, at the precision known",
    "Attestation.training_cutoff": "when the model's training data ends, at the precision known",
    "Attestation.restricted_sources": "whether sources were used that the contest restricts",
    "Attestation.restricted_list": "which version of the list of restricted sources was checked",
    "Attestation.note": "a note, for people",
    "question_opened.kind": "`binary`, `multiple_choice`, `numeric`, `date` or `discrete`",
    "question_opened.outcomes": "the outcomes in their order; empty if the question has a range",
    "question_opened.range": "the range; of a date question in seconds since the epoch",
    "question_opened.opens_at": "the first instant at which forecasts count",
    "question_opened.closes_at": "the first instant at which no forecast counts any more",
    "question_opened.reveals_at": "when the community forecast is shown",
    "question_opened.source": "who asked the question, or the text that its answer is taken from; empty if not given",
    "question_rescheduled.opens_at": "the new opening; null if it stays",
    "question_rescheduled.closes_at": "the new close, which also ends an early close; null if the close stays",
    "question_rescheduled.reveals_at": "when the community forecast is shown; null if that stays",
    "forecast_made.probabilities": (
        "1e-9 each, in the order of the question's outcomes, summing to 1e9; empty if the question is numeric"
    ),
    "forecast_made.cdf": "1e-10 each, at the bins + 1 edges",
    "forecast_made.quantiles": "one for each level, in the question's unit 10^-decimals",
    "forecast_made.samples": "the samples, in increasing order, in the question's unit 10^-decimals",
    "forecast_made.points": "the points that the cdf was made from; null if the cdf was given",
    "forecast_made.normalized": "the shares that the probabilities were made from; null if these were given",
    "StatedShares.shares": "1e-9 each, in the order of the question's outcomes",
    "StatedShares.rule": "how the probabilities are made; `by_sum` divides each share by their sum",
    "StatedPoints.levels": "1e-9 each",
    "StatedPoints.quantiles": "decimal text, of a date question an instant, one for each level",
    "StatedPoints.method": "how the cdf goes between the points",
    "forecasts_retracted.restated": "how many forecasts count instead; their events follow",
    "forecast_made.until": "when the forecast ends by itself; null if it stands until it is replaced or withdrawn",
    "question_resolved.outcome": "the index of the outcome that came true; -1 if there are payouts",
    "question_resolved.value": (
        "the answer on a range: decimal text, of a date question an instant, or the name of the outcome beyond an end"
    ),
    "question_resolved.known_at": "when the answer became known",
    "question_resolved.payouts": (
        "the payout of a share of each outcome, in units of which `payout_unit` make 1, if no single outcome came true"
    ),
    "payout_unit": "how many units of payouts make 1, if they are not whole in 1e-9; 0 for 1e9",
    "question_annulled.policy": (
        "`refund_cost` gives back what open positions cost, `void_trades` undoes every trade in the question, "
        "`refund_stake` gives back what was paid for a position less what was received, if that is above 0"
    ),
    "contest_opened.rules": "the whole rule set, so that no later change of a preset changes the contest",
    "contest_opened.pool": "the money for prizes, 1e-6 of the currency",
    "contest_opened.payable_unit": "the unit that prizes are multiples of, 1e-6 of the currency",
    "contest_opened.starts_at": "with trading: the start",
    "contest_opened.series": "with trading: the series of weekly contests",
    "outcomes_changed.added": "the new outcomes, which come after all that the question ever had",
    "outcomes_changed.removed": "the outcomes that the question has no more",
    "outcomes_changed.grace_ends_at": "when forecasts that do not have the new outcomes end; null if none are added",
    "question_added.weight": "the factor of the question's score in the total, 1e-6; 0 if the boards do not count it",
    "question_added.hidden_coverage_weight": (
        "the part of the coverage that the hidden period makes up, 1e-6; null if it counts like the rest"
    ),
    "question_added.spot_at": (
        "the instant that counts if the rule set counts only one; null for the reveal, else the close"
    ),
    "question_added.spots": "several instants that count instead, in increasing order, each with its weight",
    "participant_enrolled.entrant": "who made the submission; empty if the participant did",
    "participant_enrolled.bot": "whether the participant is a bot",
    "participant_enrolled.family": "the competitor that the participant represents in several contests",
    "participant_enrolled.release": "what exactly takes part, such as the version of a model",
    "participant_excluded.level": "`no_prize`, `no_rank` or `hidden`",
    "Quote.prices": "the price of a share of each outcome, 1e-9, in the order of the outcomes; null if there is none",
    "Quote.bids": "the price at which a share of each outcome can be sold, likewise; empty if the quote has none",
    "Quote.asks": "the price at which a share of each outcome can be bought, likewise; empty if the quote has none",
    "Quote.bid_sizes": "the number of shares that can be sold of each outcome, 1e-6; empty if the quote does not say",
    "Quote.ask_sizes": "the number of shares that can be bought of each outcome, likewise",
    "shares_bought.requested": "the amount of the bet, 1e-6 of the currency, if it was filled in part; else 0",
    "shares_sold.requested": "the number of shares to sell, 1e-6, if the sale was filled in part; else 0",
    "prices_quoted.source": "the source of the prices",
    "prices_quoted.quoted_at": "the instant of the prices",
    "prices_quoted.quotes": "the prices of each question",
    "prices_quoted.refused": "the prices that are not recorded, because they are bad, if the command has `skip_bad`",
    "RefusedQuote.place": "the index of the question among the `quotes` of the command",
    "RefusedQuote.question": "the id of the question, as it was written in the command",
    "RefusedQuote.code": "why its prices are refused: a code of `help refusals`",
    "RefusedQuote.field": "which of its fields is refused, with the outcome",
    "RefusedQuote.given": "its prices as they were given, as JSON",
    "text_kept.digest": "the SHA-256 of the text in UTF-8, by which decisions refer to it",
    "text_kept.text": "a prompt, a reply, or the ids of the markets shown, one a line",
    "Bet.question": "the id of the question, as it was written in the command",
    "Sale.position": "the number of the position, as it was written in the command",
    "decision_recorded.bets": "the bets as they were requested",
    "decision_recorded.sells": "the sales as they were requested",
    "decision_recorded.executed": "how many of its legs were carried out; their events follow",
    "decision_malformed.fault": "why the reply is not a decision: one of the faults that `help trading` lists",
    "shares_bought.cash": "the cash before, 1e-6 of the currency",
    "shares_bought.amount": "the amount paid, 1e-6 of the currency",
    "shares_bought.confidence": "the amount divided by the largest bet that was allowed, 1e-9",
    "shares_sold.cost": "the cost of the shares sold, 1e-6 of the currency",
    "trade_recorded.shares": "the shares bought, or below 0 sold, 1e-6",
    "trade_recorded.amount": (
        "the amount paid or received, without the fee, 1e-6 of the currency; of several outcomes each has an equal part"
    ),
    "trade_recorded.cost": "what the cost of the position changes by, at average cost, 1e-6 of the currency",
    "against": "whether the shares are against the outcome, and pay if it does not come true",
    "trade_recorded.parts": "of how many outcomes the trade is; their events follow that of the first",
    "leg_refused.code": "why the leg was not carried out: one of the codes that `help trading` lists",
    "position_settled.payout": "the payout of one share, in units of which `payout_unit` make 1",
    "trades_voided.amount": (
        "the amount given back, 1e-6 of the currency: the amount paid less the amount received; may be negative, "
        "unless the policy is `refund_stake`"
    ),
    "settlement_reversed.reverses": "the log position of the event that is reversed",
    "settlement_reversed.amount": "the amount taken from the cash, 1e-6 of the currency",
}


def meaning(kind: type[Struct], field: str) -> str:
    """Return the meaning of a field of a command, of an event or of a part of one.

    >>> from forecast_ledger.ledger.model.commands import CloseQuestion
    >>> meaning(CloseQuestion, "question")
    'the id of a question'
    """
    qualified = f"{name(kind)}.{field}"
    if qualified not in FIELDS and field not in FIELDS:
        raise KeyError(f"{qualified} needs a row in FIELDS of replay/reference/fields.py")
    return FIELDS.get(qualified) or FIELDS[field]


def name(kind: type[Struct]) -> str:
    """Return the type of a command or an event without its version, or the class name of a part.

    >>> from forecast_ledger.ledger.model.events import ForecastMade, Quote
    >>> name(ForecastMade), name(Quote)
    ('forecast_made', 'Quote')
    """
    tag = kind.__struct_config__.tag
    return str(tag).partition(".")[0] if tag else kind.__name__


_AT = '"at": "2026-03-02T00:00:00Z"'
_NINE = '"at": "2026-03-02T09:00:00Z"'
_OPEN = '"opens_at": "2026-03-02T00:00:00Z", "closes_at": "2026-03-06T00:00:00Z"'
_TEXT = f"""
{{"type": "open_question", {_AT}, "question": "rain", "kind": "binary", {_OPEN}}}
{{"type": "open_question", {_AT}, "question": "sky", "kind": "multiple_choice", "outcomes": ["blue", "grey"], {_OPEN}}}
{{"type": "open_question", {_AT}, "question": "heat", "kind": "numeric", "range": {{"lower": -10, "upper": 40, \
"bins": 5, "open_upper": true}}, {_OPEN}}}
{{"type": "open_question", {_AT}, "question": "rainfall", "kind": "numeric", "range": {{"lower": 0, "upper": 50, \
"levels": [0.1, 0.5, 0.9], "open_upper": true}}, {_OPEN}}}
{{"type": "open_question", {_AT}, "question": "climate", "kind": "multiple_choice", \
"outcomes": ["rain", "snow", "other"], {_OPEN}}}
{{"type": "submit_forecast", {_NINE}, "question": "rain", "participant": "ada", "probability": 0.8}}
{{"type": "submit_forecast", {_NINE}, "question": "rain", "participant": "bo", "probability": "0.35"}}
{{"type": "submit_forecast", {_NINE}, "question": "sky", "participant": "ada", \
"probabilities": {{"blue": 0.3, "grey": 0.7}}}}
{{"type": "submit_forecast", {_NINE}, "question": "heat", "participant": "ada", \
"cdf": [0, 0.2, 0.5, 0.8, 0.95, 0.99]}}
{{"type": "submit_forecast", {_NINE}, "question": "heat", "participant": "bo", \
"points": {{"levels": [0.1, 0.5, 0.9], "quantiles": [8, 14.5, 22], "method": "linear"}}}}
{{"type": "submit_forecast", {_NINE}, "question": "rainfall", "participant": "ada", "quantiles": [1, 4, 11.5], \
"attestation": {{"training_cutoff": "2025-06", "restricted_sources": false}}}}
{{"type": "open_question", {_AT}, "question": "snowfall", "kind": "numeric", "range": {{"lower": 0, "upper": 50, \
"samples": 4, "open_upper": true}}, {_OPEN}}}
{{"type": "submit_forecast", {_NINE}, "question": "snowfall", "participant": "ada", "samples": [0, 3.5, 0, 12]}}
{{"type": "change_outcomes", "at": "2026-03-02T12:00:00Z", "question": "climate", "add": ["hail"], \
"grace_ends_at": "2026-03-03T12:00:00Z"}}
{{"type": "withdraw_forecast", "at": "2026-03-03T00:00:00Z", "question": "heat", "participant": "ada"}}
{{"type": "open_contest", {_AT}, "contest": "week", "rules": "peer-2025-06", "pool": 500, "currency": "USD"}}
{{"type": "open_contest", {_AT}, "contest": "own-rules", "rules": {{"name": "brier and interval score", \
"kernel": "brier", "quantile_kernel": "pinball", "period": "covered", "total": "mean"}}}}
{{"type": "add_question", {_AT}, "contest": "week", "question": "rain", "weight": 2}}
{{"type": "enrol_participant", {_AT}, "contest": "week", "participant": "copybot", "bot": true}}
{{"type": "exclude_participant", {_AT}, "contest": "week", "participant": "bo", "level": "no_prize", \
"reason": "an organizer"}}
{{"type": "close_question", "at": "2026-03-05T00:00:00Z", "question": "heat"}}
{{"type": "reschedule_question", "at": "2026-03-05T12:00:00Z", "question": "rainfall", \
"closes_at": "2026-03-06T06:00:00Z", "reason": "the gauge is read at six"}}
{{"type": "amend_question", "at": "2026-03-05T12:00:00Z", "question": "rain", "contest": "week", "weight": 1.5, \
"title": "Rain in Bergen?"}}
{{"type": "resolve_question", "at": "2026-03-06T12:00:00Z", "question": "rain", "outcome": "yes"}}
{{"type": "resolve_question", "at": "2026-03-06T12:00:00Z", "question": "rainfall", "value": 6.2, "by": "ada", \
"reason": "the gauge was read at noon", "evidence": {{"url": "https://example.org/gauges/8", "text": "6.2 mm"}}}}
{{"type": "annul_question", "at": "2026-03-06T12:00:00Z", "question": "heat", "reason": "the sensor failed"}}
{{"type": "restate_forecasts", "at": "2026-03-06T12:30:00Z", "question": "rain", "participant": "bo", \
"forecasts": [{{"at": "2026-03-02T09:00:00Z", "probability": 0.53}}], "reason": "the form had two digits exchanged"}}
{{"type": "rename_participant", "at": "2026-03-06T12:45:00Z", "participant": "bo", "to": "bo.larsen", \
"reason": "a new user name"}}
{{"type": "revoke_resolution", "at": "2026-03-06T13:00:00Z", "question": "rainfall", "reason": "a wrong gauge"}}
{{"type": "finalize_contest", "at": "2026-03-07T00:00:00Z", "contest": "week"}}
{{"type": "pay_prizes", "at": "2026-03-07T01:00:00Z", "contest": "week"}}
{{"type": "open_contest", {_AT}, "contest": "cohort-1", "rules": {{"name": "arena, open to deposits and trades", \
"kernel": "brier", "period": "covered", "total": "mean", "trading": {{"recapitalisation": true, \
"recorded_trades": true}}}}}}
{{"type": "add_question", {_AT}, "contest": "cohort-1", "question": "sky"}}
{{"type": "enrol_participant", {_AT}, "contest": "cohort-1", "participant": "ada", "family": "ada", \
"release": "ada-2"}}
{{"type": "deposit_cash", {_AT}, "contest": "cohort-1", "participant": "ada", "amount": 250, "reason": "a grant"}}
{{"type": "record_trade", "at": "2026-03-02T08:00:00Z", "contest": "cohort-1", "participant": "ada", \
"question": "sky", "outcome": "grey", "action": "buy", "shares": 12.5, "amount": 6.25, "fee": 0.02}}
{{"type": "quote", {_NINE}, "question": "sky", "prices": {{"blue": 0.4, "grey": 0.6}}, "source": "exchange", \
"quoted_at": "2026-03-02T09:00:00Z"}}
{{"type": "record_decision", "at": "2026-03-02T09:05:00Z", "contest": "cohort-1", "participant": "ada", \
"period": 1, "action": "BET", "bets": [{{"market_id": "sky", "side": "blue", "amount": 500}}], \
"reasoning": "The wind has turned."}}
{{"type": "record_failed_call", "at": "2026-03-08T00:04:00Z", "contest": "cohort-1", "participant": "ada", \
"period": 2, "error": "the provider answered 503", "call": {{"latency_ms": 40000}}}}
{{"type": "record_decision", "at": "2026-03-08T00:05:00Z", "contest": "cohort-1", "participant": "ada", \
"period": 2, "response": "{{\\"action\\": \\"HOLD\\", \\"reasoning\\": \\"Nothing new.\\"}}", \
"call": {{"input_tokens": 5200, "output_tokens": 310, "cost": 0.0187, "latency_ms": 8250, \
"settings": {{"temperature": 0, "max_tokens": 4000}}, "shown": ["sky"]}}}}
{{"type": "withdraw_cash", "at": "2026-03-08T01:00:00Z", "contest": "cohort-1", "participant": "ada", \
"amount": "99.50", "reason": "a fee"}}
{{"type": "resolve_question", "at": "2026-03-09T12:00:00Z", "question": "sky", \
"payouts": {{"blue": 0.5, "grey": 0.5}}}}
{{"type": "open_question", {_AT}, "question": "wind", "kind": "binary", {_OPEN}}}
{{"type": "cancel_market", "at": "2026-03-04T00:00:00Z", "question": "wind", "policy": "void_trades", \
"reason": "asked twice"}}
{{"type": "require_version", "at": "2026-03-09T13:00:00Z", "version": "0.2.0"}}
"""
LINES = tuple(f'{{"id": "{number}", {line[1:]}' for number, line in enumerate(_TEXT.strip().splitlines(), start=1))
