"""From events to columns: what each event leaves behind, as of any log position."""

from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.rules import PRESETS, Level
from forecast_ledger.projections.catalogue.projection import CATALOGUE, Projections
from forecast_ledger.projections.core.codes import Codes
from forecast_ledger.projections.facts.columns import Entry, Facts, Payment, Settlement
from forecast_ledger.projections.facts.from_log import facts, status
from tests.support import oracle

OPENS, CLOSES = 100, 200
HALF = (500_000_000, 500_000_000)


def log(*said: events.AnyEvent) -> list[Recorded]:
    """These events at log positions 1, 2, 3 …"""
    return [
        Recorded(position=position, recorded_at=0, command_id="c", command="", previous="", event=event)
        for position, event in enumerate(said, 1)
    ]


def opened(question: str = "rain") -> events.QuestionOpened:
    """A binary question, hidden for half its period."""
    return events.QuestionOpened(
        at=0,
        question=question,
        kind="binary",
        outcomes=("yes", "no"),
        opens_at=OPENS,
        closes_at=CLOSES,
        reveals_at=150,
    )


def depth(bins: int = 4, question: str = "depth") -> events.QuestionOpened:
    """A numeric question with open ends."""
    span = events.NumericRange(lower="0", upper="4", bins=bins, open_lower=True, open_upper=True)
    return events.QuestionOpened(at=0, question=question, kind="numeric", range=span, opens_at=OPENS, closes_at=CLOSES)


def made(question: str = "rain", participant: str = "ada", at: int = 0, yes: int = HALF[0]) -> events.ForecastMade:
    """A forecast on a binary question."""
    return events.ForecastMade(at=at, question=question, participant=participant, probabilities=(yes, 10**9 - yes))


def drawn(*cdf: int, participant: str = "ada") -> events.ForecastMade:
    """A forecast on a numeric question."""
    return events.ForecastMade(at=0, question="depth", participant=participant, cdf=cdf)


def withdrawn(question: str = "rain", participant: str = "ada", at: int = 0) -> events.ForecastWithdrawn:
    """A withdrawal."""
    return events.ForecastWithdrawn(at=at, question=question, participant=participant)


def resolved(outcome: int = 0, known_at: int = 150) -> events.QuestionResolved:
    """An answer."""
    return events.QuestionResolved(at=900, question="rain", outcome=outcome, known_at=known_at)


def cup() -> events.ContestOpened:
    """A contest."""
    return events.ContestOpened(at=0, contest="cup", rules=PRESETS["relative-2022-04"], pool=7, payable_unit=1)


def enrolment(participant: str, entrant: str = "", *, bot: bool = False) -> events.ParticipantEnrolled:
    """A participant in the contest."""
    return events.ParticipantEnrolled(at=0, contest="cup", participant=participant, entrant=entrant, bot=bot)


def excluded(participant: str, level: Level) -> events.ParticipantExcluded:
    """A participant left off the board, so far."""
    return events.ParticipantExcluded(at=0, contest="cup", participant=participant, level=level, reason="staff")


def sealed() -> events.ContestFinalized:
    """The contest frozen."""
    return events.ContestFinalized(at=0, contest="cup")


def paid(participant: str, amount: int) -> events.PrizePaid:
    """A prize."""
    return events.PrizePaid(at=0, contest="cup", participant=participant, amount=amount)


def read(*said: events.AnyEvent) -> Facts:
    """The facts of a log read in one page."""
    return facts([log(*said)])


def chances(found: Facts, outcome: int) -> list[int]:
    """The probability of one outcome of every forecast of one question, 1e-10."""
    rows = np.flatnonzero(found.forecasts.made)
    width = found.questions[0].range
    bins = np.full(len(rows), width.bins if width else 0)
    each: list[int] = found.forecasts.chance(rows, np.full(len(rows), outcome), bins).tolist()
    return each


def test_ids_are_numbered_as_they_appear() -> None:
    """An id keeps its first number."""
    codes = Codes()
    assert [codes.add(text) for text in ("b", "a", "b", "c")] == [0, 1, 0, 2]
    assert codes.labels == ["b", "a", "c"]


def test_forecasts_lie_question_after_question_in_log_order() -> None:
    """Withdrawals among them, as rows that make no forecast."""
    found = read(
        opened("wind"), opened("rain"), made("rain", "bob", 3), made("wind", "ada", 5), withdrawn("rain", "bob", 4)
    )
    rows = found.forecasts
    labels, people = found.question_codes.labels, found.participant_codes.labels
    assert [labels[code] for code in rows.question] == ["wind", "rain", "rain"]
    assert [people[code] for code in rows.participant] == ["ada", "bob", "bob"]
    assert (rows.position.tolist(), rows.at.tolist(), rows.made.tolist()) == ([4, 3, 5], [5, 3, 4], [True, True, False])


