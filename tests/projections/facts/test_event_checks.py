"""Checks of logs whose digests are right but whose content no decider would have written."""

from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT, LONGEST_PERIOD
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.events import AnyEvent
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.event_checks import check_event
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.reading.replay import summarize_tables
from tests.support.forging import audited, enveloped

OPENS, CLOSES = 1_000_000, 9_000_000  # µs
HALF = 500_000_000


def binary(question: str = "rain", **fields: object) -> events.QuestionOpened:
    """A binary question."""
    given = {"at": OPENS, "question": question, "kind": "binary", "outcomes": ("yes", "no")}
    return events.QuestionOpened(**{"opens_at": OPENS, "closes_at": CLOSES, **given, **fields})  # type: ignore[arg-type]


def numeric(**fields: object) -> events.QuestionOpened:
    """A numeric question of two bins."""
    span = events.NumericRange(lower="0", upper="1", bins=2)
    return binary("depth", **{"kind": "numeric", "outcomes": (), "range": span, **fields})


def contest(**fields: object) -> events.ContestOpened:
    """A contest with a pool of 100."""
    given = {"at": OPENS, "contest": "cup", "rules": PRESETS["relative-2022-04"], "pool": 100_000_000}
    return events.ContestOpened(**{"payable_unit": 10_000, **given, **fields})  # type: ignore[arg-type]


def forecast(question: str = "rain", at: int = OPENS, **numbers: Any) -> events.ForecastMade:
    """Ada's forecast."""
    return events.ForecastMade(at=at, question=question, participant="ada", **numbers)


def added(**fields: object) -> events.QuestionAdded:
    """The question in the contest."""
    given = {"at": OPENS, "contest": "cup", "question": "rain", "weight": 1_000_000}
    return events.QuestionAdded(**{**given, **fields})  # type: ignore[arg-type]


def flow(**fields: object) -> events.QuestionOpened:
    """A numeric question of three quantiles, in tenths."""
    given = {"lower": "0", "upper": "1", "levels": (1, HALF, 2 * HALF - 1), "decimals": 1}
    return binary("flow", kind="numeric", outcomes=(), range=events.NumericRange(**{**given, **fields}))  # type: ignore[arg-type]


def flow_of(kind: str) -> events.QuestionOpened:
    """A question of another kind that asks for quantiles."""
    return msgspec.structs.replace(flow(), kind=kind)


def bounded(lower: str, upper: str, zero_point: str | None = None) -> events.QuestionOpened:
    """A numeric question of two bins between these bounds."""
    return numeric(range=events.NumericRange(lower=lower, upper=upper, zero_point=zero_point, bins=2))


def resolved(question: str = "rain", **fields: object) -> events.QuestionResolved:
    """The question resolved, by default to its first outcome."""
    given = {"at": CLOSES, "outcome": 0, "known_at": CLOSES, "value": "" if question == "rain" else "0.5", **fields}
    return events.QuestionResolved(question=question, **given)  # type: ignore[arg-type]


def rescheduled(**times: int) -> events.QuestionRescheduled:
    """Other times of the question."""
    return events.QuestionRescheduled(at=OPENS, question="rain", **times)  # type: ignore[arg-type]


def annulled() -> events.QuestionAnnulled:
    """The question annulled."""
    return events.QuestionAnnulled(at=CLOSES, question="rain", reason="")


def revoked() -> events.ResolutionRevoked:
    """Its resolution or annulment revoked."""
    return events.ResolutionRevoked(at=CLOSES, question="rain", reason="")


def enrolled(**fields: object) -> events.ParticipantEnrolled:
    """Ada in the contest, as a bot of a team."""
    given = {"at": OPENS, "contest": "cup", "participant": "ada", "entrant": "team", "bot": True}
    return events.ParticipantEnrolled(**{**given, **fields})  # type: ignore[arg-type]


def paid(amount: int, participant: str = "ada") -> events.PrizePaid:
    """A prize, in 1e-6."""
    return events.PrizePaid(at=CLOSES, contest="cup", participant=participant, amount=amount)


def attested(**stamps: str) -> events.ForecastMade:
    """Ada's forecast with an attestation."""
    return msgspec.structs.replace(
        forecast(probabilities=(HALF, HALF)),
        attestation=events.Attestation(**stamps),  # type: ignore[arg-type]
    )


def ruled(**fields: object) -> events.ContestOpened:
    """A contest under rules of its own."""
    return contest(rules=RuleSet(**{"name": "own", **fields}))  # type: ignore[arg-type]


