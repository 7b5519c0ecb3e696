"""Scores for the dashboard of a hub: values by hand, the options, and what is left out."""

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, Range
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.files.dashboard_export import OPTIONS, export_dashboard
from forecast_ledger.replay.files.hub_export import HubExport
from forecast_ledger.replay.importing.hub_questions import RULES
from forecast_ledger.replay.reading.replay import replay
from tests.replay.cli.test_main import run
from tests.support.given import contest, entry, exclusion, forecast, numeric, opened, resolution
from tests.support.logs import commands_of, written
from tests.support.paths import DATA
from tests.support.sources import import_into

FIRST, SECOND = (f"week={week}&place=US&output_type=quantile" for week in (1, 2))
SPAN = Range(lower=0, upper=100, levels=("0.25", "0.5", "0.75"), decimals=4)


def two_weeks(name: str = "admissions quantile", *, questions: tuple[str, ...] = (FIRST, SECOND)) -> list[AnyCommand]:
    """A contest of two weeks with the answer 10; ada alone forecasts in the second."""
    said = {"ada": (8, 10, 14), "bo": (10, 12, 14), "cy": (2, 4, 6)}
    first, second = questions
    return [
        contest(name, rules=RULES),
        *(opened(question, kind="numeric", range=SPAN) for question in questions),
        *(entry(name, question) for question in questions),
        *(forecast(first, who, quantiles=quantiles) for who, quantiles in said.items()),
        forecast(second, "ada", quantiles=(12, 16, 20)),
        *(resolution(question, value=10) for question in questions),
    ]


def exported(folder: Path, commands: list[AnyCommand], baseline: str | None = None) -> HubExport:
    """Export a log of these commands to the folder `out`."""
    return export_dashboard(replay(written(folder / "log.db", commands)), folder / "out", baseline)


