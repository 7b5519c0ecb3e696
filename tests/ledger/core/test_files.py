"""Tests of folders in an object store."""

import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from forecast_ledger import Ledger, WithSegments, replay, restore, seal, verify
from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.core.files import folder_at, is_remote, open_regular
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.replay.cli.main import DAMAGED, UNREADABLE, main
from tests.support.logs import commands_of, written

URL = "memory://bucket/season"
TABLES = ("leaderboard", "prizes", "scores", "brier", "standing")


@pytest.fixture
def season(tmp_path: Path) -> Iterator[Path]:
    """A log, with its segments in a store that fsspec has in memory."""
    log = Path(written(tmp_path / "season.db", commands_of("metaculus-2022")))
    seal(log, tmp_path / "segments", rows=10)
    store = fsspec.filesystem("memory")
    store.put(str(tmp_path / "segments"), "/bucket/season", recursive=True)
    yield log
    store.rm("/bucket", recursive=True)


def digests(location: str | Path | WithSegments, **how: Any) -> list[str]:
    """The digests of some tables, and that of the log."""
    found = replay(location, **how)
    return [found.checkpoint.digest, *(found.table(name).digest() for name in TABLES)]


def test_every_way_to_read_gives_the_same_digests(season: Path) -> None:
    """Trusting files or rows, with and without an engine, alone and as the beginning of a log."""
    expected = digests(season)
    assert digests(URL, trust="files") == digests(URL, trust="rows") == digests(URL, trust="files", engine="local")
    assert digests(URL, trust="files", memory=1 << 30) == expected
    assert digests(season, segments=URL, trust="files") == digests(WithSegments(season, URL)) == expected
    assert verify(URL) == replay(season).checkpoint


def test_other_processes_read_a_folder_by_its_url(season: Path, tmp_path: Path) -> None:
    """A folder of another process's store in memory would be empty, so it is one of files."""
    url = f"file://{tmp_path / 'segments'}"
    assert digests(url, trust="files", engine="processes") == digests(season)
    assert str(pickle.loads(pickle.dumps(folder_at(URL)))) == URL  # noqa: S301 - our own


def test_a_remote_folder_is_imported_and_carried_on(season: Path, tmp_path: Path) -> None:
    """Byte for byte; a ledger and a read model begin with it."""
    assert restore(URL, tmp_path / "copy.db") == 34
    assert replay(tmp_path / "copy.db").checkpoint == replay(season).checkpoint
    with Ledger.open(season, segments=URL) as ledger:
        assert ledger.head() == replay(season).checkpoint


def test_nothing_is_written_to_a_remote_folder(season: Path, tmp_path: Path) -> None:
    """The message says what to do instead."""
    before = fsspec.filesystem("memory").ls("/bucket/season", detail=False)
    file = tmp_path / "none.jsonl"
    file.write_bytes(b"")
    for command, remedy in (
        (["append", URL, str(file)], "a remote folder is only read; copy it to this machine"),
        (["append", f"{URL}/", str(file)], "a remote folder is only read; copy it to this machine"),
        (["seal", str(season), URL], "seal into a folder on this machine, and copy that"),
    ):
        result = CliRunner().invoke(main, command)
        assert (result.exit_code, remedy in result.stderr) == (UNREADABLE, True), result.stderr
    assert fsspec.filesystem("memory").ls("/bucket/season", detail=False) == before
    found = {path.name.partition("-")[0] for path in tmp_path.iterdir()}
    assert found == {"none.jsonl", "season.db", "segments"}


