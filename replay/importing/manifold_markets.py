"""A market of Manifold: a question of yes and no, one of several answers, or a question for each answer; its fields.

A market of a number is one of yes and no, whose probability and payout say how far the number is along a scale, or
it has several answers that are ranges.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import LARGEST_POOL, MONEY, PROBABILITY, format_fixed
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.json_files import (
    Record,
    epoch_in,
    flag_in,
    list_in,
    number_in,
    read_number,
    text_in,
)
from forecast_ledger.replay.importing.market_items import BINARY, Answer, Market, Price, checked_market
from forecast_ledger.replay.importing.source_items import Columns, NotCarried, ignored_fields, label_of

_WORDS = "words and pictures"
_PEOPLE = "who made or resolved the market, and who is interested in it"
_VOLUME = "how much was bet, and the pools of the market maker"
_ON_SITE = "how the market is shown, and found, on the site"
_ORDER = "parts of an order; what it did to the probability is read"
_MONEY = "parts of the amount, and what changes a balance and no profit"

COLUMNS = {
    "market": Columns(
        used=(
            *("id", "creatorUsername", "createdTime", "closeTime", "question", "slug", "url", "outcomeType"),
            *(
                "mechanism",
                "probability",
                "prob",
                "isResolved",
                "resolution",
                "resolutionTime",
                "resolutionProbability",
            ),
            *("resolutions", "lastUpdatedTime", "answers", "shouldAnswersSumToOne", "addAnswersMode", "groupSlugs"),
            *("min", "max", "isLogScale"),
        ),
        ignored=ignored_fields(
            {
                _WORDS: """description textDescription coverImageUrl creatorAvatarUrl featuredLabel tags
                    gptCommentSummary unit""",
                "the number that a probability stands for": "value resolutionValue initialValue precision",
                _PEOPLE: """creatorId creatorName creatorCreatedTime resolverId uniqueBettorCount uniqueBettorCountDay
                    likedByUserCount viewCount loverUserId1 loverUserId2 matchCreatorId isLove""",
                _VOLUME: """pool p volume volume24Hours totalLiquidity subsidyPool specialLiquidityPerAnswer elasticity
                    collectedFees probChanges isSubsidized initialProbability isSpicePayout token siblingContractId
                    takerAPIOrdersDisabled""",
                _ON_SITE: """visibility unlistedById deleted isRanked isPolitics isTwitchContract marketTier
                    popularityScore importanceScore dailyScore freshnessScore conversionScore closeEmailsSent sort
                    lastBetTime lastCommentTime boosted""",
            }
        ),
    ),
    "answer": Columns(
        used=(
            "id",
            "text",
            "createdTime",
            "probability",
            "prob",
            "resolution",
            "resolutionTime",
            "resolutionProbability",
        ),
        ignored=ignored_fields(
            {
                _WORDS: "shortText imageUrl color textFts",
                _PEOPLE: "userId resolverId contractId",
                _VOLUME: "pool poolYes poolNo totalLiquidity subsidyPool probChanges volume",
                _ON_SITE: "index isOther midpoint",
            }
        ),
    ),
    "position": Columns(
        used=("contractId", "answerId", "userId", "userUsername", "profit", "payout", "invested"),
        ignored=ignored_fields(
            {
                "other results, and those of a day, a week or a month": """profitPercent from totalAmountSold
                    totalAmountInvested totalSpent profitAdjustment""",
                "a loan changes the balance, and no profit": "loan marginLoan",
                "what is held, which follows from the bets": """hasNoShares hasShares hasYesShares maxSharesOutcome
                    totalShares lastBetTime lastProb""",
                _ON_SITE: "id userName userAvatarUrl",
            }
        ),
    ),
    "bet": Columns(
        used=(
            *("contractId", "answerId", "userId", "userUsername", "createdTime", "probBefore", "probAfter", "amount"),
            *("isAnte", "isRedemption", "limitProb", "fills", "betGroupId", "id", "outcome", "shares"),
        ),
        ignored=ignored_fields(
            {
                _ORDER: "orderAmount isFilled isCancelled expiresAt silent isApi isChallenge challengeSlug",
                _MONEY: "sharesByOutcome loanAmount fees isSold sale",
                _ON_SITE: """betId updatedTime visibility userName userAvatarUrl replyToCommentId comment
                    deps clientVersion""",
            }
        ),
    ),
}


TITLE = "Manifold"
NO_ANSWERS = "a market of several answers without them: save the answer of /v0/market/ID"
NO_SHARES = "a resolved market that does not say what it pays"
_SUM_WITHIN = PROBABILITY // 100  # of 1, of the chances of several answers
_KINDS = {
    **dict.fromkeys(["BINARY", "PSEUDO_NUMERIC"], "cpmm-1"),
    **dict.fromkeys(["MULTIPLE_CHOICE", "NUMBER", "MULTI_NUMERIC"], "cpmm-multi-1"),
}


class MarketRecord(NamedTuple):
    """A record. markets: its questions. answers: the ids of their answers, "" of yes and no, or of one question the
    ids of its outcomes. made_at: µs, 0 if not said. prices: of each question, None without one.
    """

    markets: tuple[Market, ...]
    answers: tuple[str, ...]
    made_at: int
    prices: tuple[Price | None, ...]
    notes: tuple[NotCarried, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the answers are the outcomes of one question."""
        return len(self.answers) > len(self.markets)


