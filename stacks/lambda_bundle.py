"""What the functions are made of: one bundle for all of them, the same bytes for the same content.

Packed as a zip here, since pip has installed the packages for Lambda's processor at set-up and Docker has nothing left
to do. The packages hardly ever change and are packed once; a synth adds our own files, a few dozen, behind them.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT: Final = Path(__file__).parent.parent
LOCK: Final = ROOT / "requirements" / "lambdas.txt"
PACKAGES: Final = ROOT / ".venv" / "lambda-packages"
STAMP: Final = ROOT / ".venv" / ".lambdas.stamp"
"""Written by tools/setup_env.py when the packages are there: the hash of the lock they were installed from."""

SOURCES: Final = ("genai_finops/__init__.py", "genai_finops/versions.py", "genai_finops/operations", "lambdas")
"""Files and folders of ours; a test imports every handler from the bundle alone."""

PLATFORM_CONFIG: Final = "platform.json"

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold."""

_READABLE: Final = 0o100644 << 16
"""Lambda runs as another user than the one that packed."""


class BundleError(Exception):
    """The packages of the functions are not set up."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The code of the functions.

    Attributes:
        content_hash: of what is in it; how it is compressed does not count.
    """

    files: tuple[tuple[str, bytes], ...]
    packages_hash: str

    @property
    def content_hash(self) -> str:
        digest = sha256(self.packages_hash.encode())
        for name, content in self.files:
            digest.update(f"\0{name}\0{sha256(content).hexdigest()}".encode())
        return digest.hexdigest()

    def write(self, file: Path) -> None:
        """Write the zip."""
        shutil.copyfile(_packed_packages(self.packages_hash), file)
        with ZipFile(file, "a") as archive:
            _add(archive, self.files)


def bundle(config: str) -> Bundle:
    """The bundle of a platform.

    Args:
        config: what the functions need of the platform file, as JSON.

    Raises:
        BundleError: when the packages are not there, or not those of the lock.
    """
    found = (file for source in SOURCES for file in _files(ROOT / source))
    ours = sorted((str(file.relative_to(ROOT)), file.read_bytes()) for file in found)
    return Bundle((*ours, (PLATFORM_CONFIG, config.encode())), _packages_hash())


def _packages_hash() -> str:
    wanted = sha256(LOCK.read_bytes()).hexdigest()
    if not STAMP.exists() or STAMP.read_text() != wanted:
        raise BundleError(
            f"{PACKAGES} does not hold what {LOCK} pins: python3 tools/setup_env.py lambdas, or make synth"
        )
    return wanted


def _packed_packages(packages_hash: str) -> Path:
    packed = PACKAGES.with_name(f"lambda-packages-{packages_hash}.zip")
    if not packed.exists():
        for earlier in packed.parent.glob("lambda-packages-*.zip"):
            earlier.unlink(missing_ok=True)
        # Others may do the same at the same time: whoever is last replaces it by an equal one.
        handle, unfinished = tempfile.mkstemp(prefix=".lambda-packages-", dir=packed.parent)
        with os.fdopen(handle, "wb") as file, ZipFile(file, "w") as archive:
            _add(archive, ((str(found.relative_to(PACKAGES)), found.read_bytes()) for found in _files(PACKAGES)))
        Path(unfinished).replace(packed)
    return packed


def _files(path: Path) -> Iterator[Path]:
    """Without what Python compiles: it holds times, and is of this machine's version."""
    if path.is_file():
        yield path
    for file in sorted(path.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file


def _add(archive: ZipFile, files: Iterable[tuple[str, bytes]]) -> None:
    for name, content in files:
        entry = ZipInfo(name, _EPOCH)
        entry.external_attr = _READABLE
        entry.compress_type = ZIP_DEFLATED
        archive.writestr(entry, content)
