"""Pictures that are kept: python -m tests.pictures draws them again.

The specification of each chart is kept of stories that have one, so that a change of a picture is seen, and looked at,
before it lands. The picture on the front page is drawn from the 2025-26 FluSight season. Forecasts are those of the hub
(github.com/cdcepi/FluSight-forecast-hub): the trend of hospital admissions in each state and week. The board is the
mean Brier score of the last forecast before the deadline of a round, by the hub's clock.
"""

import json
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import structs

from forecast_ledger.replay.explain.what_if import under_rules
from forecast_ledger.replay.pages.charts import CHARTS
from forecast_ledger.replay.pages.pictures import Picture, to_svg
from forecast_ledger.replay.pages.study_charts import PLOTS
from forecast_ledger.replay.pages.task_charts import TASK_CHARTS
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.kept_digests import HISTORIES, Batch, record
from tests.support import flusight
from tests.support.given import NOW
from tests.support.hubs import by_task
from tests.support.oracle import with_ids
from tests.support.paths import ROOT

FILE = ROOT / "docs" / "pictures" / "flusight.svg"
CONTEST = "trend-recorded"
GREY = "#7d8590"
KEPT = Path(__file__).with_suffix(".json")
DRAWN = {  # the contest of each story
    "metaculus-2022": "plain",
    "autocast-2022": "at-close",
    "arena-week": "week-1",
    "hub-import": "wk inc flu hosp quantile",
    "tasks": "cup",
}
STORIES: dict[str, Callable[[], Iterable[Batch]]] = {
    **HISTORIES,
    "tasks": lambda: [(NOW, with_ids(by_task("TX", "US")))],
}


def season_board(season: Replay) -> Picture:
    """Return the board of the season, ranks for half of the questions or more, in colours for light and dark pages."""
    rules = season.projections.facts.contests[CONTEST].opened.rules
    ranked = under_rules(season.projections, CONTEST, structs.replace(rules, least_share_ppm=500_000))
    picture = CHARTS["board"].draw(ranked, CONTEST)
    assert picture is not None
    config = picture.specification["config"]
    axis = config["axis"] | {"labelColor": GREY, "titleColor": GREY}
    return picture._replace(specification=picture.specification | {"config": config | {"axis": axis}})


def specifications() -> dict[str, dict[str, Any]]:
    """Return title, note, columns and specification of every picture of the contests in DRAWN, by story and chart."""
    found: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory() as folder:
        for story, contest in DRAWN.items():
            log = Path(folder) / f"{story}.db"
            record(STORIES[story](), log)
            projections = replay(log).projections
            charts = TASK_CHARTS if story == "tasks" else PLOTS  # the others are kept of other stories
            drawn = {name: chart.draw(projections, contest) for name, chart in charts.items()}
            found[story] = {name: described(picture) for name, picture in drawn.items() if picture is not None}
    return found


def described(picture: Picture) -> dict[str, Any]:
    """Return title, note, columns and specification; of its data the first two values, the number, and a digest."""
    values = picture.specification["data"]["values"]
    digest = sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    short = {"first": values[:2], "values": len(values), "sha256": digest}
    parts = picture.specification | {"data": short}
    return {"title": picture.title, "note": picture.note, "columns": [*picture.columns], "specification": parts}


def text(found: dict[str, dict[str, Any]]) -> str:
    """Return specifications as they are kept: JSON with a line for each value, in the order of names."""
    return json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Draw the stories, record the season, and draw its board."""
    KEPT.write_text(text(specifications()), encoding="utf-8")
    sys.stdout.write(f"{KEPT.relative_to(ROOT)}\n")
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
