"""A published table is compared with ours: rows by key, columns by name, numbers at the decimals that are printed."""

import io
from collections.abc import Iterable
from decimal import ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.core.columns import columns_of_rows
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.audit import compare
from forecast_ledger.replay.audit.compare import ClaimDifference, Comparison, agrees, read_claim, read_number
from forecast_ledger.replay.reading.blocks import as_csv
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.support.exports import TITLES, export_commands, export_log
from tests.support.logs import log_fixture

PRIZES = [("spring", "ada", 779_300_000, 0), ("spring", "bo", 1_234_500_000, 0), ("spring", "=x", 0, 0)]


def prizes(rows: Iterable[tuple[Any, ...]] = PRIZES) -> Table:
    """The table of prizes with these rows: contest, participant, prize and paid, in millionths."""
    projection = CATALOGUE["prizes"]
    return Table("prizes", projection.version, projection.columns, tuple(columns_of_rows([*rows], projection.columns)))


def compared(text: bytes | str, table: Table | None = None, *, partial: bool = False, **how: Any) -> list[str]:
    """What differs, a text for each difference; the claim is that of prizes."""
    table = prizes() if table is None else table
    given = text if isinstance(text, bytes) else text.encode()
    claim = read_claim(io.BytesIO(given), table.columns, **how)
    return [shown(each) for each in Comparison(table, claim, partial=partial).differences()]


def shown(difference: ClaimDifference) -> str:
    """A difference on one line: the participant, what it is, and both values."""
    value = f" {difference.column} {difference.claimed} {difference.ours}" if difference.column else ""
    return f"{difference.key[-1]} {difference.row}{value}"


def refusal(text: bytes | str, **how: Any) -> str:
    """What is wrong with a file."""
    with pytest.raises(Refused) as refused:
        compared(text, **how)
    assert refused.value.code == "bad_csv"
    return f"{refused.value.detail}; {refused.value.remedy}"


def test_a_row_that_differs_is_missing_extra_or_repeated_is_a_difference() -> None:
    """Differences are in the order of the file; rows that it lacks come last, in the order of our table."""
    text = "participant,prize\nbo,1234.50\nada,779.31\ncy,5\nbo,1\n"
    assert compared(text) == ["ada differs prize 779.31 779.30", "cy extra", "bo repeated", "=x missing"]
    assert compared(text, partial=True) == ["ada differs prize 779.31 779.30", "cy extra", "bo repeated"]


@pytest.mark.parametrize(
    "claimed",
    ["1234.5", "1,234.50", "$1,234.50", "1234.500000000001", "1.2345e3", "+1234.5", "1234", "1235", "1.23E+03"],
)
def test_a_number_is_read_as_people_print_it(claimed: str) -> None:
    """With commas between thousands, a currency sign, an exponent; 1234.5 without decimals is 1234 or 1235."""
    assert compared(f'participant,prize\nbo,"{claimed}"\n', partial=True) == []


@pytest.mark.parametrize("claimed", ["1236", "1233", "1234.6", "1234.49", "12,34.5", "1 234.5", "1234.5x", "", "NaN"])
def test_another_number_differs(claimed: str) -> None:
    """As does a text that is no number."""
    assert compared(f'participant,prize\nbo,"{claimed}"\n', partial=True) == [f"bo differs prize {claimed} 1234.50"]


@pytest.mark.parametrize(
    ("claimed", "ours"), [("85%", "0.850000000"), ("84.9 %", "0.849400000"), ("\N{MINUS SIGN}0.5", "-0.5")]
)
def test_a_percent_sign_divides_by_100_and_a_minus_sign_is_one(claimed: str, ours: str) -> None:
    """84.9 % is any share from 0.8485 to 0.8495."""
    assert agrees(claimed, ours, "share")


def test_zero_with_an_exponent_is_zero() -> None:
    """0e9 has no digit that could have been rounded to it; it does not agree with every number below 500 million."""
    assert not agrees("0e9", "12.000000000", "points")
    assert agrees("0e9", "0.000000000", "points")


@given(st.integers(-(10**12), 10**12), st.integers(0, 9), st.sampled_from([ROUND_HALF_EVEN, ROUND_HALF_UP]))
def test_a_rounded_number_agrees_and_the_next_one_does_not(units: int, places: int, rounding: str) -> None:
    """However a tie is rounded; a unit of the last place further away is another number."""
    ours = Decimal(units).scaleb(-9)
    last = Decimal(1).scaleb(-places)
    claimed = ours.quantize(last, rounding)
    assert agrees(f"{claimed:f}", f"{ours:.9f}", "points")
    further = claimed + last if claimed > ours or claimed == ours.quantize(last, ROUND_HALF_UP) else claimed - last
    assert agrees(f"{further:f}", f"{ours:.9f}", "points") == (abs(further - ours) <= last / 2)
    assert not agrees(f"{claimed + 2 * last:f}", f"{ours:.9f}", "points")
    assert agrees(f"{ours.quantize(last, ROUND_HALF_DOWN):f}", f"{ours:.9f}", "points")


