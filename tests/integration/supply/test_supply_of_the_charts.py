"""The commands of the manifests, run as they stand there: charts and scripts mean the same by each option."""

import pytest

from genai_finops.spec import artifacts
from tests.integration.supply.pods import SCRIPTS, files_of
from tests.unit.k8s_charts.charts import jobs, manifests, model, named, server

pytestmark = pytest.mark.synth

LLAMA = model("default", "llama3-8b")
WEIGHTS = {"config.json": b"{}", "tokenizer.json": b"[]", "model.safetensors": b"tensors"}
GRAPHS = {"model.pt": b"graphs", "weights/tp0_sharded_checkpoint.safetensors": b"half"}


def here(command, pod, node):
    """A container's command with the pod's paths: the script, and its arguments."""
    places = {"/scripts": str(SCRIPTS), "/cache": str(node.cache), "/models": str(pod.folder / "models")}
    places["/work"] = str(pod.folder / "work")
    python, *arguments = command
    assert python == "python3"
    moved = [next((a.replace(old, new, 1) for old, new in places.items() if a.startswith(old)), a) for a in arguments]
    return moved[0].removeprefix(f"{SCRIPTS}/"), moved[1:]


def init_container(name, model_name):
    deployment = named(manifests(name), "Deployment", f"vllm-{model_name}")
    [fetch] = deployment["spec"]["template"]["spec"]["initContainers"]
    return fetch["command"]


def run(command, pod, node, *more):
    script, arguments = here(command, pod, node)
    return pod.run(script, *arguments, *more)


def test_a_server_s_files_arrive_where_it_looks_without_the_tensors_that_its_graphs_have(bucket, node):
    bucket.has(artifacts.weights_prefix(LLAMA), WEIGHTS)
    bucket.has(artifacts.artifacts_prefix(LLAMA), GRAPHS, kind="artifacts", recipe=artifacts.recipe(LLAMA))
    pod = node.pod(MODEL_CACHE=str(node.cache))
    assert run(init_container("default", "llama3-8b"), pod, node, "--keep-free-percent", 0) == 0, pod.log
    assert set(files_of(pod.weights)) == {"config.json", "tokenizer.json"}
    assert files_of(pod.artifacts) == GRAPHS


def test_on_a_gpu_all_of_the_weights_arrive(bucket, node):
    mistral = model("rich", "mistral-7b")
    bucket.has(artifacts.weights_prefix(mistral), WEIGHTS)
    pod = node.pod(MODEL_CACHE=str(node.cache))
    assert run(init_container("rich", "mistral-7b"), pod, node, "--keep-free-percent", 0) == 0, pod.log
    assert files_of(pod.weights) == WEIGHTS


def test_without_its_graphs_a_server_fails_and_names_the_key_the_difference_and_the_command(bucket, node):
    other = LLAMA.model_copy(update={"engine": LLAMA.engine.model_copy(update={"max_num_seqs": 4})})
    bucket.has(artifacts.weights_prefix(LLAMA), WEIGHTS)
    bucket.has(artifacts.artifacts_prefix(other), GRAPHS, kind="artifacts", recipe=artifacts.recipe(other))
    pod = node.pod(MODEL_CACHE=str(node.cache))
    assert run(init_container("default", "llama3-8b"), pod, node, "--keep-free-percent", 0) == 1
    for part in (artifacts.key(LLAMA), artifacts.key(other), "max_num_seqs: 4 -> 8", "make compile MODEL=llama3-8b"):
        assert part in pod.message


def test_a_server_s_own_command_becomes_the_server(bucket, node):
    bucket.has(artifacts.weights_prefix(LLAMA), WEIGHTS)
    bucket.has(artifacts.artifacts_prefix(LLAMA), GRAPHS, kind="artifacts", recipe=artifacts.recipe(LLAMA))
    container = server(named(manifests("default"), "Deployment", "vllm-llama3-8b"))
    command = [*container["command"][: container["command"].index("--")], "--keep-free-percent", "0", "--"]
    pod = node.pod(MODEL_CACHE=str(node.cache))
    assert run([*command, "sh", "-c", "echo it runs >&2"], pod, node) == 0, pod.log
    assert "it runs" in pod.log


@pytest.mark.parametrize("again", [False, True])
def test_what_a_compile_job_stores_is_what_servers_ask_for(bucket, node, again):
    bucket.has(artifacts.weights_prefix(LLAMA), WEIGHTS)
    [job] = jobs(manifests("default"), "compile")
    [container] = job["spec"]["template"]["spec"]["containers"]
    own = container["command"][: container["command"].index("--")]
    pod = node.pod()
    compiler = 'test -f "$1/model.safetensors" && echo graphs >"$NEURON_COMPILED_ARTIFACTS/model.pt"'
    for _ in range(1 + again):
        assert run([*own, "--", "sh", "-c", compiler, "sh", str(pod.weights)], pod, node) == 0, pod.log
    assert pod.log.count("compiling: ") == 1
    stored = bucket.json(f"{artifacts.artifacts_prefix(LLAMA)}/manifest.json")
    assert stored["recipe"] == artifacts.recipe(LLAMA)
    waiting = job["spec"]["template"]["spec"]["initContainers"][0]["command"]
    assert run(waiting, pod, node) == 0, pod.log


def test_every_platform_s_stage_command_is_understood(node):
    """As far as its options: the sources are not here."""
    for name in ("default", "minimal", "rich"):
        for job in jobs(manifests(name), "stage"):
            [container] = job["spec"]["template"]["spec"]["containers"]
            pod = node.pod(HF_ENDPOINT="http://127.0.0.1:1", HF_HUB_ETAG_TIMEOUT="1")
            assert run(container["command"], pod, node) == 1
            assert "usage:" not in pod.log
