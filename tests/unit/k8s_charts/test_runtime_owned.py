"""A deploy never takes back what KEDA, the automation or a person has set."""

import pytest

from k8s_charts import RUNTIME_OWNED, split_runtime_owned
from k8s_charts.runtime_owned import runtime_owned_fields
from tests.unit.k8s_charts.charts import PLATFORMS, charts, manifests, of_kind

pytestmark = pytest.mark.synth

INITIAL = {("spec", "minReplicaCount"), ("spec", "maxReplicaCount")}
"""What a new object starts with; everything else that is owned at run time never stands in a manifest."""


@pytest.mark.parametrize("name", PLATFORMS)
def test_only_initial_replica_bounds_stand_in_manifests(name):
    for manifest in manifests(name):
        expected = INITIAL if manifest["kind"] == "ScaledObject" else set()
        if manifest["metadata"]["name"].startswith("warm-") and manifest["kind"] == "Deployment":
            expected = {("spec", "replicas")}
        assert set(runtime_owned_fields(manifest)) == expected


@pytest.mark.parametrize("name", PLATFORMS)
def test_nothing_owned_at_run_time_is_left_after_the_split(name):
    for manifest in manifests(name):
        bare, _ = split_runtime_owned(manifest)
        assert runtime_owned_fields(bare) == []


def test_the_patch_holds_what_was_taken():
    for scaled in of_kind(manifests("rich"), "ScaledObject"):
        bare, patch = split_runtime_owned(scaled)
        assert patch == {"spec": {key: scaled["spec"][key] for key in ("minReplicaCount", "maxReplicaCount")}}
        assert {**bare["spec"], **patch["spec"]} == scaled["spec"]


def test_a_manifest_without_such_fields_passes_unchanged():
    [deployment] = of_kind(charts("default")["vllm"], "Deployment")
    assert split_runtime_owned(deployment) == (deployment, None)


def test_the_original_is_not_touched():
    [scaled] = of_kind(charts("default")["keda"], "ScaledObject")
    before = dict(scaled["spec"])
    split_runtime_owned(scaled)
    assert scaled["spec"] == before


def test_annotations_of_automation_and_people_are_taken_by_pattern():
    scaled = {
        "kind": "ScaledObject",
        "metadata": {
            "name": "x",
            "annotations": {
                "autoscaling.keda.sh/paused": "true",
                "autoscaling.keda.sh/paused-replicas": "0",
                "genai-finops/hold-until": "2026-12-02T00:00:00Z",
            },
        },
        "spec": {},
    }
    bare, patch = split_runtime_owned(scaled)
    assert bare == {"kind": "ScaledObject", "metadata": {"name": "x"}, "spec": {}}
    assert patch == {"metadata": {"annotations": scaled["metadata"]["annotations"]}}


def test_the_limit_that_closes_a_pool_is_taken_and_the_others_stay():
    pool = {"kind": "NodePool", "metadata": {}, "spec": {"limits": {"nodes": 0, "cpu": "64"}}}
    assert split_runtime_owned(pool) == (
        {"kind": "NodePool", "metadata": {}, "spec": {"limits": {"cpu": "64"}}},
        {"spec": {"limits": {"nodes": 0}}},
    )


def test_every_owned_field_says_who_owns_it_and_why():
    assert all(owned.owner and owned.reason for owned in RUNTIME_OWNED)
