"""What wakes the functions, what they may do, and who hears when they fail."""

import json
from datetime import date

import pytest

from genai_finops.planner.fixed_cost import fixed_monthly_cost
from genai_finops.spec import names
from k8s_charts.automation import GROUP
from lambdas.adapters.facts_table import TTL_ATTRIBUTE
from lambdas.adapters.settings import Settings
from lambdas.spot_interruption.events import LEAVING, parse_signs
from stacks.schedules import looks
from tests.assemblies import of_type, text
from tests.integration.lambdas.events import fixture_event
from tests.platform_files import ROOT
from tests.unit.k8s_charts.charts import varied
from tests.unit.stacks.events import matches
from tests.unit.stacks.policies import granted, identity_policies

pytestmark = pytest.mark.synth

SIGNS = ("capacity_reservation_itn", "health_scheduled", "rebalance", "spot_itn", "state_change")
OTHERS = ("anomaly_eb", "scheduler_default")
BOTH, ALL = {"spot-interruption", "scheduled-scaling"}, {"spot-interruption", "scheduled-scaling", "budget-alerts"}


def resources(assembly, kind):
    return {
        logical_id: resource["Properties"]
        for logical_id, resource in of_type(assembly.templates["automation"], kind).items()
    }


def functions(assembly):
    """Logical id and properties of the functions, by their names."""
    prefix = f"{assembly.platform.name}-"
    return {
        found["FunctionName"].removeprefix(prefix): (logical_id, found)
        for logical_id, found in resources(assembly, "AWS::Lambda::Function").items()
    }


def statements(assembly, name):
    """By statement id, of one function's role."""
    _, role = assembly.target("automation", functions(assembly)[name][1]["Role"])
    attached = {
        policy
        for policy, found in resources(assembly, "AWS::IAM::ManagedPolicy").items()
        if {"Ref": role} in found["Roles"]
    }
    return {
        found.sid: found
        for found in identity_policies(assembly)
        if found.stack == "automation" and found.policy in attached
    }


# The functions


def test_the_budgets_function_is_there_when_there_is_a_budget(assembly):
    assert functions(assembly).keys() == (ALL if assembly.platform.budget else BOTH)


def test_all_run_the_same_bundle_on_graviton(assembly):
    found = [function for _, function in functions(assembly).values()]
    assert len({json.dumps(function["Code"]) for function in found}) == 1
    for function in found:
        assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"])
        assert "Layers" not in function


def test_each_handler_is_a_function_of_the_code(assembly):
    for _, function in functions(assembly).values():
        module, _, name = function["Handler"].rpartition(".")
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert f"def {name}(event: " in source


def test_memory_time_and_concurrency_are_limited(assembly):
    for name, (_, function) in functions(assembly).items():
        assert 256 <= function["MemorySize"] <= 1024
        assert function["Timeout"] < 60 or (name == "budget-alerts" and function["Timeout"] <= 300)
        assert 1 <= function["ReservedConcurrentExecutions"] <= 2
        assert function["TracingConfig"] == {"Mode": "Active"}


def test_logs_do_not_pile_up(assembly):
    for _, function in functions(assembly).values():
        group = assembly.referred("automation", function["LoggingConfig"]["LogGroup"])
        assert group["RetentionInDays"] == assembly.platform.cluster.log_retention_days
        assert group["LogGroupName"] == f"/aws/lambda/{function['FunctionName']}"


def test_the_environment_is_what_the_settings_read(assembly, tmp_path):
    config = tmp_path / "platform.json"
    config.touch()
    for _, function in functions(assembly).values():
        variables = {key: text(value) for key, value in function["Environment"]["Variables"].items()}
        assert variables["PLATFORM_CONFIG"] == "/var/task/platform.json"
        if "ALERTS_TOPIC_ARN" in variables:
            variables["ALERTS_TOPIC_ARN"] = "arn:aws:sns:us-east-1:123456789012:alerts"
        read = Settings.of(variables | {"PLATFORM_CONFIG": str(config), "AWS_REGION": assembly.platform.region})
        assert read.model_namespace == names.MODEL_NAMESPACE
        known = {field.alias for field in Settings.model_fields.values()} - {"AWS_REGION"}
        assert variables.keys() - {"ALERTS_TOPIC_ARN"} == known - {"ALERTS_TOPIC_ARN"}


