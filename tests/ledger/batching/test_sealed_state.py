"""A writer that is opened from segments holds what one holds that has read the log, and decides the same."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.batching.sealed_state import apply_segment
from forecast_ledger.ledger.batching.writer_state import WriterState
from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import GENESIS, Recorded
from forecast_ledger.ledger.segments import sealing
from forecast_ledger.ledger.segments.segment_columns import to_columns
from forecast_ledger.ledger.segments.segment_manifest import MANIFEST, SegmentManifest, read_manifest
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINE
from forecast_ledger.replay.files.export import seal
from tests.replay.cli.test_main import run
from tests.support import logs, oracle
from tests.support.effort import times
from tests.support.exports import export_commands
from tests.support.given import addition, choices, day, forecast, opened, renaming, resolution, withdrawal
from tests.support.logs import VARIED, rows, written
from tests.support.trading_seasons import Season as TradingSeason
from tests.system.test_stories import recorded

NOT_STATE = {"unload", "prizes", "pending", "applied"}


def held(known: WriterState, records: Sequence[Recorded]) -> dict[str, Any]:
    """All that a writer holds, with the commands that it finds, each by its id and the rows of the log."""
    state = {name: value for name, value in vars(known.state).items() if name not in NOT_STATE}
    standing = {
        question: (isinstance(where, dict), known.state.peek_standing(question))
        for question, where in known.state.standing.items()
    }
    lines = [log.seal(each)[0] for each in records]
    ids = sorted({each.command_id for each in records})
    found = known.commands.older(ids, lambda after, limit: lines[after : after + limit]) | known.commands.recent
    rest = known.attempts, known.head, known.recorded_at, known.is_imported
    return {**state, "forecasts": standing, "commands": found, "rest": rest}


def from_rows(records: Sequence[Recorded]) -> WriterState:
    """What a writer holds that has read these rows, page by page."""
    known = WriterState()
    for begin in range(0, len(records), 7):
        known.apply(records[begin : begin + 7])
    return known


def from_segments(records: Sequence[Recorded], size: int, sealed: int) -> WriterState:
    """What it holds if the first rows come from segments of this size, and the others are read."""
    known = WriterState()
    for begin in range(0, sealed, size):
        part = records[begin : min(begin + size, sealed)]
        columns = to_columns([log.seal(each)[0] for each in part], part)
        apply_segment(known, columns, part[-1])
    if records[sealed:]:
        known.apply(records[sealed:])
    return known


def assert_same(records: Sequence[Recorded], size: int, sealed: int) -> None:
    """Whatever is sealed, the writer holds the same."""
    expected, found = (held(known, records) for known in (from_rows(records), from_segments(records, size, sealed)))
    for name, value in expected.items():
        assert found[name] == value, name


@given(oracle.logs(), st.data())
@settings(max_examples=times(15), deadline=None)
def test_any_log_gives_the_same_state(commands: list[AnyCommand], data: st.DataObject) -> None:
    """Withdrawals, revoked answers, seals and prizes, wherever the log is cut, within a command too."""
    records = oracle.attempted(commands)[0]
    size, sealed = data.draw(st.integers(1, len(records))), data.draw(st.integers(0, len(records)))
    assert_same(records, size, sealed)


@pytest.mark.parametrize("story", VARIED)
def test_every_story_gives_the_same_state(story: str) -> None:
    """Outcomes that change while forecasts stand, other times, failed calls, quotes with sizes."""
    records = recorded(story)
    for size, sealed in ((3, len(records)), (len(records), len(records)), (11, len(records) // 2)):
        assert_same(records, size, sealed)


@pytest.mark.parametrize("size", [1, 10_000])
def test_trading_gives_the_same_state(size: int) -> None:
    """Accounts, positions, attempts and texts."""
    trading = TradingSeason(5, 30).commands()
    for commands in (export_commands(), trading):
        records = oracle.attempted(commands)[0][: times(480) if size == 1 else None]
        for sealed in (len(records), Random(size).randrange(len(records))):
            assert_same(records, size, sealed)


def test_commands_are_found_by_ids_of_any_characters() -> None:
    """Of letters with several bytes, beside ASCII or not, of different lengths, and of one or 200 characters."""
    ids = ["a", "b" * 200, "été", "日本", "𝄞 a", "é" * 200, "ab", "ba"]
    records = logs.recorded(opened(f"q{number}", id=each) for number, each in enumerate(ids))
    assert [each.command_id for each in records] == ids
    for size in (1, 3, 8):
        assert_same(records, size, len(records))


SAID: list[Any] = [
    opened("rain"),
    opened("snow"),
    forecast("rain", participant="ada"),
    forecast("rain", participant="bob"),
    forecast("snow", participant="ada"),
    withdrawal("rain", participant="bob"),
    resolution("snow", at=day(25)),
]


def test_a_participant_withdraws_under_another_id_what_was_said_before() -> None:
    """The withdrawal is of a forecast under the former id; that of somebody else is not."""
    said = [*SAID[:3], renaming("ada", "bo"), withdrawal("rain", participant="bo")]
    records = oracle.history(*said)
    for size in (1, 3, 5):
        assert_same(records, size, len(records))
    stranger = structs.replace(records[4], event=structs.replace(records[4].event, participant="cy"))
    forged = [*records[:4], stranger]
    with pytest.raises(Corrupt, match="'cy'"):
        apply_segment(WriterState(), to_columns([log.seal(each)[0] for each in forged], forged), forged[-1])


def test_a_withdrawal_is_checked_with_the_ids_of_its_log_position() -> None:
    """Bo withdraws what ada said, and has another id later in the segment; before ada is bo, nothing is bo's."""
    said = [*SAID[:3], renaming("ada", "bo"), withdrawal("rain", participant="bo"), renaming("bo", "cy")]
    records = oracle.history(*said)
    for size in (1, 3, 6):
        assert_same(records, size, len(records))
    early = [*records[:3], structs.replace(records[4], position=4), structs.replace(records[3], position=5)]
    with pytest.raises(Corrupt, match="'bo'"):
        apply_segment(WriterState(), to_columns([log.seal(each)[0] for each in early], early), early[-1])


