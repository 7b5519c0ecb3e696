"""Lines that are appended block by block leave the rows, and give the refusals, of lines appended one by one."""

import json
import random
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.replay.files.manifest import refused_file
from forecast_ledger.replay.reading.board_notes import unmoved
from forecast_ledger.replay.writing import append, command_lines
from forecast_ledger.replay.writing.append import Uncounted, append_batches, append_blocks, append_lines, tally
from forecast_ledger.replay.writing.command_lines import CommandBlocks, LineBlocks, read_lines
from tests.support.effort import LONG as EFFORT
from tests.support.effort import times
from tests.support.given import (
    AFTER,
    DAY,
    NOW,
    OPENS,
    accepted,
    annulment,
    asked,
    cancellation,
    contest,
    day,
    entry,
    exclusion,
    finalization,
    forecast,
    forecasts,
    opened,
    renaming,
    resolution,
    restatement,
    revocation,
)

FORECAST = {"type": "submit_forecast", "at": day(2), "question": "q", "participant": "ada", "probability": "0.25"}
OPENED = {"type": "open_question", "at": day(1), "question": "q", "kind": "binary", "opens_at": day(1)}
FIRST_LINES = [
    b'{"id": "o"}',
    json.dumps({"id": "o", **OPENED, "closes_at": day(6)}).encode(),
    json.dumps({"id": "o2", **OPENED, "question": "r", "closes_at": day(4)}).encode(),
]
SMALL = 7  # lines a block
LONG = 400  # bytes of the longest line
READ = (1, 61, 2**16)  # bytes read at once


def forecast_line(command_id: Any, **fields: Any) -> bytes:
    """A line with a forecast."""
    return json.dumps({"id": command_id, **FORECAST, **fields}).encode()


def odd_lines() -> list[bytes]:
    """Lines that are not commands, are refused, or are commands that no column holds."""
    return [
        *(b"", b"  \t", b"{", b"}", b"null", b"[]", b'{"id": "x"}', b"\xff\xfe\x00", b"\xef\xbb\xbf{}", b"\0", b"nan"),
        forecast_line("padded").ljust(LONG + 1) + forecast_line("behind"),
        b"y" * 3 * LONG,
        forecast_line("longest", participant="l")[:-1].ljust(LONG - 2) + b"}",  # with its line feed, as long as may be
        forecast_line("too long", participant="l")[:-1].ljust(LONG - 1) + b"}",
        forecast_line("two") + b"," + forecast_line("three"),
        forecast_line("half")[:-20],
        forecast_line("nested", probability=None).replace(b"null", b"[" * 150 + b"]" * 150),
        forecast_line("big").replace(b'"0.25"', b"1e999999999"),
        forecast_line("big2").replace(b'"0.25"', b"9" * 300),
        forecast_line("other", type="close_question"),
        forecast_line("numeric", probability=None, quantiles=[1, 2]),
        forecast_line("same id"),
        forecast_line("same id", probability="0.5"),
        forecast_line("early", at=day(1)),
        forecast_line("late", at=day(7)),
        forecast_line("late on r", question="r", at=day(5)),
        forecast_line("unknown", question="s"),
        forecast_line("spaces", participant=" a"),
        forecast_line("", participant="b"),
        forecast_line(None),
        forecast_line("until", participant="c", until=day(3)),
        forecast_line("number").replace(b'"0.25"', b"0.30"),
        forecast_line("twice").replace(b'"id"', b'"id": "once", "id"'),
        json.dumps(
            {"id": "w", "type": "withdraw_forecast", "at": day(3), "question": "q", "participant": "ada"}
        ).encode(),
        json.dumps({"id": "close", "type": "close_question", "at": day(3), "question": "r"}).encode(),
    ]


