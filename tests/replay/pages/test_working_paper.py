"""Working papers say what was checked, what was found, and what was not checked, whatever the log says."""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger import audit, replay
from forecast_ledger.ledger.model.commands import AnyCommand, CloseQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, USAGE
from forecast_ledger.replay.pages import working_paper
from forecast_ledger.replay.pages.findings import HOUR, collect
from forecast_ledger.replay.pages.working_paper import Paper, Section
from forecast_ledger.replay.reading.blocks import Table
from forecast_ledger.replay.reading.log import Log
from tests.replay.cli.test_main import run
from tests.replay.pages.test_report import HOSTILE, checked, crowd
from tests.support.given import (
    NOW,
    annulment,
    bet,
    cohort,
    contest,
    day,
    decision,
    entry,
    exclusion,
    finalization,
    forecast,
    forecasts,
    micros,
    opened,
    payment,
    renaming,
    rescheduling,
    resolution,
    revocation,
    trading_floor,
    won,
)
from tests.support.logs import written
from tests.support.oracle import events_of
from tests.support.paths import DATA

BRIER = RuleSet(name="plain-brier", kernel="brier", period="covered", total="mean")


def paper_of(path: str, **options: Any) -> Paper:
    """Return the working paper of a log."""
    return audit(path, f"{path}.md", **options).paper


def section(paper: Paper, title: str) -> Section:
    """Return the section with a title."""
    [found] = [each for each in paper.sections if each.title.startswith(title)]
    return found


def lists(table: Table) -> list[list[str]]:
    """Return the rows of a table as lists."""
    return [[*row] for row in table.rows]


def sheet(paper: Paper, title: str, number: int = 0) -> list[list[str]]:
    """Return the rows of a table of a section."""
    found = section(paper, title).sheets[number]
    assert all(len(row) == len(found.columns) for row in found.rows)
    return lists(found)


def test_prizes_are_paid_or_owed(tmp_path: Path) -> None:
    """Ada wins the pool of 10; before the payment it is owed, and after it the pool's account is empty."""
    path = written(tmp_path / "log.db", [*won(), payment()])
    paper = paper_of(path)
    assert sheet(paper, "cup") == [["ada", "10.00", "10.00", "0.00"]]
    assert [row for row in sheet(paper, "Trial balance") if row[1] == "prize_pool"] == [
        ["cup", "prize_pool", "2", "10.00", "10.00", "0.00"]
    ]
    position = replay(path).checkpoint.position
    before = paper_of(path, as_of=position - 1)
    assert sheet(before, "cup") == [["ada", "10.00", "0.00", "10.00"]]
    assert before.command.endswith(f"--as-of {position - 1}")
    assert paper.verdict == f"All 7 checks of {position} events found no fault."


def test_an_answer_that_is_revoked_moves_boards(tmp_path: Path) -> None:
    """Ada said 0.7 and Bob 0.2 of what was first yes and then no: 0.09 and 0.64, then 0.49 and 0.04."""
    story: list[AnyCommand] = [
        contest(rules=BRIER),
        opened(),
        entry(),
        forecast(),
        forecast(participant="bob", probability="0.2"),
    ]
    commands: list[AnyCommand] = [*story, resolution(), revocation(), resolution(outcome="no")]
    path = written(tmp_path / "log.db", commands)
    paper, first = paper_of(path), len(commands) - 1
    undone, new = f"yes (#{first - 1})", f"no (#{first + 1})"
    assert sheet(paper, "Answers") == [[str(first), "rain", undone, "misread", new]]
    moved = section(paper, "Answers").sheets[1]
    assert moved.caption == f"Moved on leaderboard from log position {first - 1} to {first + 1}"
    assert [*moved.columns[2:4], *moved.columns[6:]] == ["rank before", "rank after", "score before", "score after"]
    assert [row[:4] + row[6:] for row in sorted(lists(moved))] == [
        ["cup", "ada", "1", "2", "0.090000000", "0.490000000"],
        ["cup", "bob", "2", "1", "0.640000000", "0.040000000"],
    ]
    still = paper_of(path, as_of=first)
    assert sheet(still, "Answers") == [[str(first), "rain", undone, "misread", ""]]
    assert [row[:4] for row in sorted(sheet(still, "Answers", 1))] == [
        ["cup", "ada", "1", "not listed"],
        ["cup", "bob", "2", "not listed"],
    ]


