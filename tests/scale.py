"""One board on 1, 2, 4 … processors, beside DuckDB and Polars on the same files: `python -m tests.scale 1000000`.

Each run is a process of its own, from its start to its end, on as many processors as it is given. The board is that of
the engine `threads`, or of those that are named: `python -m tests.scale 1000000 threads processes`. DuckDB and Polars
compute the same board in floats; it has to agree with ours to a millionth of a point, and ours by all engines and on
all numbers of processors to the last digit. The serial share is the time of a processor in the first thread, over all
such time: what more processors do not share. As in the command line, whichever program it is, NumPy starts no threads
for products of matrices, and the process does not search for garbage when it ends; ours can be forked.
"""

# ruff: noqa: T201, PLC0415 - it prints; each process imports what it measures, and nothing else
import atexit
import gc
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

FORECASTS_OF_A_QUESTION, PARTICIPANTS = 500, 5_000
DAY = 86_400 * 10**6
OPENS = 1_767_225_600_000_000  # µs, as of the questions of the benchmark
CLOSES = OPENS + 30 * DAY
IN_SQL = """
WITH event AS (SELECT event::JSON AS event FROM 'FOLDER/*.others.parquet'),
    answer AS (SELECT event->>'question' AS question, (event->>'outcome')::INT AS outcome
        FROM event WHERE event->>'type' = 'question_resolved.v1'),
    said AS (SELECT question, participant, numbers, epoch_us(claimed_at) AS moment,
            lead(epoch_us(claimed_at), 1, CLOSES) OVER (PARTITION BY question, participant ORDER BY position) AS next
        FROM 'FOLDER/*.forecasts.parquet')
SELECT participant, sum((next - moment) * 100 * (1 + log2(numbers[outcome + 1] / 1e9)) / (CLOSES - OPENS)) AS score
FROM said JOIN answer USING (question) GROUP BY participant ORDER BY score DESC, participant
"""


def ours(engine: str, folder: Path, processors: int) -> tuple[str, dict[str, float]]:
    """The digest and the scores of the board, by an engine; on one processor, by the engine `local`."""
    from forecast_ledger.replay.cli.signals import end_in_time
    from forecast_ledger.replay.reading.replay import replay

    end_in_time()
    chosen: Any = "local" if processors == 1 else engine
    done = replay(folder, trust="files", engine=chosen, tables=["leaderboard"])
    board = done.table("leaderboard", contest="c")
    return done.table("leaderboard").digest(), {row["participant"]: float(row["score"]) for row in board}


def in_duckdb(folder: Path, processors: int) -> tuple[str, dict[str, float]]:
    """The scores by SQL in floats."""
    import duckdb

    query = IN_SQL.replace("FOLDER", str(folder)).replace("OPENS", str(OPENS)).replace("CLOSES", str(CLOSES))
    with duckdb.connect(config={"threads": processors}) as connection:
        return "", dict(connection.sql(query).fetchall())


def in_polars(folder: Path, _: int) -> tuple[str, dict[str, float]]:
    """The scores by expressions in floats; the environment has the number of threads."""
    import polars as pl

    event = pl.scan_parquet(folder / "*.others.parquet").select(pl.col("event").cast(pl.String))
    answer = (
        event.filter(pl.col("event").str.contains('"question_resolved.v1"', literal=True))
        .select(
            question=pl.col("event").str.json_path_match("$.question"),
            outcome=pl.col("event").str.json_path_match("$.outcome").cast(pl.Int64),
        )
        .collect()
    )
    said = pl.scan_parquet(folder / "*.forecasts.parquet")
    moment = pl.col("claimed_at").dt.epoch("us")
    own = ["question", "participant"]
    board = (
        said.select(*own, "position", "numbers", moment=moment)
        .sort("position")
        .with_columns(next=pl.col("moment").shift(-1).over(own).fill_null(CLOSES))
        .with_columns(pl.col("question").cast(pl.String))
        .join(answer.lazy(), on="question")
        .with_columns(chance=pl.col("numbers").list.get(pl.col("outcome")) / 1e9)
        .select(
            pl.col("participant").cast(pl.String),
            score=(pl.col("next") - pl.col("moment")) * 100 * (1 + pl.col("chance").log(2)) / (CLOSES - OPENS),
        )
        .group_by("participant")
        .agg(pl.col("score").sum())
        .collect()
    )
    return "", dict(board.iter_rows())


PROGRAMS: dict[str, Callable[[Path, int], tuple[str, dict[str, float]]]] = {
    "threads": partial(ours, "threads"),
    "processes": partial(ours, "processes"),
    "DuckDB": in_duckdb,
    "Polars": in_polars,
}


