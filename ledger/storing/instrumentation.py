"""What the library tells of its work: lines of the standard library's logging, which it never configures.

The embedding program decides whether and where they appear; what it has bound to structlog's context variables is in
every line, beside the line's own fields. structlog is imported when the first line is wanted.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from forecast_ledger.ledger.core.errors import Refused

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

    from forecast_ledger.ledger.model.commands import AnyCommand
    from forecast_ledger.ledger.storing.receipt import Receipt

# What a line of logging has already, or takes for something else: a field so called would be an error in there.
_RESERVED = {*vars(logging.makeLogRecord({})), "message", "asctime", "exc_info", "stack_info", "stacklevel"}


def now_ns() -> int:
    """Now, in ns of a clock that only measures durations."""
    return time.perf_counter_ns()


def log_event(
    logger: logging.Logger, level: int, event: str, fields: Callable[[], dict[str, Any]], since: int | None = None
) -> None:
    """Tell an event with its fields, and its duration in µs if it began at `since`; if not wanted, it costs nothing."""
    if not logger.isEnabledFor(level):
        return
    took = {} if since is None else {"duration_us": (now_ns() - since) // 1_000}
    _structured(logger).log(level, event, **fields(), **took)


def command_fields(ledger: str, position: int, command: "AnyCommand", outcome: "Receipt | Refused") -> dict[str, Any]:
    """What a line says of a command. position: of the log's end."""
    said = {
        "ledger": ledger,
        "position": position,
        "type": command.__struct_config__.tag,
        "outcome": _outcome_name(outcome),
    }
    if isinstance(outcome, Refused):
        return said | {"code": outcome.code}
    return said | {"command_id": outcome.command_id, "first": outcome.first, "last": outcome.last}


def batch_fields(ledger: str, position: int, outcomes: "Sequence[Receipt | Refused]") -> dict[str, Any]:
    """What a line says of a batch."""
    names = [_outcome_name(outcome) for outcome in outcomes]
    counts = {name: names.count(name) for name in ("accepted", "duplicate", "refused")}
    return {"ledger": ledger, "position": position, **counts}


def _outcome_name(outcome: "Receipt | Refused") -> str:
    if isinstance(outcome, Refused):
        return "refused"
    return "duplicate" if outcome.duplicate else "accepted"


@cache
def _structured(logger: logging.Logger) -> Any:
    import structlog  # noqa: PLC0415 - late: it takes longer to import than the rest of the ledger

    return structlog.wrap_logger(
        logger,
        processors=[structlog.contextvars.merge_contextvars, _rename_reserved, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _rename_reserved(_: "WrappedLogger", __: str, fields: "EventDict") -> "EventDict":
    """Bound context that is called like something that a line of logging has: under another name, not lost."""
    return {f"context_{name}" if name in _RESERVED else name: value for name, value in fields.items()}