# A take is proportional to the probability of the answer over the median, 0.5. For yes 1, 1.6, 0.4 and 1 in 4, and for
# no 1, 0.4, 1.6 and 1: of a pool of 100, 25, 40, 10 and 25, and 25, 10, 40 and 25.
CHANCES = {"ada": "0.5", "bob": "0.8", "cyd": "0.2", "dan": "0.5"}


def corrected(between: Sequence[AnyCommand] = ()) -> list[AnyCommand]:
    """Three contests over one question: one is sealed and paid, one sealed, one open; then the answer is corrected."""
    story: list[AnyCommand] = [opened()]
    for name in ("cup", "jug", "mug"):
        story += [contest(name, pool=100), entry(name)]
    story += [*forecasts(**CHANCES), resolution(), finalization("cup"), finalization("jug"), payment("cup")]
    return [*story, revocation(at=day(26)), *between, resolution(at=day(26), outcome="no")]


def test_a_correction_moves_boards_that_are_not_sealed(tmp_path: Path) -> None:
    """A sealed board keeps its prizes, which are paid or owed; an open one owes nothing."""
    paper = paper_of(written(tmp_path / "log.db", corrected()))
    [_, moved] = section(paper, "Answers").sheets
    assert moved.columns[:6] == [
        "contest", "participant", "rank before", "rank after", "prize before", "prize after"
    ]  # fmt: skip
    assert [row[:6] for row in sorted(lists(moved))] == [
        ["mug", "bob", "1", "4", "40.00", "10.00"],
        ["mug", "cyd", "4", "1", "10.00", "40.00"],
    ]
    for name, paid in (("cup", True), ("jug", False)):
        prizes = {"ada": "25.00", "bob": "40.00", "cyd": "10.00", "dan": "25.00"}
        rows = [[who, prize, *((prize, "0.00") if paid else ("0.00", prize))] for who, prize in prizes.items()]
        assert sorted(sheet(paper, name)) == rows
    assert {row[3] for row in sheet(paper, "mug")} == {""}
    assert "nothing is owed yet" in section(paper, "mug").words[0]
    assert section(paper, "jug").words == []


def test_what_is_recorded_between_is_no_part_of_a_correction(tmp_path: Path) -> None:
    """With another answer before the new one, it is compared how boards were without the revoked answer."""
    aside: list[AnyCommand] = [
        opened("wind"),
        entry("mug", "wind"),
        forecast("wind", "ada"),
        resolution("wind", at=day(26)),
    ]
    commands = corrected(aside)
    paper = paper_of(written(tmp_path / "log.db", commands))
    [listed, moved] = section(paper, "Answers").sheets
    assert moved.caption == "Moved on leaderboard from log position 18 to 19"
    assert {row[3] for row in lists(moved)} <= {"not listed", ""}
    assert [row[4] for row in lists(listed)] == ["no (#24)"]


def test_corrections_of_several_answers_are_told_apart(tmp_path: Path) -> None:
    """An answer between them ends the first; two in a row are one, and a question revoked twice has both answers.

    Ada's mean score is 0.09 and bob's 0.64, then 0.49 and 0.04; with an answer yes on c 1.07 / 3 and 0.72 / 3, and
    without a 0.58 / 2 and 0.68 / 2.
    """
    story: list[AnyCommand] = [contest(rules=BRIER)]
    for name in ("a", "b", "c"):
        story += [opened(name), entry(question=name), forecast(name), forecast(name, "bob", probability="0.2")]
    story += [resolution("a"), resolution("b"), revocation("a"), resolution("a", outcome="no"), revocation("b")]
    story += [resolution("b", outcome="no"), resolution("c"), revocation("a"), annulment("a")]
    paper = paper_of(written(tmp_path / "log.db", story))
    listed, *moved = section(paper, "Answers").sheets
    assert [row[1:3] + row[4:] for row in lists(listed)] == [
        ["a", "no (#17)", "annulled (#22)"],
        ["b", "yes (#15)", "no (#19)"],
        ["a", "yes (#14)", "no (#17)"],
    ]  # the newest first
    assert [each.caption.partition("from ")[2] for each in moved] == ["log position 15 to 19", "log position 20 to 22"]


