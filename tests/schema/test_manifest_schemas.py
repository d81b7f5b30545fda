"""Every manifest is accepted by whoever will read it, and a judge that accepts everything is noticed."""

from copy import deepcopy

import pytest

from tests.schema.validators import (
    CRDS,
    core_problem,
    crd_problems,
    documented_problems,
    is_core,
    npm_problems,
)
from tests.unit.k8s_charts.charts import PLATFORMS, manifests, named

pytestmark = pytest.mark.synth

with_crds = pytest.mark.skipif(
    not CRDS.is_dir(), reason=f"There are no CRDs at {CRDS}; GENAI_FINOPS_SHARED_DATA names another folder."
)


@pytest.mark.parametrize("name", PLATFORMS)
def test_core_kinds(name):
    for manifest in filter(is_core, manifests(name)):
        assert core_problem(manifest) is None, manifest["metadata"]


def test_custom_kinds_by_their_npm_packages():
    custom = [manifest for name in PLATFORMS for manifest in manifests(name) if not is_core(manifest)]
    judged = npm_problems(custom)
    refused = [
        (manifest["metadata"]["name"], kind, problem)
        for manifest, (kind, problem) in zip(custom, judged, strict=True)
        if problem
    ]
    assert refused == []
    assert {kind for kind, _ in judged} - {None} == {
        "EC2NodeClass",
        "Gateway",
        "GatewayClass",
        "HTTPRoute",
        "NodePool",
        "PodMonitor",
        "PrometheusRule",
        "ScaledObject",
    }


@with_crds
@pytest.mark.parametrize("name", PLATFORMS)
def test_custom_kinds_by_their_crds(name):
    for manifest in manifests(name):
        assert crd_problems(manifest) in (None, []), manifest["metadata"]


@pytest.mark.parametrize("name", PLATFORMS)
def test_kinds_without_a_published_validator_by_their_documentation(name):
    for manifest in manifests(name):
        assert documented_problems(manifest) in (None, []), manifest["metadata"]


@with_crds
@pytest.mark.parametrize("name", PLATFORMS)
def test_every_manifest_has_a_strict_judge(name):
    for manifest in manifests(name):
        judged = is_core(manifest) or crd_problems(manifest) is not None
        assert judged or documented_problems(manifest) is not None, manifest["kind"]


def spoiled(kind, name, *path, value):
    manifest = deepcopy(named(manifests("default"), kind, name))
    holder = manifest
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return manifest


def test_an_unknown_field_of_a_core_kind_is_refused():
    assert core_problem(spoiled("Deployment", "vllm-llama3-8b", "spec", "replicass", value=1))


@with_crds
@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    [
        ("NodePool", "inf2-spot", ("spec", "template", "spec", "taintz"), []),
        ("NodePool", "inf2-spot", ("spec", "disruption", "consolidateAfter"), "5 minutes"),
        ("EC2NodeClass", "inf2-node-class", ("spec", "amiFamilies"), "AL2"),
        ("ScaledObject", "vllm-llama3-8b", ("spec", "minReplicas"), 1),
        ("ScaledObject", "vllm-llama3-8b", ("spec", "fallback", "behavior"), "hope"),
        ("PodMonitor", "vllm-llama3-8b", ("spec", "endpoints"), []),
        ("Gateway", "inference", ("spec", "listener"), []),
    ],
)
def test_the_crds_refuse_what_they_do_not_know(kind, name, path, value):
    assert crd_problems(spoiled(kind, name, *path, value=value))


def test_the_npm_packages_refuse_a_wrong_type():
    wrong = [
        spoiled("NodePool", "inf2-spot", "spec", "weight", value="heavy"),
        spoiled("ScaledObject", "vllm-llama3-8b", "spec", "triggers", value="queue"),
        spoiled("PrometheusRule", "vllm-llama3-8b", "spec", "groups", value={}),
        spoiled("Gateway", "inference", "spec", "listeners", value={}),
    ]
    assert all(problem for _, problem in npm_problems(wrong))
