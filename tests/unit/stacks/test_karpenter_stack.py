"""Karpenter: what it hears of, what it may do, and that it and its nodes go by the names that the charts use."""

import pytest

from genai_finops import versions
from genai_finops.spec import names
from tests.assemblies import many, of_type, text
from tests.unit.stacks.policies import granted

pytestmark = pytest.mark.synth

# As AWS spells them. A well-known project shipped a rule with a typo, which never fired.
EVENTS = {
    ("aws.health", "AWS Health Event"),
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"),
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}

LAUNCH = {"ec2:RunInstances", "ec2:CreateFleet"}
UPSTREAM_STATEMENTS = {
    "AllowScopedEC2InstanceAccessActions": LAUNCH,
    "AllowScopedEC2LaunchTemplateAccessActions": LAUNCH,
    "AllowScopedEC2InstanceActionsWithTags": LAUNCH | {"ec2:CreateLaunchTemplate"},
    "AllowScopedResourceCreationTagging": {"ec2:CreateTags"},
    "AllowScopedResourceTagging": {"ec2:CreateTags"},
    "AllowScopedDeletion": {"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"},
    "AllowPassingInstanceRole": {"iam:PassRole"},
    "AllowScopedInstanceProfileCreationActions": {"iam:CreateInstanceProfile"},
    "AllowScopedInstanceProfileTagActions": {"iam:TagInstanceProfile"},
    "AllowScopedInstanceProfileActions": {
        "iam:AddRoleToInstanceProfile",
        "iam:RemoveRoleFromInstanceProfile",
        "iam:DeleteInstanceProfile",
    },
    "AllowAPIServerEndpointDiscovery": {"eks:DescribeCluster"},
    "AllowInterruptionQueueActions": {"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"},
    "AllowRegionalReadActions": {
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeImages",
        "ec2:DescribeInstances",
        "ec2:DescribeInstanceStatus",
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeLaunchTemplates",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSpotPriceHistory",
        "ec2:DescribeSubnets",
    },
    "AllowSSMReadActions": {"ssm:GetParameter"},
    "AllowPricingReadActions": {"pricing:GetProducts"},
    "AllowUnscopedInstanceProfileListAction": {"iam:ListInstanceProfiles"},
    "AllowInstanceProfileReadActions": {"iam:GetInstanceProfile"},
}
OWN_STATEMENTS = {"AllowSpotServiceLinkedRole": {"iam:CreateServiceLinkedRole"}}
"""Beside upstream's, which leaves the service-linked role to whoever sets up the account."""


@pytest.fixture
def statements(assembly):
    return {
        granted.sid: granted for granted in granted(assembly, "AWS::IAM::ManagedPolicy") if granted.stack == "karpenter"
    }


def test_five_rules_listen_for_exactly_the_events_that_aws_sends(assembly):
    patterns = [rule["Properties"]["EventPattern"] for rule in rules(assembly)]
    assert len(patterns) == 5
    assert {(*pattern["source"], *pattern["detail-type"]) for pattern in patterns} == EVENTS
    for pattern in patterns:
        assert pattern.keys() == {"source", "detail-type"}


def test_every_rule_is_on_and_fills_the_queue(assembly):
    [queue] = of_type(assembly.templates["karpenter"], "AWS::SQS::Queue")
    for rule in rules(assembly):
        assert rule["Properties"]["State"] == "ENABLED"
        assert [target["Arn"] for target in rule["Properties"]["Targets"]] == [{"Fn::GetAtt": [queue, "Arn"]}]


def test_the_queue_forgets_after_five_minutes_and_is_encrypted(assembly):
    queue = assembly.one("AWS::SQS::Queue", "karpenter")["Properties"]
    assert queue["MessageRetentionPeriod"] == 300
    assert queue["SqsManagedSseEnabled"] is True


