"""Five hundred models and two thousand nodes: work grows with the platform and no faster."""

import sys

from benchmarks.operations import NOW, cluster, history, platform
from genai_finops.operations.changes import changes
from genai_finops.operations.desired import desired_state
from genai_finops.operations.tokens import live_estimate
from genai_finops.operations.verify import verify


def calls(models):
    """Calls of functions during one evaluation, those of built-in ones included."""
    config = platform(models)
    observed = cluster(config, models * 4)
    facts = history(observed, models * 2)
    count = 0

    def counted(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        desired = desired_state(config, facts, observed, NOW)
        changes(desired, observed)
        verify(desired, observed)
        live_estimate(observed.nodes, config.prices)
    finally:
        sys.setprofile(None)
    return count


def test_twice_the_platform_is_twice_the_work():
    calls(125)  # fills the caches of time zones
    small, large = calls(125), calls(250)
    assert large < 2.3 * small


def test_the_largest_platform_takes_well_under_a_second():
    """A quarter of a million calls, in 80 ms of CPU, where this was written (benchmarks/operations.py)."""
    assert calls(500) < 1_000_000
