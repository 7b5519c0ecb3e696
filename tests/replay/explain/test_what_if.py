"""What-if: commands are decided and replayed on a branch in memory; the log stays as it is."""

import json
import shlex
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.cli.main import FINDINGS, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.explain.what_if import parse_rule_set, under_rules
from forecast_ledger.replay.writing.provisional_stores import open_overlay
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.replay.cli.test_main import COMMANDS, SEALED, run, said
from tests.support import oracle
from tests.support.given import contest, day, entry, forecast, numeric, opened, resolution, trading_floor, won
from tests.support.logs import written
from tests.support.menu import loaded

LATER = {"at": "2021-07-26T00:00:00Z"}
ANNUL = said("w1", "annul_question", at="2021-07-26T00:00:00Z", question="gdp-next-year", reason="no source")


def asked(log: str, *arguments: str, given: bytes = b"") -> list[dict[str, Any]]:
    """The rows that `what-if` prints."""
    result = run("what-if", log, *arguments, "--format", "json", given=given)
    assert result.exit_code == FINE, result.stderr
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def table(log: str, name: str) -> list[dict[str, Any]]:
    """A table as it is printed."""
    rows: list[dict[str, Any]] = json.loads(run("table", log, name, "--format", "json").stdout)
    return rows


@pytest.mark.parametrize("projection", ["leaderboard", "scores", "prizes", "contests", "brier", "standing"])
def test_what_would_change_is_what_changes_when_it_is_recorded(log: str, projection: str) -> None:
    """Each value told as new is in the table once the same commands are appended, each old one before, no other."""
    before = table(log, projection)
    told = asked(log, "-", "--show", projection, given=ANNUL)
    assert run("append", log, "-", given=ANNUL).exit_code == FINE
    after = table(log, projection)
    names = CATALOGUE[projection].key
    one, other = ({tuple(row[name] for name in names): row for row in rows} for rows in (before, after))
    for row in told:
        key = tuple(row[name] for name in names)
        assert row["old"] == one.get(key, {}).get(row["column"])
        assert row["new"] == other.get(key, {}).get(row["column"])
    changed = {tuple(row[name] for name in names) for row in told}
    assert changed == {key for key in one | other if one.get(key) != other.get(key)}
    assert len(told) == len({(*(row[name] for name in names), row["column"]) for row in told})


def test_nothing_is_written_whatever_is_asked(log: str) -> None:
    """The file's bytes are those before: of commands, of a payment, of other rules, of a dry run."""
    assert run("append", log, str(SEALED)).exit_code == FINE
    before = sha256(Path(log).read_bytes()).digest()
    pay = said("p", "pay_prizes", contest="plain")
    assert asked(log, "-", "--show", "prizes", given=pay)
    assert asked(log, "--rules", "peer-2024-03", "--contest", "plain", "--show", "scores")
    assert run("append", log, "-", "--dry-run", given=pay + ANNUL).exit_code == FINE
    assert sha256(Path(log).read_bytes()).digest() == before
    assert run("verify", log).stderr.startswith("as of log position 35, ")


def test_it_says_how_many_rows_change_and_stay(log: str) -> None:
    """The counts of the commands and the checkpoint of the log are printed too."""
    result = run("what-if", log, "-", "--show", "leaderboard", "--contest", "plain", given=ANNUL + b"{}\n")
    told = result.stderr.splitlines()
    assert (result.exit_code, told[0].split(":")[:2]) == (FINDINGS, ["line 2", " malformed"])
    assert told[1] == "1 accepted, 0 duplicate, 1 refused"
    assert told[2].startswith("rows of leaderboard: ")
    assert sum(int(word) for word in told[2].replace(",", " ").split() if word.isdigit()) == 4
    assert told[3] == "nothing was written"
    assert told[4].startswith("as of log position 34, digest ")


def test_commands_that_change_nothing_show_nothing(log: str) -> None:
    """A command that is already recorded is a duplicate on a branch too."""
    assert asked(log, str(COMMANDS), "--show", "leaderboard") == []


