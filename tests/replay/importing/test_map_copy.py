"""Tables that are copies of a source, by a map: the ledger follows them as it follows a published format."""

import csv
import io
from collections.abc import Callable
from copy import deepcopy
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnyCommand,
    EnrolParticipant,
    OpenContest,
    OpenQuestion,
    Range,
    ResolveQuestion,
    SubmitForecast,
)
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.follow_copy import ANSWER_UNREAD, TRADE_MISSED
from forecast_ledger.replay.importing.question_forecasts import BY_HAND, MISSED, UNREAD
from forecast_ledger.replay.importing.record_copy import REPLACED, REVOKED
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from forecast_ledger.replay.reference.exit_codes import USAGE
from tests.replay.cli.test_main import run
from tests.replay.files.test_sheet_cells import workbook
from tests.replay.importing.test_changing_sources import LATE, PEOPLE, Content, boards, chance
from tests.support.effort import times
from tests.support.maps import read_rows
from tests.support.sources import Imported, import_table, table, ticking

OPEN: dict[str, Any] = {"opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-11T00:00:00Z"}
BEGINS = "2026-03-01T00:00:00Z"
QUESTIONS = ("Q1", "Q2")
# A table of everything: a row is a question, a forecast, its end or an answer.
ALL = """
source = "sheet"
offset = "Z"

[[command]]
type = "open_contest"
id = "contest"
where = { "#" = "1" }
[command.fields]
at = "2026-02-28"
contest = "cup"
rules = { name = "brier", kernel = "brier", period = "covered", total = "mean", least_probability_ppm = 0 }

[[command]]
type = "open_question"
id = "open {question}"
where = { kind = "question" }
[command.fields]
at = "2026-03-01"
question = "{question}"
kind = "binary"
title = "{who}"
opens_at = "2026-03-01"
closes_at = "{until}"

[[command]]
type = "add_question"
id = "add {question}"
where = { kind = "question" }
[command.fields]
at = "2026-03-01"
contest = "cup"
question = "{question}"
weight = "{value}"

[[command]]
type = "submit_forecast"
id = "{question} {who} {at}"
where = { kind = "forecast", value = { not = ["", "NA"] } }
[command.fields]
at = "{at}"
question = "{question}"
participant = "{who}"
probability = "{value}"

[[command]]
type = "withdraw_forecast"
id = "{question} {who} {until} end"
where = { kind = "forecast", value = { not = ["", "NA"] } }
present = ["until"]
[command.fields]
at = "{until}"
question = "{question}"
participant = "{who}"

[[command]]
type = "resolve_question"
id = "answer {question}"
where = { kind = "answer", value = ["yes", "no"] }
[command.fields]
at = "{at}"
question = "{question}"
outcome = "{value}"

[[command]]
type = "annul_question"
id = "annul {question}"
where = { kind = "answer", value = "annulled" }
[command.fields]
at = "{at}"
question = "{question}"
reason = "annulled"
"""
# Answers to a form, on questions that somebody else opened: a column for each question.
FORM = """
source = "form"
offset = "Z"

[[command]]
type = "submit_forecast"
id = "{who} {#1} {at}"
columns = { matches = '(Q\\d) - .*' }
[command.fields]
at = "{at}"
question = "{#1}"
participant = "{who}"
probability = { from = "{#cell}", percent = true }
"""
# The answers to these questions, which are another part of the source.
ANSWERS = """
source = "form"
offset = "Z"

[[command]]
type = "resolve_question"
id = "{question}"
[command.fields]
at = "2026-03-11"
question = "{question}"
outcome = "{answer}"
"""


def table_of(header: str, rows: list[list[str]]) -> bytes:
    """A CSV."""
    text = io.StringIO()
    csv.writer(text).writerows([header.split(","), *rows])
    return text.getvalue().encode()


def form(*rows: str) -> bytes:
    """Answers to a form: who, when and the percentages of two questions, one text a row."""
    header = "at,who,Q1 - Will it rain?,Q2 - Will it snow?"
    return table_of(header, [row.split(",") for row in rows])


