"""Pictures of studies: their numbers by hand, and that they are drawn."""

import csv
from fractions import Fraction
from html import escape
from pathlib import Path

import pytest
from msgspec import structs

from forecast_ledger import report
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.replay.cli.main import FINE
from forecast_ledger.replay.cli.report import KINDS
from forecast_ledger.replay.explain.what_if import under_rules
from forecast_ledger.replay.pages import sections
from forecast_ledger.replay.pages.charts import CHARTS
from forecast_ledger.replay.pages.pictures import Picture, in_board_order, titled, to_svg
from forecast_ledger.replay.pages.study_charts import PLOTS
from forecast_ledger.replay.pages.task_charts import TASK_CHARTS
from forecast_ledger.replay.reading.replay import replay
from tests.replay.cli.test_main import run
from tests.support.given import choices, contest, day, ensemble, entry, forecast, numeric, opened, quartiles, resolution
from tests.support.logs import commands_of, log_fixture, written
from tests.support.paths import ROOT

RULES = RuleSet(name="own", kernel="brier_sum", cdf_kernel="crps", period="covered", total="mean")
NEW = sorted(PLOTS.keys() - CHARTS.keys() - TASK_CHARTS.keys())


def said() -> list[AnyCommand]:
    """Four questions on colours, four on depths, in the order of their answers."""
    told: list[AnyCommand] = [contest(rules=RULES)]
    for number, (red, answer) in enumerate([("0.7", "red"), ("0.7", "green"), ("0.9", "blue"), ("0.9", "blue")]):
        rest = "0.15" if red == "0.7" else "0.05"
        told += [choices(f"colour{number}"), entry(question=f"colour{number}")]
        told.append(forecast(f"colour{number}", probabilities={"red": red, "green": rest, "blue": rest}))
        told.append(resolution(f"colour{number}", outcome=answer, at=day(25, number)))
    for number, value in enumerate(("0.2", "1.1", "2.1", "3.9")):
        told += [numeric(f"depth{number}"), entry(question=f"depth{number}")]
        told.append(forecast(f"depth{number}", cdf=("0", "0.25", "0.5", "0.75", "1")))
        told.append(resolution(f"depth{number}", value=value, at=day(26, number)))
    return [*told, *measured()]


def measured() -> list[AnyCommand]:
    """Three questions by quantiles with the answer 2, whose forecasts have three equal quantiles; eve has one of them.

    By the definition of the weighted interval score, that of such a forecast is its distance from the answer.
    """
    rules = RuleSet(name="hub", quantile_kernel="pinball", period="covered", total="mean")
    told: list[AnyCommand] = [contest("hub", rules=rules)]
    for number in range(3):
        name = f"flow{number}"
        told += [quartiles(name), entry("hub", name), resolution(name, value="2", at=day(27, number))]
        given = {"ada": "1.5", "bo": "1", "cy": "4"} | ({} if number else {"eve": "1.9"})
        told[-1:-1] = [forecast(name, who, quantiles=(value,) * 3) for who, value in given.items()]
    return told


log = log_fixture(said, "module")


def contest_of(kind: str) -> str:
    """The contest that has something to show as this kind."""
    return "hub" if kind in {"relative_skill", "log_scale", "sharpness"} else "cup"


def drawn(log: str, kind: str) -> Picture:
    """A picture of its contest."""
    picture = PLOTS[kind].draw(replay(log).projections, contest_of(kind))
    assert picture is not None
    return picture


def test_options_are_counted_one_by_one(log: str) -> None:
    """Of two at 0.7 one happened, and of four at 0.15 one; of four at 0.05 two, of two at 0.9 none.

    With z = 1.96, two of four are from 0.15 to 0.85 by Wilson's interval, and none of two is up to 0.66.
    """
    picture = drawn(log, "options")
    assert [(row["mean_forecast"], row["n"], row["happened"]) for row in picture.rows] == [
        ("0.050000000", 4, 2),
        ("0.150000000", 4, 1),
        ("0.700000000", 2, 1),
        ("0.900000000", 2, 0),
    ]
    assert picture.title == "How often outcomes happened to which ada gave a probability"
    assert picture.note.startswith("12 probabilities, ")


