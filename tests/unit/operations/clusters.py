"""A small model of KEDA, the autoscaler, Karpenter and EC2: what they do with what the rules ask for.

Harsher than the real ones where those have been seen to fail: a model at zero replicas never wakes by its own metric.
Pods stand on nodes of their own, new ones first; a node that EC2 takes leaves its pod to be placed again.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

from genai_finops.operations import pauses
from genai_finops.operations.changes import Patch
from genai_finops.operations.config import ModelConfig, OperationsConfig
from genai_finops.operations.observed import Node, Observed, ObservedModel, ObservedNodePool, Replicas, ScaledObject
from tests.unit.operations.worlds import MINUTE

LOAD_TIME = 6 * MINUTE


@dataclass
class Pod:
    """Pending until it has a node, Ready when it has loaded there."""

    node: Node | None = None
    ready_at: datetime | None = None


@dataclass
class Served:
    """One model's ScaledObject and Deployment."""

    config: ModelConfig
    annotations: dict[str, str] = field(default_factory=dict)
    minimum: int = 1
    maximum: int = 1
    wanted: int = 0
    pods: list[Pod] = field(default_factory=list)
    load: int = 1
    requests: int | None = 0
    placeholders: int | None = None
    deaf: bool = False
    """KEDA does not notice what is forced."""

    def target(self) -> int:
        """What KEDA and its autoscaler ask the Deployment for."""
        if pauses.PAUSED_REPLICAS in self.annotations:
            return int(self.annotations[pauses.PAUSED_REPLICAS])
        if pauses.is_frozen(self.annotations):
            return self.wanted
        if self.wanted == 0 and (self.deaf or self.annotations.get(pauses.FORCE_ACTIVATION) != "true"):
            return 0
        return min(self.maximum, max(self.minimum, self.load))


class Cluster:
    """Everything that the rules see and change."""

    def __init__(self, config: OperationsConfig, now: datetime) -> None:
        self.config = config
        self.limits: dict[str, str | None] = {pool.name: None for pool in config.node_pools}
        self.models = {
            model.name: Served(model, minimum=model.min_replicas, maximum=model.max_replicas, wanted=1)
            for model in config.models
        }
        self._nodes = 0
        self.step(now)

    def apply(self, patches: tuple[Patch, ...]) -> None:
        """Merge patches, as the API server merges them."""
        for patch in patches:
            if patch.kind == "NodePool":
                self.limits[patch.name] = patch.body["spec"]["limits"]["nodes"]
                continue
            served = self.models[patch.subject]
            if patch.kind == "Deployment" and patch.name == served.config.placeholder_deployment:
                served.placeholders = patch.body["spec"]["replicas"]
                continue
            spec = patch.body.get("spec", {})
            served.minimum = spec.get("minReplicaCount", served.minimum)
            served.maximum = spec.get("maxReplicaCount", served.maximum)
            served.wanted = spec.get("replicas", served.wanted)
            merged = {**served.annotations, **patch.body.get("metadata", {}).get("annotations", {})}
            served.annotations = {name: value for name, value in merged.items() if value is not None}

    def step(self, now: datetime) -> None:
        """KEDA counts, the ReplicaSet follows, Karpenter launches."""
        for served in self.models.values():
            served.wanted = served.target()
            del served.pods[served.wanted :]
            served.pods += [Pod() for _ in range(served.wanted - len(served.pods))]
            for pod in served.pods:
                if pod.node is None:
                    pod.node = self._launch(served.config)
                    pod.ready_at = now + LOAD_TIME if pod.node else None

    def _launch(self, model: ModelConfig) -> Node | None:
        for pool in self.config.node_pools:
            if pool.family == model.family and self.limits[pool.name] != "0":
                self._nodes += 1
                number = self._nodes
                return Node(
                    name=f"node-{number}",
                    instance_id=f"i-{number}",
                    instance_type=f"{pool.family}.xlarge",
                    zone=pool.zones[number % len(pool.zones)],
                    capacity_type=pool.capacity_type,
                    node_pool=pool.name,
                    replicas={model.name: 1},
                )
        return None

    def reclaim(self, instance_id: str) -> None:
        """EC2 takes a node; its pod goes back to the queue."""
        for served in self.models.values():
            for pod in served.pods:
                if pod.node and pod.node.instance_id == instance_id:
                    pod.node, pod.ready_at = None, None

    @property
    def nodes(self) -> list[Node]:
        return [pod.node for served in self.models.values() for pod in served.pods if pod.node]

    def observe(self, now: datetime) -> Observed:
        models = {}
        for name, served in self.models.items():
            ready = sum(pod.ready_at is not None and pod.ready_at <= now for pod in served.pods)
            models[name] = ObservedModel(
                ScaledObject(dict(served.annotations), served.minimum, served.maximum),
                Replicas(served.wanted, len(served.pods), ready),
                served.requests if served.pods else None,
                served.placeholders,
            )
        pools = {name: ObservedNodePool(limit) for name, limit in self.limits.items()}
        return Observed(models, tuple(self.nodes), pools)

    def summary(self) -> dict[str, object]:
        """What two clusters that saw the same must agree on."""
        return {
            "limits": dict(self.limits),
            **{
                name: (dict(served.annotations), served.minimum, served.maximum, served.wanted, served.placeholders)
                for name, served in self.models.items()
            },
        }

    def with_config(self, config: OperationsConfig) -> None:
        """A deploy: what runs stays as it is."""
        self.config = config
        for model in config.models:
            self.models[model.name] = replace(self.models[model.name], config=model)
