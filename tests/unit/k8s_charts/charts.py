"""Synthesized platforms for the tests of the charts, each made once."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import yaml

from genai_finops.spec import Model, Platform, names, parse_platform
from k8s_charts import Manifest, synthesize
from tests.platform_files import FILES, platform

PLATFORMS = tuple(FILES)


@cache
def charts(name: str) -> dict[str, list[Manifest]]:
    """The charts of `default`, `minimal` or `rich`."""
    return synthesize(platform(name))


def manifests(name: str) -> list[Manifest]:
    """All manifests of `default`, `minimal` or `rich`."""
    return flat(charts(name))


def flat(synthesized: Mapping[str, Iterable[Manifest]]) -> list[Manifest]:
    return [manifest for chart in synthesized.values() for manifest in chart]


def of_kind(found: Iterable[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in found if manifest["kind"] == kind]


def named(found: Iterable[Manifest], kind: str, name: str) -> Manifest:
    [manifest] = [manifest for manifest in of_kind(found, kind) if manifest["metadata"]["name"] == name]
    return manifest


def varied(*models: Mapping[str, Any], **settings: Any) -> Platform:
    """The minimal platform with other settings; each of `models` changes a copy of its model."""
    document = yaml.safe_load(FILES["minimal"].read_text(encoding="utf-8")) | settings
    [plain] = document["models"]
    changed = [{**plain, "name": f"model-{index}", **model} for index, model in enumerate(models)]
    document["models"] = changed or [plain]
    return parse_platform(json.dumps(document))


def built(*models: Mapping[str, Any], **settings: Any) -> list[Manifest]:
    """All manifests of a varied platform."""
    return flat(synthesize(varied(*models, **settings)))


def model(name: str, model_name: str) -> Model:
    """A model of `default`, `minimal` or `rich`."""
    return next(model for model in platform(name).models if model.name == model_name)


def server(deployment: Manifest) -> dict[str, Any]:
    """The container that serves."""
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


def servers(found: Iterable[Manifest]) -> list[Manifest]:
    """Deployments that serve, and not those that hold room."""
    return [one for one in of_kind(found, "Deployment") if one["metadata"]["name"].startswith("vllm-")]


def jobs(found: Iterable[Manifest], step: str) -> list[Manifest]:
    """Jobs of a step of the supply: stage or compile."""
    return [job for job in of_kind(found, "Job") if job["metadata"]["labels"][names.SUPPLY_LABEL] == step]
