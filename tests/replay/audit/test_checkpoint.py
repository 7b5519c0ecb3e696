"""A text to keep: what it says, and what it finds in a log that is another."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.core import table as table_module
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE
from forecast_ledger.replay.audit import verify as checkpoint_module
from forecast_ledger.replay.audit.verify import (
    LARGEST_CHECKPOINT,
    SavedCheckpoint,
    SavedTable,
    checkpoint_text,
    compare_with_checkpoint,
    read_checkpoint,
    take_checkpoint,
)
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import replay
from tests.replay.audit.test_verify import another_number, changed, forged, happened, wrong_prize
from tests.replay.cli.test_main import run
from tests.support.given import contest, entry, forecast, opened, resolution
from tests.support.logs import written

SAID: list[AnyCommand] = [
    opened(),
    contest(pool=100),
    entry(),
    forecast(),
    forecast(participant="bob", probability="0.2"),
]
LATER: list[AnyCommand] = [resolution()]


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A log of five events."""
    return forged(tmp_path / "log.db", happened(*SAID))


def file(tmp_path: Path, kept: SavedCheckpoint) -> str:
    """The text in a file."""
    path = tmp_path / "kept.toml"
    path.write_text(checkpoint_text(kept), encoding="utf-8")
    return str(path)


def test_a_checkpoint_says_what_it_is_of(log: str) -> None:
    """Ledger, log position, digest, when that was recorded, code; each projection but those asked for."""
    result = run("checkpoint", log)
    said = tomllib.loads(result.stdout)
    found = replay(log)
    tables = said.pop("projections")
    assert said == {
        "ledger": "main",
        "log_position": 5,
        "digest": found.checkpoint.digest,
        "recorded_at": "2026-03-31T00:00:05Z",
        "code": version("forecast-ledger"),
    }
    assert tuple(tables) == BUILT
    for name, table in tables.items():
        built = found.projections.table(name)
        assert table == {"version": CATALOGUE[name].version, "rows": len(built), "digest": built.digest()}
    assert result.stderr == f"as of log position 5, digest {found.checkpoint.digest}\n"


def test_the_same_log_gives_the_same_text_and_an_earlier_cut_another(log: str) -> None:
    """The text contains nothing of a clock, a machine or a path."""
    assert run("checkpoint", log).stdout == run("checkpoint", log).stdout == checkpoint_text(take_checkpoint(Log(log)))
    assert tomllib.loads(run("checkpoint", log, "--as-of", "3").stdout)["log_position"] == 3
    empty = tomllib.loads(run("checkpoint", log, "--as-of", "0").stdout)
    assert (empty["digest"], "recorded_at" in empty) == ("0" * 64, False)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"), min_size=1, max_size=20))
def test_a_text_is_read_as_it_was_written(name: str) -> None:
    """Whatever the ledger is called."""
    table = SavedTable(version=1, rows=2, digest="a" * 64)
    kept = SavedCheckpoint(ledger=name, log_position=7, digest="0" * 64, code="0.1.0", projections={"scores": table})
    assert read_checkpoint(checkpoint_text(kept).encode()) == kept


def test_a_log_that_has_grown_still_has_its_checkpoint(tmp_path: Path) -> None:
    """A checkpoint of the empty log and of every position agrees with the longer log."""
    grown = forged(tmp_path / "grown.db", happened(*SAID, *LATER))
    for position in range(7):
        kept = file(tmp_path, take_checkpoint(Log(grown, as_of=position)))
        result = run("verify", grown, "--checkpoint", kept, "--only", "positions")
        assert result.exit_code == FINE
        assert result.stdout.splitlines()[-1].split() == [
            "checkpoint", "ok", str(position), "the", "log", "and", str(len(BUILT)), "projections", "as", "of",
            str(position), "match", "the", "checkpoint",
        ]  # fmt: skip
        assert run("verify", grown, "--checkpoint", kept, "--quiet").output == ""


def test_a_log_that_was_cut_short_is_found(tmp_path: Path, log: str) -> None:
    """The shorter log is sound in itself; only the checkpoint shows that there was more."""
    kept = take_checkpoint(Log(log))
    cut = changed(log, "DELETE FROM stored_events WHERE originator_version > 3")
    assert run("verify", cut).exit_code == FINE
    result = run("verify", cut, "--checkpoint", file(tmp_path, kept))
    assert (result.exit_code, "at log position 5; the log ends at position 3" in result.stderr) == (FINDINGS, True)
    assert result.stdout.splitlines()[-1].split()[:3] == ["checkpoint", "differs", "5"]