def test_the_environment_names_this_cluster_and_the_table_and_topic_of_this_stack(assembly):
    table = assembly.one("AWS::DynamoDB::Table", "automation")
    for _, function in functions(assembly).values():
        variables = function["Environment"]["Variables"]
        assert assembly.referred("automation", variables["CLUSTER_NAME"])["Name"] == assembly.platform.name
        assert assembly.referred("automation", variables["FACTS_TABLE"]) == table["Properties"]
        assert ("ALERTS_TOPIC_ARN" in variables) == ("operations" in assembly.stacks)
        if "ALERTS_TOPIC_ARN" in variables:
            topic = assembly.referred("automation", variables["ALERTS_TOPIC_ARN"])
            assert topic["TopicName"] == names.alerts_topic(assembly.platform)


def test_each_comes_into_the_cluster_as_a_member_of_the_group_and_with_no_policy_of_eks(assembly):
    entries = resources(assembly, "AWS::EKS::AccessEntry").values()
    principals = {assembly.target("automation", entry["PrincipalArn"])[1] for entry in entries}
    roles = {assembly.target("automation", function["Role"])[1] for _, function in functions(assembly).values()}
    assert principals == roles
    assert len(roles) == len(functions(assembly))
    for entry in entries:
        assert entry["KubernetesGroups"] == [GROUP]
        assert entry["Type"] == "STANDARD"
        assert not entry.get("AccessPolicies")
        assert assembly.referred("automation", entry["ClusterName"])["Name"] == assembly.platform.name


def test_none_starts_before_its_permissions_and_its_access(assembly):
    template = assembly.templates["automation"]
    for _, (logical_id, _) in functions(assembly).items():
        kinds = {template["Resources"][other]["Type"] for other in template["Resources"][logical_id]["DependsOn"]}
        assert {"AWS::IAM::ManagedPolicy", "AWS::EKS::AccessEntry"} <= kinds


def test_the_kubernetes_role_stands_before_the_functions(assembly):
    assert assembly.stacks["serving"] in [
        assembly.stacks[name] for name in assembly.stacks["automation"]["dependencies"] if name in assembly.stacks
    ]


# The way to the API server