def with_questions(*others: AnyCommand, clock: Callable[[], int] | None = None) -> Ledger:
    """A ledger with the contest and the questions of the form, which an organiser opened."""
    ledger = ticking() if clock is None else Ledger.open(":memory:", clock=clock)
    contest = OpenContest(id="contest", at=BEGINS, contest="cup", rules=PRESETS["baseline"])
    opened: list[AnyCommand] = [contest]
    for name in QUESTIONS:
        opened.append(OpenQuestion(id=f"open {name}", at=BEGINS, question=name, kind="binary", **OPEN))
        opened.append(AddQuestion(id=f"add {name}", at=BEGINS, contest="cup", question=name))
    for command in (*opened, *others):
        ledger.handle(command)
    return ledger


def said(found: Imported) -> tuple[int, int, int]:
    """How many commands were accepted, duplicate and refused."""
    return found.counts["accepted"], found.counts["duplicate"], found.counts["refused"]


class Sheet:
    """A table of everything, whose rows are in any order, and as CSV or as a workbook."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Content = {
            name: {
                "closes": 11,
                "title": "Rain",
                "weight": "1",
                "answer": "",
                "made": {who: self.made() for who in PEOPLE},
            }
            for name in QUESTIONS
        }

    def made(self) -> list[list[Any]]:
        """Forecasts of somebody: day, chance or a text for none, and an end before the next or none."""
        days = sorted(self.random.sample(range(2, 8), self.random.randint(0, 3)))
        ends = {day: self.random.choice([None, None, day + 1]) for day in days}
        return [[day, self.random.choice(["NA", "", *[chance(self.random)] * 6]), ends[day]] for day in days]

    def change(self) -> None:
        """Change what the source says in one place."""
        random, question = self.random, self.random.choice([*self.content.values()])
        drawn: dict[str, list[Any]] = {
            "closes": [9, 11, 13],
            "title": ["Rain", "Snow"],
            "weight": ["1", "1.0", "2"],
            "answer": ["", "NA", "yes", "no", "annulled"],
        }
        what = random.choice(["made", "made", "made", "answer", *drawn])
        if what == "made":
            question["made"][random.choice(PEOPLE)] = self.made()
        else:
            question[what] = random.choice(drawn[what])

    def write(self) -> bytes:
        """The table, with a row that is there twice."""
        rows = []
        for name, each in self.content.items():
            closes = f"2026-03-{each['closes']:02}"
            rows.append(["question", name, each["title"], "", closes, each["weight"]])
            rows.append(["answer", name, "", closes, "", each["answer"]])
            for who, made in each["made"].items():
                rows += [
                    ["forecast", name, who, f"2026-03-{day:02}", "" if end is None else f"2026-03-{end:02}", value]
                    for day, value, end in made
                ]
        rows.append(self.random.choice(rows))
        self.random.shuffle(rows)
        header = "kind,question,who,at,until,value"
        if self.random.random() < 0.2:
            return workbook([header.split(","), *rows]).getvalue()
        return table_of(header, rows)


@pytest.mark.parametrize("seed", range(times(40)))
def test_the_boards_are_those_of_the_last_copy_of_a_table_alone(seed: int) -> None:
    """After each of several copies, each of which changes a little; some return to what was said before."""
    random = Random(seed)
    drawn, before = Sheet(random), list[Content]()
    with ticking() as ledger:
        for number in range(5):
            table = drawn.write()
            found = import_table(ledger, ALL, table, now=LATE, take_back=True)
            assert found.refused == [], (seed, number)
            with ticking() as alone:
                import_table(alone, ALL, table, now=LATE)
                assert boards(ledger) == boards(alone), (seed, number)
            assert said(import_table(ledger, ALL, table, now=LATE))[0] == 0, "what was imported is known"
            before.append(deepcopy(drawn.content))
            if random.random() < 0.3:
                drawn.content = deepcopy(random.choice(before))
            for _ in range(random.randint(1, 3)):
                drawn.change()


@pytest.mark.parametrize("seed", range(times(20)))
def test_the_boards_are_those_of_the_last_form_and_answers_on_questions_of_an_organiser(seed: int) -> None:
    """Two maps name one source: one is whole for the forecasts, one for the answers; others forecast there, too."""
    random = Random(seed)
    days = ["2026-03-02T09:00:00", "2026-03-03T09:00:00", "2026-03-04T09:00:00"]
    texts = ["10", "10 %", "10.0", "70%", "", "70"]
    with with_questions(forecast_by_hand()) as ledger:
        for number in range(6):
            rows = [
                [day, who, random.choice(texts), random.choice(texts)]
                for day in days
                for who in PEOPLE
                if random.random() < 0.6
            ]
            answers = [[name, random.choice(["yes", "no"])] for name in QUESTIONS if random.random() < 0.7]
            made = table_of("at,who,Q1 - Rain?,Q2 - Snow?", rows), table_of("question,answer", answers)
            with with_questions(forecast_by_hand()) as alone:
                for each in (ledger, alone):
                    for map_, table in zip((FORM, ANSWERS), made, strict=True):
                        assert import_table(each, map_, table, now=LATE, take_back=True).refused == []
                assert boards(ledger) == boards(alone), (seed, number)
            for map_, table in zip((FORM, ANSWERS), made, strict=True):
                assert said(import_table(ledger, map_, table, now=LATE, take_back=True))[0] == 0


def forecast_by_hand() -> SubmitForecast:
    """A forecast that no form has."""
    return SubmitForecast(id="hand", at="2026-03-02T00:00:00Z", question="Q1", participant="dee", probability="0.4")


def standing(ledger: Ledger) -> list[tuple[str, ...]]:
    """Who forecasts what from when to when."""
    return boards(ledger)[2]


ADA, BO, CY = "2026-03-02 09:00:00,ada,60,5", "2026-03-02 10:00:00,bo,,20%", "2026-03-02 11:00:00,cy,30,80"


def test_what_a_form_no_longer_has_is_taken_back_and_what_changed_is_corrected() -> None:
    """Before the close, what is gone is withdrawn; other digits change nothing, and what returns is a change."""
    march = count(read_instant("2026-03-03T00:00:00Z"))
    with with_questions(clock=lambda: next(march)) as ledger:
        now = "2026-03-03T00:00:00Z"
        assert said(import_table(ledger, FORM, form(ADA, BO, CY), now=now)) == (5, 0, 0)
        changed = form(ADA.replace("60", "65"), CY.replace("30,80", "30.0 %,"))
        found = import_table(ledger, FORM, changed, now=now)
        assert (said(found), found.changes) == ((3, 2, 0), {"a forecast corrected": 1, "a forecast withdrawn": 2})
        ends = {row[:2]: row[3][:10] for row in standing(ledger)}
        assert ends == {
            ("Q1", "ada"): "2026-03-11",
            ("Q1", "cy"): "2026-03-11",
            ("Q2", "ada"): "2026-03-11",
            ("Q2", "bo"): "2026-03-03",
            ("Q2", "cy"): "2026-03-03",
        }
        again = import_table(ledger, FORM, form(ADA, BO, CY), now=now)
        assert (said(again)[0], again.refused) == (3, [])
        assert {row[3][:10] for row in standing(ledger)} == {"2026-03-11"}
        assert said(import_table(ledger, FORM, form(ADA, BO, CY), now=now)) == (0, 5, 0)


def test_after_the_close_what_is_gone_counts_as_never_made() -> None:
    """A row that was deleted leaves no forecast on the board, and no participant of whom nothing is left."""
    with with_questions() as ledger:
        import_table(ledger, FORM, form(ADA, BO, CY), now=LATE)
        found = import_table(ledger, FORM, form(ADA, CY), now=LATE)
        assert found.changes == {"the forecasts of a participant on a question retracted": 1}
        assert {row[1] for row in standing(ledger)} == {"ada", "cy"}


def test_an_answer_that_changes_or_is_gone_is_replaced_or_revoked() -> None:
    """By the map that has the answers; a map of forecasts says nothing of them."""
    both, one = (table_of("question,answer", rows) for rows in ([["Q1", "yes"], ["Q2", "no"]], [["Q1", "no"]]))
    with with_questions() as ledger:
        import_table(ledger, FORM, form(ADA, CY), now=LATE)
        assert said(import_table(ledger, ANSWERS, both, now=LATE)) == (2, 0, 0)
        assert said(import_table(ledger, FORM, form(ADA, CY), now=LATE)) == (0, 4, 0)
        found = import_table(ledger, ANSWERS, one, now=LATE)
        assert found.changes == {REVOKED: 1, REPLACED: 1}
        assert [row[:3] for row in boards(ledger)[3]] == [("Q1", "resolved", "no"), ("Q2", "unresolved", "None")]
        kept = import_table(ledger, ANSWERS, both, now=LATE, keep_missing=True)
        assert (kept.changes, said(kept)[2]) == ({REPLACED: 1}, 0)


def test_what_others_recorded_is_left_alone_and_not_mentioned() -> None:
    """Forecasts of an organiser's own line, of another source, and an answer by hand are no part of the copy."""
    by_hand = ResolveQuestion(id="by hand", at="2026-03-11T00:00:00Z", question="Q2", outcome="yes")
    with with_questions(forecast_by_hand(), by_hand) as ledger:
        import_table(ledger, FORM.replace('"form"', '"other"'), form(BO.replace(",,", ",70,")), now=LATE)
        import_table(ledger, FORM, form(ADA, CY), now=LATE)
        found = import_table(ledger, FORM, form(ADA), now=LATE)
        assert found.changes == {"the forecasts of a participant on a question retracted": 2}
        assert found.left_out == {}
        assert {row[1] for row in standing(ledger)} == {"ada", "bo", "dee"}
        assert import_table(ledger, FORM.replace('"form"', '"other"'), form(BO.replace(",,", ",70,"))).left_out == {}


