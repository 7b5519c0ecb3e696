"""Sources that attack: paths that lead outside, bombs, links, damage."""

import os
import struct
import time
import zipfile
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.importing import source_files
from forecast_ledger.replay.importing.source_files import SourceFiles


def archive(path: Path, *names: str, content: bytes = b"1") -> Path:
    """A zip of files of these names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(name, content)
    return path


def refusal(path: Path) -> str:
    """Why a source is refused."""
    with pytest.raises(Refused) as refused:
        SourceFiles(path)
    assert refused.value.code == "bad_source"
    return str(refused.value)


@pytest.mark.parametrize("name", ["../a.csv", "/etc/a.csv", "a/../../b.csv", "C:/a.csv", "a\\b.csv"])
def test_a_zip_with_a_path_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    """Nothing is unpacked, and such a zip is not read either."""
    assert "leads outside" in refusal(archive(tmp_path / "a.zip", "b.csv", name))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its ratio, and by the sum of its sizes."""
    monkeypatch.setattr(source_files, "FREE_BYTES", 1_000)
    assert "unpacks to 1,000,000 bytes" in refusal(archive(tmp_path / "a.zip", "a.csv", content=bytes(1_000_000)))
    few = archive(tmp_path / "few.zip", *map(str, range(50)), content=bytes(1_000))
    monkeypatch.setattr(source_files, "MOST_RATIO", 3)
    assert f"more than {3 * few.stat().st_size:,} bytes when unpacked" in refusal(few)
    monkeypatch.setattr(source_files, "MOST_BYTES", 10_000)
    assert "more than" in refusal(archive(tmp_path / "b.zip", "a.csv", content=bytes(20_000)))
    monkeypatch.setattr(source_files, "MOST_FILES", 2)
    assert "more than 2 files" in refusal(archive(tmp_path / "c.zip", "a", "b", "c"))


def test_links_are_not_followed(tmp_path: Path) -> None:
    """In a folder they are listed apart; in a zip they are refused."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.csv").write_text("1", encoding="utf-8")
    (tmp_path / "folder" / "b.csv").symlink_to("/etc/passwd")
    found = SourceFiles(tmp_path / "folder")
    assert (found.names, found.links) == (["a.csv"], ["b.csv"])
    link = zipfile.ZipInfo("a.csv")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr(link, "/etc/passwd")
    assert "links are not followed" in refusal(tmp_path / "a.zip")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    """Which of them counts would depend on the reader."""
    assert "two files" in refusal(archive(tmp_path / "a.zip", "a.csv", "a.csv"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_one_doubled_name_of_many_is_found_soon(tmp_path: Path) -> None:
    """In a time that grows with the number of names, not with its square: it was 90 s for 100,000 names."""
    path = archive(tmp_path / "a.zip", *map(str, range(10_000)), "9999")
    begun = time.process_time()
    zipfile.ZipFile(path).close()
    opened = time.process_time()
    assert "9999: the zip has two files" in refusal(path)
    assert time.process_time() - opened < 5 * (opened - begun) + 0.3


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A pipe would block."""
    os.mkfifo(tmp_path / "pipe")
    assert "not a folder" in refusal(tmp_path / "pipe")


def test_a_damaged_zip_is_refused_when_it_is_read(tmp_path: Path) -> None:
    """The sum that the zip keeps of each file does not fit."""
    path = archive(tmp_path / "a.zip", "a.csv", content=b"0123456789" * 50)
    content = bytearray(path.read_bytes())
    at = content.index(b"a.csv") + len("a.csv")
    content[at : at + 4] = struct.pack("<I", 0xDEADBEEF)
    path.write_bytes(content)
    found = SourceFiles(path)
    with pytest.raises(Refused) as refused:
        found.read("a.csv", 1_000)
    assert "damaged" in str(refused.value)
    found.close()


def test_a_folder_around_everything_is_left_out(tmp_path: Path) -> None:
    """As in the zip that a code host makes of a repository; hidden files are left out."""
    path = archive(
        tmp_path / "a.zip", "hub-main/a.csv", "hub-main/b/c.csv", "hub-main/.github/x", "hub-main/.gitignore"
    )
    assert SourceFiles(path).names == ["a.csv", "b/c.csv"]


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """Before it fills memory."""
    (tmp_path / "a.json").write_bytes(bytes(100))
    with pytest.raises(Refused) as refused:
        SourceFiles(tmp_path / "a.json").read("a.json", 99)
    assert "more than 99 bytes" in str(refused.value)


def test_a_pointer_of_git_lfs_is_not_taken_for_the_file(tmp_path: Path) -> None:
    """Large sets are such pointers in a clone that has not pulled them; in a folder and in a zip."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.json").write_bytes(pointer)
    (tmp_path / "folder" / "b.json").write_bytes(pointer[:-60])
    for path in (tmp_path / "folder", archive(tmp_path / "a.zip", "a.json", "b.json", content=pointer)):
        with pytest.raises(Refused) as refused:
            SourceFiles(path).read("a.json", 1_000)
        assert "git lfs pull" in str(refused.value)
    assert SourceFiles(tmp_path / "folder").read("b.json", 1_000) == pointer[:-60]
