"""Tables: schema, order of rows, printing, and a digest that depends on nothing else."""

import json
import struct
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT, format_instant
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.columns import (
    KINDS,
    Column,
    Ids,
    Values,
    ids,
    join_numbers,
    plain_values,
    printed_values,
)
from forecast_ledger.projections.core.table import Table, TableParts
from forecast_ledger.projections.core.wide_int import WideInt
from tests.support.effort import times
from tests.support.paths import ROOT

COLUMNS = (
    Column("who", "id", "who it is"),
    Column("when", "instant", "when it was"),
    Column("worth", "money", "what it is worth"),
)
Rows = list[tuple[str, int, int | None]]
ROWS: Rows = [("bob", 5, 10), ("ada", 7, None), ("bob", 3, 2**70)]
NAMES = st.sampled_from(["ada", "bob", "cyd", "a", "b", "ab", "é", "z"])
SMALL = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2)
RANDOM = st.lists(st.tuples(NAMES, SMALL, SMALL | st.none()), max_size=4)


def column(values: list[int]) -> Int64Array:
    """Values as a column."""
    return np.array(values, np.int64)


def table(rows: Rows, labels: list[str] | None = None, **schema: Any) -> Table:
    """A table of these rows; ids are numbered as in labels, by default as they appear."""
    numbered = labels or list(dict.fromkeys(who for who, _, _ in rows))
    who = Ids(column([numbered.index(who) for who, _, _ in rows]), numbered)
    values: tuple[Values, ...] = (who, column([when for _, when, _ in rows]), [worth for _, _, worth in rows])
    return replace(Table("things", 1, COLUMNS, values), **schema)


def shown(table: Table) -> list[tuple[Any, ...]]:
    """The rows as printed."""
    return [tuple(row.values()) for row in table.rows()]


def printed(kind: str, value: int) -> Any:
    """The printed form of a value of a kind; an array and a list must agree."""
    schema = (Column("it", kind, "it"),)
    [from_list], [from_array] = (
        list(Table("one", 1, schema, (values,)).rows()) for values in ([value], column([value]))
    )
    assert from_list == from_array
    return from_list["it"]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("instant", 0, "1970-01-01T00:00:00Z"),
        ("instant", -1, "1969-12-31T23:59:59.999999Z"),
        ("probability", 10**11, "1"),
        ("probability", 15 * 10**9, "0.15"),
        ("probability", 1, "0.00000000001"),
        ("points", -1_500_000_000, "-1.500000000"),
        ("points", 1, "0.000000001"),
        ("points", 0, "0.000000000"),
        ("term", -693_147_180_560, "-0.693147180560"),
        ("share", 10**9, "1.000000000"),
        ("money", 108_000_000, "108.00"),
        ("money", 1, "0.000001"),
        ("money", 5_500_000, "5.50"),
        ("seconds", 86_400_000_000, "86400"),
        ("seconds", -1, "-0.000001"),
        ("count", 3, 3),
        ("integer", -3, "-3"),
    ],
)
def test_each_kind_is_printed_in_its_own_way(kind: str, value: int, text: str | int) -> None:
    """Decimals and instants are printed as text, counts as integers, and nothing is rounded."""
    assert printed(kind, value) == text
    assert type(printed(kind, value)) is type(text)


def test_ids_and_texts_are_printed_as_they_are() -> None:
    """Ids are printed as their labels, also if no row has some of these, and texts unchanged."""
    columns = Column("who", "id", "who"), Column("said", "text", "what")
    words = Table("words", 1, columns, (Ids(column([2, 1]), ["eve", "ada", "bob"]), ["3/3", ""]))
    assert list(words.rows()) == [{"who": "bob", "said": "3/3"}, {"who": "ada", "said": ""}]


def test_numbers_beyond_64_bits_are_printed_whole() -> None:
    """Lists hold integers of any size."""
    [row] = Table("one", 1, (Column("it", "integer", "it"),), ([-(10**40)],)).rows()
    assert row == {"it": "-" + "1" + "0" * 40}


