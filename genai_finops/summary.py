"""What `make synth` prints: what was made, what it costs, what to look at, and what to do next.

Plain text that stays whole wherever it lands: no column is ever cut, numbers end under each other, and a
terminal, a pipe, a log and an ASCII locale differ in colour and characters only.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from io import StringIO
from typing import Final, TextIO

from rich.box import Box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from genai_finops.catalog import Price, Purchase, instance_type
from genai_finops.planner.cold_start import ARTICLE_SECONDS, cold_start
from genai_finops.planner.compare import article_load, as_it_is
from genai_finops.planner.fixed_cost import (
    CostLine,
    FixedCost,
    ServingCost,
    budget_use,
    dollars,
    fixed_monthly_cost,
    serving_cost,
)
from genai_finops.planner.results import Alternative
from genai_finops.spec import Platform, problems
from genai_finops.spec.advice import HOURS_A_MONTH

DEFAULT_WIDTH: Final = 100
"""Where nothing says how wide the output is: a pipe, a log."""

NARROWEST: Final = 60
WIDEST: Final = 120
"""Longer lines are hard to read, however wide the terminal."""

DEFAULT_FILE: Final = "platform.yaml"

_RULES: Final = Box("    \n    \n ── \n    \n    \n ── \n    \n    \n")
"""A line under the head and over the total, nothing else."""

_ASCII: Final = str.maketrans({"─": "-", "×": "x", "–": "-", "→": ">"})
"""One for one, so that columns stay where they are."""

_NOT_USED: Final = "not used"
_UNKNOWN: Final = "unknown"
_UNITS: Final = {"endpoint-zone hour": "h", "hour": "h"}

_HEADING, _NAME, _QUIET, _MONEY, _ALERT = "bold", "cyan", "dim", "bold green", "bold yellow"


@dataclass(frozen=True, slots=True)
class Synthesis:
    """What a synthesis wrote.

    Attributes:
        stacks: number of resources, by stack.
        charts: number of objects, by chart.
        outputs: where it stands, by what it is, such as "CloudFormation templates": "cdk.out".
        platform_file: that was read; another than the default must be named again to `make`.
    """

    stacks: Mapping[str, int]
    charts: Mapping[str, int]
    outputs: Mapping[str, str]
    platform_file: str = DEFAULT_FILE


def print_summary(
    platform: Platform,
    synthesis: Synthesis,
    warnings: Sequence[problems.Warning],
    *,
    today: date,
    stream: TextIO | None = None,
    console_width: int | None = None,
    color: bool | None = None,
) -> None:
    """Prints the summary as `stream` can show it: its width, its characters, and colour on a terminal only.

    Args:
        stream: default: standard output.
        console_width: default: COLUMNS, else the terminal's width, else 100.
        color: default: on a terminal, unless NO_COLOR is set.
    """
    stream = stream or sys.stdout
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns if console_width is None else console_width
    colored = _shows_color(stream) if color is None else color
    text = render(platform, synthesis, warnings, today=today, console_width=width, color=colored)
    stream.write(_encodable(text, stream.encoding or "utf-8"))


def _shows_color(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _encodable(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def render(
    platform: Platform,
    synthesis: Synthesis,
    warnings: Sequence[problems.Warning],
    *,
    today: date,
    console_width: int = DEFAULT_WIDTH,
    color: bool = False,
) -> str:
    """The summary as text that ends with a newline.

    Args:
        warnings: in the order they are to be numbered.
        today: decides what the control plane costs.
        console_width: columns, kept within 60 and 120.
        color: whether to write ANSI escape codes.
    """
    console = _console(console_width, color)
    for part in _parts(platform, synthesis, warnings, today, console):
        console.print(part)
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    return text if color else "\n".join(line.rstrip() for line in text.split("\n"))


def _console(width: int, color: bool) -> Console:
    return Console(
        file=StringIO(),
        width=min(max(width, NARROWEST), WIDEST),
        height=100,  # not used; given, so that the environment is not asked
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _parts(
    platform: Platform,
    synthesis: Synthesis,
    warnings: Sequence[problems.Warning],
    today: date,
    console: Console,
) -> Iterator[RenderableType]:
    fixed, serving = fixed_monthly_cost(platform, today), serving_cost(platform)
    yield from _headline(platform)
    yield from _made(synthesis, console)
    yield from _models(serving, console)
    yield from _under_traffic(platform, serving, console)
    yield from _cold_starts(platform, serving, console)
    yield from _fixed(fixed, console)
    yield from _together(platform, fixed, serving, today)
    yield from _warnings(warnings)
    yield from _next(synthesis)


def _headline(platform: Platform) -> Iterator[RenderableType]:
    models = f"{_number_of(platform.models, 'model')} on {', '.join(platform.families)}"
    yield Text.assemble(
        (platform.name, "bold cyan"),
        f" in {platform.region}, Kubernetes {platform.cluster.version}, {models}",
    )


def _made(synthesis: Synthesis, console: Console) -> Iterator[RenderableType]:
    """What was written, the two lists side by side where there is room."""
    stacks = _counts("Stack", "Resources", synthesis.stacks)
    charts = _counts("Chart", "Objects", synthesis.charts)
    side_by_side = Table.grid(padding=(0, 6))
    side_by_side.add_row(stacks, charts)
    yield ""
    if _fits(side_by_side, console):
        yield side_by_side
    else:
        yield from (stacks, "", charts)
    for what, where in synthesis.outputs.items():
        yield Text.assemble((f"{what}: ", _QUIET), where)


def _counts(what: str, of: str, counts: Mapping[str, int]) -> Table:
    table = _table(total=True)
    table.add_column(what, _number_of(counts, what.lower()), overflow="fold")
    _number(table, of, f"{sum(counts.values()):,}")
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    return table


def _models(serving: Sequence[ServingCost], console: Console) -> Iterator[RenderableType]:
    yield ""
    yield Text("Models: what each adds in a month", _HEADING)
    table = _models_table(serving)
    if _fits(table, console):
        yield table
    else:
        yield from _models_list(serving)
    for cost in serving:
        if cost.asleep_hours:
            yield _asleep(cost)
        if cost.warm_replicas:
            yield _warm(cost)
    yield _quiet(
        "Whole nodes with their volumes, of the cheapest instance that starts one replica. Ceiling: max "
        "replicas, on demand where allowed."
    )
    sources = _sources(rate.price for cost in serving for rate in (cost.spot, cost.on_demand) if rate)
    if sources:
        yield _quiet(f"Prices from {'; '.join(sources)}.")


def _under_traffic(platform: Platform, serving: Sequence[ServingCost], console: Console) -> Iterator[RenderableType]:
    """What a million tokens would cost, and whether the objective holds; `plan` answers for traffic of one's own."""
    load = article_load()
    rows: dict[str, tuple[str, ...]] = {}
    slow = []
    for model, cost in zip(platform.models, serving, strict=True):
        purchase: Purchase = "on-demand" if cost.spot_use == "never" else "spot"
        rate = cost.rate(purchase)
        if rate is None:
            rows[model.name] = (_UNKNOWN,)
            continue
        volume = platform.node_pool(model.accelerator.family).volume
        found = as_it_is(model, instance_type(rate.instance), purchase, load, region=platform.region, volume=volume)
        if not found.is_feasible:
            slow.append(f"{model.name} on {rate.instance} does not hold its objective: {found.reason}.")
            rows[model.name] = ("does not hold",)
            continue
        rows[model.name] = (
            f"{found.replicas} × {rate.instance} {purchase}, {found.provenance}",
            f"{found.time_to_first_token_seconds or 0:.1f} s",
            _amount(found.monthly_usd),
            _amount(found.usd_per_million_total_tokens),
            _error_bar(found),
        )
    heads = ("Served by", "First token\nat the peak", "A month", "1M tokens\nin and out", "Error bar\nof 1M")
    yield ""
    yield Text(f"{load.name} each, within the objective, awake all the time", _HEADING)
    yield from _by_model(heads, rows, console)
    for sentence in slow:
        yield _quiet(sentence)
    yield _quiet(
        f"Requests of {load.mean_input_tokens:,.0f} tokens in and {load.mean_output_tokens:,.0f} out, at the peak "
        f"{load.peak_requests_per_second / load.mean_requests_per_second:.0f} times the mean (assumed). For traffic of "
        "your own: `make plan TRAFFIC=trace.csv`."
    )


