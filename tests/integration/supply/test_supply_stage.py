"""Weights reach the store whole, once and pinned: stage.py against a hub and S3 over HTTP."""

import hashlib

import pytest

from tests.integration.supply.faulty_s3 import until
from tests.integration.supply.hub import COMMIT, Hub
from tests.integration.supply.pods import (
    BIG,
    LIMIT_SECONDS,
    MEBIBYTE,
    MODEL,
    NAME,
    PREFIX,
    SMALL,
    WEIGHTS,
    content,
    files_of,
    kill,
)

TOKEN = "hf_testing"


@pytest.fixture
def hub():
    with Hub(NAME, dict(MODEL), token=TOKEN) as server:
        yield server


def arguments(pod, *more, revision=COMMIT):
    return ["stage.py", "--name", NAME, "--revision", revision, "--work-dir", pod.folder / "work", *more]


def worker(node, hub, token=TOKEN):
    return node.pod(HF_ENDPOINT=hub.url, HF_TOKEN=token, HF_HUB_DISABLE_PROGRESS_BARS="1")


def staged(bucket):
    return {key.removeprefix(f"{PREFIX}/"): bucket.get(key) for key in bucket.stored(PREFIX)}


def is_staged(bucket, files=MODEL):
    found = staged(bucket)
    manifest = bucket.json(f"{PREFIX}/manifest.json")
    del found["manifest.json"]
    assert found == files
    assert (manifest["version"], manifest["kind"], manifest["name"]) == (1, "weights", WEIGHTS)
    assert {one["path"]: (one["size"], one["sha256"]) for one in manifest["files"]} == {
        path: (len(body), hashlib.sha256(body).hexdigest()) for path, body in files.items()
    }
    return True


def test_a_commit_of_the_hub_is_staged_with_sizes_and_hashes(hub, bucket, node):
    pod = worker(node, hub)
    assert pod.run(*arguments(pod)) == 0, pod.log
    assert is_staged(bucket)


def test_what_was_staged_can_be_fetched(hub, bucket, node):
    pod, server = worker(node, hub), node.pod()
    assert pod.run(*arguments(pod)) == 0, pod.log
    assert server.fetch() == 0, server.log
    assert files_of(server.weights) == MODEL


def test_a_second_run_changes_nothing_and_asks_no_hub(hub, bucket, node, s3):
    first = worker(node, hub)
    first.run(*arguments(first))
    before, hub.token = len(s3.seen("PUT")), "closed"
    again = worker(node, hub)
    assert again.run(*arguments(again)) == 0
    assert len(s3.seen("PUT")) == before
    assert "is staged: 5 files, 40.9 MB" in again.log


def test_the_manifest_is_written_last(hub, bucket, node, s3):
    pod = worker(node, hub)
    pod.run(*arguments(pod))
    assert s3.seen("PUT")[-1].key == f"{PREFIX}/manifest.json"


def test_killed_before_the_manifest_it_is_not_staged_and_the_next_run_uploads_only_that(hub, bucket, node, s3):
    held = s3.on("PUT", "manifest.json", hold=True, deny=True)
    pod, early = worker(node, hub), node.pod()
    process = pod.start(*arguments(pod))
    until(held.reached.is_set, "the manifest")
    kill(process)
    assert early.fetch() == 1
    assert "are not in the store" in early.message
    s3.heal()

    before, downloads = len(s3.seen("PUT")), len(hub.downloads)
    again = worker(node, hub)
    assert again.run(*arguments(again)) == 0, again.log
    assert [one.key for one in s3.seen("PUT")[before:]] == [f"{PREFIX}/manifest.json"]
    assert len(hub.downloads) == downloads
    assert is_staged(bucket)


def test_killed_during_an_upload_the_next_run_repeats_that_file_alone(hub, bucket, node, s3):
    held = s3.on("PUT", SMALL, hold=True, deny=True)
    pod = worker(node, hub)
    process = pod.start(*arguments(pod))
    until(held.reached.is_set, "the small file")
    until(lambda: f"{PREFIX}/{BIG}" in bucket.stored(), "the large file")
    kill(process)
    s3.heal()
    before = len(s3.seen("PUT"))
    again = worker(node, hub)
    assert again.run(*arguments(again)) == 0, again.log
    assert [one.key for one in s3.seen("PUT")[before:]] == [f"{PREFIX}/{SMALL}", f"{PREFIX}/manifest.json"]
    assert is_staged(bucket)


def test_a_download_from_the_hub_that_breaks_is_resumed(hub, bucket, node):
    hub.cut_after[BIG] = 10 * MEBIBYTE
    pod = worker(node, hub)
    assert pod.run(*arguments(pod)) == 0, pod.log
    assert is_staged(bucket)
    resumed = [wanted for name, wanted in hub.downloads if name == BIG and wanted]
    assert resumed
    assert not resumed[0].startswith("bytes=0-")


def one_after_the_other(s3, held):
    """Both are about to write; S3 takes one and then the other (moto's own check would let both through at once)."""
    until(lambda: all(fault.reached.is_set() for fault in held), "both manifests")
    for fault in held:
        answered = s3.answered
        fault.released.set()
        until(lambda answered=answered: s3.answered > answered, "the answer")


