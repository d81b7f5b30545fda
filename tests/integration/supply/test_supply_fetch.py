"""A pod gets exactly the bytes that were staged, or says why not: fetch.py against S3 over HTTP, on bad days too."""

import json
import os
import re
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.supply.faulty_s3 import until
from tests.integration.supply.pods import (
    BIG,
    LIMIT_SECONDS,
    MEBIBYTE,
    MODEL,
    NAME,
    PREFIX,
    RECIPE,
    SMALL,
    WEIGHTS,
    content,
    files_of,
    kill,
    until_logged,
)

PART_BYTES = 16 * MEBIBYTE
GRAPHS = {"model.pt": content(1000, 9), "weights/tp0_sharded_checkpoint.safetensors": content(2 * MEBIBYTE, 10)}
COMPILE = "make compile MODEL=tiny"
STAGE = "make stage MODEL=tiny"


@pytest.fixture
def staged(bucket):
    bucket.has(PREFIX, MODEL)
    return bucket


def compiled(bucket, key, **changes):
    bucket.has(f"artifacts/{key}", GRAPHS, kind="artifacts", recipe={**RECIPE, **changes})


def with_artifacts(pod, key, recipe=RECIPE):
    wanted = ["--recipe", json.dumps(recipe)] if recipe else []
    return ["--artifacts", key, "--artifacts-link", pod.artifacts, *wanted, "--compile-command", COMPILE]


# What a good day looks like


def test_a_pod_sees_what_was_staged(staged, node):
    pod = node.pod()
    assert pod.fetch() == 0, pod.log
    assert files_of(pod.weights) == MODEL
    assert pod.message == ""
    assert re.search(r"5 files, 40\.9 MB in [\d.]+ s \(\d+ MB/s\), 16 connections", pod.log)


def test_large_files_come_as_ranges_and_each_byte_once(staged, node, s3):
    node.pod().fetch()
    ranges = sorted(one.range for one in s3.seen("GET", BIG))
    assert ranges == sorted(
        f"bytes={start}-{min(start + PART_BYTES, len(MODEL[BIG])) - 1}"
        for start in range(0, len(MODEL[BIG]), PART_BYTES)
    )


def test_weights_and_artifacts_are_linked_into_the_pod(staged, node):
    compiled(staged, "k1")
    pod = node.pod()
    assert pod.fetch(*with_artifacts(pod, "k1")) == 0, pod.log
    assert files_of(pod.artifacts) == GRAPHS
    assert files_of(pod.weights) == MODEL


