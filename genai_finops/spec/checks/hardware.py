"""Does the model fit: do the instances exist, have enough devices, and enough memory of each kind?"""

from collections.abc import Iterator
from typing import Final

from genai_finops.catalog import InstanceType, ModelShape, families, model_shapes
from genai_finops.catalog.instances import GIB
from genai_finops.spec import placement
from genai_finops.spec.model import HUB, Model
from genai_finops.spec.problems import Problem, one_of

_SPLITS: Final = (1, 2, 4, 8, 16, 32, 64)


def problems(model: Model, path: str) -> Iterator[Problem]:
    family = model.accelerator.family
    if family not in families():
        yield Problem(
            f"{path}.accelerator.family",
            f"is {family!r}",
            "The catalog has no instances with accelerators in that family.",
            f"Use {one_of(sorted(families()))}.",
        )
        return
    shape = model.known_shape
    if shape is None:
        yield _unknown_shape(model, path)
        return
    missing_sizes = list(_missing_sizes(model, path))
    yield from missing_sizes
    if missing_sizes:
        return
    heads = list(_heads(model, shape, path))
    yield from heads
    if heads:
        return
    if not model.accelerator.sizes and model.tensor_parallel_size > families()[family][-1].cores:
        yield _too_few_cores(model, path)
        return
    if not placement.sizes(model):
        yield _fits_nowhere(model, shape, path)
        return
    fit = [problem for instance in placement.instances(model) for problem in _fit(model, shape, instance, path)]
    yield from fit
    if not fit:
        yield from _pod(model, path)
        if model.is_precompiled:
            yield from _compile(model, shape, path)


def _unknown_shape(model: Model, path: str) -> Problem:
    known = sorted(repository for shape in model_shapes() for repository in shape.repositories)
    return Problem(
        f"{path}.shape",
        "is missing",
        f"The catalog does not know {model.source}, so nothing can say whether it fits.",
        "Copy parameters, layers, attention_heads, key_value_heads, head_dimension and max_position_embeddings from "
        f"its config.json. Known without that: {one_of(f'{HUB}{repository}' for repository in known)}.",
    )


def _missing_sizes(model: Model, path: str) -> Iterator[Problem]:
    family = model.accelerator.family
    available = [instance.size for instance in families()[family]]
    for index, size in enumerate(model.accelerator.sizes):
        if size not in available:
            yield Problem(
                f"{path}.accelerator.sizes[{index}]",
                f"is {size!r}",
                f"There is no {family}.{size} in the catalog.",
                f"{family} has {one_of(available)}.",
            )
        elif size in model.accelerator.sizes[:index]:
            yield Problem(
                f"{path}.accelerator.sizes[{index}]",
                f"is {size!r}",
                "It is there already.",
                "Leave it out once.",
            )


def _heads(model: Model, shape: ModelShape, path: str) -> Iterator[Problem]:
    split = model.tensor_parallel_size
    if shape.attention_heads % shape.key_value_heads:
        yield Problem(
            f"{path}.shape.key_value_heads",
            f"is {shape.key_value_heads}",
            f"Each key-value head serves the same number of the {shape.attention_heads} attention heads.",
            "Copy num_attention_heads and num_key_value_heads from its config.json.",
        )
        return
    if _divides(split, shape):
        return
    allowed = [size for size in _SPLITS if _divides(size, shape)]
    yield Problem(
        f"{path}.accelerator.tensor_parallel_size",
        f"is {split}",
        f"{shape.name} has {shape.attention_heads} attention heads and {shape.key_value_heads} key-value heads: they "
        f"cannot be split evenly {split} ways.",
        f"Use {one_of(allowed)}.{_largest_splits(model, allowed)}",
    )


def _divides(split: int, shape: ModelShape) -> bool:
    """Attention heads are split evenly; key-value heads are split evenly too, or each is copied as often."""
    key_value = shape.key_value_heads
    return shape.attention_heads % split == 0 and (key_value % split == 0 or split % key_value == 0)


def _too_few_cores(model: Model, path: str) -> Problem:
    largest = families()[model.accelerator.family][-1]
    return Problem(
        f"{path}.accelerator.tensor_parallel_size",
        f"is {model.tensor_parallel_size}",
        f"The largest of the family, {largest.name}, has {largest.cores} accelerator cores.",
        f"Use at most {largest.cores}, or another family.",
    )


def _largest_splits(model: Model, allowed: list[int]) -> str:
    if not model.accelerator.sizes:
        return ""
    words = [
        f" On {instance.name} ({instance.cores} cores) the largest that fits is "
        f"{max((size for size in allowed if size <= instance.cores), default=1)}."
        for instance in placement.instances(model)
    ]
    return "".join(words)


def _fits_nowhere(model: Model, shape: ModelShape, path: str) -> Problem:
    need = placement.weight_bytes(model, shape) / GIB
    return Problem(
        f"{path}.accelerator.family",
        f"is {model.accelerator.family!r}",
        f"No size of it holds {shape.name} ({need:.1f} GiB of weights) split {model.tensor_parallel_size} ways with "
        f"max_model_len {model.engine.max_model_len}.",
        "Raise tensor_parallel_size, lower engine.max_model_len or engine.max_num_seqs, set engine.quantization, or "
        "use a family with more device memory.",
    )