def test_one_person_in_a_copy_and_by_hand_is_reported() -> None:
    """Which of both counts cannot be known: what is recorded stays."""
    with with_questions(forecast_by_hand()) as ledger:
        dee = ADA.replace("ada", "dee")
        import_table(ledger, FORM, form(dee), now=LATE)
        found = import_table(ledger, FORM, form(dee.replace("60", "61")), now=LATE)
        assert (said(found)[0], found.left_out) == (0, {BY_HAND: 1})


@pytest.mark.parametrize(("rows", "lacks"), [((), 4), ((ADA,), 2), ((ADA, CY), 0)])
def test_a_copy_that_lacks_more_than_half_is_refused_whole(rows: tuple[str, ...], lacks: int) -> None:
    """It is perhaps another form with the same map; an empty table is such a copy, too. --take-back follows it."""
    with with_questions() as ledger:
        import_table(ledger, FORM, form(ADA, CY), now=LATE)
        more = [row.replace("ada", "eve").replace("cy", "fay") for row in rows]
        if 2 * lacks <= 4:
            assert import_table(ledger, FORM, form(*rows, *more), now=LATE).refused == []
            return
        with pytest.raises(Refused) as refused:
            import_table(ledger, FORM, form(*rows), now=LATE)
        assert refused.value.code == "bad_source"
        assert "of the 4 forecasts and answers" in refused.value.detail
        assert f"it lacks {lacks}," in refused.value.detail
        assert "`source` in its map" in refused.value.remedy
        assert said(import_table(ledger, FORM, form(*rows), now=LATE, keep_missing=True))[0] == 0
        assert import_table(ledger, FORM, form(*rows), now=LATE, take_back=True).changes != {}


