"""What changed in the templates: a snapshot per stack and platform, to be read in a review.

They show change and prove nothing; what must hold is asserted in tests/unit/stacks. Left out is what changes for no
reason of ours, or is in the snapshots of the manifests already: the hash of an asset's content stands as the asset's
name, and an applied manifest as what it is.
"""

import json
import re

import pytest
import yaml

from tests.assemblies import text
from tests.snapshots.test_manifests import YamlFile

pytestmark = pytest.mark.synth

STACKS = {
    "default": ("network", "cluster", "karpenter", "add-ons", "store", "serving", "model-llama3-8b", "automation"),
    "minimal": ("network", "cluster", "karpenter", "add-ons", "store", "serving", "model-qwen3-8b", "automation"),
    "rich": (
        "network",
        "cluster",
        "karpenter",
        "operations",
        "add-ons",
        "store",
        "serving",
        "model-llama3-8b",
        "model-llama3-70b",
        "model-mistral-7b",
        "automation",
    ),
}

ASSET_HASH = re.compile(r"[0-9a-f]{64}")


def normalized(assembly, stack):
    """A template as a person would want to compare it."""
    return _without_hashes(_readable(assembly.templates[stack]), assembly.asset_names)


def _readable(value):
    if isinstance(value, list):
        return [_readable(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: _PARSED.get(key, _readable)(inner) for key, inner in value.items() if key not in _LEFT_OUT}


def _objects(manifests):
    metadata = [(manifest["kind"], manifest["metadata"]) for manifest in json.loads(text(manifests))]
    return [f"{kind} {named.get('namespace', '')}/{named['name']}" for kind, named in metadata]


def _document(value):
    return json.loads(text(value))


_PARSED = {
    "Manifest": _objects,
    "Values": _document,
    "ApplyPatchJson": _document,
    "RestorePatchJson": _document,
    "ConfigurationValues": _document,
}
_LEFT_OUT = {"aws:cdk:path", "aws:asset:path", "aws:asset:property", "aws:asset:is-bundled"}


def _without_hashes(value, names):
    if isinstance(value, str):
        return ASSET_HASH.sub(lambda found: f"<{names[found.group()]}>", value)
    if isinstance(value, list):
        return [_without_hashes(inner, names) for inner in value]
    if isinstance(value, dict):
        kept = {key: _without_hashes(inner, names) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if not (key == "Metadata" and inner == {})}
    return value


@pytest.mark.parametrize(("name", "stack"), [(name, stack) for name, stacks in STACKS.items() for stack in stacks])
def test_templates(assemblies, snapshot, name, stack):
    template = yaml.safe_dump(normalized(assemblies[name], stack), width=110, allow_unicode=True)
    assert template == snapshot(extension_class=YamlFile)


def test_no_template_is_left_out(assemblies):
    assert {name: tuple(assembly.templates) for name, assembly in assemblies.items()} == {
        name: tuple(sorted(stacks, key=list(assemblies[name].templates).index)) for name, stacks in STACKS.items()
    }


def test_every_hash_is_of_an_asset_that_has_a_name(assembly):
    for stack in assembly.templates:
        assert not ASSET_HASH.search(json.dumps(normalized(assembly, stack)))
