"""A small platform in the hands of the functions, and short ways to say what happens to it."""

import json
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import count
from types import SimpleNamespace

from moto.eks.models import eks_backends

from genai_finops.operations.config import ModelConfig, NodePoolConfig, OperationsConfig
from genai_finops.operations.tokens import InstancePrice
from genai_finops.operations.windows import Schedule, Window, parse_days, parse_time
from lambdas import runtime as runtimes
from lambdas.adapters.settings import Settings
from lambdas.budget_alerts import handler as budget_alerts
from lambdas.scheduled_scaling import handler as scheduled_scaling
from lambdas.spot_interruption import handler as spot_interruption
from tests.support import aws_api
from tests.support import kubernetes_objects as objects
from tests.support.aws_api import REGION
from tests.support.clock import FakeClock

CLUSTER = "demo"
ACCOUNT = "123456789012"
INSTANCE = "i-0aa11bb22cc33dd44"
"""As in the fixture events."""

NOW = datetime(2026, 3, 2, 10, 0, 5, tzinfo=UTC)
"""A Monday, five seconds after the fixture events."""

ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
POOLS = (
    NodePoolConfig("inf2-spot", "inf2", "spot", ZONES),
    NodePoolConfig("inf2-on-demand", "inf2", "on-demand", ZONES),
)
PRICES = {"inf2.xlarge": InstancePrice(Decimal("0.76"), Decimal("0.30"))}
OFFICE = Schedule("UTC", (Window(parse_days("Mon-Fri"), parse_time("08:00"), parse_time("20:00")),))
NIGHTS = Schedule("UTC", (Window(parse_days("Mon-Fri"), parse_time("20:00"), parse_time("04:00")),))
NAMESPACE = objects.NAMESPACE

_numbers = count()

client = cache(aws_api.client)


def model(name="chat", **settings):
    given = {"deployment": f"vllm-{name}", "namespace": NAMESPACE, "served_as": name, "family": "inf2"}
    return ModelConfig(name=name, **(given | {"min_replicas": 1, "max_replicas": 4} | settings))


def server(name, of="chat", node=None, **more):
    made = objects.pod(name, model=of, node=node, **more)
    made["metadata"]["labels"]["app"] = f"vllm-{of}"
    return made


def event(detail_type="EC2 Spot Instance Interruption Warning", *, instance=INSTANCE, at=NOW, id=None, **changes):
    """An event of EC2 as EventBridge sends it."""
    detail = changes.pop("detail", {"instance-id": instance, "instance-action": "terminate"})
    return {
        "version": "0",
        "id": id or f"event-{next(_numbers)}",
        "detail-type": detail_type,
        "source": "aws.ec2",
        "account": ACCOUNT,
        "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:ec2:eu-west-1b:instance/{instance}"],
        "detail": detail,
        **changes,
    }


def rebalance(**changes):
    return event("EC2 Instance Rebalance Recommendation", **changes)


def state_change(state="terminated", *, instance=INSTANCE, **changes):
    detail = {"instance-id": instance, "state": state}
    return event("EC2 Instance State-change Notification", detail=detail, **changes)


def health(*instances, service="EC2", category="scheduledChange", **changes):
    detail = {
        "eventArn": "arn:aws:health:eu-west-1::event/EC2/x",
        "service": service,
        "eventTypeCategory": category,
        "affectedEntities": [{"entityValue": id} for id in instances],
    }
    return event("AWS Health Event", source="aws.health", detail=detail, **changes)


def messages_of(*events):
    return [
        {
            "messageId": f"message-{number}",
            "receiptHandle": "x",
            "body": body if isinstance(body, str) else json.dumps(body),
            "attributes": {},
            "messageAttributes": {},
            "md5OfBody": "",
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:signs",
            "awsRegion": REGION,
        }
        for number, body in enumerate(events)
    ]


@dataclass
class Context:
    function_name: str = "function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:function"
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self):
        return 60_000