def test_answers_count_among_what_a_copy_lacks() -> None:
    """A table of answers without rows revokes nothing."""
    both, none = (table_of("question,answer", rows) for rows in ([["Q1", "yes"], ["Q2", "no"]], []))
    with with_questions() as ledger:
        import_table(ledger, ANSWERS, both, now=LATE)
        with pytest.raises(Refused, match="bad_source"):
            import_table(ledger, ANSWERS, none, now=LATE)
        assert import_table(ledger, ANSWERS, none, now=LATE, take_back=True).changes == {REVOKED: 2}


@pytest.mark.parametrize(
    "damage",
    [
        *("2026-03-02 10:00:00,bo,many,", "2026-03-02 10:00:00,bo,5", 'x,"y', "yesterday,bo,5,5"),
        *("2026-03-02 10:00:00,,5,20%", "2026-03-02 10:00:00,be\N{COMBINING ACUTE ACCENT},5,20%"),
    ],
)
def test_a_row_that_cannot_be_read_takes_nothing_back(damage: str) -> None:
    """What is gone may be in that row; what is new is recorded, and what stays is counted."""
    table = form(ADA).decode() + damage + "\n"
    with with_questions() as ledger:
        import_table(ledger, FORM, form(ADA, BO), now=LATE)
        found = import_table(ledger, FORM, table.encode(), now=LATE)
        assert (bool(found.refused), found.changes, found.left_out) == (True, {}, {UNREAD: 1})
        assert {row[1] for row in standing(ledger)} == {"ada", "bo"}
        bad = table_of("question,answer", [["Q1", "yes"], ["Q2"]])
        import_table(ledger, ANSWERS, table_of("question,answer", [["Q2", "no"]]), now=LATE)
        assert import_table(ledger, ANSWERS, bad, now=LATE).left_out == {ANSWER_UNREAD: 1}


