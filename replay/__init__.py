"""Questions put to a log, and everything that talks to files, databases and people.

The package can be called: `replay(log)` is `reading.replay.replay(log)`, for `from forecast_ledger import replay` gives
whoever has imported a module of this package the package.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *of: Any, **how: Any) -> Any:
        """Read a log as of a cut; see `forecast_ledger.replay.reading.replay.replay`."""
        from forecast_ledger.replay.reading.replay import replay  # noqa: PLC0415 - late: it imports the projections

        return replay(*of, **how)


sys.modules[__name__].__class__ = _Callable
