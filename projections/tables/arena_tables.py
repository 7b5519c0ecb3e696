"""Builders of the tables of trading results: scored stakes, leaderboards, and all contests together."""

from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.column_values import Values, columns_of_rows, round_to_points
from forecast_ledger.projections.facts.accounts import FINE_PER_MICRO
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.trading import arena
from forecast_ledger.projections.trading.arena import Stake, TradingRecord
from forecast_ledger.projections.trading.implied_returns import implied_returns, mean_returns

_GROUP_KINDS = "count count count money points count points points points points points share text"  # from rank on


def bet_brier_values(analysis: Analysis) -> list[Values]:
    """One row for each purchase on a resolved question."""
    rows = []
    for stake in arena.resolved_stakes(analysis.facts, analysis.facts.books.trades):
        event, question = stake.trade.event, analysis.facts.questions[stake.trade.question]
        yes = [round_to_points(arena.yes_probability(share, event.outcome)) for share in (stake.confidence, stake.paid)]
        row = [event.contest, event.participant, stake.trade.position, question.question]
        row += [question.outcomes[event.outcome], round_to_points(stake.confidence)]
        row += yes if question.kind == "binary" else [None, None]
        rows.append([*row, *map(round_to_points, (stake.paid, stake.brier, stake.market))])
    return columns_of_rows(rows, "id id count id id share share share share points points")


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
        places = [worth[record.key] for record in ranked]
        scored = sorted(brier for record in ranked if (brier := record.brier) is not None)
        for record in board:
            level = level_of(record.key[1]) or ""
            by_profit, by_brier = bisect_left(places, worth[record.key]) + 1, _place(record.brier, scored)
            ranks = (None, None) if level == "no_rank" else (by_profit, by_brier)
            rows.append([contest, ranks[0], *_row(record, ranks[1]), level])
    kinds = "id count id id id money money money points text count points count points points share"
    return columns_of_rows(rows, f"{kinds} points share points count count text text")


def _place(brier: Fraction | None, scored: list[Fraction]) -> int | None:
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


def arena_overall_values(analysis: Analysis) -> list[Values]:
    """One row for each family and each release, over all trading contests."""
    records = [record for contest in analysis.traded for record in analysis.records.get(contest, [])]
    rows = [row for by in ("family", "release") for row in _grouped(analysis, records, by)]
    return columns_of_rows(rows, f"id id {_GROUP_KINDS}")


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
    return columns_of_rows(rows, f"id id id {_GROUP_KINDS}")


def _grouped(analysis: Analysis, records: list[TradingRecord], by: str) -> Iterator[list[Any]]:
    """Yield the row of each family, release or participant, ranked by profit in the least payable unit of all."""
    contests = analysis.facts.contests
    unit = min((contests[record.key[0]].opened.payable_unit for record in records), default=1)
    groups: dict[str, list[TradingRecord]] = {}
    for record in records:
        groups.setdefault(getattr(record.account.enrolled, by), []).append(record)
    groups.pop("", None)
    worth = {name: -arena.payable_units(_profit(group), unit) for name, group in groups.items()}
    places = sorted(worth.values())
    for name, group in groups.items():
        yield [by, name, bisect_left(places, worth[name]) + 1, *_group_columns(group)]


def _return_words(group: list[TradingRecord]) -> str:
    """Return the word for the return of several accounts; empty unless their net deposits are positive."""
    deposits = sum(record.account.deposits for record in group) * FINE_PER_MICRO
    return arena.return_words(Fraction(100 * _profit(group), deposits)) if deposits > 0 else ""


def _stake_weighted(stakes: list[Stake]) -> Fraction:
    """Return the mean Brier score, weighted by the amount of each purchase."""
    return Fraction(sum(stake.amount * stake.brier for stake in stakes), sum(stake.amount for stake in stakes))


def _profit(group: list[TradingRecord]) -> int:
    return sum(record.profit for record in group)


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


def implied_returns_values(analysis: Analysis) -> list[Values]:
    """One row for each forecast, contest by contest, on questions that have a quote."""
    rows: list[list[Any]] = []
    labels = analysis.facts.participant_codes.labels
    for contest in analysis.contests:
        for implied in implied_returns(analysis.facts, analysis.facts.contests[contest]):
            question, returns = analysis.facts.questions[implied.question], implied.returns
            row = [contest, question.question, labels[implied.participant], implied.forecast_at]
            if returns is None:
                rows.append([*row, *[None] * 11, implied.left_out])
                continue
            bought = returns.bought
            row += [implied.quoted_at, question.outcomes[bought], implied.chances[bought], implied.prices[bought]]
            rows.append([*row, *map(round_to_points, (*returns[1:], returns.alpha)), ""])
    kinds = "id id id instant instant text share share points points share points points points points text"
    return columns_of_rows(rows, kinds)


def mean_implied_returns_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of a contest who has a forecast on a question that has a quote."""
    rows: list[list[Any]] = []
    labels = analysis.facts.participant_codes.labels
    for contest in analysis.contests:
        every = implied_returns(analysis.facts, analysis.facts.contests[contest])
        for own in mean_returns(every):
            means = [None] * 6 if own.means is None else map(round_to_points, own.means)
            rows.append([contest, labels[own.participant], own.n, own.left_out, *means])
    return columns_of_rows(rows, "id id count count points points points points points points")
