"""Everything the models rely on inside the cluster: autoscaling, metrics, device plugins, the way in.

Definitions come before what uses them: each release is waited for, and serving comes after all of them.
"""

from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_sns as sns
from constructs import Construct

from genai_finops import versions
from genai_finops.spec import Platform, names
from k8s_charts.namespace import secrets
from stacks import load_balancer_policy
from stacks.base import PlatformStack
from stacks.helm import SYSTEM_TOLERATION, release
from stacks.pod_identity import associate, pod_identity_role
from stacks.policy import Statement, grant

ALERTMANAGER_SERVICE_ACCOUNT = f"{names.PROMETHEUS_RELEASE}-alertmanager"


class AddOnsStack(PlatformStack):
    def __init__(
        self,
        scope: Construct,
        *,
        platform: Platform,
        cluster: eks.ICluster,
        vpc: ec2.Vpc,
        alerts: sns.Topic | None,
    ) -> None:
        super().__init__(scope, "add-ons", platform=platform, description="KEDA, Prometheus, device plugins, gateway")
        self.cluster = cluster
        self._prometheus(platform, alerts)
        self._keda()
        self._device_plugins(platform)
        if secrets(platform):
            self._secrets_store()
        if platform.gateway.enabled:
            self._gateway(platform, vpc)

    def _prometheus(self, platform: Platform, alerts: sns.Topic | None) -> None:
        chart = release(
            self,
            names.PROMETHEUS_RELEASE,
            cluster=self.cluster,
            chart=versions.KUBE_PROMETHEUS_STACK,
            namespace=names.MONITORING_NAMESPACE,
            create_namespace=True,
            values=prometheus_values(platform, alerts.topic_arn if alerts else None),
        )
        if alerts:
            role = pod_identity_role(self, "AlertmanagerRole")
            assert alerts.master_key
            policy = grant(
                self,
                "AlertmanagerPolicy",
                role,
                [
                    Statement("PublishAlerts", ["sns:Publish"], [alerts.topic_arn]),
                    Statement("EncryptAlerts", ["kms:Decrypt", "kms:GenerateDataKey"], [alerts.master_key.key_arn]),
                ],
            )
            identity = associate(
                self,
                "AlertmanagerIdentity",
                cluster_name=self.cluster.cluster_name,
                namespace=names.MONITORING_NAMESPACE,
                service_account=ALERTMANAGER_SERVICE_ACCOUNT,
                role=role,
                policies=[policy],
            )
            chart.node.add_dependency(identity)

    def _keda(self) -> None:
        release(
            self,
            "keda",
            cluster=self.cluster,
            chart=versions.KEDA,
            namespace=names.KEDA_NAMESPACE,
            create_namespace=True,
            values=keda_values(),
        )

    def _device_plugins(self, platform: Platform) -> None:
        vendors = {model.vendor for model in platform.models}
        if "neuron" in vendors:
            release(
                self,
                "neuron",
                cluster=self.cluster,
                chart=versions.NEURON,
                namespace=names.SYSTEM_NAMESPACE,
                values=neuron_values(),
            )
        if "nvidia" in vendors:
            release(
                self,
                "nvidia-device-plugin",
                cluster=self.cluster,
                chart=versions.NVIDIA_DEVICE_PLUGIN,
                namespace=names.SYSTEM_NAMESPACE,
                values=nvidia_values(),
            )

    def _secrets_store(self) -> None:
        release(
            self,
            "secrets-store",
            cluster=self.cluster,
            chart=versions.SECRETS_STORE,
            namespace=names.SYSTEM_NAMESPACE,
            values=secrets_store_values(),
        )

    def _gateway(self, platform: Platform, vpc: ec2.Vpc) -> None:
        role = pod_identity_role(self, "LoadBalancerControllerRole")
        statements = load_balancer_policy.statements(platform, vpc_arn=vpc.vpc_arn)
        policy = grant(self, "LoadBalancerControllerPolicy", role, statements)
        identity = associate(
            self,
            "LoadBalancerControllerIdentity",
            cluster_name=self.cluster.cluster_name,
            namespace=names.SYSTEM_NAMESPACE,
            service_account=names.LOAD_BALANCER_SERVICE_ACCOUNT,
            role=role,
            policies=[policy],
        )
        definitions = release(
            self,
            "gateway-api-crds",
            cluster=self.cluster,
            chart=versions.GATEWAY_API_CRDS,
            namespace=names.SYSTEM_NAMESPACE,
            values={
                "crds": {"gatewayAPI": {"enabled": True, "channel": "standard"}, "envoyGateway": {"enabled": False}}
            },
        )
        controller = release(
            self,
            "aws-load-balancer-controller",
            cluster=self.cluster,
            chart=versions.AWS_LOAD_BALANCER_CONTROLLER,
            namespace=names.SYSTEM_NAMESPACE,
            values=load_balancer_values(platform, vpc.vpc_id),
        )
        # The controller looks for the Gateway API once, when it starts.
        controller.node.add_dependency(definitions, identity)


