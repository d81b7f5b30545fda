"""The configurations that are worth a simulation, and why the others are not.

Arithmetic rules out what no simulation could save: what does not fit, what misses the objective with one request alone,
what has no price, what its pool's limit forbids. For the rest it counts the replicas that the mean and the peak need,
and around those numbers candidates are made. Each has a floor: what it costs at least, whatever happens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import ceil
from typing import Final

from genai_finops.planner import money
from genai_finops.planner.fixed_cost import awake_hours, volume_usd_month
from genai_finops.planner.layouts import Fit, fit, fits
from genai_finops.planner.loads import Measured
from genai_finops.planner.objectives import slowness
from genai_finops.planner.performance.model import MeasuredProfile, replica_performance
from genai_finops.planner.performance.replica import ReplicaPerformance
from genai_finops.planner.quiet import described
from genai_finops.planner.results import ObjectiveTarget, Setting
from genai_finops.planner.scenarios import chosen_instance
from genai_finops.planner.steady_state import UTILIZATION_BOUND, Load, capacity, highest_rate
from genai_finops.spec import Model, Platform, checks
from genai_finops.spec.advice import HOURS_A_MONTH
from genai_finops.spec.model import Buckets, Schedule, Spot

NEURON_BATCHES: Final = (4, 16, 32)
"""Values of max_num_seqs that are tried on Neuron beside the file's: there it is compiled in, and reserves memory."""

EAGER_QUEUE: Final = 1
"""A queue_per_replica that adds a replica as soon as anybody waits, tried beside the file's."""

WARM_ROOM: Final = 1
"""Replicas of warm capacity, tried beside none and the file's."""

SURE_SHARE: Final = 0.8
"""Of the busy replicas that arithmetic on mean lengths asks for: a floor must not be above what a simulation costs, and
the objective lets some requests fail."""

PEAK_HEADROOM: Final = 2
"""Times the replicas that the peak needs: max_replicas, so that a queue that has formed can be worked off."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One configuration: what the platform would be, and what is known of it without a simulation.

    Attributes:
        platform: with the one model changed.
        floor_usd: a month of it costs at least this; None where a price is not known.
        reason: why it is not worth a simulation; empty when it is.
        performance: None where it does not fit.
    """

    platform: Platform
    setting: Setting
    is_current: bool
    floor_usd: Decimal | None
    performance: ReplicaPerformance | None
    reason: str = ""


def proposals(
    platform: Platform,
    index: int,
    load: Measured,
    target: ObjectiveTarget,
    *,
    profiles: Sequence[MeasuredProfile] = (),
    schedule: Schedule | None = None,
) -> list[Proposal]:
    """What the file says first, then everything that was thought of, the lowest floor first, ruled out last.

    Args:
        index: of the model in the file.
        schedule: to be tried beside the file's own; None when the traffic gives no reason for one.
    """
    model = platform.models[index]
    assert load.mean
    current = _current(platform, index, load, profiles)
    found = {current.setting: current}
    for each in _variants(_long_enough(model, load, target)):
        for proposal in _around(platform, index, each, load, target, profiles, schedule):
            found.setdefault(proposal.setting, proposal)
    _, *others = found.values()
    return [current, *sorted(others, key=_order)]


def _order(proposal: Proposal) -> tuple[bool, Decimal, str, int, int, str]:
    setting = proposal.setting
    floor = proposal.floor_usd if proposal.floor_usd is not None else Decimal("Infinity")
    size = (setting.instance, setting.tensor_parallel_size, setting.min_replicas)
    return bool(proposal.reason), floor, *size, repr(setting)


def _variants(model: Model) -> Iterator[Fit]:
    """Every placement; on Neuron with other batches too, where they fit."""
    for each in fits(model):
        yield each
        if each.model.is_neuron:
            for batch in NEURON_BATCHES:
                if batch != model.max_num_seqs and (batch > model.max_num_seqs) == each.fits:
                    changed = _with_batch(each.model, batch)
                    other = fit(changed, each.instance, each.tensor_parallel_size)
                    if other.fits:
                        yield other


