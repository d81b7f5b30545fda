"""From the store to a node's disk: check what is there, bring what is missing, and say precisely what is wrong."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from supply import ARTIFACTS, MANIFEST, THREADS, Manifest, Place, Store, SupplyError, amount, log, speed
from supply_cache import NodeCache
from supply_transfer import DamagedError, DiskFullError, Download, download

TENSORS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
WITHOUT_TENSORS = "without-tensors"
MOST_COMPARED = 200
"""Manifests that a failing start reads to find the nearest; enough for years of one platform."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a pod needs. `repair_command` is what a person types when the store does not have it."""

    place: Place
    repair_command: str
    recipe: Mapping[str, Any] | None = None
    tensors: bool = True

    @property
    def entry(self) -> str:
        """Weights without their tensors are an entry of their own: a node may need both, for two models."""
        return self.place.prefix if self.tensors else f"{WITHOUT_TENSORS}/{self.place.prefix}"


def bring(cache: NodeCache, store: Store, wanted: Wanted, *, check_hashes: bool, threads: int = THREADS) -> Path:
    """The folder with all that is wanted, brought if need be; it stays for as long as this process uses the cache.

    An intact entry is used without asking S3: its path names its content, and a node must start when S3 is slow.

    Raises:
        SupplyError: with what is missing or wrong, and what to do.
    """
    cache.use(wanted.entry)
    if not _is_complete(cache, wanted, check_hashes=check_hashes):
        with cache.fetching(wanted.entry):
            if not _is_complete(cache, wanted, check_hashes=check_hashes):
                _fetch(cache, store, wanted, threads)
    return cache.folder(wanted.entry)


def _is_complete(cache: NodeCache, wanted: Wanted, *, check_hashes: bool) -> bool:
    manifest = cache.manifest(wanted.entry)
    if manifest is None:
        return False
    started = time.monotonic()
    damaged = cache.damaged(wanted.entry, manifest, hashes=check_hashes)
    if damaged:
        log(f"{wanted.entry} on this node is damaged ({', '.join(damaged[:3])}): it is brought again")
        return False
    check_recipe(wanted, manifest, f"{cache.folder(wanted.entry)}/{MANIFEST}")
    how = "hashes" if check_hashes else "sizes"
    log(
        f"{wanted.entry} is on this node: {len(manifest.files)} files, {amount(manifest.size)}, {how} checked in "
        f"{time.monotonic() - started:.1f} s"
    )
    return True


def _fetch(cache: NodeCache, store: Store, wanted: Wanted, threads: int) -> None:
    found = store.read_manifest(wanted.place)
    if found is None:
        raise missing(store, wanted)
    manifest = found[0]
    check_recipe(wanted, manifest, store.url(f"{wanted.place.prefix}/{MANIFEST}"))
    if not wanted.tensors:
        manifest = replace(manifest, files=tuple(file for file in manifest.files if not file.path.endswith(TENSORS)))
    partial = cache.partial(wanted.entry)
    partial.mkdir(parents=True, exist_ok=True)
    downloads = _still_to_bring(partial, wanted.place, manifest)
    size = sum(one.size for one in downloads)
    if size < manifest.size:
        here = f"{amount(manifest.size - size)} of {amount(manifest.size)}"
        log(f"{wanted.entry}: {here} are here from an earlier attempt")
    started = time.monotonic()
    try:
        cache.make_room(wanted.entry, size)
        if downloads:
            download(store, downloads, threads)
    except DiskFullError:
        cache.discard_partial(wanted.entry)
        raise
    except DamagedError as error:
        raise SupplyError(f"{error} `{wanted.repair_command}` repairs it.") from error
    cache.admit(wanted.entry, manifest)
    log(f"{wanted.entry}: {len(downloads)} files, {speed(size, time.monotonic() - started)}, {threads} connections")


def _still_to_bring(partial: Path, place: Place, manifest: Manifest) -> list[Download]:
    """Files that an earlier attempt has finished were verified before they got their name; the size tells them."""
    wanted = [
        Download(f"{place.prefix}/{one.path}", partial / one.path, one.size, one.sha256) for one in manifest.files
    ]
    return [one for one in wanted if not one.target.is_file() or one.target.stat().st_size != one.size]


def check_recipe(wanted: Wanted, manifest: Manifest, url: str) -> None:
    """A server does not check what its graphs were compiled for, so this must."""
    if wanted.recipe is None or not (differences := recipe_differences(manifest.recipe or {}, wanted.recipe)):
        return
    raise SupplyError(
        f"Wrong artifacts: {url} was compiled for something else ({'; '.join(differences)}; stored -> wanted). "
        f"Nothing is recompiled here. Run: {wanted.repair_command}"
    )


def missing(store: Store, wanted: Wanted) -> SupplyError:
    """What a person needs who finds a pod failing for want of this."""
    if wanted.place.kind != ARTIFACTS:
        return SupplyError(
            f"The weights {wanted.place.name} are not in the store ({store.url(wanted.place.prefix)}/{MANIFEST} is "
            f"missing). Run: {wanted.repair_command}"
        )
    return SupplyError(
        f"No compiled artifacts with key {wanted.place.name} ({store.url(wanted.place.prefix)}/{MANIFEST} is missing); "
        f"nothing is compiled on a serving node. {_nearest(store, wanted)} Run: {wanted.repair_command}"
    )


def _nearest(store: Store, wanted: Wanted) -> str:
    if wanted.recipe is None:
        return ""
    try:
        keys = store.folders(f"{ARTIFACTS}/")[:MOST_COMPARED]
        places = [replace(wanted.place, name=key, prefix=f"{ARTIFACTS}/{key}") for key in keys]
        with ThreadPoolExecutor(THREADS) as pool:
            stored = [found[0] for found in pool.map(store.read_manifest, places) if found]
    except SupplyError as error:
        return f"What else there is could not be listed: {error}"
    if not stored:
        return "The store has no artifacts at all."
    nearest = min(stored, key=lambda one: len(recipe_differences(one.recipe or {}, wanted.recipe or {})))
    differences = recipe_differences(nearest.recipe or {}, wanted.recipe)
    return f"The nearest, {nearest.name}, differs in (stored -> wanted): {'; '.join(differences)}."


def recipe_differences(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """`field: stored -> wanted` for each field with another value, or in only one of the two; inner ones by `a.b`."""
    before, after = _flat(stored), _flat(wanted)
    return [
        f"{field}: {before.get(field, 'nothing')} -> {after.get(field, 'nothing')}"
        for field in sorted({*before, *after})
        if field not in before or field not in after or before[field] != after[field]
    ]


def _flat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for field, value in recipe.items():
        if isinstance(value, Mapping) and value:
            flat |= {f"{field}.{inner}": one for inner, one in _flat(value).items()}
        else:
            flat[field] = value
    return flat
