"""Who asked for a command, why, and its evidence: from the command to every place that keeps or prints it, and back."""

import json
from contextlib import closing
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given as any_of
from hypothesis import settings
from hypothesis import strategies as st
from msgspec import UNSET, structs

from forecast_ledger import export, restore
from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand, Evidence, ResolveQuestion, read_from
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.provenance import Provenance
from forecast_ledger.ledger.segments import segment_manifest
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.cli.main import main
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from forecast_ledger.replay.pages.working_paper import working_paper
from forecast_ledger.replay.reading.log import Log
from tests.support import given, oracle
from tests.support.effort import times
from tests.support.forging import audited, chained, written
from tests.support.given import NOW, day
from tests.support.logs import log_fixture, recorded, rows
from tests.support.logs import written as recorded_in
from tests.support.maps import read_rows
from tests.support.servers import PG_CTL, postgres

GAUGE = Evidence(url="https://example.org/gauge", sha256="AB" * 32)
SAID: dict[str, Any] = {"by": "Ada Ødegård", "reason": 'read "twice"\nat noon', "evidence": GAUGE}
IDS: dict[str, Any] = {"correlation": "request 7", "causation": "message 6"}
SAYS = Provenance(
    by="Ada Ødegård",
    reason='read "twice"\nat noon',
    evidence=(Evidence(url="https://example.org/gauge", sha256="ab" * 32),),
    correlation="request 7",
    causation="message 6",
)
RESOLVED = given.resolution(id="answer", **SAID, **IDS)
MADE = (given.forecast(at=day(11)), given.forecast(at=day(12)))
COMMANDS: list[AnyCommand] = [
    given.contest(id="cup", by="org"),
    given.opened(id="open", by="org", reason="asked by a reader"),
    given.entry(id="add"),
    given.forecast(id="said", by="ada"),
    given.forecast(id="unsaid", participant="bob"),
    given.forecast(id="sent", participant="eve", correlation="r1"),
    RESOLVED,
    structs.replace(given.revocation(reason="too early"), id="revoke", by="org"),
    given.resolution(id="again", outcome="no", at=day(27), by="org"),
]


def run(*words: object) -> Any:
    """The result of a command line, which must not fail with a traceback."""
    result = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


season = log_fixture(COMMANDS, "module")


def test_a_row_has_what_its_command_said_and_no_other_row_differs() -> None:
    """A row without it has the bytes that it had before there was such a thing."""
    own = recorded(COMMANDS)
    by_id = {row.command_id: row for row in own}
    assert by_id["answer"].provenance == SAYS
    assert by_id["unsaid"].provenance is UNSET
    assert by_id["revoke"].provenance == Provenance(by="org")
    text = log.seal(by_id["answer"])[0].decode()
    assert ',"normal":true,"provenance":{"by":"Ada Ødegård","reason":"read \\"twice\\"\\nat noon","evidence":[' in text
    assert text.index('"provenance"') < text.index('"command_id"')
    assert b"provenance" not in log.seal(by_id["unsaid"])[0]


def test_every_row_of_a_command_has_it() -> None:
    """Also those of prizes, settlements and restated forecasts: whoever reads one event knows whose it is."""
    restated = structs.replace(given.restatement(*MADE), id="restate", by="importer", correlation="r2")
    own = recorded([given.opened(), given.forecast(), restated])
    assert len(own) > 3
    assert {row.provenance for row in own if row.command_id == "restate"} == {
        Provenance(by="importer", correlation="r2")
    }


CHANGED: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"correlation": "request 8", "causation": None}, True),
    ({"evidence": (GAUGE,)}, True),
    ({"evidence": [structs.replace(GAUGE, sha256="ab" * 32)]}, True),
    ({"by": "bo"}, False),
    ({"by": None}, False),
    ({"reason": "read once"}, False),
    ({"evidence": None}, False),
    ({"evidence": (GAUGE, GAUGE)}, False),
]