def read_market(location: InputLocation, record: Record) -> MarketRecord | NotCarried:
    """Return what a record says; NotCarried of a market of another kind.

    Refuses, first that applies: bad_source, bad_number, out_of_range (a field cannot be read), and what
    `checked_market` refuses.
    """
    kind, mechanism = text_in(record, "outcomeType"), text_in(record, "mechanism")
    if _KINDS.get(kind) != mechanism:
        return NotCarried(
            f"a market of the type {kind[:40] or '(none)'} with the mechanism {mechanism[:40] or '(none)'}"
        )
    answers = [each for each in list_in(record, "answers") if isinstance(each, dict)]
    if mechanism != "cpmm-1" and not answers:
        return NotCarried(NO_ANSWERS)
    base, made_at = _base(location, record), epoch_in(record, "lastUpdatedTime", milliseconds=True) or 0
    resolved = flag_in(record, "isResolved") is True
    if kind == "PSEUDO_NUMERIC":
        base = base._replace(title=f"{base.title} {_scale(record)}")
    if mechanism == "cpmm-1":
        return _record([_part(base, record, [record], made_at, resolved=resolved)], [""], made_at)
    ids = [text_in(each, "id") for each in answers]
    if "" in ids or len({*ids}) < len(ids):
        raise Refused("bad_source", "answers", None, "each answer needs an id of its own")
    if flag_in(record, "shouldAnswersSumToOne") and text_in(record, "addAnswersMode") in {"", "DISABLED"}:
        base = base._replace(outcomes=tuple(label_of(text_in(each, "text")) or "" for each in answers))
        return _record([_part(base, record, answers, made_at, resolved=resolved)], ids, made_at)
    parts = []
    for name, answer in zip(ids, answers, strict=True):
        market = base._replace(
            name=f"{base.name} {name}",
            title=f"{base.title}: {text_in(answer, 'text')}",
            group=base.title,
            opens_at=max(base.opens_at, epoch_in(answer, "createdTime", milliseconds=True) or 0),
        )
        ended = resolved or text_in(answer, "resolution") != ""
        parts.append(_part(market, record, [answer], made_at, resolved=ended))
    return _record(parts, ids, made_at)


def _scale(record: Record) -> str:
    """Return, of a market of a number, what its probability is: that of a share, from its least to its largest number.

    Refuses: bad_source, bad_number, out_of_range.
    """
    ends = [number_in(record, field, MONEY, -LARGEST_POOL, LARGEST_POOL) for field in ("min", "max")]
    if None in ends:
        raise Refused("bad_source", "min", None, "a market of a number needs min and max")
    least, most = (format_fixed(end or 0, MONEY) for end in ends)
    scale = ", in the logarithm of the number - min + 1" * (flag_in(record, "isLogScale") is True)
    return f"(share of the way from {least} to {most}{scale})"


class _Part(NamedTuple):
    """A question of a record, its price, and what is to be said of it."""

    market: Market
    price: Price | None
    notes: tuple[NotCarried, ...] = ()


def _record(parts: Sequence[_Part], answers: Sequence[str], made_at: int) -> MarketRecord:
    markets = tuple(checked_market(each.market) for each in parts)
    notes = tuple(note for each in parts for note in each.notes)
    return MarketRecord(markets, tuple(answers), made_at, tuple(each.price for each in parts), notes)