def _by_model(heads: Sequence[str], rows: Mapping[str, Sequence[str]], console: Console) -> Iterator[RenderableType]:
    """A row for each model; where the window is too narrow, a list for each."""
    table = _table()
    table.add_column("Model", style=_NAME, no_wrap=True)
    for head in heads:
        _number(table, head)
    for name, values in rows.items():
        table.add_row(name, *values)
    if _fits(table, console):
        yield table
        return
    for name, values in rows.items():
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style=_QUIET, no_wrap=True)
        facts.add_column(overflow="fold")
        for head, value in zip(heads, values, strict=False):
            facts.add_row(head.replace("\n", " "), value)
        yield Text(name, _NAME)
        yield Padding(facts, (0, 0, 0, 2))


def _error_bar(found: Alternative) -> str:
    low, high = found.usd_per_million_total_tokens_low, found.usd_per_million_total_tokens_high
    return f"{_amount(low)} – {'does not hold' if high is None else dollars(high)}"


def _cold_starts(platform: Platform, serving: Sequence[ServingCost], console: Console) -> Iterator[RenderableType]:
    """From a replica that is wanted to one that serves."""
    rows = {}
    for model, cost in zip(platform.models, serving, strict=True):
        rate = cost.spot or cost.on_demand
        start = cold_start(platform, model, instance_type(rate.instance if rate else cost.instances[0]))
        seconds = {phase.name: phase.seconds for phase in start.phases}
        rows[model.name] = tuple(
            f"{each:,.0f} s"
            for each in (
                start.launch_seconds,
                seconds["image"],
                seconds["weights"] + seconds.get("artifacts", 0),
                seconds.get("compile", 0) + seconds["load"] + seconds["ready"],
                start.total_seconds,
                start.with_image_seconds,
                start.warm_seconds,
            )
        )
    heads = ("Node", "Image", "Weights,\ngraphs", "Load", "Fresh node", "Image there", "Warm node")
    low, high = ARTICLE_SECONDS
    yield ""
    yield Text("Cold start: from a replica that is wanted to one that serves", _HEADING)
    yield from _by_model(heads, rows, console)
    yield _quiet(
        "Node, image and engine start as measured publicly, the rest computed from bytes and rates; the article says "
        f"{low} to {high} s. An image from a snapshot: node_pools.<family>.image_preload.snapshot."
    )


