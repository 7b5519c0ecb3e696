"""Polymarket's markets: scores worked out by hand, answers, quotes, histories by their names, bad records."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import DAY, read_instant
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.events import ForecastMade, PricesQuoted, QuestionOpened, QuestionResolved
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.follow_copy import OLD_PRICE
from forecast_ledger.replay.importing.market_items import OTHER_PRICE
from forecast_ledger.replay.importing.polymarket import NO_MARKET, OTHER_JSON, SECOND, SEVERAL
from forecast_ledger.replay.importing.polymarket_markets import NEAR, NO_TIME, NO_WINNER, NOT_SETTLED
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, saved, table, ticking, told, zipped

FILES = DATA / "polymarket-import"
BY_HAND = [  # data/polymarket-import/README.md
    ("polymarket 9001", "0.100000000"),
    ("polymarket 9002", "0.090000000"),
    ("polymarket 9003", "0.160000000"),
    ("polymarket 9004", "0.040000000"),
]
FIRST = read_instant("2026-02-28T00:00:00Z") // DAY
OPEN = {
    "id": "1",
    "question": "Rain?",
    "outcomes": '["Yes", "No"]',
    "clobTokenIds": '["11", "12"]',
    "startDate": "2026-03-01T00:00:00Z",
    "endDate": "2026-03-11T00:00:00Z",
}
CLOSED = OPEN | {"closed": True, "closedTime": "2026-03-11 02:00:00+00", "umaResolutionStatus": "resolved"}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of the sample."""
    return Path(shutil.copytree(FILES, tmp_path / "files"))


