"""What the cluster shows, and what becomes of changes when some of them fail."""

import time
from datetime import UTC, datetime

import pytest

from genai_finops import versions
from genai_finops.operations.changes import Patch
from genai_finops.spec import names
from lambdas.adapters import cluster as module
from lambdas.adapters.cluster import Cluster, Deployment, Node, NodePool, Pod, ScaledObject
from lambdas.adapters.kubernetes_errors import ForbiddenError, UnauthorizedError, UnreachableError
from tests.support.kubernetes_api import Answer
from tests.support.kubernetes_objects import NAMESPACE, deployment, node, node_pool, pod, scaled_object

PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"


@pytest.fixture
def cluster(kubernetes):
    return Cluster(kubernetes, namespace=NAMESPACE)


def test_names_are_those_of_the_charts():
    assert module.MODEL_LABEL == names.MODEL_LABEL
    assert names.MODEL_NAMESPACE == NAMESPACE
    assert ScaledObject.RESOURCE.api == versions.KEDA_API
    assert NodePool.RESOURCE.api == versions.KARPENTER_API


# Looking


def test_a_scaled_object_with_nothing_but_a_target_is_read(api, cluster):
    bare = {"metadata": {"name": "vllm-a", "namespace": NAMESPACE}, "spec": {"scaleTargetRef": {"name": "vllm-a"}}}
    api.put({"kind": "ScaledObject", **bare})
    (seen,) = cluster.observe().scaled_objects
    assert (seen.deployment, seen.min_replicas, seen.max_replicas) == ("vllm-a", None, None)
    assert (seen.annotations, seen.labels, seen.conditions, seen.model) == ({}, {}, {}, None)


def test_a_scaled_object_keeps_zero_apart_from_nothing_and_shows_what_keda_says(api, cluster):
    api.put(scaled_object("vllm-a", minimum=0, conditions={"Paused": "True"}, annotations={PAUSED_REPLICAS: "2"}))
    (seen,) = cluster.observe().scaled_objects
    assert seen.min_replicas == 0
    assert seen.conditions == {"Paused": "True"}
    assert seen.annotations == {PAUSED_REPLICAS: "2"}
    assert seen.model == "a"


def test_a_deployment_shows_wanted_there_and_ready_replicas(api, cluster):
    api.put(deployment("vllm-a", replicas=0, total=1, ready=0), deployment("vllm-b", replicas=None))
    a, b = cluster.observe().deployments
    assert (a.wanted, a.total, a.ready) == (0, 1, 0)
    assert b.wanted == 1


def test_a_pod_that_is_held_up_past_its_grace_shows_since_when_it_should_be_gone(api, cluster):
    api.put(pod("p", model="a", node="n", ready=True, ends_by="2026-03-02T11:00:00Z"))
    (seen,) = cluster.observe().pods
    assert seen.is_terminating
    assert seen.ends_by == datetime(2026, 3, 2, 11, tzinfo=UTC)
    assert not seen.is_ready


def test_a_pod_that_waits_for_a_node_has_none(api, cluster):
    api.put(pod("p", model="a", ready=False))
    state = cluster.observe()
    assert (state.pods[0].node, state.pods[0].phase, state.pods[0].is_ready) == ("", "Pending", False)
    assert state.pods[0].model == "a"


def test_a_node_shows_what_ec2_and_karpenter_call_it(api, cluster):
    api.put(node("n", instance="i-0abc0123456789def", zone="us-west-2c", capacity_type="on-demand", pool="p"))
    seen = cluster.observe().nodes_by_instance["i-0abc0123456789def"]
    assert (seen.zone, seen.instance_type, seen.capacity_type, seen.node_pool) == (
        "us-west-2c",
        "inf2.xlarge",
        "on-demand",
        "p",
    )
    assert seen.is_ready
    assert not seen.is_leaving


