"""The smallest CDK application with one VPC and one EKS cluster: what any synth costs before it does anything."""

import sys

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks

app = App(outdir=sys.argv[1])
stack = Stack(app, "bare", env=Environment(region="us-east-1"))
eks.Cluster(
    stack,
    "Cluster",
    version=eks.KubernetesVersion.of("1.35"),
    vpc=ec2.Vpc(stack, "Vpc", max_azs=2),
    default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
    default_capacity=0,
)
app.synth()
