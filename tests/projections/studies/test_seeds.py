"""Seeds follow from what is scored, whoever recorded it, and when, and in what order."""

from hashlib import sha256
from itertools import repeat

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand, ResolveQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies.seeds import seed_for
from forecast_ledger.projections.tables.boards import UNCERTAINTY
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.given import contest, entry, finalization, forecast, opened, renaming, resolution

RULES = RuleSet(name="own", kernel="brier", period="covered", total="mean", replicates=39)
DRAWN = (*UNCERTAINTY, "calibration_time_weighted", "corp_band")
pytestmark = pytest.mark.usefixtures("little_is_enough")


def told(
    who: str = "ada", least: str = "0.2", weights: tuple[str, ...] = ("2", "3", "0"), name: str = "cup"
) -> list[AnyCommand]:
    """Two participants on three questions, one of which has no weight; two have a group."""
    said: list[AnyCommand] = [contest(name, rules=RULES)]
    for place, weight in enumerate(weights):
        asked = f"q{place}"
        said += [opened(asked, group=None if place else "east"), entry(name, asked, weight=weight)]
        said += [forecast(asked, who, probability=f"0.{7 - place}"), forecast(asked, "bo", probability=least)]
    return [*said, *(resolution(f"q{place}") for place in range(len(weights)))]


def figures(projections: Projections) -> dict[str, list[list[object]]]:
    """What is drawn: the rows of tables without the names of contests and participants."""
    named = {"contest", "participant", "other", "baseline"}
    return {
        table: sorted(
            ([value for key, value in row.items() if key not in named] for row in projections.table(table).rows()),
            key=repr,
        )
        for table in DRAWN
    }


def test_the_digest_is_that_of_the_lines() -> None:
    """Weights 2 and 3 have no common divisor; scores are .3² and .8², .4² and .8²; q2 has no weight."""
    people = ["q0\t90000000\nq1\t160000000", "q0\t640000000\nq1\t640000000"]
    lines = ["q0\t2\teast", "q1\t3\t", *sorted(sha256(own.encode()).hexdigest() for own in people)]
    projections = oracle.projected(*told())
    digest = sha256("\n".join(lines).encode()).hexdigest()
    assert projections.scored_digest("cup") == digest
    assert projections.seed("cup", "pairwise") == sha256(f"{digest}\npairwise".encode()).digest()


def test_figures_do_not_depend_on_clocks_batches_order_names_or_what_else_is_recorded() -> None:
    """Nor on the unit of weights, on further questions without a weight, or on a seal, even a later one."""
    said = told()
    expected = figures(oracle.projected(*said))
    assert all(expected.values())
    recorded = [oracle.history(*said), oracle.history(*said, at=repeat(1_800_000_000_000_000))]
    assert recorded[0][-1].digest != recorded[1][-1].digest
    for events in recorded:
        assert figures(Projections(oracle.facts_in(events))) == expected
    spoken = [each for who in ("bo", "ada") for each in said if getattr(each, "participant", "") == who]
    answers = [each for each in said if isinstance(each, ResolveQuestion)]
    asked = [each for each in said if each not in spoken and each not in answers]
    asked[1:] = sorted(asked[1:], key=lambda each: getattr(each, "question", ""), reverse=True)
    for each in ([*asked, *spoken, *answers], [*said, renaming("bo", "zed")]):
        assert figures(oracle.projected(*each)) == expected
    others: list[list[AnyCommand]] = [
        told("cy"),
        told(weights=("4", "6")),
        [*said, opened("later"), forecast("later")],
        [*said, finalization()],
        [*said, opened("later"), finalization()],
    ]
    [digest] = {oracle.projected(*each).scored_digest("cup") for each in others}
    assert digest == oracle.projected(*told(name="cap")).scored_digest("cap")


def test_another_score_weight_or_question_is_another_seed() -> None:
    """(1 - 0.200000001)² is less than .8² by 1.6e-9."""
    seeds = {
        oracle.projected(*each).seed("cup", "intervals")
        for each in (told(), told(least="0.200000001"), told(weights=("2", "2", "0")), told(weights=("2", "3", "1")))
    }
    assert len(seeds) == 4


def test_both_parts_of_a_seed_count() -> None:
    """Another digest or table gives another seed."""
    assert len({seed_for(*names) for names in [("a", "b"), ("ab", ""), ("a", "bc"), ("c", "b")]}) == 4
