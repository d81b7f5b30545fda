"""Simulates a platform under its traffic, three times each model: as its numbers are, and at the ends of their error
bars. So how far the performance may be off shows in the objective and in the cost, not in a footnote.

All runs share one seed: the same requests and the same luck with Spot, so that they differ by what was changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Final

from genai_finops.planner import money
from genai_finops.planner.fixed_cost import CostLine, ServingCost, fixed_monthly_cost, serving_cost
from genai_finops.planner.loads import measured
from genai_finops.planner.objectives import verdict
from genai_finops.planner.performance.model import MeasuredProfile
from genai_finops.planner.results import (
    CostSplit,
    Interval,
    Latency,
    Layout,
    ModelSimulation,
    MonthlyLine,
    NodeCost,
    PlatformSimulation,
    Run,
    UntrafficedModel,
    Verdict,
)
from genai_finops.planner.scenarios import Case, case_of
from genai_finops.planner.simulation import run as simulation
from genai_finops.planner.simulation.outcome import GROWTH, LOWEST_SECONDS, Latencies, Outcome
from genai_finops.planner.steady_state import highest_rate
from genai_finops.planner.traffic.requests import Traffic
from genai_finops.spec import Platform, Warning

NEAR_CAPACITY: Final = 0.9
"""Of the capacity. Above, an error of a tenth in the performance decides whether a queue grows, and a percentile is a
band."""

SHORT_OF_A_WEEK_SECONDS: Final = 7 * 86400

_ENDS: Final = (-1, 0, 1)
_AT_ONCE: Final = 16
"""Runs between two reports of progress."""

_CLASSES_IN_ONE: Final = 5
"""Of the simulation's latency classes, so many make one of the result: five percent are finer than a chart."""

Progress = Callable[[int, int], None]


def simulate_platform(
    platform: Platform,
    traffic: Mapping[str, Traffic],
    *,
    today: date,
    seed: int = 0,
    profiles: Sequence[MeasuredProfile] = (),
    inter_token_seconds: float | None = None,
    spot_series: Mapping[str, money.PriceOverTime] | None = None,
    spot_factor: Decimal = Decimal(1),
    progress: Progress | None = None,
) -> PlatformSimulation:
    """What happens on `platform`, and what it costs.

    Args:
        traffic: by the name of the model; models without any are priced at their minimum.
        today: decides what the control plane costs.
        profiles: measured performance that takes the place of the built-in one.
        inter_token_seconds: an objective for the mean gap of a request, which the platform file does not have.
        spot_series: Spot prices over time, by instance type.
        spot_factor: multiplies constant Spot prices.

    Raises:
        ValueError: for traffic of a model that is not there, or one that cannot be simulated.
    """
    _check_names(platform, traffic)
    cases = [
        case_of(
            platform,
            index,
            traffic[model.name],
            measured(traffic[model.name]),
            profiles=profiles,
            inter_token_seconds=inter_token_seconds,
            spot_factor=spot_factor,
        )
        for index, model in enumerate(platform.models)
        if model.name in traffic
    ]
    outcomes = simulated([(case, end) for case in cases for end in _ENDS], seed, progress)
    models = tuple(
        _model(case, outcomes[3 * index : 3 * index + 3], (spot_series or {}).get(case.instance.name))
        for index, case in enumerate(cases)
    )
    return _platform(platform, models, cases, today, seed)


def simulated(
    cases: Sequence[tuple[Case, float]], seed: int, progress: Progress | None = None, done: int = 0, of: int = 0
) -> list[Outcome]:
    """Runs cases, each at an end of its error bars, side by side.

    Args:
        progress: told after every few how many are done.
        done, of: runs before these, and of all, for `progress`.
    """
    found: list[Outcome] = []
    for start in range(0, len(cases), _AT_ONCE):
        runs = [simulation.Run(case.at(end), case.traffic, seed) for case, end in cases[start : start + _AT_ONCE]]
        found += simulation.simulate_many(runs)
        if progress:
            progress(done + len(found), of or len(cases))
    return found


def _check_names(platform: Platform, traffic: Mapping[str, Traffic]) -> None:
    names = [model.name for model in platform.models]
    for name in traffic:
        if name not in names:
            raise ValueError(f"There is traffic for {name!r}, and no such model. The models are: {', '.join(names)}.")


