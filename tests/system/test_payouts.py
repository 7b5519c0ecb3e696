"""Exact payouts: the order in which a question lists its outcomes changes no score, no rank and no money."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import QuestionResolved
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.rules import KernelName, RuleSet
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.files.export import seal
from tests.support import oracle
from tests.support.effort import times
from tests.support.forging import audited, in_first_form, written
from tests.support.given import (
    SUNDAY,
    TRADES,
    bet,
    choices,
    cohort,
    contest,
    day,
    decision,
    enrolment,
    entry,
    forecast,
    palette,
    quote,
    resolution,
    revocation,
)

BILLION, MONEY = 10**9, 10**6
NAMES = ("a", "b", "c", "d", "e")
PEOPLE = ("ada", "bob", "cyd")
PARTS: dict[KernelName, int] = {
    "brier": 2,
    "brier_sum": 1,
    "brier_mean": 0,
}  # what Σ (p - o)² is divided by; 0: by the number of outcomes
THIRDS = dict.fromkeys(("red", "green", "blue"), "1/3")


def scored(kernel: KernelName) -> RuleSet:
    """Rules of Brier scores of all questions, of payouts too."""
    return RuleSet(name="own", kernel=kernel, period="covered", total="mean", least_probability_ppm=0, payouts="scored")


def apportioned(weights: Sequence[int]) -> list[int]:
    """Numbers in about this proportion that sum to 1e9."""
    most = [BILLION * each // sum(weights) for each in weights]
    return [most[0] + BILLION - sum(most), *most[1:]]


def told(
    outcomes: Sequence[str], said: Sequence[Sequence[int]], payouts: dict[str, str], kernel: KernelName
) -> list[Recorded]:
    """A question with these outcomes in two contests: one of forecasts, by outcome 1e-9, and one of bets on a and b."""
    chances = [dict(zip(NAMES, (format_fixed(p, BILLION) for p in own), strict=False)) for own in said]
    forecasts = [forecast("q", who, at=TRADES, probabilities=own) for who, own in zip(PEOPLE, chances, strict=True)]
    story: list[AnyCommand] = [
        choices("q", tuple(outcomes), at=SUNDAY, opens_at=SUNDAY, closes_at=day(29)),
        contest(at=SUNDAY, rules=scored(kernel)),
        cohort(),
        entry("cup", "q", at=SUNDAY),
        entry("week", "q", at=SUNDAY),
        enrolment("week", at=SUNDAY),
        quote("q", prices=dict.fromkeys(outcomes, "0.3")),
        *forecasts,
        decision(bet(300, "a", "q"), bet(300, "b", "q")),
        resolution("q", payouts={name: payouts[name] for name in outcomes}),
    ]
    return oracle.history(*story)


def read(rows: list[Recorded]) -> tuple[dict[str, str], list[tuple[int, str]], str]:
    """Scores by participant, ranks, and Ada's cash."""
    tables = Projections(facts([rows]))
    scores = {row["participant"]: row["score"] for row in tables.table("scores").rows()}
    ranks = [(row["rank"], row["participant"]) for row in tables.table("leaderboard").rows() if row["contest"] == "cup"]
    [account] = tables.table("accounts").rows()
    return scores, ranks, account["cash"]


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[list[int]], dict[str, str], list[Fraction]]:
    """Three forecasts, payouts as they are written, and what they mean: each over the sum of all."""
    size = draw(st.integers(2, 5))
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(lambda each: sum(map(bool, each)) > 1)
    said, parts = [apportioned(draw(weights)) for _ in PEOPLE], draw(weights)
    total = sum(parts)
    if draw(st.booleans()):
        written = [f"{each}/{total}" for each in parts]
    else:
        places = draw(st.integers(7, 9))
        written = [format_fixed(round(Fraction(each * 10**places, total)), 10**places) for each in parts]
    exact = [Fraction(each) / sum(map(Fraction, written)) for each in written]
    return said, dict(zip(NAMES, written, strict=False)), exact


@given(answers(), st.sampled_from([*PARTS]), st.randoms(use_true_random=False))
@settings(max_examples=times(25), deadline=None)
def test_scores_ranks_and_money_are_those_of_the_exact_shares_in_every_order(
    case: tuple[list[list[int]], dict[str, str], list[Fraction]], kernel: KernelName, random: Random
) -> None:
    """Each score is Σ (p - o)² with exact o, rounded half-even; each share pays what its outcome does, rounded down."""
    said, payouts, exact = case
    outcomes = [*payouts]
    parts = PARTS[kernel] or len(outcomes)
    expected = {}
    for who, own in zip(PEOPLE, said, strict=True):
        missed = sum(((Fraction(p, BILLION) - o) ** 2 for p, o in zip(own, exact, strict=True)), Fraction(0)) / parts
        expected[who] = format_fixed(round(round(missed * 10**12) * Fraction(1, 1_000)), BILLION, least=9)
    cash = 9_400 * MONEY + sum(int(1_000 * MONEY * share) for share in exact[:2])
    orders = (outcomes, random.sample(outcomes, len(outcomes)))
    found = [read(told(order, said, payouts, kernel)) for order in orders]
    for scores, ranks, money in found:
        assert scores == expected
        assert ranks == found[0][1]
        assert Fraction(money) == Fraction(cash, MONEY)


def seal_of(path: str) -> str:
    """The folder of a log's segments, whose rows `verify` rebuilds."""
    seal(path)
    return f"{path}.segments"


def test_a_log_of_thirds_verifies_balances_and_is_sealed_byte_for_byte(tmp_path: Path) -> None:
    """Of three equal holdings each is paid a third; a revocation takes it back, and the question is resolved again."""
    story: list[AnyCommand] = [
        palette(),
        cohort(),
        entry("week", "colour", at=SUNDAY),
        enrolment("week", at=SUNDAY),
        quote("colour", prices=dict.fromkeys(THIRDS, "0.3")),
        decision(*(bet(300, name, "colour") for name in THIRDS)),
        resolution("colour", payouts=THIRDS),
        revocation("colour"),
        resolution("colour", payouts=dict.fromkeys(THIRDS, "0.333333333")),
    ]
    rows = oracle.history(*story)
    assert audited(rows).lossy_commands == 0
    path = written(tmp_path / "log.db", rows)
    assert verify(path) == verify(seal_of(path)) == Checkpoint(len(rows), rows[-1].digest)
    tables = Projections(facts([rows]))
    assert Fraction(next(iter(tables.table("accounts").rows()))["cash"]) == 9_100 + 3 * Fraction("333.333333")
    postings = [(row["log_position"], Fraction(row["amount"])) for row in tables.table("journal").rows()]
    assert all(sum(amount for at, amount in postings if at == one) == 0 for one, _ in postings)
    shown = [row["side_won"] for row in tables.table("trades").rows()]
    assert shown == ["0.333333333"] * 3


def test_payouts_of_a_log_from_before_stay_as_they_are_recorded() -> None:
    """What rounding left over went to the first outcome then, and the log says so for ever."""
    sent = resolution("colour", payouts=dict.fromkeys(THIRDS, "0.333333333"))
    adjusted = {"red": "0.333333334", "green": "0.333333333", "blue": "0.333333333"}
    rows = oracle.history(choices(), resolution("colour", payouts=adjusted))
    audited(rows)
    old = in_first_form(rows, [choices(), sent])
    assert audited(old).first_forms[0] == 2
    event = old[-1].event
    assert isinstance(event, QuestionResolved)
    assert (event.payouts, event.payout_unit) == ((333_333_334, 333_333_333, 333_333_333), 0)
