"""Packs are checked without this program, byte for byte reproducible, and unpacked safely."""

import json
import re
import shutil
import stat
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.model.events import ForecastMade
from forecast_ledger.projections.core import table
from forecast_ledger.projections.core.columns import Column, Values, ids
from forecast_ledger.projections.core.table import Table, form_of
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.pages import check_pack
from forecast_ledger.replay.pages import pack as packing
from forecast_ledger.replay.pages.pack import check, pack, unpack
from tests.replay.audit.test_trails import sealed_log
from tests.replay.cli.test_main import run
from tests.support.given import forge, micros, prizes_paid, won
from tests.support.logs import commands_of, rows, written

ALONE = [sys.executable, "-I", "-S"]  # Python without the packages that are installed, and without this folder


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of a sealed and paid contest."""
    folder = tmp_path_factory.mktemp("packed")
    pack(sealed_log(folder), folder / "season.zip")
    return folder / "season.zip"


@pytest.fixture
def unpacked(packed: Path, tmp_path: Path) -> Path:
    """The folder of the same pack."""
    unpack(packed, tmp_path / "pack")
    return tmp_path / "pack"


def checked(folder: Path) -> tuple[int, list[str]]:
    """The exit code and the lines of the script of a pack, which Python runs alone."""
    done = subprocess.run([*ALONE, "check.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_a_pack_is_checked_without_this_program(unpacked: Path) -> None:
    """Neither this package nor what it needs can be imported there; the prize is the published one of B."""
    for name in ("forecast_ledger", "msgspec", "numpy"):
        done = subprocess.run([*ALONE, "-c", f"import {name}"], cwd=unpacked, capture_output=True, check=False)
        assert b"ModuleNotFoundError" in done.stderr
    code, told = checked(unpacked)
    assert code == 0, told
    assert told[0].startswith("ok  SHA-256 of ")
    assert told[1] == "ok  chain of digests of 39 rows"
    assert told[2].startswith("ok  digests of ")
    assert told[3].startswith("ok  score of B on olympics-2021 in plain: ")
    assert told[3].endswith(" = 0.566471704; terms computed again by ln: 2 of 2")
    assert told[4].startswith("ok  score of B on gdp-next-year in plain: ")
    assert told[5:] == ["ok  prizes of plain: 4 shares of 1000.00", f"not checked: {check_pack.NOT_CHECKED}"]


@pytest.mark.parametrize("story", ["arena-week", "board-rules", "changed-outcomes", "bids-and-asks", "spot-times"])
def test_packs_of_other_rules_are_checked_too(story: str, tmp_path: Path) -> None:
    """Trading, peers, changed outcomes, no scores, instants: every table has its digest, in whatever form."""
    pack(written(tmp_path / "log.db", commands_of(story)), tmp_path / "log.zip")
    unpack(tmp_path / "log.zip", tmp_path / "pack")
    assert [each for each in check_pack.checks(tmp_path / "pack") if each[1]] == []


def replace(path: Path, old: str, new: str) -> None:
    """Change a text in a file."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def sum_up(folder: Path) -> None:
    """Make SHA256SUMS again, as a forger would."""
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    told = [f"{sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names if name != "SHA256SUMS"]
    (folder / "SHA256SUMS").write_text("".join(told), "utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("log/events.jsonl", "[100000000,900000000]},", "[200000000,800000000]},", "digests: row 12 has the digest "),
        ("log/events.jsonl", '{\\"position\\":39', '{\\"position\\":40', "row 39 does not follow the row before it"),
        ("checkpoint.toml", "log_position = 39", "log_position = 38", "it ends at 39, "),
        ("log/scores.jsonl", '"score":"0.', '"score":"1.', "scores has the digest "),
        ("log/prizes.jsonl", '"participant":"A"', '"participant":"Z"', "prizes has the digest "),
        ("tables.json", '"version": 3', '"version": 4', " has the digest "),
        ("score.json", '"term": "0.', '"term": "0.1', "is not its term x its weight"),
        ("log/leaderboard.jsonl", '"prize":"108.00"', '"prize":"108.01"', "prizes of plain: they add up to 1000.01"),
        ("log/leaderboard.jsonl", '"take":"4.782141470"', '"take":"4.882141470"', "a prize is a unit or more away"),
        ("log/leaderboard.jsonl", '"prize":"108.00"', '"prize":"108.005"', "is no whole number of units"),
    ],
)  # fmt: skip
def test_what_was_changed_is_found(unpacked: Path, file: str, old: str, new: str, said: str) -> None:
    """By the SHA-256 of the file and, if that was made again, by the check of what the file says."""
    replace(unpacked / file, old, new)
    assert next(check_pack.checks(unpacked))[1] == f"{file} has another SHA-256"
    sum_up(unpacked)
    told = [f"{what}: {wrong}" for what, wrong in check_pack.checks(unpacked) if wrong]
    assert any(said in line for line in told), told


