"""Graphs are compiled once per key and never half stored: compile.py with a stand-in compiler, S3 over HTTP."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.integration.supply.faulty_s3 import until
from tests.integration.supply.pods import (
    LIMIT_SECONDS,
    PREFIX,
    RECIPE,
    SMALL,
    WEIGHTS,
    content,
    files_of,
    kill,
    until_logged,
)

COMPILER = Path(__file__).with_name("stand_in_compiler.py")
KEY = "0a1b2c3d"
STORED = f"artifacts/{KEY}"
MODEL = {"config.json": b"{}", SMALL: content(300_000)}


@pytest.fixture
def staged(bucket):
    bucket.has(PREFIX, MODEL)
    return bucket


def arguments(pod, how="", *, key=KEY, recipe=RECIPE, timeout=60, command=None):
    own = ["--key", key, "--recipe", json.dumps(recipe), "--timeout", timeout, "--output", pod.folder / "output"]
    weights = ["--weights", WEIGHTS, "--weights-link", pod.weights, "--cache", pod.folder / "cache"]
    compiler = [sys.executable, COMPILER, pod.weights, runs_file(pod), how]
    return ["compile.py", *own, *weights, "--", *(command or compiler)]


def runs_file(pod):
    return pod.folder.parent / "runs"


def runs(pod):
    return [int(line) for line in runs_file(pod).read_text().split()] if runs_file(pod).exists() else []


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_was_compiled_is_stored_with_its_recipe_and_can_be_fetched(staged, node):
    pod, server = node.pod(), node.pod()
    assert pod.run(*arguments(pod)) == 0, pod.log
    manifest = staged.json(f"{STORED}/manifest.json")
    assert (manifest["version"], manifest["kind"], manifest["name"]) == (1, "artifacts", KEY)
    assert manifest["recipe"] == RECIPE
    wanted = ["--artifacts", KEY, "--artifacts-link", server.artifacts, "--recipe", json.dumps(RECIPE)]
    assert server.fetch(*wanted) == 0, server.log
    assert files_of(server.artifacts) == files_of(pod.folder / "output")
    assert set(files_of(server.artifacts)) == {one["path"] for one in manifest["files"]}


def test_the_manifest_is_written_after_all_files(staged, node, s3):
    pod = node.pod()
    pod.run(*arguments(pod))
    written = [one.key for one in s3.seen("PUT") if "lease" not in one.key]
    assert written[-1] == f"{STORED}/manifest.json"
    assert len(written) == 4


def test_a_key_that_is_stored_is_not_compiled_again(staged, node, s3):
    first, again = node.pod(), node.pod()
    first.run(*arguments(first))
    before = len(s3.seen("PUT"))
    assert again.run(*arguments(again)) == 0
    assert len(runs(again)) == 1
    assert len(s3.seen("PUT")) == before


def test_of_two_jobs_one_compiles_and_the_other_finds_it_done(staged, node, s3):
    held = s3.on("PUT", "manifest.json", hold=True)
    first, second = node.pod(LEASE_SECONDS="5"), node.pod(LEASE_SECONDS="5")
    one = first.start(*arguments(first))
    until(held.reached.is_set, "the manifest")
    two = second.start(*arguments(second))
    until_logged(second, "another job is compiling")
    s3.heal()
    assert (one.wait(LIMIT_SECONDS), two.wait(LIMIT_SECONDS)) == (0, 0), first.log + second.log
    assert len(runs(first)) == 1
    kill(one)
    kill(two)


def test_a_job_that_works_for_longer_than_its_lease_keeps_it(staged, node, s3):
    held = s3.on("PUT", "manifest.json", hold=True)
    first, second = node.pod(LEASE_SECONDS="3"), node.pod(LEASE_SECONDS="3")
    one = first.start(*arguments(first))
    until(held.reached.is_set, "the manifest")
    two = second.start(*arguments(second))
    until_logged(second, "another job is compiling")
    renewals = len(s3.seen("PUT", "lease.json"))
    until(lambda: len(s3.seen("PUT", "lease.json")) > renewals + 6, "renewals of the lease")
    s3.heal()
    assert (one.wait(LIMIT_SECONDS), two.wait(LIMIT_SECONDS)) == (0, 0), first.log + second.log
    assert len(runs(first)) == 1
    kill(one)
    kill(two)


def test_when_a_job_dies_the_next_takes_over_after_its_lease(staged, node):
    first, second = node.pod(LEASE_SECONDS="2"), node.pod(LEASE_SECONDS="2")
    dead = first.start(*arguments(first, "hang"))
    until(lambda: len(runs(first)) == 2, "the compiler")
    kill(dead)
    for pid in runs(first):
        os.kill(pid, signal.SIGKILL)
    assert second.run(*arguments(second)) == 0, second.log
    assert "another job is compiling" in second.log
    assert f"{STORED}/manifest.json" in staged.stored()


def test_a_job_that_stood_still_for_longer_than_its_lease_writes_nothing_more(staged, node):
    first, second = node.pod(LEASE_SECONDS="1"), node.pod(LEASE_SECONDS="1")
    frozen = first.start(*arguments(first, command=[*_until_file(first.folder / "go"), first.folder / "output"]))
    until_logged(first, "compiling: ")
    os.kill(frozen.pid, signal.SIGSTOP)
    assert second.run(*arguments(second)) == 0, second.log
    manifest = staged.json(f"{STORED}/manifest.json")
    before = staged.stored(STORED)
    os.kill(frozen.pid, signal.SIGCONT)
    (first.folder / "go").touch()
    assert frozen.wait(LIMIT_SECONDS) == 1, first.log
    assert "was lost" in first.message
    assert staged.json(f"{STORED}/manifest.json") == manifest
    assert staged.stored(STORED) == before
    kill(frozen)


def _until_file(path):
    """A compiler that waits for a file, and then writes one of its own."""
    script = f"while [ ! -e {path} ]; do sleep 0.05; done; echo graph > $0/model.pt"
    return ["sh", "-c", script]


def test_a_compiler_that_fails_is_quoted(staged, node):
    pod = node.pod()
    assert pod.run(*arguments(pod, "fail")) == 1
    assert "The compiler failed with status 70. It said last:" in pod.message
    assert "[NCC_EVRF007] the graph does not fit" in pod.message
    assert f"{STORED}/manifest.json" not in staged.stored()


def test_a_failure_gives_the_lease_back_at_once(staged, node):
    failing, again = node.pod(), node.pod()
    failing.run(*arguments(failing, "fail"))
    assert again.run(*arguments(again)) == 0
    assert "another job is compiling" not in again.log


def test_a_compiler_killed_for_its_memory_is_called_that(staged, node):
    pod = node.pod()
    assert pod.run(*arguments(pod, "killed")) == 1
    assert "ran out of memory" in pod.message


def test_a_compiler_that_hangs_is_stopped_with_all_it_has_started(staged, node):
    pod = node.pod(STOP_SECONDS="0.3")
    assert pod.run(*arguments(pod, "hang", timeout=1.5)) == 1
    assert "The compiler took longer than 1.5 s and was stopped. It said last:\ncompiling every bucket" in pod.message
    compiler, child = runs(pod)
    until(lambda: not is_alive(compiler) and not is_alive(child), "the end of the compiler")


def test_sigterm_stops_the_compiler_and_gives_the_lease_back(staged, node):
    pod, again = node.pod(STOP_SECONDS="0.3"), node.pod()
    process = pod.start(*arguments(pod, "hang"))
    until(lambda: len(runs(pod)) == 2, "the compiler")
    compiler, child = runs(pod)
    process.terminate()
    assert process.wait(20) == 128 + signal.SIGTERM
    until(lambda: not is_alive(compiler) and not is_alive(child), "the end of the compiler")
    assert again.run(*arguments(again)) == 0
    assert "another job is compiling" not in again.log
    kill(process)


def test_a_compiler_that_leaves_nothing_is_a_failure(staged, node):
    pod = node.pod()
    assert pod.run(*arguments(pod, "nothing")) == 1
    assert "left nothing" in pod.message


def test_leftovers_of_an_earlier_attempt_are_not_taken_for_graphs(staged, node):
    """The Neuron loader would load them, and compile nothing."""
    pod = node.pod()
    (pod.folder / "output" / "weights").mkdir(parents=True)
    (pod.folder / "output" / "weights" / "stale").touch()
    assert pod.run(*arguments(pod)) == 0, pod.log
    assert "weights/stale" not in {one["path"] for one in staged.json(f"{STORED}/manifest.json")["files"]}


def test_killed_before_the_manifest_the_artifacts_are_not_there(staged, node, s3):
    held = s3.on("PUT", "manifest.json", hold=True, deny=True)
    pod, server = node.pod(LEASE_SECONDS="3"), node.pod()
    process = pod.start(*arguments(pod))
    until(held.reached.is_set, "the manifest")
    kill(process)
    s3.heal()
    assert server.fetch("--artifacts", KEY, "--recipe", json.dumps(RECIPE)) == 1
    assert f"No compiled artifacts with key {KEY}" in server.message
    again = node.pod(LEASE_SECONDS="3")
    assert again.run(*arguments(again)) == 0, again.log
    assert server.fetch("--artifacts", KEY, "--recipe", json.dumps(RECIPE)) == 0, server.log


def test_artifacts_damaged_in_the_store_are_compiled_again(staged, node):
    first, again, server = node.pod(), node.pod(), node.pod()
    first.run(*arguments(first))
    staged.put(f"{STORED}/model.pt", b"damaged")
    assert again.run(*arguments(again)) == 0, again.log
    assert len(runs(again)) == 2
    assert server.fetch("--artifacts", KEY) == 0, server.log


def test_one_key_for_two_recipes_is_an_error(staged, node):
    first, other = node.pod(), node.pod()
    first.run(*arguments(first))
    assert other.run(*arguments(other, recipe={**RECIPE, "max_model_len": 8192})) == 1
    assert "max_model_len: 4096 -> 8192" in other.message
    assert len(runs(other)) == 1


def test_without_staged_weights_nothing_is_compiled(bucket, node):
    pod = node.pod()
    assert pod.run(*arguments(pod)) == 1
    assert f"The weights {WEIGHTS} are not in the store" in pod.message
    assert runs(pod) == []


def test_a_compiler_that_is_not_there_is_named(staged, node):
    pod = node.pod()
    assert pod.run(*arguments(pod, command=["no-such-compiler"])) == 1
    assert "no-such-compiler cannot be started" in pod.message


# The real compiler's script, with a stand-in for vLLM

VLLM = {
    "vllm/__init__.py": """
