"""The real controllers, built from their own sources at the versions that the platform pins.

Each stands in a small Go module under `controllers/`, pinned by its go.sum. What was built is kept outside the
checkout, by the hash of the module's files: a second run builds nothing, and a build that was cut off goes on where it
was, since Go keeps what it has compiled.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONTROLLERS: Final = Path(__file__).parent / "controllers"

OLDEST_GO: Final = (1, 26)

_REMEMBERED: Final = 20
"""Lines of a failed build that are shown."""


class BuildError(Exception):
    """A controller cannot be built; says what to do."""


@dataclass(frozen=True, slots=True)
class Binary:
    """One program.

    Attributes:
        module: folder below `controllers/`.
        package: Go package of its main function.
    """

    name: str
    module: str
    package: str


BINARIES: Final = {
    binary.name: binary
    for binary in (
        Binary("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        Binary("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
        Binary("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        Binary("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
        Binary("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
        Binary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        Binary("karpenter", "karpenter", "github.com/aws/karpenter-provider-aws/cmd/controller"),
        Binary("keda-operator", "keda", "github.com/kedacore/keda/v2/cmd/operator"),
        Binary("keda-adapter", "keda", "github.com/kedacore/keda/v2/cmd/adapter"),
        Binary("prometheus", "prometheus", "github.com/prometheus/prometheus/cmd/prometheus"),
        Binary(
            "prometheus-operator",
            "prometheus-operator",
            "github.com/prometheus-operator/prometheus-operator/cmd/operator",
        ),
        Binary("helm", "helm", "helm.sh/helm/v3/cmd/helm"),
    )
}

_CRDS: Final = {
    "karpenter": (
        ("sigs.k8s.io/karpenter", "pkg/apis/crds"),
        ("github.com/aws/karpenter-provider-aws", "pkg/apis/crds"),
    ),
    "keda": (("github.com/kedacore/keda/v2", "config/crd/bases"),),
    "prometheus-operator": (("github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd"),),
}
"""By module: where the sources keep their CustomResourceDefinitions."""


def cache_folder() -> Path:
    """Where built controllers are kept, by the rules of the XDG base directories."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "genai-finops" / "controllers"


def built(names: Iterable[str], told: Callable[[str], None] = lambda line: None) -> dict[str, Path]:
    """The programs called `names`, building those that are not there yet.

    Args:
        told: hears a line for each build.

    Raises:
        BuildError: without Go, or when a build fails.
    """
    return {name: _built(BINARIES[name], told) for name in names}


def _built(binary: Binary, told: Callable[[str], None]) -> Path:
    place = cache_folder() / f"{binary.module}-{_hash(binary.module)}" / binary.name
    if place.exists():
        return place
    go = find_go()
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place.with_name(f".{binary.name}.lock")):
        if not place.exists():
            told(f"building {binary.name} from {binary.package}")
            _build(go, binary, place)
    return place


def _build(go: str, binary: Binary, place: Path) -> None:
    half = place.with_name(f".{binary.name}.{os.getpid()}")
    command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", "-s -w", "-o", str(half), binary.package]
    done = subprocess.run(command, cwd=CONTROLLERS / binary.module, capture_output=True, text=True, check=False)
    if done.returncode:
        half.unlink(missing_ok=True)
        last = "\n".join(done.stderr.splitlines()[-_REMEMBERED:])
        raise BuildError(f"{binary.name} could not be built ({binary.package}):\n{last}")
    half.rename(place)


def crd_files(module: str) -> list[Path]:
    """The CustomResourceDefinitions in the sources of a controller, in the version that is built.

    Raises:
        BuildError: when its sources cannot be had.
    """
    found: list[Path] = []
    for path, folder in _CRDS[module]:
        found += sorted((_sources(module, path) / folder).glob("*.yaml"))
    if not found:
        raise BuildError(f"The sources of {module} hold no CustomResourceDefinitions where they did")
    return found


def _sources(module: str, path: str) -> Path:
    command = [find_go(), "mod", "download", "-json", path]
    subprocess.run(command, cwd=CONTROLLERS / module, capture_output=True, check=False)
    command = [find_go(), "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", path]
    done = subprocess.run(command, cwd=CONTROLLERS / module, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        raise BuildError(f"The sources of {path} cannot be had:\n{done.stderr.strip()}")
    return Path(done.stdout.strip())


def find_go() -> str:
    """Go's command.

    Raises:
        BuildError: when there is none, or an old one.
    """
    wanted = ".".join(map(str, OLDEST_GO))
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"The rehearsal builds the real controllers, which takes Go {wanted} or newer: install it.")
    done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    found = done.stdout.strip().removeprefix("go")
    if _version(found) < OLDEST_GO:
        raise BuildError(
            f"The rehearsal builds the real controllers, which takes Go {wanted} or newer; {go} is {found}"
        )
    return go


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


def _hash(module: str) -> str:
    digest = hashlib.sha256(f"{platform.system()}/{platform.machine()}".encode())
    for name in ("go.mod", "go.sum"):
        digest.update((CONTROLLERS / module / name).read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Only one process builds a program; the lock ends with the process."""
    with file.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
