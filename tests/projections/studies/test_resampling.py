"""Draws: the same integers for everyone who has the seed."""

from collections import Counter
from hashlib import sha256

import numpy as np
import pytest

from forecast_ledger.projections.studies import resampling
from forecast_ledger.projections.studies.resampling import multiplicities
from forecast_ledger.projections.studies.seeds import seed_for

# --- Draws: the same integers for everyone who has the seed.


def drawn(seed: bytes, stratum: int, replicate: int, units: int, limit: int) -> Counter[int]:
    """Return what is drawn by the definition, word after word."""
    numbers: list[int] = []
    counter = 0
    while len(numbers) < units:
        text = seed + b"".join(number.to_bytes(4, "big") for number in (stratum, replicate, counter))
        digest = sha256(text).digest()
        words = [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4)]
        numbers += [word % units for word in words if word < limit]
        counter += 1
    return Counter(numbers[:units])


@pytest.mark.parametrize("strata", [(1,), (2, 1, 9), (17, 8, 3), ()])
def test_draws_are_those_of_the_definition(strata: tuple[int, ...]) -> None:
    """Each stratum has as many draws as units; words come from SHA-256 of seed, stratum, replicate and counter."""
    seed, replicates = seed_for("ab" * 32, "intervals"), 20
    first = np.cumsum((0, *strata))
    found = multiplicities(seed, replicates, strata)
    assert found.shape == (replicates, sum(strata))
    for stratum, units in enumerate(strata):
        for replicate in range(replicates):
            expected = drawn(seed, stratum, replicate, units, 2**32 // units * units)
            part = found[replicate, first[stratum] : first[stratum] + units]
            assert part.tolist() == [expected[unit] for unit in range(units)]


def test_words_above_the_last_multiple_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without skipping, small numbers would be drawn more often; with a small range of words it happens at once."""
    monkeypatch.setattr(resampling, "_RANGE", 2**31 + 2)  # words at or above 2^31 + 1 are skipped: nearly a half
    found = multiplicities(b"seed", 5, [3])
    for replicate in range(5):
        expected = drawn(b"seed", 0, replicate, 3, 2**31 + 1)
        assert found[replicate].tolist() == [expected[unit] for unit in range(3)]
