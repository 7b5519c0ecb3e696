"""An event-sourced ledger for forecasting tournaments and paper-trading benchmarks.

Everything that another program needs is imported from here, and loaded when it is first used:

>>> from forecast_ledger import commands, open, replay
>>> with open(":memory:") as ledger:
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
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forecast_ledger.ledger.core.errors import Conflict as Conflict
    from forecast_ledger.ledger.core.errors import Corrupt as Corrupt
    from forecast_ledger.ledger.core.errors import LedgerError as LedgerError
    from forecast_ledger.ledger.core.errors import Refused as Refused
    from forecast_ledger.ledger.core.errors import Unavailable as Unavailable
    from forecast_ledger.ledger.core.errors import Uncertain as Uncertain
    from forecast_ledger.ledger.model import commands as commands
    from forecast_ledger.ledger.model import events as events
    from forecast_ledger.ledger.model import rules as rules
    from forecast_ledger.ledger.model.rules import PRESETS as PRESETS
    from forecast_ledger.ledger.model.rules import RuleSet as RuleSet
    from forecast_ledger.ledger.storing.receipt import Receipt as Receipt
    from forecast_ledger.ledger.storing.writer import Ledger as Ledger
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE as CATALOGUE
    from forecast_ledger.projections.catalogue.projection import Projections as Projections
    from forecast_ledger.projections.core.table import Table as Table
    from forecast_ledger.projections.facts.from_log import facts as facts
    from forecast_ledger.replay.audit.verify import verify as verify
    from forecast_ledger.replay.explain.numbers import explain as explain
    from forecast_ledger.replay.files.export import export as export
    from forecast_ledger.replay.files.restore import restore as restore
    from forecast_ledger.replay.reading.replay import Replay as Replay
    from forecast_ledger.replay.reading.replay import replay as replay
    from forecast_ledger.replay.readmodel.runner import Runner as Runner
    from forecast_ledger.replay.writing.pay import open_ledger as open  # noqa: A004, F401 - as in shelve

# What this package offers: name -> the module below it that defines the name, and what it is called there; a module
# itself has no second part.
OFFERED = {
    "CATALOGUE": ("projections.catalogue.catalogue", "CATALOGUE"),
    "Conflict": ("ledger.core.errors", "Conflict"),
    "Corrupt": ("ledger.core.errors", "Corrupt"),
    "Ledger": ("ledger.storing.writer", "Ledger"),
    "LedgerError": ("ledger.core.errors", "LedgerError"),
    "PRESETS": ("ledger.model.rules", "PRESETS"),
    "Projections": ("projections.catalogue.projection", "Projections"),
    "Receipt": ("ledger.storing.receipt", "Receipt"),
    "Refused": ("ledger.core.errors", "Refused"),
    "Replay": ("replay.reading.replay", "Replay"),
    "RuleSet": ("ledger.model.rules", "RuleSet"),
    "Runner": ("replay.readmodel.runner", "Runner"),
    "Table": ("projections.core.table", "Table"),
    "Unavailable": ("ledger.core.errors", "Unavailable"),
    "Uncertain": ("ledger.core.errors", "Uncertain"),
    "commands": ("ledger.model.commands", ""),
    "events": ("ledger.model.events", ""),
    "explain": ("replay.explain.numbers", "explain"),
    "export": ("replay.files.export", "export"),
    "facts": ("projections.facts.from_log", "facts"),
    "open": ("replay.writing.pay", "open_ledger"),
    "replay": ("replay", ""),  # the package, which can be called as the function: both have this name
    "restore": ("replay.files.restore", "restore"),
    "rules": ("ledger.model.rules", ""),
    "verify": ("replay.audit.verify", "verify"),
}
__all__ = sorted(OFFERED)  # noqa: PLE0605 - so that nothing is listed twice


def __getattr__(name: str) -> Any:
    """What is offered under a name, imported now and kept."""
    if name not in OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = OFFERED[name]
    found = import_module(f"{__name__}.{module}")
    globals()[name] = found = getattr(found, attribute) if attribute else found
    return found


def __dir__() -> list[str]:
    """The names that are offered."""
    return sorted({*globals(), *OFFERED})
