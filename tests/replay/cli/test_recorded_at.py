"""`append --recorded-at`: a history from a file keeps the times at which it was received."""

import json
from pathlib import Path

import pytest

from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from tests.replay.cli.test_main import run, said

MAP = """
offset = "Z"
{sort}
[[command]]
type = "submit_forecast"
id = "{{who}} {{made}}"
[command.fields]
at = "{{made}}"
question = "rain"
participant = "{{who}}"
probability = "{{p}}"
"""
RULES = {
    "name": "what stood at the spot",
    "kernel": "brier",
    "sampling": "spot",
    "clock": "recorded",
    "period": "covered",
    "total": "mean",
    "least_probability_ppm": 0,
}
FUTURE = (
    b'{"received": "9999-01-01T00:00:00Z", "id": "c", "type": "open_contest", "contest": "x", "rules": "baseline", '
)
# The spot is on 3 March: ada's second forecast was made before it and received after it.
ROWS = b"""who,made,received,p
ada,2026-03-02,2026-03-02 00:00:01,0.5
bo,2026-03-02,2026-03-02 00:00:02,0.75
ada,2026-03-02 12:00:00,2026-03-04 00:00:00+00,1
"""


def setting(received: bool = True) -> bytes:
    """Lines that open a contest whose scores are of what was recorded before a spot, and its question."""
    span = {"opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-05T00:00:00Z"}
    lines = [
        said("1", "open_contest", contest="cup", rules=RULES),
        said("2", "open_question", question="rain", kind="binary", **span),
        said("3", "add_question", contest="cup", question="rain", spot_at="2026-03-03T00:00:00Z"),
    ]
    fields = {"received": "2026-03-01T00:00:00Z"} if received else {}
    return b"".join(json.dumps(json.loads(line) | fields).encode() + b"\n" for line in lines)


def mapped(folder: Path, sort: str = "") -> str:
    """A map."""
    path = folder / "map.toml"
    path.write_text(MAP.format(sort=sort), encoding="utf-8")
    return str(path)


def scores(log: str) -> dict[str, str]:
    """The score of each participant, once the answer is recorded."""
    answer = said("answer", "resolve_question", question="rain", outcome="yes")
    assert run("append", log, "-", given=answer.replace(b"03-01T", b"03-06T")).exit_code == FINE
    rows = json.loads(run("table", log, "scores", "--format", "json").stdout)
    return {row["participant"]: row["score"] for row in rows}


def test_contests_by_the_recorded_clock_score_by_the_times_received(tmp_path: Path) -> None:
    """Brier, of yes: ada's 0.5 stood at the spot, (1 - 0.5)^2 = 0.25, and bo's 0.75; by the times claimed ada has 0."""
    log, map_ = str(tmp_path / "log.db"), mapped(tmp_path)
    assert run("append", log, "-", "--recorded-at", "received", given=setting()).exit_code == FINE
    assert run("append", log, "-", "--map", map_, "--recorded-at", "received", given=ROWS).exit_code == FINE
    rows = json.loads(run("log", log, "--format", "json").stdout)
    assert rows[-1]["recorded_at"] == "2026-03-04T00:00:00Z"
    assert rows[-1]["says"] == "ada on rain: yes 1, no 0 (recorded_at is imported)"
    assert scores(log) == {"ada": "0.250000000", "bo": "0.062500000"}
    assert "imported" not in json.loads(run("log", log, "--format", "json").stdout)[-1]["says"]
    verified = run("verify", log)
    assert verified.exit_code == FINE
    assert "imported up to log position 6" in verified.stdout
    show = run("show", log, "4")
    assert "imported" in show.stdout