def test_keep_missing_only_reports() -> None:
    """What is gone stays, and is counted; what changed is corrected all the same."""
    with with_questions() as ledger:
        import_table(ledger, FORM, form(ADA, BO, CY), now=LATE)
        found = import_table(ledger, FORM, form(ADA.replace("60", "61")), now=LATE, keep_missing=True)
        assert (said(found), found.left_out) == ((1, 1, 0), {MISSED: 3})
        assert {row[1] for row in standing(ledger)} == {"ada", "bo", "cy"}


def test_rows_of_one_id_are_said_twice_or_contradict_each_other() -> None:
    """The first counts, in each copy; that a row says it again is a duplicate."""
    with with_questions() as ledger:
        for _ in range(2):
            found = import_table(ledger, FORM, form(ADA, ADA, ADA.replace("60,5", "70,")), now=LATE)
            [refused] = found.refused
            assert refused.startswith("line 4: command_id_reused id: an earlier row of the file gives this id")
            assert found.left_out == {}
        assert said(found) == (0, 4, 1)
        assert len(standing(ledger)) == 2


def test_a_trade_that_a_copy_no_longer_has_is_named() -> None:
    """Money moved: it stays, and the command is named."""
    map_ = """
source = "broker"
offset = "Z"
[[command]]
type = "record_trade"
id = "{number}"
[command.fields]
at = "{at}"
contest = "arena"
participant = "ada"
question = "Q1"
outcome = "yes"
action = "buy"
shares = "{shares}"
amount = "1"
"""
    rows = [["1", "2026-03-02", "2"], ["2", "2026-03-03", "3"]]
    arena = OpenContest(id="arena", at=BEGINS, contest="arena", rules=PRESETS["market-trades"])
    entry = AddQuestion(id="entry", at=BEGINS, contest="arena", question="Q1")
    with with_questions(
        arena, entry, EnrolParticipant(id="e", at=BEGINS, contest="arena", participant="ada")
    ) as ledger:
        assert said(import_table(ledger, map_, table_of("number,at,shares", rows), now=LATE)) == (2, 0, 0)
        found = import_table(ledger, map_, table_of("number,at,shares", rows[1:]), now=LATE)
        assert (said(found), found.left_out) == ((0, 1, 0), {TRADE_MISSED: 1})


def test_who_edits_the_contest_of_a_map_is_told_that_it_differs() -> None:
    """A contest keeps its rules; that it was not opened again under others is refused, not passed over."""
    table = table_of("kind,question,who,at,until,value", [["question", "Q1", "", "", "2026-03-11", "1"]])
    with ticking() as ledger:
        assert said(import_table(ledger, ALL, table)) == (3, 0, 0)
        assert said(import_table(ledger, ALL, table)) == (0, 3, 0)
        found = import_table(ledger, ALL.replace('"mean"', '"sum"'), table)
        assert [line.partition(":")[2].split()[0] for line in found.refused] == ["command_id_reused"]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"form"', '"weekly form"', "source"),
        ('"form"', f'"{"x" * 41}"', "source"),
        ('offset = "Z"', 'sort = "recorded_at"', "sort"),
        ('at = "{at}"\n', "", "command[0].fields"),
    ],
)
def test_a_map_that_cannot_be_followed_is_refused(old: str, new: str, field: str) -> None:
    """A source is one word, and each command has the instant by which copies are compared."""
    with pytest.raises(Refused) as refused:
        parse_map(FORM.replace(old, new).encode())
    assert (refused.value.code, refused.value.field) == ("bad_map", field)


