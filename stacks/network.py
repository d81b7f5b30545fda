"""The VPC: private subnets for everything that runs, public ones for load balancers and NAT.

Weights come from S3 through a gateway endpoint, which is free; through NAT the same gigabytes would cost $0.045 each.
"""

from typing import Final

from aws_cdk import RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from genai_finops.spec import Platform, names
from stacks.base import PlatformStack
from stacks.retention import days

_PUBLIC_SUBNET_MASK: Final = 26
"""64 addresses: load balancers need 8 free ones per subnet."""


class NetworkStack(PlatformStack):
    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "network", platform=platform, description="VPC of the LLM serving platform")
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(platform.network.cidr),
            availability_zones=list(platform.zones),
            nat_gateways=platform.network.nat_gateways,
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="public",
                    subnet_type=ec2.SubnetType.PUBLIC,
                    cidr_mask=_PUBLIC_SUBNET_MASK,
                    map_public_ip_on_launch=False,
                ),
                ec2.SubnetConfiguration(
                    name="private",
                    subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS,
                    cidr_mask=_private_mask(platform),
                ),
            ],
            gateway_endpoints={"S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3)},
        )
        self._tag_subnets(platform)
        self._flow_logs(platform)
        self._interface_endpoints(platform)

    def _tag_subnets(self, platform: Platform) -> None:
        """Karpenter finds its subnets by the discovery tag, the load balancer controller its own by the role tags."""
        for subnet in self.vpc.private_subnets:
            Tags.of(subnet).add(names.DISCOVERY_TAG, platform.name)
            Tags.of(subnet).add("kubernetes.io/role/internal-elb", "1")
        for subnet in self.vpc.public_subnets:
            Tags.of(subnet).add("kubernetes.io/role/elb", "1")

    def _flow_logs(self, platform: Platform) -> None:
        group = logs.LogGroup(
            self,
            "FlowLogs",
            retention=days(platform.network.flow_log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = iam.Role(self, "FlowLogsRole", assumed_by=iam.ServicePrincipal("vpc-flow-logs.amazonaws.com"))
        self.vpc.add_flow_log("FlowLog", destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role))

    def _interface_endpoints(self, platform: Platform) -> None:
        if not platform.network.interface_endpoints:
            return
        group = ec2.SecurityGroup(
            self,
            "EndpointSecurityGroup",
            vpc=self.vpc,
            description="AWS services reached from inside the VPC",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(ec2.Peer.ipv4(platform.network.cidr), ec2.Port.tcp(443), "HTTPS from the VPC")
        for service in platform.network.interface_endpoints:
            self.vpc.add_interface_endpoint(
                service,
                service=ec2.InterfaceVpcEndpointAwsService(service),
                security_groups=[group],
                open=False,
            )


def _private_mask(platform: Platform) -> int:
    """The largest private subnets that leave room for the public ones: half the block, split by zone."""
    block = int(platform.network.cidr.rsplit("/", 1)[1])
    return block + 1 + (len(platform.zones) - 1).bit_length()
