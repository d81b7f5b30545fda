"""The jobs that fill the model store: what they run, where, as whom, and when there is a new one."""

import ast
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings

from genai_finops.spec import artifacts, engine, names, placement
from k8s_charts import synthesize
from tests import strategies
from tests.platform_files import ROOT, platform
from tests.unit.k8s_charts.charts import (
    PLATFORMS,
    built,
    flat,
    jobs,
    manifests,
    model,
    named,
    of_kind,
    server,
    servers,
)

pytestmark = pytest.mark.synth

SCRIPTS = ROOT / "k8s_charts" / "scripts"
TOKEN = "hub-token"


def job(name, step, model_name):
    [found] = [one for one in jobs(manifests(name), step) if one["metadata"]["labels"][names.MODEL_LABEL] == model_name]
    return found


def pod(one):
    return one["spec"]["template"]["spec"]


def command(one):
    [container] = pod(one)["containers"]
    return container["command"]


def option(arguments, flag):
    return arguments[arguments.index(flag) + 1]


def variables(container):
    return {variable["name"]: variable for variable in container["env"]}


def test_every_model_is_staged_and_on_neuron_compiled_unless_its_servers_do_it():
    staged = [one["metadata"]["labels"][names.MODEL_LABEL] for one in jobs(manifests("rich"), "stage")]
    compiled = [one["metadata"]["labels"][names.MODEL_LABEL] for one in jobs(manifests("rich"), "compile")]
    assert staged == ["llama3-8b", "llama3-70b", "mistral-7b"]
    assert compiled == ["llama3-8b"]


def test_weights_are_staged_from_the_hub_at_their_commit():
    arguments = command(job("default", "stage", "llama3-8b"))
    wanted = model("default", "llama3-8b")
    assert arguments[:2] == ["python3", "/scripts/stage.py"]
    assert option(arguments, "--source") == "hub:meta-llama/Meta-Llama-3-8B-Instruct"
    assert option(arguments, "--name") == artifacts.weights_name(wanted)
    assert option(arguments, "--revision") == wanted.revision


def test_weights_are_staged_from_the_folder_of_their_revision_in_a_bucket():
    arguments = command(job("rich", "stage", "llama3-8b"))
    assert option(arguments, "--source") == f"s3://example-models/llama3-8b/{model('rich', 'llama3-8b').revision}"
    assert option(arguments, "--name") == "s3.example-models/llama3-8b"


def test_the_hubs_token_is_mounted_where_there_is_something_to_download_from_the_hub():
    [container] = pod(job("default", "stage", "llama3-8b"))["containers"]
    assert variables(container)["HF_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": TOKEN, "key": "value"}
    for one in (job("rich", "stage", "llama3-8b"), job("minimal", "stage", "qwen3-8b")):
        [container] = pod(one)["containers"]
        assert "HF_TOKEN" not in variables(container)
    assert TOKEN not in json.dumps(job("default", "compile", "llama3-8b"))


def test_what_compiles_is_told_what_the_server_is_told():
    one, wanted = job("default", "compile", "llama3-8b"), model("default", "llama3-8b")
    arguments = command(one)
    own, compiler = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    assert own[:2] == ["python3", "/scripts/compile.py"]
    assert compiler == ["python3", "/scripts/compile_model.py", *engine.engine_arguments(wanted)]
    assert compiler[2] == option(own, "--weights-link")
    serving = server(named(manifests("default"), "Deployment", "vllm-llama3-8b"))["args"]
    assert not set(compiler[3:]) - set(serving)
    assert json.loads(option(own, "--recipe")) == artifacts.recipe(wanted)
    assert option(own, "--timeout") == str(wanted.compile.timeout_minutes * 60)
    [container] = pod(one)["containers"]
    assert container["image"] == engine.image(wanted)


def test_variables_of_the_file_reach_the_compiler_too():
    found = built({"engine": {"env": {"NEURON_CC_FLAGS": "-O1"}}})
    [one] = jobs(found, "compile")
    [container] = pod(one)["containers"]
    assert variables(container)["NEURON_CC_FLAGS"]["value"] == "-O1"


