"""Where a model's files stand in the model store, and under which key its compiled graphs do.

A load of compiled graphs checks nothing: graphs made for other lengths, another image or other weights are taken, and
answer wrongly. So everything that shapes them goes into their key, which is computed here and nowhere else: by the
charts, by the jobs' arguments and by the command line.
"""

import hashlib
import json
from typing import Any, Final

from genai_finops.catalog import families
from genai_finops.spec import engine
from genai_finops.spec.model import S3, Model

KEY_CHARACTERS: Final = 20
"""Hexadecimal digits of a key: 80 bits, short enough for names and labels."""

WEIGHTS: Final = "weights"
ARTIFACTS: Final = "artifacts"

_FROM_S3: Final = "s3."
"""Before a bucket's name, in place of an organisation of the hub: those have no dots."""

_COMPILER_VARIABLES: Final = ("NEURON_", "XLA_")
_RUNTIME_VARIABLES: Final = ("NEURON_RT_",)

Recipe = dict[str, Any]


def weights_name(model: Model) -> str:
    """What the model's files are called in the store, whatever their revision."""
    if model.source.startswith(S3):
        return f"{_FROM_S3}{model.source.removeprefix(S3)}"
    return model.repository


def weights_prefix(model: Model) -> str:
    """Where the files of the model's revision stand in the store: no slash at either end."""
    return f"{WEIGHTS}/{weights_name(model)}/{model.revision}"


def artifacts_prefix(model: Model) -> str:
    """Where its compiled graphs stand: no slash at either end."""
    return f"{ARTIFACTS}/{key(model)}"


def recipe(model: Model) -> Recipe:
    """Everything that shapes the compiled graphs, and nothing else, as JSON has it.

    Defaults are written out, so that a file which spells one out has the same key as one that leaves it out. Arguments
    and variables that the file adds count as a whole, since nothing says which of them the compiler heeds.
    """
    settings = model.engine
    accelerator = families()[model.accelerator.family][0].accelerator
    assert accelerator  # families() lists only types that carry one
    return {
        "source": model.source,
        "revision": model.revision,
        "image": engine.image(model),
        "accelerator": accelerator.name,
        "tensor_parallel_size": model.tensor_parallel_size,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": model.max_num_seqs,
        "dtype": settings.dtype,
        "quantization": settings.quantization,
        "block_size": settings.block_size or settings.max_model_len,
        "num_gpu_blocks_override": settings.num_gpu_blocks_override or model.max_num_seqs,
        "prefix_caching": model.prefix_caching,
        "neuron_config": engine.neuron_config(model),
        "extra_args": list(settings.extra_args),
        "environment": {name: value for name, value in settings.env.items() if _is_the_compilers(name)},
    }


def recipe_text(model: Model) -> str:
    """The recipe as one line of JSON, the same on every machine."""
    return json.dumps(recipe(model), sort_keys=True, separators=(",", ":"), allow_nan=False)


def key(model: Model) -> str:
    """The name of the model's compiled graphs: the same recipe, the same key."""
    return hashlib.sha256(recipe_text(model).encode()).hexdigest()[:KEY_CHARACTERS]


def _is_the_compilers(variable: str) -> bool:
    return variable.startswith(_COMPILER_VARIABLES) and not variable.startswith(_RUNTIME_VARIABLES)
