"""Ways to place a model on hardware: each instance type, split over as many cores as its heads allow.

What the platform file would say is built for each way, and the file's own checks decide whether it fits. So nothing is
proposed that a synth would refuse, and what does not fit is told in the same words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from genai_finops.catalog import InstanceType, families
from genai_finops.catalog.instances import GIB
from genai_finops.spec import Model, placement
from genai_finops.spec.checks import engine as engine_checks
from genai_finops.spec.checks import hardware as hardware_checks
from genai_finops.spec.model import Buckets, Compile

SPLITS: Final = (1, 2, 4, 8, 16, 32)
"""Tensor-parallel sizes that are tried."""

_PATH: Final = "models[0]"


@dataclass(frozen=True, slots=True)
class Fit:
    """A model on one instance type, and whether it can run there.

    Attributes:
        model: as the file would describe it, with this instance type alone.
        replicas_per_node: 0 where it does not fit.
        reason: why it does not fit; empty where it does.
    """

    model: Model
    instance: InstanceType
    replicas_per_node: int
    reason: str

    @property
    def fits(self) -> bool:
        return not self.reason

    @property
    def tensor_parallel_size(self) -> int:
        return self.model.tensor_parallel_size


def fits(model: Model) -> Iterator[Fit]:
    """Every instance type of the catalog with every split that it has cores for, the smallest split first.

    A split that an instance has too few cores for, or that does not divide the heads, is no way to place the model
    and is left out; one that lacks memory is given with its reason.
    """
    for types in families().values():
        for instance in types:
            for split in SPLITS:
                if split <= instance.cores and _divides(model, split):
                    yield fit(model, instance, split)


def fit(model: Model, instance: InstanceType, split: int) -> Fit:
    """The model on `instance`, each replica split over `split` cores."""
    moved = placed(model, instance, split)
    reason = _problem(moved)
    return Fit(moved, instance, 0 if reason else placement.replicas_per_node(moved, instance), reason)


def placed(model: Model, instance: InstanceType, split: int) -> Model:
    """The model as the file would describe it on `instance`: settings that mean nothing there are left out."""
    accelerator = model.accelerator.model_copy(
        update={"family": instance.family, "sizes": (instance.size,), "tensor_parallel_size": split}
    )
    moved = model.model_copy(update={"accelerator": accelerator})
    if instance.family != model.accelerator.family:
        moved = moved.model_copy(update={"compile": Compile()})  # its size is one of the family
    if moved.vendor == model.vendor:
        return moved
    engine: dict[str, object] = {
        "image": None,
        "max_num_seqs": None,
        "quantization": None,
        "buckets": Buckets(),
        "prefix_caching": None,
        "block_size": None,
        "num_gpu_blocks_override": None,
        "gpu_memory_utilization": None,
        "neuron_config": {},
        "allow_compile_on_start": False,
    }
    return moved.model_copy(update={"engine": model.engine.model_copy(update=engine)})


def memory_words(model: Model, instance: InstanceType) -> str:
    """How much device memory a replica needs of each core, and how much there is."""
    shape = model.known_shape
    assert shape  # the checks of the file refuse a model without
    need = placement.memory_need(model, shape, instance)
    return f"needs {need.total / GIB:.1f} of {need.available / GIB:.1f} GiB per core"


def _problem(model: Model) -> str:
    """Why the file's checks would refuse this placement; empty when they would not."""
    instance = placement.instances(model)[0]
    shape = model.known_shape
    if shape is not None and not placement.memory_need(model, shape, instance).fits:
        return f"{instance.name} with tensor parallel {model.tensor_parallel_size} {memory_words(model, instance)}"
    for problem in (*hardware_checks.problems(model, _PATH), *engine_checks.problems(model, _PATH)):
        return f"{problem.path.removeprefix(f'{_PATH}.')} {problem.found}: {problem.why}"
    return ""


def _divides(model: Model, split: int) -> bool:
    shape = model.known_shape
    return shape is None or split in _splits(shape.attention_heads, shape.key_value_heads)


@cache
def _splits(attention_heads: int, key_value_heads: int) -> frozenset[int]:
    """Attention heads are split evenly; key-value heads likewise, or each is copied as often."""
    return frozenset(
        split
        for split in SPLITS
        if attention_heads % split == 0 and (key_value_heads % split == 0 or split % key_value_heads == 0)
    )