@pytest.mark.parametrize(("change", "same"), CHANGED)
@pytest.mark.parametrize("base", [RESOLVED, given.forecast(id="f", **SAID)], ids=["answer", "forecast"])
def test_a_retry_may_have_other_ids_and_no_other_content(base: AnyCommand, change: dict[str, Any], same: bool) -> None:
    """The row keeps the ids of the command that was recorded."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(given.opened(id="open"))
        first = ledger.handle(base)
        again = structs.replace(base, **change)
        [one] = ledger.handle_many([again])
        if same:
            assert one == structs.replace(first, duplicate=True)
        else:
            assert isinstance(one, Refused)
            assert one.code == "command_id_reused"
        assert ledger.head().position == first.last


def test_a_participant_does_not_say_who_sends_its_forecast() -> None:
    """The caller knows it; a reason and evidence are the participant's own."""
    fields = {"type": "submit_forecast", "question": "rain", "probability": 0.5}
    for field in ("by", "correlation", "causation"):
        with pytest.raises(Refused, match=field):
            read_from("ada", json.dumps(fields | {field: "root"}))
    assert read_from("ada", json.dumps(fields | {"reason": "clouds"})).reason == "clouds"


FORGED: list[tuple[str, Any]] = [
    ("by", "bo"),
    ("reason", "read once"),
    ("reason", ""),
    ("evidence", ()),
    ("evidence", (Evidence(url="https://example.org/other", sha256="ab" * 32),)),
    ("evidence", (Evidence(url="https://example.org/gauge", sha256="AB" * 32),)),
    ("by", "a\u202eb"),
    ("correlation", "a\nb"),
]


@pytest.mark.parametrize(("field", "value"), FORGED)
def test_a_log_that_says_something_else_is_not_one_that_was_decided(field: str, value: Any) -> None:
    """Even if every digest of a row is made again: the digest of the command is of what it said."""
    own = recorded(COMMANDS)
    audited(own)
    forged = [
        structs.replace(row, provenance=structs.replace(SAYS, **{field: value})) if row.command_id == "answer" else row
        for row in own
    ]
    with pytest.raises(Corrupt) as caught:
        audited(chained(forged))
    assert caught.value.position == next(row.position for row in own if row.command_id == "answer")


@pytest.mark.parametrize(
    ("command_id", "said"),
    [
        ("unsaid", Provenance(by="ada")),
        ("unsaid", Provenance()),
        ("said", Provenance()),
        ("said", UNSET),
        ("revoke", Provenance(by="org", reason="too early")),
        ("sent", Provenance(correlation="")),
    ],
)
def test_what_no_command_says_is_found(command_id: str, said: Any, tmp_path: Path) -> None:
    """Also a name for one that gave none, something empty, and a second reason beside that of the event."""
    own = recorded(COMMANDS)
    forged = [structs.replace(row, provenance=said) if row.command_id == command_id else row for row in own]
    with pytest.raises(Corrupt):
        audited(chained(forged))
    assert run_checks(Log(written(tmp_path / "forged.db", forged))).damage


def test_rows_of_one_command_say_the_same() -> None:
    """Otherwise it is not known who asked for it."""
    own = recorded(
        [given.opened(), given.forecast(), structs.replace(given.restatement(*MADE), id="restate", by="importer")]
    )
    forged = [*own[:-1], structs.replace(own[-1], provenance=Provenance(by="ada"))]
    with pytest.raises(Corrupt, match="provenance"):
        audited(chained(forged))


def test_a_changed_reason_is_found_by_verify(season: str, tmp_path: Path) -> None:
    """Without new digests, by those of the rows."""
    forged = [row.replace(b"at noon", b"at nine") for row in rows(season)]
    with closing(StoredLog.open(str(tmp_path / "copy.db"), "main")) as store:
        store.append(
            [(place, TAGS[type(log.decode_row(row, place).event)], row) for place, row in enumerate(forged, 1)]
        )
    [damage, *_] = run_checks(Log(tmp_path / "copy.db")).damage
    assert (damage.position, damage.check) == (7, "digests")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow", "sqlite"])
def test_an_export_has_it_and_gives_it_back(season: str, form: str, tmp_path: Path) -> None:
    """Every row comes back byte for byte, and its command is decided again."""
    export(season, tmp_path / "out", form)
    restore(tmp_path / "out", tmp_path / "copy.db")
    assert rows(str(tmp_path / "copy.db")) == rows(season)


