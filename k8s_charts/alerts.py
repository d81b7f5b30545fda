"""When a person must look: alerts over what vLLM, kube-state-metrics and Karpenter report.

Each says what is wrong in numbers and names its section of docs/operations.md. Thresholds come from the
platform file, so an alert and the autoscaler never disagree about what a long queue is.
"""

from dataclasses import dataclass
from typing import Final

from genai_finops.spec import Model, Platform, names
from k8s_charts.custom import Alert
from k8s_charts.promql import of_deployment, quoted, series, served

QUEUE_MINUTES: Final = 10
"""A new replica on a new node takes five to ten minutes; before that a queue is being worked on."""


@dataclass(frozen=True, slots=True)
class BurnWindow:
    """Multi-window burn rate: alert when the long window and the short one both burn `rate` times what is
    allowed.

    The rates are those of the Google SRE workbook: 14.4 spends two percent of a 30-day budget in an hour, 6
    spends five percent in six hours.
    """

    name: str
    long: str
    short: str
    rate: float
    for_minutes: int


FAST: Final = BurnWindow("Fast", long="1h", short="5m", rate=14.4, for_minutes=2)
SLOW: Final = BurnWindow("Slow", long="6h", short="30m", rate=6, for_minutes=15)


def model_alerts(model: Model) -> list[Alert]:
    return [
        _queue_grows(model),
        _waits_for_capacity(model),
        _time_to_first_token(model, FAST),
        _time_to_first_token(model, SLOW),
        _metric_absent(model),
    ]


def shared_alerts(platform: Platform) -> list[Alert]:
    return [_launches_fail(), _pool_nearly_full(platform), _supply_fails()]


def _queue_grows(model: Model) -> Alert:
    waiting = f"sum({served('vllm:num_requests_waiting', model)})"
    ready = of_deployment("kube_deployment_status_replicas_ready", model)
    limit = model.scaling.queue_per_replica
    return Alert(
        name="QueueGrowsWithoutNewReplica",
        expression=(
            f"{waiting} > {limit} * sum({ready})\n"
            f"and deriv({waiting}[{QUEUE_MINUTES}m:1m]) > 0\n"
            f"and sum(changes({ready}[{QUEUE_MINUTES}m])) == 0"
        ),
        for_minutes=QUEUE_MINUTES,
        severity="critical",
        summary=f"The queue of {model.name} grows and no replica is added",
        description=(
            f"{{{{ $value | humanize }}}} requests wait, more than {limit} per ready replica, and for "
            f"{QUEUE_MINUTES} minutes the number of ready replicas has not changed. Either the maximum of "
            f"{model.scaling.max_replicas} is reached, a guardrail has lowered it, or replicas do not start."
        ),
        runbook="queue-grows-without-new-replica",
    )


def _waits_for_capacity(model: Model) -> Alert:
    unschedulable = series("kube_pod_status_unschedulable", namespace=names.MODEL_NAMESPACE)
    # A ReplicaSet is named after its Deployment and one more part: without a dash in that, `a` would match
    # `a-b`.
    owned = f'owner_kind="ReplicaSet",owner_name=~"{names.deployment(model)}-[a-z0-9]+"'
    owner = f'kube_pod_owner{{namespace="{names.MODEL_NAMESPACE}",{owned}}}'
    return Alert(
        name="PodsWaitForCapacity",
        expression=f"count({unschedulable} == 1 and on (namespace, pod) {owner}) > 0",
        for_minutes=10,
        severity="warning",
        summary=f"Replicas of {model.name} find no node",
        description=(
            "{{ $value }} pods have been unschedulable for 10 minutes: EC2 has no capacity for "
            f"{model.accelerator.family} in these zones, the pools are at their limits, or Spot is shut off."
        ),
        runbook="pods-wait-for-capacity",
    )