def _models_table(serving: Sequence[ServingCost]) -> Table:
    table = _table()
    table.add_column("Model", style=_NAME, no_wrap=True)
    table.add_column("Runs on", no_wrap=True)
    for head in ("Replicas", "Awake", "Min\nSpot", "Min\non demand", "Ceiling"):
        _number(table, head)
    for cost in serving:
        spot, on_demand = _at_min(cost)
        table.add_row(
            cost.model,
            "\n".join(cost.instances),
            _replicas(cost),
            _hours(cost.awake_hours),
            spot,
            on_demand,
            _amount(cost.ceiling_usd),
        )
    return table


def _models_list(serving: Sequence[ServingCost]) -> Iterator[RenderableType]:
    """The same, for names too long or a window too narrow for a table."""
    for cost in serving:
        spot, on_demand = _at_min(cost)
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style=_QUIET, no_wrap=True)
        facts.add_column(overflow="fold")
        facts.add_row("runs on", ", ".join(cost.instances))
        facts.add_row("replicas", _replicas(cost))
        facts.add_row("awake", _hours(cost.awake_hours))
        facts.add_row("min, Spot", spot)
        facts.add_row("min, on demand", on_demand)
        facts.add_row("ceiling", _amount(cost.ceiling_usd))
        yield Text(cost.model, _NAME)
        yield Padding(facts, (0, 0, 0, 2))


