"""Bring a model's weights, pinned to a revision, into the store: from the hub or from a bucket.

Once per revision: weights that are there and whole are left alone. An interrupted run goes on where it stopped, and
a file that somebody has damaged is brought again. Two runs at once do no harm: a revision names its bytes, so both
write the same. A few files at a time pass over this pod's disk, whatever the size of the model.
"""

import argparse
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from supply import (
    MANIFEST,
    WEIGHTS,
    File,
    Manifest,
    Store,
    SupplyError,
    amount,
    log,
    now_text,
    parser,
    run,
    speed,
    weights_place,
)
from supply_transfer import Download, disk_full, download, hash_file, upload

FILES_AT_ONCE = 2
"""A file has its own connections, and the disk must hold this many of the largest."""

NOT_SERVED = ("*.gguf", "*.h5", "*.msgpack", "*.onnx", "*.tflite", "*.ot", "onnx/*", "original/*", ".git*")
"""What repositories hold besides what vLLM loads, often the same weights once more."""
SECOND_CHOICE = ("*.bin", "*.pt", "*.pth")
"""Loaded only where there are no safetensors."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file where it comes from. `identity` changes with its content; `sha256` is known of some."""

    path: str
    size: int
    identity: str
    sha256: str | None
    bring: Callable[[Path], Path]


def main(arguments: Sequence[str]) -> None:
    options = parser(__doc__)
    options.add_argument("--bucket", default=os.environ.get("MODEL_STORE_BUCKET"), help="or MODEL_STORE_BUCKET")
    options.add_argument("--name", required=True, help="of the weights in the store: org/model, or the source's name")
    options.add_argument("--revision", required=True, help="a commit of the hub, or any name that never moves")
    options.add_argument(
        "--source", type=_source_address, help="hub:REPOSITORY or s3://BUCKET/PREFIX (default: hub:NAME)"
    )
    options.add_argument("--work-dir", type=Path, required=True, help="a folder with room for two of the largest files")
    given = options.parse_args(arguments)
    if not given.bucket:
        raise SupplyError("--bucket is needed (or MODEL_STORE_BUCKET).")
    source = given.source or f"hub:{given.name}"
    stage(Store(given.bucket), source, given.name, given.revision, given.work_dir)


def stage(store: Store, source: str, name: str, revision: str, work: Path) -> None:
    """Raises SupplyError when the source has moved, or the store holds other bytes under this revision."""
    started = time.monotonic()
    place = weights_place(name, revision)
    found = store.read_manifest(place)
    if found:
        damaged = store.damaged(place, found[0])
        if not damaged:
            log(f"{place.name} is staged: {len(found[0].files)} files, {amount(found[0].size)}")
            return
        log(f"{place.name} is damaged in the store ({', '.join(damaged[:3])}): it is brought again")
    files = _from_bucket(source) if source.startswith("s3://") else _from_hub(source.removeprefix("hub:"), revision)
    log(f"{place.name}: {len(files)} files, {amount(sum(file.size for file in files))} from {source}")
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        staged = [pool.submit(_stage_file, store, place.prefix, file, work) for file in files]
        try:
            done = tuple(one.result() for one in staged)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    manifest = Manifest(WEIGHTS, place.name, done, now_text())
    if not store.write_manifest(place, manifest, replaces=found and found[1]):
        other = store.read_manifest(place)
        if other is None or set(other[0].files) != set(done):
            raise SupplyError(
                f"Another run has staged other bytes as {place.name}. Remove {store.url(place.prefix)}/{MANIFEST} and "
                "stage again, from one source."
            )
        log("another run has finished at the same time, with the same bytes")
    log(f"{place.name} staged: {speed(manifest.size, time.monotonic() - started)}")


