"""A history told under ids that change: everybody begins under one or two others, and has the own one at the end."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.support.given import NOW

Told = dict[str, Any]  # one command, as a line of JSON holds it
Outcome = Receipt | Refused
_OF_ACCOUNTS = {"enrol_participant", "exclude_participant", "record_decision", "record_trade"}
_OF_ACCOUNTS |= {"deposit_cash", "withdraw_cash"}


def opened(path: str = ":memory:", segments: Path | None = None) -> Ledger:
    """A ledger whose clock stands, and which pays prizes."""
    return Ledger.open(path, clock=lambda: NOW, prizes=prizes_from_log, segments=segments)


def sent(ledger: Ledger, command: Told) -> Outcome:
    """The outcome of one command."""
    return ledger.handle_many([commands.read(json.dumps(command))])[0]


class Disguise:
    """What a ledger records if people say the commands of a history under other ids, with renames between them.

    Some people begin as two participants, of whom either has the accounts and exclusions of some contests; the first of
    the two says all else. Before a contest ends, they are one. Ids that were left are taken again, or are said by
    mistake. lines: all commands. outcomes: of those of the history. strays: the codes of what was said by mistake.
    sealed: by contest, the id of each person at its end.
    """

    def __init__(self, ledger: Ledger, said: Sequence[Told], people: Sequence[str], random: Random) -> None:
        self.lines: list[Told] = []
        self.outcomes: list[Outcome] = []
        self.strays: list[str] = []
        self.renames: list[Outcome] = []
        self.sealed: dict[str, dict[str, str]] = {}
        self._ledger, self._random, self._at = ledger, random, ""
        self._ids = {who: [f"{who}.{number}" for number in range(random.choice([1, 2]))] for who in people}
        self._former: dict[str, list[str]] = {who: [] for who in people}
        self._holder: dict[tuple[str, str], int] = {}  # contest, person -> which of the two has the account
        self._decided: dict[str, str] = {}  # the content of a decision -> the id that sent it first
        for command in said:
            self._at = command["at"]
            while random.random() < 0.15:
                self._rename_somebody()
            self._tell(command)
        for who in people:
            for old in self._ids[who]:
                self._rename(who, old, who)

    def _say(self, command: Told) -> Outcome:
        self.lines.append(command)
        return sent(self._ledger, command)

    def _tell(self, command: Told) -> None:
        who, told = command.get("participant"), dict(command)
        if command["type"] == "finalize_contest":
            for person, (first, *others) in [*self._ids.items()]:
                for other in others:
                    self._rename(person, other, first)
        if who in self._ids:
            content = json.dumps(command | {"id": ""}, sort_keys=True)
            told["participant"] = self._decided.get(content) or self._id_of(command, who)
            if self._former[who] and command["type"] != "record_decision" and self._random.random() < 0.3:
                stray = {"id": f"s{len(self.lines)}", "participant": self._random.choice(self._former[who])}
                outcome = self._say(told | stray)
                self.strays.append(outcome.code if isinstance(outcome, Refused) else "")
        outcome = self._say(told)
        self.outcomes.append(outcome)
        if isinstance(outcome, Refused):
            return
        if command["type"] == "record_decision" and who in self._ids:
            self._decided[content] = told["participant"]
        if command["type"] == "finalize_contest" and not outcome.duplicate:
            self.sealed[command["contest"]] = {who: ids[0] for who, ids in self._ids.items()}

    def _id_of(self, command: Told, who: str) -> str:
        ids = self._ids[who]
        if command["type"] not in _OF_ACCOUNTS:
            return ids[0]
        return ids[min(self._holder.setdefault((command["contest"], who), self._random.randrange(2)), len(ids) - 1)]

    def _rename_somebody(self) -> None:
        who = self._random.choice(sorted(self._ids))
        old = self._random.choice(self._ids[who])
        others = [each for each in (*self._former[who], *self._ids[who]) if each != old]
        self._rename(who, old, self._random.choice([*others, f"{who}.{len(self.lines)}"]))

    def _rename(self, who: str, old: str, new: str) -> None:
        """Rename somebody of whom something is recorded; of whom nothing is, the id is not used any more."""
        if old == new:
            return
        rename = {"type": "rename_participant", "participant": old, "to": new, "reason": "one person"}
        outcome = self._say({"id": f"r{len(self.lines)}", "at": self._at, **rename})
        self.renames.append(outcome)
        if isinstance(outcome, Refused) and new != who:
            return
        self._ids[who] = [*dict.fromkeys(new if each == old else each for each in self._ids[who])]
        if isinstance(outcome, Receipt):
            self._former[who] = [each for each in (*self._former[who], old) if each != new]
