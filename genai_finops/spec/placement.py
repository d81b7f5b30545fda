"""How a model sits on the hardware: devices per replica, replicas per node, memory per core.

Pure arithmetic over the file and the catalog. The checks turn it into errors, the charts into requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from genai_finops.catalog import InstanceType, ModelShape, families, system_pods
from genai_finops.catalog.instances import GIB
from genai_finops.spec.model import Model
from genai_finops.spec.platform import NodePool

NEURON_MEMORY_RESERVED: Final = 0.15
"""Share of a NeuronCore's memory kept for the runtime, compiled graphs and activations (assumed: none is published)."""

NVIDIA_MEMORY_RESERVED_BYTES: Final = int(1.5 * GIB)
"""CUDA context, graphs and activations of one GPU (assumed; vLLM measures the real figure at start)."""

DEFAULT_GPU_MEMORY_UTILIZATION: Final = 0.9
DEFAULT_CPU: Final = 8
DEFAULT_MEMORY_GIB: Final = 64

COMPILE_HOST_MEMORY_FACTOR: Final = 2
"""Host memory that compiling needs, in multiples of the weights: the checkpoint and its shards at once
(assumed lower bound; the published kit asks for seven times)."""

IMAGE_GIB: Final = 20
"""The server's image, unpacked, and the system (the Neuron image has 11 to 18 GB)."""

BESIDE_THE_CACHE_GIB: Final = 2 * IMAGE_GIB
"""Of a node's volume, kept free of models: two images while a new one replaces another."""

CHECKPOINT_BYTES_PER_PARAMETER: Final = 2
"""Weights as they are published; quantization happens when they are loaded."""

_DTYPE_BYTES: Final = 2
_QUANTIZED_BYTES: Final = 1


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What one accelerator core must hold for one replica, in bytes.

    On Neuron without prefix caching every sequence owns max_model_len, so the cache is reserved in full. On a GPU
    the cache is paged: the server starts when one whole sequence fits, and queues what does not.
    """

    weights: int
    cache: int
    reserved: int
    available: int

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.reserved

    @property
    def fits(self) -> bool:
        return self.total <= self.available


def devices_per_replica(model: Model, instance: InstanceType) -> int:
    """Whole devices that hold `tensor_parallel_size` cores."""
    assert instance.accelerator
    return ceil(model.tensor_parallel_size / instance.accelerator.cores)


def weight_bytes(model: Model, shape: ModelShape) -> int:
    return shape.weight_bytes(_QUANTIZED_BYTES if model.engine.quantization else _DTYPE_BYTES)


def memory_need(model: Model, shape: ModelShape, instance: InstanceType) -> MemoryNeed:
    """Memory of one core for one replica of `model` on `instance`."""
    assert instance.accelerator
    split = model.tensor_parallel_size
    sequences = model.max_num_seqs if model.is_neuron else 1
    tokens = sequences * model.engine.max_model_len
    # Key-value heads are split as far as there are any, then copied.
    cache = tokens * shape.key_value_bytes_per_token(_DTYPE_BYTES) // min(split, shape.key_value_heads)
    core = instance.accelerator.core_memory_bytes
    if model.is_neuron:
        reserved, available = int(core * NEURON_MEMORY_RESERVED), core
    else:
        utilization = model.engine.gpu_memory_utilization or DEFAULT_GPU_MEMORY_UTILIZATION
        reserved, available = NVIDIA_MEMORY_RESERVED_BYTES, int(core * utilization)
    return MemoryNeed(weight_bytes(model, shape) // split, cache, reserved, available)


@dataclass(frozen=True, slots=True)
class Share:
    """What one replica can get of a node when as many replicas share it as its devices allow."""

    replicas: int
    cpu_millis: int
    memory_mib: int


def node_share(model: Model, instance: InstanceType) -> Share:
    """One replica's share of `instance` after the platform's own pods; no replicas when the devices do not suffice."""
    replicas = instance.devices // devices_per_replica(model, instance)
    cpu, memory = host_share(instance)
    return Share(replicas, cpu // max(replicas, 1), memory // max(replicas, 1))


def compile_memory_gib(model: Model) -> int:
    """Host memory that compiling takes; 0 where nothing is compiled."""
    shape = model.known_shape
    if not model.is_neuron or shape is None:
        return 0
    return ceil(COMPILE_HOST_MEMORY_FACTOR * weight_bytes(model, shape) / GIB)


def compile_host_memory_gib(model: Model) -> int:
    """Memory a replica needs to compile at start; 0 where it never does."""
    return compile_memory_gib(model) if model.engine.allow_compile_on_start else 0


def host_share(instance: InstanceType) -> tuple[int, int]:
    """CPU in thousandths and memory in MiB of the whole of `instance`, after the platform's own pods."""
    cpu = instance.allocatable_cpu_millis - sum(pod.cpu_millis for pod in system_pods())
    return cpu, instance.allocatable_memory_mib - sum(pod.memory_mib for pod in system_pods())