def test_a_row_that_was_written_anew_does_not_fit_the_next(unpacked: Path) -> None:
    """Its own digest is right; the next row states the former one."""
    path = unpacked / "log" / "events.jsonl"
    told = path.read_text("utf-8").splitlines()
    line = json.loads(told[11])
    head = line["row"].replace("[100000000,900000000]", "[200000000,800000000]").rpartition(',"digest":"')[0]
    line["row"] = f'{head},"digest":"{sha256(head.encode()).hexdigest()}"}}'
    told[11] = json.dumps(line)
    path.write_text("\n".join(told), "utf-8")
    assert check_pack.check_chain(unpacked)[1] == "row 13 does not follow the row before it"


def test_a_unit_that_went_to_a_smaller_remainder_is_found(unpacked: Path) -> None:
    """A and B have the largest remainders, 0.79 and 0.86; C has 0.34. A cent less for A and more for C adds up."""
    replace(unpacked / "log" / "leaderboard.jsonl", '"prize":"108.00"', '"prize":"107.99"')
    replace(unpacked / "log" / "leaderboard.jsonl", '"prize":"44.80"', '"prize":"44.81"')
    assert check_pack.check_prize(unpacked)[1] == "a unit left over did not go to the largest remainder"


def test_prizes_of_takes_that_nine_decimals_do_not_show_add_up_to_the_pool(unpacked: Path) -> None:
    """As with a thousand questions: e to a total of -30 is below half of 1e-9. The shares of such takes are unknown."""
    board = unpacked / "log" / "leaderboard.jsonl"
    board.write_text(re.sub(r'"take":"[^"]*"', '"take":"0.000000000"', board.read_text("utf-8")), "utf-8")
    told, wrong = check_pack.check_prize(unpacked)
    assert ("shares of 1000.00; not checked one by one" in told, wrong) == (True, ""), told
    replace(board, '"prize":"108.00"', '"prize":"107.99"')
    assert check_pack.check_prize(unpacked)[1] == "they add up to 999.99"


def test_terms_are_compared_with_their_formula(unpacked: Path) -> None:
    """Terms and contributions are changed alike, so that only ln p - ln r shows it; then a part is left out."""
    scores = json.loads((unpacked / "score.json").read_text("utf-8"))
    good = json.dumps(scores)
    for part in scores[0]["parts"]:
        part["contribution"] = str(int(part["contribution"]) * 2)
        part["term"] = f"{float(part['term']) * 2:.12f}"
    (unpacked / "score.json").write_text(json.dumps(scores), "utf-8")
    assert " by its formula" in check_pack.check_scores(unpacked)[0][1]
    scores = json.loads(good)
    del scores[0]["parts"][0]
    (unpacked / "score.json").write_text(json.dumps(scores), "utf-8")
    assert "the parts add up to " in check_pack.check_scores(unpacked)[0][1]


HALF, THIRD, FIFTH = Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)


@pytest.mark.parametrize(
    ("kernel", "score"),
    [
        ("brier", "0.39"),  # (0.5² + 0.7² + 0.2²) / 2
        ("brier_sum", "0.78"),
        ("brier_mean", "0.26"),
        ("ordered_brier", "0.29"),  # 2 / 2 x (0.5² + (0.8 - 1)²)
        ("error", "1"),
        ("spherical", "0.486664263392"),  # 0.3 / √0.38
        ("ln", "-1.203972804326"),
        ("log2", "-1.736965594166"),
    ],
)
def test_a_kernel_scores_a_whole_forecast(kernel: str, score: str) -> None:
    """Of three outcomes with the probabilities 0.5, 0.3 and 0.2, of which the second happened."""
    paid = [Fraction(0), Fraction(1), Fraction(0)]
    assert check_pack.kernel_score(kernel, [HALF, THIRD, FIFTH], paid) == Fraction(score)