def finalized() -> events.ContestFinalized:
    """The contest finalized."""
    return events.ContestFinalized(at=CLOSES, contest="cup")


def read(*written: AnyEvent) -> Facts:
    """The facts of a log of these events; its digests are right."""
    head, rows = log.START, []
    for position, event in enumerate(written, 1):
        sealed = log.Recorded(
            position=position, recorded_at=0, command_id=str(position), command="", previous=head.digest, event=event
        )
        row, digest = log.seal(sealed)
        head = log.Checkpoint(position, digest)
        rows.append(row)
    return facts(log.unseal_pages(iter([rows])))


def named() -> events.QuestionOpened:
    """A question of three named outcomes."""
    return binary("sky", kind="multiple_choice", outcomes=("blue", "grey", "other"))


def changed(*removed: str, question: str = "sky", **fields: Any) -> events.OutcomesChanged:
    """Outcomes of the question removed, or added with a grace period."""
    return events.OutcomesChanged(**{"at": OPENS, "question": question, "removed": removed, **fields})


def quoted(**sides: Any) -> events.PricesQuoted:
    """A quote of rain at a half, with bids or asks."""
    quote = events.Quote(question="rain", prices=(HALF, HALF), **sides)
    return events.PricesQuoted(at=OPENS, source="x", quoted_at=OPENS, quotes=(quote,))


