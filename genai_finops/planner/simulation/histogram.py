"""Latencies by class: a value costs one addition, and a row of evenly growing values hardly more."""

import math
from typing import Final

import numpy as np

from genai_finops.planner.simulation.compiled import compiled
from genai_finops.planner.simulation.layout import CLASSES, Array
from genai_finops.planner.simulation.outcome import GROWTH, LOWEST_SECONDS

LAST: Final = CLASSES - 1
PER_LOGARITHM: Final = 1 / math.log(GROWTH)


def edges() -> Array:
    """Upper edge of each class; the last one holds everything above."""
    found = LOWEST_SECONDS * GROWTH ** np.arange(CLASSES, dtype=np.float64)
    found[LAST] = np.inf
    return found


@compiled
def class_of(edges: Array, value: float) -> int:
    if value <= edges[0]:
        return 0
    index = min(int(math.log(value * (1 / LOWEST_SECONDS)) * PER_LOGARITHM) + 1, LAST)
    while value <= edges[index - 1]:
        index -= 1
    while value > edges[index]:
        index += 1
    return index


@compiled
def near(edges: Array, value: float, guess: int) -> int:
    """The class of a value that is likely to be in the class of the one before."""
    if value <= edges[guess] and (guess == 0 or value > edges[guess - 1]):
        return guess
    return class_of(edges, value)


@compiled
def add_row(
    edges: Array, counts: Array, guess: int, first: float, slope: float, start: int, stop: int, weight: int
) -> int:
    """Count `first + slope * j` for j from `start` up to before `stop`, each `weight` times.

    Which class a value falls into depends on `first`, `slope` and j alone, so that a row added in one piece can be
    taken back in several.

    Returns:
        the class of the last one.
    """
    index = near(edges, first + slope * start, guess)
    while first + slope * (stop - 1) > edges[index]:
        last = int((edges[index] - first) / slope)
        while first + slope * (last + 1) <= edges[index]:
            last += 1
        while first + slope * last > edges[index]:
            last -= 1
        counts[index] += weight * (last + 1 - start)
        start = last + 1
        index = near(edges, first + slope * start, index + 1)
    counts[index] += weight * (stop - start)
    return index


@compiled
def quantile(counts: Array, share: float) -> float:
    """NaN without values."""
    total = 0
    for index in range(len(counts)):
        total += counts[index]
    if total == 0:
        return np.nan
    rank = max(1, math.ceil(share * total))
    seen = 0
    for index in range(len(counts)):
        seen += counts[index]
        if seen >= rank:
            return LOWEST_SECONDS * GROWTH ** (index - 0.5) if index else LOWEST_SECONDS
    return np.nan
