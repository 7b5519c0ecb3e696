"""Logs and numbers meant to break the scores: sums past 134 bits, takes of nothing, wide questions beside long ones."""

import json
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.events import AnyEvent
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.powers import ZERO, Magnitude
from forecast_ledger.projections.core.proportions import magnitudes_to_integers
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import CHANCE
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.scores.community import share
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.cli.main import USAGE, main
from tests.projections.facts.test_event_checks import (
    CLOSES,
    HALF,
    OPENS,
    added,
    attested,
    binary,
    enrolled,
    finalized,
    flow,
    paid,
    read,
)
from tests.support.effort import LONG
from tests.support.forging import audited, enveloped

CENTURY = 36_525 * 86_400 * 10**6  # µs
ONE = 10**9
FAR = 10**13


def contest(rules: RuleSet, pool: int = 0) -> events.ContestOpened:
    """A contest under these rules."""
    return events.ContestOpened(at=0, contest="cup", rules=rules, pool=pool, payable_unit=1)


def made(question: str, participant: str, at: int = 0, **numbers: Any) -> events.ForecastMade:
    """A forecast."""
    return events.ForecastMade(at=at, question=question, participant=participant, **numbers)


def asked(question: str, lasts: int, *forecasts: AnyEvent, answer: str = "", **kind: Any) -> list[AnyEvent]:
    """A question of the contest, what was forecast on it, and its resolution to the first outcome inside."""
    shape = kind or {"kind": "binary", "outcomes": ("yes", "no")}
    return [
        events.QuestionOpened(at=0, question=question, opens_at=0, closes_at=lasts, **shape),
        events.QuestionAdded(at=0, contest="cup", question=question, weight=10**6),
        *forecasts,
        events.QuestionResolved(at=lasts, question=question, outcome=int(bool(answer)), value=answer, known_at=lasts),
    ]


def totals(projections: Projections) -> dict[str, Fraction]:
    """Everybody's total."""
    return {place.participant: place.score for place in projections.board("cup")}


def test_a_board_adds_up_numerators_beyond_134_bits() -> None:
    """At a level of 1 - 1e-9, 2e13 too low costs 2 (1 - 1e-9) 2e13 and 0 too low nothing, on each of 40 questions."""
    span = events.NumericRange(lower=f"-{FAR}", upper=str(FAR), levels=(ONE - 1,))
    happened: list[AnyEvent] = [contest(RuleSet(name="x", quantile_kernel="pinball", reference="peers"))]
    for q in (f"q{i}" for i in range(40)):
        both = made(q, "low", quantiles=(-FAR,)), made(q, "right", quantiles=(FAR,))
        happened += asked(q, CENTURY, *both, answer=str(FAR), kind="numeric", range=span)
    loss = 40 * 4 * FAR * (1 - Fraction(1, ONE))
    assert totals(Projections(read(*happened))) == {"low": loss, "right": -loss}


@pytest.mark.parametrize("east", [-1_440, 1_440])
def test_a_century_of_days_against_peers_is_exact(east: int) -> None:
    """Each of 36,525 days is worth ln(1e-10) - ln 1, the least that a bin of 10,000 can be."""
    rules = RuleSet(name="x", cdf_kernel="ln", reference="peers", sampling="day", day_minutes=east, least_density_ppm=1)
    span = events.NumericRange(lower="0", upper="1", bins=10_000)
    right, wrong = (0, *[CHANCE] * 10_000), (*[0] * 10_000, CHANCE)
    both = made("q", "right", cdf=right), made("q", "wrong", cdf=wrong)
    happened = asked("q", CENTURY, *both, answer="0", kind="numeric", range=span)
    least = Fraction(-23_025_850_929_940, 10**12)  # 10 ln 10 = 23.0258509299404568…
    scores = totals(Projections(read(contest(rules), *happened)))
    assert scores == {"right": -least, "wrong": least}


def test_totals_are_exact_beyond_the_range_of_wide_integers() -> None:
    """Sums equal those of Python's integers, with either sign."""
    wide = WideInt.from_int64(np.array([1 << 61, -(1 << 61), 1 << 61, 1 << 61])).shifted(72)
    assert wide.unbounded_run_sums(np.array([0, 1, 2])) == [1 << 133, -(1 << 133), 1 << 134]
    assert WideInt.from_int64(np.zeros(0, np.int64)).unbounded_run_sums(np.zeros(0, np.int64)) == []


@pytest.mark.parametrize("others", [1, 4_700, 10_000, 20_000])
def test_a_share_of_very_many_averages_is_exact(others: int) -> None:
    """One certain outcome among many that count as a half: twice the share, rounded half-even to 1e-18."""
    doubled = [np.array([2 * CHANCE]), *[np.array([CHANCE])] * others]
    expected = 2 * half_even(2 * CHANCE * 10**18, (2 + others) * CHANCE)
    assert share(doubled, np.array([0])).tolist() == [expected]


def test_a_take_of_nothing_beside_takes_of_next_to_nothing_gets_nothing() -> None:
    """However small the largest take is, the others are told apart, at once."""
    tiny = -(10**9)
    takes = [ZERO, Magnitude(True, tiny, Fraction(2)), Magnitude(True, tiny, Fraction(6))]
    assert magnitudes_to_integers(takes) == [0, 1, 3]