def prices(*points: tuple[str, Any]) -> dict[str, Any]:
    """A history of days in March 2026 and prices."""
    return {"history": [{"t": read_instant(f"2026-03-{day}T00:00:00Z") // 10**6, "p": p} for day, p in points]}


def made(ledger: Ledger) -> list[tuple[int, str, int]]:
    """The forecasts: the day, whose, and the chance of the first outcome in percent."""
    found = [each for each in told(ledger) if isinstance(each, ForecastMade)]
    return [(each.at // DAY - FIRST, each.participant, each.probabilities[0] // 10**7) for each in found]


def test_the_sample_scores_as_worked_out_by_hand() -> None:
    """What is to be said of markets is counted; nothing is refused; the contest's mean is that of four markets."""
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", FILES)
        assert found.counts["refused"] == 0
        assert found.left_out == {NOT_SETTLED: 1, NEAR: 1}
        assert sorted(table(ledger, "scores", "question", "score")) == BY_HAND
        assert table(ledger, "leaderboard", "contest", "participant", "score") == [
            ("Polymarket", "Polymarket", "0.097500000")
        ]


def test_what_is_recorded_of_a_market() -> None:
    """Its group, tags and address; yes and no, or names without an order; half and half; when it was known."""
    with ticking() as ledger:
        import_into(ledger, "polymarket", FILES)
        opened = {each.question: each for each in told(ledger) if isinstance(each, QuestionOpened)}
        answers = {each.question: each for each in told(ledger) if isinstance(each, QuestionResolved)}
    ada, game = opened["polymarket 9002"], opened["polymarket 9004"]
    assert (ada.kind, ada.group, ada.tags) == ("binary", "Mayor of Exampleton", ("negative risk", "Politics"))
    assert ada.url == "https://polymarket.com/event/mayor-of-exampleton/mayor-ada"
    assert (game.kind, game.outcomes, game.ordered) == ("multiple_choice", ("Owls", "Foxes"), False)
    assert answers["polymarket 9004"].payouts == (500_000_000, 500_000_000)
    assert answers["polymarket 9001"].known_at == read_instant("2026-03-09T00:00:00Z")
    assert {question: each.outcome for question, each in answers.items() if not each.payouts} == {
        "polymarket 9001": 0, "polymarket 9002": 1, "polymarket 9003": 0, "polymarket 9007": 1
    }  # fmt: skip


def test_importing_again_counts_once_in_any_wrapping(files: Path, tmp_path: Path) -> None:
    """A folder, then a zip of it; a single file speaks of its markets alone."""
    with ticking() as ledger:
        first = import_into(ledger, "polymarket", files).counts
        again = import_into(ledger, "polymarket", zipped(files, tmp_path / "files.zip", "files/"))
        assert again.counts == {"accepted": 0, "duplicate": first["accepted"], "refused": 0}
        assert import_into(ledger, "polymarket", files / "markets.ndjson").counts["accepted"] == 0
        assert sorted(table(ledger, "scores", "question", "score")) == BY_HAND


def test_records_of_open_markets_add_quotes_week_by_week(tmp_path: Path) -> None:
    """With bid and ask. A record has no forecast, and an older record adds no quote after a newer one."""
    rows = [
        OPEN | {"updatedAt": f"2026-03-{day}T00:00:00Z", "outcomePrices": json.dumps([price, "0.5"]), **sides}
        for day, price, sides in (
            ("02", "0.3", {}),
            ("09", "0.40", {"bestBid": 0.39, "bestAsk": "0.42"}),
            ("05", "0.35", {}),
        )
    ]
    with ticking() as ledger:
        found = [import_into(ledger, "polymarket", saved(tmp_path / str(n), a=row)) for n, row in enumerate(rows)]
        quotes = [each for each in told(ledger) if isinstance(each, PricesQuoted)]
        assert made(ledger) == []
    assert [each.left_out for each in found] == [{}, {}, {OLD_PRICE: 1}]
    assert [each.quotes[0].prices[0] for each in quotes] == [300_000_000, 400_000_000]
    assert (quotes[1].quotes[0].bids[0], quotes[1].quotes[0].asks[0]) == (390_000_000, 420_000_000)


def test_paper_traders_buy_at_an_imported_price() -> None:
    """At 0.35, 50 buys 142.857142 shares, rounded down."""
    at = "2026-03-20T12:30:00Z"
    with ticking() as ledger:
        import_into(ledger, "polymarket", FILES)
        trading = {"cohorts": "none", "period_days": 0}
        rules = {"name": "paper", "kernel": "brier", "period": "covered", "total": "mean", "trading": trading}
        done: list[commands.AnyCommand] = [
                commands.OpenContest(at=at, contest="paper", rules=rules, starts_at=at),
                commands.AddQuestion(at=at, contest="paper", question="polymarket 9005"),
                commands.EnrolParticipant(at=at, contest="paper", participant="ada"),
                commands.RecordDecision(
                    at=at, contest="paper", participant="ada", period=1, action="BET", reasoning="snow",
                    bets=(commands.Bet(market_id="polymarket 9005", side="YES", amount="50"),),
                ),
        ]  # fmt: skip
        for number, command in enumerate(done):
            ledger.handle(command, command_id=str(number))
        assert table(ledger, "trades", "question", "price", "shares") == [
            ("polymarket 9005", "0.350000000", "142.857142")
        ]


@pytest.mark.parametrize(
    ("prices_then", "status", "expected", "note"),
    [
        (["1", "0"], "resolved", "yes", None),
        (["0", "1"], "", "no", None),
        ([1, 0], "resolved", "yes", None),
        (["0.5", "0.5"], "resolved", "half", None),
        (["0.5", "0.5"], "", "", NO_WINNER),
        (["0", "0"], "resolved", "", NO_WINNER),
        (["0.7", "0.3"], "resolved", "", NO_WINNER),
        (["0.98", "0.02"], "resolved", "", NO_WINNER),
        (["0.0000004113679809846114013590098187297978", "0.9999995886320190153885986409901813"], "", "no", NEAR),
        (["1", "0"], "proposed", "", NOT_SETTLED),
        (["0.5", "0.5"], "disputed", "", NOT_SETTLED),
        ([], "resolved", "", NO_WINNER),
    ],
)  # fmt: skip
def test_how_a_closed_market_ended(
    prices_then: list[Any], status: str, expected: str, note: str | None, tmp_path: Path
) -> None:
    """By what its prices pay, if nobody disputes it; half and half only if it is said to be resolved."""
    record = CLOSED | {"umaResolutionStatus": status, "outcomePrices": json.dumps(prices_then)}
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", saved(tmp_path / "a", a=record))
        [(state, outcome)] = table(ledger, "questions", "state", "outcome")
        payouts = [each.payouts for each in told(ledger) if isinstance(each, QuestionResolved) and each.payouts]
    half = [(500_000_000, 500_000_000)] if expected == "half" else []
    assert (state, payouts) == ("resolved" if expected else "unresolved", half)
    assert outcome == (expected if expected in {"yes", "no"} else "None")
    assert found.left_out == ({note: 1} if note else {})


@pytest.mark.parametrize(
    ("change", "quoted"),
    [
        ({}, 1),
        ({"acceptingOrders": False}, 0),
        ({"bestBid": 0, "bestAsk": 1}, 0),
        ({"bestAsk": 1}, 0),
        ({"bestBid": 0.2, "bestAsk": 1}, 1),
        ({"closed": True, "closedTime": "2026-03-05 00:00:00+00"}, 0),
        ({"outcomePrices": None}, 0),
    ],
)
def test_the_price_of_a_record_is_a_quote_if_there_are_orders(change: Any, quoted: int, tmp_path: Path) -> None:
    """A market without orders has a price of one half that nobody gave, and a closed one has what it pays."""
    record = OPEN | {"updatedAt": "2026-03-02T00:00:00Z", "outcomePrices": '["0.5", "0.5"]'} | change
    with ticking() as ledger:
        import_into(ledger, "polymarket", saved(tmp_path / "a", a=record))
        assert len([each for each in told(ledger) if isinstance(each, PricesQuoted)]) == quoted


HISTORY = prices(("01", 0.3), ("04", "0.4"), ("05", "0.40"), ("11", 0.9))
LATER = prices(("06", 0.2))
EXPECTED = [(1, "Polymarket", 30), (4, "Polymarket", 40)]
CONDITION = "0xabc"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"11": HISTORY}, EXPECTED),
        ({"prices-history_11_1h": HISTORY}, EXPECTED),
        ({CONDITION: HISTORY}, EXPECTED),
        ({"rain": HISTORY}, EXPECTED),
        ({"all": {"market": "11", **HISTORY}}, EXPECTED),
        ({"all": {"history": {"11": HISTORY["history"], "13": []}}}, EXPECTED),
        ({"11": HISTORY["history"]}, EXPECTED),
        ({"12": HISTORY}, [(1, "Polymarket", 70), (4, "Polymarket", 60)]),
        ({"11": HISTORY, "12": LATER}, EXPECTED),
        ({"11": HISTORY, "11_more": LATER}, [*EXPECTED, (6, "Polymarket", 20)]),
        ({"99": HISTORY}, []),
    ],
)
def test_histories_are_found_by_their_names(named: Any, expected: list[Any], tmp_path: Path) -> None:
    """By token, or by the market; a price that is the same, or comes after the close, is no new forecast."""
    record = OPEN | {"conditionId": CONDITION, "slug": "rain"}
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", saved(tmp_path / "a", markets=[record], **named))
        assert made(ledger) == expected
        quotes = [each for each in told(ledger) if isinstance(each, PricesQuoted)]
    assert len(quotes) == (5 if "11_more" in named else 4 if expected else 0)
    left_out = {SECOND: 1} if {"11", "12"} <= named.keys() else {} if expected else {NO_MARKET: 1}
    assert found.left_out == left_out | ({NO_MARKET: 1} if "13" in str(named) else {})


def test_no_may_come_before_yes_and_prices_may_repeat(tmp_path: Path) -> None:
    """The first outcome of the ledger is yes, whose bid is 1 less the ask of no; of one instant, the last counts."""
    turned = {"outcomes": '["No", "Yes"]', "outcomePrices": ["0.8", "0.2"], "bestBid": 0.79, "bestAsk": 0.81}
    record = OPEN | turned | {"clobTokenIds": ["12", "11"], "updatedAt": "2026-03-09T00:00:00"}
    history = prices(("02", 0.3), ("02", 0.3), ("02", 0.25))
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", saved(tmp_path / "a", a=record, **{"11": history}))
        last = [each for each in told(ledger) if isinstance(each, PricesQuoted)][-1].quotes[0]
        assert made(ledger) == [(2, "Polymarket", 25)]
    assert (last.prices[0], last.bids[0], last.asks[0]) == (200_000_000, 190_000_000, 210_000_000)
    assert found.left_out == {OTHER_PRICE: 2}


def test_named_outcomes_have_the_prices_of_both(tmp_path: Path) -> None:
    """Who buys one at its ask sells the other at its bid; negative risk may be said by the market alone."""
    sides = {"outcomePrices": ["0.7", "0.3"], "bestBid": 0.68, "bestAsk": 0.73, "updatedAt": "2026-03-02T00:00:00Z"}
    record = OPEN | sides | {"outcomes": ["Owls", "Foxes"], "negRisk": True}
    with ticking() as ledger:
        import_into(ledger, "polymarket", saved(tmp_path / "a", a=record))
        [quote] = [each.quotes[0] for each in told(ledger) if isinstance(each, PricesQuoted)]
        assert [each.tags for each in told(ledger) if isinstance(each, QuestionOpened)] == [("negative risk",)]
    assert quote.prices == (700_000_000, 300_000_000)
    assert quote.bids == (680_000_000, 270_000_000)
    assert quote.asks == (730_000_000, 320_000_000)


def test_prices_after_a_market_was_closed_are_no_forecasts(tmp_path: Path) -> None:
    """Closed on the 5th, at noon: the price of the 6th is a quote alone."""
    record = CLOSED | {"closedTime": "2026-03-05 12:00:00+00", "outcomePrices": '["1", "0"]'}
    with ticking() as ledger:
        import_into(ledger, "polymarket", saved(tmp_path / "a", a=record, **{"11": prices(("02", 0.3), ("06", 0.9))}))
        assert made(ledger) == [(2, "Polymarket", 30)]
        assert len([each for each in told(ledger) if isinstance(each, PricesQuoted)]) == 2


def test_a_market_of_more_outcomes_has_its_answer_alone(tmp_path: Path) -> None:
    """A history is of one of them."""
    three = {"outcomes": '["A", "B", "C"]', "outcomePrices": '["0", "1", "0"]', "clobTokenIds": '["11", "12", "13"]'}
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", saved(tmp_path / "a", a=CLOSED | three, **{"11": HISTORY}))
        assert table(ledger, "questions", "kind", "outcome") == [("multiple_choice", "B")]
    assert found.left_out == {SEVERAL: 1}


BAD: list[tuple[Any, str]] = [
    ({"id": None}, "bad_source id: the market 'Rain?': the market has no id"),
    ({"startDate": None}, "bad_source startDate: the market 'Rain?': the market does not say when it began"),
    ({"endDate": ""}, "bad_source endDate: the market 'Rain?': the market does not say when it ends"),
    ({"endDate": "soon"}, "bad_instant endDate"),
    ({"endDate": "2026-02-01T00:00:00Z"}, "wrong_order_of_instants closes_at"),
    ({"endDate": "2226-02-01T00:00:00Z"}, "wrong_order_of_instants closes_at"),
    ({"outcomes": '["Yes"'}, "bad_source outcomes: the market 'Rain?': not JSON that can be read"),
    ({"outcomes": "[" * 100_000}, "bad_source outcomes: the market 'Rain?': not JSON that can be read"),
    ({"outcomes": '["Yes"]'}, "bad_source outcomes: the market 'Rain?': not two or more different outcomes"),
    ({"outcomes": '["A", "A"]'}, "bad_source outcomes"),
    ({"outcomes": '["A", ""]'}, "id_empty outcomes"),
    ({"outcomes": 7}, "bad_source outcomes: the market 'Rain?': neither a list nor the JSON text of one"),
    ({"outcomePrices": '["1"]'}, "bad_source outcomePrices: the market 'Rain?': 1 prices of 2 outcomes"),
    ({"outcomePrices": '["1.5", "0"]'}, "out_of_range outcomePrices"),
    ({"outcomePrices": '["x", "0"]'}, "bad_number outcomePrices"),
    ({"outcomePrices": [{}, "0"]}, "bad_number outcomePrices"),
    ({"closed": "perhaps"}, "bad_source closed: the market 'Rain?': neither true nor false"),
    ({"question": ["Rain?"]}, "bad_source question"),
    ({"question": "\ud800"}, "id_not_plain title"),
    ({"updatedAt": 5, "slug": {}}, "bad_source slug"),
]


@pytest.mark.parametrize(("change", "expected"), BAD)
def test_a_market_that_cannot_be_read_is_named_and_the_others_are_recorded(
    change: Any, expected: str, tmp_path: Path
) -> None:
    """With its place in the file, and once: nothing else of it is sent."""
    other = OPEN | {"id": "2"}
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", saved(tmp_path / "a", a={"markets": [OPEN | change, other]}))
        assert table(ledger, "questions", "question") == [("polymarket 2",)]
    [line] = found.refused
    assert line.startswith(f"a.json, market 1: {expected}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 200_000, "bad_source a.json: not JSON"),
        ('{"id": "1"', "bad_source a.json: not JSON that can be read"),
        ('{"id": "1", "id": "2", "question": "x"}', "bad_source a.json: not JSON that can be read: an object"),
        ('{"question": ' + "9" * 5_000 + "}", "bad_source a.json: not JSON that can be read"),
        ('{"question": 1e9999999999999999999}', "bad_source a.json: not JSON that can be read: a number is too large"),
        ('{"question": "x", "id": "1", "startDate": NaN}', "bad_source startDate"),
        ("\x00", "bad_source a.json: not JSON"),
        ("", "bad_source a.json: not JSON"),
    ],
)  # fmt: skip
def test_json_that_is_wrong_or_hostile_is_refused(text: str, expected: str, tmp_path: Path) -> None:
    """With the name of the file; the other file is read."""
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", saved(tmp_path / "a", a=text, b=OPEN))
        assert table(ledger, "questions", "question") == [("polymarket 1",)]
    [line] = found.refused
    assert line.startswith(f"a.json: {expected}")


