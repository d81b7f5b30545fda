"""The charts of the report, each with one sentence that says what it shows, computed from the same numbers."""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from math import log10
from typing import Final

from genai_finops.planner.present import values
from genai_finops.planner.present.document import Chart
from genai_finops.planner.present.style import BLUE, GRAY, GREEN, INK, ORANGE, PURPLE, RULE, SKY, YELLOW
from genai_finops.planner.report.drawing import NARROW, WIDE, Spec, axis_room, chart, panels

USE_COLORS: Final[Mapping[str, str]] = {
    "busy": BLUE,
    "idle": SKY,
    "starting": YELLOW,
    "placeholder": GREEN,
    "empty": GRAY,
    "fixed": PURPLE,
    "other": RULE,
}


def _both(specify: Callable[[int], Spec], data: Sized = (True,)) -> dict[str, Spec]:
    """Both drawings; none without data."""
    return {"wide": specify(WIDE), "narrow": specify(NARROW)} if data else {"wide": {}, "narrow": {}}


# Over time


@dataclass(frozen=True, slots=True)
class Interval:
    """One row of a simulation over time; means over it.

    Attributes:
        start: aware.
    """

    start: datetime
    length_seconds: float
    arrived: int
    waiting_mean: float
    waiting_max: int
    ready_mean: float
    starting_mean: float
    spot_nodes: float
    on_demand_nodes: float
    interruptions: int


def _steps(intervals: Sequence[Interval], **series: Sequence[float]) -> list[Spec]:
    """One row per interval and series, and one more at the end, so that the last step has a width."""
    rows: list[Spec] = []
    for name, numbers in series.items():
        rows += [
            {"t": _time(each.start.timestamp()), "series": name, "value": number}
            for each, number in zip(intervals, numbers, strict=True)
        ]
        last = intervals[-1]
        rows.append({"t": _time(last.start.timestamp() + last.length_seconds), "series": name, "value": numbers[-1]})
    return rows


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time_axis(intervals: Sequence[Interval], width: int, *, labels: bool = True) -> Spec:
    span = intervals[-1].start.timestamp() + intervals[-1].length_seconds - intervals[0].start.timestamp()
    days = span > 2.5 * 86400
    return {
        "field": "t",
        "type": "temporal",
        "scale": {"type": "utc", "nice": False},
        "axis": {
            "title": None,
            "labels": labels,
            "ticks": labels,
            "format": "%a %-d %b" if days else "%H:%M",
            "tickCount": ({"interval": "day", "step": 1 if width == WIDE or span < 4 * 86400 else 2})
            if days and span < 15 * 86400
            else (8 if width == WIDE else 4),
            "labelOverlap": "greedy",
            "labelFlush": True,
        },
    }


def _count_axis(width: int, *, whole: bool = True) -> Spec:
    return {
        "field": "value",
        "type": "quantitative",
        "scale": {"domainMin": 0, "nice": True},
        "stack": None,
        "axis": {"tickCount": 4, "format": "~s", **({"tickMinStep": 1} if whole else {}), **_fixed(width)},
    }


def _fixed(width: int) -> Spec:
    """An axis of the same width in each panel."""
    room = axis_room(width)
    return {"minExtent": room, "maxExtent": room, "labelLimit": room}


def _colored(colors: Mapping[str, str], *, legend: bool = True) -> Spec:
    return {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(colors), "range": list(colors.values())},
        "legend": {} if legend and len(colors) > 1 else None,
        "sort": list(colors),
    }


