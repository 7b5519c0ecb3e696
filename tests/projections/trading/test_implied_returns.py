"""Implied returns: what forecasts would have earned at the prices of their time."""

import gc
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from forecast_ledger.ledger.core.values import PROBABILITY, read_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.proportions import apportion
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.trading import arena
from forecast_ledger.projections.trading.arena import ImpliedReturn, implied_returns, returns_at
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import AFTER, choices, contest, day, entry, finalization, forecast, opened, quote, resolution

Row = dict[str, Any]
BRIER = RuleSet(name="brier", kernel="brier", period="covered", total="mean")
COLOURS = {"red": "0.2", "green": "0.5", "blue": "0.3"}


def implied(*commands: AnyCommand) -> list[Row]:
    """The rows of the table."""
    return list(oracle.projected(*commands).table("implied_returns").rows())


def asked(*made: AnyCommand, rules: RuleSet = BRIER, outcome: str = "yes") -> list[AnyCommand]:
    """A contest of one binary question, on which Ada forecasts 0.8 on day 13."""
    made = (forecast(probability="0.8", at=day(13)), *made)
    return [opened(), contest(rules=rules), entry(), *made, resolution(outcome=outcome)]


def picked(row: Row, *names: str) -> list[Any]:
    """Some values of a row."""
    return [row[name] for name in names]


RETURNS = ("bought", "all_in", "proportional", "kelly_stake", "kelly", "brier", "market_brier", "alpha")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        # at 0.6: 1 / 0.6 - 1, 0.8 / 0.6 - 1, (0.8 - 0.6) / 0.4, half of 2/3; 0.2², 0.4²
        ("yes", ["yes", "0.666666667", "0.333333333", "0.500000000", "0.333333333", "0.040000000", "0.160000000"]),
        # all lost, 0.2 / 0.4 - 1, the same stake, lost; 0.8², 0.6²
        ("no", ["yes", "-1.000000000", "-0.500000000", "0.500000000", "-0.500000000", "0.640000000", "0.360000000"]),
    ],
)
def test_a_forecast_earns_what_its_trades_at_the_last_price_pay(outcome: str, expected: list[str]) -> None:
    """Worked out by hand."""
    [row] = implied(*asked(quote(at=day(12), prices={"yes": "0.6"}), outcome=outcome))
    assert picked(row, *RETURNS[:-1], "left_out") == [*expected, ""]
    assert Fraction(row["alpha"]) == Fraction(row["market_brier"]) - Fraction(row["brier"])


def test_it_buys_no_where_that_is_worth_more() -> None:
    """0.2 / 0.4 for no is less than 0.8 / 0.6 for yes; at 0.9, no is worth 0.2 / 0.1. Kelly's stake: 0.1 / 0.9."""
    [row] = implied(*asked(quote(at=day(12), prices={"yes": "0.9"}), outcome="no"))
    assert picked(row, *RETURNS[:5]) == ["no", "9.000000000", "1.000000000", "0.111111111", "1.000000000"]


def test_of_several_outcomes_each_has_a_price() -> None:
    """Prices need not add up to 1: 0.25, 0.4 and 0.5. By hand: 0.5 / 0.4 is the largest multiple; green came true.

    Brier: (0.2² + 0.5² + 0.3²) / 3 and (0.25² + 0.6² + 0.5²) / 3.
    """
    prices = quote("colour", at=day(12), prices={"red": "0.25", "green": "0.4", "blue": "0.5"})
    said: list[AnyCommand] = [choices(), contest(rules=BRIER), entry(question="colour"), prices]
    made = forecast("colour", probabilities=COLOURS, at=day(13))
    [row] = implied(*said, made, resolution("colour", outcome="green"))
    expected = ["green", "1.500000000", "0.250000000", "0.166666667", "0.250000000"]
    assert picked(row, *RETURNS) == [*expected, "0.126666667", "0.224166667", "0.097500000"]