def test_a_kernel_scores_payouts() -> None:
    """Half is paid for each of the first two: 0² + 0.2² + 0.2², and of splits 0² + 0.2²."""
    paid = [HALF, HALF, Fraction(0)]
    found = {
        kernel: check_pack.kernel_score(kernel, [HALF, THIRD, FIFTH], paid) for kernel in ("brier", "ordered_brier")
    }
    assert found == {"brier": Fraction("0.04"), "ordered_brier": Fraction("0.04")}


@pytest.mark.parametrize(
    ("reference", "own", "term"),
    [
        ("none", {}, {"0.39"}),
        ("none", {"probability": "0.5"}, set[str]()),  # no forecast of the participant has it
        ("uniform", {}, {"0.056666666667"}),  # 0.39 - ((1/3)² + (2/3)² + (1/3)²) / 2, rounded
        ("consensus", {"reference": "0.4"}, set[str]()),  # those of the other outcomes are not there
    ],
)
def test_terms_are_those_of_the_participants_forecasts(reference: str, own: dict[str, str], term: set[str]) -> None:
    """Those of the participant, also under a former id, and of nobody else."""
    names = {"question": "cup", "type": "forecast_made.v1"}
    events = [
        {"type": "contest_opened.v1", "contest": "c", "rules": {"kernel": "brier", "reference": reference}},
        {"type": "question_opened.v1", "question": "cup", "kind": "multiple_choice", "outcomes": ["x", "y", "z"]},
        names | {"participant": "old", "probabilities": [500_000_000, 300_000_000, 200_000_000]},
        names | {"participant": "bo", "probabilities": [200_000_000, 300_000_000, 500_000_000]},
        {"type": "participant_renamed.v1", "participant": "old", "to": "ada"},
        {"type": "question_resolved.v1", "question": "cup", "outcome": 1},
    ]  # fmt: skip
    case = check_pack.Case({"contest": "c", "question": "cup", "participant": "ada"}, events)
    assert case.why_not() == ""
    found = check_pack.expected_terms(case, {"probability": "0.3", "reference": None} | own)
    assert found == {*map(Fraction, term)}


def test_a_forged_score_of_another_kernel_is_found(tmp_path: Path) -> None:
    """The terms of every kernel are computed again; a term and its contribution that were doubled are found."""
    pack(written(tmp_path / "log.db", commands_of("daily-brier")), tmp_path / "log.zip")
    unpack(tmp_path / "log.zip", tmp_path / "pack")
    path = tmp_path / "pack" / "score.json"
    told = [said for said, _ in check_pack.check_scores(tmp_path / "pack")]
    scores, forged = json.loads(path.read_text("utf-8")), list[int]()
    for kernel in ("brier_sum", "brier", "ordered_brier"):
        forged += (each for each, said in enumerate(told) if said.endswith(f" by {kernel}: 1 of 1"))
        [part] = scores[forged[-1]]["parts"]
        part["contribution"] = str(2 * int(part["contribution"]))
        part["term"] = f"{2 * float(part['term']):.12f}"
    path.write_text(json.dumps(scores), "utf-8")
    found = [number for number, (_, wrong) in enumerate(check_pack.check_scores(tmp_path / "pack")) if wrong]
    assert len(forged) == len({*forged}) == 3
    assert found == sorted(forged)
    assert all(" by its formula" in wrong for _, wrong in check_pack.check_scores(tmp_path / "pack") if wrong)