def test_they_reach_the_private_endpoint_from_private_subnets(assembly):
    [group] = resources(assembly, "AWS::EC2::SecurityGroup")
    egress = resources(assembly, "AWS::EC2::SecurityGroup")[group]["SecurityGroupEgress"]
    assert [(rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) for rule in egress] == [("tcp", 443, 443)]
    for _, function in functions(assembly).values():
        network = function["VpcConfig"]
        assert network["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]
        assert len(network["SubnetIds"]) == len(assembly.platform.zones)
        for subnet in network["SubnetIds"]:
            assert assembly.referred("automation", subnet)["MapPublicIpOnLaunch"] is False
    [ingress] = resources(assembly, "AWS::EC2::SecurityGroupIngress").values()
    assert (ingress["FromPort"], ingress["ToPort"], ingress["IpProtocol"]) == (443, 443, "tcp")
    assert ingress["SourceSecurityGroupId"] == {"Fn::GetAtt": [group, "GroupId"]}
    assert assembly.referred("automation", ingress["GroupId"])["Name"] == assembly.platform.name


# Permissions


SHARED = {
    "WriteLog": {"logs:CreateLogStream", "logs:PutLogEvents"},
    "Trace": {"xray:PutTraceSegments", "xray:PutTelemetryRecords"},
    "AttachToVpc": {
        "ec2:AssignPrivateIpAddresses",
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:UnassignPrivateIpAddresses",
    },
    "FindApiServer": {"eks:DescribeCluster"},
    "KeepFacts": {"dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"},
}
TOLD = {"PublishAlerts": {"sns:Publish"}, "EncryptAlerts": {"kms:Decrypt", "kms:GenerateDataKey"}}
OWN = {
    "spot-interruption": {
        "TakeSigns": {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"},
        "DescribeInstances": {"ec2:DescribeInstances"},
    },
    "scheduled-scaling": {"KeepFailedRuns": {"sqs:SendMessage"}},
    "budget-alerts": {
        "KeepFailedRuns": {"sqs:SendMessage"},
        "AskCostExplorer": {"ce:GetCostAndUsage", "ce:GetCostForecast"},
    },
}


def test_each_may_do_what_it_does_and_no_more(assembly):
    told = TOLD if "operations" in assembly.stacks else {}
    for name in functions(assembly):
        found = {sid: set(statement.actions) for sid, statement in statements(assembly, name).items()}
        assert found == SHARED | told | OWN[name]


def test_what_they_may_do_is_limited_to_what_is_theirs(assembly):
    for name in functions(assembly):
        found = statements(assembly, name)
        anywhere = {sid for sid, statement in found.items() if statement.resources == ["*"]}
        assert anywhere <= {"Trace", "AttachToVpc", "DescribeInstances", "AskCostExplorer"}
        [table] = resources(assembly, "AWS::DynamoDB::Table")
        assert found["KeepFacts"].resources == [f"${{{table}.Arn}}"]
        [cluster] = [found["FindApiServer"].statement["Resource"]]
        assert assembly.referred("automation", cluster)["Name"] == assembly.platform.name
        group = found["WriteLog"].statement["Resource"]
        assert assembly.referred("automation", group)["LogGroupName"].endswith(f"-{name}")
        if "PublishAlerts" in found:
            topic = found["PublishAlerts"].statement["Resource"]
            assert assembly.referred("automation", topic)["TopicName"] == names.alerts_topic(assembly.platform)
            key = assembly.referred("automation", found["EncryptAlerts"].statement["Resource"])
            assert key["EnableKeyRotation"] is True


# Facts


def test_the_table_is_what_the_adapter_writes_to(assembly):
    table = assembly.one("AWS::DynamoDB::Table", "automation")["Properties"]
    assert table["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert {one["AttributeType"] for one in table["AttributeDefinitions"]} == {"S"}
    assert table["TimeToLiveSpecification"] == {"AttributeName": TTL_ATTRIBUTE, "Enabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_the_table_can_be_restored_and_is_protected_like_the_platform(assembly):
    table = assembly.one("AWS::DynamoDB::Table", "automation")["Properties"]
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["DeletionProtectionEnabled"] is assembly.platform.termination_protection


# Signs


def heard(assembly, found):
    """The rules that let an event through."""
    return [
        rule
        for rule, properties in resources(assembly, "AWS::Events::Rule").items()
        if matches(properties["EventPattern"], found)
    ]


@pytest.mark.parametrize("name", SIGNS)
def test_each_sign_is_heard_by_one_rule(assembly, name):
    found = fixture_event(name)
    assert len(heard(assembly, found)) == 1
    assert parse_signs(found), "and the function knows what it means"


@pytest.mark.parametrize("name", OTHERS)
def test_other_events_are_heard_by_none(assembly, name):
    assert heard(assembly, fixture_event(name)) == []


@pytest.mark.parametrize("state", ["pending", "running", *sorted(LEAVING)])
def test_of_states_only_those_that_the_function_acts_on_are_heard(assembly, state):
    found = fixture_event("state_change")
    found["detail"]["state"] = state
    assert bool(heard(assembly, found)) == (state in LEAVING)


@pytest.mark.parametrize("change", [{"service": "RDS"}, {"eventTypeCategory": "accountNotification"}])
def test_of_health_only_scheduled_changes_of_ec2_are_heard(assembly, change):
    found = fixture_event("health_scheduled")
    found["detail"] |= change
    assert heard(assembly, found) == []


def test_every_rule_is_on_and_fills_the_queue_or_the_dead_letters(assembly):
    queue, dead_letters = signs_queues(assembly)
    rules = resources(assembly, "AWS::Events::Rule").values()
    assert len(rules) == 5
    for rule in rules:
        assert rule["State"] == "ENABLED"
        [target] = rule["Targets"]
        assert target["Arn"] == {"Fn::GetAtt": [queue, "Arn"]}
        assert target["DeadLetterConfig"]["Arn"] == {"Fn::GetAtt": [dead_letters, "Arn"]}


def signs_queues(assembly):
    """The queue and its dead-letter queue."""
    [(queue, redrive)] = [
        (logical_id, queue["RedrivePolicy"])
        for logical_id, queue in resources(assembly, "AWS::SQS::Queue").items()
        if "RedrivePolicy" in queue
    ]
    assert redrive["maxReceiveCount"] >= 3
    return queue, redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]


def test_the_function_takes_batches_and_gives_back_only_what_failed(assembly):
    queue, _ = signs_queues(assembly)
    mapping = assembly.one("AWS::Lambda::EventSourceMapping", "automation")["Properties"]
    logical_id, function = functions(assembly)["spot-interruption"]
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [queue, "Arn"]}
    assert mapping["FunctionName"] == {"Ref": logical_id}
    assert mapping["BatchSize"] == 10
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    # Otherwise the poller is throttled, and messages are received in vain until they are dead letters.
    assert mapping["ScalingConfig"]["MaximumConcurrency"] <= function["ReservedConcurrentExecutions"]


def test_a_sign_is_not_given_to_a_second_run_while_the_first_may_still_work(assembly):
    queue, _ = signs_queues(assembly)
    wait = resources(assembly, "AWS::SQS::Queue")[queue]["VisibilityTimeout"]
    _, function = functions(assembly)["spot-interruption"]
    assert function["Timeout"] + 5 < wait <= 120, "and it comes back within the two minutes that Spot gives"


def test_all_queues_are_encrypted_and_only_reached_over_tls(assembly):
    queues = resources(assembly, "AWS::SQS::Queue")
    assert len(queues) == 3
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    denied = [
        found
        for found in granted(assembly, "AWS::SQS::QueuePolicy")
        if found.stack == "automation" and not found.allows
    ]
    assert {text(found.statement["Resource"]) for found in denied} == {f"${{{queue}.Arn}}" for queue in queues}
    assert all(found.conditions == {"aws:SecureTransport": "false"} for found in denied)


def test_only_the_rules_may_send_to_the_queues(assembly):
    rules = {f"${{{rule}.Arn}}" for rule in resources(assembly, "AWS::Events::Rule")}
    senders = set()
    for found in granted(assembly, "AWS::SQS::QueuePolicy"):
        if found.stack == "automation" and found.allows:
            assert found.services == ["events.amazonaws.com"]
            senders.add(text(found.conditions["aws:SourceArn"]))
    assert senders == rules


def test_dead_letters_are_kept_until_somebody_has_looked(assembly):
    queue, _ = signs_queues(assembly)
    for logical_id, properties in resources(assembly, "AWS::SQS::Queue").items():
        if logical_id != queue:
            assert properties["MessageRetentionPeriod"] == 14 * 24 * 3600


# Schedules


def entries(assembly):
    return {found["Name"]: found for found in resources(assembly, "AWS::Scheduler::Schedule").values()}


def test_the_tick_looks_whatever_the_schedules_say(assembly):
    tick = entries(assembly)["tick"]
    assert tick["ScheduleExpression"] == "rate(2 minutes)"
    scaling, _ = functions(assembly)["scheduled-scaling"]
    assert tick["Target"]["Arn"] == {"Fn::GetAtt": [scaling, "Arn"]}


def test_every_boundary_has_an_entry_in_the_zone_of_the_model(assembly):
    found = {
        (entry["ScheduleExpressionTimezone"], entry["ScheduleExpression"])
        for name, entry in entries(assembly).items()
        if name not in ("tick", "budget")
    }
    assert found == {(look.zone, look.expression) for look in looks(assembly.platform.models)}


def test_models_of_berlin_are_woken_and_put_to_sleep_by_the_clocks_of_berlin(assemblies):
    found = {
        entry["ScheduleExpression"]
        for entry in entries(assemblies["rich"]).values()
        if entry["ScheduleExpressionTimezone"] == "Europe/Berlin"
    }
    # From 7 to 8 in the evening, woken twenty minutes before.
    assert {"cron(40 6 * * ? *)", "cron(0 20 * * ? *)"} <= found


def test_the_budget_is_looked_at_once_a_day(assembly):
    assert ("budget" in entries(assembly)) == (assembly.platform.budget is not None)
    if assembly.platform.budget:
        entry = entries(assembly)["budget"]
        assert entry["ScheduleExpression"] == "cron(30 11 * * ? *)"
        budget, _ = functions(assembly)["budget-alerts"]
        assert entry["Target"]["Arn"] == {"Fn::GetAtt": [budget, "Arn"]}


def test_a_run_that_could_not_start_is_tried_again_and_then_kept(assembly):
    queue, _ = signs_queues(assembly)
    for entry in entries(assembly).values():
        target = entry["Target"]
        assert entry["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 600, "MaximumRetryAttempts": 5}
        assert target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0] != queue
        assert json.loads(target["Input"])["scheduled_time"] == "<aws.scheduler.scheduled-time>"


def test_a_run_that_failed_is_tried_again_and_then_kept(assembly):
    settings = resources(assembly, "AWS::Lambda::EventInvokeConfig").values()
    found = {assembly.referred("automation", one["FunctionName"])["FunctionName"] for one in settings}
    assert found == {f"{assembly.platform.name}-{name}" for name in functions(assembly).keys() - {"spot-interruption"}}
    for one in settings:
        name = assembly.referred("automation", one["FunctionName"])["FunctionName"]
        # A budget run pays for its questions each time.
        assert one["MaximumRetryAttempts"] == (1 if name.endswith("budget-alerts") else 2)
        assert one["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0].startswith("RunsDeadLetters")


def test_the_scheduler_may_start_these_functions_and_keep_what_failed(assembly):
    [role] = {entry["Target"]["RoleArn"]["Fn::GetAtt"][0] for entry in entries(assembly).values()}
    [policy] = [
        found["PolicyDocument"]["Statement"]
        for found in resources(assembly, "AWS::IAM::ManagedPolicy").values()
        if {"Ref": role} in found["Roles"]
    ]
    start, keep = policy
    started = start["Resource"] if isinstance(start["Resource"], list) else [start["Resource"]]
    targets = {json.dumps(entry["Target"]["Arn"]) for entry in entries(assembly).values()}
    assert {json.dumps(one) for one in started} == targets
    assert (start["Action"], keep["Action"]) == ("lambda:InvokeFunction", "sqs:SendMessage")


def test_five_hundred_models_stay_below_the_limits_of_a_template():
    """Without a synth: nothing but the entries grows with the models, and the rest are about fifty resources."""
    zones = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "Asia/Kolkata", "UTC", "Africa/Cairo", "Asia/Dubai")
    models = [
        {
            "schedule": {
                "time_zone": zones[number % len(zones)],
                "awake": [{"days": "Mon-Fri", "start": f"{number % 24:02}:{number % 60:02}", "end": "23:59"}],
            }
        }
        for number in range(500)
    ]
    assert len(looks(varied(*models).models)) <= 200


# Alarms


def alarms(assembly):
    return resources(assembly, "AWS::CloudWatch::Alarm").values()


def watched(assembly):
    """Metric, and the name of the function or the logical id of the queue that it is of; math has none."""
    for alarm in alarms(assembly):
        if "MetricName" in alarm:
            [dimension] = alarm["Dimensions"]
            _, logical_id = assembly.target("automation", dimension["Value"])
            found = assembly.templates["automation"]["Resources"][logical_id]["Properties"]
            yield alarm["MetricName"], found.get("FunctionName", logical_id)


def test_errors_and_throttles_of_every_function_and_dead_letters_of_every_kind_are_watched(assembly):
    queue, _ = signs_queues(assembly)
    expected = {
        (metric, function["FunctionName"])
        for _, function in functions(assembly).values()
        for metric in ("Errors", "Throttles")
    }
    expected |= {
        ("ApproximateNumberOfMessagesVisible", other)
        for other in resources(assembly, "AWS::SQS::Queue")
        if other != queue
    }
    found = list(watched(assembly))
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_an_hour_without_a_successful_reconcile_is_an_alarm_even_when_nothing_is_measured(assembly):
    [alarm] = [alarm for alarm in alarms(assembly) if "Metrics" in alarm]
    by_id = {metric["Id"]: metric for metric in alarm["Metrics"]}
    [expression] = [metric["Expression"] for metric in alarm["Metrics"] if "Expression" in metric]
    assert expression == "runs - errors"
    scaling, _ = functions(assembly)["scheduled-scaling"]
    for name, metric in (("runs", "Invocations"), ("errors", "Errors")):
        measured = by_id[name]["MetricStat"]
        assert measured["Metric"]["MetricName"] == metric
        assert measured["Metric"]["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": scaling}}]
        assert (measured["Period"], measured["Stat"]) == (3600, "Sum")
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["TreatMissingData"] == "breaching"


def test_alarms_reach_the_topic_when_there_is_one(assembly):
    for alarm in alarms(assembly):
        assert len(alarm["AlarmDescription"]) > 20
        if "operations" not in assembly.stacks:
            assert "AlarmActions" not in alarm
            continue
        [action] = alarm["AlarmActions"]
        assert assembly.referred("automation", action)["TopicName"] == names.alerts_topic(assembly.platform)


def test_silence_is_no_alarm_but_for_the_one_that_waits_for_a_sign_of_life(assembly):
    for alarm in alarms(assembly):
        assert alarm["TreatMissingData"] == ("breaching" if "Metrics" in alarm else "notBreaching")


def test_the_plan_counts_the_metrics_that_alarms_are_paid_by(assembly):
    [line] = [
        line
        for line in fixed_monthly_cost(assembly.platform, date(2026, 12, 1)).lines
        if line.name == "Alarms on functions"
    ]
    measured = (
        sum("MetricStat" in metric for metric in alarm.get("Metrics", [{"MetricStat": {}}]))
        for alarm in alarms(assembly)
    )
    assert line.quantity == sum(measured)