def test_segments_have_a_column_of_it_and_give_it_back(season: str, tmp_path: Path) -> None:
    """The rows are rebuilt byte for byte; a program of an earlier version is told that it is too old."""
    with closing(StoredLog.open(season, "main")) as store:
        manifest = seal(store.pages, "main", tmp_path / "sealed")
    assert [segment.version for segment in manifest.segments] == [4]
    assert rows(str(tmp_path / "sealed")) == rows(season)
    restore(tmp_path / "sealed", tmp_path / "copy.db")
    assert rows(str(tmp_path / "copy.db")) == rows(season)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(segment_manifest, "VERSION", 3)
        with pytest.raises(Unavailable, match="segments of version 4 need a newer program"):
            segment_manifest.read_manifest(tmp_path / "sealed")


def test_segments_of_a_log_without_it_are_as_before(tmp_path: Path) -> None:
    """They have no such column, and the version that earlier programs read."""
    plain = recorded_in(tmp_path / "plain.db", [given.opened(), given.forecast(), given.resolution()])
    with closing(StoredLog.open(plain, "main")) as store:
        [segment] = seal(store.pages, "main", tmp_path / "sealed").segments
    assert segment.version == 3
    for file in segment.files:
        assert b"provenance" not in (tmp_path / "sealed" / file.name).read_bytes()