@pytest.mark.parametrize(
    ("provider_id", "instance"),
    [
        ("aws:///us-east-1b/i-0123456789abcdef0", "i-0123456789abcdef0"),
        ("kwok-aws:///us-east-1b/i-01234567", "i-01234567"),
        ("aws:///us-east-1b/8c4a/fargate-ip-10-0-1-2.ec2.internal", ""),
        ("", ""),
    ],
)
def test_the_instance_of_a_node_is_the_end_of_its_provider_id(provider_id, instance):
    assert module.instance_id(provider_id) == instance


def test_a_node_that_karpenter_takes_away_is_leaving(api, cluster):
    api.put(
        node("marked", taints=({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},)),
        node("tainted", taints=({"key": "aws.amazon.com/neuron", "value": "true", "effect": "NoSchedule"},)),
    )
    assert {found.name: found.is_leaving for found in cluster.observe().nodes} == {"marked": True, "tainted": False}


def test_a_node_of_a_managed_group_has_no_pool(api, cluster):
    api.put(node("n", capacity_type=None, pool=None))
    (seen,) = cluster.observe().nodes
    assert (seen.node_pool, seen.capacity_type) == ("", "")


def test_limits_of_a_node_pool_are_texts_however_they_were_written(api, cluster):
    api.put(node_pool("a", limits={"cpu": 64, "nodes": "0"}), node_pool("b"))
    a, b = cluster.observe().node_pools
    assert a.limits == {"cpu": "64", "nodes": "0"}
    assert a.in_use == {"nodes": "1", "cpu": "4"}
    assert b.limits == {}


def test_only_the_models_namespace_is_looked_at(api, cluster):
    elsewhere = pod("other")
    elsewhere["metadata"]["namespace"] = "default"
    api.put(pod("ours"), elsewhere)
    assert [found.name for found in cluster.observe().pods] == ["ours"]


def test_half_a_look_is_none(api, cluster):
    api.inject(Answer(403), verb="list", resource="nodepools")
    with pytest.raises(ForbiddenError, match=r"list on nodepools.karpenter.sh"):
        cluster.observe()


def test_500_models_and_2000_nodes_cost_five_lists_and_little_cpu(api, cluster):
    for number in range(500):
        api.put(scaled_object(f"vllm-m{number:03}"), deployment(f"vllm-m{number:03}"))
    for number in range(2000):
        name = f"node-{number:04}"
        api.put(node(name, instance=f"i-{number:017x}", images=20), pod(f"p{number:04}", model="m000", node=name))
    started = time.thread_time()
    state = cluster.observe()
    assert time.thread_time() - started < 1
    assert (len(state.scaled_objects), len(state.nodes), len(state.nodes_by_instance)) == (500, 2000, 2000)
    assert len({(request.resource) for request in api.requests}) == 5
    assert len([request for request in api.requests if "continue" not in request.query]) == 5


# Changing

ASLEEP = {"metadata": {"annotations": {PAUSED_REPLICAS: "0"}}}


def patches(cluster, body=ASLEEP):
    """One for each model, made for what is seen now."""
    return [
        Patch(seen.name, "ScaledObject", seen.namespace, seen.name, body, seen.resource_version)
        for seen in cluster.observe().scaled_objects
    ]


def annotations(api, name="vllm-a"):
    return api.read("scaledobjects", name, NAMESPACE)["metadata"].get("annotations")


@pytest.mark.parametrize("before", [None, {}, {"theirs": "x"}])
def test_a_patch_adds_and_takes_away_and_leaves_the_rest(api, cluster, before):
    api.put(scaled_object("vllm-a", annotations=before))
    assert len(cluster.apply(patches(cluster)).done) == 1
    assert annotations(api) == {**(before or {}), PAUSED_REPLICAS: "0"}
    cluster.apply(patches(cluster, {"metadata": {"annotations": {PAUSED_REPLICAS: None}}}))
    assert annotations(api) == (before or {})


