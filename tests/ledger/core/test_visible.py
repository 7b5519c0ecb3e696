"""Characters that cannot be seen, compared with another reading of Unicode's properties."""

import re
import sys
import unicodedata

import pytest

from forecast_ledger.ledger.core.visible import BLANK, IGNORABLE, unseen, without_unseen


def test_the_ranges_are_those_of_unicode() -> None:
    """Every code point that Default_Ignorable_Code_Point has in the tables of Rust's regex, which polars uses."""
    polars = pytest.importorskip("polars")
    characters = polars.Series([chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000])
    expected = characters.filter(characters.str.contains(r"(?s)^\p{Default_Ignorable_Code_Point}$")).to_list()
    ours = [chr(code) for first, last in IGNORABLE for code in range(ord(first), ord(last) + 1)]
    assert ours == expected
    assert all(unseen(character) for character in [*ours, *BLANK])
    assert without_unseen("".join(["a", *ours, *BLANK, "b"])) == "ab"


def test_the_blank_characters_are_those_that_no_property_covers() -> None:
    """Each is neither ignorable nor white space nor unassigned; Unicode names it as what its reason says."""
    assert not {*BLANK} & {chr(code) for first, last in IGNORABLE for code in range(ord(first), ord(last) + 1)}
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
