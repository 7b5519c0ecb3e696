"""Clusters of questions: by a detail that the question records, and none without it."""

from typing import Any

import pytest

from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.projections.studies.clusters import cluster_of

HUB = "round_id=2026-03-07&location=US&place=a %26 b&output_type=pmf"


def question(name: str = "rain", **details: Any) -> QuestionOpened:
    """A question with these details."""
    return QuestionOpened(at=0, question=name, kind="binary", opens_at=0, closes_at=1, **details)


@pytest.mark.parametrize(
    ("asked", "field", "cluster"),
    [
        (question(group="east", category="weather"), "group", "east"),
        (question(group="east", category="weather"), "category", "weather"),
        (question(group="east", category="weather"), "question", ""),
        (question(tags=("wet", "place=Rome", "place=Oslo")), "tag:place", "Rome"),
        (question(tags=("place of=Rome", "place")), "tag:place", ""),
        (question(tags=("sum=1=2",)), "tag:sum", "1=2"),
        (question(tags=("place=",)), "tag:place", ""),
        (question(HUB), "tag:location", "US"),
        (question(HUB), "tag:place", "a & b"),
        (question(HUB, tags=("location=Ohio",)), "tag:location", "Ohio"),
        (question(HUB), "tag:horizon", ""),
        (question("location=US"), "tag:location", ""),  # no id of a hub
    ],
)
def test_the_cluster_of_a_question_is_what_it_records(asked: QuestionOpened, field: str, cluster: str) -> None:
    """A tag of its own comes before the task id of a hub; only the first tag of a name counts."""
    assert cluster_of(asked, field) == cluster