def replicas_and_queue(intervals: Sequence[Interval]) -> Chart:
    """Three panels on one time axis: requests, replicas, and who waited."""
    arrivals = [each.arrived / (each.length_seconds or 1) for each in intervals]
    replicas = {"ready": BLUE, "starting": YELLOW}
    waiting = {"longest queue": SKY, "mean queue": BLUE}

    def specify(width: int) -> Spec:
        height = 120 if width == WIDE else 95

        def panel(
            title: str,
            rows: list[Spec],
            mark: Spec,
            colors: Mapping[str, str],
            *,
            last: bool = False,
            whole: bool = True,
        ) -> Spec:
            return {
                "height": height,
                "title": title,
                "data": {"values": rows},
                "mark": {"interpolate": "step-after", "clip": True, **mark},
                "encoding": {
                    "x": _time_axis(intervals, width, labels=last),
                    "y": _count_axis(width, whole=whole),
                    "color": _colored(colors),
                },
                "resolve": {"scale": {"color": "independent"}},
            }

        spec = panels(
            width,
            [
                panel(
                    "requests a second",
                    _steps(intervals, arrivals=arrivals),
                    {"type": "area", "line": {"color": GRAY, "strokeWidth": 1.5}, "opacity": 0.45},
                    {"arrivals": GRAY},
                    whole=False,
                ),
                panel(
                    "replicas",
                    _steps(
                        intervals,
                        ready=[each.ready_mean for each in intervals],
                        starting=[each.starting_mean for each in intervals],
                    ),
                    {"type": "line"},
                    replicas,
                ),
                panel(
                    "requests waiting",
                    _steps(
                        intervals,
                        **{
                            "longest queue": [float(each.waiting_max) for each in intervals],
                            "mean queue": [each.waiting_mean for each in intervals],
                        },
                    ),
                    {"type": "line"},
                    waiting,
                    last=True,
                ),
            ],
        )
        spec["resolve"] = {"scale": {"color": "independent"}, "legend": {"color": "independent"}}
        return spec

    return Chart(
        "Requests, replicas and queue",
        _queue_takeaway(intervals),
        "Three panels over time: requests a second, replicas ready and starting, requests waiting.",
        **_both(specify),
    )


def _queue_takeaway(intervals: Sequence[Interval]) -> str:
    seconds = sum(each.length_seconds for each in intervals)
    mean = sum(each.ready_mean * each.length_seconds for each in intervals) / seconds if seconds else 0
    most = max(each.ready_mean + each.starting_mean for each in intervals)
    worst = max(intervals, key=lambda each: each.waiting_max)
    replicas = f"{values.significant(mean)} replicas were ready on average, at most {values.significant(most)} at once"
    if worst.waiting_max == 0:
        return f"{replicas}; no request ever waited for a slot."
    when = worst.start.astimezone(UTC)
    return (
        f"{replicas}; the longest queue was {values.plural(worst.waiting_max, 'request')}, "
        f"in the interval from {when:%a} {when.day} {when:%b %H:%M} UTC."
    )


def nodes_by_purchase(intervals: Sequence[Interval]) -> Chart:
    """Spot and on-demand nodes on top of each other, and a mark for each interval that lost some."""
    colors = {"Spot": GREEN, "on demand": ORANGE}
    losses = [
        {"t": _time(each.start.timestamp() + each.length_seconds / 2), "count": each.interruptions}
        for each in intervals
        if each.interruptions
    ]

    def specify(width: int) -> Spec:
        rows = _steps(
            intervals,
            **{
                "Spot": [each.spot_nodes for each in intervals],
                "on demand": [each.on_demand_nodes for each in intervals],
            },
        )
        for each in rows:
            each["order"] = list(colors).index(each["series"])  # what is first is below
        axis = _count_axis(width) | {"stack": "zero"}
        layers: list[Spec] = [
            {
                "data": {"values": rows},
                "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.85},
                "encoding": {
                    "x": _time_axis(intervals, width),
                    "y": axis,
                    "color": _colored(colors),
                    "order": {"field": "order"},
                },
            }
        ]
        if losses:
            layers.append(
                {
                    "data": {"values": losses},
                    "mark": {"type": "point", "shape": "triangle-down", "filled": True, "color": INK, "opacity": 1,
                             "size": 55, "yOffset": -2},
                    "encoding": {"x": {"field": "t", "type": "temporal", "scale": {"type": "utc"}},
                                 "y": {"value": 4}},
                }
            )  # fmt: skip
        return chart(width, [], title="nodes paid for", height=230 if width == WIDE else 200, layer=layers)

    return Chart(
        "Nodes by purchase",
        _nodes_takeaway(intervals),
        "Nodes paid for over time, Spot below and on demand on top; a triangle marks an interval with interruptions.",
        **_both(specify),
    )