def test_the_next_pod_of_the_node_starts_without_s3(staged, node, s3):
    compiled(staged, "k1")
    first, second = node.pod(), node.pod(AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert first.fetch(*with_artifacts(first, "k1")) == 0
    asked = len(s3.requests)
    assert second.fetch(*with_artifacts(second, "k1")) == 0, second.log
    assert files_of(second.weights) == MODEL
    assert len(s3.requests) == asked


def test_presharded_artifacts_need_no_tensors_of_the_weights(staged, node, s3):
    pod = node.pod()
    assert pod.fetch("--no-tensors") == 0, pod.log
    assert files_of(pod.weights) == {path: body for path, body in MODEL.items() if path not in (BIG, SMALL)}
    assert not s3.seen("GET", ".safetensors")


def test_a_pod_that_needs_the_tensors_gets_them_beside_one_that_does_not(staged, node):
    lean, whole = node.pod(), node.pod()
    assert (lean.fetch("--no-tensors"), whole.fetch()) == (0, 0)
    assert files_of(whole.weights) == MODEL
    assert BIG not in files_of(lean.weights)


def test_a_restart_replaces_the_link(staged, node):
    staged.has("weights/other/r1", {"config.json": b"{}"})
    pod = node.pod()
    assert pod.fetch(weights="other@r1") == 0
    assert pod.fetch() == 0
    assert files_of(pod.weights) == MODEL


def test_a_folder_in_the_place_of_the_link_is_not_removed(staged, node):
    pod = node.pod()
    pod.weights.mkdir(parents=True)
    assert pod.fetch() == 1
    assert "is no link" in pod.message


# Then the server


def test_the_server_takes_the_place_of_the_script(staged, node):
    pod = node.pod()
    command = ["sh", "-c", 'echo "$$ $(cat "$0/config.json")"', pod.weights]
    process = pod.start_fetch("--", *command)
    said, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert said.splitlines()[-1] == f"{process.pid} {MODEL['config.json'].decode()}"


def test_the_server_gets_sigterm_itself(staged, node):
    pod = node.pod()
    process = pod.start_fetch("--", "sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done")
    until(lambda: "up" in process.stdout.readline(), "the server")
    process.terminate()
    assert process.wait(10) == 7
    kill(process)


def test_a_server_that_cannot_be_started_is_named(staged, node):
    pod = node.pod()
    assert pod.fetch("--", "no-such-server") == 1
    assert "no-such-server cannot be started" in pod.message


# Interrupted


def test_a_broken_connection_goes_on_at_the_byte_it_had_come_to(staged, node, s3):
    s3.on("GET", BIG, cut_after=MEBIBYTE + 5, times=4)
    pod = node.pod()
    assert pod.fetch() == 0, pod.log
    assert files_of(pod.weights) == MODEL
    starts = [int(one.range[len("bytes=") :].split("-")[0]) for one in s3.seen("GET", BIG)]
    assert len(starts) == len(set(starts)) == 3 + 4


def test_a_store_that_never_delivers_is_given_up_with_its_address(staged, node, s3):
    s3.on("GET", SMALL, cut_after=0)
    pod = node.pod()
    assert pod.fetch() == 1
    assert f"s3://{staged.name}/{PREFIX}/{SMALL} does not arrive" in pod.message


def test_after_a_kill_only_what_was_not_finished_comes_again(staged, node, s3):
    held = s3.on("GET", BIG, hold=True)
    first = node.pod().start_fetch()
    until(held.reached.is_set, "the large file")
    until(lambda: node.partial(SMALL).exists(), "the small file")
    kill(first)
    s3.heal()

    again = node.pod()
    assert again.fetch() == 0, again.log
    assert files_of(again.weights) == MODEL
    assert len(s3.seen("GET", SMALL)) == 1
    assert "are here from an earlier attempt" in again.log
    assert not node.partial("").exists()


def test_a_killed_download_is_not_complete_for_anybody(staged, node, s3):
    held = s3.on("GET", SMALL, hold=True)
    first = node.pod().start_fetch()
    until(held.reached.is_set, "the small file")
    assert not (node.cache / PREFIX).exists()
    kill(first)
    assert not (node.cache / PREFIX).exists()


def test_sigterm_ends_a_download_at_once(staged, node, s3):
    held = s3.on("GET", BIG, hold=True)
    pod = node.pod()
    process = pod.start_fetch()
    until(held.reached.is_set, "the large file")
    process.terminate()
    assert process.wait(10) == 128 + signal.SIGTERM
    assert "SIGTERM" in pod.message
    kill(process)


def test_a_slow_network_is_reported_and_not_cut_off(staged, node, s3):
    s3.on("GET", SMALL, bytes_per_second=2 * MEBIBYTE)
    pod = node.pod(PROGRESS_SECONDS="0.3")
    assert pod.fetch() == 0, pod.log
    assert len(re.findall(r"… [\d.]+ MB in [\d.]+ s \(\d+ MB/s\) of 40\.9 MB", pod.log)) >= 2


# Damaged


@pytest.mark.parametrize("body", [content(len(MODEL[SMALL]), 99), MODEL[SMALL][:-1], MODEL[SMALL] + b"x"])
def test_a_file_that_was_damaged_in_the_store_never_reaches_a_server(staged, node, body):
    staged.put(f"{PREFIX}/{SMALL}", body)
    pod = node.pod()
    assert pod.fetch("--stage-command", STAGE) == 1
    assert f"{PREFIX}/{SMALL} is damaged" in pod.message
    assert f"`{STAGE}` repairs it" in pod.message
    assert not (node.cache / PREFIX).exists()
    assert not pod.weights.exists()


def test_a_file_that_is_gone_from_the_store_is_named(staged, node):
    staged.remove(f"{PREFIX}/{SMALL}")
    pod = node.pod()
    assert pod.fetch() == 1
    assert f"{PREFIX}/{SMALL} is damaged: it is gone" in pod.message


def test_a_file_cut_short_on_the_node_is_brought_again(staged, node):
    assert node.pod().fetch() == 0
    os.truncate(node.cache / PREFIX / BIG, 100)
    again = node.pod()
    assert again.fetch() == 0
    assert f"is damaged ({BIG})" in again.log
    assert files_of(again.weights) == MODEL


def test_changed_bytes_on_the_node_are_found_when_hashes_are_checked(staged, node):
    assert node.pod().fetch() == 0
    with (node.cache / PREFIX / BIG).open("r+b") as file:
        file.seek(12345)
        file.write(b"damaged")
    again = node.pod()
    assert again.fetch("--check", "hashes") == 0
    assert files_of(again.weights) == MODEL


def test_a_repair_does_not_wait_for_a_server_that_uses_the_entry(staged, node):
    running = node.pod().start_fetch("--", "sleep", "300")
    until(lambda: (node.cache / PREFIX).exists(), "the entry")
    until(lambda: _is_running(running.pid, "sleep"), "the server")
    os.truncate(node.cache / PREFIX / SMALL, 1)
    again = node.pod()
    assert again.fetch() == 0, again.log
    assert files_of(again.weights) == MODEL
    kill(running)


def test_a_manifest_cannot_write_outside_of_its_folder(bucket, node):
    bucket.has(PREFIX, {"../../../escaped": b"x"})
    pod = node.pod()
    assert pod.fetch() == 1
    assert "is not a manifest" in pod.message
    assert not list(node.folder.rglob("escaped"))


# Two pods at once


def test_of_two_pods_one_downloads_and_the_other_waits(staged, node, s3):
    held = s3.on("GET", BIG, hold=True)
    first, second = node.pod(), node.pod()
    one = first.start_fetch()
    until(held.reached.is_set, "the large file")
    two = second.start_fetch()
    until_logged(second, "another pod of this node is bringing")
    s3.heal()
    assert (one.wait(LIMIT_SECONDS), two.wait(LIMIT_SECONDS)) == (0, 0)
    assert files_of(first.weights) == files_of(second.weights) == MODEL
    fetched = [(request.key, request.range) for request in s3.seen("GET")]
    assert len(fetched) == len(set(fetched))
    kill(one)
    kill(two)


def test_when_the_pod_that_downloads_dies_the_one_that_waits_goes_on(staged, node, s3):
    held = s3.on("GET", BIG, hold=True)
    one = node.pod().start_fetch()
    until(held.reached.is_set, "the large file")
    second = node.pod()
    two = second.start_fetch()
    until_logged(second, "another pod of this node is bringing")
    s3.heal()
    kill(one)
    assert two.wait(LIMIT_SECONDS) == 0, second.log
    assert files_of(second.weights) == MODEL
    kill(two)


# No room


@pytest.fixture
def small_disk(node):
    node.cache.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(node.cache)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a disk of 48 MiB can only be mounted by root")
    yield
    subprocess.run(["umount", "-l", str(node.cache)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_is_said_before_anything_is_downloaded(staged, node, s3):
    (node.cache / "something-else").write_bytes(b"x" * 20 * MEBIBYTE)
    pod = node.pod()
    assert pod.fetch() == 1
    assert re.search(rf"No room for {PREFIX} on this node: [\d.]+ GiB are needed, [\d.]+ GiB are free", pod.message)
    assert not s3.seen("GET", BIG)
    assert not node.partial(BIG).exists()


@pytest.mark.usefixtures("small_disk")
def test_what_nobody_uses_makes_room(staged, node):
    staged.has("weights/old/r1", {"old.safetensors": content(20 * MEBIBYTE)})
    assert node.pod().fetch(weights="old@r1") == 0
    pod = node.pod()
    assert pod.fetch() == 0, pod.log
    assert "evicted weights/old/r1" in pod.log
    assert files_of(pod.weights) == MODEL


@pytest.mark.usefixtures("small_disk")
def test_what_a_dead_pod_had_begun_makes_room(staged, node, s3):
    staged.has("weights/old/r1", {"old.safetensors": content(20 * MEBIBYTE)})
    held = s3.on("GET", "old.safetensors", hold=True)
    dead = node.pod().start_fetch(weights="old@r1")
    until(held.reached.is_set, "the other model")
    kill(dead)
    s3.heal()
    pod = node.pod()
    assert pod.fetch() == 0, pod.log
    assert "which a pod that is gone had left" in pod.log


def test_a_write_that_fails_for_want_of_room_leaves_nothing_behind(staged, node):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 * MEBIBYTE, 8 * MEBIBYTE))

    pod = node.pod()
    assert pod.fetch(limit=limit) == 1
    assert re.search(r"The disk is full: [\d.]+ GiB are needed below .* and [\d.]+ GiB are free", pod.message)
    assert not node.partial("").exists()


def _is_running(pid, name):
    command = Path(f"/proc/{pid}/comm")
    return command.exists() and command.read_text().strip() == name


@pytest.fixture
def three_models(bucket):
    for name in "abc":
        bucket.has(f"weights/{name}/r1", {"model.safetensors": content(3 * MEBIBYTE)})


LIMIT = ("--cache-limit-gib", 7 / 1024)
"""Two of three models."""


def cached(node):
    return {path.parent.name for path in (node.cache / "weights").glob("*/*")}


@pytest.mark.usefixtures("three_models")
def test_the_least_recently_used_goes_first(node):
    for name in "abac":
        assert node.pod().fetch(*LIMIT, weights=f"{name}@r1") == 0
    assert cached(node) == {"a", "c"}


@pytest.mark.usefixtures("three_models")
def test_what_a_running_server_uses_stays_until_it_ends(node):
    server = node.pod().start_fetch(*LIMIT, "--", "sleep", "300", weights="a@r1")
    until(lambda: _is_running(server.pid, "sleep"), "the server")
    for name in "bc":
        assert node.pod().fetch(*LIMIT, weights=f"{name}@r1") == 0
    assert cached(node) == {"a", "c"}
    kill(server)
    assert node.pod().fetch(*LIMIT, weights="b@r1") == 0
    assert cached(node) == {"b", "c"}


@pytest.mark.usefixtures("three_models")
def test_when_all_is_in_use_the_pod_says_that_there_is_no_room(node):
    servers = [node.pod().start_fetch(*LIMIT, "--", "sleep", "300", weights=f"{name}@r1") for name in "ab"]
    for server in servers:
        until(lambda server=server: _is_running(server.pid, "sleep"), "the server")
    pod = node.pod()
    assert pod.fetch(*LIMIT, weights="c@r1") == 1
    assert "what else the cache holds is in use" in pod.message
    for server in servers:
        kill(server)


@pytest.mark.usefixtures("three_models")
def test_a_server_restarted_in_place_brings_back_what_was_evicted_meanwhile(node):
    pod = node.pod()
    assert pod.fetch(*LIMIT, weights="a@r1") == 0
    for name in "bc":
        node.pod().fetch(*LIMIT, weights=f"{name}@r1")
    assert not pod.weights.exists()
    assert pod.fetch(*LIMIT, "--", "test", "-f", pod.weights / "model.safetensors", weights="a@r1") == 0


# Missing or wrong


def test_missing_weights_name_the_command_that_stages_them(bucket, node):
    pod = node.pod()
    assert pod.fetch("--stage-command", STAGE) == 1
    assert f"The weights {WEIGHTS} are not in the store" in pod.message
    assert f"s3://{bucket.name}/{PREFIX}/manifest.json" in pod.message
    assert f"Run: {STAGE}" in pod.message


def test_weights_without_their_manifest_are_not_there(staged, node):
    staged.remove(f"{PREFIX}/manifest.json")
    pod = node.pod()
    assert pod.fetch() == 1
    assert "are not in the store" in pod.message


def test_missing_artifacts_name_key_nearest_difference_and_command(staged, node):
    compiled(staged, "far", max_model_len=1024, tensor_parallel_size=4)
    compiled(staged, "near", max_model_len=2048)
    pod = node.pod()
    assert pod.fetch(*with_artifacts(pod, "wanted")) == 1
    assert "No compiled artifacts with key wanted" in pod.message
    assert "The nearest, near, differs in (stored -> wanted): max_model_len: 2048 -> 4096." in pod.message
    assert f"Run: {COMPILE}" in pod.message


def test_an_empty_store_says_so(staged, node):
    pod = node.pod()
    assert pod.fetch(*with_artifacts(pod, "wanted")) == 1
    assert "The store has no artifacts at all." in pod.message


def test_missing_artifacts_start_no_server(staged, node):
    pod = node.pod()
    started = pod.folder / "started"
    assert pod.fetch(*with_artifacts(pod, "wanted"), "--", "touch", started) == 1
    assert not started.exists()


def test_artifacts_of_another_recipe_are_refused_from_the_store(staged, node):
    compiled(staged, "k1", buckets=[512, 2048])
    pod = node.pod()
    assert pod.fetch(*with_artifacts(pod, "k1")) == 1
    assert "Wrong artifacts" in pod.message
    assert "buckets: [512, 2048] -> [512, 4096]" in pod.message
    assert f"Run: {COMPILE}" in pod.message
    assert not (node.cache / "artifacts" / "k1").exists()


def test_artifacts_of_another_recipe_are_refused_from_the_node(staged, node):
    compiled(staged, "k1", buckets=[512, 2048])
    careless, careful = node.pod(), node.pod()
    assert careless.fetch(*with_artifacts(careless, "k1", recipe=None)) == 0
    assert careful.fetch(*with_artifacts(careful, "k1")) == 1
    assert "Wrong artifacts" in careful.message


def test_denied_access_names_prefix_and_role(staged, node, s3):
    s3.on("GET", "manifest.json", deny=True)
    pod = node.pod()
    assert pod.fetch() == 1
    assert "Access denied: arn:aws:sts::123456789012:" in pod.message
    assert f"may not read s3://{staged.name}/{PREFIX}/" in pod.message


def test_denied_access_to_one_file_names_it(staged, node, s3):
    s3.on("GET", SMALL, deny=True)
    pod = node.pod()
    assert pod.fetch() == 1
    assert f"may not read s3://{staged.name}/{PREFIX}/{SMALL}" in pod.message


def test_when_the_others_cannot_be_read_key_and_command_are_still_said(staged, node, s3):
    compiled(staged, "near", max_model_len=2048)
    s3.on("GET", "artifacts/near/manifest.json", deny=True)
    pod = node.pod()
    assert pod.fetch(*with_artifacts(pod, "wanted")) == 1
    assert "No compiled artifacts with key wanted" in pod.message
    assert "could not be listed: Access denied" in pod.message
    assert f"Run: {COMPILE}" in pod.message


@pytest.mark.parametrize("weights", [f"{NAME}@a/b", "../x@r1", "@r1"])
def test_a_name_that_could_leave_the_cache_is_refused(node, weights):
    assert node.pod().fetch(weights=weights) in (1, 2)


# Memory


def test_memory_does_not_grow_with_the_model(bucket, node):
    bucket.has("weights/large/r1", {"model.safetensors": bytes(192 * MEBIBYTE)})
    bucket.has("weights/small/r1", {"model.safetensors": bytes(100)})
    small, large = (peak_bytes(node.pod(), weights) for weights in ("small@r1", "large@r1"))
    assert large - small < 64 * MEBIBYTE


def peak_bytes(pod, weights):
    process = pod.start_fetch(weights=weights)
    peak = 0
    while process.poll() is None:
        try:
            found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
        except (FileNotFoundError, ProcessLookupError):
            break
        peak = max(peak, int(found[1]) * 1024) if found else peak
    assert process.wait(LIMIT_SECONDS) == 0, pod.log
    kill(process)
    return peak
