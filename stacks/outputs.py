"""Folders that appear whole or not at all.

A synth that fails half-way must not leave templates that look complete, and must not take away the last good ones.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """Staging folders, one for each target, which take the targets' places when the block ends well.

    When it does not, the staging folders are removed and the targets stay as they were.
    """
    staged = tuple(_beside(target) for target in targets)
    try:
        yield staged
        for folder, target in zip(staged, targets, strict=True):
            _swap(folder, target)
    finally:
        for folder in staged:
            shutil.rmtree(folder, ignore_errors=True)


def _beside(target: Path) -> Path:
    """On the same file system, so that a rename is enough."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    folder.chmod(0o755)
    return folder


def _swap(folder: Path, target: Path) -> None:
    old = folder.with_name(f"{folder.name}-old")
    if target.exists():
        target.rename(old)
    folder.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def reuse_assets(earlier: Path, staging: Path) -> None:
    """Links large asset files of an earlier synth, named by their content, instead of copying them again."""
    for asset in earlier.glob("asset.*.zip"):
        os.link(asset, staging / asset.name)
