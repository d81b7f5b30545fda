"""The Kubernetes manifests of the platform: cdk8s charts, one per concern, synthesized from its file."""

from k8s_charts.manifests import model_of, synthesize, to_yaml, write_yaml
from k8s_charts.runtime_owned import RUNTIME_OWNED, Manifest, RuntimeOwned, split_runtime_owned

__all__ = [
    "RUNTIME_OWNED",
    "Manifest",
    "RuntimeOwned",
    "model_of",
    "split_runtime_owned",
    "synthesize",
    "to_yaml",
    "write_yaml",
]
