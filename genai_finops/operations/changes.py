"""The difference between what should be and what is, as merge patches (RFC 7386) of fields that are ours to change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from genai_finops.operations.desired import Desired, DesiredModel, DesiredNodePool, Reason
from genai_finops.operations.observed import Observed, ObservedModel, ObservedNodePool

PatchedKind = Literal["ScaledObject", "NodePool", "Deployment"]


@dataclass(frozen=True, slots=True)
class Patch:
    """One object's change.

    Attributes:
        subject: the model or NodePool it is for.
        namespace: None for an object of the whole cluster.
        body: only fields of `k8s_charts.runtime_owned`, and our own annotations.
        resource_version: of what was read; send it as `metadata.resourceVersion`, and on 409 read and compute again.
            Empty when the object was not read with one.
    """

    subject: str
    kind: PatchedKind
    namespace: str | None
    name: str
    body: Mapping[str, Any]
    resource_version: str = ""
    reasons: tuple[Reason, ...] = ()


def changes(desired: Desired, observed: Observed) -> tuple[Patch, ...]:
    """One patch per object that differs, NodePools first: a node asked for meanwhile should come from the right one."""
    found: list[Patch] = []
    for name, pool in desired.node_pools.items():
        found += _node_pool(name, pool, observed.node_pools[name])
    for name, model in desired.models.items():
        found += _model(name, model, observed.models[name])
    return tuple(found)


def _node_pool(name: str, wanted: DesiredNodePool, shown: ObservedNodePool) -> list[Patch]:
    if wanted.nodes_limit == shown.nodes_limit:
        return []
    body = {"spec": {"limits": {"nodes": wanted.nodes_limit}}}
    return [Patch(name, "NodePool", None, name, body, shown.resource_version, wanted.reasons)]


def _model(name: str, wanted: DesiredModel, shown: ObservedModel) -> list[Patch]:
    assert shown.scaled_object  # models without one are not in Desired
    found = []
    body: dict[str, Any] = {}
    there = shown.scaled_object.annotations
    annotations = {key: value for key, value in wanted.annotations.items() if there.get(key) != value}
    if annotations:
        body["metadata"] = {"annotations": annotations}
    spec: dict[str, int] = {}
    if shown.scaled_object.minimum != wanted.minimum:
        spec["minReplicaCount"] = wanted.minimum
    if shown.scaled_object.maximum != wanted.maximum:
        spec["maxReplicaCount"] = wanted.maximum
    if spec:
        body["spec"] = spec
    config = wanted.config
    if body:
        version = shown.scaled_object.resource_version
        found.append(Patch(name, "ScaledObject", config.namespace, config.deployment, body, version, wanted.reasons))
    if config.placeholder_deployment and shown.placeholders not in (None, wanted.placeholders):
        holding = {"spec": {"replicas": wanted.placeholders}}
        found.append(
            Patch(name, "Deployment", config.namespace, config.placeholder_deployment, holding, reasons=wanted.reasons)
        )
    return found
