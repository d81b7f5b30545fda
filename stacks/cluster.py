"""The EKS cluster and the small Graviton group that runs everything but models.

No Auto Mode: Karpenter runs in the cluster, because only then can its limits be steered at run time.
"""

from typing import Final, cast

from aws_cdk import CfnElement, CfnOutput, Duration, RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
from constructs import Construct, IConstruct

from genai_finops.spec import Platform, names
from genai_finops.spec.platform import SYSTEM_NODE_VOLUME_GIB, AddonName
from stacks.base import PlatformStack, acknowledge, acknowledge_managed_policies
from stacks.pod_identity import pod_identity_role
from stacks.retention import days

NETWORKING_ADDONS: Final[tuple[AddonName, ...]] = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""Installed before the first node joins, so that it becomes ready."""
ADDONS_AFTER_NODES: Final[tuple[AddonName, ...]] = ("coredns", "metrics-server")

NODE_POLICIES: Final = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
EBS_CSI_POLICY: Final = "service-role/AmazonEBSCSIDriverPolicyV2"
NODE_POLICIES_REASON: Final = "The policies that EKS requires of a node role; AWS keeps them current."

_ADDON_CONFIGURATION: Final = {
    "vpc-cni": '{"enableNetworkPolicy":"true"}',
    "aws-ebs-csi-driver": '{"defaultStorageClass":{"enabled":true}}',
}


class ClusterStack(PlatformStack):
    """Cluster, encryption key, add-ons, system nodes, and the security group of the nodes Karpenter launches."""

    def __init__(self, scope: Construct, *, platform: Platform, vpc: ec2.Vpc) -> None:
        super().__init__(scope, "cluster", platform=platform, description="EKS cluster of the LLM serving platform")
        self.vpc = vpc
        # A cast, since jsii's types leave out of Cluster a member that ICluster has.
        self.cluster = cast(eks.ICluster, self._cluster(platform))
        self._administrators(platform)
        self.node_security_group = self._node_security_group(platform)
        before = [self._addon(name) for name in NETWORKING_ADDONS]
        nodes = self._system_nodes(platform)
        for addon in before:
            nodes.node.add_dependency(addon)
        for name in ADDONS_AFTER_NODES:
            self._addon(name).node.add_dependency(nodes)
        self._storage().node.add_dependency(nodes)
        CfnOutput(
            self,
            "Kubeconfig",
            value=f"aws eks update-kubeconfig --name {platform.name} --region {platform.region}",
            description="Brings kubectl to this cluster",
        )

    def _cluster(self, platform: Platform) -> eks.Cluster:
        key = kms.Key(
            self,
            "SecretsKey",
            description=f"Kubernetes secrets of {platform.name}",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,
            pending_window=Duration.days(30),
        )
        group = logs.LogGroup(
            self,
            "ControlPlaneLogs",
            log_group_name=f"/aws/eks/{platform.name}/cluster",
            retention=days(platform.cluster.log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        private = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
        allowed = platform.cluster.public_access_cidrs
        cluster = eks.Cluster(
            self,
            "Cluster",
            cluster_name=platform.name,
            version=eks.KubernetesVersion.of(platform.cluster.version),
            vpc=self.vpc,
            vpc_subnets=[private],
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            endpoint_access=(
                eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*allowed) if allowed else eks.EndpointAccess.PRIVATE
            ),
            secrets_encryption_key=key,
            cluster_logging=[
                eks.ClusterLoggingTypes.API,
                eks.ClusterLoggingTypes.AUDIT,
                eks.ClusterLoggingTypes.AUTHENTICATOR,
                eks.ClusterLoggingTypes.CONTROLLER_MANAGER,
                eks.ClusterLoggingTypes.SCHEDULER,
            ],
            bootstrap_cluster_creator_admin_permissions=False,
            bootstrap_self_managed_addons=False,
            output_config_command=False,
            kubectl_provider_options=eks.KubectlProviderOptions(
                kubectl_layer=KubectlV35Layer(self, "Kubectl"),
                private_subnets=self.vpc.private_subnets,
            ),
        )
        self._answer_findings(cluster)
        resource = cluster.node.default_child
        assert isinstance(resource, eks.CfnCluster)
        resource.node.add_dependency(group)
        # The API's default, EXTENDED, lets a forgotten cluster cost six times as much.
        resource.upgrade_policy = eks.CfnCluster.UpgradePolicyProperty(support_type="STANDARD")
        resource.deletion_protection = platform.termination_protection
        return cluster

    def _answer_findings(self, cluster: eks.Cluster) -> None:
        acknowledge_managed_policies(
            cluster.role,
            ["AmazonEKSClusterPolicy"],
            "EKS publishes this policy for cluster roles and keeps it current.",
        )
        provider = cluster.node.find_child("KubectlProvider")
        handler = provider.node.find_child("Handler")
        reason = "CDK's own handler: logs, network interfaces and image pulls, nothing it could change."
        acknowledge_managed_policies(
            provider,
            [
                "service-role/AWSLambdaBasicExecutionRole",
                "service-role/AWSLambdaVPCAccessExecutionRole",
                "AmazonEC2ContainerRegistryReadOnly",
            ],
            reason,
        )
        public_registry = (
            f'{{"Fn::If":["{self._id_of(handler.node.find_child("HasEcrPublic"))}",'
            '{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},'
            '":iam::aws:policy/AmazonElasticContainerRegistryPublicReadOnly"]]},{"Ref":"AWS::NoValue"}]}'
        )
        acknowledge(
            provider,
            {
                f"AwsSolutions-IAM4[Policy::{public_registry}]": reason,
                "AwsSolutions-L1": "CDK's own handler runs on the runtime that CDK tested it with.",
                f"AwsSolutions-IAM5[Resource::<{self._id_of(handler.node.default_child)}.Arn>:*]": (
                    "CDK's provider framework calls any version of the one handler it wraps."
                ),
            },
        )

    def _id_of(self, element: IConstruct | None) -> str:
        assert isinstance(element, CfnElement)
        return str(self.get_logical_id(element))

    def _administrators(self, platform: Platform) -> None:
        for index, role in enumerate(platform.cluster.admin_roles):
            eks.AccessEntry(
                self,
                f"Administrator{index}",
                cluster=self.cluster,
                principal=role,
                access_policies=[
                    eks.AccessPolicy.from_access_policy_name(
                        "AmazonEKSClusterAdminPolicy", access_scope_type=eks.AccessScopeType.CLUSTER
                    )
                ],
            )

    def _node_security_group(self, platform: Platform) -> ec2.SecurityGroup:
        """The group of Karpenter's nodes, found by its discovery tag.

        The cluster's own group is made by EKS and cannot be tagged from a template.
        """
        group = ec2.SecurityGroup(
            self, "NodeSecurityGroup", vpc=self.vpc, description="Nodes launched by Karpenter", allow_all_outbound=True
        )
        Tags.of(group).add(names.DISCOVERY_TAG, platform.name)
        Tags.of(group).add(f"kubernetes.io/cluster/{platform.name}", "owned")
        control_plane = self.cluster.cluster_security_group
        group.add_ingress_rule(group, ec2.Port.all_traffic(), "Pods of other nodes")
        group.add_ingress_rule(control_plane, ec2.Port.all_traffic(), "Control plane and system nodes")
        ec2.CfnSecurityGroupIngress(
            self,
            "NodesToControlPlane",
            group_id=control_plane.security_group_id,
            source_security_group_id=group.security_group_id,
            ip_protocol="-1",
            description="Nodes launched by Karpenter",
        )
        return group

    def _addon(self, name: AddonName, role: iam.Role | None = None, service_account: str = "") -> eks.CfnAddon:
        identity = (
            [eks.CfnAddon.PodIdentityAssociationProperty(role_arn=role.role_arn, service_account=service_account)]
            if role
            else None
        )
        return eks.CfnAddon(
            self,
            f"Addon-{name}",
            addon_name=name,
            addon_version=self.platform.addon_version(name),
            cluster_name=self.cluster.cluster_name,
            configuration_values=_ADDON_CONFIGURATION.get(name),
            pod_identity_associations=identity,
            resolve_conflicts="OVERWRITE",
        )

    def _storage(self) -> eks.CfnAddon:
        """EBS volumes for Prometheus, with a default storage class."""
        role = pod_identity_role(self, "EbsCsiRole")
        role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(EBS_CSI_POLICY))
        acknowledge_managed_policies(
            role, [EBS_CSI_POLICY], "The policy that EKS publishes for the EBS CSI driver, scoped by tags."
        )
        return self._addon("aws-ebs-csi-driver", role, names.EBS_CSI_SERVICE_ACCOUNT)

    def _system_nodes(self, platform: Platform) -> eks.Nodegroup:
        """Graviton nodes for controllers.

        Tainted PreferNoSchedule: what tolerates an accelerator taint never lands here for want of devices, and what
        tolerates nothing still has a place to run. Karpenter's nodes are tainted NoSchedule.
        """
        settings = platform.cluster.system_nodes
        role = iam.Role(
            self,
            "SystemNodeRole",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(policy) for policy in NODE_POLICIES],
        )
        acknowledge_managed_policies(role, NODE_POLICIES, NODE_POLICIES_REASON)
        template = ec2.CfnLaunchTemplate(
            self,
            "SystemNodeTemplate",
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                block_device_mappings=[
                    ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
                        device_name="/dev/xvda",
                        ebs=ec2.CfnLaunchTemplate.EbsProperty(
                            volume_size=SYSTEM_NODE_VOLUME_GIB, volume_type="gp3", encrypted=True
                        ),
                    )
                ],
                # A hop limit of 1 keeps pods away from the node's credentials.
                metadata_options=ec2.CfnLaunchTemplate.MetadataOptionsProperty(
                    http_tokens="required", http_put_response_hop_limit=1
                ),
                tag_specifications=[
                    ec2.CfnLaunchTemplate.TagSpecificationProperty(resource_type=kind, tags=_tags(platform))
                    for kind in ("instance", "volume", "network-interface")
                ],
            ),
            # Not inherited from the stack: CDK cannot tag a launch template made this way.
            tag_specifications=[
                ec2.CfnLaunchTemplate.LaunchTemplateTagSpecificationProperty(
                    resource_type="launch-template", tags=_tags(platform)
                )
            ],
        )
        return eks.Nodegroup(
            self,
            "SystemNodes",
            cluster=self.cluster,
            nodegroup_name="system",
            ami_type=eks.NodegroupAmiType.AL2023_ARM_64_STANDARD,
            instance_types=[ec2.InstanceType(settings.instance_type)],
            min_size=settings.count,
            desired_size=settings.count,
            max_size=settings.max_count,
            node_role=role,
            subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            launch_template_spec=eks.LaunchTemplateSpec(id=template.ref, version=template.attr_latest_version_number),
            taints=[eks.TaintSpec(effect=eks.TaintEffect.PREFER_NO_SCHEDULE, key="CriticalAddonsOnly", value="true")],
            labels={"genai-finops/node": "system"},
            enable_node_auto_repair=True,
        )


def _tags(platform: Platform) -> list[dict[str, str]]:
    """Tags of what the node group launches, which does not inherit the stack's."""
    tags = {
        **platform.tags,
        names.PLATFORM_TAG: platform.name,
        names.COMPONENT_TAG: "system-nodes",
        "Name": f"{platform.name}-system",
    }
    return [{"key": key, "value": value} for key, value in tags.items()]
