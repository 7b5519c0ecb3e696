"""Characters that cannot be seen: two ids that differ in them alone look the same.

Source: Unicode 16.0, DerivedCoreProperties.txt, Default_Ignorable_Code_Point: the ranges are those of Unicode 14.0.
"""

import re
import unicodedata

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
_UNSEEN = re.compile(f"[{''.join(f'{first}-{last}' for first, last in IGNORABLE)}{''.join(BLANK)}]")


def unseen(text: str) -> str:
    r"""Return the first character of a text that cannot be seen, as its code point and name; empty if there is none.

    >>> unseen("ada\ufe0f"), unseen("ada")
    ('U+FE0F VARIATION SELECTOR-16', '')
    """
    found = None if text.isascii() else _UNSEEN.search(text)
    return "" if found is None else f"U+{ord(found[0]):04X} {unicodedata.name(found[0], '')}".rstrip()


def without_unseen(text: str) -> str:
    r"""Return a text without the characters that cannot be seen.

    >>> without_unseen("a\u200dd\u3164a")
    'ada'
    """
    return _UNSEEN.sub("", text)
