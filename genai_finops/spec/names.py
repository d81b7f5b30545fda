"""Every name that is derived from the platform file, in one place, with the limit that it must keep.

Charts, stacks and the run-time automation refer to each other's resources by these names, so none of them may spell
one out.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from genai_finops.spec.model import Model
from genai_finops.spec.platform import Platform

MOST_CHARACTERS: Final = 63
"""Of a label, and so of a Job's name; and of a bucket's."""

ACCOUNT_DIGITS: Final = 12

MODEL_NAMESPACE: Final = "genai-inference"
KARPENTER_NAMESPACE: Final = "kube-system"
KEDA_NAMESPACE: Final = "keda"
MONITORING_NAMESPACE: Final = "monitoring"
SYSTEM_NAMESPACE: Final = "kube-system"

KARPENTER_SERVICE_ACCOUNT: Final = "karpenter"
LOAD_BALANCER_SERVICE_ACCOUNT: Final = "aws-load-balancer-controller"
SERVING_SERVICE_ACCOUNT: Final = "vllm"
STAGING_SERVICE_ACCOUNT: Final = "model-staging"
COMPILE_SERVICE_ACCOUNT: Final = "model-compile"
EBS_CSI_SERVICE_ACCOUNT: Final = "ebs-csi-controller-sa"

PRIORITY_CLASS: Final = "genai-serving"
WARM_PRIORITY_CLASS: Final = "genai-warm"
STORE_STACK: Final = "store"
MODEL_STORE: Final = "model-store"
"""The ConfigMap by which pods find the bucket."""
BUCKET_KEY: Final = "bucket"
MODEL_SUPPLY: Final = "model-supply"
"""The network policy of pods that only bring files, and the ConfigMap of the jobs' scripts."""
MODEL_CACHE: Final = "model-cache"
"""PersistentVolume and its claim: a folder of whichever node a pod runs on."""
GATEWAY_CLASS: Final = "aws-alb"
GATEWAY: Final = "inference"
API_KEY_SECRET: Final = "vllm-api-key"
HUB_TOKEN_SECRET: Final = "hub-token"
SECRET_KEY: Final = "value"
"""The key under which a mounted secret appears in its Kubernetes Secret."""

PROMETHEUS_RELEASE: Final = "kube-prometheus-stack"
PROMETHEUS_SERVICE: Final = "prometheus-operated"
PROMETHEUS_PORT: Final = 9090
PROMETHEUS_URL: Final = f"http://{PROMETHEUS_SERVICE}.{MONITORING_NAMESPACE}.svc.cluster.local:{PROMETHEUS_PORT}"
SERVER_PORT: Final = 8000
SERVER_PORT_NAME: Final = "http"
NEURON_SCHEDULER: Final = "my-scheduler"
"""What the Neuron Helm chart calls its scheduler; pods that share a multi-device node must ask for it."""

MODEL_LABEL: Final = "genai-finops/model"
SUPPLY_LABEL: Final = "genai-finops/supply"
"""On pods that only bring files: of the jobs that fill the model store (stage, compile), and placeholders (warm)."""
KEY_LABEL: Final = "genai-finops/artifact-key"
WORKLOAD_LABEL: Final = "workload"
WORKLOAD: Final = "genai-vllm-inference"
ACCELERATOR_LABEL: Final = "accelerator"
DISCOVERY_TAG: Final = "karpenter.sh/discovery"
PLATFORM_TAG: Final = "genai-finops:platform"
COMPONENT_TAG: Final = "genai-finops:component"

NEURON_RESOURCE: Final = "aws.amazon.com/neuron"
NVIDIA_RESOURCE: Final = "nvidia.com/gpu"


def device_resource(vendor: str) -> str:
    """The extended resource, and the key of the taint, of a vendor's devices."""
    return NEURON_RESOURCE if vendor == "neuron" else NVIDIA_RESOURCE


def accelerator_label(vendor: str) -> str:
    """Value of the node label `accelerator`."""
    return "aws-neuron" if vendor == "neuron" else "nvidia-gpu"


def stack(platform: Platform, part: str) -> str:
    return f"{platform.name}-{part}"


def karpenter_node_role(platform: Platform) -> str:
    return f"{platform.name}-karpenter-node"


def karpenter_controller_role(platform: Platform) -> str:
    return f"{platform.name}-karpenter-controller"


def interruption_queue(platform: Platform) -> str:
    return f"{platform.name}-karpenter"


def model_store_bucket(platform: Platform, account: str) -> str:
    """Of the account and region, since a bucket's name is the only one in the world."""
    rest = f"-models-{account}-{platform.region}"
    room = MOST_CHARACTERS - len(f"-models--{platform.region}") - ACCOUNT_DIGITS
    if len(platform.name) <= room:
        return f"{platform.name}{rest}"
    digest = hashlib.sha256(platform.name.encode()).hexdigest()[:6]
    return f"{platform.name[: room - 7].rstrip('-')}-{digest}{rest}"


def alerts_topic(platform: Platform) -> str:
    """The SNS topic, and the Slack channel configuration."""
    return f"{platform.name}-alerts"


def api_key_secret(platform: Platform) -> str:
    """Name in Secrets Manager."""
    return f"{platform.name}/vllm-api-key"


def node_class(family: str) -> str:
    return f"{family}-node-class"


def spot_node_pool(family: str) -> str:
    """Asked first."""
    return f"{family}-spot"


def on_demand_node_pool(family: str) -> str:
    return f"{family}-on-demand"


def deployment(model: Model) -> str:
    """Also the name of the model's Service, ScaledObject, monitors and policies."""
    return f"vllm-{model.name}"


def warm_deployment(model: Model) -> str:
    """Pods that hold warm capacity; also the model's CapacityBuffer and its PodTemplate."""
    return f"warm-{model.name}"


def image_puller(family: str) -> str:
    """The DaemonSet that pulls images ahead."""
    return f"images-{family}"


def supply_job(step: str, model: Model, content: str) -> str:
    """A name that is new whenever `content`, what the job is made of, is: the pods of a Job never change."""
    digest = hashlib.sha256(f"{model.name} {content}".encode()).hexdigest()[:10]
    room = MOST_CHARACTERS - len(f"{step}--{digest}")
    return f"{step}-{model.name[:room].rstrip('-')}-{digest}"


def horizontal_pod_autoscaler(model: Model) -> str:
    """What KEDA calls the autoscaler it makes."""
    return f"keda-hpa-{deployment(model)}"


def route_path(model: Model) -> str:
    return f"/{model.name}"


@dataclass(frozen=True, slots=True)
class DerivedName:
    """A derived name, the setting it comes from, and how long what it names may be."""

    path: str
    what: str
    value: str
    limit: int

    @property
    def excess(self) -> int:
        return len(self.value) - self.limit


def derived(platform: Platform) -> Iterator[DerivedName]:
    """The derived names that come closest to a limit of Kubernetes, IAM or AWS."""
    yield DerivedName("name", "IAM role", karpenter_controller_role(platform), 64)
    yield DerivedName("name", "EKS cluster", platform.name, 100)
    yield DerivedName("name", "SQS queue", interruption_queue(platform), 80)
    for index, model in enumerate(platform.models):
        path = f"models[{index}].name"
        yield DerivedName(path, "label and HorizontalPodAutoscaler", horizontal_pod_autoscaler(model), 63)
