"""Forecasts of a probability as columns, which are recorded faster than as many commands."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Self, overload

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand, SubmitForecast

UNSTAMPED = -(2**63)  # in place of the instant of a command that has none
_COLUMNS = ("id", "at", "question", "participant", "probability")


class _Line(Struct, forbid_unknown_fields=True, gc=False):
    """The line of a forecast of a probability: as `SubmitForecast`, of which all other fields are null."""

    type: Literal["submit_forecast"]
    question: str
    participant: str
    probability: Any
    id: str = ""
    at: str | None = None
    probabilities: None = None
    cdf: None = None
    quantiles: None = None
    attestation: None = None
    until: None = None
    samples: None = None
    points: None = None


_decode = msgspec.json.Decoder(_Line, float_hook=Decimal).decode
_columns_of = [attrgetter(name) for name in _COLUMNS]


class QuickForecasts(NamedTuple):
    """Forecasts as columns, of which those of any other command, or of one that may have a fault, are empty.

    at: µs; UNSTAMPED for a command without an instant, None for any other command. command, event: the texts of the row
    that name the command, and that follow the digest of the row before.
    """

    at: Sequence[int | None]
    question: Sequence[str]
    participant: Sequence[str]
    command: Sequence[str]
    event: Sequence[str]

    def stamped(self, recorded_at: int) -> "QuickForecasts":
        """Return the forecasts, of which those without an instant have that of their recording, µs."""
        if UNSTAMPED not in self.at:
            return self
        at = [recorded_at if each == UNSTAMPED else each for each in self.at]
        events = [
            log.stamped(event, recorded_at) if each == UNSTAMPED else event
            for each, event in zip(self.at, self.event, strict=True)
        ]
        return self._replace(at=at, event=events)

    def fingerprints(self, begin: int = 0, end: int | None = None) -> list[str]:
        """Return the fingerprint of each command's content, with which the text that names it ends."""
        return [text[-32:] for text in self.command[begin:end]]


class ForecastColumns(Sequence[SubmitForecast]):
    """Forecasts of a probability as columns; an item is the command.

    id, at, question, participant, probability: the fields of `SubmitForecast`, each of all forecasts. Without `at`,
    each is stamped with the instant at which it is recorded.
    Raises ValueError: the columns have different lengths.

    >>> from forecast_ledger import ForecastColumns, commands, open
    >>> question = commands.OpenQuestion(
    ...     at="2026-03-01T00:00:00Z",
    ...     question="rain",
    ...     kind="binary",
    ...     opens_at="2026-03-01T00:00:00Z",
    ...     closes_at="2026-03-08T00:00:00Z",
    ... )
    >>> forecasts = ForecastColumns(
    ...     id=["f1", "f2"],
    ...     at=["2026-03-02T00:00:00Z"] * 2,
    ...     question=["rain"] * 2,
    ...     participant=["ada", "bob"],
    ...     probability=["0.7", "1.7"],
    ... )
    >>> with open(":memory:") as ledger:
    ...     receipt = ledger.handle(question, command_id="open-rain")
    ...     [str(getattr(outcome, "code", "recorded")) for outcome in ledger.handle_many(forecasts)]
    ['recorded', 'out_of_range']
    """

    @checked()
    def __init__(
        self,
        *,
        id: Iterable[Any],  # noqa: A002 - the name of the field
        question: Iterable[Any],
        participant: Iterable[Any],
        probability: Iterable[Any],
        at: Iterable[Any] | None = None,
    ) -> None:
        ids = [*id]
        columns = (ids, [None] * len(ids) if at is None else [*at], [*question], [*participant], [*probability])
        lengths = {name: len(column) for name, column in zip(_COLUMNS, columns, strict=True)}
        if len({*lengths.values()}) > 1:
            raise ValueError(f"the columns have different lengths: {lengths}")
        self.ids: Sequence[Any] = columns[0]
        self.quick: QuickForecasts | None = None  # what `quick_forecasts` returns for them, if it is known
        self._columns: Sequence[Sequence[Any]] = columns
        self._read: Callable[[], ForecastColumns] | None = None  # reads the columns that are not here

    @classmethod
    def of_quick(cls, ids: Sequence[str], quick: QuickForecasts, read: "Callable[[], ForecastColumns]") -> Self:
        """Return forecasts without a fault. read: reads them again, with their columns, which are rarely needed."""
        forecasts = cls(id=(), question=(), participant=(), probability=())
        forecasts.ids, forecasts.quick, forecasts._read = ids, quick, read
        return forecasts

    @property
    def columns(self) -> Sequence[Sequence[Any]]:
        """The fields of the commands: ids, instants, questions, participants, probabilities."""
        if self._read is not None:
            self._columns, self._read = self._read().columns, None
        return self._columns

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> SubmitForecast: ...
    @overload
    def __getitem__(self, place: slice) -> "ForecastColumns": ...
    def __getitem__(self, place: int | slice) -> "SubmitForecast | ForecastColumns":
        if isinstance(place, slice):
            return ForecastColumns(**dict(zip(_COLUMNS, (column[place] for column in self.columns), strict=True)))
        return _command(*(column[place] for column in self.columns))

    def __iter__(self) -> Iterator[SubmitForecast]:
        return map(_command, *self.columns)


def _command(command_id: Any, at: Any, question: Any, participant: Any, probability: Any) -> SubmitForecast:
    return SubmitForecast(id=command_id, at=at, question=question, participant=participant, probability=probability)


def ids_of(commands: Sequence[AnyCommand]) -> Sequence[Any]:
    """Return the id of each command."""
    return commands.ids if isinstance(commands, ForecastColumns) else [command.id for command in commands]


def read_lines(lines: Sequence[bytes]) -> ForecastColumns | None:
    """Return the forecasts on lines of JSON; None if one of them is not a forecast of a probability, or has a fault.

    A line that is read is the command that `commands.read` returns for it.
    """
    try:
        read = [*map(_decode, lines)]
    except (msgspec.DecodeError, InvalidOperation, RecursionError, UnicodeError):
        return None
    return ForecastColumns(**dict(zip(_COLUMNS, ([*map(of, read)] for of in _columns_of), strict=True)))
