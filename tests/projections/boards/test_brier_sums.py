"""Sums of Brier samples, compared with their definition in integers and Fractions."""

from collections import defaultdict
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards import brier
from forecast_ledger.projections.boards.brier import (
    DECILES,
    BrierSums,
    Counts,
    Sample,
    added,
    calibration_bins,
    counts_by_owner,
    sums_of,
)
from forecast_ledger.projections.boards.contest_groups import SampledGroup, SummedSamples, add_samples
from forecast_ledger.projections.core.columns import plain_values
from tests.support.effort import times

Row = tuple[int, int, int, bool]  # owner, probability, consensus, happened
VALUES = [0, 1, 10**8 - 1, 10**8, 5 * 10**8, PROBABILITY - 1, PROBABILITY]


def random_rows(random: Random, most: int) -> list[Row]:
    """Rows of a few owners, with few different probabilities, some without a consensus."""
    return [
        (random.choice([0, 1, 7]), random.choice(VALUES), random.choice([-1, *VALUES]), random.random() < 0.5)
        for _ in range(random.randrange(most))
    ]


def sample_of(rows: list[Row]) -> Sample:
    """Rows as columns."""
    owner, probability, consensus = (np.array([row[place] for row in rows], np.int64) for place in range(3))
    return Sample(owner, probability, consensus, np.array([row[3] for row in rows], bool))


def expected_counts(rows: list[Row]) -> dict[int, Counts]:
    """The definition: sums over the rows of each owner, and over those with one probability."""
    found = {}
    for owner in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == owner]
        groups = defaultdict[int, list[bool]](list)
        for _, probability, _, happened in own:
            groups[probability].append(happened)
        found[owner] = Counts(
            n=len(own),
            happened=sum(row[3] for row in own),
            squares=sum((p - PROBABILITY * o) ** 2 for _, p, _, o in own),
            consensus=sum((max(c, 0) - PROBABILITY * o) ** 2 for _, _, c, o in own),
            lacking=sum(c < 0 for _, _, c, _ in own),
            mixed=sum((Fraction(sum(g) * (len(g) - sum(g)), len(g)) for g in groups.values()), Fraction(0)),
        )
    return found


def expected_bins(rows: list[Row]) -> dict[tuple[int, int], tuple[int, ...]]:
    """The definition: tenths, of which the last has its upper end."""
    found = defaultdict[tuple[int, int], list[int]](lambda: [0, 0, 0])
    for owner, probability, _, happened in rows:
        place = min(probability // (PROBABILITY // 10), 9)
        for number, more in enumerate((1, happened, probability)):
            found[owner, place][number] += more
    return {key: tuple(sums) for key, sums in found.items()}


def binned(sums: BrierSums) -> dict[tuple[int, int], tuple[int, ...]]:
    """The number of forecasts in each bin, how many came true, and their sum, by owner and bin; they come in order."""
    rows = calibration_bins(sums)
    assert [(row.owner, row.lower) for row in rows] == sorted((row.owner, row.lower) for row in rows)
    return {(row.owner, DECILES.index(row.lower)): (row.n, row.happened, row.total_forecast) for row in rows}


@pytest.mark.parametrize("seed", range(times(60)))
def test_sums_of_parts_are_those_of_the_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However rows are divided, and however many groups are processed together."""
    random = Random(seed)
    monkeypatch.setattr(brier, "_AT_ONCE", random.choice([1, 2, 5, 1 << 20]))
    rows = random_rows(random, 60)
    part_of = [random.randrange(4) for _ in rows]
    parts = [sums_of(sample_of([r for r, p in zip(rows, part_of, strict=True) if p == n])) for n in range(4)]
    random.shuffle(parts)
    several: BrierSums = added([added(parts[:2]), *parts[2:]])
    for sums in (several, sums_of(sample_of(rows))):
        assert counts_by_owner(sums) == expected_counts(rows)
        assert binned(sums) == expected_bins(rows)
        assert [*counts_by_owner(sums)] == sorted(expected_counts(rows))


@pytest.mark.parametrize("seed", range(times(60)))
def test_rows_that_are_taken_out_leave_no_trace(seed: int) -> None:
    """The sums are then those of the other rows, to the last number; owners without a row are gone."""
    random = Random(seed)
    rows, more = random_rows(random, 60), random_rows(random, 10)
    stays = [random.random() < random.choice([0, 0.5, 1]) for _ in rows]
    gone, left = ([row for row, stay in zip(rows, stays, strict=True) if stay == chosen] for chosen in (False, True))
    parts = [sums_of(sample_of(rows)), sums_of(sample_of(gone)).negated(), sums_of(sample_of(more))]
    random.shuffle(parts)
    found, expected = added(parts), sums_of(sample_of(left + more))
    assert counts_by_owner(found) == expected_counts(left + more)
    assert binned(found) == expected_bins(left + more)
    for ours, theirs in zip((*found.groups, *found.owners[:2]), (*expected.groups, *expected.owners[:2]), strict=True):
        assert ours.tolist() == theirs.tolist()
    own = np.array(sorted(random.sample([0, 1, 7, 9], 2)))
    assert counts_by_owner(found.of(own)) == expected_counts([row for row in left + more if row[0] in own])


@pytest.mark.parametrize("seed", range(times(40)))
def test_samples_of_contests_keep_their_owners(seed: int) -> None:
    """Parts have some of the contests, numbered anew; an owner may be in several, and have a large code."""
    random, owners = Random(seed), 1 << 40
    far = {0: 0, 1: owners - 1, 7: owners // 3}
    names = ["a", "b", "c"]
    rows = {name: [[(far[r[0]], *r[1:]) for r in random_rows(random, 9)] for _ in range(3)] for name in names}
    parts: list[SummedSamples] = []
    for number in range(3):
        own = random.sample(names, random.randint(1, 3))
        for name in names:
            rows[name][number] = rows[name][number] if name in own else []
        contest = [place for place, name in enumerate(own) for _ in rows[name][number]]
        sample = sample_of([row for name in own for row in rows[name][number]])
        contests = np.array(contest, np.int64)
        parts.append(SampledGroup(own, own, contests, np.zeros_like(contests), sample, owners).summed())
    whole = add_samples(names, random.sample(parts, 3))
    counts, bins = ([*zip(*map(plain_values, columns), strict=True)] for columns in (whole.counts(), whole.bins()))
    all_rows = {name: [row for part in rows[name] for row in part] for name in names}
    expected = {name: expected_counts(all_rows[name]) for name in names}
    assert counts == [(name, owner, *own) for name in names for owner, own in expected[name].items()]
    assert [row[:3] for row in bins] == [
        (name, owner, DECILES[place]) for name in names for owner, place in sorted(expected_bins(all_rows[name]))
    ]
