"""Wait until a model's weights are in the store: before a compile job, whose stage job may still be at work.

Without this the compile job would fail for want of them and, after its few retries, for good. Both are applied at the
same time, and while this waits the image for the compiler is pulled.
"""

import os
import sys
import time
from collections.abc import Sequence

from supply import Store, SupplyError, log, parser, run, split_weights, weights_place

POLL_SECONDS = 15.0


def main(arguments: Sequence[str]) -> None:
    options = parser(__doc__)
    options.add_argument("--bucket", default=os.environ.get("MODEL_STORE_BUCKET"), help="or MODEL_STORE_BUCKET")
    options.add_argument("--weights", type=split_weights, metavar="NAME@REVISION", required=True)
    options.add_argument("--timeout", type=float, required=True, help="seconds")
    options.add_argument("--poll", type=float, default=POLL_SECONDS, help="seconds between two looks (%(default)s)")
    options.add_argument("--stage-command", default="make stage", help="to name when they do not come")
    given = options.parse_args(arguments)
    if not given.bucket:
        raise SupplyError("--bucket is needed (or MODEL_STORE_BUCKET).")
    store, place = Store(given.bucket), weights_place(*given.weights)
    deadline = time.monotonic() + given.timeout
    while store.read_manifest(place) is None:
        if time.monotonic() >= deadline:
            raise SupplyError(
                f"The weights {place.name} are still not in the store after {given.timeout:g} s. Run: "
                f"{given.stage_command}"
            )
        log(f"{place.name} is not in the store yet")
        time.sleep(min(given.poll, max(0.0, deadline - time.monotonic())))
    log(f"{place.name} is in the store")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    run(main)
