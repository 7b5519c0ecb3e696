"""Patterns in a map: regular expressions of Python that no cell can make slow."""

import re

from forecast_ledger.ledger.core.errors import Refused

LONGEST_CELL = 1_000  # characters of a cell that a pattern reads
MOST_WAYS = 5_000_000  # in which a pattern may be tried on such a cell
_TOKEN = re.compile(
    r"(?P<repeat>([*+?]|\{(?P<least>\d*)(?P<to>,(?P<most>\d*))?(?<!\{)\})[?+]?)"
    r"|(?P<other>\(\?(?!:)|\\[1-9])"
    r"|(?P<open>\((\?:)?)|(?P<close>\))|(?P<either>\|)"
    r"|\[\^?\]?(\\.|[^\]\\])*\]|\\.|.",
    re.ASCII | re.DOTALL,
)


def read_pattern(text: str, path: str) -> re.Pattern[str]:
    r"""Return a pattern of a map. path: its place in the map.

    Refuses: bad_map (no regular expression, it has a backreference or `(?` without a colon, or it can be tried on a
    cell in too many ways, as `(\d+)*` can).

    >>> read_pattern(r"(Q\d+) .*", "where.Name").fullmatch("Q08 Rain?")[1]
    'Q08'
    """
    try:
        pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise Refused("bad_map", path, text, f"no regular expression of Python: {error}") from None
    if any(token["other"] for token in _TOKEN.finditer(text)):
        raise Refused("bad_map", path, text, "a pattern has no backreferences, and no group with (? but (?:")
    if _ways(text) > MOST_WAYS:
        detail = f"there are more than {MOST_WAYS:,} ways to try it on a cell of {LONGEST_CELL:,} characters"
        remedy = r"bound its repeats, such as \d{1,4} for \d+, and repeat no group that has a repeat or a choice"
        raise Refused("bad_map", path, text, detail, remedy=remedy)
    return pattern


def whole_match(pattern: re.Pattern[str], text: str, field: str) -> re.Match[str] | None:
    """Return the match of a pattern with the whole of a cell. Refuses: bad_csv (a cell that is too long)."""
    if len(text) > LONGEST_CELL:
        detail = f"the cell has {len(text):,} characters; a pattern reads cells of up to {LONGEST_CELL:,}"
        raise Refused("bad_csv", field, text, detail, remedy="shorten the cell, or read it without a pattern")
    return pattern.fullmatch(text)


def _ways(text: str) -> int:
    r"""Return a bound of the ways in which the choices and repeats of a pattern can be tried on a cell.

    >>> _ways(r"(yes|no)\d{1,3}"), _ways(".*"), _ways(".*(a+)*") > MOST_WAYS
    (6, 1001, True)
    """
    outer = list[tuple[int, int]]()
    choices, before, last = 0, 1, 1  # of the alternatives before, of the items before the last, of the last
    for token in _TOKEN.finditer(text):
        if token["repeat"]:
            last = _repeated(last, token)
        elif token["open"]:
            outer.append((choices, before * last))
            choices, before, last = 0, 1, 1
        elif token["close"]:
            last, (choices, before) = choices + before * last, outer.pop()
        elif token["either"]:
            choices, before, last = choices + before * last, 1, 1
        else:
            before, last = before * last, 1
    return choices + before * last


def _repeated(ways: int, repeat: re.Match[str]) -> int:
    """Return the ways of a repeat of an item that has so many ways; more than the most are not counted."""
    least, most = {"*": (0, LONGEST_CELL), "+": (1, LONGEST_CELL), "?": (0, 1)}.get(repeat[0][0], (0, 0))
    if repeat[0][0] == "{":
        least = min(int(repeat["least"] or 0), LONGEST_CELL)
        most = least if repeat["to"] is None else min(int(repeat["most"] or LONGEST_CELL), LONGEST_CELL)
    if ways == 1:
        return max(most - least, 0) + 1
    total = 0
    for times in range(least, most + 1):
        total += ways**times
        if total > MOST_WAYS:
            break
    return total