def test_probabilities_are_those_of_forecasts() -> None:
    """Of any participant, or the least that the rules score; the score in the pack has them all in its log."""
    made = {"type": "forecast_made.v1", "question": "rain", "probabilities": [700_000_000, 300_000_000]}
    opened = {"type": "question_opened.v1", "question": "rain", "kind": "binary", "outcomes": ["yes", "no"]}
    parts = [{"probability": "0.7"}, {"probability": "0.3"}, {"probability": None}, {"probability": "0.01"}]
    for least, said in ((10_000, ""), (0, "no forecast has the probability 0.01")):
        rules = {"kernel": "ln", "reference": "none", "least_probability_ppm": least}
        contest = {"type": "contest_opened.v1", "contest": "c", "rules": rules}
        case = check_pack.Case(
            {"contest": "c", "question": "rain", "participant": "ada"}, [contest, opened, made | {"participant": "bo"}]
        )
        assert check_pack._unrecorded(case, parts) == said


def test_a_file_that_is_added_or_missing_or_unreadable_is_found(unpacked: Path) -> None:
    """The script says so in a line."""
    (unpacked / "extra").write_text("")
    (unpacked / "paper.md").unlink()
    (unpacked / "tables.json").write_text("{")
    told = checked(unpacked)[1]
    assert told[0].endswith(": paper.md is missing; extra is not in SHA256SUMS; tables.json has another SHA-256")
    assert told[2].startswith("WRONG  check tables: cannot be read: JSONDecodeError")


def test_a_digest_by_hand() -> None:
    """Every byte of the digest of a table with a row of each form, as docs/auditor.md describes them."""
    columns = [("who", "id"), ("score", "points"), ("term", "term"), ("note", "text"), ("paid", "money")]
    wide = 5 + (6 << 36) + (-7 << 72)
    values: list[Values] = [
        ids(["bo", "ada"]), np.array([-1, 2]), WideInt.from_integers([wide, 0]), ['é"\n', None], [None, 3],
    ]  # fmt: skip
    found = Table("t", 2, tuple(Column(name, kind, "") for name, kind in columns), tuple(values))
    expected = b'["t",2,[["who","id"],["score","points"],["term","term"],["note","text"],["paid","money"]],2]'
    expected += b'["ada","bo"]' + b"\x01" + b"\0" * 7 + b"\0" * 8  # bo is the second, ada the first
    expected += b"\xff" * 8 + b"\x02" + b"\0" * 7
    expected += struct.pack("<6q", 5, 0, 6, 0, -7, 0)  # the low, the middle, and the high words
    expected += '["é\\"\\n",null]'.encode() + b'[null,"3"]'
    assert found.digest() == sha256(expected).hexdigest()


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
WORDS = st.integers(-(2**63), 2**63 - 1)
LONG = st.integers(-(2**90), 2**90)


@given(st.integers(0, 9), st.sampled_from([3, 100]), st.data())
def test_the_script_computes_the_digest_of_any_table(count: int, most: int, data: st.DataObject) -> None:
    """Of ids, of integers with and without missing values, wide and not, and of texts; divided into parts or not."""
    many = {"min_size": count, "max_size": count}
    columns = [
        ("who", "id"), ("n", "count"), ("m", "money"), ("i", "integer"),
        ("note", "text"), ("take", "take"), ("w", "term"),
    ]  # fmt: skip
    small = st.none() | st.integers(0, 99)
    values: list[Values] = [
        ids(data.draw(st.lists(TEXTS, **many))),  # type: ignore[arg-type] # both are sizes
        np.array(data.draw(st.lists(WORDS, **many)), np.int64),  # type: ignore[arg-type]
        data.draw(st.lists(small, **many) | st.lists(WORDS, **many)),  # type: ignore[arg-type]
        data.draw(st.lists(LONG, **many)),  # type: ignore[arg-type]
        data.draw(st.lists(st.none() | TEXTS, **many)),  # type: ignore[arg-type]
        data.draw(st.lists(st.sampled_from([None, "1.5", "4.2E+41"]), **many)),  # type: ignore[arg-type]
        WideInt.from_integers(data.draw(st.lists(LONG, **many))),  # type: ignore[arg-type]
    ]
    whole = Table("t", 1, tuple(Column(name, kind, "") for name, kind in columns), tuple(values))
    forms = [(name, kind, form_of(each)) for (name, kind), each in zip(columns, values, strict=True)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table, "PART_ROWS", most)
        patched.setattr(check_pack, "PART_ROWS", most)
        assert check_pack.table_digest("t", 1, forms, [*whole.rows()]) == whole.digest()


