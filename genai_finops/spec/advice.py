"""What works but costs: warnings, with what each costs and what to do about it."""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from math import ceil
from typing import Final

from genai_finops.catalog import InstanceType, end_of_standard_support, families, price
from genai_finops.catalog.instances import GIB
from genai_finops.spec import placement
from genai_finops.spec.model import Model
from genai_finops.spec.platform import Platform
from genai_finops.spec.problems import Warning

HOURS_A_MONTH: Final = 730
SUPPORT_NOTICE: Final = timedelta(days=90)
SLOW_VOLUME_MIB_S: Final = 250
ADVISED_MIB_S: Final = 1000
ADVISED_IOPS: Final = 4000
COMPILE_MINUTES: Final = 15
"""For a model of 15 GB (Neuron SDK documentation, vLLM user guide)."""


def warnings(platform: Platform, today: date) -> Iterator[Warning]:
    """All warnings for a valid platform, as of a day."""
    yield from _kubernetes(platform, today)
    yield from _network(platform)
    yield from _budget(platform)
    for index, model in enumerate(platform.models):
        yield from _model(model, f"models[{index}]")
    for family in platform.families:
        yield from _pool(platform, family)


def _kubernetes(platform: Platform, today: date) -> Iterator[Warning]:
    version = platform.cluster.version
    end = end_of_standard_support(version)
    if today <= end - SUPPORT_NOTICE:
        return
    standard, extended = price("eks_cluster_hour").usd, price("eks_cluster_hour_extended_support").usd
    extra = (extended - standard) * HOURS_A_MONTH
    when = f"left standard support on {end}" if today > end else f"leaves standard support on {end}"
    yield Warning(
        "cluster.version",
        f"Kubernetes {version} {when}. Extended support costs ${extended} instead of ${standard} per cluster-hour, "
        f"${extra:.2f} more a month; with the STANDARD policy set here EKS upgrades the cluster by itself instead.",
        "Plan the upgrade now.",
    )


def _network(platform: Platform) -> Iterator[Warning]:
    count = platform.network.nat_gateways
    if count > 1:
        monthly = price("nat_gateway_hour").usd * HOURS_A_MONTH
        yield Warning(
            "network.nat_gateways",
            f"{count} NAT gateways cost ${monthly * count:.2f} a month; one costs ${monthly:.2f}.",
            "One is enough unless image pulls and API calls must survive the loss of a zone.",
        )


def _budget(platform: Platform) -> Iterator[Warning]:
    if platform.budget is None:
        yield Warning("budget", "There is no budget: nothing will say when spend runs away.", "Set budget.monthly_usd.")


def _model(model: Model, path: str) -> Iterator[Warning]:
    if model.spot == "never":
        yield from _on_demand_only(model, path)
    elif model.scaling.min_replicas == 1:
        yield Warning(
            f"{path}.scaling.min_replicas",
            f"{model.name} keeps one replica, on Spot: when it is reclaimed nothing serves until another is loaded.",
            "Set it to 2, or accept minutes without an answer a few times a year.",
        )
    yield from _cheaper_size(model, path)
    yield from _memory_bound(model, path)
    yield from _compile_on_start(model, path)


def _on_demand_only(model: Model, path: str) -> Iterator[Warning]:
    instance = placement.instances(model)[0]
    costs = ""
    if instance.spot_usd_hour is not None and instance.on_demand_usd_hour is not None:
        saved = 1 - instance.spot_usd_hour / instance.on_demand_usd_hour
        hourly = f"${instance.on_demand_usd_hour:.2f} an hour on demand, about {saved:.0%} less on Spot"
        costs = f": {instance.name} costs {hourly}"
    yield Warning(
        f"{path}.spot",
        f"{model.name} never runs on Spot{costs}.",
        "Use prefer, unless an interruption is not to be borne.",
    )


