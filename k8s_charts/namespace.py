"""What all models share: namespace, priority, identity, secrets, scripts, and silence unless allowed."""

from pathlib import Path
from typing import Final

from cdk8s import Chart
from cdk8s_plus_28 import k8s
from constructs import Construct

from genai_finops.spec import Platform, names
from k8s_charts import labels
from k8s_charts.custom import SecretProviderClass

SCRIPTS: Final = "serving-scripts"
"""ConfigMap with the files of `k8s_charts/scripts`."""

SERVING_PRIORITY: Final = 1000
"""Above the default, 0, and above the negative priority of pods that only hold warm capacity."""

_SCRIPTS_FOLDER: Final = Path(__file__).parent / "scripts"
_NOTHING_SELECTED: Final = k8s.LabelSelector()


class NamespaceChart(Chart):
    """Applied before everything else."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "namespace", labels=labels.COMMON)
        self._namespace(platform)
        k8s.KubePriorityClass(
            self,
            "priority",
            metadata=k8s.ObjectMeta(name=names.PRIORITY_CLASS),
            value=SERVING_PRIORITY,
            description="Model servers: they take the place of pods that only hold warm capacity.",
        )
        k8s.KubeNetworkPolicy(
            self,
            "default-deny",
            metadata=_metadata("default-deny"),
            spec=k8s.NetworkPolicySpec(pod_selector=_NOTHING_SELECTED, policy_types=["Ingress", "Egress"]),
        )
        k8s.KubeServiceAccount(
            self,
            "service-account",
            metadata=_metadata(names.SERVING_SERVICE_ACCOUNT),
            automount_service_account_token=False,
        )
        self._secrets(platform)
        k8s.KubeConfigMap(
            self,
            "scripts",
            metadata=_metadata(SCRIPTS),
            data={script.name: script.read_text(encoding="utf-8") for script in _scripts()},
        )

    def _namespace(self, platform: Platform) -> None:
        """Restricted is the aim and warned about; vLLM's images run as root, so baseline is enforced."""
        levels = {"enforce": "baseline", "audit": "restricted", "warn": "restricted"}
        namespace_labels = {f"pod-security.kubernetes.io/{mode}": level for mode, level in levels.items()}
        if platform.gateway.enabled:
            # A replica counts as ready only once the load balancer finds it healthy, so that a rollout never
            # takes the last target away while the new one is still being registered.
            namespace_labels["elbv2.k8s.aws/pod-readiness-gate-inject"] = "enabled"
        metadata = k8s.ObjectMeta(name=names.MODEL_NAMESPACE, labels=namespace_labels)
        k8s.KubeNamespace(self, "namespace", metadata=metadata)

    def _secrets(self, platform: Platform) -> None:
        for name, secret_id in secrets(platform).items():
            SecretProviderClass(
                self,
                name,
                name=name,
                namespace=names.MODEL_NAMESPACE,
                region=platform.region,
                secret_id=secret_id,
            )


def secrets(platform: Platform) -> dict[str, str]:
    """Kubernetes Secrets that servers read, and the Secrets Manager secret that each mirrors."""
    found = {}
    if platform.gateway.enabled and platform.gateway.api_key:
        found[names.API_KEY_SECRET] = names.api_key_secret(platform)
    if platform.hub_token_secret:
        found[names.HUB_TOKEN_SECRET] = platform.hub_token_secret
    return found


def _metadata(name: str) -> k8s.ObjectMeta:
    return k8s.ObjectMeta(name=name, namespace=names.MODEL_NAMESPACE)


def _scripts() -> list[Path]:
    return sorted(path for path in _SCRIPTS_FOLDER.iterdir() if path.suffix in (".py", ".sh"))