def prometheus_values(platform: Platform, alerts_topic_arn: str | None) -> dict[str, Any]:
    """Values of kube-prometheus-stack: what EKS hides is not scraped, and monitors of all namespaces are."""
    monitoring = platform.monitoring
    system = {"tolerations": [SYSTEM_TOLERATION]}
    hidden_by_eks = ("kubeControllerManager", "kubeEtcd", "kubeScheduler", "kubeProxy")
    return {
        "fullnameOverride": names.PROMETHEUS_RELEASE,
        **{component: {"enabled": False} for component in hidden_by_eks},
        "prometheus": {
            "prometheusSpec": {
                **system,
                "scrapeInterval": f"{monitoring.scrape_interval_seconds}s",
                "evaluationInterval": f"{monitoring.scrape_interval_seconds}s",
                "retention": f"{monitoring.retention_days}d",
                "retentionSize": f"{monitoring.storage_gib * 9 // 10}GB",
                "serviceMonitorSelectorNilUsesHelmValues": False,
                "podMonitorSelectorNilUsesHelmValues": False,
                "ruleSelectorNilUsesHelmValues": False,
                "resources": {"requests": {"cpu": "300m", "memory": "1536Mi"}, "limits": {"memory": "3Gi"}},
                "storageSpec": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": f"{monitoring.storage_gib}Gi"}},
                        }
                    }
                },
            }
        },
        "alertmanager": _alertmanager(platform, alerts_topic_arn),
        "grafana": {
            **system,
            "sidecar": {"dashboards": {"enabled": True, "searchNamespace": "ALL"}},
            "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        },
        "prometheusOperator": {
            **system,
            "admissionWebhooks": {"patch": system},
            "resources": {"requests": {"cpu": "50m", "memory": "100Mi"}},
        },
        "kube-state-metrics": {**system, "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}}},
        "prometheus-node-exporter": {
            "tolerations": [{"operator": "Exists"}],
            "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}},
        },
    }


def _alertmanager(platform: Platform, alerts_topic_arn: str | None) -> dict[str, Any]:
    """Alerts go to the platform's topic; without one there is nobody to route them to."""
    if alerts_topic_arn is None:
        return {"enabled": False}
    return {
        "enabled": True,
        "serviceAccount": {"name": ALERTMANAGER_SERVICE_ACCOUNT},
        "alertmanagerSpec": {
            "tolerations": [SYSTEM_TOLERATION],
            "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
        },
        "config": {
            "route": {
                "receiver": "topic",
                "group_by": ["alertname", "model"],
                "group_wait": "30s",
                "group_interval": "5m",
                "repeat_interval": "12h",
                # Watchdog fires always, to prove that alerting works; nobody wants it by mail.
                "routes": [{"receiver": "nobody", "matchers": ['alertname =~ "Watchdog|InfoInhibitor"']}],
            },
            "receivers": [
                {"name": "nobody"},
                {
                    "name": "topic",
                    "sns_configs": [
                        {
                            "topic_arn": alerts_topic_arn,
                            "sigv4": {"region": platform.region},
                            "subject": f"[{platform.name}] {{{{ .CommonLabels.alertname }}}}",
                            "send_resolved": True,
                        }
                    ],
                },
            ],
        },
    }


def keda_values() -> dict[str, Any]:
    """Values of KEDA's chart."""
    requests = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
    return {
        "tolerations": [SYSTEM_TOLERATION],
        "resources": {"operator": requests, "metricServer": requests, "webhooks": requests},
    }


def secrets_store_values() -> dict[str, Any]:
    """Values of the secrets store: on accelerator nodes too, mirrored into Kubernetes Secrets, by pod identity."""
    everywhere = [{"operator": "Exists"}]
    return {
        "tolerations": everywhere,
        "secrets-store-csi-driver": {
            "install": True,
            "syncSecret": {"enabled": True},
            "linux": {"tolerations": everywhere},
            "tokenRequests": [{"audience": "sts.amazonaws.com"}, {"audience": "pods.eks.amazonaws.com"}],
        },
    }


def neuron_values() -> dict[str, Any]:
    """Values of the Neuron chart: the device plugin everywhere, and the scheduler that packs devices of one node.

    The node problem detector stays off: it needs an IAM role of its own to replace nodes, which Karpenter does.
    """
    return {
        "devicePlugin": {"tolerations": [{"operator": "Exists"}]},
        "scheduler": {
            "enabled": True,
            "tolerations": [SYSTEM_TOLERATION],
            "customScheduler": {
                "enabled": True,
                "fullnameOverride": names.NEURON_SCHEDULER,
                "image": {"tag": versions.NEURON_SCHEDULER_TAG},
                "tolerations": [SYSTEM_TOLERATION],
            },
        },
        "npd": {"enabled": False},
    }


def nvidia_values() -> dict[str, Any]:
    """Values of NVIDIA's chart; its own affinity wants labels that only its discovery add-on sets."""
    return {
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {names.ACCELERATOR_LABEL: names.accelerator_label("nvidia")},
        "affinity": None,
    }


def load_balancer_values(platform: Platform, vpc_id: str) -> dict[str, Any]:
    """Values of the AWS Load Balancer Controller's chart."""
    return {
        "clusterName": platform.name,
        "region": platform.region,
        "vpcId": vpc_id,
        "serviceAccount": {"name": names.LOAD_BALANCER_SERVICE_ACCOUNT},
        "tolerations": [SYSTEM_TOLERATION],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        # A webhook on every Service would stop all of them when the controller is down.
        "enableServiceMutatorWebhook": False,
        "defaultTags": {**platform.tags, names.PLATFORM_TAG: platform.name, names.COMPONENT_TAG: "gateway"},
    }
