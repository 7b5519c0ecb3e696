"""Workbooks as input of a map: cells as a person sees them, and nothing from a damaged or a hostile file."""

import datetime
import io
import re
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from forecast_ledger.replay.files import sheet_cells
from forecast_ledger.replay.files.sheet_cells import is_workbook, read_sheet
from tests.replay.cli.test_main import run
from tests.support.late import openpyxl

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(rows: Iterable[Any], formats: dict[str, str] | None = None, **more: Any) -> io.BytesIO:
    """A workbook with the sheet Answers, and perhaps others; formats: cell -> its number format."""
    book = openpyxl.Workbook()
    book.active.title = "Answers"
    for row in rows:
        book.active.append(list(row))
    for cell, form in (formats or {}).items():
        book.active[cell].number_format = form
    for name, others in more.items():
        sheet = book.create_sheet(name)
        for row in others:
            sheet.append(list(row))
    return saved(book)


def saved(book: Any) -> io.BytesIO:
    """The bytes of a workbook."""
    file = io.BytesIO()
    book.save(file)
    return file


def changed(file: io.BytesIO, part: str, *changes: tuple[str, str]) -> io.BytesIO:
    """A workbook with texts in the XML of a part replaced."""
    made = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name)
            for before, after in changes if name == part else ():
                assert before.encode() in text, text
                text = text.replace(before.encode(), after.encode(), 1)
            new.writestr(name, text)
    return made


def rows_xml(rows: str, after: str = "") -> io.BytesIO:
    """A workbook whose sheet has these rows, as they are written in XML."""
    file = workbook([["x"]])
    made = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                text = f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData>{after}</worksheet>'.encode()
            new.writestr(name, text)
    return made


def texts(file: io.BytesIO, sheet: str = "", column: str = "") -> list[tuple[int, list[str] | str]]:
    """The rows of a workbook, or what they are refused with. column: the only one that is read."""
    found = read_sheet(file, sheet, lambda name: not column or name == column)
    return [(number, str(cells) if isinstance(cells, Refused) else cells) for number, cells, _ in found]


@pytest.mark.parametrize(
    ("given", "form", "text"),
    [
        (0.35000000000000003, "General", "0.35"),
        (0.1 + 0.2, "0.00", "0.3"),
        (1 / 3, "0.00", "0.333333333333333"),  # 15 digits, as a spreadsheet shows it at most
        (0.00001, "General", "0.00001"),
        (1e21, "General", "1000000000000000000000"),
        (12, "General", "12"),
        (12.0, "#,##0.00", "12"),
        (-0.5, "General", "-0.5"),
        (0.35, "0%", "35%"),
        (0.07, "0.0%", "7%"),  # 0.07 * 100 is 7.000000000000001 in binary
        (1, "0%", "100%"),
        (0.625, "0%", "62.5%"),  # the value, not the digits that the format leaves
        (0.35, '0.00" % sure"', "0.35"),
        (0.35, "0.00\\%", "0.35"),
        (True, "General", "TRUE"),
        (False, "General", "FALSE"),
        (" Ada \u00a0", "General", "Ada"),
        (datetime.datetime(2026, 10, 24, 12, 30), "m/d/yy h:mm", "2026-10-24 12:30:00"),
        (datetime.datetime(2026, 10, 24, 0, 0), "m/d/yy h:mm", "2026-10-24 00:00:00"),
        (datetime.datetime(2026, 10, 24, 9, 59, 59), "yyyy-mm-dd hh:mm:ss", "2026-10-24 09:59:59"),
        (datetime.date(2026, 10, 24), "dd.mm.yyyy", "2026-10-24"),
        (datetime.time(9, 30), "h:mm", "09:30:00"),
    ],
)
def test_a_cell_is_read_as_a_person_sees_it(given: Any, form: str, text: str) -> None:
    """Numbers without the noise of binary, percentages with their sign, dates as instants without an offset."""
    file = workbook([["x"], [given]], {"A2": form})
    [_, (_, cells)] = texts(file)
    assert cells == [text]


