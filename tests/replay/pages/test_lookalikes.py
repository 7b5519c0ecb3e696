"""Ids that look alike are found, and ids that do not are left alone."""

from itertools import combinations
from pathlib import Path

import pytest

from forecast_ledger.replay.pages.lookalikes import lookalikes, plain_id
from tests.replay.pages.test_working_paper import paper_of, section, sheet
from tests.support.given import choices, contest, entry, forecast, opened
from tests.support.logs import written

ALIKE = [
    ("ada", "Ada"),  # case
    ("ada", "аda"),  # Cyrillic а
    ("PAX", "РАХ"),  # Cyrillic throughout
    ("Kim", "Κim"),  # Greek kappa
    ("John", "Jоհn"),  # Cyrillic о, Armenian հ
    ("ﬁn", "fin"),  # a ligature, NFKC
    ("４２", "42"),  # wide digits, NFKC
    ("ada", "ada\ufe0f"),
    ("ada", "a\u3164da"),
    ("bill", "bi1l"),
    ("Bob", "B0b"),
    ("modern", "modem"),
    ("STRASSE", "straße"),  # case folding
    ("ἀλφα", "ἈΛΦΑ"),
]
APART = [
    ("ada", "adb"),
    ("zoë", "zoe"),
    ("вася", "bacr"),
    ("q1", "q2"),
    ("a b", "ab"),
    ("Θ", "O"),
    ("д", "A"),
    ("李", "木子"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE, ids=ascii)
def test_ids_that_look_alike_are_a_group(one: str, other: str) -> None:
    """In whatever order they come, and beside others."""
    expected = [tuple(sorted((one, other)))]
    assert lookalikes([one, other]) == lookalikes(["zzz", other, one, "42nd"]) == expected


@pytest.mark.parametrize(("one", "other"), APART, ids=ascii)
def test_ids_that_can_be_told_apart_are_no_group(one: str, other: str) -> None:
    """Accents, spaces, digits, and letters that only resemble."""
    assert lookalikes([one, other, one]) == []


def test_a_group_joins_all_that_look_like_one_of_it() -> None:
    """Ada looks like ada, and аda like it too: there is one group, not a pair for each."""
    names = ["ada", "Ada", "ADA", "аda", "a\ufe0fda"]
    assert lookalikes(names) == [tuple(sorted(names))]
    assert {len(lookalikes(pair)) for pair in combinations(names, 2)} == {1}


def test_a_paper_lists_the_ids_of_a_contest_that_look_alike(tmp_path: Path) -> None:
    """Participants with a forecast or an enrolment, questions, outcomes and contests; with code points."""
    path = written(
        tmp_path / "log.db",
        [
            contest("cup"), contest("CUP"), opened("rain1"), opened("rainl"), opened("snow"),
            choices("colour", ("red", "rеd", "other")),
            *(entry("cup", question) for question in ("rain1", "rainl", "colour")), entry("CUP", "snow"),
            forecast("rain1", "ada"), forecast("rain1", "аda"), forecast("snow", "ADA"),
        ],
    )  # fmt: skip
    assert sheet(paper_of(path), "Ids that look alike") == [
        ["", "contest", "CUP, cup"],
        ["cup", "participant", "ada, аda ('\\u0430da')"],
        ["cup", "question", "rain1, rainl"],
        ["cup", "outcome of colour", "red, rеd ('r\\u0435d')"],
    ]
    assert plain_id("ada") == "ada"


def test_a_paper_says_that_no_ids_look_alike(tmp_path: Path) -> None:
    """The section is there all the same: it was checked."""
    paper = paper_of(written(tmp_path / "log.db", [contest("cup"), opened(), entry(), forecast()]))
    assert section(paper, "Ids that look alike").words == ["None in the same contest."]
