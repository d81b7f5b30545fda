"""Files from S3 to a disk as fast as the network allows, hashed while they arrive; and from a disk to S3.

Large files come as ranges over many connections. Each range is written as it is read, so memory stays flat however
large a file is; each file is hashed behind its first gap, while its bytes are still in the page cache.
"""

import errno
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from boto3.exceptions import S3UploadFailedError
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import BotoCoreError, ClientError
from supply import THREADS, Store, SupplyError, amount, log, speed
from urllib3.exceptions import HTTPError

PART_BYTES = 16 * 2**20
"""The upper end of the 8 to 16 MiB that S3's performance guidelines recommend for ranges."""
CHUNK_BYTES = 2**20
UPLOAD_PART_BYTES = 64 * 2**20
"""S3 takes 10,000 parts: files up to 670 GB."""

HASHERS = min(4, os.cpu_count() or 1)
TRIES = 5
"""In a row without a byte in between: a connection that brings some before it breaks is no failure."""
PROGRESS_SECONDS = float(os.environ.get("PROGRESS_SECONDS", "10"))
PARTIAL_SUFFIX = ".part"

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskFullError(SupplyError):
    """No room for what has to be written."""


class DamagedError(SupplyError):
    """The store holds other bytes than the manifest says."""


@dataclass(frozen=True, slots=True)
class Download:
    """An object to bring. Without `sha256` whatever comes is right, and its hash is the answer."""

    key: str
    target: Path
    size: int
    sha256: str | None


def download(store: Store, wanted: Sequence[Download], threads: int = THREADS) -> dict[Path, str]:
    """Bring files, each under its own name only when all of it is there and right; their SHA-256 by target.

    Raises:
        DiskFullError: when a file does not fit.
        DamagedError: when size or hash of an object are not what was expected.
        SupplyError: when S3 refuses, or does not answer after several attempts.
    """
    files = [_Arriving(one) for one in wanted]
    stop = threading.Event()
    counter = _Counter(sum(one.size for one in wanted))
    pool = ThreadPoolExecutor(threads, thread_name_prefix="range")
    hashers = ThreadPoolExecutor(HASHERS, thread_name_prefix="hash")
    with counter.reporting():
        try:
            for file in files:
                file.open()
            hashes = {file.wanted.target: hashers.submit(file.finish, store, stop) for file in files}
            parts = [pool.submit(_bring_part, store, file, start, counter, stop) for file, start in _interleaved(files)]
            _until_done([*hashes.values(), *parts])
            return {target: future.result() for target, future in hashes.items()}
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            raise disk_full(wanted[0].target.parent, sum(one.size for one in wanted)) from error
        finally:
            stop.set()
            for file in files:
                file.wake()
            pool.shutdown(wait=False, cancel_futures=True)
            hashers.shutdown(wait=False, cancel_futures=True)


def disk_full(folder: Path, size: int) -> DiskFullError:
    return DiskFullError(
        f"The disk is full: {size / 2**30:.1f} GiB are needed below {folder} and "
        f"{shutil.disk_usage(folder).free / 2**30:.1f} GiB are free. Give the node a larger volume, or its cache "
        "fewer models."
    )