def test_a_question_of_somebody_else_is_not_opened_again_or_amended() -> None:
    """A row that opens it is refused; the forecasts of the table on it are recorded."""
    rows = [["question", "Q1", "Snow", "", "2026-03-13", "2"], ["forecast", "Q1", "ada", "2026-03-02", "", "0.6"]]
    with with_questions() as ledger:
        for accepted in (1, 0):
            found = import_table(ledger, ALL, table_of("kind,question,who,at,until,value", rows), now=LATE)
            assert said(found)[0] == accepted
            refusals = [line.split(": ")[1].split()[0] for line in found.refused]
            assert refusals == ["duplicate_contest", "duplicate_question", "question_in_contest"]
        assert [row[:2] for row in standing(ledger)] == [("Q1", "ada")]


def append_form(tmp_path: Path, table: bytes, *options: str) -> Any:
    """Append a form to a ledger that has its questions, by the command line."""
    log, map_, file = tmp_path / "log.db", tmp_path / "form.toml", tmp_path / "form.csv"
    if not log.exists():
        with Ledger.open(str(log)) as ledger:
            for name in QUESTIONS:
                until = OPEN | {"closes_at": "2126-01-01T00:00:00Z"}
                ledger.handle(OpenQuestion(id=name, at=BEGINS, question=name, kind="binary", **until))
        map_.write_text(FORM)
    file.write_bytes(table)
    return run("append", str(log), str(file), "--map", str(map_), *options)


@pytest.mark.parametrize("packed", [False, True])
def test_a_dry_run_counts_what_is_then_recorded(tmp_path: Path, packed: bool) -> None:
    """On the command line, of a CSV and of a workbook; afterwards nothing is left to record."""

    def table(*rows: str) -> bytes:
        found = form(*rows)
        return workbook(line.split(",") for line in found.decode().splitlines()).getvalue() if packed else found

    append_form(tmp_path, table(ADA, BO, CY))
    newer = table(ADA.replace("60", "61"), CY)
    tried, done = append_form(tmp_path, newer, "--dry-run"), append_form(tmp_path, newer, "--format", "csv")
    change = "changed since earlier copies: 1 x a forecast withdrawn (question Q2)"
    assert change in tried.stderr
    assert change in done.stderr
    assert "2 accepted, 3 duplicate, 0 refused" in tried.stderr
    assert done.stdout.splitlines()[1].split(",")[:3] == ["2", "3", "0"]
    assert append_form(tmp_path, newer, "--format", "csv").stdout.splitlines()[1].split(",")[:3] == ["0", "4", "0"]
    other = append_form(tmp_path, table(ADA.replace("ada", "eve")))
    assert other.exit_code == USAGE
    assert "nothing was recorded" in other.stderr


def test_all_of_a_copy_is_recorded_or_nothing(tmp_path: Path) -> None:
    """With --atomic, a refused row leaves the earlier copy as it was."""
    append_form(tmp_path, form(ADA, BO, CY))
    newer = form(ADA.replace("60", "61"), CY, "2026-03-02 12:00:00,dee,140,5")
    assert append_form(tmp_path, newer, "--atomic", "--format", "csv").stdout.splitlines()[1].split(",")[0] == "0"
    assert append_form(tmp_path, newer, "--format", "csv").stdout.splitlines()[1].split(",")[:3] == ["3", "3", "1"]


