"""The seeds of draws: they follow from what a contest scores, not from when, in what order or under whose name."""

from hashlib import sha256
from itertools import pairwise
from math import gcd

import numpy as np

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.clusters import cluster_of


def scored_digest(rules: RuleSet, scored: ContestScores) -> str:
    """Return the digest of what a contest scores, 64 hexadecimal digits, from which all its draws follow.

    It is SHA-256 of lines: each question that counts, by id, with its weight over the greatest common divisor of all
    weights and its clusters; then the SHA-256 of the lines of each participant, in their own order. Such a line has a
    question and the score on it, 1e-9 points. Fields are divided by tabs. No participant, contest or instant is named.
    """
    questions, weight = scored.questions, scored.questions.weight
    opened = [answer.question for answer in questions.answers]
    counted = sorted(np.flatnonzero(weight > 0).tolist(), key=lambda number: opened[number].question)
    unit = gcd(*weight[counted].tolist())
    lines = [
        "\t".join((question.question, str(share // unit), *(cluster_of(question, field) for field in rules.clusters)))
        for question, share in ((opened[number], int(weight[number])) for number in counted)
    ]
    index = np.full(len(opened), -1)
    index[counted] = np.arange(len(counted))
    rows = scored.rows.rows(np.flatnonzero(index[scored.rows.question] >= 0))
    rows = rows.rows(np.lexsort((index[rows.question], rows.participant)))
    points = time_weighted.points(rules, questions, rows).published()
    scores = points if isinstance(points, list) else points.tolist()
    said = [f"{opened[number].question}\t{score}" for number, score in zip(rows.question.tolist(), scores, strict=True)]
    begins = np.flatnonzero(np.diff(rows.participant, prepend=-1, append=-1)).tolist()
    people = sorted(_digest(said[first:end]) for first, end in pairwise(begins))
    return _digest([*lines, *people])


def seed_for(digest: str, table: str) -> bytes:
    r"""Return the seed of a table's draws: SHA-256 of the digest of what is scored and the table, as lines of text.

    >>> seed_for("0" * 64, "intervals") == sha256("\n".join(["0" * 64, "intervals"]).encode()).digest()
    True
    """
    return sha256(f"{digest}\n{table}".encode()).digest()


def _digest(lines: list[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()
