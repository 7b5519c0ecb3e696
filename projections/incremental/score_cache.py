"""The cached scores of a contest: if the scores of one question change, the others need not be scored again."""

from collections import defaultdict
from collections.abc import Set as AbstractSet
from fractions import Fraction

import numpy as np

from forecast_ledger.projections.boards import brier
from forecast_ledger.projections.boards.brier import Aggregate, ContestSample, Counts, Sample
from forecast_ledger.projections.boards.totals import reference_labels
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.scored_questions import non_members
from forecast_ledger.projections.tables.analysis import Analysis, CachedResults


def basis(facts: Facts, contest: Contest) -> tuple[object, ...]:
    """Return what the scores on all questions of a contest depend on; if it changes, all are scored again."""
    return non_members(contest), reference_labels(facts)


class ScoreCache:
    """The cached totals of a contest's scores.

    An owner's number is the participant code + 1, and 0 for the consensus: a new participant changes no number.
    """

    def __init__(self, analysis: Analysis, name: str) -> None:
        """Cache the totals of one contest of an analysis that has all of its questions."""
        contest = analysis.facts.contests[name]
        self.name = name
        self.basis = basis(analysis.facts, contest)
        self.entries = dict(contest.entries)
        self.tally = analysis.tally(name)
        sample = _numbered(analysis.brier_sample(name))
        sums = brier.sums_of(sample)
        self._counts, self._bins = brier.counts_by_owner(sums), brier.bin_sums(sums)
        self._rows = np.sort(_rows(sample))
        self.aggregates = {owner: brier.aggregate(counts) for owner, counts in self._counts.items()}

    def update(self, before: Analysis, after: Analysis) -> set[int]:
        """Replace the scores of some questions; return the numbers of the owners who forecast on them."""
        samples = [_numbered(analysis.brier_sample(self.name)) for analysis in (before, after)]
        concerned = {owner for sample in samples for owner in sample.owner.tolist()}
        for sign, analysis, sample in zip((-1, 1), (before, after), samples, strict=True):
            self.tally = self.tally.plus(analysis.tally(self.name), sign)
            self._count(sign, sample)
        for owner in concerned:
            self.aggregates[owner] = brier.aggregate(self._counts[owner])
        return concerned

    def results(self, owners: int, chosen: AbstractSet[int]) -> CachedResults:
        """Return the cached results of some owners. owners: the number of all owners."""
        sums_by_bin = {key: sums for key, sums in self._bins.items() if key[0] in chosen and sums[0]}
        calibration = [row._replace(owner=(row.owner - 1) % owners) for row in brier.calibration_bins(sums_by_bin)]
        return CachedResults(
            tallies={self.name: self.tally},
            aggregates={self.name: by_participant(self.aggregates, owners, chosen)},
            calibration={self.name: calibration},
        )

    def _count(self, sign: int, sample: Sample) -> None:
        """Add a sample to the sums (sign 1) or remove it (-1)."""
        mixed, added = self._update_rows(sign, sample), brier.sums_of(sample)
        for owner, counts in brier.counts_by_owner(added).items():
            old = self._counts.get(owner, Counts())
            sums = (a + sign * b for a, b in zip(old[:-1], counts[:-1], strict=True))
            self._counts[owner] = Counts._make([*sums, old.mixed + mixed[owner]])
        for key, change in brier.bin_sums(added).items():
            old_sums = self._bins.get(key, (0,) * len(change))
            self._bins[key] = tuple(a + sign * b for a, b in zip(old_sums, change, strict=True))

    def _update_rows(self, sign: int, sample: Sample) -> dict[int, Fraction]:
        """Add rows (sign 1) or remove them (-1); return the change of each owner's `mixed`."""
        rows = np.sort(_rows(sample))
        groups, first = np.unique(rows >> 1, return_index=True)
        sizes, true = np.diff(first, append=len(rows)), np.add.reduceat(rows & 1, first) if len(rows) else first
        begin, middle, end = (np.searchsorted(self._rows, 2 * groups + offset) for offset in range(3))
        before, after = (end - begin, end - middle), (end - begin + sign * sizes, end - middle + sign * true)
        change: dict[int, Fraction] = defaultdict(Fraction)
        columns = (brier.owners_of_keys(groups), *before, *after)
        for owner, m, k, m_after, k_after in zip(*(column.tolist() for column in columns), strict=True):
            change[owner] += brier.mixed_term(m_after, k_after) - brier.mixed_term(m, k)
        place = np.searchsorted(self._rows, rows)
        if sign > 0:
            self._rows = np.insert(self._rows, place, rows)
        else:
            self._rows = np.delete(self._rows, place + np.arange(len(rows)) - np.searchsorted(rows, rows))
        return change


def by_participant(aggregates: dict[int, Aggregate], owners: int, chosen: AbstractSet[int]) -> dict[int, Aggregate]:
    """Return the aggregates of the chosen owners by participant code, the consensus last."""
    return {(owner - 1) % owners: aggregates[owner] for owner in aggregates.keys() & chosen}


def _numbered(contest_sample: ContestSample) -> Sample:
    """Return a sample with the owners' numbers."""
    sample, owners = contest_sample
    return sample._replace(owner=(sample.owner + 1) % owners)


def _rows(sample: Sample) -> Int64Array:
    """Return one number for each row, ordered by owner, probability and answer."""
    rows: Int64Array = 2 * brier.owner_probability_keys(sample) + sample.happened
    return rows
