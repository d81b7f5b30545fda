"""What is measured and what alerts: queries that the exporters really answer, and alerts a person can act on."""

import json
import re

import pytest

from genai_finops.catalog import system_pods
from genai_finops.spec import names
from k8s_charts.alerts import FAST, SLOW, bucket_bound, burn_threshold
from k8s_charts.promql import series
from tests.platform_files import platform
from tests.unit.k8s_charts.charts import PLATFORMS, built, manifests, model, named, of_kind

pytestmark = pytest.mark.synth

SCRAPE_LABELS = {"namespace", "pod", "container", "job", "instance"}

EMITTED = {
    # vLLM, with its own labels (platform-facts)
    **dict.fromkeys(
        [
            "vllm:num_requests_running",
            "vllm:num_requests_waiting",
            "vllm:kv_cache_usage_perc",
            "vllm:prompt_tokens_total",
            "vllm:generation_tokens_total",
            "vllm:num_preemptions_total",
            "vllm:time_to_first_token_seconds_bucket",
            "vllm:time_to_first_token_seconds_count",
            "vllm:inter_token_latency_seconds_bucket",
        ],
        frozenset({"model_name", "engine", "le"}),
    ),
    # kube-state-metrics
    "kube_deployment_status_replicas_ready": {"deployment"},
    "kube_deployment_spec_replicas": {"deployment"},
    "kube_pod_status_unschedulable": {"uid"},
    "kube_job_failed": {"job_name", "condition"},
    "kube_pod_owner": {"owner_kind", "owner_name", "owner_is_controller"},
    # Karpenter
    "karpenter_cloudprovider_errors_total": {"controller", "method", "provider", "error"},
    "karpenter_nodepools_usage": {"nodepool", "resource_type"},
    "karpenter_nodepools_limit": {"nodepool", "resource_type"},
    "karpenter_nodes_allocatable": {"nodepool", "resource_type", "capacity_type", "instance_type", "phase"},
}
"""Metrics that exist, and the labels that each has beside those of the scrape."""

SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
LABEL = re.compile(r'(\w+)(?:=~|!=|=)"((?:[^"\\]|\\.)*)"')


