"""Claims: how far the instant that a command claims may lie before and after that of its recording."""

from typing import NamedTuple, Self

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_instant, read_duration, read_instant
from forecast_ledger.ledger.model.commands import AnyCommand


class Claims(NamedTuple):
    """The limits of the instants that a writer takes. before, after: µs, how far from the recording; None: any."""

    before: int | None = None
    after: int | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """Read `5m` or `1h,0s`: how far before the recording, and how far after it, if that differs.

        Raises ValueError: it is no duration, or not one or two of them.

        >>> Claims.read("1h,0s")
        Claims(before=3600000000, after=0)
        """
        limits = [*map(read_duration, text.split(",", 1))]
        return cls(limits[0], limits[-1])

    def fault_of(self, command: AnyCommand, recorded_at: int) -> Refused | None:
        """Return the refusal of the instant that a command claims, or None. recorded_at: of its rows, µs."""
        if command.at is None or self == FREE:
            return None
        at = read_instant(command.at)
        if self.is_within(at, recorded_at):
            return None
        is_late = at > recorded_at
        limit, way = (self.after, "after") if is_late else (self.before, "before")
        detail = f"at most {(limit or 0) / 10**6:,.15g} s {way} the recording, {format_instant(recorded_at)}"
        return Refused("claimed_too_late" if is_late else "claimed_too_early", "at", format_instant(at), detail)

    def is_within(self, at: int, recorded_at: int) -> bool:
        """Return whether an instant lies within the limits of a recording, both µs."""
        return (self.before is None or at >= recorded_at - self.before) and (
            self.after is None or at <= recorded_at + self.after
        )


FREE = Claims()
