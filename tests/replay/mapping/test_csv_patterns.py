"""Patterns of a map: what is read, and that no cell makes one slow."""

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.mapping.csv_texts import LONGEST_CELL, read_pattern, whole_match
from tests.support.waiting import quick


@pytest.mark.parametrize(
    ("pattern", "cell", "matches"),
    [
        (r"Q\d+", "Q08", True),
        (r"Q\d+", "Q08 ", False),
        (r"Q\d+", "xQ08", False),
        (r"Q\d+", "Q08\n", False),
        ("yes|no", "no", True),
        ("yes|no", "yesno", False),
        ("", "", True),
        ("[]a(*]*", "a(]*", True),
        (r"a{2}\(", "aa(", True),
        ("a{}", "a{}", True),
        ("a{,2}", "aaa", False),
        ("(?:ab){1,3}", "abab", True),
        (".* - .*", "Q08 - Will it rain?", True),
    ],
)
def test_a_pattern_is_of_the_whole_cell(pattern: str, cell: str, matches: bool) -> None:
    """It is `re.fullmatch`, so nothing may stand before or behind it."""
    assert (whole_match(read_pattern(pattern, "where.a"), cell, "a") is not None) is matches


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(a", "no regular expression of Python"),
        ("a{99999999999}", "no regular expression of Python"),
        ("(" * 5_000 + ")" * 5_000, "no regular expression of Python"),
        (r"(a)\1", "no backreferences"),
        ("(?=a)a", r"no group with (? but (?:"),
        ("(?P<x>a)", r"no group with (? but (?:"),
        ("(?i)a", r"no group with (? but (?:"),
        (r"(\d+)*", "ways to try it"),
        ("(a|aa)+", "ways to try it"),
        ("(?:a|b){30}", "ways to try it"),  # 2^30
        ("a?" * 23 + "a" * 23, "ways to try it"),  # 2^23 > 5,000,000
        (".*.*.*", "ways to try it"),  # 1,001^3
        ("((a{0,9}){9}){9}", "ways to try it"),
    ],
)
def test_a_pattern_that_could_be_slow_is_refused_with_the_map(pattern: str, says: str) -> None:
    """What is repeated multiplies the ways to try a pattern: nested repeats exceed them, whatever the cell is."""
    with pytest.raises(Refused) as refused:
        read_pattern(pattern, "where.a")
    assert (refused.value.code, refused.value.field) == ("bad_map", "where.a")
    assert says in refused.value.detail


@pytest.mark.parametrize("pattern", [".*.*x", r"\d+[1-9]{1,4}\d+x", "a?" * 22 + "a" * 22, "(?:1|11){1,20}x"])
@pytest.mark.parametrize("cell", ["1" * LONGEST_CELL, "a" * 21 + "b", "a" * LONGEST_CELL])
@quick(10)
def test_the_slowest_patterns_end_soon(pattern: str, cell: str) -> None:
    """Each of these is near the most ways, and the cells are chosen against it."""
    assert whole_match(read_pattern(pattern, "where.a"), cell, "a") is None


def test_a_cell_that_is_too_long_for_a_pattern_is_refused() -> None:
    """A thousand characters are read; one more is not."""
    pattern = read_pattern(".*", "where.a")
    assert whole_match(pattern, "x" * 1_000, "a")
    with pytest.raises(Refused, match="the cell has 1,001 characters") as refused:
        whole_match(pattern, "x" * 1_001, "a")
    assert (refused.value.code, refused.value.field) == ("bad_csv", "a")
