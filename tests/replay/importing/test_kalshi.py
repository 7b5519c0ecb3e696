"""Kalshi's markets: scores worked out by hand, prices in cents and dollars, results, candlesticks, bad records."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import DAY, read_instant
from forecast_ledger.ledger.model.events import ForecastMade, PricesQuoted, QuestionOpened, QuestionResolved
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.kalshi import DISPUTED, NO_MARKET, NO_VALUE, OTHER_JSON
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, saved, table, ticking, told, zipped

FILES = DATA / "kalshi-import"
BY_HAND = [  # data/kalshi-import/README.md
    ("kalshi KXCPI-26MAR-T0.3", "0.100000000"),
    ("kalshi KXCPI-26MAR-T0.4", "0.050000000"),
    ("kalshi KXSHARE-26", "0.040000000"),
]
FIRST = read_instant("2026-02-28T00:00:00Z")
RAIN = {
    "ticker": "R",
    "event_ticker": "E",
    "title": "Rain?",
    "open_time": "2026-03-01T00:00:00Z",
    "close_time": "2026-03-11T00:00:00Z",
    "status": "active",
}


def trade(day: int, price: Any, ticker: str = "R", **extra: Any) -> dict[str, Any]:
    """A trade as the API answers it now."""
    return {"ticker": ticker, "created_time": f"2026-03-{day:02}T00:00:00Z", "yes_price_dollars": price, **extra}


def candle(day: int, **sides: Any) -> dict[str, Any]:
    """A candlestick that ends at the beginning of a day."""
    return {"end_period_ts": (FIRST + day * DAY) // 10**6, **sides}


def made(ledger: Ledger) -> list[tuple[int, int]]:
    """The forecasts: the day, and the chance of yes in percent."""
    found = [each for each in told(ledger) if isinstance(each, ForecastMade)]
    assert {each.participant for each in found} <= {"Kalshi"}
    return [((each.at - FIRST) // DAY, each.probabilities[0] // 10**7) for each in found]


def quoted(ledger: Ledger) -> list[tuple[int | None, ...]]:
    """The quotes: price, bid and ask of yes in percent."""
    quotes = [each.quotes[0] for each in told(ledger) if isinstance(each, PricesQuoted)]
    rows = [(each.prices[0], *(side[0] if side else None for side in (each.bids, each.asks))) for each in quotes]
    return [tuple(None if price is None else price // 10**7 for price in row) for row in rows]


def test_the_sample_scores_as_worked_out_by_hand() -> None:
    """Nothing is refused or left out; a zip of the folder counts as duplicates."""
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", FILES)
        assert (found.refused, found.left_out) == ([], {})
        assert sorted(table(ledger, "scores", "question", "score")) == BY_HAND


def test_what_is_recorded_of_a_market(tmp_path: Path) -> None:
    """The event's title, with what yes means; a void market is annulled; a corrected result is followed."""
    files = Path(shutil.copytree(FILES, tmp_path / "files"))
    with ticking() as ledger:
        first = import_into(ledger, "kalshi", files).counts["accepted"]
        again = import_into(ledger, "kalshi", zipped(files, tmp_path / "files.zip"))
        assert again.counts == {"accepted": 0, "duplicate": first, "refused": 0}
        opened = {each.question: each for each in told(ledger) if isinstance(each, QuestionOpened)}
        states = {question: state for question, state in table(ledger, "questions", "question", "state")}  # noqa: C416
        edit(files / "events.json", lambda text: text.replace('"result": "yes"', '"result": "no"'))
        assert import_into(ledger, "kalshi", files).refused == []
        scores = table(ledger, "scores", "question", "score")
    cpi = opened["kalshi KXCPI-26MAR-T0.3"]
    assert (cpi.title, cpi.group, cpi.category) == (
        "Inflation in March 2026: Above 0.3%",
        "Inflation in March 2026",
        "Economics",
    )
    assert (states["kalshi KXGAME-26-OWL"], states["kalshi KXSNOW-26"]) == ("annulled", "unresolved")
    assert ("kalshi KXCPI-26MAR-T0.3", "0.500000000") in scores  # (0.6² + 0.8²) / 2


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (trade(2, "0.5600"), 56),
        (trade(2, None, yes_price=56), 56),
        (trade(2, None, yes_price="56"), 56),
        (trade(2, None, yes_price="0.5600"), 56),
        (trade(2, None, yes_price=0.56), 56),
        (trade(2, None, yes_price=1), 1),
        (trade(2, "0.5600", yes_price=99), 56),
    ],
)
def test_prices_are_in_dollars_or_in_cents(record: Any, expected: int, tmp_path: Path) -> None:
    """Fields of dollars are texts; older fields have whole cents, and those of the archive dollars with a point."""
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", saved(tmp_path / "a", m={"market": RAIN}, t={"trades": [record]}))
        assert (found.refused, made(ledger)) == ([], [(2, expected)])


