"""Tests of probabilities that are made of shares, which need not sum to 1, by a rule that the log records."""

from fractions import Fraction
from itertools import chain
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.batching.sealed_state import apply_segment
from forecast_ledger.ledger.batching.writer_state import WriterState
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.deciding.shares import divided_by_sum
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.commands import AnyCommand, SubmitForecast
from forecast_ledger.ledger.model.log import START
from forecast_ledger.ledger.segments.segment_columns import rebuild, to_columns
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import oracle
from tests.support.forging import audited, chained
from tests.support.given import NOW, choices, day, forecast, given, numeric, opened, points, restatement

ONE = 10**9
COLOUR = choices("colour", ("red", "green", "blue"))


def shared(red: Any, green: Any, blue: Any, **fields: Any) -> SubmitForecast:
    """A forecast of three shares."""
    return forecast("colour", probabilities={"blue": blue, "green": green, "red": red}, normalized="by_sum", **fields)


def events_of(*sent: AnyCommand) -> list[events.ForecastMade]:
    """The forecasts that are recorded, in a log that `verify` accepts."""
    recorded = oracle.history(COLOUR, *sent)
    audited(recorded)
    return [each.event for each in recorded if isinstance(each.event, events.ForecastMade)]


def test_the_event_has_the_probabilities_and_the_shares_that_they_were_made_from() -> None:
    """In the order of the outcomes, 1e-9 each: 0.3, 0.1 and 0.1 are 3/5, 1/5 and 1/5, whatever their sum is."""
    for shares in (("0.3", "0.1", "0.1"), ("0.9", "0.3", "0.3")):
        [event] = events_of(shared(*shares))
        assert event.probabilities == (6 * 10**8, 2 * 10**8, 2 * 10**8)
        stated = tuple(int(Fraction(share) * ONE) for share in shares)
        assert event.normalized == events.StatedShares(shares=stated, rule="by_sum")


def test_what_rounding_leaves_is_added_to_the_largest_the_first_of_equals() -> None:
    """Of thirds, 1e-9 is missing; of one, two and four sevenths, rounded to ...143, ...286 and ...571, nothing is."""
    assert divided_by_sum([330_000_000] * 3) == (333_333_334, 333_333_333, 333_333_333)
    assert divided_by_sum([1, 2, 4]) == (142_857_143, 285_714_286, 571_428_571)
    assert divided_by_sum([2, 2, 3, 4]) == (181_818_182, 181_818_182, 272_727_273, 363_636_363)  # 1e-9 too much


@examples(st.lists(st.integers(0, ONE), min_size=2, max_size=40).filter(any))
def test_probabilities_are_proportional_to_the_shares_and_sum_to_1(shares: list[int]) -> None:
    """Each is within half a unit of its fraction, but for the largest, which takes what all others have rounded."""
    found = divided_by_sum(shares)
    exact = [Fraction(share * ONE, sum(shares)) for share in shares]
    off = sorted(abs(each - fraction) for each, fraction in zip(found, exact, strict=True))
    assert sum(found) == ONE
    assert off[-2] <= Fraction(1, 2)
    assert off[-1] <= Fraction(len(shares), 2)


def test_shares_that_sum_to_1_are_probabilities() -> None:
    """The rule changes nothing, and so the log says nothing of it: the command is the same with it and without it."""
    [event] = events_of(shared("0.5", "0.3", "0.2"))
    assert event.normalized is None
    assert event.probabilities == (5 * 10**8, 3 * 10**8, 2 * 10**8)
    assert b"normalized" not in log.encode_row(oracle.history(COLOUR, shared("0.5", "0.3", "0.2"))[-1])
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(COLOUR, "q")
        ledger.handle(shared("0.5", "0.3", "0.2"), "f")
        assert ledger.handle(structs.replace(shared("0.50", "0.3", "0.2"), normalized=None), "f").duplicate


def test_a_sum_that_is_nearly_1_is_divided_too() -> None:
    """Without the rule, the largest takes the difference of up to 0.000001."""
    thirds = shared("0.333333", "0.333333", "0.333333")
    assert events_of(thirds)[0].probabilities == (333_333_334, 333_333_333, 333_333_333)
    assert events_of(structs.replace(thirds, normalized=None))[0].probabilities == (
        333_334_000,
        333_333_000,
        333_333_000,
    )


REFUSED: list[tuple[str, str, AnyCommand, AnyCommand]] = [
    ("not_summing_to_one", "probabilities", COLOUR, shared(0, 0, 0)),
    ("not_summing_to_one", "probabilities", COLOUR, structs.replace(shared("0.3", "0.3", "0.3"), normalized=None)),
    ("out_of_range", "probabilities.green", COLOUR, shared("0.5", "1.1", "0.5")),
    ("out_of_range", "probabilities.red", COLOUR, shared("-0.1", "0.5", "0.5")),
    ("wrong_length", "probabilities", choices("colour", ("red", "green", "blue", "grey")), shared("0.3", "0.3", "0.3")),
    ("unknown_outcome", "probabilities", choices("colour", ("red", "green")), shared("0.3", "0.3", "0.3")),
    ("wrong_distribution", "question", opened("colour"), shared("0.3", "0.3", "0.3")),
    ("wrong_distribution", "normalized", opened(), forecast(normalized="by_sum")),
    ("wrong_distribution", "normalized", numeric(), forecast("depth", points=points(1, 2, 3), normalized="by_sum")),
]


