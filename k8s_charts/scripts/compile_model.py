"""Load a model with vLLM as its server would, on a Neuron device, so that its graphs are compiled and saved.

    NEURON_COMPILED_ARTIFACTS=/work/artifacts compile_model.py /models/weights --tensor-parallel-size 2 …

Takes the arguments of `vllm serve` and hands those that concern the engine to the same parser, so that the graphs
are those the server will ask for. Loading finds no artifacts, compiles every bucket and writes graphs and
configuration into the folder; the weights of each core too, if `save_sharded_checkpoint` is on in
`override_neuron_config` (it is off by default, and a node with little memory could not shard them at its start).
"""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ARTIFACTS_VARIABLE = "NEURON_COMPILED_ARTIFACTS"
GRAPHS = "model.pt"
SHARD = "tp{rank}_sharded_checkpoint.safetensors"


def main(serve_arguments: Sequence[str]) -> None:
    """Raises SystemExit with the reason when something a server needs has not been written."""
    if not serve_arguments or serve_arguments[0].startswith("-"):
        raise SystemExit(f"{__doc__}\nThe model comes first, as in `vllm serve MODEL --option …`.")
    output = os.environ.get(ARTIFACTS_VARIABLE)
    if not output:
        raise SystemExit(f"{ARTIFACTS_VARIABLE} must name the folder to write to.")
    started = time.monotonic()
    ranks = load(serve_arguments)
    if lacking := missing_files(Path(output), ranks):
        raise SystemExit(
            f"vLLM has loaded the model and not written {', '.join(lacking)} to {output}. Is save_sharded_checkpoint "
            "true in override_neuron_config?"
        )
    print(f"compiled and saved for {ranks} cores in {time.monotonic() - started:.0f} s")


def load(serve_arguments: Sequence[str]) -> int:
    """Start the engine once; the number of cores it was sharded for. The context is the server's, since defaults
    depend on it."""
    from vllm import EngineArgs, LLMEngine  # type: ignore[import-not-found]
    from vllm.usage.usage_lib import UsageContext  # type: ignore[import-not-found]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found]

    options = EngineArgs.add_cli_args(FlexibleArgumentParser(allow_abbrev=False))
    given, _ = options.parse_known_args(["--model", *serve_arguments])
    LLMEngine.from_engine_args(EngineArgs.from_cli_args(given), usage_context=UsageContext.OPENAI_API_SERVER)
    return int(given.tensor_parallel_size)


def missing_files(folder: Path, ranks: int) -> list[str]:
    """Anywhere below the folder: models for text and pictures have one of each per part."""
    wanted = [GRAPHS, *(SHARD.format(rank=rank) for rank in range(ranks))]
    return [name for name in wanted if not any(folder.rglob(name))]


if __name__ == "__main__":
    main(sys.argv[1:])
