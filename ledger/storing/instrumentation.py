"""Log records of the library's work, through the standard library's logging, which it never configures; and numbers.

The embedding program decides whether and where they appear. Each record has its own fields and those that the program
has bound to structlog's context variables. structlog is imported for the first record that is enabled. Numbers go to a
function that the program gives; without one, nothing is measured.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

    from forecast_ledger.ledger.batching.batch import Receipt
    from forecast_ledger.ledger.model.commands import AnyCommand

# Names that a log record has, or that logging interprets: a field with one of these names would be an error.
_RESERVED = {*vars(logging.makeLogRecord({})), "message", "asctime", "exc_info", "stack_info", "stacklevel"}


class Metric(NamedTuple):
    """A number that a ledger, or the runner of a read model, gives to the program's `on_metric`.

    name, value: one of

    - `command_seconds`: how long a call of `handle` took. type: of the command, such as `submit_forecast`. outcome:
      `accepted`, `duplicate`, or the code of the refusal.
    - `batch_seconds`: how long a call of `handle_many` took, and `batch_commands`: how many of its commands had the
      outcome.
    - `turn_seconds`: how long a transaction waited for the turn to write.
    - `lag_positions`: how many events a refresh of a read model found, and `lag_seconds`: how long before its end the
      first of them was recorded; 0 if there was none.

    ledger: its name.

    >>> from forecast_ledger import Metric, Store, commands
    >>> metrics: list[Metric] = []
    >>> with Store.open(":memory:", on_metric=metrics.append) as store:
    ...     contest = commands.OpenContest(contest="spring", rules="baseline")
    ...     receipt = store.ledger("north").handle(contest, command_id="open-spring")
    >>> [(each.name, each.ledger, each.type, each.outcome) for each in metrics]
    [('turn_seconds', 'north', '', ''), ('command_seconds', 'north', 'open_contest', 'accepted')]
    """

    name: str
    value: float
    ledger: str
    type: str = ""
    outcome: str = ""


OnMetric = Callable[[Metric], None]  # any thread may call it; what it raises, the call that is measured raises


def seconds_since(begun: int) -> float:
    """Return how long ago an instant of `now_ns` is, s."""
    return (now_ns() - begun) / 10**9


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
        "outcome": outcome_name(outcome),
    }
    if isinstance(outcome, Refused):
        return fields | {"code": outcome.code}
    return fields | {"command_id": outcome.command_id, "first": outcome.first, "last": outcome.last}


def batch_fields(ledger: str, position: int, outcomes: "Sequence[Receipt | Refused]") -> dict[str, Any]:
    """Return the log fields of a batch. position: the last log position."""
    names = [outcome_name(outcome) for outcome in outcomes]
    counts = {name: names.count(name) for name in ("accepted", "duplicate", "refused")}
    return {"ledger": ledger, "position": position, **counts}


def measure_command(
    on_metric: OnMetric, ledger: str, command: "AnyCommand", outcome: "Receipt | Refused", begun: int
) -> None:
    """Report how long a command took; begun: from `now_ns`."""
    kind = str(command.__struct_config__.tag)
    on_metric(Metric("command_seconds", seconds_since(begun), ledger, kind, _code_or_name(outcome)))


def measure_batch(on_metric: OnMetric, ledger: str, outcomes: "Sequence[Receipt | Refused]", begun: int) -> None:
    """Report how long a batch took, and how many of its commands had each outcome; begun: from `now_ns`."""
    on_metric(Metric("batch_seconds", seconds_since(begun), ledger))
    for name, count in sorted(Counter(map(_code_or_name, outcomes)).items()):
        on_metric(Metric("batch_commands", count, ledger, outcome=name))


def _code_or_name(outcome: "Receipt | Refused") -> str:
    return outcome.code if isinstance(outcome, Refused) else outcome_name(outcome)


def outcome_name(outcome: "Receipt | Refused") -> str:
    """Return the name of an outcome: accepted, duplicate or refused.

    >>> from forecast_ledger import Receipt
    >>> outcome_name(Receipt("c1", 1, 1)), outcome_name(Receipt("c1", 1, 1, duplicate=True))
    ('accepted', 'duplicate')
    """
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
