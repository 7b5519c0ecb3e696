"""The formats that `import-from` reads, and the function that reads each."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from forecast_ledger.replay.importing.forecastbench import read_forecastbench
from forecast_ledger.replay.importing.hubverse import read_hub
from forecast_ledger.replay.importing.markets import read_markets
from forecast_ledger.replay.importing.metaculus import read_download
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import Source


class SourceKind(NamedTuple):
    """A format. read: returns what a source has, given the preset of its contests or None. path: what PATH is.

    bettors_of: the platform whose own forecasts are its prices, if the format has those of people, too. traded: `read`,
    with trades, if the format has those of people.
    """

    read: Callable[[SourceFiles, str | None], Source]
    path: str
    bettors_of: str = ""
    traded: Callable[[SourceFiles, str | None], Source] | None = None


def _markets(kind: str, path: str, bettors_of: str = "") -> SourceKind:
    return SourceKind(partial(read_markets, kind), path, bettors_of, partial(read_markets, kind, trades=True))


KINDS: dict[str, SourceKind] = {
    "forecastbench": SourceKind(
        read_forecastbench, "a folder of question, forecast and resolution sets, a zip of it, or one set"
    ),
    "hubverse": SourceKind(read_hub, "a hub: the folder that has hub-config and model-output, or a zip of it"),
    "kalshi": _markets("kalshi", "saved answers of Kalshi's API: a folder, a zip or a file of JSON or JSON lines"),
    "manifold": _markets(
        "manifold",
        "saved answers of Manifold's API, or its data dump: a folder, a zip or a file of JSON or JSON lines",
        bettors_of="Manifold",
    ),
    "metaculus": SourceKind(read_download, "a data download: a zip, or the folder that it was unpacked to"),
    "polymarket": _markets(
        "polymarket", "saved answers of the Gamma and CLOB APIs: a folder, a zip or a file of JSON or JSON lines"
    ),
}
