"""Who asked for a command, why, and what shows that it is right: optional fields of every command, and of its rows.

`by`, `reason` and `evidence` are part of a command's content. `correlation` and `causation` are ids of the program that
sends it: a retry may have others, and is the same command. Nothing here is believed, and no address is opened.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.visible import is_plain, unseen
from forecast_ledger.ledger.model.forms import Sha256, Text, Url

MOST_EVIDENCE = 20  # pieces of a command: every row of the command has them
_URL = re.compile(values.WRITTEN_URL)
_SHA256 = re.compile("[0-9a-f]{64}", re.ASCII)


class Evidence(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What shows that a command is right: where it can be read, what it says, the SHA-256 of a copy. Give one or more.

    >>> from forecast_ledger import commands
    >>> seen = commands.Evidence(url="https://example.org/gauge/8", text="6.2 mm")
    >>> commands.ResolveQuestion(question="rainfall", value="6.2", by="ada", evidence=seen).evidence.text
    '6.2 mm'
    """

    url: Url = ""
    text: Text = ""
    sha256: Sha256 = ""


Pieces = Annotated[tuple[Evidence, ...], Meta(extra_json_schema={"maxItems": MOST_EVIDENCE})]


class Provenance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What the rows of a command say about where it came from; what was not given is left out.

    The reason is here unless the event has a field for it.
    """

    by: str = ""
    reason: str = ""
    evidence: Pieces = ()
    correlation: str = ""
    causation: str = ""


NAMES = Provenance.__struct_fields__
NOTHING = Provenance()


def check_line(value: Any, name: str) -> str:
    """Check a text of one line: up to 1,000 characters, all of which can be printed and seen; return it.

    Refuses, first that applies: malformed (not a text), text_too_long, id_not_plain.
    """
    values.check_text(value, name)
    if len(value) > values.LINE_LENGTH:
        raise Refused("text_too_long", name, value, f"more than {values.LINE_LENGTH:,} characters")
    hidden = unseen(value)
    if hidden or not is_plain(value):
        what = hidden or "a control or another character that cannot be printed, or it is not in Unicode form NFC"
        raise Refused("id_not_plain", name, value, f"the text has {what}")
    return str(value)


def check_url(value: Any, name: str) -> str:
    """Check an address, which begins with http:// or https://; return it. Refuses what `check_line` does."""
    if check_line(value, name) and not _URL.fullmatch(value):
        wrong, remedy = "not an address that begins with http:// or https://", "give the whole address, or leave it out"
        raise Refused("malformed", name, value, wrong, remedy=remedy)
    return str(value)


def check_sha256(value: Any, name: str) -> str:
    """Check a SHA-256, of 64 hexadecimal digits; return it in small letters. Refuses what `check_line` does."""
    if check_line(value, name) and not _SHA256.fullmatch(value.lower()):
        raise Refused("malformed", name, value, "not 64 hexadecimal digits", remedy="give what `sha256sum FILE` prints")
    return str(value).lower()


PARTS: dict[str, Callable[[Any, str], str]] = {"url": check_url, "text": values.check_text, "sha256": check_sha256}


def evidence_content(value: Any, name: str) -> list[dict[str, str]] | None:
    """Return the fields that each piece of evidence has, one or several; None if there is none.

    Refuses, first that applies: malformed (also more than 20, or one without a field), text_too_long, id_not_plain.
    """
    pieces = [value] if type(value) is Evidence else value
    if type(pieces) is not tuple and type(pieces) is not list:
        raise Refused("malformed", name, value, "neither evidence nor an array of it")
    if len(pieces) > MOST_EVIDENCE:
        raise Refused("malformed", name, None, f"more than {MOST_EVIDENCE} pieces", remedy="give those that decide")
    return [_piece(piece, name) for piece in pieces] or None


def _piece(value: Any, name: str) -> dict[str, str]:
    if type(value) is not Evidence:
        raise Refused("malformed", name, value, "not evidence")
    given = {part: check(getattr(value, part), f"{name}.{part}") for part, check in PARTS.items()}
    if not any(given.values()):
        raise Refused("malformed", name, None, f"it has none of {', '.join(PARTS)}", remedy="give one, or leave it out")
    return {part: text for part, text in given.items() if text}


@cache
def optional_names(kind: type[Struct]) -> tuple[str, ...]:
    """Return the fields of a type of command that its rows have: the reason only if its event has no field for it."""
    names = {field.name for field in structs.fields(kind) if field.default is not None}
    return tuple(name for name in NAMES if name not in names)


def provenance_of(command: Struct) -> Provenance | UnsetType:
    """Return what the rows of a command without a fault say about where it came from; UNSET if it does not say."""
    given = {name: value for name in optional_names(type(command)) if (value := getattr(command, name))}
    if not given:
        return UNSET
    if "evidence" in given:
        pieces = evidence_content(given["evidence"], "evidence") or ()
        given["evidence"] = tuple(Evidence(**piece) for piece in pieces)
    return Provenance(**given)


def with_provenance(command: Any, provenance: Provenance | UnsetType) -> Any:
    """Return a command that was rebuilt from its events with what its rows say about where it came from."""
    if provenance is UNSET:
        return command
    kind: type[Struct] = type(command)
    given = {name: value for name in optional_names(kind) if (value := getattr(provenance, name))}
    return structs.replace(command, **given) if given else command
