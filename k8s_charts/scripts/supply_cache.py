"""What pods of one node share on its disk: whole weights and artifacts, brought once, used by all, evicted by need.

An entry is a folder that appeared by one rename, with its manifest inside. Locks are the kernel's (flock), so they
end with the process that holds them, however it ends: a pod killed half-way leaves nothing to clear by hand.

    <root>/weights/<name>/<revision>/…   <root>/artifacts/<key>/…   entries
    <root>/.partial/<entry>/…            what is being brought, or was when its pod died: the next one goes on with it
    <root>/.locks/<entry>.use            held, shared, by whoever uses the entry; its time is the last use
    <root>/.locks/<entry>.fetch          held by whoever brings the entry
    <root>/.evicted/…                    on its way out
"""

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from supply import MANIFEST, Manifest, SupplyError, amount, fsync_folder, log, parse_manifest
from supply_transfer import HASHERS, hash_file

ABANDONED_SECONDS = 3600.0
"""A pod that failed comes back within minutes and goes on with its partial files; later nobody will."""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    size: int
    last_used: float


class NodeCache:
    """The cache below a folder of the node. What `use` has named stays until this process, or what it becomes, ends."""

    def __init__(self, root: Path, *, limit: int | None, keep_free: float) -> None:
        """`limit` in bytes; `keep_free` is the share of the disk that the cache leaves alone."""
        self._root = root
        self._limit = limit
        self._keep_free = keep_free
        self._used: dict[str, int] = {}

    def folder(self, entry: str) -> Path:
        return self._root / entry

    def partial(self, entry: str) -> Path:
        return self._root / ".partial" / entry

    def use(self, entry: str) -> None:
        lock = self._lock_path(entry, "use")
        self._used[entry] = _lock(lock, fcntl.LOCK_SH)
        os.utime(lock)

    def keep_in_use_after_exec(self) -> None:
        for descriptor in self._used.values():
            os.set_inheritable(descriptor, True)

    @contextmanager
    def fetching(self, entry: str) -> Iterator[None]:
        """Alone on this node. Others wait, and find the entry complete when it is their turn."""
        path = self._lock_path(entry, "fetch")
        descriptor = _try_lock(path)
        if descriptor is None:
            log(f"another pod of this node is bringing {entry}: waiting for it")
            descriptor = _lock(path, fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(descriptor)

    def manifest(self, entry: str) -> Manifest | None:
        path = self.folder(entry) / MANIFEST
        try:
            return parse_manifest(path.read_bytes(), str(path))
        except (FileNotFoundError, SupplyError):
            return None

    def damaged(self, entry: str, manifest: Manifest, *, hashes: bool) -> list[str]:
        """Files of an entry that are not as the manifest says: by size, or by content, which reads all of them."""
        folder = self.folder(entry)
        bad = [file.path for file in manifest.files if _size(folder / file.path) != file.size]
        if bad or not hashes:
            return bad
        with ThreadPoolExecutor(HASHERS) as pool:
            found = pool.map(lambda file: hash_file(folder / file.path), manifest.files)
            return [file.path for file, sha256 in zip(manifest.files, found, strict=True) if sha256 != file.sha256]

    def admit(self, entry: str, manifest: Manifest) -> None:
        """Turn the partial folder, with all files in it, into the entry."""
        partial, folder = self.partial(entry), self.folder(entry)
        with (partial / MANIFEST).open("w") as file:
            file.write(manifest.to_json())
            file.flush()
            os.fsync(file.fileno())
        for inner in [path for path in partial.rglob("*") if path.is_dir()]:
            fsync_folder(inner)
        fsync_folder(partial)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._remove(folder)
        partial.rename(folder)
        fsync_folder(folder.parent)

    def discard_partial(self, entry: str) -> None:
        self._remove(self.partial(entry))

    def make_room(self, entry: str, size: int) -> None:
        """Evict what nobody uses, least recently used first, and only as far as `size` more bytes need it.

        Raises:
            SupplyError: when there is not enough even so.
        """
        shutil.rmtree(self._root / ".evicted", ignore_errors=True)
        self._drop_abandoned(entry, older_than_seconds=ABANDONED_SECONDS)
        if self._missing(size) > 0:
            self._drop_abandoned(entry, older_than_seconds=0.0)
        for other in sorted(self._entries(), key=lambda one: one.last_used):
            if self._missing(size) <= 0:
                return
            self._evict(other)
        if self._missing(size) > 0:
            raise self._no_room(entry, size)

    def _no_room(self, entry: str, size: int) -> SupplyError:
        disk = shutil.disk_usage(self._root)
        limit = "" if self._limit is None else f", and the cache is limited to {self._limit / 2**30:.1f} GiB"
        return SupplyError(
            f"No room for {entry} on this node: {size / 2**30:.1f} GiB are needed, {disk.free / 2**30:.1f} GiB are "
            f"free of which {self._keep_free * disk.total / 2**30:.1f} GiB must stay free{limit}; what else the cache "
            "holds is in use. Give the node a larger volume or fewer models."
        )

    def _missing(self, size: int) -> float:
        """Bytes that must go before `size` bytes can come."""
        disk = shutil.disk_usage(self._root)
        on_disk = size + self._keep_free * disk.total - disk.free
        if self._limit is None:
            return on_disk
        return max(on_disk, size + sum(one.size for one in self._entries()) - self._limit)

    def _entries(self) -> list[_Entry]:
        locks = self._root / ".locks"
        found = []
        for lock in locks.rglob("*.use"):
            entry = str(lock.relative_to(locks))[: -len(".use")]
            if manifest := self.manifest(entry):
                found.append(_Entry(entry, manifest.size, lock.stat().st_mtime))
        return found

    def _evict(self, entry: _Entry) -> None:
        with _all_free(self._lock_path(entry.path, "fetch"), self._lock_path(entry.path, "use")) as free:
            if not free:
                return
            self._remove(self.folder(entry.path))
        hours = (time.time() - entry.last_used) / 3600
        log(f"evicted {entry.path}: {amount(entry.size)}, last used {hours:.1f} hours ago")

    def _drop_abandoned(self, own: str, *, older_than_seconds: float) -> None:
        locks = self._root / ".locks"
        for lock in locks.rglob("*.fetch"):
            entry = str(lock.relative_to(locks))[: -len(".fetch")]
            partial = self.partial(entry)
            if entry == own or not partial.is_dir():
                continue
            with _all_free(lock) as free:
                if free and time.time() - _last_change(partial) >= older_than_seconds:
                    self._remove(partial)
                    log(f"removed {partial}, which a pod that is gone had left")

    def _remove(self, folder: Path) -> None:
        """First out of sight by one rename. A process that has its files open keeps them until it closes them."""
        gone = self._root / ".evicted" / uuid.uuid4().hex
        gone.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _lock_path(self, entry: str, what: str) -> Path:
        path = self._root / ".locks" / f"{entry}.{what}"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def point_to(link: Path, folder: Path) -> None:
    """Make `link` a symbolic link to `folder`, replacing an older link in one step."""
    if link.exists() and not link.is_symlink():
        raise SupplyError(f"{link} is there and is no link: the pod must not have a volume or a folder at that path.")
    link.parent.mkdir(parents=True, exist_ok=True)
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.symlink_to(folder)
    temporary.replace(link)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _last_change(folder: Path) -> float:
    return max((path.stat().st_mtime for path in (folder, *folder.rglob("*"))), default=0.0)


def _lock(path: Path, operation: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(descriptor, operation)
    return descriptor


def _try_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _all_free(*paths: Path) -> Iterator[bool]:
    """Whether all locks could be had at once; they are held for as long as the block runs."""
    descriptors = [_try_lock(path) for path in paths]
    try:
        yield None not in descriptors
    finally:
        for descriptor in descriptors:
            if descriptor is not None:
                os.close(descriptor)
