"""Imports that are cut short, and sources as they lie about: in every format, a whole import makes them good."""

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import ResolveQuestion, RevokeResolution
from forecast_ledger.ledger.model.input_locations import ReadCommand
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.kinds import KINDS
from forecast_ledger.replay.importing.question_forecasts import BEFORE_CHANGE
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import LeftOut, carried
from forecast_ledger.replay.writing import append
from forecast_ledger.replay.writing.append import append_batches
from tests.support.effort import LONG, times
from tests.support.paths import DATA
from tests.support.sources import import_into, scores, table, ticking, zipped

SOURCES = {
    "forecastbench": "forecastbench-import",
    "hubverse": "hub-import",
    "kalshi": "kalshi-import",
    "manifold": "manifold-import",
    "metaculus": "metaculus-import",
    "polymarket": "polymarket-import",
}
TEXTS = [
    (kind, path.relative_to(DATA / folder).as_posix())
    for kind, folder in SOURCES.items()
    for path in sorted((DATA / folder).rglob("*"), key=lambda path: path.stat().st_size)
    if path.suffix in {".csv", ".json", ".ndjson"} and path.name != "score_data.csv"
]
FORMS = [*{(kind, re.sub(r"\d.*", "", name)): (kind, name) for kind, name in TEXTS}.values()]  # the largest of each
KIND = pytest.mark.parametrize("kind", KINDS)


class Copies(dict[str, Path]):
    """A copy of each source that is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, kind: str) -> Path:
        copy = self[kind] = Path(shutil.copytree(DATA / SOURCES[kind], self._folder / SOURCES[kind]))
        return copy


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    """Copies of the sources, to be written to."""
    return Copies(tmp_path)


@cache
def whole(kind: str) -> list[tuple[str, ...]]:
    """Every score of the source as it is."""
    with ticking() as ledger:
        import_into(ledger, kind, DATA / SOURCES[kind])
        return scores(ledger)


def test_every_format_is_tried_here() -> None:
    """A new one needs its source in the list."""
    assert {*SOURCES} == {*KINDS}


@KIND
def test_an_import_that_is_interrupted_anywhere_goes_on_where_it_ended(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command is recorded in a transaction of its own, and the process ends after so many of them: after every
    29th number, in a long run after every one.
    """
    monkeypatch.setattr(append, "FIRST_BATCH", 1)
    monkeypatch.setattr(append, "LARGEST_BATCH", 1)
    files = SourceFiles(DATA / SOURCES[kind])

    def read() -> Iterator[ReadCommand]:
        return carried(KINDS[kind].read(files, None).items, LeftOut())

    expected, commands = whole(kind), sum(1 for _ in read())
    for ended in range(0, commands, 29 if LONG == 1 else 1):
        with ticking() as ledger:
            for _ in append_batches(ledger, islice(read(), ended), lambda _: None):
                pass
            begun = ledger.head().position
            counts = import_into(ledger, kind, DATA / SOURCES[kind]).counts
            assert (begun, counts["refused"]) == (min(ended, begun), 0)
            assert scores(ledger) == expected
            assert import_into(ledger, kind, DATA / SOURCES[kind]).counts["accepted"] == 0


def refused_whole(ledger: Ledger, kind: str, path: Path) -> bool:
    """Whether the source is refused before anything is recorded; nothing else may be raised."""
    try:
        import_into(ledger, kind, path)
    except Refused as refused:
        return (refused.code, ledger.head().position) == ("bad_source", 0)
    return True


@pytest.mark.parametrize(("kind", "name"), FORMS)
def test_a_file_that_is_cut_anywhere_is_made_good_by_the_whole_file(
    kind: str, name: str, copies: dict[str, Path]
) -> None:
    """It is refused whole, or in part with its lines. Then the scores are those of the whole source, but for forecasts
    that come after the answer of their question, which are refused, or after a change of its options, which are named.
    """
    content, expected = (copies[kind] / name).read_bytes(), whole(kind)
    cuts = random.Random(name)
    for cut in [0, 1, len(content) - 1, *(cuts.randrange(len(content)) for _ in range(times(4)))]:
        (copies[kind] / name).write_bytes(content[:cut])
        with ticking() as ledger:
            assert refused_whole(ledger, kind, copies[kind])
            if ledger.head().position == 0:  # nothing is recorded, so that the whole file is the first
                continue
            found = import_into(ledger, kind, DATA / SOURCES[kind])
            assert all(re.search(": (question_resolved|wrong_length|unknown_outcome) ", line) for line in found.refused)
            assert found.refused or BEFORE_CHANGE in found.left_out or scores(ledger) == expected, cut


