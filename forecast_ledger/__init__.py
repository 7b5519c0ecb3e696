"""An event-sourced ledger for forecasting tournaments and paper-trading benchmarks.

Everything that another program needs is imported from here, and loaded when it is first used:

>>> from forecast_ledger import commands, open_ledger, replay
>>> with open_ledger(":memory:") as ledger:
...     rain = commands.OpenQuestion(
...         at="2026-03-01T00:00:00Z",
...         question="rain",
...         kind="binary",
...         opens_at="2026-03-01T00:00:00Z",
...         closes_at="2026-03-08T00:00:00Z",
...     )
...     receipt = ledger.handle(rain, command_id="open-rain")
...     replay(ledger).checkpoint.position
1

`CATALOGUE` describes every table, `PRESETS` every rule set that has a name:

>>> from forecast_ledger import CATALOGUE, PRESETS
>>> CATALOGUE["leaderboard"].meaning
'the leaderboard of each contest, best first'
>>> PRESETS["baseline"].scale
'baseline'
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "CATALOGUE",
    "PRESETS",
    "AsyncLedger",
    "AsyncSubscription",
    "Audit",
    "Checkpoint",
    "Conflict",
    "Corrupt",
    "Explanation",
    "ForecastColumns",
    "Lag",
    "Ledger",
    "LedgerError",
    "Manifest",
    "Metric",
    "NewerVersion",
    "Picture",
    "Projections",
    "ReadModel",
    "Receipt",
    "Recorded",
    "Refreshed",
    "Refused",
    "Replay",
    "RuleSet",
    "Runner",
    "Runners",
    "Sealed",
    "Store",
    "Subscription",
    "Table",
    "Unavailable",
    "Uncertain",
    "WithSegments",
    "append",
    "append_frame",
    "audit",
    "commands",
    "events",
    "explain",
    "export",
    "facts",
    "open",
    "open_ledger",
    "plot",
    "replay",
    "report",
    "restore",
    "rules",
    "score",
    "seal",
    "under_rules",
    "verify",
]

_HERE = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes longer to import than everything else here
if not os.path.isdir(f"{_HERE}/ledger"):  # noqa: PTH112 - a checkout without links: the folders are beside this one
    __path__.append(os.path.dirname(_HERE))  # noqa: PTH120

if TYPE_CHECKING:  # the names as type checkers and editors see them; _OFFERED has them for the running program
    from forecast_ledger.ledger.batching.batch import Receipt
    from forecast_ledger.ledger.batching.forecasts import ForecastColumns
    from forecast_ledger.ledger.core.errors import (
        Conflict,
        Corrupt,
        LedgerError,
        NewerVersion,
        Refused,
        Unavailable,
        Uncertain,
    )
    from forecast_ledger.ledger.model import commands, events, rules
    from forecast_ledger.ledger.model.log import Checkpoint, Recorded
    from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
    from forecast_ledger.ledger.storing.async_ledger import AsyncLedger, AsyncSubscription
    from forecast_ledger.ledger.storing.instrumentation import Metric
    from forecast_ledger.ledger.storing.subscription import Subscription
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.projections.facts.from_log import facts
    from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
    from forecast_ledger.replay.audit.verify import verify
    from forecast_ledger.replay.explain.explain_scores import Explanation
    from forecast_ledger.replay.explain.numbers import explain
    from forecast_ledger.replay.explain.what_if import under_rules
    from forecast_ledger.replay.files.export import Sealed, export, seal
    from forecast_ledger.replay.files.manifest import Manifest
    from forecast_ledger.replay.files.restore import restore
    from forecast_ledger.replay.pages.pictures import Picture
    from forecast_ledger.replay.pages.report import audit, plot, report
    from forecast_ledger.replay.pages.working_paper import Audit
    from forecast_ledger.replay.reading.log import WithSegments
    from forecast_ledger.replay.reading.replay import Replay, replay
    from forecast_ledger.replay.readmodel.read_model import ReadModel
    from forecast_ledger.replay.readmodel.runner import Lag, Refreshed, Runner
    from forecast_ledger.replay.readmodel.runners import Runners
    from forecast_ledger.replay.scoring.score import append_frame, score
    from forecast_ledger.replay.writing.append import append_lines as append
    from forecast_ledger.replay.writing.store import Ledger, Store, open_ledger
    from forecast_ledger.replay.writing.store import open_ledger as open  # noqa: A004 - as in shelve
else:  # so that a type checker reports a name that is not offered
    # name -> the module below this package that defines it, and its name there; empty if it is that module itself
    _OFFERED = {
        "AsyncLedger": ("ledger.storing.async_ledger", "AsyncLedger"),
        "AsyncSubscription": ("ledger.storing.async_ledger", "AsyncSubscription"),
        "Audit": ("replay.pages.working_paper", "Audit"),
        "CATALOGUE": ("projections.tables.catalogue", "CATALOGUE"),
        "Checkpoint": ("ledger.model.log", "Checkpoint"),
        "Conflict": ("ledger.core.errors", "Conflict"),
        "Corrupt": ("ledger.core.errors", "Corrupt"),
        "Explanation": ("replay.explain.explain_scores", "Explanation"),
        "ForecastColumns": ("ledger.batching.forecasts", "ForecastColumns"),
        "Lag": ("replay.readmodel.runner", "Lag"),
        "Ledger": ("replay.writing.store", "Ledger"),
        "LedgerError": ("ledger.core.errors", "LedgerError"),
        "Manifest": ("replay.files.manifest", "Manifest"),
        "Metric": ("ledger.storing.instrumentation", "Metric"),
        "NewerVersion": ("ledger.core.errors", "NewerVersion"),
        "PRESETS": ("ledger.model.rules", "PRESETS"),
        "Picture": ("replay.pages.pictures", "Picture"),
        "Projections": ("projections.tables.catalogue", "Projections"),
        "ReadModel": ("replay.readmodel.read_model", "ReadModel"),
        "Receipt": ("ledger.batching.batch", "Receipt"),
        "Recorded": ("ledger.model.log", "Recorded"),
        "Refreshed": ("replay.readmodel.runner", "Refreshed"),
        "Refused": ("ledger.core.errors", "Refused"),
        "Replay": ("replay.reading.replay", "Replay"),
        "RuleSet": ("ledger.model.rules", "RuleSet"),
        "Runner": ("replay.readmodel.runner", "Runner"),
        "Runners": ("replay.readmodel.runners", "Runners"),
        "Sealed": ("replay.files.export", "Sealed"),
        "Store": ("replay.writing.store", "Store"),
        "Subscription": ("ledger.storing.subscription", "Subscription"),
        "Table": ("projections.core.table", "Table"),
        "Unavailable": ("ledger.core.errors", "Unavailable"),
        "Uncertain": ("ledger.core.errors", "Uncertain"),
        "WithSegments": ("replay.reading.log", "WithSegments"),
        "append": ("replay.writing.append", "append_lines"),
        "append_frame": ("replay.scoring.score", "append_frame"),
        "audit": ("replay.pages.report", "audit"),
        "commands": ("ledger.model.commands", ""),
        "events": ("ledger.model.events", ""),
        "explain": ("replay.explain.numbers", "explain"),
        "export": ("replay.files.export", "export"),
        "facts": ("projections.facts.from_log", "facts"),
        "open": ("replay.writing.store", "open_ledger"),
        "open_ledger": ("replay.writing.store", "open_ledger"),
        "plot": ("replay.pages.report", "plot"),
        "replay": ("replay.reading.replay", "replay"),
        "report": ("replay.pages.report", "report"),
        "restore": ("replay.files.restore", "restore"),
        "rules": ("ledger.model.rules", ""),
        "score": ("replay.scoring.score", "score"),
        "seal": ("replay.files.export", "seal"),
        "under_rules": ("replay.explain.what_if", "under_rules"),
        "verify": ("replay.audit.verify", "verify"),
    }

    # A folder and a function are called replay. Whoever imports a folder first gives it its name here, so this is done
    # before anything else, and the name is then free for the function.
    import_module(f"{__name__}.replay")
    globals().pop("replay")

    def __getattr__(name):
        """Import the object that is offered under a name, and store it in this module."""
        if name not in _OFFERED:
            here = sys.modules[__name__]  # with it, the interpreter can suggest the nearest name
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=here)
        module, attribute = _OFFERED[name]
        offered = import_module(f"{__name__}.{module}")
        globals()[name] = offered = getattr(offered, attribute) if attribute else offered
        return offered

    def __dir__():
        """List the names that are offered, loaded or not."""
        return sorted({*globals(), *_OFFERED})