def test_a_missing_value_is_printed_as_none() -> None:
    """It does not become text."""
    assert shown(table(ROWS))[1] == ("ada", "1970-01-01T00:00:00.000007Z", None)


@given(st.lists(st.integers(FIRST_INSTANT, LAST_INSTANT) | st.none(), max_size=6), st.integers(-(10**4), 10**4))
@example([FIRST_INSTANT, LAST_INSTANT, None, 0, 1, -1], 0)
@settings(max_examples=times(25), deadline=None)
def test_many_instants_are_printed_as_single_ones_are(some: list[int | None], offset: int) -> None:
    """As `datetime` prints them, in any year, with a fraction only if it is not 0."""
    values = [*some, *range(offset * 10**6, (offset + 100) * 10**6, 10**6)]
    assert printed_values(values, "instant") == [None if each is None else format_instant(each) for each in values]


def test_instants_outside_the_calendar_are_not_printed() -> None:
    """Neither one nor many."""
    for many in (1, 100):
        with pytest.raises(OverflowError):
            printed_values([LAST_INSTANT + 1 + number for number in range(many)], "instant")


def test_every_kind_has_a_unit() -> None:
    """Only the kinds "count" and "integer" have none."""
    assert [name for name, kind in KINDS.items() if not kind.unit] == ["count", "integer"]


def test_rows_are_sorted_by_the_text_of_ids_and_the_value_of_numbers() -> None:
    """The codes of ids do not matter; negative numbers come first."""
    rows: Rows = [("bob", 5, 1), ("Zed", 9, 2), ("bob", -3, 3), ("ada", 7, 4), ("école", 0, 5)]
    sorted_table = table(rows, ["école", "bob", "ada", "Zed"]).sorted_by("who", "when")
    assert [(row["who"], row["worth"]) for row in sorted_table.rows()] == [
        ("Zed", "0.000002"),
        ("ada", "0.000004"),
        ("bob", "0.000003"),
        ("bob", "0.000001"),
        ("école", "0.000005"),
    ]
    assert [row["worth"] for row in sorted_table.sorted_by("when").rows()][:2] == ["0.000003", "0.000005"]


def test_the_first_name_sorts_before_the_second() -> None:
    """Rows with the same instant are sorted by id."""
    sorted_table = table([("b", 1, 1), ("a", 2, 2), ("a", 1, 3)]).sorted_by("when", "who")
    assert [(row["who"], row["worth"]) for row in sorted_table.rows()] == [
        ("a", "0.000003"),
        ("b", "0.000001"),
        ("a", "0.000002"),
    ]


KEYED = st.lists(st.tuples(NAMES, st.integers(0, 2), NAMES, st.integers(-2, 2)), max_size=12)
KEYS = st.permutations(["first", "second", "third", "fourth"]).flatmap(
    lambda names: st.integers(1, 4).map(lambda count: names[:count])
)


@given(KEYED, KEYS)
@example([("a", 0, "b", 1), ("a", 0, "a", 2), ("a", 0, "b", 0)], ["first", "third", "fourth"])
@example([("b", 2, "a", 0), ("b", 1, "a", 1), ("a", 0, "a", 2)], ["first", "second", "fourth"])
def test_any_columns_sort_as_their_tuples_do(rows: list[tuple[str, int, str, int]], names: list[str]) -> None:
    """Keys may be ids and numbers in any order; equal rows keep their order."""
    every = ["first", "second", "third", "fourth"]
    schema = tuple(Column(name, kind, "") for name, kind in zip(every, ("id", "count", "id", "count"), strict=True))
    first, third = ids([row[0] for row in rows]), ids([row[2] for row in rows])
    second, fourth = column([row[1] for row in rows]), column([row[3] for row in rows])
    sorted_table = Table("rows", 1, schema, (first, second, third, fourth)).sorted_by(*names)
    places = [every.index(name) for name in names]
    assert list(sorted_table.plain()) == sorted(rows, key=lambda row: [row[place] for place in places])


