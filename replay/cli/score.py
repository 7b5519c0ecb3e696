"""The command that scores a table of forecasts in one step."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forecast_ledger.replay.cli.append import board_prizes, opened, summed_refusals
from forecast_ledger.replay.cli.read import print_board
from forecast_ledger.replay.cli.shell import (
    errors_option,
    fail,
    progress,
    report_errors,
    require_columns,
    require_path,
    say,
)
from forecast_ledger.replay.cli.terminal import View, table_options
from forecast_ledger.replay.reference.exit_codes import FINDINGS, USAGE
from forecast_ledger.replay.scoring.options import KINDS, MEANINGS, Options

if TYPE_CHECKING:
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.replay.reading.replay import Replay
    from forecast_ledger.replay.scoring.plan import Plan

_Option = Callable[[Callable[..., None]], Callable[..., None]]
SHOWN = ("rank", "participant", "score", "completion")  # columns of the board, unless others are asked for


def _pairs(_: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE: the text of an answer may have a sign of equality, and so may the name of a column."""
    pairs = {}
    for text in texts:
        first, sign, last = text.rpartition("=") if parameter.name == "answers" else text.partition("=")
        if not sign:
            raise click.BadParameter(f"{text!r} has no '='; write {parameter.metavar}")
        pairs[first.strip()] = last.strip()
    return pairs


def _text(name: str, metavar: str, text: str) -> _Option:
    """Return an option that takes a text."""
    return click.option(name, default="", metavar=metavar, help=text)


_TABLE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SETTLING: list[_Option] = [
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="ROLE=NAME",
        callback=_pairs,
        help="Name the column of a role: question (several by commas), forecaster, time, probability, option, "
        "quantile, value, outcome, opens, closes, kind, title; no name if no column has it. Repeatable.",
    ),
    click.option(
        "--columns-are",
        "shape",
        type=click.Choice(["forecasters", "questions", "options", "quantiles"]),
        help="Say what the columns of a wide table are.",
    ),
    _text("--forecaster", "NAME", "Name who made all forecasts, if no column does."),
    click.option(
        "--answer",
        "answers",
        multiple=True,
        metavar="TEXT=MEANING",
        callback=_pairs,
        help="Say what the text of an answer means: yes, no, none (not known yet) or void. Repeatable.",
    ),
    click.option("--percent", is_flag=True, help="Read probabilities in percent."),
    _text("--number", "SAMPLE", "Say how the table writes 1234.5, such as 1.234,5."),
    _text("--kinds", "KINDS", "Score only questions of these kinds: binary, multiple_choice, numeric; with commas."),
    _text(
        "--normalize",
        "WITHIN",
        "Divide probabilities by their sum, if it differs from 1 by at most this; the log has both.",
    ),
    click.option(
        "--independent",
        is_flag=True,
        help="Make each option a yes-or-no question of its own, of which several may come true, or none.",
    ),
    click.option("--day-first/--month-first", default=None, help="Say how to read dates such as 03/04/2026."),
    _text("--instant", "FORMAT", "Say how times are written, as in strptime."),
    _text("--zone", "ZONE", "Say in which zone times without an offset are: UTC, +01:00 or Europe/Berlin."),
    _text("--opens", "INSTANT", "Open all questions at this instant or day (UTC)."),
    _text("--closes", "INSTANT", "Close all questions at this instant or day (UTC)."),
    _text("--made-at", "INSTANT", "Say when all forecasts were made, if no column does."),
    _text("--delimiter", "CHARACTER", "Say what is between the cells of a CSV."),
    _text("--encoding", "NAME", "Name the encoding of a CSV that is not in UTF-8, such as cp1252."),
    _text("--sheet", "NAME", "Name the sheet of a workbook that has several."),
    _text("--answers-sheet", "NAME", "Name the sheet of the answers, if it is another."),
]


