"""The reference: its pages are what the code prints, its examples run, and every name is explained."""

import re
from typing import get_args

import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.auditing.rebuild import LOST_DETAILS
from forecast_ledger.ledger.core.errors import KEYS, REFUSALS, Refused
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.rules import PRESET_SOURCES, PRESETS
from forecast_ledger.ledger.model.trading_rules import LEG_CODES, REPLY_FAULTS
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.boards.leaderboard import TAKES, TOTALS
from forecast_ledger.projections.core.columns import KINDS
from forecast_ledger.projections.scores.community import AGGREGATIONS
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.reference_terms import FORECASTERS
from forecast_ledger.projections.scores.sampling import SAMPLINGS
from forecast_ledger.projections.scores.score_terms import REFERENCES
from forecast_ledger.projections.scores.scored_questions import SCALES
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.audit.verify import CHECKS
from forecast_ledger.replay.cli import main
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.reading.blocks import Entry, Table
from forecast_ledger.replay.reference import fields, topics
from forecast_ledger.replay.reference.exit_codes import EXITS
from forecast_ledger.replay.reference.rule_fields import RULES, VALUES
from forecast_ledger.replay.reference.sources import SOURCES
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.pages import FOLDER, written
from tests.support.paths import ROOT
from tests.support.paths import SOURCES as SOURCE_FILES

PAGES = ["README.md", *(f"{topic}.md" for topic in topics.TOPICS)]
WIDTH = 80  # of a terminal that says nothing of itself


def helped(*arguments: str) -> str:
    """Return what `help` prints."""
    result = CliRunner().invoke(main.main, ["help", *arguments])
    assert result.exit_code == FINE, result.output
    return result.stdout


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_what_the_code_prints(name: str) -> None:
    """If this fails, the tables of the code have changed: renew the pages with `python -m tests.pages`."""
    there = (FOLDER / name).read_text(encoding="utf-8") if (FOLDER / name).is_file() else ""
    assert there == written()[name], "renew the pages: python -m tests.pages"


def test_there_are_no_other_pages() -> None:
    """A page whose topic is gone goes too."""
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(PAGES) == sorted(written())


@pytest.mark.parametrize("topic", topics.TOPICS)
def test_help_prints_each_topic(topic: str) -> None:
    """The text fits the terminal, except examples and long names; --markdown prints the page itself."""
    shown = helped(topic)
    assert topics.TOPICS[topic][0] in shown
    assert [line for line in shown.splitlines() if len(line) > WIDTH and not line.startswith(("{", "  `"))] == []
    assert helped(topic, "--markdown") == written()[f"{topic}.md"]


def test_help_alone_lists_the_topics() -> None:
    """Each with what it is about; as Markdown, the page that links to the others."""
    shown = helped()
    assert all(topic in shown for topic in topics.TOPICS)
    assert helped("--markdown") == written()["README.md"]


NAMES = [
    *(str(kind.__struct_config__.tag) for kind in get_args(commands.AnyCommand)),
    *events.TAGS.values(),
    *REFUSALS,
    *KEYS,
    *RULES,
    *{value.partition(".")[2]: None for value in VALUES},
    *PRESETS,
    *REPLY_FAULTS,
    *LEG_CODES,
    *CATALOGUE,
    *KINDS,
    *CHECKS,
    *LOST_DETAILS,
    *map(str, EXITS),
    "Range",
    "Attestation",
    "checkpoint",
]


def test_help_explains_every_name() -> None:
    """Each command, event, refusal, rule, value, preset, table, check and exit code by itself."""
    for name in NAMES:
        assert name in helped(name), name


def test_help_of_one_name_is_its_entry_alone() -> None:
    """The entry has the problem and the remedy, and no other codes."""
    shown = helped("id_empty")
    assert all(said in " ".join(shown.split()) for said in REFUSALS["id_empty"])
    assert "id_too_long" not in shown


@pytest.mark.parametrize(
    ("name", "nearest"), [("subimt_forecast", "submit_forecast"), ("leaderbord", "leaderboard"), ("evnts", "events")]
)
def test_an_unknown_name_is_wrong_usage(name: str, nearest: str) -> None:
    """The nearest name that there is, is named."""
    result = CliRunner().invoke(main.main, ["help", name])
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert f"the nearest is {nearest};" in result.stderr
    hostile = CliRunner().invoke(main.main, ["help", "\x1b[2J" * 1_000, "--markdown"])
    assert hostile.exit_code == USAGE
    assert "\x1b" not in hostile.stderr


def test_the_examples_are_accepted_all() -> None:
    """Every kind of command, on one empty ledger, one after the other."""
    read = [commands.read(line) for line in fields.LINES]
    with Ledger.open(":memory:", prizes=prizes_from_log) as ledger:
        outcomes = ledger.handle_many(read)
    assert [outcome for outcome in outcomes if isinstance(outcome, Refused)] == []
    shown = {type(command) for command in read}
    assert shown == set(get_args(commands.AnyCommand)), (
        "_TEXT in replay/reference/fields.py needs a line for each command"
    )


def test_a_table_of_a_page_has_as_many_cells_in_each_row() -> None:
    """No cell has a line break or an unescaped bar."""
    for topic in topics.TOPICS:
        for block in topics.page(topic).blocks:
            for table in [block, *(block.blocks if isinstance(block, Entry) else ())]:
                if isinstance(table, Table):
                    assert {len(row) for row in table.rows} == {len(table.columns)}
                    assert not any("\n" in cell for row in table.rows for cell in row)


def test_every_source_that_the_code_cites_is_listed() -> None:
    """A source is cited by its listed name; documents outside the project and the public are never cited."""
    code = {str(path): path.read_text(encoding="utf-8") for path in SOURCE_FILES}
    prose = [path.read_text(encoding="utf-8") for path in (ROOT / "data").glob("**/README.md")]
    for text in (*code.values(), *prose):
        assert re.search(r"\b[Ss]eed 00\d|00\d_[0-9a-f]{8}|reference/[a-z]+\.md", text) is None
    cited = [
        (name, " ".join(said.split()))
        for name, text in code.items()
        for said in re.split("Source: +(?=[A-Z])", text)[1:]
    ]
    for table in (KERNELS, TOTALS, TAKES, SAMPLINGS, SCALES, REFERENCES, AGGREGATIONS, FORECASTERS):
        cited += [(name, row.source) for name, row in table.items() if name not in {"none", "plain"}]
    cited += PRESET_SOURCES.items()
    assert len(cited) > 50
    assert [each for each in cited if not any(source.short in each[1][:300] for source in SOURCES)] == []


def test_no_text_of_the_program_names_a_page_that_an_installation_does_not_have() -> None:
    """An installation has no folder docs, so that a message or a help names a command instead."""
    page = re.compile(r"(?<![\w/])docs/[a-z][\w-]*(?:/[a-z][\w-]*)*(?:\.md)?")  # those of other projects have capitals
    named = {f"{path.name}: {found}" for path in SOURCE_FILES for found in page.findall(path.read_text("utf-8"))}
    assert named == set()