def _nodes_takeaway(intervals: Sequence[Interval]) -> str:
    spot = sum(each.spot_nodes * each.length_seconds for each in intervals) / 3600
    on_demand = sum(each.on_demand_nodes * each.length_seconds for each in intervals) / 3600
    losses = sum(each.interruptions for each in intervals)
    if spot + on_demand == 0:
        return "No node was paid for."
    taken = (
        f"EC2 took {values.plural(losses, 'Spot node')} away, at the triangles" if losses else "none was interrupted"
    )
    share, hours = spot / (spot + on_demand), values.quantity(Decimal(spot + on_demand))
    if spot == 0:
        return f"All {hours} node hours were on demand."
    return f"{values.percent(share, 0)} of {hours} node hours were on Spot; {taken}."


# Money

FOLD: Final = " | "
"""In a label: where it is broken on a phone; a comma elsewhere."""


def _folded(width: int) -> str:
    return f"split(datum.label, '{FOLD}')" if width == NARROW else f"join(split(datum.label, '{FOLD}'), ', ')"


def _plain(label: str) -> str:
    return label.replace(FOLD, ", ")


@dataclass(frozen=True, slots=True)
class Part:
    """One component of the cost.

    Attributes:
        use: one of USE_COLORS.
        label: as it is shown.
    """

    use: str
    label: str
    usd: float


def cost_by_component(parts: Sequence[Part], period: str) -> Chart:
    """Bars, the largest first, each with its amount and its share."""
    total = sum(part.usd for part in parts)
    ordered = sorted((part for part in parts if part.usd > 0), key=lambda part: part.usd, reverse=True)
    rows = [
        {
            "label": part.label,
            "usd": part.usd,
            "use": part.use,
            "text": f"{_dollars(part.usd)}  {values.percent(part.usd / total, 0)}",
        }
        for part in ordered
    ]

    def specify(width: int) -> Spec:
        most = max((part.usd for part in ordered), default=1.0)
        room = 1.22 if width == WIDE else 1.85
        shared: Spec = {
            "y": {"field": "label", "type": "nominal", "sort": None, "title": None,
                  "axis": {"labelColor": INK, "labelLimit": 260 if width == WIDE else 140,
                           "labelExpr": _folded(width)}},
            "x": {"field": "usd", "type": "quantitative", "axis": None, "scale": {"domain": [0, most * room]}},
        }  # fmt: skip
        return chart(
            width,
            rows,
            height={"step": 30},
            encoding=shared,
            layer=[
                {
                    "mark": {"type": "bar", "height": 18, "cornerRadiusEnd": 2},
                    "encoding": {
                        "color": {
                            "field": "use",
                            "type": "nominal",
                            "legend": None,
                            "scale": {"domain": list(USE_COLORS), "range": list(USE_COLORS.values())},
                        }
                    },
                },
                {
                    "mark": {"type": "text", "align": "left", "dx": 7},
                    "encoding": {"text": {"field": "text"}},
                },
            ],
        )

    return Chart(
        "Where the money goes",
        _cost_takeaway(ordered, total, period),
        "Horizontal bars: cost by component, the largest first.",
        **_both(specify, ordered),
    )


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount < 100 else f"${amount:,.0f}"


