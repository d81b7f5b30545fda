"""Karpenter with all it needs: roles, the interruption queue and what feeds it, definitions, controller."""

from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from genai_finops import versions
from genai_finops.spec import Platform, names
from stacks import karpenter_policy
from stacks.base import PlatformStack, acknowledge, acknowledge_managed_policies
from stacks.cluster import NODE_POLICIES, NODE_POLICIES_REASON
from stacks.helm import SYSTEM_TOLERATION, release
from stacks.pod_identity import associate, pod_identity_role
from stacks.policy import grant

QUEUE_RETENTION: Final = Duration.seconds(300)
"""An interruption that is five minutes old has happened."""

INTERRUPTION_EVENTS: Final[Mapping[str, tuple[str, str]]] = {
    "HealthEvent": ("aws.health", "AWS Health Event"),
    "SpotInterruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "RebalanceRecommendation": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "StateChange": ("aws.ec2", "EC2 Instance State-change Notification"),
    "CapacityReservationInterruption": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
"""Rule to source and detail-type, as the events spell them."""


class KarpenterStack(PlatformStack):
    def __init__(self, scope: Construct, *, platform: Platform, cluster: eks.ICluster) -> None:
        super().__init__(scope, "karpenter", platform=platform, description="Karpenter and its interruption queue")
        self.node_role = self._node_role(platform, cluster)
        self.queue = self._interruption_queue(platform)
        role = self._controller_role(platform, cluster)
        definitions = release(
            self,
            "karpenter-crd",
            cluster=cluster,
            chart=versions.KARPENTER_CRDS,
            namespace=names.KARPENTER_NAMESPACE,
            values={},
        )
        controller = release(
            self,
            "karpenter",
            cluster=cluster,
            chart=versions.KARPENTER,
            namespace=names.KARPENTER_NAMESPACE,
            values=controller_values(platform),
        )
        controller.node.add_dependency(definitions, role, self.queue)

    def _node_role(self, platform: Platform, cluster: eks.ICluster) -> iam.Role:
        role = iam.Role(
            self,
            "NodeRole",
            role_name=names.karpenter_node_role(platform),
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(policy) for policy in NODE_POLICIES],
        )
        acknowledge_managed_policies(role, NODE_POLICIES, NODE_POLICIES_REASON)
        eks.AccessEntry(
            self,
            "NodeAccess",
            cluster=cluster,
            principal=role.role_arn,
            access_policies=[],
            access_entry_type=eks.AccessEntryType.EC2_LINUX,
        )
        return role

    def _interruption_queue(self, platform: Platform) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "InterruptionQueue",
            queue_name=names.interruption_queue(platform),
            retention_period=QUEUE_RETENTION,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        queue.add_to_resource_policy(
            iam.PolicyStatement(
                sid="EventsMaySend",
                principals=[iam.ServicePrincipal("events.amazonaws.com"), iam.ServicePrincipal("sqs.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[queue.queue_arn],
                conditions={"StringEquals": {"aws:SourceAccount": self.account}},
            )
        )
        acknowledge(
            queue,
            {"AwsSolutions-SQS3": "A message older than five minutes is worthless, so there is nothing to redrive."},
        )
        for rule, (source, detail_type) in INTERRUPTION_EVENTS.items():
            events.Rule(
                self,
                rule,
                event_pattern=events.EventPattern(source=[source], detail_type=[detail_type]),
                targets=[targets.SqsQueue(queue)],
            )
        return queue

    def _controller_role(self, platform: Platform, cluster: eks.ICluster) -> Construct:
        role = pod_identity_role(self, "ControllerRole", role_name=names.karpenter_controller_role(platform))
        environment = karpenter_policy.environment(
            platform,
            node_role_arn=self.node_role.role_arn,
            queue_arn=self.queue.queue_arn,
            cluster_arn=cluster.cluster_arn,
        )
        policies = [
            grant(self, "NodeLifecyclePolicy", role, karpenter_policy.node_lifecycle(platform)),
            grant(self, "EnvironmentPolicy", role, environment),
        ]
        return associate(
            self,
            "ControllerIdentity",
            cluster_name=cluster.cluster_name,
            namespace=names.KARPENTER_NAMESPACE,
            service_account=names.KARPENTER_SERVICE_ACCOUNT,
            role=role,
            policies=policies,
        )


def controller_values(platform: Platform) -> dict[str, Any]:
    """Values of Karpenter's chart."""
    uses_buffers = any(model.warm_capacity.kind == "buffer" for model in platform.models)
    return {
        "settings": {
            "clusterName": platform.name,
            "interruptionQueue": names.interruption_queue(platform),
            **({"featureGates": {"capacityBuffer": True}} if uses_buffers else {}),
        },
        "serviceAccount": {"name": names.KARPENTER_SERVICE_ACCOUNT},
        "replicas": 2,
        "tolerations": [SYSTEM_TOLERATION],
        "controller": {
            "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        },
        "serviceMonitor": {"enabled": False},
    }
