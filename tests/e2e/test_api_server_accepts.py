"""What the charts make, held against a real API server with the real definitions, admission and pod security."""

import copy
import json
import time

import pytest

import k8s_charts
from genai_finops.rehearsal.control_plane import KubectlError
from genai_finops.spec import names
from tests.platform_files import FILES, platform

pytestmark = [pytest.mark.e2e, pytest.mark.synth]

WAIT_SECONDS = 60
HELM_NAMESPACES = (names.MONITORING_NAMESPACE, "keda")


@pytest.fixture(scope="module")
def charts():
    return {name: k8s_charts.synthesize(platform(name)) for name in FILES}


@pytest.fixture(scope="module")
def applied(control_plane, charts):
    """The manifests of a platform, applied in their order with unknown fields refused."""
    control_plane.apply(
        [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in HELM_NAMESPACES]
    )

    def apply(name):
        for objects in charts[name].values():
            control_plane.apply(objects)
        return [manifest for objects in charts[name].values() for manifest in objects]

    return apply


def until(control_plane, *arguments, holds):
    """The objects that a query gives, once `holds` is true of them."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        found = json.loads(control_plane.kubectl("get", *arguments, "-o", "json"))["items"]
        if holds(found):
            return found
        assert time.monotonic() < deadline, json.dumps(found, indent=1)[-3000:]
        time.sleep(0.2)


@pytest.mark.parametrize("name", FILES)
def test_every_manifest_is_accepted_with_unknown_fields_refused(applied, name):
    assert len(applied(name)) > 20


@pytest.mark.parametrize("name", FILES)
def test_applying_the_same_again_changes_nothing(control_plane, applied, name):
    def generations():
        kinds = "deployments,nodepools,ec2nodeclasses,scaledobjects,podmonitors,networkpolicies,prometheusrules"
        items = json.loads(control_plane.kubectl("get", kinds, "-A", "-o", "json"))["items"]
        return {(item["kind"], item["metadata"]["name"]): item["metadata"]["generation"] for item in items}

    applied(name)
    before = generations()
    applied(name)
    assert len(before) > 5
    assert generations() == before


def test_pod_security_and_quota_let_every_server_s_pod_in(control_plane, applied):
    applied("rich")
    wanted = {names.deployment(model) for model in platform("rich").models}

    def all_have_pods(pods):
        return wanted <= {pod["metadata"]["name"].rsplit("-", 2)[0] for pod in pods}

    pods = until(control_plane, "pods", "-n", names.MODEL_NAMESPACE, holds=all_have_pods)
    assert {pod["status"]["phase"] for pod in pods} == {"Pending"}  # there are no nodes


def test_pod_security_lets_every_job_and_placeholder_in_and_the_cache_is_bound(control_plane, applied):
    """The security level forbids pods to name a folder of their node; through the claim they share the one there is."""
    manifests = applied("rich")
    jobs = {manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "Job"}
    warm = {names.warm_deployment(model) for model in platform("rich").models if model.warm_capacity.placeholders}
    assert len(jobs) == 4
    assert warm

    def all_have_pods(pods):
        found = {pod["metadata"]["name"] for pod in pods}
        return all(any(pod.startswith(f"{owner}-") for pod in found) for owner in jobs | warm)

    until(control_plane, "pods", "-n", names.MODEL_NAMESPACE, holds=all_have_pods)

    def is_bound(claims):
        return [claim["status"].get("phase") for claim in claims] == ["Bound"]

    [claim] = until(control_plane, "persistentvolumeclaims", "-n", names.MODEL_NAMESPACE, holds=is_bound)
    assert claim["spec"]["volumeName"] == names.MODEL_CACHE


def test_a_job_that_changes_gets_another_name_since_it_could_not_be_changed(control_plane, applied, charts):
    applied("minimal")
    [stage] = [
        m for m in charts["minimal"]["supply"] if m["metadata"].get("labels", {}).get(names.SUPPLY_LABEL) == "stage"
    ]
    other = copy.deepcopy(stage)
    other["spec"]["template"]["spec"]["containers"][0]["command"].append("--another")
    with pytest.raises(KubectlError, match="field is immutable"):
        control_plane.apply([other])


def test_what_is_wrong_is_refused(control_plane, charts):
    """Otherwise the tests above say nothing."""
    [pool] = [m for m in charts["minimal"]["karpenter"] if m["metadata"]["name"] == "inf2-spot"]
    for path, value, reason in (
        (("spec", "weight"), 101, "weight"),
        (("spec", "template", "spec", "expireAfter"), "soon", "expireAfter"),
        (("spec", "template", "spec", "taintz"), [], "taintz"),
    ):
        spoiled = copy.deepcopy(pool)
        place = spoiled
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(KubectlError, match=reason):
            control_plane.apply([spoiled])


def as_the_stack_does(control_plane, manifests):
    """CDK's resource applies on the client's side, so what it once set and sets no more is taken away."""
    control_plane.kubectl("apply", "-f", "-", objects=manifests)


def test_a_deploy_reverts_nothing_that_runs(control_plane, charts):
    """Replicas by the autoscaler, pauses, minimum and maximum by the automation, a shut pool."""
    objects = [
        k8s_charts.split_runtime_owned(manifest)[0]
        for chart in ("namespace", "karpenter", "vllm", "keda")
        for manifest in charts["minimal"][chart]
    ]
    [model] = platform("minimal").models
    server, space = names.deployment(model), names.MODEL_NAMESPACE
    for kind in ("scaledobject", "deployment"):
        control_plane.kubectl("delete", kind, server, "-n", space, "--ignore-not-found")
    as_the_stack_does(control_plane, objects)
    control_plane.kubectl("scale", "deployment", server, "-n", space, "--replicas=3")
    control_plane.kubectl("annotate", "scaledobject", server, "-n", space, "autoscaling.keda.sh/paused-replicas=0")
    bounds = json.dumps({"spec": {"minReplicaCount": 4, "maxReplicaCount": 5}})
    control_plane.kubectl("patch", "scaledobject", server, "-n", space, "--type=merge", "-p", bounds)
    shut = json.dumps({"spec": {"limits": {"nodes": "0"}}})
    control_plane.kubectl("patch", "nodepool", "inf2-spot", "--type=merge", "-p", shut)

    changed = copy.deepcopy(objects)
    [deployment] = [m for m in changed if m["kind"] == "Deployment"]
    deployment["spec"]["template"]["metadata"]["annotations"] = {"changed": "yes"}
    as_the_stack_does(control_plane, changed)

    def read(kind, name, *where):
        return json.loads(control_plane.kubectl("get", kind, name, *where, "-o", "json"))

    served = read("deployment", server, "-n", space)["spec"]
    scaled = read("scaledobject", server, "-n", space)
    assert served["template"]["metadata"]["annotations"]["changed"] == "yes"
    assert served["replicas"] == 3
    assert scaled["metadata"]["annotations"]["autoscaling.keda.sh/paused-replicas"] == "0"
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (4, 5)
    assert read("nodepool", "inf2-spot")["spec"]["limits"]["nodes"] == "0"