def test_every_second_of_a_day_is_read_to_the_second() -> None:
    """A time is stored as a part of a day in binary; no second of it is lost or gained."""
    day = datetime.datetime(2026, 10, 24)
    times = [day + datetime.timedelta(seconds=second) for second in range(0, 86400, 31)]
    found = texts(workbook([["x"], *([each] for each in times)]))[1:]
    assert [cells[0] for _, cells in found] == [each.isoformat(" ") for each in times]


def test_rows_have_the_numbers_of_the_sheet() -> None:
    """Empty rows are left out, above the header too; empty cells at the end of a row are filled up to the header."""
    assert texts(workbook([[], ["a", "b", None], [], ["1"], [None, "2"]])) == [
        (2, ["a", "b"]),
        (4, ["1", ""]),
        (5, ["", "2"]),
    ]


def test_a_value_beyond_the_header_is_not_lost() -> None:
    """The row has more cells than the header, and is refused as in a CSV."""
    assert texts(workbook([["a"], ["1", None, "note"]]))[1] == (2, ["1", "", "note"])


def test_a_formula_is_its_stored_value() -> None:
    """What the spreadsheet last computed; a formula without a stored value is refused by the name of its cell."""
    rows = '<row r="1"><c r="A1" t="inlineStr"><is><t>p</t></is></c></row>'
    stored = rows + '<row r="2"><c r="A2"><f>0.1+0.2</f><v>0.30000000000000004</v></c></row>'
    assert texts(rows_xml(stored))[1] == (2, ["0.3"])
    empty = rows + '<row r="2"><c r="A2" t="str"><f>""</f><v></v></c><c r="B2"><v>7</v></c></row>'
    assert texts(rows_xml(empty))[1] == (2, ["", "7"])
    [_, (number, said)] = texts(workbook([["p", "q"], ["=0.1+0.2", "1"]]))
    assert number == 2
    assert str(said).startswith("bad_csv: A2 = '': the cell has a formula whose value is not stored")
    assert texts(workbook([["p", "q"], ["=0.1+0.2", "1"]]), column="q")[1] == (2, ["", "1"])


def test_an_error_is_refused_by_the_name_of_its_cell() -> None:
    """#N/A in a column that the map reads refuses this row; in another column it is nobody's."""
    table = [["who", "p"], ["ada", 0.5], ["bo", "#N/A"], ["cy", 0.6]]
    assert texts(workbook(table))[1:] == [
        (2, ["ada", "0.5"]),
        (3, "bad_csv: B3 = '#N/A': the cell has an error; correct the cell in the workbook"),
        (4, ["cy", "0.6"]),
    ]
    assert texts(workbook(table), column="who")[2] == (3, ["bo", "#N/A"])


def test_each_cell_of_a_merged_area_has_its_value() -> None:
    """A name beside three rows is that of each; an area that reaches beyond the table adds no row."""
    book = openpyxl.load_workbook(
        workbook([["who", "q", "p"], ["ada", "a", 1], [None, "b", 2], ["bo", "c", 3], [], [None, "d", 4]])
    )
    book.active.merge_cells("A2:A3")
    book.active.merge_cells("A4:A9")
    book.active.merge_cells("E1:F2")
    assert texts(saved(book))[1:] == [
        (2, ["ada", "a", "1"]),
        (3, ["ada", "b", "2"]),
        (4, ["bo", "c", "3"]),
        (6, ["bo", "d", "4"]),
    ]


def test_the_only_sheet_that_is_shown_is_read() -> None:
    """Others are named in the map: without a name, or by a wrong one, the workbook is refused with its sheets."""
    file = workbook([["a"], ["1"]], Notes=[["b"], ["2"]])
    for asked in ("", "answers"):
        with pytest.raises(Refused, match=re.escape("the sheets of the workbook are: 'Answers', 'Notes'")) as refused:
            texts(file, asked)
        assert refused.value.code == "bad_map"
    assert texts(file, "Notes") == [(1, ["b"]), (2, ["2"])]
    book = openpyxl.load_workbook(file)
    book["Notes"].sheet_state = "hidden"
    assert texts(saved(book)) == [(1, ["a"]), (2, ["1"])]
    assert texts(saved(book), "Notes") == [(1, ["b"]), (2, ["2"])]


