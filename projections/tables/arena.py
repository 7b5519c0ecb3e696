"""The tables of trading results: scored stakes, leaderboards, all contests together, and implied returns."""

from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.book import share_name, share_of
from forecast_ledger.projections.core.columns import Values, columns_of_rows, round_to_points
from forecast_ledger.projections.facts.accounts import FINE_PER_MICRO
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.schemas import ANSWERED, Projection, schema
from forecast_ledger.projections.trading import arena
from forecast_ledger.projections.trading.arena import Stake, TradingRecord

_IMPLIED_RETURNS = schema("""
    what the forecasts of the Brier scores would have earned at the last prices known when they were made

    contest*
    question*
    participant*
    forecast_at   instant  when the forecast was made
    quoted_at     instant  when the oldest of the prices was quoted
    bought        text     the outcome with the largest probability / price, of equals the first
    probability   share    the forecast's probability of that outcome
    price         share    its price
    all_in        points   return of a stake on the outcome with the largest probability / price
    proportional  points   return of a stake divided between outcomes as the probabilities are
    kelly_stake   share    (probability - price) / (1 - price), at least 0: Kelly's share of the money
    kelly         points   return, on all the money, of Kelly's stake on the bought outcome
    brier         points   mean over outcomes of (probability - o)²
    market_brier  points   mean over outcomes of (price - o)²
    alpha         points   market_brier - brier: above 0, the forecast beats the prices
    left_out      text     why there is no return: no_quote, stale_quote, no_price or outcomes_changed
""")


def implied_returns_values(analysis: Analysis) -> list[Values]:
    """One row for each forecast, contest by contest, on questions that have a quote."""
    rows: list[list[Any]] = []
    labels = analysis.facts.participant_codes.labels
    for contest in analysis.contests:
        for implied in analysis.implied_returns(contest):
            question, returns = analysis.facts.questions[implied.question], implied.returns
            row = [contest, question.question, labels[implied.participant], implied.forecast_at]
            if returns is None:
                rows.append([*row, *[None] * 11, implied.left_out])
                continue
            bought = returns.bought
            row += [implied.quoted_at, question.outcomes[bought], implied.chances[bought], implied.prices[bought]]
            rows.append([*row, *map(round_to_points, (*returns[1:], returns.alpha)), ""])
    return columns_of_rows(rows, _IMPLIED_RETURNS.columns)


_MEAN_IMPLIED_RETURNS = schema("""
    the means of implied returns by participant, over the questions of a contest that have a quote

    contest*
    participant*
    n             count   number of forecasts with returns
    left_out      count   number of forecasts without
    all_in        points  return of a stake on the outcome with the largest probability / price
    proportional  points  return of a stake divided between outcomes as the probabilities are
    kelly         points  return, on all the money, of Kelly's stake on the bought outcome
    brier         points  mean over outcomes of (probability - o)²
    market_brier  points  mean over outcomes of (price - o)²
    alpha         points  market_brier - brier: above 0, the forecast beats the prices
""")


def mean_implied_returns_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of a contest who has a forecast on a question that has a quote."""
    rows: list[list[Any]] = []
    labels = analysis.facts.participant_codes.labels
    for contest in analysis.contests:
        for returns in analysis.mean_returns(contest):
            means = [None] * 6 if returns.means is None else map(round_to_points, returns.means)
            rows.append([contest, labels[returns.participant], returns.n, returns.left_out, *means])
    return columns_of_rows(rows, _MEAN_IMPLIED_RETURNS.columns)


_BET_BRIER = schema("""
    the Brier score of each purchase on a resolved question, even if the shares were sold later

    contest*
    participant*   id      the trader
    log_position*  count   log position of the event
    question
    outcome        id      the outcome
    confidence     share   amount of the bet / largest bet allowed at that time
    f_yes          share   implied probability of yes; binary questions only
    o_yes          share   payout of a share of yes
    side_won       share   payout of a share of the outcome traded
    brier          points  (confidence - side_won)², which is (f_yes - o_yes)²
    market_brier   points  (price - side_won)²