def test_trades_are_read_in_order_and_the_last_of_an_instant_counts(tmp_path: Path) -> None:
    """The API gives the newest first; a block trade is named, and one after the close is a quote alone."""
    rows = [trade(12, "0.9"), trade(4, "0.7"), trade(3, "0.6"), trade(3, "0.5", is_block_trade=True)]
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", saved(tmp_path / "a", m=[RAIN], t=rows))
        assert made(ledger) == [(3, 60), (4, 70)]
        assert [row[0] for row in quoted(ledger)] == [60, 70, 90]
    assert found.left_out == {
        "another price of the same instant: the last one counts": 1,
        "a value that is not read of the field 'is_block_trade': 'True'": 1,
    }


SIDES = {"yes_bid": {"close_dollars": "0.5000"}, "yes_ask": {"close_dollars": "0.5400"}}


@pytest.mark.parametrize(
    ("stick", "forecasts", "quotes"),
    [
        (candle(2, price={"close_dollars": "0.5300"}, **SIDES), [(2, 53)], [(53, 50, 54)]),
        (candle(2, price={}, **SIDES), [], [(52, 50, 54)]),
        (candle(2, price={"close": None, "previous": "0.5"}, yes_bid={"close": "0.5000"}), [], [(None, 50, None)]),
        (candle(2, price={"close": 53}, yes_bid={"close": 50}, yes_ask={"close": 54}), [(2, 53)], [(53, 50, 54)]),
        (candle(2, price=None, yes_bid={"close_dollars": "0.0000"}, yes_ask={"close_dollars": "1.0000"}), [], []),
        (candle(2, price={"close_dollars": "0.5300"}), [(2, 53)], [(53, None, None)]),
    ],
)
@pytest.mark.parametrize("wrapping", ["one", "batch", "event"])
def test_a_candlestick_is_a_quote_and_a_forecast_if_there_was_a_trade(
    stick: Any, forecasts: Any, quotes: Any, wrapping: str, tmp_path: Path
) -> None:
    """A bid of 0 and an ask of 1 are none; in each of the three forms in which the API answers them."""
    content = {
        "one": {"ticker": "R", "candlesticks": [stick]},
        "batch": {"markets": [{"market_ticker": "R", "candlesticks": [stick]}]},
        "event": {"market_tickers": ["R"], "market_candlesticks": [[stick]]},
    }[wrapping]
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", saved(tmp_path / "a", m={"markets": [RAIN]}, c=content))
        assert (found.refused, made(ledger), quoted(ledger)) == ([], forecasts, quotes)


