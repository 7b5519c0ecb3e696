"""Characters that cannot be printed or seen: two ids that differ in them alone look the same.

An audit depends on them, so they are the same with every version of Python, whose Unicode changes from 14.0 on.
Source: Unicode 16.0, DerivedCoreProperties.txt, Default_Ignorable_Code_Point: the ranges are those of Unicode 14.0.
"""

import re
import unicodedata
from collections.abc import Iterable

# The first and the last of each range: joiners, variation selectors, fillers, marks of direction, tags, and places that
# are reserved for more of them.
IGNORABLE = (
    ("\u00ad", "\u00ad"), ("\u034f", "\u034f"), ("\u061c", "\u061c"), ("\u115f", "\u1160"), ("\u17b4", "\u17b5"),
    ("\u180b", "\u180f"), ("\u200b", "\u200f"), ("\u202a", "\u202e"), ("\u2060", "\u206f"), ("\u3164", "\u3164"),
    ("\ufe00", "\ufe0f"), ("\ufeff", "\ufeff"), ("\uffa0", "\uffa0"), ("\ufff0", "\ufff8"),
    ("\U0001bca0", "\U0001bca3"), ("\U0001d173", "\U0001d17a"), ("\U000e0000", "\U000e0fff"),
)  # fmt: skip
# Characters that no property calls ignorable or white space, and that have no ink.
BLANK = {
    "\u2800": "a cell of Braille without dots",
    "\ufffc": "stands for an object that a text does not have",
    "\U00013441": "a hieroglyph that is a gap",
    "\U00013442": "a hieroglyph that is half a gap",
    "\U00016fe4": "a filler between the parts of a Khitan character",
    "\U0001d159": "a note without a head",
}
# Categories C and Z of Unicode 14.0, without the space and what it does not assign: controls, formats, private use.
UNPRINTABLE = (
    ("\0", "\x1f"), ("\x7f", "\xa0"), ("\xad", "\xad"), ("\u0600", "\u0605"), ("\u061c", "\u061c"),
    ("\u06dd", "\u06dd"), ("\u070f", "\u070f"), ("\u0890", "\u0891"), ("\u08e2", "\u08e2"), ("\u1680", "\u1680"),
    ("\u180e", "\u180e"), ("\u2000", "\u200f"), ("\u2028", "\u202f"), ("\u205f", "\u2064"), ("\u2066", "\u206f"),
    ("\u3000", "\u3000"), ("\ud800", "\uf8ff"), ("\ufeff", "\ufeff"), ("\ufff9", "\ufffb"),
    ("\U000110bd", "\U000110bd"), ("\U000110cd", "\U000110cd"), ("\U00013430", "\U00013438"),
    ("\U0001bca0", "\U0001bca3"), ("\U0001d173", "\U0001d17a"), ("\U000e0001", "\U000e0001"),
    ("\U000e0020", "\U000e007f"), ("\U000f0000", "\U000ffffd"), ("\U00100000", "\U0010fffd"),
)  # fmt: skip


def _ranges(ranges: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{first}-{last}" for first, last in ranges)


_UNSEEN = re.compile(f"[{_ranges(IGNORABLE)}{''.join(BLANK)}]")
_UNPRINTABLE = re.compile(f"[{_ranges(UNPRINTABLE)}]")


def is_plain(text: str) -> bool:
    r"""Return whether a text can be printed and is in Unicode form NFC, as far as every version of Unicode agrees.

    Characters that Unicode 14.0 does not have may be anything. The form is that of the characters of Unicode 3.2, which
    no later version changes; https://www.unicode.org/policies/stability_policy.html

    >>> is_plain("Zoë"), is_plain("Zoe\u0308"), is_plain("a\tb")
    (True, False, False)
    """
    if text.isascii():
        return text.isprintable()
    if _UNPRINTABLE.search(text):
        return False
    category = unicodedata.ucd_3_2_0.category
    return unicodedata.is_normalized("NFC", text) or unicodedata.is_normalized(
        "NFC", "".join(" " if category(character) == "Cn" else character for character in text)
    )


def is_known_plain(text: str) -> bool:
    """Return whether a text can be printed and is in form NFC by the Unicode of this Python, which knows all of it."""
    return text.isprintable() and unicodedata.is_normalized("NFC", text)


def not_plain(text: str) -> str:
    r"""Say which character of a text is not plain, since a text may look like its plain form; empty if none is found.

    >>> not_plain("Zoe\u0308")
    'character 3 is U+0065 LATIN SMALL LETTER E, where form NFC has U+00EB LATIN SMALL LETTER E WITH DIAERESIS'
    >>> not_plain("a\tb"), not_plain("ada ")
    ('character 2 is U+0009, which cannot be printed', 'it begins or ends with a space')
    """
    composed = unicodedata.normalize("NFC", text)
    for number, (character, other) in enumerate(zip(text, composed, strict=False), 1):
        if character != other:
            return f"character {number} is {_named(character)}, where form NFC has {_named(other)}"
        if not character.isprintable() or _UNPRINTABLE.search(character):
            return f"character {number} is {_named(character)}, which cannot be printed"
    return "it begins or ends with a space" if text.strip(" ") != text else ""


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()


def unseen(text: str) -> str:
    r"""Return the first character of a text that cannot be seen, as its code point and name; empty if there is none.

    >>> unseen("ada\ufe0f"), unseen("ada")
    ('U+FE0F VARIATION SELECTOR-16', '')
    """
    match = None if text.isascii() else _UNSEEN.search(text)
    return "" if match is None else _named(match[0])


def without_unseen(text: str) -> str:
    r"""Return a text without the characters that cannot be seen.

    >>> without_unseen("a\u200dd\u3164a")
    'ada'
    """
    return _UNSEEN.sub("", text)