@pytest.mark.parametrize(("code", "field", "question", "sent"), REFUSED)
def test_shares_that_break_one_rule_are_refused_for_it(
    code: str, field: str, question: AnyCommand, sent: SubmitForecast
) -> None:
    """The refusal has the code and the field, and the log does not change; a restatement refuses the same."""
    given(question).when(sent).refuses(code, field)
    given(question).when(restatement(sent, question=sent.question)).refuses(code, field)


def test_another_rule_is_refused() -> None:
    """There is one rule; what has no name here is no rule, also in Python."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(COLOUR, "q")
        with pytest.raises(Refused) as refused:
            ledger.handle(structs.replace(shared("0.3", "0.3", "0.3"), normalized="softmax"), "f")
    assert (refused.value.code, refused.value.field) == ("malformed", "normalized")


@pytest.mark.parametrize(
    "changed",
    [
        {"probabilities": (6 * 10**8, 2 * 10**8 - 1, 2 * 10**8 + 1)},
        {"normalized": None},
        {"normalized": events.StatedShares(shares=(3 * 10**8 + 1, 10**8, 10**8), rule="by_sum")},
        {"normalized": events.StatedShares(shares=(3 * 10**8, 10**8), rule="by_sum")},
        {"normalized": events.StatedShares(shares=(0, 0, 0), rule="by_sum")},
    ],
    ids=["a probability", "no shares", "a share", "a share less", "no sum"],
)
def test_a_row_whose_probabilities_and_shares_do_not_agree_is_a_fault(changed: dict[str, Any]) -> None:
    """`verify` divides the shares again, and compares the digest of the command."""
    recorded = oracle.history(COLOUR, shared("0.3", "0.1", "0.1"))
    assert audited(recorded).lossy_commands == 0
    forged = structs.replace(recorded[-1], event=structs.replace(recorded[-1].event, **changed))
    with pytest.raises(Corrupt) as stopped:
        audited([*chained([*recorded[:-1], forged])])
    assert stopped.value.position == 2


def test_shares_that_no_command_gave_are_a_fault() -> None:
    """Also among forecasts of which many are checked at once: the command of these probabilities has no shares."""
    plain = {"red": "0.6", "green": "0.2", "blue": "0.2"}
    recorded = oracle.history(COLOUR, *(forecast("colour", who, probabilities=plain) for who in ("ada", "bo", "cy")))
    event = structs.replace(
        recorded[2].event, normalized=events.StatedShares(shares=(3 * 10**8, 10**8, 10**8), rule="by_sum")
    )
    with pytest.raises(Corrupt) as stopped:
        audited([*chained([*recorded[:2], structs.replace(recorded[2], event=event), recorded[3]])])
    assert stopped.value.position == 3


def test_the_same_shares_in_other_digits_are_the_same_command() -> None:
    """A retry is harmless; shares in another proportion, or in the same with another sum, are another command."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(COLOUR, "q")
        ledger.handle(shared("0.3", "0.1", "0.1"), "f")
        assert ledger.handle(shared(0.3, "0.10", "1e-1"), "f").duplicate
        for other in (
            shared("0.3", "0.1", "0.2"),
            shared("0.6", "0.2", "0.2", at=day(12)),
            shared("0.9", "0.3", "0.3"),
        ):
            with pytest.raises(Refused) as refused:
                ledger.handle(other, "f")
            assert refused.value.code == "command_id_reused"


def test_the_rows_come_back_from_a_segment_and_a_writer_holds_the_same() -> None:
    """In whatever order forecasts of shares and of probabilities replace each other."""
    sent: list[AnyCommand] = [
        COLOUR,
        shared("0.3", "0.1", "0.1"),
        forecast("colour", probabilities={"red": "0.2", "green": "0.3", "blue": "0.5"}, at=day(12)),
        shared("0.3", "0.3", "0.3", at=day(13)),
        shared("0.3", "0.3", "0.3", participant="bob", at=day(12), until=day(14)),
        restatement(shared("0.2", "0.1", "0.1"), question="colour", participant="bob"),
    ]
    recorded = oracle.history(*sent)
    for end in range(1, len(recorded) + 1):
        part = recorded[:end]
        rows = [log.seal(each)[0] for each in part]
        columns = to_columns(rows, part)
        assert [*chain.from_iterable(rebuild(columns, START))] == rows
        read, sealed = WriterState(), WriterState()
        read.apply(part)
        apply_segment(sealed, columns, part[-1])
        assert sealed.state.peek_standing("colour") == read.state.peek_standing("colour")
