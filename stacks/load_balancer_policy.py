"""What the AWS Load Balancer Controller may do for the Gateway API on Application Load Balancers.

Narrower than the policy its project publishes: no WAF, Shield, Cognito or Global Accelerator, which are switched off,
and every change is scoped by the tags that the controller puts on what it makes.
"""

from aws_cdk import Aws

from genai_finops.spec import Platform
from stacks.policy import Statement


def statements(platform: Platform, *, vpc_arn: str) -> list[Statement]:
    region = platform.region
    load_balancing = f"arn:{Aws.PARTITION}:elasticloadbalancing:{region}:{Aws.ACCOUNT_ID}"
    security_groups = f"arn:{Aws.PARTITION}:ec2:{region}:{Aws.ACCOUNT_ID}:security-group/*"
    made = {"aws:ResourceTag/elbv2.k8s.aws/cluster": platform.name}
    making = {"aws:RequestTag/elbv2.k8s.aws/cluster": platform.name}
    balancers = [f"{load_balancing}:loadbalancer/app/*", f"{load_balancing}:targetgroup/*"]
    listeners = [f"{load_balancing}:listener/app/*", f"{load_balancing}:listener-rule/app/*"]
    own = "Only what carries this cluster's tag."
    return [
        Statement(
            "ReadNetwork",
            [
                f"ec2:Describe{what}"
                for what in (
                    "AccountAttributes", "Addresses", "AvailabilityZones", "Instances", "InternetGateways",
                    "NetworkInterfaces", "RouteTables", "SecurityGroups", "Subnets", "Tags", "VpcPeeringConnections",
                    "Vpcs",
                )
            ],
            ["*"],
            {"StringEquals": {"aws:RequestedRegion": region}},
            "EC2's describe actions know no resources; limited to the region.",
        ),
        Statement(
            "ReadLoadBalancers",
            [
                f"elasticloadbalancing:Describe{what}"
                for what in (
                    "CapacityReservation", "ListenerAttributes", "ListenerCertificates", "Listeners",
                    "LoadBalancerAttributes", "LoadBalancers", "Rules", "SSLPolicies", "Tags", "TargetGroupAttributes",
                    "TargetGroups", "TargetHealth", "TrustStores",
                )
            ],
            ["*"],
            {"StringEquals": {"aws:RequestedRegion": region}},
            "The describe actions know no resources; limited to the region.",
        ),
        Statement(
            "ReadCertificates",
            ["acm:ListCertificates", "acm:DescribeCertificate"],
            ["*"],
            {"StringEquals": {"aws:RequestedRegion": region}},
            "Listing knows no resources; certificates are matched by host name.",
        ),
        Statement(
            "CreateSecurityGroups",
            ["ec2:CreateSecurityGroup"],
            [security_groups],
            {"StringEquals": making},
            "A new group has no id yet; the request must carry this cluster's tag.",
        ),
        Statement("CreateSecurityGroupsInVpc", ["ec2:CreateSecurityGroup"], [vpc_arn]),
        Statement(
            "TagNewSecurityGroups",
            ["ec2:CreateTags"],
            [security_groups],
            {"StringEquals": {**making, "ec2:CreateAction": "CreateSecurityGroup"}},
            "Only while a group is made, and only with this cluster's tag.",
        ),
        Statement(
            "ChangeOwnSecurityGroups",
            ["ec2:CreateTags", "ec2:DeleteTags", "ec2:DeleteSecurityGroup"],
            [security_groups],
            {"StringEquals": made},
            own,
        ),
        Statement(
            "OpenNodesToLoadBalancers",
            ["ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"],
            [security_groups],
            {"StringEquals": {f"aws:ResourceTag/kubernetes.io/cluster/{platform.name}": "owned"}},
            "Only the security groups of this cluster's nodes.",
        ),
        Statement(
            "OpenOwnSecurityGroups",
            ["ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"],
            [security_groups],
            {"StringEquals": made},
            own,
        ),
        Statement(
            "CreateLoadBalancers",
            ["elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateTargetGroup"],
            balancers,
            {"StringEquals": making},
            "A new resource has no id yet; the request must carry this cluster's tag.",
        ),
        Statement(
            "TagNewLoadBalancers",
            ["elasticloadbalancing:AddTags"],
            [*balancers, *listeners],
            {
                "StringEquals": {
                    **making,
                    "elasticloadbalancing:CreateAction": [
                        "CreateLoadBalancer", "CreateTargetGroup", "CreateListener", "CreateRule",
                    ],
                }
            },
            "Only while a resource is made, and only with this cluster's tag.",
        ),
        Statement(
            "ChangeOwnLoadBalancers",
            [
                f"elasticloadbalancing:{what}"
                for what in (
                    "AddTags", "RemoveTags", "CreateListener", "CreateRule", "DeleteListener", "DeleteLoadBalancer",
                    "DeleteRule", "DeleteTargetGroup", "ModifyListener", "ModifyListenerAttributes",
                    "ModifyLoadBalancerAttributes", "ModifyRule", "ModifyTargetGroup", "ModifyTargetGroupAttributes",
                    "SetIpAddressType", "SetSecurityGroups", "SetSubnets", "AddListenerCertificates",
                    "RemoveListenerCertificates", "RegisterTargets", "DeregisterTargets", "SetRulePriorities",
                )
            ],
            [*balancers, *listeners],
            {"StringEquals": made},
            own,
        ),
        Statement(
            "CreateServiceLinkedRole",
            ["iam:CreateServiceLinkedRole"],
            [
                f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:role/aws-service-role/elasticloadbalancing.amazonaws.com/"
                "AWSServiceRoleForElasticLoadBalancing"
            ],
            {"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}},
        ),
    ]  # fmt: skip