def test_somebody_who_pauses_at_the_same_moment_is_not_overwritten(api, cluster):
    api.put(scaled_object("vllm-a"), scaled_object("vllm-b"))
    made = patches(cluster)
    theirs = {"metadata": {"annotations": {PAUSED_REPLICAS: "2"}}}
    api.before_next_patch(lambda: api.change("scaledobjects", "vllm-a", theirs, NAMESPACE))
    applied = cluster.apply(made)
    assert [patch.name for patch in applied.conflicts] == ["vllm-a"]
    assert [patch.name for patch in applied.done] == ["vllm-b"]
    assert applied.failures == ()
    assert annotations(api) == {PAUSED_REPLICAS: "2"}


def test_a_refused_patch_does_not_keep_the_next_from_being_applied(api, cluster):
    api.put(scaled_object("vllm-a"), scaled_object("vllm-b"))
    api.inject(Answer(403), verb="patch", name="vllm-a")
    applied = cluster.apply(patches(cluster))
    assert [patch.name for patch in applied.done] == ["vllm-b"]
    (failure,) = applied.failures
    assert failure.patch.name == "vllm-a"
    assert isinstance(failure.error, ForbiddenError)
    assert "the role needs patch on scaledobjects.keda.sh" in str(failure)
    assert annotations(api, "vllm-b")[PAUSED_REPLICAS] == "0"


def test_an_object_that_is_gone_by_now_is_one_failure(api, cluster):
    api.put(scaled_object("vllm-a"), scaled_object("vllm-b"))
    made = patches(cluster)
    api.delete("scaledobjects", "vllm-a", NAMESPACE)
    applied = cluster.apply(made)
    assert [failure.patch.name for failure in applied.failures] == ["vllm-a"]
    assert len(applied.done) == 1


def test_who_is_not_known_does_not_knock_500_times(api, cluster):
    api.put(*(scaled_object(f"vllm-m{number:03}") for number in range(500)))
    made = patches(cluster)
    api.inject(Answer(401), verb="patch")
    applied = cluster.apply(made)
    assert len(applied.failures) == 500
    assert {type(failure.error) for failure in applied.failures} == {UnauthorizedError}
    assert len(api.asked("patch")) == 2


def test_an_api_server_that_goes_away_in_the_middle_is_not_waited_for_500_times(api, cluster):
    api.put(*(scaled_object(f"vllm-m{number:03}") for number in range(500)))
    made = patches(cluster)
    api.inject(Answer(hang_up=True), verb="patch")
    applied = cluster.apply(made)
    assert {type(failure.error) for failure in applied.failures} == {UnreachableError}
    assert len(api.asked("patch")) == 4


def test_a_patch_without_a_version_is_applied_to_whatever_is_there(api, cluster):
    api.put(deployment("placeholder-a", replicas=2))
    body = {"spec": {"replicas": 0}}
    cluster.apply([Patch("a", "Deployment", NAMESPACE, "placeholder-a", body)])
    assert api.read("deployments", "placeholder-a", NAMESPACE)["spec"]["replicas"] == 0
    assert "metadata" not in api.asked("patch")[0].body


def test_a_node_pool_is_closed_and_opened_and_keeps_its_other_limits(api, cluster):
    api.put(node_pool("spot", limits={"cpu": "64"}))

    def limit_nodes(nodes):
        (pool,) = cluster.observe().node_pools
        body = {"spec": {"limits": {"nodes": nodes}}}
        cluster.apply([Patch("spot", "NodePool", None, "spot", body, pool.resource_version)])
        return cluster.observe().node_pools[0].limits

    assert limit_nodes("0") == {"cpu": "64", "nodes": "0"}
    assert limit_nodes(None) == {"cpu": "64"}


@pytest.mark.parametrize("view", [ScaledObject, Deployment, Pod, Node, NodePool])
def test_every_view_knows_its_version(api, cluster, view):
    api.put(scaled_object("x"), deployment("x"), pod("x"), node("x"), node_pool("x"))
    state = cluster.observe()
    every = (*state.scaled_objects, *state.deployments, *state.pods, *state.nodes, *state.node_pools)
    (seen,) = (found for found in every if isinstance(found, view))
    kept = api.read(view.RESOURCE.plural, "x", seen.namespace)
    assert seen.resource_version == kept["metadata"]["resourceVersion"]
