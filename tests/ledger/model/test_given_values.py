"""Quotes of which the bad ones are skipped: what is recorded, what is refused by name, retries, and the audit."""

import json
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger import verify
from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, Prices, Quote
from forecast_ledger.ledger.model.events import PricesQuoted
from forecast_ledger.ledger.model.given_values import given_text, read_given
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINDINGS, FINE
from tests.ledger.auditing.test_audit import another, stops
from tests.replay.cli.test_main import run, said
from tests.support.effort import times
from tests.support.given import NOW, addition, choices, day, market, numeric, palette, quote, quotes

# Prices of yes that cannot be read, and with which code; numbers that are out of range.
UNREADABLE: list[tuple[Any, str]] = [
    (None, "bad_number"), ("", "bad_number"), ("0,5", "bad_number"), (True, "bad_number"), ([0.5], "bad_number"),
    ("x" * 500, "bad_number"), (nan, "not_finite"), (-inf, "not_finite"), ("NaN", "not_finite"),
    (Decimal("sNaN"), "bad_number"), ("1e999999999", "out_of_range"), ("1.0000000006", "out_of_range"),
    (-1, "out_of_range"), (Decimal("1.50"), "out_of_range"),
]  # fmt: skip
STORY: list[AnyCommand] = [market(), palette(), numeric(), choices("flag"), addition("pink", question="flag")]


def row(question: str = "rain", yes: Any = "0.4", **sides: Any) -> Prices:
    """The price of yes on a question, or other sides."""
    return Prices(question=question, **(sides or {"prices": {"yes": yes}}))


def fed(*rows: Prices, **fields: Any) -> Quote:
    """Prices of several questions, of which the bad ones are skipped."""
    return quotes(*rows, **({"at": day(14), "quoted_at": day(14), "skip_bad": True} | fields))


def told(receipt: Receipt) -> list[tuple[int, str, str, str]]:
    """The place, question, code and field of each quote that is refused."""
    return [(each.place, each.question, each.code, each.field) for each in receipt.refused]


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    """A ledger with questions of several kinds."""
    with Ledger.open(tmp_path / "log.db", clock=lambda: NOW) as opened:
        for number, command in enumerate(STORY):
            opened.handle(command, f"o{number}")
        yield opened


def last(ledger: Ledger) -> PricesQuoted:
    """The last event, of quotes."""
    *_, recorded = [each for page in ledger.read() for each in page]
    assert isinstance(recorded.event, PricesQuoted)
    return recorded.event


def test_good_prices_are_recorded_and_bad_ones_are_refused_by_name(ledger: Ledger, tmp_path: Path) -> None:
    """Each question is decided by itself, with the code that it would have alone; one that is quoted twice is bad."""
    receipt = ledger.handle(
        fed(
            row("hail"),
            row(yes=None),
            row("colour", prices={"red": "0.2"}),
            row("depth", prices={"1": 1}),
            row("flag", prices={"puce": 1}),
            row("colour-2"),
            row("colour-2"),
        ),
        "feed",
    )
    assert told(receipt) == [
        (0, "hail", "unknown_question", "question"),
        (1, "rain", "bad_number", "prices.yes"),
        (3, "depth", "wrong_fields_for_kind", "prices"),
        (4, "flag", "unknown_outcome", "prices.puce"),
        (5, "colour-2", "duplicate_question", "question"),
        (6, "colour-2", "duplicate_question", "question"),
    ]
    assert [each.question for each in last(ledger).quotes] == ["colour"]
    crossed = row("colour", bids={"red": "0.5"}, asks={"red": "0.4"})
    assert told(ledger.handle(fed(row(), crossed), "next")) == [(1, "colour", "crossed_quote", "bids.red")]
    early = fed(row(), row("colour", prices={"red": 1}), at=day(14), quoted_at=day(13))
    assert told(ledger.handle(structs.replace(early, quotes=(row("flag", prices={"red": 1}), row())), "early")) == [
        (1, "rain", "out_of_order", "quoted_at")
    ]
    verify(tmp_path / "log.db")


