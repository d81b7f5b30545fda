"""How every chart looks, and how it becomes a picture: Vega-Lite specifications, drawn without any JavaScript engine
of the reader's.

A chart is specified twice, for a window and for a phone, since text in a drawing shrinks with it. The colours are those
of the light scheme; the page's style sheet knows what replaces them in the dark.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from genai_finops.planner.present.style import GRID, INK, QUIET, RULE

WIDE, NARROW = 960, 343
"""Width in pixels of a chart in a window and on a phone of 375."""

_FONT: Final = "Helvetica, Arial, 'Liberation Sans', sans-serif"
_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v5.json"

Spec = dict[str, Any]


def draw(spec: Mapping[str, Any]) -> str:
    """The chart as an SVG element that scales with its container and takes its background from the page."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(dict(spec), vl_version="5.21")
    return svg[svg.index("<svg") :].strip()


def chart(width: int, rows: Sequence[Mapping[str, Any]], **parts: Any) -> Spec:
    """A specification with the common look.

    Args:
        width: of the whole drawing, axes included.
        rows: the data.
        parts: of the specification: mark, encoding, layer, height.
    """
    return {
        "$schema": _SCHEMA,
        "width": width,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": list(rows)},
        "config": config(width),
        **parts,
    }


def panels(width: int, specs: Sequence[Spec]) -> Spec:
    """Panels below each other that share the axis below; their width is what the axes leave."""
    return {
        "$schema": _SCHEMA,
        "vconcat": [{"width": width - axis_room(width) - 12, **spec} for spec in specs],
        "spacing": 16,
        "config": config(width),
    }


def axis_room(width: int) -> int:
    """For the numbers of a vertical axis in `panels`, so that panels begin below each other."""
    return 52 if width == WIDE else 40


def config(width: int) -> Spec:
    size = 14 if width == WIDE else 11
    return {
        "font": _FONT,
        "background": None,
        "padding": {"left": 2, "right": 8, "top": 4, "bottom": 2},
        "view": {"stroke": None},
        "axis": {
            "labelColor": QUIET,
            "labelFontSize": size,
            "titleColor": QUIET,
            "titleFontSize": size,
            "titleFontWeight": "normal",
            "gridColor": GRID,
            "domainColor": RULE,
            "tickColor": RULE,
            "labelPadding": 5,
            "titlePadding": 8,
        },
        "axisY": {"domain": False, "ticks": False, "title": None},
        "axisX": {"grid": False},
        "legend": {
            "labelColor": INK,
            "labelFontSize": size,
            "title": None,
            "orient": "top",
            "direction": "horizontal",
            "symbolStrokeWidth": 3,
            "columnPadding": 16,
            "offset": 6,
            "columns": 0 if width == WIDE else 2,
            "symbolOpacity": 1,
            "labelLimit": 320 if width == WIDE else 160,
        },
        "text": {"color": INK, "fontSize": size, "font": _FONT},
        "title": {"color": QUIET, "fontSize": size, "fontWeight": "normal", "anchor": "start", "frame": "group",
                  "offset": 6},
        "line": {"strokeWidth": 2},
    }  # fmt: skip
