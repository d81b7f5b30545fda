"""Every version this platform pins, in one place.

A pin is a fact about what was tested together, so it is written once. Charts, stacks and the
rehearsal read it here; a test fails when a version string shows up anywhere else.
Collected 2026-12-01.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class HelmChart:
    """A Helm chart: `repository` is an HTTPS repository, or empty when `chart` is an OCI address."""

    chart: str
    version: str
    repository: str = ""

    @property
    def is_oci(self) -> bool:
        return self.chart.startswith("oci://")


KUBERNETES: Final = "1.35"
"""EKS standard support until 2027-03-27."""

KARPENTER_CRDS: Final = HelmChart("oci://public.ecr.aws/karpenter/karpenter-crd", "1.14.1")
KARPENTER: Final = HelmChart("oci://public.ecr.aws/karpenter/karpenter", "1.14.1")
KEDA: Final = HelmChart("keda", "2.20.2", "https://kedacore.github.io/charts")
KUBE_PROMETHEUS_STACK: Final = HelmChart(
    "kube-prometheus-stack", "88.4.0", "https://prometheus-community.github.io/helm-charts"
)
NEURON: Final = HelmChart("oci://public.ecr.aws/neuron/neuron-helm-chart", "1.10.0")
NVIDIA_DEVICE_PLUGIN: Final = HelmChart("nvidia-device-plugin", "0.20.0", "https://nvidia.github.io/k8s-device-plugin")
AWS_LOAD_BALANCER_CONTROLLER: Final = HelmChart(
    "aws-load-balancer-controller", "3.3.0", "https://aws.github.io/eks-charts"
)
GATEWAY_API_CRDS: Final = HelmChart("oci://docker.io/envoyproxy/gateway-crds-helm", "v1.9.1")
"""The only maintained chart of the Gateway API CRDs (release 1.6, standard channel); nothing of Envoy is installed."""

SECRETS_STORE: Final = HelmChart(
    "secrets-store-csi-driver-provider-aws", "3.1.1", "https://aws.github.io/secrets-store-csi-driver-provider-aws"
)
"""Driver and AWS provider. Not as EKS add-on: that one drops the setting that mirrors secrets (its issue 597)."""

NEURON_SCHEDULER_TAG: Final = "v1.35.2-eks-1-35-8"
"""kube-scheduler beside which the Neuron extension runs; the chart's default is made for Kubernetes 1.28."""

VLLM_NEURON_IMAGE: Final = (
    "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.13.0-neuronx-py312-sdk2.28.0-ubuntu24.04"
)
"""Neuron SDK 2.28 is the last whose release notes support the inf2 and trn1 kernels."""

VLLM_NVIDIA_IMAGE: Final = "vllm/vllm-openai:v0.33.0"
NEURON_MONITOR_IMAGE: Final = "public.ecr.aws/neuron/neuron-monitor:1.3.0"
PAUSE_IMAGE: Final = "public.ecr.aws/eks-distro/kubernetes/pause:3.10"
"""What pods run that only hold room."""

AL2023_AMI_ALIAS: Final = "al2023@v20260714"
"""Pinned, since `@latest` lets nodes drift on a day nobody chose."""

KARPENTER_API: Final = "karpenter.sh/v1"
KARPENTER_AWS_API: Final = "karpenter.k8s.aws/v1"
CAPACITY_BUFFER_API: Final = "autoscaling.x-k8s.io/v1beta1"
"""As Karpenter's definitions have it; its feature gate is alpha."""
KEDA_API: Final = "keda.sh/v1alpha1"
PROMETHEUS_API: Final = "monitoring.coreos.com/v1"
GATEWAY_API: Final = "gateway.networking.k8s.io/v1"
AWS_GATEWAY_API: Final = "gateway.k8s.aws/v1beta1"
SECRETS_STORE_API: Final = "secrets-store.csi.x-k8s.io/v1"
