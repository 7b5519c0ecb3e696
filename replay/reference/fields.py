"""What the fields of commands and events mean, in one table, from which help texts, pages and schemas are made."""

from msgspec import Struct

# A field by its name, where it means the same everywhere, or by its command, event or part and its name.
FIELDS: dict[str, str] = {
    # what many have
    "id": "chosen by the sender; a command that is sent again under its id counts once, so a retry is safe",
    "at": "the instant that the command claims",
    "question": "the id of a question",
    "contest": "the id of a contest",
    "participant": "the id of a participant",
    "reason": "why, for people",
    "title": "a title, for people",
    "attestation": "what the forecast's maker declares about its sources and its model",
    "currency": "of the pool and of cash, for people",
    "source": "where the prices are from",
    "period": (
        "the number of the period, from 1, counted from the contest's start in steps of the rule set's `period_days`"
    ),
    "attempt": "the number of the attempt, from 1",
    "leg": "the number of the leg, from 1: the bets and sales of a decision in their order",
    "outcome": "the index of the outcome among the question's outcomes, from 0",
    "position": "the number of the position, from 1, of the participant in the contest",
    "amount": "1e-6 of the currency",
    "shares": "how many shares, 1e-6",
    "cost": "what these shares cost, 1e-6 of the currency",
    "proceeds": "what they bring, 1e-6 of the currency",
    "price": "of one share, 1e-9",
    "quote": "the log position of the quote",
    "prompt": "what was asked: in a command the text, which is kept once; in an event its SHA-256",
    "response": "what was answered: in a command the text, which is kept once; in an event its SHA-256",
    "reasoning": "why, for people; a decision needs one",
    "action": "`BET`, `SELL` or `HOLD`",
    "rules": "a preset's name, or a whole rule set as an object",
    "open_lower": "whether the answer can lie below `lower`",
    "open_upper": "whether the answer can lie above `upper`",
    # commands
    "Range.lower": "the lower end",
    "Range.upper": "the upper end, above `lower`",
    "Range.bins": "how many bins there are, 200 unless given; not together with `levels`",
    "Range.zero_point": (
        "makes the range logarithmic: bins are equal in the logarithm of the distance from this number, which "
        "lies outside of the range"
    ),
    "Range.levels": "the levels of the quantiles, increasing, 10,000 at most; the level 0.5 alone asks for a point",
    "Range.decimals": "quantiles are rounded to so many decimals, 6 unless given; only together with `levels`",
    "open_question.kind": (
        "`binary` has the outcomes `yes` and `no`, `multiple_choice` has `outcomes`, `numeric` has a `range`"
    ),
    "open_question.outcomes": "of a multiple_choice question: two or more, in their order if they have one",
    "open_question.range": "of a numeric question",
    "open_question.opens_at": "the first instant at which forecasts count",
    "open_question.closes_at": "the first instant at which none counts any more, at most a century after `opens_at`",
    "open_question.reveals_at": "when the community forecast is shown, which ends the hidden period",
    "submit_forecast.probability": "of a binary question: the probability of yes",
    "submit_forecast.probabilities": "of a multiple_choice question: an object from each outcome to its probability",
    "submit_forecast.cdf": "of a numeric question with bins: the cumulative probability at each of the bins + 1 edges",
    "submit_forecast.quantiles": "of a numeric question with levels: the value at each level",
    "resolve_question.outcome": "the outcome that came true",
    "resolve_question.value": "of a numeric question: the answer",
    "resolve_question.known_at": (
        "when the answer became known, unless given the earlier of `at` and the close; scored time ends then, "
        "and the rest of the scheduled period counts as 0"
    ),
    "resolve_question.payouts": "what a share of each outcome pays where no one outcome came true; together one",
    "cancel_market.policy": (
        "`refund_cost` gives back what open positions cost, `void_trades` undoes every trade in the question"
    ),
    "open_contest.pool": "what there is to be won, in the contest's currency",
    "open_contest.payable_unit": "prizes are whole multiples of it, and so is the pool; 0.01 unless given",
    "open_contest.starts_at": (
        "where one trades: the start, unless given `at`; a weekly contest starts on the latest Sunday 00:00 UTC "
        "that is not later"
    ),
    "open_contest.series": (
        "where one trades: the id of the series of weekly contests that it belongs to, of which one starts a week"
    ),
    "add_question.weight": "what the question's score is multiplied by in the contest's total; 1 unless given",
    "add_question.hidden_coverage_weight": (
        "the part of the question's coverage that its hidden period makes up; unless given, the hidden period "
        "counts like the rest"
    ),
    "add_question.spot_at": (
        "the instant that counts where the rule set counts only one; unless given the reveal, else the close"
    ),
    "enrol_participant.entrant": "whose submission it is, if not the participant's own",
    "enrol_participant.bot": "whether the participant is a bot",
    "enrol_participant.family": "where one trades: the competitor that the participant stands for over contests",
    "enrol_participant.release": "where one trades: what exactly takes part, such as a model's version",
    "exclude_participant.level": (
        "`no_prize` ranks without paying, `no_rank` shows without a rank and without paying, `hidden` leaves off "
        "the board, though every other table still has the participant"
    ),
    "Prices.prices": (
        "of a share of each outcome, of a binary question of `yes` alone, as no is 1 - yes; an outcome that is "
        "left out has no price"
    ),
    "quote.prices": (
        "of a share of each outcome, of a binary question of `yes` alone, as no is 1 - yes; an outcome that is "
        "left out has no price"
    ),
    "quote.quotes": "the prices of many questions, each of which occurs once",
    "quote.quoted_at": "the instant of the prices, not after `at`",
    "Bet.market_id": "the question",
    "Bet.side": "the outcome, in an event as it was written",
    "Bet.amount": "money, in the contest's currency; in an event 1e-6 of it",
    "Sale.position_id": "the number of the position",
    "Sale.percentage": "of the shares that the position now has, where 100 closes it; in an event 1e-6 of a percent",
    "record_decision.bets": "of a `BET`",
    "record_decision.sells": "of a `SELL`",
    "deposit_cash.amount": "in the contest's currency",
    "withdraw_cash.amount": "in the contest's currency, at most the cash there is",
    # events
    "Recorded.position": "the row's place in the log: 1, 2, 3 … without a gap",
    "Recorded.recorded_at": "µs since the epoch by the ledger's own clock, never decreasing",
    "Recorded.command_id": "the id of the command that the event follows from",
    "Recorded.command": "a digest of what that command said: the first 128 bits of a SHA-256",
    "Recorded.previous": "the digest of the row before; 64 zeros in the first row",
    "Recorded.event": "the event",
    "Recorded.digest": "the SHA-256 of the row's bytes up to the comma before this field",
    "NumericRange.lower": "the lower end, as decimal text",
    "NumericRange.upper": "the upper end, as decimal text",
    "NumericRange.bins": "how many bins there are; 0 if quantiles are asked for",
    "NumericRange.zero_point": "of a logarithmic range, as decimal text",
    "NumericRange.levels": "of the quantiles, 1e-9 each, increasing",
    "NumericRange.decimals": "quantiles are counted in 10^-decimals",
    "Attestation.newest_source": "when the newest source was published, at the precision known",
    "Attestation.model_released": "when the model was released, at the precision known",
    "Attestation.training_cutoff": "when the model's training data ends, at the precision known",
    "Attestation.restricted_sources": "whether sources were used that the contest restricts",
    "Attestation.restricted_list": "which version of the list of restricted sources was checked",
    "Attestation.note": "anything else",
    "question_opened.kind": "`binary`, `multiple_choice` or `numeric`",
    "question_opened.outcomes": "in their order; empty where the question is numeric",
    "question_opened.range": "of a numeric question",
    "question_opened.opens_at": "the first instant at which forecasts count",
    "question_opened.closes_at": "the first instant at which none counts any more",
    "question_opened.reveals_at": "when the community forecast is shown",
    "forecast_made.probabilities": (
        "1e-9 each, in the order of the question's outcomes, summing to 1e9; empty where the question is numeric"
    ),
    "forecast_made.cdf": "1e-10 each, at the bins + 1 edges",
    "forecast_made.quantiles": "one a level, in 10^-decimals of the question",
    "question_resolved.outcome": "the index of the outcome that came true; -1 if there are payouts",
    "question_resolved.value": "of a numeric question: the answer, as decimal text",
    "question_resolved.known_at": "when the answer became known",
    "question_resolved.payouts": "of a share of each outcome, 1e-9, where no one outcome came true",
    "question_annulled.policy": (
        "`refund_cost` gives back what open positions cost, `void_trades` undoes every trade in the question"
    ),
    "contest_opened.rules": "the whole rule set, so that no later change of a preset changes the contest",
    "contest_opened.pool": "1e-6 of the currency",
    "contest_opened.payable_unit": "1e-6 of the currency",
    "contest_opened.starts_at": "where one trades: the start",
    "contest_opened.series": "where one trades: the series of weekly contests",
    "question_added.weight": "1e-6",
    "question_added.hidden_coverage_weight": "1e-6; null for plain coverage",
    "question_added.spot_at": (
        "the instant that counts where the rule set counts only one; null for the reveal, else the close"
    ),
    "participant_enrolled.entrant": "whose submission it is; empty for the participant's own",
    "participant_enrolled.bot": "whether the participant is a bot",
    "participant_enrolled.family": "the competitor that the participant stands for over contests",
    "participant_enrolled.release": "what exactly takes part",
    "participant_excluded.level": "`no_prize`, `no_rank` or `hidden`",
    "Quote.prices": "of a share of each outcome, 1e-9, in their order; null where there is none",
    "prices_quoted.quoted_at": "the instant of the prices",
    "prices_quoted.quotes": "one a question",
    "text_kept.digest": "the SHA-256 of the text in UTF-8, by which decisions name it",
    "text_kept.text": "a prompt or a reply",
    "Bet.question": "the question, as it was written",
    "Sale.position": "the number of the position, as it was written",
    "decision_recorded.bets": "as they were asked for",
    "decision_recorded.sells": "as they were asked for",
    "decision_recorded.executed": "how many of its legs, which follow, were carried out",
    "decision_malformed.fault": "why the reply is no decision: a fault, as `help trading` lists them",
    "shares_bought.cash": "the cash before, 1e-6 of the currency",
    "shares_bought.amount": "what was paid, 1e-6 of the currency",
    "shares_bought.confidence": "the amount over the largest bet that was allowed, 1e-9",
    "shares_sold.cost": "what the shares sold had cost, 1e-6 of the currency",
    "leg_refused.code": "why the leg was not carried out: a code, as `help trading` lists them",
    "position_settled.payout": "what one share pays, 1e-9",
    "trades_voided.amount": (
        "what goes back, 1e-6 of the currency: what was paid less what was received; may be negative"
    ),
    "settlement_reversed.reverses": "the log position of the event that is taken back",
    "settlement_reversed.amount": "what leaves the cash, 1e-6 of the currency",
}


def meaning(kind: type[Struct], field: str) -> str:
    """What a field of a command, of an event or of a part of one means.

    >>> from forecast_ledger.ledger.model.commands import CloseQuestion
    >>> meaning(CloseQuestion, "question")
    'the id of a question'
    """
    return FIELDS.get(f"{name(kind)}.{field}") or FIELDS[field]


def name(kind: type[Struct]) -> str:
    """What a command or an event is called, without its version; of a part, the name of its class.

    >>> from forecast_ledger.ledger.model.events import ForecastMade, Quote
    >>> name(ForecastMade), name(Quote)
    ('forecast_made', 'Quote')
    """
    tag = kind.__struct_config__.tag
    return str(tag).partition(".")[0] if tag else kind.__name__
