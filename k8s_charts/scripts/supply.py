"""What the scripts of the model supply share: the store's layout, its manifests, and how a step ends.

The store is a bucket with weights by revision and compiled artifacts by key. Its manifest is written last, so what
has one is complete. Runs in vLLM's images, with their own Python and the boto3 that they bring.
"""

import argparse
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any, NoReturn

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1
WEIGHTS = "weights"
ARTIFACTS = "artifacts"

THREADS = 16
"""S3 gives one connection 85 to 90 MB/s (its performance guidelines), a node of these sizes has 10 to 15 Gbit/s."""

TERMINATION_LOG = Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log"))
TERMINATION_LOG_BYTES = 4096
STOPPED_BY_SIGTERM = 128 + signal.SIGTERM

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_DENIED = ("AccessDenied", "AccessDeniedException", "403", "Forbidden")
_MISSING = ("NoSuchKey", "404", "NotFound")
_CONFLICT = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")


class SupplyError(Exception):
    """Why a step cannot go on and what to do, in a sentence or two: it becomes the pod's termination message."""


class StoppedError(BaseException):
    """SIGTERM came. Not an Exception, so that no handler of failures swallows it."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the store: `path` is relative to the manifest, `sha256` is hexadecimal."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What belongs to a prefix. `recipe` has everything that shapes compiled graphs; weights have none."""

    kind: str
    name: str
    files: tuple[File, ...]
    created: str
    recipe: Mapping[str, Any] | None = None

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def to_json(self) -> str:
        files = [asdict(file) for file in self.files]
        recipe = {} if self.recipe is None else {"recipe": dict(self.recipe)}
        content = {"version": MANIFEST_VERSION, "kind": self.kind, "name": self.name, **recipe, "created": self.created}
        return json.dumps({**content, "files": files}, indent=1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where weights or artifacts stand, in the store and in a node's cache alike."""

    kind: str
    name: str
    prefix: str


def weights_place(name: str, revision: str) -> Place:
    return Place(WEIGHTS, f"{name}@{revision}", f"{WEIGHTS}/{_safe(name)}/{_segment(revision)}")


def artifacts_place(key: str) -> Place:
    return Place(ARTIFACTS, key, f"{ARTIFACTS}/{_segment(key)}")


def split_weights(text: str) -> tuple[str, str]:
    """The name and the revision of NAME@REVISION."""
    name, at, revision = text.rpartition("@")
    if not at or not name or not revision:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME@REVISION, as in org/model@0123abc")
    return name, revision


def json_mapping(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("not a JSON object")
    return value


def now_text() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_manifest(text: str | bytes, url: str) -> Manifest:
    """Raises SupplyError for anything that is not a manifest this version understands."""
    try:
        content = json.loads(text)
        if content["version"] != MANIFEST_VERSION:
            raise SupplyError(
                f"{url} has version {content['version']}, and these scripts read {MANIFEST_VERSION}: "
                "store and platform come from different releases."
            )
        files = tuple(File(_safe_path(file["path"]), int(file["size"]), file["sha256"]) for file in content["files"])
        return Manifest(content["kind"], content["name"], files, content["created"], content.get("recipe"))
    except (KeyError, TypeError, ValueError) as error:
        raise SupplyError(
            f"{url} is not a manifest ({type(error).__name__}: {error}). Stage or compile again."
        ) from error


class Store:
    """The bucket. Whatever S3 refuses comes back as a SupplyError that a person can act on."""

    def __init__(self, bucket: str, threads: int = THREADS) -> None:
        self.bucket = bucket
        self.client = _client("s3", threads)

    def url(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def read_manifest(self, place: Place) -> tuple[Manifest, str] | None:
        """The manifest and its ETag; None when there is none, so that the prefix is not complete."""
        key = f"{place.prefix}/{MANIFEST}"
        found = self.read(key)
        return found and (parse_manifest(found[0], self.url(key)), found[1])

    def read(self, key: str) -> tuple[bytes, str] | None:
        """Content and ETag of a small object, None when there is none."""
        with self.explained("read", key):
            try:
                answer = self.client.get_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if error_code(error) in _MISSING:
                    return None
                raise
            return answer["Body"].read(), answer["ETag"]

    def write(self, key: str, text: str, *, replaces: str | None) -> str | None:
        """The ETag; None when somebody else wrote first: the object is no longer absent, or no longer `replaces`."""
        condition = {"IfMatch": replaces} if replaces else {"IfNoneMatch": "*"}
        with self.explained("write", key):
            try:
                answer = self.client.put_object(Bucket=self.bucket, Key=key, Body=text.encode(), **condition)
            except ClientError as error:
                if error_code(error) in _CONFLICT:
                    return None
                raise
        return str(answer["ETag"])

    def write_manifest(self, place: Place, manifest: Manifest, *, replaces: str | None) -> bool:
        return self.write(f"{place.prefix}/{MANIFEST}", manifest.to_json(), replaces=replaces) is not None

    def head(self, key: str) -> Mapping[str, Any] | None:
        with self.explained("read", key):
            try:
                return dict(self.client.head_object(Bucket=self.bucket, Key=key))
            except ClientError as error:
                if error_code(error) in _MISSING:
                    return None
                raise

    def damaged(self, place: Place, manifest: Manifest) -> list[str]:
        """Files of a manifest that are gone, or that somebody has overwritten; found without reading them."""

        def is_damaged(file: File) -> bool:
            found = self.head(f"{place.prefix}/{file.path}")
            return found is None or (found["ContentLength"], found["Metadata"].get("sha256")) != (
                file.size,
                file.sha256,
            )

        with ThreadPoolExecutor(THREADS) as pool:
            return [
                file.path for file, bad in zip(manifest.files, pool.map(is_damaged, manifest.files), strict=True) if bad
            ]

    def objects(self, prefix: str) -> Iterator[Mapping[str, Any]]:
        """Key, Size and ETag of everything under a prefix."""
        with self.explained("list", prefix):
            for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
                yield from page.get("Contents", ())

    def folders(self, prefix: str) -> list[str]:
        """Names of what stands directly under a prefix that ends in a slash."""
        with self.explained("list", prefix):
            pages = self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=prefix, Delimiter="/"
            )
            found = [common["Prefix"] for page in pages for common in page.get("CommonPrefixes", ())]
        return [name.removeprefix(prefix).rstrip("/") for name in found]

    @contextmanager
    def explained(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = error_code(error)
            if code in _DENIED:
                raise SupplyError(
                    f"Access denied: {identity()} may not {verb} {self.url(key)}. Give its role that right on this "
                    f"prefix (S3 also says this of what is not there, to a role that may not list the bucket)."
                ) from error
            raise SupplyError(f"S3 refused to {verb} {self.url(key)}: {error}") from error
        except BotoCoreError as error:
            raise SupplyError(f"S3 could not be asked to {verb} {self.url(key)}: {error}") from error


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def identity() -> str:
    """The role that AWS sees, as far as it can be found out in a few seconds."""
    try:
        caller = _client("sts", threads=1, patient=False).get_caller_identity()
    except (BotoCoreError, ClientError):
        return "this pod's role (STS does not answer)"
    return str(caller["Arn"])


def _client(service: str, threads: int, *, patient: bool = True) -> Any:
    """A read may take as long as bytes still come: the timeout is for one packet, not for an object."""
    config = Config(
        max_pool_connections=threads,
        connect_timeout=5 if patient else 2,
        read_timeout=30 if patient else 3,
        retries={"mode": "standard", "total_max_attempts": 6 if patient else 1},
        tcp_keepalive=True,
        # What is downloaded is held against the manifest's SHA-256; a second sum would only cost time.
        response_checksum_validation="when_required",
    )
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return boto3.client(service, region_name=region, config=config)


# Paths and numbers


def _safe(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SupplyError(f"{name!r} cannot be a name in the store: letters, digits, '.', '_', '-' and '/' only.")
    return name


def _segment(name: str) -> str:
    if "/" in name:
        raise SupplyError(f"{name!r} cannot be a revision or a key: it has a '/'.")
    return _safe(name)


def _safe_path(path: str) -> str:
    """A manifest decides what is written on a node, so it may not point out of its folder."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or path == MANIFEST:
        raise ValueError(f"{path!r} is no path inside a prefix")
    return path


def amount(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"


def speed(size: int, seconds: float) -> str:
    return f"{amount(size)} in {seconds:.1f} s ({size / 10**6 / max(seconds, 1e-3):.0f} MB/s)"


def fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# How a step ends


def log(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)


@contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    log(f"{what}: {time.monotonic() - started:.1f} s")


def parser(documentation: str | None) -> argparse.ArgumentParser:
    """Of a script that explains itself by its module's docstring."""
    return argparse.ArgumentParser(
        description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ours, and after `--` the command that another program is to run."""
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def run(main: Callable[[Sequence[str]], None]) -> NoReturn:
    """Call `main` with the command line; leave one or two sentences where `kubectl describe pod` shows them.

    A process is let go without waiting for its threads: whatever they were writing is repaired by the next run.
    """
    signal.signal(signal.SIGTERM, _stop)
    status = 0
    try:
        main(sys.argv[1:])
    except SupplyError as error:
        status = 1
        _say_why(str(error))
    except StoppedError:
        status = STOPPED_BY_SIGTERM
        _say_why("Stopped by SIGTERM before it was done; the next run goes on from here.")
    except Exception as error:
        status = 1
        traceback.print_exc()
        _say_why(f"An error that these scripts do not know: {type(error).__name__}: {error}")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise StoppedError


def _say_why(text: str) -> None:
    log(f"failed: {text}")
    if TERMINATION_LOG.exists():
        TERMINATION_LOG.write_bytes(text.encode()[:TERMINATION_LOG_BYTES])
