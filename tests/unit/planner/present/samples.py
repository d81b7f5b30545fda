"""Answers of every command, made by hand: what the pages show does not depend on the simulator."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import pi, sin

from genai_finops.planner.provenance import Origin
from genai_finops.planner.results import (
    Alternative,
    ArticleColumn,
    ArticleTable,
    Calibration,
    CalibrationError,
    Candidate,
    Change,
    ComparedLoad,
    Comparison,
    Correction,
    CostSplit,
    Difference,
    DifferenceLine,
    Evidence,
    Interval,
    Latency,
    Layout,
    ModelPlan,
    ModelSimulation,
    MonthlyLine,
    NodeCost,
    ObjectiveTarget,
    Plan,
    PlatformSimulation,
    PriceUsed,
    Run,
    Sensitivity,
    SensitivityPoint,
    ServiceChange,
    Setting,
    TrafficSummary,
    UnitCost,
    UntrafficedModel,
)
from genai_finops.planner.simulation.outcome import Counts
from genai_finops.spec import Warning

START = datetime(2026, 11, 2, tzinfo=UTC)
DAY = date(2026, 8, 8)
TARGET = ObjectiveTarget(2.0, 0.05, 99)
FITTED = Origin("fitted", 0.1, "batch slopes of published inf2 benchmarks")
EXTRAPOLATED = Origin("extrapolated", 0.25, "step model of inf2 at TP24, scaled to one chip")


def price(instance: str = "inf2.xlarge", purchase: str = "spot", usd: str | None = "0.1894") -> PriceUsed:
    known = None if usd is None else Decimal(usd)
    return PriceUsed(instance, purchase, known, Decimal("0.03"), "us-east-1", "EC2 Spot prices", DAY)


def latency(p50: float, factor: float = 1.0, objective: float | None = None) -> Latency:
    p50 *= factor
    edges = tuple(p50 * 1.05 ** (index - 30) for index in range(101))
    counts = tuple(max(0, 400 - (index - 30) ** 2) + (8 if 60 < index < 95 else 0) for index in range(100))
    return Latency(
        count=sum(counts), mean_seconds=p50 * 1.1, p50_seconds=p50, p90_seconds=p50 * 2.1, p95_seconds=p50 * 3,
        p99_seconds=p50 * 6, objective_seconds=objective, edges_seconds=edges, counts=counts,
    )  # fmt: skip


def nothing(objective: float | None = None) -> Latency:
    return Latency(0, None, None, None, None, None, objective, (), ())


def split(busy: str = "412.31", factor: str = "1") -> CostSplit:
    parts = [Decimal(part) * Decimal(factor) for part in (busy, "220.10", "61.40", "30", "12.02")]
    total = sum(parts, Decimal(0))
    spot = total * Decimal("0.8")
    return CostSplit(*parts, spot, total - spot, total)


UNKNOWN_COST = CostSplit(None, None, None, None, None, None, None, None)


def run(factor: float = 1.0, cost: CostSplit | None = None, good: int = 498_120) -> Run:
    cost = cost or split()
    monthly = replace(
        cost, **{f"{name}_usd": None if (amount := getattr(cost, f"{name}_usd")) is None else amount * 730 / 168
                 for name in ("busy", "idle", "starting", "placeholder", "empty", "spot", "on_demand", "total")}
    )  # fmt: skip
    total = cost.total_usd
    counts = Counts(502_000, 501_000, 12, 900, 88, good, 579_810_000, 105_922_000, 18_560, 41)
    per_million = None if total is None else total / Decimal("105.922")
    return Run(
        counts=counts,
        attainment_share=good / counts.arrived,
        time_to_first_token=latency(0.41, factor, 2.0),
        inter_token=latency(0.0183, factor),
        request_inter_token=latency(0.0181, factor, 0.05),
        end_to_end=latency(4.1, factor),
        simulated=cost,
        monthly=monthly,
        unit_cost=UnitCost(
            per_million and per_million / 5, per_million, per_million and per_million / 6,
            None if total is None else total / good,
        ),
        idle_cost_share=0.29,
        cold_start_cost_share=0.08,
        utilization_share=0.63,
        saturated_share=0.04,
        spot_node_hours=Decimal("1021.5"),
        on_demand_node_hours=Decimal("88.25"),
        peak_replicas=9,
        peak_nodes=9,
        interruptions=7,
        launches=61,
        on_demand_launches=5,
        at_limit_seconds=310.0,
        end_seconds=604_902.0,
    )  # fmt: skip


def intervals(hours: int = 168) -> tuple[Interval, ...]:
    found = []
    for hour in range(hours):
        load = max(0.1, 3 + 2.7 * sin((hour - 8) / 24 * 2 * pi)) * (0.5 if hour // 24 % 7 >= 5 else 1)
        ready = max(1.0, load * 1.3)
        found.append(
            Interval(
                start=START + timedelta(hours=hour), length_seconds=3600.0, arrived=int(load * 600),
                completed=int(load * 599), good=int(load * 590), input_tokens=int(load * 600 * 1155),
                output_tokens=int(load * 600 * 211), waiting_mean=load * 0.2, waiting_max=int(load * hour % 41),
                running_mean=load * 2, ready_mean=ready, starting_mean=0.3 if hour % 24 in (7, 8) else 0.0,
                asleep_share=0.0, spot_nodes_mean=min(ready, 5.0), on_demand_nodes_mean=max(0.0, ready - 5),
                interruptions=1 if hour % 25 == 12 else 0, time_to_first_token_p50_seconds=0.4,
                time_to_first_token_p95_seconds=0.9 + load / 10, inter_token_p95_seconds=0.03,
                usd=Decimal("0.22") * int(ready + 1), costs=(),
            )
        )  # fmt: skip
    return tuple(found)


def summary(name: str = "office week") -> TrafficSummary:
    return TrafficSummary(name, START, 604_800.0, 502_000, 579_810_000, 105_922_000, 8.4)


def model(name: str = "llama3-8b", hours: int = 168) -> ModelSimulation:
    return ModelSimulation(
        model=name,
        layout=Layout("inf2.xlarge", 2, 1, ("spot", "on-demand")),
        objective=TARGET,
        traffic=summary(),
        verdict="holds at nominal only",
        nominal=run(),
        fast=run(0.8, split("330"), 501_300),
        slow=run(1.3, split("520"), 477_000),
        band_reason="in the busiest interval requests come at 93% of what the ready replicas can carry",
        decode_origin=EXTRAPOLATED,
        prefill_origin=FITTED,
        prices=(price(), price(purchase="on-demand", usd="0.7582")),
        intervals=intervals(hours),
        warnings=(Warning("models[0].accelerator", f"No benchmark of {name} on inf2.xlarge.", "Measure it."),),
    )


def idle_model(name: str = "quiet") -> ModelSimulation:
    """Traffic without a request."""
    counts = Counts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    empty = replace(
        run(), counts=counts, attainment_share=None, time_to_first_token=nothing(2.0), inter_token=nothing(),
        request_inter_token=nothing(0.05), end_to_end=nothing(), unit_cost=UnitCost(None, None, None, None),
        utilization_share=0.0,
    )  # fmt: skip
    return replace(
        model(name, 2), verdict="no requests", nominal=empty, fast=empty, slow=empty, band_reason="", intervals=(),
        traffic=replace(summary(), requests=0, input_tokens=0, output_tokens=0, peak_requests_per_second=0.0),
    )  # fmt: skip


def unpriced_model(name: str = "unpriced") -> ModelSimulation:
    unknown = run(cost=UNKNOWN_COST)
    found = replace(model(name, 3), nominal=unknown, fast=unknown, slow=unknown, prices=(price(usd=None),))
    return replace(found, intervals=tuple(replace(each, usd=None) for each in found.intervals))


def simulation(*models: ModelSimulation, budget: str | None = "4000") -> PlatformSimulation:
    fixed = (
        MonthlyLine("EKS control plane", Decimal(730), "hour", Decimal("0.10"), Decimal("73.00"), ("cluster.version",),
                    "price list", "Amazon EKS pricing", date(2026, 12, 1)),
        MonthlyLine("Logs written, assumed", Decimal(20), "GB", Decimal("0.50"), Decimal("10.00"), (), "assumed",
                    "Amazon CloudWatch pricing", date(2026, 12, 1)),
    )  # fmt: skip
    models = models or (model(),)
    totals = [each.nominal.monthly.total_usd for each in models]
    known = None if None in totals else sum(totals, Decimal(0))
    low = None if known is None else known * Decimal("0.85") + 233
    high = None if known is None else known * Decimal("1.2") + 233
    return PlatformSimulation(
        platform="eks-genai-cluster", region="us-east-1", price_region="us-east-1", seed=7, models=models,
        without_traffic=(UntrafficedModel("mistral-7b", Decimal("150.00"), Decimal("9000.00")),), fixed_lines=fixed,
        fixed_monthly_usd=Decimal("83.00"), serving_monthly_usd=known, total_monthly_usd=known and known + 233,
        total_low_monthly_usd=low, total_high_monthly_usd=high,
        budget_monthly_usd=None if budget is None else Decimal(budget),
        warnings=(Warning("", "The traffic is a week: Spot interruptions of a month are seen in part.", ""),),
    )  # fmt: skip


ARTICLE = ArticleTable(
    ArticleColumn("g5.12xlarge", Decimal("5.672"), 720, Decimal("4083.84"), 300, Decimal("13.61")),
    ArticleColumn("inf2.8xlarge", Decimal("1.968"), 720, Decimal("1416.96"), 300, Decimal("4.72")),
    Decimal("0.65303"),
    "One instance of either serves 10M tokens a day, on demand, in a month of 720 hours.",
    (Correction("The hourly rate is 47 % below.", "1 - 1.968 / 5.672 is 65.3 % below."),),
    "Ecstaticloud, FinOps for GenAI, October 2026",
)


def alternative(instance: str, purchase: str, usd: str, error: str, origin: Origin, reason: str = "") -> Alternative:
    value, spread = Decimal(usd), Decimal(error)
    return Alternative(
        instance=instance, tensor_parallel_size=2, replicas_per_node=1, purchase=purchase,
        price=price(instance, purchase), is_feasible=True, reason=reason,
        interruption_band="<5%" if purchase == "spot" else "", provenance=origin.provenance,
        relative_error=origin.relative_error, performance_source=origin.source, replicas=2, nodes=2,
        capacity_requests_per_second=0.4, peak_utilization_share=0.66, time_to_first_token_seconds=0.62,
        inter_token_seconds=0.0213, node_usd_hour=Decimal("0.22"), monthly_usd=value * 60,
        monthly_low_usd=(value - spread) * 60, monthly_high_usd=(value + spread) * 60,
        usd_per_million_input_tokens=value / 5, usd_per_million_output_tokens=value,
        usd_per_million_output_tokens_low=value - spread, usd_per_million_output_tokens_high=value + spread,
        usd_per_million_total_tokens=value / 6, usd_per_million_total_tokens_low=(value - spread) / 6,
        usd_per_million_total_tokens_high=(value + spread) / 6,
    )  # fmt: skip


def comparison() -> Comparison:
    feasible = (
        alternative("inf2.xlarge", "spot", "5.21", "1.30", EXTRAPOLATED),
        alternative("g6e.xlarge", "spot", "6.10", "0.60", FITTED, "dearer by 17%"),
        replace(
            alternative("inf2.xlarge", "on-demand", "12.80", "3.20", EXTRAPOLATED, "dearer by 146%"),
            usd_per_million_output_tokens_high=None, usd_per_million_total_tokens_high=None, monthly_high_usd=None,
        ),
    )  # fmt: skip
    ruled_out = tuple(
        Alternative(name, 1, 0, "on-demand", price(name, "on-demand"), False, reason)
        for name, reason in (
            ("g4dn.xlarge", "its GPU has 16 GiB and the weights take 16.1"),
            ("g4dn.2xlarge", "its GPU has 16 GiB and the weights take 16.1"),
            ("p4d.24xlarge", "the catalog has no price for it in us-east-1"),
        )
    )
    return Comparison(
        article=ARTICLE, model="llama3-8b",
        load=ComparedLoad("10M tokens a day", 0.0847, 0.254, 1155, 211, 0.7), objective=ObjectiveTarget(2.0, None, 99),
        alternatives=(*feasible, *ruled_out), winner=feasible[0], is_close=True,
        evidence=(Evidence("g6e.xlarge", "on-demand", Decimal("0.46"), Decimal("0.46"), "one L40S in batches of 32"),
                  Evidence("inf2.48xlarge", "spot", Decimal("0.52"), Decimal("0.59"), "three replicas")),
        notes=("Spot is taken at its price of the day.",),
    )  # fmt: skip


def setting(size: str = "xlarge", spot: str = "prefer", warm: int = 0, schedule: str = "") -> Setting:
    return Setting("inf2", size, 2, 8, 4096, 1, 10, 5, warm, spot, schedule)


def candidate(rank: int, usd: str, reason: str = "", *, current: bool = False, size: str = "xlarge") -> Candidate:
    value = Decimal(usd)
    return Candidate(
        setting=setting(size, schedule="Mon-Fri 07:00-20:00" if rank == 1 else ""), rank=rank, stage="simulated",
        is_current=current, verdict="holds", monthly_usd=value, monthly_low_usd=value * Decimal("0.9"),
        monthly_high_usd=value * Decimal("1.2"),
        unit_cost=UnitCost(Decimal("1"), value / 100, value / 120, value / 500_000), attainment_share=0.9931,
        attainment_slow_share=0.9902, time_to_first_token_p95_seconds=1.21, inter_token_p95_seconds=0.031,
        provenance="extrapolated", interruptions_a_month=3.1, reason=reason,
    )  # fmt: skip


def screened(size: str, reason: str) -> Candidate:
    return Candidate(
        setting=setting(size), rank=None, stage="screened", is_current=False, verdict=None, monthly_usd=None,
        monthly_low_usd=None, monthly_high_usd=None, unit_cost=None, attainment_share=None, attainment_slow_share=None,
        time_to_first_token_p95_seconds=None, inter_token_p95_seconds=None, provenance=None,
        interruptions_a_month=None, reason=reason,
    )  # fmt: skip


def plan(count: int = 4) -> Plan:
    winner = candidate(1, "612.40")
    others = [candidate(rank, str(600 + 40 * rank), f"dearer by {7 * rank}%") for rank in range(2, count)]
    today = candidate(count, "1756.50", "dearer by 186.8% ($1,144.10 a month)", current=True, size="8xlarge")
    found = ModelPlan(
        model="llama3-8b", objective=TARGET, traffic=summary(),
        candidates=(winner, *others, today, screened("48xlarge", "costs at least $5,000.00 a month"),
                    screened("24xlarge", "costs at least $5,000.00 a month")),
        winner=winner, current=today,
        changes=(Change("models[0].accelerator.sizes", ("8xlarge", "24xlarge"), ("xlarge",)),
                 Change("models[0].schedule", None, {"time_zone": "UTC"})),
        yaml="models:\n  - name: llama3-8b\n    accelerator:\n      sizes: [xlarge]\n",
        saves_monthly_usd=Decimal("1144.10"), simulated=count, screened=2, is_complete=True, warnings=(),
    )  # fmt: skip
    return Plan("eks-genai-cluster", "us-east-1", "us-east-1", 7, (found,), ("A month has 730 hours.",))


def line(sign: str, group: str, name: str, before: str | None, after: str | None) -> DifferenceLine:
    old, new = (None if amount is None else Decimal(amount) for amount in (before, after))
    change = (new or Decimal(0)) - (old or Decimal(0))
    return DifferenceLine(sign, group, name, old, new, change, float(change / old) if old else None)


def difference() -> Difference:
    return Difference(
        before="eks-genai-cluster", after="eks-genai-cluster", basis="simulated",
        lines=(
            line(" ", "fixed", "EKS control plane", "73.00", "73.00"),
            line("~", "fixed", "NAT gateways, 3", "32.85", "98.55"),
            line("~", "llama3-8b", "nodes, busy", "1200.00", "480.40"),
            line("-", "llama3-8b", "nodes, placeholder", "100.00", None),
            line("+", "mistral-7b", "nodes at min_replicas", None, "150.00"),
        ),
        before_usd=Decimal("1405.85"), after_usd=Decimal("801.95"), change_usd=Decimal("-603.90"),
        change_share=-0.4296, before_ceiling_usd=Decimal("14000"), after_ceiling_usd=Decimal("9000"),
        service=(
            ServiceChange("llama3-8b", "holds", "does not hold", 0.9951, 0.9713, 0.61, 2.71),
            ServiceChange("mistral-7b", None, None, None, None, None, None),
        ),
        after_budget_usd=Decimal("700"), warnings=(),
    )  # fmt: skip


def sensitivity() -> Sensitivity:
    def line(verdict: Callable[[float], str], slope: int) -> tuple[SensitivityPoint, ...]:
        return tuple(
            SensitivityPoint(factor, Decimal(900) + Decimal(str(factor)) * slope, verdict(factor))
            for factor in (0.5, 1.0, 1.5, 2.0)
        )

    return Sensitivity(
        line(lambda _: "holds", 500), line(lambda factor: "holds" if factor < 2 else "does not hold", 900)
    )


def unpriced_cost() -> NodeCost:
    return NodeCost("spot", "busy", Decimal(1), None, Decimal("0.03"), None)


def calibration() -> Calibration:
    def error(statistic: str, measured: float, fitted: float, latency: str = "time to first token") -> CalibrationError:
        return CalibrationError("results-8.json", 8.0, latency, statistic, measured, fitted, fitted / measured - 1)

    return Calibration(
        model="llama3-8b", instance="inf2.xlarge", tensor_parallel_size=2, formats=("vllm bench serve",), requests=520,
        failed=2, decode_relative_error=0.06, prefill_relative_error=0.31,
        errors=(error("p50", 0.4, 0.41), error("p99", 1.0, 0.69), error("mean", 0.03, 0.0306, "inter token")),
        notes=("Failed requests are in no latency.",),
    )  # fmt: skip
