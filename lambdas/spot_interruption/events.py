"""EventBridge's events about instances that EC2 takes away, as models, and what each says of which instance."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

from aws_lambda_powertools.utilities.parser import BaseModel, Field, parse
from aws_lambda_powertools.utilities.parser.models import EventBridgeModel
from pydantic import StringConstraints

from genai_finops.operations.losses import SignKind

InstanceId = Annotated[str, StringConstraints(pattern=r"^i-[0-9a-f]{8,17}$")]

LEAVING: Final = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
"""States of an instance that serves no longer; the others are those of one that comes."""


class AboutInstance(BaseModel):
    """Of a warning or a recommendation. Whether EC2 stops or terminates the instance, it is lost to the cluster."""

    instance_id: InstanceId = Field(alias="instance-id")


class StateChange(AboutInstance):
    """Of a state-change notification."""

    state: str


class AffectedEntity(BaseModel):
    """Of a Health event; for EC2 mostly an instance."""

    entity_value: str = Field(alias="entityValue")


class HealthChange(BaseModel):
    """Of a Health event."""

    service: str
    category: str = Field(alias="eventTypeCategory")
    affected: list[AffectedEntity] = Field(alias="affectedEntities", default_factory=list)


Told = tuple[SignKind, str, datetime, str]
"""What is said, of which instance, when (at its source), and by which event."""

_WARNINGS: Final[Mapping[str, SignKind]] = {
    "EC2 Spot Instance Interruption Warning": SignKind.WARNING,
    "EC2 Instance Rebalance Recommendation": SignKind.REBALANCE,
    "EC2 Capacity Reservation Instance Interruption Warning": SignKind.RESERVATION,
}
_STATE_CHANGE: Final = "EC2 Instance State-change Notification"
_HEALTH: Final = "AWS Health Event"

EC2_SOURCE: Final = "aws.ec2"
HEALTH_SOURCE: Final = "aws.health"

DETAIL_TYPES: Final = (*_WARNINGS, _STATE_CHANGE, _HEALTH)
"""What the event rules must let through."""


def parse_signs(event: Mapping[str, Any]) -> list[Told]:
    """What an event says; nothing when it is none of ours to act on.

    Raises:
        ValidationError: when it claims to be one of ours and does not look like it.
    """
    kind = str(event.get("detail-type"))
    if event.get("source") != (HEALTH_SOURCE if kind == _HEALTH else EC2_SOURCE) or kind not in DETAIL_TYPES:
        return []
    envelope = parse(event=dict(event), model=EventBridgeModel)
    return [(sign, id, envelope.time, envelope.id) for sign, id in _about(kind, envelope.detail)]


def _about(detail_type: str, detail: Any) -> list[tuple[SignKind, str]]:
    if detail_type in _WARNINGS:
        return [(_WARNINGS[detail_type], parse(event=detail, model=AboutInstance).instance_id)]
    if detail_type == _STATE_CHANGE:
        changed = parse(event=detail, model=StateChange)
        return [(SignKind.GONE, changed.instance_id)] if changed.state in LEAVING else []
    health = parse(event=detail, model=HealthChange)
    if (health.service, health.category) != ("EC2", "scheduledChange"):
        return []
    entities = dict.fromkeys(entity.entity_value for entity in health.affected)
    return [(SignKind.SCHEDULED_CHANGE, entity) for entity in entities if entity.startswith("i-")]
