"""Sealing: what is listed is whole and checked, whatever happens; a folder takes the rows of one log only."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec import UNSET, structs

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import START, Checkpoint
from forecast_ledger.ledger.segments import sealing, segment_columns
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, rebuild
from forecast_ledger.ledger.segments.segment_manifest import MANIFEST, read_manifest
from forecast_ledger.ledger.storing.stored_log import StoredLog
from tests.support.effort import times
from tests.support.exports import export_commands, export_log
from tests.support.forging import chained
from tests.support.given import opened
from tests.support.logs import rows, written
from tests.support.processes import Command
from tests.support.waiting import PATIENCE

SIZE = 60  # rows of a segment


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of the stories."""
    return export_log(tmp_path_factory.mktemp("sealing") / "log.db")


@pytest.fixture(scope="module")
def every(path: str) -> list[bytes]:
    """Its rows."""
    return rows(path)


@pytest.fixture(scope="module")
def whole(every: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole log as segments, which no test changes."""
    whole = tmp_path_factory.mktemp("whole") / "segments"
    seal(pages(every), "main", whole, SIZE)
    return whole


def test_segments_are_made_added_to_and_read_back_without_pandas(path: str, tmp_path: Path) -> None:
    """Some ways of pyarrow to make its arrays import it where it is installed, which takes longer than a short log."""
    pytest.importorskip("pandas")
    program = (
        "import sys; from pathlib import Path; from forecast_ledger.ledger.segments.sealing import seal; "
        "from forecast_ledger.ledger.storing.segment_appender import appended; from forecast_ledger import restore; "
        "from forecast_ledger.ledger.storing.stored_log import StoredLog; from tests.support.given import opened; "
        "log, made, copy = sys.argv[1:]; seal(StoredLog.open(log, 'main').pages, 'main', Path(made)); "
        "restore(made, copy); "
        "\nwith appended(Path(made)) as ledger: ledger.handle(opened('another'), 'another') "
        "\nsys.exit('pandas' in sys.modules)"
    )
    assert Command(path, str(tmp_path / "m"), str(tmp_path / "c.db"), program=program).ended(PATIENCE).returncode == 0


@pytest.fixture(scope="module")
def begun(every: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One full segment and three rows of the next, which no test changes."""
    begun = tmp_path_factory.mktemp("begun") / "segments"
    seal(pages(every[: SIZE + 3]), "main", begun, SIZE)
    return begun


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of the whole log as segments."""
    return Path(shutil.copytree(whole, tmp_path / "segments"))


def pages(these: list[bytes], size: int = 7) -> Callable[[int], Iterator[list[bytes]]]:
    """Rows as a log gives them, page by page."""
    return lambda after: (these[begin : begin + size] for begin in range(after, len(these), size))


def end_of(these: list[bytes]) -> Checkpoint:
    """The checkpoint of the last of these rows of a log."""
    return Checkpoint(len(these), log.stated_digest(these[-1])) if these else START


def test_a_log_is_sealed_to_its_last_row(folder: Path, every: list[bytes]) -> None:
    """Segments have the size that was asked for, the last one what is left; the folder has no other files."""
    manifest = read_manifest(folder)
    assert manifest.end == end_of(every)
    assert [segment.last - segment.first + 1 for segment in manifest.segments[:-1]] == [SIZE] * (len(every) // SIZE)
    assert {file.name for file in folder.iterdir()} == manifest.names()
    assert rows(str(folder)) == every


@pytest.mark.parametrize("size", [16, 39, 40, 41, 10**6])
def test_segments_of_every_size_have_the_rows(every: list[bytes], tmp_path: Path, size: int) -> None:
    """As many as are asked for, one, or all in one."""
    some = every[:80]
    assert seal(pages(some), "main", tmp_path / "s", size).end == end_of(some)
    assert len(read_manifest(tmp_path / "s").segments) == -(-len(some) // size)
    assert rows(str(tmp_path / "s")) == some


def test_sealing_continues_wherever_it_ended(every: list[bytes], tmp_path: Path) -> None:
    """After each row more, the folder has all rows so far; only the last segment is written again."""
    folder, random, there = tmp_path / "s", Random(1), 0
    while there < len(every):
        there = min(len(every), there + random.choice([0, 1, 2, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE]))
        before = {file: file.stat().st_mtime_ns for file in folder.glob("*.parquet")} if folder.exists() else {}
        assert seal(pages(every[:there]), "main", folder, SIZE).end == end_of(every[:there])
        if there:
            manifest = read_manifest(folder)
            assert {file.name for file in folder.iterdir()} == manifest.names()
            assert len(manifest.segments) == -(-there // SIZE)
            assert rows(str(folder)) == every[:there]
        full = {file for file in before if there and int(file.name[13:25]) % SIZE == 0}
        assert all(file.stat().st_mtime_ns == before[file] for file in full)


def test_a_folder_of_the_first_layout_is_read_and_continued(
    every: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has quotes within the JSON of other events; its whole segments are left as they are."""
    every = before_normal_forms(every)
    folder, half = tmp_path / "s", len(every) // 2
    with monkeypatch.context() as before:
        before.setattr(segment_columns, "_QUOTES", frozenset())
        seal(pages(every[:half]), "main", folder, SIZE)
    first = read_manifest(folder).segments
    assert {segment.version for segment in first} == {1}
    assert not list(folder.glob("*.quotes.parquet"))
    assert b'"quotes":{' not in (folder / MANIFEST).read_bytes()  # as programs before wrote it
    assert rows(str(folder)) == every[:half]
    seal(pages(every), "main", folder, SIZE)
    now = read_manifest(folder).segments
    assert now[: len(first) - 1] == first[:-1]
    assert rows(str(folder)) == every


def before_normal_forms(every: list[bytes]) -> list[bytes]:
    """The same rows as before there were normal forms of commands."""
    first = [structs.replace(row, normal=UNSET) for row in log.unseal(every, log.START)]
    return [log.seal(row)[0] for row in chained(first)]


def test_a_segment_with_normal_forms_has_the_third_layout(folder: Path) -> None:
    """So a program from before, which cannot read its rows, says that it needs a newer one."""
    assert {segment.version for segment in read_manifest(folder).segments} == {3}


def test_only_a_segment_with_quotes_has_the_second_layout(tmp_path: Path, every: list[bytes]) -> None:
    """So a program from before reads a folder of forecasts."""
    every, folder = before_normal_forms(every), tmp_path / "s"
    seal(pages(every), "main", folder, SIZE)
    assert rows(str(folder)) == every
    quoted = [position for position, row in enumerate(every, 1) if b'"prices_quoted.v1"' in row]
    versions = [
        1 + any(segment.first <= position <= segment.last for position in quoted)
        for segment in read_manifest(folder).segments
    ]
    assert {*versions} == {1, 2}
    assert [segment.version for segment in read_manifest(folder).segments] == versions
    assert len(list(folder.glob("*.quotes.parquet"))) == versions.count(2)


def test_long_rows_are_made_into_columns_a_few_at_a_time(
    every: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded by bytes, not only by the number of rows."""
    monkeypatch.setattr(sealing, "_PART_BYTES", 3_000)
    seal(pages(every), "main", tmp_path / "s", SIZE)
    assert rows(str(tmp_path / "s")) == every


def test_the_folder_of_another_log_is_refused(folder: Path, every: list[bytes], tmp_path: Path) -> None:
    """Also a log that is an older copy; the folder is left as it is."""
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    other = rows(written(tmp_path / "other.db", [opened("first", id="first"), *export_commands()], refused=True))
    for these, says in ((other, "of another log"), (every[:-1], "an older copy"), ([], "an older copy")):
        with pytest.raises(Unavailable, match=says):
            seal(pages(these), "main", folder, SIZE)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_ledger_of_another_name_is_refused(folder: Path, every: list[bytes]) -> None:
    """For sealing and for reading."""
    with pytest.raises(Unavailable, match="ledger 'main'"):
        seal(pages(every), "other", folder, SIZE)
    with pytest.raises(Absent, match="ledger 'main'"):
        StoredLog.open(folder, "other", read_only=True)


def test_a_second_sealer_is_refused_while_the_first_is_at_work(every: list[bytes], tmp_path: Path) -> None:
    """It is told what to do; afterwards it may seal."""
    refusals = []

    def meanwhile(_: int) -> None:
        with pytest.raises(Unavailable, match="another process writes to it; wait"):
            seal(pages(every), "main", tmp_path / "s", SIZE)
        refusals.append(1)

    seal(pages(every[:SIZE]), "main", tmp_path / "s", SIZE, meanwhile)
    assert refusals
    assert seal(pages(every), "main", tmp_path / "s", SIZE).end == end_of(every)


def test_a_folder_of_something_else_is_refused(every: list[bytes], tmp_path: Path) -> None:
    """Nothing is written beside files that are not segments, into a file, or where no folder can be made."""
    (tmp_path / "notes.txt").write_text("mine")
    for folder, says in ((tmp_path, "other files, such as 'notes.txt'"), (tmp_path / "notes.txt", "segments need one")):
        with pytest.raises(Unavailable, match=says):
            seal(pages(every), "main", folder, SIZE)
    with pytest.raises(Unavailable, match="No such file"):
        seal(pages(every), "main", tmp_path / "a" / "b", SIZE)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_that_cannot_be_written_is_left_as_it_is(folder: Path, every: list[bytes]) -> None:
    """Reading it works."""
    folder.chmod(0o500)
    with pytest.raises((Unavailable, OSError), match="ermission"):
        seal(pages([*every, *every]), "main", folder, SIZE)
    assert rows(str(folder)) == every


def test_a_link_in_the_folder_is_not_written_through(every: list[bytes], tmp_path: Path) -> None:
    """What a name of a segment or of the manifest links to stays as it is."""
    folder, mine = tmp_path / "s", tmp_path / "mine"
    folder.mkdir()
    mine.write_text("mine")
    for name in ("segments.json.part", f"{1:012}-{SIZE:012}.forecasts.parquet"):
        (folder / name).symlink_to(mine)
    seal(pages(every), "main", folder, SIZE)
    assert mine.read_text() == "mine"
    assert rows(str(folder)) == every


def test_a_row_that_does_not_come_back_is_not_listed(
    every: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has its log position; the segments before it are listed."""

    def forgetful(columns: SegmentColumns, before: Checkpoint, _: object) -> Iterator[list[bytes]]:
        for page in rebuild(columns, before):
            rows = [row.replace(b'"told 3"', b'"told 2"') for row in page]
            yield [bytes.fromhex(log.compute_digest(row)) for row in rows]

    monkeypatch.setattr(sealing, "rebuild", forgetful)
    bad = next(place for place, row in enumerate(every, 1) if b'"told 3"' in row)
    with pytest.raises(Corrupt, match="cannot be sealed") as corrupt:
        seal(pages(every), "main", tmp_path / "s", SIZE)
    assert corrupt.value.position == bad
    assert read_manifest(tmp_path / "s").end.position == (bad - 1) // SIZE * SIZE


def test_files_of_others_stay(folder: Path, every: list[bytes]) -> None:
    """Only files with names of segments that no manifest lists are removed."""
    mine, left = folder / "notes.txt", folder / "000000000001-000000000002.forecasts.parquet"
    mine.write_text("mine")
    left.write_text("left by a sealing that was killed")
    seal(pages(every), "main", folder, SIZE)
    assert (mine.exists(), left.exists()) == (True, False)


STEPS: list[tuple[object, str]] = [
    *((sealing, name) for name in ("write_table", "describe_file", "_check_written", "_write_manifest", "sync_path")),
    (os, "fsync"),
    (Path, "replace"),
]


@pytest.mark.parametrize("failing_step", STEPS, ids=[name for _, name in STEPS])
def test_a_sealing_that_fails_at_any_step_leaves_what_was_listed(
    every: list[bytes], begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_step: tuple[object, str]
) -> None:
    """At every one of its calls in turn; sealing again then completes the folder."""
    (place, step), folder, every = failing_step, tmp_path / "s", every[: 2 * SIZE + 9]
    whole = getattr(place, step)
    shutil.copytree(begun, folder)
    for call in range(2):
        calls = iter(range(100))

        def failing(*arguments: object) -> object:
            if next(calls) == call:  # noqa: B023 - used within the turn
                raise OSError("the disk is full")
            return whole(*arguments)

        monkeypatch.setattr(place, step, failing)
        with pytest.raises(OSError, match="full"):
            seal(pages(every), "main", folder, SIZE)
        found = rows(str(folder))
        assert found == every[: len(found)]
        assert len(found) >= SIZE + 3
        shutil.rmtree(folder)
        monkeypatch.setattr(place, step, whole)
        shutil.copytree(begun, folder)
    assert seal(pages(every), "main", folder, SIZE).end == end_of(every)
    assert rows(str(folder)) == every


KILLED = """
import sys
from pathlib import Path
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.storing.stored_log import StoredLog
store = StoredLog.open(sys.argv[1], "main", read_only=True)
print("begins", flush=True)
while True:
    seal(store.pages, "main", Path(sys.argv[2]), int(sys.argv[3]))
    for file in Path(sys.argv[2]).iterdir():
        file.unlink()
"""


def test_a_sealing_killed_at_any_moment_leaves_whole_segments(path: str, every: list[bytes], tmp_path: Path) -> None:
    """The folder has a beginning of the log, or nothing yet; the next sealing completes it."""
    random = Random(7)
    for turn in range(times(3)):
        folder = tmp_path / f"s{turn}"
        sealer = Command(path, str(folder), "9", program=KILLED)
        assert sealer.stdout.readline() == "begins\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            sealer.wait(random.uniform(0, 0.3))
        sealer.kill()
        assert sealer.ended(PATIENCE).returncode == -signal.SIGKILL
        if (folder / MANIFEST).exists():
            found = rows(str(folder))
            assert found == every[: len(found)]
        assert seal(pages(every), "main", folder, 9).end == end_of(every)
        assert rows(str(folder)) == every
        assert {file.name for file in folder.iterdir()} == read_manifest(folder).names()
