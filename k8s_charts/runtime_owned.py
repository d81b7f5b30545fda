"""Fields that belong to whoever runs the platform, so that a deploy never takes back what they have set.

KEDA counts replicas, automation puts models to sleep and lowers maxima, the Spot breaker closes a pool, a
person holds a model. A deploy applies manifests; what stands here is split off and applied once, when an
object is new.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

Manifest: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RuntimeOwned:
    """A field of a kind. The last part of `path` may be a pattern over keys, such as `genai-finops/hold*`."""

    kind: str
    path: tuple[str, ...]
    owner: str
    reason: str


RUNTIME_OWNED: Final = (
    RuntimeOwned(
        "Deployment",
        ("spec", "replicas"),
        "KEDA; of placeholders the automation",
        "The autoscaler counts replicas, and placeholders sleep with their model; a deploy would reset the count.",
    ),
    RuntimeOwned(
        "Deployment",
        ("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"),
        "operator",
        "kubectl rollout restart sets it; taking it away would restart every replica once more.",
    ),
    RuntimeOwned(
        "ScaledObject",
        ("metadata", "annotations", "autoscaling.keda.sh/paused*"),
        "automation",
        "A model asleep outside its hours, or shut off by a guardrail, must not be woken by a deploy.",
    ),
    RuntimeOwned(
        "ScaledObject",
        ("metadata", "annotations", "autoscaling.keda.sh/force-activation"),
        "automation",
        "Set while a model is being woken, when its own metric does not exist yet.",
    ),
    RuntimeOwned(
        "ScaledObject",
        ("metadata", "annotations", "genai-finops/hold*"),
        "operator",
        "A person has said hands off, until a time.",
    ),
    RuntimeOwned(
        "ScaledObject",
        ("metadata", "annotations", "genai-finops/automation*"),
        "automation",
        "What it has changed and what was there before.",
    ),
    RuntimeOwned(
        "ScaledObject",
        ("spec", "minReplicaCount"),
        "automation",
        "Raised while the replacement of an interrupted replica is being warmed.",
    ),
    RuntimeOwned("ScaledObject", ("spec", "maxReplicaCount"), "automation", "Lowered by a budget guardrail."),
    RuntimeOwned(
        "NodePool",
        ("spec", "limits", "nodes"),
        "automation",
        "The Spot breaker closes a pool with nodes: 0; no manifest ever holds the key.",
    ),
)


def split_runtime_owned(manifest: Manifest) -> tuple[Manifest, Mapping[str, Any] | None]:
    """The manifest without fields that are owned at run time, and a merge patch with the values it had for
    them.

    The patch is None when there were none.
    """
    bare = deepcopy(dict(manifest))
    patch: dict[str, Any] = {}
    for path in runtime_owned_fields(manifest):
        _put(patch, path, _take(bare, path))
    return bare, patch or None


def runtime_owned_fields(manifest: Manifest) -> list[tuple[str, ...]]:
    """Paths in the manifest that are owned at run time."""
    return [
        path for owned in RUNTIME_OWNED if owned.kind == manifest["kind"] for path in _matches(manifest, owned.path)
    ]


def _matches(fields: Manifest, pattern: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    first, *rest = pattern
    for key, value in fields.items():
        if not fnmatchcase(key, first):
            continue
        if not rest:
            yield (key,)
        elif isinstance(value, Mapping):
            yield from ((key, *path) for path in _matches(value, tuple(rest)))


def _take(fields: dict[str, Any], path: tuple[str, ...]) -> Any:
    """Remove and return a field; an annotation map that is empty then goes too."""
    *parents, last = path
    holder = fields
    for key in parents:
        holder = holder[key]
    value = holder.pop(last)
    if not holder and parents and parents[-1] == "annotations":
        _take(fields, tuple(parents))
    return value


def _put(fields: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *parents, last = path
    for key in parents:
        fields = fields.setdefault(key, {})
    fields[last] = value
