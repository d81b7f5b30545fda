"""Quantities that stay the same for a while: their integrals over time, exact at every change."""

from typing import Any

from genai_finops.planner.simulation.addresses import levels, nodes
from genai_finops.planner.simulation.compiled import compiled
from genai_finops.planner.simulation.layout import USE_KINDS, USES


@compiled
def change(state: Any, level: int, by: float, now: float) -> None:
    """Another value from now on; the integral of the old one is kept."""
    record = levels(state)[level]
    record.area += record.value * (now - record.since)
    record.since = now
    record.value += by


@compiled
def change_use(state: Any, replica: Any, before: int, after: int, now: float) -> None:
    first = USES + USE_KINDS * nodes(state)[replica.node].purchase
    change(state, first + before, -1, now)
    change(state, first + after, 1, now)
