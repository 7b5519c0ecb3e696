"""A season of the FluSight hub, written as its hub has it and imported: the numbers published with the data."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.files.hub_export import export_hub
from forecast_ledger.replay.reading.log import Log
from tests.support import flusight
from tests.support.effort import LONG
from tests.support.hubs import write_flusight
from tests.support.sources import import_into, table

pytestmark = pytest.mark.skipif(
    not flusight.SOURCE.is_file(), reason=f"needs {flusight.SOURCE.name}, which is not here"
)

# Computed by who prepared the data, over the last version of each file and the last known truth: the weighted interval
# score, or the ranked probability score, and the number of forecasts.
PUBLISHED = [
    ("wk inc flu hosp quantile", "FluSight-ensemble", "717.817919", 560),
    ("wk inc flu hosp quantile", "FluSight-baseline", "1129.510649", 560),
    ("wk inc flu hosp quantile", "UMass-flusion", "686.935682", 540),
    ("wk flu hosp rate change pmf", "FluSight-ens_q_cat", "0.317045", 1_120),
    ("wk flu hosp rate change pmf", "FluSight-baseline_cat", "0.557935", 1_120),
]

SOME = {who for _, who, *_ in PUBLISHED[::2]}  # two teams with quantiles, of which one left some out; one of categories
LAST = "2025-12-20"  # the round with which the shortened season ends, the fifth


@pytest.fixture(scope="module")
def rows() -> list[flusight.Row]:
    """The lines of the season."""
    return flusight.rows()


@pytest.fixture(scope="module")
def season(rows: list[flusight.Row], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Ledger]]:
    """The season of some teams with published numbers: the hub's folder, and the ledger that it was imported into.

    No number of theirs depends on other teams. With LONG, of all teams.
    """
    yield from imported(tmp_path_factory, rows if LONG > 1 else flusight.of_teams(rows, SOME))


def imported(tmp_path_factory: pytest.TempPathFactory, rows: list[flusight.Row]) -> Iterator[tuple[Path, Ledger]]:
    """The folder of a hub of these lines, and the ledger that it was imported into."""
    folder = tmp_path_factory.mktemp("season") / "hub"
    write_flusight(rows, folder)
    with Ledger.open(folder.parent / "log.db") as ledger:
        found = import_into(ledger, "hubverse", folder)
        assert (found.counts["refused"], found.left_out) == (0, {})
        yield folder, ledger


def test_the_published_numbers_come_out(season: tuple[Path, Ledger]) -> None:
    """To the last digit that is printed; over five categories, our ordered score is half the ranked one."""
    rows = table(season[1], "leaderboard", "contest", "participant", "score", "completion")
    found = {(contest, who): (Fraction(score), completion) for contest, who, score, completion in rows if score}
    for contest, who, published, forecasts in PUBLISHED if LONG > 1 else PUBLISHED[::2]:
        score, completion = found[contest, who]
        scale = 2 if contest.endswith("pmf") else 1
        assert abs(score * scale - Fraction(published)) <= Fraction(1, 10**6)
        assert completion.startswith(f"{forecasts}/")


@pytest.fixture(scope="module")
def small(rows: list[flusight.Row], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Ledger]]:
    """A sixth of the season of three teams: the hub's folder, and the ledger that it was imported into.

    With LONG, the whole season.
    """
    few = flusight.of_teams(rows, SOME)
    made = {"round", "forecast", "withdrawal"}
    yield from imported(
        tmp_path_factory, [row for row in few if LONG > 1 or row["kind"] not in made or row["round"] <= LAST]
    )


def test_a_season_comes_out_as_a_hub_with_the_same_numbers(small: tuple[Path, Ledger], tmp_path: Path) -> None:
    """Written as a hub, imported and written again: no byte differs, and the boards are the same."""
    export_hub(Log(small[0].parent / "log.db"), tmp_path / "a")
    with Ledger.open(tmp_path / "b.db") as ledger:
        assert import_into(ledger, "hubverse", tmp_path / "a").counts["refused"] == 0
        columns = ("contest", "rank", "participant", "score", "completion")
        assert table(ledger, "leaderboard", *columns) == table(small[1], "leaderboard", *columns)
    export_hub(Log(tmp_path / "b.db"), tmp_path / "b")
    names = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    models = len(list((small[0] / "model-output").iterdir()))
    assert len(names) == len(list(small[0].glob("model-output/*/*"))) + models + 3
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_importing_a_season_again_changes_nothing(small: tuple[Path, Ledger]) -> None:
    """Every command is a duplicate."""
    folder, ledger = small
    head = ledger.head()
    assert import_into(ledger, "hubverse", folder).counts == {"accepted": 0, "duplicate": head.position, "refused": 0}
    assert ledger.head() == head
