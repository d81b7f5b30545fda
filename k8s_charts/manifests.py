"""From a platform to plain Kubernetes manifests, and from those to files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from cdk8s import App, Chart

from genai_finops.spec import Platform, names
from k8s_charts.automation import AutomationChart
from k8s_charts.gateway import GatewayChart
from k8s_charts.karpenter import KarpenterChart
from k8s_charts.keda import KedaChart
from k8s_charts.monitoring import MonitoringChart
from k8s_charts.namespace import NamespaceChart
from k8s_charts.runtime_owned import Manifest
from k8s_charts.supply import SupplyChart
from k8s_charts.vllm import VllmChart
from k8s_charts.warm import BufferChart, ImagesChart, WarmChart


def synthesize(platform: Platform) -> dict[str, list[Manifest]]:
    """The manifests of every chart, charts and manifests in the order in which they are to be applied."""
    app = App()
    charts: list[Chart] = [
        chart(app, platform=platform)
        for chart in (
            NamespaceChart,
            KarpenterChart,
            AutomationChart,
            SupplyChart,
            VllmChart,
            WarmChart,
            BufferChart,
            ImagesChart,
            KedaChart,
            MonitoringChart,
        )
    ]
    if platform.gateway.enabled:
        charts.append(GatewayChart(app, platform=platform))
    made: dict[str, list[Manifest]] = {chart.node.id: chart.to_json() for chart in charts}
    return {chart: manifests for chart, manifests in made.items() if manifests}


def model_of(manifest: Manifest) -> str | None:
    """The model that a manifest belongs to; None for what all models share."""
    model: str | None = manifest["metadata"].get("labels", {}).get(names.MODEL_LABEL)
    return model


def write_yaml(manifests: Mapping[str, Sequence[Manifest]], folder: Path) -> None:
    """Write `<folder>/<chart>.yaml`, one document per manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    for chart, documents in manifests.items():
        (folder / f"{chart}.yaml").write_text(to_yaml(documents), encoding="utf-8")


def to_yaml(documents: Sequence[Manifest]) -> str:
    """A multi-document file that people can read and every YAML parser reads alike."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True, explicit_start=True)


# The one in C writes the same text ten times as fast; not every build of PyYAML has it.
_Fastest = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Fastest):  # type: ignore[misc,valid-type]
    def ignore_aliases(self, data: Any) -> bool:
        return True


_STRING: Final = "tag:yaml.org,2002:str"


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        return dumper.represent_scalar(_STRING, text, style="|")
    read_as = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    bare = read_as == _STRING and not _is_number_to_go(text)
    return dumper.represent_scalar(_STRING, text, style=None if bare else '"')


def _is_number_to_go(text: str) -> bool:
    """PyYAML leaves 12345e67 bare, and Go reads a number: a revision may look like that."""
    for read in (float, _based):
        try:
            read(text)
        except ValueError:
            continue
        return True
    return False


def _based(text: str) -> int:
    return int(text, base=0)


_Dumper.add_representer(str, _string)