def test_corrections_move_accounts(tmp_path: Path) -> None:
    """In the story, the totals and ranks of ada and bo: the boards as of just before and after are replayed here."""
    path = str(tmp_path / "arena.db")
    assert run("append", path, str(DATA / "arena-week" / "commands.jsonl")).exit_code == FINE
    [_, moved] = section(paper_of(path), "Answers").sheets
    assert moved.caption == "Moved on arena_leaderboard from log position 46 to 52"
    old, new = (
        {(row["contest"], row["participant"]): row for row in replay(path, as_of=cut).table("arena_leaderboard").rows()}
        for cut in (46, 52)
    )
    expected = [
        [*key, *(str(each[key][name]) for name in ("rank", "total") for each in (old, new))]
        for key in new
        if (old[key]["rank"], old[key]["total"]) != (new[key]["rank"], new[key]["total"])
    ]
    assert sorted(lists(moved)) == sorted(expected)
    assert [row[1] for row in expected] == ["ada", "bo"]


def test_a_total_can_move_without_a_rank(tmp_path: Path) -> None:
    """Who trades alone stays first: 500 of 10,000 bought shares at 0.4, which pay 1,250, and then nothing."""
    floor = [*trading_floor("ada"), decision(bet(500))]
    answers: list[AnyCommand] = [resolution(), revocation(), resolution(outcome="no")]
    [_, moved] = section(paper_of(written(tmp_path / "log.db", [*floor, *answers])), "Answers").sheets
    assert lists(moved) == [["week", "ada", "1", "1", "10750.00", "9500.00"]]


def test_late_entries_are_counted_by_type(tmp_path: Path) -> None:
    """Recorded on March 31: a forecast of the 11th is late by 20 days, one of April 2 claims to be two days ahead."""
    story: list[AnyCommand] = [
        opened(at=day(30), closes_at="2026-04-09T00:00:00Z"),
        forecast(at=day(11)),
        forecast(participant="bob", at="2026-04-02T00:00:00Z"),
    ]
    paper = paper_of(written(tmp_path / "log.db", story), late=24 * HOUR)
    assert sheet(paper, "Late", 1) == [["forecast_made", "1", "1", "20 days"]]
    assert section(paper, "Late").sheets[1].caption == "By type of entry"


def test_forecasts_recorded_after_the_close_are_counted(tmp_path: Path) -> None:
    """The close of the 20th is put off to the 23rd; recorded on the 22nd a forecast is in time, and on the 23rd not."""
    made = [forecast(participant=who, at=day(at)) for who, at in (("ada", 15), ("bob", 15), ("cyd", 16))]
    log = written(tmp_path / "log.db", [opened(), rescheduling(), *made], at=map(micros, (10, 14, 22, 23, 23)))
    words = " ".join(section(paper_of(log), "Late").words)
    assert "2 forecasts, recorded at or after the close of the question" in words


def two_contests(folder: Path) -> str:
    """A log, recorded on March 31, of the contest cup with the question rain, and of league with rain and snow."""
    story: list[AnyCommand] = [
        opened(),
        opened("snow", closes_at="2026-04-09T00:00:00Z"),
        contest("cup", pool=10, rules="relative-2022-04"),
        contest("league", pool=20, rules="relative-2022-04"),
        entry("cup"),
        entry("league"),
        entry("league", "snow"),
        forecast(at=day(15)),
        forecast("snow", at=day(30, 23)),
        forecast("snow", "bob", at="2026-04-02T00:00:00Z"),
        exclusion("league", "cyd"),
        resolution(),
        revocation(),
        resolution("snow", at="2026-04-10T00:00:00Z"),
        revocation("snow", at="2026-04-10T00:00:00Z"),
        annulment("snow", at="2026-04-11T00:00:00Z"),
    ]
    return written(folder / "log.db", story)


