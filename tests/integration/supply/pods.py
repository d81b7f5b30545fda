"""Pods and their store: the scripts as processes of their own, with this Python standing in for the image's."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.integration.supply.faulty_s3 import FaultyS3, until
from tests.platform_files import ROOT
from tests.support.aws_api import REGION, client

SCRIPTS = ROOT / "k8s_charts" / "scripts"
MEBIBYTE = 2**20
LIMIT_SECONDS = 60

NAME = "org/tiny-llama"
REVISION = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS = f"{NAME}@{REVISION}"
PREFIX = f"weights/{NAME}/{REVISION}"
BIG = "model-00001-of-00002.safetensors"
SMALL = "model-00002-of-00002.safetensors"

RECIPE = {"model": WEIGHTS, "tensor_parallel_size": 2, "max_model_len": 4096, "buckets": [512, 4096]}


def content(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


MODEL = {
    "config.json": b'{"architectures": ["LlamaForCausalLM"]}',
    "tokenizer/tokenizer.json": content(5000, 1),
    "added_tokens.json": b"",
    BIG: content(36 * MEBIBYTE + 17, 2),
    SMALL: content(3 * MEBIBYTE, 3),
}
"""More than one range in the large one, a folder, and a file of no bytes."""


class Bucket:
    """A bucket of moto's, written to and looked at from outside."""

    def __init__(self, name: str, moto_url: str) -> None:
        self.name = name
        self.s3 = client("s3", moto_url)
        self.s3.create_bucket(Bucket=name)

    def put(self, key: str, body: bytes | str) -> None:
        self.s3.put_object(Bucket=self.name, Key=key, Body=body)

    def get(self, key: str) -> bytes:
        return self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()

    def json(self, key: str) -> Any:
        return json.loads(self.get(key))

    def stored(self, prefix: str = "") -> set[str]:
        found = self.s3.list_objects_v2(Bucket=self.name, Prefix=prefix).get("Contents", ())
        return {one["Key"] for one in found}

    def remove(self, key: str) -> None:
        self.s3.delete_object(Bucket=self.name, Key=key)

    def has(self, prefix: str, files: Mapping[str, bytes], *, kind: str = "weights", **more: Any) -> None:
        """Put files and their manifest, as a stage or compile job would have."""
        listed = []
        for path, body in files.items():
            self.put(f"{prefix}/{path}", body)
            listed.append({"path": path, "size": len(body), "sha256": hashlib.sha256(body).hexdigest()})
        name = prefix.removeprefix("artifacts/") if kind == "artifacts" else "@".join(prefix[8:].rsplit("/", 1))
        head = {"version": 1, "kind": kind, "name": name, **more, "created": "2026-12-01T00:00:00Z"}
        self.put(f"{prefix}/manifest.json", json.dumps({**head, "files": listed}))


class Node:
    """A node with a cache folder, whose pods speak to the store through a proxy that can fail."""

    def __init__(self, folder: Path, s3: FaultyS3, bucket: Bucket) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.bucket = bucket
        self._s3 = s3
        self._pods = 0

    def pod(self, **environment: str) -> "Pod":
        self._pods += 1
        folder = self.folder / f"pod-{self._pods}"
        folder.mkdir()
        return Pod(folder, self, {"AWS_ENDPOINT_URL": self._s3.url, **environment})

    def partial(self, file: str, prefix: str = PREFIX) -> Path:
        return self.cache / ".partial" / prefix / file


class Pod:
    def __init__(self, folder: Path, node: Node, environment: dict[str, str]) -> None:
        self.folder = folder
        self._node = node
        self._environment = environment
        self._message = folder / "termination-log"
        self._message.touch()
        self._log = folder / "log"

    @property
    def message(self) -> str:
        return self._message.read_text()

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def start(self, script: str, *arguments: object, limit: Callable[[], None] | None = None) -> subprocess.Popen[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": REGION,
            "MODEL_STORE_BUCKET": self._node.bucket.name,
            "TERMINATION_LOG": str(self._message),
            **self._environment,
        }
        with self._log.open("a") as log:
            return subprocess.Popen(
                [sys.executable, str(SCRIPTS / script), *map(str, arguments)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                preexec_fn=limit,
            )

    def run(self, script: str, *arguments: object, **more: Any) -> int:
        process = self.start(script, *arguments, **more)
        try:
            process.communicate(timeout=LIMIT_SECONDS)
        finally:
            kill(process)
        return process.returncode

    def fetch(self, *arguments: object, weights: str = WEIGHTS, **more: Any) -> int:
        return self.run("fetch.py", *self.fetch_arguments(*arguments, weights=weights), **more)

    def start_fetch(self, *arguments: object, weights: str = WEIGHTS) -> subprocess.Popen[str]:
        return self.start("fetch.py", *self.fetch_arguments(*arguments, weights=weights))

    def fetch_arguments(self, *arguments: object, weights: str = WEIGHTS) -> list[object]:
        cache = ["--cache", self._node.cache, "--keep-free-percent", 0]
        return [*cache, "--weights", weights, "--weights-link", self.weights, *arguments]

    @property
    def weights(self) -> Path:
        return self.folder / "models" / "weights"

    @property
    def artifacts(self) -> Path:
        return self.folder / "models" / "artifacts"


def kill(process: subprocess.Popen[str]) -> None:
    """Everything of the pod at once, as the kubelet does."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    if process.stdout:
        process.stdout.close()


def files_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder but the manifest; symbolic links are followed."""
    folder = folder.resolve()
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }


def until_logged(pod: Pod, text: str) -> None:
    until(lambda: text in pod.log, f"{text!r} in the log:\n{pod.log}")
