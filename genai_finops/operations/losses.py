"""What EC2 says about instances it takes away, and what of it is the same loss.

One instance is lost once, however many events say so: a rebalance recommendation, an interruption warning and a state
change may come in any order, late, twice or not at all. Signs are kept as they come; what they mean is computed, so
that the order of arrival cannot matter.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, TypeVar

from genai_finops.operations.codec import aware

CapacityType = Literal["spot", "on-demand", "reserved"]
"""Values of Karpenter's `karpenter.sh/capacity-type`."""

T = TypeVar("T")


class SignKind(StrEnum):
    """Kinds of signs, from a hunch to a certainty."""

    REBALANCE = "rebalance-recommendation"
    SCHEDULED_CHANGE = "scheduled-change"
    RESERVATION = "capacity-reservation-interruption"
    WARNING = "interruption-warning"
    GONE = "state-change"


_RANK: Final = {kind: rank for rank, kind in enumerate(SignKind)}


@dataclass(frozen=True, slots=True)
class Pool:
    """What EC2 reclaims together: one instance type in one zone."""

    instance_type: str
    zone: str

    @property
    def family(self) -> str:
        return self.instance_type.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Sign:
    """One event about one instance, with what the cluster showed when it arrived.

    Attributes:
        at: time of the event at its source, aware; not of its arrival.
        pool, node, node_pool, capacity_type: None when the cluster or EC2 did not know the instance.
        replicas: by model, those that ran on the node (Terminating ones left out).
        serving: by model, all that its Deployment asked for then.
        voluntary: the cluster itself was already taking the node away (Karpenter's disruption taint, or a NodeClaim
            being deleted) when the event came. Every node that scales in ends with state changes; only those that
            nobody here asked for are losses.

    Raises:
        ValueError: when the time has no zone.
    """

    instance_id: str
    kind: SignKind
    at: datetime
    event_id: str
    pool: Pool | None = None
    node: str | None = None
    node_pool: str | None = None
    capacity_type: CapacityType | None = None
    replicas: Mapping[str, int] = field(default_factory=dict)
    serving: Mapping[str, int] = field(default_factory=dict)
    voluntary: bool = False

    def __post_init__(self) -> None:
        aware(self.at)

    @property
    def key(self) -> str:
        """Names the sign in a store: writing it twice is writing it once."""
        return f"{self.instance_id}/{self.kind}/{self.event_id}"


@dataclass(frozen=True, slots=True)
class Loss:
    """All signs of one instance as one fact.

    Attributes:
        kind: the worst sign.
        at: when that sign was first given.
        signs: the first of each kind, by time.
    """

    instance_id: str
    kind: SignKind
    at: datetime
    signs: tuple[Sign, ...]

    @property
    def first_at(self) -> datetime:
        return self.signs[0].at

    @property
    def pool(self) -> Pool | None:
        return self._known(lambda sign: sign.pool)

    @property
    def node(self) -> str | None:
        return self._known(lambda sign: sign.node)

    @property
    def node_pool(self) -> str | None:
        return self._known(lambda sign: sign.node_pool)

    @property
    def capacity_type(self) -> CapacityType | None:
        return self._known(lambda sign: sign.capacity_type)

    @property
    def replicas(self) -> dict[str, int]:
        """By model, the most that any sign saw on the node."""
        return _most(sign.replicas for sign in self.signs)

    @property
    def spot_lost_at(self) -> datetime | None:
        """When EC2 took Spot capacity back, or said it would; None when this is no such loss.

        A warning speaks for itself. A state change counts for a Spot instance that nobody here was removing: the
        warning is best effort and may never come.
        """
        return next((sign.at for sign in self.signs if self._is_spot_loss(sign)), None)

    def _is_spot_loss(self, sign: Sign) -> bool:
        if sign.kind is SignKind.WARNING:
            return True
        return sign.kind is SignKind.GONE and self.capacity_type == "spot" and not sign.voluntary

    def _known(self, part: Callable[[Sign], T | None]) -> T | None:
        return next((value for value in map(part, self.signs) if value is not None), None)


def merge(signs: Iterable[Sign], *, until: datetime) -> tuple[Loss, ...]:
    """One loss per instance, by time and id; the order of the signs and repetitions make no difference.

    Args:
        until: signs given after it are ignored, so that a replay gives the same answer.
    """
    by_instance: dict[str, dict[SignKind, list[Sign]]] = {}
    for sign in signs:
        if sign.at <= until:
            by_instance.setdefault(sign.instance_id, {}).setdefault(sign.kind, []).append(sign)
    return tuple(sorted(map(_loss, by_instance.values()), key=lambda loss: (loss.first_at, loss.instance_id)))


def _loss(by_kind: Mapping[SignKind, list[Sign]]) -> Loss:
    signs = sorted(map(_first, by_kind.values()), key=lambda sign: (sign.at, _RANK[sign.kind]))
    worst = max(signs, key=lambda sign: _RANK[sign.kind])
    return Loss(worst.instance_id, worst.kind, worst.at, tuple(signs))


def _first(same_kind: list[Sign]) -> Sign:
    """The earliest; what later ones knew and it did not is added, since the first reader may have seen least."""
    if len(same_kind) == 1:
        return same_kind[0]
    ordered = sorted(same_kind, key=lambda sign: (sign.at, sign.event_id, repr(sign)))
    first = ordered[0]

    def known(part: Callable[[Sign], T | None]) -> T | None:
        return next((value for value in map(part, ordered) if value is not None), None)

    return Sign(
        instance_id=first.instance_id,
        kind=first.kind,
        at=first.at,
        event_id=first.event_id,
        pool=known(lambda sign: sign.pool),
        node=known(lambda sign: sign.node),
        node_pool=known(lambda sign: sign.node_pool),
        capacity_type=known(lambda sign: sign.capacity_type),
        replicas=_most(sign.replicas for sign in ordered),
        # The first reader saw the count before anything was raised because of this loss.
        serving=_least(sign.serving for sign in ordered),
        # A second delivery finds the node already leaving, because of the first.
        voluntary=all(sign.voluntary for sign in ordered),
    )


def _most(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for count in counts:
        for model, replicas in count.items():
            found[model] = max(found.get(model, 0), replicas)
    return dict(sorted(found.items()))


def _least(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for count in counts:
        for model, replicas in count.items():
            found[model] = min(found.get(model, replicas), replicas)
    return dict(sorted(found.items()))
