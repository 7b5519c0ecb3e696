"""`import-from` on the command line: what it prints where, and what it exits with."""

import json
import shutil
from pathlib import Path

from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from tests.replay.cli.test_main import run, said
from tests.support.paths import DATA
from tests.support.sources import edit

HUB = DATA / "hub-import"


def test_counts_go_to_stdout_and_reasons_to_stderr(tmp_path: Path) -> None:
    """What is not carried over is a line for each reason; it is no finding."""
    log = str(tmp_path / "hub.db")
    found = run("import-from", "hubverse", log, str(HUB), "--format", "json")
    assert found.exit_code == FINE
    [counts] = json.loads(found.stdout)
    assert (counts["accepted"], counts["refused"], counts["not_carried_over"]) == (57, 0, 2)
    assert "not carried over: 1 x a level that hub-config/tasks.json does not have" in found.stderr
    assert "which samples of several tasks are one path ('compound_taskid_set')" in found.stderr
    assert run("verify", log).exit_code == FINE


def test_a_dry_run_counts_the_same_and_leaves_nothing(tmp_path: Path) -> None:
    """No file is created."""
    log = tmp_path / "hub.db"
    found = run("import-from", "hubverse", str(log), str(HUB), "--dry-run", "--format", "json")
    assert json.loads(found.stdout) == [{"accepted": 57, "duplicate": 0, "refused": 0, "not_carried_over": 2}]
    assert "nothing was written" in found.stderr
    assert not log.exists()


def test_refusals_are_summed_up_by_code(tmp_path: Path) -> None:
    """The first three of each are shown with their places; the exit code is 1."""
    hub = Path(shutil.copytree(HUB, tmp_path / "hub"))
    edit(hub / "model-output/team1-a/2026-03-07-team1-a.csv", lambda text: text + "x\n" * 5)
    found = run("import-from", "hubverse", str(tmp_path / "hub.db"), str(hub))
    assert found.exit_code == FINDINGS
    assert found.stderr.count("bad_source:") == 3
    assert "model-output/team1-a/2026-03-07-team1-a.csv, line 19: bad_source" in found.stderr
    assert "refused: 5 x bad_source; the first 3 are above, and --errors json prints all" in found.stderr
    found = run("import-from", "hubverse", str(tmp_path / "hub.db"), str(hub), "--errors", "json")
    told = json.loads(found.stderr.splitlines()[0])
    assert (told["file"], told["line"]) == ("model-output/team1-a/2026-03-07-team1-a.csv", 19)


def test_what_is_no_hub_is_wrong_usage(tmp_path: Path) -> None:
    """The message says what PATH must be; an unknown preset names those that there are."""
    found = run("import-from", "hubverse", str(tmp_path / "hub.db"), str(tmp_path))
    assert (found.exit_code, list(tmp_path.iterdir())) == (USAGE, [])
    assert "hub-config/tasks.json" in found.stderr
    found = run("import-from", "hubverse", str(tmp_path / "hub.db"), str(HUB), "--rules", "nothing")
    assert found.exit_code == USAGE
    assert "no preset named 'nothing'" in found.stderr


def test_a_contest_that_is_there_keeps_its_rules(tmp_path: Path) -> None:
    """Opened by the user, or by an earlier import under other rules."""
    log = str(tmp_path / "hub.db")
    assert run("import-from", "hubverse", log, str(HUB), "--rules", "brier-daily").exit_code == FINDINGS
    found = run("import-from", "hubverse", log, str(HUB), "--format", "json")
    assert json.loads(run("table", log, "contests", "--format", "json").stdout)[0]["rules"] == "brier-daily"
    assert "open_contest" not in found.stderr
    assert json.loads(found.stdout)[0]["duplicate"] > 0


def test_a_copy_that_changes_what_a_sealed_board_rests_on_says_that_it_stays(tmp_path: Path) -> None:
    """Another answer, then other forecasts; the same copy once more changes nothing, and says nothing."""
    log, copy = str(tmp_path / "log.db"), Path(shutil.copytree(DATA / "metaculus-import", tmp_path / "copy"))
    seal = said("seal", "finalize_contest", contest="A month of questions")
    note = "sealed boards do not count these events: 'A month of questions'; to see one as if it were not sealed: "
    changes = {
        "question_data.csv": ("2026-03-11 12:00:00+00:00,yes,", "2026-03-11 12:00:00+00:00,no,"),
        "forecast_data.csv": ("0.4", "0.3"),
    }

    def notes(*options: str) -> list[str]:
        told = run("import-from", "metaculus", log, str(copy), *options)
        assert told.exit_code == FINE
        return [line for line in told.stderr.splitlines() if line.startswith("sealed")]

    assert (notes(), run("append", log, "-", given=seal).exit_code, notes()) == ([], FINE, [])
    for name, (old, new) in changes.items():
        (copy / name).write_text((copy / name).read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
        for options in (["--dry-run"], []):
            [line] = notes(*options)
            assert line == f"{note}forecast-ledger what-if LOG --unsealed --contest 'A month of questions'"
        assert notes() == []


def test_prices_only_leaves_out_what_people_forecast(tmp_path: Path) -> None:
    """Of Manifold; a later import without the option has their forecasts, too, and other formats refuse it."""
    log, markets = str(tmp_path / "markets.db"), str(DATA / "manifold-import")

    def who() -> set[str]:
        return {row["participant"] for row in json.loads(run("table", log, "scores", "--format", "json").stdout)}

    assert run("import-from", "manifold", log, markets, "--prices-only").exit_code == FINE
    assert who() == {"Manifold"}
    assert run("import-from", "manifold", log, markets).exit_code == FINE
    assert who() == {"Manifold", "ada", "bo"}
    found = run("import-from", "manifold", log, markets, "--prices-only")
    assert (found.exit_code, "--take-back" in found.stderr) == (USAGE, True)
    assert run("import-from", "manifold", log, markets, "--prices-only", "--take-back").exit_code == FINE
    assert who() == {"Manifold"}
    found = run("import-from", "hubverse", log, str(HUB), "--prices-only")
    assert (found.exit_code, "--prices-only is for manifold" in found.stderr) == (USAGE, True)


def test_trades_are_recorded_and_published_profits_compared(tmp_path: Path) -> None:
    """The output names what differs; formats without trades, and rules that take none, are refused."""
    log, markets = str(tmp_path / "mana.db"), str(DATA / "manifold-trades")
    found = run("import-from", "manifold", log, markets, "--trades")
    assert found.exit_code == FINE
    assert "published results: 17 agree, 2 differ" in found.stderr
    rows = json.loads(run("table", log, "arena_leaderboard", "--format", "json").stdout)
    assert [(row["participant"], row["profit"], row["turnover"]) for row in rows] == [
        ("cy", "25.00", None),
        ("ada", "-9.75", None),
        ("bo", "-20.00", None),
    ]
    wrong = run("import-from", "hubverse", log, str(HUB), "--trades")
    assert (wrong.exit_code, "hubverse has no trades" in wrong.stderr) == (USAGE, True)
    wrong = run("import-from", "manifold", log, markets, "--trades", "--rules", "arena-v1")
    assert (wrong.exit_code, "arena-v1 does not" in wrong.stderr) == (USAGE, True)