def _platform(
    platform: Platform, models: tuple[ModelSimulation, ...], cases: Sequence[Case], today: date, seed: int
) -> PlatformSimulation:
    fixed = fixed_monthly_cost(platform, today)
    busy = {model.model for model in models}
    without = tuple(_untrafficed(cost) for cost in serving_cost(platform) if cost.model not in busy)
    least = money.total(each.at_min_monthly_usd for each in without)

    def whole(end: int) -> Decimal | None:
        """The platform with every model's cheapest (0), nominal (1) or dearest (2) run."""
        bands = [model.band(lambda run: run.monthly.total_usd) for model in models]
        return money.total((fixed.monthly_usd, least, *(band[end] if band else None for band in bands)))

    return PlatformSimulation(
        platform=platform.name,
        region=platform.region,
        price_region=fixed.price_region,
        seed=seed,
        models=models,
        without_traffic=without,
        fixed_lines=tuple(map(_line, fixed.lines)),
        fixed_monthly_usd=fixed.monthly_usd,
        serving_monthly_usd=money.total((least, *(model.nominal.monthly.total_usd for model in models))),
        total_monthly_usd=whole(1),
        total_low_monthly_usd=whole(0),
        total_high_monthly_usd=whole(2),
        budget_monthly_usd=platform.budget.monthly_usd if platform.budget else None,
        warnings=tuple(_platform_warnings(platform, models, cases, fixed.price_region)),
    )


def _untrafficed(cost: ServingCost) -> UntrafficedModel:
    return UntrafficedModel(cost.model, cost.at_min_usd("spot"), cost.ceiling_usd)


def _line(line: CostLine) -> MonthlyLine:
    return MonthlyLine(
        name=line.name,
        quantity=line.quantity,
        unit=line.price.unit,
        usd_per_unit=line.price.usd,
        monthly_usd=line.monthly_usd,
        paths=line.paths,
        provenance=line.provenance,
        source=line.price.source,
        checked=line.price.checked,
    )


def _model(case: Case, outcomes: Sequence[Outcome], series: money.PriceOverTime | None) -> ModelSimulation:
    fast, nominal, slow = (run_of(case, outcome, series) for outcome in outcomes)
    decided = verdict(case.target, nominal, slow)
    band_reason = _band_reason(case, outcomes[1], decided)
    return ModelSimulation(
        model=case.model.name,
        layout=Layout(
            case.instance.name,
            case.model.tensor_parallel_size,
            case.scenario.nodes.replicas_per_node,
            case.scenario.nodes.purchases,
        ),
        objective=case.target,
        traffic=case.load.summary,
        verdict=decided,
        nominal=nominal,
        fast=fast,
        slow=slow,
        band_reason=band_reason,
        decode_origin=case.scenario.performance.decode_origin,
        prefill_origin=case.scenario.performance.prefill_origin,
        prices=tuple(case.prices.values()),
        intervals=_intervals(case, outcomes[1], series),
        warnings=tuple(_warnings(case, nominal, band_reason)),
    )


def run_of(case: Case, outcome: Outcome, series: money.PriceOverTime | None = None) -> Run:
    """One run in numbers, priced."""
    counts, start = outcome.counts, case.scenario.start
    paid = money.entries(outcome, start, case.prices, series)
    simulated = money.split(paid)
    period = _period_seconds(case, outcome)
    in_period = money.split(money.within(paid, start, start + timedelta(seconds=period)))
    hours = {
        purchase: sum((entry.node_seconds for entry in paid if entry.purchase == purchase), Decimal(0))
        / money.SECONDS_AN_HOUR
        for purchase in ("spot", "on-demand")
    }
    return Run(
        counts=counts,
        attainment_share=counts.good / counts.arrived if counts.arrived else None,
        time_to_first_token=_latency(outcome.time_to_first_token, case.target.time_to_first_token_seconds),
        inter_token=_latency(outcome.inter_token, None),
        request_inter_token=_latency(outcome.request_inter_token, case.target.inter_token_seconds),
        end_to_end=_latency(outcome.end_to_end, None),
        simulated=simulated,
        monthly=money.scaled(in_period, money.month_factor(period)),
        unit_cost=money.unit_cost(simulated.total_usd, counts),
        idle_cost_share=_idle_share(simulated),
        cold_start_cost_share=money.share(simulated.starting_usd, simulated.total_usd),
        utilization_share=outcome.utilization,
        saturated_share=outcome.saturated_share,
        spot_node_hours=hours["spot"],
        on_demand_node_hours=hours["on-demand"],
        peak_replicas=outcome.peak_replicas,
        peak_nodes=outcome.peak_nodes,
        interruptions=outcome.interruptions,
        launches=outcome.launches,
        on_demand_launches=outcome.on_demand_launches,
        at_limit_seconds=outcome.at_limit_seconds,
        end_seconds=outcome.end_seconds,
    )


def _period_seconds(case: Case, outcome: Outcome) -> float:
    """What is scaled to a month: the traffic's time. A single request has none; then it is the run."""
    return case.load.summary.duration_seconds or outcome.end_seconds