@any_of(oracle.logs(), st.integers(1, 5))
@settings(max_examples=times(40), deadline=None)
def test_any_log_is_decided_again_and_sealed(commands: list[AnyCommand], size: int) -> None:
    """Whatever commands say about where they come from."""
    own = recorded(commands, refused=True)
    audited(own, page=size)
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "log.db", own)
        with closing(StoredLog.open(path, "main")) as store:
            seal(store.pages, "main", Path(folder) / "sealed", size=len(own) // 2 + 1)
        assert rows(f"{folder}/sealed") == rows(path)


@pytest.mark.skipif(not PG_CTL, reason="there is no PostgreSQL here")
def test_postgresql_keeps_it(season: str) -> None:
    """Row for row, with the same digests."""
    with postgres() as url:
        assert rows(recorded_in(url, COMMANDS)) == rows(season)


# --- what is printed


def test_log_says_who_asked_and_why(season: str) -> None:
    """In the sentence, and in columns of JSON and CSV; a reason of the event is in the same column."""
    text = run("log", season).stdout
    assert "rain: yes, known at" in text
    assert '; by Ada Ødegård; because \'read "twice"' in text
    assert "; evidence https://example.org/gauge" in text
    listed = json.loads(run("log", season, "--format", "json").stdout)
    by_type = {row["type"]: row for row in listed[:8]}
    answer = by_type["question_resolved.v1"]
    assert [answer[name] for name in ("by", "reason", "evidence")] == [
        SAYS.by,
        SAYS.reason,
        "https://example.org/gauge",
    ]
    assert by_type["resolution_revoked.v1"]["reason"] == "too early"
    mine = json.loads(run("log", season, "--by", "org", "--format", "json").stdout)
    assert [row["type"].partition(".")[0] for row in mine] == [
        "contest_opened", "question_opened", "resolution_revoked", "question_resolved",
    ]  # fmt: skip


def test_show_prints_every_field_of_it(season: str) -> None:
    """Under its name in the row; a row that says nothing has no such field."""
    shown = {row["field"]: row["value"] for row in json.loads(run("show", season, 7, "--format", "json").stdout)}
    assert shown["provenance.by"] == SAYS.by
    assert shown["provenance.correlation"] == "request 7"
    assert json.loads(shown["provenance.evidence"]) == [{"url": "https://example.org/gauge", "sha256": "ab" * 32}]
    unsaid = {row["field"] for row in json.loads(run("show", season, 5, "--format", "json").stdout)}
    assert not any(field.startswith("provenance") for field in unsaid)


@pytest.mark.parametrize("sealed", [False, True])
def test_blame_and_explain_say_it_also_of_segments(season: str, sealed: bool, tmp_path: Path) -> None:
    """The change of the answer is by whoever recorded it."""
    folder = None
    if sealed:
        folder = tmp_path / "sealed"
        with closing(StoredLog.open(season, "main")) as store:
            seal(store.pages, "main", folder)
    where = ["--segments", folder] if sealed else []
    blamed = run("blame", season, "questions", "rain", "--column", "outcome", "--format", "json", *where)
    [column] = json.loads(blamed.stdout)
    assert [column[name] for name in ("log_position", "new", "by", "reason")] == [9, "no", "org", ""]
    explained = run("explain", season, "score", "cup", "rain", "ada", "--format", "json", *where)
    told = {row["log_position"]: row["says"] for row in json.loads(explained.stdout)["events"]}
    assert told[4].endswith("; by ada")
    assert told[9].endswith("; by org")


def test_a_working_paper_lists_who_decided_and_answers_without_evidence(season: str) -> None:
    """The answer in force has no evidence; the one that had some is revoked."""
    paper = working_paper(Log(season), "paper.md").paper
    [section] = [each for each in paper.sections if each.title == "Who decided, and on what evidence"]
    assert section.words == [
        "Entries that do not say who asked for them: 3 of 9.",
        "Answers in force without evidence: 1 of 1.",
    ]
    [who] = section.sheets
    assert who.rows == [
        [SAYS.by, "1", "1 question_resolved"],
        ["ada", "1", "1 forecast_made"],
        ["org", "4", "1 contest_opened, 1 question_opened, 1 question_resolved, 1 resolution_revoked"],
    ]


def test_a_working_paper_names_the_answers_without_evidence(tmp_path: Path) -> None:
    """If any has some; otherwise all would be listed, in every log from before."""
    others: list[AnyCommand] = [
        given.opened(question="snow"),
        given.resolution(question="snow", by="org", reason="seen"),
    ]
    log_ = recorded_in(tmp_path / "season.db", [given.opened(), RESOLVED, *others])
    paper = working_paper(Log(log_), "paper.md").paper
    [section] = [each for each in paper.sections if each.title == "Who decided, and on what evidence"]
    assert section.words[-1] == "Answers in force without evidence: 1 of 2."
    assert section.sheets[-1].rows == [["4", "snow", "yes (#4)", "org", "seen"]]


def test_a_command_without_it_is_printed_without_it() -> None:
    """Fields that are not given are left out of its text, and of its JSON."""
    command = ResolveQuestion(question="rain", outcome="yes")
    assert repr(command) == "ResolveQuestion(question='rain', outcome='yes')"
    assert msgspec.json.encode(command) == b'{"type":"resolve_question","question":"rain","outcome":"yes"}'


MAP = b"""
[[command]]
type = "resolve_question"
id = "{id}"
[command.fields]
question = "{q}"
outcome = "{answer}"
at = "2026-03-25T00:00:00Z"
by = "{who}"
reason = "{why}"
evidence = { url = "{link}", text = "{quote}" }
"""
TABLE = b'id,q,answer,who,why,link,quote\n1,rain,yes,ada,"seen, at noon",https://example.org/g,6.2 mm\n2,snow,no,,,,\n'


def test_a_map_reads_it_from_columns() -> None:
    """Empty cells say nothing; an address of another kind refuses its row alone."""
    mapping, table = parse_map(MAP), TABLE + b"3,wind,no,bo,,ftp://example.org,\n"
    found = [command for _, command in read_rows(mapping, BytesIO(table)).commands]
    own = [given.opened(question=question) for question in ("rain", "snow", "wind")]
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle_many([structs.replace(each, id=f"o{place}") for place, each in enumerate(own)])
        *accepted, refused = ledger.handle_many([each for each in found if not isinstance(each, Refused)])
        rows_ = [row.provenance for page in ledger.read(3) for row in page]
    evidence = (Evidence(url="https://example.org/g", text="6.2 mm"),)
    assert rows_ == [Provenance(by="ada", reason="seen, at noon", evidence=evidence), UNSET]
    assert len(accepted) == 2
    assert isinstance(refused, Refused)
    assert (refused.code, refused.field) == ("malformed", "evidence.url")