def test_a_payout_pays_its_share() -> None:
    """Yes pays 0.3: 0.3 / 0.6 - 1, and (0.8 x 0.3 / 0.6 + 0.2 x 0.7 / 0.4) - 1. Brier: 0.5² and 0.3²."""
    paid = resolution(payouts={"yes": "0.3", "no": "0.7"})
    said = [*asked(quote(at=day(12), prices={"yes": "0.6"}))[:-1], paid]
    [row] = implied(*said)
    assert picked(row, "all_in", "proportional", "brier", "market_brier") == [
        "-0.500000000",
        "-0.250000000",
        "0.250000000",
        "0.090000000",
    ]


def test_the_price_is_the_last_one_known_when_the_forecast_was_made() -> None:
    """A later quote changes nothing; of two forecasts the one that stands at the end counts, with its own price."""
    early, late = (quote(at=day(on), prices={"yes": price}) for on, price in ((12, "0.6"), (14, "0.5")))
    [row] = implied(*asked(early, late))
    assert picked(row, "forecast_at", "quoted_at", "price") == [day(13), day(12), "0.600000000"]
    [row] = implied(*asked(early, late, forecast(probability="0.7", at=day(14))))
    assert picked(row, "forecast_at", "quoted_at", "price", "probability") == [
        day(14),
        day(14),
        "0.500000000",
        "0.700000000",
    ]


@pytest.mark.parametrize(
    ("made", "code"),
    [
        ([quote(at=day(14), prices={"yes": "0.6"})], "no_quote"),  # after the forecast
        ([quote(at=day(12), prices={"yes": 1})], "no_price"),  # no costs nothing
    ],
)
def test_a_forecast_that_no_trade_follows_from_says_why(made: list[AnyCommand], code: str) -> None:
    """The codes are those of refusals of trades."""
    [row] = implied(*asked(*made))
    assert picked(row, "left_out", "bought", "all_in", "alpha") == [code, None, None, None]


def test_an_outcome_that_the_forecast_excludes_may_be_free() -> None:
    """A sure forecast at a sure price earns nothing, and stakes nothing by Kelly's rule."""
    [row] = implied(
        opened(), contest(rules=BRIER), entry(), quote(at=day(12), prices={"yes": 1}),
        forecast(probability=1, at=day(13)), resolution(outcome="yes"),
    )  # fmt: skip
    assert picked(row, *RETURNS[:5]) == ["yes", *["0.000000000"] * 4]


def test_a_question_without_a_quote_has_no_row() -> None:
    """It implies no return, and is not left out either."""
    assert implied(*asked()) == []


@pytest.mark.parametrize(("hour", "code"), [(23, ""), (22, "stale_quote")])
def test_the_rules_of_trading_say_when_a_price_is_too_old(hour: int, code: str) -> None:
    """Under those of an arena a price counts for an hour; under rules without trading no price is too old."""
    prices = quote(at=day(12, hour), prices={"yes": "0.6"})
    assert [row["left_out"] for row in implied(*asked(prices, rules=PRESETS["arena-v1"]))] == [code]
    assert [row["left_out"] for row in implied(*asked(prices))] == [""]


def test_quotes_after_the_board_is_final_do_not_count() -> None:
    """Here a quote for an earlier instant is recorded after the seal, where no price was known before."""
    said = asked(quote(at=day(12), prices={"yes": "0.6"}))
    late = quote("rain", at=AFTER, quoted_at=day(12, 5), prices={"yes": "0.5"})
    assert implied(*said, finalization(at=AFTER), late) == implied(*said)