def test_who_covers_nothing_and_who_loses_everything_share_a_pool() -> None:
    """After the reveal nothing counts as covered, so that take is 0; the other's is e^-13,122,363, and all there is."""
    rules = RuleSet(name="x", kernel="ln", reference="uniform", take="coverage_exp", least_probability_ppm=1)
    late, bad = made("q", "late", at=6, probabilities=(0, ONE)), made("q", "bad", probabilities=(0, ONE))
    question, entry, *rest = asked("q", 10, bad, late)
    question = msgspec.structs.replace(question, reveals_at=5)
    entry = msgspec.structs.replace(entry, weight=10**12, hidden_coverage_weight=10**6)
    projections = Projections(read(contest(rules, pool=100), question, entry, *rest))
    assert {prize.participant: prize.prize for prize in projections.prizes("cup")} == {"bad": 100, "late": 0}


def test_a_wide_question_beside_many_forecasts_takes_no_memory_for_each_of_both() -> None:
    """1,000 edges once and 8,000 steps of another question: each step at each edge would be 64 MB."""
    rules = RuleSet(name="x", kernel="brier", cdf_kernel="crps", reference="consensus", consensus="mean")
    many = [made("q", f"p{i % 50}", at=i, probabilities=(i, ONE - i)) for i in range(4_000)]
    span = events.NumericRange(lower="0", upper="1", bins=1_000)
    wide = asked("w", ONE, made("w", "ada", cdf=(*[0] * 1_000, CHANCE)), answer="0.5", kind="numeric", range=span)
    projections = Projections(read(contest(rules), *asked("q", ONE, *many), *wide))
    tracemalloc.start()
    try:
        assert len(projections.table("scores")) == 51
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * 10**6


def test_prizes_beyond_the_pool_are_found_however_many_came_before() -> None:
    """The last of 2,000 prizes that exactly use up the pool passes; one more does not."""
    prizes = [paid(10_000, f"p{i}") for i in range(2_000)]
    cup = msgspec.structs.replace(contest(PRESETS["baseline"], pool=20_000_000), payable_unit=10_000)
    assert read(cup, finalized(), *prizes).contests["cup"].paid_total == 20_000_000
    audited(enveloped([cup, finalized(), *prizes]))
    with pytest.raises(Corrupt) as caught:
        audited(enveloped([cup, finalized(), *prizes, paid(10_000, "one more")]))
    assert caught.value.position == 3


def test_a_log_position_of_thousands_of_digits_is_beyond_the_log(tmp_path: Path) -> None:
    """The command line reports wrong usage in one line."""
    with Ledger.open(tmp_path / "log.db"):
        pass
    result = CliRunner().invoke(main, ["replay", str(tmp_path / "log.db"), "--as-of", "9" * 5_000])
    assert result.exit_code == USAGE
    assert "out_of_range" in result.stderr


SEASON: list[AnyEvent] = [
    binary(reveals_at=CLOSES - 1),
    flow(),
    events.ContestOpened(
        at=OPENS,
        contest="cup",
        rules=RuleSet(
            name="x", kernel="spherical", reference="peers", take="positive_square", attested=True, replicates=39
        ),
        payable_unit=1,
        pool=100,
    ),
    events.ContestOpened(at=OPENS, contest="league", rules=PRESETS["autocast-2022"], payable_unit=1),
    added(hidden_coverage_weight=1, spot_at=OPENS),
    added(contest="league"),
    enrolled(bot=False),
    attested(newest_source="2022-03-22"),
    made("rain", "bob", at=OPENS, probabilities=(HALF, HALF)),
    made("flow", "bob", at=OPENS, quantiles=(-1, 0, 1)),
    events.ForecastWithdrawn(at=OPENS, question="rain", participant="bob"),
    events.QuestionResolved(at=CLOSES, question="rain", outcome=0, known_at=CLOSES),
    events.QuestionResolved(at=CLOSES, question="flow", outcome=1, value="0.5", known_at=CLOSES),
    events.ParticipantExcluded(at=OPENS, contest="cup", participant="ada", level="no_prize", reason=""),
    events.ContestFinalized(at=OPENS, contest="cup"),
]
NASTY = [-1, 0, 2**63 - 1, -(2**63), 10**400, "nan", "1e300", "9" * 5_000, None, [], {}]


def sealed(happened: list[Any]) -> list[bytes]:
    """Rows of anything at all, their digests right."""
    previous, rows = log.GENESIS, []
    for position, event in enumerate(happened, 1):
        head = {"position": position, "recorded_at": 0, "command_id": "", "command": "", "previous": previous}
        body = json.dumps(head | {"event": event}, separators=(",", ":")).encode()[:-1]
        previous = sha256(body).hexdigest()
        rows.append(body + f',"digest":"{previous}"}}'.encode())
    return rows


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key at which something could be put instead."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


@pytest.mark.parametrize("nasty", NASTY, ids=lambda nasty: str(nasty)[:12])
def test_nonsense_in_any_one_field_is_corrupt_or_computes(nasty: Any) -> None:
    """If any field of a season is replaced, a table is computed or raises Corrupt; it never fails in another way.

    Each value is put at every sixth place, with LONG at every third; the values after it are put at the others.
    """
    step = 6 if LONG == 1 else 3
    plain = json.loads(msgspec.json.encode(SEASON))
    unchanged = Projections(facts(log.unseal_pages(iter([sealed(plain)]))))
    assert all(len(unchanged.table(name)) >= 0 for name in CATALOGUE)
    corrupt: list[int] = []
    for where, key in islice(places(plain), NASTY.index(nasty) % step, None, step):
        right, where[key] = where[key], nasty
        try:
            projections = Projections(facts(log.unseal_pages(iter([sealed(plain)]))))
            assert all(projections.table(name).digest() for name in CATALOGUE)
        except Corrupt as error:
            corrupt.append(error.position)
        where[key] = right
    assert len(corrupt) > 10
    assert 1 <= min(corrupt) <= max(corrupt) <= len(plain)
