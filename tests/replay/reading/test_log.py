"""Replay from segments, and from segments and the rest of a log: the numbers of the log, by either degree of trust."""

import re
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Refused, Unavailable
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.segments.arrow_arrays import pyarrow
from forecast_ledger.ledger.segments.segment_manifest import MANIFEST, SegmentManifest, describe_file, read_manifest
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.replay.cli.main import DAMAGED, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.explain.numbers import explain
from forecast_ledger.replay.files.export import export, seal
from forecast_ledger.replay.reading.log import AsOf, Trust, WithSegments, find_contest
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.replay.cli.test_main import run
from tests.support.effort import LONG
from tests.support.given import MARCH, opened
from tests.support.logs import commands_of, rows, written
from tests.support.paths import SOURCES

pytestmark = pytest.mark.usefixtures("quickly_sealed")

SIZE = 10
TRUSTS: list[Trust] = ["files", "rows"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of a tournament; its clock goes on by a second with each command."""
    return written(tmp_path_factory.mktemp("sealed") / "log.db", commands_of("metaculus-2022"), at=count(MARCH, 10**6))


@pytest.fixture(scope="module")
def whole(path: str) -> Path:
    """All of it as segments."""
    seal(path, Path(path).with_name("whole"), rows=SIZE)
    return Path(path).with_name("whole")


@pytest.fixture(scope="module")
def beginning(path: str) -> Path:
    """Its first 25 rows as segments."""
    export(path, Path(path).with_name("beginning"), "segments", as_of=25)
    return Path(path).with_name("beginning")


def agree(found: Replay, expected: Replay) -> bool:
    """Whether two replays have the same end and the same tables."""
    names = ("scores", "standing", "leaderboard")
    return found.checkpoint == expected.checkpoint and all(
        found.table(name).digest() == expected.table(name).digest() for name in names
    )


@pytest.mark.parametrize("trust", TRUSTS)
def test_the_tables_are_those_of_the_log_as_of_any_cut(path: str, whole: Path, beginning: Path, trust: Trust) -> None:
    """Before, within, at the end of and after segments, by log position and by the ledger's clock.

    Each trust has every second cut, and each cut two of the ways to give segments; in a long run, every one.
    """
    instants = [log.decode_row(row, 1).recorded_at for row in rows(path)]
    cuts: list[AsOf] = [None, 0, 1, SIZE - 1, SIZE, SIZE + 1, 24, 25, 26, len(instants)]
    cuts += [format_instant(instants[row] + late) for row, late in ((0, -1), (7, 0), (SIZE - 1, 0), (25, 0), (-1, 9))]
    ways: list[tuple[str | Path, Path | None]] = [(whole, None), (path, beginning), (path, whole)]
    for number, cut in enumerate(cuts[TRUSTS.index(trust) :: 2] if LONG == 1 else cuts):
        expected = replay(path, as_of=cut)
        for of, segments in ways if LONG > 1 else ways[: number % 3] + ways[number % 3 + 1 :]:
            assert agree(replay(of, as_of=cut, segments=segments, trust=trust), expected), cut


@pytest.mark.parametrize("trust", TRUSTS)
def test_a_cut_beyond_the_end_is_refused(path: str, whole: Path, beginning: Path, trust: Trust) -> None:
    """The end is that of what is read: of the folder alone, or of the log."""
    end = len(rows(path))
    for of, segments in ((beginning, None), (whole, None), (path, whole), (path, beginning)):
        with pytest.raises(Refused, match="the log ends at position"):
            replay(of, as_of=end + 1, trust=trust, segments=segments)
    with pytest.raises(Refused, match="the log ends at position 25"):
        replay(beginning, as_of=26, trust=trust)


@pytest.mark.parametrize("trust", TRUSTS)
def test_segments_that_are_not_of_the_log_are_refused(path: str, whole: Path, tmp_path: Path, trust: Trust) -> None:
    """Of another log, or ahead of it; also those of a ledger with another name. The message says what to do."""
    other = written(tmp_path / "other.db", [opened(f"q{number}", id=f"i{number}") for number in range(40)])
    with pytest.raises(Unavailable, match="of another log; name another folder"):
        replay(other, segments=whole, trust=trust)
    short = written(tmp_path / "short.db", commands_of("metaculus-2022")[:20])
    with pytest.raises(Unavailable, match="the log is an older copy"):
        replay(short, segments=whole, trust=trust)
    with pytest.raises(Absent, match="there is no ledger named 'else'; there is 'main'"):
        replay(path, "else", segments=whole, trust=trust)
    with pytest.raises(Absent, match=r"no segments\.json in it"):
        replay(path, segments=tmp_path, trust=trust)


def test_trust_is_of_segments(path: str, whole: Path) -> None:
    """A log alone has no files to be trusted; there are two degrees."""
    wrong: Any = "nothing"
    with Ledger.open(path) as ledger:
        tried: list[tuple[Any, Trust, str]] = [
            (path, "files", "no folder of segments, and none is beside it"),
            (ledger, "files", "an open ledger has no segments"),
            (whole, wrong, "give files or rows"),
        ]
        for of, trust, message in tried:
            with pytest.raises(ValueError, match=message):
                replay(of, trust=trust)


@pytest.mark.parametrize("trust", TRUSTS)
def test_a_cut_file_is_found_by_either_degree(path: str, tmp_path: Path, trust: Trust) -> None:
    """At the first row that it can concern."""
    folder = tmp_path / "s"
    seal(path, folder, rows=SIZE)
    file = folder / f"{SIZE + 1:012}-{2 * SIZE:012}.others.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    for of, segments in ((folder, None), (path, folder)):
        with pytest.raises(Corrupt) as corrupt:
            replay(of, trust=trust, segments=segments)
        assert corrupt.value.position in range(SIZE + 1, 2 * SIZE + 1)


def forge(folder: Path, name: str) -> None:
    """Give the first forecast of the first segment to another participant; the manifest then fits its file."""
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    segment = read_manifest(folder).segments[0]
    file = folder / segment.forecasts.name
    table = parquet.read_table(file)
    people = table["participant"].to_pylist()
    people[0] = name
    names = pyarrow().array(people).dictionary_encode()
    parquet.write_table(table.set_column(table.schema.names.index("participant"), "participant", names), file)
    forged = structs.replace(segment, forecasts=describe_file(file, segment.forecasts.rows))
    (folder / MANIFEST).write_bytes(json.encode(SegmentManifest("main").with_segment(forged)))


def test_columns_that_were_changed_by_the_sealer_are_found_by_rows_only(path: str, tmp_path: Path) -> None:
    """The manifest states the SHA-256 of the changed file: only the rows show that it is not the log's."""
    seal(path, tmp_path / "s")
    forge(tmp_path / "s", "eve")
    assert "eve" in replay(tmp_path / "s", trust="files").projections.facts.participant_codes.codes
    with pytest.raises(Corrupt, match="columns of the segment"):
        replay(tmp_path / "s")


def test_the_command_line_takes_both(path: str, whole: Path, beginning: Path) -> None:
    """`replay`, `table` and `leaderboard` print the same; `--trust` of a log alone is wrong usage."""
    commands = (["replay"], ["table", "scores"], ["leaderboard", "plain"])
    for name, *arguments in commands:
        expected = run(name, path, *arguments)
        for log_, *more in ([whole, "--trust", "files"], [path, "--segments", beginning], [whole, "--trust", "rows"]):
            found = run(name, str(log_), *arguments, *map(str, more))
            assert (found.exit_code, found.stdout, found.stderr) == (FINE, expected.stdout, expected.stderr)
    found = run("replay", path, "--trust", "files")
    assert (found.exit_code, "--trust files is for segments" in found.stderr) == (USAGE, True)
    assert run("replay", path, "--compare", path, "--segments", str(whole)).exit_code == USAGE
    assert run("replay", path, "--trust", "blindly").exit_code == USAGE


READ: list[list[str]] = [
    ["table", "scores"],
    ["leaderboard", "plain"],
    ["explain", "score", "plain", "olympics-2021", "A"],
    ["explain", "rank", "plain", "A"],
    ["explain", "prize", "plain", "A"],
    ["diff", "@20", "@34", "--table", "scores"],
    ["diff", "@34", "@34", "--table", "leaderboard"],
    ["blame", "scores", "plain", "olympics-2021", "A"],
    ["blame", "leaderboard", "plain", "A"],
    ["blame", "contests", "plain"],
    ["what-if", "--rules", "baseline", "--contest", "plain", "--show", "leaderboard"],
]
PROVE: list[list[str]] = [["replay"], ["checkpoint"]]


def answer(log_: str, command: list[str], *more: str) -> tuple[int, str, list[str]]:
    """The exit code of a command, what it prints, and the lines about segments."""
    found = run(command[0], log_, *command[1:], *more)
    return found.exit_code, found.stdout, [line for line in found.stderr.splitlines() if "segments" in line]


@pytest.mark.parametrize("command", [*READ, *PROVE], ids=" ".join)
def test_every_command_gives_the_same_answer(path: str, whole: Path, beginning: Path, command: list[str]) -> None:
    """From the log, from its segments and the rest, and from segments alone; with a cut within segments too."""
    ways = [[whole, "--trust", "files"], [path, "--segments", beginning], [path, "--segments", whole]]
    cuts = [[], ["--as-of", "24"]] if command[0] not in {"diff", "blame", "explain"} else [[]]
    for cut in cuts:
        expected = answer(path, command, *cut)
        for log_, *more in ways[:1] if cut and LONG == 1 else ways:
            assert answer(str(log_), command, *map(str, more), *cut) == expected
    assert expected[0] == FINE or command[0] == "diff"


@pytest.fixture
def copied(path: str, beginning: Path, tmp_path: Path) -> str:
    """A copy of the log, sealed beside itself up to its 25th row."""
    shutil.copytree(beginning, tmp_path / "season.db.segments")
    return str(shutil.copy(path, tmp_path / "season.db"))


def test_segments_beside_a_log_are_used_and_named(copied: str) -> None:
    """By the commands that read; one line says so, and how to read the log instead. Those that prove read the log."""
    for command in READ:
        code, out, said = answer(copied, command)
        assert (code, out) == answer(copied, command, "--trust", "rows")[:2]
        checked = "the SHA-256 of its files was checked, not every row; --trust rows reads the log"
        assert said == [f"up to log position 25, read from {copied}.segments: {checked}"], command
        assert answer(copied, command, "--trust", "rows")[2] == []
    for command in PROVE:
        assert answer(copied, command)[2] == []
        assert answer(copied, command, "--trust", "files")[:2] == answer(copied, command)[:2]


def test_columns_beside_a_log_are_what_is_read(copied: str) -> None:
    """With another name in them, the answer shows it; so they prove nothing. Reading rows shows the log's."""
    forge(Path(f"{copied}.segments"), "eve")
    everyone = answer(copied, ["table", "standing"])[1]
    assert "eve" in everyone
    assert "eve" not in answer(copied, ["table", "standing"], "--trust", "rows")[1]
    for command in PROVE:
        assert answer(copied, command)[1] == answer(copied, command, "--trust", "rows")[1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("damaged", "the file was changed after it was sealed"),
        ("missing", "No such file"),
        ("of another log", "its segments are of another log"),
        ("longer", "the log is an older copy"),
        ("unreadable", "this version cannot read it"),
        ("of another ledger", ""),
    ],
)
def test_segments_beside_a_log_that_do_not_fit_are_left_out(copied: str, path: str, wrong: str, message: str) -> None:
    """One line says why, and the answer is the log's; asked for by name, they are refused."""
    folder = Path(f"{copied}.segments")
    file = next(folder.glob("*.forecasts.parquet"))
    if wrong == "damaged":
        file.write_bytes(file.read_bytes()[:-1] + b"!")
    elif wrong == "missing":
        file.unlink()
    elif wrong == "unreadable":
        (folder / MANIFEST).write_text("{}")
    else:
        shutil.rmtree(folder)
        name = "else" if wrong == "of another ledger" else "main"
        given = commands_of("metaculus-2022") if wrong == "longer" else [opened(f"q{n}", id=f"i{n}") for n in range(20)]
        other = str(folder.with_name("other.db"))
        with Ledger.open(other, name) as ledger:
            ledger.handle_many(given)
        seal(other, folder, name, rows=SIZE)
    if wrong == "longer":
        copied = written(folder.with_name("short.db"), commands_of("metaculus-2022")[:20])
        folder.rename(f"{copied}.segments")
    command = ["table", "scores"]
    code, out, said = answer(copied, command)
    assert (code, out) == answer(copied, command, "--trust", "rows")[:2]
    assert len(said) == bool(message)
    assert all(message in line and line.startswith("segments are not used: ") for line in said)
    assert answer(copied, command, "--segments", f"{copied}.segments")[0] in {UNREADABLE, DAMAGED}


