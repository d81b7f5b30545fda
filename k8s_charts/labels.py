"""Labels and selectors that tie the objects of different charts together."""

from typing import Final

from genai_finops.spec import Model, names

COMMON: Final = {"app.kubernetes.io/part-of": "genai-finops"}
"""On every object, so that everything from these charts can be listed at once."""

APP: Final = "app"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""Kubernetes puts it on every namespace; network policies select namespaces by it."""

INSTANCE_FAMILY: Final = "karpenter.k8s.aws/instance-family"
INSTANCE_SIZE: Final = "karpenter.k8s.aws/instance-size"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
ARCHITECTURE: Final = "kubernetes.io/arch"
OPERATING_SYSTEM: Final = "kubernetes.io/os"

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"

TAINT_VALUE: Final = "true"
TAINT_EFFECT: Final = "NoSchedule"


def of(model: Model) -> dict[str, str]:
    """What every object of a model carries."""
    return {names.MODEL_LABEL: model.name}


def selector(model: Model) -> dict[str, str]:
    """What selects a model's pods, and never changes: a Deployment's selector is immutable."""
    return {APP: names.deployment(model)}


def pod(model: Model) -> dict[str, str]:
    return {**COMMON, **selector(model), **of(model)}


def node(vendor: str) -> dict[str, str]:
    """What Karpenter puts on the nodes of a vendor's devices, and pods ask for."""
    return {names.WORKLOAD_LABEL: names.WORKLOAD, names.ACCELERATOR_LABEL: names.accelerator_label(vendor)}
