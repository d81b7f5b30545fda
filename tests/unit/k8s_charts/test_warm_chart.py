"""Warm capacity: pods that hold a replica's place and give it up at once, and what brings images ahead."""

import pytest

from genai_finops import versions
from genai_finops.spec import engine, names
from stacks.karpenter import controller_values
from tests.platform_files import platform
from tests.unit.k8s_charts.charts import built, manifests, model, named, of_kind, server, varied

pytestmark = pytest.mark.synth

WARM = {"warm_capacity": {"replicas": 2}}
BUFFER = {"warm_capacity": {"replicas": 2, "kind": "buffer"}}


def pod(workload):
    return workload["spec"]["template"]["spec"]


def placeholder(name="rich", model_name="llama3-8b"):
    return named(manifests(name), "Deployment", f"warm-{model_name}")


def replica(name="rich", model_name="llama3-8b"):
    return named(manifests(name), "Deployment", f"vllm-{model_name}")


def test_without_warm_capacity_nothing_is_held():
    assert not [one for one in of_kind(manifests("default"), "Deployment") if "warm" in one["metadata"]["name"]]
    assert not of_kind(manifests("default"), "CapacityBuffer")


def test_a_placeholder_asks_for_what_a_replica_asks_for_and_goes_where_one_could():
    [container] = pod(placeholder())["containers"]
    assert container["resources"] == server(replica())["resources"]
    for field in ("nodeSelector", "affinity", "tolerations"):
        assert pod(placeholder())[field] == pod(replica())[field]


@pytest.mark.parametrize("sizes", [["8xlarge"], ["24xlarge"]])
def test_it_is_placed_by_the_scheduler_that_places_replicas(sizes):
    found = built({**WARM, "accelerator": {"family": "inf2", "sizes": sizes}})
    schedulers = {pod(one).get("schedulerName") for one in of_kind(found, "Deployment")}
    assert schedulers == {names.NEURON_SCHEDULER if sizes == ["24xlarge"] else None}


@pytest.mark.parametrize(("spot", "capacity_type"), [("prefer", None), ("only", "spot"), ("never", "on-demand")])
def test_it_is_bought_as_the_model_is(spot, capacity_type):
    for one in of_kind(built({**WARM, "spot": spot}), "Deployment"):
        assert pod(one)["nodeSelector"].get("karpenter.sh/capacity-type") == capacity_type


def test_a_replica_takes_its_place_at_once():
    spec = pod(placeholder())
    assert spec["priorityClassName"] == names.WARM_PRIORITY_CLASS != pod(replica())["priorityClassName"]
    assert spec["terminationGracePeriodSeconds"] == 0


def test_it_brings_the_models_files_so_that_only_the_load_is_left():
    assert pod(placeholder())["initContainers"] == pod(replica())["initContainers"]
    [container] = pod(placeholder())["containers"]
    assert container["image"] == versions.PAUSE_IMAGE
    assert container["securityContext"]["runAsNonRoot"] is True


def test_it_may_reach_the_store_and_nobody_reaches_it():
    """Silence is the rule of the namespace, so a pod that no policy chooses could bring nothing."""
    policies = [one["spec"] for one in of_kind(manifests("rich"), "NetworkPolicy") if one["spec"]["podSelector"]]
    labels = placeholder()["spec"]["template"]["metadata"]["labels"]
    chosen = [one for one in policies if chooses(one["podSelector"], labels)]
    assert [one["policyTypes"] for one in chosen] == [["Ingress", "Egress"]]
    assert "ingress" not in chosen[0]
    assert chosen[0]["egress"]


def chooses(selector, labels):
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        rule["operator"] == "Exists" and rule["key"] in labels for rule in selector.get("matchExpressions", [])
    )


def test_no_service_monitor_or_budget_counts_it_as_a_server():
    labels = placeholder()["spec"]["template"]["metadata"]["labels"]
    for kind, selector in (("Service", ("selector",)), ("PodDisruptionBudget", ("selector", "matchLabels"))):
        for one in of_kind(manifests("rich"), kind):
            chosen = one["spec"]
            for key in selector:
                chosen = chosen[key]
            assert not chosen.items() <= labels.items()


def test_as_many_as_the_file_says_and_never_two_generations_side_by_side():
    spec = placeholder()["spec"]
    assert spec["replicas"] == model("rich", "llama3-8b").warm_capacity.replicas == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": "100%"}


def test_a_buffer_is_of_the_servers_own_deployment_and_has_no_pods():
    [buffer] = of_kind(manifests("rich"), "CapacityBuffer")
    assert buffer["spec"] == {
        "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "vllm-mistral-7b"},
        "replicas": 1,
    }
    assert not [one for one in of_kind(built(BUFFER), "Deployment") if "warm" in one["metadata"]["name"]]


def test_karpenter_is_told_to_keep_buffers_only_where_there_are_some():
    """Left out the gate keeps the chart's own default: off."""
    assert controller_values(varied(BUFFER))["settings"]["featureGates"] == {"capacityBuffer": True}
    assert "featureGates" not in controller_values(varied(WARM))["settings"]


def test_images_are_pulled_ahead_where_asked_for_on_every_node_of_the_family():
    daemons = named(manifests("rich"), "DaemonSet", "images-g6e")
    spec = pod(daemons)
    assert spec["nodeSelector"]["karpenter.k8s.aws/instance-family"] == "g6e"
    [pull] = spec["initContainers"]
    assert pull["image"] == engine.image(model("rich", "mistral-7b"))
    assert pull["command"] == ["true"]
    assert [one["metadata"]["name"] for one in of_kind(manifests("rich"), "DaemonSet")] == [
        "images-g6e",
        "neuron-monitor",
    ]


def test_what_pulls_takes_nothing_of_a_node_that_a_server_fills():
    spec = pod(named(manifests("rich"), "DaemonSet", "images-g6e"))
    assert not any("resources" in container for container in (*spec["containers"], *spec["initContainers"]))


def test_each_image_of_a_family_is_pulled_once():
    images = {"image_preload": {"pull_ahead": True}}
    models = [{}, {}, {"engine": {"image": "example.com/vllm:1"}}]
    [daemons] = [
        one
        for one in of_kind(built(*models, node_pools={"inf2": images}), "DaemonSet")
        if one["metadata"]["name"] == "images-inf2"
    ]
    assert [one["image"] for one in pod(daemons)["initContainers"]] == [
        versions.VLLM_NEURON_IMAGE,
        "example.com/vllm:1",
    ]


def test_the_rich_platform_shows_every_kind_of_warm_capacity():
    kinds = {(one.warm_capacity.kind, bool(one.warm_capacity.replicas)) for one in platform("rich").models}
    assert kinds == {("placeholder", True), ("placeholder", False), ("buffer", True)}