BAD_FILES = {
    "nothing": (b"", 0),
    "blank lines": (b"\n  \n\r\n", 0),
    "no text": (b"\xfa\xfbxy\n\x00\n", 2),
    "no objects": (b'[]\n"x"\nnull\n1e999\n', 4),
    "brackets without end": (b"[" * 100_000 + b"\n", 1),
    "a line of 5 MiB": (b"x" * (5 << 20) + b"\n", 1),
    "an unknown command": (b'{"id": "w1", "type": "rewrite_history"}\n', 1),
    "an id that is taken": (said("q1-open", "annul_question", question="gdp-next-year", reason="x", **LATER), 1),
    "the same line thrice": (ANNUL * 3, 0),
    "one id, two contents": (ANNUL + ANNUL.replace(b"no source", b"another"), 1),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_of_a_file_that_is_no_good_each_line_is_told(log: str, name: str) -> None:
    """One line on stderr a refusal, the exit code of findings if there is one; nothing is written."""
    given, refused = BAD_FILES[name]
    before = sha256(Path(log).read_bytes()).digest()
    result = run("what-if", log, "-", "--show", "leaderboard", "--format", "json", given=given)
    told = result.stderr.splitlines()
    assert result.exit_code == (FINDINGS if refused else FINE)
    assert [line.startswith("line ") for line in told[:refused]] == [True] * refused
    assert told[refused].endswith(f", {refused} refused")
    assert bool(json.loads(result.stdout)) == (ANNUL in given)
    assert sha256(Path(log).read_bytes()).digest() == before


def test_what_sums_up_contests_is_shown_whole_under_other_rules(log: str) -> None:
    """There --contest says which contest has them, not which rows are shown: these are of no contest."""
    assert asked(log, "--rules", "baseline", "--contest", "plain", "--show", "brier_overall") == []
    spot = '{"name": "spot", "kernel": "ln", "cdf_kernel": "ln", "sampling": "spot"}'
    rows = asked(log, "--rules", spot, "--contest", "plain", "--show", "brier_overall")
    assert {row["participant"] for row in rows} <= {"A", "B", "C", "bot", "[consensus]"}
    assert rows


def test_a_branch_can_part_from_the_past(log: str) -> None:
    """Events after the cut are not on the branch, so their commands can be sent in another form."""
    answer = said("w2", "resolve_question", at="2021-07-26T00:00:00Z", question="olympics-2021", outcome="no")
    rows = asked(log, "-", "--show", "scores", "--as-of", "31", given=answer)
    assert {row["row"] for row in rows} == {"new"}
    assert "question_resolved" in run("what-if", log, "-", "--show", "scores", given=answer).stderr


def test_other_rules_give_what_a_contest_opened_with_them_has() -> None:
    """Every table, digest for digest, as if the rule set had been in the command that opened the contest."""

    def story(rules: str) -> Projections:
        moves = [forecast(participant=who, probability=chance) for who, chance in (("ada", "0.7"), ("bo", "0.2"))]
        return oracle.projected(opened(), contest(rules=rules, pool=10), entry(), *moves, resolution())

    for preset in ("peer-2024-03", "baseline", "brier-daily", "spot-peer"):
        asked_for, had = under_rules(story("relative-2022-04"), "cup", PRESETS[preset]), story(preset)
        for name in ("scores", "score_parts", "leaderboard", "prizes", "brier", "contests"):
            assert asked_for.table(name).digest() == had.table(name).digest(), (preset, name)


def test_a_sealed_contest_can_be_scored_by_other_rules(log: str) -> None:
    """Up to its seal, as its own rules do; the log's own table stays as it was."""
    assert run("append", log, str(SEALED)).exit_code == FINE
    rows = asked(log, "--rules", "peer-2024-03", "--contest", "plain", "--show", "leaderboard")
    assert {row["contest"] for row in rows} == {"plain"}
    assert {row["column"] for row in rows} >= {"score", "take", "prize"}


def test_commands_that_a_sealed_board_does_not_count_are_told(log: str) -> None:
    """An answer that is annulled after the seal changes the other contest alone; `diff` says so of the recorded one."""
    assert run("append", log, str(SEALED)).exit_code == FINE
    note = (
        "sealed boards do not count these events: plain; to see one as if it were not sealed: forecast-ledger what-if"
    )
    shown = ["what-if", log, "-", "--show"]
    assert f"{note} LOG COMMANDS --unsealed --contest plain" in run(*shown, "prizes", given=ANNUL).stderr.splitlines()
    for silent in (
        ["questions"],
        ["prizes", "--contest", "hidden-only"],
        ["prizes", "--unsealed", "--contest", "plain"],
    ):
        assert "sealed boards" not in run(*shown, *silent, given=ANNUL).stderr, silent
    runs = [
        run("append", log, "-", *options, given=ANNUL) for options in (["--dry-run"], [], [])
    ]  # the last one: again
    assert [f"{note} LOG --unsealed --contest plain" in told.stderr for told in runs] == [True, True, False]
    assert f"{note} LOG --unsealed --contest plain" in run("diff", log, "@35", "@36").stderr.splitlines()
    assert "sealed boards" not in run("diff", log, "@34", "@35").stderr
    assert "sealed boards" not in run("diff", log, "@35", "@36", "--table", "questions").stderr


def test_rules_can_be_said_as_json(log: str) -> None:
    """A whole rule set, of which what is left out has its default: here the preset, spelt out."""
    spelt = '{"name": "mine", "kernel": "ln", "cdf_kernel": "ln", "reference": "uniform", "scale": "baseline"}'
    shown = [asked(log, "--rules", rules, "--contest", "plain", "--show", "scores") for rules in (spelt, "baseline")]
    assert shown[0] == shown[1] != []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nothing", "unknown_rules"),
        ("{", "malformed"),
        ('{"name": "x", "kernel": "maybe"}', "malformed"),
        ('{"name": "x"}', "rules_not_consistent"),
        ("[" * 100_000, "unknown_rules"),
        ('{"name": ' + "[" * 100_000, "malformed"),
    ],
)
def test_rules_that_are_none_are_refused(text: str, code: str) -> None:
    """They are refused before anything is scored."""
    with pytest.raises(Refused) as refused:
        parse_rule_set(text)
    assert refused.value.code == code


