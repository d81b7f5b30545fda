"""The page of `simulate`: whether it holds, what it costs, and what happens hour by hour."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from genai_finops.planner.present import common, values
from genai_finops.planner.present.document import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    Heading,
    KeyFigures,
    Paragraph,
    Row,
    Table,
    Tone,
    number,
    row,
)
from genai_finops.planner.results import CostSplit, Interval, Latency, ModelSimulation, PlatformSimulation, Run
from genai_finops.spec import Warning

MOST_ROWS: Final = 200
"""A longer time is shown by the day; JSON has every interval."""

USES: Final = (
    ("busy", "serving requests"),
    ("idle", "ready, without requests"),
    ("starting", "cold starts and draining"),
    ("placeholder", "held warm"),
    ("empty", "slots that nothing uses"),
)
"""What nodes are paid for, by the field of a cost split."""


def page(result: PlatformSimulation) -> Document:
    return Document(
        f"What would happen: {result.platform}",
        f"{result.region}, {values.plural(len(result.models), 'model')} with traffic, seed {result.seed}.",
        (
            KeyFigures(tuple(key_figures(result))),
            *common.alerts(warnings(result)),
            *(block for model in result.models for block in _model(model)),
            Heading("All together"),
            *cost_tables(result),
            notes(result),
        ),
    )


def warnings(result: PlatformSimulation) -> Iterator[Warning]:
    yield from result.warnings
    for model in result.models:
        yield from model.warnings


def key_figures(result: PlatformSimulation) -> Iterator[Figure]:
    """What is asked first: the bill, and whether each model's objective is met."""
    bar = common.interval(result.total_low_monthly_usd, result.total_high_monthly_usd)
    budget = f"budget {values.usd(result.budget_monthly_usd)}" if result.budget_monthly_usd is not None else "no budget"
    yield Figure(
        "A month",
        Cell(values.usd(result.total_monthly_usd), "bad" if result.is_over_budget else "plain"),
        "; ".join(filter(None, (bar, budget))),
    )
    for model in result.models:
        yield objective_figure(model)


def objective_figure(model: ModelSimulation) -> Figure:
    share, slow = model.nominal.attainment_share, model.slow.attainment_share
    said = f"{values.percent(share)} of requests" if share is not None else "no requests"
    at_slow_end = f", {values.percent(slow)} at the slow end of the error bars" if slow is not None else ""
    asked = f"asked for: {common.objective(model.objective)}"
    return Figure(f"{model.model}: objective", common.verdict(model.verdict), f"{said}{at_slow_end}; {asked}")


def _model(model: ModelSimulation) -> Iterator[Block]:
    yield Heading(model.model)
    yield Paragraph(placed(model))
    yield from model_tables(model)
    yield over_time(model.intervals)


def placed(model: ModelSimulation) -> str:
    """On what it runs, and what comes."""
    layout = model.layout
    return (
        f"{common.bought(layout.instance, layout.purchases)}; tensor parallel size {layout.tensor_parallel_size}, "
        f"{values.plural(layout.replicas_per_node, 'replica')} a node. {common.traffic(model.traffic)}"
    )


def model_tables(model: ModelSimulation) -> Iterator[Block]:
    """What a model costs for each token, how fast it is, and what became of its requests and its money."""
    yield KeyFigures(common.unit_costs(model))
    if model.band_reason:
        yield Paragraph(f"Read percentiles as a band from the fast to the slow end: {model.band_reason}.", "bad")
    yield latency_table(model)
    yield _counts(model.nominal)
    yield cost_table(model)
    yield _capacity(model.nominal)


def latency_table(model: ModelSimulation) -> Table:
    """Every kind over the same requests: those that were completed."""
    kinds = (
        ("first token", "time_to_first_token"),
        ("between tokens, each gap", "inter_token"),
        ("between tokens, mean of a request", "request_inter_token"),
        ("end to end", "end_to_end"),
    )
    heads = ("mean", "p50", "p90", "p95", "p99", "p95 fast–slow", "objective")
    return Table(
        "Latency of completed requests",
        (Column("Time to"), *(number(head, "ms") for head in heads)),
        tuple(_latency(label, name, model) for label, name in kinds),
    )