@pytest.mark.parametrize(
    ("record", "settled", "expected", "note"),
    [
        ({"result": "yes"}, None, "yes", None),
        ({"result": "No", "status": "determined"}, None, "no", None),
        ({"result": "scalar", "settlement_value_dollars": "0.2500"}, None, (250_000_000, 750_000_000), None),
        ({"result": "scalar", "settlement_value": 25}, None, (250_000_000, 750_000_000), None),
        ({"result": "scalar"}, None, None, NO_VALUE),
        ({"result": "void"}, None, "annulled", None),
        ({"result": "maybe"}, None, None, "a market of a result that is not known: 'maybe'"),
        ({"result": "yes", "status": "disputed"}, None, None, DISPUTED),
        ({"result": ""}, None, None, None),
        ({}, {"market_result": "no"}, "no", None),
        ({}, {"market_result": "void"}, "annulled", None),
        ({}, {"market_result": "scalar", "value": 25}, (250_000_000, 750_000_000), None),
        ({"result": "yes"}, {"market_result": "yes"}, "yes", None),
    ],
)
def test_how_a_market_ended(record: Any, settled: Any, expected: Any, note: str | None, tmp_path: Path) -> None:
    """By its result, or by the settlement of an account; a share of yes is a payout."""
    contents = {"m": RAIN | record} | ({"s": {"settlements": [{"ticker": "R", **settled}]}} if settled else {})
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", saved(tmp_path / "a", **contents))
        [(state, outcome)] = table(ledger, "questions", "state", "outcome")
        payouts = [each.payouts for each in told(ledger) if isinstance(each, QuestionResolved) and each.payouts]
    assert (found.refused, found.left_out) == ([], {note: 1} if note else {})
    said = outcome if expected in {"yes", "no"} else payouts[0] if payouts else None if state == "unresolved" else state
    assert said == expected


def test_a_settlement_that_contradicts_the_market_is_refused(tmp_path: Path) -> None:
    """Neither counts; one of another market is named."""
    rows = [{"ticker": "R", "market_result": "no"}, {"ticker": "X", "market_result": "no"}]
    with ticking() as ledger:
        found = import_into(
            ledger, "kalshi", saved(tmp_path / "a", m=RAIN | {"result": "yes"}, s={"settlements": rows})
        )
        assert table(ledger, "questions", "state") == [("unresolved",)]
    [line] = found.refused
    assert line.startswith("s.json, settlements 1: bad_source market_result")
    assert "m.json says 'yes' for the same market; neither counts" in line
    assert found.left_out == {NO_MARKET: 1}


@pytest.mark.parametrize(
    ("settled", "known"),
    [("2026-03-11T14:30:00Z", "2026-03-11T14:30:00Z"), (1_773_239_400, "2026-03-11T14:30:00Z"),
     ("1773239400", "2026-03-11T14:30:00Z"), (None, "2026-03-11T00:00:00Z")],
)  # fmt: skip
def test_when_a_result_was_recorded(settled: Any, known: str, tmp_path: Path) -> None:
    """At its settlement, as a text or in seconds, or, if that is not said, at the close."""
    with ticking() as ledger:
        import_into(ledger, "kalshi", saved(tmp_path / "a", m=RAIN | {"result": "yes", "settlement_ts": settled}))
        assert [each.at for each in told(ledger) if isinstance(each, QuestionResolved)] == [read_instant(known)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"open_time": None}, "bad_source open_time: the market 'B': the market does not say it"),
        ({"close_time": "soon"}, "bad_instant close_time"),
        ({"close_time": "2026-02-01T00:00:00Z"}, "wrong_order_of_instants closes_at"),
        ({"notional_value_dollars": "0.5000"}, "bad_source notional_value_dollars"),
        ({"title": 7.5}, "bad_source title"),
    ],
)
def test_a_market_that_cannot_be_read_is_named_and_the_others_are_recorded(
    change: Any, expected: str, tmp_path: Path
) -> None:
    """With its place, and once; its prices are of a market that is not there."""
    content = {"markets": [RAIN | {"ticker": "B"} | change, RAIN]}
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", saved(tmp_path / "a", m=content, t=[trade(2, "0.5", "B")]))
        assert table(ledger, "questions", "question") == [("kalshi R",)]
    [line] = found.refused
    assert line.startswith(f"m.json, markets 1: {expected}")
    assert found.left_out == {NO_MARKET: 1}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"trades": [trade(2, "1.5")]}, "x.json, trades 1"),
        ({"trades": [trade(2, "0.5", created_time=None)]}, "x.json, trades 1"),
        ({"ticker": "R", "candlesticks": [7]}, "x.json, candlestick 1"),
        ({"ticker": "R", "candlesticks": [candle(2, price=5)]}, "x.json, candlestick 1"),
        ({"ticker": "R", "candlesticks": [{"price": {"close": 5}}]}, "x.json, candlestick 1"),
        ({"ticker": "R", "candlesticks": [candle(2, price={"close": 101})]}, "x.json, candlestick 1"),
        ({"ticker": "R", "candlesticks": 7}, "x.json"),
        ({"market_tickers": ["R", "S"], "market_candlesticks": [[]]}, "x.json"),
    ],
)
def test_a_price_that_cannot_be_read_is_named_and_the_others_count(content: Any, place: str, tmp_path: Path) -> None:
    """With its place."""
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", saved(tmp_path / "a", m=RAIN, t={"trades": [trade(3, "0.5")]}, x=content))
        assert made(ledger) == [(3, 50)]
    [line] = found.refused
    assert line.startswith(f"{place}: ")


