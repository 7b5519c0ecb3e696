"""Wide tables: a command of each cell of the columns that a map chooses by name."""

import io
import random
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import OpenQuestion, SubmitForecast
from forecast_ledger.replay.cli.main import FINDINGS, FINE
from forecast_ledger.replay.mapping.csv_mapping import MappedCommands, parse_map
from tests.replay.cli.test_main import run
from tests.support.late import pandas
from tests.support.maps import read_rows

STRINGS = arrow_csv.ConvertOptions(
    column_types={name: pyarrow.string() for name in ("Timestamp", "Q01 - Rain?", "Q02 - Snow?")}
)
FORM = """Timestamp,Email,Q01 - Rain?,Q02 - Snow?,Team
2026-03-01T00:00:00Z,ada,60%,35,north
2026-03-02T00:00:00Z,bo,,20%,south
"""
MAP = r"""
[[command]]
type = "submit_forecast"
id = "{Email} {#1}"
columns = { matches = '(Q\d\d) - (.*)' }
[command.fields]
at = "{Timestamp}"
question = "{#1}"
participant = "{Email}"
probability = { from = "{#cell}", percent = true }
"""
OPENING = r"""
[[command]]
type = "open_question"
id = "open {#1}"
columns = { matches = '(Q\d\d) - (.*)' }
where = { "#" = "1" }
[command.fields]
at = "2026-02-01T00:00:00Z"
question = "{#1}"
kind = "binary"
title = "{#2}"
opens_at = "2026-02-01T00:00:00Z"
closes_at = "2026-04-01T00:00:00Z"
"""


def mapped(map_: str, table: str, **options: Any) -> MappedCommands:
    """The commands of a table."""
    return read_rows(parse_map(map_.encode()), io.BytesIO(table.encode()), **options)


def forecasts(map_: str, table: str) -> list[tuple[str, str, Any]]:
    """Question, participant and probability of each forecast."""
    made = [command for _, command in mapped(map_, table).commands]
    return [
        (command.question, command.participant, str(command.probability))
        for command in made
        if isinstance(command, SubmitForecast)
    ]


def refusals(map_: str, table: str, **options: Any) -> list[str]:
    """Each refusal with its place."""
    return [
        place.describe(command)
        for place, command in mapped(map_, table, **options).commands
        if isinstance(command, Refused)
    ]


def test_each_cell_of_the_columns_that_match_is_a_command() -> None:
    """A season of questions in one sheet is one command table; an empty cell is no forecast."""
    assert forecasts(MAP, FORM) == [("Q01", "ada", "60e-2"), ("Q02", "ada", "35e-2"), ("Q02", "bo", "20e-2")]


def test_the_pattern_matches_the_whole_name() -> None:
    """A column whose name only begins like the pattern is not chosen; a line break in a name counts as a space."""
    table = 'Timestamp,Email,"Q01 - Rain\n in May?",xQ02 - Snow?\n2026-03-01T00:00:00Z,ada,60,35\n'
    found = [command for _, command in mapped(OPENING, table).commands]
    assert [(each.question, each.title) for each in found if isinstance(each, OpenQuestion)] == [
        ("Q01", "Rain in May?")
    ]


def test_questions_are_opened_from_the_header() -> None:
    """A command that does not use the cell is made for an empty one too: of the first row, each question once."""
    table = FORM.replace("60%", "")
    found = [command for _, command in mapped(OPENING, table).commands]
    assert [(each.question, each.title) for each in found if isinstance(each, OpenQuestion)] == [
        ("Q01", "Rain?"),
        ("Q02", "Snow?"),
    ]


def test_a_column_can_be_a_forecaster() -> None:
    """A sheet with a row for each question and a column for each forecaster: all columns but those named."""
    table = "Question,Closes,ada,bo c\nrain,2026-04-01,0.6,\nsnow,2026-04-01,,0.2\n"
    map_ = """
[[command]]
type = "submit_forecast"
id = "{#column} {Question}"
columns = { not = ["Question", "Closes"] }
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "{Question}"
participant = "{#column}"
probability = "{#cell}"
"""
    assert forecasts(map_, table) == [("rain", "ada", "0.6"), ("snow", "bo c", "0.2")]
    assert forecasts(map_.replace('{ not = ["Question", "Closes"] }', '["bo c"]'), table) == [("snow", "bo c", "0.2")]


