"""Is the engine told something it will do: lengths, buckets, blocks, and arguments that exist on this accelerator?"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from genai_finops.spec import engine as engine_arguments
from genai_finops.spec.model import S3, Model
from genai_finops.spec.problems import Problem, one_of, path_of, steps

_S3_URI: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9][A-Za-z0-9_.-]*)*")
"""Without what S3 allows but IAM (`*`), shells or file systems read as something else; no slash at the end."""

_S3_FORM: Final = (
    "Use s3://bucket/prefix: between single slashes letters, digits and _ . - after a letter or digit, and no slash at "
    "the end."
)

_OWNED_ARGUMENTS: Final = {
    "--model": "source",
    "--revision": "revision",
    "--tokenizer-revision": "revision",
    "--served-model-name": "served_name",
    "--tensor-parallel-size": "accelerator.tensor_parallel_size",
    "-tp": "accelerator.tensor_parallel_size",
    "--max-model-len": "engine.max_model_len",
    "--max-num-seqs": "engine.max_num_seqs",
    "--dtype": "engine.dtype",
    "--quantization": "engine.quantization",
    "-q": "engine.quantization",
    "--block-size": "engine.block_size",
    "--num-gpu-blocks-override": "engine.num_gpu_blocks_override",
    "--gpu-memory-utilization": "engine.gpu_memory_utilization",
    "--enable-prefix-caching": "engine.prefix_caching",
    "--no-enable-prefix-caching": "engine.prefix_caching",
    "--additional-config": "engine.buckets or engine.neuron_config",
}
"""Arguments that a setting of the file writes."""

_FORBIDDEN_ARGUMENTS: Final = {
    "--api-key": "It would put the key into the manifest; gateway.api_key brings it from Secrets Manager.",
    "--port": "The Service, the probes and the monitors rely on the platform's port.",
    "--host": "The server must listen on the pod's address.",
    "--root-path": "The gateway's path for this model is derived from its name.",
}

_NEURON_ARGUMENTS: Final = {
    "--device": "vLLM finds the Neuron plugin by itself; the argument was removed.",
    "--override-neuron-config": "It does nothing today; use engine.neuron_config.",
    "--enable-chunked-prefill": "Chunked prefill is not supported on Neuron; prompts are padded to a bucket.",
    "--pipeline-parallel-size": "Pipeline parallelism is not supported on Neuron.",
    "-pp": "Pipeline parallelism is not supported on Neuron.",
    "--swap-space": "There is no swapping of the KV cache on Neuron.",
    "--cpu-offload-gb": "There is no offloading on Neuron.",
    "--enforce-eager": "Neuron always runs compiled graphs.",
    "--kv-cache-dtype": "The type of the KV cache is set by the compiled graphs; use engine.neuron_config.",
}
"""Arguments that do nothing or are refused on Neuron."""

_TOKEN_IN_MANIFEST: Final = "It would put the token into the manifest; hub_token_secret brings it from Secrets Manager."

_DEAD_ENVIRONMENT: Final = {
    "VLLM_NEURON_FRAMEWORK": "vLLM no longer reads it.",
    "VLLM_ENGINE_ITERATION_TIMEOUT_S": "vLLM no longer reads it; a slow start has probes.startup_seconds.",
    "NEURON_RT_VISIBLE_CORES": "The device plugin gives each pod its cores; with a list two pods share one.",
    "NEURON_RT_NUM_CORES": "The device plugin gives each pod its cores.",
    "VLLM_API_KEY": "It would put the key into the manifest; gateway.api_key brings it from Secrets Manager.",
    "HF_TOKEN": _TOKEN_IN_MANIFEST,
    "HUGGING_FACE_HUB_TOKEN": _TOKEN_IN_MANIFEST,
    "AWS_ACCESS_KEY_ID": "The pod's identity brings short-lived credentials.",
    "AWS_SECRET_ACCESS_KEY": "It would put the key into the manifest; the pod's identity brings credentials.",
    "AWS_SESSION_TOKEN": "It would put the token into the manifest; the pod's identity brings credentials.",
    "NEURON_COMPILED_ARTIFACTS": "It is set to where the artifacts of the model's key are on the node.",
}

_OWNED_NEURON_CONFIG: Final = {
    "context_encoding_buckets": "engine.buckets.context_encoding",
    "token_generation_buckets": "engine.buckets.token_generation",
    "enable_bucketing": "engine.buckets",
    "tp_degree": "accelerator.tensor_parallel_size",
    "seq_len": "engine.max_model_len",
    "batch_size": "engine.max_num_seqs",
    "quantized": "engine.quantization",
}


def problems(model: Model, path: str) -> Iterator[Problem]:
    yield from _lengths(model, path)
    yield from _arguments(model, path)
    yield from _environment(model, path)
    if model.is_neuron:
        yield from _buckets(model, path)
        yield from _blocks(model, path)
        yield from _neuron_only(model, path)
    else:
        yield from _nvidia_only(model, path)
    yield from _image(model, path)


def _lengths(model: Model, path: str) -> Iterator[Problem]:
    shape = model.known_shape
    if shape and model.engine.max_model_len > shape.max_position_embeddings:
        yield Problem(
            f"{path}.engine.max_model_len",
            f"is {model.engine.max_model_len}",
            f"{shape.name} was trained for at most {shape.max_position_embeddings} tokens.",
            f"Use {shape.max_position_embeddings} or less.",
        )


def _buckets(model: Model, path: str) -> Iterator[Problem]:
    for field, buckets in (
        ("context_encoding", engine_arguments.context_encoding_buckets(model)),
        ("token_generation", engine_arguments.token_generation_buckets(model)),
    ):
        if list(buckets) == sorted(set(buckets)) and buckets[-1] == model.engine.max_model_len and buckets[0] > 0:
            continue
        yield Problem(
            f"{path}.engine.buckets.{field}",
            f"is {list(buckets)}",
            f"Buckets ascend and end at max_model_len, which is {model.engine.max_model_len}: a request longer than "
            "the last bucket has no graph.",
            f"For example {list(engine_arguments.default_buckets(model.engine.max_model_len))}, or leave it out.",
        )


def _blocks(model: Model, path: str) -> Iterator[Problem]:
    engine = model.engine
    if model.prefix_caching:
        yield Problem(
            f"{path}.engine.prefix_caching",
            "is true",
            "On Neuron it needs a block layout of the KV cache that must be compiled in, and this platform does not "
            "build such graphs.",
            "Leave it out on Neuron, or use an NVIDIA family for workloads that share long prefixes.",
        )
        return
    for field, found, wanted, meaning in (
        ("block_size", engine.block_size, engine.max_model_len, "max_model_len"),
        ("num_gpu_blocks_override", engine.num_gpu_blocks_override, model.max_num_seqs, "max_num_seqs"),
    ):
        if found is not None and found != wanted:
            yield Problem(
                f"{path}.engine.{field}",
                f"is {found}",
                f"Without prefix caching each sequence owns one block, so on Neuron it equals {meaning}, {wanted}.",
                f"Use {wanted}, or leave it out.",
            )


def _neuron_only(model: Model, path: str) -> Iterator[Problem]:
    engine = model.engine
    if engine.gpu_memory_utilization is not None:
        yield Problem(
            f"{path}.engine.gpu_memory_utilization",
            f"is {engine.gpu_memory_utilization}",
            "It does nothing on Neuron, where the KV cache is sized by max_num_seqs and max_model_len.",
            "Leave it out.",
        )
    if engine.quantization == "fp8":
        yield Problem(
            f"{path}.engine.quantization",
            "is 'fp8'",
            "The pinned Neuron SDK has no fp8 path for vLLM.",
            "Use int8, or leave it out.",
        )
    for key in engine.neuron_config:
        if key in _OWNED_NEURON_CONFIG:
            yield Problem(
                f"{path}.engine.neuron_config.{key}",
                "is set",
                "Another setting writes it.",
                f"Set {_OWNED_NEURON_CONFIG[key]} instead.",
            )
    if not _is_json(engine.neuron_config):
        yield Problem(
            f"{path}.engine.neuron_config",
            "has a number that is not finite",
            "It is handed to vLLM as JSON, which has none.",
            "Use a finite number.",
        )


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _nvidia_only(model: Model, path: str) -> Iterator[Problem]:
    engine = model.engine
    family = model.accelerator.family
    if engine.quantization == "int8":
        yield Problem(
            f"{path}.engine.quantization",
            "is 'int8'",
            "On NVIDIA vLLM takes int8 from a checkpoint that was quantized before, not as a switch.",
            "Use fp8, or leave it out and name such a checkpoint as source.",
        )
    for field, value in (
        ("buckets.context_encoding", engine.buckets.context_encoding),
        ("buckets.token_generation", engine.buckets.token_generation),
        ("neuron_config", engine.neuron_config),
        ("allow_compile_on_start", engine.allow_compile_on_start),
    ):
        if value:
            yield Problem(
                f"{path}.engine.{field}",
                "is set",
                f"It is about graphs that are compiled for Neuron; {family} has NVIDIA GPUs.",
                "Leave it out.",
            )
    for field in sorted(model.compile.model_fields_set):
        yield Problem(
            f"{path}.compile.{field}",
            "is set",
            f"Graphs are compiled for Neuron; {family} has NVIDIA GPUs, which serve from the weights.",
            "Leave it out.",
        )


def _arguments(model: Model, path: str) -> Iterator[Problem]:
    for index, argument in enumerate(model.engine.extra_args):
        why, fix = _verdict(model, argument)
        if why:
            yield Problem(f"{path}.engine.extra_args[{index}]", f"is {argument!r}", why, fix)


def _verdict(model: Model, argument: str) -> tuple[str, str]:
    """Why an argument cannot be given, and what to do; empty when it can."""
    written = argument.split("=", 1)[0]
    if not argument or (argument.startswith("-") and re.search(r"\s", written)):
        return (
            "Each entry is one argument, as the server gets it.",
            'Write ["--flag", "value"] or ["--flag=value"].',
        )
    # vLLM reads --max_model_len as --max-model-len, and --additional-config.key as a part of it.
    flag = written.split(".", 1)[0].replace("_", "-")
    if flag in _OWNED_ARGUMENTS:
        return "A setting of this file writes that argument.", f"Set {_OWNED_ARGUMENTS[flag]} instead."
    if flag in _FORBIDDEN_ARGUMENTS:
        return _FORBIDDEN_ARGUMENTS[flag], "Leave it out."
    if model.is_neuron and flag in _NEURON_ARGUMENTS:
        return _NEURON_ARGUMENTS[flag], "Leave it out."
    return "", ""


def _environment(model: Model, path: str) -> Iterator[Problem]:
    for name in model.engine.env:
        if name in _DEAD_ENVIRONMENT:
            yield Problem(f"{path}.engine.env.{name}", "is set", _DEAD_ENVIRONMENT[name], "Leave it out.")
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield Problem(
                path_of((*steps(path), "engine", "env", name)),
                "is set",
                "It is not the name of an environment variable.",
                "Use letters, digits and underscores.",
            )


def _image(model: Model, path: str) -> Iterator[Problem]:
    image = model.engine.image
    if image is None:
        return
    if not re.fullmatch(r"[a-z0-9][A-Za-z0-9._/:@-]*", image):
        yield Problem(
            f"{path}.engine.image",
            f"is {image!r}",
            "It is not the name of an image.",
            "Use registry/repository:tag.",
        )
        return
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    if "@sha256:" not in image and tag in ("", "latest"):
        yield Problem(
            f"{path}.engine.image",
            f"is {image!r}",
            "It is not pinned: two replicas of one model could run different servers.",
            "Give a tag other than latest, or a digest.",
        )


def source_problems(model: Model, path: str) -> Iterator[Problem]:
    """Whether weights come from where this platform can fetch them, at a revision that does not move."""
    if model.repository:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", model.repository, re.ASCII):
            yield Problem(
                f"{path}.source",
                f"is {model.source!r}",
                "It does not name a repository on the hub.",
                "Use hf://organisation/repository.",
            )
        if not re.fullmatch(r"[0-9a-f]{40}", model.revision):
            yield Problem(
                f"{path}.revision",
                f"is {model.revision!r}",
                "A branch or tag can move, and then two replicas serve different models.",
                "Use the 40 hexadecimal digits of a commit, from the repository's history page.",
            )
    elif model.source.startswith(S3) and not _S3_URI.fullmatch(model.source):
        yield Problem(
            f"{path}.source",
            f"is {model.source!r}",
            "It is not an S3 address that can be used as it is.",
            _S3_FORM,
        )
    elif not model.source.startswith(S3):
        yield Problem(
            f"{path}.source",
            f"is {model.source!r}",
            "It is neither a hub repository nor an S3 address.",
            f"Use {one_of(_EXAMPLES)}.",
        )
    elif not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", model.revision):
        yield Problem(
            f"{path}.revision",
            f"is {model.revision!r}",
            "It names the folder under the S3 prefix.",
            "Use letters, digits, dots, dashes and underscores, at most 64.",
        )


_EXAMPLES: Final[Sequence[str]] = ("hf://organisation/repository", "s3://bucket/prefix")