def test_by_the_recorded_clock_a_price_counts_from_when_it_was_recorded() -> None:
    """Both are recorded after the forecast, though claimed for an instant before it."""
    rules = replace(BRIER, clock="recorded")
    said: list[AnyCommand] = [opened(), contest(rules=rules), entry(), forecast(at=day(13)), quote(at=day(12))]
    now = [0]
    with Ledger.open(":memory:", clock=lambda: now[0]) as ledger:
        for hour, command in enumerate(oracle.with_ids([*said, resolution()])):
            now[0] = read_instant(day(13, hour))
            ledger.handle(command)
        [row] = Projections(facts(ledger.read())).table("implied_returns").rows()
    assert picked(row, "forecast_at", "left_out") == [day(13, 3), "no_quote"]


def test_means_are_of_the_forecasts_that_have_returns() -> None:
    """Of 2/3 and -1; a third forecast has no price. The Brier scores are 0.04 and 0.64, of the prices 0.16 and 0.36."""
    said: list[AnyCommand] = [contest(rules=BRIER)]
    for question, outcome in (("rain", "yes"), ("wind", "no"), ("snow", "yes")):
        prices = quote(question, at=day(14 if question == "snow" else 12), prices={"yes": "0.6"})
        made = forecast(question, probability="0.8", at=day(13))
        said += [opened(question), entry(question=question), prices, made, resolution(question, outcome=outcome)]
    [row] = oracle.projected(*said).table("mean_implied_returns").rows()
    assert picked(row, "n", "left_out", "all_in", "brier", "market_brier", "alpha") == [
        2,
        1,
        "-0.166666667",
        "0.340000000",
        "0.260000000",
        "-0.080000000",
    ]


def test_implied_returns_are_computed_once_for_both_tables_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a contest, only the means stay."""
    computed = list[str]()

    def counted(log: Facts, cup: Contest) -> Iterator[ImpliedReturn]:
        computed.append(cup.opened.contest)
        yield from implied_returns(log, cup)

    monkeypatch.setattr(arena, "implied_returns", counted)
    gc.collect()  # what other tests have left
    projections = oracle.projected(*asked(quote(at=day(12), prices={"yes": "0.6"})))
    assert [len([*projections.table(name).rows()]) for name in ("implied_returns", "mean_implied_returns")] == [1, 1]
    assert computed == ["cup"]
    assert not [each for each in gc.get_objects() if isinstance(each, ImpliedReturn)]


@settings(max_examples=times(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 10**9)), min_size=2, max_size=5), st.data())
def test_returns_are_those_of_the_trades(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    """Shares are bought one outcome at a time, with the money of each strategy, and are paid."""
    weights, prices = [weight for weight, _ in rows], [price for _, price in rows]
    chances = apportion(PROBABILITY, [weight or (not any(weights)) for weight in weights])
    outcome = data.draw(st.integers(0, len(rows) - 1))
    paid = data.draw(st.sampled_from([[Fraction(1, len(rows))], [Fraction(0)]])) * len(rows)
    paid = paid if any(paid) else [Fraction(place == outcome) for place in range(len(rows))]

    def wealth(stakes: list[Fraction]) -> Fraction:
        """Of 1, after stakes on each outcome: what is kept, and what the shares pay."""
        shares = [stake * PROBABILITY / price for stake, price in zip(stakes, prices, strict=True)]
        earned = (held * pays for held, pays in zip(shares, paid, strict=True))
        return sum(earned, 1 - sum(stakes, Fraction(0)))

    found = returns_at(chances, prices, paid)
    multiples = [Fraction(chance, price) for chance, price in zip(chances, prices, strict=True)]
    best = multiples.index(max(multiples))
    p, q = Fraction(chances[best], PROBABILITY), Fraction(prices[best], PROBABILITY)
    stake = max(Fraction(0), (p - q) / (1 - q)) if q < 1 else Fraction(0)
    alone = [Fraction(place == best) for place in range(len(rows))]
    assert found.bought == best
    assert found.all_in == wealth(alone) - 1
    assert found.proportional == wealth([Fraction(chance, PROBABILITY) for chance in chances]) - 1
    assert (found.kelly_stake, found.kelly) == (stake, wealth([stake * each for each in alone]) - 1)
