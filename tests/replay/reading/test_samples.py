"""What samples draw, in words: by hand, from two weeks of questions in two places."""

from typing import Any

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.reading import studies
from forecast_ledger.replay.reading.studies import sample_notes, warn_of_dependence
from tests.support import oracle
from tests.support.given import asked, contest, day, entry, forecast, opened


def projections(*clusters: str, weeks: int = 2, count: int = 2) -> Projections:
    """A contest on questions of some weeks, in two places; the first week is a good one."""
    rules = RuleSet(name="own", kernel="brier", period="covered", total="mean", clusters=clusters)
    told: list[AnyCommand] = [contest(rules=rules)]
    for number in range(weeks * count):
        week, place = divmod(number, count)
        about: dict[str, Any] = {"closes_at": day(12 + week), "tags": (f"week={week}", f"place={place}")}
        told += asked(f"q{number}", {"ada": f"0.{2 + 5 * (week % 2) + place}"}, **about)
    return oracle.projected(*told)


@pytest.mark.parametrize(
    ("clusters", "words"),
    [
        (("group",), "4 questions, each by itself, as if none had anything in common; no two have the same group"),
        (("question",), "4 questions, each by itself, as if none had anything in common"),
        (("tag:week",), "4 questions in 2 clusters by week, as if no two clusters had anything in common"),
        (
            ("tag:week", "tag:place"),
            "4 questions in 2 clusters by week and 2 clusters by place, as if no two clusters had anything in common",
        ),
    ],
)
def test_samples_are_told_with_what_they_assume(clusters: tuple[str, ...], words: str) -> None:
    """How many clusters there are, and by what."""
    assert sample_notes(projections(*clusters), "cup") == [f"samples draw {words}"]


@pytest.mark.parametrize("clusters", [("question",), ("group",), ("tag:week", "tag:place")])
def test_one_question_is_told_in_the_singular(clusters: tuple[str, ...]) -> None:
    """There is nothing that it could have in common with another, whatever the clusters."""
    assert sample_notes(projections(*clusters, weeks=1, count=1), "cup") == ["samples draw 1 question, by itself"]


def test_one_cluster_is_told_in_the_singular() -> None:
    """Two questions of one week, in two places."""
    words = "2 questions in 1 cluster by week and 2 clusters by place, as if no two clusters had anything in common"
    assert sample_notes(projections("tag:week", "tag:place", weeks=1), "cup") == [f"samples draw {words}"]


def test_a_warning_names_the_days_and_what_to_do() -> None:
    """Ten days, of which every second is a good one, are far from chance; drawn by week there is nothing to warn of."""
    [_, warning] = sample_notes(projections("question", weeks=10), "cup")
    assert warning.startswith("questions that count up to the same day have scores alike: over 10 days, ")
    assert "`clusters`" in warning
    assert warn_of_dependence(projections("tag:week", weeks=10), "cup") == ""


def test_a_contest_without_answers_has_no_samples() -> None:
    """Nothing is drawn."""
    empty = oracle.projected(contest(), opened(), entry(), forecast())
    assert studies.sample_notes(empty, "cup") == []
