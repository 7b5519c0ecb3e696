"""Counts of the forecasts of a segment, by question and by participant, which are read instead of the forecasts."""

from typing import Any

import numpy as np

from forecast_ledger.ledger.segments.arrow_arrays import array_of_integers, array_of_texts, integers, labelled, pyarrow

_COUNTED = ("question", "participant")
_LATEST = ("claimed_at", "recorded_at")


def counts_schema() -> Any:
    """Return the Arrow schema of counts. A row has a question or a participant; its instants are the latest ones.

    Raises Unavailable (no pyarrow).
    """
    pa = pyarrow()
    names = [pa.field(name, pa.string()) for name in _COUNTED]
    latest = [pa.field(name, pa.timestamp("us", "UTC"), nullable=False) for name in _LATEST]
    return pa.schema([*names, pa.field("rows", pa.int64(), nullable=False), *latest])


def count_forecasts(forecasts: Any) -> Any:
    """Return the counts of forecasts and withdrawals, in order of ids: of all questions, then of all participants.

    None if a forecast has an attestation, because a reader needs all of these. forecasts: columns of one dictionary.
    """
    if forecasts["attestation"].null_count < len(forecasts):
        return None
    columns: dict[str, list[Any]] = {name: [] for name in counts_schema().names}
    for name in _COUNTED:
        labels, index = labelled(forecasts[name])
        size, latest = np.bincount(index, minlength=len(labels)), np.full((len(_LATEST), len(labels)), -(2**63))
        for which, instants in zip(latest, _LATEST, strict=True):
            np.maximum.at(which, index, integers(forecasts[instants]))
        order = [label for label in sorted(range(len(labels)), key=labels.__getitem__) if size[label]]
        columns["rows"] += size[order].tolist()
        for each in _COUNTED:
            columns[each] += [labels[label] if each == name else None for label in order]
        for which, instants in zip(latest, _LATEST, strict=True):
            columns[instants] += which[order].tolist()
    arrays = [
        array_of_texts(columns[field.name])
        if field.name in _COUNTED
        else array_of_integers(columns[field.name], field.type)
        for field in counts_schema()
    ]
    return pyarrow().Table.from_arrays(arrays, schema=counts_schema())