def test_forecasts_that_do_not_fit_are_found() -> None:
    """On a question that was not opened, or not yet; a withdrawal of nothing; with the first log position."""
    records = oracle.attempted(SAID)[0]
    for left_out, position in ((0, 3), (1, 5), (3, 6)):
        some = [each for number, each in enumerate(records) if number != left_out]
        with pytest.raises(Corrupt) as corrupt:
            apply_segment(WriterState(), to_columns([log.seal(each)[0] for each in some], some), some[-1])
        assert corrupt.value.position == position
    late = in_order(records[2], records[0], records[3])
    with pytest.raises(Corrupt, match="which was never opened") as corrupt:
        apply_segment(WriterState(), to_columns([log.seal(each)[0] for each in late], late), late[-1])
    assert corrupt.value.position == 1


def in_order(*records: Recorded) -> list[Recorded]:
    """The same events as rows of a log in this order."""
    rows: list[Recorded] = []
    for position, each in enumerate(records, 1):
        row = log.seal(msgspec.structs.replace(each, position=position, previous=rows[-1].digest if rows else GENESIS))
        rows += log.unseal([row[0]], log.Checkpoint(position - 1, rows[-1].digest if rows else GENESIS))
    return rows


def test_forecasts_before_a_change_of_outcomes_end_with_its_grace_period() -> None:
    """Although all forecasts of a segment are together; those after the change do not end with it."""
    said = {"red": "0.5", "green": "0.25", "blue": "0.25"}
    given: list[Any] = [
        choices(),
        *(forecast("colour", participant=who, probabilities=said) for who in ("ada", "bob")),
        addition(),
    ]
    later = forecast("colour", participant="bob", at=day(14), probabilities=said | {"red": 0, "violet": "0.5"})
    records = oracle.attempted([*given, later])[0]
    assert len(records) == len(given) + 1
    assert_same(records, 9, len(records))


def outcomes(path: str, commands: Sequence[AnyCommand], segments: Path | None) -> list[Receipt | str]:
    """The receipts and codes of refusals of commands, one after another, and the digest at the end."""
    with Ledger.open(path, clock=lambda: 10**15, segments=segments) as ledger:
        answers = ledger.handle_many(commands)
        codes = [each.code if isinstance(each, Refused) else each for each in answers]
        return [*codes, ledger.head().digest]


@given(oracle.logs(), st.data())
@settings(max_examples=times(4), deadline=None)
def test_a_ledger_decides_the_same(commands: list[AnyCommand], data: st.DataObject) -> None:
    """Retries, commands under ids that are taken, and new ones; the rows have the same bytes."""
    cut, sealed = data.draw(st.integers(1, len(commands))), data.draw(st.integers(1, 9))
    reused = [msgspec.structs.replace(commands[-1], id=commands[0].id)] if len(commands) > 1 else []
    later = [*commands[:2], *reused, *commands[cut:]]
    with TemporaryDirectory() as folder:
        found = []
        for name in ("one.db", "two.db"):
            path = f"{folder}/{name}"
            with Ledger.open(path, clock=lambda: 10**15) as ledger:
                ledger.handle_many(commands[:cut])
                empty = not ledger.head().position
            if not empty and name == "two.db":
                seal(path, f"{folder}/s", rows=sealed)
            found.append(
                (outcomes(path, later, Path(folder, "s") if not empty and name == "two.db" else None), rows(path))
            )
        assert found[0] == found[1]


def resealed(log_: str, folder: Path, **changes: Any) -> None:
    """Segments of three rows whose second one is another, with a manifest that is chained all the same."""
    seal(log_, folder, rows=3)
    old = read_manifest(folder)
    first, second, *rest = old.segments
    new = SegmentManifest(old.ledger)
    for segment in (first, msgspec.structs.replace(second, **changes), *rest):
        new = new.with_segment(segment)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(new))


FAULTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"first": 3, "last": 6}, Corrupt, "segment"),  # overlaps the first one
    ({"first": 5, "last": 6}, Corrupt, "segment"),  # leaves a row out
    ({"version": 99}, Unavailable, "version"),
    ({"digest": "0" * 64}, Corrupt, "segment"),
]