def random_file(dice: random.Random) -> bytes:
    """Lines with forecasts, some of them more than once, and others between them."""
    lines = FIRST_LINES[dice.randrange(2) :]
    odd = odd_lines()
    for _ in range(dice.randrange(60)):
        if dice.random() < 0.25:
            lines.append(dice.choice(odd))
        else:
            who, number = f"p{dice.randrange(3)}", dice.randrange(40)
            at = day(2) if dice.random() < 0.9 else day(3)
            lines.append(forecast_line(f"f{number}", participant=who, question=dice.choice("qqr"), at=at))
    mark = b"\xef\xbb\xbf" if dice.random() < 0.3 else b""
    return mark + dice.choice((b"\n", b"\r\n")).join(lines) + dice.choice((b"", b"\n", b"\n\n \n"))


def sent(
    ledger: Ledger, file: bytes, folder: Path, blocks: Callable[[BytesIO], CommandBlocks[Any]] | None = None
) -> tuple[Any, ...]:
    """The counts, refusals, refused lines and rows after a file is sent, by blocks or line by line."""
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    said: list[tuple[Any, ...]] = []
    source = BytesIO(file)
    with refused_file(folder / "refused.jsonl") as refused:
        handled = (
            append_blocks(ledger, blocks(source), lambda _: None, counts)
            if blocks is not None
            else append_batches(ledger, read_lines(source), lambda _: None)
        )
        outcomes = tally(refused.keep_refused(b"", handled), lambda *item: said.append((item[0], str(item[1]))), counts)
        for _ in outcomes:
            pass
    rows = [row for page in ledger._store.pages() for row in page]
    return counts, said, (folder / "refused.jsonl").read_bytes(), refused.too_long, rows


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few lines, and short lines, so that short files have many blocks and long lines."""
    monkeypatch.setattr(append, "FIRST_BATCH", SMALL)
    monkeypatch.setattr(append, "_next_size", lambda *_: SMALL)
    monkeypatch.setattr(command_lines, "LONGEST_LINE", LONG)
    monkeypatch.setattr(command_lines, "READ_BYTES", 61)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seed", range(times(12)))
def test_blocks_leave_the_rows_and_refusals_of_single_lines(
    seed: int, two_ledgers: tuple[Ledger, Ledger], tmp_path: Path
) -> None:
    """Counts, refusals with their lines, refused lines and bytes are equal; and when the file is sent again."""
    file = random_file(random.Random(seed))
    for _ in range(2):
        by_block, one_by_one = (
            sent(ledger, file, tmp_path, blocks) for ledger, blocks in zip(two_ledgers, (LineBlocks, None), strict=True)
        )
        assert by_block == one_by_one


@pytest.mark.usefixtures("small_blocks")
def test_every_odd_line_has_the_same_outcome_wherever_it_is_in_a_block(
    two_ledgers: tuple[Ledger, Ledger], tmp_path: Path
) -> None:
    """First, in the middle, and last: no line takes another with it, and no line number changes."""
    good = iter(range(10**6))
    lines = [*FIRST_LINES[1:]]
    for number, odd in enumerate(odd_lines()):
        lines += [forecast_line(f"g{next(good)}", participant=f"g{n}") for n in range(number % SMALL)]
        lines += [odd, forecast_line(f"g{next(good)}", participant="z")]
    file = b"\n".join(lines)
    by_block, one_by_one = (
        sent(ledger, file, tmp_path, blocks) for ledger, blocks in zip(two_ledgers, (LineBlocks, None), strict=True)
    )
    assert by_block == one_by_one
    assert by_block[0]["accepted"] >= 2 + next(good)
    assert by_block[0]["refused"] > 15


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("before", [SMALL - 3, SMALL - 4])
def test_every_odd_line_may_end_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """After it, alone or twice, the lines go on in the next block, of which a part may have been read already.

    So many bytes are read at once as the turn of the line says; in a long run, as many as any.
    """
    good = [forecast_line(f"g{number}", participant=f"g{number}") for number in range(before + 2 * SMALL)]
    at = partial(Ledger.open, ":memory:", clock=lambda: NOW + 99 * DAY)
    for number, odd in enumerate(odd_lines(), before):
        file = b"\n".join([*FIRST_LINES[1:], *good[:before], odd, odd, *good[before:]])
        with at() as one_by_one:
            expected = sent(one_by_one, file, tmp_path)
        for at_once in READ if EFFORT > 1 else [READ[number % 3]]:
            monkeypatch.setattr(command_lines, "READ_BYTES", at_once)
            with at() as ledger:
                assert sent(ledger, file, tmp_path, LineBlocks) == expected, (odd, at_once)


@pytest.mark.parametrize("atomic", [False, True])
def test_blank_lines_without_end_are_refused(monkeypatch: pytest.MonkeyPatch, atomic: bool) -> None:
    """Up to a million may follow each other; where there are more, reading stops, and the message names the limit."""
    monkeypatch.setattr(command_lines, "MOST_BLANK", 50)
    parts = [*FIRST_LINES[1:], forecast_line("a"), forecast_line("b", participant="b")]
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger:
        counts = append_lines(ledger, BytesIO((b"\n" + 50 * b" \n").join(parts)), atomic=atomic)
        assert counts == {"accepted": len(parts), "duplicate": 0, "refused": 0}
        file = BytesIO((b"\n" + 51 * b" \n").join(parts))
        with pytest.raises(
            Refused, match="more than 50 blank lines follow each other; the lines after 52 are not read"
        ):
            append_lines(ledger, file, atomic=atomic)


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 12, 99])
def test_a_block_of_lines_is_no_larger_than_promised(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """It ends with the last line that fits, or is the beginning of a line that is too long, however it was read."""
    monkeypatch.setattr(command_lines, "LONGEST_LINE", 8)
    monkeypatch.setattr(command_lines, "BLOCK_BYTES", 14)
    monkeypatch.setattr(command_lines, "READ_BYTES", at_once)
    reading = LineBlocks(BytesIO(b"123\n" * 5 + b"x" * 30 + b"\n1\n"))
    for lines in ([b"123\n"] * 3, [b"123\n"] * 2, [b"x" * 14]):
        taken = reading.take(10)
        assert (taken.split(), len(taken)) == (lines, len(lines))


@pytest.mark.parametrize("seed", range(times(200)))
def test_blocks_of_lines_are_the_lines_of_the_file(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Nothing is lost, added or moved: of blocks of any length, given back or not, and of reads of any length."""
    dice = random.Random(seed)
    monkeypatch.setattr(command_lines, "READ_BYTES", dice.randrange(1, 20))
    file = b"".join(dice.choice([b"\n", b"\r\n", b"a", b"bc", b"\r", b"defghi"]) for _ in range(dice.randrange(80)))
    lines, reading = BytesIO(file).readlines(), LineBlocks(BytesIO(file))
    while taken := reading.take(count := dice.randrange(1, 9)):
        assert taken.split() == lines[:count]
        assert len(taken) == len(taken.split())
        if dice.random() < 0.3:
            reading.give_back(taken)
        else:
            del lines[:count]
    assert not lines
    assert not reading.take(1)