def test_times_that_fall_are_refused_with_their_line_and_how_to_sort(tmp_path: Path) -> None:
    """A map sorts by the time of receipt, whatever the order of the claims."""
    log, header = str(tmp_path / "log.db"), ROWS.splitlines(keepends=True)[0]
    mixed = ROWS + b"cy,2026-03-01,2026-03-01 00:00:05,0.5\n"
    assert run("append", log, "-", "--recorded-at", "received", given=setting()).exit_code == FINE
    at = ("append", log, "-", "--recorded-at", "received", "--map")
    result = run(*at, mapped(tmp_path), "--dry-run", given=mixed)
    assert result.exit_code == FINDINGS
    assert "line 5, submit_forecast: out_of_order: recorded_at = '2026-03-01T00:00:05Z'" in result.stderr
    assert 'sort = "recorded_at"' in result.stderr
    turned = header + b"".join(reversed(mixed.splitlines(keepends=True)[1:]))
    result = run(*at, mapped(tmp_path), given=turned)
    assert (result.exit_code, 'write sort = "recorded_at"' in result.stderr) == (USAGE, True)
    assert run(*at, mapped(tmp_path, 'sort = "recorded_at"'), given=turned).exit_code == FINE
    rows = json.loads(run("log", log, "--format", "json").stdout)
    assert [row["says"].partition(" ")[0] for row in rows[3:]] == ["cy", "ada", "bo", "ada"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"id": "c", "type": "close_question", "at": "2026-03-02T00:00:00Z", "question": "rain"}', "malformed"),
        (b'{"received": "soon", "id": "c", "type": "close_question"}', "bad_instant"),
        (b'{"received": "2026-03-02T00:00:00", "id": "c"}', "naive_instant"),
        (b'{"received": null, "id": "c"}', "bad_instant"),
        (b'{"received": 7, "id": "c"}', "bad_instant"),
        (b'{"received": [[], "id": "c"}', "malformed"),
        (b'{"received": ' + b"[" * 100_000 + b"}", "malformed"),
        (b"[1]", "malformed"),
        (b"not json", "malformed"),
        (FUTURE + b'"at": "2026-03-02T00:00:00Z"}', "out_of_range"),
    ],
)  # fmt: skip
def test_a_line_without_a_time_that_can_be_read_is_refused(tmp_path: Path, line: bytes, code: str) -> None:
    """With its code; the lines after it count."""
    log, last = str(tmp_path / "log.db"), said("last", "open_contest", contest="last", rules="baseline")
    last = last.replace(b"{", b'{"received": "2026-03-02T00:00:00Z", ', 1)
    given = setting() + line + b"\n" + last
    result = run("append", log, "-", "--recorded-at", "received", "--errors", "json", "--format", "json", given=given)
    assert [json.loads(told)["code"] for told in result.stderr.splitlines()] == [code]
    assert json.loads(result.stdout)[0]["accepted"] == 4


def test_a_field_of_the_commands_may_be_the_time(tmp_path: Path) -> None:
    """A history without times of receipt is taken as received when it was claimed; the fields stay in the command."""
    log = str(tmp_path / "log.db")
    assert run("append", log, "-", "--recorded-at", "at", given=setting(received=False)).exit_code == FINE
    assert run("append", log, "-", "--map", mapped(tmp_path), "--recorded-at", "made", given=ROWS).exit_code == FINE
    rows = json.loads(run("log", log, "--format", "json").stdout)
    assert all(row["recorded_at"] == row["at"] for row in rows)
    assert scores(log) == {"ada": "0.000000000", "bo": "0.062500000"}


def test_a_ledger_in_use_takes_no_times(tmp_path: Path) -> None:
    """Nothing is recorded, and the message says what to do."""
    log = str(tmp_path / "log.db")
    assert run("append", log, "-", given=setting(received=False)).exit_code == FINE
    result = run("append", log, "-", "--map", mapped(tmp_path), "--recorded-at", "received", given=ROWS)
    assert (result.exit_code, "ledger_in_use" in result.stderr, "new ledger" in result.stderr) == (FINDINGS, True, True)
    assert len(json.loads(run("log", log, "--format", "json").stdout)) == 3


@pytest.mark.parametrize(
    ("sort", "options", "table", "code"),
    [
        ('sort = "recorded_at"', (), ROWS, "bad_map"),
        ("", ("--recorded-at", "got"), ROWS, "bad_csv"),
        ("", ("--recorded-at", "received"), b"who,made,received,received,p\n", "bad_csv"),
    ],
)
def test_a_column_that_is_not_there_once_is_refused(
    tmp_path: Path, sort: str, options: tuple[str, ...], table: bytes, code: str
) -> None:
    """Before anything is recorded."""
    result = run("append", str(tmp_path / "log.db"), "-", "--map", mapped(tmp_path, sort), *options, given=table)
    assert (result.exit_code, code in result.stderr, (tmp_path / "log.db").exists()) == (USAGE, True, False)
