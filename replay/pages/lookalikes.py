"""Ids that look alike: a person can take one for the other, and a rule about one person can be got around."""

import unicodedata
from collections.abc import Iterable

from forecast_ledger.ledger.core.visible import without_unseen

# Letters of other scripts, each above the Latin letter that it looks like.
_OTHERS = (
    "АВЕЅІЈКМНОРСТУХѴҮӀԌԜ"  # Cyrillic
    "аеорсухѕіјѵүһԁԛԝӏ"
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϜϺ"  # Greek
    "αινορυϳ"
    "ՍՏՕհոսցօ"  # Armenian
)  # fmt: skip
_LATIN = (
    "ABESIJKMHOPCTYXVYlGW"
    "aeopcyxsijvyhdqwi"
    "ABEZHIKMNOPTYXFM"
    "aivopuj"
    "USOhnugo"
)  # fmt: skip
_AS_LATIN = str.maketrans(_OTHERS, _LATIN)
_SAME_SHAPE = str.maketrans("I1|0", "lllO")


def lookalikes(ids: Iterable[str]) -> list[tuple[str, ...]]:
    r"""Return the groups of ids that look alike, sorted.

    Two ids look alike if they are equal in form NFKC and without characters that cannot be seen, after letters of
    Cyrillic, Greek and Armenian that look Latin are replaced by these, and but for the case of letters. I, 1 and | may
    also stand for l, 0 for O, and rn for m.

    Source: Unicode Technical Standard #39, whose table this is a part of: pairs of one letter and one Latin letter.

    >>> lookalikes(["Ada", "ada", "аdа", "bob", "b0b", "Il", "l1", "cy\u200dd", "cyd"])
    [('Ada', 'ada', 'аdа'), ('Il', 'l1'), ('b0b', 'bob'), ('cyd', 'cy\u200dd')]
    """
    keys = {name: _keys(name) for name in sorted({*ids})}
    above: dict[str, str] = {}  # a look -> another of the same group; the first of a group is not here

    def first(look: str) -> str:
        while look in above:
            above[look] = after = above.get(above[look], above[look])
            look = after
        return look

    for by_case, by_shape in keys.values():
        if (one := first(by_case)) != (other := first(by_shape)):
            above[other] = one
    groups: dict[str, list[str]] = {}
    for name, (by_case, _) in keys.items():
        groups.setdefault(first(by_case), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _keys(name: str) -> tuple[str, str]:
    """Return how an id looks but for the case of letters, and also but for signs of the same shape."""
    latin = without_unseen(unicodedata.normalize("NFKC", name)).translate(_AS_LATIN)
    shape = latin.translate(_SAME_SHAPE).casefold().replace("rn", "m")
    return f"case {latin.casefold()}", f"shape {shape}"


def plain_id(name: str) -> str:
    r"""Return an id, with its code points beside it if it has other characters than ASCII.

    >>> plain_id("ada"), plain_id("zoë")
    ('ada', "zoë ('zo\\xeb')")
    """
    return name if name.isascii() else f"{name} ({name!a})"
