"""Which replica needs attention next: a heap in which each knows its place."""

from typing import Any

from genai_finops.planner.simulation.addresses import order, replicas
from genai_finops.planner.simulation.compiled import compiled


@compiled
def _put(state: Any, place: int, number: int) -> None:
    order(state)[place] = number
    replicas(state)[number].order = place


@compiled
def reschedule(state: Any, number: int, event: float) -> None:
    """The replica's next event is at that second; infinite is never."""
    replicas(state)[number].event = event
    place = replicas(state)[number].order
    while place > 0:
        above = (place - 1) // 2
        other = order(state)[above]
        if replicas(state)[other].event <= event:
            break
        _put(state, place, other)
        place = above
    size = len(order(state))
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if (
            below + 1 < size
            and replicas(state)[order(state)[below + 1]].event < replicas(state)[order(state)[below]].event
        ):
            below += 1
        other = order(state)[below]
        if replicas(state)[other].event >= event:
            break
        _put(state, place, other)
        place = below
    _put(state, place, number)
