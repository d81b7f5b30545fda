"""Warm the replacement of a replica before EC2 takes the replica away.

Karpenter drains a node on the two-minute warning and does nothing on a rebalance recommendation; a model takes many
minutes to load. Asking for more replicas at the first sign wins most of those minutes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from genai_finops.operations.losses import Loss, Sign
from genai_finops.operations.observed import Node


@dataclass(frozen=True, slots=True)
class PrewarmPolicy:
    """How long a sign is believed.

    Attributes:
        hold_seconds: from each sign on. A load on a fresh node takes 6 to 11 minutes in published measurements; twice
            that covers one with a queue for capacity, and a recommendation that has not come true by then is a hunch.

    Raises:
        ValueError: when it is not at least a minute.
    """

    hold_seconds: int = 1200

    def __post_init__(self) -> None:
        if self.hold_seconds < 60:
            raise ValueError(f"A minimum is raised for 60 seconds at least, not {self.hold_seconds}")

    @property
    def hold(self) -> timedelta:
        return timedelta(seconds=self.hold_seconds)


@dataclass(frozen=True, slots=True)
class AtRisk:
    """Replicas of one model that are about to go.

    Attributes:
        replicas: on nodes that EC2 takes away, still running.
        serving: what the model had when the first of these signs came; 0 when no sign says.
        until: the last moment at which a sign is believed.
        instance_ids: of those nodes.
    """

    replicas: int
    serving: int
    until: datetime
    instance_ids: tuple[str, ...]

    def minimum(self, minimum: int, maximum: int) -> int:
        """The raised minimum: what served, or should, and one more for each replica at risk; never above the maximum.

        The plain minimum is no floor to start from: a model that load has driven to eight replicas and that loses
        two would not notice that its minimum went from one to three.
        """
        return max(minimum, min(maximum, max(minimum, self.serving) + self.replicas))


def at_risk(
    losses: Iterable[Loss], nodes: Mapping[str, Node], policy: PrewarmPolicy, now: datetime
) -> dict[str, AtRisk]:
    """Replicas at risk, by model.

    Those that still run on a node with a believed sign. A replica that has gone needs no raised minimum: its
    ReplicaSet has already asked for another one, and counting it on would start a third.

    Args:
        losses: merged, so that each instance stands once.
        nodes: by instance id, as the cluster shows them.
        now: aware; signs after it are ignored.
    """
    replicas: dict[str, int] = {}
    until: dict[str, datetime] = {}
    instances: dict[str, list[str]] = {}
    signs: list[Sign] = []
    for loss in losses:
        given = [sign for sign in loss.signs if sign.at <= now and not sign.voluntary]
        signs += given
        believed = [sign.at + policy.hold for sign in given if now < sign.at + policy.hold]
        node = nodes.get(loss.instance_id)
        if not believed or node is None:
            continue
        for model, count in node.replicas.items():
            if count > 0:
                replicas[model] = replicas.get(model, 0) + count
                until[model] = max(until.get(model, believed[0]), *believed)
                instances.setdefault(model, []).append(loss.instance_id)
    serving = _served_before(signs, policy) if replicas else {}
    return {
        model: AtRisk(count, serving.get(model, 0), until[model], tuple(sorted(instances[model])))
        for model, count in replicas.items()
    }


def _served_before(signs: Iterable[Sign], policy: PrewarmPolicy) -> dict[str, int]:
    """By model, what served at the first sign of the latest unbroken row of them.

    Later signs saw the count with what had been raised for the earlier ones; taking theirs would climb step by step.
    """
    served: dict[str, int] = {}
    believed_until: dict[str, datetime] = {}
    for sign in sorted(signs, key=lambda sign: (sign.at, sign.instance_id, sign.kind)):
        for model, count in sign.serving.items():
            ends = believed_until.get(model)
            if ends is None or sign.at >= ends:
                served[model] = count
            believed_until[model] = sign.at + policy.hold
    return served