def _idle_share(cost: CostSplit) -> float | None:
    return money.share(money.total((cost.idle_usd, cost.empty_usd)), cost.total_usd)


def _latency(found: Latencies, objective_seconds: float | None) -> Latency:
    edges, counts = _classes(found)
    return Latency(
        count=found.count,
        mean_seconds=found.mean_seconds,
        p50_seconds=found.quantile_seconds(0.5),
        p90_seconds=found.quantile_seconds(0.9),
        p95_seconds=found.quantile_seconds(0.95),
        p99_seconds=found.quantile_seconds(0.99),
        objective_seconds=objective_seconds,
        edges_seconds=edges,
        counts=counts,
    )


def _classes(found: Latencies) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The histogram without its empty ends, five classes in one."""
    filled = found.counts.nonzero()[0].tolist()
    if not filled:
        return (), ()
    first, last = filled[0] // _CLASSES_IN_ONE, filled[-1] // _CLASSES_IN_ONE
    starts = range(first * _CLASSES_IN_ONE, (last + 1) * _CLASSES_IN_ONE, _CLASSES_IN_ONE)
    counts = tuple(int(found.counts[start : start + _CLASSES_IN_ONE].sum()) for start in starts)
    edges = [_lower_edge(start) for start in (*starts, starts.stop)]
    return tuple(edges), counts


def _lower_edge(index: int) -> float:
    """Of a class of the simulation's histograms; the first one begins at 0."""
    return 0.0 if index == 0 else float(LOWEST_SECONDS * GROWTH ** (index - 1))


def _intervals(case: Case, outcome: Outcome, series: money.PriceOverTime | None) -> tuple[Interval, ...]:
    rows, start = outcome.timeline, case.scenario.start
    costs: dict[datetime, list[NodeCost]] = {}
    for entry in money.entries(outcome, start, case.prices, series):
        hours = entry.node_seconds / money.SECONDS_AN_HOUR
        cost = NodeCost(entry.purchase, entry.use, hours, entry.usd_hour, entry.volume_usd_hour, entry.usd)
        costs.setdefault(entry.start, []).append(cost)
    found = []
    for index, second in enumerate(rows.start_seconds.tolist()):
        begin = start + timedelta(seconds=second)
        paid = tuple(costs.get(begin, ()))
        found.append(
            Interval(
                start=begin,
                length_seconds=float(rows.length_seconds[index]),
                arrived=int(rows.arrived[index]),
                completed=int(rows.completed[index]),
                good=int(rows.good[index]),
                input_tokens=int(rows.input_tokens[index]),
                output_tokens=int(rows.output_tokens[index]),
                waiting_mean=float(rows.waiting_mean[index]),
                waiting_max=int(rows.waiting_max[index]),
                running_mean=float(rows.running_mean[index]),
                ready_mean=float(rows.ready_mean[index]),
                starting_mean=float(rows.starting_mean[index]),
                asleep_share=float(rows.asleep_share[index]),
                spot_nodes_mean=float(rows.spot_nodes_mean[index]),
                on_demand_nodes_mean=float(rows.on_demand_nodes_mean[index]),
                interruptions=int(rows.interruptions[index]),
                time_to_first_token_p50_seconds=_known(rows.time_to_first_token_p50_seconds[index]),
                time_to_first_token_p95_seconds=_known(rows.time_to_first_token_p95_seconds[index]),
                inter_token_p95_seconds=_known(rows.inter_token_p95_seconds[index]),
                usd=money.total(cost.usd for cost in paid),
                costs=paid,
            )
        )
    return tuple(found)