def test_late_entries_are_listed_by_contest(tmp_path: Path) -> None:
    """Of cup: its opening, its one question, and of rain the opening, a forecast after the close, an answer, its end.

    Of league the same four of rain, its own opening, two questions and an exclusion, and the opening of snow; ahead are
    a forecast, an answer, its end and the annulment. The other forecast of snow is late by an hour, which is allowed.
    """
    path = two_contests(tmp_path)
    rows = section(paper_of(path, late=2 * HOUR), "Late").sheets[-1]
    assert rows.caption == "By contest"
    assert [row[:4] for row in rows.rows] == [["cup", "6", "0", "1"], ["league", "9", "4", "1"]]
    [own] = section(paper_of(path, late=2 * HOUR, contest="cup"), "Late").sheets[-1].rows
    assert own == rows.rows[0]


def test_a_paper_can_be_about_one_contest(tmp_path: Path) -> None:
    """The whole log is checked; the rest is about the contest and its questions, and the command says so."""
    path = two_contests(tmp_path)
    whole, cup, league = paper_of(path), paper_of(path, contest="cup"), paper_of(path, contest="league")
    assert cup.sections[0] == whole.sections[0]
    assert cup.title.endswith(", contest cup")
    assert cup.command.endswith(" --contest cup")
    assert [row[1] for row in sheet(cup, "Answers that were revoked")] == ["rain"]
    assert [row[1] for row in sheet(league, "Answers that were revoked")] == ["snow", "rain"]
    assert section(cup, "Questions that were annulled").words == ["No question was annulled."]
    assert [row[1] for row in sheet(league, "Questions that were annulled")] == ["snow"]
    assert section(cup, "Exclusions").words == ["Nobody was excluded."]
    assert [row[2] for row in sheet(league, "Exclusions")] == ["cyd"]
    assert {row[0] for row in sheet(cup, "Trial balance")} == {"cup"}
    assert section(cup, "Late").words[0].partition(", ")[0] == "6 entries of 6"
    titles = [each.title for each in cup.sections if each.level == 3]
    assert (titles, len([each for each in whole.sections if each.level == 3])) == (["cup"], 2)
    of = {name: collect(Log(path), 16, HOUR, name)[1].corrections for name in ("cup", "league")}
    assert of == {"cup": [(13, 13, ("rain",))], "league": [(13, 13, ("rain",)), (15, 16, ("snow",))]}
    result = run("audit", path, str(tmp_path / "paper.md"), "--contest", "cups")
    assert (result.exit_code, (tmp_path / "paper.md").exists()) == (USAGE, False)


def test_exclusions_have_their_reasons(tmp_path: Path) -> None:
    """In the order of the log; the last of a participant in a contest is in force."""
    path = written(
        tmp_path / "log.db", [*won()[:-1], exclusion(), exclusion(level="no_rank", reason="wrote the question")]
    )
    assert [row[1:] for row in sheet(paper_of(path), "Exclusions")] == [
        ["cup", "ada", "no_prize", "staff", "replaced"],
        ["cup", "ada", "no_rank", "wrote the question", "yes"],
    ]


def test_of_two_ids_that_are_one_participant_the_later_exclusion_is_in_force(tmp_path: Path) -> None:
    """In a contest that is sealed before they are, both are."""
    story: list[AnyCommand] = [contest(), contest("shut")]
    story += [exclusion(name, who) for name in ("cup", "shut") for who in ("ada", "bo")]
    paper = paper_of(written(tmp_path / "log.db", [*story, finalization("shut"), renaming()]))
    told = {(row[1], row[2]): row[5] for row in sheet(paper, "Exclusions")}
    assert told == {("cup", "ada"): "replaced", ("cup", "bo"): "yes", ("shut", "ada"): "yes", ("shut", "bo"): "yes"}


