"""Effects of questions as ForecastBench publishes them: its keys and units, numbers by hand, and what is left out."""

import json
from pathlib import Path

from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINE, USAGE
from tests.replay.cli.test_main import run
from tests.support.logs import commands_of, written
from tests.support.paths import DATA
from tests.support.sources import import_into

KEYS = ["forecast_due_date", "source", "id", "horizon", "leaderboard_type", "question_fixed_effect"]


def test_effects_have_the_keys_and_units_of_forecastbench(tmp_path: Path) -> None:
    """Two forecasters score 0.09 and 0.25, 0.36 and 0.25 on the data set's questions: their means differ by 0.135.

    Their effects are 0.17 and 0.305 less the mean 0.2375. The horizon is in days: from 1 to 8 and 31 March.
    """
    with Ledger.open(tmp_path / "log.db") as ledger:
        import_into(ledger, "forecastbench", DATA / "forecastbench-import")
    log, out = str(tmp_path / "log.db"), tmp_path / "out"
    found = run("export", log, str(out), "--format", "forecastbench")
    assert found.exit_code == FINE, found.stderr
    assert "left out: 4 x a question that is none" in found.stderr
    [path] = (out / "question-fixed-effects").iterdir()
    assert path.name.startswith("question_fixed_effects.2026-")
    assert path.name.endswith(".tournament_leaderboard.json")
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert all([*row] == KEYS and row["leaderboard_type"] == "tournament" for row in rows)
    told = {(row["source"], row["id"], row["horizon"]): row["question_fixed_effect"] for row in rows}
    assert told["fred", "DGS1", 7] == -0.0675
    assert told["fred", "DGS1", 30] == 0.0675
    assert {(source, horizon) for source, _, horizon in told if source != "fred"} == {
        ("manifold", None),
        ("polymarket", None),
    }
    again = run("export", log, str(out), "--format", "forecastbench")
    assert (again.exit_code, "--force" in again.stderr) == (USAGE, True)
    assert run("export", log, str(out), "--format", "forecastbench", "--force").stdout == found.stdout
    (out / "question-fixed-effects" / "mine.txt").write_text("mine", encoding="utf-8")
    assert run("export", log, str(out), "--format", "forecastbench", "--force").exit_code == USAGE


def test_a_log_without_such_questions_has_no_effects_to_export(tmp_path: Path) -> None:
    """It is wrong usage, and nothing is written."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    found = run("export", log, str(tmp_path / "out"), "--format", "forecastbench")
    assert (found.exit_code, "import its sets first" in found.stderr) == (USAGE, True)
    assert not (tmp_path / "out").exists()