def test_a_workbook_with_prefixes_in_its_xml_is_read() -> None:
    """Some programs write `x:row` for `row`, with the same namespace."""
    file = rows_xml("")
    rows = '<x:row r="1"><x:c r="A1" t="inlineStr"><x:is><x:t>a</x:t></x:is></x:c></x:row>'
    rows += "<x:row><x:c><x:v>7</x:v></x:c></x:row>"
    before = f'<worksheet xmlns="{MAIN}"><sheetData></sheetData></worksheet>'
    after = f'<x:worksheet xmlns:x="{MAIN}"><x:sheetData>{rows}</x:sheetData></x:worksheet>'
    assert texts(changed(file, "xl/worksheets/sheet1.xml", (before, after))) == [(1, ["a"]), (2, ["7"])]


def test_what_a_sheet_says_of_its_size_is_not_believed() -> None:
    """A wrong `dimension` hides no cell."""
    file = changed(workbook([["a", "b"], ["1", "2"]]), "xl/worksheets/sheet1.xml", ('ref="A1:B2"', 'ref="A1:A1"'))
    assert texts(file) == [(1, ["a", "b"]), (2, ["1", "2"])]


def test_dates_from_the_other_epoch_are_right() -> None:
    """Old workbooks of a Mac count days from 1904; theirs are the same days."""
    book = openpyxl.load_workbook(workbook([["x"]]))
    book.epoch = datetime.datetime(1904, 1, 1)
    book.active["A2"] = datetime.datetime(2026, 10, 24, 12, 30)
    assert texts(saved(book))[1] == (2, ["2026-10-24 12:30:00"])


def cell(name: str, text: str = "1") -> str:
    """A cell as XML."""
    return f'<c r="{name}"><v>{text}</v></c>'


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: rows_xml(f'<row r="1">{cell("A1")}</row><row r="1048576">{cell("XFD1048576")}</row>'), "XFD1048576"),
        (lambda: rows_xml(f'<row r="2">{cell("A2")}</row><row r="1">{cell("A1")}</row>'), "row 1 comes after row 2"),
        (lambda: rows_xml(f'<row r="1">{cell("B1")}{cell("A1")}</row>'), "A1 is not in its place"),
        (lambda: rows_xml(f'<row r="1">{cell("A7")}</row>'), "A7 is not in its place"),
        (lambda: rows_xml(f'<row r="1">{cell("A1", "x")}</row>'), "not a workbook that can be read"),
        (lambda: rows_xml('<row r="1"><c r="A1" t="s"><v>99</v></c></row>'), "not a workbook that can be read"),
        (lambda: rows_xml('<row r="1">'), "not a workbook that can be read"),
        (lambda: rows_xml("", '<mergeCells><mergeCell ref="A1:ZZZZ9"/></mergeCells>'), "'ZZZZ9' is no cell"),
        (
            lambda: changed(
                workbook([["a"]]),
                "xl/worksheets/sheet1.xml",
                ("<worksheet", "<!DOCTYPE a [<!ENTITY b 'c'>]><worksheet"),
            ),
            "document type",
        ),
        (
            lambda: changed(
                workbook([["a"]]), "xl/styles.xml", ("<styleSheet", "<!DOCTYPE a [<!ENTITY b 'c'>]><styleSheet")
            ),
            "document type",
        ),
        (
            lambda: changed(workbook([["a"]]), "xl/_rels/workbook.xml.rels", ("sheet1.xml", "sheet7.xml")),
            "not a workbook that can be read",
        ),
        (
            lambda: changed(workbook([["a"]]), "xl/workbook.xml", ("<sheets>", "<sheets")),
            "not a workbook that can be read",
        ),
        (lambda: io.BytesIO(b"PK\x03\x04" + b"\0" * 99), "not a workbook that can be read"),
        (lambda: io.BytesIO(workbook([["a"]]).getvalue()[:-40]), "not a workbook that can be read"),
    ],
)
def test_nothing_is_taken_from_a_damaged_workbook(made: Callable[[], io.BytesIO], says: str) -> None:
    """Rows out of order, cells out of place, parts that are missing or cut: refused, with no traceback."""
    with pytest.raises(Refused, match=re.escape(says)) as refused:
        texts(made())
    assert refused.value.code == "bad_csv"