def _part(market: Market, record: Record, parts: Sequence[Record], made_at: int, *, resolved: bool) -> _Part:
    """Return a question with its price, or, if it is resolved, with its answer, from which on it was closed.

    parts: the record if it is of yes and no, else its answers: all, or one, of which is asked whether it is right.
    """
    if not resolved:
        return _Part(market, _price(market.location, parts, made_at))
    times = [epoch_in(each, "resolutionTime", milliseconds=True) for each in (parts[0], record)]
    at = next((each for each in times if each is not None), market.closes_at)
    market, shares = market._replace(closed_at=at), _shares(record, parts)
    if shares is None:
        return _Part(market, None, (NotCarried(NO_SHARES),))
    return _Part(market._replace(answer=Answer(at, shares, "resolved to N/A")), None)


def _base(location: InputLocation, record: Record) -> Market:
    """Return the market without its outcomes and its answer."""
    number, opens_at = text_in(record, "id"), epoch_in(record, "createdTime", milliseconds=True)
    closes_at = epoch_in(record, "closeTime", milliseconds=True)
    closes_at = epoch_in(record, "resolutionTime", milliseconds=True) if closes_at is None else closes_at
    for field, value in (("id", number or None), ("createdTime", opens_at), ("closeTime", closes_at)):
        if value is None:
            raise Refused("bad_source", field, None, "the market does not say it")
    who, slug = text_in(record, "creatorUsername"), text_in(record, "slug")
    composed = f"https://manifold.markets/{who}/{slug}" if who and slug else ""
    return Market(
        location=location,
        name=f"manifold {number}",
        title=text_in(record, "question"),
        outcomes=BINARY,
        opens_at=opens_at or 0,
        closes_at=closes_at or 0,
        tags=tuple(str(each) for each in list_in(record, "groupSlugs")),
        url=text_in(record, "url") or composed,
    )


def _shares(market: Record, parts: Sequence[Record]) -> tuple[int, ...] | None:
    """Return what each outcome pays, 1e-9; () of a market that is annulled, None if that is not said."""
    if any(text_in(each, "resolution") == "CANCEL" for each in (market, *parts)):
        return ()
    chances = [_share(market, each) for each in parts]
    known = [each for each in chances if each is not None]
    if len(known) < len(chances):
        return None
    if len(known) == 1:
        return known[0], PROBABILITY - known[0]
    total = sum(known)
    return tuple(half_even(each * PROBABILITY, total) for each in known) if total else None


def _share(market: Record, part: Record) -> int | None:
    """Return what yes pays, of a market or of one of its answers, 1e-9."""
    said = text_in(part, "resolution")
    if said in {"YES", "NO"}:
        return PROBABILITY * (said == "YES")
    if said == "MKT" and (share := number_in(part, "resolutionProbability", PROBABILITY, 0, PROBABILITY)) is not None:
        return share
    if part is market:
        return None
    weights, name = market.get("resolutions"), text_in(part, "id")
    if isinstance(weights, dict):
        return read_number(weights.get(name, 0), "resolutions", PROBABILITY // 100, 0, PROBABILITY)
    chosen = text_in(market, "resolution")
    return None if chosen in {"", "MKT", "CHOOSE_MULTIPLE"} else PROBABILITY * (chosen == name)


def _price(location: InputLocation, parts: Sequence[Record], at: int) -> Price | None:
    """Return the price that a record has; None if it has none, or does not say when it was made."""
    chances = [
        number_in(each, "probability" if each.get("probability") is not None else "prob", PROBABILITY, 0, PROBABILITY)
        for each in parts
    ]
    whole = whole_chances(chances)
    return Price(at, location, whole) if whole and at else None


def whole_chances(chances: Sequence[int | None]) -> tuple[int, ...]:
    """Return chances of all outcomes, 1e-9: of one it is that of yes; of several, nearly 1 in all, over their sum.

    (): one is not known, or their sum is not within 0.01 of 1.

    >>> whole_chances([300_000_000]), whole_chances([500_000_000, 505_000_000, 0])
    ((300000000, 700000000), (497512438, 502487562, 0))
    """
    known: list[Any] = [each for each in chances if each is not None]
    if len(known) < len(chances) or not known:
        return ()
    if len(known) == 1:
        return known[0], PROBABILITY - known[0]
    total = sum(known)
    if abs(total - PROBABILITY) > _SUM_WITHIN:
        return ()
    return tuple(half_even(each * PROBABILITY, total) for each in known)
