"""The picture on the front page: python -m tests.pictures draws it again, from the 2025-26 FluSight season.

Forecasts are those of the hub (github.com/cdcepi/FluSight-forecast-hub): the trend of hospital admissions in each state
and week. The board is the mean Brier score of the last forecast before the deadline of a round, by the hub's clock.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from forecast_ledger.replay.reading.replay import Replay, replay
from forecast_ledger.replay.report.charts import CHARTS
from forecast_ledger.replay.report.pictures import Picture, to_svg
from tests.kept_digests import HISTORIES, record
from tests.support import flusight
from tests.support.paths import ROOT

FILE = ROOT / "docs" / "pictures" / "flusight.svg"
CONTEST = "trend-recorded"


def season_board(season: Replay) -> Picture:
    """Return the board of the season as a picture on white."""
    picture = CHARTS["board"].draw(season.projections, CONTEST)
    assert picture is not None
    return picture._replace(specification=picture.specification | {"background": "white"})


def main() -> None:
    """Record the season, and draw its board."""
    if not flusight.SOURCE.exists():
        sys.exit(f"the season is not here: {flusight.SOURCE.name}")
    with TemporaryDirectory() as folder:
        log = Path(folder) / "season.db"
        record(HISTORIES["flusight"](), log)
        picture = season_board(replay(log))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(to_svg(picture), encoding="utf-8")
    sys.stdout.write(f"{FILE.relative_to(ROOT)}: {picture.title}\n")


if __name__ == "__main__":
    main()