def test_counts_agree_exactly() -> None:
    """3.0 is 3, as a data frame prints it; 3.4 is not."""
    assert agrees("3.0", 3, "count")
    assert not agrees("3.4", 3, "count")


def test_instants_agree_at_any_offset() -> None:
    """A missing one agrees with the words that data frames print for it."""
    assert agrees("2026-03-01 10:00:00+01:00", "2026-03-01T09:00:00Z", "instant")
    assert not agrees("2026-03-01", "2026-03-01T00:00:00Z", "instant")
    assert agrees("NaT", None, "instant")
    assert not agrees("", "2026-03-01T00:00:00Z", "instant")


def test_a_missing_value_agrees_with_the_words_for_it_but_a_text_is_compared_as_it_is() -> None:
    """A participant may be called NA."""
    assert all(agrees(word, None, "points") for word in ("", "NA", "nan", "None", "null"))
    assert not agrees("0", None, "points")
    assert not agrees("NA", "", "text")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_that_with_which_the_header_names_columns(delimiter: str) -> None:
    """A byte order mark, other cases and spaces in the header, CR LF, and an index without a name do no harm."""
    lines = [["", "Participant", "PRIZE"], ["0", "ada", "779.3"], ["1", "bo", "1234.5"], ["2", "'=x", "0"]]
    text = "\ufeff" + "\r\n".join(delimiter.join(line) for line in lines)
    assert compared(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "participant;prize\nada;779,30\nbo;1.234,50\n=x;0,00\n",
        'participant,prize\nada,"779,3"\nbo,"1.234,5"\n=x,0\n',
        "participant\tprize\tpaid\nada\t779,30\t0,0\nbo\t$1.234,50\t0\n=x\t0\t0\n",
        "participant;prize\nada;779,3\nbo;1235\n=x;0\n",
    ],
)
def test_a_file_may_have_decimal_commas(text: str) -> None:
    """A number that can only be read so decides for the whole file: 779,30 has no commas between thousands."""
    assert compared(text) == []


@pytest.mark.parametrize(
    ("text", "prize"),
    [
        ("participant;prize\nbo;1,234.50\n", 1_234_500_000),  # only a decimal point can be before the 50
        ("participant;prize\nbo;1,234\n", 1_234_000),  # in a file with semicolons
        ("participant;prize\nbo;1.234\n", 1_234_000),  # no number has a comma
        ('participant,prize\nbo,"1,234"\n', 1_234_000_000),
        ('participant,prize\nbo,"1,234"\nada,"0,5"\n', 1_234_000),
        ("participant;prize\nbo;1,234\nada;0.5\n", 1_234_000_000),
        ("participant;prize\nbo;1,234\nada;0.125\n", 1_234_000_000),
    ],
)
def test_what_a_comma_is_follows_from_the_other_numbers_of_the_file(text: str, prize: int) -> None:
    """1,234 is 1234, or 1.234 where commas are before decimals."""
    table = prizes([("spring", "bo", prize, 0), ("spring", "ada", 500_000, 0)])
    assert [each for each in compared(text, table, partial=True) if each.startswith("bo")] == []


def test_numbers_of_both_kinds_are_read_with_decimal_points() -> None:
    """So those with decimal commas differ: 1,5 is then no number."""
    assert compared("participant;prize\nada;779.30\nbo;1234,50\n", partial=True) == ["bo differs prize 1234,50 1234.50"]


@pytest.mark.parametrize("dash", ["-", "\N{EN DASH}", "\N{EM DASH}", "\N{MINUS SIGN}"])
def test_a_dash_is_an_empty_number(dash: str) -> None:
    """It agrees with nothing, not with 0, and before a number all but the longest are a minus sign."""
    assert agrees(dash, None, "points")
    assert not agrees(dash, "0.000000000", "points")
    assert not agrees(dash, None, "text")
    assert agrees(f"{dash}0.5", "-0.5", "points") == (dash != "\N{EM DASH}")


