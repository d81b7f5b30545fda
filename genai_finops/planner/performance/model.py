"""How fast one replica serves, from what the hardware reaches in published measurements, or from one of your own.

A decode step reads the weights and the KV cache from memory once, pays a fixed time for each layer and a little for
each further sequence. A prompt is computed at a share of the peak. Where nobody has published a measurement of a
layout, the same formula is used and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from genai_finops.catalog import InstanceType, ModelShape
from genai_finops.catalog.performance import AcceleratorPerformance, accelerator_performance
from genai_finops.planner.performance.replica import ReplicaPerformance
from genai_finops.planner.provenance import Origin
from genai_finops.spec import Model, placement
from genai_finops.spec.engine import context_encoding_buckets

REFERENCE_LAYERS: Final = 32
REFERENCE_PARAMETERS: Final = 8.03e9
"""The 8B model that `sequence_ms` was measured with."""

CACHE_BYTES_PER_VALUE: Final = 2
GPU_BLOCK_TOKENS: Final = 16
"""vLLM's default block of the KV cache."""

LARGE_GPU_BYTES: Final = 70 * 2**30
CHUNK_TOKENS: Final = 2048
LARGE_CHUNK_TOKENS: Final = 8192
"""vLLM's default max_num_batched_tokens for a server; the larger one from 70 GiB on, but not on an A100."""

_CHUNK_ARGUMENT: Final = "--max-num-batched-tokens"


@dataclass(frozen=True, slots=True)
class MeasuredProfile:
    """What `calibrate` found for one model on one instance type with one layout.

    Attributes:
        prefill_seconds: of a prompt, whatever its length.
        decode_relative_error, prefill_relative_error: largest deviation from what was measured.
        source: files and engine, for footnotes.
    """

    model: str
    instance: str
    tensor_parallel_size: int
    step_seconds: float
    step_seconds_per_sequence: float
    prefill_seconds: float
    prefill_seconds_per_token: float
    decode_relative_error: float
    prefill_relative_error: float
    measured: date
    source: str

    def is_of(self, model: Model, instance: InstanceType) -> bool:
        return (self.model, self.instance, self.tensor_parallel_size) == (
            model.name,
            instance.name,
            model.tensor_parallel_size,
        )