AFTER_SEAL: list[tuple[list[AnyCommand], list[str]]] = [
    ([revocation("rain")], ["cup"]),
    ([annulment("rain")], ["cup"]),
    ([cancellation("rain", at=AFTER)], ["cup"]),
    ([restatement(forecast("rain", at=OPENS))], ["cup"]),
    ([restatement(forecast("snow", at=OPENS), question="snow")], ["cup"]),
    ([resolution("snow")], ["cup"]),
    ([renaming("ada", "eve")], ["cup"]),
    ([renaming("bo", "eve"), forecast("snow", "cy")], []),
    ([renaming("dee", "eve")], ["cup"]),
    ([revocation("hail"), finalization("league")], []),
    ([finalization("league"), revocation("hail")], ["league"]),
    ([revocation("rain"), finalization("league"), renaming("bo", "eve")], ["cup", "league"]),
]


@pytest.mark.parametrize(("commands", "boards"), AFTER_SEAL)
def test_what_sealed_boards_do_not_count_is_noted(commands: list[AnyCommand], boards: list[str]) -> None:
    """Of what comes after the seal, as the readers of a log say it; sent once more, it changes nothing."""
    before = [*asked("rain", {"ann": "0.7"}), opened("snow"), entry("cup", "snow"), *forecasts("snow", ann="0.4")]
    after = [*asked("hail", {"bo": "0.2"}, under="league"), entry("league", "rain")]
    begun = [contest("cup"), contest("league"), *before, renaming("ann", "ada"), exclusion(participant="dee")]
    begun += [finalization("cup"), *after]
    lines = [
        json.dumps(to_builtins(each) | {"id": f"last {number}", "type": each.__struct_config__.tag}, default=str)
        for number, each in enumerate(commands)
    ]
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        accepted(ledger, begun, "c")
        for outcome, expected in (("accepted", boards), ("duplicate", [])):
            head, noted = ledger.head().position, Uncounted(ledger)
            counts = {"accepted": 0, "duplicate": 0, "refused": 0}
            file = LineBlocks(BytesIO("\n".join(lines).encode()))
            blocks = append_blocks(ledger, file, lambda _: None, counts)
            for _ in tally(noted.noted(blocks), lambda *_: None, counts):
                pass
            assert (counts[outcome], sum(counts.values()), noted.boards()) == (len(lines), len(lines), expected)
            assert unmoved(facts(ledger.read()), head) == expected


