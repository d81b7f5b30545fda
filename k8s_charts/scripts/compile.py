"""Compile a model's graphs once per key and put them into the store, so that serving nodes only load them.

The command after `--` compiles, from the weights in the store, into $NEURON_COMPILED_ARTIFACTS. A key that the store
has, whole, ends the run at once. One run at a time compiles a key; another waits and finds it done. The manifest
comes last, with the recipe: everything that shaped the graphs.
"""

import argparse
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from supply import (
    ARTIFACTS,
    MANIFEST,
    File,
    Manifest,
    Place,
    Store,
    SupplyError,
    amount,
    artifacts_place,
    json_mapping,
    log,
    now_text,
    parser,
    run,
    speed,
    split_command,
    split_weights,
    weights_place,
)
from supply_bring import Wanted, bring, recipe_differences
from supply_cache import NodeCache, point_to
from supply_lease import LEASE_SECONDS, Lease
from supply_transfer import HASHERS, hash_file, upload

ARTIFACTS_VARIABLE = "NEURON_COMPILED_ARTIFACTS"
LEASE = "lease.json"

STOP_SECONDS = float(os.environ.get("STOP_SECONDS", "20"))
"""From SIGTERM to SIGKILL for a compiler that is too slow; less than the 30 s that Kubernetes gives a pod."""
POLL_SECONDS = min(10.0, LEASE_SECONDS / 5)
LAST_LINES = 15
LINE_CHARACTERS = 200
"""Of a line in the termination message, which Kubernetes cuts at 4,096 bytes: the last lines matter most."""


def main(arguments: Sequence[str]) -> None:
    own, command = split_command(arguments)
    options = parser(__doc__)
    options.add_argument("--bucket", default=os.environ.get("MODEL_STORE_BUCKET"), help="or MODEL_STORE_BUCKET")
    options.add_argument("--key", required=True, help="of the artifacts")
    options.add_argument("--recipe", type=json_mapping, required=True, metavar="JSON", help="what the key stands for")
    options.add_argument("--weights", type=split_weights, metavar="NAME@REVISION", help="to bring from the store first")
    options.add_argument("--weights-link", type=Path, help="where the command finds them")
    options.add_argument("--cache", type=Path, help="a folder with room for the weights")
    options.add_argument("--output", type=Path, required=True, help="a folder for the artifacts; emptied first")
    options.add_argument("--timeout", type=float, required=True, help="seconds, for the command")
    options.add_argument("--stage-command", default="make stage", help="to name when weights are missing")
    given = options.parse_args(own)
    if not given.bucket or not command:
        raise SupplyError("Needed: --bucket (or MODEL_STORE_BUCKET), and after -- the command that compiles.")
    if given.weights and not (given.cache and given.weights_link):
        raise SupplyError("--weights needs --cache and --weights-link.")
    store, place = Store(given.bucket), artifacts_place(given.key)
    lease = Lease(store, f"{place.prefix}/{LEASE}")
    if _is_stored(store, place, given.recipe) or not _wait_for(lease, store, place, given):
        return
    with lease:
        # Whoever held the lease before may have finished between the two looks.
        if not _is_stored(store, place, given.recipe):
            _bring_weights(store, given)
            compile_to(given.output, command, given.timeout)
            put(store, place, given, lease)


def _is_stored(store: Store, place: Place, recipe: dict[str, object]) -> bool:
    found = store.read_manifest(place)
    if not found:
        return False
    manifest = found[0]
    if differences := recipe_differences(manifest.recipe or {}, recipe):
        raise SupplyError(
            f"{store.url(place.prefix)} holds another recipe ({'; '.join(differences)}; stored -> wanted): one key "
            "stands for two things. The key must cover every field of the recipe."
        )
    if damaged := store.damaged(place, manifest):
        log(f"{place.name} is damaged in the store ({', '.join(damaged[:3])}): it is compiled again")
        return False
    log(f"{place.name} is compiled: {len(manifest.files)} files, {amount(manifest.size)}, {manifest.created}")
    return True


def _wait_for(lease: Lease, store: Store, place: Place, given: argparse.Namespace) -> bool:
    """Whether it is up to us to compile: False when somebody else has done so meanwhile."""
    waited = False
    while not lease.acquire():
        if not waited:
            log(f"another job is compiling {place.name}: waiting for it, or for its lease to end")
            waited = True
        time.sleep(POLL_SECONDS)
        if store.read_manifest(place) and _is_stored(store, place, given.recipe):
            return False
    return True