def test_ids_of_too_many_labels_for_one_number_are_sorted_too() -> None:
    """Four columns of 65,537 labels each have more combinations than 62 bits."""
    labels = [f"{i:05}" for i in range(2**16 + 1)]
    columns = [Ids(column([40_000, 1, 1, 0]), labels) for _ in range(4)]
    columns[3] = Ids(column([0, 9, 8, 7]), labels)
    schema = tuple(Column(f"c{i}", "id", "") for i in range(4))
    sorted_table = Table("wide", 1, schema, tuple(columns)).sorted_by("c0", "c1", "c2", "c3")
    assert [row[0] + row[3] for row in sorted_table.plain()] == ["0000000007", "0000100008", "0000100009", "4000000000"]


def test_a_table_sorted_by_nothing_keeps_its_order() -> None:
    """`sorted_by` without names returns the rows unchanged."""
    assert shown(table(ROWS).sorted_by()) == shown(table(ROWS))


def test_the_length_of_a_table_is_its_number_of_rows() -> None:
    """The first column may be of ids, an array or a list."""
    assert (len(table(ROWS)), len(table([]))) == (3, 0)
    assert len(Table("one", 1, (Column("it", "count", "it"),), (column([1, 2]),))) == 2
    assert len(Table("one", 1, (Column("it", "count", "it"),), ([1, None],))) == 2


def test_only_returns_the_rows_of_one_id() -> None:
    """The rows keep their order; an id that does not occur gives no rows."""
    assert shown(table(ROWS).only("who", "bob")) == [shown(table(ROWS))[0], shown(table(ROWS))[2]]
    assert shown(table(ROWS).only("who", "zoe")) == []
    assert shown(table(ROWS, ["zoe", "bob", "ada"]).only("who", "zoe")) == []
    with pytest.raises(TypeError, match="when is not a column of ids"):
        table(ROWS).only("when", "5")


@given(RANDOM, st.permutations(["ada", "bob", "cyd", "a", "b", "ab", "é", "z", "unused"]))
def test_a_digest_does_not_depend_on_how_ids_are_numbered(rows: Rows, labels: list[str]) -> None:
    """Labels that no row uses do not change it either."""
    assert table(rows, labels).digest() == table(rows).digest()


@given(RANDOM, RANDOM)
def test_two_tables_have_one_digest_if_and_only_if_their_rows_are_the_same(one: Rows, other: Rows) -> None:
    """The order of rows matters."""
    assert (table(one).digest() == table(other).digest()) == (one == other)


# --- tables in parts


