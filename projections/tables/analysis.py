"""The results that tables are built from; each is computed from one set of facts on first use."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards import leaderboard, prizes, totals
from forecast_ledger.projections.boards.brier import ContestSample
from forecast_ledger.projections.boards.contest_groups import (
    ContestSums,
    SampledGroup,
    ScoredGroup,
    SummedGroup,
    SummedSamples,
    contests_by_rules,
    sample_group,
    score_group,
    sum_group,
)
from forecast_ledger.projections.boards.prizes import Prize, Shares
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.columns import Values
from forecast_ledger.projections.facts.accounts import AccountKey
from forecast_ledger.projections.facts.columns import Facts, Forecasts, Intervals, intervals
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.facts.outcomes import as_counted
from forecast_ledger.projections.scores import score_terms
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.difficulty import DesignPart, design_parts
from forecast_ledger.projections.studies.intervals import Interval, board_rows
from forecast_ledger.projections.studies.intervals import intervals as board_intervals
from forecast_ledger.projections.studies.rank_sets import (
    NO_SETS,
    RankSets,
    Resolution,
    board_rank_sets,
    compared_rows,
    resolution,
)
from forecast_ledger.projections.studies.refits import AdjustedInterval, adjusted_intervals
from forecast_ledger.projections.studies.seeds import scored_digest, seed_for
from forecast_ledger.projections.trading import arena, portfolios
from forecast_ledger.projections.trading.account_histories import ALL, Selection
from forecast_ledger.projections.trading.mark_prices import Marks


@dataclass(slots=True)
class CachedResults:
    """Results that are already computed: of contests by id, of all contests, and columns of tables by name."""

    tallies: dict[str, totals.Tally] = field(default_factory=dict)
    sums: dict[str, ContestSums] = field(default_factory=dict)
    samples: list[SummedSamples] = field(default_factory=list)  # of Brier scores; those of all contests, if any
    columns: dict[str, list[Values]] = field(default_factory=dict)
    questions: dict[tuple[str, ...], Questions] = field(default_factory=dict)  # by all contests of a rule set
    standings: dict[str, leaderboard.Standings] = field(default_factory=dict)
    participant: str | None = None  # the only one whose rows are wanted of the table `leaderboard`, if not None

    def copy(self) -> "CachedResults":
        """Return the same results, to which others can be added apart."""
        return replace(self, tallies={**self.tallies}, sums={**self.sums})


_Analysis = TypeVar("_Analysis", bound="Analysis")
_Result = TypeVar("_Result")


def per_contest(compute: Callable[[_Analysis, str], _Result]) -> Callable[[_Analysis, str], _Result]:
    """Make a function of an analysis and a contest compute its result once for each contest."""

    @wraps(compute)
    def call(analysis: _Analysis, contest: str) -> _Result:
        """Return the result that is known, or that is now computed."""
        key = (compute.__name__, contest)
        if key not in analysis.known:
            analysis.known[key] = compute(analysis, contest)
        result: _Result = analysis.known[key]
        return result

    return call


@checked()
class Analysis:
    """The results of one set of facts: scores, leaderboards, prizes, trading results; each is computed once."""

    @checked()
    def __init__(self, facts: Facts, chunk: int = score_terms.CHUNK, cached: CachedResults | None = None) -> None:
        """chunk: about how many forecasts are scored at a time; it changes memory and speed, never a result.

        cached: results that need not be computed again.
        """
        self.facts = facts
        self.chunk = chunk
        self.cached = CachedResults() if cached is None else cached
        self.known: dict[tuple[str, str], Any] = {}  # what `per_contest` keeps, by function and contest
        self._scored_alone: dict[str, ScoredGroup] = {}
        self._samples: dict[str, ContestSample] = {}
        self._boards: dict[str, leaderboard.Boards] = {}
        self._adjusted_intervals: dict[tuple[str, int], list[AdjustedInterval]] = {}
        self._shares: dict[str, Shares] = {}
        self._mean_returns: dict[str, list[arena.MeanReturns]] = {}

    @cached_property
    def scored_groups(self) -> list[ScoredGroup]:
        """The scores of all contests; contests with the same rule set are scored together."""
        alone = self._scored_alone
        return [
            alone[names[0]] if len(names) == 1 and names[0] in alone else score_group(self.facts, names, self.chunk)
            for names in self.by_rules
        ]

    def summed_groups(self) -> list[SummedGroup]:
        """Return the sums of scores of all contests; of the scores themselves, if a table has needed them."""
        if "scored_groups" in vars(self):
            return [group.summed() for group in self.scored_groups]
        known = self.cached.questions
        return [sum_group(self.facts, names, self.chunk, known.get(tuple(names))) for names in self.by_rules]

    @per_contest
    def scored(self, contest: str) -> ContestScores:
        """Return the scores of a contest."""
        group = self._scored_group(contest)
        return group.of(group.names.index(contest))

    def tally(self, contest: str) -> totals.Tally:
        """Return the totals of a contest's scores."""
        if contest not in self.cached.tallies:
            self.cached.tallies = self._contest_sums(contest).tallies() | self.cached.tallies
        return self.cached.tallies[contest]

    def _contest_sums(self, contest: str) -> ContestSums:
        """Return the sums of scores of a contest, and of others with its rule set."""
        if contest not in self.cached.sums:
            group = self._scored_group(contest)
            self.cached.sums |= dict.fromkeys(group.names, group.sums(self.facts))
        return self.cached.sums[contest]

    def _scored_group(self, contest: str) -> ScoredGroup:
        """Return the scores of a contest, and of those with its rule set if these have been scored with it."""
        groups: list[ScoredGroup] = vars(self).get("scored_groups", [])
        for group in groups:
            if contest in group.names:
                return group
        if contest not in self._scored_alone:
            self._scored_alone[contest] = score_group(self.facts, [contest], self.chunk)
        return self._scored_alone[contest]

    def score_all(self) -> None:
        """Score all contests together, unless all their sums are cached."""
        cached = self.cached
        if not cached.tallies.keys() | cached.sums.keys() | cached.standings.keys() >= self.facts.contests.keys():
            self.scored_groups  # noqa: B018 - a property that is computed once

    def boards(self, contest: str) -> leaderboard.Boards:
        """Return the leaderboards of a contest and of others with its rule set."""
        if contest not in self._boards:
            tallies = self.cached.tallies
            if contest in self.cached.standings:
                standings = self.cached.standings[contest]
                names = [*standings.names]
            elif contest in tallies:
                names = self._without_boards(name for name in self._rule_groups[contest] if name in tallies)
                contests = [self.facts.contests[name] for name in names]
                standings = leaderboard.standings_of(self.facts, names, contests, [tallies[name] for name in names])
            else:
                sums = self._contest_sums(contest)
                names = self._without_boards(name for name in sums.names if name not in tallies)
                standings = sums.standings().of(names)
            self._boards |= dict.fromkeys(names, leaderboard.boards(self.facts, standings))
        return self._boards[contest]

    def _without_boards(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self._boards]

    @cached_property
    def _rule_groups(self) -> dict[str, list[str]]:
        """The contests with the rule set of each contest."""
        return {name: names for names in self.by_rules for name in names}

    @per_contest
    def board(self, contest: str) -> list[leaderboard.BoardRow]:
        """Return the leaderboard of a contest, best first."""
        boards = self.boards(contest)
        return boards.rows_of(boards.names.index(contest))

    def shares(self, contest: str) -> Shares:
        """Return what the rows of the leaderboards of a contest, and of others with its rule set, get."""
        if contest not in self._shares:
            boards = self.boards(contest)
            self._shares |= dict.fromkeys(boards.names, prizes.divide_pools(boards))
        return self._shares[contest]

    @per_contest
    def prizes(self, contest: str) -> list[Prize]:
        """Return the prizes of a contest, by participant."""
        boards = self.boards(contest)
        return self.shares(contest).prizes(boards, boards.names.index(contest))

    @per_contest
    def scored_digest(self, contest: str) -> str:
        """Return the digest of what a contest scores, from which all its draws follow."""
        return scored_digest(self.facts.contests[contest].opened.rules, self.scored(contest))

    def seed(self, contest: str, table: str) -> bytes:
        """Return the seed of a contest's draws for a table."""
        return seed_for(self.scored_digest(contest), table)

    @per_contest
    def intervals(self, contest: str) -> list[Interval]:
        """Return the intervals of a contest's leaderboard."""
        board, opened = self.board(contest), self.facts.contests[contest]
        board_row, seed = board_rows(self.facts, board), self.seed(contest, "intervals")
        return board_intervals(opened, self.scored(contest), board, board_row, seed)

    @per_contest
    def rank_sets(self, contest: str) -> RankSets:
        """Return the sets of ranks of a contest's leaderboard, which turn with the seed of its intervals."""
        board, scored = self.board(contest), self.scored(contest)
        if not board or not (scored.questions.weight > 0).any():
            return NO_SETS
        board_row, seed = board_rows(self.facts, board), self.seed(contest, "intervals")
        return board_rank_sets(self.facts.contests[contest], scored, board, board_row, seed)

    def resolution(self, contest: str) -> Resolution:
        """Return the resolution of a contest's leaderboard."""
        board, scored, seed = self.board(contest), self.scored(contest), self.seed(contest, "intervals")
        if not board or not (scored.questions.weight > 0).any():
            return Resolution(0, [])
        known, opened = self.known.get(("rank_sets", contest)), self.facts.contests[contest]
        compared = compared_rows(opened, scored, board, board_rows(self.facts, board), seed)
        critical = None if known is None else known.critical
        return resolution(compared.parts, compared.flips, opened.opened.rules.level_ppm, critical)

    def brier_sample(self, contest: str) -> ContestSample:
        """Return the sample that a contest's Brier aggregates are computed from."""
        if contest not in self._samples:
            self._samples |= sample_group(self.facts, [contest], self.chunk).samples()
        return self._samples[contest]

    def sample_all(self) -> None:
        """Compute the Brier samples of all contests."""
        for group in self.sampled_groups:
            self._samples |= group.samples()

    @cached_property
    def sampled_groups(self) -> list[SampledGroup]:
        """The Brier samples of all contests; contests with the same rule set are processed together."""
        return [sample_group(self.facts, names, self.chunk) for names in self.by_rules]

    @cached_property
    def summed_samples(self) -> list[SummedSamples]:
        """The sums of the Brier samples of all contests."""
        return self.cached.samples or [group.summed_once() for group in self.sampled_groups]

    @cached_property
    def brier_counts(self) -> list[list[Values]]:
        """What the Brier aggregates of all contests are made of: the columns of each of `summed_samples`."""
        return [group.counts() for group in self.summed_samples]

    @cached_property
    def design_parts(self) -> list[DesignPart]:
        """The difficulty of questions and adjusted scores. Raises Refused: a fit would take too long."""
        return design_parts(self.facts, self.scored_groups)

    @per_contest
    def contest_parts(self, contest: str) -> list[DesignPart]:
        """Return those of `design_parts` that are parts of a contest's design. Raises Refused, as they do."""
        group = ScoredGroup([contest], [self.facts.contests[contest]], *self.scored(contest))
        return design_parts(self.facts, [group])

    def adjusted_intervals(self, part: DesignPart) -> list[AdjustedInterval]:
        """Return the intervals of those who are fitted in a part of a contest's design, in its order."""
        key = (part.name, part.number)
        if key not in self._adjusted_intervals:
            fitted = [each.participant for each in part.participants if not each.excluded]
            rows = {who: number for number, who in enumerate(fitted)}
            row_of = int64_array([rows.get(label, -1) for label in totals.score_labels(self.facts)])
            scored, rules = self.scored(part.name), self.facts.contests[part.name].opened.rules
            in_part = np.isin(scored.questions.code, [each.question for each in part.questions])
            seed = self.seed(part.name, "adjusted_intervals")
            self._adjusted_intervals[key] = adjusted_intervals(rules, scored, row_of, in_part, seed)
        return self._adjusted_intervals[key]

    def snapshots(self, contest: str, selection: Selection = ALL) -> portfolios.Snapshots:
        """Return the portfolios of a trading contest over time; not cached, because all may not fit in memory."""
        return portfolios.snapshots(self.facts, self.marks, contest, selection)

    @cached_property
    def records(self) -> dict[str, list[arena.TradingRecord]]:
        """The results of every account, by trading contest."""
        drawdowns: dict[AccountKey, int] = {}
        for contest in self.traded:
            snapshots = portfolios.snapshots(self.facts, self.marks, contest, changes=True)
            drawdowns |= portfolios.drawdowns(snapshots)
        return arena.trading_records(self.facts, self.marks, drawdowns)

    def implied_returns(self, contest: str) -> list[arena.ImpliedReturn]:
        """Return the returns that prices imply of a contest's forecasts; only their means are cached."""
        every = [*arena.implied_returns(self.facts, self.facts.contests[contest])]
        self._mean_returns[contest] = [*arena.mean_returns(every)]
        return every

    def mean_returns(self, contest: str) -> list[arena.MeanReturns]:
        """Return the means of the returns that prices imply of a contest's forecasts."""
        if contest not in self._mean_returns:
            self.implied_returns(contest)
        return self._mean_returns[contest]

    @cached_property
    def marks(self) -> Marks:
        """The marks of shares."""
        return Marks(self.facts)

    @cached_property
    def traded(self) -> list[str]:
        """The ids of the trading contests, in order."""
        return contests_with(self, lambda rules: rules.trading is not None)

    @cached_property
    def traders(self) -> list[str]:
        """The ids of the participants with an account, in order."""
        return sorted({participant for _, participant in self.facts.books.accounts})

    @cached_property
    def contests(self) -> list[str]:
        """The ids of the contests, in order."""
        return sorted(self.facts.contests)

    @cached_property
    def by_rules(self) -> list[list[str]]:
        """The ids of the contests, those with the same rule set together."""
        return contests_by_rules(self.facts, self.contests)

    @cached_property
    def contest_codes(self) -> dict[str, int]:
        """The index of each contest in the order of ids."""
        return {name: code for code, name in enumerate(self.contests)}

    @cached_property
    def counted(self) -> Forecasts:
        """The forecasts as they count, with the rows that follow from changes of outcomes."""
        return as_counted(self.facts.forecasts.counting(self.facts.as_of).in_time_order(), self.facts.changed)

    @cached_property
    def standing(self) -> Intervals:
        """The intervals during which forecasts stood, for all questions, resolved or not."""
        now = status(self.facts)
        return intervals(self.counted, now.opens_at, now.closed_at)


def contests_with(analysis: Analysis, fits: Callable[[RuleSet], bool]) -> list[str]:
    """Return the ids of the contests whose rule set fits, in order."""
    rules = ((names, analysis.facts.contests[names[0]].opened.rules) for names in analysis.by_rules)
    return sorted(name for names, each in rules if fits(each) for name in names)


def codes_of(analysis: Analysis, contests: Sequence[str]) -> Int64Array:
    """Return the index of each of some contests in the order of ids."""
    return int64_array([analysis.contest_codes[name] for name in contests])