def queries(name):
    found = manifests(name)
    for rule in of_kind(found, "PrometheusRule"):
        for group in rule["spec"]["groups"]:
            for alert in group["rules"]:
                yield alert["expr"]
    for scaled in of_kind(found, "ScaledObject"):
        for trigger in scaled["spec"]["triggers"]:
            yield trigger["metadata"]["query"]
    for panel in dashboard(name)["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for variable in dashboard(name)["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def dashboard(name):
    [config_map] = [m for m in of_kind(manifests(name), "ConfigMap") if "grafana_dashboard" in m["metadata"]["labels"]]
    [text] = config_map["data"].values()
    return json.loads(text)


def alerts(name, rule):
    [group] = named(manifests(name), "PrometheusRule", rule)["spec"]["groups"]
    return {alert["alert"]: alert for alert in group["rules"]}


@pytest.mark.parametrize("name", PLATFORMS)
def test_queries_ask_for_metrics_and_labels_that_are_emitted(name):
    for query in queries(name):
        selectors = SELECTOR.findall(query)
        assert selectors, query
        for metric, matchers in selectors:
            assert metric in EMITTED, query
            asked = {label for label, _ in LABEL.findall(matchers)}
            assert asked <= EMITTED[metric] | SCRAPE_LABELS, query
            assert "app" not in asked


@pytest.mark.parametrize("name", PLATFORMS)
def test_no_metric_is_asked_for_without_a_selector(name):
    bare = re.compile(r"(?:vllm:|kube_|karpenter_)[\w:]+(?![\w:{])")
    for query in queries(name):
        assert not bare.search(query), query


@pytest.mark.parametrize("name", PLATFORMS)
def test_brackets_in_queries_are_balanced(name):
    for query in queries(name):
        outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", query)
        for opening, closing in ("()", "{}", "[]"):
            assert outside.count(opening) == outside.count(closing), query


def test_values_are_escaped():
    assert series("up", job='a"b\\c\n') == 'up{job="a\\"b\\\\c\\n"}'


@pytest.mark.parametrize("name", PLATFORMS)
def test_each_model_is_scraped_as_often_as_the_file_says(name):
    for served in platform(name).models:
        spec = named(manifests(name), "PodMonitor", names.deployment(served))["spec"]
        interval = f"{platform(name).monitoring.scrape_interval_seconds}s"
        assert spec["podMetricsEndpoints"] == [{"port": "http", "path": "/metrics", "interval": interval}]


@pytest.mark.parametrize("name", PLATFORMS)
def test_each_model_has_the_alerts_of_the_issue(name):
    for served in platform(name).models:
        assert list(alerts(name, names.deployment(served))) == [
            "QueueGrowsWithoutNewReplica",
            "PodsWaitForCapacity",
            "TimeToFirstTokenBurnsFast",
            "TimeToFirstTokenBurnsSlow",
            "ServerMetricsAbsent",
        ]


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_alert_says_how_bad_what_and_where_to_read_on(name):
    for rule in of_kind(manifests(name), "PrometheusRule"):
        for group in rule["spec"]["groups"]:
            for alert in group["rules"]:
                assert alert["labels"]["severity"] in ("critical", "warning")
                assert re.fullmatch(r"docs/operations\.md#[a-z-]+", alert["annotations"]["runbook"])
                assert (
                    re.search(r"\d", alert["annotations"]["description"])
                    or "$value" in alert["annotations"]["description"]
                )


def test_an_objective_is_counted_at_a_bound_of_the_histogram_as_prometheus_writes_it():
    assert [bucket_bound(seconds) for seconds in (0.1, 1, 1.0, 2.5, 10.0)] == ["0.1", "1.0", "1.0", "2.5", "10.0"]
    expression = alerts("rich", "vllm-mistral-7b")["TimeToFirstTokenBurnsFast"]["expr"]
    assert 'le="1.0"' in expression


def test_burning_needs_a_long_and_a_short_window():
    found = alerts("default", "vllm-llama3-8b")
    fast, slow = found["TimeToFirstTokenBurnsFast"]["expr"], found["TimeToFirstTokenBurnsSlow"]["expr"]
    assert re.findall(r"\[(\w+)\]", fast) == ["1h", "1h", "5m", "5m"]
    assert re.findall(r"\[(\w+)\]", slow) == ["6h", "6h", "30m", "30m"]
    # 95 % on time: five in a hundred may be late.
    assert re.findall(r"> ([\d.]+)", fast) == ["0.72", "0.72"]
    assert re.findall(r"> ([\d.]+)", slow) == ["0.3", "0.3"]


@pytest.mark.parametrize("percent", [1, 50, 80, 90, 93, 95, 99, 99.9])
@pytest.mark.parametrize("window", [FAST, SLOW])
def test_an_alert_can_fire_however_loose_the_objective(percent, window):
    allowed = (100 - percent) / 100
    assert allowed < burn_threshold(allowed, window.rate) < 1


def test_capacity_alerts_do_not_mix_models_whose_names_begin_alike():
    found = built({"name": "llama"}, {"name": "llama-x"})
    rule = named(found, "PrometheusRule", "vllm-llama")["spec"]["groups"][0]["rules"]
    [expression] = [alert["expr"] for alert in rule if alert["alert"] == "PodsWaitForCapacity"]
    [pattern] = re.findall(r'owner_name=~"([^"]+)"', expression)
    assert re.fullmatch(pattern, "vllm-llama-5f7c9d8b6")
    assert not re.fullmatch(pattern, "vllm-llama-x-5f7c9d8b6")


def test_alerts_and_autoscaling_agree_on_what_a_long_queue_is():
    expression = alerts("default", "vllm-llama3-8b")["QueueGrowsWithoutNewReplica"]["expr"]
    assert f"> {model('default', 'llama3-8b').scaling.queue_per_replica} * sum(" in expression


def test_the_neuron_monitor_runs_on_every_neuron_node_and_asks_what_the_catalog_sets_aside():
    daemons = named(manifests("rich"), "DaemonSet", "neuron-monitor")
    spec = daemons["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"accelerator": "aws-neuron"}
    assert spec["tolerations"] == [{"key": "aws.amazon.com/neuron", "operator": "Exists", "effect": "NoSchedule"}]
    [container] = spec["containers"]
    budget = next(pod for pod in system_pods() if pod.name == "neuron-monitor")
    assert container["resources"]["requests"] == {
        "cpu": f"{budget.cpu_millis}m",
        "memory": f"{budget.memory_mib}Mi",
    }
    assert "aws.amazon.com/neuron" not in container["resources"]["requests"]


def test_no_neuron_monitor_where_nothing_is_neuron():
    found = built({"accelerator": {"family": "g6e", "sizes": ["xlarge"]}})
    assert not of_kind(found, "DaemonSet")
    assert "neuron-monitor" not in [m["metadata"]["name"] for m in of_kind(found, "PodMonitor")]


def test_the_dashboard_shows_the_queue_the_answers_and_the_nodes():
    titles = [panel["title"] for panel in dashboard("default")["panels"]]
    assert titles == [
        "Requests waiting",
        "Requests running",
        "Replicas",
        "KV cache in use",
        "Time to first token",
        "Inter-token latency",
        "Tokens in per second",
        "Tokens out per second",
        "Nodes by capacity type",
        "Preemptions per second",
    ]


def test_panels_do_not_overlap():
    cells = [
        (panel["gridPos"]["x"], panel["gridPos"]["y"], panel["gridPos"]["w"], panel["gridPos"]["h"])
        for panel in dashboard("default")["panels"]
    ]
    covered = [(x + dx, y + dy) for x, y, w, h in cells for dx in range(w) for dy in range(h)]
    assert len(covered) == len(set(covered))
    assert all(x + w <= 24 for x, _, w, _ in cells)