@given(RANDOM, RANDOM, st.lists(st.integers(0, 9), max_size=5), st.integers(1, 4))
def test_a_table_in_parts_has_the_rows_and_the_digest_of_the_whole(
    rows: Rows, more: Rows, cuts: list[int], size: int
) -> None:
    """However it was divided, and however ids were numbered; no part but the last has fewer rows than a part has."""
    rows = rows + more
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forecast_ledger.projections.core.table.PART_ROWS", size)
        ends = sorted(min(cut, len(rows)) for cut in cuts)
        given = [table(rows[begin:end]) for begin, end in pairwise([0, *ends, len(rows)])]
        parts = TableParts(given)
        found = [*parts]
        assert [row for part in found for row in part.plain()] == rows
        assert [len(part) for part in found[:-1]] == [size] * ((len(rows) - 1) // size if rows else 0)
        assert (parts.rows, parts.digest) == (len(rows), table(rows).digest())
        assert [*parts] != []
        assert (parts.rows, parts.digest) == (len(rows), table(rows).digest())


def test_the_digest_of_a_large_table_is_made_of_those_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema, the number of rows, and the digest of each part: its schema, rows and columns, as of a small table.

    A column is in 64-bit numbers, the least byte first, wherever all its numbers in that part fit and none is missing.
    """
    monkeypatch.setattr("forecast_ledger.projections.core.table.PART_ROWS", 2)
    schema = ["things", 1, [["who", "id"], ["when", "instant"], ["worth", "money"]]]
    rows: Rows = [("bob", 5, 10), ("ada", 7, -1), ("bob", 3, None), ("cy", 2, 4), ("cy", 1, 2**70)]
    columns = [
        (["ada", "bob"], [1, 0], [5, 7], struct.pack("<2q", 10, -1)),
        (["bob", "cy"], [0, 1], [3, 2], b'[null,"4"]'),
        (["cy"], [0], [1], b'["1180591620717411303424"]'),
    ]

    def sha(*pieces: bytes) -> str:
        return sha256(b"".join(pieces)).hexdigest()

    def coded(plain: object) -> bytes:
        return json.dumps(plain, separators=(",", ":")).encode()

    parts = [
        sha(
            coded([*schema, len(who)]),
            coded(labels),
            *(struct.pack(f"<{len(who)}q", *each) for each in (who, at)),
            worth,
        )
        for labels, who, at, worth in columns
    ]
    assert table(rows).digest() == sha(coded([*schema, 5, parts]))
    assert table(rows[:2]).digest() == sha(coded([*schema, 2]), *_small(columns[0]))


def _small(columns: tuple[list[str], list[int], list[int], bytes]) -> list[bytes]:
    """The bytes of the columns of a table with one part; this one's last column is a list."""
    labels, who, at, _ = columns
    return [json.dumps(labels, separators=(",", ":")).encode(), struct.pack("<4q", *who, *at), b'["10","-1"]']


@given(RANDOM, RANDOM, st.integers(1, 3))
def test_two_large_tables_have_one_digest_if_and_only_if_their_rows_are_the_same(
    one: Rows, other: Rows, size: int
) -> None:
    """Also where a column is an array in one of them and a list in the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forecast_ledger.projections.core.table.PART_ROWS", size)
        assert (table(one).digest() == table(other).digest()) == (one == other)


WIDE = st.lists(st.integers(-(2**134), 2**134) | st.integers(-2, 2), max_size=9)


def whole(numbers: Values) -> Table:
    """One column of integers."""
    return Table("whole", 1, (Column("it", "integer", "it"),), (numbers,))


@given(WIDE, WIDE)
def test_a_column_of_wide_integers_equals_one_of_python_integers(one: list[int], other: list[int]) -> None:
    """They are printed, selected, compared, concatenated and digested alike."""
    mine, theirs = WideInt.from_integers(one), WideInt.from_integers(other)
    assert plain_values(mine) == one
    assert (whole(mine).digest() == whole(theirs).digest()) == (one == other)
    uncarried = WideInt(mine.low + (1 << 36), mine.middle - 1, mine.high)
    assert whole(uncarried).digest() == whole(mine).digest()
    assert [row["it"] for row in whole(mine).rows()] == [str(number) for number in one]
    assert list(whole(mine).rows_at(np.arange(len(one))[::-1]).plain()) == [(number,) for number in one[::-1]]
    both, most = join_numbers([mine, theirs]), min(len(one), len(other))
    assert (plain_values(both), len(whole(both))) == (one + other, len(one) + len(other))
    same = next((i for i in range(most) if one[i] != other[i]), most)
    assert whole(mine).common(whole(theirs), most) == same
    assert plain_values(join_numbers([mine, other, column([5])])) == [*one, *other, 5]


@given(
    st.lists(st.integers(-(2**134), 2**134) | st.sampled_from([2**63, 2**63 - 1, -(2**63), -(2**63) - 1]), min_size=3)
)
@example([-(2**63), 2**63 - 1, 7, 7, 7])
@example([2**63, 0, -(2**63) - 1])
@example([2**100, 0, 2**72])
@settings(max_examples=times(20), deadline=None)
def test_the_digest_of_a_large_table_is_that_of_its_numbers_whether_wide_or_not(numbers: list[int]) -> None:
    """Each part of a column of wide integers is in 64 bits where all of it fits, and else in texts, as of a list."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forecast_ledger.projections.core.table.PART_ROWS", 2)
        assert whole(WideInt.from_integers(numbers)).digest() == whole(list[Any](numbers)).digest()


def test_sorting_a_sorted_table_returns_the_same_table() -> None:
    """A table that is in order is not copied."""
    schema = (Column("it", "count", "it"),)
    rows = Table("rows", 1, schema, (np.arange(9_000),))
    assert rows.sorted_by("it") is rows
    assert list(replace(rows, values=(np.arange(9_000)[::-1],)).sorted_by("it").plain()) == list(rows.plain())