def _fit(model: Model, shape: ModelShape, instance: InstanceType, path: str) -> Iterator[Problem]:
    split = model.tensor_parallel_size
    if instance.cores < split:
        yield Problem(
            f"{path}.accelerator.tensor_parallel_size",
            f"is {split}",
            f"{instance.name} has {instance.cores} accelerator cores.",
            f"Use at most {instance.cores}, or take {instance.size} out of accelerator.sizes.",
        )
        return
    need = placement.memory_need(model, shape, instance)
    if not need.fits:
        yield _too_large(model, instance, need, path)
    host_gib = placement.compile_host_memory_gib(model)
    share = placement.node_share(model, instance)
    if share.memory_mib < 1024 * host_gib:
        yield Problem(
            f"{path}.accelerator.sizes",
            f"lets it run on {instance.name}",
            f"With engine.allow_compile_on_start the server may compile, which takes at least {host_gib} GiB of host "
            f"memory; a replica gets {share.memory_mib / 1024:.1f} GiB of {instance.name}.",
            "Leave allow_compile_on_start out, so that it serves what the compile job has stored, or take "
            f"{instance.size} out of accelerator.sizes.",
        )


def _too_large(model: Model, instance: InstanceType, need: placement.MemoryNeed, path: str) -> Problem:
    sequences = f"{model.max_num_seqs} sequences" if model.is_neuron else "one sequence"
    unit = "core" if model.is_neuron else "GPU"
    if model.is_neuron:
        per_sequence = need.cache // model.max_num_seqs
        fitting = (need.available - need.weights - need.reserved) // per_sequence
        if fitting > 0:
            advice = f"At most {fitting} sequence{'s' if fitting > 1 else ''} fit{'s' if fitting == 1 else ''}. "
        elif need.weights + need.reserved > need.available:
            advice = "The weights alone do not fit. "
        else:
            advice = "Not one sequence fits beside the weights. "
    else:
        advice = ""
    return Problem(
        f"{path}.engine.max_num_seqs" if model.is_neuron else f"{path}.engine.max_model_len",
        f"is {model.max_num_seqs if model.is_neuron else model.engine.max_model_len}",
        f"On {instance.name} each {unit} has {need.available / GIB:.1f} GiB to use and would need "
        f"{need.total / GIB:.1f}: {need.weights / GIB:.1f} of weights, {need.cache / GIB:.1f} of KV cache ({sequences} "
        f"of {model.engine.max_model_len} tokens) and {need.reserved / GIB:.1f} reserved for the runtime.",
        f"{advice}Lower engine.max_num_seqs or engine.max_model_len, raise accelerator.tensor_parallel_size, or set "
        "engine.quantization.",
    )


def _pod(model: Model, path: str) -> Iterator[Problem]:
    for instance in placement.instances(model):
        if placement.replicas_per_node(model, instance) > 0:
            continue
        share = placement.node_share(model, instance)
        cpu, memory = share.cpu_millis * share.replicas, share.memory_mib * share.replicas
        if placement.cpu(model) * 1000 > cpu:
            yield Problem(
                f"{path}.resources.cpu",
                f"is {placement.cpu(model)}",
                f"After the platform's own pods {instance.name} has {cpu / 1000:.1f} cores for models.",
                f"Use at most {cpu // 1000}, or {_other_size(model, instance)}.",
            )
        if placement.memory_gib(model) * 1024 > memory:
            yield Problem(
                f"{path}.resources.memory_gib",
                f"is {placement.memory_gib(model)}",
                f"After the platform's own pods {instance.name} has {memory / 1024:.1f} GiB for models.",
                f"Use at most {memory // 1024}, or {_other_size(model, instance)}.",
            )
    host_gib = placement.compile_host_memory_gib(model)
    if model.resources.memory_gib and model.resources.memory_gib < host_gib:
        yield Problem(
            f"{path}.resources.memory_gib",
            f"is {model.resources.memory_gib}",
            "With engine.allow_compile_on_start the server may compile, which takes at least "
            f"{host_gib} GiB of host memory for this model.",
            f"Use {host_gib} or more, or leave memory_gib or allow_compile_on_start out.",
        )
    if model.resources.shared_memory_gib >= placement.memory_gib(model):
        yield Problem(
            f"{path}.resources.shared_memory_gib",
            f"is {model.resources.shared_memory_gib}",
            f"/dev/shm is part of the container's memory, which is {placement.memory_gib(model)} GiB.",
            "Make it smaller than memory_gib; 2 is enough for one server.",
        )


def _compile(model: Model, shape: ModelShape, path: str) -> Iterator[Problem]:
    """Whether there is a node that the compile job can run on."""
    family, size = model.accelerator.family, model.compile.size
    path = f"{path}.compile.size"
    memory = placement.compile_memory_gib(model)
    able = [instance.size for instance in families()[family] if placement.compiles_on(model, instance)]
    instance = placement.compile_instance(model)
    if not able:
        yield Problem(
            path,
            "has no size to choose",
            f"Compiling {shape.name} takes at least {memory} GiB of host memory, and no size of {family} that has the "
            "devices has as much.",
            "Use another family, or set engine.quantization.",
        )
    elif instance is None:
        available = [instance.size for instance in families()[family]]
        yield Problem(
            path, f"is {size!r}", f"There is no {family}.{size} in the catalog.", f"{family} has {one_of(available)}."
        )
    elif not placement.compiles_on(model, instance):
        yield Problem(
            path,
            f"is {size!r}",
            f"Compiling takes the devices of a replica and at least {memory} GiB of host memory; {instance.name} has "
            f"{instance.devices} devices and {placement.host_share(instance)[1] / 1024:.1f} GiB for it.",
            f"Use {one_of(able)}, or leave it out.",
        )


def _other_size(model: Model, instance: InstanceType) -> str:
    if model.accelerator.sizes:
        return f"take {instance.size} out of accelerator.sizes"
    return "use a family with larger hosts"
