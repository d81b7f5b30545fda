"""Whom pods may talk to: pieces of network policies."""

from typing import Final

from cdk8s_plus_28 import k8s

from genai_finops.spec import names
from k8s_charts import labels
from k8s_charts.values import number

_DNS_PORT: Final = 53
_HTTPS_PORT: Final = 443
_HTTP_PORT: Final = 80
_ANYWHERE: Final = "0.0.0.0/0"
_POD_IDENTITY_AGENT: Final = "169.254.170.23/32"


def port(port: int, protocol: str = "TCP") -> k8s.NetworkPolicyPort:
    return k8s.NetworkPolicyPort(port=number(port), protocol=protocol)


def block(cidr: str) -> k8s.NetworkPolicyPeer:
    return k8s.NetworkPolicyPeer(ip_block=k8s.IpBlock(cidr=cidr))


def namespace(name: str, **pod_labels: str) -> k8s.NetworkPolicyPeer:
    pods = {label.replace("_", "-"): value for label, value in pod_labels.items()}
    return k8s.NetworkPolicyPeer(
        namespace_selector=k8s.LabelSelector(match_labels={labels.NAMESPACE_NAME: name}),
        pod_selector=k8s.LabelSelector(match_labels=pods) if pods else None,
    )


def to_aws() -> list[k8s.NetworkPolicyEgressRule]:
    """Names, HTTPS, and the agent that hands out identities."""
    return [
        k8s.NetworkPolicyEgressRule(
            to=[namespace(names.SYSTEM_NAMESPACE, k8s_app="kube-dns")],
            ports=[port(_DNS_PORT, "UDP"), port(_DNS_PORT)],
        ),
        k8s.NetworkPolicyEgressRule(to=[block(_ANYWHERE)], ports=[port(_HTTPS_PORT)]),
        k8s.NetworkPolicyEgressRule(to=[block(_POD_IDENTITY_AGENT)], ports=[port(_HTTP_PORT)]),
    ]
