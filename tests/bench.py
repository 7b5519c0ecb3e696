"""The benchmark with the steps that need the code of the tests: python -m tests.bench, as forecast_ledger.bench."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median

from forecast_ledger.bench.__main__ import STEPS, Step, command
from forecast_ledger.bench.timing import RUNS
from tests.support.crowds import crowd
from tests.support.servers import PG_CTL, postgres
from tests.system.test_crowds import beside

ALL = STEPS | {"crowded": Step("tests.bench", "eight processes that write to one ledger")}


def crowded(folder: Path) -> dict[str, float]:
    """Measure eight writers of one ledger against one, and single commands beside a large append, on each store."""
    stores: dict[str, AbstractContextManager[str]] = {"SQLite": nullcontext(str(folder / "crowd.db"))}
    if PG_CTL:
        stores["PostgreSQL"] = postgres()
    measured: dict[str, float] = {}
    for store, started in stores.items():
        with started as location:
            pairs = [(crowd(location, f"one {n}", 1, 800), crowd(location, f"all {n}", 8, 200)) for n in range(RUNS)]
            counts, trickle = beside(location, "beside", 20_000, rate=20)
        if counts["accepted"] != 20_000 or trickle.found.errors or any(crowd_run.errors for _, crowd_run in pairs):
            raise AssertionError("a command of the benchmark was not recorded")
        measured |= {
            f"{store}, eight writers: ratio to one writer's rate (aim 0.5)": median(
                eight.rate / one.rate for one, eight in pairs
            ),
            f"{store}, eight writers: ms that 99 of 100 commands take at most (aim 1,000)": 1e3
            * median(eight.percentile(99) for _, eight in pairs),
            f"{store}, 20 commands a second beside 20,000 lines: ms that 99 of 100 take at most (aim 1,000)": 1e3
            * trickle.found.percentile(99),
        }
    return measured


if __name__ == "__main__":
    command(ALL)(prog_name="python -m tests.bench")