def upload(store: Store, path: Path, key: str, sha256: str, *, source: str = "", threads: int = THREADS) -> None:
    """Put a file in the store with its hash beside it; S3 checks the hash of each part as it arrives."""
    metadata = {"sha256": sha256} | ({"source": source} if source else {})
    extra = {"Metadata": metadata, "ChecksumAlgorithm": "SHA256"}
    config = TransferConfig(
        multipart_threshold=UPLOAD_PART_BYTES, multipart_chunksize=UPLOAD_PART_BYTES, max_concurrency=threads
    )
    with store.explained("write", key):
        try:
            store.client.upload_file(str(path), store.bucket, key, ExtraArgs=extra, Config=config)
        except S3UploadFailedError as error:
            # boto3 hides what S3 said behind an error of its own.
            if isinstance(error.__context__, ClientError):
                raise error.__context__ from error
            raise SupplyError(f"{store.url(key)} could not be uploaded: {error}") from error


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Arriving:
    """A file that ranges are written into, and a frontier before which nothing is missing."""

    def __init__(self, wanted: Download) -> None:
        self.wanted = wanted
        self._partial = wanted.target.with_name(wanted.target.name + PARTIAL_SUFFIX)
        self._descriptor = -1
        self._arrived: set[int] = set()
        self._frontier = 0
        self._changed = threading.Condition()

    def open(self) -> None:
        """Reserves the room, so that a full disk shows before the transfer and not at its end."""
        self._partial.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self._partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        if self.wanted.size:
            os.posix_fallocate(self._descriptor, 0, self.wanted.size)

    def starts(self) -> Iterator[int]:
        return iter(range(0, self.wanted.size, PART_BYTES))

    def write(self, content: memoryview, at: int) -> None:
        while content:
            written = os.pwrite(self._descriptor, content, at)
            content, at = content[written:], at + written

    def arrived(self, start: int) -> None:
        with self._changed:
            self._arrived.add(start)
            while self._frontier in self._arrived:
                self._arrived.remove(self._frontier)
                self._frontier = min(self._frontier + PART_BYTES, self.wanted.size)
            self._changed.notify_all()

    def _is_beyond(self, position: int, stop: threading.Event) -> bool:
        return self._frontier > position or stop.is_set()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def finish(self, store: Store, stop: threading.Event) -> str:
        """Hash behind the frontier; when all is there and right, give the file its name."""
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(CHUNK_BYTES))
        position = 0
        while position < self.wanted.size:
            with self._changed:
                self._changed.wait_for(partial(self._is_beyond, position, stop))
                frontier = self._frontier
            if stop.is_set():
                raise SupplyError(f"{self.wanted.key} was given up")
            while position < frontier:
                count = os.preadv(self._descriptor, [buffer[: frontier - position]], position)
                digest.update(buffer[:count])
                position += count
        found = digest.hexdigest()
        if self.wanted.sha256 not in (None, found):
            self._partial.unlink()
            raise DamagedError(
                f"{store.url(self.wanted.key)} is damaged: its SHA-256 is {found[:12]}…, and its manifest says "
                f"{self.wanted.sha256[:12] if self.wanted.sha256 else ''}…."
            )
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._partial.rename(self.wanted.target)
        return found


class _Counter:
    """Bytes so far, said every few seconds: a slow network must not look like a hang."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._count = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self._count += count

    @contextmanager
    def reporting(self) -> Iterator[None]:
        over = threading.Event()
        started = time.monotonic()

        def report() -> None:
            while not over.wait(PROGRESS_SECONDS):
                log(f"… {speed(self._count, time.monotonic() - started)} of {amount(self._total)}")

        threading.Thread(target=report, daemon=True).start()
        try:
            yield
        finally:
            over.set()


def _interleaved(files: Sequence[_Arriving]) -> Iterator[tuple[_Arriving, int]]:
    """Ranges of a few files side by side, so that as many hashers have something to do."""
    for first in range(0, len(files), HASHERS):
        group = files[first : first + HASHERS]
        for starts in zip_longest(*(file.starts() for file in group)):
            yield from ((file, start) for file, start in zip(group, starts, strict=True) if start is not None)


def _bring_part(store: Store, file: _Arriving, start: int, counter: _Counter, stop: threading.Event) -> None:
    """One range; after a broken connection it goes on at the byte it had come to."""
    wanted = file.wanted
    end = min(start + PART_BYTES, wanted.size)
    buffer = memoryview(bytearray(min(CHUNK_BYTES, end - start)))
    position, failures = start, 0
    while position < end and not stop.is_set():
        try:
            for count in _stream(store, wanted, position, end, buffer):
                file.write(buffer[:count], position)
                position, failures = position + count, 0
                counter.add(count)
                if stop.is_set():
                    return
        except (BotoCoreError, HTTPError, ConnectionError) as error:
            failures += 1
            if failures == TRIES:
                raise SupplyError(f"{store.url(wanted.key)} does not arrive: {failures} attempts, {error}") from error
            stop.wait(min(0.2 * 2**failures, 5.0))
    file.arrived(start)


def _stream(store: Store, wanted: Download, start: int, end: int, buffer: memoryview) -> Iterator[int]:
    try:
        answer = store.client.get_object(Bucket=store.bucket, Key=wanted.key, Range=f"bytes={start}-{end - 1}")
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        if status in (404, 416):
            raise DamagedError(
                f"{store.url(wanted.key)} is damaged: it is gone, or shorter than {start} bytes."
            ) from error
        with store.explained("read", wanted.key):
            raise
    total = int(answer["ContentRange"].rpartition("/")[2])
    if total != wanted.size:
        raise DamagedError(f"{store.url(wanted.key)} is damaged: it has {total} bytes, expected {wanted.size}.")
    body = answer["Body"]
    try:
        while start < end:
            count = body.readinto(buffer[: end - start])
            if not count:
                raise ConnectionError(f"{end - start} bytes short")
            start += count
            yield count
    finally:
        body.close()


def _until_done(futures: Sequence[Future[Any]]) -> None:
    done, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in done:
        future.result()