GRACE: dict[str, Any] = {"grace_ends_at": OPENS + 1}
IMPOSSIBLE: dict[str, list[AnyEvent]] = {
    "a change of outcomes of an unknown question": [changed("blue")],
    "a change of the outcomes of a binary question": [binary(), changed("yes", question="rain")],
    "a change of nothing": [named(), changed()],
    "an addition and a removal at once": [named(), changed("blue", added=("red",), **GRACE)],
    "an addition without a grace period": [named(), changed(added=("red",))],
    "a removal with a grace period": [named(), changed("blue", **GRACE)],
    "a grace period that ends before it begins": [named(), changed(added=("red",), grace_ends_at=OPENS)],
    "a grace period beyond the calendar": [named(), changed(added=("red",), grace_ends_at=LAST_INSTANT + 1)],
    "an outcome added twice": [named(), changed(added=("red", "red"), **GRACE)],
    "an outcome that was removed added again": [named(), changed("blue"), changed(added=("blue",), **GRACE)],
    "an unknown outcome removed": [named(), changed("red")],
    "an outcome removed twice": [named(), changed("blue"), changed("blue")],
    "the last outcome removed": [named(), changed("other")],
    "a change of outcomes that have prices": [
        named(),
        events.PricesQuoted(
            at=OPENS, source="x", quoted_at=OPENS, quotes=(events.Quote(question="sky", prices=(HALF, None, None)),)
        ),
        changed("blue"),
    ],
    "too few bids": [binary(), quoted(bids=(0,))],
    "an ask above 1": [binary(), quoted(asks=(2 * HALF + 1, None))],
    "a bid above its ask": [binary(), quoted(bids=(HALF, None), asks=(HALF - 1, None))],
    "a forecast with a removed outcome": [named(), changed("blue"), forecast("sky", probabilities=(0, HALF, HALF))],
    "a forecast without a new outcome": [
        named(),
        changed(added=("red",), **GRACE),
        forecast("sky", probabilities=(0, HALF, HALF)),
    ],
    "a question opened twice": [binary(), binary()],
    "a binary question with a range": [binary(range=events.NumericRange(lower="0", upper="1", bins=2))],
    "a binary question without outcomes": [binary(outcomes=())],
    "a numeric question with outcomes": [numeric(outcomes=("a", "b"))],
    "a question of one outcome": [binary(outcomes=("yes",))],
    "an outcome named twice": [binary(outcomes=("yes", "yes"))],
    "a range of no bins": [numeric(range=events.NumericRange(lower="0", upper="1", bins=0))],
    "a range of too many bins": [numeric(range=events.NumericRange(lower="0", upper="1", bins=10_001))],
    "a close at the opening": [binary(closes_at=OPENS)],
    "a period of more than a century": [binary(closes_at=OPENS + 36_525 * 86_400 * 10**6 + 1)],
    "an opening before the calendar": [binary(opens_at=-(2**62))],
    "a hidden period that ends at the opening": [binary(reveals_at=OPENS)],
    "a hidden period beyond the close": [binary(reveals_at=CLOSES + 1)],
    "an event beyond the calendar": [binary(at=2**62)],
    "a close of an unknown question": [events.QuestionClosed(at=OPENS, question="rain")],
    "a forecast on an unknown question": [forecast(probabilities=(HALF, HALF))],
    "a withdrawal on an unknown question": [events.ForecastWithdrawn(at=OPENS, question="rain", participant="ada")],
    "a forecast without numbers": [binary(), forecast()],
    "a forecast of three outcomes on two": [binary(), forecast(probabilities=(HALF, HALF, 0))],
    "a forecast that sums to less than one": [binary(), forecast(probabilities=(HALF, HALF - 1))],
    "a negative probability": [binary(), forecast(probabilities=(2 * HALF + 1, -1))],
    "a cdf on a binary question": [binary(), forecast(cdf=(0, HALF, HALF))],
    "a cdf that decreases": [numeric(), forecast("depth", cdf=(5, 4, 10**10))],
    "a cdf beyond one": [numeric(), forecast("depth", cdf=(0, 4, 10**10 + 1))],
    "a negative cdf": [numeric(), forecast("depth", cdf=(-1, 4, 10**10))],
    "a forecast before the calendar": [binary(), forecast(at=-(2**62), probabilities=(HALF, HALF))],
    "an outcome that is not there": [binary(), resolved(outcome=2)],
    "a negative outcome": [binary(), resolved(outcome=-1)],
    "a unit of payouts below 0": [binary(), resolved(outcome=-1, payout_unit=-2, payouts=(-1, -1))],
    "a unit of payouts that is too large": [binary(), resolved(outcome=-1, payout_unit=2**31, payouts=(2**30, 2**30))],
    "a payout above its unit": [binary(), resolved(outcome=-1, payout_unit=3, payouts=(4, 0))],
    "a bin beyond the open end": [numeric(), resolved("depth", outcome=4)],
    "an answer known before the opening": [binary(), resolved(known_at=OPENS - 1)],
    "an answer known after it was given": [binary(), resolved(known_at=CLOSES + 1)],
    "a resolution of an unknown question": [resolved()],
    "a contest opened twice": [contest(), contest()],
    "a pool that its unit does not divide": [contest(pool=15_000)],
    "a negative pool": [contest(pool=-10_000)],
    "a pool beyond a million millions": [contest(pool=10**18 + 10_000)],
    "a negative payable unit": [contest(payable_unit=-1)],
    "an event before the calendar": [binary(at=FIRST_INSTANT - 1)],
    "an event a µs beyond the calendar": [binary(at=LAST_INSTANT + 1)],
    "an opening a µs before the calendar": [binary(opens_at=FIRST_INSTANT - 1)],
    "a close a µs beyond the calendar": [binary(opens_at=LAST_INSTANT, closes_at=LAST_INSTANT + 1)],
    "a forecast a µs before the calendar": [binary(), forecast(at=FIRST_INSTANT - 1, probabilities=(HALF, HALF))],
    "a forecast a µs beyond the calendar": [binary(), forecast(at=LAST_INSTANT + 1, probabilities=(HALF, HALF))],
    "an answer known beyond the calendar": [binary(), resolved(known_at=LAST_INSTANT + 1)],
    "a payable unit of nothing": [contest(payable_unit=0)],
    "a question added to an unknown contest": [binary(), added()],
    "an unknown question added": [contest(), added()],
    "a question added twice": [binary(), contest(), added(), added()],
    "a weight below nothing": [binary(), contest(), added(weight=-1)],
    "a hidden weight without a hidden period": [binary(), contest(), added(hidden_coverage_weight=10**6)],
    "a hidden weight beyond one": [binary(reveals_at=CLOSES - 1), contest(), added(hidden_coverage_weight=10**6 + 1)],
    "an exclusion from an unknown contest": [
        events.ParticipantExcluded(at=OPENS, contest="cup", participant="ada", level="hidden", reason="")
    ],
    "a second resolution": [binary(), resolved(), resolved(outcome=1)],
    "a resolution of an annulled question": [binary(), annulled(), resolved()],
    "a second annulment": [binary(), annulled(), annulled()],
    "a revocation of nothing": [binary(), revoked()],
    "a second revocation": [binary(), resolved(), revoked(), revoked()],
    "an early close at the opening": [binary(), events.QuestionClosed(at=OPENS, question="rain")],
    "an early close at the close": [binary(), events.QuestionClosed(at=CLOSES, question="rain")],
    "a question added to a finalized contest": [binary(), contest(), finalized(), added()],
    "an exclusion from a finalized contest": [
        contest(),
        finalized(),
        events.ParticipantExcluded(at=OPENS, contest="cup", participant="ada", level="hidden", reason=""),
    ],
    "a contest finalized twice": [contest(), finalized(), finalized()],
    "an unknown contest finalized": [events.ContestFinalized(at=OPENS, contest="cup")],
    "a weight beyond a million": [binary(), contest(), added(weight=10**12 + 1)],
    "a hidden weight below one with nothing after it": [
        binary(reveals_at=CLOSES),
        contest(),
        added(hidden_coverage_weight=10**6 - 1),
    ],
    "a negative hidden weight": [binary(reveals_at=CLOSES - 1), contest(), added(hidden_coverage_weight=-1)],
    # events that come too late
    "a forecast at the close": [binary(), forecast(at=CLOSES, probabilities=(HALF, HALF))],
    "a withdrawal at the close": [binary(), events.ForecastWithdrawn(at=CLOSES, question="rain", participant="ada")],
    "a forecast at the early close": [
        binary(),
        events.QuestionClosed(at=CLOSES - 2, question="rain"),
        forecast(at=CLOSES - 2, probabilities=(HALF, HALF)),
    ],
    "a forecast recorded after the answer, said to be earlier": [
        binary(),
        resolved(),
        forecast(probabilities=(2 * HALF, 0)),
    ],
    "a withdrawal recorded after the answer": [
        binary(),
        resolved(),
        events.ForecastWithdrawn(at=OPENS, question="rain", participant="ada"),
    ],
    "a forecast on an annulled question": [binary(), annulled(), forecast(probabilities=(HALF, HALF))],
    "a forecast after an answer, taken back and given again": [
        binary(),
        resolved(),
        revoked(),
        resolved(),
        forecast(probabilities=(HALF, HALF)),
    ],
    "a forecast after an answer in parts": [
        binary(),
        resolved(outcome=-1, payouts=(HALF, HALF)),
        forecast(probabilities=(HALF, HALF)),
    ],
    "an early close of a resolved question": [
        binary(),
        resolved(),
        events.QuestionClosed(at=CLOSES - 1, question="rain"),
    ],
    "an early close at the early close": [
        binary(),
        events.QuestionClosed(at=CLOSES - 2, question="rain"),
        events.QuestionClosed(at=CLOSES - 2, question="rain"),
    ],
    "other times of an unknown question": [rescheduled(closes_at=CLOSES)],
    "other times of a resolved question": [binary(), resolved(), rescheduled(closes_at=CLOSES + 1)],
    "other times of an annulled question": [binary(), annulled(), rescheduled(closes_at=CLOSES + 1)],
    "a new close at the opening": [binary(), rescheduled(closes_at=OPENS)],
    "a new opening at the close": [binary(), rescheduled(opens_at=CLOSES)],
    "a new close after the calendar": [binary(), rescheduled(closes_at=LAST_INSTANT + 1)],
    "a new close of more than a century": [binary(), rescheduled(closes_at=OPENS + LONGEST_PERIOD + 1)],
    "a new close before the reveal": [binary(reveals_at=CLOSES), rescheduled(closes_at=CLOSES - 1)],
    "a new opening at the early close": [
        binary(),
        events.QuestionClosed(at=OPENS + 1, question="rain"),
        rescheduled(opens_at=OPENS + 1),
    ],
    "a new opening after a spot": [binary(), contest(), added(spot_at=OPENS), rescheduled(opens_at=OPENS + 1)],
    "a new opening after one of several spots": [
        binary(),
        contest(),
        added(spots=(events.Spot(at=OPENS), events.Spot(at=OPENS + 2))),
        rescheduled(opens_at=OPENS + 1),
    ],
    "a forecast after a close set back": [
        binary(),
        rescheduled(closes_at=CLOSES - 2),
        forecast(at=CLOSES - 2, probabilities=(HALF, HALF)),
    ],
    # ranges
    "bounds that are no numbers": [bounded("low", "1")],
    "bounds with an exponent": [bounded("0", "1e999999999")],
    "bounds that are a fraction": [bounded("1/3", "1")],
    "a bound of too many digits": [bounded("0", "1" * 32)],
    "a bound of too many decimals": [bounded("0", "0." + "1" * 1_001)],
    "an upper bound below the lower": [bounded("1", "0")],
    "bounds that are one": [bounded("1", "1.0")],
    "a zero point within the range": [bounded("1", "3", "2")],
    "a zero point at a bound": [bounded("1", "3", "1")],
    "a zero point that is no number": [bounded("1", "3", "")],
    "decimals of a cdf": [numeric(range=events.NumericRange(lower="0", upper="1", bins=2, decimals=1))],
    "neither bins nor levels": [flow(levels=())],
    "bins and levels": [flow(bins=2)],
    "a level of nought": [flow(levels=(0, HALF))],
    "a level of one": [flow(levels=(HALF, 2 * HALF))],
    "a level twice": [flow(levels=(HALF, HALF))],
    "levels that decrease": [flow(levels=(HALF, 1))],
    "negative decimals": [flow(decimals=-1)],
    "too many decimals": [flow(decimals=13)],
    "absurdly many decimals": [flow(decimals=10**9)],
    "a bound beyond what its unit can count": [flow(upper="1000000000000.1")],
    "a lower bound beyond what its unit can count": [flow(lower="-1000000000000.1")],
    # quantiles and answers
    "too few quantiles": [flow(), forecast("flow", quantiles=(1, 2))],
    "too many quantiles": [flow(), forecast("flow", quantiles=(1, 2, 3, 4))],
    "quantiles that decrease": [flow(), forecast("flow", quantiles=(1, 3, 2))],
    "a quantile too large": [flow(), forecast("flow", quantiles=(1, 2, 10**13 + 1))],
    "a quantile too far below nought": [flow(), forecast("flow", quantiles=(-(10**13) - 1, 2, 3))],
    "a quantile of more than 64 bits": [flow(), forecast("flow", quantiles=(1, 2, 2**64))],
    "quantiles on a binary question": [binary(), forecast(quantiles=(1, 2, 3))],
    "a cdf on a question of quantiles": [flow(), forecast("flow", cdf=(0, 10**10))],
    "an outcome beyond that above a range of quantiles": [flow(), resolved("flow", outcome=3)],
    "a numeric answer without its text": [numeric(), resolved("depth", value="")],
    "a numeric answer that is no number": [numeric(), resolved("depth", value="much")],
    "a numeric answer with an exponent": [numeric(), resolved("depth", value="1e999999999")],
    "an answer beyond what the unit of its question can count": [flow(), resolved("flow", value="1000000000000.1")],
    "an answer as far below nought": [flow(), resolved("flow", value="-1000000000000.1")],
    # ends of forecasts
    "a forecast that ends when it is made": [binary(), forecast(probabilities=(HALF, HALF), until=OPENS)],
    "a forecast that ends before it is made": [binary(), forecast(probabilities=(HALF, HALF), until=-(2**63))],
    "a forecast that ends beyond the calendar": [
        binary(),
        forecast(probabilities=(HALF, HALF), until=LAST_INSTANT + 1),
    ],
    "a forecast whose end has more than 64 bits": [binary(), forecast(probabilities=(HALF, HALF), until=2**63)],
    # dates, values, names beyond an end
    "a date question without a range": [binary("depth", kind="date", outcomes=())],
    "a date question with levels": [flow_of("date")],
    "a discrete question with levels": [flow_of("discrete")],
    "an answer that is no instant": [numeric(kind="date"), resolved("depth", value="5")],
    "an answer above that is inside": [numeric(), resolved("depth", outcome=1, value="above_upper_bound")],
    "an answer below a range of quantiles": [flow(), resolved("flow", outcome=0, value="below_lower_bound")],
    # rules and entries
    "rules without a kernel": [ruled()],
    "rules that contradict one another": [ruled(kernel="ln", cdf_kernel="crps")],
    "a logarithm without a floor": [ruled(kernel="ln", least_probability_ppm=0)],
    "a numeric question that the rules have no kernel for": [numeric(), ruled(kernel="ln"), added(question="depth")],
    "a named one": [binary(), ruled(cdf_kernel="ln"), added()],
    "quantiles where a cdf is scored": [flow(), contest(), added(question="flow")],
    "a spot before the opening": [binary(), contest(), added(spot_at=OPENS - 1)],
    "a spot after the close": [binary(), contest(), added(spot_at=CLOSES + 1)],
    "spots and a spot": [binary(), contest(), added(spot_at=OPENS, spots=(events.Spot(at=OPENS),))],
    "spots before the opening": [binary(), contest(), added(spots=(events.Spot(at=OPENS - 1), events.Spot(at=OPENS)))],
    "spots after the close": [binary(), contest(), added(spots=(events.Spot(at=OPENS), events.Spot(at=CLOSES + 1)))],
    "spots out of order": [binary(), contest(), added(spots=(events.Spot(at=OPENS + 1), events.Spot(at=OPENS)))],
    "a spot twice": [binary(), contest(), added(spots=(events.Spot(at=OPENS), events.Spot(at=OPENS)))],
    "a spot without weight": [binary(), contest(), added(spots=(events.Spot(at=OPENS, weight=0),))],
    "a spot of too much weight": [binary(), contest(), added(spots=(events.Spot(at=OPENS, weight=101),))],
    "too many spots": [binary(), contest(), added(spots=tuple(events.Spot(at=OPENS + n) for n in range(366)))],
    "a spot of more than 64 bits": [binary(), contest(), added(spot_at=2**70)],
    # enrolments, payments, attestations
    "an enrolment in an unknown contest": [enrolled()],
    "an enrolment in a finalized contest": [contest(), finalized(), enrolled()],
    "a prize of an unknown contest": [paid(10_000)],
    "a prize of a contest not finalized": [contest(), paid(10_000)],
    "a prize paid twice": [contest(), finalized(), paid(10_000), paid(10_000)],
    "a prize beyond the pool": [contest(), finalized(), paid(100_010_000)],
    "prizes that add up beyond the pool": [contest(), finalized(), paid(99_990_000), paid(20_000, "bob")],
    "a prize that is not payable": [contest(), finalized(), paid(15_000)],
    "a prize of nothing": [contest(), finalized(), paid(0)],
    "a negative prize": [contest(), finalized(), paid(-10_000)],
    "an attested source of no date": [binary(), attested(newest_source="lately")],
    "an attested release of no date": [binary(), attested(model_released="2022-13")],
    "an attested training of no date": [binary(), attested(training_cutoff="")],
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_event_is_found_at_its_position(name: str) -> None:
    """The events before it are valid, so the audit stops at the last event or at the first of its command."""
    written = IMPOSSIBLE[name]
    audited(enveloped(written[:-1]))
    log = enveloped(written)
    with pytest.raises(Corrupt) as caught:
        audited(log)
    assert caught.value.position == [recorded.command_id for recorded in log].index(log[-1].command_id) + 1


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_reading_an_impossible_event_gives_tables_or_its_position(name: str) -> None:
    """The reader makes the tables or raises Corrupt at the position of the last event."""
    assert read_stops_at(*IMPOSSIBLE[name]) == len(IMPOSSIBLE[name])


def read_stops_at(*written: AnyEvent) -> int:
    """The log position up to which tables can be made, or at which reading stops."""
    try:
        facts_read = read(*written)
        summarize_tables(facts_read)
    except Corrupt as caught:
        return caught.position
    return facts_read.as_of


def test_a_forecast_earlier_than_the_one_before_is_found() -> None:
    """`at` never decreases among the forecasts of one participant on one question; tables use the later one."""
    early, late = (forecast(at=OPENS + i, probabilities=(HALF, HALF)) for i in (1, 2))
    assert len(Projections(read(binary(), early, late)).table("standing")) == 2
    assert len(Projections(read(binary(), late, early)).table("standing")) == 1
    assert audit_stops_at(binary(), early, late) is None
    assert audit_stops_at(binary(), late, early) == 3


@pytest.mark.parametrize("kind", events.TAGS, ids=lambda kind: kind.__name__)
def test_every_number_of_every_event_is_bounded(kind: type[events.Event]) -> None:
    """A number that is too large for the sums of tables, or no instant, is found, whichever field of an event it is in.

    The fields that are numbers are those that the JSON schema of the event calls integers. All others are missing.
    """
    _, schemas = msgspec.json.schema_components([kind])
    fields = schemas[kind.__name__]["properties"]
    numbers = [name for name, field in fields.items() if {"type": "integer"} in (field, *field.get("anyOf", ()))]
    assert "at" in numbers
    for name in numbers:
        given: dict[str, Any] = {**dict.fromkeys(kind.__struct_fields__), name: 2**62}
        with pytest.raises(Corrupt, match=f"log position 7: {events.TAGS[kind]}: expected .*{name}"):
            check_event(Facts(), 7, kind(**given))


def audit_stops_at(*written: AnyEvent) -> int | None:
    """The log position at which the audit stops, None if it finds no fault."""
    try:
        audited(enveloped(written))
    except Corrupt as caught:
        return caught.position
    return None


def withdrawn(question: str = "rain", participant: str = "ada") -> events.ForecastWithdrawn:
    """A withdrawal of the participant's standing forecast on the question."""
    return events.ForecastWithdrawn(at=OPENS, question=question, participant=participant)


@pytest.mark.parametrize(
    ("written", "position"),
    [
        ([withdrawn()], 3),
        ([forecast(probabilities=(HALF, HALF)), withdrawn(), withdrawn()], 5),
        ([forecast(probabilities=(HALF, HALF)), withdrawn("wind")], 4),
        ([forecast(probabilities=(HALF, HALF)), withdrawn(participant="bob")], 4),
        ([forecast("wind", probabilities=(HALF, HALF)), withdrawn("wind"), withdrawn(participant="zoe")], 5),
    ],
    ids=["nothing", "twice", "another question", "another participant", "the last of several"],
)
def test_a_withdrawal_of_nothing_is_found(written: list[AnyEvent], position: int) -> None:
    """Only the participant's own standing forecast on that question can be withdrawn, and only once."""
    assert audit_stops_at(binary(), binary("wind"), *written) == position


def test_a_new_forecast_can_be_withdrawn_again() -> None:
    """After each withdrawal a new forecast stands, which can be withdrawn in turn."""
    again: list[AnyEvent] = [forecast(probabilities=(HALF, HALF)), withdrawn()] * 2
    assert audit_stops_at(binary(), *again) is None
    assert len(Projections(read(binary(), *again)).table("standing")) == 0


@pytest.mark.parametrize(
    ("written", "position"),
    [
        ([resolved(), forecast(probabilities=(HALF, HALF)), revoked()], 4),
        ([resolved("wind", value=""), resolved(), revoked(), forecast("wind", probabilities=(HALF, HALF))], 6),
        (
            [
                events.QuestionClosed(at=CLOSES - 2, question="rain"),
                forecast(at=CLOSES - 2, probabilities=(HALF, HALF)),
                events.QuestionClosed(at=CLOSES - 3, question="rain"),
            ],
            4,
        ),
    ],
    ids=["answered until it is not", "another's answer is taken back", "closed earlier later"],
)
def test_only_earlier_events_about_the_same_question_count(written: list[AnyEvent], position: int) -> None:
    """A later event, or one about another question, does not make an impossible event possible."""
    assert audit_stops_at(binary(), binary("wind"), *written) == position


def test_the_first_impossible_forecast_of_several_is_named() -> None:
    """The audit stops at the first one, wherever it is in a page."""
    fine, wrong = forecast(probabilities=(HALF, HALF)), forecast(probabilities=(HALF, 0))
    assert audit_stops_at(binary(), fine, wrong, fine, wrong) == 3


CENTURY = 36_525 * 86_400 * 10**6
AT_THE_BOUNDS: dict[str, list[AnyEvent]] = {
    "a period of a µs": [binary(closes_at=OPENS + 1)],
    "a century": [binary(closes_at=OPENS + CENTURY)],
    "the first century": [binary(opens_at=FIRST_INSTANT, closes_at=FIRST_INSTANT + CENTURY)],
    "the last µs": [binary(opens_at=LAST_INSTANT - 1, closes_at=LAST_INSTANT)],
    "events at both ends of the calendar": [binary(at=FIRST_INSTANT), contest(at=LAST_INSTANT)],
    "forecasts at both ends of the calendar": [
        binary(opens_at=LAST_INSTANT - 1, closes_at=LAST_INSTANT),
        forecast(at=FIRST_INSTANT, probabilities=(HALF, HALF)),
        forecast(at=LAST_INSTANT - 1, probabilities=(HALF, HALF)),
    ],
    "a forecast a µs before the close": [binary(), forecast(at=CLOSES - 1, probabilities=(HALF, HALF))],
    "a forecast after the question is open again": [
        binary(),
        resolved(),
        revoked(),
        forecast(probabilities=(HALF, HALF)),
    ],
    "a forecast on another question than the resolved one": [
        binary(),
        binary("wind"),
        resolved(),
        forecast("wind", probabilities=(HALF, HALF)),
    ],
    "an early close of a question that was closed early before": [
        binary(),
        events.QuestionClosed(at=CLOSES - 1, question="rain"),
        events.QuestionClosed(at=CLOSES - 2, question="rain"),
    ],
    "other times next to what is allowed": [
        binary(reveals_at=OPENS + 2),
        contest(),
        added(spot_at=OPENS + 1),
        events.QuestionClosed(at=OPENS + 2, question="rain"),
        rescheduled(opens_at=OPENS + 1),
        rescheduled(closes_at=OPENS + 2),
        rescheduled(opens_at=OPENS, closes_at=OPENS + LONGEST_PERIOD, reveals_at=OPENS + 1),
        forecast(at=CLOSES, probabilities=(HALF, HALF)),
    ],
    "an answer known at the opening": [binary(), resolved(known_at=OPENS)],
    "an answer known at the end of the calendar": [binary(), resolved(at=LAST_INSTANT, known_at=LAST_INSTANT)],
    "early closes next to the opening and the close": [
        binary(),
        binary("wind"),
        events.QuestionClosed(at=OPENS + 1, question="rain"),
        events.QuestionClosed(at=CLOSES - 1, question="wind"),
    ],
    "one bin": [numeric(range=events.NumericRange(lower="0", upper="1", bins=1))],
    "ten thousand bins": [numeric(range=events.NumericRange(lower="0", upper="1", bins=10_000))],
    "bounds of the most digits": [bounded("-" + "9" * 30, "9" * 30 + "." + "1" * 1_000)],
    "a reveal a µs after the opening, hidden coverage of nought": [
        binary(reveals_at=OPENS + 1),
        contest(),
        added(hidden_coverage_weight=0),
    ],
    "spots at the opening and the close": [
        binary(),
        contest(),
        contest(contest="league"),
        added(spot_at=OPENS),
        added(contest="league", spot_at=CLOSES),
    ],
    "as many spots as there can be": [
        binary(),
        contest(),
        added(spots=tuple(events.Spot(at=CLOSES - n, weight=100) for n in range(365, 0, -1))),
    ],
    "the least and the largest weight": [
        binary(),
        contest(),
        contest(contest="league"),
        added(weight=0),
        added(contest="league", weight=10**12),
    ],
    "no pool": [contest(pool=0)],
    "the largest pool, in the smallest unit": [contest(pool=10**18, payable_unit=1)],
    "a pool that is one payable unit": [contest(pool=10**18, payable_unit=10**18), finalized(), paid(10**18)],
    "the smallest prize": [contest(payable_unit=1), finalized(), paid(1)],
    "an answer above the last bin": [
        numeric(range=events.NumericRange(lower="0", upper="1", bins=2, open_upper=True)),
        resolved("depth", outcome=3, value="1.5"),
    ],
    "an attestation without stamps": [binary(), attested()],
    "an attestation of one stamp": [binary(), attested(model_released="2022-03")],
}


@pytest.mark.parametrize("written", AT_THE_BOUNDS.values(), ids=AT_THE_BOUNDS.keys())
def test_events_at_the_bounds_pass(written: list[AnyEvent]) -> None:
    """One µs, unit or bin further they would not pass."""
    assert read(*written).as_of == len(written)
    assert audit_stops_at(*written) is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"levels": (1,)},
        {"decimals": 0},
        {"decimals": 12, "lower": "-10", "upper": "10"},
        {"lower": "-1000000000000", "upper": "1000000000000"},
        {"lower": "0.1", "upper": "0.25", "zero_point": "0"},
    ],
)
def test_ranges_at_the_bounds_of_what_is_allowed_pass(fields: dict[str, object]) -> None:
    """Levels next to 0 and 1, decimals from 0 to 12, bounds of 1e13 units."""
    assert len(read(flow(**fields)).questions) == 1


