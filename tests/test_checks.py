"""Logs whose digests are right and whose content no decider would have written."""

import pytest

from ledger import events, log
from ledger.errors import Corrupt
from ledger.events import AnyEvent
from ledger.rules import PRESETS
from projections.columns import Facts
from projections.projection import CATALOGUE, Projections
from projections.tables import facts

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


def forecast(question: str = "rain", at: int = OPENS, **numbers: tuple[int, ...]) -> events.ForecastMade:
    """Ada's forecast."""
    return events.ForecastMade(at=at, question=question, participant="ada", **numbers)


def added(**fields: object) -> events.QuestionAdded:
    """The question in the contest."""
    given = {"at": OPENS, "contest": "cup", "question": "rain", "weight": 1_000_000}
    return events.QuestionAdded(**{**given, **fields})  # type: ignore[arg-type]


def resolved(question: str = "rain", **fields: int) -> events.QuestionResolved:
    """The question resolved, by default to its first outcome."""
    given = {"at": CLOSES, "outcome": 0, "known_at": CLOSES, **fields}
    return events.QuestionResolved(question=question, **given)  # type: ignore[arg-type]


def annulled() -> events.QuestionAnnulled:
    """The question annulled."""
    return events.QuestionAnnulled(at=CLOSES, question="rain", reason="")


def revoked() -> events.ResolutionRevoked:
    """Its resolution or annulment revoked."""
    return events.ResolutionRevoked(at=CLOSES, question="rain", reason="")


def finalized() -> events.ContestFinalized:
    """The contest finalized."""
    return events.ContestFinalized(at=CLOSES, contest="cup")


def read(*written: AnyEvent) -> Facts:
    """What a log of these events says; its digests are right."""
    head, rows = log.START, []
    for position, event in enumerate(written, 1):
        sealed = log.Recorded(
            position=position, recorded_at=0, command_id=str(position), command="", previous=head.digest, event=event
        )
        row, digest = log.seal(sealed)
        head = log.Checkpoint(position, digest)
        rows.append(row)
    return facts(log.follow(iter([rows])))


IMPOSSIBLE: dict[str, list[AnyEvent]] = {
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
    "a bin beyond the open end": [numeric(), resolved("depth", outcome=4)],
    "an answer known before the opening": [binary(), resolved(known_at=OPENS - 1)],
    "a resolution of an unknown question": [resolved()],
    "a contest opened twice": [contest(), contest()],
    "a pool that its unit does not divide": [contest(pool=15_000)],
    "a negative pool": [contest(pool=-10_000)],
    "a payable unit of nothing": [contest(payable_unit=0)],
    "a question added to an unknown contest": [binary(), added()],
    "an unknown question added": [contest(), added()],
    "a question added twice": [binary(), contest(), added(), added()],
    "a weight of nothing": [binary(), contest(), added(weight=0)],
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
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_event_is_refused_at_its_position(name: str) -> None:
    """Everything before it is fine, so the position is that of the last event."""
    written = IMPOSSIBLE[name]
    if len(written) > 1:
        read(*written[:-1])
    with pytest.raises(Corrupt) as caught:
        read(*written)
    assert caught.value.position == len(written)


def test_a_forecast_earlier_than_the_one_before_is_refused() -> None:
    """Of one participant on one question, at never decreases along the log."""
    early, late = (forecast(at=OPENS + i, probabilities=(HALF, HALF)) for i in (1, 2))
    assert len(Projections(read(binary(), early, late)).table("standing")) == 2
    with pytest.raises(Corrupt) as caught:
        Projections(read(binary(), late, early)).table("standing")
    assert caught.value.position == 3


def test_the_first_impossible_forecast_of_several_is_named() -> None:
    """Wherever in a page it stands."""
    fine, wrong = forecast(probabilities=(HALF, HALF)), forecast(probabilities=(HALF, 0))
    with pytest.raises(Corrupt) as caught:
        read(binary(), fine, wrong, fine, wrong)
    assert caught.value.position == 3


def test_a_possible_log_passes() -> None:
    """Every kind of event, at the bounds of what is allowed."""
    found = read(
        binary(reveals_at=CLOSES),
        numeric(),
        contest(),
        added(hidden_coverage_weight=10**6),
        added(question="depth"),
        forecast(probabilities=(2 * HALF, 0)),
        forecast("depth", cdf=(0, 0, 10**10)),
        events.ForecastWithdrawn(at=OPENS, question="rain", participant="ada"),
        events.QuestionClosed(at=CLOSES - 1, question="depth"),
        resolved(known_at=OPENS),
        resolved("depth", outcome=3),
        events.ResolutionRevoked(at=CLOSES, question="rain", reason=""),
        events.QuestionAnnulled(at=CLOSES, question="rain", reason=""),
        events.ParticipantExcluded(at=OPENS, contest="cup", participant="ada", level="no_rank", reason=""),
        events.ContestFinalized(at=OPENS, contest="cup"),
    )
    assert found.as_of == 15
    assert all(Projections(found).table(name).digest() for name in CATALOGUE)
