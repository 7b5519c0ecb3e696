"""Appending a file: refusals summed up, and kept in a file that can be mended and sent again."""

import json
import os
from pathlib import Path

import pytest

from forecast_ledger.replay.cli.main import FINDINGS, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.writing.command_lines import LONGEST_LINE
from tests.replay.cli.test_main import opened, run, said
from tests.support.terminals import seen

MAP = b"""
[[command]]
type = "submit_forecast"
id = "{n}"
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "rain"
participant = "{who}"
probability = "{p}"

[[command]]
type = "withdraw_forecast"
id = "end {n}"
present = ["end"]
[command.fields]
at = "{end}"
question = "rain"
participant = "{who}"
"""
HEADER = b"\xef\xbb\xbfn,who,p,end\r\n"


def mapped(folder: Path) -> tuple[str, str]:
    """A ledger with a question, and a map."""
    log, map_ = str(folder / "log.db"), folder / "map.toml"
    map_.write_bytes(MAP)
    assert run("append", log, "-", given=opened("o", question="rain")).exit_code == FINE
    return log, str(map_)


def test_refusals_are_summed_up_by_code(tmp_path: Path) -> None:
    """The first three of each code are printed; if there are more of one, the number of each is."""
    given = b"".join([b"x\n", *(said(f"c{n}", "close_question", question="none") for n in range(5))])
    told = run("append", str(tmp_path / "log.db"), "-", given=given).stderr.splitlines()
    assert [line.split(":")[:2] for line in told[:4]] == [
        ["line 1", " malformed"],
        *([f"line {line}", " unknown_question"] for line in (2, 3, 4)),
    ]
    assert told[4:] == [
        "refused: 1 x malformed",
        "refused: 5 x unknown_question; the first 3 are above, and --errors json prints all",
    ]


def test_as_json_every_refusal_is_one_object_a_line(tmp_path: Path) -> None:
    """A program reads all of them, and no text between."""
    given = b"".join(said(f"c{n}", "close_question", question="none") for n in range(5))
    result = run("append", str(tmp_path / "log.db"), "-", "--errors", "json", given=given)
    assert [json.loads(line)["line"] for line in result.stderr.splitlines()] == [1, 2, 3, 4, 5]


def test_refused_lines_are_kept_as_they_were(tmp_path: Path) -> None:
    """A blank line is none; a last line without a newline gets one; mended and sent again, the lines are recorded."""
    log, kept = str(tmp_path / "log.db"), tmp_path / "kept.jsonl"
    bad = [opened("c2", question="q1"), b"  not json \r\n", opened("c4", question="").strip()]
    given = b"".join([opened("c1", question="q1"), bad[0], b"\n", bad[1], opened("c3", question="q3"), bad[2]])
    result = run("append", log, "-", "--refused", str(kept), given=given)
    assert (result.exit_code, kept.read_bytes()) == (FINDINGS, b"".join(bad) + b"\n")
    assert result.stderr.splitlines()[-1] == f"refused and written to {kept}: 3"
    kept.write_bytes(opened("c2", question="q2") + opened("c4", question="q4"))
    assert run("append", log, str(kept), "--refused", str(kept)).exit_code == FINE
    assert kept.read_bytes() == b""


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_refused_rows_are_kept_under_their_header(tmp_path: Path, dry: list[str]) -> None:
    """Each row once, whatever number of its commands is refused, with its own quotes and line ends."""
    log, map_ = mapped(tmp_path)
    twice, lines, short = b'1,"ada",2,soon\r\n', b'3,"c\r\ny",0.5,\r\n', b"4,di\r\n"
    kept = tmp_path / "kept.csv"
    table = HEADER + twice + b"2,bo,0.5,\r\n" + lines + short
    result = run("append", log, "-", "--map", map_, "--refused", str(kept), *dry, given=table)
    assert (result.exit_code, kept.read_bytes()) == (FINDINGS, HEADER + twice + lines + short)


@pytest.mark.parametrize("broken", [b'3,"cy,0.5,\n4,di,0.5,\n', b"3,\xff,0.5,\n4,di,0.5,\n", b"3,\0,0.5,\n4,d,1,\n"])
def test_what_follows_a_row_without_an_end_is_kept(tmp_path: Path, broken: bytes) -> None:
    """Nothing after it can be read, so that all of it is to be sent again."""
    log, map_ = mapped(tmp_path)
    table, kept = tmp_path / "table.csv", tmp_path / "kept.csv"
    table.write_bytes(HEADER + b"1,ada,0.5,\n" + broken)
    result = run("append", log, str(table), "--map", map_, "--refused", str(kept))
    assert (result.exit_code, kept.read_bytes()) == (FINDINGS, HEADER + broken)
    kept.write_bytes(kept.read_bytes().replace(b'"', b"").replace(b"\xff", b"x").replace(b"\0", b"x"))
    assert run("append", log, str(kept), "--map", map_).exit_code == FINE


