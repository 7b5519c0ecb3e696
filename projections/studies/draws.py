"""Random draws that anyone can repeat: integers from SHA-256 of a seed, the number of a replicate and a counter."""

from collections.abc import Sequence
from hashlib import sha256
from itertools import count

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array

_WORDS = 8  # 32-bit words in a SHA-256
_RANGE = 1 << 32  # values of a word


def seed_for(digest: str, *names: str) -> bytes:
    r"""Return the seed for some purpose: SHA-256 of the digest and the names, as lines of text.

    digest: of the log, as text; nobody can choose it. names: what the draws are for.

    >>> seed_for("0" * 64, "intervals", "cup") == sha256("\n".join(["0" * 64, "intervals", "cup"]).encode()).digest()
    True
    """
    return sha256("\n".join((digest, *names)).encode()).digest()


def multiplicities(seed: bytes, replicates: int, strata: Sequence[int]) -> Int64Array:
    """Return how often each unit is drawn in each replicate, shape (replicates, units): a bootstrap within strata.

    From a stratum of n units, n are drawn with replacement. strata: the number of units of each stratum; the units of
    a stratum are adjacent, in the order of the strata. The draws of stratum s in replicate b are the words of SHA-256
    of seed, s, b and c = 0, 1, 2 …, with four bytes, the highest first, for s, b, c and each of eight words. A word is
    taken modulo n, but skipped if it is at or above the largest multiple of n in 2^32.

    Source: Efron (1979), Annals of Statistics 7(1):1-26, doi:10.1214/aos/1176344552; the draws are our own.

    >>> multiplicities(b"seed", 2, [3, 1])[:, 3].tolist(), multiplicities(b"seed", 2, [3, 1]).sum(axis=1).tolist()
    ([1, 1], [4, 4])
    """
    parts = [_stratum(seed + stratum.to_bytes(4, "big"), replicates, units) for stratum, units in enumerate(strata)]
    return np.concatenate(parts, axis=1) if parts else np.zeros((replicates, 0), np.int64)


def signs(seed: bytes, replicates: int, units: int) -> Int64Array:
    """Return a sign, -1 or 1, for each unit in each replicate, shape (replicates, units), 1 for a bit that is set.

    The bits of replicate b, the highest of a byte first, are those of SHA-256 of seed, `sign`, b and c = 0, 1, 2 …,
    with four bytes, the highest first, for b and c.

    >>> signs(b"seed", 2, 3).shape, {*signs(b"seed", 2, 300).flat}
    ((2, 3), {np.int64(1), np.int64(-1)})
    """
    digests = _digests(seed + b"sign", replicates, -(-units // (32 * _WORDS)))
    bits = np.unpackbits(np.frombuffer(digests, np.uint8)).reshape(replicates, -1)[:, :units]
    return 2 * bits.astype(np.int64) - 1


def chances(seed: bytes, replicates: range, probability: Int64Array) -> BoolArray:
    """Return whether each unit comes true in each replicate, with its own probability, shape (replicates, units).

    The words of replicate b are the 8-byte integers, the highest byte first, in SHA-256 of seed, `chance`, b and
    c = 0, 1, 2 …, with four bytes, the highest first, for b and c. Without its two lowest bits, a word is below 2^62. A
    unit comes true if its word is below its probability x 2^62, so that its chance is off by less than 2^-62.

    probability: 1e-9, shape (units,).

    >>> chances(b"seed", range(2), np.array([0, 10**9])).tolist()
    [[False, True], [False, True]]
    """
    units = len(probability)
    stems = [seed + b"chance" + replicate.to_bytes(4, "big") for replicate in replicates]
    tails = [counter.to_bytes(4, "big") for counter in range(-(-units // 4))]
    digests = b"".join([sha256(stem + tail).digest() for stem in stems for tail in tails])
    words = (np.frombuffer(digests, ">u8").reshape(len(stems), -1)[:, :units] >> 2).astype(np.int64)
    limits = int64_array([-(-(each << 62) // PROBABILITY) for each in probability.tolist()])
    below: BoolArray = words < limits
    return below


def _stratum(prefix: bytes, replicates: int, units: int) -> Int64Array:
    if units == 1:
        return np.ones((replicates, 1), np.int64)
    limit = _RANGE - _RANGE % units
    digests = _digests(prefix, replicates, -(-units // _WORDS))
    words = np.frombuffer(digests, ">u4").reshape(replicates, -1)[:, :units].astype(np.int64)
    for replicate in np.flatnonzero((words >= limit).any(axis=1)).tolist():
        words[replicate] = _accepted(prefix, replicate, units, limit)
    flat = (np.arange(replicates)[:, None] * units + words % units).reshape(-1)
    return np.bincount(flat, minlength=replicates * units).reshape(replicates, units)


def _digests(prefix: bytes, replicates: int, counters: int) -> bytes:
    """Return the digests of each replicate, one after another: those of the first counters."""
    ends = [counter.to_bytes(4, "big") for counter in range(counters)]
    stems = [prefix + replicate.to_bytes(4, "big") for replicate in range(replicates)]
    return b"".join([b"".join([sha256(stem + end).digest() for end in ends]) for stem in stems])


def _accepted(prefix: bytes, replicate: int, units: int, limit: int) -> Int64Array:
    """Return the first words below a limit."""
    accepted: list[int] = []
    stem = prefix + replicate.to_bytes(4, "big")
    for counter in count():
        digest = sha256(stem + counter.to_bytes(4, "big")).digest()
        accepted += [word for word in np.frombuffer(digest, ">u4").tolist() if word < limit]
        if len(accepted) >= units:
            break
    return int64_array(accepted[:units])