@pytest.mark.parametrize("name", PLATFORMS)
def test_the_key_is_the_same_in_the_job_in_the_server_and_in_the_store(name):
    for wanted in platform(name).models:
        if not wanted.is_precompiled:
            continue
        compiling = job(name, "compile", wanted.name)
        serving = server(named(manifests(name), "Deployment", names.deployment(wanted)))["command"]
        key = option(command(compiling), "--key")
        assert key == option(serving, "--artifacts") == compiling["metadata"]["labels"][names.KEY_LABEL]
        assert f"artifacts/{key}" == artifacts.artifacts_prefix(wanted)
        assert option(command(compiling), "--recipe") == option(serving, "--recipe")


@pytest.mark.parametrize("name", PLATFORMS)
def test_weights_have_the_same_name_wherever_they_are_asked_for(name):
    for wanted in platform(name).models:
        staging = command(job(name, "stage", wanted.name))
        serving = server(named(manifests(name), "Deployment", names.deployment(wanted)))["command"]
        staged = f"{option(staging, '--name')}@{option(staging, '--revision')}"
        assert staged == option(serving, "--weights")
        assert f"weights/{staged.replace('@', '/')}" == artifacts.weights_prefix(wanted)
        if wanted.is_precompiled:
            assert staged == option(command(job(name, "compile", wanted.name)), "--weights")


@pytest.mark.parametrize("script", ["stage.py", "compile.py", "fetch.py", "await_weights.py", "drain.py"])
@pytest.mark.parametrize("name", PLATFORMS)
def test_scripts_know_every_option_that_they_are_given(name, script):
    """By the source of the script; what they do with it is tested with the scripts themselves."""
    source = ast.parse((SCRIPTS / script).read_text(encoding="utf-8"))
    known = {
        argument.value
        for call in ast.walk(source)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "add_argument"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    }
    calls = [found for found in commands(manifests(name)) if f"/scripts/{script}" in found[:2]]
    if script not in ("compile.py", "await_weights.py") or any(one.is_precompiled for one in platform(name).models):
        assert calls
    for found in calls:
        own = found[: found.index("--")] if "--" in found else found
        assert {argument for argument in own if argument.startswith("--")} <= known


def commands(found):
    for workload in (*of_kind(found, "Job"), *of_kind(found, "Deployment")):
        spec = pod(workload)
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            yield container.get("command", [])
            hook = container.get("lifecycle", {}).get("preStop")
            if hook:
                yield hook["exec"]["command"]


def test_graphs_are_compiled_on_their_own_size_with_devices_and_the_whole_host():
    one, wanted = job("default", "compile", "llama3-8b"), model("default", "llama3-8b")
    [term] = pod(one)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    sizes = {rule["key"]: rule["values"] for rule in term["matchExpressions"]}
    assert sizes["karpenter.k8s.aws/instance-size"] == ["8xlarge"]
    [container] = pod(one)["containers"]
    asked = container["resources"]["requests"]
    assert asked["aws.amazon.com/neuron"] == container["resources"]["limits"]["aws.amazon.com/neuron"] == "1"
    assert int(asked["memory"].removesuffix("Gi")) >= placement.compile_memory_gib(wanted)
    assert int(asked["memory"].removesuffix("Gi")) == 114


@pytest.mark.parametrize(
    ("spot", "compile_spot", "capacity_type"),
    [
        ("prefer", True, None),
        ("prefer", False, "on-demand"),
        ("only", True, "spot"),
        ("never", True, "on-demand"),
    ],
)
def test_a_compile_job_is_bought_as_the_file_allows(spot, compile_spot, capacity_type):
    [one] = jobs(built({"spot": spot, "compile": {"spot": compile_spot}}), "compile")
    assert pod(one)["nodeSelector"].get("karpenter.sh/capacity-type") == capacity_type


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_job_that_is_taken_away_has_not_failed_and_one_that_fails_ends(name):
    for one in of_kind(manifests(name), "Job"):
        spec = one["spec"]
        [rule] = spec["podFailurePolicy"]["rules"]
        assert rule == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        assert pod(one)["restartPolicy"] == "Never"
        assert spec["activeDeadlineSeconds"] > 0
        assert spec["ttlSecondsAfterFinished"] > 0
        annotations = spec["template"]["metadata"]["annotations"]
        assert annotations == {"karpenter.sh/do-not-disrupt": "true"}