def test_answers_are_counted_by_tenths(log: str) -> None:
    """The forecast is even on 0 to 4, so that 0.2 is at 0.05, 1.1 at 0.275, 2.1 at 0.525 and 3.9 at 0.975."""
    picture = drawn(log, "pit")
    counted = {row["from_probability"]: float(row["n"]) for row in picture.rows if float(row["n"])}
    assert counted == {"0.000000000": 1, "0.200000000": 1, "0.500000000": 1, "0.900000000": 1}
    assert picture.title == "Forecasts of ada: 4 answers, too few to say whether they are calibrated"
    assert picture.note.startswith("4 answers. ")
    [expected] = picture.specification["layer"][1]["data"]["values"]
    assert expected == {"n": 0.4}


def test_intervals_hold_the_answers_within_them(log: str) -> None:
    """The central half is from 1 to 3; 80% from 0.4 to 3.6; 90% from 0.2, which is within, to 3.8."""
    picture = drawn(log, "intervals")
    held = {row["probability"]: row["inside_share"] for row in picture.rows}
    assert held == {
        "0.500000000": "0.500000000",
        "0.800000000": "0.500000000",
        "0.900000000": "0.750000000",
        "0.950000000": "1.000000000",
    }
    assert picture.title == "Intervals of ada: 4 answers, too few to say whether they are calibrated"


def test_scores_are_means_of_parts_in_the_order_of_answers(tmp_path: Path) -> None:
    """Brier scores of five answers in two parts, of three and two; Bo has none on the last two."""
    rules = RuleSet(name="own", kernel="brier", period="covered", total="mean")
    told: list[AnyCommand] = [contest(rules=rules)]
    for tenth in (9, 8, 7, 6, 5):  # the last one is answered first
        name = f"q{tenth}"
        told += [opened(name), entry(question=name), forecast(name, probability=f"0.{tenth}")]
        told += [forecast(name, "bo", probability="0.5")] * (tenth < 8)
    told += [resolution(f"q{tenth}", at=day(25, tenth)) for tenth in (5, 7, 6, 9, 8)]
    picture = drawn(written(tmp_path / "log.db", told), "learning")
    assert [(row["participant"], row["part"], row["forecast_on"], row["mean_score"]) for row in picture.rows] == [
        ("ada", 1, 3, "0.166666667"),  # (0.25 + 0.16 + 0.09) / 3
        ("bo", 1, 3, "0.250000000"),
        ("ada", 2, 2, "0.025000000"),  # (0.04 + 0.01) / 2
    ]
    assert picture.title == "ada has a mean score of 0.167 on the first part of the questions, 0.025 on the last"
    assert "lower is better, on 2 parts" in picture.note


def test_relative_skill_is_of_common_questions_and_led_by_who_answered_half(log: str) -> None:
    """Mean scores are 0.5 for ada, 1 for bo, 2 for cy and 0.1 for eve, whose one question is like the others.

    The fourth power of each number is the product of the ratios of the own mean to all four.
    """
    picture = drawn(log, "relative_skill")
    powers = {row["participant"]: float(row["relative_skill"]) ** 4 for row in picture.rows}
    assert powers == pytest.approx(
        {"eve": 0.2 * 0.1 * 0.05, "ada": 5 * 0.5 * 0.25, "bo": 10 * 2 * 0.5, "cy": 20 * 4 * 2}
    )
    assert [*powers] == ["eve", "ada", "bo", "cy"]
    assert picture.title == (
        "ada has the best relative skill of those who forecast on at least half of the questions, 0.889"
    )


