"""Objects as a cluster of ours has them, with what tests vary as arguments."""

from collections.abc import Mapping
from typing import Any

NAMESPACE = "genai-inference"


def scaled_object(
    name: str,
    *,
    annotations: Mapping[str, str] | None = None,
    minimum: int | None = 1,
    maximum: int | None = 4,
    conditions: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Of the model that the name says behind `vllm-`."""
    metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "labels": _labels(name)}
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    limits = {"minReplicaCount": minimum, "maxReplicaCount": maximum}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": metadata,
        "spec": {
            "scaleTargetRef": {"name": name},
            **{key: value for key, value in limits.items() if value is not None},
        },
        "status": {"conditions": _conditions(conditions or {"Ready": "True", "Paused": "False"})},
    }


def deployment(name: str, *, replicas: int | None = 1, total: int = 1, ready: int = 1) -> dict[str, Any]:
    spec = {} if replicas is None else {"replicas": replicas}
    # The API server leaves zeroes out of a status.
    status = {key: value for key, value in (("replicas", total), ("readyReplicas", ready)) if value}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": _labels(name)},
        "spec": spec,
        "status": status,
    }


def pod(
    name: str, *, model: str | None = None, node: str | None = None, ready: bool = True, ends_by: str | None = None
) -> dict[str, Any]:
    """Ending, when `ends_by` says by when."""
    metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE}
    if model:
        metadata["labels"] = {"genai-finops/model": model}
    if ends_by:
        metadata |= {"deletionTimestamp": ends_by, "deletionGracePeriodSeconds": 60}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Running" if node else "Pending", "conditions": _conditions({"Ready": str(ready)})},
    }


def node(
    name: str,
    *,
    instance: str | None = "i-0123456789abcdef0",
    instance_type: str = "inf2.xlarge",
    zone: str = "us-east-1b",
    capacity_type: str | None = "spot",
    pool: str | None = "inf2-spot",
    provider_id: str | None = None,
    taints: tuple[Mapping[str, str], ...] = (),
    images: int = 0,
) -> dict[str, Any]:
    """Launched by Karpenter unless `pool` is None; `images` makes it as fat as real ones are."""
    labels = {
        "node.kubernetes.io/instance-type": instance_type,
        "topology.kubernetes.io/zone": zone,
        "karpenter.sh/capacity-type": capacity_type,
        "karpenter.sh/nodepool": pool,
    }
    spec: dict[str, Any] = {"providerID": provider_id or f"aws:///{zone}/{instance}"}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value}},
        "spec": spec,
        "status": {
            "conditions": _conditions({"MemoryPressure": "False", "Ready": "True"}),
            "images": [{"names": [f"registry.example/{number:064}"], "sizeBytes": number} for number in range(images)],
        },
    }


def node_pool(name: str, *, limits: Mapping[str, Any] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"weight": 50}
    if limits is not None:
        spec["limits"] = dict(limits)
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"resources": {"nodes": "1", "cpu": "4"}},
    }


def _labels(name: str) -> dict[str, str]:
    return {"genai-finops/model": name.removeprefix("vllm-")}


def _conditions(statuses: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"type": kind, "status": status} for kind, status in statuses.items()]
