"""The formats that `import-from` reads, and the function that reads each."""

from collections.abc import Callable
from typing import NamedTuple

from forecast_ledger.replay.importing.forecastbench import read_forecastbench
from forecast_ledger.replay.importing.hubverse import read_hub
from forecast_ledger.replay.importing.kalshi import read_kalshi
from forecast_ledger.replay.importing.manifold import read_manifold
from forecast_ledger.replay.importing.metaculus import read_download
from forecast_ledger.replay.importing.polymarket import read_polymarket
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import Source


class SourceKind(NamedTuple):
    """A format. read: returns what a source has, given the preset of its contests or None. path: what PATH is.

    bettors_of: the platform whose own forecasts are its prices, if the format has those of people, too.
    """

    read: Callable[[SourceFiles, str | None], Source]
    path: str
    bettors_of: str = ""


KINDS: dict[str, SourceKind] = {
    "forecastbench": SourceKind(
        read_forecastbench, "a folder of question, forecast and resolution sets, a zip of it, or one set"
    ),
    "hubverse": SourceKind(read_hub, "a hub: the folder that has hub-config and model-output, or a zip of it"),
    "kalshi": SourceKind(read_kalshi, "saved answers of Kalshi's API: a folder, a zip or a file of JSON or JSON lines"),
    "manifold": SourceKind(
        read_manifold,
        "saved answers of Manifold's API, or its data dump: a folder, a zip or a file of JSON or JSON lines",
        bettors_of="Manifold",
    ),
    "metaculus": SourceKind(read_download, "a data download: a zip, or the folder that it was unpacked to"),
    "polymarket": SourceKind(
        read_polymarket, "saved answers of the Gamma and CLOB APIs: a folder, a zip or a file of JSON or JSON lines"
    ),
}