def test_a_log_written_anew_is_found_and_every_difference_named(tmp_path: Path, log: str) -> None:
    """Bob says another number, every digest is right: the log's differs, and the tables that show what he said."""
    another = forged(tmp_path / "another.db", happened(*SAID[:-1], forecast(participant="bob", probability="0.3")))
    kept, now = take_checkpoint(Log(log)), take_checkpoint(Log(another))
    found = compare_with_checkpoint(kept, Log(another))
    assert found.skipped == []
    assert found.apart[0] == f"digest: the checkpoint has {kept.digest}, the log has {now.digest}"
    apart = [name for name in BUILT if kept.projections[name] != now.projections[name]]
    assert apart == ["consensus"]  # the only one that shows what is forecast before there is an answer
    assert [each.split()[1].rstrip(":") for each in found.apart[1:]] == apart
    result = run("verify", another, "-q", "--checkpoint", file(tmp_path, kept))
    assert (result.exit_code, result.stdout) == (FINDINGS, "")
    assert result.stderr.splitlines()[:2] == [f"forecast-ledger: checkpoint: {each}" for each in found.apart]


def test_rows_that_are_more_or_fewer_are_counted(tmp_path: Path, log: str) -> None:
    """One forecast fewer."""
    fewer = forged(tmp_path / "fewer.db", happened(*SAID[:-1], opened("wind")))
    [standing] = [
        each
        for each in compare_with_checkpoint(take_checkpoint(Log(log)), Log(fewer)).apart
        if "projection standing" in each
    ]
    assert standing.endswith("(2 rows in the checkpoint, 1 in the log)")


def test_another_ledger_or_instant_is_a_difference(log: str) -> None:
    """Neither is in any digest but the log's."""
    kept = take_checkpoint(Log(log))
    other = structs.replace(kept, ledger="other", recorded_at="2026-03-31T00:00:06Z")
    assert compare_with_checkpoint(other, Log(log)).apart == [
        "ledger: the checkpoint has other, the log has main",
        "recorded_at: the checkpoint has 2026-03-31T00:00:06Z, the log has 2026-03-31T00:00:05Z",
    ]