def _bring_weights(store: Store, given: argparse.Namespace) -> None:
    if given.weights:
        cache = NodeCache(given.cache, limit=None, keep_free=0.0)
        wanted = Wanted(weights_place(*given.weights), given.stage_command)
        point_to(given.weights_link, bring(cache, store, wanted, check_hashes=False))


def compile_to(output: Path, command: Sequence[str], timeout_seconds: float) -> None:
    """Run the command with its own process group; what it says goes to this log.

    Raises:
        SupplyError: when it fails, takes too long or leaves nothing, with its last lines.
    """
    output.mkdir(parents=True, exist_ok=True)
    for leftover in output.iterdir():
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    started = time.monotonic()
    log(f"compiling: {' '.join(command)}")
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, ARTIFACTS_VARIABLE: str(output)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise SupplyError(f"The compiler {command[0]} cannot be started: {error.strerror}.") from error
    assert process.stdout
    last: deque[str] = deque(maxlen=LAST_LINES)
    reader = threading.Thread(target=_copy_lines, args=(process.stdout, last), daemon=True)
    reader.start()
    try:
        process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        _stop_group(process)
        reader.join(timeout=1)
        raise SupplyError(
            f"The compiler took longer than {timeout_seconds:g} s and was stopped.{_said(last)}"
        ) from None
    finally:
        _stop_group(process)
    reader.join(timeout=5)
    if process.returncode:
        raise SupplyError(f"The compiler {_ended(process.returncode)}.{_said(last)}")
    if not any(path.is_file() for path in output.rglob("*")):
        raise SupplyError(f"The compiler ended well and left nothing in {output}.{_said(last)}")
    log(f"compiled in {time.monotonic() - started:.0f} s")


def put(store: Store, place: Place, given: argparse.Namespace, lease: Lease) -> None:
    """Upload what was compiled, the manifest last, and only while the lease is ours."""
    started = time.monotonic()
    paths = sorted(path for path in given.output.rglob("*") if path.is_file())
    with ThreadPoolExecutor(HASHERS) as pool:
        hashes = list(pool.map(hash_file, paths))
    files = tuple(
        File(str(path.relative_to(given.output)), path.stat().st_size, sha256)
        for path, sha256 in zip(paths, hashes, strict=True)
    )
    before = store.read_manifest(place)
    for path, file in zip(paths, files, strict=True):
        lease.check()
        began = time.monotonic()
        upload(store, path, f"{place.prefix}/{file.path}", file.sha256)
        log(f"{file.path}: {speed(file.size, time.monotonic() - began)}")
    manifest = Manifest(ARTIFACTS, place.name, files, now_text(), given.recipe)
    lease.check()
    if damaged := store.damaged(place, manifest):
        raise SupplyError(f"Somebody else writes to {store.url(place.prefix)} ({damaged[0]}): compile again.")
    if not store.write_manifest(place, manifest, replaces=before and before[1]):
        raise SupplyError(f"Somebody else has written {store.url(place.prefix)}/{MANIFEST} meanwhile: compile again.")
    log(f"{place.name} stored: {len(files)} files, {speed(manifest.size, time.monotonic() - started)}")


def _copy_lines(stream: IO[str], last: deque[str]) -> None:
    for line in stream:
        print(line, end="", flush=True)
        last.append(line.rstrip()[:LINE_CHARACTERS])


def _stop_group(process: subprocess.Popen[str]) -> None:
    """The compiler and everything it has started: also what outlives it would keep the accelerator."""
    for kind, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(process.pid, kind)
        except ProcessLookupError:
            break
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue


def _ended(status: int) -> str:
    if status == -signal.SIGKILL:
        return "was killed (SIGKILL): most likely the node ran out of memory; compiling needs several times the weights"
    return f"was stopped by {signal.Signals(-status).name}" if status < 0 else f"failed with status {status}"


def _said(last: Sequence[str]) -> str:
    return f" It said last:\n{chr(10).join(last)}" if last else " It said nothing."


if __name__ == "__main__":
    run(main)