def _cost_takeaway(ordered: Sequence[Part], total: float, period: str) -> str:
    if not ordered:
        return f"Nothing is paid {period}."
    busy = sum(part.usd for part in ordered if part.use == "busy")
    says = f"Of {_dollars(total)} {period}, {values.percent(busy / total, 0)} pays for serving requests"
    others = [part for part in ordered if part.use != "busy"]
    if not others:
        return f"{says}."
    return f"{says}; of the rest, most goes to: {_plain(others[0].label)}, {_dollars(others[0].usd)}."


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to serve the same traffic within the objective.

    Attributes:
        low, high: ends of the error bar; a high end of None misses the objective there.
    """

    label: str
    usd_per_million: float
    low: float
    high: float | None


_HOLDS: Final = "meets the objective"
_OPEN: Final = "misses it at the slow end"


def cost_per_million(alternatives: Sequence[Alternative], of: str = "tokens") -> Chart:
    """Points with error bars, the cheapest first."""
    ordered = sorted(alternatives, key=lambda each: each.usd_per_million)
    colors = {_HOLDS: BLUE} if any(each.high is not None for each in ordered) else {}
    if any(each.high is None for each in ordered):
        colors[_OPEN] = ORANGE
    rows = [
        {
            "label": each.label,
            "usd": each.usd_per_million,
            "low": each.low,
            "high": each.usd_per_million if each.high is None else each.high,
            "series": _OPEN if each.high is None else _HOLDS,
            "text": f"${each.usd_per_million:,.2f}",
        }
        for each in ordered
    ]

    def specify(width: int) -> Spec:
        most = max((each.high or each.usd_per_million for each in ordered), default=1.0)
        y: Spec = {
            "field": "label", "type": "nominal", "sort": None, "title": None,
            "axis": {"labelColor": INK, "labelLimit": 300 if width == WIDE else 150, "grid": True,
                     "labelExpr": _folded(width)},
        }  # fmt: skip
        x: Spec = {
            "type": "quantitative", "scale": {"domain": [0, most * (1.08 if width == WIDE else 1.3)], "nice": False},
            "axis": {"title": f"US dollars for 1M {of}", "grid": False, "format": "$~f",
                     "tickCount": 6 if width == WIDE else 4},
        }  # fmt: skip
        color = _colored(colors)
        if width == NARROW and color["legend"] is not None:
            color["legend"] = {"columns": 1}
        shapes = {"domain": list(colors), "range": ["triangle-up" if name == _OPEN else "circle" for name in colors]}
        shape = {**color, "scale": shapes}
        return chart(
            width,
            rows,
            height={"step": 34 if width == WIDE else 40},
            layer=[
                {
                    "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.55},
                    "encoding": {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"}, "color": color},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
                    "encoding": {"y": y, "x": {"field": "usd", **x}, "color": color, "shape": shape},
                },
                {
                    "mark": {"type": "text", "align": "center", "dy": -11},
                    "encoding": {"y": y, "x": {"field": "usd", **x}, "text": {"field": "text"}},
                },
            ],
        )

    return Chart(
        f"Cost of 1M {of} by alternative",
        _alternatives_takeaway(ordered, of),
        "Points with error bars, the cheapest first; a triangle misses the objective at the slow end of its bar.",
        **_both(specify),
    )


def _alternatives_takeaway(ordered: Sequence[Alternative], of: str) -> str:
    best = ordered[0]
    says = f"{_plain(best.label)} is cheapest, ${best.usd_per_million:,.2f} for 1M {of}"
    if len(ordered) == 1:
        return f"{says}, and the only alternative."
    second = ordered[1]
    if best.high is None or second.low <= best.high:
        return f"{says}, but its error bar reaches that of {_plain(second.label)}: measure both before you choose."
    less = 1 - best.usd_per_million / second.usd_per_million
    return f"{says}, {values.percent(less, 0)} below {_plain(second.label)}, further than the error bars reach."


# Latency

TOP: Final = 1.42
"""Of the highest bar: room for percentiles above it, and for the objective above those."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """One kind of latency.

    Attributes:
        edges_seconds: of the classes, ascending, one more than counts.
        objective_seconds: None without one.
        quantiles: seconds by share, such as 0.95.
    """

    name: str
    edges_seconds: Sequence[float]
    counts: Sequence[int]
    quantiles: Mapping[float, float]
    objective_seconds: float | None


def latency_distribution(distributions: Sequence[Distribution]) -> Chart:
    """A panel each, on a logarithmic axis, with percentiles and the objective as lines."""
    shown = [each for each in distributions if sum(each.counts)]

    def specify(width: int) -> Spec:
        spec = panels(width, [_distribution(each, width) for each in shown])
        spec["spacing"] = 40
        return spec

    return Chart(
        "Latency",
        " ".join(map(_latency_takeaway, shown)) or "No request was completed, so there is no latency.",
        "Histograms on a logarithmic axis of time: " + ", ".join(each.name for each in shown) + ".",
        **_both(specify, shown),
    )


def _distribution(each: Distribution, width: int) -> Spec:
    total = sum(each.counts)
    rows = [
        {"low": low, "high": high, "share": count / total}
        for low, high, count in zip(each.edges_seconds[:-1], each.edges_seconds[1:], each.counts, strict=True)
    ]
    first = next(row["low"] for row in rows if row["share"])
    last = next(row["high"] for row in reversed(rows) if row["share"])
    marks: list[Spec] = [{"at": at, "text": _quantile_name(share)} for share, at in each.quantiles.items()]
    ends = [first, last, *each.quantiles.values()]
    if each.objective_seconds is not None:
        ends.append(each.objective_seconds)
    low, high = min(ends) / 1.25, max(ends) * 1.25
    most = max(row["share"] for row in rows)
    x: Spec = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [low, high], "nice": False, "clamp": True},
        "axis": {
            "title": None,
            "grid": False,
            "values": _round_times(low, high, dense=width == WIDE),
            "labelExpr": "datum.value < 1 ? format(datum.value * 1000, '~r') + ' ms' : datum.value < 60 ? "
            "format(datum.value, '~r') + ' s' : format(datum.value / 60, '~r') + ' min'",
            "labelOverlap": "greedy",
        },
    }
    y_scale: Spec = {"domain": [0, most * TOP], "nice": False}
    layers: list[Spec] = [
        {
            "data": {"values": [row for row in rows if low <= row["low"] <= high]},
            "mark": {"type": "rect", "color": SKY, "stroke": None, "tooltip": None},
            "encoding": {
                "x": {"field": "low", **x},
                "x2": {"field": "high"},
                "y": {
                    "field": "share",
                    "type": "quantitative",
                    "scale": y_scale,
                    "axis": {"format": ".0%", "tickCount": 3, **_fixed(width)},
                },
                "y2": {"datum": 0},
            },
        },
        {
            "data": {"values": marks},
            "mark": {"type": "rule", "color": BLUE, "strokeWidth": 1.5},
            "encoding": {
                "x": {"field": "at", **x},
                "y": {"datum": 0, "type": "quantitative", "scale": y_scale},
                "y2": {"datum": most * 1.08},
            },
        },
        {
            "data": {"values": _apart(marks, low, high, width)},
            "mark": {"type": "text", "align": "center", "baseline": "bottom", "dy": -3, "color": BLUE},
            "encoding": {
                "x": {"field": "shown", **x},
                "y": {"datum": most * 1.08, "type": "quantitative", "scale": y_scale},
                "text": {"field": "text"},
            },
        },
    ]
    if each.objective_seconds is not None:
        right = log10(each.objective_seconds / low) > 0.72 * log10(high / low)
        layers += [
            {
                "data": {"values": [{"at": each.objective_seconds}]},
                "mark": {"type": "rule", "color": ORANGE, "strokeWidth": 2, "strokeDash": [5, 3]},
                "encoding": {"x": {"field": "at", **x}},
            },
            {
                "data": {"values": [{"at": each.objective_seconds, "text": "objective"}]},
                "mark": {"type": "text", "align": "right" if right else "left", "dx": -6 if right else 6,
                         "color": ORANGE, "baseline": "top"},
                "encoding": {
                    "x": {"field": "at", **x},
                    "y": {"datum": most * TOP, "type": "quantitative", "scale": y_scale},
                    "text": {"field": "text"},
                },
            },
        ]  # fmt: skip
    return {"title": f"{each.name}, share of all", "height": 130 if width == WIDE else 110, "layer": layers}


def _quantile_name(share: float) -> str:
    return f"p{share * 100:g}"


def _apart(marks: Sequence[Spec], low: float, high: float, width: int) -> list[Spec]:
    """Where the labels of lines that are close to each other go: a label's width apart, from the left."""
    least = (34 if width == WIDE else 28) / (width - axis_room(width)) * log10(high / low)
    shown: list[Spec] = []
    for mark in sorted(marks, key=lambda mark: float(mark["at"])):
        at = log10(mark["at"])
        if shown:
            at = max(at, log10(shown[-1]["shown"]) + least)
        shown.append({**mark, "shown": 10**at})
    return shown