def test_prices_that_a_copy_does_not_have_stay(tmp_path: Path) -> None:
    """A copy is whole for the prices of a market of which it has trades or candlesticks; an empty list has none."""
    with ticking() as ledger:
        contents: list[dict[str, Any]] = [{"t": [trade(3, "0.5")]}, {}, {"c": {"ticker": "R", "candlesticks": []}}]
        for number, content in enumerate(contents):
            folder = saved(tmp_path / str(number), m=RAIN, **content)
            assert import_into(ledger, "kalshi", folder).refused == []
            assert len(table(ledger, "standing", "question")) == 1


def test_a_folder_without_a_market_is_refused(tmp_path: Path) -> None:
    """With what to give."""
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", saved(tmp_path / "a", x=[{"x": 1}, 5]))
        assert (found.left_out, len(found.refused)) == ({OTHER_JSON: 2}, 1)
        with pytest.raises(Refused, match="no JSON file"):
            import_into(ledger, "kalshi", saved(tmp_path / "b"))


def test_of_an_event_at_most_one_market_of_which_is_yes_the_markets_say_so(tmp_path: Path) -> None:
    """As a tag; events may come after their markets, and without them."""
    event = {"event": {"event_ticker": "E", "title": "Weather", "mutually_exclusive": True}, "markets": [RAIN]}
    with ticking() as ledger:
        import_into(ledger, "kalshi", saved(tmp_path / "a", e=event))
        [opened] = [each for each in told(ledger) if isinstance(each, QuestionOpened)]
    assert (opened.tags, opened.group, opened.title) == (("mutually exclusive",), "Weather", "Rain?")


@pytest.mark.parametrize("kind", ["kalshi", "manifold", "polymarket"])
@pytest.mark.parametrize(
    ("begin", "end"), [("[", "]"), ('{"market": ', "}"), ('{"data": [', "]}"), ('{"markets": [', "]}")]
)
def test_lists_in_lists_in_lists_are_no_records(kind: str, begin: str, end: str, tmp_path: Path) -> None:
    """A page may be inside another; what is deeper than any service answers is named, and ends nothing."""
    (tmp_path / "a.json").write_text(f"{begin * 300}{'{}' * ('[' not in begin)}{end * 300}", encoding="utf-8")
    with ticking() as ledger:
        found = import_into(ledger, kind, tmp_path)
    assert sum(found.left_out.values()) == 1
    assert "no market that can be read is there" in found.refused[-1]
