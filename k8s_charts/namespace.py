"""What all models share: namespace, priorities, identities, secrets, scripts, cache, and silence unless allowed."""

from pathlib import Path
from typing import Final

from cdk8s import Chart
from cdk8s_plus_28 import k8s
from constructs import Construct

from genai_finops.spec import Platform, names
from k8s_charts import labels
from k8s_charts.custom import SecretProviderClass
from k8s_charts.values import quantity

SCRIPTS: Final = "serving-scripts"
"""ConfigMap with the files of `k8s_charts/scripts` that servers run."""

ONLY_IN_JOBS: Final = ("await_weights.py", "compile.py", "compile_model.py", "stage.py", "supply_lease.py")
"""Scripts that have a ConfigMap of their own: all of them would be too much for one custom resource."""

SERVING_PRIORITY: Final = 1000
"""Above the default, 0, and above the negative priority of pods that only hold warm capacity."""

WARM_PRIORITY: Final = -10

SECRETS_DRIVER: Final = "secrets-store.csi.k8s.io"

CACHE_FOLDER: Final = "/mnt/k8s-disks/0/models"
"""On the node. Where it has local disks and its class joins them, the EKS AMI mounts them at /mnt/k8s-disks/0;
elsewhere this is a folder of the root volume."""

CACHE_CAPACITY: Final = "1Ti"
"""A PersistentVolume must name one, and nothing enforces it for a folder; the limit is cache_gib."""

NO_STORAGE_CLASS: Final = ""
"""Left out it would be the default class, and a disk would be made for the claim."""

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
        k8s.KubePriorityClass(
            self,
            "warm-priority",
            metadata=k8s.ObjectMeta(name=names.WARM_PRIORITY_CLASS),
            value=WARM_PRIORITY,
            preemption_policy="Never",
            description="Pods that only hold warm capacity: whatever is real takes their place.",
        )
        k8s.KubeNetworkPolicy(
            self,
            "default-deny",
            metadata=_metadata("default-deny"),
            spec=k8s.NetworkPolicySpec(pod_selector=_NOTHING_SELECTED, policy_types=["Ingress", "Egress"]),
        )
        for account in (names.SERVING_SERVICE_ACCOUNT, names.STAGING_SERVICE_ACCOUNT, names.COMPILE_SERVICE_ACCOUNT):
            k8s.KubeServiceAccount(self, account, metadata=_metadata(account), automount_service_account_token=False)
        self._secrets(platform)
        self._cache()
        k8s.KubeConfigMap(
            self,
            "scripts",
            metadata=_metadata(SCRIPTS),
            data={name: text for name, text in scripts().items() if name not in ONLY_IN_JOBS},
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

    def _cache(self) -> None:
        """One folder of whichever node a pod runs on, for all pods of that node.

        By way of a PersistentVolume, since the pod security level forbids pods to name folders of their node; here only
        an administrator names one, and only this. It has no node affinity, so it says nothing about where a pod may
        run: neither to the scheduler nor to Karpenter, which reads nothing but the affinity of a bound volume.
        """
        reserved = k8s.ObjectReference(
            api_version="v1", kind="PersistentVolumeClaim", namespace=names.MODEL_NAMESPACE, name=names.MODEL_CACHE
        )
        capacity = {"storage": quantity(CACHE_CAPACITY)}
        k8s.KubePersistentVolume(
            self,
            "cache",
            metadata=k8s.ObjectMeta(name=names.MODEL_CACHE),
            spec=k8s.PersistentVolumeSpec(
                capacity=capacity,
                access_modes=["ReadWriteMany"],
                persistent_volume_reclaim_policy="Retain",
                storage_class_name=NO_STORAGE_CLASS,
                claim_ref=reserved,
                host_path=k8s.HostPathVolumeSource(path=CACHE_FOLDER, type="DirectoryOrCreate"),
            ),
        )
        k8s.KubePersistentVolumeClaim(
            self,
            "cache-claim",
            metadata=_metadata(names.MODEL_CACHE),
            spec=k8s.PersistentVolumeClaimSpec(
                access_modes=["ReadWriteMany"],
                storage_class_name=NO_STORAGE_CLASS,
                volume_name=names.MODEL_CACHE,
                resources=k8s.ResourceRequirements(requests=capacity),
            ),
        )

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
    """Kubernetes Secrets that servers and jobs read, and the Secrets Manager secret that each mirrors."""
    found = {}
    if platform.gateway.enabled and platform.gateway.api_key:
        found[names.API_KEY_SECRET] = names.api_key_secret(platform)
    if platform.hub_token_secret:
        found[names.HUB_TOKEN_SECRET] = platform.hub_token_secret
    return found


def _metadata(name: str) -> k8s.ObjectMeta:
    return k8s.ObjectMeta(name=name, namespace=names.MODEL_NAMESPACE)


def scripts() -> dict[str, str]:
    """What runs in pods, by file name."""
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(_SCRIPTS_FOLDER.iterdir())
        if path.suffix == ".py"
    }
