"""Success is what the cluster shows, not that a patch was accepted.

KEDA has been seen paused with replicas unchanged, and deaf to an annotation that was taken away. So every evaluation
compares again; what does not follow for a while is tried by another road, and then told, once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from genai_finops.operations.changes import Patch, changes
from genai_finops.operations.desired import Desired, DesiredModel
from genai_finops.operations.observed import Node, Observed, ObservedModel

RETRY_AFTER: Final = timedelta(minutes=5)
"""KEDA polls every 5 minutes at the slowest."""

TELL_AFTER: Final = timedelta(minutes=30)
"""What neither loads nor drains is done within a few evaluations; beyond this somebody should look."""

NODE_TIME: Final = timedelta(minutes=15)
"""For a node to be launched and the image to arrive before the server's own start counts, or for an empty one to go
(measured publicly: four and a half minutes on an idle day)."""


class Fault(StrEnum):
    """How the cluster differs from what should be."""

    NOT_APPLIED = "not-applied"
    STILL_RUNNING = "still-running"
    DRAINING = "draining"
    NODES_LEFT = "nodes-left"
    NOT_READY = "not-ready"


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference, of a model, NodePool or family; `patience` is how long it may take to go away by itself."""

    subject: str
    fault: Fault
    text: str
    patience: timedelta = TELL_AFTER

    @property
    def key(self) -> str:
        return f"{self.subject}/{self.fault}"


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What to do about deviations, and what to keep for the next time.

    Attributes:
        retry: those to try by `second_road`.
        tell: those to report now.
        recovered: keys that were reported and are gone.
        first_seen: keep this.
        told: and this.
    """

    retry: tuple[Deviation, ...]
    tell: tuple[Deviation, ...]
    recovered: tuple[str, ...]
    first_seen: Mapping[str, datetime]
    told: frozenset[str]


def verify(desired: Desired, observed: Observed) -> tuple[Deviation, ...]:
    """Everything that is not as it should be, whether or not it only needs time."""
    found = [
        Deviation(patch.subject, Fault.NOT_APPLIED, f"{patch.kind} {patch.name} still differs: {dict(patch.body)}")
        for patch in changes(desired, observed)
    ]
    for name, model in desired.models.items():
        found += _model(name, model, observed.models[name])
    found += _nodes_left(desired, observed)
    return tuple(found)


def follow_up(
    deviations: Iterable[Deviation], first_seen: Mapping[str, datetime], told: Iterable[str], now: datetime
) -> FollowUp:
    """Retry after a while, tell once after a longer one; a deviation that goes away starts anew.

    Args:
        first_seen, told: of the last evaluation.
    """
    present = {deviation.key: deviation for deviation in deviations}
    seen = {key: min(first_seen.get(key, now), now) for key in present}
    known = set(told)
    tell = tuple(one for key, one in present.items() if now - seen[key] >= one.patience and key not in known)
    return FollowUp(
        retry=tuple(one for key, one in present.items() if now - seen[key] >= RETRY_AFTER),
        tell=tell,
        recovered=tuple(sorted(known - present.keys())),
        first_seen=seen,
        told=frozenset(known & present.keys() | {one.key for one in tell}),
    )


def second_road(deviations: Iterable[Deviation], desired: Desired, observed: Observed) -> tuple[Patch, ...]:
    """Patches of the Deployment itself for models that KEDA does not move.

    KEDA undoes a count that differs from its own; this is the count it was told, so there is nothing to undo.
    """
    found = []
    for deviation in deviations:
        model = desired.models.get(deviation.subject)
        if model is None or model.someone:
            continue
        wanted = 0 if deviation.fault is Fault.STILL_RUNNING else model.minimum
        is_behind = deviation.fault is Fault.NOT_READY and observed.models[deviation.subject].replicas.wanted < wanted
        if deviation.fault is Fault.STILL_RUNNING or is_behind:
            config = model.config
            body = {"spec": {"replicas": wanted}}
            found.append(Patch(config.name, "Deployment", config.namespace, config.deployment, body))
    return tuple(found)


def _model(name: str, wanted: DesiredModel, shown: ObservedModel) -> list[Deviation]:
    replicas = shown.replicas
    if wanted.asleep:
        if replicas.total:
            return [Deviation(name, Fault.STILL_RUNNING, f"{name} should sleep and runs {replicas.total} replicas")]
        if replicas.draining:
            text = f"{name} sleeps as soon as {replicas.draining} replicas have stopped; they still hold their nodes"
            return [Deviation(name, Fault.DRAINING, text, TELL_AFTER + timedelta(seconds=wanted.config.drain_seconds))]
        return []
    if not wanted.someone and replicas.ready < wanted.minimum:
        text = f"{name} has {replicas.ready} of at least {wanted.minimum} replicas Ready"
        patience = NODE_TIME + timedelta(seconds=wanted.config.startup_seconds)
        return [Deviation(name, Fault.NOT_READY, text, patience)]
    return []


def _nodes_left(desired: Desired, observed: Observed) -> list[Deviation]:
    """Nodes of families in which everything sleeps: they cost as much as if they served."""
    sleeping: dict[str, bool] = {}
    for name, model in desired.models.items():
        shown = observed.models[name]
        is_gone = model.asleep and not shown.replicas.total and not shown.replicas.draining and not shown.placeholders
        sleeping[model.config.family] = sleeping.get(model.config.family, True) and is_gone
    families = {name: pool.config.family for name, pool in desired.node_pools.items()}
    standing: dict[str, int] = {}
    for pool in desired.node_pools.values():
        family = pool.config.family
        standing[family] = max(standing.get(family, 0), pool.config.consolidate_after_minutes)
    left: dict[str, list[Node]] = {}
    for node in observed.nodes:
        owner = families.get(node.node_pool)
        if owner and sleeping.get(owner):
            left.setdefault(owner, []).append(node)
    return [
        Deviation(
            family,
            Fault.NODES_LEFT,
            f"{len(nodes)} nodes of {family} run for nobody: all its models sleep",
            NODE_TIME + timedelta(minutes=standing[family]),
        )
        for family, nodes in sorted(left.items())
    ]
