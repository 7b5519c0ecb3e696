"""A record of a market of Polymarket's Gamma API: what is asked, until when, its price, how it ended; its fields."""

from collections.abc import Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.json_files import (
    Record,
    flag_in,
    instant_in,
    list_in,
    number_in,
    read_number,
    text_in,
)
from forecast_ledger.replay.importing.market_items import BINARY, Answer, Market, Price, checked_market
from forecast_ledger.replay.importing.source_items import Columns, NotCarried, ignored_fields, label_of

_WORDS = "words about the market"
_LOOKS = "how the market is shown, and found, on the site"
_VOLUME = "how much was traded, or is offered"
_ORDERS = "how orders are taken"
_OTHER_TIMES = "another form of a time that is read, or one that decides nothing"
_RECORD = "when and by whom the record was made"
_CHANGES = "computed from prices"
_FEES = "fees and rewards of traders"
_GAME = "the game that the market is about"
_STATES = "a state that `closed`, `acceptingOrders` and `umaResolutionStatus` decide"
_OTHER_ID = "another id of the market or its question"
_OF_BOTH = {
    _WORDS: "description resolutionSource",
    _LOOKS: """image icon imageOptimized iconOptimized series categories commentsEnabled disqusThread commentCount
        requiresTranslation""",
    _VOLUME: """volume volume24hr volume1wk volume1mo volume1yr liquidity liquidityAmm liquidityClob competitive
        openInterest""",
    _ORDERS: "enableOrderBook cyom",
    _RECORD: "createdBy updatedBy creator",
    _STATES: """active archived new featured restricted automaticallyResolved automaticallyActive pendingDeployment
        deploying deployingTimestamp scheduledDeploymentTimestamp""",
    _GAME: "gameId score",
    _OTHER_ID: "negRiskMarketID",
}
_OF_MARKET = {
    _WORDS: "groupItemTitle groupItemThreshold groupItemRange sponsorName shortOutcomes",
    _LOOKS: """twitterCardImage twitterCardLocation twitterCardLastRefreshed twitterCardLastValidated seriesColor
        chartColor showGmpSeries showGmpOutcome sponsorImage wideFormat xAxisValue yAxisValue marketGroup curationOrder
        marketType formatType pastSlugs mailchimpTag sentDiscord""",
    _VOLUME: """volumeNum liquidityNum volumeAmm volumeClob volume24hrAmm volume1wkAmm volume1moAmm volume1yrAmm
        volume24hrClob volume1wkClob volume1moClob volume1yrClob""",
    _ORDERS: """orderPriceMinTickSize orderMinSize secondsDelay clearBookOnStart rfqEnabled notificationsEnabled
        pagerDutyNotificationEnabled ammType fpmmLive denominationToken customLiveness""",
    _OTHER_TIMES: """endDateIso startDateIso umaEndDateIso hasReviewedDates readyTimestamp fundedTimestamp
        eventStartTime""",
    _RECORD: "submitted_by resolvedBy approved version",
    _CHANGES: """spread lastTradePrice oneHourPriceChange oneDayPriceChange oneWeekPriceChange oneMonthPriceChange
        oneYearPriceChange""",
    _FEES: """fee makerBaseFee takerBaseFee feesEnabled feeType feeSchedule makerRebatesFeeShareBps rewardsMinSize
        rewardsMaxSpread holdingRewardsEnabled clobRewards rewards umaBond umaReward""",
    _STATES: "ready funded readyForCron manualActivation umaResolutionStatuses",
    _GAME: "gameStartTime sportsMarketType line teamAID teamBID",
    _OTHER_ID: "questionID marketMakerAddress negRiskRequestID negRiskOther",
    "bounds of a market of numbers, whose two outcomes are read": "lowerBound upperBound lowerBoundDate upperBoundDate",
}
_OF_EVENT = {
    _WORDS: "subtitle eventMetadata estimateValue cantEstimate estimatedValue tweetCount",
    _LOOKS: """ticker featuredImage featuredImageOptimized showAllOutcomes showMarketImages gmpChartMode carouselMap
        color sortBy subcategory isTemplate templateVariables parentEvent parentEventId subEvents collections
        eventCreators chats templates seriesSlug featuredOrder cumulativeMarkets countryName electionType""",
    _OTHER_TIMES: """startDate endDate closedTime creationDate createdAt updatedAt published_at startTime eventDate
        eventWeek finishedTimestamp""",
    _STATES: "closed",
    _GAME: "elapsed period live ended gameStatus spreadsMainLine totalsMainLine teams sport homeTeamName awayTeamName",
    "it changes no answer and no price": "enableNegRisk negRiskAugmented negRiskFeeBips",
}


