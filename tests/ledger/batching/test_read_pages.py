"""A writer that applies forecasts as columns holds what one holds that applies events one by one."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.batching import read_pages
from forecast_ledger.ledger.batching.read_pages import apply_pages
from forecast_ledger.ledger.batching.writer_state import WriterState
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log, plain_rows
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import QuestionResolved
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.storing import writer
from forecast_ledger.ledger.storing.writer import Ledger
from tests.ledger.batching.test_sealed_state import from_rows, held
from tests.ledger.model.test_plain_rows import made, opened
from tests.support.forging import chained
from tests.support.given import forecast
from tests.support.given import opened as asked
from tests.support.seasons import Season

PAGE = 5


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are read as columns too, whatever the share of forecasts."""
    for name, value in (("_ENOUGH", 1), ("_TOGETHER", 3), ("_SHARE", 1_000), ("_AGAIN", 0)):
        monkeypatch.setattr(plain_rows, name, value)


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many forecasts were applied as columns, page by page."""
    counts, apply = list[int](), read_pages._apply

    def counting(known: WriterState, page: plain_rows.ReadPage, texts: read_pages._Texts) -> None:
        counts.append(len(page.forecasts.at))
        apply(known, page, texts)

    monkeypatch.setattr(read_pages, "_apply", counting)
    return counts


def pages(records: Sequence[Recorded], begin: int = 0) -> Iterator[list[bytes]]:
    """The rows from one on, page by page."""
    rows = [log.encode_row(row) for row in records]
    return (rows[first : first + PAGE] for first in range(begin, len(rows), PAGE))


def from_columns(records: Sequence[Recorded], begin: int = 0) -> WriterState:
    """What a writer holds that has read the rows up to one, and then the others as columns."""
    known = from_rows(records[:begin])
    apply_pages(known, pages(records, begin))
    return known


def sealed(*commands: tuple[Any, ...]) -> list[Recorded]:
    """Rows of events, each command with its id and its events."""
    rows = [
        Recorded(position=0, recorded_at=7, normal=True, command_id=name, command="f" * 32, previous="", event=event)
        for name, *events in commands
        for event in events
    ]
    return chained(rows)


def test_any_log_gives_the_same_state(applied: list[int]) -> None:
    """Answers that are revoked, forecasts after that, renamed participants, withdrawals and other events."""
    for seed in range(20):
        records = Season(Random(seed), "peer-2024-03", ending=0.2, restated=0.3, renamed=0.5).recorded()
        expected = held(from_rows(records), records)
        for begin in (0, Random(seed).randrange(len(records))):
            found = held(from_columns(records, begin), records)
            for name, value in expected.items():
                assert found[name] == value, name
    assert sum(applied) > 40


def test_commands_of_several_rows_are_found_whole(applied: list[int]) -> None:
    """Within a page, at its end and over its end; a page with such a command is applied event by event."""
    first = [("o", opened("q")), *((f"c{number}", made(number)) for number in range(8))]
    records = sealed(
        *first,
        ("two", made(8), made(9)),
        ("three", made(10), made(11), made(12)),
        ("é", made(13)),
        ("w", made(14)),
        ("pair", made(15), made(16)),
        ("x", made(17)),
    )
    found, expected = held(from_columns(records), records), held(from_rows(records), records)
    assert found == expected
    assert {name: (each.first, each.last) for name, each in found["commands"].items()} == {
        "o": (1, 1),
        **{f"c{number}": (number + 2, number + 2) for number in range(8)},
        "two": (10, 11),
        "three": (12, 14),
        "é": (15, 15),
        "w": (16, 16),
        "pair": (17, 18),
        "x": (19, 19),
    }
    assert applied == [5]


def test_forecasts_after_an_answer_stand(applied: list[int]) -> None:
    """What stands on a question with an answer is not in memory, and is read again: forecasts can be restated."""
    answer = QuestionResolved(at=10**15, question="q", outcome=0, known_at=10**15)
    doings = [opened("q"), *(made(number, participant=f"p{number}") for number in range(8))]
    doings.insert(4, answer)
    known = from_columns(sealed(*((f"c{number}", event) for number, event in enumerate(doings))))
    assert known.state.standing["q"] == {f"p{number}": 10**15 + number for number in range(8)}
    assert applied == [5]


def test_a_forecast_on_a_question_that_was_not_opened_is_damage() -> None:
    """It has the message and the head of a log that is read event by event."""
    records = sealed(("o", opened("q")), *((f"c{number}", made(number, "qr"[number == 9])) for number in range(14)))
    heads = set()
    for apply in (apply_pages, lambda known, each: [known.apply(page) for page in log.unseal_pages(each)]):
        known = WriterState()
        with pytest.raises(Corrupt, match=r"log position 11: .* names 'r'"):
            apply(known, pages(records))
        heads.add(known.head)
    assert {head.position for head in heads} == {10}
    assert len(heads) == 1


def test_a_writer_of_a_long_log_knows_its_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, applied: list[int]
) -> None:
    """A command that is sent again is recorded once, whether it was read event by event, as a column, or last."""
    monkeypatch.setattr(writer, "_FEW", 1)
    commands: list[AnyCommand] = [asked(id="c1")]
    commands += [forecast(participant=f"p{number % 7}", id=f"c{number}") for number in range(2, 1_202)]
    with Ledger.open(tmp_path / "log.db") as ledger:
        ledger.handle_many(commands)
    with Ledger.open(tmp_path / "log.db") as ledger:
        for number in (1, 2, 501, 700, 1_201):
            receipt = ledger.handle(commands[number - 1])
            assert (receipt.duplicate, receipt.first) == (True, number)
        assert not ledger.handle(forecast(participant="p0", id="new")).duplicate
    assert sum(applied) == 701
