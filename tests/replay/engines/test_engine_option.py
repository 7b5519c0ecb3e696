"""The option --engine of replay."""

from pathlib import Path

from forecast_ledger.replay.cli.main import FINE, USAGE
from tests.replay.cli.test_main import COMMANDS, run


def test_engines_print_the_same_digests(tmp_path: Path) -> None:
    """From a log and from segments; a comparison of logs takes no engine."""
    log = str(tmp_path / "story.db")
    assert run("append", log, str(COMMANDS)).exit_code == FINE
    assert run("seal", log).exit_code == FINE
    expected = run("replay", log, "--format", "csv")
    for more in ((), ("--trust", "files")):
        assert run("replay", log, "--engine", "local", "--format", "csv", *more).stdout == expected.stdout
        only = run(
            "replay", log, "--only", "prizes", "--only", "leaderboard", "--engine", "local", "--format", "csv", *more
        ).stdout
        chosen = ("projection,", "leaderboard,", "prizes,")
        assert only.splitlines() == [line for line in expected.stdout.splitlines() if line.startswith(chosen)]
        assert run("replay", log, "--only=prizes", "--only=leaderboard", "--format=csv", *more).stdout == only
    assert run("replay", log, "--only", "prize", "--engine", "local").exit_code == USAGE
    refused = run("replay", log, "--compare", log, "--engine", "local")
    assert (refused.exit_code, "leave --engine, --only and --memory out" in refused.stderr) == (USAGE, True)
    assert run("replay", log, "--engine", "spork").exit_code == USAGE
