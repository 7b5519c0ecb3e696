"""What a writer holds of the log up to a position."""

from collections.abc import Sequence

from forecast_ledger.ledger.batching.command_index import CommandIndex, RecordedCommand
from forecast_ledger.ledger.batching.standing_file import StandingFile
from forecast_ledger.ledger.deciding.decider import evolve
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import RecordDecision
from forecast_ledger.ledger.model.events import DecisionMalformed, DecisionRecorded
from forecast_ledger.ledger.model.log import Checkpoint, Recorded

_ATTEMPT_EVENTS = (DecisionRecorded, DecisionMalformed)
Attempt = tuple[str, str, int, int]  # contest, participant, period, attempt


class WriterState:
    """The state that commands are decided against, and which commands are recorded.

    attempts: the id of the command that recorded each attempt at a decision. head: the last row. recorded_at: its time,
    µs. is_imported: whether all rows so far were imported with their times, if there are any.
    """

    def __init__(self) -> None:
        self.state = State()
        self.commands = CommandIndex()
        self.attempts: dict[Attempt, str] = {}
        self.head = log.START
        self.recorded_at = -(2**63)
        self.is_imported = True
        self._standing_file = StandingFile()
        self.state.unload = self._standing_file.unload

    def apply(self, page: Sequence[Recorded]) -> None:
        """Apply the rows after the head. Raises Corrupt; the head is then the row before the one that is at fault."""
        commands = self.commands.recent
        last = None
        try:
            for recorded in page:
                self.evolve(recorded)
                entry = commands.get(recorded.command_id)
                first = entry.first if entry else recorded.position
                commands[recorded.command_id] = RecordedCommand(recorded.command, first, recorded.position)
                last = recorded
        finally:
            if last is not None:
                self.head, self.recorded_at = Checkpoint(last.position, last.digest), last.recorded_at
                self.is_imported = last.imported is True
        self.commands.settle()

    def evolve(self, recorded: Recorded) -> None:
        """Apply an event to the state; its command is not noted. Raises Corrupt."""
        for table, key, value in evolve(recorded.event, self.state, recorded.position):
            table[key] = value
        if isinstance(recorded.event, _ATTEMPT_EVENTS):
            self.attempts[attempt_key(recorded.event)] = recorded.command_id

    def close(self) -> None:
        """Delete the temporary file."""
        self._standing_file.close()


def attempt_key(source: RecordDecision | DecisionRecorded | DecisionMalformed) -> Attempt:
    """Return the key of an attempt, which is recorded once, under one command id."""
    return source.contest, source.participant, source.period, source.attempt
