"""Where pods of a model may run, as Kubernetes is told: for servers, for jobs, and for pods that hold room for them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cdk8s_plus_28 import k8s

from genai_finops.catalog import InstanceType
from genai_finops.spec import Model, names, placement
from genai_finops.spec.model import Spot
from k8s_charts import labels
from k8s_charts.values import quantity

DEVICE_OPERATOR: Final = "Equal"


def node_labels(model: Model, spot: Spot) -> dict[str, str]:
    """What a node must be labelled with, bought as `spot` says."""
    capacity_type = {"never": labels.ON_DEMAND, "only": labels.SPOT}.get(spot)
    chosen = {labels.CAPACITY_TYPE: capacity_type} if capacity_type else {}
    return {**labels.node(model.vendor), **chosen}


def instance_rules(instances: Sequence[InstanceType]) -> list[dict[str, Any]]:
    """Other models' sizes in the same pool may be too small for this one, or cost more than it needs."""
    wanted = {
        labels.INSTANCE_FAMILY: [instances[0].family],
        labels.INSTANCE_SIZE: [instance.size for instance in instances],
    }
    return [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()]


def affinity(instances: Sequence[InstanceType]) -> k8s.Affinity:
    term = k8s.NodeSelectorTerm(
        match_expressions=[k8s.NodeSelectorRequirement(**rule) for rule in instance_rules(instances)]
    )
    required = k8s.NodeSelector(node_selector_terms=[term])
    return k8s.Affinity(node_affinity=k8s.NodeAffinity(required_during_scheduling_ignored_during_execution=required))


def toleration(model: Model) -> dict[str, str]:
    """Of the taint that keeps everything else off the model's nodes."""
    return {
        "key": names.device_resource(model.vendor),
        "operator": DEVICE_OPERATOR,
        "value": labels.TAINT_VALUE,
        "effect": labels.TAINT_EFFECT,
    }


def tolerated(model: Model) -> k8s.Toleration:
    taint = toleration(model)
    return k8s.Toleration(key=taint["key"], operator=taint["operator"], value=taint["value"], effect=taint["effect"])


def scheduler(model: Model) -> str | None:
    """Replicas that share a Neuron node need devices that are neighbours, which only this scheduler looks at."""
    return names.NEURON_SCHEDULER if model.is_neuron and placement.shares_a_node(model) else None


def limits(model: Model) -> Mapping[str, str]:
    """What one replica may use, and asks for."""
    count = placement.devices_per_replica(model, placement.instances(model)[0])
    return {
        "memory": f"{placement.memory_gib(model)}Gi",
        names.device_resource(model.vendor): str(count),
    }


def resources(model: Model, *, devices: bool) -> k8s.ResourceRequirements:
    """CPU has no limit: throttling the loop that feeds the accelerator would idle what costs most."""
    wanted = {
        resource: quantity(amount) for resource, amount in limits(model).items() if devices or resource == "memory"
    }
    return k8s.ResourceRequirements(requests={"cpu": quantity(str(placement.cpu(model))), **wanted}, limits=wanted)
