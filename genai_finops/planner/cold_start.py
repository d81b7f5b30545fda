"""How long a replica takes from being wanted to being ready, phase by phase, each with where its figure comes from.

What is measured was measured on a g6e.2xlarge with an 8B model under Karpenter; what depends on the model and the node
is computed from bytes and rates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from genai_finops.catalog import InstanceType
from genai_finops.planner.provenance import Origin, worst
from genai_finops.spec import Model, Platform, placement
from genai_finops.spec.platform import NodePool

PhaseName = Literal["provision", "register", "image", "weights", "artifacts", "compile", "load", "ready"]

ARTICLE_SECONDS: Final = (180, 300)
"""The article's three to five minutes."""

PROVISION_SECONDS: Final = 53.0
REGISTER_SECONDS: Final = 36.0
IMAGE_SECONDS: Final = 121.0
CONTAINER_SECONDS: Final = 53.0
ENGINE_START_SECONDS: Final = 52.0
ENGINE_INIT_SECONDS: Final = 34.0
NEURON_IMAGE_SECONDS: Final = 150.0
COMPILE_SECONDS: Final = 900.0
DEVICE_BYTES_PER_SECOND: Final = 2e9
PROBE_SECONDS: Final = 5.0
"""On average half of the startup probe's period."""

LOCAL_DISK_BYTES_PER_SECOND: Final = 1.5e9
"""Writing to a node's own NVMe disks."""

_MEASURED: Final = "public measurement, g6e.2xlarge with an 8B model under Karpenter"
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Phase:
    """One step on the way.

    Attributes:
        seconds: on a fresh node.
        on_warm_node: whether a node that has served the model before pays it again.
    """

    name: PhaseName
    seconds: float
    on_warm_node: bool
    origin: Origin


@dataclass(frozen=True, slots=True)
class ColdStart:
    """All phases, in their order."""

    model: str
    instance: str
    phases: tuple[Phase, ...]

    @property
    def launch_seconds(self) -> float:
        """Until there is a node that takes the replica."""
        return sum(phase.seconds for phase in self.phases if phase.name in ("provision", "register"))

    @property
    def fresh_seconds(self) -> float:
        """From there to a ready replica, on a node that has nothing yet."""
        return self.total_seconds - self.launch_seconds

    @property
    def warm_seconds(self) -> float:
        """The same on a node that has served this model before."""
        return sum(phase.seconds for phase in self.phases if phase.on_warm_node)

    @property
    def total_seconds(self) -> float:
        """From a waiting replica to a ready one, node included."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def with_image_seconds(self) -> float:
        """The total where the image is on the node's disk already."""
        return sum(phase.seconds for phase in self.phases if phase.name != "image")

    @property
    def origin(self) -> Origin:
        """Of the total: the worst of its phases', with an error bar that its largest ones decide."""
        error = sum(phase.seconds * phase.origin.relative_error for phase in self.phases) / self.total_seconds
        return Origin(worst(*(phase.origin.provenance for phase in self.phases)), error, "sum of its phases")


def cold_start(platform: Platform, model: Model, instance: InstanceType) -> ColdStart:
    """A replica of a valid platform on one of its instance types."""
    pool = platform.node_pool(instance.family)
    return ColdStart(model.name, instance.name, tuple(_phases(model, instance, pool)))


def _phases(model: Model, instance: InstanceType, pool: NodePool) -> Iterator[Phase]:
    measured = Origin("measured", 0.3, _MEASURED)
    yield Phase("provision", PROVISION_SECONDS, False, measured)
    yield Phase("register", REGISTER_SECONDS, False, measured)
    yield _image(model, pool)
    rate, limit = _bytes_per_second(instance, pool)
    computed = Origin("assumed", 0.3, f"bytes over {limit}")
    artifacts = placement.artifact_bytes(model)
    shape = model.known_shape
    weights = placement.checkpoint_bytes(shape) if shape else 0
    # Compiled graphs carry the weights, split; beside them only small files are brought.
    yield Phase("weights", 0.0 if artifacts else weights / rate, False, computed)
    if model.is_neuron:
        yield Phase("artifacts", artifacts / rate, False, computed)
        if not model.is_precompiled:
            yield Phase("compile", COMPILE_SECONDS, True, Origin("assumed", 0.5, "15 minutes or more, as published"))
    yield _load(model, weights)
    yield Phase("ready", PROBE_SECONDS, True, Origin("assumed", 0.5, "half of the startup probe's period"))


def _image(model: Model, pool: NodePool) -> Phase:
    if pool.image_preload.snapshot:
        return Phase("image", 0.0, False, Origin("assumed", 0.0, "on the node's disk, from the snapshot"))
    if model.is_neuron:
        published = Origin("assumed", 0.2, "published range of 120 to 180 s for the Neuron image")
        return Phase("image", NEURON_IMAGE_SECONDS, False, published)
    pulled = IMAGE_SECONDS + CONTAINER_SECONDS
    return Phase("image", pulled, False, Origin("measured", 0.3, f"{_MEASURED}, pull and container start"))


def _load(model: Model, weights: int) -> Phase:
    """The engine's start, the weights to the device, and what the engine prepares."""
    transfer = weights / model.tensor_parallel_size / DEVICE_BYTES_PER_SECOND
    if model.is_neuron:
        seconds = ENGINE_START_SECONDS + transfer
        rate = f"{DEVICE_BYTES_PER_SECOND / 1e9:g} GB/s"
        how = f"engine start as measured elsewhere, and split weights at an assumed {rate}"
        return Phase("load", seconds, True, Origin("assumed", 0.5, how))
    seconds = ENGINE_START_SECONDS + ENGINE_INIT_SECONDS + transfer
    return Phase("load", seconds, True, Origin("measured", 0.3, f"{_MEASURED}, and the weights to the device"))


def _bytes_per_second(instance: InstanceType, pool: NodePool) -> tuple[float, str]:
    """The slowest on the way from the store to the node's disk, and which that is."""
    network = instance.network_mbps * 1e6 / 8
    if instance.local_nvme_gb:
        disk, name = LOCAL_DISK_BYTES_PER_SECOND, "the local disks' assumed rate"
    else:
        volume, link = pool.volume.throughput_mib_s * _MIB, instance.ebs_mbps * 1e6 / 8
        disk, name = (volume, "the volume's throughput") if volume <= link else (link, "the instance's EBS bandwidth")
    return (network, "the instance's network bandwidth") if network <= disk else (disk, name)
