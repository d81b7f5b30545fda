"""What the HorizontalPodAutoscaler decides at one sync.

The rules are those of `pkg/controller/podautoscaler` in Kubernetes: AverageValue metrics of the external kind,
stabilization windows, one percent policy for each direction. Metrics are compared in thousandths, as the API has them.
The same source runs compiled in the simulation and is held against a table of cases in the tests.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genai_finops.planner.simulation.compiled import compiled
from genai_finops.planner.simulation.scenario import Scaling

LONG_AGO: Final = -1e18


class Rules(NamedTuple):
    """The `behavior` of the autoscaler, and its tolerance."""

    tolerance: float
    up_stabilization: float
    up_percent: float
    up_period: float
    down_stabilization: float
    down_percent: float
    down_period: float


class Memory(NamedTuple):
    """What it remembers, rows of (second, count), the oldest overwritten first.

    Attributes:
        recommendations: what the metrics asked for at each sync.
        changes: what was done: replicas added, or removed where negative.
    """

    recommendations: NDArray[np.float64]
    changes: NDArray[np.float64]


def rules(scaling: Scaling) -> Rules:
    up, down = scaling.scale_up, scaling.scale_down
    return Rules(
        scaling.tolerance,
        up.stabilization_seconds,
        up.percent,
        up.period_seconds,
        down.stabilization_seconds,
        down.percent,
        down.period_seconds,
    )


def memory(scaling: Scaling) -> Memory:
    """Empty, with room for what the longest window and the longest period can hold."""
    window = max(scaling.scale_up.stabilization_seconds, scaling.scale_down.stabilization_seconds)
    period = max(scaling.scale_up.period_seconds, scaling.scale_down.period_seconds)
    return Memory(
        *(np.full((int(seconds / scaling.sync_seconds) + 3, 2), (LONG_AGO, 0.0)) for seconds in (window, period))
    )


@compiled
def forget(memory: Memory) -> None:
    """An autoscaler that has just been made."""
    memory.recommendations[:, 0] = LONG_AGO
    memory.changes[:, 0] = LONG_AGO


@compiled
def knows_nothing(memory: Memory) -> bool:
    return bool(np.max(memory.recommendations[:, 0]) == LONG_AGO)


@compiled
def remember(rows: NDArray[np.float64], now: float, count: int) -> None:
    oldest = np.argmin(rows[:, 0])
    rows[oldest, 0] = now
    rows[oldest, 1] = count


@compiled
def proposed(total: float, target: float, current: int, tolerance: float) -> int:
    """Replicas that one metric asks for: what there are, when the average is within the tolerance of the target."""
    thousandths = np.rint(total * 1000)
    each = max(1.0, np.rint(target * 1000))
    if 1 - tolerance <= thousandths / (each * current) <= 1 + tolerance:
        return current
    return int(np.ceil(thousandths / each))


@compiled
def stabilized(memory: Memory, rules: Rules, now: float, current: int, proposal: int) -> int:
    """No more than the lowest recent proposal upwards, no less than the highest recent one downwards."""
    lowest = highest = float(proposal)
    for row in range(len(memory.recommendations)):
        at, count = memory.recommendations[row, 0], memory.recommendations[row, 1]
        if at > now - rules.up_stabilization:
            lowest = min(lowest, count)
        if at > now - rules.down_stabilization:
            highest = max(highest, count)
    return int(min(max(float(current), lowest), highest))


@compiled
def changed_since(memory: Memory, moment: float) -> float:
    """Replicas added, less those removed, after a moment."""
    total = 0.0
    for row in range(len(memory.changes)):
        if memory.changes[row, 0] > moment:
            total += memory.changes[row, 1]
    return total


@compiled
def limited(memory: Memory, rules: Rules, now: float, current: int, minimum: int, maximum: int, wanted: int) -> int:
    """As far as the percentage per period allows: of what there was when the period began, rounded up on the way up
    and down on the way down."""
    if wanted > current:
        before = current - changed_since(memory, now - rules.up_period)
        most = math.ceil(before * (1 + rules.up_percent / 100))
        return int(min(wanted, maximum, max(most, current)))
    if wanted < current:
        before = current - changed_since(memory, now - rules.down_period)
        least = int(before * (1 - rules.down_percent / 100))
        return int(max(wanted, minimum, min(least, current)))
    return current


@compiled
def decide(memory: Memory, rules: Rules, now: float, current: int, minimum: int, maximum: int, proposal: int) -> int:
    """The count after this sync, remembered.

    Args:
        current: replicas there are, ready or not.
        proposal: the largest wish of all metrics; negative when there is no reading, which changes nothing.
    """
    wanted = current
    if current > maximum:
        wanted = maximum
    elif current < minimum:
        wanted = minimum
    elif proposal >= 0:
        if knows_nothing(memory):
            remember(memory.recommendations, now, current)
        stable = stabilized(memory, rules, now, current, proposal)
        remember(memory.recommendations, now, proposal)
        wanted = limited(memory, rules, now, current, minimum, maximum, stable)
    if wanted != current:
        remember(memory.changes, now, wanted - current)
    return wanted