def test_retries_and_time_are_those_of_the_file_and_all_attempts_fit_the_deadline():
    one, wanted = job("rich", "compile", "llama3-8b"), model("rich", "llama3-8b").compile
    assert one["spec"]["backoffLimit"] == wanted.retries
    assert one["spec"]["activeDeadlineSeconds"] > (wanted.retries + 1) * wanted.timeout_minutes * 60


def test_a_compile_job_waits_for_the_weights_that_another_job_stages():
    one = job("default", "compile", "llama3-8b")
    [wait] = pod(one)["initContainers"]
    assert wait["command"][:2] == ["python3", "/scripts/await_weights.py"]
    assert option(wait["command"], "--weights") == option(command(one), "--weights")


@pytest.mark.parametrize("name", PLATFORMS)
def test_each_step_has_its_own_identity_and_no_token_of_the_cluster(name):
    accounts = {"stage": names.STAGING_SERVICE_ACCOUNT, "compile": names.COMPILE_SERVICE_ACCOUNT}
    for step, account in accounts.items():
        for one in jobs(manifests(name), step):
            assert pod(one)["serviceAccountName"] == account
            assert pod(one)["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", PLATFORMS)
def test_jobs_can_do_no_more_than_they_need(name):
    for one in of_kind(manifests(name), "Job"):
        assert pod(one)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any("hostPath" in volume for volume in pod(one)["volumes"])
        for container in (*pod(one)["containers"], *pod(one).get("initContainers", [])):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }


def test_jobs_reach_names_https_and_their_identity_and_nobody_reaches_them():
    policy = named(manifests("default"), "NetworkPolicy", names.MODEL_SUPPLY)["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy
    ports = {(port["protocol"], port["port"]) for rule in policy["egress"] for port in rule["ports"]}
    assert ports == {("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 80)}
    for one in of_kind(manifests("default"), "Job"):
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert names.SUPPLY_LABEL in labels
        assert "app" not in labels  # or a Service would send requests there


def job_names(*models):
    return {one["metadata"]["name"] for one in of_kind(built(*models), "Job")}


@pytest.mark.parametrize(
    ("change", "new"),
    [
        ({"engine": {"max_num_seqs": 4}}, ["compile"]),
        ({"compile": {"timeout_minutes": 60}}, ["compile"]),
        ({"revision": "f" * 40}, ["compile", "stage"]),
        ({"engine": {"image": "example.com/vllm:1"}}, ["compile", "stage"]),
        ({"scaling": {"min_replicas": 2}}, []),
        ({"served_name": "another"}, []),
        ({"warm_capacity": {"replicas": 1}}, []),
    ],
    ids=str,
)
def test_a_change_of_what_a_job_is_made_of_is_a_new_job(change, new):
    """The pods of a Job cannot change: one that keeps its name with another content would be refused."""
    before, after = job_names({"name": "m"}), job_names({"name": "m", **change})
    assert sorted(name.split("-")[0] for name in after - before) == new


@given(strategies.platforms())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_names_of_jobs_fit_labels_whatever_the_platform(found):
    for one in of_kind(flat(synthesize(found)), "Job"):
        assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", one["metadata"]["name"])


def test_servers_and_jobs_of_a_model_have_the_same_image():
    """The image that a stage job brings to a node is there for a server that follows."""
    for name in PLATFORMS:
        for one in servers(manifests(name)):
            wanted = one["metadata"]["labels"][names.MODEL_LABEL]
            [staging] = pod(job(name, "stage", wanted))["containers"]
            assert staging["image"] == server(one)["image"]
