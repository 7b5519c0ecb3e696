"""Rows that are read by blocks leave the rows and refusals of rows that are read one by one."""

import random
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.files.manifest import refused_file
from forecast_ledger.replay.mapping.csv_mapping import map_records, parse_map
from forecast_ledger.replay.mapping.csv_reader import read_sources
from forecast_ledger.replay.mapping.row_blocks import RowBlocks
from forecast_ledger.replay.writing import append
from forecast_ledger.replay.writing.append import append_batches, append_blocks, tally
from tests.support.effort import times
from tests.support.given import DAY, NOW, day, opened

SMALL = 5
HEADER = b"when,question,who,p\n"


def a_map(ids: str = "{who} {question} {when}", top: str = "", **fields: str) -> bytes:
    """A map of a forecast in every row; fields: as TOML, in place of plain ones."""
    plain = {"at": '"{when}"', "question": '"{question}"', "participant": '"{who}"', "probability": '"{p}"'}
    lines = [top, "[[command]]", 'type = "submit_forecast"', f'id = "{ids}"', "[command.fields]"]
    return "\n".join([*lines, *(f"{name} = {value}" for name, value in (plain | fields).items())]).encode()


MAPS = {
    "plain": a_map(),
    "numbered": a_map("row {#}"),
    "one question": a_map(question='"q"'),
    "an offset": a_map(top='offset = "+01:00"'),
    "a format": a_map(top='instant = "%Y-%m-%dT%H:%M:%SZ"\noffset = "Z"'),
    "per cent": a_map(probability='{ from = "{p}", number = "1234.5%" }'),
    "values": a_map(probability='{ from = "{p}", map = { "0.5" = "0.25", "0.25" = "0.5" } }'),
    "two cells": a_map(participant='"{who}/{question}"'),
    "one id": a_map("only"),
    "no id": a_map(""),
    "a year": a_map(at="2026"),
    "no instant": a_map(at='""'),
    "no question": a_map(question='""'),
    "a number": a_map(question="7"),
    "numbers": a_map(participant='{ from = "{who}", map = { ada = 1, bob = "bob", cy = true } }'),
    "lists": a_map(participant='{ from = "{who}", split = "d" }'),
    "one chance": a_map(probability="0.25"),
}
READ = ["plain", "numbered", "one question", "an offset", "a format", "per cent", "values", "two cells", "one id"]
CELLS: dict[str, list[str]] = {
    "when": [day(2), day(3), day(3), f"{day(2)[:-1]}.5Z", day(2).replace("T", " "), "2026-03-02T00:00:00+02:00"],
    "question": ["q", "q", "q", "r"],
    "who": ["ada", "bob", "cy", "Ünal"],
    "p": ["0.5", "0.25", "0.125", "0.50"],
}
ODD: dict[str, list[str]] = {
    "when": ["", "2026-03-02", "2026-03-02T00:00:00", "yesterday", day(1), "2026-02-30T00:00:00Z", "20,26"],
    "question": ["", "none", "x" * 201, '"a""b"'],
    "who": ["", " ada ", "a\\b", "x" * 201],
    "p": ["", "1.5", "1e-3", ".5", "0", "1", "50%", "0.1234567895", "nan"],
}


def random_rows(dice: random.Random) -> bytes:
    """Rows of a CSV; some have an odd cell, or a cell too many; some come twice."""
    lines = list[str]()
    for _ in range(dice.randrange(50)):
        cells = {name: dice.choice(few) for name, few in CELLS.items()}
        if dice.random() < 0.15:
            name = dice.choice([*ODD])
            cells[name] = dice.choice(ODD[name])
        odd = dice.random()
        lines.append(",".join(cells.values()) + ",more" * (odd < 0.02) + "\n" * (odd > 0.97))
        if dice.random() < 0.1:
            lines.append(dice.choice(lines))
    text = "\n".join(lines) + '\n"unfinished' * (dice.random() < 0.1)
    return HEADER + text.encode()


