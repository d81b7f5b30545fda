"""The page of `report`: everything about one platform under its traffic, with charts.

The tables are those of `simulate` and `compare`; the charts show the same numbers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from genai_finops.planner.present import common, comparison, simulation
from genai_finops.planner.present.document import Block, Document, Heading, KeyFigures, Paragraph
from genai_finops.planner.report import charts
from genai_finops.planner.results import (
    Alternative,
    Comparison,
    Latency,
    ModelSimulation,
    PlatformSimulation,
    Sensitivity,
    SensitivityPoint,
)

MOST_ALTERNATIVES: Final = 12
"""The cheapest; the table has all."""


@dataclass(frozen=True, slots=True)
class Report:
    """Answer of `report`.

    Attributes:
        comparisons: of the models with traffic, in their order.
    """

    simulation: PlatformSimulation
    comparisons: tuple[Comparison, ...]
    sensitivity: Sensitivity

    @property
    def exit_code(self) -> int:
        return self.simulation.exit_code


def page(result: Report) -> Document:
    simulated = result.simulation
    loads = "; ".join(f"{model.model} under {model.traffic.name}" for model in simulated.models)
    return Document(
        f"Cost and capacity of {simulated.platform}",
        f"{simulated.region}. {loads}. Seed {simulated.seed}.",
        tuple(_blocks(result)),
    )


def _blocks(result: Report) -> Iterator[Block]:
    simulated = result.simulation
    yield KeyFigures(tuple(simulation.key_figures(simulated)))
    yield from common.alerts(simulation.warnings(simulated))
    yield Heading("What it costs")
    parts = _parts(simulated)
    if parts is None:
        yield Paragraph("Some prices are not known, so there is no chart of the cost.", "bad")
    else:
        yield charts.cost_by_component(parts, "a month")
    yield from simulation.cost_tables(simulated)
    for model in simulated.models:
        yield from _model(model)
    for each in result.comparisons:
        yield Heading(f"Alternatives for {each.model}")
        yield Paragraph(f"{comparison.load_of(each.load)} Objective: {common.objective(each.objective)}.")
        feasible = [_alternative(other) for other in each.alternatives if other.is_feasible]
        if feasible:
            yield charts.cost_per_million(feasible[:MOST_ALTERNATIVES], "output tokens")
        yield from comparison.alternatives(each)
    yield Heading("What if")
    yield charts.sensitivity(
        {"Spot price": _points(result.sensitivity.spot_price), "Traffic": _points(result.sensitivity.traffic)}
    )
    if result.comparisons:
        yield Heading("The article's table, and its corrections")
        yield from comparison.article(result.comparisons[0].article)
    yield Heading("Where the numbers come from")
    yield simulation.notes(simulated)
    yield common.notes("Alternatives", (note for each in result.comparisons for note in comparison.notes(each)))


def _parts(simulated: PlatformSimulation) -> list[charts.Part] | None:
    """By use, over all models; None when a price is not known."""
    if simulated.total_monthly_usd is None:
        return None
    parts = [
        charts.Part(use, label, _sum(getattr(model.nominal.monthly, f"{use}_usd") for model in simulated.models))
        for use, label in simulation.USES
    ]
    least = _sum(each.at_min_monthly_usd for each in simulated.without_traffic)
    parts.append(charts.Part("other", "models without traffic", least))
    parts.append(charts.Part("fixed", "fixed: cluster, network", float(simulated.fixed_monthly_usd)))
    return parts


def _sum(amounts: Iterable[Decimal | None]) -> float:
    return float(sum((amount for amount in amounts if amount is not None), Decimal(0)))


def _model(model: ModelSimulation) -> Iterator[Block]:
    yield Heading(f"{model.model} over time")
    yield Paragraph(simulation.placed(model))
    if model.intervals:
        rows = [
            charts.Interval(
                start=each.start,
                length_seconds=each.length_seconds,
                arrived=each.arrived,
                waiting_mean=each.waiting_mean,
                waiting_max=each.waiting_max,
                ready_mean=each.ready_mean,
                starting_mean=each.starting_mean,
                spot_nodes=each.spot_nodes_mean,
                on_demand_nodes=each.on_demand_nodes_mean,
                interruptions=each.interruptions,
            )
            for each in model.intervals
        ]
        yield charts.replicas_and_queue(rows)
        yield charts.nodes_by_purchase(rows)
    yield Heading(f"{model.model}: latency, requests and cost")
    shown = [
        _distribution("Time to first token", model.nominal.time_to_first_token),
        _distribution("Time between tokens, mean of a request", model.nominal.request_inter_token),
    ]
    yield charts.latency_distribution(shown)
    yield from simulation.model_tables(model)


def _distribution(name: str, found: Latency) -> charts.Distribution:
    quantiles = {0.5: found.p50_seconds, 0.95: found.p95_seconds, 0.99: found.p99_seconds}
    known = {share: at for share, at in quantiles.items() if at is not None}
    return charts.Distribution(name, found.edges_seconds, found.counts, known, found.objective_seconds)


def _alternative(each: Alternative) -> charts.Alternative:
    middle = each.usd_per_million_output_tokens
    assert middle is not None  # a feasible one has its cost
    low, high = each.usd_per_million_output_tokens_low, each.usd_per_million_output_tokens_high
    return charts.Alternative(
        label=f"{each.instance}{charts.FOLD}{common.PURCHASES[each.purchase]}, TP {each.tensor_parallel_size}",
        usd_per_million=float(middle),
        low=float(low if low is not None else middle),
        high=None if high is None else float(high),
    )


def _points(line: tuple[SensitivityPoint, ...]) -> list[charts.Point]:
    return [
        charts.Point(point.factor, float(point.monthly_usd), point.verdict != "does not hold")
        for point in line
        if point.monthly_usd is not None
    ]
