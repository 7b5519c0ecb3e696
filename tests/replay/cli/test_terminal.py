"""Tables on a terminal: no wider than it is, in colour where it has colour; elsewhere whole and plain."""

import csv
import io
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.core.text_table import text_width
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, main
from forecast_ledger.replay.cli.terminal import Look, Screen, colour_text, fit_table, has_colour, stream_rows
from tests.replay.cli.test_main import SEALED, opened, run, said
from tests.support.exports import resealed
from tests.support.given import forge, prizes_paid
from tests.support.logs import commands_of, log_fixture, rows, written
from tests.support.terminals import seen

WIDTHS = [60, 100]
STORIES = {"metaculus-2022": "plain", "arena-week": "week-1"}
PRINTERS = [
    ["leaderboard", "LOG", "plain"],
    ["leaderboard", "LOG", "week-1"],
    ["table", "LOG", "scores"],
    ["table", "LOG", "trades"],
    ["table", "LOG", "brier"],
    ["columns", "trades"],
    ["replay", "LOG"],
    ["replay", "LOG", "--compare", "LOG@100"],
    ["verify", "LOG"],
    ["log", "LOG"],
    ["diff", "LOG", "@33", "@34"],
    ["blame", "LOG", "leaderboard", "plain", "A"],
    ["explain", "LOG", "score", "plain", "olympics-2021", "A"],
    ["explain", "LOG", "balance", "week-1", "ada"],
]


log = log_fixture(lambda: [each for story in STORIES for each in commands_of(story)], "module")


def shown(names: str, *lines: str, room: int, look: Look | None = None) -> tuple[list[str], str]:
    """A table of words on a screen of so many cells."""
    found = [dict(zip(names.split(), line.split(), strict=True)) for line in lines]
    fit = fit_table(names.split(), found, look or Look(), Screen(room))
    return list(fit.lines), fit.note


def stored(path: Path, changed: list[bytes]) -> str:
    """The path of a log with these rows, whatever they are."""
    store = StoredLog.open(str(path), "main")
    store.append([(number, "forged", row) for number, row in enumerate(changed, 1)])
    store.close()
    return str(path)


class Stream(io.StringIO):
    """A stream that is a terminal, or is not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: terminal  # type: ignore[method-assign]


def fast(*arguments: str, columns: int) -> tuple[list[str], str]:
    """Return what `seen` returns, but run in this process; stderr is not a terminal."""
    out, err = Stream(terminal=True), Stream(terminal=False)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit):
            main.main([*arguments], "forecast-ledger")
    return out.getvalue().splitlines(), err.getvalue()


@pytest.mark.parametrize("command", PRINTERS, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(log: str, command: list[str]) -> None:
    """Columns and values that do not fit are left out or shortened; stderr says which, and how to see them."""
    words = [word.replace("LOG", log) for word in command]
    piped = run(*words).stdout.splitlines()
    for columns in WIDTHS:
        lines, told = fast(*words, columns=columns)
        assert max(text_width(line) for line in lines if "=" not in line) <= columns  # x=y is one word
        if lines[0].split() != piped[0].split() and command[0] != "explain":
            assert "--wide shows everything" in told


@pytest.mark.parametrize("command", PRINTERS, ids=" ".join)
def test_wide_shows_what_a_pipe_gets(log: str, command: list[str]) -> None:
    """Every column and value, also where there is no room for them."""
    words = [word.replace("LOG", log) for word in command]
    piped = run(*words)
    assert fast(*words, "--wide", columns=60) == (piped.stdout.splitlines(), piped.stderr)


def test_a_real_terminal_is_as_wide_as_it_says(log: str) -> None:
    """The width is the terminal's own; colour is added to the lines, and NO_COLOR takes it away."""
    words = ["leaderboard", log, "plain"]
    assert seen(*words, columns=100).lines() == fast(*words, columns=100)[0]
    assert seen(*words, "--wide", columns=60).lines() == run(*words).stdout.splitlines()
    assert seen(*words, "--wide", columns=60, NO_COLOR="1").stdout == run(*words).stdout