def _known(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _band_reason(case: Case, outcome: Outcome, decided: Verdict) -> str:
    """Why percentiles are to be read as a band; empty where they are not."""
    peak = peak_utilization(case, outcome)
    if peak > NEAR_CAPACITY:
        return (
            f"in the busiest interval requests come at {peak:.0%} of what the ready replicas can carry, where an error "
            "of a tenth decides whether a queue grows"
        )
    if decided == "holds at nominal only":
        return "the objective is met as the numbers are, and missed at the slow end of their error bars"
    return ""


def peak_utilization(case: Case, outcome: Outcome) -> float:
    """The busiest interval's requests, over what its ready replicas carry in the long run; 0 without requests."""
    if case.load.mean is None:
        return 0.0
    each = highest_rate(case.scenario.performance, case.load.mean)
    rows = outcome.timeline
    shares = [
        arrived / length / (ready * each)
        for arrived, length, ready in zip(
            rows.arrived.tolist(), rows.length_seconds.tolist(), rows.ready_mean.tolist(), strict=True
        )
        if length > 0 and ready > 0 and each > 0
    ]
    return max(shares, default=0.0)


def _warnings(case: Case, run: Run, band_reason: str) -> Iterator[Warning]:
    path, model, counts = case.path, case.model, run.counts
    unfinished = counts.refused + counts.timed_out + counts.lost
    if counts.arrived == 0:
        yield Warning(path, f"The traffic of {model.name} has no requests.", "Give one that has some.")
    if unfinished:
        which = f"{unfinished:,} of" if counts.completed else "Not one was completed of"
        was = " were not completed" if counts.completed else ""
        yield Warning(
            path,
            f"{which} {counts.arrived:,} requests{was}: {counts.refused:,} refused as too long, {counts.timed_out:,} "
            f"gave up after {case.scenario.objective.timeout_seconds:g} s, {counts.lost:,} lost with their node. They "
            "are in no latency, and count against the objective.",
            "Raise engine.max_model_len for what is refused, replicas for what gives up, drain time for what is lost.",
        )
    if counts.output_tokens and counts.evictions > counts.completed // 10:
        yield Warning(
            f"{path}.engine.max_num_seqs",
            f"{counts.evictions:,} evictions from the KV cache, and {counts.wasted_output_tokens:,} tokens generated "
            "for nothing.",
            "Lower engine.max_num_seqs, or take a device with more memory.",
        )
    yield from _limit_warnings(case, run)
    if band_reason:
        yield Warning(path, f"Read percentiles of {model.name} as a band: {band_reason}.", "Leave more room.")
    yield from _knowledge_warnings(case)


def _limit_warnings(case: Case, run: Run) -> Iterator[Warning]:
    if run.at_limit_seconds > 0:
        yield Warning(
            f"node_pools.{case.instance.family}.max_devices",
            f"For {run.at_limit_seconds:,.0f} s replicas of {case.model.name} were wanted that the limit of devices "
            "forbids.",
            "Raise it, or lower max_replicas.",
        )
    if run.peak_replicas >= case.scenario.scaling.max_replicas and run.saturated_share > 1 - NEAR_CAPACITY:
        yield Warning(
            f"{case.path}.scaling.max_replicas",
            f"All {case.scenario.scaling.max_replicas} replicas of {case.model.name} ran, and requests waited for "
            f"{run.saturated_share:.0%} of the time.",
            "Raise it, or take a faster instance.",
        )


def _knowledge_warnings(case: Case) -> Iterator[Warning]:
    for price in case.prices.values():
        if price.usd_hour is None:
            yield Warning(f"{case.path}.accelerator.sizes", money.unknown_price(price), money.UNKNOWN_PRICE_REMEDY)
    origins = (case.scenario.performance.decode_origin, case.scenario.performance.prefill_origin)
    if any(origin.provenance in ("extrapolated", "assumed") for origin in origins):
        worst = max(origins, key=lambda origin: origin.relative_error)
        yield Warning(
            f"{case.path}.accelerator",
            f"Nobody has published a measurement of {case.model.name} on {case.instance.name}: its performance is "
            f"{worst.provenance}, plus or minus {worst.relative_error:.0%}.",
            "Run a benchmark and give it with `calibrate`.",
        )
    if 0 < case.load.summary.duration_seconds < SHORT_OF_A_WEEK_SECONDS:
        yield Warning(
            case.path,
            f"{_words(case.load.summary.duration_seconds)} of {case.load.summary.name} stand for a month: what the "
            "rest of the week looks like is not in it.",
            "Give traffic of a week, or a profile.",
        )


def _words(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{seconds / 60:.0f} minutes"


def _platform_warnings(
    platform: Platform, models: Sequence[ModelSimulation], cases: Sequence[Case], price_region: str
) -> Iterator[Warning]:
    if platform.region != price_region:
        yield Warning(
            "region",
            f"Prices are those of {price_region}; in {platform.region} the figures are an indication.",
            "Compare them with the price list of the region.",
        )
    for family in platform.families:
        yield from _shared_limit(platform, family, models, cases)


def _shared_limit(
    platform: Platform, family: str, models: Sequence[ModelSimulation], cases: Sequence[Case]
) -> Iterator[Warning]:
    """Models are simulated one by one; together they may want more than their family's pools may have."""
    sharing = [(model, case) for model, case in zip(models, cases, strict=True) if case.instance.family == family]
    devices = sum(model.nominal.peak_nodes * case.instance.devices for model, case in sharing)
    limit = platform.node_pool(family).max_devices
    if len(sharing) > 1 and devices > limit:
        names = ", ".join(model.model for model, _ in sharing)
        yield Warning(
            f"node_pools.{family}.max_devices",
            f"At their peaks {names} want {devices} devices of {family} together, and the limit is {limit}; each was "
            "simulated with all of it.",
            "Raise it, or expect replicas to wait for each other.",
        )
