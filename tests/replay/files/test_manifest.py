"""Scratch folders of a process that ends at once."""

import shutil
from pathlib import Path

import pytest

from forecast_ledger.replay.files.manifest import discard_scratch_folders, move_into_place, scratch_folder
from tests.support.exports import contents

# --- Scratch folders of a process that ends at once.


def test_a_process_that_ends_at_once_leaves_neither_parts_nor_gaps(tmp_path: Path) -> None:
    """Scratch folders go with what is in them; what was moved away to be replaced comes back."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "scores.csv").write_text("a\n")
    before = contents(tmp_path)
    with scratch_folder(old) as replacing, scratch_folder(new) as writing:
        (writing / "half.csv").write_text("b")
        old.rename(replacing / "old")
        discard_scratch_folders()
        assert contents(tmp_path) == before
    assert contents(tmp_path) == before


def test_what_is_in_its_place_stays_there_as_a_process_ends_at_once(tmp_path: Path) -> None:
    """The new folder has its name, and the old one is removed."""
    out = tmp_path / "out"
    out.mkdir()
    with scratch_folder(out) as part:
        (part / "csv").mkdir()
        (part / "csv" / "scores.csv").write_text("b\n")
        move_into_place(part / "csv", out)
        discard_scratch_folders()
        assert contents(tmp_path) == {"out/scores.csv": b"b\n"}


def test_a_thread_that_goes_on_loses_nothing_as_a_process_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While scratch folders are removed, it can move nothing into them, and what it replaces is not lost."""
    out, remove = tmp_path / "out", shutil.rmtree
    out.mkdir()
    (out / "scores.csv").write_text("a\n")
    with scratch_folder(out) as part:

        def remove_beside_it(path: Path, ignore_errors: bool) -> None:
            with pytest.raises(FileNotFoundError):
                out.rename(part / "old")
            remove(path, ignore_errors=ignore_errors)

        monkeypatch.setattr(shutil, "rmtree", remove_beside_it)
        discard_scratch_folders()
        monkeypatch.undo()
    assert contents(tmp_path) == {"out/scores.csv": b"a\n"}