def _stage_file(store: Store, prefix: str, file: SourceFile, work: Path) -> File:
    key = f"{prefix}/{file.path}"
    there = store.head(key)
    if there and there["ContentLength"] == file.size and there["Metadata"].get("source") == file.identity:
        log(f"{file.path}: in the store already")
        return File(file.path, file.size, there["Metadata"]["sha256"])
    started = time.monotonic()
    folder = work / f"{prefix.replace('/', '-')}"
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < file.size:
        raise disk_full(folder, file.size)
    path = file.bring(folder)
    sha256 = hash_file(path)
    if path.stat().st_size != file.size or file.sha256 not in (None, sha256):
        path.unlink()
        raise SupplyError(f"{file.path} arrived damaged: its source promised another size or SHA-256. Stage again.")
    upload(store, path, key, sha256, source=file.identity)
    path.unlink()
    log(f"{file.path}: {speed(file.size, time.monotonic() - started)}")
    return File(file.path, file.size, sha256)


def _served(paths: Sequence[str]) -> set[str]:
    """The files that a server loads, of all that a repository holds."""
    kept = [path for path in paths if path != MANIFEST and not any(fnmatch(path, one) for one in NOT_SERVED)]
    if any(path.endswith(".safetensors") for path in kept):
        kept = [path for path in kept if not any(fnmatch(path, one) for one in SECOND_CHOICE)]
    return set(kept)


def _from_hub(repository: str, revision: str) -> list[SourceFile]:
    """Files of a commit. HF_TOKEN and HF_ENDPOINT are read by the hub's own library, which resumes half a file."""
    from huggingface_hub import HfApi, hf_hub_download

    with _hub_explained(repository, revision):
        info = HfApi().model_info(repository, revision=revision, files_metadata=True)
    if info.sha != revision:
        raise SupplyError(
            f"{revision} of {repository} is a name that moves, at present to {info.sha}: pin that commit."
        )

    def bring(path: str) -> Callable[[Path], Path]:
        def to(folder: Path) -> Path:
            with _hub_explained(repository, revision):
                return Path(hf_hub_download(repository, path, revision=revision, local_dir=folder))

        return to

    siblings = info.siblings or ()
    served = _served([one.rfilename for one in siblings])
    return [
        SourceFile(
            path=one.rfilename,
            size=one.size or 0,
            identity=str(one.blob_id),
            sha256=one.lfs.sha256 if one.lfs else None,
            bring=bring(one.rfilename),
        )
        for one in siblings
        if one.rfilename in served
    ]


@contextmanager
def _hub_explained(repository: str, revision: str) -> Iterator[None]:
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError as error:
        raise SupplyError(f"{repository} is gated: its licence must be accepted by the owner of HF_TOKEN.") from error
    except RepositoryNotFoundError as error:
        raise SupplyError(f"The hub has no {repository}, or HF_TOKEN may not see it.") from error
    except RevisionNotFoundError as error:
        raise SupplyError(f"{repository} has no revision {revision} on the hub.") from error
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise SupplyError(f"The hub does not give {repository}: {error}") from error


def _from_bucket(source: str) -> list[SourceFile]:
    bucket, _, prefix = source.removeprefix("s3://").partition("/")
    prefix = f"{prefix.rstrip('/')}/" if prefix.strip("/") else ""
    store = Store(bucket)
    objects = {
        found["Key"].removeprefix(prefix): found for found in store.objects(prefix) if not found["Key"].endswith("/")
    }
    if not objects:
        raise SupplyError(f"Nothing is stored under {source}. Upload the weights there, or correct the address.")

    def bring(path: str, found: Any) -> Callable[[Path], Path]:
        def to(folder: Path) -> Path:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            download(store, [Download(found["Key"], target, found["Size"], None)])
            return target

        return to

    served = _served(list(objects))
    return [
        SourceFile(path, found["Size"], found["ETag"].strip('"'), None, bring(path, found))
        for path, found in objects.items()
        if path in served
    ]


def _source_address(text: str) -> str:
    if not text.startswith(("hub:", "s3://")):
        raise argparse.ArgumentTypeError(f"{text!r} is neither hub:REPOSITORY nor s3://BUCKET/PREFIX")
    return text


if __name__ == "__main__":
    run(main)
