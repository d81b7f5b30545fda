"""What EC2 knows of instances that the cluster does not list: whether they are ours, and of which pool they were."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

CLUSTER_TAG: Final = "kubernetes.io/cluster/"
"""Followed by the cluster's name; `owned` on every node, whether Karpenter or a node group has launched it."""

NODE_POOL_TAG: Final = "karpenter.sh/nodepool"
FILTER_VALUES: Final = 200
"""At most, of one filter of EC2."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of EC2, also for about an hour after it has ended.

    Attributes:
        state: `running`, `shutting-down`, `terminated` and so on.
    """

    id: str
    instance_type: str
    zone: str
    is_spot: bool
    state: str
    launched_at: datetime
    tags: Mapping[str, str]

    @property
    def node_pool(self) -> str:
        """Of Karpenter; empty for an instance that it has not launched."""
        return self.tags.get(NODE_POOL_TAG, "")

    def belongs_to(self, cluster: str) -> bool:
        return self.tags.get(f"{CLUSTER_TAG}{cluster}") == "owned"


class Instances:
    """Asks EC2.

    Args:
        ec2: boto3 client; the role needs ec2:DescribeInstances.
    """

    def __init__(self, ec2: Any) -> None:
        self._ec2 = ec2

    def find(self, ids: Iterable[str]) -> dict[str, Instance]:
        """By id, those that EC2 still knows; the others are left out, since one unknown id must not hide the rest.

        Raises:
            botocore.exceptions.ClientError: as EC2 gives it.
        """
        wanted = sorted(set(ids))
        pages = self._ec2.get_paginator("describe_instances")
        found: dict[str, Instance] = {}
        for first in range(0, len(wanted), FILTER_VALUES):
            # As a filter: asked for by `InstanceIds`, EC2 refuses to answer when it does not know one of them.
            some = [{"Name": "instance-id", "Values": wanted[first : first + FILTER_VALUES]}]
            for page in pages.paginate(Filters=some):
                instances = (one for reservation in page["Reservations"] for one in reservation["Instances"])
                found |= {one["InstanceId"]: _instance(one) for one in instances}
        return found


def _instance(found: Mapping[str, Any]) -> Instance:
    return Instance(
        id=found["InstanceId"],
        instance_type=found["InstanceType"],
        zone=found.get("Placement", {}).get("AvailabilityZone", ""),
        is_spot=found.get("InstanceLifecycle") == "spot",
        state=found["State"]["Name"],
        launched_at=found["LaunchTime"],
        tags={tag["Key"]: tag["Value"] for tag in found.get("Tags", ())},
    )
