"""Pictures of a hub's tasks: relative skills by horizon and location, by hand; how a page names a hub's questions."""

from pathlib import Path

from msgspec import structs

from forecast_ledger import report
from forecast_ledger.ledger.model.commands import OpenContest
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.replay.pages.pictures import Picture
from forecast_ledger.replay.pages.task_charts import TASK_CHARTS
from forecast_ledger.replay.reading.replay import replay
from tests.support.hubs import by_task
from tests.support.logs import log_fixture, written

log = log_fixture(lambda: by_task("US"), "module")  # of one location


def drawn(log: str, kind: str) -> Picture | None:
    """A picture of the contest."""
    return TASK_CHARTS[kind].draw(replay(log).projections, "cup")


def test_relative_skill_is_of_the_questions_of_one_horizon(log: str) -> None:
    """Ada's distances are 0.5, 2 and 0.2, bo's 1: the skills of two are √(own / other's).

    Cy's, at horizon 10 alone, is 0.5: the cube of ada's skill is 0.2 / 1 x 0.2 / 0.5 = 0.08.
    """
    picture = drawn(log, "horizon")
    assert picture is not None
    found = {(row["participant"], row["horizon"]): row["relative_skill"] for row in picture.rows}
    assert [horizon for who, horizon in found if who == "bo"] == ["0", "2", "10"], "numbers by size"
    assert found["ada", "0"] == found["bo", "2"] == "0.707106781"
    assert found["ada", "2"] == found["bo", "0"] == "1.414213562"
    assert [row["score"] for row in picture.rows if row["participant"] == "ada"][:2] == ["0.500000000", "2.000000000"]
    assert abs(float(found["ada", "10"]) ** 3 - 0.08) < 1e-8
    assert {(row["questions"], row["forecast_on"]) for row in picture.rows} == {(1, 1)}
    assert picture.title == "ada has the best relative skill for 2 of 3 horizons"
    assert "Each has 1 question." in picture.note
    values = [each for each in picture.specification["data"]["values"] if each["column"] == 0]
    assert sorted((each["verdict"], each["far"], each["skill"]) for each in values) == [
        ("better", 0.5, "0.71"),
        ("worse", 0.5, "1.41"),
    ]


def test_where_nobody_has_a_relative_skill_scores_are_drawn(tmp_path: Path) -> None:
    """Beside medians, scores may be below 0. At horizon 0, ada's distance is 0.5 and bo's 1: the median is 0.75."""
    commands = by_task("US")
    peers = RuleSet(name="x", quantile_kernel="pinball", reference="median_score", period="covered", total="mean")
    commands = [structs.replace(each, rules=peers) if isinstance(each, OpenContest) else each for each in commands]
    picture = drawn(written(tmp_path / "log.db", commands), "horizon")
    assert picture is not None
    assert picture.title == "Mean scores by horizon"
    assert "by these rules, nobody has a relative skill" in picture.note
    values = picture.specification["data"]["values"]
    cells = sorted((each["verdict"], float(each["skill"]), each["far"]) for each in values if each["column"] == 0)
    assert cells == [("better", -0.25, 1.0), ("worse", 0.25, 1.0)]
    assert {row["relative_skill"] for row in picture.rows} == {None}


def test_one_value_divides_nothing(log: str, tmp_path: Path) -> None:
    """Nor does a task id that no question has."""
    assert drawn(log, "location") is None
    assert drawn(written(tmp_path / "log.db", by_task("")), "location") is None


def test_a_page_names_the_questions_of_a_hub_by_their_titles(log: str, tmp_path: Path) -> None:
    """Their ids say the same in more letters; and only the score that questions have is described."""
    report(log, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<th scope="row" role="rowheader"><bdi>flow: horizon 10</bdi></th>' in page
    assert "horizon=10&amp;location=US&amp;output_type=quantile: flow" not in page
    assert "By quantiles" not in page
    assert "halved Brier" not in page