def test_a_line_that_is_wrong_leaves_the_others(tmp_path: Path) -> None:
    """JSON lines: each is read by itself, with its number."""
    lines = [json.dumps(OPEN), '{"a": 1', "", json.dumps([OPEN | {"id": "2"}, 5]), '"x"']
    path = tmp_path / "markets.ndjson"
    path.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", path)
        assert len(table(ledger, "questions", "question")) == 2
    assert [line.partition(": ")[0] for line in found.refused] == ["markets.ndjson, line 2"]
    assert found.left_out == {OTHER_JSON: 2}


@pytest.mark.parametrize(
    "point",
    [{"t": "soon", "p": 0.5}, {"t": 10**20, "p": 0.5}, {"t": 1, "p": 2}, {"t": 1, "p": None}, {"t": -1, "p": 0.5}, 7],
)
def test_a_price_that_is_wrong_is_named_and_the_others_count(point: Any, tmp_path: Path) -> None:
    """With the number of the price."""
    history = prices(("01", 0.3), ("04", 0.4))
    history["history"].insert(1, point)
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", saved(tmp_path / "a", a=OPEN, **{"11": history}))
        assert made(ledger) == EXPECTED
    [line] = found.refused
    assert line.startswith("11.json, price 2: ")


@pytest.mark.parametrize("content", [{}, {"a": {"x": 1}}])
def test_a_folder_without_a_market_is_refused(content: Any, tmp_path: Path) -> None:
    """With what to give."""
    folder = saved(tmp_path / "a", **content)
    with ticking() as ledger:
        if content:
            assert "no market that can be read is there" in import_into(ledger, "polymarket", folder).refused[0]
        else:
            with pytest.raises(Refused, match="no JSON file"):
                import_into(ledger, "polymarket", folder)


