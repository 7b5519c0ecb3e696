"""A log to export: two stories, texts that files trip over, and helpers that several test modules need."""

from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand, OpenContest, read
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.storing.store import Store
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.files.export import export
from forecast_ledger.replay.files.manifest import Manifest
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.writing.pay import prizes_from_log
from tests.support.given import MARCH, contest, entry, finalization, forecast, opened, payment, resolution, won
from tests.support.paths import ROOT

DATA = ROOT / "data"
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


def commands_of(story: str) -> list[AnyCommand]:
    """The commands of a worked example; portfolios are valued every sixth hour, not every ten minutes."""
    lines = (DATA / story / "commands.jsonl").read_bytes().splitlines()
    return [_valued_less_often(read(line)) for line in lines]


def _valued_less_often(command: AnyCommand) -> AnyCommand:
    """The command; if it opens a contest of trading, under its rules but for the time between valuations."""
    if not isinstance(command, OpenContest):
        return command
    rules = PRESETS[command.rules] if isinstance(command.rules, str) else command.rules
    if not isinstance(rules, RuleSet) or rules.trading is None:
        return command
    trading = structs.replace(rules.trading, snapshot_seconds=6 * 3_600)
    return structs.replace(command, rules=structs.replace(rules, trading=trading))


def written(path: Path, commands: list[AnyCommand]) -> str:
    """The path of a log that holds what these commands lead to; recorded at one instant each time it is written."""
    with Ledger.open(path, clock=lambda: MARCH, prizes=prizes_from_log) as ledger:
        outcomes = ledger.handle_many(commands)
    assert any(not isinstance(outcome, Refused) for outcome in outcomes)
    return str(path)


def export_commands() -> list[AnyCommand]:
    """Stories of forecasting and trading, a contest that is paid, odd texts, and scores below 0."""
    odd = [opened(question, title=title) for question, title in TITLES.items()]
    odd[0] = structs.replace(odd[0], group="sheets", category="traps", tags=("cells", "Köln"), url="u", source="office")
    paid = [*won(), payment()]
    peers: list[AnyCommand] = [contest("peers", rules="relative-2021-11"), entry("peers", "formula")]
    peers += [forecast("formula", who, probability=chance) for who, chance in (("=x", "0.9"), ("-y", "0.1"))]
    own: list[AnyCommand] = [*odd, *paid, *peers, resolution("formula"), finalization("peers")]
    renumbered = [structs.replace(command, id=f"told {number}") for number, command in enumerate(own)]
    stories = (commands_of(name) for name in ("metaculus-2022", "arena-week", "exchange-fees"))
    return [*chain.from_iterable(stories), *renumbered]


def rows(location: str, name: str = "main") -> list[bytes]:
    """Every row of a log, byte for byte."""
    store = Store.open(location, name, read_only=True)
    try:
        return [row for page in store.pages() for row in page]
    finally:
        store.close()


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
