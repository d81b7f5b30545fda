"""One function of the automation with all that is its own: role, log, access to the cluster, alarms."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from genai_finops.spec import Platform
from k8s_charts.automation import GROUP
from stacks.base import acknowledge
from stacks.lambda_bundle import PLATFORM_CONFIG, bundle
from stacks.policy import Statement, grant
from stacks.retention import days

TASK_ROOT: Final = "/var/task"
"""Where Lambda unpacks the bundle."""

TRACE: Final = Statement(
    "Trace",
    ["xray:PutTraceSegments", "xray:PutTelemetryRecords"],
    ["*"],
    wildcard="X-Ray knows no resource that a trace could be limited to.",
)

ATTACH: Final = Statement(
    "AttachToVpc",
    [
        "ec2:AssignPrivateIpAddresses",
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:UnassignPrivateIpAddresses",
    ],
    ["*"],
    wildcard="What Lambda needs to give a function an address, as in its own policy; no interface has a name yet.",
)


@dataclass(frozen=True, slots=True)
class Sizing:
    """What a function gets.

    Attributes:
        memory_mib: the processor comes with it, a whole one at 1,769.
        concurrency: reserved, so that nothing else of the account can keep it from running, nor it anything else.
    """

    memory_mib: int
    timeout: Duration
    concurrency: int


@dataclass(frozen=True, slots=True)
class ErrorAlarm:
    """So many failed runs in so long are not chance."""

    errors: int
    within: Duration


@dataclass(frozen=True, slots=True)
class Network:
    """Where functions reach the private API server from."""

    vpc: ec2.IVpc
    security_group: ec2.ISecurityGroup


@contextmanager
def code(config: str) -> Iterator[lambda_.Code]:
    """The bundle of all functions, there until they are made.

    Args:
        config: see `lambda_bundle.bundle`.
    """
    functions = bundle(config)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "functions.zip"
        functions.write(file)
        yield lambda_.Code.from_asset(str(file), asset_hash=functions.content_hash, display_name="functions")


class AutomationFunction(Construct):
    """A function that may enter the cluster as a member of the reconcilers, and nothing but what its statements say."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        platform: Platform,
        cluster: eks.ICluster,
        name: str,
        description: str,
        code: lambda_.Code,
        environment: Mapping[str, str],
        statements: Sequence[Statement],
        sizing: Sizing,
        network: Network,
        error_alarm: ErrorAlarm,
    ) -> None:
        super().__init__(scope, id)
        group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{platform.name}-{name}",
            retention=days(platform.cluster.log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        write = Statement("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [group.log_group_arn])
        policy = grant(self, "Policy", self.role, [write, TRACE, ATTACH, *statements])
        access = eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster.cluster_name,
            principal_arn=self.role.role_arn,
            kubernetes_groups=[GROUP],
            type="STANDARD",
        )
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=f"{platform.name}-{name}",
            description=description,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            code=code,
            handler=f"lambdas.{name.replace('-', '_')}.handler.handler",
            environment={**environment, "PLATFORM_CONFIG": f"{TASK_ROOT}/{PLATFORM_CONFIG}"},
            role=self.role.without_policy_updates(),
            memory_size=sizing.memory_mib,
            timeout=sizing.timeout,
            reserved_concurrent_executions=sizing.concurrency,
            tracing=lambda_.Tracing.ACTIVE,
            log_group=group,
            vpc=network.vpc,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            security_groups=[network.security_group],
        )
        self.function.node.add_dependency(policy, access)
        acknowledge(
            self.function,
            {"AwsSolutions-L1": "The packages in the bundle are compiled for this version of Python."},
        )
        self.alarms = self._alarms(platform, name, error_alarm)

    def _alarms(self, platform: Platform, name: str, error_alarm: ErrorAlarm) -> list[cloudwatch.Alarm]:
        failing = self.function.metric_errors(period=error_alarm.within).create_alarm(
            self,
            "Errors",
            alarm_name=f"{platform.name}-{name}-errors",
            alarm_description=f"{name} keeps failing: read its log. What it did not do is done by its next run.",
            threshold=error_alarm.errors,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        throttled = self.function.metric_throttles(period=Duration.minutes(15)).create_alarm(
            self,
            "Throttles",
            alarm_name=f"{platform.name}-{name}-throttles",
            alarm_description=f"{name} is called more often than its reserved concurrency lets it run.",
            threshold=1,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        return [failing, throttled]
