"""Conditions on the cells of a row, by which a map chooses the rows of a command."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.mapping.csv_patterns import read_pattern, whole_match
from forecast_ledger.replay.mapping.map_parts import read_part


class CellCondition(Struct, frozen=True, forbid_unknown_fields=True, rename={"none_of": "not"}):
    """What a cell must be, where a list of the texts allowed is not enough; all that is given must hold.

    none_of (`not` in a map): the texts that it must not be. empty: whether it is empty. matches: a pattern of the whole
    cell.
    """

    none_of: str | list[str] | None = None
    empty: bool | None = None
    matches: str | None = None


def cell_test(written: Any, column: str, path: str) -> Callable[[str], bool]:
    """Return whether a cell of a column is as a map asks. written: as `where` has it. path: its place in the map.

    Refuses: bad_map; the function, for a cell that is too long for a pattern: bad_csv.

    >>> [*map(cell_test(CellCondition(none_of=["", "NA"]), "answer", ""), ("yes", "", "NA", "na"))]
    [True, False, False, True]
    """
    condition = read_part(written, str | list[str] | CellCondition, path)
    if not isinstance(condition, CellCondition):
        return _texts(condition).__contains__
    tests = list[Callable[[str], bool]]()
    if condition.empty is not None:
        tests.append(lambda text: (not text) is condition.empty)
    if condition.none_of is not None:
        forbidden = _texts(condition.none_of)
        tests.append(lambda text: text not in forbidden)
    if condition.matches is not None:
        pattern = read_pattern(condition.matches, f"{path}.matches")
        tests.append(lambda text: whole_match(pattern, text, column) is not None)
    if not tests:
        raise Refused("bad_map", path, None, "a condition has `not`, `empty` or `matches`")
    return lambda text: all(test(text) for test in tests)


def _texts(given: str | list[str]) -> set[str]:
    return {given} if isinstance(given, str) else {*given}
