"""Log records of the library's work, through the standard library's logging, which it never configures.

The embedding program decides whether and where they appear. Each record has its own fields and those that the program
has bound to structlog's context variables. structlog is imported for the first record that is enabled.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from forecast_ledger.ledger.core.errors import Refused

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

    from forecast_ledger.ledger.batching.batch import Receipt
    from forecast_ledger.ledger.model.commands import AnyCommand

# Names that a log record has, or that logging interprets: a field with one of these names would be an error.
_RESERVED = {*vars(logging.makeLogRecord({})), "message", "asctime", "exc_info", "stack_info", "stacklevel"}


def now_ns() -> int:
    """Return the time of a monotonic clock, ns."""
    return time.perf_counter_ns()


def log_event(
    logger: logging.Logger, level: int, event: str, fields: Callable[[], dict[str, Any]], since: int | None = None
) -> None:
    """Log an event with its fields, which are computed only if `level` is enabled.

    since: when the event began, from `now_ns`; adds the field duration_us.
    """
    if not logger.isEnabledFor(level):
        return
    duration = {} if since is None else {"duration_us": (now_ns() - since) // 1_000}
    _structured(logger).log(level, event, **fields(), **duration)


def command_fields(ledger: str, position: int, command: "AnyCommand", outcome: "Receipt | Refused") -> dict[str, Any]:
    """Return the log fields of a command. position: the last log position."""
    fields = {
        "ledger": ledger,
        "position": position,
        "type": command.__struct_config__.tag,
        "outcome": _outcome_name(outcome),
    }
    if isinstance(outcome, Refused):
        return fields | {"code": outcome.code}
    return fields | {"command_id": outcome.command_id, "first": outcome.first, "last": outcome.last}


def batch_fields(ledger: str, position: int, outcomes: "Sequence[Receipt | Refused]") -> dict[str, Any]:
    """Return the log fields of a batch. position: the last log position."""
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
    """Prefix the names of bound fields that a log record reserves with `context_`."""
    return {f"context_{name}" if name in _RESERVED else name: value for name, value in fields.items()}
