"""A log to export: two stories, texts that files trip over; and what exports of a log hold."""

from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.files.export import export
from forecast_ledger.replay.files.manifest import Manifest
from forecast_ledger.replay.reading.replay import replay
from tests.support.given import contest, entry, finalization, forecast, opened, payment, resolution, won
from tests.support.logs import commands_of, light, written

FORMS = ["sqlite", "csv", "jsonl", "parquet", "arrow"]
EVERYTHING = list(CATALOGUE)
TITLES = {  # what a spreadsheet runs, what ends a line or a field, what is not ASCII, what ends a C string
    "formula": "=1+1",
    "lines": 'one\ntwo\r\nthree\rfour "five", six',
    "wide": "雨 \u2028 \U0001f327 '\"",
    "nul": "a\x00b",
    "-5": "-5",
    "@at": "@SUM(A1)",
}


def export_commands() -> list[AnyCommand]:
    """Stories of forecasting and trading, a contest that is paid, odd texts, and scores below 0."""
    odd = [opened(question, title=title) for question, title in TITLES.items()]
    odd[0] = structs.replace(odd[0], group="sheets", category="traps", tags=("cells", "Köln"), url="u", source="office")
    paid = [*won(), payment()]
    peers: list[AnyCommand] = [contest("peers", rules="relative-2021-11"), entry("peers", "formula")]
    peers += [forecast("formula", who, probability=chance) for who, chance in (("=x", "0.9"), ("-y", "0.1"))]
    own: list[AnyCommand] = [*odd, *paid, *peers, resolution("formula"), finalization("peers")]
    renumbered = [structs.replace(light(command), id=f"told {number}") for number, command in enumerate(own)]
    stories = (map(light, commands_of(name)) for name in ("metaculus-2022", "arena-week", "exchange-fees"))
    return [*chain.from_iterable(stories), *renumbered]


def export_log(path: Path) -> str:
    """The path of a log of these commands, of which three are refused: two stories have a question of the same id."""
    return written(path, export_commands(), refused=True)


def exported(location: str, out: Path, form: str, **options: Any) -> Manifest:
    """An export of all of a log."""
    return export(location, out, form, **options)


def digests(location: str, as_of: int | None = None) -> list[str]:
    """The digest of every projection."""
    replayed = replay(location, as_of=as_of)
    return [replayed.table(name).digest() for name in CATALOGUE]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def resealed(changed: list[bytes]) -> list[bytes]:
    """Rows after somebody changed them, every digest made right again."""
    last, sealed = log.GENESIS, []
    for row in changed:
        body = row[: row.rindex(b',"digest":')]
        before = body.index(b'"previous":"') + len('"previous":"')
        body = body[:before] + last.encode() + body[before + 64 :]
        last = sha256(body).hexdigest()
        sealed.append(body + b',"digest":"' + last.encode() + b'"}')
    return sealed