def test_a_forecast_counts_what_it_puts_on_the_outcome() -> None:
    """On a question with named outcomes, 1e-9 inside are 1e-10 here."""
    found = read(opened(), made(yes=700_000_000), withdrawn(), made(yes=0), made(participant="bob", yes=10**9))
    assert chances(found, 0) == [7 * 10**9, 0, 10**10]
    assert chances(found, 1) == [3 * 10**9, 10**10, 0]


def test_a_numeric_forecast_counts_the_step_of_its_cdf_over_the_bin() -> None:
    """Below the range the first value, above it what the last leaves of one."""
    found = read(depth(), drawn(10, 30, 30, 10**9, 10**10 - 7), drawn(0, 1, 2, 3, 10**10, participant="bob"))
    expected = [[10, 0], [20, 1], [0, 1], [10**9 - 30, 1], [9 * 10**9 - 7, 10**10 - 3], [7, 0]]
    assert [chances(found, outcome) for outcome in range(6)] == expected


@given(st.lists(st.integers(0, 10**10), min_size=2, max_size=8).map(sorted))
def test_the_chances_of_a_cdf_add_up_to_one(heights: list[int]) -> None:
    """Whatever lies in a bin, below or above."""
    found = read(depth(len(heights) - 1), drawn(*heights))
    each = [chances(found, outcome)[0] for outcome in range(len(heights) + 1)]
    assert sum(each) == 10**10
    assert min(each) >= 0


def test_named_and_numeric_forecasts_are_told_apart() -> None:
    """In one call, for rows of either kind."""
    found = read(opened(), depth(), made(yes=700_000_000), drawn(1, 2, 4, 8, 16))
    outcome, bins = np.array([1, 3]), np.array([0, 4])
    assert found.forecasts.chance(np.array([0, 1]), outcome, bins).tolist() == [3 * 10**9, 4]


def test_a_question_no_one_forecast_on_has_no_rows() -> None:
    """Counts are of what each question has, in the order asked for."""
    found = read(opened("rain"), opened("wind"), opened("snow"), made("rain"), made("snow"), withdrawn("snow"))
    assert found.forecasts.counts(np.array([0, 1, 2])).tolist() == [1, 0, 2]
    assert found.forecasts.counts(np.array([2, 1])).tolist() == [2, 0]


def test_a_slice_holds_what_was_recorded_up_to_a_position_on_some_questions() -> None:
    """The position itself belongs to it; questions are numbered anew."""
    found = read(
        opened("rain"), opened("wind"), made("wind", yes=1), made("rain", yes=2), withdrawn("wind"), made("wind")
    )
    rows = found.forecasts.on(np.array([1]), as_of=5)
    assert (rows.position.tolist(), rows.question.tolist(), rows.made.tolist()) == ([3, 5], [0, 0], [True, False])
    assert rows.chance(np.array([0]), np.array([0]), np.array([0])).tolist() == [10]
    assert found.forecasts.on(np.array([0, 1]), as_of=6).position.tolist() == [4, 3, 5, 6]
    assert found.forecasts.on(np.array([], np.int64), as_of=6).position.tolist() == []


def test_every_fact_is_filed_under_its_log_position() -> None:
    """What says nothing of forecasts stays as it was said; a contest is sealed by a checkpoint."""
    added = events.QuestionAdded(
        at=0, contest="cup", question="rain", weight=2_000_000, hidden_coverage_weight=250_000, spot_at=170
    )
    closed = events.QuestionClosed(at=180, question="rain")
    enrolled = enrolment("ada", entrant="team", bot=True)
    said: list[events.AnyEvent] = [
        opened(),
        cup(),
        added,
        enrolled,
        excluded("ada", "no_rank"),
        closed,
        resolved(1),
        sealed(),
        paid("ada", 7),
    ]
    found = facts([[*log(*said[:7]), msgspec.structs.replace(log(*said)[7], digest="sealed"), log(*said)[8]]])
    contest = found.contests["cup"]
    assert (contest.opened, contest.sealed) == (cup(), Checkpoint(8, "sealed"))
    assert list(contest.entries.values()) == [Entry(3, 0, 2_000_000, 250_000, 170)]
    assert (contest.enrolments, contest.levels) == ({"ada": enrolled}, {"ada": "no_rank"})
    assert contest.paid == {"ada": Payment(9, 7)}
    assert found.closings == [(6, 0, 180)]
    assert found.settlements == [Settlement(7, 0, 1, 150)]
    assert (found.questions, found.as_of) == ([opened()], 9)