@pytest.mark.parametrize(("price", "code"), UNREADABLE)
def test_a_price_that_cannot_be_read_is_kept_as_it_was_given(
    price: Any, code: str, ledger: Ledger, tmp_path: Path
) -> None:
    """What is read from the text is refused for the same reason, and gives the same text; a retry is a duplicate."""
    given = row(yes=price)
    command = fed(given, row("colour", prices={"red": 1}))
    receipt = ledger.handle(command, "feed")
    assert told(receipt) == [(0, "rain", code, "prices.yes")]
    assert given_text(read_given(given_text(given))) == given_text(given) == receipt.refused[0].given
    assert ledger.handle(command, "feed") == structs.replace(receipt, duplicate=True)
    verify(tmp_path / "log.db")


def test_if_no_price_is_good_the_command_is_refused(ledger: Ledger) -> None:
    """For what the first is refused for; as is one whose quotes cannot be told apart from others."""
    before = ledger.head()
    for command, code in (
        (fed(row(yes=2), row("hail")), "out_of_range"),
        (fed(row(), row("colour", prices={"red": 1}), quoted_at=day(15)), "wrong_order_of_instants"),
        (fed(), "malformed"),
        (quote(skip_bad=True), "malformed"),
        (fed(row(), row(""), row("hail", yes=None)), "id_empty"),
        (fed(row(), Prices(question="hail", prices=["0.5"])), "malformed"),  # type: ignore[arg-type]
    ):
        with pytest.raises(Refused) as refused:
            ledger.handle(command, "feed")
        assert refused.value.code == code
    assert ledger.head() == before


def test_a_retry_is_known_with_the_bad_prices_and_another_price_is_another_command(ledger: Ledger) -> None:
    """0.50 is 0.5, also among bad prices; without skip_bad it is another command. The question may be there by then."""
    bad = row("hail", prices={"yes": "0.50", "no": None})
    receipt = ledger.handle(fed(row(), bad, row("fog", yes="0.3")), "feed")
    ledger.handle(market("hail"), "o8")
    ledger.handle(market("fog"), "o9")
    same = fed(row(yes="0.40"), row("hail", prices={"yes": 0.5, "no": None}), row("fog", yes=0.3))
    assert ledger.handle(same, "feed") == structs.replace(receipt, duplicate=True)
    for other in (
        fed(row(), bad, row("fog", yes="0.31")),
        fed(row(), row("hail", prices={"yes": "0.5", "no": ""}), row("fog", yes="0.3")),
        fed(row(), row("fog", yes="0.3")),
        structs.replace(same, skip_bad=False, quotes=(row(), row("fog", yes="0.3"))),
    ):
        with pytest.raises(Refused) as refused:
            ledger.handle(other, "feed")
        assert refused.value.code == "command_id_reused"


def test_a_duplicate_within_a_batch_has_the_same_receipt(ledger: Ledger) -> None:
    """Its event is not in the store yet."""
    command = structs.replace(fed(row("hail"), row()), id="feed")
    first, second = ledger.handle_many([command, command])
    assert isinstance(first, Receipt)
    assert second == structs.replace(first, duplicate=True)
    assert told(first) == [(0, "hail", "unknown_question", "question")]


def test_without_bad_prices_the_event_is_as_without_the_field(ledger: Ledger, tmp_path: Path) -> None:
    """It is left out of the row; the digest of the command is another one, and is rebuilt."""
    assert ledger.handle(fed(row()), "feed").refused == ()
    skipping = last(ledger)
    ledger.handle(structs.replace(fed(row()), skip_bad=False), "other")
    assert last(ledger) == skipping
    assert b'"refused"' not in b"".join(bytes(each) for each in ledger._store.read(0, 10**6))
    verify(tmp_path / "log.db")


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "not_finite"}, {"question": "wind"}, {"field": "bids.yes"}, {"place": 1}, {"place": -(2**62)},
        {"given": '{"question":"hail","prices":{"yes":"0.5"}}'}, {"given": "{"}, {"given": "[" * 10_000},
        {"given": '{"prices":{"yes":"0.4"},"question":"rain"}'},
    ],
)  # fmt: skip
def test_a_refusal_that_did_not_happen_is_found(changes: dict[str, Any], ledger: Ledger) -> None:
    """The audit decides the command again, with the prices as they were given."""
    ledger.handle(fed(row("hail"), row()), "feed")
    [refused] = last(ledger).refused
    log = [each for page in ledger.read() for each in page]
    position, _ = stops(another(log, PricesQuoted, refused=(structs.replace(refused, **changes),)))
    assert position == log[-1].position


