"""The names of the outcomes of each question, so that an event in words has names where the log has numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import Event, OutcomesChanged, QuestionOpened
from forecast_ledger.ledger.storing.store import Store

Outcomes = Callable[[str], Sequence[str]]  # a question -> the names of its outcomes, in their order; () if not known
_NAMING = (b'"question_opened.', b'"outcomes_changed.')


def unnamed(_: str) -> Sequence[str]:
    """Return no names: outcomes are printed as their numbers.

    >>> unnamed("rain")
    ()
    """
    return ()


class OutcomeNames:
    """The names of outcomes, learned from the events as they are read.

    earlier: the events before the first that is learned from. They are read once, when an event is about a question
    that is not known.

    >>> names = OutcomeNames()
    >>> rain = QuestionOpened(at=0, question="rain", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> names.learn(rain)
    >>> names.of("rain"), names.of("wind")
    (('yes', 'no'), ())
    """

    def __init__(self, earlier: Iterable[Event] = ()) -> None:
        self._names: dict[str, tuple[str, ...]] = {}
        self._earlier: Iterable[Event] = earlier

    def learn(self, event: Event) -> None:
        """Keep the names of a question that an event opens, and those that are added.

        Removed outcomes keep their places, so a forecast without them has fewer numbers than there are names.
        """
        if isinstance(event, QuestionOpened):
            self._names[event.question] = event.outcomes
        elif isinstance(event, OutcomesChanged):
            self._names[event.question] = (*self.of(event.question), *event.added)

    def of(self, question: str) -> Sequence[str]:
        """Return the names of a question's outcomes, in their order; () if it has a range, or is not known."""
        if question not in self._names:
            earlier, self._earlier = self._earlier, ()
            for event in earlier:
                self.learn(event)
        return self._names.get(question, ())


def openings(store: Store, last: int) -> Iterator[Event]:
    """Yield the events that name outcomes in the rows up to a log position, without a check of their digests.

    A damaged row gives no names: it is `verify` that reports damage, and a row after it can be looked at all the same.
    """
    for rows in log.pages_up_to(store.pages(), last):
        for row in rows:
            if any(tag in row for tag in _NAMING):
                try:
                    yield log.decode_row(row, last).event
                except Corrupt:
                    continue
