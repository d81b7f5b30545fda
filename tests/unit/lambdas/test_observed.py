"""What the rules read is counted from what the cluster shows, and unknown is not zero."""

import pytest

from genai_finops.operations.config import ModelConfig, OperationsConfig
from genai_finops.operations.observed import ObservedNodePool, Replicas
from k8s_charts import labels
from lambdas.adapters.cluster import Cluster
from lambdas.adapters.observed import APP_LABEL, observed
from lambdas.adapters.prometheus import Load
from tests.support.kubernetes_objects import NAMESPACE, deployment, node, node_pool, pod, scaled_object

IDLE = {"served-a": Load(0, 0)}


def model(name, **more):
    return ModelConfig(
        name=name,
        deployment=f"vllm-{name}",
        namespace=NAMESPACE,
        served_as=f"served-{name}",
        family="inf2",
        min_replicas=1,
        max_replicas=4,
        **more,
    )


ONE_MODEL = (model("a"),)


def server(name, of, **more):
    made = pod(name, model=of, **more)
    made["metadata"]["labels"]["app"] = f"vllm-{of}"
    return made


@pytest.fixture
def look(api, kubernetes):
    def look(*objects, load=IDLE, models=ONE_MODEL):
        api.put(*objects)
        state = Cluster(kubernetes, namespace=NAMESPACE).observe()
        return observed(state, OperationsConfig("genai", "us-east-1", models), load)

    return look


def test_the_label_is_the_one_of_the_charts():
    assert labels.APP == APP_LABEL


def test_a_model_without_any_object_is_seen_as_not_there(look):
    shown = look(load={}).models["a"]
    assert (shown.scaled_object, shown.replicas, shown.requests, shown.placeholders) == (None, Replicas(), 0, None)


def test_a_model_is_joined_from_its_objects(look):
    annotations = {"theirs": "x"}
    shown = look(
        scaled_object("vllm-a", annotations=annotations, minimum=None, maximum=3),
        deployment("vllm-a", replicas=2, total=2, ready=1),
        server("p", "a", node="n", ends_by="2026-03-02T11:00:00Z"),
        load={"served-a": Load(3, 2)},
    ).models["a"]
    assert (shown.scaled_object.minimum, shown.scaled_object.maximum) == (None, 3)
    assert shown.scaled_object.annotations == annotations
    assert shown.scaled_object.resource_version
    assert shown.replicas == Replicas(wanted=2, total=2, ready=1, draining=1)
    assert shown.requests == 5


@pytest.mark.parametrize(
    ("load", "ready", "requests"),
    [
        (None, 1, None),
        (None, 0, None),
        ({}, 1, None),
        ({}, 0, 0),
        ({"served-a": Load(0, 0)}, 1, 0),
    ],
)
def test_requests_that_nobody_can_count_are_unknown_and_not_none(look, load, ready, requests):
    assert look(deployment("vllm-a", ready=ready), load=load).models["a"].requests == requests


def test_pods_are_counted_on_their_nodes_by_model_and_by_whether_they_are_leaving(look):
    finished = server("done", "a", node="n1")
    finished["status"]["phase"] = "Failed"
    shown = look(
        node("n1", instance="i-0000000000000001"),
        node("n2", instance="i-0000000000000002"),
        server("p1", "a", node="n1"),
        server("p2", "a", node="n1"),
        server("p3", "b", node="n1"),
        server("p4", "a", node="n2", ends_by="2026-03-02T11:00:00Z"),
        server("p5", "a"),
        finished,
        pod("placeholder", model="a", node="n1"),
        models=(model("a"), model("b")),
    )
    first, second = shown.nodes
    assert (first.replicas, first.draining) == ({"a": 2, "b": 1}, {})
    assert (second.replicas, second.draining) == ({}, {"a": 1})
    assert shown.models["a"].replicas.draining == 1


def test_only_nodes_of_karpenter_are_the_rules_business(look):
    shown = look(node("system", pool=None, capacity_type=None), node("ours"))
    (seen,) = shown.nodes
    assert (seen.name, seen.capacity_type, seen.node_pool) == ("ours", "spot", "inf2-spot")
    assert (seen.pool.instance_type, seen.pool.zone) == ("inf2.xlarge", "us-east-1b")


def test_placeholders_are_what_their_deployment_asks_for(look):
    shown = look(
        deployment("warm-a", replicas=2, total=0, ready=0),
        models=(model("a", placeholders=2, placeholder_deployment="warm-a"),),
    )
    assert shown.models["a"].placeholders == 2


def test_a_node_pool_that_is_closed_shows_it(look):
    shown = look(node_pool("closed", limits={"nodes": "0"}), node_pool("open", limits={"cpu": "64"}))
    versions = {name: pool.resource_version for name, pool in shown.node_pools.items()}
    assert shown.node_pools == {
        "closed": ObservedNodePool("0", versions["closed"]),
        "open": ObservedNodePool(None, versions["open"]),
    }
    assert all(versions.values())