def _at_min(cost: ServingCost) -> tuple[str, str]:
    return _by_purchase(cost, cost.at_min_usd)


def _by_purchase(cost: ServingCost, usd: Callable[[Purchase], Decimal | None]) -> tuple[str, str]:
    """On Spot and on demand."""
    spot = _NOT_USED if cost.spot_use == "never" else _amount(usd("spot"))
    on_demand = _NOT_USED if cost.spot_use == "only" else _amount(usd("on-demand"))
    return spot, on_demand


def _known(cost: ServingCost, usd: Callable[[Purchase], Decimal | None]) -> str:
    amounts = zip(_by_purchase(cost, usd), ("on Spot", "on demand"), strict=True)
    return " or ".join(f"{amount} {words}" for amount, words in amounts if amount not in (_NOT_USED, _UNKNOWN))


def _warm(cost: ServingCost) -> Text:
    replicas = _number_of(range(cost.warm_replicas), "more replica")
    paid = _known(cost, cost.warm_usd)
    return Text(f"{cost.model} keeps room for {replicas} warm{f': {paid} of it' if paid else ''}.")


def _asleep(cost: ServingCost) -> Text:
    saved = _known(cost, cost.asleep_saves_usd)
    saves = f": {saved} saved" if saved and cost.min_replicas else ""
    return Text(f"{cost.model} is asleep {_hours(cost.asleep_hours)} a month by its schedule{saves}.")


def _fixed(fixed: FixedCost, console: Console) -> Iterator[RenderableType]:
    yield ""
    yield Text("Fixed cost: a month with no traffic and every model asleep", _HEADING)
    whole = _fixed_table(fixed, "Price from", _source)
    if _fits(whole, console):
        yield whole
    else:
        sources = _sources(line.price for line in fixed.lines)
        yield _fixed_table(fixed, "From", lambda price: f"[{sources.index(_source(price)) + 1}]")
        yield from _footnotes(fixed, sources)
    yield _quiet(
        f"{HOURS_A_MONTH} h a month, {fixed.price_region} prices. Traffic comes on top: load balancer "
        "capacity units (zero here), data through NAT and between zones, requests."
    )
    if fixed.region != fixed.price_region:
        yield Text(f"All prices are of {fixed.price_region}; {fixed.region} differs.", _ALERT)


def _footnotes(fixed: FixedCost, sources: Sequence[str]) -> Iterator[Text]:
    """The numbered sources, those of one day together."""
    by_day: dict[date, dict[str, None]] = {}
    for line in fixed.lines:
        note = f"[{sources.index(_source(line.price)) + 1}] {line.price.source}"
        by_day.setdefault(line.price.checked, {})[note] = None
    for day, notes in by_day.items():
        yield _quiet(f"Prices of {day}: {', '.join(notes)}.")


def _fixed_table(fixed: FixedCost, source_head: str, source: Callable[[Price], str]) -> Table:
    table = _table(total=True)
    table.add_column("Item", "TOTAL", overflow="fold")
    _number(table, "Quantity")
    table.add_column("Unit", no_wrap=True)
    _number(table, "Price")
    _number(table, "Monthly", dollars(fixed.monthly_usd), style=_MONEY)
    table.add_column(source_head, style=_QUIET, no_wrap=True)
    for line in fixed.lines:
        table.add_row(
            line.name,
            _quantity(line),
            _unit(line.price),
            _unit_price(line.price),
            dollars(line.monthly_usd),
            source(line.price),
        )
    return table


