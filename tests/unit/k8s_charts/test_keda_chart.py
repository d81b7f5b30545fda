"""Autoscaling: the article's section, with queries that vLLM answers."""

from math import ceil

import pytest

from genai_finops.spec import names
from k8s_charts.keda import triggers
from tests.platform_files import platform
from tests.unit.k8s_charts.charts import PLATFORMS, built, manifests, named, of_kind, varied

pytestmark = pytest.mark.synth


def scaled(name, model):
    return named(manifests(name), "ScaledObject", f"vllm-{model}")["spec"]


def trigger(name, model, called):
    [found] = [trigger for trigger in scaled(name, model)["triggers"] if trigger["name"] == called]
    return found


def test_the_articles_behaviour():
    behavior = scaled("default", "llama3-8b")["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 300,
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}],
        },
    }


def test_the_articles_numbers():
    spec = scaled("default", "llama3-8b")
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 10)
    assert (spec["pollingInterval"], spec["cooldownPeriod"]) == (15, 300)
    assert trigger("default", "llama3-8b", "queue")["metadata"]["threshold"] == "5"


def test_the_queue_is_asked_by_the_name_that_clients_use():
    assert trigger("default", "llama3-8b", "queue")["metadata"]["query"] == (
        'sum(vllm:num_requests_waiting{model_name="meta-llama/Meta-Llama-3-8B-Instruct",namespace="genai-inference"})'
    )


@pytest.mark.parametrize("name", PLATFORMS)
def test_silence_is_a_failure_with_a_fallback_and_the_threshold_is_per_replica(name):
    for found in of_kind(manifests(name), "ScaledObject"):
        fallback = found["spec"]["fallback"]
        assert fallback["replicas"] >= 1
        assert fallback["behavior"] == "currentReplicasIfHigher"
        for trigger in found["spec"]["triggers"]:
            assert trigger["metadata"]["ignoreNullValues"] == "false"
            assert trigger["metricType"] == "AverageValue"
            assert "metricName" not in trigger["metadata"]


def desired(name, model, **measured):
    """Replicas by the HPA's rule for AverageValue: the largest of ceil(sum / threshold)."""
    thresholds = {found["name"]: float(found["metadata"]["threshold"]) for found in scaled(name, model)["triggers"]}
    return max(ceil(value / thresholds[trigger]) for trigger, value in measured.items())


def test_full_replicas_stay_while_few_requests_wait():
    assert desired("default", "llama3-8b", queue=6) == 2
    assert desired("default", "llama3-8b", queue=6, running=4 * 8) == 4


def test_what_is_being_served_never_adds_a_replica():
    for name in PLATFORMS:
        for model in platform(name).models:
            at_most = 3 * model.max_num_seqs
            assert desired(name, model.name, running=at_most) == 3


def test_the_kv_cache_is_a_trigger_where_the_file_asks_for_it():
    cache = trigger("rich", "llama3-8b", "kv-cache")
    assert cache["metadata"]["threshold"] == "0.8"
    assert "vllm:kv_cache_usage_perc" in cache["metadata"]["query"]
    assert [found["name"] for found in scaled("rich", "mistral-7b")["triggers"]] == ["queue", "running"]


@pytest.mark.parametrize("name", PLATFORMS)
def test_each_query_answers_with_one_series(name):
    for model in platform(name).models:
        for trigger in triggers(model):
            assert trigger.query.startswith("sum(")


@pytest.mark.parametrize("name", PLATFORMS)
def test_the_autoscaler_has_the_name_that_others_look_for(name):
    for model in platform(name).models:
        spec = scaled(name, model.name)
        assert spec["advanced"]["horizontalPodAutoscalerConfig"]["name"] == names.horizontal_pod_autoscaler(model)


@pytest.mark.parametrize("name", PLATFORMS)
def test_prometheus_is_asked_where_it_is(name):
    for found in of_kind(manifests(name), "ScaledObject"):
        for trigger in found["spec"]["triggers"]:
            assert trigger["metadata"]["serverAddress"] == names.PROMETHEUS_URL


def test_models_scale_by_their_own_queue_only():
    two = varied({"served_name": "a/b.c_d-e"}, {"served_name": "a/b"})
    first, second = (triggers(model)[0].query for model in two.models)
    assert 'model_name="a/b.c_d-e"' in first
    assert 'model_name="a/b"' in second


def test_a_deploy_cannot_scale():
    assert all("replicas" not in d["spec"] for d in of_kind(built({}, {}), "Deployment"))