@pytest.mark.usefixtures("season")
@pytest.mark.parametrize("how", ["changed", "cut", "gone"])
def test_damage_to_a_remote_file_is_found(how: str) -> None:
    """By its SHA-256, with the log position."""
    store = fsspec.filesystem("memory")
    place = next(name for name in store.ls("/bucket/season", detail=False) if "11-" in name and "forecasts" in name)
    content = bytearray(store.cat(place))
    content[len(content) // 2] ^= 1
    store.rm(place)
    if how != "gone":
        store.pipe(place, bytes(content[: -9 if how == "cut" else None]))
    with pytest.raises(Corrupt, match="000000000011-000000000020") as found:
        replay(URL, trust="files")
    assert found.value.position == 11
    result = CliRunner().invoke(main, ["replay", URL])
    assert (result.exit_code, "log position 11: " in result.stderr) == (DAMAGED, True), result.stderr


def test_a_folder_that_is_not_there_or_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the package that is missing; a password is not repeated."""
    for url, kind, said in (
        ("memory://bucket/none", Absent, "there is no segments.json in it"),
        ("s3://bucket/season", Unavailable, "Install s3fs"),
        ("mysql://ada:secret@host/x", Unavailable, "mysql://ada:…@host/x: mysql:// is not supported; give a file path"),
    ):
        if url.startswith("s3"):
            monkeypatch.setitem(sys.modules, "s3fs", None)
        with pytest.raises(kind, match=said):
            replay(url)
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(Unavailable, match=r"memory:// is not supported.*pip install 'forecast-ledger\[remote\]'"):
        replay(URL)


def test_errors_of_a_store_are_errors_of_the_folder(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of store has errors of its own, which are no OSErrors: while a file is opened, and while it is read."""
    kind = type(fsspec.filesystem("memory"))

    class NoKeyError(Exception):
        """What a store raises."""

    def refused(*_: object, **__: object) -> None:
        raise NoKeyError("no credentials")

    monkeypatch.setattr(kind, "_open", refused)
    with pytest.raises(Unavailable, match="NoKeyError: no credentials; try again"):
        replay(URL)
    monkeypatch.undo()
    assert digests(WithSegments(URL)) == digests(season)
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFile.read", refused)
    with pytest.raises(Unavailable, match="NoKeyError: no credentials; try again"):
        replay(URL)
    monkeypatch.undo()
    for fault in (TimeoutError("read timeout"), PermissionError(13, "forbidden"), NoKeyError("slow down")):
        opening = kind._open

        def failing(
            self: Any, path: str, *given: Any, fault: Exception = fault, opening: Any = opening, **k: Any
        ) -> Any:
            if path.endswith(".parquet"):
                raise fault
            return opening(self, path, *given, **k)

        monkeypatch.setattr(kind, "_open", failing)
        for read in (lambda: replay(URL, trust="files"), lambda: replay(URL), lambda: verify(URL)):
            with pytest.raises(Unavailable, match="try again"):  # the log is not damaged
                read()
        monkeypatch.undo()


def test_a_store_that_cannot_be_made_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an account, or with one that it refuses; nothing repeats a password."""

    class NoAccountError(ValueError):
        """What a store raises."""

    def refused(*_: object, **__: object) -> None:
        raise NoAccountError("give an account")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "__init__", refused)
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "_cache", {})
    with pytest.raises(Unavailable, match=r"memory://ada:…@bucket/x: NoAccountError: give an account"):
        folder_at("memory://ada:secret@bucket/x")


def test_no_message_repeats_a_password(season: Path) -> None:
    """Nor where the scheme has a sign in it."""
    with pytest.raises(Absent, match=r"^memory://ada:…@x/y: not a folder of segments"):
        replay("memory://ada:secret@x/y")
    assert redacted("postgresql+psycopg://ada:secret@h/x") == "postgresql+psycopg://ada:…@h/x"
    assert season.exists()


@pytest.mark.usefixtures("season")
def test_a_remote_file_has_a_size_and_can_be_limited() -> None:
    """As one on this machine."""
    path = folder_at(URL) / "segments.json"
    with open_regular(path, 1 << 20) as file:
        assert file.read().startswith(b'{"ledger":"main"')
    with pytest.raises(OSError, match="at most 9 are allowed"):
        open_regular(path, 9)


def test_urls_of_folders_are_told_from_paths_and_databases() -> None:
    """A scheme is lower case, as in RFC 3986's examples."""
    remote = ("s3://a/b", "gs://a", "memory://a", "abfs+x://a")
    assert [
        each
        for each in (
            *remote,
            "a://",
            "://a",
            "A://b",
            "postgresql://h/d",
            "sqlite:///a",
            "file:///a",
            "local://a",
            "a:/b",
            "",
        )
        if is_remote(each)
    ] == [*remote, "a://"]


@pytest.mark.parametrize("scheme", ["file://", "local://"])
@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_what_is_no_regular_file_is_refused_behind_a_url_as_at_a_path(
    season: Path, tmp_path: Path, scheme: str, kind: str
) -> None:
    """Nobody writes to the FIFO, so that reading it would never end; the link leads to a manifest that is not there."""
    folder, manifest = tmp_path / "folder", tmp_path / "folder" / "segments.json"
    folder.mkdir()
    if kind == "fifo":
        os.mkfifo(manifest)
    elif kind == "link":
        (tmp_path / "other.json").write_text("{}")
        manifest.symlink_to(tmp_path / "other.json")
    else:
        manifest.mkdir()
    for location in (str(folder), f"{scheme}{folder}"):
        for call in (replay, verify, lambda where: replay(season, segments=where, trust="files")):
            with pytest.raises(Unavailable, match="not a regular file"):
                call(location)


def test_a_url_of_a_path_is_the_path(season: Path, tmp_path: Path) -> None:
    """A log, its segments and the folder to seal into can each be given as a file:// URL."""
    assert verify(f"file://{season}") == verify(season)
    again = seal(f"file://{season}", f"file://{tmp_path / 'again'}")
    assert (again.checkpoint, (tmp_path / "again" / "segments.json").is_file()) == (verify(season), True)
    with Ledger.open(f"file://{tmp_path / 'new.db'}", segments=None) as ledger:
        assert ledger.head().position == 0
    shown = CliRunner().invoke(main, ["leaderboard", f"file://{season}", "plain"])
    assert (shown.exit_code, "as of log position 34" in shown.stderr) == (0, True), shown.stderr


@pytest.mark.parametrize("url", ["zip://*::file:///tmp/a.zip", "zip://x::local:///tmp/a.zip", "tar://::/tmp/a.tar"])
def test_an_archive_on_this_machine_is_not_read_as_a_folder(url: str) -> None:
    """Whoever reads the archive would follow links and wait for a FIFO; a folder that is unpacked is checked first."""
    with pytest.raises(Unavailable, match="unpack it, and give the folder"):
        replay(url)