def _latency(label: str, name: str, model: ModelSimulation) -> Row:
    found: Latency = getattr(model.nominal, name)
    ends = sorted(
        each
        for each in (getattr(model.fast, name).p95_seconds, getattr(model.slow, name).p95_seconds)
        if each is not None
    )
    wanted = found.objective_seconds
    missed = wanted is not None and found.p95_seconds is not None and found.p95_seconds > wanted
    origin = common.origin(model)
    return row(
        label,
        values.milliseconds(found.mean_seconds),
        values.milliseconds(found.p50_seconds),
        values.milliseconds(found.p90_seconds),
        Cell(values.milliseconds(found.p95_seconds), "bad" if missed else "plain", origin if found.count else None),
        values.milliseconds(found.p99_seconds),
        "–".join(dict.fromkeys(map(values.milliseconds, ends))),
        "" if wanted is None else values.milliseconds(wanted),
    )


def _counts(run: Run) -> Table:
    counts = run.counts
    rows = (
        ("completed", counts.completed, ""),
        ("within the objective", counts.good, "goodput"),
        ("refused", counts.refused, "longer than the model takes, or than its cache"),
        ("timed out", counts.timed_out, "gave up, waiting or running"),
        ("lost", counts.lost, "their node was taken away"),
        ("evicted", counts.evictions, "run again, for want of room in the cache"),
    )
    return Table(
        "What became of the requests",
        (Column("Requests"), number("Count"), number("Share"), Column("", wraps=True)),
        (
            row("arrived", values.count(counts.arrived), "", ""),
            *(row(f"  {label}", values.count(many), _share(many, counts.arrived), note) for label, many, note in rows),
        ),
    )


def _share(many: int, of: int) -> str:
    return values.percent(many / of) if of and many <= of else ""


def cost_table(model: ModelSimulation) -> Table:
    """Node time by what it was paid for, with the nodes' volumes."""
    run, monthly = model.nominal.simulated, model.nominal.monthly
    whole = monthly.total_usd
    bar = model.band(lambda each: each.monthly.total_usd)
    rows = [
        row(f"  {label}", _amount(run, use), _amount(monthly, use), _part(getattr(monthly, f"{use}_usd"), whole), "")
        for use, label in USES
    ]
    return Table(
        "What the nodes cost",
        (
            Column("Paid for"),
            number("This run", "USD"),
            number("A month", "USD"),
            number("Share"),
            number("A month, error bar", "USD"),
        ),
        (
            *rows,
            row(
                "TOTAL",
                _amount(run, "total"),
                Cell(_amount(monthly, "total"), origin=common.origin(model)),
                "",
                common.interval(bar[0], bar[2]).replace("$", "") if bar else "",
                kind="total",
            ),
            row("  of it on Spot", _amount(run, "spot"), _amount(monthly, "spot"), _part(monthly.spot_usd, whole), ""),
            row(
                "  of it on demand",
                _amount(run, "on_demand"),
                _amount(monthly, "on_demand"),
                _part(monthly.on_demand_usd, whole),
                "",
            ),
        ),
    )


def _amount(split: CostSplit, name: str) -> str:
    amount: Decimal | None = getattr(split, f"{name}_usd")
    return values.usd(amount).replace("$", "")


def _part(amount: Decimal | None, whole: Decimal | None) -> str:
    return "" if amount is None or not whole else values.percent(amount / whole)


