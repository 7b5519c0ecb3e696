"""Characters that cannot be seen, compared with another reading of Unicode's properties."""

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from forecast_ledger.ledger.core.visible import (
    BLANK,
    IGNORABLE,
    UNPRINTABLE,
    is_known_plain,
    is_plain,
    unseen,
    without_unseen,
)
from tests.support.effort import LONG

# The characters that tests try one by one: of the planes without any, and of those for private use, a short run tries
# a few.
EVERY = 127 if LONG == 1 else 1
TRIED = [
    *map(chr, [*range(0x40000), *range(0x40000, 0xE0000, EVERY)]),
    *map(chr, [*range(0xE0000, 0xF0000), *range(0xF0000, sys.maxunicode + 1, EVERY)]),
]


@cache
def every_character() -> Any:
    """Every character but surrogates."""
    polars = pytest.importorskip("polars")
    return polars.Series([chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000])


def matching(pattern: str) -> list[str]:
    """Every character that a pattern matches by the tables of Rust's regex, which polars uses; without surrogates."""
    characters = every_character()
    found: list[str] = characters.filter(characters.str.contains(f"(?s)^{pattern}$")).to_list()
    return found


def characters_of(ranges: Iterable[tuple[str, str]]) -> list[str]:
    """Every character of some ranges."""
    return [chr(code) for first, last in ranges for code in range(ord(first), ord(last) + 1)]


def test_what_cannot_be_printed_is_what_unicode_14_has() -> None:
    """Categories C and Z but for the space and what is not assigned; the category of a character does not change."""
    surrogates = [chr(code) for code in range(0xD800, 0xE000)]
    expected = {*matching(r"[\p{Age=14.0}&&[\p{C}\p{Z}]--[\p{Cn} ]]"), *surrogates}
    assert {*characters_of(UNPRINTABLE)} == expected
    assert not [character for character in expected if is_plain(character) or is_known_plain(character)]


def test_a_character_that_is_newer_than_this_python_is_plain_and_not_known() -> None:
    """Every character that Unicode 14.0 does not assign is plain, so that a later version decides nothing else."""
    newer = matching(r"[\P{Age=14.0}]")
    assert len(newer) > 800_000
    assert all(map(is_plain, {*newer} & {*TRIED}))
    assert not is_known_plain("a\u0378")


@pytest.mark.parametrize("text", ["e\u0301", "\u212b", "\U0001fae8e\u0301", "\u0344\u0378"])
def test_the_form_of_characters_that_every_version_has_is_checked(text: str) -> None:
    """Also beside a character of Unicode 15.0, or of none."""
    assert not is_plain(text)


def test_a_mark_that_unicode_14_lacks_ends_what_can_be_composed() -> None:
    """By Unicode 15.0, U+1E4EE is a mark below, past which a dot above joins its letter; by 14.0, it is none."""
    assert is_plain("a\U0001e4ee\u0307")


def test_what_this_python_knows_as_plain_is_plain() -> None:
    """A log that was written with any version is read with every one: here, each alone, and a quarter after others."""
    for number, text in enumerate(TRIED):
        for each in (text, f"e{text}", f"\u1b05{text}") if number % 4 == 0 or LONG > 1 else (text,):
            assert is_plain(each) or not is_known_plain(each)


def test_the_ranges_are_those_of_unicode() -> None:
    """Every code point that Default_Ignorable_Code_Point has in the tables of Rust's regex, which polars uses."""
    expected = matching(r"\p{Default_Ignorable_Code_Point}")
    ours = characters_of(IGNORABLE)
    assert ours == expected
    assert all(unseen(character) for character in [*ours, *BLANK])
    assert without_unseen("".join(["a", *ours, *BLANK, "b"])) == "ab"


def test_the_blank_characters_are_those_that_no_property_covers() -> None:
    """Each is neither ignorable nor white space nor unassigned; Unicode names it as what its reason says."""
    assert not {*BLANK} & {*characters_of(IGNORABLE)}
    assert not re.search(r"\s", "".join(BLANK))
    named = {character: unicodedata.name(character, "") for character in BLANK}
    assert {name for character, name in named.items() if unicodedata.category(character) != "Cn"} >= {
        "BRAILLE PATTERN BLANK",
        "OBJECT REPLACEMENT CHARACTER",
        "KHITAN SMALL SCRIPT FILLER",
        "MUSICAL SYMBOL NULL NOTEHEAD",
    }


@pytest.mark.parametrize(
    "text", ["ada", "Zoë", "Ελένη", "علی", "क्षमा", "李雷", "q-1", "№ 5", "🌧", "a b", "e\u0301x", "\u0e33", "\u2588"]
)
def test_what_can_be_seen_is_not_found(text: str) -> None:
    """Letters of any script, marks on them, signs and emoji without selectors."""
    assert (unseen(text), without_unseen(text)) == ("", text)