def test_late_entries_are_counted_and_the_worst_are_shown(tmp_path: Path) -> None:
    """Recorded on March 31; by what they claim, the worst first, and the forecasts after the close apart."""
    commands = [*won()[:-2], forecast(participant="bob", at="2026-03-11T00:00:00Z")]
    path = written(tmp_path / "log.db", commands)
    claims = [recorded.event.at for recorded in events_of(path)]
    since = NOW - micros(10)
    earlier = sum(NOW - at > since for at in claims)
    assert 0 < earlier < len(claims)
    paper = paper_of(path, late=since)
    assert section(paper, "Late").words[0].startswith(f"{earlier} entries of {len(claims)}, recorded more than 21 days")
    after, shown = sheet(paper, "Late"), sheet(paper, "Late", 1)
    assert [row[-1].partition(" on ")[0] for row in after] == ["ada", "bob"]
    assert all(row[3] == "11 days" for row in after)  # the close was on the 20th
    assert len(shown) == earlier
    assert {row[1] for row in shown} == {"question_opened", "contest_opened", "question_added"}
    assert shown[0][2] == "2026-03-05T00:00:00Z"
    assert sheet(paper_of(path, late=40 * 24 * HOUR), "Checkpoint")
    own = [["cup", "0", "0", "2", "0 seconds"]]
    assert [each.rows for each in section(paper_of(path, late=40 * 24 * HOUR), "Late").sheets] == [after, own]


@pytest.mark.parametrize("ending", [".md", ".html"])
def test_a_damaged_log_gets_no_numbers(tmp_path: Path, ending: str) -> None:
    """The paper names the log position; the exit code is that of verify."""
    path, out = written(tmp_path / "log.db", won()), tmp_path / f"paper{ending}"
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("UPDATE stored_events SET state = CAST(replace(state, 'rain', 'rein') AS BLOB) "
                      "WHERE originator_version = 3")  # fmt: skip
    done = run("audit", path, str(out))
    assert done.exit_code == DAMAGED
    assert (
        done.stderr.splitlines()[-1] == f"wrote {out}"
    )  # and not as of which row and digest, which are those of damage
    text = out.read_text(encoding="utf-8")
    assert "The log is damaged: log position 3" in text
    assert "Trial balance" not in text
    assert "What was not checked" in text
    assert "-as-of 2 makes a paper" in text
    assert run("audit", path, str(out), "--as-of", "2").exit_code == FINE
    assert run("audit", path, str(out), "--as-of", "3").exit_code == DAMAGED


def test_an_empty_log_has_a_paper(tmp_path: Path) -> None:
    """With the exit code that verify has for it."""
    path, out = str(tmp_path / "log.db"), tmp_path / "paper.md"
    Ledger.open(path).close()
    assert run("audit", path, str(out)).exit_code == FINDINGS
    assert "The log has no events." in out.read_text(encoding="utf-8")


def test_a_checkpoint_shows_whether_the_newest_events_are_gone(tmp_path: Path) -> None:
    """Without one, the paper says that this was not checked; a file that is none is wrong usage."""
    path, out, kept = written(tmp_path / "log.db", won()), tmp_path / "paper.md", tmp_path / "kept.toml"
    kept.write_bytes(run("checkpoint", path).stdout_bytes)
    assert run("audit", path, str(out)).exit_code == FINE
    assert "Whether the newest events were removed" in out.read_text(encoding="utf-8")
    assert run("audit", path, str(out), "--checkpoint", str(kept)).exit_code == FINE
    text = out.read_text(encoding="utf-8")
    assert "All 8 checks of" in text
    assert "Whether the newest events were removed" not in text
    assert "--checkpoint FILE" in text
    with closing(sqlite3.connect(path)) as store, store:
        last = replay(path).checkpoint.position
        store.execute("DELETE FROM stored_events WHERE originator_version = ?", (last,))
    assert run("audit", path, str(out), "--checkpoint", str(kept)).exit_code == FINDINGS
    assert f"the log ends at position {last - 1}" in out.read_text(encoding="utf-8")
    assert run("audit", path, str(out), "--checkpoint", str(out)).exit_code == USAGE