def test_a_log_is_sealed_beside_itself(copied: str, path: str, tmp_path: Path) -> None:
    """When no folder is given; then the Python functions find it too. A server has no place beside it."""
    assert run("seal", copied).exit_code == FINE
    assert read_manifest(Path(f"{copied}.segments")).end.position == len(rows(copied))
    expected = explain(path, "score", "plain", "olympics-2021", "A")
    assert explain(WithSegments(copied), "score", "plain", "olympics-2021", "A") == expected
    assert agree(replay(copied, trust="files"), replay(path))
    manifest = export(WithSegments(copied), tmp_path / "csv")
    assert manifest.tables == export(path, tmp_path / "again").tables
    assert run("seal", "postgresql://ada:secret@db.example/x").exit_code == USAGE
    with pytest.raises(ValueError, match="there is no place beside it"):
        seal(":memory:")
    with pytest.raises(ValueError, match="no folder of segments, and none is beside it"):
        WithSegments(path)


def test_what_reads_every_row_takes_no_segments(copied: str, tmp_path: Path) -> None:
    """A comparison of logs, and the exports that are made of rows."""
    for command in (["replay", "--compare", copied], ["export", str(tmp_path / "x"), "--format", "hub"]):
        assert run(command[0], copied, *command[1:], "--trust", "files").exit_code == USAGE
    assert run("export", copied, str(tmp_path / "x"), "--format", "csv", "--trust", "files").exit_code == FINE