CHANGED: list[Rows] = [
    [("cyd", 5, 10), *ROWS[1:]],
    [("ada", 5, 10), *ROWS[1:]],
    [("bob", 6, 10), *ROWS[1:]],
    [("bob", 5, 11), *ROWS[1:]],
    [("bob", 5, None), *ROWS[1:]],
    [ROWS[0], ("ada", 7, 0), ROWS[2]],
    [*ROWS[:2], ("bob", 3, 2**70 + 1)],
    [*ROWS[:2], ("bob", -3, 2**70)],
    [ROWS[1], ROWS[0], ROWS[2]],
    ROWS[:2],
    [*ROWS, ROWS[2]],
    [],
]


@pytest.mark.parametrize("rows", CHANGED, ids=range(len(CHANGED)))
def test_a_digest_changes_with_any_one_value(rows: Rows) -> None:
    """An id, a number, a missing value, the order and the number of rows all change it."""
    assert table(rows).digest() != table(ROWS).digest()


@pytest.mark.parametrize(
    "schema",
    [
        {"name": "thing"},
        {"version": 2},
        {"columns": (COLUMNS[0]._replace(name="whom"), *COLUMNS[1:])},
        {"columns": (*COLUMNS[:2], COLUMNS[2]._replace(kind="points"))},
    ],
    ids=["name", "version", "column", "kind"],
)
def test_a_digest_changes_with_the_schema(schema: dict[str, Any]) -> None:
    """The table's name and version and each column's name and kind change it, even without rows."""
    assert table(ROWS, **schema).digest() != table(ROWS).digest()
    assert table([], **schema).digest() != table([]).digest()


def test_a_digest_does_not_depend_on_the_meanings_of_columns() -> None:
    """The text of a meaning may be improved."""
    better = (COLUMNS[0]._replace(meaning="the person"), *COLUMNS[1:])
    assert table(ROWS, columns=better).digest() == table(ROWS).digest()


def test_a_digest_separates_the_values_of_columns() -> None:
    """Ids "ab" and "c" are not "a" and "bc", and the order of columns matters."""
    columns = Column("one", "id", "one"), Column("two", "id", "two")
    digests = {
        Table("pairs", 1, columns, tuple(Ids(column([0]), [label]) for label in pair)).digest()
        for pair in (("ab", "c"), ("a", "bc"), ("abc", ""), ("c", "ab"))
    }
    assert len(digests) == 4


def test_a_table_is_read_by_column_and_by_row() -> None:
    """A column and a row have values as printed: decimals and instants as text, None for a missing one."""
    assert table(ROWS)["worth"] == ["0.00001", None, "1180591620717411.303424"]
    assert table(ROWS)["who"] == ["bob", "ada", "bob"]
    assert [row["when"] for row in table(ROWS)] == [f"1970-01-01T00:00:00.00000{micros}Z" for micros in (5, 7, 3)]
    assert table(ROWS)._ipython_key_completions_() == ["who", "when", "worth"]


@pytest.mark.parametrize("ask", [lambda it: it["wort"], lambda it: it.only("wort", "1"), lambda it: it.chart("wort")])
def test_a_column_that_a_table_lacks_is_named_with_the_nearest_first(ask: Any) -> None:
    """Whoever asks for it, by its name or for a chart."""
    with pytest.raises(KeyError, match="things has no column 'wort'; it has worth, when, who"):
        ask(table(ROWS))


def test_the_digest_that_the_guide_for_auditors_computes_is_that_of_the_table() -> None:
    """docs/auditor.md, "A pack to keep", hashes the bytes of this table by hand."""
    columns = (Column("who", "id", ""), Column("paid", "money", ""))
    digest = Table("t", 2, columns, (ids(["bo", "ada"]), [None, 3])).digest()
    assert f"\n'{digest}'\n" in (ROOT / "docs/auditor.md").read_text(encoding="utf-8")