@cache
def _mailbox(url):
    """A topic, and the queue that hears it."""
    topic = client("sns", url).create_topic(Name="alerts")["TopicArn"]
    queue = client("sqs", url).create_queue(QueueName="mail")["QueueUrl"]
    client("sns", url).subscribe(TopicArn=topic, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:mail")
    return topic, queue


class World:
    """The functions of one platform, with their table, topic and cluster."""

    def __init__(self, api, moto_url, monkeypatch, folder):
        self.api = api
        self.clock = FakeClock(NOW)
        self.moto_url = moto_url
        self.monkeypatch = monkeypatch
        self._folder = folder
        self._number = next(_numbers)
        self.requests = {}
        self.tokens = {}
        self.samples = {}
        self._arrange_aws()
        self.config = OperationsConfig(CLUSTER, REGION, (model(),), POOLS, PRICES)
        api.put(*map(objects.node_pool, [pool.name for pool in POOLS]))
        api.serve("prometheus-operated:9090", self._prometheus, namespace="monitoring")
        self.serve("chat", node="n1", instance=INSTANCE)
        self.start(self.config)

    # What there is

    def _arrange_aws(self):
        self.table = f"handlers-{self._number}"
        client("dynamodb", self.moto_url).create_table(
            TableName=self.table,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )
        self._sqs = client("sqs", self.moto_url)
        self.topic, self._queue = _mailbox(self.moto_url)
        self.mail()  # what an earlier test has not read
        self._arrange_cluster()
        for name, value in {
            "AWS_ENDPOINT_URL": self.moto_url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": REGION,
            "FACTS_TABLE": self.table,
            "ALERTS_TOPIC_ARN": self.topic,
            "CLUSTER_NAME": CLUSTER,
            "MODEL_NAMESPACE": NAMESPACE,
            "POWERTOOLS_TRACE_DISABLED": "true",
            "POWERTOOLS_METRICS_NAMESPACE": "genai-finops",
        }.items():
            self.monkeypatch.setenv(name, value)
        runtimes.runtime.cache_clear()

    def _arrange_cluster(self):
        backend = eks_backends[ACCOUNT][REGION]
        if CLUSTER not in backend.clusters:
            client("eks", self.moto_url).create_cluster(
                name=CLUSTER, roleArn=f"arn:aws:iam::{ACCOUNT}:role/x", resourcesVpcConfig={"subnetIds": []}
            )
        backend.clusters[CLUSTER].endpoint = self.api.url

    def serve(self, name, *, replicas=1, node=None, instance=None, zone="eu-west-1b", annotations=None, maximum=4):
        """A model that runs: its objects, and a Spot node under it."""
        self.api.put(
            objects.scaled_object(f"vllm-{name}", annotations=annotations, maximum=maximum),
            objects.deployment(f"vllm-{name}", replicas=replicas, total=replicas, ready=replicas),
        )
        if node:
            self.api.put(objects.node(node, instance=instance, zone=zone))
            for number in range(replicas):
                self.api.put(server(f"{name}-{node}-{number}", name, node=node))
        self.requests[name] = 0

    def sleep(self, name="chat"):
        """KEDA, the ReplicaSet and the nodes do what a pause asks for."""
        self.change("deployments", {"spec": {"replicas": 0}, "status": {"replicas": None, "readyReplicas": None}}, name)
        for plural, found, namespace in list(self.api._objects):
            if plural == "pods" and found.startswith(f"{name}-"):
                self.api.delete(plural, found, namespace)

    def change(self, plural, patch, name="chat"):
        self.api.change(plural, f"vllm-{name}", patch, NAMESPACE)

    def instance(self, *, cluster=CLUSTER, spot=True):
        """An instance that EC2 knows; its id."""
        ec2 = client("ec2", self.moto_url)
        market = {"InstanceMarketOptions": {"MarketType": "spot"}} if spot else {}
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        made = ec2.run_instances(
            ImageId=image,
            MinCount=1,
            MaxCount=1,
            InstanceType="inf2.xlarge",
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [{"Key": f"kubernetes.io/cluster/{cluster}", "Value": "owned"}],
                }
            ],
            **market,
        )
        return made["Instances"][0]["InstanceId"]

    def start(self, config=None, **settings):
        """The functions with another configuration, as after a deploy."""
        self.config = replace(config or self.config, **settings)
        file = self._folder / "platform.json"
        file.write_text(self.config.to_json(), encoding="utf-8")
        self.monkeypatch.setenv("PLATFORM_CONFIG", str(file))
        self.runtime = self.another()
        for module in (spot_interruption, scheduled_scaling, budget_alerts):
            self.monkeypatch.setattr(module, "runtime", lambda: self.runtime)

    def another(self):
        """One more execution environment, at the same time."""
        made = runtimes.build(Settings.of(os.environ), now=self.clock.now, timing=self.clock.timing())
        made.cluster._client._timing = self.clock.timing()  # nobody waits for a test's bad days
        return made

    def _prometheus(self, request):
        query = request.query["query"]
        if "prompt_tokens" in query or "generation_tokens" in query:
            index = 0 if "prompt_tokens" in query else 1
            found = {name: tokens[index] for name, tokens in self.tokens.items()}
        elif "count_over_time" in query:
            found = self.samples
        elif "running" in query:
            found = self.requests
        else:
            found = dict.fromkeys(self.requests, 0)
        vector = [{"metric": {"model_name": name}, "value": [0, str(value)]} for name, value in found.items()]
        return 200, {"status": "success", "data": {"resultType": "vector", "result": vector}}

    # What happens

    def spot(self, *events):
        """Messages arrive; the ids of those that failed."""
        response = spot_interruption.handler({"Records": messages_of(*events)}, Context())
        return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]

    def tick(self, event=None):
        return scheduled_scaling.handler(event or {"action": "tick"}, Context())

    def look_at_costs(self, *answers):
        """The daily run, with these answers of Cost Explorer; what it was asked."""
        with aws_api.AnswersInOrder(*answers) as service:
            self.monkeypatch.setenv("AWS_ENDPOINT_URL_COST_EXPLORER", service.url)
            try:
                result = budget_alerts.handler({}, Context())
            except Exception as error:
                result = error
            return SimpleNamespace(result=result, requests=service.requests, left=service.answers)

    def pass_(self, **length):
        self.clock.time += timedelta(**length)

    # What is seen

    def scaled(self, name="chat"):
        return self.api.read("scaledobjects", f"vllm-{name}", NAMESPACE)

    def annotations(self, name="chat"):
        return self.scaled(name)["metadata"].get("annotations", {})

    def limits(self, name="inf2-spot"):
        return self.api.read("nodepools", name)["spec"].get("limits", {})

    def patches(self):
        return [(request.resource, request.name) for request in self.api.asked("patch")]

    def lists(self):
        """Lists that were begun."""
        return [request.resource for request in self.api.asked("list") if "continue" not in request.query]

    def mail(self):
        """Messages to people since the last look: subjects and texts."""
        found = []
        while True:
            got = self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10).get("Messages", [])
            if not got:
                return found
            for message in got:
                body = json.loads(message["Body"])
                found.append((body.get("Subject", ""), body["Message"]))
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])

    def facts(self, kind):
        return self.runtime.facts.since(kind, datetime(2026, 1, 1, tzinfo=UTC))