def compiles_on(model: Model, instance: InstanceType) -> bool:
    """Whether `instance`, all of it, is enough to compile the model: devices, their memory, the host's memory."""
    shape = model.known_shape
    if shape is None or instance.devices < devices_per_replica(model, instance):
        return False
    cpu_millis, memory_mib = host_share(instance)
    enough = cpu_millis >= 1000 and memory_mib >= 1024 * compile_memory_gib(model)
    return enough and memory_need(model, shape, instance).fits


def compile_instance(model: Model) -> InstanceType | None:
    """Where the compile job runs: the size given, else the smallest that is able. None without one."""
    types = families()[model.accelerator.family]
    if model.compile.size:
        return next((instance for instance in types if instance.size == model.compile.size), None)
    return next((instance for instance in types if compiles_on(model, instance)), None)


def pool_instances(model: Model) -> tuple[InstanceType, ...]:
    """What Karpenter may launch for the model: to serve it, and to compile it."""
    serving = instances(model)
    compiling = compile_instance(model) if model.is_precompiled else None
    return serving if compiling is None or compiling in serving else (*serving, compiling)


def checkpoint_bytes(shape: ModelShape) -> int:
    """The weights as they are published."""
    return shape.weight_bytes(CHECKPOINT_BYTES_PER_PARAMETER)


def artifact_bytes(model: Model) -> int:
    """Compiled graphs with the weights in them; 0 where none are stored. The graphs alone are small beside these."""
    shape = model.known_shape
    return weight_bytes(model, shape) if shape and model.is_precompiled else 0


def stored_bytes(model: Model) -> int:
    """What the model takes in the model store, and at most in a node's cache: its files, and its artifacts."""
    shape = model.known_shape
    return checkpoint_bytes(shape) + artifact_bytes(model) if shape else 0


def cache_gib(pool: NodePool, models: Sequence[Model]) -> int:
    """How much a node of the pool keeps of weights and artifacts: at least what the largest of its models takes."""
    largest = max(ceil(stored_bytes(model) / GIB) for model in models)
    return pool.cache_gib or max(largest, pool.volume.size_gib - BESIDE_THE_CACHE_GIB)


def serves_on(model: Model, instance: InstanceType) -> bool:
    """Whether devices, device memory and host memory of `instance` are enough for one replica."""
    shape = model.known_shape
    share = node_share(model, instance)
    if shape is None or share.replicas == 0 or share.cpu_millis < 1000:
        return False
    host_enough = share.memory_mib >= 1024 * max(compile_host_memory_gib(model), 4)
    return host_enough and memory_need(model, shape, instance).fits


def has_room(model: Model, instance: InstanceType) -> bool:
    """Whether the CPU and memory asked for in the file are there once on `instance`."""
    share = node_share(model, instance)
    asked_cpu, asked_memory = model.resources.cpu or 0, model.resources.memory_gib or 0
    return (
        asked_cpu * 1000 <= share.cpu_millis * share.replicas
        and asked_memory * 1024 <= share.memory_mib * share.replicas
    )


def sizes(model: Model) -> tuple[str, ...]:
    """The sizes given, else those of the family with the fewest devices that the model and its resources fit.

    Empty when the model fits none. Where only its resources fit none, the sizes that serve it otherwise.
    """
    if model.accelerator.sizes:
        return model.accelerator.sizes
    serving = [instance for instance in families()[model.accelerator.family] if serves_on(model, instance)]
    fitting = [instance for instance in serving if has_room(model, instance)] or serving
    fewest = min((instance.devices for instance in fitting), default=0)
    return tuple(instance.size for instance in fitting if instance.devices == fewest)


def instances(model: Model) -> tuple[InstanceType, ...]:
    """The instance types that Karpenter may choose from for this model."""
    return model.instance_types(sizes(model))


def cpu(model: Model) -> int:
    """Cores requested for one replica."""
    smallest = min(node_share(model, instance).cpu_millis for instance in instances(model))
    return model.resources.cpu or max(1, min(DEFAULT_CPU, smallest // 1000))


def memory_gib(model: Model) -> int:
    """Memory requested, and the limit, for one replica."""
    smallest = min(node_share(model, instance).memory_mib for instance in instances(model))
    return model.resources.memory_gib or max(1, min(DEFAULT_MEMORY_GIB, smallest // 1024))


def replicas_per_node(model: Model, instance: InstanceType) -> int:
    """Replicas that really fit on one node: by devices, CPU and memory."""
    share = node_share(model, instance)
    free_cpu, free_memory = share.cpu_millis * share.replicas, share.memory_mib * share.replicas
    return min(share.replicas, free_cpu // (1000 * cpu(model)), free_memory // (1024 * memory_gib(model)))


def shares_a_node(model: Model) -> bool:
    """Whether replicas may end up beside each other on a node with several devices."""
    return any(instance.devices > devices_per_replica(model, instance) for instance in instances(model))
