"""An adjusted score is the participant's scores less the effects of their questions."""

from fractions import Fraction

import pytest

from forecast_ledger import explain, replay
from forecast_ledger.ledger.core.errors import Refused
from tests.projections.studies.test_designs import toy
from tests.support.given import exclusion
from tests.support.logs import log_fixture

log = log_fixture([*toy(), exclusion(participant="H", level="no_rank")])


def test_the_parts_have_the_mean_that_the_table_has(log: str) -> None:
    """Of everyone on the board, to the nine decimals that effects are shown with."""
    rows = [*replay(log).table("adjusted_scores").rows()]
    for row in rows:
        found = explain(log, "adjusted", row["name"], row["participant"])
        assert {name: found.number[name] for name in row} == row
        assert len(found.parts) == row["questions"]
        weight = sum((Fraction(part["weight"]) for part in found.parts), Fraction(0))
        total = sum(Fraction(part["adjusted"]) * Fraction(part["weight"]) for part in found.parts)
        assert abs(total / weight - Fraction(row["adjusted_score"])) <= Fraction(1, 10**9)
        assert all(
            Fraction(part["score"]) - Fraction(part["effect"]) == Fraction(part["adjusted"]) for part in found.parts
        )
    assert [row["participant"] for row in rows] == ["B", "A", "H"]


def test_the_scores_are_those_of_the_forecasts(log: str) -> None:
    """A said 0.9 of yes, 0.2 of no and 0.6 of yes."""
    found = explain(log, "adjusted", "cup", "A")
    assert {part["question"]: Fraction(part["score"]) for part in found.parts} == {
        "cup q1": Fraction(1, 100),
        "cup q2": Fraction(4, 100),
        "cup q3": Fraction(16, 100),
    }
    assert [part["participants"] for part in found.parts] == [1, 2, 2]  # H is not fitted


def test_an_adjusted_score_that_does_not_exist_is_refused(log: str) -> None:
    """The contest is looked for first."""
    for where, who, code in (("nowhere", "A", "unknown_contest"), ("cup", "nobody", "nothing_standing")):
        with pytest.raises(Refused) as refused:
            explain(log, "adjusted", where, who)
        assert refused.value.code == code
