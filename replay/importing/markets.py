"""Markets of platforms: what the files of one say becomes one contest, with trades if they are asked for."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.replay.importing import kalshi, manifold, polymarket
from forecast_ledger.replay.importing.json_files import check_json_is_there, json_items
from forecast_ledger.replay.importing.market_items import Contents, Platform, contest_item, market_items
from forecast_ledger.replay.importing.market_trades import RULES, in_order_of_time, person_of
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import Published, Scope, Source, SourceItem


class MarketCopy(Protocol):
    """What the files of a platform say. published: results of trades, once `contents` is read.

    people: the platform's ids of those who forecast or trade, by the names that it has for them beside these.
    """

    published: list[Published]
    people: dict[str, str]

    def read(self, files: SourceFiles, name: str) -> Iterator[SourceItem]:
        """Take a file in; return what of it is not read."""

    def contents(self) -> Iterator[Contents | SourceItem]:
        """Return the markets in order of their openings, and what is not carried over."""

    def has_prices(self, question: str) -> bool:
        """Return whether prices of a question are there, so that those that are not there are gone."""


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
    contest_rules = rules or (RULES if trades else None)
    items = _items(json_items(files, copy.read, source.other), platform, copy, contest_rules)

    def has_prices(opened: QuestionOpened) -> bool:
        return copy.has_prices(opened.question)

    scope = Scope(forecasts=has_prices, unread=lambda *_: bool(files.partial), trades=platform.kind if trades else "")
    ordered = in_order_of_time(platform.kind, platform.title, items, copy.people) if trades else items
    return Source(ordered, scope, copy.published, person_of=person_of)


def _items(read: Iterator[SourceItem], platform: Platform, copy: MarketCopy, rules: str | None) -> Iterator[SourceItem]:
    yield from read
    opened = False
    for each in copy.contents():
        if not isinstance(each, Contents):
            yield each
            continue
        if not opened:
            yield contest_item(platform, each.market, rules)
        opened = True
        yield from market_items(platform, each, copy.people)
    if not opened:
        yield contest_item(platform, None, rules)