import json, os, pathlib
class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model")
        parser.add_argument("--tensor-parallel-size", type=int, default=1)
        parser.add_argument("--additional-config", type=json.loads, default={})
        return parser
    from_cli_args = staticmethod(vars)
class LLMEngine:
    @staticmethod
    def from_engine_args(arguments, usage_context):
        output = pathlib.Path(os.environ["NEURON_COMPILED_ARTIFACTS"])
        (output / "model.pt").write_text(json.dumps({**arguments, "context": usage_context}))
        if arguments["additional_config"]["override_neuron_config"].get("save_sharded_checkpoint"):
            (output / "weights").mkdir()
            for rank in range(arguments["tensor_parallel_size"]):
                (output / "weights" / f"tp{rank}_sharded_checkpoint.safetensors").touch()
""",
    "vllm/usage/usage_lib.py": "class UsageContext:\n    OPENAI_API_SERVER = 'server'\n",
    "vllm/utils/argparse_utils.py": "from argparse import ArgumentParser as FlexibleArgumentParser\n",
}


def compile_model(node, *arguments, config):
    for path, source in VLLM.items():
        (node.folder / "image" / path).parent.mkdir(parents=True, exist_ok=True)
        (node.folder / "image" / path).write_text(source)
    output = node.folder / "graphs"
    output.mkdir()
    pod = node.pod(PYTHONPATH=str(node.folder / "image"), NEURON_COMPILED_ARTIFACTS=str(output))
    extra = ["--additional-config", json.dumps({"override_neuron_config": config})]
    return pod, output, pod.run("compile_model.py", *arguments, *extra)


SERVE = ("/models/weights", "--port", 8000, "--served-model-name", "chat", "--tensor-parallel-size", 2)


def test_the_engine_is_loaded_with_what_the_server_would_give_it(node):
    config = {"save_sharded_checkpoint": True, "context_encoding_buckets": [512]}
    pod, output, status = compile_model(node, *SERVE, config=config)
    assert status == 0, pod.log
    assert json.loads((output / "model.pt").read_text()) == {
        "model": "/models/weights",
        "tensor_parallel_size": 2,
        "additional_config": {"override_neuron_config": config},
        "context": "server",
    }


def test_artifacts_without_the_weights_of_each_core_are_refused(node):
    pod, _, status = compile_model(node, *SERVE, config={})
    assert status == 1
    assert "not written tp0_sharded_checkpoint.safetensors, tp1_sharded_checkpoint.safetensors" in pod.log
    assert "save_sharded_checkpoint" in pod.log