def _time_to_first_token(model: Model, window: BurnWindow) -> Alert:
    objective = model.objective
    allowed = (100 - objective.percent) / 100
    threshold = burn_threshold(allowed, window.rate)
    return Alert(
        name=f"TimeToFirstTokenBurns{window.name}",
        expression=(
            f"{_late_share(model, window.long)} > {threshold:.6g}\nand\n"
            f"{_late_share(model, window.short)} > {threshold:.6g}"
        ),
        for_minutes=window.for_minutes,
        severity="critical" if window is FAST else "warning",
        summary=f"{model.name} misses its time to first token",
        description=(
            f"{{{{ $value | humanizePercentage }}}} of requests in the last {window.long} waited longer than "
            f"{objective.time_to_first_token_seconds:g} s for their first token; the objective allows "
            f"{100 * allowed:.3g}%. At {100 * threshold:.3g}% a month's allowance is gone in "
            f"{30 * allowed / threshold:.2g} days."
        ),
        runbook="time-to-first-token-burns",
    )


def burn_threshold(allowed: float, rate: float) -> float:
    """Share of late requests at which to alert.

    No more than all can be late. Where the objective is so loose that `rate` times the allowed share comes near
    or above that, the alert comes when nine in ten are late, or half of what is left above the allowed share.
    """
    return min(allowed * rate, max(0.9, (1 + allowed) / 2))


def _late_share(model: Model, window: str) -> str:
    bound = bucket_bound(model.objective.time_to_first_token_seconds)
    on_time = served("vllm:time_to_first_token_seconds_bucket", model, le=bound)
    all_of_them = served("vllm:time_to_first_token_seconds_count", model)
    return f"1 - sum(rate({on_time}[{window}])) / sum(rate({all_of_them}[{window}]))"


def bucket_bound(seconds: float) -> str:
    """A bound as Prometheus writes it in `le`: always with a decimal point."""
    return str(float(seconds))


def _metric_absent(model: Model) -> Alert:
    ready = of_deployment("kube_deployment_status_replicas_ready", model)
    waiting = served("vllm:num_requests_waiting", model)
    return Alert(
        name="ServerMetricsAbsent",
        expression=f"absent({waiting})\nand on () (sum({ready}) > 0)",
        for_minutes=5,
        severity="critical",
        summary=f"{model.name} runs unseen",
        description=(
            f"{names.deployment(model)} has ready replicas, but for 5 minutes Prometheus has had no "
            f"vllm:num_requests_waiting with model_name {quoted(model.served_as)}: autoscaling is blind and "
            "holds the replicas it has."
        ),
        runbook="server-metrics-absent",
    )


def _launches_fail() -> Alert:
    failures = series("karpenter_cloudprovider_errors_total", method="Create")
    return Alert(
        name="NodeLaunchesFail",
        expression=f"sum by (error) (increase({failures}[15m])) > 0",
        for_minutes=15,
        severity="warning",
        summary="Karpenter cannot launch nodes",
        description=(
            "{{ $value | humanize }} launches failed in 15 minutes with {{ $labels.error }}, and have kept "
            "failing as long. Without capacity models wait; other errors are about permissions or quotas."
        ),
        runbook="node-launches-fail",
    )


def _pool_nearly_full(platform: Platform) -> Alert:
    vendors = dict.fromkeys(model.vendor for model in platform.models)
    shares = (_share_of_limit(names.device_resource(vendor)) for vendor in vendors)
    return Alert(
        name="NodePoolNearlyFull",
        expression="\nor\n".join(f"{share} > 0.9" for share in shares),
        for_minutes=15,
        severity="warning",
        summary="A node pool has little left below its limit",
        description=(
            "{{ $labels.nodepool }} uses {{ $value | humanizePercentage }} of the devices that "
            "node_pools.<family>.max_devices allows. At the limit new replicas stay pending."
        ),
        runbook="node-pool-nearly-full",
    )


def _supply_fails() -> Alert:
    """A model that cannot be staged or compiled is not served at all on its next node."""
    failed = series("kube_job_failed", namespace=names.MODEL_NAMESPACE, condition="true")
    return Alert(
        name="ModelSupplyFails",
        expression=f"{failed} > 0",
        for_minutes=1,
        severity="critical",
        summary="A model could not be staged or compiled",
        description=(
            "The job {{ $labels.job_name }} failed with all its retries more than 1 minute ago. Servers that need what "
            "it makes refuse to start; those that run go on."
        ),
        runbook="model-supply-fails",
    )


def _share_of_limit(resource: str) -> str:
    used = series("karpenter_nodepools_usage", resource_type=resource)
    limit = series("karpenter_nodepools_limit", resource_type=resource)
    return f"sum by (nodepool) ({used}) / sum by (nodepool) ({limit})"
