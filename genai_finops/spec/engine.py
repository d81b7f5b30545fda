"""What `vllm serve` is told for a model: arguments and the Neuron configuration.

Kept out of the charts, since whatever shapes the compiled graphs must be computed once for all who need it.
"""

import json
from typing import Any, Final

from genai_finops import versions
from genai_finops.spec import names
from genai_finops.spec.model import Model
from genai_finops.spec.placement import DEFAULT_GPU_MEMORY_UTILIZATION

WEIGHTS_PATH: Final = "/models/weights"
"""Where a model's files stand in the container: a link into the node's cache."""
ARTIFACTS_PATH: Final = "/models/artifacts"
"""The same for its compiled graphs."""
SMALLEST_BUCKET: Final = 512


def image(model: Model) -> str:
    default = versions.VLLM_NEURON_IMAGE if model.is_neuron else versions.VLLM_NVIDIA_IMAGE
    return model.engine.image or default


def default_buckets(max_model_len: int) -> tuple[int, ...]:
    """Powers of two from 512 up, ending at `max_model_len` itself."""
    ladder = []
    length = SMALLEST_BUCKET
    while length < max_model_len:
        ladder.append(length)
        length *= 2
    return (*ladder, max_model_len)


def context_encoding_buckets(model: Model) -> tuple[int, ...]:
    return model.engine.buckets.context_encoding or default_buckets(model.engine.max_model_len)


def token_generation_buckets(model: Model) -> tuple[int, ...]:
    return model.engine.buckets.token_generation or default_buckets(model.engine.max_model_len)


def neuron_config(model: Model) -> dict[str, Any]:
    """The value of `override_neuron_config`: everything here shapes the compiled graphs."""
    config: dict[str, Any] = {
        # Weights are saved as each core loads them: a small host could not split them as it starts.
        "save_sharded_checkpoint": True,
        "enable_bucketing": True,
        "context_encoding_buckets": list(context_encoding_buckets(model)),
        "token_generation_buckets": list(token_generation_buckets(model)),
    }
    if model.engine.quantization == "int8":
        config |= {
            "quantized": True,
            "quantization_dtype": "int8",
            "quantization_type": "per_channel_symmetric",
        }
    return config | model.engine.neuron_config


def serve_arguments(model: Model) -> list[str]:
    """The arguments of `vllm serve`, the model first."""
    weights, *engine = engine_arguments(model)
    return [
        weights,
        "--served-model-name", model.served_as,
        "--port", str(names.SERVER_PORT),
        "--root-path", names.route_path(model),
        *engine,
    ]  # fmt: skip


def engine_arguments(model: Model) -> list[str]:
    """Those that are about the model and not about who asks it: what a compiler needs as well."""
    engine = model.engine
    arguments = [
        WEIGHTS_PATH,
        "--tensor-parallel-size", str(model.tensor_parallel_size),
        "--max-model-len", str(engine.max_model_len),
        "--max-num-seqs", str(model.max_num_seqs),
        "--dtype", engine.dtype,
    ]  # fmt: skip
    arguments += _neuron_arguments(model) if model.is_neuron else _nvidia_arguments(model)
    return [*arguments, *engine.extra_args]


def _neuron_arguments(model: Model) -> list[str]:
    engine = model.engine
    return [
        "--block-size", str(engine.block_size or engine.max_model_len),
        "--num-gpu-blocks-override", str(engine.num_gpu_blocks_override or model.max_num_seqs),
        "--no-enable-prefix-caching",
        "--additional-config", _compact({"override_neuron_config": neuron_config(model)}),
    ]  # fmt: skip


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _nvidia_arguments(model: Model) -> list[str]:
    engine = model.engine
    arguments = [
        "--gpu-memory-utilization",
        str(engine.gpu_memory_utilization or DEFAULT_GPU_MEMORY_UTILIZATION),
    ]
    arguments.append("--enable-prefix-caching" if model.prefix_caching else "--no-enable-prefix-caching")
    for flag, value in (
        ("--block-size", engine.block_size),
        ("--num-gpu-blocks-override", engine.num_gpu_blocks_override),
        ("--quantization", engine.quantization),
    ):
        if value is not None:
            arguments += [flag, str(value)]
    return arguments
