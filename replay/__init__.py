"""Questions put to a log, and everything that talks to files, databases and people.

The package and a function in it have one name, `replay`, and whoever imports a module of the package makes
`forecast_ledger.replay` the package. So the package can be called: `replay(log)` is `reading.replay.replay(log)`.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function that a call runs; its signature is shown as the package's."""
        from forecast_ledger.replay.reading.replay import replay  # noqa: PLC0415 - late: it imports the projections

        return replay

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Read a log as of a cut; see `forecast_ledger.replay.reading.replay.replay`."""
        return self.__wrapped__(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