def _capacity(run: Run) -> Table:
    hours = (
        f"{values.significant(float(run.spot_node_hours))} Spot, {values.significant(float(run.on_demand_node_hours))}"
    )
    rows = [
        ("replicas busy", values.percent(run.utilization_share), "of the time they were ready"),
        ("requests waited for a slot", values.percent(run.saturated_share), "of the time with ready replicas"),
        ("most replicas", values.count(run.peak_replicas), "ready or starting"),
        ("most nodes", values.count(run.peak_nodes), f"{hours} on-demand node hours"),
        (
            "node launches",
            values.count(run.launches),
            f"{values.count(run.on_demand_launches)} of them on demand for want of Spot",
        ),
        ("interruptions", values.count(run.interruptions), "Spot nodes taken away"),
    ]
    if run.at_limit_seconds:
        rows.append(("at the limit of nodes", values.duration(run.at_limit_seconds), "replicas were wanted in vain"))
    return Table(
        "Replicas and nodes",
        (Column("What"), number("How much"), Column("", wraps=True)),
        tuple(row(*each) for each in rows),
    )


def over_time(intervals: Sequence[Interval]) -> Table:
    """A row for each interval, or for each day when there are many; without columns that never say anything."""
    by_day = len(intervals) > MOST_ROWS
    shown = _days(intervals) if by_day else intervals
    short = shown[0].length_seconds if shown else 3600.0
    caption = (
        "Day by day, with the percentiles of its worst hour"
        if by_day
        else "Hour by hour"
        if short == 3600
        else f"Every {values.duration(short)}"
    )
    columns = (
        Column("From"),
        number("Arrived"),
        number("Good"),
        number("Queue", "mean"),
        number("", "most"),
        number("Ready", "replicas"),
        number("Starting", "replicas"),
        number("Asleep"),
        number("Spot", "nodes"),
        number("On demand", "nodes"),
        number("Taken", "nodes"),
        number("First token", "p95 ms"),
        number("Between", "p95 ms"),
        number("Cost", "USD"),
    )
    rows = tuple(map(_interval, shown))
    said = [index for index in range(len(columns)) if any(each.cells[index].text for each in rows)]
    return Table(
        f"{caption}, UTC",
        tuple(columns[index] for index in said or range(len(columns))),
        tuple(Row(tuple(each.cells[index] for index in said)) for each in rows),
    )


def _interval(each: Interval) -> Row:
    return row(
        f"{each.start:%a %m-%d %H:%M}",
        values.count(each.arrived),
        values.percent(each.good / each.arrived) if each.arrived else "",
        values.mean(each.waiting_mean),
        values.count(each.waiting_max),
        values.mean(each.ready_mean),
        values.mean(each.starting_mean) if each.starting_mean else "",
        values.percent(each.asleep_share, 0) if each.asleep_share else "",
        values.mean(each.spot_nodes_mean) if each.spot_nodes_mean else "",
        values.mean(each.on_demand_nodes_mean) if each.on_demand_nodes_mean else "",
        values.count(each.interruptions) if each.interruptions else "",
        values.milliseconds(each.time_to_first_token_p95_seconds),
        values.milliseconds(each.inter_token_p95_seconds),
        values.usd(each.usd).replace("$", ""),
    )


def _days(intervals: Sequence[Interval]) -> list[Interval]:
    """Intervals of one day in UTC as one. Percentiles of a day are not in its hours: the worst hour's stand for it."""
    days: dict[datetime, list[Interval]] = {}
    for each in intervals:
        days.setdefault(each.start.replace(hour=0, minute=0, second=0, microsecond=0), []).append(each)
    return [_merged(parts) for parts in days.values()]


