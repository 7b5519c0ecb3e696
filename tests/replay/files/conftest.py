"""A log that is exported in every format."""

from tests.support.exports import export_commands
from tests.support.logs import log_fixture

log = log_fixture(export_commands, "session", refused=True)  # no test writes to it
