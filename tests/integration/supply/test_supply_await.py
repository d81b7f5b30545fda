"""A compile job waits for the weights that a stage job is still bringing: await_weights.py against S3 over HTTP."""

from tests.integration.supply.faulty_s3 import until
from tests.integration.supply.pods import LIMIT_SECONDS, PREFIX, WEIGHTS, kill, until_logged

FILES = {"config.json": b"{}"}


def arguments(*more, seconds=60):
    return ["await_weights.py", "--weights", WEIGHTS, "--timeout", seconds, "--poll", 0.1, *more]


def test_weights_that_are_there_are_not_waited_for(bucket, node):
    bucket.has(PREFIX, FILES)
    pod = node.pod()
    assert pod.run(*arguments()) == 0, pod.log
    assert "is in the store" in pod.log


def test_it_ends_when_the_manifest_comes_and_not_with_the_first_file(bucket, node):
    bucket.put(f"{PREFIX}/config.json", b"{}")
    pod = node.pod()
    process = pod.start(*arguments())
    try:
        until_logged(pod, "is not in the store yet")
        assert process.poll() is None
        bucket.has(PREFIX, FILES)
        until(lambda: process.poll() is not None, pod.log)
        assert process.wait(LIMIT_SECONDS) == 0
    finally:
        kill(process)


def test_weights_that_never_come_end_with_the_command_that_brings_them(node):
    pod = node.pod()
    assert pod.run(*arguments("--stage-command", "make stage MODEL=tiny", seconds=0.3)) == 1
    assert WEIGHTS in pod.message
    assert "Run: make stage MODEL=tiny" in pod.message
