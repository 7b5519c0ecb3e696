"""What is checked by the columns of segments has the verdict that its rows have."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs

from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import cdf_content, forecast_contents
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.segments.arrow_arrays import integers, row_numbers
from forecast_ledger.ledger.segments.segment_files import read_columns, write_table
from forecast_ledger.ledger.segments.segment_manifest import MANIFEST, SegmentManifest, describe_file, read_manifest
from forecast_ledger.ledger.storing.segment_rows import SegmentRows
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.checking import side_by_side
from forecast_ledger.replay.checking.side_by_side import Beginning, check_part
from forecast_ledger.replay.reading.log import Log
from tests.replay.checking.test_side_by_side import FORECASTS, Change, changed, in_segments, same
from tests.support.forging import written as forged
from tests.support.given import day, forecast, micros, numeric, opened
from tests.support.logs import recorded, written

pytestmark = pytest.mark.usefixtures("quickly_sealed")


def test_few_rows_of_segments_are_read(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no forecast, two of 26, and the last row, whose command may go on; wherever parts end."""
    read, decode_rows = list[int](), log.decode_rows

    def noted(rows: Sequence[bytes]) -> list[Recorded]:
        read.append(len(rows))
        return decode_rows(rows)

    monkeypatch.setattr(log, "decode_rows", noted)
    folder = in_segments(written(tmp_path / "log.db", FORECASTS), tmp_path / "s", 100)
    read.clear()
    run_checks(Log(folder), side_by_side=True)
    assert begun != [None]
    assert sum(read) == 2 * (2 + 1)  # once where they are checked, and once where they are decided


def change_last(folder: Path, column: str, number: int) -> None:
    """Give the last forecast of the only segment another number in a column; the digest of the file is right."""
    [segment] = read_manifest(folder).segments
    table, path = read_columns(folder, segment).forecasts, folder / segment.forecasts.name
    place = table.schema.names.index(column)
    field = table.schema.field(place)
    numbers = row_numbers([*integers(table[column])[:-1].tolist(), number]).cast(field.type)
    path.unlink()
    write_table(path, table.set_column(place, field, numbers))
    forged_segment = structs.replace(segment, forecasts=describe_file(path, len(table)), chain="")
    (folder / MANIFEST).write_bytes(json.encode(SegmentManifest("main").with_segment(forged_segment)))


def test_a_row_recorded_outside_the_calendar_is_no_fault_of_the_files(tmp_path: Path) -> None:
    """They are as the manifest says; that the row cannot be read stops every check."""
    folder = in_segments(written(tmp_path / "log.db", FORECASTS), tmp_path / "s", 100)
    change_last(folder, "recorded_at", 253_402_300_800_000_000)
    report = run_checks(Log(folder))
    assert [(wrong.check, wrong.position) for wrong in report.damage] == [("schemas", 26)]
    assert {result.check for result in report.results if result.found != "not checked"} == {"schemas"}


@pytest.mark.parametrize("position", [0, 5, 27])
def test_a_position_that_is_changed_in_a_file_of_a_segment_is_found(
    position: int, tmp_path: Path, begun: list[Beginning | None]
) -> None:
    """To one that no row has, or another row; the digest of the file is right, those of the rows are not."""
    folder = in_segments(written(tmp_path / "log.db", FORECASTS), tmp_path / "s", 100)
    change_last(folder, "position", position)
    assert not same(folder)
    assert begun == [None]
    found = {result.check: result.found for result in run_checks(Log(folder)).results}
    assert found.pop("store") == "damaged"
    assert {*found.values()} == {"not checked"}  # no row was read


CUMULATED: list[AnyCommand] = [
    *(numeric(), numeric("height", open_lower=True, open_upper=True), opened()),
    *(
        forecast(name, probability=None, cdf=["0", "0.25", f"0.{number + 30}", "0.75", "1"], at=day(10 + number // 3))
        for number, name in enumerate(["depth", "height"] * 12)
    ),
]


@cache
def cumulated() -> tuple[Recorded, ...]:
    """The rows of these, of which each test changes one."""
    return (*recorded(CUMULATED),)


def heights(*cdf: int, **fields: Any) -> Change:
    """Other cumulative probabilities, 1e-10, of a forecast whose command is known to have said them.

    fields: more of the event, which may have something else in place of them.
    """

    def change(rows: list[Recorded], place: int) -> list[Recorded]:
        event: Any = structs.replace(rows[place].event, **({"cdf": cdf} | fields))
        question, participant = ([json.encode(name).decode()] for name in (event.question, event.participant))
        [digest] = log.fingerprints(forecast_contents(question, participant, [event.at], [cdf_content(cdf, True)]))
        return changed(command=digest, event={"cdf": cdf} | fields)(rows, place)

    return change


END = 10**10
CUMULATIVE_CHANGES: dict[str, Change] = {
    "nothing": heights(0, 1, 2, 3, END),
    "equal ones": heights(0, 0, END, END, END),
    "falling": heights(0, 5, 4, 6, END),
    "falling at the end": heights(0, 1, 2, END, END - 1),
    "a first one above zero": heights(1, 2, 3, 4, END),
    "a last one below one": heights(0, 1, 2, 3, END - 1),
    "below zero": heights(-1, 1, 2, 3, END),
    "above one": heights(0, 1, 2, 3, END + 1),
    "too few": heights(0, 1, 2, END),
    "too many": heights(0, 1, 2, 3, 4, END),
    "of a question for a probability": heights(0, END, question="rain"),
    "of a question that is none": heights(0, 1, 2, 3, END, question="snow"),
    "another digest": changed(command="0" * 32),
    "quantiles": heights(0, 1, 2, 3, END, cdf=(), quantiles=(0, 1, 2, 3, END)),
    "probabilities": changed(event={"cdf": (), "probabilities": (10**8, 9 * 10**8)}),
    "at the close": heights(0, 1, 2, 3, END, at=micros(20)),
}


@pytest.mark.parametrize("change", CUMULATIVE_CHANGES.values(), ids=CUMULATIVE_CHANGES)
def test_changed_cumulative_probabilities_are_found_in_segments(
    change: Change, tmp_path: Path, begun: list[Beginning | None]
) -> None:
    """On a question with closed ends, and on one with open ends, which takes some of them; digests are right."""
    for place in (9, 10):
        path = forged(tmp_path / f"{place}.db", change([*cumulated()], place))
        same(in_segments(path, tmp_path / f"s{place}", 100))
    assert len(begun) == 2


def test_cumulative_probabilities_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken from their columns, but for the last forecast, whose command may go on."""
    folder, read = in_segments(written(tmp_path / "log.db", CUMULATED), tmp_path / "s", 100), list[bytes]()
    opening = [json.encode(row.event).decode() for row in cumulated()[:3]]
    decode_rows = log.decode_rows

    def noted(rows: Sequence[bytes]) -> list[Recorded]:
        read.extend(rows)
        return decode_rows(rows)

    monkeypatch.setattr(log, "decode_rows", noted)
    given = side_by_side.Given(str(folder), "main", opening)
    part = check_part(side_by_side._open(given, SegmentRows(folder, "main")), 0, 27)
    assert part is not None
    assert [page.others for page in part.pages] == [read]
    assert len(read) == 4
