"""The ids that a command brings into a ledger: every character of them can be seen, and is known to this Python.

A ledger may already have other ids, from before this rule. They stay in use: only what is new is checked, and only when
it is recorded, so that an audit decides an old command as it was decided, with any version of Unicode.
"""

from collections.abc import Iterator
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.visible import is_known_plain, unseen
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import commands

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
            raise Refused("id_not_plain", field, text)


def _brought(command: Any) -> Iterator[tuple[str, str]]:
    for field in _BRINGS.get(type(command), ()):
        value = getattr(command, field)
        for text in value if isinstance(value, tuple | list) else (value,):
            if text is not None:
                yield field, text