def test_damage_of_segments_is_told_on_the_command_line(path: str, tmp_path: Path) -> None:
    """With the exit code of a damaged log, and a remedy."""
    seal(path, tmp_path / "s")
    next((tmp_path / "s").glob("*.forecasts.parquet")).unlink()
    found = run("table", path, "scores", "--segments", str(tmp_path / "s"))
    assert (found.exit_code, "restore the folder from a copy" in found.stderr) == (DAMAGED, True)


# --- Lookups by id: the contest or question, or a refusal with the ids that exist.


BASELINE = PRESETS["baseline"]
CUP, ARENA = (
    Contest(events.ContestOpened(at=0, contest=name, rules=BASELINE, payable_unit=10_000), position=position)
    for position, name in enumerate(["cup", "arena"], 1)
)


def test_a_contest_is_found_by_its_id() -> None:
    """The contest itself, not a copy."""
    facts = Facts()
    facts.contests = {"cup": CUP, "arena": ARENA}
    assert find_contest(facts, "arena") is ARENA


@pytest.mark.parametrize(("contests", "there"), [({}, "none"), ({"cup": CUP, "arena": ARENA}, "arena, cup")])
def test_a_contest_that_is_not_there_is_refused_with_those_that_are(contests: dict[str, Contest], there: str) -> None:
    """The ids are sorted, whatever the order in which the contests were opened."""
    facts = Facts()
    facts.contests = contests
    with pytest.raises(Refused) as refused:
        find_contest(facts, "league")
    assert refused.value.code == "unknown_contest"
    assert str(refused.value).endswith(
        f"the log has no such contest; it has: {there}; use the id of a contest in the log"
    )


def test_what_is_unknown_is_refused_in_one_place() -> None:
    """The ledger's refusals of unknown ids are made where state is looked up, those of readings in `reading.log`."""
    for code in ["unknown_contest", "unknown_question"]:
        raised = re.compile(rf'raise Refused\(\s*"{code}"')
        assert {path.stem for path in SOURCES if raised.search(path.read_text("utf-8"))} == {"state", "log"}