""")


def bet_brier_values(analysis: Analysis) -> list[Values]:
    """One row for each purchase on a resolved question."""
    rows = []
    for stake in arena.resolved_stakes(analysis.facts, analysis.facts.books.trades):
        event, question = stake.trade.event, analysis.facts.questions[stake.trade.question]
        yes = [round_to_points(arena.yes_probability(share, event.outcome)) for share in (stake.confidence, stake.paid)]
        row = [event.contest, event.participant, stake.trade.position, question.question]
        row += [share_name(share_of(event), question.outcomes), round_to_points(stake.confidence)]
        row += yes if question.kind == "binary" else [None, None]
        rows.append([*row, *map(round_to_points, (stake.paid, stake.brier, stake.market))])
    return columns_of_rows(rows, _BET_BRIER.columns)


_ARENA_LEADERBOARD = schema("""
    the leaderboard of each trading contest, largest profit first

    contest*
    rank                     count   rank by profit, rounded to the contest's payable unit: 1, 2, 2, 4; empty if
                                     excluded from the ranking
    participant*             id      the trader
    family                   id      the competitor that the participant stands for across contests
    release                  id      the exact version of the competitor
    total                    money   cash + value of the open positions
    profit                   money   total - net deposits
    fees                     money   fees paid, less those given back
    return_percent           points  100 x profit / net deposits
    interpretation           text    the return in words; empty unless the net deposits are positive
    n                        count   number of purchases on resolved questions
    brier                    points  mean Brier score of these purchases
    brier_rank               count   rank by Brier score, lowest first
    skill_against_even_odds  points  1 - brier / 0.25
    skill_against_market     points  1 - brier / mean Brier score of the purchase prices
    win_rate                 share   purchases whose outcome happened / n
    turnover                 points  (amounts bought + sold) / starting cash; empty if accounts start with nothing and
                                     may owe cash
    drawdown                 share   largest fall from a peak / the peak; deposits and withdrawals do not count
    sharpe_ratio             points  mean return of the ended positions / its deviation; empty if undefined
    decided                  count   number of decisions taken
    defaulted                count   number of decisions that are HOLD because no reply was valid
    state                    text    active, debt or ruined
    excluded                 text    why the participant has no rank or prize: no_prize or no_rank
""")


def arena_leaderboard_values(analysis: Analysis) -> list[Values]:
    """One row for each account that is not hidden, contest by contest, largest profit first."""
    rows: list[list[Any]] = []
    for contest in analysis.traded:
        level_of = analysis.facts.contests[contest].level_of
        unit = analysis.facts.contests[contest].opened.payable_unit
        shown = [record for record in analysis.records.get(contest, []) if level_of(record.key[1]) != "hidden"]
        worth = {record.key: -arena.payable_units(record.profit, unit) for record in shown}
        board = sorted(shown, key=lambda record: (worth[record.key], record.key))
        ranked = [record for record in board if level_of(record.key[1]) != "no_rank"]
        worths = [worth[record.key] for record in ranked]
        scored = sorted(brier for record in ranked if (brier := record.brier) is not None)
        for record in board:
            level = level_of(record.key[1]) or ""
            by_profit, by_brier = bisect_left(worths, worth[record.key]) + 1, _rank(record.brier, scored)
            ranks = (None, None) if level == "no_rank" else (by_profit, by_brier)
            rows.append([contest, ranks[0], *_row(record, ranks[1]), level])
    return columns_of_rows(rows, _ARENA_LEADERBOARD.columns)


def _rank(brier: Fraction | None, scored: list[Fraction]) -> int | None:
    """Return the rank of a Brier score among sorted scores; None without a score."""
    return None if brier is None else bisect_left(scored, brier) + 1


def _row(record: TradingRecord, by_brier: int | None) -> list[Any]:
    account = record.account
    deposits = account.deposits * FINE_PER_MICRO
    return [
        record.key[1],
        account.enrolled.family,
        account.enrolled.release,
        half_even(record.profit + deposits, FINE_PER_MICRO),
        half_even(record.profit, FINE_PER_MICRO),
        account.fees,
        _percent(record.profit, account.deposits),
        _return_words([record]),
        *record.scores[:2],
        by_brier,
        *record.scores[2:],
        None if record.turnover is None else round_to_points(record.turnover),
        record.drawdown,
        record.sharpe_ratio,
        record.decided,
        record.defaulted,
        record.state,
    ]


def _percent(profit: int, deposits: int) -> int | None:
    """Return a profit, 1e-15, in percent of deposits, 1e-6; None unless the deposits are positive."""
    return round_to_points(Fraction(100 * profit, deposits * FINE_PER_MICRO)) if deposits > 0 else None


_OF_GROUP = """\
    contests                 count   number of contests it took part in
    participants             count   number of its accounts
    profit                   money   profit of all its accounts
    return_percent           points  100 x profit / net deposits of all its accounts
    n                        count   number of purchases on resolved questions
    pooled_brier             points  mean Brier score of these purchases
    mean_of_contest_means    points  mean of the contests' mean Brier scores
    stake_weighted_brier     points  mean Brier score of these purchases, weighted by the amount paid
    skill_against_even_odds  points  1 - brier / 0.25
    skill_against_market     points  1 - brier / mean Brier score of the purchase prices
    win_rate                 share   purchases whose outcome happened / n
    interpretation           text    the return in words; empty unless the net deposits are positive
