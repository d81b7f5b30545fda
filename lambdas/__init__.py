"""What runs while the platform runs: three functions that turn events into facts, and facts into what should be."""

import gc
import os

if "LAMBDA_TASK_ROOT" in os.environ:
    # Modules and lists of the cluster are all kept: looking among them for garbage, as often as Python does by itself,
    # takes a tenth of a cold start and finds none.
    gc.set_threshold(200_000, 20, 100)
