"""The functions that steer the platform while it runs: what wakes them, what they may do, and who hears when they fail.

Each ends in the same reconcile, so what one misses the next finds. Of their own they keep only facts, in one table.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from genai_finops.spec import Platform, names
from genai_finops.spec.automation import operations_config
from stacks import schedules
from stacks.base import PlatformStack, acknowledge
from stacks.functions import AutomationFunction, ErrorAlarm, Network, Sizing, code
from stacks.karpenter import INTERRUPTION_EVENTS
from stacks.policy import Statement, grant

RECONCILE_SECONDS: Final = 55
"""Both reconcilers. Spot gives notice of two minutes: whoever has not acted by then is better started anew."""

ONLY: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "HealthEvent": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
    "StateChange": {"state": ["stopping", "stopped", "shutting-down", "terminated"]},
}
"""What of an event's `detail` is worth a run; the account has other instances, and they start as well."""

BATCH: Final = 10
ATTEMPTS: Final = 5
"""To handle a message, over ten minutes. After that the tick has looked several times, and only the fact is missing."""

DEAD_LETTERS_KEPT: Final = Duration.days(14)
"""As long as SQS can."""

_SILENCE: Final = Duration.hours(1)


class AutomationStack(PlatformStack):
    """Spot and schedule always; the budget's function when there is a budget.

    After serving, which makes the Kubernetes role that the functions come in with.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        platform: Platform,
        cluster: eks.ICluster,
        vpc: ec2.Vpc,
        alerts: sns.Topic | None,
    ) -> None:
        super().__init__(scope, "automation", platform=platform, description="Spot, schedule and budget automation")
        self._cluster = cluster
        self._alerts = alerts
        self._alarms: list[cloudwatch.Alarm] = []
        self.table = self._table(platform)
        self._network = self._network_of(vpc)
        with code(_config(platform)) as self._code:
            self._spot_interruption()
            self._scheduled()
        for alarm in self._alarms:
            if alerts:
                alarm.add_alarm_action(actions.SnsAction(alerts))

    def _table(self, platform: Platform) -> dynamodb.Table:
        """Encrypted with DynamoDB's own key: it holds ids of instances and what was told, no secrets, and a key of ours
        would cost more than the table."""
        return dynamodb.Table(
            self,
            "Facts",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.DEFAULT,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute="expires_at",
            deletion_protection=platform.termination_protection,
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _network_of(self, vpc: ec2.Vpc) -> Network:
        """Inside the VPC: from outside the API server lets in nobody, or the networks of people."""
        group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description="Functions of the automation", allow_all_outbound=False
        )
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "API server and AWS")
        ec2.CfnSecurityGroupIngress(
            self,
            "FunctionsToApiServer",
            group_id=self._cluster.cluster_security_group.security_group_id,
            source_security_group_id=group.security_group_id,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            description="Functions of the automation",
        )
        return Network(vpc, group)

    def _function(
        self,
        id: str,
        name: str,
        description: str,
        *,
        sizing: Sizing,
        error_alarm: ErrorAlarm,
        statements: Sequence[Statement] = (),
        environment: Mapping[str, str] | None = None,
    ) -> lambda_.Function:
        made = AutomationFunction(
            self,
            id,
            platform=self.platform,
            cluster=self._cluster,
            name=name,
            description=description,
            code=self._code,
            environment={**self._environment(), **(environment or {})},
            statements=[*self._shared_statements(), *statements],
            sizing=sizing,
            network=self._network,
            error_alarm=error_alarm,
        )
        self._alarms += made.alarms
        return made.function

    def _environment(self) -> dict[str, str]:
        """As lambdas/adapters/settings.py reads it, but for the file in the bundle."""
        variables = {
            "FACTS_TABLE": self.table.table_name,
            "CLUSTER_NAME": self._cluster.cluster_name,
            "MODEL_NAMESPACE": names.MODEL_NAMESPACE,
        }
        return variables | ({"ALERTS_TOPIC_ARN": self._alerts.topic_arn} if self._alerts else {})

    def _shared_statements(self) -> list[Statement]:
        statements = [
            Statement("FindApiServer", ["eks:DescribeCluster"], [self._cluster.cluster_arn]),
            Statement(
                "KeepFacts",
                ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"],
                [self.table.table_arn],
            ),
        ]
        if self._alerts:
            assert self._alerts.master_key
            key = self._alerts.master_key.key_arn
            statements += [
                Statement("PublishAlerts", ["sns:Publish"], [self._alerts.topic_arn]),
                Statement("EncryptAlerts", ["kms:Decrypt", "kms:GenerateDataKey"], [key]),
            ]
        return statements

    def _spot_interruption(self) -> None:
        dead_letters = self._dead_letters("SignsDeadLetters", "signs of interruptions that could not be handled")
        queue = sqs.Queue(
            self,
            "Signs",
            retention_period=Duration.days(1),
            # Shorter than AWS's six times: reserved concurrency is that of the poller, so nothing waits there, and a
            # sign that failed is worth another try within its two minutes.
            visibility_timeout=Duration.seconds(2 * RECONCILE_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=ATTEMPTS),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        for rule, (source, detail_type) in INTERRUPTION_EVENTS.items():
            pattern = events.EventPattern(source=[source], detail_type=[detail_type], detail=ONLY.get(rule))
            events.Rule(
                self,
                f"{rule}Rule",
                event_pattern=pattern,
                targets=[targets.SqsQueue(queue, dead_letter_queue=dead_letters)],
            )
        concurrency = 2  # the least that a poller can be held to
        function = self._function(
            "SpotInterruption",
            "spot-interruption",
            "Warms replacements for what Spot takes, and rests pools that keep losing",
            sizing=Sizing(1024, Duration.seconds(RECONCILE_SECONDS), concurrency),
            error_alarm=ErrorAlarm(3, Duration.minutes(15)),
            statements=[
                Statement(
                    "TakeSigns",
                    ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
                    [queue.queue_arn],
                ),
                Statement(
                    "DescribeInstances",
                    ["ec2:DescribeInstances"],
                    ["*"],
                    {"StringEquals": {"aws:RequestedRegion": self.platform.region}},
                    wildcard="EC2 cannot limit whom is looked at, only where.",
                ),
            ],
        )
        function.add_event_source_mapping(
            "Signs",
            event_source_arn=queue.queue_arn,
            batch_size=BATCH,
            # Interruptions come in storms, and one reconcile does for all of a batch.
            max_batching_window=Duration.seconds(1),
            max_concurrency=concurrency,
            report_batch_item_failures=True,
        )

    def _scheduled(self) -> None:
        dead_letters = self._dead_letters("RunsDeadLetters", "scheduled runs that failed, or did not start")
        scaling = self._scheduled_scaling(dead_letters)
        budget = self._budget_alerts(dead_letters) if self.platform.budget else None
        runs = Schedules(
            self,
            "Schedules",
            platform=self.platform,
            functions=[scaling, *([budget] if budget else [])],
            dead_letters=dead_letters,
        )
        runs.add("tick", schedules.TICK, "UTC", scaling)
        for look in schedules.looks(self.platform.models):
            runs.add(look.name, look.expression, look.zone, scaling)
        if budget:
            runs.add("budget", schedules.DAILY, "UTC", budget)

    def _scheduled_scaling(self, dead_letters: sqs.Queue) -> lambda_.Function:
        function = self._function(
            "ScheduledScaling",
            "scheduled-scaling",
            "Sends models to sleep and wakes them, and puts right whatever else has strayed",
            sizing=Sizing(512, Duration.seconds(RECONCILE_SECONDS), 2),
            error_alarm=ErrorAlarm(3, Duration.minutes(15)),
            statements=[_keep_failed_runs(dead_letters)],
        )
        self._retry(function, dead_letters, Duration.minutes(10), attempts=2)
        self._alarms.append(self._nobody_steers(function))
        return function

    def _budget_alerts(self, dead_letters: sqs.Queue) -> lambda_.Function:
        function = self._function(
            "BudgetAlerts",
            "budget-alerts",
            "Says daily what is spent, and lets the guardrails of the budget act",
            sizing=Sizing(512, Duration.minutes(3), 1),
            error_alarm=ErrorAlarm(1, Duration.hours(1)),
            statements=[
                _keep_failed_runs(dead_letters),
                Statement(
                    "AskCostExplorer",
                    ["ce:GetCostAndUsage", "ce:GetCostForecast"],
                    ["*"],
                    wildcard="Cost Explorer answers for the account as a whole.",
                ),
            ],
        )
        # Each try pays for its questions again.
        self._retry(function, dead_letters, Duration.hours(6), attempts=1)
        return function

    def _retry(self, function: lambda_.Function, dead_letters: sqs.Queue, max_age: Duration, *, attempts: int) -> None:
        """A minute and two later, as Lambda does it. The schedule only hears that a run was accepted."""
        lambda_.CfnEventInvokeConfig(
            function,
            "Retries",
            function_name=function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=attempts,
            maximum_event_age_in_seconds=max_age.to_seconds(),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=dead_letters.queue_arn)
            ),
        )

    def _nobody_steers(self, function: lambda_.Function) -> cloudwatch.Alarm:
        """Counted by Lambda, and so also when the function cannot even start to tell."""
        succeeded = cloudwatch.MathExpression(
            expression="runs - errors",
            label="Successful reconciles",
            period=_SILENCE,
            using_metrics={
                "runs": function.metric_invocations(period=_SILENCE),
                "errors": function.metric_errors(period=_SILENCE),
            },
        )
        return succeeded.create_alarm(
            self,
            "NobodySteers",
            alarm_name=f"{self.platform.name}-no-reconcile",
            alarm_description=(
                "No reconcile has succeeded for an hour: models neither sleep nor wake by schedule, and guardrails and "
                "breakers stay as they are. Serving and autoscaling go on."
            ),
            threshold=1,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )

    def _dead_letters(self, id: str, what: str) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            id,
            retention_period=DEAD_LETTERS_KEPT,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(queue, {"AwsSolutions-SQS3": "It is the dead-letter queue itself."})
        waiting = queue.metric_approximate_number_of_messages_visible(period=Duration.minutes(5), statistic="Maximum")
        self._alarms.append(
            waiting.create_alarm(
                self,
                f"{id}Waiting",
                alarm_description=f"There are {what}. Read them, then purge the queue.",
                threshold=1,
                evaluation_periods=1,
                comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            )
        )
        return queue


def _config(platform: Platform) -> str:
    """What the bundle holds of the platform; by name, since the order of models in the file means nothing."""
    found = operations_config(platform)
    return replace(found, models=tuple(sorted(found.models, key=lambda model: model.name))).to_json()


def _keep_failed_runs(dead_letters: sqs.Queue) -> Statement:
    return Statement("KeepFailedRuns", ["sqs:SendMessage"], [dead_letters.queue_arn])


class Schedules(Construct):
    """The platform's entries in EventBridge Scheduler, with a role that starts its functions and no others."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        platform: Platform,
        functions: Sequence[lambda_.Function],
        dead_letters: sqs.Queue,
    ) -> None:
        super().__init__(scope, id)
        self._dead_letters = dead_letters
        self._group = scheduler.CfnScheduleGroup(self, "Group", name=platform.name)
        here = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        principal = iam.ServicePrincipal("scheduler.amazonaws.com", conditions=here)
        self._role = iam.Role(self, "Role", assumed_by=principal)
        start = [function.function_arn for function in functions]
        self._policy = grant(
            self,
            "Policy",
            self._role,
            [
                Statement("Start", ["lambda:InvokeFunction"], start),
                Statement("KeepFailedStarts", ["sqs:SendMessage"], [dead_letters.queue_arn]),
            ],
        )

    def add(self, name: str, expression: str, zone: str, function: lambda_.Function) -> None:
        """Run `function` then. A run that is ten minutes late would find that the next one has done its work."""
        entry = scheduler.CfnSchedule(
            self,
            name,
            name=name,
            group_name=self._group.ref,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            schedule_expression=expression,
            schedule_expression_timezone=zone,
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps({"action": name, "scheduled_time": "<aws.scheduler.scheduled-time>"}),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=600, maximum_retry_attempts=5
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=self._dead_letters.queue_arn),
            ),
        )
        entry.node.add_dependency(self._policy)