def _settling_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that settle what a table leaves open."""
    for option in reversed(_SETTLING):
        command = option(command)
    return command


@click.command(epilog="Example: forecast-ledger score forecasts.csv answers.csv --rules brier --log own.db")
@click.argument("forecasts", type=_TABLE)
@click.argument("answers_path", metavar="[ANSWERS]", type=_TABLE, required=False)
@_text("--rules", "NAME", "Score by brier, log, pinball, peer or a preset. Default: brier; pinball for quantiles.")
@_text("--contest", "NAME", "Name the contest. Default: the name of FORECASTS.")
@click.option("--log", metavar="LOG", callback=require_path, help="Keep the log in this file.")
@click.option(
    "--write-map",
    "map_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the map to FILE, or several maps to files whose names begin like it.",
)
@_settling_options
@table_options
@errors_option
@report_errors
def score(
    forecasts: Path,
    answers_path: Path | None,
    log: str | None,
    map_path: Path | None,
    view: View,
    errors: str,
    **settled: Any,
) -> None:
    """Score a table of forecasts in one step, and print its board.

    FORECASTS is a CSV, Parquet, JSON lines or .xlsx file with a row for each forecast, or a column for each forecaster,
    question, option or quantile. The answers are a column of it, in a second file, or on a sheet of the workbook, which
    is recognised if it is one of two and its name is Answers, Outcomes, Resolutions or Results. Columns are recognised
    by their usual names. The command prints how it read each column to stderr, and the board to stdout. A column that
    can be read in two ways is refused, with the option that settles it. If a row is refused, the exit code is 1.
    """
    from forecast_ledger.projections.tables.catalogue import CATALOGUE
    from forecast_ledger.replay.reading.replay import replay
    from forecast_ledger.replay.scoring.plan import plan
    from forecast_ledger.replay.scoring.score import check_fits, record
    from forecast_ledger.replay.scoring.tables import read_tables

    require_columns(view, [column.name for column in CATALOGUE["leaderboard"].columns])
    options, files = _options(settled), [path for path in (forecasts, answers_path) if path is not None]
    tables = read_tables(files, options)
    made = plan(tables[0], tables[1] if len(tables) > 1 else None, options)
    for line in [*made.words, *_maps(made, map_path, [*map(str, files)], log or "LOG")]:
        say(line)
    if log:
        check_fits(log, made)
    with (
        opened(log, "main", dry_run=False) if log else _in_memory() as (ledger, _),
        summed_refusals(errors) as on_refusal,
        progress("rows") as watch,
    ):
        counts = record(ledger, made, on_refusal, watch)
        season = replay(ledger)
    _print(season, made.contests, view)
    if counts["refused"]:
        say(f"refused: {counts['refused']:,} of {sum(counts.values()):,} commands")
        sys.exit(FINDINGS)


@contextmanager
def _in_memory() -> "Iterator[tuple[Ledger, None]]":
    from forecast_ledger.ledger.storing.writer import Ledger

    with Ledger.open(":memory:", prizes=board_prizes) as ledger:
        yield ledger, None


def _print(season: "Replay", contests: Sequence[str], view: View) -> None:
    """Print the board of each contest, and say if not everybody forecast the same questions."""
    several, opened_ones = len(contests) > 1, season.projections.facts.contests
    contests = [each for each in contests if each in opened_ones]
    if not contests:  # refused, as has been said
        return
    print_board(season, contests, view if view.columns else view._replace(columns=("contest",) * several + SHOWN))
    board = season.table("leaderboard")
    done = {row["completion"] for contest in contests for row in board.only("contest", contest).rows()}
    if any(first != all_ for first, _, all_ in (each.partition("/") for each in done)):
        say("not everybody forecast every question; the table adjusted_scores of a log takes account of that")


def _options(settled: dict[str, Any]) -> Options:
    """Return what the options of the command line say. Wrong usage: an answer means something else."""
    for text, meaning in settled["answers"].items():
        if meaning not in MEANINGS:
            fail(f"--answer {text}={meaning}: an answer means {', '.join(MEANINGS)}", USAGE)
    kinds = tuple(filter(None, map(str.strip, settled.pop("kinds").split(","))))
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        fail(f"--kinds {unknown[0]}: the kinds are {', '.join(KINDS)}", USAGE)
    names = {role: [*filter(None, map(str.strip, text.split(",")))] for role, text in settled["columns"].items()}
    wide = settled.pop("shape") or ""
    columns = {role: tuple(several) for role, several in names.items()}
    return Options(**settled | {"columns": columns, "wide": wide, "kinds": kinds})


def _maps(made: "Plan", path: Path | None, files: Sequence[str], log: str) -> list[str]:
    """Write the maps if there is a path for them, and return how to use them; else return how to see them."""
    from forecast_ledger.replay.scoring.score import map_files

    if path is None:
        return ["to see this as a map, which you can edit: --write-map FILE"]
    written = map_files(made, path)
    for name, text in written.items():
        name.write_text(text, encoding="utf-8", newline="\n")
    used = [files[-1] if step.part.endswith(("questions", "answers")) else files[0] for step in made.steps]
    return [
        f"the same by a map: forecast-ledger append {log} --map {name} {file}"
        for name, file in zip(written, used, strict=True)
    ]