def test_a_possible_log_passes() -> None:
    """Every kind of event, at the bounds of what is allowed."""
    facts_read = read(
        binary(reveals_at=CLOSES),
        numeric(),
        contest(),
        added(hidden_coverage_weight=10**6),
        added(question="depth"),
        forecast(probabilities=(2 * HALF, 0)),
        forecast("depth", cdf=(0, 0, 10**10)),
        events.ForecastWithdrawn(at=OPENS, question="rain", participant="ada"),
        attested(newest_source="2022-03-22", model_released="2022", training_cutoff="2021-05-11T00:00:00Z"),
        events.QuestionClosed(at=CLOSES - 1, question="depth"),
        resolved(known_at=OPENS),
        resolved("depth", outcome=3),
        events.ResolutionRevoked(at=CLOSES, question="rain", reason=""),
        events.QuestionAnnulled(at=CLOSES, question="rain", reason=""),
        events.ParticipantExcluded(at=OPENS, contest="cup", participant="ada", level="no_rank", reason=""),
        flow(),
        forecast("flow", quantiles=(-(10**13), 0, 10**13)),
        resolved("flow", outcome=2, value="1000000000000"),
        contest(contest="league", rules=PRESETS["autocast-2022"]),
        added(contest="league", spot_at=OPENS),
        enrolled(),
        enrolled(bot=False),
        events.ContestFinalized(at=OPENS, contest="cup"),
        paid(99_990_000),
        paid(10_000, "bob"),
    )
    assert facts_read.as_of == 25
    assert all(Projections(facts_read).table(name).digest() for name in CATALOGUE)
