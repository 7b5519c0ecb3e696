"""Lookups by id: the contest or question, or a refusal with the ids that exist."""

import re

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.replay.reading.log import find_contest
from tests.support.paths import SOURCES

BASELINE = PRESETS["baseline"]
CUP, ARENA = (
    Contest(events.ContestOpened(at=0, contest=name, rules=BASELINE, payable_unit=10_000), position=position)
    for position, name in enumerate(["cup", "arena"], 1)
)


def test_a_contest_is_found_by_its_id() -> None:
    """The contest itself, not a copy."""
    facts = Facts()
    facts.contests = {"cup": CUP, "arena": ARENA}
    assert find_contest(facts, "arena") is ARENA


@pytest.mark.parametrize(("contests", "there"), [({}, "none"), ({"cup": CUP, "arena": ARENA}, "arena, cup")])
def test_a_contest_that_is_not_there_is_refused_with_those_that_are(contests: dict[str, Contest], there: str) -> None:
    """The ids are sorted, whatever the order in which the contests were opened."""
    facts = Facts()
    facts.contests = contests
    with pytest.raises(Refused) as refused:
        find_contest(facts, "league")
    assert refused.value.code == "unknown_contest"
    assert str(refused.value).endswith(
        f"the log has no such contest; it has: {there}; use the id of a contest in the log"
    )


def test_what_is_unknown_is_refused_in_one_place() -> None:
    """The ledger's refusals of unknown ids are made where state is looked up, those of reports in `lookup`."""
    for code in ["unknown_contest", "unknown_question"]:
        raised = re.compile(rf'raise Refused\(\s*"{code}"')
        assert {path.stem for path in SOURCES if raised.search(path.read_text("utf-8"))} == {"state", "lookup"}
