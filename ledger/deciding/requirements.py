"""Decide which version of this program a ledger requires of its writers; whoever decides next has to comply."""

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.deciding.state import Decide, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.program_versions import version_key


def require_version(command: commands.RequireVersion, _: State) -> events.VersionRequired:
    """Return the requirement. A decision does not depend on the program that makes it, so any version is taken."""
    return events.VersionRequired(at=values.read_instant(command.at), version=command.version)


def version_required(event: events.VersionRequired, state: State, position: int) -> tuple[Write, ...]:
    """Replace an earlier requirement. Raises Corrupt: the event has no version."""
    if version_key(event.version) is None:
        raise Corrupt(position, f"writers must be of version {event.version[:40]!r}, which is none")
    return ((state.required, "version", (event.version, position)),)


DECIDE: dict[type, Decide] = {commands.RequireVersion: require_version}
EVOLVE: dict[type, Evolve] = {events.VersionRequired: version_required}