def test_a_large_table_is_compared_if_its_digest_is_made_of_the_same_parts(
    log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 0.2.0, the digest of a large table was not made of parts; a checkpoint says how many rows these have."""
    was = take_checkpoint(Log(log))
    assert "part_rows" not in checkpoint_text(was)
    for module in (table_module, checkpoint_module):
        monkeypatch.setattr(module, "PART_ROWS", 1)
    now = take_checkpoint(Log(log))
    large = [name for name, table in now.projections.items() if table.rows > 1]
    assert "standing" in large
    assert [name for name, table in now.projections.items() if table.part_rows == 1] == large
    assert "part_rows = 1 }" in checkpoint_text(now)
    assert compare_with_checkpoint(read_checkpoint(checkpoint_text(now).encode()), Log(log)) == ([], [])
    found = compare_with_checkpoint(was, Log(log))
    assert [line.partition(":")[0] for line in found.skipped] == large
    assert "this code has another digest of tables with as many rows" in found.skipped[0]
    assert found.apart == []
    forged = structs.replace(now.projections["standing"], digest="0" * 64)
    changed = structs.replace(now, projections={**now.projections, "standing": forged})
    assert [line.partition(":")[0] for line in compare_with_checkpoint(changed, Log(log)).apart] == [
        "projection standing"
    ]


def test_a_projection_of_another_version_is_not_compared(tmp_path: Path, log: str) -> None:
    """A note names it and the code that can compare it; that is no finding. Nor is a projection that was removed."""
    kept = take_checkpoint(Log(log))
    scores = structs.replace(kept.projections["scores"], version=1, digest="f" * 64)
    older = structs.replace(kept, code="0.0.1", projections=kept.projections | {"scores": scores, "ranks": scores})
    found = compare_with_checkpoint(older, Log(log))
    assert found.apart == []
    assert found.skipped == [
        "scores: the checkpoint has version 1, this code has version 5; code 0.0.1 can compare",
        "ranks: the checkpoint has version 1, this code has none; code 0.0.1 can compare",
    ]
    result = run("verify", log, "--checkpoint", file(tmp_path, older))
    assert (result.exit_code, result.stderr.count("not compared: ")) == (FINE, 2)
    assert f"log and {len(BUILT) - 1} projections" in result.stdout


def test_in_a_damaged_log_nothing_is_compared_past_the_damage(tmp_path: Path) -> None:
    """Damage exits with 4; what comes before it is as it was."""
    whole = forged(tmp_path / "whole.db", happened(*SAID))
    kept = file(tmp_path, take_checkpoint(Log(whole)))
    broken = another_number(tmp_path / "broken.db")
    result = run("verify", broken, "--checkpoint", kept)
    assert (result.exit_code, result.stdout.splitlines()[-1].split()[:4]) == (
        DAMAGED,
        ["checkpoint", "not", "checked", "4"],
    )


def test_wrong_payouts_and_a_checkpoint_are_told_together(tmp_path: Path, log: str) -> None:
    """Both are findings."""
    result = run(
        "verify", wrong_prize(tmp_path / "unpaid.db"), "--checkpoint", file(tmp_path, take_checkpoint(Log(log)))
    )
    assert (result.exit_code, "checkpoint: digest" in result.stderr, "expected 25.00 for 'ada'" in result.stderr) == (
        FINDINGS, True, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"SQLite format 3\0",
        b"{}",
        b"a = " + b"[" * 100_000,
        b"log_position = 99999999999999999999999",
        b'ledger = "main"\nlog_position = -1\ndigest = "x"\ncode = "1"\n[projections]\n',
        b'ledger = "main"\nlog_position = 1\ndigest = "0"\ncode = "1"\nsurprise = 1\n[projections]\n',
        b"#" * (LARGEST_CHECKPOINT + 1),
    ],
)
def test_what_is_no_checkpoint_is_wrong_usage(tmp_path: Path, log: str, text: bytes) -> None:
    """The message is one printable line that names the file."""
    path = tmp_path / "no.toml"
    path.write_bytes(text)
    result = run("verify", log, "--checkpoint", str(path))
    assert (result.exit_code, len(result.stderr.splitlines())) == (USAGE, 1)
    assert f"{path}: not a checkpoint: " in result.stderr
    assert run("verify", log, "--checkpoint", str(tmp_path / "none.toml")).exit_code == USAGE


def test_a_log_in_the_place_of_a_checkpoint_is_told_in_words(log: str) -> None:
    """Its bytes are no text; the message says what makes a checkpoint."""
    said = run("verify", log, "--checkpoint", log).stderr
    assert ": not a checkpoint: it is not a text; `forecast-ledger checkpoint LOG > FILE` makes one" in said
    assert "codec" not in said


def test_a_checkpoint_that_another_program_saved_again_is_the_same(tmp_path: Path, log: str) -> None:
    """A byte order mark and the line ends of another system do not matter."""
    text = run("checkpoint", log).stdout_bytes
    path = tmp_path / "kept.toml"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    assert run("verify", log, "--checkpoint", str(path)).exit_code == FINE


def test_a_checkpoint_needs_a_log(tmp_path: Path, log: str) -> None:
    """The log must exist, under that name, and reach the cut."""
    assert run("checkpoint", str(tmp_path / "none.db")).exit_code == UNREADABLE
    assert run("checkpoint", log, "--as-of", "6").exit_code == USAGE
    assert run("checkpoint", log, "--name", "other").exit_code == UNREADABLE
    with pytest.raises(Refused):
        take_checkpoint(Log(log, as_of=6))


def test_a_checkpoint_of_one_of_several_ledgers_names_it(tmp_path: Path) -> None:
    """It is compared with the ledger of that name only."""
    path = str(tmp_path / "log.db")
    for name in ("main", "other"):
        written(path, SAID if name == "main" else SAID[:2], name)
    kept = file(tmp_path, take_checkpoint(Log(path, "other")))
    assert run("verify", path, "--name", "other", "--checkpoint", kept).exit_code == FINE
    assert "ledger: the checkpoint has other, the log has main" in run("verify", path, "--checkpoint", kept).stderr
