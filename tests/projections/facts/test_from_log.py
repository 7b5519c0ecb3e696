"""Facts from events: the columns that each event fills, as of any log position."""

from collections.abc import Sequence
from dataclasses import fields, replace
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
from forecast_ledger.projections.core.arrays import Codes, Int64Array
from forecast_ledger.projections.facts.columns import Entry, Facts, ForecastPage, Payment, join_pages
from forecast_ledger.projections.facts.from_log import facts, status, status_of
from forecast_ledger.projections.facts.settlements import Settlement
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from tests.support import oracle
from tests.support.effort import times

OPENS, CLOSES = 100, 200
HALF = (500_000_000, 500_000_000)


def log(*recorded_events: events.AnyEvent) -> list[Recorded]:
    """These events at log positions 1, 2, 3 …"""
    return [
        Recorded(position=position, recorded_at=0, command_id="c", command="", previous="", event=event)
        for position, event in enumerate(recorded_events, 1)
    ]


def opened(question: str = "rain") -> events.QuestionOpened:
    """A binary question, hidden for half its period."""
    return events.QuestionOpened(
        at=0, question=question, kind="binary", outcomes=("yes", "no"), opens_at=OPENS, closes_at=CLOSES, reveals_at=150
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
    """The exclusion of a participant, to a level."""
    return events.ParticipantExcluded(at=0, contest="cup", participant=participant, level=level, reason="staff")


def sealed() -> events.ContestFinalized:
    """The contest frozen."""
    return events.ContestFinalized(at=0, contest="cup")


def paid(participant: str, amount: int) -> events.PrizePaid:
    """A prize."""
    return events.PrizePaid(at=0, contest="cup", participant=participant, amount=amount)


def read(*recorded_events: events.AnyEvent) -> Facts:
    """The facts of a log read in one page."""
    return facts([log(*recorded_events)])


def chances(facts: Facts, outcome: int) -> list[int]:
    """The probability that each forecast on the first question gives to an outcome, 1e-10."""
    rows = np.flatnonzero(facts.forecasts.made)
    width = facts.questions[0].range
    bins = np.full(len(rows), width.bins if width else 0)
    numbers: list[int] = facts.forecasts.chance(rows, np.full(len(rows), outcome), bins).tolist()
    return numbers


def test_ids_are_numbered_as_they_appear() -> None:
    """An id keeps its first number."""
    codes = Codes()
    assert [codes.add(text) for text in ("b", "a", "b", "c")] == [0, 1, 0, 2]
    assert codes.labels == ["b", "a", "c"]


def test_forecasts_lie_question_after_question_in_log_order() -> None:
    """Withdrawals are rows among them whose `made` is False."""
    facts = read(
        opened("wind"), opened("rain"), made("rain", "bob", 3), made("wind", "ada", 5), withdrawn("rain", "bob", 4)
    )
    rows = facts.forecasts
    labels, people = facts.question_codes.labels, facts.participant_codes.labels
    assert [labels[code] for code in rows.question] == ["wind", "rain", "rain"]
    assert [people[code] for code in rows.participant] == ["ada", "bob", "bob"]
    assert (rows.position.tolist(), rows.at.tolist(), rows.made.tolist()) == ([4, 3, 5], [5, 3, 4], [True, True, False])


@pytest.mark.parametrize("ends", [True, False])
def test_rows_of_forecasts_have_the_values_of_their_indices(ends: bool) -> None:
    """Every column of them, also one that has the same value in all rows."""
    forecasts = read(
        opened(), opened("wind"), made(), made("wind", at=1), made(at=2), withdrawn("wind", at=3)
    ).forecasts
    if not ends:
        forecasts = replace(forecasts, until=np.broadcast_to(forecasts.until[:1], 4))
    found = forecasts.rows(np.array([2, 3, 0]))
    for name in (field.name for field in fields(forecasts) if field.name != "renames"):
        expected = getattr(forecasts, name) if name == "chances" else getattr(forecasts, name)[[2, 3, 0]]
        assert getattr(found, name).tolist() == expected.tolist()


def test_a_forecast_counts_what_it_puts_on_the_outcome() -> None:
    """The probabilities of named outcomes, stored in 1e-9, are returned in 1e-10."""
    facts = read(opened(), made(yes=700_000_000), withdrawn(), made(yes=0), made(participant="bob", yes=10**9))
    assert chances(facts, 0) == [7 * 10**9, 0, 10**10]
    assert chances(facts, 1) == [3 * 10**9, 10**10, 0]


def test_a_numeric_forecast_counts_the_step_of_its_cdf_over_the_bin() -> None:
    """Below the range the first value counts, above it 1 less the last."""
    facts = read(depth(), drawn(10, 30, 30, 10**9, 10**10 - 7), drawn(0, 1, 2, 3, 10**10, participant="bob"))
    expected = [[10, 0], [20, 1], [0, 1], [10**9 - 30, 1], [9 * 10**9 - 7, 10**10 - 3], [7, 0]]
    assert [chances(facts, outcome) for outcome in range(6)] == expected


@given(st.lists(st.integers(0, 10**10), min_size=2, max_size=8).map(sorted))
def test_the_chances_of_a_cdf_add_up_to_one(heights: list[int]) -> None:
    """The probabilities of all bins, below and above included, sum to 1."""
    facts = read(depth(len(heights) - 1), drawn(*heights))
    steps = [chances(facts, outcome)[0] for outcome in range(len(heights) + 1)]
    assert sum(steps) == 10**10
    assert min(steps) >= 0


def test_named_and_numeric_forecasts_are_distinguished() -> None:
    """One call returns the probabilities of rows of both kinds."""
    facts = read(opened(), depth(), made(yes=700_000_000), drawn(1, 2, 4, 8, 16))
    outcome, bins = np.array([1, 3]), np.array([0, 4])
    assert facts.forecasts.chance(np.array([0, 1]), outcome, bins).tolist() == [3 * 10**9, 4]


def test_a_question_without_forecasts_has_no_rows() -> None:
    """Counts are returned in the order of the questions."""
    facts = read(opened("rain"), opened("wind"), opened("snow"), made("rain"), made("snow"), withdrawn("snow"))
    assert facts.forecasts.counts(np.array([0, 1, 2])).tolist() == [1, 0, 2]
    assert facts.forecasts.counts(np.array([2, 1])).tolist() == [2, 0]


def test_a_selection_has_the_rows_of_some_questions_up_to_a_position() -> None:
    """The position itself is included; questions are numbered anew."""
    facts = read(
        opened("rain"), opened("wind"), made("wind", yes=1), made("rain", yes=2), withdrawn("wind"), made("wind")
    )
    rows = facts.forecasts.on(np.array([1]), as_of=5)
    assert (rows.position.tolist(), rows.question.tolist(), rows.made.tolist()) == ([3, 5], [0, 0], [True, False])
    assert rows.chance(np.array([0]), np.array([0]), np.array([0])).tolist() == [10]
    assert facts.forecasts.on(np.array([0, 1]), as_of=6).position.tolist() == [4, 3, 5, 6]
    assert facts.forecasts.on(np.array([], np.int64), as_of=6).position.tolist() == []


def test_every_fact_is_filed_under_its_log_position() -> None:
    """Facts other than forecasts are stored as recorded; a finalized contest has the checkpoint of that event."""
    added = events.QuestionAdded(
        at=0, contest="cup", question="rain", weight=2_000_000, hidden_coverage_weight=250_000, spot_at=170
    )
    closed = events.QuestionClosed(at=180, question="rain")
    enrolled = enrolment("ada", entrant="team", bot=True)
    written: list[events.AnyEvent] = [
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
    log_facts = facts(
        [[*log(*written[:7]), msgspec.structs.replace(log(*written)[7], digest="sealed"), log(*written)[8]]]
    )
    contest = log_facts.contests["cup"]
    assert (contest.opened, contest.sealed) == (cup(), Checkpoint(8, "sealed"))
    assert list(contest.entries.values()) == [Entry(3, 0, 2_000_000, 250_000, 170)]
    assert (contest.enrolments, contest.levels) == ({"ada": enrolled}, {"ada": "no_rank"})
    assert contest.paid == {"ada": Payment(9, 7)}
    assert log_facts.closings == [(6, 0, 180)]
    assert log_facts.settlements == [Settlement(7, 0, 1, 150, at=900)]
    assert (log_facts.questions, log_facts.as_of) == ([opened()], 9)


def test_the_last_enrolment_and_exclusion_of_each_participant_count() -> None:
    """A later one replaces the earlier one in its contest; the order is that of the first ones."""
    facts = read(
        cup(), enrolment("ada", entrant="team"), enrolment("bob", bot=True), enrolment("ada"),
        excluded("bob", "hidden"), excluded("bob", "no_prize"),
    )  # fmt: skip
    contest = facts.contests["cup"]
    assert contest.enrolments == {"ada": enrolment("ada"), "bob": enrolment("bob", bot=True)}
    assert contest.levels == {"bob": "no_prize"}


def test_a_board_is_read_as_of_the_event_that_sealed_it() -> None:
    """A contest that is not finalized is read as of the last event."""
    facts = read(opened(), cup(), sealed(), made())
    assert (facts.contests["cup"].as_of(facts), facts.as_of) == (3, 4)
    facts = read(opened(), cup(), made())
    assert facts.contests["cup"].as_of(facts) == facts.as_of == 3


def test_forecasts_know_when_they_were_recorded() -> None:
    """The clock of the ledger and the claimed instant are separate columns."""
    rows = [
        msgspec.structs.replace(recorded, recorded_at=70 + recorded.position)
        for recorded in log(opened(), made(at=5), withdrawn(at=6))
    ]
    forecasts = facts([rows]).forecasts
    assert (forecasts.at.tolist(), forecasts.recorded_at.tolist()) == ([5, 6], [72, 73])
    assert forecasts.on(np.array([0]), as_of=2).recorded_at.tolist() == [72]


def test_quantiles_lie_in_a_forecasts_row_as_they_were_given() -> None:
    """They are stored in the unit of the question; negative ones are allowed."""
    span = events.NumericRange(lower="-1", upper="1", open_lower=True, levels=(250_000_000, 750_000_000), decimals=3)
    question = events.QuestionOpened(
        at=0, question="flow", kind="numeric", range=span, opens_at=OPENS, closes_at=CLOSES
    )
    forecasts = [
        events.ForecastMade(at=0, question="flow", participant=who, quantiles=q)
        for who, q in (("a", (-9, 7)), ("b", (1, 1)))
    ]
    facts = read(opened(), question, made(yes=3), *forecasts)
    start = facts.forecasts.start.tolist()
    rows = [facts.forecasts.chances[first : first + 2].tolist() for first in start]
    assert rows == [[3, 10**9 - 3], [-9, 7], [1, 1]]
    assert status(facts).bins.tolist() == [0, 0]


def test_an_attestation_is_filed_under_the_log_position_of_its_forecast() -> None:
    """A forecast without an attestation has no entry."""
    attested = events.Attestation(newest_source="2026-03-01", training_cutoff="2025", restricted_sources=False)
    plain = made()
    facts = read(opened(), plain, msgspec.structs.replace(plain, attestation=attested))
    assert facts.attestations == {3: attested}


def test_an_answers_text_stands_until_it_is_revoked() -> None:
    """A numeric answer has a text; after a revocation there is none."""
    resolution = events.QuestionResolved(at=900, question="depth", outcome=2, value="1.5", known_at=150)
    revocation = events.ResolutionRevoked(at=901, question="depth", reason="misread")
    facts = read(depth(), resolution, revocation, msgspec.structs.replace(resolution, outcome=1, value="0.25"))
    assert [status(facts, as_of).values for as_of in (1, 2, 3, 4)] == [[""], ["1.5"], [""], ["0.25"]]


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
    """The status as of each log position: closed early, resolved, revoked, resolved otherwise, annulled."""
    facts = read(
        opened(),
        events.QuestionClosed(at=190, question="rain"),
        resolved(1, 150),
        events.ResolutionRevoked(at=901, question="rain", reason="misread"),
        resolved(0, 120),
        events.QuestionAnnulled(at=902, question="rain", reason="no source"),
    )
    now = status(facts, as_of)
    assert (now.opens_at.tolist(), now.closes_at.tolist(), now.bins.tolist()) == ([OPENS], [CLOSES], [0])
    assert (now.closed_at.tolist(), now.outcome.tolist(), now.known_at.tolist()) == ([closed_at], [outcome], [known_at])


def test_a_question_has_the_times_of_each_log_position() -> None:
    """Its answer is revoked, and its close set back: without an answer it is known at the close as it then was."""
    revoked = events.ResolutionRevoked(at=901, question="rain", reason="misread")
    later = events.QuestionRescheduled(at=902, question="rain", closes_at=CLOSES + 50)
    facts, last = read(opened(), resolved(1, 150), revoked, later), np.arange(1, 5)
    closes, known = [CLOSES, CLOSES, CLOSES, CLOSES + 50], [CLOSES, 150, CLOSES, CLOSES + 50]
    every = status_of(facts, np.zeros_like(last), last)
    assert (every.closes_at.tolist(), every.known_at.tolist()) == (closes, known)
    each = [status(facts, as_of) for as_of in last.tolist()]
    assert [[*now.closes_at, *now.known_at] for now in each] == [[*both] for both in zip(closes, known, strict=True)]


def test_a_numeric_question_has_its_bins() -> None:
    """Other kinds of question have 0 bins."""
    assert status(read(opened(), depth(7))).bins.tolist() == [0, 7]


def test_an_empty_log_says_nothing() -> None:
    """A log without pages has no questions, contests or forecasts."""
    log_facts = facts([])
    assert (log_facts.as_of, log_facts.questions, log_facts.contests, len(log_facts.forecasts.at)) == (0, [], {}, 0)


@settings(max_examples=times(30), deadline=None)
@given(oracle.logs(), st.sampled_from([1, 2, 7]))
def test_pages_of_any_size_lead_to_the_same_tables(commands: Sequence[AnyCommand], page: int) -> None:
    """The page size does not change the digest of any table."""
    recorded, _ = oracle.attempted(commands)
    whole, paged = Projections(oracle.facts_in(recorded)), Projections(oracle.facts_in(recorded, page))
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
    """The tag that an event is stored with."""
    return str(type(event).__struct_config__.tag)


@pytest.mark.parametrize("event", UNHEARD_OF, ids=name)
def test_an_event_with_an_unknown_id_is_corrupt_at_its_position(event: events.AnyEvent) -> None:
    """The reader stops at that event, whatever follows it."""
    unknown = (
        r"expected (an id that an earlier event introduced|a question opened earlier); found '(wind|league)', which"
    )
    with pytest.raises(Corrupt, match=unknown) as stopped:
        read(opened(), cup(), event, made(), made(participant="bob"))
    assert stopped.value.position == 3


def test_a_forecast_before_its_question_is_corrupt_at_its_position() -> None:
    """A question must be opened before the events about it; a later opening does not count."""
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
    """Four bins have five edges; in columns, any other number of them would shift every later forecast."""
    with pytest.raises(Corrupt) as stopped:
        read(depth(), event, drawn(0, 1, 2, 3, 10**10))
    assert stopped.value.position == 2


@pytest.mark.parametrize("event", [opened(), cup()], ids=name)
def test_a_second_opening_is_corrupt_at_its_position(event: events.AnyEvent) -> None:
    """An id of a question or a contest can be opened only once."""
    with pytest.raises(Corrupt) as stopped:
        read(opened(), cup(), event, made())
    assert stopped.value.position == 3


@pytest.mark.parametrize("outcome", [-1, 2])
def test_an_answer_the_question_does_not_have_is_corrupt_at_its_position(outcome: int) -> None:
    """A binary question has the outcomes 0 and 1; an index beyond them would read another forecast's number."""
    with pytest.raises(Corrupt) as stopped:
        read(opened(), made(), resolved(outcome), made("rain", "bob"))
    assert stopped.value.position == 3


def test_chances_are_those_of_the_slow_definition() -> None:
    """The probability of every outcome of every forecast equals the one computed with fractions."""
    written: list[events.AnyEvent] = [
        opened(),
        depth(2),
        made(yes=333_333_333),
        drawn(4, 10**10 - 1, 10**10 - 1),
        made(yes=1),
    ]
    facts = read(*written)
    for outcome in (0, 1, 2, 3):
        rows = [event for event in written if isinstance(event, events.ForecastMade)]
        for row, event in enumerate([rows[0], rows[2], rows[1]]):  # question after question
            if event.cdf or outcome < 2:
                bins = np.array([2 if event.cdf else 0])
                [chance] = facts.forecasts.chance(np.array([row]), np.array([outcome]), bins).tolist()
                assert Fraction(chance, 10**10) == oracle.chance(event, outcome)


def repeated(value: int, count: int) -> Int64Array:
    """So many equal numbers in the memory of one."""
    return np.broadcast_to(np.int64(value), count)


def test_pages_that_repeat_one_value_are_joined_in_the_memory_of_one() -> None:
    """Of pages that repeat different values, or of which one repeats none, every value is kept."""
    numbers = np.array([1, 2])
    pages = [
        ForecastPage(numbers, numbers, repeated(5, 2), numbers, numbers, repeated(1, 2), ends, repeated(1, 2), numbers)
        for ends in (repeated(7, 2), repeated(7, 2), repeated(9, 2))
    ]
    pages[1] = pages[1]._replace(recorded_at=np.array([5, 6]))
    joined, lengths = join_pages(pages)
    assert joined.recorded_at.tolist() == [5, 5, 5, 6, 5, 5]
    assert joined.until.tolist() == [7, 7, 7, 7, 9, 9]
    assert (lengths.tolist(), lengths.strides) == ([1] * 6, (0,))
    assert joined.start.tolist() == [0, 1, 2, 3, 4, 5]
