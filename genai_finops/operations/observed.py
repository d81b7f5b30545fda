"""What the cluster shows at one moment: the few fields that the rules read, and nothing of how they were read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from genai_finops.operations.losses import CapacityType, Pool


@dataclass(frozen=True, slots=True)
class ScaledObject:
    """KEDA's object of a model.

    Attributes:
        annotations: empty when it has none.
        minimum, maximum: None when the field is absent.
        resource_version: for patches that must not overwrite what someone else has changed since.
    """

    annotations: Mapping[str, str] = field(default_factory=dict)
    minimum: int | None = None
    maximum: int | None = None
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Replicas:
    """A model's Deployment.

    Attributes:
        wanted: `spec.replicas`.
        total: pods that are not Terminating (`status.replicas`).
        ready: `status.readyReplicas`.
        draining: pods that are Terminating; they still hold their nodes.
    """

    wanted: int = 0
    total: int = 0
    ready: int = 0
    draining: int = 0


@dataclass(frozen=True, slots=True)
class ObservedModel:
    """One model; leave out one that could not be read as a whole, so that nothing is decided about it.

    Attributes:
        scaled_object: None when the cluster has none.
        requests: running and waiting; None when nobody could say, as when Prometheus does not answer.
        placeholders: replicas that its placeholder Deployment asks for; None when it has none.
    """

    scaled_object: ScaledObject | None = None
    replicas: Replicas = Replicas()
    requests: int | None = None
    placeholders: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One node that Karpenter has launched.

    Attributes:
        replicas: by model, pods on it that are not Terminating.
        draining: by model, pods on it that are.
    """

    name: str
    instance_id: str
    instance_type: str
    zone: str
    capacity_type: CapacityType
    node_pool: str
    replicas: Mapping[str, int] = field(default_factory=dict)
    draining: Mapping[str, int] = field(default_factory=dict)

    @property
    def pool(self) -> Pool:
        return Pool(self.instance_type, self.zone)


@dataclass(frozen=True, slots=True)
class ObservedNodePool:
    """A NodePool; `nodes_limit` is `spec.limits.nodes`, None when absent."""

    nodes_limit: str | None = None
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """The cluster, models and NodePools by name."""

    models: Mapping[str, ObservedModel] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    node_pools: Mapping[str, ObservedNodePool] = field(default_factory=dict)
