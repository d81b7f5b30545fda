"""Random numbers that depend on the seed and on what they are for, never on how many were drawn before.

So a node's fate stays the same whatever the autoscaler does in the meantime, and two scenarios with one seed differ by
what is different in them. SplitMix64's finalizer, twice.
"""

from typing import Any, Final

import numpy as np

from genai_finops.planner.simulation.compiled import compiled

INTERRUPTION: Final = 1
REBALANCE: Final = 2
CAPACITY: Final = 3


@compiled
def _mixed(value: Any) -> Any:
    bits = np.uint64(value)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def uniform(seed: int, purpose: int, number: int) -> float:
    """Above 0 and below 1."""
    bits = _mixed(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(purpose))
    bits = _mixed(np.uint64(bits) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(number + 1))
    return (float(np.uint64(bits) >> np.uint64(11)) + 0.5) / 9007199254740992.0