def drawn(random: Random) -> Prices:
    """A question that there may be, with prices that may be good."""
    prices = ["0.1", "0.50", 0.7, *(each for each, _ in UNREADABLE)]
    question = random.choice(["rain", "colour", "flag", "depth", "hail"])
    outcomes = ["yes"] if question == "rain" else ["red", "green", "pink"]
    sides = random.sample(["prices", "bids", "asks", "bid_sizes"], random.randint(1, 2))
    return Prices(question=question, **{side: {random.choice(outcomes): random.choice(prices)} for side in sides})


@pytest.mark.parametrize("seed", range(times(5)))
def test_random_feeds_are_audited_and_known_again(seed: int, ledger: Ledger, tmp_path: Path) -> None:
    """What is recorded and what is refused is all that was given; what is good is what is good alone."""
    random = Random(seed)
    feeds = [fed(*(drawn(random) for _ in range(random.randint(1, 9)))) for _ in range(40)]
    done = ledger.handle_many([structs.replace(each, id=f"f{number}") for number, each in enumerate(feeds)])
    log = [each for page in ledger.read() for each in page]
    for feed, receipt in zip(feeds, done, strict=True):
        assert feed.quotes is not None
        if isinstance(receipt, Receipt):
            recorded = log[receipt.first - 1].event
            assert isinstance(recorded, PricesQuoted)
            places = {each.place for each in recorded.refused}
            good = [each.question for place, each in enumerate(feed.quotes) if place not in places]
            assert good == [each.question for each in recorded.quotes]
            assert len(places) + len(good) == len(feed.quotes)
    again = ledger.handle_many([structs.replace(each, id=f"f{number}") for number, each in enumerate(feeds)])
    assert again == [structs.replace(each, duplicate=True) if isinstance(each, Receipt) else each for each in again]
    assert [isinstance(each, Receipt) for each in again] == [isinstance(each, Receipt) for each in done]
    assert any(isinstance(each, Receipt) and each.refused for each in done)
    verify(tmp_path / "log.db")
    assert run("seal", str(tmp_path / "log.db"), str(tmp_path / "sealed")).exit_code == FINE
    assert run("import", str(tmp_path / "sealed"), str(tmp_path / "copy.db")).exit_code == FINE
    assert verify(tmp_path / "copy.db") == verify(tmp_path / "sealed") == verify(tmp_path / "log.db")


def test_the_command_line_lists_each_refused_quote(tmp_path: Path) -> None:
    """With its line, code, question and outcome; the exit code is 1, also on a retry, and says how many there are."""
    log = str(tmp_path / "log.db")
    prices = [{"question": "rain", "prices": {"yes": None}}, {"question": "wind", "prices": {"yes": 0.5}}]
    opening = {"kind": "binary", "opens_at": day(1), "closes_at": day(20)}
    given = b"".join([
        said("o1", "open_question", question="rain", **opening),
        said("o2", "open_question", question="wind", **opening),
        said("feed", "quote", at=day(2), quoted_at=day(2), source="s", skip_bad=True, quotes=prices),
    ])  # fmt: skip
    for outcome in ("accepted", "duplicate"):
        done = run("append", log, "-", "--format", "json", given=given)
        assert (done.exit_code, json.loads(done.stdout)[0][outcome]) == (FINDINGS, 3)
        first, second = done.stderr.splitlines()
        assert first.startswith("line 3: bad_number: prices.yes: the quote of 'rain': ")
        assert second == "refused quotes, of commands whose other quotes are recorded: 1"
    done = run("append", log, "-", "--errors", "json", given=given)
    assert json.loads(done.stderr.splitlines()[0])["field"] == "prices.yes"
    assert "refused: rain (bad_number)" in run("log", log).stdout