@pytest.mark.parametrize("form", ["json", "csv"])
def test_json_and_csv_are_the_same_on_a_terminal(log: str, form: str) -> None:
    """Programs read them: no width, no colour, every zero."""
    words = ["leaderboard", log, "plain", "--format", form]
    assert fast(*words, columns=40)[0] == run(*words).stdout.splitlines()


def test_what_is_piped_does_not_depend_on_the_terminal(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow terminal that is said in the environment changes nothing."""
    everything = run("table", log, "trades").stdout
    monkeypatch.setenv("COLUMNS", "40")
    assert run("table", log, "trades").stdout == everything


def test_columns_that_tell_no_rows_apart_are_left_out_and_said() -> None:
    """If a table does not fit, empty columns and columns of one value are left out; a note has the value."""
    wide = [{"contest": "cup", "who": who, "note": "", "title": "x" * 20} for who in ("ada", "bo")]
    names = list(wide[0])
    lines, note = fit_table(names, wide, Look(), Screen(20))
    assert ([line.split() for line in lines], note) == (
        [["who"], ["ada"], ["bo"]],
        f"left out: contest = cup, title = {'x' * 20} (the same in every row); note (empty)",
    )
    assert fit_table(names, wide, Look(), Screen(80)).note == ""
    lines, _ = fit_table(names, wide, Look(keep=("contest",)), Screen(20))
    assert next(iter(lines)).split() == ["contest", "who"]


def test_columns_of_a_key_are_left_out_only_if_they_are_the_same_in_every_row() -> None:
    """A line must show which row it is about, however narrow the terminal is."""
    rows = [
        {"contest": "cup", "member": who, "change": change, "old": "0.123456", "new": "0.234567"}
        for who, change in (("ada", "new"), ("bo", "gone"))
    ]
    names = list(rows[0])
    lines, note = fit_table(names, rows, Look(keep=("old", "new"), key=("contest", "member")), Screen(28))
    assert next(lines).split() == ["member", "old", "new"]
    assert note == "left out: contest = cup (the same in every row); change (no room)"
    lines, _ = fit_table(names, rows, Look(keep=("old", "new")), Screen(20))
    assert next(lines).split() == ["member", "old", "new"]  # the first column that differs is always shown
    others = [{**row, "contest": row["member"]} for row in rows]
    lines, _ = fit_table(names, others, Look(keep=("old", "new"), key=("contest", "member")), Screen(20))
    assert next(lines).split() == ["contest", "member", "old", "new"]


def test_zeros_at_the_end_of_decimals_go_and_points_stand_below_each_other() -> None:
    """Only quantities with nine or twelve decimals are shortened; money, ids and text are printed in full."""
    kinds = {"score": "points", "prize": "money", "release": "id"}
    lines, note = shown(
        "score prize release", "1.500000000 2.00 4.0", "-10.250000000 0.50 3.10", room=80, look=Look(kinds)
    )
    assert (lines, note) == ([" score  prize  release", "  1.5    2.00      4.0", "-10.25   0.50     3.10"], "")


def test_numbers_and_instants_are_never_cut() -> None:
    """Columns that do not fit are left out whole: spare ones first, then from the right, never one to keep."""
    lines = ["ada 1234567890123 2021-07-20T00:00:00Z 5", "bo 2234567890123 2021-07-21T00:00:00Z 6"]
    first, note = shown("who worth at n", *lines, room=42)
    assert (first[1].split(), note) == (["ada", "1234567890123", "2021-07-20T00:00:00Z"], "left out: n (no room)")
    first, note = shown("who worth at n", *lines, room=25, look=Look(spare=("at",)))
    assert (first[1].split(), note) == (["ada", "1234567890123", "5"], "left out: at (no room)")
    first, note = shown("who worth at n", *lines, room=25, look=Look(keep=("at",)))
    assert (first[1].split(), note) == (["ada", "2021-07-20T00:00:00Z"], "left out: worth, n (no room)")
    first, _ = shown("who worth at n", *lines, room=25, look=Look(chosen=True))
    assert first[1].split() == lines[0].split()


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["north-2025-11-22-week-0", "south-2025-11-29-week-1"], ["north-…eek-0", "south-…eek-1"]),
        (["same-start-111-same-end", "same-start-222-same-end"], ["…11-same-end", "…22-same-end"]),
        (["a-1-and-then-much-of-it", "a-2-and-then-much-of-it"], ["a-1-an…of-it", "a-2-an…of-it"]),
    ],
)
def test_long_ids_are_shortened_where_they_stay_unlike(ids: list[str], expected: list[str]) -> None:
    """They are cut in the middle, unless only their end or their start tells them apart."""
    lines, note = shown("id n", *(f"{each} {number}" for number, each in enumerate(ids)), room=15)
    assert ([line.split()[0] for line in lines[1:]], note) == (expected, "shortened: id")


def test_the_last_text_is_broken_between_words() -> None:
    """All of it is printed; the other columns are empty beside its second and later lines."""
    words = "the sum of weight x score and then coverage times the exponential of the total"
    found = [{"n": 1, "says": words}, {"n": 2, "says": "short"}]
    lines = list(fit_table(["n", "says"], found, Look(), Screen(40)).lines)
    assert " ".join(line[3:] for line in lines[1:-1]) == words
    assert (max(map(len, lines)) <= 40, lines[-1]) == (True, "2  short")
    assert all(line.startswith("   ") for line in lines[2:-1])


def test_one_row_that_does_not_fit_has_a_line_for_each_value() -> None:
    """A digest, which people copy, is never cut."""
    lines, note = shown("accepted digest", f"3 {'f' * 64}", room=60)
    assert (lines, note) == (["accepted  3", f"digest    {'f' * 64}"], "")


def test_a_table_without_rows_prints_no_line_that_is_too_wide() -> None:
    """The header is printed if it fits."""
    assert fit_table(["contest"], [], Look(), Screen(40)).note == ""
    assert list(fit_table(["contest"], [], Look(), Screen(40)).lines) == ["contest"]
    assert list(fit_table(["contest"] * 10, [], Look(), Screen(40)).lines) == []


def test_a_long_list_is_printed_as_it_is_read() -> None:
    """The first rows decide how wide its columns are; nothing waits for the last."""
    source: Iterator[dict[str, Any]] = iter([{"n": number, "says": "x" * number} for number in range(1_000)])
    lines = stream_rows(["n", "says"], source, Look(), Screen(40)).lines
    assert [len(next(lines)) <= 40 for _ in range(300)] == [True] * 300
    assert next(source)["n"] < 320


def test_wide_characters_are_counted_as_the_terminal_counts_them() -> None:
    """Two cells each; combining characters take none. Columns stand below each other, and nothing overflows."""
    lines, _ = shown("who n", "雨雨 1", "e\u0301 2", room=80)
    assert [text_width(line) for line in lines] == [7, 7, 7]
    lines, note = shown("who n", f"{'雨' * 20} 1", f"{'雪' * 20} 2", room=20)
    assert (max(map(text_width, lines)) <= 20, note) == (True, "shortened: who")


def test_a_number_among_texts_is_not_cut_either() -> None:
    """A column of old values holds names and numbers; where it gives way, a number stays whole."""
    long = "a-name-that-is-much-too-long-for-this"
    lines, _ = shown("key old new", f"first -110.000000000 {long}", f"second {long} {long}-2", room=36)
    assert "-110.000000000" in lines[1]
    assert "…" in lines[2]


def test_nothing_that_a_terminal_obeys_reaches_it(tmp_path: Path) -> None:
    """Control codes and changes of direction in a title, from a log that no decider wrote, however it is printed."""
    path = str(tmp_path / "log.db")
    title = "Will it rain in the whole country tomorrow or on the day after that one?"
    run("append", path, "-", given=said("c", "open_contest", contest="cup", rules="baseline", title=title))
    run("append", path, "-", given=opened("q", question="rain", title=title))
    obeyed = "\\u001b[2J\\u009b2J\\u202e\\u2066\\u0007"
    old = title.encode()
    forged = resealed([row.replace(old, old.replace(b"whole", obeyed.encode() + b"whole")) for row in rows(path)])
    other = stored(tmp_path / "forged.db", forged)
    for columns in (40, 80, 300):
        for words in (["table", other, "contests"], ["log", other], ["show", other, "1"], ["log", other, "--wide"]):
            shown = "".join(fast(*words, columns=columns)[0])
            assert "u202e" in shown or columns < 300
            assert all(character.isprintable() for character in shown), (words, shown)


def test_colour_is_restrained() -> None:
    """Names bold, numbers below zero red; what is right green and what is not red, in the columns that say so."""
    found = [{"found": "ok", "n": "-1", "says": "ok"}, {"found": "differs", "n": "2", "says": "-"}]
    lines = list(fit_table(["found", "n", "says"], found, Look(), Screen(80, colour=True)).lines)
    assert lines == [
        f"{colour_text('found', '1')}     {colour_text('n', '1')}  {colour_text('says', '1')}",
        f"{colour_text('ok', '32')}       {colour_text('-1', '31')}  ok",
        f"{colour_text('differs', '31')}   2  -",
    ]


@pytest.mark.parametrize(
    ("environment", "on_terminal", "elsewhere"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colour_is_where_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], on_terminal: bool, elsewhere: bool
) -> None:
    """A terminal has colour unless it is dumb; NO_COLOR removes it everywhere, else FORCE_COLOR adds it."""
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert has_colour(Stream(terminal=True)) is on_terminal
    assert has_colour(Stream(terminal=False)) is elsewhere


def test_a_dumb_terminal_gets_no_escape_sequence(log: str) -> None:
    """Neither on stdout nor on stderr; another gets them on both."""
    found = seen("leaderboard", log, "plain", columns=80, TERM="dumb")
    assert ("\x1b" in found.stdout + found.stderr, found.code) == (False, FINE)
    assert "\x1b[1m" in seen("leaderboard", log, "plain", columns=80).stdout
    assert "\x1b" not in run("leaderboard", log, "nothing").stderr
    assert "\x1b[31mforecast-ledger:\x1b[0m " in seen("leaderboard", log, "nothing", columns=80).stderr


def test_verify_ends_with_a_verdict(tmp_path: Path) -> None:
    """One line on stderr, after everything else: ok, not ok or damaged, with a count; in colour on a terminal."""
    path = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    assert run("verify", path).stderr.splitlines()[-1] == "ok: 34 events, 7 checks"
    assert run("verify", path, "--only", "clock").stderr.splitlines()[-1] == "ok: 34 events, 1 check"
    assert seen("verify", path, columns=80).stderr.splitlines()[-1] == "\x1b[32mok:\x1b[0m 34 events, 7 checks"
    assert run("verify", path, "--quiet").output == ""
    run("append", path, str(SEALED))
    forge(path, *prizes_paid("plain", C=1000))
    found = run("verify", path)
    count = sum(line.startswith("forecast-ledger: ") for line in found.stderr.splitlines())  # the four winners
    verdict = "not ok: 4 findings; the log can be read"
    assert (found.exit_code, count, found.stderr.splitlines()[-1]) == (FINDINGS, 4, verdict)
    assert run("verify", path, "--quiet").stderr.splitlines()[-1] == verdict
    missing = run("verify", path, "--name", "mian")
    assert (missing.exit_code, missing.stderr.count("no ledger named 'mian'; there is 'main'")) == (UNREADABLE, 1)


def test_verify_counts_what_is_damaged(tmp_path: Path) -> None:
    """The verdict has the number of findings; each is on a line that starts with the program's name."""
    path = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    changed = rows(path)
    changed[19] = changed[19].replace(b'"at":16', b'"at":17')
    result = run("verify", stored(tmp_path / "other.db", changed), "--only", "digests")
    *told, verdict = result.stderr.splitlines()
    assert (result.exit_code, verdict) == (DAMAGED, "damaged: 1 finding")
    assert sum(line.startswith("forecast-ledger: ") for line in told) == 1


def test_verify_counts_every_damage(tmp_path: Path) -> None:
    """A row that breaks the chain and another that leads back in time: two findings, two lines, two checks."""
    path = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    changed = rows(path)
    changed[9], changed[19] = changed[19], changed[9]
    result = run("verify", stored(tmp_path / "other.db", changed), "--format", "csv")
    *told, verdict = result.stderr.splitlines()
    count = sum(line.startswith("forecast-ledger: ") for line in told)
    damaged = [row for row in csv.DictReader(io.StringIO(result.stdout)) if row["found"] == "damaged"]
    assert (result.exit_code, verdict, len(damaged)) == (DAMAGED, f"damaged: {count} findings", count)
    assert count > 1