def test_a_record_without_its_time_has_no_quote(tmp_path: Path) -> None:
    """It is not known when its price held."""
    record = OPEN | {"outcomePrices": '["0.5", "0.5"]'}
    with ticking() as ledger:
        found = import_into(ledger, "polymarket", saved(tmp_path / "a", a=record))
    assert found.left_out == {NO_TIME: 1}


def test_of_several_records_of_a_market_the_newest_counts(tmp_path: Path) -> None:
    """By `updatedAt`, in whichever file, the last of equals; each adds its price."""
    older = OPEN | {"updatedAt": "2026-03-02T00:00:00Z", "outcomePrices": '["0.3", "0.7"]', "question": "Old?"}
    newer = older | {"updatedAt": "2026-03-03T00:00:00Z", "question": "New?"}
    with ticking() as ledger:
        import_into(ledger, "polymarket", saved(tmp_path / "a", a=newer, b=older, c=older))
        assert table(ledger, "questions", "title") == [("New?",)]
        import_into(ledger, "polymarket", saved(tmp_path / "b", a=newer, b=newer | {"question": "Newest?"}))
        assert table(ledger, "questions", "title") == [("Newest?",)]
        assert len([each for each in told(ledger) if isinstance(each, PricesQuoted)]) == 2


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"outcomePrices": "[\\"0.5\\", \\"0.5\\"]"', '"outcomePrices": "[\\"1\\", \\"0\\"]"', ["0.090000000"]),
        ('"umaResolutionStatus": "resolved"', '"umaResolutionStatus": "disputed"', []),
    ],
)
def test_another_result_replaces_the_recorded_one(before: str, after: str, expected: list[str], files: Path) -> None:
    """Half and half becomes a win of the Owls, (1 - 0.7)² = 0.09, or nothing."""
    with ticking() as ledger:
        import_into(ledger, "polymarket", files)
        edit(files / "markets.ndjson", lambda text: text.replace(before, after, 1))
        assert import_into(ledger, "polymarket", files).refused == []
        rows = table(ledger, "scores", "question", "score")
    assert [score for question, score in rows if question == "polymarket 9004"] == expected
