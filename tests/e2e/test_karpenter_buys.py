"""Real Karpenter with our pools against an emulated EC2: what it buys, and what it does when it cannot.

What `cdk deploy` makes for it (subnets, security group, node role, queue) is put there by hand.
"""

import json
import time

import pytest

import k8s_charts
from genai_finops.rehearsal import karpenter
from genai_finops.rehearsal.cloud import Cloud, interruption, put
from genai_finops.rehearsal.machines import Machines
from genai_finops.spec import names
from tests.platform_files import platform

pytestmark = [pytest.mark.e2e, pytest.mark.synth]

WAIT_SECONDS = 90
PLATFORM = platform("default")
[MODEL] = PLATFORM.models
SERVER, SPACE = names.deployment(MODEL), names.MODEL_NAMESPACE
SPOT, ON_DEMAND = names.spot_node_pool("inf2"), names.on_demand_node_pool("inf2")


class World:
    """The platform with no traffic and no autoscaler: replicas are what a test says."""

    def __init__(self, plane, cloud, queue):
        self.plane, self.cloud, self.queue = plane, cloud, queue

    def read(self, *arguments):
        return json.loads(self.plane.kubectl("get", *arguments, "-o", "json"))["items"]

    def scale(self, replicas):
        self.plane.kubectl("scale", "deployment", SERVER, "-n", SPACE, f"--replicas={replicas}")

    def limit(self, pool, nodes):
        patch = json.dumps({"spec": {"limits": {"nodes": nodes}}})
        self.plane.kubectl("patch", "nodepool", pool, "--type=merge", "-p", patch)

    def nodes(self):
        """Pool and instance type of every initialized node, by name."""
        return {
            item["metadata"]["name"]: (
                item["metadata"]["labels"]["karpenter.sh/nodepool"],
                item["metadata"]["labels"]["node.kubernetes.io/instance-type"],
                item["metadata"]["labels"]["karpenter.sh/capacity-type"],
            )
            for item in self.read("nodes")
            if item["metadata"]["labels"].get("karpenter.sh/initialized") == "true"
        }

    def placed(self):
        """Node of every pod that has one, by pod."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.read("pods", "-n", SPACE)
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        }

    def until(self, holds, seconds=WAIT_SECONDS):
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                pods = self.plane.kubectl("describe", "pods", "-n", SPACE)
                raise AssertionError(f"{self.nodes()}\n{self.placed()}\n{pods[-2000:]}")
            time.sleep(0.3)

    def reset(self):
        """No server, no node, every pool open, EC2 with capacity of everything."""
        self.cloud.capacity.is_short = lambda offer: False
        self.scale(0)
        for pod in self.read("pods", "-n", SPACE):
            name = pod["metadata"]["name"]
            self.plane.kubectl("delete", "pod", name, "-n", SPACE, "--force", "--grace-period=0", "--ignore-not-found")
        self.plane.kubectl("delete", "nodeclaims", "--all", "--wait=false")
        for pool in (SPOT, ON_DEMAND):
            self.limit(pool, None)
        self.until(lambda: not self.read("nodeclaims") and not self.read("nodes"))


@pytest.fixture(scope="module")
def running(started):
    cloud = Cloud(PLATFORM.region)
    cloud.start()
    queue = put_there_what_a_deploy_makes(cloud)
    charts = k8s_charts.synthesize(PLATFORM)
    with started("karpenter") as (plane, programs):
        karpenter.start(programs, plane, cloud, PLATFORM)
        machines = Machines(cloud, plane)
        machines.start()
        for chart in ("namespace", "supply", "karpenter", "vllm"):
            plane.apply(found for found in charts.get(chart, []) if found["kind"] != "Job")
        yield World(plane, cloud, queue)
        machines.stop()
    cloud.stop()


def put_there_what_a_deploy_makes(cloud):
    ec2 = cloud.client("ec2")
    vpc = ec2.create_vpc(CidrBlock=PLATFORM.network.cidr)["Vpc"]["VpcId"]
    tags = [{"Key": "karpenter.sh/discovery", "Value": PLATFORM.name}]
    for number, zone in enumerate(PLATFORM.zones):
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"10.0.{number * 16}.0/20",
            AvailabilityZone=zone,
            TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
        )
    ec2.create_security_group(
        GroupName="nodes",
        Description="nodes",
        VpcId=vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
    )
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    cloud.client("iam").create_role(RoleName=names.karpenter_node_role(PLATFORM), AssumeRolePolicyDocument=trust)
    cloud.client("eks").create_cluster(
        name=PLATFORM.name,
        version=PLATFORM.cluster.version,
        roleArn="arn:aws:iam::123456789012:role/cluster",
        resourcesVpcConfig={},
    )
    return cloud.client("sqs").create_queue(QueueName=names.interruption_queue(PLATFORM))["QueueUrl"]


@pytest.fixture
def world(running):
    running.reset()
    return running


def test_a_waiting_server_gets_the_cheapest_spot_node_that_holds_it(world):
    world.scale(1)
    world.until(world.placed)
    assert list(world.nodes().values()) == [(SPOT, "inf2.8xlarge", "spot")]


def test_with_the_spot_pool_shut_it_goes_on_demand_and_what_runs_stays(world):
    world.scale(1)
    world.until(world.placed)
    world.limit(SPOT, "0")
    world.scale(2)
    world.until(lambda: len(world.placed()) == 2)
    assert sorted(pool for pool, _, _ in world.nodes().values()) == sorted([SPOT, ON_DEMAND])


def test_a_spot_warning_drains_the_node_and_brings_another(world):
    world.scale(1)
    world.until(world.placed)
    [(name, _)] = world.nodes().items()
    [node] = world.read("nodes")
    instance = node["spec"]["providerID"].rsplit("/", 1)[1]
    put(world.cloud.client("sqs"), world.queue, [interruption(instance, PLATFORM.region)])
    # Nobody plays the kubelet that ends the pod, so the drain itself is seen by the taint.
    world.until(
        lambda: any("karpenter.sh/disrupted" in str(item["spec"].get("taints")) for item in world.read("nodes"))
    )
    [pod] = [found for found, place in world.placed().items() if place == name] or [None]
    if pod:
        world.plane.kubectl("delete", "pod", pod, "-n", SPACE, "--force", "--grace-period=0")
    world.until(lambda: world.placed() and name not in world.placed().values())
    assert [pool for pool, _, _ in world.nodes().values()][-1] == SPOT


def test_without_spot_capacity_it_goes_on_demand_unless_the_budget_has_shut_that(world):
    """A mixed pool would have gone on demand at once. Last: for three minutes Karpenter avoids what EC2 refused."""
    world.limit(ON_DEMAND, "0")
    world.cloud.capacity.is_short = lambda offer: offer.purchase == "spot"
    world.scale(1)
    world.until(lambda: world.cloud.capacity.refused)
    time.sleep(3 * karpenter.BATCH_IDLE_SECONDS)
    assert world.nodes() == {}
    world.limit(ON_DEMAND, None)
    world.until(world.placed)
    assert list(world.nodes().values()) == [(ON_DEMAND, "inf2.8xlarge", "on-demand")]
    assert {offer.purchase for offer in world.cloud.capacity.refused} == {"spot"}
