"""EC2's side of a launch: which offer is cheapest and has capacity, and what is said when none has.

moto launches whatever comes first, with security groups of its own; Karpenter would see drift in that and replace its
nodes for ever.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.models.fleets import FleetsBackend
from moto.ec2.responses.fleets import Fleets
from moto.ec2.utils import convert_tag_spec, random_fleet_id

from genai_finops.catalog import Purchase, instance_type, instance_types

NO_CAPACITY: Final = "InsufficientInstanceCapacity"
"""Karpenter stays away from the offer for three minutes when it hears this."""

DEAR: Final = Decimal(1000)
"""An hour of what the catalog has no price for: chosen last."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An instance type in a zone, bought in one way."""

    instance_type: str
    zone: str
    purchase: Purchase

    @property
    def usd_hour(self) -> Decimal:
        """By the catalog."""
        if self.instance_type not in instance_types():
            return DEAR
        found = instance_type(self.instance_type)
        price = found.spot_usd_hour if self.purchase == "spot" else found.on_demand_usd_hour
        return DEAR if price is None else price


@dataclass(slots=True)
class Capacity:
    """What EC2 has.

    Attributes:
        is_short: asked for each offer; a scenario sets it.
        refused: offers that were asked for and not there, as they came.
    """

    is_short: Callable[[Offer], bool] = lambda offer: False
    refused: list[Offer] = field(default_factory=list)

    def cheapest(self, offers: Sequence[Offer]) -> Offer | None:
        """The cheapest of those that are there; None when none is."""
        there = []
        for offer in offers:
            if self.is_short(offer):
                self.refused.append(offer)
            else:
                there.append(offer)
        return min(there, key=lambda offer: (offer.usd_hour, offer.instance_type, offer.zone), default=None)


@dataclass(frozen=True, slots=True)
class _Choice:
    """One line of a fleet request: an offer, and with what it is launched."""

    offer: Offer
    template: Mapping[str, Any]
    launch: Mapping[str, Any]
    override: Mapping[str, Any]


class InstantFleet:
    """The answer to one request of Karpenter: one instance, or none and why."""

    fleet_type = "instant"

    def __init__(self, backend: Any, capacity: Capacity, request: Mapping[str, Any]) -> None:
        self.id = random_fleet_id()
        self.instances: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        target = request["target_capacity_specification"]
        purchase: Purchase = "spot" if target.get("DefaultTargetCapacityType") == "spot" else "on-demand"
        choices = list(_choices(backend, request["launch_template_configs"], purchase))
        found = capacity.cheapest([choice.offer for choice in choices])
        if found is None:
            self.errors = [_refusal(choice) for choice in choices]
            return
        chosen = next(choice for choice in choices if choice.offer == found)
        tags = convert_tag_spec(request["tag_specifications"]).get("instance", {})
        self.instances = [_launched(backend, chosen, tags) for _ in range(int(target["TotalTargetCapacity"]))]


def _choices(backend: Any, configs: Sequence[Mapping[str, Any]], purchase: Purchase) -> list[_Choice]:
    found = []
    for config in configs:
        wanted = config["LaunchTemplateSpecification"]
        if "LaunchTemplateId" in wanted:
            template = backend.get_launch_template(template_id=wanted["LaunchTemplateId"])
        else:
            template = backend.get_launch_template_by_name(name=wanted["LaunchTemplateName"])
        data = template.get_version(template.latest_version_number).data
        for override in config["Overrides"]:
            zone = backend.get_subnet(override["SubnetId"]).availability_zone
            offer = Offer(override["InstanceType"], zone, purchase)
            found.append(_Choice(offer, {"LaunchTemplateId": template.id, "Version": "1"}, data, override))
    return found


def _launched(backend: Any, chosen: _Choice, tags: Mapping[str, str]) -> dict[str, Any]:
    data = chosen.launch
    interfaces = data.get("NetworkInterfaces") or [{}]
    groups = data.get("SecurityGroupIds") or interfaces[0].get("Groups") or interfaces[0].get("SecurityGroupId") or []
    more = {"instance_market_options": {"MarketType": "spot"}} if chosen.offer.purchase == "spot" else {}
    reservation = backend.run_instances(
        image_id=chosen.override.get("ImageId") or data["ImageId"],
        count=1,
        user_data=data.get("UserData"),
        security_group_names=[],
        security_group_ids=list(groups),
        instance_type=chosen.offer.instance_type,
        is_instance_type_default=False,
        subnet_id=chosen.override["SubnetId"],
        iam_instance_profile_name=data.get("IamInstanceProfile", {}).get("Name"),
        tags={"instance": dict(tags)},
        **more,
    )
    [instance] = reservation.instances
    return {
        "Lifecycle": chosen.offer.purchase,
        "InstanceIds": [instance.id],
        "InstanceType": chosen.offer.instance_type,
        "LaunchTemplateAndOverrides": _named(chosen),
    }


def _refusal(choice: _Choice) -> dict[str, Any]:
    return {
        "ErrorCode": NO_CAPACITY,
        "ErrorMessage": f"There is no {choice.offer.purchase} capacity of {choice.offer.instance_type}",
        "Lifecycle": choice.offer.purchase,
        "LaunchTemplateAndOverrides": _named(choice),
    }


def _named(choice: _Choice) -> dict[str, Any]:
    overrides = {
        "InstanceType": choice.offer.instance_type,
        "SubnetId": choice.override["SubnetId"],
        "AvailabilityZone": choice.offer.zone,
        **{key: choice.override[key] for key in ("ImageId",) if key in choice.override},
    }
    return {"LaunchTemplateSpecification": dict(choice.template), "Overrides": overrides}


def install(capacity: Capacity) -> None:
    """From now on moto's instant fleets are these."""

    def create_fleet(backend: Any, **request: Any) -> InstantFleet:
        fleet = InstantFleet(backend, capacity, request)
        backend.fleets[fleet.id] = fleet
        return fleet

    def respond(response: Any) -> ActionResult:
        response.error_on_dryrun()
        fleet = response.ec2_backend.create_fleet(
            target_capacity_specification=response._get_param("TargetCapacitySpecification", {}),
            launch_template_configs=response._get_param("LaunchTemplateConfigs", []),
            tag_specifications=response._get_param("TagSpecifications", []),
        )
        return ActionResult({"FleetId": fleet.id, "Instances": fleet.instances, "Errors": fleet.errors})

    FleetsBackend.create_fleet = create_fleet  # type: ignore[method-assign,assignment]
    Fleets.create_fleet = respond  # type: ignore[method-assign,assignment]
