"""Tables as Arrow, exact: decimals in fixed point, instants in µs UTC, counts in 64 bits.

pyarrow is an optional dependency; it is imported when a table is converted.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.errors import Refused, Unavailable, installing
from forecast_ledger.projections.core.column_values import KINDS, Column, Ids, Values, plain_values

# How many decimals each kind has that becomes decimal128(38, decimals); internally its values are integers.
DECIMALS = {
    "probability": 11,
    "measure": 12,
    "points": 9,
    "term": 12,
    "share": 9,
    "money": 6,
    "fine_money": 15,
    "seconds": 6,
}
_DIGITS = 38  # of a decimal128


def to_arrow(name: str, version: int, columns: Sequence[Column], values: Sequence[Values]) -> Any:
    """Return a pyarrow.Table of a table's columns; the metadata of each field has its kind and meaning.

    Values of the kinds "integer" and "take" have no bound and become text.

    Raises, first that applies: Unavailable (no pyarrow), Refused (a decimal of more than 38 digits, a count of more
    than 64 bits).
    """
    arrow = pyarrow()
    fields = [
        arrow.field(column.name, type_of(column.kind), metadata={"kind": column.kind, "meaning": column.meaning})
        for column in columns
    ]
    arrays = []
    for column, column_values in zip(columns, values, strict=True):
        try:
            arrays.append(_array(arrow, column_values, column.kind))
        except (arrow.ArrowInvalid, OverflowError) as error:
            fault = f"does not fit {type_of(column.kind)}: {error}"
            remedy = "write the table as CSV, JSON or SQLite instead"
            raise Refused("out_of_range", f"{name}.{column.name}", None, fault, remedy=remedy) from None
    metadata = {"table": name, "version": str(version)}
    return arrow.Table.from_arrays(arrays, schema=arrow.schema(fields, metadata=metadata))


def float_columns(table: Any, columns: Sequence[Column], values: Sequence[Values]) -> Any:
    """Return a pyarrow.Table with the nearest float in place of each decimal; a missing one is null.

    columns, values: those that the table was made of.
    """
    arrow = pyarrow()
    for place, (column, numbers) in enumerate(zip(columns, values, strict=True)):
        if column.kind in DECIMALS or column.kind == "take":
            texts = arrow.array(_texts(numbers, column.kind), arrow.string())
            table = table.set_column(place, column.name, texts.cast("double"))  # rounded once, as Python reads it
    return table


def type_of(kind: str) -> Any:
    """Return the Arrow type of a kind of column.

    >>> str(type_of("points")), str(type_of("instant"))
    ('decimal128(38, 9)', 'timestamp[us, tz=UTC]')
    """
    arrow = pyarrow()
    if kind in DECIMALS:
        return arrow.decimal128(_DIGITS, DECIMALS[kind])
    return {"instant": arrow.timestamp("us", tz="UTC"), "count": arrow.int64()}.get(kind, arrow.string())


def pyarrow() -> Any:
    """Return the pyarrow module. Raises Unavailable if it is not installed."""
    try:
        import pyarrow as module  # noqa: PLC0415 - late: optional
    except ImportError:
        raise Unavailable(f"Arrow and Parquet need pyarrow; {installing('columnar')}") from None
    return module


def _array(arrow: Any, values: Values, kind: str) -> Any:
    if isinstance(values, Ids):
        return arrow.array(list(values.labels), arrow.string()).take(arrow.array(values.codes))
    if kind in DECIMALS:
        return _decimals(arrow, values, kind)
    if kind in {"instant", "count"}:
        return arrow.array(values, arrow.int64()).cast(type_of(kind))
    return arrow.array(_texts(values, kind), arrow.string())


def _decimals(arrow: Any, values: Values, kind: str) -> Any:
    """Return decimals without rounding: int64 arrays at once, Python integers one by one."""
    if isinstance(values, np.ndarray):
        from pyarrow import compute  # noqa: PLC0415

        whole = arrow.array(values).cast(arrow.decimal128(19, 0))
        return compute.multiply(whole, arrow.scalar(Decimal(f"1E-{DECIMALS[kind]}"))).cast(type_of(kind))
    decimals = [None if value is None else Decimal(f"{value}E-{DECIMALS[kind]}") for value in plain_values(values)]
    return arrow.array(decimals, type_of(kind))


def _texts(values: Values, kind: str) -> Sequence[str | None]:
    return [None if value is None else KINDS[kind].printed(value) for value in plain_values(values)]