def test_rules_that_cannot_score_a_question_of_the_contest_are_refused() -> None:
    """The message names the question; questions of other contests do not matter."""
    projections = oracle.projected(opened(), numeric("depth"), contest(), entry(), entry(question="depth"))
    with pytest.raises(Refused) as refused:
        under_rules(projections, "cup", PRESETS["brier-daily"])
    assert (refused.value.code, refused.value.value) == ("unscorable_question", "depth")


def test_other_trading_rules_are_refused() -> None:
    """The trades in the log were decided by the contest's own rules, and cannot be replayed by others."""
    projections = oracle.projected(*trading_floor())
    for preset in ("arena-v2", "baseline"):
        with pytest.raises(Refused, match="its trading rules differ"):
            under_rules(projections, "week", PRESETS[preset])
    assert under_rules(projections, "week", PRESETS["arena-v1"]).table("accounts").digest()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--show", "leaderboard"], "give a file of commands"),
        (["--rules", "baseline", "--show", "scores"], "--rules needs --contest"),
        (["-", "--show", "nothing"], "there are: contests"),
        (["-", "--show", "standing", "--contest", "plain"], "has no column contest"),
        (["-", "--show", "scores", "--contest", "nowhere"], "it has: hidden-only, plain"),
        (["--rules", "none", "--contest", "plain", "--show", "scores"], "unknown_rules"),
    ],
)
def test_wrong_questions_are_told(log: str, arguments: list[str], says: str) -> None:
    """Exit code 2, and what there is."""
    result = run("what-if", log, *arguments)
    assert (result.exit_code, says in result.stderr) == (USAGE, True), result.stderr


def test_a_log_that_is_not_there_has_no_branches(tmp_path: Path) -> None:
    """Exit code 3, and nothing is created."""
    assert run("what-if", str(tmp_path / "no.db"), "-", "--show", "scores").exit_code == UNREADABLE
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_says_what_an_append_then_does(tmp_path: Path) -> None:
    """Line by line: accepted, duplicate or refused, with the code; on a log that is there, or is not yet."""
    log = str(tmp_path / "log.db")
    again = COMMANDS.read_bytes() + b"not json\n" + COMMANDS.read_bytes().splitlines(keepends=True)[0]
    dry = run("append", log, "-", "--dry-run", "--format", "json", given=again)
    rows = json.loads(dry.stdout)
    assert [row["outcome"] for row in rows] == ["accepted"] * 34 + ["refused", "duplicate"]
    assert (rows[34]["line"], rows[34]["code"], dry.exit_code) == (35, "malformed", FINDINGS)
    assert dry.stderr.splitlines()[0].startswith("line 35: malformed")
    assert dry.stderr.splitlines()[1:3] == ["34 accepted, 1 duplicate, 1 refused", "nothing was written"]
    assert not Path(log).exists()
    counts = json.loads(run("append", log, "-", "--format", "json", given=again).stdout)[0]
    assert (counts["accepted"], counts["duplicate"], counts["refused"]) == (34, 1, 1)
    rows = json.loads(run("append", log, "-", "--dry-run", "--format", "json", given=again).stdout)
    assert [row["outcome"] for row in rows] == ["duplicate"] * 34 + ["refused", "duplicate"]


