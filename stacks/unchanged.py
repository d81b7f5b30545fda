"""Whether an earlier synth is still what this one would make: then nothing is made again.

`make diff` and `make deploy` synthesize first, and mostly nothing has changed since the last time. What a synth depends
on is compared by content; what it wrote must still be there as it was written.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

RECORD: Final = "synth.json"
"""Beside the templates."""

CODE: Final = ("genai_finops", "k8s_charts", "lambdas", "stacks")
"""Folders with the code and the data that a synth reads."""

FILES: Final = ("app.py", "cdk.json", "requirements/runtime.txt", "requirements/lambdas.txt")
"""The locks stand for the installed packages."""

_SETTINGS: Final = ("CDK_", "JSII_")
"""Beginnings of environment variables that change what the CDK does."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a synth made: resources of each stack, objects of each chart."""

    stacks: Mapping[str, int]
    charts: Mapping[str, int]


def fingerprint(file: Path, root: Path) -> str:
    """Of everything that decides what a synth writes: platform file, code, data, packages, Python and settings."""
    digest = hashlib.sha256(file.read_bytes())
    for path in _read(root):
        digest.update(f"\0{path.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    settings = sorted(f"{key}={value}" for key, value in os.environ.items() if key.startswith(_SETTINGS))
    digest.update("\0".join([platform.python_version(), *settings]).encode())
    return digest.hexdigest()


def _read(root: Path) -> Iterator[Path]:
    for folder in CODE:
        yield from sorted(path for path in (root / folder).rglob("*") if path.is_file() and path.suffix != ".pyc")
    yield from (root / name for name in FILES if (root / name).exists())


def record(made: Made, inputs: str, outputs: Sequence[Path]) -> None:
    """Notes in the first of the output folders what it was all made from, as the last thing before they are shown."""
    note = {"inputs": inputs, "outputs": [_listing(folder) for folder in outputs], "made": asdict(made)}
    (outputs[0] / RECORD).write_text(json.dumps(note), encoding="utf-8")


def earlier(inputs: str, outputs: Sequence[Path]) -> Made | None:
    """What an earlier synth made from the same inputs, when its outputs are still as it wrote them; else None."""
    try:
        note = json.loads((outputs[0] / RECORD).read_text(encoding="utf-8"))
        if note["inputs"] != inputs or note["outputs"] != [_listing(folder) for folder in outputs]:
            return None
        return Made(**note["made"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _listing(folder: Path) -> dict[str, list[int]]:
    """Size and time of each file: a change by hand shows in one of them."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != RECORD:
            state = path.stat()
            found[path.relative_to(folder).as_posix()] = [state.st_size, state.st_mtime_ns]
    return found