def _merged(parts: Sequence[Interval]) -> Interval:
    length = sum(each.length_seconds for each in parts)
    amounts = [each.usd for each in parts]
    known = [amount for amount in amounts if amount is not None]

    def mean(value: Callable[[Interval], float]) -> float:
        return sum(value(each) * each.length_seconds for each in parts) / length if length else 0.0

    def worst(found: Iterable[float | None]) -> float | None:
        return max((each for each in found if each is not None), default=None)

    return Interval(
        start=parts[0].start,
        length_seconds=length,
        arrived=sum(each.arrived for each in parts),
        completed=sum(each.completed for each in parts),
        good=sum(each.good for each in parts),
        input_tokens=sum(each.input_tokens for each in parts),
        output_tokens=sum(each.output_tokens for each in parts),
        waiting_mean=mean(lambda each: each.waiting_mean),
        waiting_max=max(each.waiting_max for each in parts),
        running_mean=mean(lambda each: each.running_mean),
        ready_mean=mean(lambda each: each.ready_mean),
        starting_mean=mean(lambda each: each.starting_mean),
        asleep_share=mean(lambda each: each.asleep_share),
        spot_nodes_mean=mean(lambda each: each.spot_nodes_mean),
        on_demand_nodes_mean=mean(lambda each: each.on_demand_nodes_mean),
        interruptions=sum(each.interruptions for each in parts),
        time_to_first_token_p50_seconds=worst(each.time_to_first_token_p50_seconds for each in parts),
        time_to_first_token_p95_seconds=worst(each.time_to_first_token_p95_seconds for each in parts),
        inter_token_p95_seconds=worst(each.inter_token_p95_seconds for each in parts),
        usd=sum(known, Decimal(0)) if len(known) == len(amounts) else None,
        costs=(),
    )


def cost_tables(result: PlatformSimulation) -> Iterator[Block]:
    """The platform's bill: models, then what is paid whether or not anything is served."""
    rows = [
        row(f"  {model.model}, {model.verdict}", _usd(model.nominal.monthly.total_usd), _bar(model))
        for model in result.models
    ]
    rows += [
        row(
            f"  {each.model}, no traffic given: at min_replicas",
            _usd(each.at_min_monthly_usd),
            f"at most {values.usd(each.ceiling_monthly_usd)}".replace("$", ""),
        )
        for each in result.without_traffic
    ]
    rows.append(row("  fixed cost", _usd(result.fixed_monthly_usd), ""))
    total = common.interval(result.total_low_monthly_usd, result.total_high_monthly_usd)
    rows.append(row("OVERALL TOTAL", _usd(result.total_monthly_usd), total.replace("$", ""), kind="total"))
    if result.budget_monthly_usd is not None:
        tone: Tone = "bad" if result.is_over_budget else "plain"
        rows.append(row(Cell("  budget", tone), Cell(_usd(result.budget_monthly_usd), tone), ""))
    yield Table("A month", (Column("What"), number("A month", "USD"), number("error bar", "USD")), tuple(rows))
    yield fixed_table(result)


def fixed_table(result: PlatformSimulation) -> Table:
    lines = [
        row(
            f"  {line.name}",
            values.quantity(line.quantity),
            line.unit,
            values.unit_price(line.usd_per_unit),
            Cell(_usd(line.monthly_usd), origin="assumed" if line.provenance == "assumed" else None),
        )
        for line in result.fixed_lines
    ]
    total = row("TOTAL", "", "", "", _usd(result.fixed_monthly_usd), kind="total")
    return Table(
        "Fixed cost: with no traffic and every model asleep",
        (Column("Item"), number("Monthly quantity"), Column("Unit"), number("Price", "USD"), number("A month", "USD")),
        (*lines, total),
    )


def _bar(model: ModelSimulation) -> str:
    bar = model.band(lambda run: run.monthly.total_usd)
    return common.interval(bar[0], bar[2]).replace("$", "") if bar else ""


def _usd(amount: Decimal | None) -> str:
    return values.usd(amount).replace("$", "")


def notes(result: PlatformSimulation) -> Block:
    found = [common.month_note(result.price_region, result.region)]
    for model in result.models:
        found += common.performance_notes(model.model, model.decode_origin, model.prefill_origin)
        found += common.price_notes(model.prices)
    days: dict[str, dict[str, None]] = {}
    for line in result.fixed_lines:
        days.setdefault(line.checked.isoformat(), {})[line.source] = None
    found += [f"Fixed cost, prices of {day}: {', '.join(sources)}." for day, sources in days.items()]
    found.append(
        "Costs for tokens are views of one amount and do not add up. Latencies are of completed requests; those that "
        "were refused, gave up or were lost count against the objective."
    )
    return common.notes("Assumptions and sources", found)
