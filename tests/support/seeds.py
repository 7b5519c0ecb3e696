"""The seed of a contest's draws, made anew from the rows of the table `scores`, as "How intervals are drawn" says."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from hashlib import sha256
from math import gcd
from typing import Any


def hashed(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines of text."""
    return sha256("\n".join(lines).encode()).hexdigest()


def seed_of(table: str, questions: Mapping[str, tuple[Any, ...]], scores: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the seed of a table. questions: the weight of each that counts, and its clusters by the rules' fields."""
    unit = gcd(*(weight for weight, *_ in questions.values()))
    lines = []
    for name, (weight, *clusters) in sorted(questions.items()):
        lines.append("\t".join((name, str(weight // unit), *clusters)))
    people = defaultdict[str, list[str]](list)
    for row in sorted(scores, key=lambda row: str(row["question"])):
        if row["question"] in questions:
            people[row["participant"]].append(f"{row['question']}\t{Decimal(row['score']).scaleb(9):f}")
    digest = hashed([*lines, *sorted(map(hashed, people.values()))])
    return bytes.fromhex(hashed([digest, table]))
