"""The formats that `import-from` reads, and the function that reads each; the markets of a platform as one contest."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.replay.importing import kalshi, manifold, polymarket
from forecast_ledger.replay.importing.forecastbench import read_forecastbench
from forecast_ledger.replay.importing.hubverse import read_hub
from forecast_ledger.replay.importing.json_files import check_json_is_there, json_items
from forecast_ledger.replay.importing.market_items import (
    TRADE_RULES,
    Contents,
    Platform,
    contest_item,
    in_order_of_time,
    market_items,
    person_of,
)
from forecast_ledger.replay.importing.metaculus import read_download
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import BARE, Published, Scope, Source, SourceItem


class MarketCopy(Protocol):
    """What the files of a platform say. published: results of trades, once `contents` is read.

    people: the platform's ids of those who forecast or trade, by the names that it has for them beside these.
    priced: the questions of which prices are there, so that those that are not there are gone.
    """

    published: list[Published]
    people: dict[str, str]
    priced: set[str]

    def read(self, files: SourceFiles, name: str) -> Iterator[SourceItem]:
        """Take a file in; return what of it is not read."""

    def contents(self) -> Iterator[Contents | SourceItem]:
        """Return the markets in order of their openings, and what is not carried over."""


class _Maker(Protocol):
    """Makes an empty copy. trades: whether it keeps trades."""

    def __call__(self, *, trades: bool) -> MarketCopy: ...


class MarketSource(NamedTuple):
    """A platform, what reads its files, and why JSON that is nothing of it is left out."""

    platform: Platform
    copy: _Maker
    other: str


MARKETS: dict[str, MarketSource] = {
    "kalshi": MarketSource(kalshi.PLATFORM, kalshi.Copy, kalshi.OTHER_JSON),
    "manifold": MarketSource(manifold.PLATFORM, manifold.Copy, manifold.OTHER_JSON),
    "polymarket": MarketSource(polymarket.PLATFORM, polymarket.Copy, polymarket.OTHER_JSON),
}


def read_markets(kind: str, files: SourceFiles, rules: str | None, *, trades: bool = False) -> Source:
    """Return the commands of the markets of a platform in order of their openings; with trades in order of time.

    rules: the preset of the contest; if None, the mean Brier score, and with trades that of recorded trades. Raises,
    before anything is returned, Refused (bad_source): no JSON file is there.
    """
    source = MARKETS[kind]
    platform, copy = source.platform, source.copy(trades=trades)
    check_json_is_there(files, platform.title)
    contest_rules = rules or (TRADE_RULES if trades else None)
    items = _items(json_items(files, copy.read, source.other), platform, copy, contest_rules)

    def has_prices(opened: QuestionOpened) -> bool:
        return opened.question in copy.priced

    traded = platform.kind if trades else ""
    scope = Scope(forecasts=has_prices, unread=lambda *_: bool(files.partial), trades=traded, bare=BARE)
    ordered = in_order_of_time(platform.kind, platform.title, items, copy.people) if trades else items
    return Source(ordered, scope, copy.published, person_of=person_of)


def _items(read: Iterator[SourceItem], platform: Platform, copy: MarketCopy, rules: str | None) -> Iterator[SourceItem]:
    yield from read
    opened = False
    for content in copy.contents():
        if not isinstance(content, Contents):
            yield content
            continue
        if not opened:
            yield contest_item(platform, content.market, rules)
        opened = True
        yield from market_items(platform, content, copy.people)
    if not opened:
        yield contest_item(platform, None, rules)


class SourceKind(NamedTuple):
    """A format. read: returns what a source has, given the preset of its contests or None. path: what PATH is.

    bettors_of: the platform whose own forecasts are its prices, if the format has those of people, too. traded: `read`,
    with trades, if the format has those of people.
    """

    read: Callable[[SourceFiles, str | None], Source]
    path: str
    bettors_of: str = ""
    traded: Callable[[SourceFiles, str | None], Source] | None = None


def _markets(kind: str, path: str, bettors_of: str = "") -> SourceKind:
    return SourceKind(partial(read_markets, kind), path, bettors_of, partial(read_markets, kind, trades=True))


KINDS: dict[str, SourceKind] = {
    "forecastbench": SourceKind(
        read_forecastbench, "a folder of question, forecast and resolution sets, a zip of it, or one set"
    ),
    "hubverse": SourceKind(read_hub, "a hub: the folder that has hub-config and model-output, or a zip of it"),
    "kalshi": _markets("kalshi", "saved answers of Kalshi's API: a folder, a zip or a file of JSON or JSON lines"),
    "manifold": _markets(
        "manifold",
        "saved answers of Manifold's API, or its data dump: a folder, a zip or a file of JSON or JSON lines",
        bettors_of="Manifold",
    ),
    "metaculus": SourceKind(read_download, "a data download: a zip, or the folder that it was unpacked to"),
    "polymarket": _markets(
        "polymarket", "saved answers of the Gamma and CLOB APIs: a folder, a zip or a file of JSON or JSON lines"
    ),
}