def test_a_line_too_long_to_be_kept_is_named(tmp_path: Path) -> None:
    """It is longer than any line may be."""
    kept = tmp_path / "kept.jsonl"
    given = b"x\n" + b"y" * (LONGEST_LINE + 1) + b"\nz\n"
    result = run("append", str(tmp_path / "log.db"), "-", "--refused", str(kept), given=given)
    assert kept.read_bytes() == b"x\nz\n"
    assert result.stderr.splitlines()[-2:] == [
        f"refused and written to {kept}: 2",
        f"too long to be written to {kept}: line 2",
    ]


def test_of_an_atomic_file_every_line_is_refused_and_kept(tmp_path: Path) -> None:
    """None was recorded; only the lines at fault are printed."""
    kept = tmp_path / "kept.jsonl"
    given = opened("c1", question="q1") + b"x\n"
    result = run("append", str(tmp_path / "log.db"), "-", "--atomic", "--refused", str(kept), given=given)
    assert (result.exit_code, kept.read_bytes()) == (FINDINGS, given)
    assert [line.split(":")[0] for line in result.stderr.splitlines()[:-1]] == ["line 2"]


def test_the_file_of_refused_lines_is_whole_or_as_before(tmp_path: Path) -> None:
    """It may be the input itself. If the input cannot be read at all, what is there is kept. No device is replaced."""
    log, map_ = mapped(tmp_path)
    table = tmp_path / "table.csv"
    table.write_bytes(HEADER + b"1,ada,0.5,\n2,bo,7,\n")
    assert run("append", log, str(table), "--map", map_, "--refused", str(table)).exit_code == FINDINGS
    assert table.read_bytes() == HEADER + b"2,bo,7,\n"
    assert run("append", log, "-", "--map", map_, "--refused", str(table), given=b"a,b\n").exit_code == USAGE
    assert table.read_bytes() == HEADER + b"2,bo,7,\n"
    os.mkfifo(tmp_path / "pipe")
    assert run("append", log, str(table), "--map", map_, "--refused", str(tmp_path / "pipe")).exit_code != FINE
    assert (tmp_path / "pipe").is_fifo()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_a_bar_knows_the_end_of_a_file(tmp_path: Path) -> None:
    """On a terminal; it ends at the bytes of the file, and the lines are counted beside it."""
    file = tmp_path / "questions.jsonl"
    file.write_bytes(b"".join(opened(f"c{n}", question=f"q{n}") for n in range(3_000)))
    shown = seen("append", str(tmp_path / "log.db"), str(file), columns=120, keep_progress=True).stderr
    assert "100%" in shown
    assert "3,000 lines" in shown