@pytest.mark.parametrize("seed", range(40))
def test_a_workbook_with_a_changed_byte_is_read_or_refused(seed: int) -> None:
    """Whatever byte is another, there is no other error than a refusal."""
    content = bytearray(workbook([["a", "b"], [1, 0.5], ["x", True]], {"B2": "0%"}).getvalue())
    content[seed * len(content) // 40] ^= 0x5A
    with suppress(Refused):
        texts(io.BytesIO(bytes(content)))


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    """80 MB of blanks in 80 kB: what unpacking would take is counted first, and the memory stays small."""
    file = workbook([["a"]])
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as packed, packed.open("xl/media/a.xml", "w") as part:
        for _ in range(80):
            part.write(b" " * 2**20)
    assert len(file.getvalue()) < 100_000
    tracemalloc.start()
    with pytest.raises(Refused, match="bytes when unpacked"):
        texts(file)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_a_bomb_that_lies_about_its_size_is_refused() -> None:
    """No more is unpacked than the zip says, and then its checksum is wrong."""
    file = io.BytesIO()
    with zipfile.ZipFile(workbook([["a"]])) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name)
            new.writestr(name, text + b" " * 2**24 if name == "xl/styles.xml" else text)
        size = new.getinfo("xl/styles.xml").file_size
    lied = file.getvalue().replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))
    tracemalloc.start()
    with pytest.raises(Refused, match="not a workbook that can be read"):
        texts(io.BytesIO(lied))
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_areas_of_merged_cells_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes of an area name millions of cells: they are counted before they are filled."""
    rows = "".join(f'<row r="{n}">{cell(f"A{n}")}{cell(f"D{n}")}</row>' for n in range(1, 11))
    area = '<mergeCell ref="B1:D1048576"/>'
    monkeypatch.setattr(sheet_cells, "MOST_CELLS", 60)
    assert len(texts(rows_xml(rows, f"<mergeCells>{area}{area}</mergeCells>"))) == 10  # 2 x 30 cells
    with pytest.raises(Refused, match="areas of merged cells"):
        texts(rows_xml(rows, f"<mergeCells>{area * 3}</mergeCells>"))


@pytest.mark.parametrize(
    ("limit", "made"),
    [
        ("MOST_ROWS", lambda: rows_xml('<row r="5001"/>')),
        ("MOST_ELEMENTS", lambda: rows_xml("", f"<cols>{'<col/>' * 5001}</cols>")),
        ("MOST_CELLS", lambda: rows_xml(f"<row>{'<c/>' * 5001}</row>")),
        ("LONGEST_RECORD", lambda: workbook([["a"], ["b" * 5001]])),
    ],
)
def test_what_a_workbook_has_is_counted_before_it_is_read(
    limit: str, made: Callable[[], io.BytesIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, cells, other elements and long texts: a small file that becomes many objects is refused."""
    texts(file := made())
    monkeypatch.setattr(sheet_cells, limit, 5000)
    with pytest.raises(Refused, match="not a workbook that can be read"):
        texts(file)


MAP = """
offset = "Z"
[[command]]
type = "submit_forecast"
id = "{Who}"
[command.fields]
at = "{When}"
question = "rain"
participant = "{Who}"
probability = { from = "{P}", percent = true }
"""
QUESTION = """{"id": "q", "type": "open_question", "at": "2026-03-01T00:00:00Z", "question": "rain", "kind": "binary", \
"opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-04-01T00:00:00Z"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a map, a workbook and a log with the question."""
    when = datetime.datetime(2026, 3, 2, 9, 30)
    table = [["When", "Who", "P"], [when, "ada", 0.6], [when, "bo", "#DIV/0!"], [when, "cy", 0.123]]
    (tmp_path / "m.toml").write_text(MAP)
    (tmp_path / "q.jsonl").write_text(QUESTION)
    (tmp_path / "a.xlsx").write_bytes(workbook(table, {"C2": "0%", "C4": "0%"}).getvalue())
    monkeypatch.chdir(tmp_path)
    run("append", "a.db", "q.jsonl")
    return tmp_path