def test_two_runs_at_once_leave_one_whole_model(hub, bucket, node, s3):
    held = [s3.on("PUT", "manifest.json", hold=True, times=1) for _ in range(2)]
    pods = [worker(node, hub), worker(node, hub)]
    processes = [pod.start(*arguments(pod)) for pod in pods]
    one_after_the_other(s3, held)
    assert [process.wait(LIMIT_SECONDS) for process in processes] == [0, 0], pods[0].log + pods[1].log
    assert is_staged(bucket)
    for process in processes:
        kill(process)


def test_two_runs_with_other_bytes_do_not_mix(bucket, node, s3):
    """A source that is not pinned: the second finds the first one's manifest and stops."""
    held = [s3.on("PUT", "manifest.json", hold=True, times=1) for _ in range(2)]
    with Hub(NAME, dict(MODEL)) as one, Hub(NAME, {**MODEL, SMALL: content(len(MODEL[SMALL]), 77)}) as other:
        pods = [worker(node, one), worker(node, other)]
        processes = [pod.start(*arguments(pod)) for pod in pods]
        one_after_the_other(s3, held)
        assert sorted(process.wait(LIMIT_SECONDS) for process in processes) == [0, 1]
    assert "Another run has staged other bytes" in pods[0].message + pods[1].message
    for process in processes:
        kill(process)


def test_a_file_overwritten_in_the_store_is_staged_again(hub, bucket, node, s3):
    first, again = worker(node, hub), worker(node, hub)
    assert first.run(*arguments(first)) == 0
    bucket.put(f"{PREFIX}/{SMALL}", content(len(MODEL[SMALL]), 99))
    before = len(s3.seen("PUT", "safetensors"))
    assert again.run(*arguments(again)) == 0, again.log
    assert [one.key for one in s3.seen("PUT", "safetensors")[before:]] == [f"{PREFIX}/{SMALL}"]
    assert is_staged(bucket)


def test_a_revision_that_moves_is_refused_with_its_commit(hub, bucket, node):
    pod = worker(node, hub)
    assert pod.run(*arguments(pod, revision="main")) == 1
    assert f"main of {NAME} is a name that moves, at present to {COMMIT}: pin that commit." in pod.message
    assert not bucket.stored()


def test_a_repository_that_the_token_may_not_see_is_named(hub, bucket, node):
    pod = worker(node, hub, token="hf_other")
    assert pod.run(*arguments(pod)) == 1
    assert f"The hub has no {NAME}, or HF_TOKEN may not see it." in pod.message


def test_a_file_that_arrives_other_than_the_hub_promised_is_not_uploaded(hub, bucket, node):
    promised = hub.info()
    hub.files[SMALL] = content(len(MODEL[SMALL]), 5)
    hub.info = lambda: promised
    pod = worker(node, hub)
    assert pod.run(*arguments(pod)) == 1
    assert f"{SMALL} arrived damaged" in pod.message
    assert f"{PREFIX}/{SMALL}" not in bucket.stored()
    assert f"{PREFIX}/manifest.json" not in bucket.stored()


def test_what_no_server_loads_is_left_on_the_hub(hub, bucket, node):
    for name in ("original/consolidated.00.pth", "pytorch_model.bin", "q4.gguf", ".gitattributes"):
        hub.files[name] = b"x"
    pod = worker(node, hub)
    assert pod.run(*arguments(pod)) == 0
    assert is_staged(bucket)


def test_without_safetensors_the_second_choice_is_staged(bucket, node):
    files = {"config.json": b"{}", "pytorch_model.bin": b"weights"}
    with Hub(NAME, files) as hub:
        pod = worker(node, hub)
        assert pod.run(*arguments(pod)) == 0
    assert is_staged(bucket, files)


def test_weights_come_from_another_bucket_too(bucket, node, supply_moto_url):
    for path, body in MODEL.items():
        bucket.put(f"uploads/tiny/{path}", body)
    pod = node.pod()
    assert pod.run(*arguments(pod, "--source", f"s3://{bucket.name}/uploads/tiny/")) == 0, pod.log
    assert is_staged(bucket)


def test_a_source_without_files_is_named(bucket, node):
    pod = node.pod()
    assert pod.run(*arguments(pod, "--source", f"s3://{bucket.name}/nothing")) == 1
    assert f"Nothing is stored under s3://{bucket.name}/nothing" in pod.message


def test_a_store_that_may_not_be_written_names_prefix_and_role(hub, bucket, node, s3):
    s3.on("PUT", "config.json", deny=True)
    pod = worker(node, hub)
    assert pod.run(*arguments(pod)) == 1
    assert "Access denied: arn:aws:sts::123456789012:" in pod.message
    assert f"may not write s3://{bucket.name}/{PREFIX}/config.json" in pod.message


def test_the_disk_holds_no_more_than_the_files_under_way(hub, bucket, node):
    pod = worker(node, hub)
    assert pod.run(*arguments(pod)) == 0
    left = [path for path in (pod.folder / "work").rglob("*") if path.is_file() and path.stat().st_size > 10_000]
    assert left == []
