"""CustomResourceDefinitions in the versions that the platform installs, from the sources of their projects.

Those of controllers that are built here come with their sources. The others are fetched alone, and their content is
compared with a hash, as go.sum does it.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from genai_finops import versions
from genai_finops.rehearsal.binaries import BuildError, crd_files, find_go

CONTROLLERS: Final = ("karpenter", "keda", "prometheus-operator")


@dataclass(frozen=True, slots=True)
class Sources:
    """A Go module of which only files are read.

    Attributes:
        folder: of its definitions.
        sum: of its content, as in go.sum.
    """

    module: str
    version: str
    folder: str
    sum: str


FETCHED: Final = (
    # What the chart that the platform installs is made from: its release 1.9.1 carries Gateway API 1.6.
    Sources(
        "sigs.k8s.io/gateway-api",
        "v1.6.1",
        "config/crd/standard",
        "h1:mock6phZbI6rvZerwrVNk7hVNymQgHo+6sJ81Ia7ftY=",
    ),
    Sources(
        "sigs.k8s.io/secrets-store-csi-driver",
        "v1.6.0",
        "config/crd/bases",
        "h1:YpKG/2hJkp3EkRGpH5SPxg1/5AkmeD5pwHNKIlE90FU=",
    ),
)

_UNAVAILABLE: Final = {"LoadBalancerConfiguration": "loadbalancerconfigurations"} | {
    "TargetGroupConfiguration": "targetgroupconfigurations"
}
"""Kinds of the AWS Load Balancer Controller, whose sources no module proxy serves."""


def files() -> list[Path]:
    """All that can be had.

    Raises:
        BuildError: when one of them cannot.
    """
    return [
        *(file for module in CONTROLLERS for file in crd_files(module)),
        *(file for sources in FETCHED for file in _definitions(sources)),
    ]


def stand_ins() -> list[dict[str, Any]]:
    """Definitions that let anything pass, for kinds whose real ones cannot be had here."""
    group, version = versions.AWS_GATEWAY_API.split("/")
    return [_anything(group, version, kind, plural) for kind, plural in _UNAVAILABLE.items()]


def _anything(group: str, version: str, kind: str, plural: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


def _definitions(sources: Sources) -> list[Path]:
    command = [find_go(), "mod", "download", "-json", f"{sources.module}@{sources.version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path.home())
    found = json.loads(done.stdout or "{}")
    if "Dir" not in found:
        reason = found.get("Error") or done.stderr.strip()
        raise BuildError(f"The sources of {sources.module} {sources.version} cannot be had: {reason}")
    if found["Sum"] != sources.sum:
        raise BuildError(
            f"The sources of {sources.module} {sources.version} are {found['Sum']}, and were {sources.sum} when this "
            "was written: do not use them"
        )
    folder = Path(found["Dir"]) / sources.folder
    return [file for file in sorted(folder.glob("*.yaml")) if _is_definition(file)]


def _is_definition(file: Path) -> bool:
    return any(
        document and document.get("kind") == "CustomResourceDefinition"
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    )
