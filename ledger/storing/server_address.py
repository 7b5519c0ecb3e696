"""The address of a PostgreSQL database: a URL as libpq, PostgreSQL's own library, reads it, and a schema."""

from typing import Any, NamedTuple
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.core.redaction import redacted

FORM = "postgresql://USER@HOST:PORT/DATABASE"
_SCHEMA = "schema="  # the one parameter of a URL that is not libpq's


class ServerAddress(NamedTuple):
    """The parameters of a connection, by libpq's names, with user and password; schema: "" if the URL names none."""

    parameters: dict[str, Any]
    schema: str

    @property
    def place(self) -> str:
        """The server and the database, as the URL names them, without user and password."""
        given = [str(self.parameters.get(name, "")) for name in ("service", "host", "port", "dbname", "options")]
        return "\0".join((*given, self.schema))


def read_address(location: str) -> ServerAddress:
    """Read a URL of a PostgreSQL database. Raises Unavailable: it is no such URL, or names no database.

    >>> read_address("postgresql://ada@one.example,two.example:5433/spring?sslmode=require").parameters["host"]
    'one.example,two.example'
    >>> read_address("postgresql:///spring?host=/run/postgresql&schema=north").schema
    'north'
    """
    before, _, query = location.partition("?")
    given = [item for item in query.split("&") if item]
    schemas = [unquote(item.removeprefix(_SCHEMA)) for item in given if item.startswith(_SCHEMA)]
    others = "&".join(item for item in given if not item.startswith(_SCHEMA))
    path = before.partition("://")[2].partition("/")[2]
    if "/" in path or "@" in path or "#" in location or len(schemas) > 1:
        raise _malformed(location)
    try:
        parameters = conninfo_to_dict(f"{before}?{others}" if others else before)
    except psycopg.ProgrammingError as error:
        if str(error).startswith("invalid URI query parameter"):  # any other message may hold a part of the password
            raise Unavailable(f"{redacted(location)}: {str(error).strip()}; {_PARAMETERS}") from None
        raise _malformed(location) from None
    hosts = str(parameters.get("host") or "")
    if "@" in hosts:  # a part of a password is before it
        raise _malformed(location)
    for host in hosts.split(","):
        if "/" in host and not (host.startswith("/") or host[1:2] == ":"):  # libpq would look for a server of this name
            raise Unavailable(f"{redacted(location)}: the host {host} is no server; {_SOCKET}")
    if not (parameters.get("dbname") or parameters.get("service")):
        raise Unavailable(f"{redacted(location)}: the URL names no database; write {FORM}")
    return ServerAddress(parameters, "".join(schemas))


_SOCKET = "for a socket, give the absolute path of its folder, such as host=/run/postgresql"
_PARAMETERS = "the parameters are libpq's, such as sslmode, host or options, and schema"


def _malformed(location: str) -> Unavailable:
    reason = "in a user, password or database, write %40 for @, %2F for /, %3A for :, %23 for #"
    return Unavailable(f"{redacted(location)}: the URL is malformed; write {FORM}; {reason}")