@pytest.mark.usefixtures("small_blocks")
def test_a_file_in_utf_16_is_refused_before_anything_is_recorded(two_ledgers: tuple[Ledger, Ledger]) -> None:
    """Its bytes are read as UTF-8; the message names the encoding."""
    ledger, _ = two_ledgers
    file = BytesIO(b"\n".join(FIRST_LINES).decode().encode("utf-16"))
    with pytest.raises(Refused, match="UTF-16"):
        append.append_lines(ledger, file)
    assert ledger.head().position == 0


@pytest.mark.usefixtures("small_blocks")
def test_a_file_that_was_interrupted_is_sent_again(two_ledgers: tuple[Ledger, Ledger], tmp_path: Path) -> None:
    """What was counted is recorded, nothing is recorded twice, and the log is that of a file sent once."""

    class Broken(BytesIO):
        """A file that cannot be read to its end."""

        def read1(self, size: int | None = -1, /) -> bytes:
            if self.tell() > len(file) // 2:
                raise OSError("the network is away")
            return super().read1(size)

    file = b"\n".join(FIRST_LINES[1:] + [forecast_line(f"f{n}", participant=f"p{n % 4}") for n in range(40)])
    interrupted, whole = two_ledgers
    counts = {"accepted": 0, "duplicate": 0}
    with pytest.raises(OSError, match="away"):
        [*append_blocks(interrupted, LineBlocks(Broken(file)), lambda _: None, counts)]
    assert 0 < counts["accepted"] == interrupted.head().position < 42
    again = sent(interrupted, file, tmp_path, LineBlocks)
    assert again[0] == {"accepted": 42 - counts["accepted"], "duplicate": counts["accepted"], "refused": 0}
    assert again[4] == sent(whole, file, tmp_path, LineBlocks)[4]


@pytest.mark.parametrize(
    ("price", "code", "field"), [("null", "bad_number", "quotes.prices.yes"), ("1.5", "out_of_range", "prices.yes")]
)
def test_one_bad_price_among_many_names_its_question_and_outcome(price: str, code: str, field: str) -> None:
    """Of three quotes the second is wrong: the refusal names its question and outcome, and nothing is recorded."""
    quotes = [{"question": name, "prices": {"yes": 0.5}} for name in ("a", "b", "c")]
    line = json.dumps({"id": "q", "type": "quote", "at": OPENS, "source": "s", "quoted_at": OPENS, "quotes": quotes})
    line = line.replace('"question": "b", "prices": {"yes": 0.5}', f'"question": "b", "prices": {{"yes": {price}}}')
    with Ledger.open(":memory:") as ledger:
        for name in ("a", "b", "c"):
            ledger.handle(opened(name), command_id=name)
        found: list[Refused] = []
        append_lines(ledger, BytesIO(line.encode()), lambda _, refused: found.append(refused))
        assert [(each.code, each.field) for each in found] == [(code, field)]
        assert found[0].detail.startswith("the quote of 'b': ")
        assert ledger.head().position == 3
