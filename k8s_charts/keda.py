"""Replicas by the length of the queue, with a query that vLLM answers and a plan for when nobody does."""

from typing import Final

from cdk8s import Chart
from constructs import Construct

from genai_finops.spec import Model, Platform, names
from genai_finops.spec.model import ScaleDown, ScaleUp
from k8s_charts import labels, promql
from k8s_charts.custom import PrometheusTrigger, ScaledObject, ScalingPolicy

FAILURES_UNTIL_FALLBACK: Final = 3
"""Polls without an answer in a row before KEDA falls back to at least the minimum, and never below what
runs."""


class KedaChart(Chart):
    """One ScaledObject per model."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "keda", labels=labels.COMMON)
        for model in platform.models:
            scaling = model.scaling
            ScaledObject(
                self,
                model.name,
                name=names.deployment(model),
                namespace=names.MODEL_NAMESPACE,
                labels=labels.of(model),
                deployment=names.deployment(model),
                autoscaler=names.horizontal_pod_autoscaler(model),
                min_replicas=scaling.min_replicas,
                max_replicas=scaling.max_replicas,
                polling_seconds=scaling.polling_interval_seconds,
                cooldown_seconds=scaling.cooldown_seconds,
                failures_until_fallback=FAILURES_UNTIL_FALLBACK,
                fallback_replicas=max(1, scaling.min_replicas),
                scale_up=_policy(scaling.scale_up),
                scale_down=_policy(scaling.scale_down),
                triggers=triggers(model),
            )


def triggers(model: Model) -> list[PrometheusTrigger]:
    """The queue, what is being served, and where the file asks for it the KV cache; the largest wish wins.

    All are sums over replicas: KEDA divides by the threshold per replica, and its scaler takes one series only.
    The queue alone would scale in under load: four full replicas and six requests waiting ask for two. What is
    being served, against what a replica can serve, asks for those four and never for more.
    """
    found = [
        PrometheusTrigger(
            name="queue",
            query=f"sum({promql.served('vllm:num_requests_waiting', model)})",
            threshold=model.scaling.queue_per_replica,
        ),
        PrometheusTrigger(
            name="running",
            query=f"sum({promql.served('vllm:num_requests_running', model)})",
            threshold=model.max_num_seqs,
        ),
    ]
    if model.scaling.kv_cache_target is not None:
        found.append(
            PrometheusTrigger(
                name="kv-cache",
                query=f"sum({promql.served('vllm:kv_cache_usage_perc', model)})",
                threshold=model.scaling.kv_cache_target,
            )
        )
    return found


def _policy(wanted: ScaleUp | ScaleDown) -> ScalingPolicy:
    return ScalingPolicy(wanted.stabilization_seconds, wanted.percent, wanted.period_seconds)
