"""Parts as bytes, to be sent from one process to another: whole numbers take as few bytes as the widest one needs."""

import pickle
from io import BytesIO
from typing import Any

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.tables.question_parts import QuestionPart

_SIGNED = tuple(np.iinfo(kind) for kind in (np.int8, np.int16, np.int32))


def pack(part: QuestionPart) -> bytes:
    """Return a part as bytes.

    >>> column = np.arange(10**15, 10**15 + 100)
    >>> sent = pack(QuestionPart([], [], {"standing": [column]}))
    >>> len(sent) < column.nbytes, (unpack(sent).tables["standing"][0] == column).all()
    (True, np.True_)
    """
    file = BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(part)
    return file.getvalue()


def unpack(sent: bytes) -> QuestionPart:
    """Return the part that `pack` was given, in a process that trusts the one that packed it."""
    part: QuestionPart = pickle.loads(sent)  # noqa: S301 - see above
    return part


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """Reduce arrays of 64-bit numbers to the least one and the narrow distances from it."""
        if type(obj) is not np.ndarray or obj.dtype != np.int64 or obj.ndim != 1 or not len(obj):
            return NotImplemented
        least, most = int(obj.min()), int(obj.max())
        for info in _SIGNED:
            middle = least - info.min
            if most - middle <= info.max:
                return _widened, (middle, (obj - middle).astype(info.dtype))
        return NotImplemented


def _widened(middle: int, narrow: "np.ndarray[Any, Any]") -> Int64Array:
    wide: Int64Array = narrow.astype(np.int64)
    wide += middle
    return wide
