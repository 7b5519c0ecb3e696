"""Questions whose options change: the outcomes that a question had at an instant, as a ledger and a copy say it."""

from collections.abc import Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.deciding.state import QuestionState
from forecast_ledger.ledger.model.commands import ChangeOutcomes
from forecast_ledger.ledger.model.events import OutcomesChanged

_Change = tuple[int, tuple[str, ...], tuple[str, ...], int | None]  # at, added, removed, the end of the grace period


class OptionHistory(NamedTuple):
    """The changes of a question's options: those recorded, and those that a copy has beside them.

    agrees: whether the copy says what is recorded, and perhaps more; if not, `new` is empty.
    """

    opened_with: tuple[str, ...]
    recorded: tuple[_Change, ...]
    new: tuple[_Change, ...]
    agrees: bool

    @property
    def changed_at(self) -> int | None:
        """When the options last changed in the ledger, µs: forecasts from before that cannot be recorded any more."""
        return self.recorded[-1][0] if self.recorded else None

    @property
    def new_at(self) -> int | None:
        """The instant of the first change that is new, µs."""
        return self.new[0][0] if self.new else None

    def question_at(self, question: QuestionState, at: int) -> QuestionState:
        """Return a question with the outcomes that a forecast gives which is made at an instant, µs.

        At the instant of a change, it gives what is left, and not yet what is added.
        """
        outcomes, gone = self.opened_with, set[str]()
        for since, added, removed, _ in (*self.recorded, *self.new):
            if since < at or (since == at and removed):
                outcomes += added
                gone |= {*removed}
        return question._replace(outcomes=outcomes, removed=frozenset(gone))

    def has_ended(self, at: int, now: int) -> bool:
        """Return whether a forecast that was made at an instant has ended with a grace period by another one, µs."""
        return any(at <= since and grace is not None and grace <= now for since, *_, grace in self.recorded)


def option_history(
    opened_with: tuple[str, ...],
    recorded: Sequence[OutcomesChanged],
    given: Sequence[ChangeOutcomes],
    *,
    latest: int,
    settled: bool,
) -> OptionHistory:
    """Return the changes of a question's options. given: those of a copy, in order of time.

    latest: the instant of the last forecast or withdrawal in the ledger that cannot be restated, µs. settled: whether
    it has an answer that stays. After either, no change can be recorded.
    """
    known = tuple((each.at, each.added, each.removed, each.grace_ends_at) for each in recorded)
    said = tuple(map(_change, given))
    new = said[len(known) :]
    agrees = said[: len(known)] == known and not (new and (settled or (new[0][0] < latest)))
    return OptionHistory(opened_with, known, new if agrees else (), agrees)


def _change(command: ChangeOutcomes) -> _Change:
    try:
        ends = None if command.grace_ends_at is None else read_instant(command.grace_ends_at)
        return read_instant(command.at), command.add or (), command.remove or (), ends
    except Refused:  # the command is refused for it
        return 0, command.add or (), command.remove or (), None