def test_a_workbook_goes_in_by_a_map(folder: Path) -> None:
    """The good rows are recorded, the bad one is written to a CSV, mended there, and sent by the same map."""
    said = run("append", "a.db", "--map", "m.toml", "a.xlsx", "--refused", "rest.csv", "--format", "csv")
    assert (said.exit_code, said.stdout.splitlines()[1][:6]) == (FINDINGS, "2,0,1,")
    assert "refused and written to rest.csv, as a CSV: 1\n" in said.stderr
    assert "row 3: bad_csv: C3 = '#DIV/0!': the cell has an error" in said.stderr
    rest = folder / "rest.csv"
    assert rest.read_text() == "When,Who,P\n2026-03-02 09:30:00,bo,#DIV/0!\n"
    rest.write_text(rest.read_text().replace("#DIV/0!", "35%"))
    again = run("append", "a.db", "--map", "m.toml", "rest.csv", "--format", "csv")
    assert (again.exit_code, again.stdout.splitlines()[1][:6]) == (FINE, "1,0,0,")
    says = run("log", "a.db", "--type", "forecast_made", "--columns", "at,says", "--format", "csv").stdout
    assert says.splitlines()[1:] == [
        '2026-03-02T09:30:00Z,"ada on rain: yes 0.6, no 0.4"',
        '2026-03-02T09:30:00Z,"cy on rain: yes 0.123, no 0.877"',
        '2026-03-02T09:30:00Z,"bo on rain: yes 0.35, no 0.65"',
    ]


def test_a_time_without_an_offset_is_asked_for_it(folder: Path) -> None:
    """A date of a workbook has no time zone: the map names one, as for a CSV."""
    (folder / "m.toml").write_text(MAP.replace('offset = "Z"\n', ""))
    said = run("append", "a.db", "--map", "m.toml", "a.xlsx")
    assert said.exit_code == FINDINGS
    assert "naive_instant" in said.stderr
    (folder / "m.toml").write_text(MAP.replace('offset = "Z"', 'zone = "Europe/Berlin"'))
    run("append", "a.db", "--map", "m.toml", "a.xlsx")
    assert "2026-03-02T08:30:00Z" in run("log", "a.db", "--type", "forecast_made", "--columns", "at").stdout


def test_a_workbook_is_told_from_other_files(folder: Path) -> None:
    """Without a map, or as an old .xls, an .ods or a zip of something else, the message says what the file is."""
    assert "FILE is a workbook: name with --map" in run("append", "a.db", "a.xlsx").stderr
    (folder / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500)
    old = run("append", "a.db", "--map", "m.toml", "old.xls")
    assert (old.exit_code, "save it as .xlsx without a password" in old.stderr) == (USAGE, True)
    with zipfile.ZipFile(folder / "a.ods", "w") as packed:
        packed.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        packed.writestr("content.xml", "<a/>")
    sheet = run("append", "a.db", "--map", "m.toml", "a.ods")
    assert (sheet.exit_code, "FILE is an .ods; save it as .xlsx or as a CSV" in sheet.stderr) == (USAGE, True)
    with zipfile.ZipFile(folder / "a.zip", "w") as packed:
        packed.writestr("a.csv", "When,Who,P\n")
    assert not is_workbook(io.BytesIO((folder / "a.zip").read_bytes()))
    (folder / "cut.xlsx").write_bytes((folder / "a.xlsx").read_bytes()[:-30])
    assert "not a workbook that can be read" in run("append", "a.db", "--map", "m.toml", "cut.xlsx").stderr
    assert "the file is packed" in run("append", "a.db", "--map", "m.toml", "a.zip").stderr


def test_without_the_extra_the_message_names_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is an extra, and is imported only for a workbook."""
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(Unavailable, match=re.escape("forecast-ledger[sheets]")):
        texts(workbook_bytes(folder))
    assert run("append", "a.db", "q.jsonl").exit_code == FINE


def workbook_bytes(folder: Path) -> io.BytesIO:
    """The workbook in a folder."""
    return io.BytesIO((folder / "a.xlsx").read_bytes())