def test_where_can_be_about_the_cell_and_its_column() -> None:
    """`#cell`, `#column` and `#1` are names of columns for `where`; a condition on the cell decides on empty cells."""
    words = MAP.replace("columns =", "where = { '#cell' = { matches = '[0-9]+%?' }, '#1' = 'Q02' }\ncolumns =")
    assert forecasts(words, FORM) == [("Q02", "ada", "35e-2"), ("Q02", "bo", "20e-2")]
    empty = MAP.replace("columns =", "where = { '#cell' = { empty = true } }\ncolumns =").replace(
        'probability = { from = "{#cell}", percent = true }', 'probability = "0.5"'
    )
    assert forecasts(empty, FORM) == [("Q01", "bo", "0.5")]


def test_columns_of_one_command_are_put_together_by_group() -> None:
    """A share in each column: the columns of one question are one forecast, by the names in brackets."""
    table = "Email,Q3 [red],Q3 [blue],Q4 [red],Q4 [blue]\nada,0.3,0.7,0.5,0.5\nbo,0.1,0.9,,\n"
    map_ = r"""
[[command]]
type = "submit_forecast"
id = "{Email} {#1}"
columns = { matches = '(Q\d) \[(.*)\]' }
group = ["Email", "#1"]
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "{#1}"
participant = "{Email}"
probabilities = { level = "{#2}", value = "{#cell}", levels = ["red", "blue"] }
"""
    found = list(mapped(map_, table, keep=True).commands)
    assert [
        (
            command.question,
            command.participant,
            {name: str(each) for name, each in (command.probabilities or {}).items()},
        )
        for _, command in found
        if isinstance(command, SubmitForecast)
    ] == [
        ("Q3", "ada", {"red": "0.3", "blue": "0.7"}),
        ("Q4", "ada", {"red": "0.5", "blue": "0.5"}),
        ("Q3", "bo", {"red": "0.1", "blue": "0.9"}),
    ]
    assert [place.records for place, _ in found][2] == [(3, b"bo,0.1,0.9,,\n")]
    twice = table.replace("[blue]", "[ red ]", 1)
    other = map_.replace(r"\[(.*)\]", r"\[ ?(red|blue) ?\]")
    assert refusals(other, twice)[0].startswith(
        "line 2, submit_forecast, column 'Q3 [red]': bad_csv: probabilities: "
        "line 2 in 'Q3 [red]' and line 2 in 'Q3 [ red ]' both have the level red"
    )
    written = map_.replace('value = "{#cell}"', 'value = { from = "{#cell}", number = "1234.5" }')
    assert "column 'Q4 [red]': bad_number" in refusals(written, table.replace("0.5,0.5", "x,0.5"))[0]
    assert "line 2 in 'Q4 [blue]': not a number" in refusals(written, table.replace("0.5,0.5", "0.5,x"))[0]


def test_a_refusal_names_the_column_of_the_cell() -> None:
    """What is wrong with a cell is said with its line and the name of its column."""
    assert refusals(MAP, FORM.replace("35", "often"))[0].startswith(
        "line 2, submit_forecast, column 'Q02 - Snow?': bad_number: probability = 'often'"
    )


def test_cells_of_which_no_command_is_made_are_counted_or_refused() -> None:
    """A cell with a text that no condition takes is not lost in silence; an empty cell is no loss."""
    words = MAP.replace("columns =", "where = { '#cell' = { matches = '[0-9]+%?' } }\ncolumns =")
    table = FORM.replace("35", "often")
    found = mapped(words, table)
    assert len(list(found.commands)) == 2
    assert found.left_out.words("line") == (
        "the map makes no command of 1 cell, which fails `where`, `present` or `above` of every command: "
        "line 2 in 'Q02 - Snow?'"
    )
    [refused] = refusals(words, table, strict=True)
    assert refused.startswith("line 2, column 'Q02 - Snow?': no_command: #cell = 'often'")
    taken = words + words.replace("[0-9]+%?", "often").replace("percent = true", "map = { often = 0.9 }")
    assert forecasts(taken, table)[1] == ("Q02", "ada", "0.9")
    assert refusals(taken, table, strict=True) == []