def test_a_bar_of_a_sorted_file_ends_at_its_commands(tmp_path: Path) -> None:
    """All of it is read before the first is recorded, so that the bytes read would say nothing."""
    log, map_ = mapped(tmp_path)
    Path(map_).write_bytes(b'sort = "at"\n' + MAP)
    table = tmp_path / "table.csv"
    table.write_bytes(HEADER + b"".join(b"%d,p%d,0.5,2026-03-02T00:00:00Z\n" % (n, n) for n in range(1_000)))
    shown = seen("append", log, "--map", map_, str(table), columns=120, keep_progress=True).stderr
    assert "100%" in shown


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_folder_that_lost_its_manifest_is_refused(tmp_path: Path, more: list[str]) -> None:
    """Also for a trial: its segments may be all there is of a log. An empty folder, or none, counts as an empty log."""
    folder, file = tmp_path / "archive", tmp_path / "lines.jsonl"
    file.write_bytes(opened("o", question="rain"))
    assert run("append", f"{folder}/", str(file)).exit_code == FINE
    (folder / "segments.json").unlink()
    lost = run("append", str(folder), str(file), *more)
    assert (lost.exit_code, "there are files of segments, and no segments.json" in lost.stderr) == (UNREADABLE, True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").touch()
    other = run("append", str(tmp_path / "notes"), str(file), *more)
    assert (other.exit_code, "it has other files, such as 'a.txt'" in other.stderr) == (UNREADABLE, True)
    (tmp_path / "empty").mkdir()
    for place in ("empty", "none/"):
        assert run("append", f"{tmp_path}/{place}", str(file), *more).exit_code == FINE


STRICT = '[[command]]\ntype = "close_question"\nid = "{n}"\npresent = ["a"]\n'
STRICT += '[command.fields]\nat = "2026-03-02T00:00:00Z"\nquestion = "{a}"\n'
ROWS = b"n,a\n1,rain\n2,\n3,\n4,snow\n"


def strict(folder: Path, *options: str) -> tuple[int, list[str], str]:
    """Two of four rows make a command: the exit code, the lines on stderr, and stdout."""
    (folder / "map.toml").write_text(STRICT)
    (folder / "rows.csv").write_bytes(ROWS)
    log, rows, map_ = str(folder / "log.db"), str(folder / "rows.csv"), str(folder / "map.toml")
    if not (folder / "log.db").exists():
        run("append", log, "-", given=opened("o", question="rain") + opened("p", question="snow"))
    done = run("append", log, rows, "--map", map_, *options)
    return done.exit_code, done.stderr.splitlines(), done.stdout


def test_with_strict_a_row_of_which_the_map_makes_no_command_is_refused(tmp_path: Path) -> None:
    """It is a refusal like others: named, counted, kept in the file of refusals, and the other rows are recorded."""
    code, told, shown = strict(tmp_path, "--strict", "--refused", str(tmp_path / "rest.csv"))
    assert (code, [line.split(":")[:2] for line in told[:2]]) == (
        FINDINGS,
        [["line 3", " no_command"], ["line 4", " no_command"]],
    )
    assert shown.splitlines()[1].split()[:3] == ["2", "0", "2"]
    assert (tmp_path / "rest.csv").read_bytes() == b"n,a\n2,\n3,\n"


def test_with_strict_and_atomic_nothing_is_recorded(tmp_path: Path) -> None:
    """Then the two good rows are refused for the two others, and go in without them."""
    code, _, shown = strict(tmp_path, "--strict", "--atomic")
    assert (code, shown.splitlines()[1].split()[:3]) == (FINDINGS, ["0", "0", "4"])
    code, _, shown = strict(tmp_path)
    assert (code, shown.splitlines()[1].split()[:3]) == (FINE, ["2", "0", "0"])


def test_a_dry_run_tells_of_rows_without_a_command(tmp_path: Path) -> None:
    """It counts them as the run does, and with --strict lists them."""
    code, told, shown = strict(tmp_path, "--dry-run")
    assert (code, len(shown.splitlines())) == (FINE, 3)
    assert any(line.startswith("the map makes no command of 2 rows") and line.endswith(": line 3, 4") for line in told)
    code, told, shown = strict(tmp_path, "--dry-run", "--strict")
    assert (code, shown.count("no_command"), "2 accepted, 0 duplicate, 2 refused" in told) == (FINDINGS, 2, True)


def test_strict_is_of_a_map(tmp_path: Path) -> None:
    """Every line of JSON is a command or refused, so that the option would change nothing."""
    done = run("append", str(tmp_path / "log.db"), "-", "--strict", given=opened("o", question="rain"))
    assert (done.exit_code, "name its map with --map" in done.stderr) == (USAGE, True)


@pytest.mark.parametrize("text", [b"question,user,p\nrain,ada,0.8\n", b"\xef\xbb\xbfQuestion ID;P\n1;0,5\n"])
def test_a_csv_without_a_map_is_told_what_to_do(text: bytes, tmp_path: Path) -> None:
    """Its lines are no commands; nothing is recorded."""
    table, log = tmp_path / "forecasts.csv", tmp_path / "season.db"
    table.write_bytes(text)
    found = run("append", str(log), str(table))
    assert (found.exit_code, log.exists()) == (USAGE, False)
    assert "FILE looks like a CSV: score it with `forecast-ledger score FILE`, or name with --map" in found.stderr


def test_json_lines_are_read_by_a_map(tmp_path: Path) -> None:
    """A key that a line lacks is an empty cell; a line that is no object is refused, and the others are recorded."""
    table, map_ = tmp_path / "rows.jsonl", tmp_path / "own.toml"
    table.write_text('{"q": "rain", "kind": "binary"}\n7\n{"kind": "binary", "q": "snow", "title": "Snow?"}\n')
    map_.write_text(
        '[[command]]\ntype = "open_question"\nid = "{q}"\n[command.fields]\nat = "2026-03-01T00:00:00Z"\n'
        'question = "{q}"\nkind = "{kind}"\ntitle = "{title}"\nopens_at = "2026-03-01T00:00:00Z"\n'
        'closes_at = "2026-03-02T00:00:00Z"\n'
    )
    found = run("append", str(tmp_path / "x.db"), str(table), "--map", str(map_), "--format", "json")
    assert found.exit_code == FINDINGS
    assert "line 2: bad_csv: the line is not a JSON object" in found.stderr
    [counts] = json.loads(found.stdout)
    assert (counts["accepted"], counts["refused"]) == (2, 1)
    listed = json.loads(run("log", str(tmp_path / "x.db"), "--columns", "says", "--format", "json").stdout)
    first, second = (row["says"] for row in listed)
    assert first == "rain, binary, until 2026-03-02T00:00:00Z"
    assert second == "snow, binary, until 2026-03-02T00:00:00Z: Snow?"