def test_options_that_do_not_fit_a_copy_are_refused(tmp_path: Path) -> None:
    """A copy is whole: nothing of it is kept apart; and only a copy has what it lacks."""
    for options in (["--refused", str(tmp_path / "rest.csv")], ["--recorded-at", "at"]):
        found = append_form(tmp_path, form(ADA), *options)
        assert (found.exit_code, options[0] in found.stderr) == (USAGE, True)
    append_form(tmp_path, form(ADA))
    (tmp_path / "form.toml").write_text(FORM.replace('source = "form"', ""))
    for option in ("--keep-missing", "--take-back"):
        found = append_form(tmp_path, form(ADA), option)
        assert (found.exit_code, "`source`" in found.stderr) == (USAGE, True)


# A sheet of questions with a row each, and forecasts by quantiles in a long table; neither map excludes anything.
SHEET = """
source = "sheet"
offset = "Z"

[[command]]
type = "open_question"
id = "open {q}"
[command.fields]
at = "2026-03-01"
question = "{q}"
kind = "binary"
title = "{title}"
opens_at = "2026-03-01"
closes_at = "2026-03-11"
reveals_at = "{reveals}"

[[command]]
type = "submit_forecast"
id = "{q} ada"
[command.fields]
at = "2026-03-02"
question = "{q}"
participant = "ada"
probability = "{p}"

[[command]]
type = "resolve_question"
id = "answer {q}"
[command.fields]
at = "2026-03-12"
question = "{q}"
outcome = { from = "{answer}", map = { Yes = "yes", No = "no" } }
"""


@pytest.mark.parametrize("text", ["", "NA", "N/A", "null", "NULL"])
def test_a_cell_that_says_that_there_is_nothing_takes_back_what_was_there(text: str) -> None:
    """Without any `where`. In a title, NA is a text; in an instant that may be left out, it is an empty cell."""
    header = "q,title,reveals,p,answer\n"
    with ticking() as ledger:
        first = import_table(ledger, SHEET, f"{header}r,NA,{text},0.8,Yes\n".encode())
        assert (first.refused, table(ledger, "questions", "title", "reveals_at", "outcome")) == (
            [],
            [("NA", "None", "yes")],
        )
        newer = f"{header}r,NA,,{text},{text or 'unresolved'}\n".encode()
        second = import_table(ledger, SHEET, newer, take_back=True)
        assert (second.refused, table(ledger, "questions", "outcome")) == ([], [("None",)])
        assert second.changes == {REVOKED: 1, "the forecasts of a participant on a question retracted": 1}
        assert table(ledger, "standing", "participant") == []
        assert import_table(ledger, SHEET, newer).counts["accepted"] == 0


def test_a_long_table_without_a_value_takes_back_the_forecast() -> None:
    """Of some levels only, it is refused as before; a file that is no copy refuses both."""
    description = (
        'offset = "Z"\n[[command]]\ntype = "submit_forecast"\nid = "f"\ngroup = ["q"]\n[command.fields]\n'
        'at = "2026-03-02"\nquestion = "n"\nparticipant = "ada"\n'
        'quantiles = { level = "{level}", value = "{value}", levels = [0.1, 0.5, 0.9] }\n'
    )
    lines = "q,level,value\nn,0.1,{}\nn,0.5,{}\nn,0.9,{}\n"
    with ticking() as ledger:
        ledger.handle(
            OpenQuestion(
                id="o",
                at="2026-03-01T00:00:00Z",
                question="n",
                kind="numeric",
                opens_at="2026-03-01T00:00:00Z",
                closes_at="2026-03-11T00:00:00Z",
                range=Range(lower=0, upper=100, levels=("0.1", "0.5", "0.9")),
            )
        )
        copy = f'source = "long"\n{description}'
        assert import_table(ledger, copy, lines.format(10, 20, 30).encode()).refused == []
        some = import_table(ledger, copy, lines.format(10, "NA", 30).encode())
        assert len(some.refused) == 1
        none = import_table(ledger, copy, lines.format("NA", "NULL", "").encode(), take_back=True)
        assert (none.refused, none.changes) == ([], {"the forecasts of a participant on a question retracted": 1})
        empty = io.BytesIO(lines.format("NA", "NA", "NA").encode())
        [(_, refused)] = read_rows(parse_map(description.encode()), empty).commands
        assert isinstance(refused, Refused)
