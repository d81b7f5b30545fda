"""What the platform's own pods take of every accelerator node."""

from dataclasses import dataclass
from functools import cache

from genai_finops.catalog import _files


@dataclass(frozen=True, slots=True)
class SystemPod:
    name: str
    cpu_millis: int
    memory_mib: int
    source: str


@cache
def system_pods() -> tuple[SystemPod, ...]:
    return tuple(SystemPod(**entry) for entry in _files.document("system_pods.yaml"))
