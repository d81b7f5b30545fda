"""What the platform costs before the first request: what always runs, and what each awake model adds.

Every figure is a quantity times a list price that says where it comes from and of which day it is. Amounts
stay exact; only what is shown is rounded. A month has 730 hours, as in other cost tools. What comes with
traffic is left out: capacity units of the load balancer, data through NAT and between zones, requests to
queues, tables and functions beyond those that the automation makes when nothing happens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from math import ceil
from typing import Final, Literal

from genai_finops.catalog import (
    Price,
    Purchase,
    end_of_standard_support,
    instance_price,
    instance_type,
    price,
)
from genai_finops.catalog.instances import GIB
from genai_finops.operations.windows import MINUTES_A_WEEK, awake_minutes_a_week
from genai_finops.spec import Model, Platform, artifacts, placement, problems
from genai_finops.spec.advice import HOURS_A_MONTH
from genai_finops.spec.model import Spot
from genai_finops.spec.platform import SYSTEM_NODE_VOLUME_GIB, Volume

CONTROL_PLANE_LOGS_GB_MONTH: Final = 15
"""Assumed: all five kinds of log of a small cluster, mostly the audit log of controllers that poll."""

FLOW_LOGS_GB_MONTH: Final = 5
"""Assumed: the flows of the system nodes and the interface endpoints alone."""

AUTOMATION_RUNS_AN_HOUR: Final = 30
"""The automation looks every two minutes, whether or not there is anything to do."""

AUTOMATION_GB_SECONDS_A_RUN: Final = Decimal(1)
"""Assumed: two seconds, mostly of waiting for answers, with half a gigabyte."""

AUTOMATION_METRICS: Final = 9
"""Each run reports as many."""

ALARM_METRICS: Final = 8
ALARM_METRICS_OF_BUDGET: Final = 2

COST_EXPLORER_CALLS_A_DAY: Final = 6
"""Assumed: usage by model, by component and by record type with a second page, and the forecast."""

GP3_INCLUDED_IOPS: Final = 3000
GP3_INCLUDED_MIB_S: Final = 125

FIXED_SHARE_LIMIT: Final = Decimal("0.5")
"""Of the budget. Above it, most of the money goes where no request is answered."""

Provenance = Literal["price list", "assumed"]

_DAYS_A_MONTH: Final = Decimal(HOURS_A_MONTH) / 24


@dataclass(frozen=True, slots=True)
class CostLine:
    """One thing that is paid every month.

    Attributes:
        quantity: a month, in `price.unit`.
        price: of one unit, with its source and the day it was checked.
        paths: the settings of the platform file that change it; empty where none does.
        provenance: "assumed" where the quantity is; the price is always from a list.
    """

    name: str
    quantity: Decimal
    price: Price
    paths: tuple[str, ...] = ()
    provenance: Provenance = "price list"

    @property
    def monthly_usd(self) -> Decimal:
        """Exact, not rounded to cents."""
        return self.quantity * self.price.usd


@dataclass(frozen=True, slots=True)
class FixedCost:
    """The platform with no traffic and every model asleep."""

    region: str
    lines: tuple[CostLine, ...]

    @property
    def monthly_usd(self) -> Decimal:
        return sum((line.monthly_usd for line in self.lines), Decimal(0))

    @property
    def price_region(self) -> str:
        """The region whose prices these are. The catalog has one; elsewhere the figures are an indication."""
        return self.lines[0].price.region

    def largest(self, count: int) -> tuple[CostLine, ...]:
        return tuple(sorted(self.lines, key=lambda line: line.monthly_usd, reverse=True)[:count])


def fixed_monthly_cost(platform: Platform, today: date) -> FixedCost:
    """What `platform` costs a month with no traffic and every model asleep, line by line.

    Args:
        today: decides whether the Kubernetes version is in extended support.

    Raises:
        LookupError: when the catalog has no price for the system nodes' instance type.
    """
    lines = (
        *_cluster(platform, today),
        *_network(platform),
        *_gateway(platform),
        *_monitoring(platform),
        _store(platform),
        *_keys_and_secrets(platform),
        *_logs(platform),
        *_automation(platform),
    )
    return FixedCost(platform.region, lines)


def _cluster(platform: Platform, today: date) -> Iterator[CostLine]:
    extended = today > end_of_standard_support(platform.cluster.version)
    yield CostLine(
        "EKS control plane, extended support" if extended else "EKS control plane",
        _hours(1),
        price("eks_cluster_hour_extended_support" if extended else "eks_cluster_hour"),
        ("cluster.version",),
    )
    nodes = platform.cluster.system_nodes
    node_price = instance_price(instance_type(nodes.instance_type), "on-demand")
    if node_price is None:
        raise LookupError(f"The catalog has no on-demand price for {nodes.instance_type}.")
    count = "cluster.system_nodes.count"
    yield CostLine(
        f"System nodes, {nodes.count} × {nodes.instance_type}",
        _hours(nodes.count),
        node_price,
        (count, "cluster.system_nodes.instance_type"),
    )
    yield CostLine(
        f"System node disks, {nodes.count} × {SYSTEM_NODE_VOLUME_GIB} GiB",
        Decimal(nodes.count * SYSTEM_NODE_VOLUME_GIB),
        price("gp3_gb_month"),
        (count,),
    )


def _network(platform: Platform) -> Iterator[CostLine]:
    count, path = platform.network.nat_gateways, ("network.nat_gateways",)
    yield CostLine(f"NAT gateways, {count}", _hours(count), price("nat_gateway_hour"), path)
    yield CostLine(f"Public IPv4 for NAT, {count}", _hours(count), price("public_ipv4_hour"), path)
    endpoints, zones = len(platform.network.interface_endpoints), len(platform.zones)
    if endpoints:
        yield CostLine(
            f"Endpoints, {endpoints} in {zones} zones",
            _hours(endpoints * zones),
            price("interface_endpoint_hour"),
            ("network.interface_endpoints", "zones"),
        )


def _gateway(platform: Platform) -> Iterator[CostLine]:
    if not platform.gateway.enabled:
        return
    yield CostLine("Load balancer, no traffic", _hours(1), price("load_balancer_hour"), ("gateway.enabled",))
    if platform.gateway.scheme == "internet-facing":
        zones = len(platform.zones)
        yield CostLine(
            f"Public IPv4 for load balancer, {zones}",
            _hours(zones),
            price("public_ipv4_hour"),
            ("gateway.scheme", "zones"),
        )


def _monitoring(platform: Platform) -> Iterator[CostLine]:
    gib = platform.monitoring.storage_gib
    yield CostLine(f"Prometheus disk, {gib} GiB", Decimal(gib), price("gp3_gb_month"), ("monitoring.storage_gib",))


def _store(platform: Platform) -> CostLine:
    """Weights once for each source and revision, graphs once for each key, as they are now: what was replaced is kept
    for some days more."""
    weights = {artifacts.weights_prefix(model): model for model in platform.models}
    graphs = {artifacts.key(model): model for model in platform.models if model.is_precompiled}
    stored = sum(placement.stored_bytes(model) - placement.artifact_bytes(model) for model in weights.values())
    stored += sum(map(placement.artifact_bytes, graphs.values()))
    return CostLine("Model store", Decimal(stored) / GIB, price("s3_gb_month"), ("models",))


def _keys_and_secrets(platform: Platform) -> Iterator[CostLine]:
    yield CostLine("KMS key, cluster secrets", Decimal(1), price("kms_key_month"))
    if platform.notifications.emails or platform.notifications.slack:
        # An encrypted topic that CloudWatch and Budgets may publish to needs a key of our own.
        yield CostLine("KMS key, notifications", Decimal(1), price("kms_key_month"), ("notifications",))
    if platform.gateway.enabled and platform.gateway.api_key:
        yield CostLine("Secret, API key", Decimal(1), price("secret_month"), ("gateway.api_key",))


def _logs(platform: Platform) -> Iterator[CostLine]:
    yield CostLine(
        "Logs written, assumed",
        Decimal(CONTROL_PLANE_LOGS_GB_MONTH + FLOW_LOGS_GB_MONTH),
        price("logs_ingested_gb"),
        provenance="assumed",
    )
    gb_days = (
        CONTROL_PLANE_LOGS_GB_MONTH * platform.cluster.log_retention_days
        + FLOW_LOGS_GB_MONTH * platform.network.flow_log_retention_days
    )
    yield CostLine(
        "Logs kept, assumed",
        gb_days / _DAYS_A_MONTH,
        price("logs_stored_gb_month"),
        ("cluster.log_retention_days", "network.flow_log_retention_days"),
        "assumed",
    )


def _automation(platform: Platform) -> Iterator[CostLine]:
    """Looking when nothing happens. Reading facts for it costs three cents, and so many traces are always free."""
    thousands = _hours(AUTOMATION_RUNS_AN_HOUR) * AUTOMATION_GB_SECONDS_A_RUN / 1000
    yield CostLine("Functions, idle, assumed", thousands, price("lambda_arm_thousand_gb_seconds"), provenance="assumed")
    yield CostLine("Metrics of functions", Decimal(AUTOMATION_METRICS), price("custom_metric_month"))
    alarms = ALARM_METRICS + (ALARM_METRICS_OF_BUDGET if platform.budget else 0)
    yield CostLine("Alarms on functions", Decimal(alarms), price("alarm_metric_month"))
    if platform.budget:
        yield CostLine(
            "Cost Explorer, daily, assumed",
            COST_EXPLORER_CALLS_A_DAY * _DAYS_A_MONTH,
            price("cost_explorer_request"),
            ("budget",),
            "assumed",
        )


def _hours(count: int) -> Decimal:
    return Decimal(count * HOURS_A_MONTH)


@dataclass(frozen=True, slots=True)
class Rate:
    """The cheapest node that starts one replica of a model, bought in one way.

    Karpenter buys for the pods that wait, and replicas mostly come one at a time: a larger node that would be
    cheaper per replica when full is not what the first one gets.

    Attributes:
        price: of the instance, an hour.
        volume_usd_month: of the node's root volume, which lives as long as the node.
    """

    instance: str
    replicas_per_node: int
    price: Price
    volume_usd_month: Decimal

    @property
    def node_usd_hour(self) -> Decimal:
        return self.node_usd(Decimal(1))

    @property
    def replica_usd_hour(self) -> Decimal:
        """On a full node."""
        return self.node_usd_hour / self.replicas_per_node

    def node_usd(self, hours: Decimal) -> Decimal:
        return self.price.usd * hours + self.volume_usd_month * hours / HOURS_A_MONTH

    def usd(self, replicas: int, hours: Decimal) -> Decimal:
        """Whole nodes: what stands idle on the last one is paid for."""
        return ceil(replicas / self.replicas_per_node) * self.node_usd(hours)


@dataclass(frozen=True, slots=True)
class ServingCost:
    """What one model adds while it is awake.

    Attributes:
        instances: that it may run on.
        warm_replicas: that there is room for beside those that run.
        awake_hours: a month, by its schedule.
        spot: None where the model never uses Spot or the catalog has no price; `spot_use` tells which.
        on_demand: likewise, for a model that only uses Spot.
    """

    model: str
    instances: tuple[str, ...]
    min_replicas: int
    max_replicas: int
    warm_replicas: int
    spot_use: Spot
    awake_hours: Decimal
    spot: Rate | None
    on_demand: Rate | None

    @property
    def asleep_hours(self) -> Decimal:
        return HOURS_A_MONTH - self.awake_hours

    def rate(self, purchase: Purchase) -> Rate | None:
        """What is paid when capacity is bought that way wherever the model allows it; None when unknown."""
        on_spot = self.spot_use == "only" or (purchase == "spot" and self.spot_use != "never")
        return self.spot if on_spot else self.on_demand

    def at_min_usd(self, purchase: Purchase) -> Decimal | None:
        """A month at min_replicas whenever awake, with the room that is kept warm beside them."""
        return _monthly(self.rate(purchase), self.min_replicas + self.warm_replicas, self.awake_hours)

    def warm_usd(self, purchase: Purchase) -> Decimal | None:
        """What of that the warm room is."""
        rate = self.rate(purchase)
        without = _monthly(rate, self.min_replicas, self.awake_hours)
        with_room = self.at_min_usd(purchase)
        return None if without is None or with_room is None else with_room - without

    def asleep_saves_usd(self, purchase: Purchase) -> Decimal | None:
        """What min_replicas and the room would cost in the hours that the model sleeps."""
        return _monthly(self.rate(purchase), self.min_replicas + self.warm_replicas, self.asleep_hours)

    @property
    def ceiling_usd(self) -> Decimal | None:
        """A month at max_replicas whenever awake, and room beside them, with no Spot to be had where the model may go
        without."""
        return _monthly(self.rate("on-demand"), self.max_replicas + self.warm_replicas, self.awake_hours)


def _monthly(rate: Rate | None, replicas: int, hours: Decimal) -> Decimal | None:
    return None if rate is None else rate.usd(replicas, hours)


def serving_cost(platform: Platform) -> tuple[ServingCost, ...]:
    """What each model adds while awake, in the order of the file."""
    return tuple(_serving(platform, model) for model in platform.models)


def _serving(platform: Platform, model: Model) -> ServingCost:
    volume_usd = volume_usd_month(platform.node_pool(model.accelerator.family).volume)
    return ServingCost(
        model=model.name,
        instances=tuple(instance.name for instance in placement.instances(model)),
        min_replicas=model.scaling.min_replicas,
        max_replicas=model.scaling.max_replicas,
        warm_replicas=model.warm_capacity.replicas,
        spot_use=model.spot,
        awake_hours=awake_hours(model),
        spot=None if model.spot == "never" else _cheapest(model, "spot", volume_usd),
        on_demand=None if model.spot == "only" else _cheapest(model, "on-demand", volume_usd),
    )


def awake_hours(model: Model) -> Decimal:
    """Of a month, by the weekly windows, without the lead."""
    if model.schedule is None:
        return Decimal(HOURS_A_MONTH)
    minutes = awake_minutes_a_week(window.window() for window in model.schedule.awake)
    return Decimal(minutes * HOURS_A_MONTH) / MINUTES_A_WEEK


def _cheapest(model: Model, purchase: Purchase, volume_usd: Decimal) -> Rate | None:
    rates = []
    for instance in placement.instances(model):
        hourly, replicas = instance_price(instance, purchase), placement.replicas_per_node(model, instance)
        if hourly is not None and replicas > 0:
            rates.append(Rate(instance.name, replicas, hourly, volume_usd))
    return min(rates, key=lambda rate: rate.node_usd_hour, default=None)


def volume_usd_month(volume: Volume) -> Decimal:
    """A month of a node's root volume."""
    return (
        volume.size_gib * price("gp3_gb_month").usd
        + max(0, volume.iops - GP3_INCLUDED_IOPS) * price("gp3_iops_month").usd
        + max(0, volume.throughput_mib_s - GP3_INCLUDED_MIB_S) * price("gp3_throughput_mib_month").usd
    )


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How much of the budget is spoken for before anything scales.

    Attributes:
        fixed_usd: the platform with every model asleep.
        at_min_usd: all models at min_replicas, on Spot where they may; those without a known price left out.
    """

    budget_usd: Decimal
    fixed_usd: Decimal
    at_min_usd: Decimal

    @property
    def fixed_share(self) -> Decimal:
        return self.fixed_usd / self.budget_usd

    @property
    def committed_usd(self) -> Decimal:
        return self.fixed_usd + self.at_min_usd


def budget_use(platform: Platform, today: date) -> BudgetUse | None:
    """None when the platform has no budget."""
    if platform.budget is None:
        return None
    at_min = sum((cost.at_min_usd("spot") or Decimal(0) for cost in serving_cost(platform)), Decimal(0))
    return BudgetUse(platform.budget.monthly_usd, fixed_monthly_cost(platform, today).monthly_usd, at_min)


def budget_check(platform: Platform, today: date) -> Iterator[problems.Warning]:
    """Warnings about a budget that is spent before the first request, or mostly on what answers none."""
    use = budget_use(platform, today)
    if use is None:
        return
    if use.fixed_share > FIXED_SHARE_LIMIT:
        largest = fixed_monthly_cost(platform, today).largest(3)
        yield problems.Warning(
            "budget.monthly_usd",
            f"The fixed cost of {dollars(use.fixed_usd)} a month is {use.fixed_share:.0%} of the budget of "
            f"{dollars(use.budget_usd)}, before any model is awake.",
            f"The most goes to: {'; '.join(map(_with_setting, largest))}.",
        )
    if use.committed_usd > use.budget_usd:
        yield problems.Warning(
            "budget.monthly_usd",
            f"The fixed cost and every model at min_replicas, on Spot where allowed, cost at least "
            f"{dollars(use.committed_usd)} a month; the budget is {dollars(use.budget_usd)}.",
            "Lower min_replicas, give models a schedule, or raise the budget.",
        )


def _with_setting(line: CostLine) -> str:
    setting = f" ({line.paths[0]})" if line.paths else ""
    return f"{line.name}{setting} {dollars(line.monthly_usd)}"


def dollars(amount: Decimal) -> str:
    """`$1,416.96`: rounded to cents, halves up."""
    return f"${amount.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"