class Run(NamedTuple):
    """What a run took, and its board.

    wall: seconds. cpu: seconds of processors. serial: the part of these in its first thread. peak: MB of the first
    process.
    """

    wall: float
    cpu: float
    serial: float
    peak: float
    digest: str
    scores: dict[str, float]


def write(folder: Path, count: int) -> Path:
    """Sealed segments of so many forecasts; what writing took is printed."""
    from forecast_ledger.bench.inputs import forecasts, handle_all, opening, resolutions
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.replay.files.export import seal

    questions, log, sealed = -(-count // FORECASTS_OF_A_QUESTION), folder / "log.db", folder / "segments"
    begun = time.process_time()
    with Ledger.open(log) as ledger:
        handle_all(ledger, opening(questions, rules="baseline"))
        handle_all(ledger, forecasts(count, questions, PARTICIPANTS))
        handle_all(ledger, resolutions(questions))
    written = time.process_time()
    seal(log, sealed)
    print(f"{count:,} forecasts on {questions:,} questions, by {PARTICIPANTS:,} participants: ", end="")
    print(f"written in {written - begun:.1f} s and sealed in {time.process_time() - written:.1f} s of a processor")
    return sealed


def run(program: str, folder: Path, processors: int) -> Run:
    """Run a program on so many processors. Raises CalledProcessError."""
    allowed = sorted(os.sched_getaffinity(0))[:processors]
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tests.scale", "run", program, str(folder), str(processors)],
        check=True,
        stdout=subprocess.PIPE,
        env=os.environ | {"POLARS_MAX_THREADS": str(processors), "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    wall = time.perf_counter() - begun
    first, cpu, peak, digest, scores = json.loads(done.stdout)
    return Run(wall, cpu, first / cpu, peak, digest, scores)


def agree(exact: dict[str, float], floats: dict[str, float]) -> bool:
    """Whether two boards have the same participants, with the same scores but for the rounding of floats."""
    return exact.keys() == floats.keys() and all(
        math.isclose(exact[who], score, rel_tol=1e-9, abs_tol=1e-6) for who, score in floats.items()
    )


def show(count: int, engines: list[str]) -> None:
    """Print the table."""
    from forecast_ledger.bench.results import machine

    cores = len(os.sched_getaffinity(0))
    steps = sorted({min(2**power, cores) for power in range(cores.bit_length() + 1)})
    found = machine()
    print(f"{found.processor}, {cores} processors; Python {found.python}; commit {found.commit}")
    with TemporaryDirectory() as place:
        folder = write(Path(place), count)
        digests, alone = set[str](), 0.0
        columns = ("processors", "program", "wall, s", "of ours on one", "CPU, s", "serial share", "first process, MB")
        print(f"| {' | '.join(columns)} |")
        print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
        for processors in steps:
            board = dict[str, float]()
            for program in [*engines[: 1 if processors == 1 else None], "DuckDB", "Polars"]:
                is_ours = program in engines
                try:
                    done = run(program, folder, processors)
                except subprocess.CalledProcessError:
                    print(f"{program} is left out: see its message above")
                    continue
                if is_ours:
                    board, alone = done.scores, alone or done.wall
                    digests.add(done.digest)
                elif not agree(board, done.scores):
                    raise AssertionError(f"the board of {program} differs")
                serial = f"{done.serial:.2f}" if is_ours else ""
                name = f"ours, {'local' if processors == 1 else program}" if is_ours else program
                shown = f"{processors} | {name} | {done.wall:.2f} | {done.wall / alone:.2f} | {done.cpu:.1f}"
                print(f"| {shown} | {serial} | {done.peak:.0f} |", flush=True)
        if len(digests) != 1:
            raise AssertionError(f"the digests differ: {digests}")


def main(arguments: list[str]) -> None:
    """Print the table, or run one program and print what it took."""
    if arguments[0] != "run":
        show(int(arguments[0]), arguments[1:] or ["threads"])
        return
    atexit.register(gc.freeze)
    program, folder, processors = arguments[1:]
    digest, scores = PROGRAMS[program](Path(folder), int(processors))
    used = map(resource.getrusage, (resource.RUSAGE_THREAD, resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    first, own, others = (each.ru_utime + each.ru_stime for each in used)
    # ru_maxrss would be that of the process that started this one, if that was larger.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps([first, own + others, int(peak.split()[1]) / 1e3, digest, scores]))


if __name__ == "__main__":
    main(sys.argv[1:] or ["1000000"])
