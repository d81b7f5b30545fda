"""What Karpenter's controller may do: launch, tag and end its own nodes, and nothing that others own.

The statements follow the policy that Karpenter publishes for its v1 API, by the same ids, so that a reviewer can lay
the two side by side. Everything that changes something is scoped by the cluster's ownership tag.
"""

from aws_cdk import Aws

from genai_finops.spec import Platform
from stacks.policy import Statement

_NEW_RESOURCES = (
    "fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request",
    "capacity-reservation",
)  # fmt: skip
_LAUNCH_ACTIONS = ("ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate")
_SPOT_ROLE = "aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"


def node_lifecycle(platform: Platform) -> list[Statement]:
    """Launching, tagging and ending instances."""
    owned = f"kubernetes.io/cluster/{platform.name}"
    new = [_ec2(platform, kind) for kind in _NEW_RESOURCES]
    request_tags = {f"aws:RequestTag/{owned}": "owned", "aws:RequestTag/eks:eks-cluster-name": platform.name}
    resource_tags = {
        "StringEquals": {f"aws:ResourceTag/{owned}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }
    new_id = "A new resource has no id yet; the request must carry this cluster's tags."
    return [
        Statement(
            "AllowScopedEC2InstanceAccessActions",
            ["ec2:RunInstances", "ec2:CreateFleet"],
            [
                f"arn:{Aws.PARTITION}:ec2:{platform.region}::image/*",
                f"arn:{Aws.PARTITION}:ec2:{platform.region}::snapshot/*",
                *(_ec2(platform, kind) for kind in ("security-group", "subnet", "capacity-reservation")),
            ],
            wildcard="A launch refers to images, subnets and security groups that the EC2NodeClass finds by tag.",
        ),
        Statement(
            "AllowScopedEC2LaunchTemplateAccessActions",
            ["ec2:RunInstances", "ec2:CreateFleet"],
            [_ec2(platform, "launch-template")],
            resource_tags,
            "Only launch templates with this cluster's tags.",
        ),
        Statement(
            "AllowScopedEC2InstanceActionsWithTags",
            _LAUNCH_ACTIONS,
            new,
            {"StringEquals": request_tags, "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"}},
            new_id,
        ),
        Statement(
            "AllowScopedResourceCreationTagging",
            ["ec2:CreateTags"],
            new,
            {
                "StringEquals": {
                    **request_tags,
                    "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                },
                "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
            },
            new_id,
        ),
        Statement(
            "AllowScopedResourceTagging",
            ["ec2:CreateTags"],
            [_ec2(platform, "instance")],
            {
                **resource_tags,
                "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": platform.name},
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
                },
            },
            "Only instances with this cluster's tags, and only three keys.",
        ),
        Statement(
            "AllowScopedDeletion",
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            [_ec2(platform, "instance"), _ec2(platform, "launch-template")],
            resource_tags,
            "Only what carries this cluster's tags.",
        ),
        Statement(
            "AllowRegionalReadActions",
            [
                f"ec2:Describe{what}"
                for what in (
                    "CapacityReservations", "Images", "Instances", "InstanceStatus", "InstanceTypeOfferings",
                    "InstanceTypes", "LaunchTemplates", "SecurityGroups", "SpotPriceHistory", "Subnets",
                )
            ],
            ["*"],
            {"StringEquals": {"aws:RequestedRegion": platform.region}},
            "EC2's describe actions know no resources; limited to the region.",
        ),
    ]  # fmt: skip


def environment(platform: Platform, *, node_role_arn: str, queue_arn: str, cluster_arn: str) -> list[Statement]:
    """Instance profiles, discovery, prices, and the interruption queue."""
    owned = f"kubernetes.io/cluster/{platform.name}"
    profiles = f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:instance-profile/*"
    requested = {
        f"aws:RequestTag/{owned}": "owned",
        "aws:RequestTag/eks:eks-cluster-name": platform.name,
        "aws:RequestTag/topology.kubernetes.io/region": platform.region,
    }
    existing = {
        f"aws:ResourceTag/{owned}": "owned",
        "aws:ResourceTag/topology.kubernetes.io/region": platform.region,
    }
    class_requested = {"aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*"}
    class_existing = {"aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*"}
    tagged = "Karpenter names its instance profiles; only those with this cluster's tags."
    return [
        Statement(
            "AllowPassingInstanceRole",
            ["iam:PassRole"],
            [node_role_arn],
            {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}},
        ),
        Statement(
            "AllowScopedInstanceProfileCreationActions",
            ["iam:CreateInstanceProfile"],
            [profiles],
            {"StringEquals": requested, "StringLike": class_requested},
            tagged,
        ),
        Statement(
            "AllowScopedInstanceProfileTagActions",
            ["iam:TagInstanceProfile"],
            [profiles],
            {"StringEquals": {**existing, **requested}, "StringLike": {**class_existing, **class_requested}},
            tagged,
        ),
        Statement(
            "AllowScopedInstanceProfileActions",
            ["iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"],
            [profiles],
            {"StringEquals": existing, "StringLike": class_existing},
            tagged,
        ),
        Statement("AllowInstanceProfileReadActions", ["iam:GetInstanceProfile"], [profiles], wildcard=tagged),
        Statement(
            "AllowUnscopedInstanceProfileListAction",
            ["iam:ListInstanceProfiles"],
            ["*"],
            wildcard="The action knows no resources.",
        ),
        Statement("AllowAPIServerEndpointDiscovery", ["eks:DescribeCluster"], [cluster_arn]),
        Statement(
            "AllowInterruptionQueueActions",
            ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
            [queue_arn],
        ),
        Statement(
            "AllowSSMReadActions",
            ["ssm:GetParameter"],
            [f"arn:{Aws.PARTITION}:ssm:{platform.region}::parameter/aws/service/*"],
            wildcard="AWS's public parameters, which resolve the pinned image alias.",
        ),
        Statement(
            "AllowPricingReadActions",
            ["pricing:GetProducts"],
            ["*"],
            wildcard="The price list knows no resources.",
        ),
        Statement(
            # A new account has no such role; EC2 makes it at the first Spot request of a caller that may.
            "AllowSpotServiceLinkedRole",
            ["iam:CreateServiceLinkedRole"],
            [f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:role/{_SPOT_ROLE}"],
            {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
        ),
    ]


def _ec2(platform: Platform, kind: str) -> str:
    return f"arn:{Aws.PARTITION}:ec2:{platform.region}:*:{kind}/*"