def test_a_pack_has_the_same_bytes_whenever_it_is_made(packed: Path, tmp_path: Path) -> None:
    """Its files have a fixed time and order; the zip replaces a file of the same name."""
    again = tmp_path / "again.zip"
    again.write_text("old")
    made = pack(sealed_log(tmp_path), again)
    assert made.sha256 == sha256(again.read_bytes()).hexdigest()
    with zipfile.ZipFile(packed) as one, zipfile.ZipFile(again) as other:
        assert {member.date_time for member in one.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert one.namelist() == other.namelist()
        assert one.namelist()[:3] == ["README.txt", "check.py", "SHA256SUMS"]
        assert made.files == len(one.namelist())
    assert packed.read_bytes() == again.read_bytes()


def test_the_log_of_a_pack_can_be_imported(unpacked: Path, tmp_path: Path) -> None:
    """The same rows, byte for byte, as the text says."""
    log = sealed_log(tmp_path)
    assert "forecast-ledger import log copy.db" in (unpacked / "README.txt").read_text("utf-8")
    assert run("import", str(unpacked / "log"), str(tmp_path / "copy.db")).exit_code == FINE
    assert rows(str(tmp_path / "copy.db")) == rows(log)
    versions = json.loads((unpacked / "versions.json").read_text("utf-8"))
    assert (versions["log_position"], versions["ledger"], versions["pack"]) == (39, "main", 1)
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "prize_paid.v1" in versions["log_format"]
    assert {"click", "msgspec", "numpy"} <= versions["packages"].keys()


def zipped(folder: Path, out: Path) -> str:
    """The path of a zip of these files."""
    with zipfile.ZipFile(out, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder).as_posix()) if path.is_file() else None
    return str(out)


def test_a_pack_is_checked_by_this_program(packed: Path, unpacked: Path, tmp_path: Path) -> None:
    """It decides each command again, and makes the checkpoint and the paper again."""
    result = run("pack", "--check", str(packed))
    assert result.exit_code == FINE, result.stdout
    imported, recomputed, paper = result.stdout.splitlines()[6:]
    assert (imported, paper) == (
        "ok  the log, imported and decided again: 39 events",
        "ok  the working paper, made again",
    )
    assert recomputed.startswith("ok  the checkpoint: ")
    replace(unpacked / "paper.md", "found no fault", "found no faults")
    sum_up(unpacked)
    result = run("pack", "--check", zipped(unpacked, tmp_path / "paper.zip"))
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (
        FINDINGS,
        "WRONG  the working paper, made again: it differs",
    )
    (unpacked / "check.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", "utf-8")
    shutil.rmtree(unpacked / "log")
    (unpacked / "log").mkdir()
    for name in ("events.jsonl", "manifest.json"):
        (unpacked / "log" / name).write_text("{}", "utf-8")
    result = run("pack", "--check", zipped(unpacked, tmp_path / "log.zip"))
    assert result.exit_code == FINDINGS
    assert "WRONG  the log, imported and decided again: " in result.stdout
    assert not (tmp_path / "ran").exists()


def with_link(archive: zipfile.ZipFile) -> None:
    """A member that is a symbolic link."""
    member = zipfile.ZipInfo("log/link.jsonl")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive.writestr(member, "/etc/passwd")


def with_bombs(archive: zipfile.ZipFile) -> None:
    """Members that are a thousand times as long as they are in the zip, each of a size that a file may have."""
    for number in range(90):
        archive.writestr(f"log/zeros{number}.jsonl", b"0" * 900_000, zipfile.ZIP_DEFLATED)


