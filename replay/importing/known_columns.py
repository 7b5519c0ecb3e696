"""The columns and fields that an import does not read: each is named once in its file, if it says something.

Every reader has a table of what its format has: each column is used, or ignored for a reason.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from forecast_ledger.replay.importing.source_items import NotCarried
from forecast_ledger.replay.writing.command_lines import InputPlace

_EMPTY: tuple[Any, ...] = (None, "", "NA", "N/A", [], {})


class Columns(NamedTuple):
    """The columns of a table, or the fields of an object.

    ignored: name -> why it changes no score. only: name -> the values that are read, if others would change a score.
    noun: what they are called.
    """

    used: Collection[str]
    ignored: Mapping[str, str]
    only: Mapping[str, Collection[Any]] = {}
    noun: str = "column"


def ignored_fields(*groups: Mapping[str, str]) -> dict[str, str]:
    """Return why each name is ignored, from names with spaces between them by their reason.

    >>> ignored_fields({"words": "title text"})
    {'title': 'words', 'text': 'words'}
    """
    return {name: reason for group in groups for reason, names in group.items() for name in names.split()}


class Unread:
    """What one file has that is not read.

    >>> unread = Unread(Columns(["id"], {"title": "words"}, {"kind": ["a"]}))
    >>> row = {"id": "1", "title": "x", "kind": "b", "weight": "2", "none": ""}
    >>> [item.reason for _, item in unread.of(InputPlace(2), row)]
    ["a value that is not read of the column 'kind': 'b'", "a column that is not read: 'weight'"]
    >>> [*unread.of(InputPlace(3), row)]
    []
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._passed = {*columns.used, *columns.ignored} - {*columns.only}

    def of(self, place: InputPlace, row: Mapping[str, Any]) -> Iterator[tuple[InputPlace, NotCarried]]:
        """Yield the columns of a row that say something and are not read, unless a row before it had them."""
        noun, only = self._columns.noun, self._columns.only
        for name in sorted(row.keys() - self._passed):
            if row[name] in _EMPTY or row[name] in only.get(name, ()):
                continue
            self._passed.add(name)
            reason = f"a {noun} that is not read: {name!r}" if name else f"a {noun} without a name"
            if name in only:
                reason = f"a value that is not read of the {noun} {name!r}: {str(row[name])[:80]!r}"
            yield place, NotCarried(reason)
