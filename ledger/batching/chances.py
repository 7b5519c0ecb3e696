"""The probabilities of a forecast by outcome, read for many forecasts at once, in 1e-9."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, cast

from msgspec import Struct, json

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.deciding.distributions import TOLERANCE

MOST_OUTCOMES = 10_000  # whose probabilities are far from the most bytes of a command
_encode = json.Encoder(order="deterministic").encode
_Read = tuple[str, "Chances | None"]


class Chances(Struct, frozen=True, gc=False):
    """The probabilities of a forecast, 1e-9, which sum to 1, and their outcomes, in the order in which they were given.

    is_in_doubt: whether the sum is 1 because one of several equal probabilities has taken the difference: the first of
    them, so that it depends on the order of the outcomes.
    """

    outcomes: tuple[str, ...]
    units: Sequence[int]
    is_in_doubt: bool


class Choices(NamedTuple):
    """The outcomes of a question of multiple choice, in its order. field: of a forecast that has its numbers."""

    outcomes: tuple[str, ...]
    field: str = "probabilities"

    def units(self, given: object) -> Sequence[int] | None:
        """Return the probabilities of a forecast in the order of the question; None if it may refuse them.

        >>> Choices(("x", "y")).units(Chances(("y", "x"), [10**9, 0], is_in_doubt=False))
        [0, 1000000000]
        """
        if type(given) is not Chances:
            return None
        if given.outcomes == self.outcomes:
            return given.units
        chances = dict(zip(given.outcomes, given.units, strict=True))
        if given.is_in_doubt or chances.keys() != {*self.outcomes}:
            return None
        return [*map(chances.__getitem__, self.outcomes)]


class _Written(NamedTuple):
    """How probabilities of some outcomes are written in the normal form. order: returns them in its order."""

    template: str
    order: Callable[[Sequence[int]], Any]


def read_chances(given: Sequence[object], id_text: Callable[[str], str]) -> Iterator[_Read]:
    """Yield the normal form and the probabilities of each forecast; None if they may be refused.

    id_text: returns an id as JSON; empty if it may be refused.

    >>> [*read_chances([{"y": "0.4999999", "x": "0.5"}, {"x": "1.5"}], '"{}"'.format)]
    [('{"x":500000100,"y":499999900}', Chances(outcomes=('y', 'x'), units=[499999900, 500000100], ...)), ('', None)]
    """
    if (numbers := _numbers(given)) is None:
        if len(given) == 1:
            yield "", None
        for each in given if len(given) > 1 else ():
            yield from read_chances([each], id_text)
        return
    known: dict[tuple[str, ...], _Written | None] = {}
    begin = 0
    for each in given:
        outcomes = tuple(cast("dict[str, values.Number]", each))
        begin, units = begin + len(outcomes), numbers[begin : begin + len(outcomes)]
        if outcomes not in known:
            known[outcomes] = _written(outcomes, id_text)
        written = known[outcomes]
        yield ("", None) if written is None else _chances(outcomes, units, written)


def _written(outcomes: tuple[str, ...], id_text: Callable[[str], str]) -> _Written | None:
    """Return how probabilities of some outcomes are written; None if one of these may be refused."""
    texts = [*map(id_text, outcomes)]
    if not all(texts):
        return None
    order = [*json.decode(_encode(dict(zip(outcomes, range(len(outcomes)), strict=True)))).values()]
    parts = [texts[index].replace("%", "%%") + ":%d" for index in order]
    return _Written(f"{{{','.join(parts)}}}", itemgetter(*order))


def _numbers(given: Sequence[object]) -> list[int] | None:
    """Return the probabilities of forecasts, 1e-9; None if some have none, or one of them is refused."""
    if {*map(type, given)} != {dict} or not all(given):
        return None
    by_outcome = cast("Sequence[dict[str, values.Number]]", given)
    if max(map(len, by_outcome)) > MOST_OUTCOMES or {*map(type, chain.from_iterable(by_outcome))} != {str}:
        return None
    try:
        numbers = [*chain.from_iterable(map(dict.values, by_outcome))]
        units = values.read_measures(numbers, PROBABILITY, "probabilities")
    except Refused:
        return None
    return units if min(units) >= 0 and max(units) <= PROBABILITY else None


def _chances(outcomes: tuple[str, ...], units: list[int], written: _Written) -> _Read:
    missing, is_in_doubt = PROBABILITY - sum(units), False
    if missing:
        if abs(missing) > TOLERANCE:
            return "", None
        largest = max(units)
        is_in_doubt = units.count(largest) > 1
        units[units.index(largest)] += missing
    return written.template % written.order(units), Chances(outcomes, units, is_in_doubt)
