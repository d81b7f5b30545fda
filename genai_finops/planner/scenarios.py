"""From a platform file to what is simulated: one model on one instance type, with everything that moves its replicas.

Which instance: the cheapest node that starts a replica, as Karpenter chooses, bought in the first way that the model
allows. Its fallback on demand is the same type.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil
from typing import Final

from genai_finops.catalog import InstanceType, Purchase, instance_type
from genai_finops.planner import money
from genai_finops.planner.automation import automation_factory, awake_seconds
from genai_finops.planner.cold_start import cold_start
from genai_finops.planner.fixed_cost import serving_cost
from genai_finops.planner.loads import Measured
from genai_finops.planner.objectives import target_of
from genai_finops.planner.performance.model import MeasuredProfile, replica_performance
from genai_finops.planner.performance.replica import ReplicaPerformance
from genai_finops.planner.results import ObjectiveTarget, PriceUsed
from genai_finops.planner.simulation.scenario import Nodes, Objective, ScalePolicy, Scaling, Scenario
from genai_finops.planner.spot import spot_risk
from genai_finops.planner.steady_state import UTILIZATION_BOUND, highest_rate
from genai_finops.planner.traffic.requests import Traffic
from genai_finops.spec import Model, Platform, placement
from genai_finops.spec.model import ScaleDown, ScaleUp

TIMEOUT_SECONDS: Final = 600.0
"""A client that has no answer by then gives up (assumed: the usual default of client libraries)."""

BUCKET_SECONDS: Final = 3600.0
FEWEST_BUCKETS: Final = 60
"""A traffic shorter than so many hours is shown in shorter intervals, of a minute at least."""


@dataclass(frozen=True, slots=True)
class Case:
    """One model under its traffic: what is simulated, and what the result is priced and judged with.

    Attributes:
        index: of the model in the platform file.
        prices: of a node, by the ways the model allows.
    """

    index: int
    model: Model
    instance: InstanceType
    scenario: Scenario
    traffic: Traffic
    load: Measured
    target: ObjectiveTarget
    prices: Mapping[Purchase, PriceUsed]

    @property
    def path(self) -> str:
        """Of the model in the platform file."""
        return f"models[{self.index}]"

    def at(self, end: float) -> Scenario:
        """The same at one end of the error bars: -1 the fast end, 1 the slow end. Replicas to begin with stay."""
        return replace(self.scenario, performance=self.scenario.performance.scaled(end))


def case_of(
    platform: Platform,
    index: int,
    traffic: Traffic,
    load: Measured,
    *,
    profiles: Sequence[MeasuredProfile] = (),
    inter_token_seconds: float | None = None,
    spot_factor: Decimal = Decimal(1),
    performance: ReplicaPerformance | None = None,
) -> Case:
    """A model of a valid platform, on the node that Karpenter would start for it.

    Args:
        index: of the model in the file.
        load: what `traffic` amounts to.
        performance: takes the place of the computed one.

    Raises:
        ValueError: when none of the model's instance types takes a replica.
    """
    model = platform.models[index]
    instance = chosen_instance(platform, model)
    target = target_of(model, inter_token_seconds)
    performance = performance or replica_performance(model, instance, profiles)
    return Case(
        index=index,
        model=model,
        instance=instance,
        scenario=_scenario(platform, model, instance, performance, traffic, load, target),
        traffic=traffic,
        load=load,
        target=target,
        prices=money.prices(platform, model, instance, spot_factor=spot_factor),
    )


def chosen_instance(platform: Platform, model: Model) -> InstanceType:
    """The instance type that one replica gets: the cheapest that takes it; without any known price, the first.

    Raises:
        ValueError: when none takes one.
    """
    cost = next(each for each in serving_cost(platform) if each.model == model.name)
    rate = cost.rate(money.purchases(model)[0]) or cost.spot or cost.on_demand
    if rate is not None:
        return instance_type(rate.instance)
    able = [each for each in placement.instances(model) if placement.replicas_per_node(model, each) > 0]
    if not able:
        names = ", ".join(each.name for each in placement.instances(model))
        raise ValueError(f"{model.name} fits on none of its instance types: {names}")
    return able[0]


def fresh_start_seconds(platform: Platform, model: Model) -> float:
    """From a replica that is wanted, and no node there for it, until it is ready."""
    start = cold_start(platform, model, chosen_instance(platform, model))
    return start.launch_seconds + start.fresh_seconds


def _scenario(
    platform: Platform,
    model: Model,
    instance: InstanceType,
    performance: ReplicaPerformance,
    traffic: Traffic,
    load: Measured,
    target: ObjectiveTarget,
) -> Scenario:
    scaling = _scaling(platform, model)
    return Scenario(
        performance=performance,
        scaling=scaling,
        nodes=_nodes(platform, model, instance),
        spot=spot_risk(instance),
        objective=Objective(target.time_to_first_token_seconds, target.inter_token_seconds, TIMEOUT_SECONDS),
        start=traffic.start,
        awake=awake_seconds(model, traffic.start, traffic.duration_seconds),
        automation=automation_factory(platform, model, traffic.start),
        initial_replicas=_initial_replicas(performance, scaling, load),
        bucket_seconds=_bucket_seconds(traffic.duration_seconds),
    )


def _scaling(platform: Platform, model: Model) -> Scaling:
    wanted = model.scaling
    return Scaling(
        min_replicas=wanted.min_replicas,
        max_replicas=wanted.max_replicas,
        queue_per_replica=wanted.queue_per_replica,
        running_per_replica=model.max_num_seqs,
        kv_cache_target=wanted.kv_cache_target,
        scale_up=_policy(wanted.scale_up),
        scale_down=_policy(wanted.scale_down),
        scrape_seconds=platform.monitoring.scrape_interval_seconds,
        polling_seconds=wanted.polling_interval_seconds,
    )


def _policy(wanted: ScaleUp | ScaleDown) -> ScalePolicy:
    return ScalePolicy(wanted.stabilization_seconds, wanted.percent, wanted.period_seconds)


def _nodes(platform: Platform, model: Model, instance: InstanceType) -> Nodes:
    pool = platform.node_pool(instance.family)
    start = cold_start(platform, model, instance)
    return Nodes(
        replicas_per_node=placement.replicas_per_node(model, instance),
        purchases=money.purchases(model),
        max_nodes=pool.max_devices // instance.devices,
        launch_seconds=start.launch_seconds,
        start_seconds_fresh=start.fresh_seconds,
        start_seconds_warm=start.warm_seconds,
        consolidate_after_seconds=pool.consolidate_after_minutes * 60,
        drain_seconds=model.drain_seconds,
        placeholders=model.warm_capacity.replicas,
    )


def _initial_replicas(performance: ReplicaPerformance, scaling: Scaling, load: Measured) -> int:
    """What runs when the traffic begins: it is cut out of a day, and the replicas for its first minutes are there."""
    needed = 0
    if load.mean is not None:
        each = highest_rate(performance, load.mean) * UTILIZATION_BOUND
        needed = ceil(load.first_requests_per_second / each) if each > 0 else 0
    return min(scaling.max_replicas, max(scaling.min_replicas, needed))


def _bucket_seconds(duration_seconds: float) -> float:
    """An hour, or for a short traffic a whole number of minutes that gives it sixty intervals."""
    minutes = max(1, int(duration_seconds / FEWEST_BUCKETS / 60))
    return float(min(BUCKET_SECONDS, minutes * 60))
