"""One notification per incident: losses that come close together are one story, told once.

A storm that takes ten nodes is one message with ten lines. What is told is kept by instance, so that a loss that is
reported late joins the incident it belongs to without a second message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from genai_finops.operations.breaker import Open
from genai_finops.operations.losses import CapacityType, Loss, Pool
from genai_finops.operations.tokens import InstancePrice

GAP: Final = timedelta(minutes=10)
"""Losses further apart are different incidents (ours: a few evaluations, and less than a load takes)."""

LONGEST: Final = timedelta(hours=1)
"""A storm that lasts longer is worth another message."""

SETTLE: Final = timedelta(minutes=3)
"""How long an incident may collect losses before it is told; the minimum is raised at the first sign regardless."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Losses close in time, at least one, in order."""

    losses: tuple[Loss, ...]

    @property
    def started(self) -> datetime:
        return self.losses[0].first_at

    @property
    def instance_ids(self) -> frozenset[str]:
        return frozenset(loss.instance_id for loss in self.losses)

    @property
    def replicas(self) -> dict[str, int]:
        """Replicas that ran on the nodes, by model."""
        found: dict[str, int] = {}
        for loss in self.losses:
            for model, count in loss.replicas.items():
                found[model] = found.get(model, 0) + count
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class IncidentCost:
    """US dollars an hour, at catalog prices.

    Attributes:
        doubled: what the replacements cost while the nodes they replace still run.
        without_spot: what they cost more than before as long as Spot rests; zero while it does not.
        unpriced: instance types without a price.
    """

    doubled: Decimal
    without_spot: Decimal
    unpriced: tuple[str, ...]


def incidents(losses: Iterable[Loss]) -> tuple[Incident, ...]:
    """Losses grouped by time; those that concern no model are left out, since nothing was lost to anyone.

    Args:
        losses: merged, any order.
    """
    grouped: list[list[Loss]] = []
    ordered = sorted(losses, key=lambda loss: (loss.first_at, loss.instance_id))
    for loss in ordered:
        if not any(loss.replicas.values()) or all(sign.voluntary for sign in loss.signs):
            continue
        group = grouped[-1] if grouped else None
        if group and loss.first_at - group[-1].first_at <= GAP and loss.first_at - group[0].first_at <= LONGEST:
            group.append(loss)
        else:
            grouped.append([loss])
    return tuple(Incident(tuple(group)) for group in grouped)


def to_tell(found: Iterable[Incident], told_instances: Iterable[str], now: datetime) -> tuple[Incident, ...]:
    """Incidents that have settled and of which nobody has been told any part.

    Args:
        told_instances: instance ids of all incidents told so far that are still kept; keep `instance_ids` of what
            this returns.
    """
    told = frozenset(told_instances)
    return tuple(one for one in found if now - one.started >= SETTLE and not one.instance_ids & told)


def openings_to_tell(resting: Mapping[Pool, Open], told_until: Mapping[Pool, datetime]) -> dict[Pool, Open]:
    """Pools whose rest has begun and was not told.

    Args:
        told_until: when the rest that was last told was to end, by pool. A rest that began before then is the same one,
            longer; keep `until` of what this returns and of what rests longer.
    """
    return {
        pool: opened for pool, opened in resting.items() if pool not in told_until or opened.since >= told_until[pool]
    }


def cost(incident: Incident, prices: Mapping[str, InstancePrice], *, spot_rests: bool) -> IncidentCost:
    """What the answer to an incident costs an hour: as many nodes of the same types once more."""
    doubled, without_spot = Decimal(0), Decimal(0)
    unpriced = set()
    for loss in incident.losses:
        if loss.pool is None:
            continue
        price = prices.get(loss.pool.instance_type, InstancePrice())
        before: CapacityType = loss.capacity_type or "spot"
        was, becomes = price.of(before), price.of("on-demand" if spot_rests else before)
        if was is None or becomes is None:
            unpriced.add(loss.pool.instance_type)
            continue
        doubled += becomes
        without_spot += becomes - was
    return IncidentCost(doubled, without_spot, tuple(sorted(unpriced)))
