"""Who hears of what: the alerts topic, and an AWS Budgets budget that works without anything of ours running."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from genai_finops.spec import Platform, names
from genai_finops.spec.platform import Budget, Slack
from stacks.base import PlatformStack, acknowledge


class OperationsStack(PlatformStack):
    """The topic exists when the file names someone to notify; the budget when it sets one."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "operations", platform=platform, description="Alerts and budget of the platform")
        self.topic = self._topic(platform)
        if platform.notifications.slack:
            self._slack(platform, platform.notifications.slack)
        if platform.budget:
            self._budget(platform, platform.budget)

    def _topic(self, platform: Platform) -> sns.Topic:
        services = [iam.ServicePrincipal(f"{service}.amazonaws.com") for service in ("budgets", "cloudwatch")]
        key = kms.Key(
            self,
            "AlertsKey",
            description=f"Alerts of {platform.name}",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,
            pending_window=Duration.days(7),
        )
        here = {"StringEquals": {"aws:SourceAccount": self.account}}
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="ServicesMayPublishEncrypted",
                principals=services,
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=["*"],
                conditions=here,
            )
        )
        topic = sns.Topic(
            self,
            "Alerts",
            topic_name=names.alerts_topic(platform),
            display_name=f"{platform.name} alerts",
            master_key=key,
            enforce_ssl=True,
        )
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="ServicesMayPublish",
                principals=services,
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions=here,
            )
        )
        for email in platform.notifications.emails:
            topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic

    def _slack(self, platform: Platform, slack: Slack) -> None:
        channel = chatbot.SlackChannelConfiguration(
            self,
            "Slack",
            slack_channel_configuration_name=names.alerts_topic(platform),
            slack_workspace_id=slack.workspace_id,
            slack_channel_id=slack.channel_id,
            notification_topics=[self.topic],
            guardrail_policies=[iam.ManagedPolicy.from_aws_managed_policy_name("CloudWatchReadOnlyAccess")],
        )
        acknowledge(
            channel,
            {"AwsSolutions-IAM4": "The channel only shows what it is sent; the guardrail lets it read metrics."},
        )

    def _budget(self, platform: Platform, budget: Budget) -> None:
        """Counts what carries the platform's tag, once that is activated for cost allocation."""
        budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=f"{platform.name}-monthly",
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=float(budget.monthly_usd), unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{names.PLATFORM_TAG}${platform.name}"]},
                # Credits would hide the spend until they run out.
                cost_types=budgets.CfnBudget.CostTypesProperty(include_credit=False, include_refund=False),
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        notification_type=kind,
                        comparison_operator="GREATER_THAN",
                        threshold=threshold,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[
                        budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=self.topic.topic_arn)
                    ],
                )
                for kind, thresholds in (
                    ("ACTUAL", budget.actual_thresholds_percent),
                    ("FORECASTED", budget.forecast_thresholds_percent),
                )
                for threshold in thresholds
            ],
        )
