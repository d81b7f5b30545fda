"""Alerts and budget: there when somebody is to be notified, encrypted, and open to AWS Budgets of this account only."""

import pytest

from genai_finops.spec import names
from tests.assemblies import of_type, text
from tests.unit.stacks.policies import granted

pytestmark = pytest.mark.synth


@pytest.fixture
def rich(assemblies):
    return assemblies["rich"]


def test_the_stack_exists_only_when_somebody_is_to_be_notified(assemblies):
    assert "operations" not in assemblies["default"].stacks
    assert "operations" not in assemblies["minimal"].stacks
    assert "operations" in assemblies["rich"].stacks


def test_the_topic_is_encrypted_with_a_key_that_rotates(rich):
    topic = rich.one("AWS::SNS::Topic", "operations")["Properties"]
    assert topic["TopicName"] == names.alerts_topic(rich.platform)
    assert rich.referred("operations", topic["KmsMasterKeyId"])["EnableKeyRotation"] is True


@pytest.mark.parametrize(
    ("kind", "sid", "actions"),
    [
        ("AWS::SNS::TopicPolicy", "ServicesMayPublish", {"sns:Publish"}),
        ("AWS::KMS::Key", "ServicesMayPublishEncrypted", {"kms:Decrypt", "kms:GenerateDataKey"}),
    ],
)
def test_budgets_of_this_account_may_publish_and_use_the_key(rich, kind, sid, actions):
    [statement] = [found for found in granted(rich, kind) if found.sid == sid]
    assert "budgets.amazonaws.com" in statement.services
    assert set(statement.actions) == actions
    assert statement.conditions == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}


def test_nobody_publishes_without_tls(rich):
    [denied] = [found for found in granted(rich, "AWS::SNS::TopicPolicy") if not found.allows]
    assert denied.actions == ["sns:Publish"]
    assert denied.statement["Principal"] == "*"
    assert denied.conditions == {"aws:SecureTransport": "false"}


def test_each_address_of_the_file_is_subscribed(rich):
    subscriptions = of_type(rich.templates["operations"], "AWS::SNS::Subscription").values()
    endpoints = [(found["Properties"]["Protocol"], found["Properties"]["Endpoint"]) for found in subscriptions]
    assert endpoints == [("email", address) for address in rich.platform.notifications.emails]


def test_slack_shows_the_topic_in_the_channel_of_the_file(rich):
    channel = rich.one("AWS::Chatbot::SlackChannelConfiguration", "operations")["Properties"]
    wanted = rich.platform.notifications.slack
    assert (channel["SlackWorkspaceId"], channel["SlackChannelId"]) == (wanted.workspace_id, wanted.channel_id)
    [topic] = channel["SnsTopicArns"]
    assert rich.referred("operations", topic)["TopicName"] == names.alerts_topic(rich.platform)


def test_whoever_writes_in_the_channel_can_change_nothing(rich):
    channel = rich.one("AWS::Chatbot::SlackChannelConfiguration", "operations")["Properties"]
    assert [text(policy) for policy in channel["GuardrailPolicies"]] == [
        "arn:${AWS::Partition}:iam::aws:policy/CloudWatchReadOnlyAccess"
    ]
    role = rich.referred("operations", channel["IamRoleArn"])
    assert not {"ManagedPolicyArns", "Policies"} & role.keys()


def test_the_budget_is_the_amount_of_the_file_before_credits(rich):
    budget = rich.one("AWS::Budgets::Budget", "operations")["Properties"]["Budget"]
    assert budget["BudgetLimit"] == {"Amount": 20000, "Unit": "USD"}
    assert (budget["BudgetType"], budget["TimeUnit"]) == ("COST", "MONTHLY")
    assert budget["CostTypes"] == {"IncludeCredit": False, "IncludeRefund": False}


def test_every_threshold_of_the_file_reaches_the_topic(rich):
    found = rich.one("AWS::Budgets::Budget", "operations")["Properties"]["NotificationsWithSubscribers"]
    thresholds = {(entry["Notification"]["NotificationType"], entry["Notification"]["Threshold"]) for entry in found}
    assert thresholds == {
        ("ACTUAL", 50),
        ("ACTUAL", 80),
        ("ACTUAL", 100),
        ("FORECASTED", 100),
        ("FORECASTED", 120),
    }
    for entry in found:
        assert entry["Notification"]["ThresholdType"] == "PERCENTAGE"
        assert entry["Notification"]["ComparisonOperator"] == "GREATER_THAN"
        [subscriber] = entry["Subscribers"]
        assert subscriber["SubscriptionType"] == "SNS"
        assert rich.referred("operations", subscriber["Address"])["TopicName"] == names.alerts_topic(rich.platform)