COLUMNS = {
    "market": Columns(
        used=(
            *("id", "question", "conditionId", "slug", "clobTokenIds", "outcomes", "outcomePrices", "startDate"),
            *("acceptingOrdersTimestamp", "createdAt", "endDate", "closed", "closedTime", "umaEndDate"),
            *("umaResolutionStatus", "acceptingOrders", "bestBid", "bestAsk", "updatedAt", "category", "tags"),
            *("events", "negRisk"),
        ),
        ignored=ignored_fields(_OF_BOTH, _OF_MARKET),
    ),
    "event": Columns(
        used=("title", "slug", "category", "tags", "markets", "negRisk"),
        ignored=ignored_fields(_OF_BOTH, _OF_EVENT, {_OTHER_ID: "id"}),
    ),
    "activity": Columns(
        used=(
            *("proxyWallet", "type", "side", "asset", "conditionId", "size", "usdcSize", "price", "timestamp"),
            *("outcome", "transactionHash"),
        ),
        ignored=ignored_fields(
            {
                "the token or the name of the outcome is read": "outcomeIndex",
                _WORDS: "title slug eventSlug icon eventId",
                "who owns the wallet, in words that change": """name pseudonym bio profileImage
                    profileImageOptimized""",
            }
        ),
    ),
    "position": Columns(
        used=(
            *("proxyWallet", "asset", "conditionId", "outcome", "size", "totalBought", "realizedPnl", "cashPnl"),
            "curPrice",
        ),
        ignored=ignored_fields(
            {
                "computed from what is compared": """avgPrice initialValue currentValue percentPnl
                    percentRealizedPnl""",
                "the token or the name of the outcome is read": "outcomeIndex oppositeOutcome oppositeAsset",
                _WORDS: "title slug eventSlug icon eventId",
                _OTHER_TIMES: "endDate timestamp",
                "what can be done with the shares": "redeemable mergeable negativeRisk",
            }
        ),
    ),
    "prices": Columns(
        used=("history", "market", "token_id", "tokenId", "asset_id", "t", "p"),
        ignored={"fidelity": "how fine the history is, in minutes"},
    ),
}


NEAR_ONE, NEAR_NONE = 990_000_000, 10_000_000  # 1e-9: last prices of a closed market that say which outcome won
NEAR = "an answer taken from the last prices of a closed market, which are not quite 0 and 1"
NOT_SETTLED = "a closed market that is not resolved yet"
NO_WINNER = "a closed market whose prices do not say which outcome won"
NO_TIME = "prices in a record without `updatedAt`: it is not known when they held"
NEGATIVE_RISK = "negative risk"  # the tag of a market of an event of which one market resolves to Yes
_BEGUN = ("startDate", "acceptingOrdersTimestamp", "createdAt")
_SETTLED = ("closedTime", "umaEndDate", "endDate")


class MarketRecord(NamedTuple):
    """A record: its market, and what names its price histories.

    made_at: µs, 0 if not said. price: what it said when it was made. tokens: of the outcomes of the market, in its
    order. names: others of the market. notes: what is to be said of it.
    """

    market: Market
    made_at: int
    price: Price | None
    tokens: tuple[str, ...]
    names: tuple[str, ...]
    notes: tuple[NotCarried, ...]


def read_market(location: InputLocation, record: Record, event: Record) -> MarketRecord:
    """Return what a record says. event: the one that the market is part of; empty if that is not said.

    Refuses, first that applies: bad_source, bad_instant, bad_number, out_of_range (a field cannot be read), and what
    `checked_market` refuses.
    """
    number = text_in(record, "id")
    if not number:
        raise Refused("bad_source", "id", None, "the market has no id")
    names = [label_of(str(each)) or "" for each in list_in(record, "outcomes")]
    prices = [
        read_number(each, "outcomePrices", PROBABILITY, 0, PROBABILITY) for each in list_in(record, "outcomePrices")
    ]
    tokens = [str(each) for each in list_in(record, "clobTokenIds")]
    if prices and len(prices) != len(names):
        raise Refused("bad_source", "outcomePrices", None, f"{len(prices)} prices of {len(names)} outcomes")
    lower = tuple(name.lower() for name in names)
    turned = lower == BINARY[::-1]
    if turned:
        prices.reverse()
        tokens.reverse()
    opens_at, closes_at, closed_at = _times(record)
    event = event or _first(record.get("events"))
    answer, notes = _answer(record, prices)
    market = Market(
        location=location,
        name=f"polymarket {number}",
        title=text_in(record, "question"),
        outcomes=BINARY if turned or lower == BINARY else tuple(names),
        opens_at=opens_at,
        closes_at=closes_at,
        closed_at=closed_at,
        answer=answer,
        group=text_in(event, "title"),
        category=text_in(record, "category") or text_in(event, "category"),
        tags=_tags(record, event),
        url=_url(record, event),
    )
    made_at = instant_in(record, "updatedAt") or 0
    price = None if flag_in(record, "closed") else _price(location, record, prices, made_at, turned=turned)
    if price is not None and not made_at:
        price, notes = None, (*notes, NotCarried(NO_TIME))
    ids = tuple(name for field in ("conditionId", "id", "slug") if (name := text_in(record, field)))
    return MarketRecord(checked_market(market), made_at, price, tuple(tokens), ids, notes)