def test_rules_are_explained_field_by_field(tmp_path: Path) -> None:
    """Those that differ from their defaults; of trading, all."""
    path = written(tmp_path / "log.db", [contest(rules=BRIER), cohort()])
    fields = {row[0]: row[1] for row in sheet(paper_of(path), "cup")}
    assert fields == {"name": "plain-brier", "kernel": "brier", "period": "covered", "total": "mean"}
    traded = {row[0]: row[1] for row in sheet(paper_of(path), "week")}
    assert traded["trading.starting_cash"] == "10000"


def test_a_text_cannot_turn_around_what_follows_it(tmp_path: Path) -> None:
    """In Markdown nothing isolates a cell: characters that change direction, or are not seen, are escaped."""
    name = "\u202e00.01 | ada"
    path = written(tmp_path / "log.db", [*won()[:-1], exclusion(reason=name)])
    assert run("audit", path, str(tmp_path / "paper.md")).exit_code == FINE
    text = (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert "\u202e" not in text
    assert r"| \\u202e00.01 \| ada |" in text


def test_no_name_in_a_log_is_markup(tmp_path: Path) -> None:
    """Neither in HTML nor in Markdown, where each row of a table has as many cells as its head."""
    names = [*HOSTILE, "a|b", "`c`", "*d* _e_", "[f](http://127.0.0.1:9/g)", "www.example.org", "- h", "1. i", "## j"]
    reasons = [exclusion(participant=name, reason=f"{name}\n\n# {name}") for name in names if name]
    path = written(tmp_path / "log.db", [*crowd(names), *reasons])
    html, markdown = tmp_path / "paper.html", tmp_path / "paper.md"
    assert (run("audit", path, str(html)).exit_code, run("audit", path, str(markdown)).exit_code) == (FINE, FINE)
    found = checked(html.read_text(encoding="utf-8"))
    assert "script" not in found.elements
    assert "img" not in found.elements
    width = 0
    for line in markdown.read_text(encoding="utf-8").splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line))
        assert not cells or cells == width or not width
        width = cells
        assert not re.search(r"(?<!\\)<", line)
        assert not re.search(r"(?<!\\)\]\(|www\.|(?<!\\)://", line)
    for name in names:
        assert name in " ".join(found.texts)


def test_the_same_log_gives_the_same_paper(tmp_path: Path) -> None:
    """The command in it writes it again, although the log has grown."""
    path, out = written(tmp_path / "log.db", won()), tmp_path / "paper.md"
    assert run("audit", path, str(out), "--late", "2h").exit_code == FINE
    text = out.read_text(encoding="utf-8")
    command = text.split("`")[-2].split()
    written(path, [opened("later", id="later")])
    again = tmp_path / "again" / "paper.md"
    again.parent.mkdir()
    assert run("audit", path, str(again), *command[4:]).exit_code == FINE
    assert again.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["paper.md", "--late", "soon"], "90m"), (["paper.md", "--late", "-1h"], "90m"), (["paper.pdf"], ".html, .md")],
)
def test_wrong_usage_is_said_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    """And nothing is written."""
    path = written(tmp_path / "log.db", won())
    result = run("audit", path, str(tmp_path / arguments[0]), *arguments[1:])
    assert (result.exit_code, said in result.stderr) == (USAGE, True)
    assert not (tmp_path / arguments[0]).exists()