def test_a_score_on_a_log_scale_is_the_one_that_hubevals_publishes(tmp_path: Path) -> None:
    """0.540 is printed in "Getting started with hubEvals", "Scale transformations"; without logarithms it is 329."""
    projections = replay(written(tmp_path / "log.db", commands_of("hub-scores"))).projections
    picture = PLOTS["log_scale"].draw(projections, "natural")
    assert picture is not None
    assert [round(float(row["score"]), 3) for row in picture.rows] == [0.540]
    assert "ln(x + 1)" in picture.note
    assert PLOTS["relative_skill"].draw(projections, "natural") is None  # there is nobody else
    assert [row["score"][:3] for row in projections.table("leaderboard").rows()] == ["329"]


@pytest.mark.parametrize("weight", [1, 3])
def test_sharpness_and_misses_are_means_over_questions(tmp_path: Path, weight: int) -> None:
    """WIS is 2/3 (|y - m| / 2 + (u - l) / 4 + (l - y)⁺ + (y - u)⁺), and the second question has this weight.

    Ada's 12, 18, 24 has a width of 12, and the answer 30 is 12 above 18 and 6 above 24; with 12, 12, 18, 6 is 6 below
    both. Bo's 9, 12, 15 is 18 and 15 below 30; 6 is the median of 3, 6, 12.
    """
    rules = RuleSet(name="own", quantile_kernel="pinball", period="covered", total="mean")
    told: list[AnyCommand] = [contest(rules=rules)]
    said = {"30": {"ada": (12, 18, 24), "bo": (9, 12, 15)}, "6": {"ada": (12, 12, 18), "bo": (3, 6, 12)}}
    for answer, given in said.items():
        told += [quartiles(f"q{answer}", upper=60), entry(question=f"q{answer}", weight=weight if answer == "6" else 1)]
        told += [forecast(f"q{answer}", who, quantiles=made) for who, made in given.items()]
        told.append(resolution(f"q{answer}", value=answer))
    picture = PLOTS["sharpness"].draw(replay(written(tmp_path / "log.db", told)).projections, "cup")
    assert picture is not None
    parts: dict[str, list[tuple[int | Fraction, int | Fraction]]] = {  # dispersion, underprediction, overprediction
        "ada": [(2, 1), (8, 0), (0, 6)],
        "bo": [(1, Fraction(3, 2)), (16, 0), (0, 0)],
    }
    for row in picture.rows:
        means = [(first + weight * second) / Fraction(1 + weight) for first, second in parts.pop(row["participant"])]
        numbers = [row[name] for name in ("mean_wis", "dispersion", "underprediction", "overprediction")]
        assert [*map(Fraction, numbers)] == [sum(means), *means]
        assert row["questions"] == 2
    assert not parts
    share, first = {1: ("18%", "ada"), 3: ("26%", "bo")}[weight]  # 3/2 of 17/2; 11/8 of 43/8
    assert picture.title == f"Sharpness and misses: {share} of the mean WIS of {first} is dispersion"
    assert "other numbers" not in picture.note


def test_means_of_parts_are_those_that_hubevals_publishes(tmp_path: Path) -> None:
    """The mean scores of "Getting started with hubEvals" have three digits; on the shifted scale, the WIS is 0.540."""
    projections = replay(written(tmp_path / "log.db", commands_of("hub-scores"))).projections
    means = (ROOT / "data" / "hub-scores" / "expected" / "published_mean_wis.csv").read_text(encoding="utf-8")
    published = next(csv.DictReader(means.splitlines()))
    names = {"mean_wis": "wis"} | {name: name for name in ("dispersion", "underprediction", "overprediction")}
    picture = PLOTS["sharpness"].draw(projections, "natural")
    assert picture is not None
    [row] = picture.rows
    assert {name: float(f"{float(row[name]):.3g}") for name in names} == {
        name: float(published[column]) for name, column in names.items()
    }
    rules = projections.facts.contests["natural"].opened.rules
    shifted = under_rules(projections, "natural", structs.replace(rules, transform="log_shifted"))
    picture = PLOTS["sharpness"].draw(shifted, "natural")
    assert picture is not None
    assert picture.rows[0]["mean_wis"].startswith("0.539")
    assert "all numbers are of ln(x + 1) for each value and for the answer" in picture.note
    axis = picture.specification["encoding"]["x"]["axis"]
    assert axis["title"] == "mean WIS, of transformed values (log_shifted); lower is better"


