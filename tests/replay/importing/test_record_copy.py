"""What an import says of corrected forecasts, and of what another writer recorded since the log was read."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.model.commands import OpenQuestion, ResolveQuestion, SubmitForecast
from forecast_ledger.replay.importing import record_copy
from forecast_ledger.replay.importing.follow_copy import follow_copy
from forecast_ledger.replay.importing.record_copy import AGAIN, OTHERS
from forecast_ledger.replay.reference.exit_codes import FINDINGS, FINE
from tests.replay.cli.test_main import run
from tests.replay.importing.test_changing_sources import LATE
from tests.replay.importing.test_map_copy import (
    ADA,
    ANSWERS,
    BEGINS,
    BO,
    CY,
    FORM,
    OPEN,
    append_form,
    form,
    said,
    table_of,
    with_questions,
)
from tests.support.paths import DATA
from tests.support.sources import edit, import_table

DEE = "2026-03-02 12:00:00,dee,10,20"
During = Callable[[Callable[[], Any]], None]


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> During:
    """Lets something be done once, after the next import has read the log and before it records anything."""
    waiting = list[Callable[[], Any]]()

    def late(source: Any, *others: Any) -> Any:
        def items() -> Any:
            while waiting:
                waiting.pop()()
            yield from source.items

        return follow_copy(source._replace(items=items()), *others)

    monkeypatch.setattr(record_copy, "follow_copy", late)
    return waiting.append


def notice(events: str) -> str:
    """What is said of so many events of another writer."""
    return f"{OTHERS}: {events}; {AGAIN}"


def test_forecasts_that_are_corrected_at_their_own_instant_are_counted(tmp_path: Path) -> None:
    """Ada's 60 is 65, and both of cy's numbers are others; 5.0 for 5, and a later forecast of bo, correct nothing."""
    append_form(tmp_path, form(ADA, BO, CY))
    later = "2026-03-02 13:00:00,bo,,25"
    newer = form(ADA.replace("60,5", "65,5.0"), BO, later, CY.replace("30,80", "31,81"))
    line = "changed since earlier copies: 3 x a forecast corrected (question Q1; question Q2)"
    tried, done = (append_form(tmp_path, newer, *options) for options in (["--dry-run"], ["--format", "csv"]))
    for found in (tried, done):
        assert [text for text in found.stderr.splitlines() if text.startswith("changed")] == [line]
    assert (done.exit_code, done.stdout.splitlines()[1].split(",")[:3]) == (FINE, ["4", "2", "0"])
    assert "changed since" not in append_form(tmp_path, newer).stderr


def test_two_copies_of_a_form_at_once_are_made_good_by_the_newest(during: During, tmp_path: Path) -> None:
    """Bo is withdrawn by the copy without him; the other one has two forecasts of dee, which that does not know."""
    append_form(tmp_path, form(ADA, BO, CY))
    newest = form(ADA, BO, CY, DEE)
    during(lambda: append_form(tmp_path, newest))
    found = append_form(tmp_path, form(ADA, CY), "--format", "csv")
    assert (found.exit_code, found.stdout.splitlines()[1].split(",")[:3]) == (FINDINGS, ["1", "4", "0"])
    assert found.stderr.count(notice("2 events")) == 1
    again = append_form(tmp_path, newest, "--format", "csv")
    assert (again.exit_code, again.stdout.splitlines()[1].split(",")[:3]) == (FINE, ["1", "6", "0"])
    assert OTHERS not in again.stderr


def test_the_same_copy_of_a_format_twice_at_once_is_no_conflict(during: During, tmp_path: Path) -> None:
    """All of it is a duplicate: what the other import recorded is what this one says."""
    arguments = "import-from", "hubverse", str(tmp_path / "hub.db"), str(DATA / "hub-import"), "--format", "csv"
    during(lambda: run(*arguments))
    found = run(*arguments)
    assert (found.exit_code, found.stdout.splitlines()[1].split(",")[:3]) == (FINE, ["0", "57", "0"])
    assert OTHERS not in found.stderr


def test_another_copy_of_a_format_at_once_exits_with_1(during: During, tmp_path: Path) -> None:
    """The other copy says low, so that the answer of this one, moderate, is refused as resolved."""
    hub = Path(shutil.copytree(DATA / "hub-import", tmp_path / "hub"))
    oracle = hub / "target-data/oracle-output.csv"
    edit(oracle, lambda text: text.replace("low,0", "low,1").replace("moderate,1", "moderate,0"))
    log = str(tmp_path / "hub.db")
    during(lambda: run("import-from", "hubverse", log, str(hub)))
    found = run("import-from", "hubverse", log, str(DATA / "hub-import"))
    assert found.exit_code == FINDINGS
    assert notice("1 event") in found.stderr
    assert "question_resolved" in found.stderr


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_an_answer_by_hand_is_counted_and_its_refusal_stays(answer: str, during: During) -> None:
    """The organiser answers Q1 while a table with the answer yes is imported, which is then refused."""
    by_hand = ResolveQuestion(id="by hand", at="2026-03-11T00:00:00Z", question="Q1", outcome=answer)
    with with_questions() as ledger:
        during(lambda: ledger.handle(by_hand))
        found = import_table(ledger, ANSWERS, answers("Q1 yes", "Q2 no"), now=LATE)
        assert (said(found), found.others) == ((1, 0, 1), 1)
        assert [line.split(": ")[1] for line in found.refused] == ["question_resolved question"]


def answers(*rows: str) -> bytes:
    """A table of questions and their answers, one text a row."""
    return table_of("question,answer", [row.split() for row in rows])


def test_what_a_copy_does_not_have_is_counted_if_it_is_of_its_source(during: During) -> None:
    """The other copy has an answer to Q2, which this one would have taken back, had it known of it."""
    with with_questions() as ledger:
        during(lambda: import_table(ledger, ANSWERS, answers("Q1 yes", "Q2 no"), now=LATE))
        found = import_table(ledger, ANSWERS, answers("Q1 yes"), now=LATE)
        assert (said(found), found.others) == ((0, 1, 0), 1)


def unrelated() -> Sequence[Any]:
    """Commands of others on a question that no copy has."""
    opened = OpenQuestion(id="open Q9", at=BEGINS, question="Q9", kind="binary", **OPEN)
    return opened, SubmitForecast(id="web", at=BEGINS, question="Q9", participant="ada", probability="0.4")


def test_what_others_record_elsewhere_is_not_counted(during: During) -> None:
    """A service that always records something does not make every import fail; rows said twice are no other writer."""
    with with_questions() as ledger:
        during(lambda: [ledger.handle(each) for each in unrelated()])
        found = import_table(ledger, FORM, form(ADA, CY, ADA), now=LATE)
        assert (said(found), found.others) == ((4, 2, 0), 0)
