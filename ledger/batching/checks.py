"""What a writer checks beside the decider: claims, times of receipt, new ids, amounts of new contests, its version.

A ledger may already have ids and contests from before these rules. They stay as they are: only what is new is checked,
and only when it is recorded, so that an audit decides an old command as it was decided, with any version of Unicode.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

from forecast_ledger.ledger.core.errors import NewerVersion, Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT, format_instant, is_micros, read_duration, read_instant
from forecast_ledger.ledger.core.version import code_version
from forecast_ledger.ledger.core.visible import is_known_plain, not_plain, unseen
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import AnyEvent, ContestOpened
from forecast_ledger.ledger.model.mismatch import money_text
from forecast_ledger.ledger.model.program_versions import is_older
from forecast_ledger.ledger.model.trading_rules import Trading, bet_cap


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


_REMEDY = 'sort the input by this time; a map for CSV does so with sort = "recorded_at"'


def fault_of(time: int | None, newest: int, now: int, *, in_use: bool) -> Refused | None:
    """Return the refusal of a time of receipt, or None. newest: the time of the newest row; now: by the clock; all µs.

    It is malformed if it is no integer (a float, a Decimal and a bool are none); ledger_in_use if the ledger's own
    clock has stamped a row; else out_of_range if the time is of the future or before the year 1; else out_of_order if
    it is before the newest row.

    >>> fault_of(60_000_000, 120_000_000, 180_000_000, in_use=False).code
    'out_of_order'
    """
    if type(time) is not int:
        detail = f"a {type(time).__name__} is no count of µs since 1970"
        return Refused("malformed", "recorded_at", repr(time), detail, remedy="give an int for each command")
    if in_use:
        return Refused("ledger_in_use", "recorded_at")
    if not FIRST_INSTANT <= time <= now:
        detail = f"nothing is received before the year 1, or later than now, {format_instant(now)}"
        shown = format_instant(time) if is_micros(time) else time
        return Refused("out_of_range", "recorded_at", shown, detail)
    if time < newest:
        detail = f"the newest row was recorded at {format_instant(newest)}, which is later"
        return Refused("out_of_order", "recorded_at", format_instant(time), detail, remedy=_REMEDY)
    return None


def check_new_contests(events: Iterable[AnyEvent]) -> None:
    """Refuses, first that applies: rules_not_consistent (no bet is possible), pool_not_payable (no prize is)."""
    for event in events:
        if isinstance(event, ContestOpened):
            if event.rules.trading is not None:
                _check_bets(event.rules.trading, event.rules.name)
            _check_prizes(event.pool, event.rules.least_prize_micros)


def _check_bets(trading: Trading, name: str) -> None:
    """Without deposits or recorded trades, the largest bet of all is the first one of somebody who has lost nothing."""
    most = bet_cap(trading, trading.starting_cash_micros)
    if most < trading.least_bet_micros and not trading.recapitalisation and not trading.recorded_trades:
        cash, least = money_text(trading.starting_cash_micros), money_text(trading.least_bet_micros)
        detail = (
            f"no bet is possible: with starting_cash {cash}, the largest is {money_text(most)}; least_bet is {least}"
        )
        remedy = "write a smaller least_bet, more starting_cash, a smaller cap_divisor, or recapitalisation true"
        raise Refused("rules_not_consistent", "rules", name, detail, remedy=remedy)


def _check_prizes(pool: int, least_prize: int) -> None:
    """A contest without a pool pays nothing, whatever the least prize of its rule set is."""
    if 0 < pool < least_prize:
        detail = f"no prize can be paid: the pool is {money_text(pool)}, and least_prize is {money_text(least_prize)}"
        remedy = "give a larger pool or none, or a rule set with a smaller least_prize"
        raise Refused("pool_not_payable", "pool", money_text(pool), detail, remedy=remedy)


def check_program(state: State) -> None:
    """Raise NewerVersion if the ledger requires a newer version of its writers than this program's."""
    for least, position in state.required.values():
        if is_older(version := code_version(), least):
            raise NewerVersion(position, f"writers must be of version {least} or newer, and this process is {version}")


def check_required(command: commands.AnyCommand) -> None:
    """Refuses: version_too_new (this program would lock itself out)."""
    if isinstance(command, commands.RequireVersion) and is_older(version := code_version(), command.version):
        raise Refused("version_too_new", "version", command.version, f"this process is {version}")


# The fields with which a command of each type can bring an id; any other id in a command is one that the ledger has.
_BRINGS: dict[type, tuple[str, ...]] = {
    commands.OpenQuestion: ("question", "outcomes"),
    commands.ChangeOutcomes: ("add",),
    commands.OpenContest: ("contest",),
    commands.SubmitForecast: ("participant",),
    commands.RenameParticipant: ("to",),
    commands.EnrolParticipant: ("participant",),
    commands.ExcludeParticipant: ("participant",),
}


def check_new_ids(command: commands.AnyCommand, state: State) -> None:
    """Refuses: id_not_visible, id_not_plain."""
    for field, text in _brought(command):
        what = unseen(text)
        if (what or not is_known_plain(text)) and not (field in {"participant", "to"} and state.takes_part(text)):
            if what:
                raise Refused("id_not_visible", field, text, f"{what} cannot be seen")
            raise Refused("id_not_plain", field, text, not_plain(text))


def _brought(command: Any) -> Iterator[tuple[str, str]]:
    for field in _BRINGS.get(type(command), ()):
        value = getattr(command, field)
        for text in value if isinstance(value, tuple | list) else (value,):
            if text is not None:
                yield field, text