def test_only_the_services_that_deliver_interruptions_may_send_and_only_over_tls(assembly):
    statements = [found for found in granted(assembly, "AWS::SQS::QueuePolicy") if found.stack == "karpenter"]
    [denied] = [statement for statement in statements if not statement.allows]
    assert denied.actions == ["sqs:*"]
    assert denied.statement["Principal"] in ("*", {"AWS": "*"})
    assert denied.statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    allowed = [statement for statement in statements if statement.allows]
    for statement in allowed:
        assert statement.statement["Principal"].keys() == {"Service"}
        assert set(statement.actions) <= {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"}
        assert statement.conditions.keys() & {"aws:SourceAccount", "aws:SourceArn"}
    senders = {service for statement in allowed for service in statement.services}
    assert senders == {"events.amazonaws.com", "sqs.amazonaws.com"}


def test_the_controller_may_do_what_upstream_publishes_and_no_more(statements):
    found = {sid: set(statement.actions) for sid, statement in statements.items()}
    assert found == UPSTREAM_STATEMENTS | OWN_STATEMENTS


@pytest.mark.parametrize("sid", ["AllowScopedEC2InstanceActionsWithTags", "AllowScopedResourceCreationTagging"])
def test_what_karpenter_makes_must_carry_the_tags_of_this_cluster(assembly, statements, sid):
    name = assembly.platform.name
    assert (
        statements[sid].statement["Condition"]["StringEquals"].items()
        >= {
            f"aws:RequestTag/kubernetes.io/cluster/{name}": "owned",
            "aws:RequestTag/eks:eks-cluster-name": name,
        }.items()
    )
    assert statements[sid].statement["Condition"]["StringLike"] == {"aws:RequestTag/karpenter.sh/nodepool": "*"}


@pytest.mark.parametrize(
    "sid",
    ["AllowScopedEC2LaunchTemplateAccessActions", "AllowScopedResourceTagging", "AllowScopedDeletion"],
)
def test_what_karpenter_changes_or_ends_is_its_own(assembly, statements, sid):
    condition = statements[sid].statement["Condition"]
    assert condition["StringEquals"] == {f"aws:ResourceTag/kubernetes.io/cluster/{assembly.platform.name}": "owned"}
    assert condition["StringLike"] == {"aws:ResourceTag/karpenter.sh/nodepool": "*"}


def test_later_only_three_tags_of_an_instance_may_change(assembly, statements):
    condition = statements["AllowScopedResourceTagging"].statement["Condition"]
    assert condition["ForAllValues:StringEquals"] == {
        "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
    }
    assert condition["StringEqualsIfExists"] == {"aws:RequestTag/eks:eks-cluster-name": assembly.platform.name}


@pytest.mark.parametrize(
    ("sid", "tag"),
    [
        ("AllowScopedInstanceProfileCreationActions", "RequestTag"),
        ("AllowScopedInstanceProfileTagActions", "RequestTag"),
        ("AllowScopedInstanceProfileTagActions", "ResourceTag"),
        ("AllowScopedInstanceProfileActions", "ResourceTag"),
    ],
)
def test_instance_profiles_are_scoped_by_cluster_and_region(assembly, statements, sid, tag):
    assert (
        statements[sid].conditions.items()
        >= {
            f"aws:{tag}/kubernetes.io/cluster/{assembly.platform.name}": "owned",
            f"aws:{tag}/topology.kubernetes.io/region": assembly.platform.region,
            f"aws:{tag}/karpenter.k8s.aws/ec2nodeclass": "*",
        }.items()
    )


def test_only_the_node_role_is_passed_and_only_to_ec2(assembly, statements):
    passed = statements["AllowPassingInstanceRole"]
    [resource] = many(passed.statement["Resource"])
    assert assembly.referred("karpenter", resource)["RoleName"] == names.karpenter_node_role(assembly.platform)
    assert passed.conditions == {"iam:PassedToService": ["ec2.amazonaws.com"]} or passed.conditions == {
        "iam:PassedToService": "ec2.amazonaws.com"
    }


def test_the_queue_it_reads_is_the_one_that_the_rules_fill(assembly, statements):
    [resource] = many(statements["AllowInterruptionQueueActions"].statement["Resource"])
    assert assembly.target("karpenter", resource)[1] in of_type(assembly.templates["karpenter"], "AWS::SQS::Queue")


def test_the_cluster_it_describes_is_this_one(assembly, statements):
    [resource] = many(statements["AllowAPIServerEndpointDiscovery"].statement["Resource"])
    assert assembly.referred("karpenter", resource)["Name"] == assembly.platform.name


def test_a_new_account_gets_the_role_that_spot_requests_need(statements):
    statement = statements["AllowSpotServiceLinkedRole"]
    assert statement.actions == ["iam:CreateServiceLinkedRole"]
    [resource] = statement.resources
    assert resource.endswith("role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot")
    assert statement.conditions == {"iam:AWSServiceName": "spot.amazonaws.com"}


def test_nodes_join_with_the_role_that_node_classes_name(assembly):
    [(logical_id, role)] = [
        (logical_id, role["Properties"])
        for logical_id, role in of_type(assembly.templates["karpenter"], "AWS::IAM::Role").items()
        if role["Properties"]["RoleName"].endswith("-node")
    ]
    entry = assembly.one("AWS::EKS::AccessEntry", "karpenter")["Properties"]
    assert entry["Type"] == "EC2_LINUX"
    assert entry["AccessPolicies"] == []
    assert assembly.target("karpenter", entry["PrincipalArn"]) == ("karpenter", logical_id)
    assert assembly.referred("karpenter", entry["ClusterName"])["Name"] == assembly.platform.name
    classes = [manifest for manifest in assembly.manifests["karpenter"] if manifest["kind"] == "EC2NodeClass"]
    assert classes
    for node_class in classes:
        assert node_class["spec"]["role"] == role["RoleName"]


def test_the_controller_is_told_the_names_that_the_templates_use(assembly):
    settings = assembly.releases()["karpenter"]["Values"]["settings"]
    assert settings["clusterName"] == assembly.one("AWS::EKS::Cluster", "cluster")["Properties"]["Name"]
    assert settings["interruptionQueue"] == assembly.one("AWS::SQS::Queue", "karpenter")["Properties"]["QueueName"]


def test_definitions_and_controller_are_of_one_version_and_definitions_come_first(assembly):
    releases = assembly.releases()
    assert releases["karpenter-crd"]["Version"] == releases["karpenter"]["Version"] == versions.KARPENTER.version
    [(definitions, _)] = release(assembly, "karpenter-crd")
    [(_, controller)] = release(assembly, "karpenter")
    assert definitions in controller["DependsOn"]


def test_the_controller_starts_with_its_identity_and_its_queue(assembly):
    template = assembly.templates["karpenter"]
    [(_, controller)] = release(assembly, "karpenter")
    kinds = {template["Resources"][logical_id]["Type"] for logical_id in controller["DependsOn"]}
    assert {"AWS::EKS::PodIdentityAssociation", "AWS::SQS::Queue", "AWS::SQS::QueuePolicy"} <= kinds


def test_both_controller_replicas_fit_the_system_nodes(assembly):
    values = assembly.releases()["karpenter"]["Values"]
    assert values["replicas"] == 2
    assert {"key": "CriticalAddonsOnly", "operator": "Exists"} in values["tolerations"]


def release(assembly, name):
    return [
        (logical_id, resource)
        for logical_id, resource in of_type(assembly.templates["karpenter"], "Custom::AWSCDK-EKS-HelmChart").items()
        if text(resource["Properties"]["Release"]) == name
    ]


def rules(assembly):
    return of_type(assembly.templates["karpenter"], "AWS::Events::Rule").values()
