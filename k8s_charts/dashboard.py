"""The Grafana dashboard of the servers, as data: what they are asked, answer, and run on."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from genai_finops.spec import names
from k8s_charts.custom import Json
from k8s_charts.promql import series

TITLE: Final = "Model serving"
FILE: Final = "genai-finops-serving.json"
_UID: Final = "genai-finops-serving"
_COLUMNS: Final = 2
_WIDTH: Final = 24 // _COLUMNS
_HEIGHT: Final = 8
_BY_MODEL: Final = "{{model_name}}"


@dataclass(frozen=True, slots=True)
class Query:
    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: str
    """A unit's name in Grafana."""
    queries: Sequence[Query]
    description: str = ""


def _chosen(metric: str) -> str:
    """Series of the models that are chosen at the top of the dashboard."""
    return f'{metric}{{namespace="{names.MODEL_NAMESPACE}",model_name=~"$model"}}'


def _sum(metric: str) -> str:
    return f"sum by (model_name) ({_chosen(metric)})"


def _rate(metric: str) -> str:
    return f"sum by (model_name) (rate({_chosen(metric)}[$__rate_interval]))"


def _quantiles(metric: str) -> list[Query]:
    buckets = f"sum by (model_name, le) (rate({_chosen(f'{metric}_bucket')}[$__rate_interval]))"
    return [
        Query(f"histogram_quantile({quantile}, {buckets})", f"{_BY_MODEL} p{quantile * 100:.0f}")
        for quantile in (0.5, 0.95)
    ]


def panels() -> list[Panel]:
    replicas = series("kube_deployment_status_replicas_ready", namespace=names.MODEL_NAMESPACE)
    wanted = series("kube_deployment_spec_replicas", namespace=names.MODEL_NAMESPACE)
    # One series per node and resource; nodes that Karpenter did not launch belong to no pool.
    nodes = 'karpenter_nodes_allocatable{resource_type="cpu",nodepool!=""}'
    return [
        Panel("Requests waiting", "short", [Query(_sum("vllm:num_requests_waiting"), _BY_MODEL)]),
        Panel("Requests running", "short", [Query(_sum("vllm:num_requests_running"), _BY_MODEL)]),
        Panel(
            "Replicas",
            "short",
            [
                Query(f"sum by (deployment) ({replicas})", "{{deployment}} ready"),
                Query(f"sum by (deployment) ({wanted})", "{{deployment}} wanted"),
            ],
            "Of all models: kube-state-metrics knows Deployments, not served names.",
        ),
        Panel(
            "KV cache in use",
            "percentunit",
            [Query(f"avg by (model_name) ({_chosen('vllm:kv_cache_usage_perc')})", _BY_MODEL)],
        ),
        Panel("Time to first token", "s", _quantiles("vllm:time_to_first_token_seconds")),
        Panel("Inter-token latency", "s", _quantiles("vllm:inter_token_latency_seconds")),
        Panel("Tokens in per second", "short", [Query(_rate("vllm:prompt_tokens_total"), _BY_MODEL)]),
        Panel("Tokens out per second", "short", [Query(_rate("vllm:generation_tokens_total"), _BY_MODEL)]),
        Panel(
            "Nodes by capacity type",
            "short",
            [
                Query(
                    f"count by (capacity_type, instance_type) ({nodes})",
                    "{{capacity_type}} {{instance_type}}",
                )
            ],
        ),
        Panel("Preemptions per second", "short", [Query(_rate("vllm:num_preemptions_total"), _BY_MODEL)]),
    ]


def dashboard_json() -> str:
    """What Grafana's sidecar loads."""
    return json.dumps(_dashboard(), indent=1) + "\n"


def _dashboard() -> Json:
    return {
        "uid": _UID,
        "title": TITLE,
        "tags": ["genai-finops"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_data_source(), _model_variable()]},
        "panels": [_panel(index, panel) for index, panel in enumerate(panels())],
    }


def _data_source() -> Json:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _model_variable() -> Json:
    metric = series("vllm:num_requests_running", namespace=names.MODEL_NAMESPACE)
    return {
        "name": "model",
        "label": "Model",
        "type": "query",
        "datasource": _source(),
        "query": {"query": f"label_values({metric}, model_name)", "refId": "models"},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _source() -> Json:
    return {"type": "prometheus", "uid": "${datasource}"}


def _panel(index: int, panel: Panel) -> Json:
    row, column = divmod(index, _COLUMNS)
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _source(),
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": chr(ord("A") + position),
                "datasource": _source(),
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for position, query in enumerate(panel.queries)
        ],
    }