def test_a_revocation_that_a_sealed_board_rests_on_is_listed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three revocations are listed, and one correction is followed: the sealed board's, then the newest."""
    story: list[AnyCommand] = [*won(), revocation(), resolution(outcome="no"), contest("open", rules=BRIER)]
    for name in ("a", "b"):
        story += [opened(name), entry("open", name), forecast(name), resolution(name), revocation(name)]
    monkeypatch.setattr(working_paper, "MOST_REVOCATIONS", 2)
    monkeypatch.setattr(working_paper, "MOST_CORRECTIONS", 1)
    paper = paper_of(written(tmp_path / "log.db", story))
    found = section(paper, "Answers")
    assert [row[1] for row in found.sheets[0].rows] == ["rain", "b"]
    assert any(each.startswith("Only 2 of 3 are listed: ") and "log LOG --type" in each for each in found.words)
    assert any(each.startswith("Only 1 of 3 corrections") for each in found.words)
    assert "No rank, prize or total differs in the corrections that were followed." in found.words


def test_annulments_and_moved_times_are_listed(tmp_path: Path) -> None:
    """Annulments have their reasons, and whether they still stand; moved times have the end scheduled before."""
    story: list[AnyCommand] = [opened("a"), opened("b"), rescheduling("a", reason="holiday")]
    story += [CloseQuestion(at=day(15), question="b"), annulment("a"), annulment("b", reason="typo"), revocation("b")]
    paper = paper_of(written(tmp_path / "log.db", story))
    assert sheet(paper, "Questions that were annulled") == [
        ["5", "a", "refund_cost", "no source", "yes"],
        ["6", "b", "refund_cost", "typo", "no"],
    ]
    [moved, early] = sheet(paper, "Moved times")
    assert (moved[0], moved[3]) == ("3", "2026-03-20T00:00:00Z")
    assert moved[4] == "a closes 2026-03-23T00:00:00Z: holiday"
    assert (early[0], early[3], early[4]) == ("4", "2026-03-20T00:00:00Z", "b, closed early")
    empty = paper_of(written(tmp_path / "empty.db", [opened()]))
    assert section(empty, "Moved times").words == ["No times were moved, and no question was closed early."]
    assert section(empty, "Questions that were annulled").words == ["No question was annulled."]


def test_long_lists_say_how_many_there_are_and_how_to_see_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three annulments the newest one is listed, and the caption has the count and the command."""
    monkeypatch.setattr(working_paper, "MOST_LISTED", 1)
    story: list[AnyCommand] = [command for name in "abc" for command in (opened(name), annulment(name))]
    [found] = section(paper_of(written(tmp_path / "log.db", story)), "Questions that were annulled").sheets
    assert [row[1] for row in found.rows] == ["c"]
    assert found.caption == "Annulments: the newest 1 of 3; `log LOG --type question_annulled` lists all"
    story = [
        contest(),
        *(exclusion(participant=who, level=level) for who, level in (("ada", "hidden"), ("bob", "no_prize"))),
    ]
    [found] = section(paper_of(written(tmp_path / "exclusions.db", story)), "Exclusions").sheets
    assert ([row[2] for row in found.rows], found.caption.startswith("Exclusions: the newest 1 of 2;")) == (
        ["bob"],
        True,
    )


def test_exclusions_are_listed_by_level(tmp_path: Path) -> None:
    """By contest and level, the mildest first, with the number of those in force at each level."""
    story: list[AnyCommand] = [contest()]
    story += [exclusion(participant=who, level=level) for who, level in
              (("ada", "hidden"), ("bob", "no_prize"), ("cyd", "no_rank"), ("ada", "no_prize"))]  # fmt: skip
    paper = paper_of(written(tmp_path / "log.db", story))
    assert [(row[2], row[3], row[5]) for row in sheet(paper, "Exclusions")] == [
        ("bob", "no_prize", "yes"),
        ("ada", "no_prize", "yes"),
        ("cyd", "no_rank", "yes"),
        ("ada", "hidden", "replaced"),
    ]
    assert section(paper, "Exclusions").words == ["In force in cup: 2 as no_prize.", "In force in cup: 1 as no_rank."]