"""
_ARENA_OVERALL = schema(f"""
    results of families and releases over all trading contests

    by*                      id      family or release
    name*                    id      name of the family or release
    rank                     count   rank by profit, rounded to the least payable unit, among families or releases
{_OF_GROUP}""")


def arena_overall_values(analysis: Analysis) -> list[Values]:
    """One row for each family and each release, over all trading contests."""
    records = [record for contest in analysis.traded for record in analysis.records.get(contest, [])]
    rows = [row for by in ("family", "release") for row in _grouped(analysis, records, by)]
    return columns_of_rows(rows, _ARENA_OVERALL.columns)


_ARENA_SERIES = schema(f"""
    results in each series of trading contests, without hidden participants

    series*                  id      the series; empty for the contests without one
    by*                      id      family, release or participant
    name*                    id      name of the family, release or participant
    rank                     count   rank by profit in the series, rounded to its least payable unit, among families,
                                     releases or participants
{_OF_GROUP}""")


def arena_series_values(analysis: Analysis) -> list[Values]:
    """One row for each family, release and participant in each series of contests, without hidden participants."""
    by_series: dict[str, list[TradingRecord]] = {}
    for name in analysis.traded:
        contest = analysis.facts.contests[name]
        shown = (each for each in analysis.records.get(name, []) if contest.levels.get(each.key[1]) != "hidden")
        by_series.setdefault(contest.opened.series, []).extend(shown)
    rows = [
        [series, *row]
        for series, records in by_series.items()
        for by in ("family", "release", "participant")
        for row in _grouped(analysis, records, by)
    ]
    return columns_of_rows(rows, _ARENA_SERIES.columns)


def _grouped(analysis: Analysis, records: list[TradingRecord], by: str) -> Iterator[list[Any]]:
    """Yield the row of each family, release or participant, ranked by profit in the least payable unit of all."""
    contests = analysis.facts.contests
    unit = min((contests[record.key[0]].opened.payable_unit for record in records), default=1)
    groups: dict[str, list[TradingRecord]] = {}
    for record in records:
        groups.setdefault(getattr(record.account.enrolled, by), []).append(record)
    groups.pop("", None)
    worth = {name: -arena.payable_units(_profit(group), unit) for name, group in groups.items()}
    worths = sorted(worth.values())
    for name, group in groups.items():
        yield [by, name, bisect_left(worths, worth[name]) + 1, *_group_columns(group)]


def _group_columns(group: list[TradingRecord]) -> list[Any]:
    """Return the columns of several accounts; the mean of contest means leaves out contests without a score."""
    pooled = [stake for record in group for stake in record.stakes]
    n, brier, *others = arena.stake_scores(pooled)
    by_contest: dict[str, list[Fraction]] = {}
    for record in group:
        by_contest.setdefault(record.key[0], []).extend(stake.brier for stake in record.stakes)
    means = [mean for scores in by_contest.values() if (mean := arena.mean_of(scores)) is not None]
    mean_of_means = arena.mean_of(means)
    return [
        len(by_contest),
        len(group),
        half_even(_profit(group), FINE_PER_MICRO),
        _percent(_profit(group), sum(record.account.deposits for record in group)),
        n,
        brier,
        None if mean_of_means is None else round_to_points(mean_of_means),
        None if not pooled else round_to_points(_stake_weighted(pooled)),
        *others,
        _return_words(group),
    ]


def _return_words(group: list[TradingRecord]) -> str:
    """Return the word for the return of several accounts; empty unless their net deposits are positive."""
    deposits = sum(record.account.deposits for record in group) * FINE_PER_MICRO
    return arena.return_words(Fraction(100 * _profit(group), deposits)) if deposits > 0 else ""


def _stake_weighted(stakes: list[Stake]) -> Fraction:
    """Return the mean Brier score, weighted by the amount of each purchase."""
    return Fraction(sum(stake.amount * stake.brier for stake in stakes), sum(stake.amount for stake in stakes))


def _profit(group: list[TradingRecord]) -> int:
    return sum(record.profit for record in group)


MARKET: dict[str, Projection] = {
    "implied_returns": Projection(
        1, _IMPLIED_RETURNS, implied_returns_values, reads=(*ANSWERED, "quotes"), on_request=True
    ),
    "mean_implied_returns": Projection(
        1, _MEAN_IMPLIED_RETURNS, mean_implied_returns_values, reads=(*ANSWERED, "quotes"), on_request=True
    ),
}


ARENA: dict[str, Projection] = {
    "bet_brier": Projection(
        1, _BET_BRIER, bet_brier_values, reads=("own_account", "resolutions"), division="account_entries"
    ),
    "arena_leaderboard": Projection(
        5,
        _ARENA_LEADERBOARD,
        arena_leaderboard_values,
        reads=("accounts", "quotes", "questions", "resolutions", "contests", "clock"),
        division="trading_boards",
        as_built=True,
    ),
    "arena_overall": Projection(
        3,
        _ARENA_OVERALL,
        arena_overall_values,
        reads=("accounts", "quotes", "questions", "resolutions", "contests"),
        division="trading_overall",
    ),
    "arena_series": Projection(
        2,
        _ARENA_SERIES,
        arena_series_values,
        reads=("accounts", "quotes", "questions", "resolutions", "contests"),
        division="trading_overall",
    ),
}
