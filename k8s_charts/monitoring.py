"""What is measured, what raises an alarm, and what is drawn."""

from typing import Final

from cdk8s import Chart
from cdk8s_plus_28 import k8s
from constructs import Construct

from genai_finops import versions
from genai_finops.catalog import system_pods
from genai_finops.spec import Platform, names
from k8s_charts import labels
from k8s_charts.alerts import model_alerts, shared_alerts
from k8s_charts.custom import PodMonitor, PrometheusRule
from k8s_charts.dashboard import FILE, dashboard_json
from k8s_charts.values import quantity

NEURON_MONITOR: Final = "neuron-monitor"
NEURON_MONITOR_PORT: Final = 8000
KARPENTER_PODS: Final = {"app.kubernetes.io/name": "karpenter"}
KARPENTER_METRICS_PORT: Final = "http-metrics"
"""What Karpenter's Helm chart calls its pods and their port."""


class MonitoringChart(Chart):
    """Monitors and rules, for the Prometheus of kube-prometheus-stack."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "monitoring", labels=labels.COMMON)
        interval = platform.monitoring.scrape_interval_seconds
        if any(model.is_neuron for model in platform.models):
            NeuronMonitor(self, NEURON_MONITOR, interval_seconds=interval)
        PodMonitor(
            self,
            "karpenter",
            name="karpenter",
            namespace=names.MONITORING_NAMESPACE,
            pod_namespace=names.KARPENTER_NAMESPACE,
            pods=KARPENTER_PODS,
            port=KARPENTER_METRICS_PORT,
            interval_seconds=interval,
        )
        PrometheusRule(
            self,
            "rules",
            name="genai-finops",
            namespace=names.MONITORING_NAMESPACE,
            alerts=shared_alerts(platform),
        )
        k8s.KubeConfigMap(
            self,
            "dashboard",
            metadata=k8s.ObjectMeta(
                name="genai-finops-dashboard",
                namespace=names.MONITORING_NAMESPACE,
                labels={"grafana_dashboard": "1"},
            ),
            data={FILE: dashboard_json()},
        )
        for model in platform.models:
            PodMonitor(
                self,
                f"{model.name}-monitor",
                name=names.deployment(model),
                namespace=names.MODEL_NAMESPACE,
                labels=labels.of(model),
                pods=labels.selector(model),
                port=names.SERVER_PORT_NAME,
                interval_seconds=interval,
            )
            PrometheusRule(
                self,
                f"{model.name}-rules",
                name=names.deployment(model),
                namespace=names.MODEL_NAMESPACE,
                labels=labels.of(model),
                alert_labels={"model": model.name},
                alerts=model_alerts(model),
            )


class NeuronMonitor(Construct):
    """Use of the NeuronCores and their memory, from every Neuron node.

    It reads the driver of the whole node and not of a device that was handed to it, hence privileged, as in
    AWS's own manifest. It takes no device.
    """

    def __init__(self, scope: Construct, id: str, *, interval_seconds: int) -> None:
        super().__init__(scope, id)
        selector = {labels.APP: NEURON_MONITOR}
        k8s.KubeDaemonSet(
            self,
            "daemon-set",
            metadata=k8s.ObjectMeta(name=NEURON_MONITOR, namespace=names.MONITORING_NAMESPACE, labels=selector),
            spec=k8s.DaemonSetSpec(
                selector=k8s.LabelSelector(match_labels=selector),
                template=k8s.PodTemplateSpec(metadata=k8s.ObjectMeta(labels=selector), spec=_neuron_monitor_pod()),
            ),
        )
        PodMonitor(
            self,
            "monitor",
            name=NEURON_MONITOR,
            namespace=names.MONITORING_NAMESPACE,
            pods=selector,
            port="metrics",
            interval_seconds=interval_seconds,
        )


def _neuron_monitor_pod() -> k8s.PodSpec:
    # The catalog subtracts this request from what models can have of a node, so it is written only there.
    budget = next(pod for pod in system_pods() if pod.name == NEURON_MONITOR)
    memory = quantity(f"{budget.memory_mib}Mi")
    cpu = quantity(f"{budget.cpu_millis}m")
    container = k8s.Container(
        name=NEURON_MONITOR,
        image=versions.NEURON_MONITOR_IMAGE,
        command=["/opt/bin/entrypoint.sh"],
        args=["--port", str(NEURON_MONITOR_PORT)],
        ports=[k8s.ContainerPort(name="metrics", container_port=NEURON_MONITOR_PORT)],
        resources=k8s.ResourceRequirements(
            requests={"cpu": cpu, "memory": memory},
            limits={"memory": quantity(f"{2 * budget.memory_mib}Mi")},
        ),
        security_context=k8s.SecurityContext(privileged=True),
    )
    return k8s.PodSpec(
        automount_service_account_token=False,
        # A model server, whose priority is above the default, must not push its node's monitor off.
        priority_class_name="system-node-critical",
        node_selector={names.ACCELERATOR_LABEL: names.accelerator_label("neuron")},
        tolerations=[k8s.Toleration(key=names.NEURON_RESOURCE, operator="Exists", effect=labels.TAINT_EFFECT)],
        containers=[container],
    )