def replica_performance(
    model: Model, instance: InstanceType, profiles: Sequence[MeasuredProfile] = ()
) -> ReplicaPerformance:
    """One replica of a checked model.

    Args:
        profiles: the last one of this model, instance type and layout takes the place of the computed step.

    Raises:
        ValueError: when the catalog knows nothing about the accelerator.
    """
    shape, accelerator = model.known_shape, instance.accelerator
    if shape is None or accelerator is None:
        raise ValueError(f"{model.name} on {instance.name}: neither without a shape nor without an accelerator")
    facts = accelerator_performance().get(accelerator.name)
    if facts is None:
        known = ", ".join(sorted(accelerator_performance()))
        raise ValueError(
            f"Nothing is known about how fast {accelerator.name} ({instance.name}) serves. Known: {known}. Add it to "
            "genai_finops/catalog/data/performance.yaml, or use another family."
        )
    split = model.tensor_parallel_size
    step = decode_step(
        facts,
        shape,
        devices=split / accelerator.cores,
        split=split,
        compiled_sequences=model.max_num_seqs,
        weight_bytes=placement.weight_bytes(model, shape),
        bytes_per_second=facts.bytes_per_second(accelerator.memory_bytes),
    )
    serial = model.is_neuron
    profile = next((each for each in reversed(profiles) if each.is_of(model, instance)), None)
    per_token = prefill_seconds_per_token(facts, shape, split / accelerator.cores)
    computed = _computed_origin(facts, split)
    return ReplicaPerformance(
        model=model.name,
        instance=instance.name,
        tensor_parallel_size=split,
        step_seconds=profile.step_seconds if profile else step.seconds,
        step_seconds_per_sequence=profile.step_seconds_per_sequence if profile else step.seconds_per_sequence,
        step_seconds_per_token=step.seconds_per_token,
        prefill="serial" if serial else "chunked",
        prefill_seconds=profile.prefill_seconds if profile else 0.0,
        prefill_seconds_per_token=profile.prefill_seconds_per_token if profile else per_token,
        buckets=context_encoding_buckets(model) if serial else (),
        chunk_tokens=model.engine.max_model_len if serial else _chunk_tokens(model, instance),
        max_sequences=model.max_num_seqs,
        max_tokens=model.engine.max_model_len,
        cache_tokens=_cache_tokens(model, shape, instance),
        block_tokens=model.engine.block_size or (model.engine.max_model_len if serial else GPU_BLOCK_TOKENS),
        decode_origin=_measured(profile, profile.decode_relative_error) if profile else computed,
        prefill_origin=(
            _measured(profile, profile.prefill_relative_error)
            if profile
            else Origin(computed.provenance, facts.prefill_error, facts.source)
        ),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """A decode step: `seconds` + `seconds_per_sequence` x sequences + `seconds_per_token` x tokens in the cache."""

    seconds: float
    seconds_per_sequence: float
    seconds_per_token: float

    def of(self, sequences: int, context_tokens: int) -> float:
        """With as many tokens in the cache of each sequence."""
        cached = sequences * context_tokens
        return self.seconds + self.seconds_per_sequence * sequences + self.seconds_per_token * cached


def decode_step(
    facts: AcceleratorPerformance,
    shape: ModelShape,
    *,
    devices: float,
    split: int,
    compiled_sequences: int,
    weight_bytes: float,
    bytes_per_second: float,
) -> Step:
    """The step of a replica over `devices`, split `split` ways.

    The first sequence is part of the fixed time, since that was fitted to batches of one. Where graphs are static, all
    that were compiled are.
    """
    reached = facts.efficiency_over(devices) * bytes_per_second * devices
    if facts.layer_ms:
        more = facts.sequence_ms / 1000 * shape.layers / REFERENCE_LAYERS
    else:
        more = facts.sequence_ms / 1000 * shape.parameters / REFERENCE_PARAMETERS / split
    layer_ms = facts.layer_ms + (facts.split_layer_ms if split > 1 else 0)
    fixed = layer_ms / 1000 * shape.layers + weight_bytes / reached
    return Step(
        seconds=fixed + more * (compiled_sequences - 1 if facts.is_static else -1),
        seconds_per_sequence=0.0 if facts.is_static else more,
        seconds_per_token=shape.key_value_bytes_per_token(CACHE_BYTES_PER_VALUE) / reached,
    )


def prefill_seconds_per_token(facts: AcceleratorPerformance, shape: ModelShape, devices: float) -> float:
    """Two operations for each parameter and token, at the share of the peak that is reached."""
    larger: float = (shape.parameters / REFERENCE_PARAMETERS) ** facts.prefill_mfu_growth
    return 2 * shape.parameters / (facts.prefill_mfu * larger * facts.bf16_tflops * 1e12 * devices)


def _computed_origin(facts: AcceleratorPerformance, split: int) -> Origin:
    if facts.provenance == "assumed":
        return Origin("assumed", facts.extrapolated_error, facts.source)
    if split in facts.measured_splits:
        return Origin("fitted", facts.fitted_error, facts.source)
    return Origin("extrapolated", facts.extrapolated_error, f"{facts.source}; not measured split {split} ways")


def _measured(profile: MeasuredProfile, error: float) -> Origin:
    return Origin("measured", error, f"{profile.source}, {profile.measured}")


def _cache_tokens(model: Model, shape: ModelShape, instance: InstanceType) -> int:
    if model.is_neuron:
        return model.max_num_seqs * model.engine.max_model_len
    need = placement.memory_need(model, shape, instance)
    heads = min(model.tensor_parallel_size, shape.key_value_heads)
    per_token = shape.key_value_bytes_per_token(CACHE_BYTES_PER_VALUE) / heads
    return max(0, int((need.available - need.weights - need.reserved) / per_token))


def _chunk_tokens(model: Model, instance: InstanceType) -> int:
    arguments = list(model.engine.extra_args)
    for position, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name == _CHUNK_ARGUMENT:
            text = value or (arguments[position + 1] if position + 1 < len(arguments) else "")
            if text.isdigit() and int(text) > 0:
                return int(text)
    accelerator = instance.accelerator
    assert accelerator
    is_large = accelerator.memory_bytes >= LARGE_GPU_BYTES and accelerator.name != "a100"
    return LARGE_CHUNK_TOKENS if is_large else CHUNK_TOKENS
