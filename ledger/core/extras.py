"""Packages that are optional, each imported when it is first needed."""

from typing import Any

from forecast_ledger.ledger.core.errors import Unavailable, installing


def pyarrow(what: str = "Arrow and Parquet") -> Any:
    """Return the pyarrow module. what: what needs it, in the plural.

    Raises Unavailable: it is not installed.
    """
    try:
        import pyarrow as module  # noqa: PLC0415 - late: optional
    except ImportError:
        raise Unavailable(f"{what} need pyarrow; {installing('columnar')}") from None
    return module
