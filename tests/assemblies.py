"""Synthesized platforms as plain data: what stands in the cloud assembly, read once."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from genai_finops.spec import Platform

Template = dict[str, Any]
Resource = dict[str, Any]


@dataclass(frozen=True)
class Assembly:
    """A cloud assembly and the manifests that were made with it."""

    platform: Platform
    folder: Path

    @cached_property
    def templates(self) -> dict[str, Template]:
        """Template by stack (`network`, `cluster`, ...) or nested stack (`model-<name>`), in order of deployment."""
        return {name: _read(self.folder / file) for name, file in self.files.items()}

    @cached_property
    def files(self) -> dict[str, str]:
        """File name of every template."""
        files = {}
        for name, stack in self.stacks.items():
            files[name] = stack["properties"]["templateFile"]
            for resource in _read(self.folder / files[name])["Resources"].values():
                if resource["Type"] == "AWS::CloudFormation::Stack":
                    nested = resource["Metadata"]["aws:asset:path"]
                    files[_read(self.folder / nested)["Description"].replace("Model ", "model-")] = nested
        return files

    @cached_property
    def stacks(self) -> dict[str, Any]:
        """Stack artifacts of manifest.json."""
        artifacts = _read(self.folder / "manifest.json")["artifacts"]
        return {
            name: artifact for name, artifact in artifacts.items() if artifact["type"] == "aws:cloudformation:stack"
        }

    @cached_property
    def manifests(self) -> dict[str, list[dict[str, Any]]]:
        """What k8s_charts made, before the stacks took it apart."""
        return dict(_read(self.folder / "manifests.json"))

    @cached_property
    def model_templates(self) -> dict[str, Template]:
        return {name: template for name, template in self.templates.items() if name.startswith("model-")}

    @cached_property
    def asset_names(self) -> dict[str, str]:
        """What each asset is, by the hash of its content."""
        return {
            content_hash: asset["displayName"]
            for file in sorted(self.folder.glob("*.assets.json"))
            for content_hash, asset in _read(file)["files"].items()
        }

    def all(self, kind: str) -> Iterator[tuple[str, str, Resource]]:
        """Stack, logical id and resource of every resource of a type, in all templates."""
        for stack, template in self.templates.items():
            for logical_id, resource in of_type(template, kind).items():
                yield stack, logical_id, resource

    def one(self, kind: str, stack: str) -> Resource:
        [resource] = of_type(self.templates[stack], kind).values()
        return resource

    def target(self, stack: str, value: Any) -> tuple[str, str]:
        """Stack and logical id of what a value refers to, across stacks."""
        if "Fn::ImportValue" in value:
            return self._exports[value["Fn::ImportValue"]]
        return stack, value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0]

    def referred(self, stack: str, value: Any) -> dict[str, Any]:
        """Properties of what a value refers to."""
        where, logical_id = self.target(stack, value)
        return dict(self.templates[where]["Resources"][logical_id]["Properties"])

    @cached_property
    def _exports(self) -> dict[str, tuple[str, str]]:
        return {
            output["Export"]["Name"]: self.target(stack, output["Value"])
            for stack, template in self.templates.items()
            for output in template.get("Outputs", {}).values()
            if "Export" in output
        }

    def applied(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Stack, logical id and manifest of every object that is applied."""
        for stack, logical_id, resource in self.all("Custom::AWSCDK-EKS-KubernetesResource"):
            for manifest in json.loads(text(resource["Properties"]["Manifest"])):
                yield stack, logical_id, without_prune_label(manifest)

    def releases(self) -> dict[str, dict[str, Any]]:
        """Properties of every Helm release by its name, the values parsed."""
        return {
            resource["Properties"]["Release"]: {
                **resource["Properties"],
                "Values": json.loads(text(resource["Properties"].get("Values", "{}"))),
            }
            for _, _, resource in self.all("Custom::AWSCDK-EKS-HelmChart")
        }


def synthesize(platform: Platform, folder: Path, *, earlier: Path | None = None) -> Assembly:
    """Synthesizes into `folder`; `earlier` is one whose assets need no second copy."""
    from stacks.application import build
    from stacks.outputs import reuse_assets

    folder.mkdir(parents=True)
    if earlier:
        reuse_assets(earlier, folder)
    application = build(platform, outdir=folder)
    application.app.synth()
    (folder / "manifests.json").write_text(json.dumps(application.manifests), encoding="utf-8")
    return Assembly(platform, folder)


def of_type(template: Template, kind: str) -> dict[str, Resource]:
    return {logical_id: resource for logical_id, resource in template["Resources"].items() if resource["Type"] == kind}


def many(value: Any) -> list[Any]:
    """IAM writes a list of one as the one."""
    return value if isinstance(value, list) else [value]


def text(value: Any) -> str:
    """A string of a template, with `${...}` where something is filled in at deployment."""
    match value:
        case str():
            return value
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(text(part) for part in parts)
        case {"Fn::GetAtt": [logical_id, attribute]}:
            return f"${{{logical_id}.{attribute}}}"
        case {"Ref": name} | {"Fn::ImportValue": name}:
            return f"${{{name}}}"
        case {"Fn::Sub": str(name)}:
            return name
    raise TypeError(value)


def strings(value: Any) -> Iterator[str]:
    """Every string in a structure, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def without_prune_label(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without the label by which CDK's handler finds what is to be deleted."""
    labels = manifest["metadata"].get("labels", {})
    kept = {key: value for key, value in labels.items() if not key.startswith("aws.cdk.eks/prune-")}
    metadata = {**manifest["metadata"], "labels": kept}
    if not kept:
        del metadata["labels"]
    return {**manifest, "metadata": metadata}


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8")))