def test_a_cell_that_is_refused_is_not_counted_too() -> None:
    """A cell that is too long for the pattern of `where` is refused, with the name of its column."""
    words = MAP.replace("columns =", "where = { '#cell' = { matches = '[0-9]+%?' } }\ncolumns =")
    found = mapped(words, FORM.replace("35", "3" * 1001))
    [said] = [place.describe(made) for place, made in found.commands if isinstance(made, Refused)]
    assert said.startswith("line 2, submit_forecast, column 'Q02 - Snow?': bad_csv: #cell = '333")
    assert found.left_out.words("line") == ""


def test_a_command_that_does_not_use_the_cell_leaves_none_out() -> None:
    """Questions opened from the header say nothing of the cells below it: the others are not lost by this command."""
    other = """
[[command]]
type = "withdraw_forecast"
id = "{Email}"
[command.fields]
at = "{Timestamp}"
question = "Q01"
participant = "{Email}"
"""
    found = mapped(OPENING + other, FORM)
    assert len(list(found.commands)) == 4
    assert found.left_out.words("line") == ""


def test_a_group_of_the_pattern_may_be_empty() -> None:
    """What a group did not match is an empty cell; spaces around what it took are dropped, as those of a cell are."""
    optional = MAP.replace(r"(Q\d\d) - (.*)", r"(Q\d\d)( \(late\))? - .*").replace(
        'probability = { from = "{#cell}", percent = true }',
        'probability = "0.5"\nattestation = { note = "{#2}", restricted_sources = false }',
    )
    found = [made for _, made in mapped(optional, FORM.replace("Q02", "Q02 (late)")).commands]
    assert [made.attestation and made.attestation.note for made in found if isinstance(made, SubmitForecast)] == [
        None,
        "(late)",
        None,
        "(late)",
    ]