def _round_times(low: float, high: float, *, dense: bool) -> list[float]:
    """Round numbers of milliseconds, seconds or minutes: the finer, the shorter the axis and the wider the window."""
    most = 9 if dense else 4
    for steps in ((1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        below = [step * 10.0**power for power in range(-5, 2) for step in steps if step * 10.0**power < 60]
        above = [60.0 * minutes for minutes in (1, 2, 5, 10, 20, 30, 60)][:: 1 if len(steps) > 2 else 3]
        times = [time for time in below + above if low <= time <= high]
        if len(times) <= most:
            break
    return times


def _latency_takeaway(each: Distribution) -> str:
    parts = [f"{_quantile_name(share)} {values.duration(at)}" for share, at in each.quantiles.items()]
    says = f"{each.name}: {', '.join(parts)}"
    if each.objective_seconds is None:
        return f"{says}."
    within = sum(
        count
        for high, count in zip(each.edges_seconds[1:], each.counts, strict=True)
        if high <= each.objective_seconds * 1.005
    )
    share = values.percent(within / sum(each.counts))
    return f"{says}; {share} within the objective of {values.stated(each.objective_seconds)}."


# Sensitivity


@dataclass(frozen=True, slots=True)
class Point:
    """One run with something changed.

    Attributes:
        factor: that it was multiplied by; 1 is as given.
    """

    factor: float
    usd_month: float
    holds: bool


def sensitivity(points: Mapping[str, Sequence[Point]]) -> Chart:
    """Monthly cost against the factor, one panel for each thing that was changed.

    Args:
        points: by what was changed, such as "Spot price"; each ascending and with factor 1.
    """

    shown = {what: line for what, line in points.items() if line}

    def specify(width: int) -> Spec:
        most = max((point.usd_month for line in shown.values() for point in line), default=1.0)
        inner = (width - 130) // 2 if width == WIDE else width - axis_room(width) - 20
        views = [_sensitivity(what, line, most, inner, width) for what, line in shown.items()]
        side: Spec = {"hconcat": views} if width == WIDE else {"vconcat": views}
        base = panels(width, [])
        del base["vconcat"]
        return {**base, **side, "spacing": 40}

    return Chart(
        "Monthly cost when prices or traffic change",
        " ".join(_sensitivity_takeaway(what, line) for what, line in points.items()),
        "Monthly cost against a factor on " + " and on ".join(shown) + "; a triangle misses the objective.",
        **_both(specify, shown),
    )


def _sensitivity(what: str, line: Sequence[Point], most: float, inner: int, width: int) -> Spec:
    rows = [
        {
            "factor": point.factor,
            "usd": point.usd_month,
            "text": _dollars(point.usd_month),
            "series": "meets the objective" if point.holds else "misses it",
        }
        for point in line
    ]
    x: Spec = {
        "field": "factor",
        "type": "quantitative",
        "scale": {"domain": [min(row["factor"] for row in rows), max(row["factor"] for row in rows)], "nice": False,
                  "padding": 24},
        "axis": {"title": f"{what} ×", "values": [row["factor"] for row in rows], "format": "~g"},
    }  # fmt: skip
    y: Spec = {
        "field": "usd",
        "type": "quantitative",
        "scale": {"domain": [0, most * 1.15], "nice": False},
        "axis": {"format": "$~s", "tickCount": 4},
    }
    return {
        "title": "US dollars a month",
        "width": inner,
        "height": 190 if width == WIDE else 150,
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "line", "color": BLUE}, "encoding": {"x": x, "y": y}},
            {
                "mark": {"type": "point", "size": 70, "strokeWidth": 2, "filled": True, "opacity": 1, "color": BLUE},
                "encoding": {"x": x, "y": y},
                "transform": [{"filter": "datum.series == 'meets the objective'"}],
            },
            {
                "mark": {"type": "point", "shape": "triangle-up", "size": 80, "filled": True, "opacity": 1,
                         "color": ORANGE},
                "encoding": {"x": x, "y": y},
                "transform": [{"filter": "datum.series == 'misses it'"}],
            },
            {
                "mark": {"type": "text", "dy": -13},
                "encoding": {"x": x, "y": y, "text": {"field": "text"}},
            },
        ],
    }  # fmt: skip


def _sensitivity_takeaway(what: str, line: Sequence[Point]) -> str:
    if not line:
        return f"{what}: prices are not known."
    base = next((point for point in line if point.factor == 1), line[0])
    end = line[-1]
    change = end.usd_month / base.usd_month - 1 if base.usd_month else 0.0
    word = "more" if change >= 0 else "less"
    size = values.percent(abs(change), 0)
    says = f"{what} × {end.factor:g}: " + ("no change in cost" if size == "0%" else f"{size} {word} a month")
    failing = [point.factor for point in line if not point.holds]
    if not failing:
        return f"{says}; the objective holds throughout."
    if len(failing) == len(line):
        return f"{says}; the objective is missed throughout."
    return f"{says}; the objective is missed at × {', '.join(f'{factor:g}' for factor in failing)}."
