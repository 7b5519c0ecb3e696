"""Groups: the commands that threads send at the same time, decided and committed together by one of these threads."""

from collections.abc import Callable, Sequence
from copy import copy
from threading import Lock

from forecast_ledger.ledger.batching.batch import Receipt, Requests
from forecast_ledger.ledger.core.errors import Conflict, Refused, Unavailable, Uncertain
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing import database

MOST = 500  # commands of a group: other writers wait until all of them are decided
# Decides the commands of a group. It asks for them when its turn comes, so that they are as many as have come by then.
Decide = Callable[[Callable[[], Requests]], Sequence[Receipt | Refused]]


class _Waiting:
    """A command whose thread waits for its outcome; None: its group has none, and the command is decided alone."""

    __slots__ = ("bell", "command", "id", "leads", "outcome")

    def __init__(self, command: AnyCommand, command_id: str) -> None:
        self.command, self.id = command, command_id
        self.outcome: Receipt | Refused | Conflict | Unavailable | Uncertain | None = None
        self.leads = False
        self.bell = Lock()
        self.bell.acquire()


class Groups:
    """The threads that decide commands of one ledger: one leads, and the others wait.

    A command that comes while no other is decided has no wait. Those that come meanwhile are the next group: the
    thread of the first of them leads it. A refusal concerns one command alone. An error of the store is raised for
    each command of the group; after any other error, each is decided alone.
    """

    def __init__(self, decide: Decide, limit: float | None = None) -> None:
        """limit: how long a command waits for a leader, and then for its end, s; LOCK_TIMEOUT by default."""
        self._decide, self._limit = decide, limit
        self._lock = Lock()
        self._waiting: list[_Waiting] = []  # those that no leader has taken yet
        self._is_led = False

    def outcome(self, command: AnyCommand, command_id: str) -> Receipt | Refused:
        """Return the outcome of a command, decided together with those of other threads.

        Raises what `decide` does, and Unavailable (no leader has taken it within the limit), Uncertain (its leader has
        not ended within the limit after that).
        """
        caller = _Waiting(command, command_id)
        try:
            with self._lock:
                caller.leads, self._is_led = not self._is_led, True
                if not caller.leads:
                    self._waiting.append(caller)
            if not caller.leads:
                self._wait(caller)
            if caller.leads:
                self._lead(caller)
        finally:
            if caller.leads:
                self._pass_on()
        outcome = caller.outcome
        if outcome is None:
            [outcome] = self._decide(lambda: Requests([command], [command_id]))
        if isinstance(outcome, Receipt | Refused):
            return outcome
        raise outcome

    def _lead(self, caller: _Waiting) -> None:
        group = [caller]

        def requests() -> Requests:
            with self._lock:
                group.extend(self._waiting[: MOST - 1])
                del self._waiting[: MOST - 1]
            return Requests([each.command for each in group], [each.id for each in group])

        try:
            for each, outcome in zip(group, self._decide(requests), strict=True):
                each.outcome = outcome
        except (Conflict, Unavailable, Uncertain) as error:  # of the store, for whatever command
            for each in group:
                each.outcome = copy(error)  # a raised error belongs to its thread
        except Exception:
            if len(group) == 1:
                raise
        finally:
            for each in group[1:]:
                each.bell.release()

    def _pass_on(self) -> None:
        """Let the thread of the first command that waits lead; if none waits, the next that comes."""
        with self._lock:
            following = self._waiting.pop(0) if self._waiting else None
            self._is_led = following is not None
            if following is not None:
                following.leads = True
                following.bell.release()

    def _wait(self, caller: _Waiting) -> None:
        """Wait for an outcome, or to lead."""
        limit = database.LOCK_TIMEOUT if self._limit is None else self._limit
        try:
            if caller.bell.acquire(timeout=limit):
                return
        finally:
            with self._lock:
                is_taken = caller not in self._waiting
                if not is_taken:
                    self._waiting.remove(caller)
        waited = f"other threads have used the ledger for {limit:g} s"
        if not is_taken:
            raise Unavailable(f"{waited}; nothing was recorded, try again")
        if not caller.bell.acquire(timeout=limit):
            raise Uncertain(f"{waited}, and have not ended")