def _long_enough(model: Model, load: Measured, target: ObjectiveTarget) -> Model:
    """The model, taking requests as long as the traffic's where the file's limit would refuse too many of them.

    Too many is half of those that the objective lets fail: the other half is for everything else that goes wrong.
    """
    allowed = (1 - target.percent / 100) / 2
    length, shape = model.engine.max_model_len, model.known_shape
    most = shape.max_position_embeddings if shape else length
    while 1 - load.share_within(length) > allowed and length < most:
        length = min(most, 1 << length.bit_length())
    if length == model.engine.max_model_len:
        return model
    engine = {"max_model_len": length, "buckets": Buckets(), "block_size": None}
    return model.model_copy(update={"engine": model.engine.model_copy(update=engine)})


def _with_batch(model: Model, batch: int) -> Model:
    """With another max_num_seqs, which is one block of the KV cache each."""
    engine = {"max_num_seqs": batch, "num_gpu_blocks_override": None}
    return model.model_copy(update={"engine": model.engine.model_copy(update=engine)})


def _current(platform: Platform, index: int, load: Measured, profiles: Sequence[MeasuredProfile]) -> Proposal:
    """What the file says: never ruled out, so that everything else can be held against it."""
    model = platform.models[index]
    instance = chosen_instance(platform, model)
    performance = replica_performance(model, instance, profiles)
    placed = fit(model, instance, model.tensor_parallel_size)
    floor = _floor(platform, model, placed, performance, load)
    setting = setting_of(model, instance.size)
    return Proposal(platform, setting, True, floor, performance)


def setting_of(model: Model, size: str) -> Setting:
    """What the file says of a model, on one of its sizes."""
    return Setting(
        family=model.accelerator.family,
        size=size,
        tensor_parallel_size=model.tensor_parallel_size,
        max_num_seqs=model.max_num_seqs,
        max_model_len=model.engine.max_model_len,
        min_replicas=model.scaling.min_replicas,
        max_replicas=model.scaling.max_replicas,
        queue_per_replica=model.scaling.queue_per_replica,
        warm_replicas=model.warm_capacity.replicas,
        spot=model.spot,
        schedule=described(model.schedule),
    )


def _around(
    platform: Platform,
    index: int,
    placed: Fit,
    load: Measured,
    target: ObjectiveTarget,
    profiles: Sequence[MeasuredProfile],
    schedule: Schedule | None,
) -> Iterator[Proposal]:
    """Candidates on one placement, or the one reason why there are none."""
    model = platform.models[index]
    assert load.mean
    if not placed.fits:
        yield _ruled_out(platform, placed, placed.reason)
        return
    performance = replica_performance(placed.model, placed.instance, profiles)
    slow = slowness(performance, load.mean, target)
    bought = _purchases(placed, model.spot)
    if slow or not bought:
        reason = slow or f"the catalog has no price for {placed.instance.name}"
        yield _ruled_out(platform, placed, reason, performance)
        return
    carried = _capacity(performance, load.mean, target)
    if carried is None:
        yield _ruled_out(platform, placed, "a queue in front of one replica misses the objective", performance)
        return
    quiet, least, most = _replicas(carried, load)
    limit = platform.node_pool(placed.instance.family).max_devices // placed.instance.devices
    if limit * placed.replicas_per_node < most:
        path = f"node_pools.{placed.instance.family}.max_devices"
        reason = f"the peak needs {most} replicas, and {path} has room for {limit * placed.replicas_per_node}"
        yield _ruled_out(platform, placed, reason, performance)
        return
    largest = min(_largest(model, most), limit * placed.replicas_per_node)
    for changed in _settings(placed.model, bought, (quiet, least, most), largest, schedule):
        yield _proposal(platform, index, placed, changed, performance, load)


def _settings(
    model: Model, bought: Sequence[Spot], counts: tuple[int, int, int], largest: int, schedule: Schedule | None
) -> Iterator[Model]:
    """The model with each sensible combination of counts, warm room, purchase and hours.

    Args:
        counts: replicas for quiet times, for the mean and for the peak.
    """
    quiet, mean, peak = counts
    for spot in bought:
        for smallest in sorted({quiet, mean, min(mean + 1, largest), peak}):
            scales = smallest < largest
            queues = {EAGER_QUEUE, model.scaling.queue_per_replica} if scales else {model.scaling.queue_per_replica}
            rooms = {0, WARM_ROOM, model.warm_capacity.replicas} if scales else {0}
            for queue, room in product(sorted(queues), sorted(rooms)):
                for hours in dict.fromkeys((model.schedule, schedule or model.schedule)):
                    yield _changed(model, smallest, largest, queue, room, spot, hours)