def named(name: str) -> Callable[[zipfile.ZipFile], None]:
    """A function that adds a member of this name."""
    return lambda archive: archive.writestr(name, "x")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (named("../outside.txt"), "'../outside.txt' is no name of a file of a pack"),
        (named("log/../../outside.txt"), "is no name of a file"),
        (named("/outside.txt"), "is no name of a file"),
        (named("log\\outside.txt"), "is no name of a file"),
        (named("folder/"), "is no name of a file"),
        (named("README.txt"), "two files of the same name"),
        (named("readme.TXT"), "two files of the same name"),
        (with_link, "or no regular file"),
        (with_bombs, "its files would take 81,"),
    ],
)
def test_a_zip_that_is_not_safe_is_not_unpacked(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[zipfile.ZipFile], None], said: str
) -> None:
    """Its names, kinds and sizes are checked before anything is written."""
    monkeypatch.setattr(packing, "LARGEST", 1_000_000)
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "bad.zip"
    shutil.copy(packed, path)
    with zipfile.ZipFile(path, "a") as archive:
        spoil(archive)
    result = run("pack", "--check", str(path))
    assert (result.exit_code, result.stdout) == (UNREADABLE, "")
    assert "not a pack: " in result.stderr
    assert said in result.stderr
    with pytest.raises(Unavailable):
        unpack(path, tmp_path / "in" / "out")
    assert [each.name for each in tmp_path.rglob("*")] == ["in", "bad.zip"]


def test_what_is_no_pack_is_refused(
    packed: Path, unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file, a zip without a log, one that was cut or changed, and one with too many files."""
    path = tmp_path / "x.zip"
    path.write_text("no zip")
    assert "not a pack" in run("pack", "--check", str(path)).stderr
    shutil.rmtree(unpacked / "log")
    zipped(unpacked, path)
    assert "it has no file log/events.jsonl" in run("pack", "--check", str(path)).stderr
    whole = packed.read_bytes()
    path.write_bytes(whole[:-500])
    assert run("pack", "--check", str(path)).exit_code == UNREADABLE
    path.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    assert run("pack", "--check", str(path)).exit_code == UNREADABLE
    monkeypatch.setattr(packing, "MOST_MEMBERS", 5)
    assert "a pack at most 5" in run("pack", "--check", str(packed)).stderr
    assert run("pack", "--check", str(tmp_path / "none.zip")).exit_code == UNREADABLE


def test_a_damaged_log_is_not_packed(tmp_path: Path) -> None:
    """Nothing is left behind, and a pack that was there stays."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    data = (tmp_path / "log.db").read_bytes()
    (tmp_path / "log.db").write_bytes(data.replace(b"[100000000,900000000]", b"[900000000,100000000]", 1))
    (tmp_path / "out.zip").write_text("old")
    with pytest.raises(Corrupt):
        pack(log, tmp_path / "out.zip")
    assert run("pack", log, str(tmp_path / "out.zip")).exit_code == DAMAGED
    forged = written(tmp_path / "forged.db", won(pool=10))
    chances = (700_000_000, 300_000_000)
    forge(tmp_path / "forged.db", ForecastMade(at=micros(28), question="rain", participant="bo", probabilities=chances))
    assert run("pack", forged, str(tmp_path / "out.zip")).exit_code == DAMAGED  # every digest is right
    assert (tmp_path / "out.zip").read_text() == "old"
    assert sorted(path.name for path in tmp_path.glob("*") if ".db" not in path.name) == ["out.zip"]


def test_a_finding_is_packed_and_said(tmp_path: Path) -> None:
    """A payment that is not the prize: the log can be read, and the paper names it."""
    log = written(tmp_path / "log.db", won(pool=10))
    forge(tmp_path / "log.db", *prizes_paid(ada=1))
    result = run("pack", log, str(tmp_path / "out.zip"))
    assert result.exit_code == FINDINGS
    assert result.stderr.startswith("The log can be read, but there ")
    assert (tmp_path / "out.zip").exists()


def test_wrong_usage_and_empty_logs_are_said(packed: Path, tmp_path: Path) -> None:
    """A pack needs a name, and a check nothing else."""
    assert run("pack", str(packed)).exit_code == USAGE
    assert run("pack", str(packed), "out.zip", "--check").exit_code == USAGE
    log = written(tmp_path / "log.db", won(pool=10))
    empty = run("pack", log, str(tmp_path / "empty.zip"), "--as-of", "0")
    assert (empty.exit_code, empty.stderr.splitlines()[0]) == (FINDINGS, "The log has no events.")
    assert run("pack", "--check", str(tmp_path / "empty.zip")).exit_code == FINE
    assert check(packed)[0][1] == ""
