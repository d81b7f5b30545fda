"""Bring a model's weights and compiled artifacts to this node, then let its server start from them.

Runs before the server, as an init container or in the server's own: with a command after `--` it becomes that
command (exec, the same process), and what it has brought cannot be evicted for as long as the command runs. Run it
there even after an init container: a server that is restarted in place finds its files again, or the pod says why.

What is on the node already is checked and used without asking S3. What is missing in the store, or was compiled
for something else, is a failure with a command to run: a serving node never compiles.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from supply import (
    THREADS,
    Store,
    SupplyError,
    artifacts_place,
    json_mapping,
    log,
    parser,
    run,
    split_command,
    split_weights,
    weights_place,
)
from supply_bring import Wanted, bring
from supply_cache import NodeCache, point_to

KEEP_FREE_PERCENT = 15.0
"""The kubelet evicts pods when less of the image disk is free (its default, imagefs.available)."""


def main(arguments: Sequence[str]) -> None:
    own, command = split_command(arguments)
    options = parser(__doc__)
    options.add_argument("--bucket", default=os.environ.get("MODEL_STORE_BUCKET"), help="or MODEL_STORE_BUCKET")
    options.add_argument("--weights", type=split_weights, metavar="NAME@REVISION")
    options.add_argument(
        "--no-tensors",
        action="store_true",
        help="of the weights only configuration and tokenizer: pre-sharded artifacts have the tensors",
    )
    options.add_argument("--artifacts", metavar="KEY")
    options.add_argument("--recipe", type=json_mapping, metavar="JSON", help="what the artifacts must be compiled for")
    options.add_argument("--cache", type=Path, default=os.environ.get("MODEL_CACHE"), help="or MODEL_CACHE: a folder")
    options.add_argument("--cache-limit-gib", type=float, help="evict beyond this size (default: only the disk limits)")
    options.add_argument(
        "--keep-free-percent", type=float, default=KEEP_FREE_PERCENT, help="of the disk (default: %(default)s)"
    )
    options.add_argument("--weights-link", type=Path, help="make this a link to the weights' folder")
    options.add_argument("--artifacts-link", type=Path, help="make this a link to the artifacts' folder")
    options.add_argument(
        "--check",
        choices=("sizes", "hashes"),
        default="sizes",
        help="of what is on the node already; what arrives is always hashed (default: %(default)s)",
    )
    options.add_argument("--threads", type=int, default=THREADS, help="connections to S3 (default: %(default)s)")
    options.add_argument("--stage-command", default="make stage", help="to name when weights are missing")
    options.add_argument("--compile-command", default="make compile", help="to name when artifacts are missing")
    given = options.parse_args(own)
    if not given.bucket or not given.cache:
        raise SupplyError("--bucket and --cache are needed (or MODEL_STORE_BUCKET and MODEL_CACHE).")
    if not given.weights and not given.artifacts:
        raise SupplyError("Nothing to bring: give --weights, --artifacts or both.")

    limit = None if given.cache_limit_gib is None else int(given.cache_limit_gib * 2**30)
    cache = NodeCache(given.cache, limit=limit, keep_free=given.keep_free_percent / 100)
    store = Store(given.bucket, given.threads)
    wanted: list[tuple[Wanted, Path | None]] = []
    if given.artifacts:
        artifacts = Wanted(artifacts_place(given.artifacts), given.compile_command, recipe=given.recipe)
        wanted.append((artifacts, given.artifacts_link))
    if given.weights:
        weights = Wanted(weights_place(*given.weights), given.stage_command, tensors=not given.no_tensors)
        wanted.append((weights, given.weights_link))
    for one, link in wanted:
        folder = bring(cache, store, one, check_hashes=given.check == "hashes", threads=given.threads)
        print(folder, flush=True)
        if link:
            point_to(link, folder)
    if command:
        become(command, cache)


def become(command: list[str], cache: NodeCache) -> None:
    cache.keep_in_use_after_exec()
    log(f"starting {command[0]}")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise SupplyError(f"{command[0]} cannot be started: {error.strerror}.") from error


if __name__ == "__main__":
    run(main)