def _largest(model: Model, most: int) -> int:
    """The file's max_replicas where that is enough for the peak: a ceiling costs nothing until it is used."""
    return model.scaling.max_replicas if model.scaling.max_replicas >= most else most * PEAK_HEADROOM


def _changed(
    model: Model, smallest: int, largest: int, queue: int, room: int, spot: Spot, schedule: Schedule | None
) -> Model:
    counts = {"min_replicas": smallest, "max_replicas": largest, "queue_per_replica": queue}
    scaling = model.scaling.model_copy(update=counts)
    warm = model.warm_capacity.model_copy(update={"replicas": room})
    return model.model_copy(update={"scaling": scaling, "warm_capacity": warm, "spot": spot, "schedule": schedule})


def _proposal(
    platform: Platform, index: int, placed: Fit, model: Model, performance: ReplicaPerformance, load: Measured
) -> Proposal:
    changed = with_model(platform, index, model)
    refused = next(checks.problems(changed), None)
    reason = f"{refused.path} {refused.found}: {refused.why}" if refused else ""
    setting = setting_of(model, placed.instance.size)
    floor = _floor(changed, model, placed, performance, load)
    return Proposal(changed, setting, False, floor, performance, reason)


def with_model(platform: Platform, index: int, model: Model) -> Platform:
    """The platform with one model replaced, and without pools that no model uses any more."""
    models = (*platform.models[:index], model, *platform.models[index + 1 :])
    used = {each.accelerator.family for each in models}
    pools = {family: pool for family, pool in platform.node_pools.items() if family in used}
    return platform.model_copy(update={"models": models, "node_pools": pools})


def _ruled_out(platform: Platform, placed: Fit, reason: str, performance: ReplicaPerformance | None = None) -> Proposal:
    return Proposal(platform, setting_of(placed.model, placed.instance.size), False, None, performance, reason)


def _purchases(placed: Fit, wanted: Spot) -> tuple[Spot, ...]:
    """Ways to buy whose every price is known. Never on Spot and only on Spot are for the file to say; what prefers Spot
    is also tried without."""
    spot = placed.instance.spot_usd_hour is not None
    on_demand = placed.instance.on_demand_usd_hour is not None
    if wanted == "only":
        return ("only",) if spot else ()
    found: list[Spot] = []
    if spot and on_demand and wanted == "prefer":
        found.append("prefer")
    if on_demand:
        found.append("never")
    return tuple(found)


def _replicas(carried: float, load: Measured) -> tuple[int, int, int]:
    """Replicas for quiet times, for the mean and for the peak, each carrying so many requests a second."""
    mean = load.requests_per_second
    peak = max(load.summary.peak_requests_per_second, mean)
    quiet, middle, most = (max(1, ceil(rate / carried)) for rate in (load.quiet_requests_per_second, mean, peak))
    return quiet, middle, most


def _capacity(performance: ReplicaPerformance, mean: Load, target: ObjectiveTarget) -> float | None:
    found = capacity(
        performance,
        mean,
        time_to_first_token_seconds=target.time_to_first_token_seconds,
        inter_token_seconds=target.inter_token_seconds,
        share=target.percent / 100,
        bound=UTILIZATION_BOUND,
    )
    return found.requests_per_second if found and found.requests_per_second > 0 else None


def _floor(
    platform: Platform, model: Model, placed: Fit, performance: ReplicaPerformance, load: Measured
) -> Decimal | None:
    """A month at the lowest price that may be paid: min_replicas and warm room while awake, or if that is more the
    replicas that the mean keeps busy without a gap."""
    prices = [price.usd_hour for price in money.prices(platform, model, placed.instance).values()]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices) or not placed.replicas_per_node or load.mean is None:
        return None
    volume = volume_usd_month(platform.node_pool(placed.instance.family).volume) / HOURS_A_MONTH
    awake = awake_hours(model) / HOURS_A_MONTH
    slots = model.scaling.min_replicas + model.warm_capacity.replicas
    idle = Decimal(ceil(slots / placed.replicas_per_node)) * awake
    rate = highest_rate(performance, load.mean)
    needed = load.requests_per_second / rate / placed.replicas_per_node if rate > 0 else 0.0
    busy = Decimal(repr(SURE_SHARE * needed))
    return max(idle, busy) * (min(known) + volume) * HOURS_A_MONTH