@pytest.mark.parametrize(("changes", "error", "says"), FAULTS)
def test_segments_that_overlap_or_are_of_other_versions_are_refused(
    changes: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    """The manifest is checked before a file is read."""
    path = written(tmp_path / "log.db", oracle.with_ids(SAID))
    resealed(path, tmp_path / "s", **changes)
    with pytest.raises(error, match=says):
        Ledger.open(path, segments=tmp_path / "s")


def test_segments_that_do_not_fit_open_no_ledger(tmp_path: Path) -> None:
    """Of another log, ahead of it, damaged, cut or missing; nothing is written."""
    path = written(tmp_path / "log.db", oracle.with_ids(SAID))
    seal(path, tmp_path / "s")
    other = written(tmp_path / "other.db", [opened("x", id="x"), *(opened(f"y{n}", id=f"y{n}") for n in range(9))])
    short = written(tmp_path / "short.db", oracle.with_ids(SAID)[:3])
    for log_, says in ((other, "of another log"), (short, "end at log position 7"), (tmp_path / "no.db", "no such")):
        with pytest.raises(Unavailable, match=says):
            Ledger.open(log_, segments=tmp_path / "s")
    assert not (tmp_path / "no.db").exists()
    with pytest.raises(Unavailable):
        Ledger.open(path, segments=tmp_path / "none")
    file = next((tmp_path / "s").glob("*.forecasts.parquet"))
    for damaged in (file.read_bytes()[:-1] + b"!", file.read_bytes()[:-1], b""):
        file.write_bytes(damaged)
        with pytest.raises(Corrupt, match="was changed after it was sealed"):
            Ledger.open(path, segments=tmp_path / "s")
    file.unlink()
    with pytest.raises(Corrupt, match="No such file"):
        Ledger.open(path, segments=tmp_path / "s")
    with Ledger.open(path) as ledger:
        assert ledger.head().position == len(rows(path))


def test_rows_after_the_segments_must_follow_them(tmp_path: Path) -> None:
    """The chain of digests goes on from the last sealed row."""
    path = written(tmp_path / "log.db", oracle.with_ids(SAID))
    sealing.seal(lambda after: log.pages_up_to(iter([rows(path)[after:]]), 4 - after), "main", tmp_path / "s")
    with Ledger.open(path, segments=tmp_path / "s") as ledger:
        assert ledger.head().digest == log.stated_digest(rows(path)[-1])
        receipt = ledger.handle(forecast("rain", participant="eve"), "new")
    assert receipt.first == len(SAID) + 1
    assert run("verify", path).exit_code == FINE


def test_a_writer_is_not_disturbed_by_what_happens_to_the_folder_later(tmp_path: Path) -> None:
    """More is sealed, by which its last segment is replaced, or the folder is deleted; other writers append."""
    path, folder = written(tmp_path / "log.db", oracle.with_ids(SAID)[:4]), tmp_path / "s"
    seal(path, folder)
    with Ledger.open(path, segments=folder) as ledger, Ledger.open(path) as writer:
        writer.handle_many(oracle.with_ids(SAID)[4:6])
        seal(path, folder)
        rmtree(folder)
        assert ledger.head() == writer.head()
        assert ledger.handle(oracle.with_ids(SAID)[6]).first == 7
        assert ledger.handle(oracle.with_ids(SAID)[0]).duplicate


def test_what_an_interrupted_sealing_leaves_is_not_read(tmp_path: Path) -> None:
    """Only listed files count, whatever else lies there."""
    path, folder = written(tmp_path / "log.db", oracle.with_ids(SAID)), tmp_path / "s"
    seal(path, folder)
    for name in ("000000000008-000000000009.forecasts.parquet", f"{MANIFEST}.part"):
        (folder / name).write_bytes(b"half")
    with Ledger.open(path, segments=folder) as ledger:
        assert ledger.head().position == len(SAID)


def test_append_reads_the_segments_that_it_is_given(tmp_path: Path) -> None:
    """The same line is printed; a folder of another log records nothing, and a dry run takes none."""
    said = b"\n".join(map(msgspec.json.Encoder(decimal_format="number").encode, oracle.with_ids(SAID)))
    one, two = (written(tmp_path / name, oracle.with_ids(SAID)[:4]) for name in ("one.db", "two.db"))
    seal(two, tmp_path / "s")
    found = [run("append", *each, "-", given=said) for each in ((one,), (two, "--segments", str(tmp_path / "s")))]
    assert [each.exit_code for each in found] == [FINE, FINE]
    assert found[0].stdout.splitlines()[1].split()[:4] == found[1].stdout.splitlines()[1].split()[:4]
    other = written(tmp_path / "other.db", [opened("x", id="x")])
    refused = run("append", other, "--segments", str(tmp_path / "s"), "-", given=said)
    assert refused.exit_code
    assert "older copy" in refused.stderr
    assert len(rows(other)) == 1
    trial = run("append", two, "--dry-run", "--segments", str(tmp_path / "s"), "-", given=said)
    assert "--dry-run reads the whole log" in trial.stderr