def _together(
    platform: Platform, fixed: FixedCost, serving: Sequence[ServingCost], today: date
) -> Iterator[RenderableType]:
    """From the least to the most that the platform can cost, and the budget beside it."""
    spot = [cost.at_min_usd("spot") for cost in serving]
    on_demand = [cost.at_min_usd("on-demand") for cost in serving]
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    _number(table)
    table.add_row("Every model asleep", dollars(fixed.monthly_usd))
    table.add_row("Min replicas, on Spot where allowed", _sum(fixed, spot))
    table.add_row("Min replicas, on demand where allowed", _sum(fixed, on_demand))
    table.add_row("Ceiling", _sum(fixed, [cost.ceiling_usd for cost in serving]))
    use = budget_use(platform, today)
    if use:
        table.add_row(f"Budget, {use.fixed_share:.0%} of it taken by the fixed cost", dollars(use.budget_usd))
    yield ""
    yield Text("All together, a month", _HEADING)
    yield table


def _sum(fixed: FixedCost, amounts: Iterable[Decimal | None]) -> str:
    """The fixed cost and `amounts`; one that is unknown makes the sum unknown."""
    total = fixed.monthly_usd
    for amount in amounts:
        if amount is None:
            return _UNKNOWN
        total += amount
    return dollars(total)


def _warnings(warnings: Sequence[problems.Warning]) -> Iterator[RenderableType]:
    if not warnings:
        return
    yield ""
    yield Text(_number_of(warnings, "warning"), _ALERT)
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style=_ALERT, no_wrap=True)
    table.add_column(overflow="fold")
    for number, warning in enumerate(warnings, 1):
        table.add_row(f"{number}.", Text(warning.path, _NAME, overflow="fold"))
        table.add_row("", warning.message)
        table.add_row("", Text(f"→ {warning.remedy}", overflow="fold"))
    yield table


def _next(synthesis: Synthesis) -> Iterator[RenderableType]:
    file = "" if synthesis.platform_file == DEFAULT_FILE else f" PLATFORM={shlex.quote(synthesis.platform_file)}"
    diff, deploy = (f"`make diff{file}`", _HEADING), (f"`make deploy{file}`", _HEADING)
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("Next:", Text.assemble(diff, " shows what would change in the account,"))
    table.add_row("", Text.assemble(deploy, " changes it."))
    yield ""
    yield table


def _table(*, total: bool = False) -> Table:
    return Table(
        box=_RULES,
        show_edge=False,
        show_footer=total,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style=_HEADING,
        footer_style=_HEADING,
        border_style=_QUIET,
    )


def _number(table: Table, head: str = "", total: str = "", style: str = "") -> None:
    table.add_column(head, total, justify="right", no_wrap=True, footer_style=style or None)


def _fits(table: Table, console: Console) -> bool:
    """Whether no cell has to wrap. Measured without a limit: a table asks for no more than it is offered."""
    unlimited = console.options.update(width=WIDEST * 10)
    return console.measure(table, options=unlimited).maximum <= console.width


def _number_of(things: Sized, noun: str) -> str:
    return f"1 {noun}" if len(things) == 1 else f"{len(things)} {noun}s"


def _quiet(sentence: str) -> Text:
    return Text(sentence, _QUIET)


def _sources(prices: Iterable[Price]) -> list[str]:
    return list(dict.fromkeys(map(_source, prices)))


def _source(price: Price) -> str:
    return f"{price.source}, {price.checked}"


def _amount(usd: Decimal | None) -> str:
    return _UNKNOWN if usd is None else dollars(usd)


def _quantity(line: CostLine) -> str:
    whole = line.quantity == line.quantity.to_integral_value()
    return f"{line.quantity:,.0f}" if whole else f"{line.quantity:,.1f}"


def _unit(price: Price) -> str:
    """Short, and without the month that the table is about."""
    return _UNITS.get(price.unit, price.unit.removesuffix("-month"))


def _unit_price(price: Price) -> str:
    """Every digit of the price, cents at least."""
    digits = -int(price.usd.normalize().as_tuple().exponent)
    return f"${price.usd:,.{max(digits, 2)}f}"


def _hours(hours: Decimal) -> str:
    return f"{hours:,.0f} h"


def _replicas(cost: ServingCost) -> str:
    return f"{cost.min_replicas}–{cost.max_replicas}"
