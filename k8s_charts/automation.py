"""What the run-time automation may do in the cluster: the verbs it uses, on the objects it uses them on.

Its functions come in by EKS access entries as members of one group. All of them end in the same reconcile, so all of
them need the same.
"""

from collections.abc import Sequence
from typing import Final

from cdk8s import Chart
from cdk8s_plus_28 import k8s
from constructs import Construct

from genai_finops import versions
from genai_finops.spec import Platform, names
from k8s_charts import labels

GROUP: Final = "genai-finops:reconcilers"
"""The Kubernetes group of the functions' access entries."""

ROLE: Final = "genai-finops-automation"
PROMETHEUS_ROLE: Final = "genai-finops-automation-prometheus"

_RBAC: Final = "rbac.authorization.k8s.io"


class AutomationChart(Chart):
    """Nothing here may read a secret, make an object or take one away."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "automation", labels=labels.COMMON)
        k8s.KubeClusterRole(
            self,
            "cluster-role",
            metadata=k8s.ObjectMeta(name=ROLE),
            rules=[
                _rule("", "nodes", ["list"]),
                _rule(_group(versions.KARPENTER_API), "nodepools", ["list"]),
                _rule(_group(versions.KARPENTER_API), "nodepools", ["patch"], _node_pools(platform)),
            ],
        )
        k8s.KubeClusterRoleBinding(
            self,
            "cluster-role-binding",
            metadata=k8s.ObjectMeta(name=ROLE),
            role_ref=k8s.RoleRef(api_group=_RBAC, kind="ClusterRole", name=ROLE),
            subjects=_subjects(),
        )
        self._role(
            ROLE,
            names.MODEL_NAMESPACE,
            [
                _rule(_group(versions.KEDA_API), "scaledobjects", ["list", "patch"]),
                # Patched when KEDA does not follow, and for pods that hold warm capacity.
                _rule("apps", "deployments", ["list", "patch"]),
                _rule("", "pods", ["list"]),
            ],
        )
        # A proxied GET can name the port, and the name that RBAC compares then has it too.
        prometheus = f"{names.PROMETHEUS_SERVICE}:{names.PROMETHEUS_PORT}"
        self._role(PROMETHEUS_ROLE, names.MONITORING_NAMESPACE, [_rule("", "services/proxy", ["get"], [prometheus])])

    def _role(self, name: str, namespace: str, rules: Sequence[k8s.PolicyRule]) -> None:
        metadata = k8s.ObjectMeta(name=name, namespace=namespace)
        k8s.KubeRole(self, name, metadata=metadata, rules=rules)
        k8s.KubeRoleBinding(
            self,
            f"{name}-binding",
            metadata=metadata,
            role_ref=k8s.RoleRef(api_group=_RBAC, kind="Role", name=name),
            subjects=_subjects(),
        )


def _rule(api_group: str, resource: str, verbs: Sequence[str], only: Sequence[str] | None = None) -> k8s.PolicyRule:
    return k8s.PolicyRule(api_groups=[api_group], resources=[resource], verbs=verbs, resource_names=only)


def _subjects() -> list[k8s.Subject]:
    return [k8s.Subject(api_group=_RBAC, kind="Group", name=GROUP)]


def _node_pools(platform: Platform) -> list[str]:
    """Those that the Karpenter chart makes for families in use, and so none of anybody else."""
    return [
        name
        for family in platform.families
        for name in (names.spot_node_pool(family), names.on_demand_node_pool(family))
    ]


def _group(api: str) -> str:
    return api.partition("/")[0]