def test_of_enrolments_and_exclusions_the_last_of_each_participant_counts() -> None:
    """In its own contest; the first appearance keeps its place."""
    found = read(
        cup(), enrolment("ada", entrant="team"), enrolment("bob", bot=True), enrolment("ada"),
        excluded("bob", "hidden"), excluded("bob", "no_prize"),
    )  # fmt: skip
    contest = found.contests["cup"]
    assert contest.enrolments == {"ada": enrolment("ada"), "bob": enrolment("bob", bot=True)}
    assert contest.levels == {"bob": "no_prize"}


def test_a_board_is_read_as_of_the_event_that_sealed_it() -> None:
    """Else as of the last event there is."""
    found = read(opened(), cup(), sealed(), made())
    assert (found.contests["cup"].as_of(found), found.as_of) == (3, 4)
    found = read(opened(), cup(), made())
    assert found.contests["cup"].as_of(found) == found.as_of == 3


def test_forecasts_know_when_they_were_recorded() -> None:
    """Beside when they claim to have been made."""
    rows = [
        msgspec.structs.replace(each, recorded_at=70 + each.position)
        for each in log(opened(), made(at=5), withdrawn(at=6))
    ]
    found = facts([rows]).forecasts
    assert (found.at.tolist(), found.recorded_at.tolist()) == ([5, 6], [72, 73])
    assert found.on(np.array([0]), as_of=2).recorded_at.tolist() == [72]


def test_quantiles_lie_in_a_forecasts_row_as_they_were_given() -> None:
    """In the unit of the question, negative ones too."""
    span = events.NumericRange(lower="-1", upper="1", open_lower=True, levels=(250_000_000, 750_000_000), decimals=3)
    asked = events.QuestionOpened(at=0, question="flow", kind="numeric", range=span, opens_at=OPENS, closes_at=CLOSES)
    said = [
        events.ForecastMade(at=0, question="flow", participant=who, quantiles=q)
        for who, q in (("a", (-9, 7)), ("b", (1, 1)))
    ]
    found = read(opened(), asked, made(yes=3), *said)
    start = found.forecasts.start.tolist()
    rows = [found.forecasts.chances[first : first + 2].tolist() for first in start]
    assert rows == [[3, 10**9 - 3], [-9, 7], [1, 1]]
    assert status(found).bins.tolist() == [0, 0]


def test_an_attestation_is_filed_under_the_log_position_of_its_forecast() -> None:
    """Only where there is one."""
    attested = events.Attestation(newest_source="2026-03-01", training_cutoff="2025", restricted_sources=False)
    plain = made()
    found = read(opened(), plain, msgspec.structs.replace(plain, attestation=attested))
    assert found.attestations == {3: attested}


def test_an_answers_text_stands_until_it_is_revoked() -> None:
    """Numeric answers have one; what undoes a resolution has none."""
    came = events.QuestionResolved(at=900, question="depth", outcome=2, value="1.5", known_at=150)
    undone = events.ResolutionRevoked(at=901, question="depth", reason="misread")
    found = read(depth(), came, undone, msgspec.structs.replace(came, outcome=1, value="0.25"))
    assert [status(found, as_of).values for as_of in (1, 2, 3, 4)] == [[""], ["1.5"], [""], ["0.25"]]


@pytest.mark.parametrize(
    ("as_of", "closed_at", "outcome", "known_at"),
    [
        (1, CLOSES, -1, CLOSES),
        (2, 190, -1, CLOSES),
        (3, 190, 1, 150),
        (4, 190, -1, CLOSES),
        (5, 190, 0, 120),
        (6, 190, -1, CLOSES),
        (None, 190, -1, CLOSES),
    ],
)
def test_a_question_stands_as_its_last_settlement_leaves_it(
    as_of: int | None, closed_at: int, outcome: int, known_at: int
) -> None:
    """Closed early, resolved, revoked, resolved otherwise, annulled: as of each log position."""
    found = read(
        opened(),
        events.QuestionClosed(at=190, question="rain"),
        resolved(1, 150),
        events.ResolutionRevoked(at=901, question="rain", reason="misread"),
        resolved(0, 120),
        events.QuestionAnnulled(at=902, question="rain", reason="no source"),
    )
    now = status(found, as_of)
    assert (now.opens_at.tolist(), now.closes_at.tolist(), now.bins.tolist()) == ([OPENS], [CLOSES], [0])
    assert (now.closed_at.tolist(), now.outcome.tolist(), now.known_at.tolist()) == ([closed_at], [outcome], [known_at])


def test_a_numeric_question_has_its_bins() -> None:
    """Nought marks the other kinds."""
    assert status(read(opened(), depth(7))).bins.tolist() == [0, 7]


def test_an_empty_log_says_nothing() -> None:
    """No page at all."""
    found = facts([])
    assert (found.as_of, found.questions, found.contests, len(found.forecasts.at)) == (0, [], {}, 0)


