"""Pictures as Vega-Lite specifications, their parts and findings, and how they are drawn as SVG and PNG."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from msgspec import json

from forecast_ledger.ledger.core.errors import Unavailable, installing
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.studies.grounds import WITHHELD
from forecast_ledger.projections.tables.analysis import per_contest
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.replay.reading.blocks import escape_controls

VEGA_LITE = "5.21"  # the version of Vega-Lite that specifications are written for
FONT = "Arial, Helvetica, Liberation Sans, sans-serif"  # of the widths by which labels are placed
WIDTH = 560  # of a picture, in pixels, without its labels
TITLE, NOTE = 70, 90  # characters in a line above a picture
LABEL = 240  # pixels after which a label is cut
BETTER, WORSE, PLAIN, FAINT = "#2b7a9b", "#b5532d", "#2b7a9b", "#8886"  # read on white and on black
COLOURS = ("#2b7a9b", "#b5532d", "#5b8c3a", "#8a63b0", "#b38a1d", "#3f9e8f", "#b0527f", "#7a7a7a")


class Picture(NamedTuple):
    """A picture and what it is drawn from.

    title: the finding, as a sentence. note: how to read it. columns, rows: its data, as they are printed.
    specification: Vega-Lite, with the data inside.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Picture, append, open_ledger, plot
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     drawn = plot(f"{folder}/season.db", "prizes", f"{folder}/prizes.json", contest="plain")
    >>> isinstance(drawn, Picture), "participant" in drawn.columns
    (True, True)
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: list[Row]
    specification: dict[str, Any]


def specify(values: list[Row], **parts: Any) -> dict[str, Any]:
    """Return a Vega-Lite specification with its data, in a style that suits light and dark pages.

    >>> specify([{"x": 1}], mark="point")["data"]
    {'values': [{'x': 1}]}
    """
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE.partition('.')[0]}.json",
        "data": {"values": values},
        "background": None,
        "padding": {"left": 20, "right": 20, "top": 5, "bottom": 5},
        **parts,
        "config": {
            "font": FONT,
            "aria": False,
            "view": {"stroke": None},
            "axis": {
                "labelColor": "currentColor",
                "titleColor": "currentColor",
                "titleFontWeight": "normal",
                "gridColor": "#8883",
                "domainColor": "#8888",
                "tickColor": "#8888",
                "labelLimit": 0,  # a limit makes labels be measured twice as often: only long names have one
            },
            "legend": {"labelColor": "currentColor", "titleColor": "currentColor", "labelLimit": 0},
            "header": {"labelColor": "currentColor", "titleColor": "currentColor"},
            "range": {"category": [*COLOURS]},
        },
    }


def titled(picture: Picture) -> Picture:
    """Return a picture that stands alone: its title and its note are part of it, in lines that fit."""
    words = {"text": wrap(picture.title, TITLE), "subtitle": wrap(picture.note, NOTE)}
    style = {"anchor": "start", "frame": "bounds", "offset": 12, "subtitlePadding": 4}
    colour = {"color": "currentColor", "subtitleColor": "currentColor"}
    return picture._replace(specification=picture.specification | {"title": words | style | colour})


def visible(part: Any) -> Any:
    r"""Return a specification, or a part of one, with the control characters of its texts escaped.

    >>> visible({"data": [{"who": "a\x1b"}, 1]})
    {'data': [{'who': 'a\\x1b'}, 1]}
    """
    if isinstance(part, str):
        return escape_controls(part)
    if isinstance(part, dict):
        return {visible(name): visible(each) for name, each in part.items()}
    return [visible(each) for each in part] if isinstance(part, list | tuple) else part


def to_svg(picture: Picture) -> str:
    """Return a picture as SVG. Raises Unavailable: vl-convert is not installed.

    Nothing is fetched: the data are in the specification, and no address is allowed.
    """
    converter, shown = _converter(), json.encode(visible(picture.specification)).decode()  # a text is taken over faster
    svg: str = converter.vegalite_to_svg(shown, vl_version=VEGA_LITE, allowed_base_urls=[])
    return svg


def to_png(picture: Picture) -> bytes:
    """Return a picture as PNG, on white, with two pixels for each of its own. Raises Unavailable, as `to_svg`."""
    shown = visible(picture.specification) | {"background": "white"}
    png: bytes = _converter().vegalite_to_png(shown, vl_version=VEGA_LITE, scale=2, allowed_base_urls=[])
    return png


def _converter() -> Any:
    try:
        import vl_convert  # noqa: PLC0415 - late: optional
    except ImportError as missing:
        raise Unavailable(
            f"pictures are drawn by vl-convert, which is not installed; {installing('report')}"
        ) from missing
    return vl_convert


MOST_ROWS = 40  # of a picture
MOST_LINES = len(COLOURS)  # so that no two have the same colour
STEP = 19  # pixels of a row
LEVEL = 0.05  # of a test


class KnownTables(Projections):
    """Projections that compute each table once, for a page that shows every contest of it."""

    def __init__(self, projections: Projections) -> None:
        super().__init__(projections.facts, projections.chunk, projections.cached)
        self._tables: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        """Return the table of a projection."""
        if name not in self._tables:
            self._tables[name] = super().table(name)
        return self._tables[name]


@per_contest
def leaderboard_rows(projections: Projections, contest: str) -> list[Row]:
    """Return the rows of a contest in the table `leaderboard`."""
    return projections.rows_of("leaderboard", contest)


def counts_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the sum of the column `n` by participant."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["participant"]] = counts.get(row["participant"], 0) + row["n"]
    return counts