def test_only_forecasts_by_quantiles_have_parts(tmp_path: Path) -> None:
    """Samples have none. Beside scores against peers, the picture says that its numbers are others."""
    peers = RuleSet(name="x", quantile_kernel="pinball", reference="peers")
    told: list[AnyCommand] = [contest(rules=peers), quartiles(), entry(question="flow")]
    said = [("ada", (2, 2, 2)), ("bo", (1, 2, 3))]  # ada's is the answer itself, and has no width
    told += [forecast("flow", who, quantiles=made) for who, made in said] + [resolution("flow", value="2")]
    told += [contest("gusts", rules=peers), ensemble(), entry("gusts", "depths")]
    told += [forecast("depths", who, samples=(1, 2, 3)) for who in ("ada", "bo")] + [resolution("depths", value="2")]
    projections = replay(written(tmp_path / "log.db", told)).projections
    assert PLOTS["sharpness"].draw(projections, "gusts") is None
    assert len(projections.table("leaderboard").only("contest", "gusts")) == 2
    picture = PLOTS["sharpness"].draw(projections, "cup")
    assert picture is not None
    assert "Scores on the board are other numbers" in picture.note
    assert picture.title == "Sharpness and misses"


def test_values_below_zero_have_no_log_scale(tmp_path: Path) -> None:
    """And no error either."""
    told = [
        command if not isinstance(command, OpenQuestion) else quartiles(command.question, lower=-1)
        for command in measured()
    ]
    assert PLOTS["log_scale"].draw(replay(written(tmp_path / "log.db", told)).projections, "hub") is None


@pytest.mark.parametrize("kind", NEW)
def test_a_picture_is_drawn(log: str, kind: str, tmp_path: Path) -> None:
    """By the command, as the picture itself; a contest without such forecasts has nothing to show."""
    assert run("plot", log, kind, str(tmp_path / "one.svg"), "--contest", contest_of(kind)).exit_code == FINE
    assert (tmp_path / "one.svg").read_text(encoding="utf-8") == to_svg(titled(drawn(log, kind)))
    other = replay(written(tmp_path / "log.db", [contest(), opened(), entry(), forecast()])).projections
    assert PLOTS[kind].draw(other, "cup") is None


def test_the_command_lists_every_picture_and_reports_have_fewer() -> None:
    """Its help is instant, so it does not import them."""
    assert tuple(sorted(PLOTS)) == KINDS
    assert NEW == ["intervals", "learning", "log_scale", "options", "pit", "relative_skill", "sharpness"]


def test_a_report_has_the_pictures_of_numeric_forecasts(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their findings, as that of forecasts by quantiles; options and learning are drawn only by the command.

    Of four answers, a report has no picture of calibration, and says so.
    """
    report(log, tmp_path / "page.html")
    few = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert few.count("it would be drawn from fewer than 20 forecasts") == 3  # three quantiles have no tenths
    monkeypatch.setattr(sections, "_LEAST", {})
    report(log, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for kind in NEW:
        title, always = f"<h3>{escape(drawn(log, kind).title)}</h3>", contest_of(kind) == "hub"
        assert (title in few, title in page) == (always, kind not in {"options", "learning"})


def test_the_first_of_the_board_stands_for_all(log: str) -> None:
    """Not the first of the alphabet; who has less than half of the most answers is last."""
    projections = replay(log).projections
    assert [row["participant"] for row in projections.table("leaderboard").only("contest", "hub").rows()] == [
        *("eve", "ada", "bo", "cy")
    ]
    assert in_board_order(projections, "hub", {"bo": 3, "ada": 3, "cy": 3, "eve": 1}) == ["ada", "bo", "cy", "eve"]
    assert in_board_order(projections, "hub", {"bo": 4, "eve": 2, "away": 4}) == ["eve", "bo", "away"]