def test_contests_to_choose_from_are_named_first() -> None:
    """The rows of two contests cannot be told apart without a column for them."""
    table = prizes([("spring", "bo", 0, 0), ("autumn x", "bo", 0, 0)])
    assert refusal("participant,prize\n", table=table).endswith(
        "; use --contest spring or --contest 'autumn x', or add contest to the file"
    )
    many = prizes([(f"c{number}", "bo", 0, 0) for number in range(6)])
    assert refusal("participant,prize\n", table=many).endswith("--contest c4 …, or add contest to the file")


def test_columns_are_renamed_or_ignored() -> None:
    """A name may have an equals sign in it, and needs no regard to case only if it is ours."""
    text = "Who,Cash=$,Country\nbo,1234.5,NL\n"
    renamed = {"Who": "participant", "Cash=$": "prize"}
    assert compared(text, partial=True, renamed=renamed, ignored=["Country"]) == []


FAULTS = {
    "": "the file has no header",
    "\n\n": "the file has no header",
    "participant,prise\n": "our table has no column 'prise'; the nearest is prize; use --rename 'prise=prize'",
    "participant,prize,PRIZE\n": "the file has the column 'prize' twice",
    "prize,paid\n": "the file has no column of the key of prizes: contest, participant",
    "contest,prize\nspring,1\n": "cannot be told apart by contest alone; add participant",
    "participant,prize\nada\n": "line 2 has 1 cells, and the header has 2",
    "participant,prize\nada,1,2\n": "line 2 has 3 cells, and the header has 2",
    'participant,prize\n"ada,1\nbo,2\n': "line 2: unexpected end of data",
    "participant,prize\nada\0,1\n": "line 2: a line has a NUL byte",
    b"participant,prize\n\xff,1\n": "line 2: not UTF-8",
    "participant,prize\n".encode("utf-16"): "line 1: a line has a NUL byte",
    b"\x89PNG\r\n": "line 1: not UTF-8",
}


@pytest.mark.parametrize("text", FAULTS, ids=repr)
def test_a_file_that_cannot_be_compared_is_refused(text: bytes | str) -> None:
    """The message names the line or the column, and what to do."""
    assert FAULTS[text] in refusal(text)


def test_a_renamed_or_ignored_column_is_in_the_file() -> None:
    """Otherwise the name is mistyped, and something else would be compared."""
    assert "the file has no column 'Who'; it has: participant" in refusal("participant\n", renamed={"Who": "prize"})
    assert "the file has no column 'Who'" in refusal("participant\n", ignored=["Who"])


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read into memory whole."""
    monkeypatch.setattr(compare, "LARGEST_CLAIM", 20)
    assert "more than 20 bytes" in refusal("participant,prize\nada,1\n")


def test_a_key_may_be_an_instant_a_number_or_missing(tmp_path: Path) -> None:
    """A row is found however its key is printed: another offset, another number of decimals."""
    table = replay(export_log(tmp_path / "log.db")).table("standing")
    row = next(table.rows())
    at = row["from_at"].replace("Z", "+00:00").replace("T", " ")
    text = f"question,participant,from_at\n{row['question']},{row['participant']},{at}\n"
    assert compared(text, table, partial=True) == []


def exported_commands() -> list[AnyCommand]:
    """What tests export, without a title that has a NUL, which no CSV has."""
    return [command for command in export_commands() if getattr(command, "title", "") != TITLES["nul"]]


exported = log_fixture(exported_commands, "module", replay, refused=True)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_table_agrees_with_its_own_export_and_with_no_other(exported: Replay, name: str) -> None:
    """A changed cell and a row left out are found, also in tables with formulas for names. No CSV has a NUL."""
    table = exported.table(name)
    names = [column.name for column in table.columns]
    lines = [*as_csv(names, table.rows())]
    assert compared("\n".join(lines), table) == []
    if name in {"admissions", "kind_means", "wis_parts", "calibration_by_option", "resolution"}:
        assert not len(table)  # no contest of the log has such rows
        return
    assert [each.split()[-1] for each in compared("\n".join(lines[:-1]), table)] == ["missing"]
    value = next(column for column in reversed(names) if column not in CATALOGUE[name].key)
    rows = [{**row} for row in table.rows()]
    rows[-1][value] = "other"
    [difference] = compared("\n".join(as_csv(names, rows)), table)
    assert f"differs {value} other" in difference


def test_no_number_is_read_from_digits_of_other_scripts() -> None:
    """Nor from a point alone, nor from an exponent that no number needs."""
    assert [read_number(text) for text in ("٣", ".", "", "e5", "1e9999", "1.2.3", "0x10")] == [None] * 7