def in_board_order(projections: Projections, contest: str, counts: Mapping[str, float]) -> list[str]:
    """Return participants in the order of the board; those with less than half of the most answers are last.

    counts: of answers, by participant.
    """
    index = {row["participant"]: number for number, row in enumerate(leaderboard_rows(projections, contest))}
    most = max(counts.values(), default=0)
    return sorted(counts, key=lambda who: (2 * counts[who] < most, index.get(who, len(index)), -counts[who], who))


def completed(projections: Projections, contest: str, rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows of a board whose names say how many of the questions were answered, unless all answered the same."""
    answered = {row["participant"]: row["completion"] for row in leaderboard_rows(projections, contest)}
    if len({answered[row["participant"]] for row in rows}) == 1:
        return rows
    return [row | {"participant": f"{row['participant']} ({_of(answered[row['participant']])})"} for row in rows]


def _of(completion: str) -> str:
    """Return how many of the questions were answered, in words.

    >>> _of("120/1120")
    '120 of 1,120'
    """
    return " of ".join(f"{int(number):,}" for number in completion.split("/"))


def chosen(row: Mapping[str, Any], columns: Iterable[str]) -> Row:
    """Return some columns of a row."""
    return {name: row[name] for name in columns}


def numbered(rows: Sequence[Row], *columns: str) -> list[Row]:
    """Return rows with the number of each, from 0, and some columns as floats, None where they are empty."""
    return [
        {"row": number} | {name: None if row[name] is None else float(row[name]) for name in columns}
        for number, row in enumerate(rows)
    ]


def names_axis(rows: Sequence[Row]) -> dict[str, Any]:
    """Return an axis whose labels are the names of participants, with their ranks, in the order of the rows."""
    names = [_label(row) for row in rows]
    # the names are an array in an expression: as data they could not be looked up by number
    return {"labelExpr": f"{quoted(names)}[datum.value]", "ticks": False, "domain": False, **_limit(names)}


def names_legend(names: Sequence[str]) -> dict[str, Any]:
    """Return a legend whose entries are numbers from 0, labelled with names."""
    style = {"orient": "bottom", "columns": 2, "columnPadding": 40, "title": None}
    return style | {"labelExpr": f"{quoted(names)}[datum.value]", **_limit(names)}


_NARROW = frozenset("abcdefghijklnopqrstuvxyz0123456789 ().,:;/-_")


def _limit(names: Sequence[str]) -> dict[str, int]:
    """Return the limit of labels that have these names; none if no name is long.

    In Arial of 10 pixels, a narrow character has at most 6 pixels, and another one of ASCII at most 11.

    >>> _limit(["ada", "x" * 39]), _limit(["ada", "W" * 22]), _limit(["名"])
    ({}, {'labelLimit': 240}, {'labelLimit': 240})
    """
    short = all(
        name.isascii() and name.isprintable() and sum(6 if character in _NARROW else 11 for character in name) < LABEL
        for name in names
    )
    return {} if short else {"labelLimit": LABEL}


def _label(row: Row) -> str:
    rank = row.get("rank", "")
    return f"{'-' if rank is None else rank} {row['participant']}".strip()


def quoted(names: Sequence[str]) -> str:
    """Return texts as an array in Vega's language of expressions, in which no text can be anything but a text.

    A control character is escaped before: a raw NUL would end the process in what draws the picture.
    """
    units = (_units(escape_controls(name)) for name in names)
    return "[" + ",".join('"' + "".join(f"\\u{ord(unit):04x}" for unit in each) + '"' for each in units) + "]"


def _units(text: str) -> str:
    """Return a text as UTF-16 code units."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(int.from_bytes(encoded[at : at + 2], "big")) for at in range(0, len(encoded), 2))


def in_order(projections: Projections, names: set[str]) -> list[str]:
    """Return questions in the order of their openings."""
    questions = projections.table("questions")
    opened = dict(zip(questions["question"], questions["log_position"], strict=True))
    return sorted(names, key=opened.__getitem__)


def left_out(every: Sequence[Any], shown: Sequence[Any]) -> str:
    """Say how many rows of a picture are left out, if any are."""
    return f" The first {len(shown)} of {len(every):,} are shown." if len(shown) < len(every) else ""


def percent(share: float, whole: float = 1) -> str:
    """Return a share in percent.

    >>> percent(1, 3)
    '33%'
    """
    return f"{100 * share / whole:.0f}%"


def without_intervals(rows: Sequence[Row], reasons: Mapping[str, str] = WITHHELD) -> list[str]:
    """Say why rows of the table `intervals` have none, a sentence for each reason, or one if no row has any.

    reasons: in words, as of `reasons_of`.

    >>> few, same, some = ({"withheld": reason} for reason in ("few_clusters", "constant_score", ""))
    >>> without_intervals([same, some])
    ['There is no interval for 1 of 2: every sample gives the same score.']
    >>> without_intervals([same, same])
    ['There are no intervals: every sample gives the same score.']
    >>> [sentence] = without_intervals([few, same, same])
    >>> sentence[:74]
    'There are no intervals: for 2 of 3, every sample gives the same score; for'
    """
    counts = sorted(Counter(row["withheld"] for row in rows if row["withheld"]).items())
    told = [(f"for {number:,} of {len(rows):,}", reasons[reason]) for reason, number in counts]
    if not told or sum(number for _, number in counts) < len(rows):
        return [f"There is no interval {who}: {why}." for who, why in told]
    whole = told[0][1] if len(told) == 1 else "; ".join(f"{who}, {why}" for who, why in told)
    return [f"There are no intervals: {whole}."]
