"""The benchmark: python -m forecast_ledger.bench measures all steps, or those that are named, and prints each row."""

import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

Measure = Callable[[Path], dict[str, float]]  # of a folder for files: the value of each row, by its words


class Step(NamedTuple):
    """module: it has the function of the step, under the step's name. needs: a package that the core does without."""

    module: str
    meaning: str
    needs: str = ""


_BENCH = "forecast_ledger.bench"
STEPS = {
    "using": Step(f"{_BENCH}.logs", "a million events: verify, replay, export, read models", "pyarrow"),
    "bulk": Step(f"{_BENCH}.logs", "append a file of a million lines"),
    "appending": Step(f"{_BENCH}.logs", "record commands in batches, and one at a time"),
    "reading": Step(f"{_BENCH}.logs", "from a log to its leaderboard"),
    "sealed": Step(f"{_BENCH}.logs", "a million events as sealed segments", "pyarrow"),
    "scoring": Step(f"{_BENCH}.scoring", "score a season under each kind of rules"),
    "growing": Step(f"{_BENCH}.scoring", "one question with up to a million forecasts"),
    "many_contests": Step(f"{_BENCH}.scoring", "every table of 2,000 contests"),
    "unlike_lengths": Step(f"{_BENCH}.scoring", "a board of questions that are open for unlike times"),
    "unlike_sums": Step(f"{_BENCH}.scoring", "the same with 2,000 participants"),
    "intervals": Step(f"{_BENCH}.scoring", "bootstrap intervals"),
    "refusing": Step(f"{_BENCH}.scoring", "refuse a table that is too long"),
    "recording": Step(f"{_BENCH}.logs", "record 23 quantiles, against a probability"),
    "kernels": Step(f"{_BENCH}.kernels", "pinball loss and CRPS, against NumPy and scoringrules"),
    "peak": Step(f"{_BENCH}.logs", "memory from a log to its leaderboard"),
    "trading": Step(f"{_BENCH}.trading", "a week of quotes and trades"),
}


def command(steps: Mapping[str, Step]) -> click.Command:
    """The program that measures these steps."""
    listed = "\n".join(f"{name:16}{step.meaning}" for name, step in steps.items())

    @click.command(help=f"Measure all steps, or those that are named, and print each row.\n\n\b\n{listed}")
    @click.argument("names", metavar="[STEP]...", nargs=-1, type=click.Choice(list(steps)))
    @click.option("--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the rows there too.")
    def bench(names: tuple[str, ...], path: Path | None) -> None:
        from forecast_ledger.bench.results import Result, Row, machine, shown, write  # noqa: PLC0415 - for an instant --help

        result, wanted = Result(measured_on=machine(), rows=[]), names or tuple(steps)
        click.echo("| measured | value |\n| --- | --- |")
        with tempfile.TemporaryDirectory() as folder:
            for name in wanted:
                step = steps[name]
                if step.needs and find_spec(step.needs) is None:
                    click.echo(f"{name}: left out, since {step.needs} is not installed", err=True)
                    continue
                measure: Measure = getattr(import_module(step.module), name)
                for label, value in measure(Path(folder)).items():
                    row = Row(step=name, measured=label, value=value)
                    result.rows.append(row)
                    click.echo(shown(row))
        if path is not None:
            write(result, path)

    return bench


if __name__ == "__main__":
    command(STEPS)(prog_name=f"{Path(sys.executable).name} -m {_BENCH}")
