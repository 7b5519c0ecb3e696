"""Refusals of a file summed up: the first of each code are passed on, and all are counted."""

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.writing.append import OnRefusal
from forecast_ledger.replay.writing.command_lines import InputPlace

FIRST = 3  # refusals of each code that are passed on


class RefusalSummary:
    """Passes the first refusals of each code on, and counts all. An instance is an `OnRefusal`.

    counts: code -> how many, in the order in which the codes came.

    >>> summary = RefusalSummary(lambda place, refused: print(place.describe(refused)), first=1)
    >>> for line in (4, 7):
    ...     summary(InputPlace(line), Refused("id_empty", "id"))
    line 4: id_empty: id: the id is empty; give an id of at least one character
    >>> summary.lines()
    ['refused: 2 x id_empty; the first 1 are above, and --errors json prints all']
    """

    def __init__(self, tell: OnRefusal, first: int = FIRST) -> None:
        self._tell, self._first = tell, first
        self.counts: dict[str, int] = {}

    def __call__(self, place: InputPlace, refused: Refused) -> None:
        """Count a refusal."""
        count = self.counts[refused.code] = self.counts.get(refused.code, 0) + 1
        if count <= self._first:
            self._tell(place, refused)

    def lines(self) -> list[str]:
        """Return a line for each code, if some refusals were not passed on; else none."""
        if all(count <= self._first for count in self.counts.values()):
            return []
        above = f"; the first {self._first} are above, and --errors json prints all"
        return [f"refused: {count:,} x {code}{above * (count > self._first)}" for code, count in self.counts.items()]