def test_a_dry_run_knows_what_an_atomic_file_would_do(log: str) -> None:
    """One refused line refuses all."""
    result = run("append", log, "-", "--dry-run", "--atomic", "--format", "json", given=ANNUL + b"null\n")
    assert [row["code"] for row in json.loads(result.stdout)] == ["batch_refused", "malformed"]
    assert result.exit_code == FINDINGS


def test_a_branch_decides_and_reads_as_a_ledger_does(tmp_path: Path) -> None:
    """Pages may span its start; events that others append to the log meanwhile are not on it."""
    path = str(tmp_path / "log.db")
    history = won(chances={"ada": "0.7", "bo": "0.2"})
    with Ledger.open(path, prizes=prizes_from_log) as real:
        for number, command in enumerate(history):
            real.handle(command, f"c{number}")
        with open_overlay(path, "main", prizes_from_log) as (branch, head):
            assert head == real.head()
            real.handle(opened("elsewhere"), "other")
            assert branch.handle(opened("here"), "own").first == head.position + 1
            assert branch.handle(opened("here"), "own").duplicate
            assert branch.handle(history[0], "c0").duplicate
            log_facts = facts(branch.read())
            assert [question.question for question in log_facts.questions] == ["rain", "here"]
            assert [each.position for page in branch.read(head.position - 1) for each in page] == [
                head.position,
                head.position + 1,
            ]
        assert [each.event.question for page in real.read(head.position) for each in page] == ["elsewhere"]  # type: ignore[union-attr]


def test_a_branch_reads_its_rows_in_pages_of_any_size(tmp_path: Path) -> None:
    """However the fork falls into them."""
    path = str(tmp_path / "log.db")
    written(path, [opened(f"q{number}", at=day(1)) for number in range(5)])
    with open_overlay(path, "main", prizes_from_log) as (branch, _):
        for number in range(5, 9):
            branch.handle(opened(f"q{number}", at=day(1)), f"c{number}")
        store = branch._store
        whole = store.read(0, 100)
        assert len(whole) == 9
        for size in range(1, 11):
            assert [row for page in store.pages(0, size) for row in page] == whole
            assert all(store.read(after, size) == whole[after : after + size] for after in range(10))


@pytest.mark.parametrize("command", ["append", "what-if"])
def test_the_example_in_the_help_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """The command runs as it is printed, in a folder with such files."""
    monkeypatch.chdir(tmp_path)
    Path("commands.jsonl").write_bytes(COMMANDS.read_bytes())
    Path("resolve.jsonl").write_bytes(ANNUL)
    assert run("append", "season.db", "commands.jsonl").exit_code == FINE
    example = (loaded()[command].epilog or "").partition("Example: forecast-ledger ")[2]
    result = run(*shlex.split(example))
    assert (result.exit_code, result.stdout != "") == (FINE, True), result.stderr


def test_a_rule_set_without_a_take_or_without_rows_says_so(log: str) -> None:
    """Under `baseline`, which has no take, nobody has a prize, and presets that have one are named."""
    asked = ("what-if", log, "--contest", "plain", "--rules")
    for table in ("prizes", "leaderboard"):
        said = run(*asked, "baseline", "--show", table).stderr
        assert "the rules baseline have no take, so nobody has a prize" in said
        assert "peer-2024-03" in said
    assert "no take" not in run(*asked, "baseline", "--show", "scores").stderr
    assert "no take" not in run(*asked, "peer-2024-03", "--show", "prizes").stderr
    assert "the table wis_parts has no rows" in run(*asked, "baseline", "--show", "wis_parts").stderr