def with_marks(text: bytes) -> bytes:
    """The text as programs on Windows write it: a byte order mark, and carriage returns."""
    return b"\xef\xbb\xbf" + text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def with_all_rows_twice(text: bytes) -> bytes:
    """A table whose rows are there twice."""
    header, _, rows = text.partition(b"\n")
    return header + b"\n" + rows + rows


@pytest.mark.parametrize(
    ("change", "endings"), [(with_marks, {".csv", ".json"}), (with_all_rows_twice, {".csv"})], ids=["marks", "twice"]
)
@KIND
def test_marks_line_ends_and_rows_that_are_there_twice_change_nothing(
    kind: str, change: Callable[[bytes], bytes], endings: set[str], copies: dict[str, Path]
) -> None:
    """A row that is there again is a duplicate, or is refused with its line; the scores are the same."""
    for _, name in [each for each in TEXTS if each[0] == kind and Path(each[1]).suffix in endings]:
        (copies[kind] / name).write_bytes(change((copies[kind] / name).read_bytes()))
    with ticking() as ledger:
        found = import_into(ledger, kind, copies[kind])
        assert change is with_all_rows_twice or found.refused == []
        assert scores(ledger) == whole(kind)


@KIND
def test_a_zip_that_is_cut_is_refused_before_anything_is_recorded(kind: str, tmp_path: Path) -> None:
    """The list of its files is at its end."""
    content = zipped(DATA / SOURCES[kind], tmp_path / "whole.zip").read_bytes()
    for cut in (0, 1, 100, len(content) // 2, len(content) - 30, len(content) - 1):
        (tmp_path / "cut.zip").write_bytes(content[:cut])
        with ticking() as ledger:
            with pytest.raises(Refused, match="bad_source"):
                import_into(ledger, kind, tmp_path / "cut.zip")
            assert ledger.head().position == 0


@pytest.mark.parametrize(("kind", "name"), FORMS)
def test_bytes_that_are_no_text_and_a_line_without_an_end_are_refused(
    kind: str, name: str, copies: dict[str, Path]
) -> None:
    """Nothing else is raised, and a line of 5 MB is not taken for a cell."""
    content = (copies[kind] / name).read_bytes()
    for text in (b"\xff" + content, content + b"\xff\xfe,1,\x00\n", b"x" * 5_000_000, b"[" * 5_000, b"{}", b"null"):
        (copies[kind] / name).write_bytes(text)
        with ticking() as ledger:
            assert refused_whole(ledger, kind, copies[kind])


def test_a_source_that_returns_to_an_answer_has_that_answer(copies: dict[str, Path]) -> None:
    """Yes, no, annulled, and yes again: each replaces what stands; what is corrected by hand stays."""
    answers = copies["forecastbench"] / "resolution_sets/2026-03-01_resolution_set.json"
    question = "2026-03-01 polymarket 0xabc"

    def answered(value: float | None) -> str | None:
        content = json.loads(answers.read_text(encoding="utf-8"))
        content["resolutions"][2]["resolved_to"] = value
        answers.write_text(json.dumps(content), encoding="utf-8")
        assert import_into(ledger, "forecastbench", copies["forecastbench"]).refused == []
        head = ledger.head().position
        assert import_into(ledger, "forecastbench", copies["forecastbench"]).counts["accepted"] == 0
        assert ledger.head().position == head
        rows = table(ledger, "questions", "question", "state", "outcome")
        [(_, state, outcome)] = [row for row in rows if row[0] == question]
        return outcome if state == "resolved" else state

    with ticking() as ledger:
        told = [answered(value) for value in (1.0, 0.0, None, 1.0, 0.0, 1.0, None, 1.0)]
        assert told == ["yes", "no", "annulled", "yes", "no", "yes", "annulled", "yes"]
        by_hand = RevokeResolution(at="2026-09-01T00:00:00Z", question=question, reason="misread")
        ledger.handle(by_hand, command_id="by hand")
        assert answered(1.0) == "unresolved"
        ledger.handle(
            ResolveQuestion(at="2026-09-02T00:00:00Z", question=question, outcome="no"), command_id="by hand, too"
        )
        assert answered(1.0) == "no"