def sent(ledger: Ledger, map_: bytes, file: bytes, folder: Path, *, by_block: bool) -> tuple[Any, ...]:
    """The counts, refusals, refused lines and rows after a file is sent; or the refusal of the whole file."""
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    said: list[tuple[Any, ...]] = []
    mapping, records = parse_map(map_), read_sources(BytesIO(file))
    assert mapping.is_of_forecasts
    with refused_file(folder / "refused.csv") as refused:
        try:
            handled = (
                append_blocks(ledger, RowBlocks(mapping, records, keep=True), lambda _: None, counts)
                if by_block
                else append_batches(ledger, map_records(mapping, records, keep=True).commands, lambda _: None)
            )
        except Refused as fault:
            return str(fault), ledger.head()
        outcomes = tally(
            refused.keep_refused(HEADER, handled), lambda *item: said.append((item[0], str(item[1]))), counts
        )
        for _ in outcomes:
            pass
    rows = [row for page in ledger._store.pages() for row in page]
    return counts, said, (folder / "refused.csv").read_bytes(), rows


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few rows, so that short files have many."""
    monkeypatch.setattr(append, "FIRST_BATCH", SMALL)
    monkeypatch.setattr(append, "_next_size", lambda *_: SMALL)


@pytest.fixture
def two_ledgers() -> Iterator[tuple[Ledger, Ledger]]:
    """Two ledgers with two open questions and the same clock."""
    with (
        Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as one,
        Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as two,
    ):
        for ledger in (one, two):
            ledger.handle_many([opened("q", id="q"), opened("r", id="r")])
        yield one, two


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("seed", range(times(12)))
def test_blocks_leave_the_rows_and_refusals_of_single_rows(
    name: str, seed: int, two_ledgers: tuple[Ledger, Ledger], tmp_path: Path
) -> None:
    """Counts, refusals with their lines, refused rows and bytes are equal; and when the file is sent again."""
    file = random_rows(random.Random(f"{name} {seed}"))
    for _ in range(2):
        by_block, one_by_one = (
            sent(ledger, MAPS[name], file, tmp_path, by_block=by_block)
            for ledger, by_block in zip(two_ledgers, (True, False), strict=True)
        )
        assert by_block == one_by_one


@pytest.mark.parametrize("name", READ)
def test_blocks_of_good_rows_are_read_as_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is read by itself, except those from which the order is judged."""
    cells = "50%" if name == "per cent" else "0.5"
    rows = b"".join(f"{day(2)},q,p{number},{cells}\n".encode() for number in range(12))
    blocks = RowBlocks(parse_map(MAPS[name]), read_sources(BytesIO(HEADER + rows)))
    monkeypatch.setattr(RowBlocks, "again", None)
    read = blocks.read(block := blocks.take(20))
    assert read is not None
    assert [(command.id, command.participant) for command in read][-1:] == [
        (
            {"numbered": "row 12", "one id": "only"}.get(name, f"p11 q {day(2)}"),
            "p11/q" if name == "two cells" else "p11",
        )
    ]
    assert len(read) == len(block) == 12


@pytest.mark.parametrize(
    "map_",
    [
        a_map() + b"\n[[command]]\ntype = 'withdraw_forecast'\nid = 'w{who}'\npresent = ['p']\n",
        a_map(top='sort = "at"'),
        a_map(until='"{when}"'),
        a_map().replace(b"[command.fields]", b"present = ['p']\n[command.fields]"),
        a_map(probability='["{p}"]'),
    ],
    ids=["two commands", "sorted", "another field", "some rows", "a list"],
)
def test_other_maps_are_read_row_by_row(map_: bytes) -> None:
    """A map with anything but a forecast of a probability in each row is none of forecasts."""
    if b"withdraw" in map_:
        map_ += b"fields = { at = '{when}', question = '{question}', participant = '{who}' }"
    assert not parse_map(map_).is_of_forecasts


def test_cells_that_no_field_reads_are_not_held() -> None:
    """Nor are the bytes of rows, unless they are to be written again: the rows of a block are in memory together."""
    header, row = HEADER[:-1] + b",notes\n", f"{day(2)},q,ada,0.5,".encode() + b"x" * 9_000 + b"\n"
    for keep in (False, True):
        blocks = RowBlocks(parse_map(MAPS["plain"]), read_sources(BytesIO(header + row * 3)), keep=keep)
        cells: list[str] | Refused = [day(2), "q", "ada", "0.5", ""]
        assert blocks.take(5) == [(line - 1, (line, cells, row if keep else b"")) for line in (2, 3, 4)]
