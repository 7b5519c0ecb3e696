"""Pictures: a Vega-Lite specification, the table that it is drawn from, and a title that states the finding."""

from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Unavailable, installing
from forecast_ledger.replay.reading.text_tables import escape_controls

VEGA_LITE = "5.21"  # the version of Vega-Lite that specifications are written for
FONT = "Arial, Helvetica, Liberation Sans, sans-serif"  # of the widths by which labels are placed
WIDTH = 560  # of a picture, in pixels, without its labels
BETTER, WORSE, PLAIN, FAINT = "#2b7a9b", "#b5532d", "#2b7a9b", "#8886"  # read on white and on black
COLOURS = ("#2b7a9b", "#b5532d", "#5b8c3a", "#8a63b0", "#b38a1d", "#3f9e8f", "#b0527f", "#7a7a7a")

Row = dict[str, Any]


class Picture(NamedTuple):
    """A picture and what it is drawn from.

    title: the finding, as a sentence. note: how to read it. columns, rows: its data, as they are printed.
    specification: Vega-Lite, with the data inside.
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
                "labelLimit": 170,
            },
            "legend": {"labelColor": "currentColor", "titleColor": "currentColor", "labelLimit": 170},
            "header": {"labelColor": "currentColor", "titleColor": "currentColor"},
            "range": {"category": [*COLOURS]},
        },
    }


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
    svg: str = _converter().vegalite_to_svg(visible(picture.specification), vl_version=VEGA_LITE, allowed_base_urls=[])
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
