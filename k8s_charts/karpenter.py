"""Accelerator nodes: one class and up to two pools per instance family, launched when a pod asks for them."""

from math import ceil
from typing import Final

from cdk8s import Chart
from constructs import Construct

from genai_finops.spec import Model, Platform, names, placement
from k8s_charts import labels
from k8s_charts.custom import Disruption, NodePool
from k8s_charts.node_class import add_node_class

SPOT_WEIGHT: Final = 50
ON_DEMAND_WEIGHT: Final = 10
"""Karpenter asks the heavier pool first, and the other when that one has no capacity or is at its limits."""

BUDGETS: Final = (
    # An empty node serves nobody and costs the same, so all may go at once.
    Disruption(nodes="100%", reason="Empty"),
    # A drifted node serves: its models load elsewhere for minutes, so one at a time, whatever the pool's
    # size.
    Disruption(nodes="1", reason="Drifted"),
)


class KarpenterChart(Chart):
    """For every family in use, where its models may run."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "karpenter", labels=labels.COMMON)
        for family in platform.families:
            AcceleratorPools(self, family, platform=platform, family=family)


class AcceleratorPools(Construct):
    """The nodes of one family: Spot first, on demand when Spot has none or is shut off.

    Where EC2 has no Spot capacity, Karpenter goes on to the pool of lower weight by itself. One pool for each way
    to buy, so that run-time automation can close either (`limits.nodes: 0`, which drifts no node): Spot in a
    storm, on demand when the budget says so; the limits of a mixed pool could not tell them apart. Karpenter
    cannot share limits between pools, so each has the whole; what is launched in the end is bounded by the
    ScaledObjects' maxima as well.

    Only WhenEmpty consolidation: moving a server to save a part of a node costs minutes of loading, on two
    nodes.
    """

    def __init__(self, scope: Construct, id: str, *, platform: Platform, family: str) -> None:
        super().__init__(scope, id)
        models = platform.models_on(family)
        add_node_class(self, platform, family)
        if any(model.spot != "never" for model in models):
            self._pool(platform, family, names.spot_node_pool(family), SPOT_WEIGHT, labels.SPOT)
        if any(model.spot != "only" for model in models):
            self._pool(platform, family, names.on_demand_node_pool(family), ON_DEMAND_WEIGHT, labels.ON_DEMAND)

    def _pool(self, platform: Platform, family: str, name: str, weight: int, capacity_type: str) -> None:
        models = platform.models_on(family)
        settings = platform.node_pool(family)
        sizes = dict.fromkeys(instance.size for model in models for instance in placement.pool_instances(model))
        NodePool(
            self,
            name,
            name=name,
            node_class=names.node_class(family),
            weight=weight,
            node_labels=labels.node(models[0].vendor),
            taint=names.device_resource(models[0].vendor),
            requirements={
                labels.INSTANCE_FAMILY: [family],
                labels.INSTANCE_SIZE: list(sizes),
                labels.CAPACITY_TYPE: [capacity_type],
                labels.ZONE: list(platform.zones),
                labels.ARCHITECTURE: ["amd64"],
                labels.OPERATING_SYSTEM: ["linux"],
            },
            limits=limits(platform, family),
            consolidate_after_minutes=settings.consolidate_after_minutes,
            expire_after_hours=settings.expire_after_hours,
            termination_grace_minutes=termination_grace_minutes(models),
            budgets=BUDGETS,
        )


def limits(platform: Platform, family: str) -> dict[str, str]:
    """The devices of the file, and the CPU and memory that come with as many on the type richest in each.

    CPU and memory never bind before the devices do; they are there for the day when a type without devices
    slips through the requirements.
    """
    devices = platform.node_pool(family).max_devices
    models = platform.models_on(family)
    types = [instance for model in models for instance in placement.pool_instances(model)]
    cpu = max(ceil(devices * instance.vcpu / instance.devices) for instance in types)
    memory_mib = max(ceil(devices * instance.memory_mib / instance.devices) for instance in types)
    return {
        names.device_resource(models[0].vendor): str(devices),
        "cpu": str(cpu),
        "memory": f"{ceil(memory_mib / 1024)}Gi",
    }


def termination_grace_minutes(models: tuple[Model, ...]) -> int:
    """How long a node may take to drain before it is ended with its pods.

    Disruption budgets let replicas of a model go one at a time, each once its successor has loaded elsewhere.
    Longer than the fullest node needs for that, a drain is stuck, and the node would be paid for without end.
    """
    return max(
        ceil(model.probes.startup_seconds * max(1, placement.replicas_per_node(model, instance)) / 60)
        for model in models
        for instance in placement.instances(model)
    )