def _times(record: Record) -> tuple[int, int, int | None]:
    """Return when a market opens, is due to close, and was closed before that, µs.

    A market without an end, or with one before its opening, was open until it was closed.
    """
    opens_at = next((at for field in _BEGUN if (at := instant_in(record, field)) is not None), None)
    if opens_at is None:
        raise Refused("bad_source", "startDate", None, "the market does not say when it began")
    closed_at = instant_in(record, "closedTime") if flag_in(record, "closed") else None
    closes_at = instant_in(record, "endDate")
    if closes_at is None or (closes_at <= opens_at and closed_at is not None):
        closes_at = closed_at
    if closes_at is None:
        raise Refused("bad_source", "endDate", None, "the market does not say when it ends")
    return opens_at, closes_at, closed_at


def _answer(record: Record, prices: Sequence[int]) -> tuple[Answer | None, tuple[NotCarried, ...]]:
    """Return how a market ended, and what is to be said of that.

    A closed market's prices are what it pays: 1 and 0, or equal shares if it is resolved (a draw, or nobody knows).
    Those of the years before order books are the last ones, nearly 1 and 0.
    """
    status = text_in(record, "umaResolutionStatus").lower()
    if not flag_in(record, "closed"):
        return None, ()
    if status not in {"", "resolved"}:
        return None, (NotCarried(NOT_SETTLED),)
    ordered, equal = sorted(prices, reverse=True), PROBABILITY // max(len(prices), 1)
    shares, notes = tuple[int, ...](), tuple[NotCarried, ...]()
    is_draw = status == "resolved" and len(prices) > 1 and {*prices} == {equal}
    if is_draw or sum(prices) == PROBABILITY == ordered[0]:
        shares = tuple(prices)
    elif len(prices) > 1 and ordered[0] >= NEAR_ONE and ordered[1] <= NEAR_NONE:
        shares, notes = tuple(PROBABILITY * (price == ordered[0]) for price in prices), (NotCarried(NEAR),)
    if not shares:
        return None, (NotCarried(NO_WINNER),)
    at = next((at for field in _SETTLED if (at := instant_in(record, field)) is not None), None)
    if at is None:
        raise Refused("bad_source", "closedTime", None, "the market does not say when it was closed")
    return Answer(at, shares), notes


def _price(location: InputLocation, record: Record, prices: Sequence[int], at: int, *, turned: bool) -> Price | None:
    """Return the price of an open market; None if there is none: no orders are taken, or none are there."""
    bid, ask = (number_in(record, field, PROBABILITY, 0, PROBABILITY) for field in ("bestBid", "bestAsk"))
    empty = not bid and ask in {None, PROBABILITY}
    if not prices or flag_in(record, "acceptingOrders") is False or (ask is not None and empty):
        return None
    if turned:
        bid, ask = (None if side is None else PROBABILITY - side for side in (ask, bid))
    return Price(at, location, tuple(prices), bid, ask)


def _tags(record: Record, event: Record) -> tuple[str, ...]:
    given = [*_objects(record.get("tags")), *_objects(event.get("tags"))]
    labels = tuple(text_in(each, "label") for each in given)
    negative = flag_in(record, "negRisk") or flag_in(event, "negRisk")
    return (*((NEGATIVE_RISK,) if negative else ()), *filter(None, labels))


def _url(record: Record, event: Record) -> str:
    slug, above = text_in(record, "slug"), text_in(event, "slug")
    if not slug:
        return ""
    return f"https://polymarket.com/event/{above}/{slug}" if above else f"https://polymarket.com/market/{slug}"


def _first(value: object) -> Record:
    return next(iter(_objects(value)), {})


def _objects(value: object) -> list[Record]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
