"""What messages leave out: passwords, and whatever a URL says after `?` that is not known to be harmless."""

import re
from collections.abc import Callable

_NAMED = (
    r"password|passwd|pwd|passphrase|secret|token|signature|credentials?|(?:access|account|api|private|secret)_?key"
)
_GIVEN = r"""'(?:\\.|[^'\\])*'?|"[^"]*"?|[^\s&;,'"]+"""
_ASSIGNED = re.compile(rf"(\w*(?:{_NAMED})\s*=\s*)(?:{_GIVEN})", re.IGNORECASE)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^\s'\"`<>]*")
_WHOLE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_PASSWORD = re.compile(r"^([^/@:]*:/*[^/@:]*):.*@", re.DOTALL)  # the last @ of a URL ends it
_USER = re.compile(r"(?<![\w:/])([\w.%+-]+):[^\s/@:'\"]+@(?=[\w.[-])")  # of a URL that has lost its scheme
_QUERY = re.compile(r"\?[\w.%-]+=[^\s'\"`<>]*")  # likewise
_HARMLESS = {"channel_binding", "connect_timeout", "mode", "region", "schema", "sslmode", "target_session_attrs"}
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{0,40}", re.ASCII)
_BREAK = re.compile(r"(?<![:;,\s])\s*\n\s*")  # between lines of a message, of which the first does not lead to the next
_ENDS = ":;,.)]"  # signs that end a URL in a sentence


def redacted(location: object) -> str:
    """Return the printable form of a location: without its password, and without what follows `?` unless harmless.

    >>> redacted("postgresql://ada:s@c/ret@db.example/forecasts?sslmode=require&sslpassword=secret")
    'postgresql://ada:…@db.example/forecasts?sslmode=require&…'
    >>> redacted("host=db.example password=secret"), redacted("seasons/what?.db")
    ('host=db.example password=…', 'seasons/what?.db')
    """
    text = str(location)
    return _redacted_url(text) if _WHOLE_URL.match(text) else redacted_text(text)


def one_line(text: str) -> str:
    r"""Return the message of a database on one line, without the part of the statement that PostgreSQL appends.

    >>> one_line("Connection refused\n\tIs the server running?\nLINE 1: SELECT 1"), one_line("tried:\n- a")
    ('Connection refused; Is the server running?', 'tried: - a')
    """
    return " ".join(_BREAK.sub("; ", text.partition("\nLINE ")[0].strip()).split())


def redacted_text(text: str) -> str:
    """Return a message, from anybody, with every location in it redacted.

    >>> redacted_text("cannot open s3://bucket/season?token=secret: no answer")
    'cannot open s3://bucket/season?…: no answer'
    """
    if ":/" in text:
        text = _URL.sub(_up_to_its_end(_redacted_url), text)
    if "@" in text:
        text = _USER.sub(r"\1:…@", text)
    if "=" in text:
        text = _ASSIGNED.sub(r"\1…", _QUERY.sub(_up_to_its_end(_redacted_query), text))
    return text


def _up_to_its_end(redact: Callable[[str], str]) -> Callable[[re.Match[str]], str]:
    """Return a function that redacts a match, but for the signs of the sentence after it."""

    def replacement(match: re.Match[str]) -> str:
        url = match[0].rstrip(_ENDS)
        return redact(url) + match[0][len(url) :]

    return replacement


def _redacted_url(url: str) -> str:
    url = _PASSWORD.sub(r"\1:…@", url)
    begin = re.search("[?#]", url)
    return url if begin is None else url[: begin.start()] + _redacted_query(url[begin.start() :])


def _redacted_query(query: str) -> str:
    given = re.split("[&;#]", query[1:])
    shown = [item for item in given if query[0] == "?" and _is_harmless(item)]
    return query[0] + "&".join(shown + ["…"] * (len(shown) < len(given)))


def _is_harmless(item: str) -> bool:
    name, _, value = item.partition("=")
    return name in _HARMLESS and _PLAIN.fullmatch(value) is not None