def _cheaper_size(model: Model, path: str) -> Iterator[Warning]:
    """A size left out that carries the same devices for less."""
    chosen = placement.instances(model)
    cheapest = min(chosen, key=_hourly)
    if cheapest.on_demand_usd_hour is None:
        return
    stored = _from_the_store(model)
    for other in families()[model.accelerator.family]:
        if other in chosen or other.devices != cheapest.devices or other.on_demand_usd_hour is None:
            continue
        cheaper = other.on_demand_usd_hour < cheapest.on_demand_usd_hour
        if cheaper and placement.serves_on(stored, other) and placement.has_room(model, other):
            share = other.on_demand_usd_hour / cheapest.on_demand_usd_hour
            saved = (cheapest.on_demand_usd_hour - other.on_demand_usd_hour) * HOURS_A_MONTH
            able = placement.serves_on(model, other)
            yield Warning(
                f"{path}.accelerator.sizes",
                f"{other.name} has the same accelerator as {cheapest.name} for {share:.0%} of the price "
                f"(${other.on_demand_usd_hour:.2f} instead of ${cheapest.on_demand_usd_hour:.2f} an hour), and would "
                f"serve {model.name} from the model store: ${saved:.2f} less a month for each replica that is always "
                "awake, on demand.",
                f"Add {other.size} to the sizes; it is still compiled on a larger one."
                if able
                else f"Leave allow_compile_on_start out, and add {other.size} to the sizes.",
            )
            return


def _hourly(instance: InstanceType) -> Decimal:
    return instance.on_demand_usd_hour or Decimal("Infinity")


def _from_the_store(model: Model) -> Model:
    engine = model.engine.model_copy(update={"allow_compile_on_start": False})
    return model.model_copy(update={"engine": engine})


def _memory_bound(model: Model, path: str) -> Iterator[Warning]:
    for instance in placement.instances(model):
        by_devices = placement.node_share(model, instance).replicas
        fitting = placement.replicas_per_node(model, instance)
        if fitting < by_devices:
            yield Warning(
                f"{path}.resources",
                f"{fitting} replicas fit on {instance.name}, whose devices would carry {by_devices}: the rest stands "
                "idle and is paid for.",
                "Ask for less CPU or memory per replica, or leave them out.",
            )


def _compile_on_start(model: Model, path: str) -> Iterator[Warning]:
    if not model.engine.allow_compile_on_start:
        return
    instance = placement.instances(model)[0]
    hourly = instance.on_demand_usd_hour
    cost = f", ${hourly * COMPILE_MINUTES / 60:.2f} on demand for {instance.name}" if hourly else ""
    yield Warning(
        f"{path}.engine.allow_compile_on_start",
        f"Each server of {model.name} compiles its graphs before the first answer: {COMPILE_MINUTES} minutes or more"
        f"{cost}, at every start.",
        "Leave it out: graphs then come from the model store, and a server that finds none says at once what to run.",
    )


def _pool(platform: Platform, family: str) -> Iterator[Warning]:
    pool = platform.node_pool(family)
    path = f"node_pools.{family}"
    throughput = pool.volume.throughput_mib_s
    if throughput <= SLOW_VOLUME_MIB_S:
        more_throughput = (ADVISED_MIB_S - throughput) * price("gp3_throughput_mib_month").usd
        more_iops = max(0, ADVISED_IOPS - pool.volume.iops) * price("gp3_iops_month").usd
        extra = (more_throughput + more_iops) / HOURS_A_MONTH
        yield Warning(
            f"{path}.volume.throughput_mib_s",
            f"At {throughput} MiB/s 16 GB of weights take {16e9 / 2**20 / throughput:.0f} s to read, while the "
            f"accelerator waits. {ADVISED_MIB_S} MiB/s cost ${extra:.3f} more per node-hour.",
            f"Raise it to {ADVISED_MIB_S}, and iops to {ADVISED_IOPS}.",
        )
    yield from _full_volume(platform, family)
    wanted = sum(_devices_at_most(model) for model in platform.models_on(family))
    if wanted > pool.max_devices:
        yield Warning(
            f"{path}.max_devices",
            f"All replicas at their maximum need {wanted} devices; the pools stop at {pool.max_devices}.",
            "Raise it, or lower max_replicas: pods beyond it stay pending.",
        )


def _full_volume(platform: Platform, family: str) -> Iterator[Warning]:
    """A node holds the model that it serves once, however many replicas share it."""
    size = platform.node_pool(family).volume.size_gib
    for model in platform.models_on(family):
        stored = placement.stored_bytes(model) / GIB
        needed = ceil(placement.IMAGE_GIB + stored)
        if needed > size:
            what = "weights and compiled graphs" if model.is_neuron else "weights"
            yield Warning(
                f"node_pools.{family}.volume.size_gib",
                f"{stored:.0f} GiB of {what} and the image take about {needed} GiB; the volume has {size}, and a full "
                f"one evicts {model.name}.",
                f"Set it to {needed} or more.",
            )


def _devices_at_most(model: Model) -> int:
    return model.scaling.max_replicas * placement.devices_per_replica(model, placement.instances(model)[0])