@pytest.mark.parametrize(
    ("change", "table", "said"),
    [
        (
            ("(Q", "(R"),
            FORM,
            "no column is as `columns` in the map asks; the columns are: Timestamp, Email, 'Q01 - Rain?', 'Q02",
        ),
        (("{Email} {#1}", "{Email}"), FORM, "all columns of a row would have one id"),
        (('question = "{#1}"', 'question = "{#3}"'), FORM, "the command uses {#3}, and `matches` has 2 groups"),
        (("{ matches = '(Q\\d\\d) - (.*)' }", "[]"), FORM, "uses {#1}, and `matches` has 0 groups"),
        (("", ""), FORM.replace("Team", "#cell"), "the header has a column '#cell'"),
        (("", ""), FORM.replace("Q02 - Snow?", "Q01 - Rain?"), "the column appears twice"),
        ((r"columns = { matches = '(Q\d\d) - (.*)' }", ""), FORM, "only a command that has `columns`"),
        ((r"(Q\d\d) - (.*)", ".*.*.*Q"), FORM, "ways to try it on a cell"),
        (("", ""), FORM.replace("Snow?", "Snow?" * 300), "a pattern reads cells of up to 1,000"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(change: tuple[str, str], table: str, said: str) -> None:
    """No column matches, ids that would be one, groups that the pattern lacks, names that mean two things."""
    with pytest.raises(Refused) as refused:
        list(mapped(MAP.replace(*change), table).commands)
    assert said in str(refused.value)


def test_columns_without_a_name_are_told_from_others() -> None:
    """Spreadsheets save empty columns at the end: they are left out by `empty`, and refused with this remedy."""
    table = "Question,ada,,\nrain,0.6,,\n"
    map_ = MAP.replace(r"{ matches = '(Q\d\d) - (.*)' }", '{ not = "Question" }').replace("{Email}", "{Question}")
    map_ = map_.replace("{#1}", "{#column}").replace("{Timestamp}", "2026-03-01T00:00:00Z")
    with pytest.raises(Refused, match="leave such columns out by `empty = false` in `columns`"):
        forecasts(map_, table)
    assert forecasts(map_.replace('{ not = "Question" }', '{ not = "Question", empty = false }'), table) == [
        ("ada", "rain", "0.6e-2")
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_wide_table_is_a_long_one(seed: int) -> None:
    """The forecasts of a random wide table are those of the long table that pandas makes of it."""
    rng = random.Random(seed)
    names = [f"Q{n} - {rng.choice(['Rain?', 'Snow, or rain?', 'a [b]'])}" for n in range(rng.randint(1, 6))]
    wide = pandas.DataFrame(
        [
            {"who": f"p{n}", **{name: rng.choice(["", "10", "55%", "7"]) for name in names}, "other": "x"}
            for n in range(rng.randint(1, 8))
        ]
    )
    long = wide.melt(["who"], names, "column", "p")
    long = long[long["p"] != ""]
    expected = {(each.column.split(" ")[0], each.who, each.p.rstrip("%") + "e-2") for each in long.itertuples()}
    map_ = MAP.replace(r"(Q\d\d)", r"(Q\d)").replace("{Email}", "{who}").replace("{Timestamp}", "2026-03-01T00:00:00Z")
    found = forecasts(map_, wide[rng.sample(list(wide), len(list(wide)))].to_csv(index=False))
    assert (len(found), {*found}) == (len(long), expected)


def test_a_wide_table_in_parquet_goes_in(tmp_path: Path) -> None:
    """The chosen columns of Parquet are read, too, though the map does not name them."""
    parquet.write_table(arrow_csv.read_csv(io.BytesIO(FORM.encode()), convert_options=STRINGS), tmp_path / "f.parquet")
    (tmp_path / "form.toml").write_text(OPENING + MAP)
    sent = run("append", str(tmp_path / "a.db"), "--map", str(tmp_path / "form.toml"), str(tmp_path / "f.parquet"))
    assert (sent.exit_code, sent.stdout.split()[5:8]) == (FINE, ["5", "0", "0"]), sent.stderr


def test_a_wide_command_of_no_cell_is_not_read_by_blocks(tmp_path: Path) -> None:
    """A forecast of each column that is the same in all rows: one for each, however the file is read."""
    same = MAP.replace('{ from = "{#cell}", percent = true }', '"0.5"')
    for name, map_ in (("open", OPENING), ("same", same)):
        (tmp_path / "form.csv").write_text(FORM)
        (tmp_path / f"{name}.toml").write_text(map_)
        sent = run(
            "append", str(tmp_path / "a.db"), "--map", str(tmp_path / f"{name}.toml"), str(tmp_path / "form.csv")
        )
        assert sent.exit_code == FINE, sent.stderr
    said = run("log", str(tmp_path / "a.db"), "--type", "forecast_made", "--columns", "says", "--format", "csv").stdout
    assert said.count("yes 0.5") == 4


def test_a_wide_sheet_goes_in_by_one_command(tmp_path: Path) -> None:
    """Questions from the header and forecasts of each cell, by one map; a row that is sent again is a duplicate."""
    (tmp_path / "form.csv").write_text(FORM)
    (tmp_path / "form.toml").write_text(OPENING + MAP)
    args = ("append", tmp_path / "form.db", "--map", tmp_path / "form.toml", tmp_path / "form.csv", "--format", "csv")
    first, second = run(*map(str, args)), run(*map(str, args))
    assert (first.exit_code, first.stdout.splitlines()[1][:6]) == (FINE, "5,0,0,"), first.stderr
    assert second.stdout.splitlines()[1][:6] == "0,5,0,"
    (tmp_path / "form.csv").write_text(FORM.replace("35", "often"))
    rest = run(*map(str, args), "--refused", str(tmp_path / "rest.csv"))
    assert rest.exit_code == FINDINGS
    assert (tmp_path / "rest.csv").read_text() == "".join(FORM.replace("35", "often").splitlines(keepends=True)[:2])