def scores(out: Path, *place: str) -> list[dict[str, str]]:
    """The rows of a file."""
    with out.joinpath("scores", *place, "scores.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def close(found: str, expected: Fraction | float) -> bool:
    """Whether a number agrees to the eight decimals to which a kernel rounds."""
    return abs(float(found) - float(expected)) < 2e-8


def test_the_scores_of_a_hub_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    """The hub's README has the scores; a penalty is what dispersion, 2/3 (0.1 x width), leaves of them."""
    with Ledger.open(tmp_path / "log.db") as ledger:
        import_into(ledger, "hubverse", DATA / "hub-import")
    found = export_dashboard(replay(tmp_path / "log.db"), tmp_path / "out", "team1-a")
    target = "wk inc flu hosp", "All rounds"
    one, two = scores(tmp_path / "out", *target)
    assert (one["model_id"], one["n"], two["model_id"], two["n"]) == ("team1-a", "2", "team2-b", "2")
    means = [(Fraction(3) + Fraction(4, 3)) / 2, (Fraction(11, 15) + Fraction(58, 15)) / 2]
    widths = [Fraction(2, 3) * Fraction(20, 10), Fraction(2, 3) * Fraction(6 + 18, 20)]
    below = [Fraction(0), Fraction(2, 3) * (2 + Fraction(4, 2)) / 2]
    for row, mean, width, over in zip((one, two), means, widths, below, strict=True):
        parts = {"wis": mean, "dispersion": width, "overprediction": over, "underprediction": mean - width - over}
        assert all(close(row[metric], expected) for metric, expected in parts.items())
        assert close(row["wis_scaled_relative_skill"], mean / means[0])
    assert [(row["ae_median"], row["interval_coverage_80"]) for row in (one, two)] == [("2.5", "1"), ("2.5", "0.5")]
    rows = scores(tmp_path / "out", *target, "reference_date")
    by_hand = [Fraction(3), Fraction(4, 3), Fraction(11, 15), Fraction(58, 15)]
    assert [row["reference_date"] for row in rows] == ["2026-03-07", "2026-03-14"] * 2
    assert all(close(row["wis"], expected) for row, expected in zip(rows, by_hand, strict=True))
    assert [row["ae_median_scaled_relative_skill"] for row in rows] == ["1", "NA", "0.2", "NA"], "a mean of 0"
    assert found.left_out == {"a contest without scores of forecasts by quantiles": 5}


def test_the_options_name_the_columns_and_the_folders(tmp_path: Path) -> None:
    """A task id with one value divides nothing; without a baseline, nothing is relative."""
    exported(tmp_path, two_weeks())
    options = json.loads((tmp_path / "out" / OPTIONS).read_text(encoding="utf-8"))
    metrics = ["wis", "dispersion", "overprediction", "underprediction", "ae_median", "interval_coverage_50"]
    assert options["targets"] == [{"target_id": "admissions", "metrics": metrics, "disaggregate_by": ["week"]}]
    assert options["eval_sets"] == [{"eval_set_name": "All rounds"}]
    assert [*scores(tmp_path / "out", "admissions", "All rounds", "week")[0]] == ["model_id", "week", *metrics, "n"]
    files = [path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.csv")]
    assert sorted(files) == ["scores/admissions/All rounds/scores.csv", "scores/admissions/All rounds/week/scores.csv"]


def test_nobody_is_compared_with_who_has_no_rank(tmp_path: Path) -> None:
    """By hand: 1, 4/3 and 16/3 in the first week, on which all forecast, and 14/3 for ada in the second."""
    exported(tmp_path, [*two_weeks(), exclusion("admissions quantile", "cy", level="no_rank")], "ada")
    ada, bo, cy = scores(tmp_path / "out", "admissions", "All rounds")
    assert close(ada["wis"], Fraction(17, 6))
    assert close(bo["wis_scaled_relative_skill"], Fraction(4, 3))
    assert close(cy["wis_scaled_relative_skill"], (64 / 3) ** (1 / 3) / (3 / 4) ** (1 / 2))
    assert [(row["interval_coverage_50"], row["n"]) for row in (ada, bo, cy)] == [("0.5", "2"), ("1", "1"), ("0", "1")]
    last = scores(tmp_path / "out", "admissions", "All rounds", "week")[1]
    assert (last["model_id"], last["week"], last["interval_coverage_50"]) == ("ada", "2", "0")
    assert close(last["wis"], Fraction(14, 3))


def test_what_does_not_count_is_not_shown(tmp_path: Path) -> None:
    """Who is hidden, and a question that is not answered, has no weight, or is not one by quantiles."""
    name, said = "admissions quantile", {"quantiles": (1, 2, 3)}
    third, fourth = (f"week={week}&place=US&output_type=quantile" for week in (3, 4))
    more: list[AnyCommand] = [
        *(opened(question, kind="numeric", range=SPAN) for question in (third, fourth)),
        numeric("depth", upper=4),
        *(entry(name, question, weight=weight) for question, weight in ((third, 1), (fourth, 0), ("depth", 1))),
        *(forecast(question, "bo", **said) for question in (third, fourth)),
        forecast("depth", "bo", cdf=(0, "0.25", "0.5", "0.75", 1)),
        *(resolution(question, value=2) for question in (fourth, "depth")),
    ]
    exported(tmp_path, [*two_weeks(), *more, exclusion(name, "cy", level="hidden")], "ada")
    found = scores(tmp_path / "out", "admissions", "All rounds")
    assert [(row["model_id"], row["n"]) for row in found] == [("ada", "2"), ("bo", "1")]
    assert found[1]["interval_coverage_50"] == "1", "that of depth is no interval of the target"
    assert "interval_coverage_95" not in found[0]


def test_a_mean_without_a_median_is_not_available(tmp_path: Path) -> None:
    """One of ada's questions has the levels 0.25 and 0.75 alone."""
    name, third = "admissions quantile", "week=3&place=US&output_type=quantile"
    span = structs.replace(SPAN, levels=("0.25", "0.75"))
    more: list[AnyCommand] = [
        opened(third, kind="numeric", range=span),
        entry(name, third),
        forecast(third, "ada", quantiles=(8, 14)),
    ]
    exported(tmp_path, [*two_weeks(), *more, resolution(third, value=10)])
    found = scores(tmp_path / "out", "admissions", "All rounds")
    assert [(row["ae_median"], row["n"]) for row in found] == [("NA", "3"), ("2", "1"), ("6", "1")]


@pytest.mark.parametrize("name", ["../up", "a/b", "a\\b", ".", "a:b", "a.", "é" * 128, "scores.csv", "50%"])
def test_a_name_that_no_folder_can_have_is_left_out(tmp_path: Path, name: str) -> None:
    """A target, and a task id; nothing is written elsewhere."""
    reason = "a target or task id whose name a folder or a column cannot have"
    found = exported(tmp_path, [*two_weeks(), contest(name, rules=RULES), entry(name, FIRST)])
    assert found.left_out == {reason: 1}
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")).count("scores.csv") == 2
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith("log")} == {"out"}


def test_a_task_id_needs_a_column_of_its_own(tmp_path: Path) -> None:
    """`wis` is a metric, and ids that differ in case are one folder on some systems."""
    questions = tuple(f"wis={n}&a%00b={n}&Week={n}&week={n}&output_type=quantile" for n in (1, 2))
    found = exported(tmp_path, two_weeks(questions=questions))
    assert found.left_out == {"a target or task id whose name a folder or a column cannot have": 3}
    assert {path.name for path in (tmp_path / "out/scores/admissions/All rounds").iterdir()} == {"week", "scores.csv"}


def test_two_contests_of_one_target_have_folders_of_their_own(tmp_path: Path) -> None:
    """The second keeps the name of the contest, also if only case tells them apart."""
    name = "Admissions"
    exported(tmp_path, [*two_weeks("admissionS quantile"), contest(name, rules=RULES), entry(name, SECOND)])
    assert {path.name for path in (tmp_path / "out" / "scores").iterdir()} == {name, "admissionS quantile"}
    assert [row["model_id"] for row in scores(tmp_path / "out", name, "All rounds")] == ["ada"]


def test_only_an_exported_dashboard_is_replaced(tmp_path: Path) -> None:
    """And only with --force; the same log gives the same bytes."""
    log, out = written(tmp_path / "log.db", two_weeks()), tmp_path / "out"
    command = ("export", log, str(out), "--format", "hubpredevals", "--baseline", "bo")
    first = run(*command)
    assert (first.exit_code, [line.split()[:2] for line in first.stdout.splitlines()[1:]]) == (
        FINE,
        [["scores", "7"], ["options", "1"]],
    )
    assert run(*command).exit_code == USAGE
    assert run(*command, "--force").stdout == first.stdout
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    found = run(*command, "--force")
    assert (found.exit_code, "not an exported dashboard" in found.stderr) == (USAGE, True)
    (out / "notes.txt").unlink()
    (out / OPTIONS).write_text('{"targets": []}', encoding="utf-8")
    assert run(*command, "--force").exit_code == USAGE


def test_what_does_not_go_together_is_wrong_usage(tmp_path: Path) -> None:
    """A baseline without scores, a log without forecasts by quantiles, tables, and a baseline of another format."""
    log, other = written(tmp_path / "a.db", two_weeks()), written(tmp_path / "b.db", commands_of("metaculus-2022"))
    for arguments, said in (
        ((log, "hubpredevals", "--baseline", "dee"), "no scores of a participant named 'dee'"),
        ((other, "hubpredevals"), "no contest has scores of forecasts by quantiles"),
        ((log, "hubpredevals", "--tables", "scores"), "which has no tables"),
        ((log, "csv", "--baseline", "ada"), "--baseline goes with --format hubpredevals"),
    ):
        path, form, *options = arguments
        found = run("export", path, str(tmp_path / "out"), "--format", form, *options)
        assert (found.exit_code, said in found.stderr) == (USAGE, True), found.stderr
    assert not (tmp_path / "out").exists()
