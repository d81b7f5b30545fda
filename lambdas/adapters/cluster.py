"""The cluster as it shows itself: five lists, whatever its size, and patches written back one by one.

A patch names the version of the object that it was made for, so that a race with a person or another of our functions
ends with a second look and not with an overwrite.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Final, Self, TypeVar

from genai_finops import versions
from genai_finops.operations.changes import Patch, PatchedKind
from lambdas.adapters.kubernetes import KubernetesClient, Object, Resource
from lambdas.adapters.kubernetes_errors import ConflictError, KubernetesError, UnauthorizedError, UnreachableError

MODEL_LABEL: Final = "genai-finops/model"

NODE_POOL_LABEL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE_LABEL: Final = "karpenter.sh/capacity-type"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"

_INSTANCE_ID: Final = re.compile(r"i-[0-9a-f]{8,17}")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What all objects have.

    Attributes:
        namespace: None for what belongs to the cluster as a whole.
        resource_version: of this state; a change that was made for it is refused in any other.
    """

    RESOURCE: ClassVar[Resource]

    name: str
    namespace: str | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    resource_version: str

    @classmethod
    def of(cls, found: Object) -> Self:
        """From an object as the API server gives it."""
        return cls(**_metadata(found), **cls._fields(found))

    @classmethod
    def _fields(cls, found: Object) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def model(self) -> str | None:
        """The model it belongs to."""
        return self.labels.get(MODEL_LABEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledObject(View):
    """What KEDA is told about a model, and what it says.

    Attributes:
        deployment: the name of what it scales.
        min_replicas, max_replicas: None when the object leaves it to KEDA.
        conditions: type to status, such as `{"Ready": "True", "Paused": "False"}`. What they say is not yet so: look at
            the Deployment and its pods.
    """

    RESOURCE: ClassVar = Resource(versions.KEDA_API, "scaledobjects")

    deployment: str
    min_replicas: int | None
    max_replicas: int | None
    conditions: Mapping[str, str]

    @classmethod
    def _fields(cls, found: Object) -> dict[str, Any]:
        spec = found["spec"]
        return {
            "deployment": spec["scaleTargetRef"]["name"],
            "min_replicas": spec.get("minReplicaCount"),
            "max_replicas": spec.get("maxReplicaCount"),
            "conditions": _conditions(found),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment(View):
    """Replicas: wanted, there (`total`, those that are starting or ending included), and ready."""

    RESOURCE: ClassVar = Resource("apps/v1", "deployments")

    wanted: int
    total: int
    ready: int

    @classmethod
    def _fields(cls, found: Object) -> dict[str, Any]:
        wanted, status = found["spec"].get("replicas"), found.get("status") or {}
        return {
            "wanted": 1 if wanted is None else wanted,
            "total": status.get("replicas") or 0,
            "ready": status.get("readyReplicas") or 0,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod(View):
    """A replica, or something else in the models' namespace.

    Attributes:
        node: empty while it waits for one.
        is_ready: takes requests; never while it is ending.
        ends_by: when it has been told to end, the time at which its grace is over. Later than that it is held up.
    """

    RESOURCE: ClassVar = Resource("v1", "pods")

    node: str
    phase: str
    is_ready: bool
    created_at: datetime
    ends_by: datetime | None

    @classmethod
    def _fields(cls, found: Object) -> dict[str, Any]:
        ends_by = _time(found["metadata"].get("deletionTimestamp"))
        return {
            "node": found["spec"].get("nodeName") or "",
            "phase": (found.get("status") or {}).get("phase") or "Unknown",
            "is_ready": ends_by is None and _conditions(found).get("Ready") == "True",
            "created_at": _time(found["metadata"]["creationTimestamp"]),
            "ends_by": ends_by,
        }

    @property
    def is_terminating(self) -> bool:
        return self.ends_by is not None

    @property
    def is_finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(View):
    """A machine.

    Attributes:
        instance_id: of EC2; empty when it is not an instance.
        capacity_type: `spot`, `on-demand`, `reserved`; empty for nodes that Karpenter has not launched.
        node_pool: empty likewise.
        is_leaving: deleted, or marked by Karpenter to go.
    """

    RESOURCE: ClassVar = Resource("v1", "nodes")

    instance_id: str
    instance_type: str
    zone: str
    capacity_type: str
    node_pool: str
    is_ready: bool
    is_leaving: bool
    created_at: datetime

    @classmethod
    def _fields(cls, found: Object) -> dict[str, Any]:
        metadata, spec = found["metadata"], found["spec"]
        labels = metadata.get("labels") or {}
        disrupted = any(taint["key"] == DISRUPTED_TAINT for taint in spec.get("taints") or ())
        return {
            "instance_id": instance_id(spec.get("providerID") or ""),
            "instance_type": labels.get(INSTANCE_TYPE_LABEL, ""),
            "zone": labels.get(ZONE_LABEL, ""),
            "capacity_type": labels.get(CAPACITY_TYPE_LABEL, ""),
            "node_pool": labels.get(NODE_POOL_LABEL, ""),
            "is_ready": _conditions(found).get("Ready") == "True",
            "is_leaving": disrupted or "deletionTimestamp" in metadata,
            "created_at": _time(metadata["creationTimestamp"]),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool(View):
    """How much Karpenter may launch, and has launched, by resource (`cpu`, `memory`, `nodes`, devices)."""

    RESOURCE: ClassVar = Resource(versions.KARPENTER_API, "nodepools")

    limits: Mapping[str, str]
    in_use: Mapping[str, str]

    @classmethod
    def _fields(cls, found: Object) -> dict[str, Any]:
        return {
            # The API server takes numbers and strings; Karpenter itself writes strings.
            "limits": {key: str(value) for key, value in (found["spec"].get("limits") or {}).items()},
            "in_use": {key: str(value) for key, value in ((found.get("status") or {}).get("resources") or {}).items()},
        }


@dataclass(frozen=True)
class ClusterState:
    """What was seen, each list in the order of the API server. The lists are read one after the other, so they need not
    agree with each other to the second."""

    scaled_objects: tuple[ScaledObject, ...]
    deployments: tuple[Deployment, ...]
    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    node_pools: tuple[NodePool, ...]

    @cached_property
    def nodes_by_instance(self) -> Mapping[str, Node]:
        return {node.instance_id: node for node in self.nodes if node.instance_id}


V = TypeVar("V", bound=View)

PATCHED: Final[Mapping[PatchedKind, Resource]] = {
    "ScaledObject": ScaledObject.RESOURCE,
    "NodePool": NodePool.RESOURCE,
    "Deployment": Deployment.RESOURCE,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A patch that could not be applied, and why."""

    patch: Patch
    error: KubernetesError

    def __str__(self) -> str:
        return str(self.error)


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a set of patches.

    Attributes:
        conflicts: somebody else has changed these objects since they were read: look again, decide again.
    """

    done: tuple[Patch, ...]
    conflicts: tuple[Patch, ...]
    failures: tuple[Failure, ...]


class Cluster:
    """One cluster, and in it the namespace of the models."""

    def __init__(self, client: KubernetesClient, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def observe(self) -> ClusterState:
        """Look at everything.

        Raises:
            KubernetesError: when a list cannot be had; half a look is none.
        """
        return ClusterState(
            scaled_objects=self._all(ScaledObject, self._namespace),
            deployments=self._all(Deployment, self._namespace),
            pods=self._all(Pod, self._namespace),
            nodes=self._all(Node),
            node_pools=self._all(NodePool),
        )

    def apply(self, patches: Iterable[Patch]) -> Applied:
        """Apply each patch, whatever becomes of the others.

        Only when the API server is out of reach or does not know us, the rest is reported as failed without a try.
        """
        done: list[Patch] = []
        conflicts: list[Patch] = []
        failures: list[Failure] = []
        stopped_by: KubernetesError | None = None
        for patch in patches:
            if stopped_by:
                failures.append(Failure(patch, stopped_by))
                continue
            try:
                self._apply(patch)
            except ConflictError:
                conflicts.append(patch)
            except KubernetesError as error:
                failures.append(Failure(patch, error))
                if isinstance(error, (UnauthorizedError, UnreachableError)):
                    stopped_by = error
            else:
                done.append(patch)
        return Applied(tuple(done), tuple(conflicts), tuple(failures))

    def _apply(self, patch: Patch) -> None:
        self._client.merge_patch(
            PATCHED[patch.kind],
            patch.name,
            patch.body,
            namespace=patch.namespace,
            resource_version=patch.resource_version or None,
        )

    def _all(self, view: type[V], namespace: str | None = None) -> tuple[V, ...]:
        return tuple(self._client.list_as(view.RESOURCE, view.of, namespace=namespace))


def instance_id(provider_id: str) -> str:
    """`aws:///us-east-1b/i-0abc…` without all but the instance; empty when it names none, as for Fargate."""
    last = provider_id.rpartition("/")[2]
    return last if _INSTANCE_ID.fullmatch(last) else ""


def _metadata(found: Object) -> dict[str, Any]:
    metadata = found["metadata"]
    return {
        "name": metadata["name"],
        "namespace": metadata.get("namespace"),
        "labels": metadata.get("labels") or {},
        "annotations": metadata.get("annotations") or {},
        "resource_version": metadata["resourceVersion"],
    }


def _conditions(found: Object) -> dict[str, str]:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return {condition["type"]: condition["status"] for condition in conditions}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