@settings(max_examples=30, deadline=None)
@given(oracle.logs(), st.sampled_from([1, 2, 7]))
def test_pages_of_any_size_lead_to_the_same_tables(asked: Sequence[AnyCommand], page: int) -> None:
    """Where a page ends is no fact."""
    recorded, _ = oracle.attempted(asked)
    whole, paged = Projections(oracle.told(recorded)), Projections(oracle.told(recorded, page))
    assert all(whole.table(name).digest() == paged.table(name).digest() for name in CATALOGUE)


UNHEARD_OF: list[events.AnyEvent] = [
    made("wind"),
    withdrawn("wind"),
    events.QuestionClosed(at=180, question="wind"),
    events.QuestionResolved(at=900, question="wind", outcome=0, known_at=150),
    events.QuestionAnnulled(at=900, question="wind", reason="no source"),
    events.ResolutionRevoked(at=900, question="wind", reason="misread"),
    events.QuestionAdded(at=0, contest="cup", question="wind", weight=1),
    events.QuestionAdded(at=0, contest="league", question="rain", weight=1),
    events.ParticipantEnrolled(at=0, contest="league", participant="ada"),
    events.ParticipantExcluded(at=0, contest="league", participant="ada", level="hidden", reason="staff"),
    events.ContestFinalized(at=0, contest="league"),
    events.PrizePaid(at=0, contest="league", participant="ada", amount=1),
]


def name(event: events.AnyEvent) -> str:
    """What an event is stored as."""
    return str(type(event).__struct_config__.tag)


@pytest.mark.parametrize("event", UNHEARD_OF, ids=name)
def test_an_event_about_what_was_never_opened_is_corrupt_at_its_position(event: events.AnyEvent) -> None:
    """The reader stops at the very event, whatever follows it."""
    unknown = (
        r"expected (an id that an earlier event introduced|a question opened earlier); found '(wind|league)', which"
    )
    with pytest.raises(Corrupt, match=unknown) as stopped:
        read(opened(), cup(), event, made(), made(participant="bob"))
    assert stopped.value.position == 3


def test_a_forecast_before_its_question_is_corrupt_at_its_position() -> None:
    """An event speaks only of what was opened before it; that it is opened later does not help."""
    with pytest.raises(Corrupt) as stopped:
        read(opened(), made("wind"), opened("wind"))
    assert stopped.value.position == 2


@pytest.mark.parametrize(
    "event",
    [
        drawn(0, 5, 10**10),
        drawn(0, 1, 2, 3, 4, 10**10),
        events.ForecastMade(at=0, question="depth", participant="ada", probabilities=HALF),
        events.ForecastMade(at=0, question="depth", participant="ada"),
    ],
    ids=["too short", "too long", "of another kind", "empty"],
)
def test_a_forecast_that_does_not_fit_its_question_is_corrupt_at_its_position(event: events.ForecastMade) -> None:
    """Four bins have five edges; read as columns, another number of them would shift every forecast after it."""
    with pytest.raises(Corrupt) as stopped:
        read(depth(), event, drawn(0, 1, 2, 3, 10**10))
    assert stopped.value.position == 2


@pytest.mark.parametrize("event", [opened(), cup()], ids=name)
def test_what_is_opened_twice_is_corrupt_at_its_position(event: events.AnyEvent) -> None:
    """A second opening does not fit a log that has the first."""
    with pytest.raises(Corrupt) as stopped:
        read(opened(), cup(), event, made())
    assert stopped.value.position == 3


@pytest.mark.parametrize("outcome", [-1, 2])
def test_an_answer_the_question_does_not_have_is_corrupt_at_its_position(outcome: int) -> None:
    """A binary question has the outcomes 0 and 1; what lies beside them in a column is somebody else's forecast."""
    with pytest.raises(Corrupt) as stopped:
        read(opened(), made(), resolved(outcome), made("rain", "bob"))
    assert stopped.value.position == 3


def test_chances_are_those_of_the_slow_definition() -> None:
    """Every outcome of every forecast of a log of all kinds, as fractions."""
    said: list[events.AnyEvent] = [
        opened(),
        depth(2),
        made(yes=333_333_333),
        drawn(4, 10**10 - 1, 10**10 - 1),
        made(yes=1),
    ]
    found = read(*said)
    for outcome in (0, 1, 2, 3):
        rows = [event for event in said if isinstance(event, events.ForecastMade)]
        for row, event in enumerate([rows[0], rows[2], rows[1]]):  # question after question
            if event.cdf or outcome < 2:
                bins = np.array([2 if event.cdf else 0])
                [chance] = found.forecasts.chance(np.array([row]), np.array([outcome]), bins).tolist()
                assert Fraction(chance, 10**10) == oracle.chance(event, outcome)
