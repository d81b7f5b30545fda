"""Folders that appear whole or not at all.

A synth that fails half-way must not leave templates that look complete, and must not take away the last good ones.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def replaced(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """Staging folders, one for each target, which take the targets' places when the block ends well.

    When it does not, or when one of them cannot take its place, all targets stay as they were. The staging folders are
    gone either way.
    """
    places = [target.resolve() for target in targets]
    with ExitStack() as clean_up:
        staged = []
        for place in places:
            staged.append(_beside(place))
            clean_up.callback(shutil.rmtree, staged[-1], ignore_errors=True)
        yield tuple(staged)
        _swap(staged, places)


def _beside(target: Path) -> Path:
    """On the same file system, so that a rename is enough."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    folder.chmod(0o755)
    return folder


def _swap(staged: Sequence[Path], places: Sequence[Path]) -> None:
    swapped: list[tuple[Path, Path]] = []
    try:
        for folder, place in zip(staged, places, strict=True):
            old = folder.with_name(f"{folder.name}-old")
            if place.exists():
                place.rename(old)
            swapped.append((old, place))
            folder.rename(place)
    except BaseException:
        for old, place in swapped:
            shutil.rmtree(place, ignore_errors=True)
            if old.exists():
                old.rename(place)
        raise
    for old, _ in swapped:
        shutil.rmtree(old, ignore_errors=True)


def reuse_assets(earlier: Path, staging: Path) -> None:
    """Links large asset files of an earlier synth, named by their content, instead of copying them again.

    Only those that it has used itself, so that what is not used any more is gone with the next synth. Where a link is
    not possible, CDK copies the file as it would have.
    """
    used = "".join(file.read_text(encoding="utf-8") for file in earlier.glob("*.assets.json"))
    for asset in earlier.glob("asset.*.zip"):
        if asset.name in used:
            with suppress(OSError):
                os.link(asset, staging / asset.name)
