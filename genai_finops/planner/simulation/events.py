"""What the control plane has to do and when: few events, in a heap by time, kind and order of coming."""

from typing import Any

from genai_finops.planner.simulation.addresses import events
from genai_finops.planner.simulation.compiled import compiled


@compiled
def _before(one: Any, other: Any) -> bool:
    if one.time != other.time:
        return bool(one.time < other.time)
    if one.kind != other.kind:
        return bool(one.kind < other.kind)
    return bool(one.serial < other.serial)


@compiled
def _swap(state: Any, one: int, other: int) -> None:
    first, second = events(state)[one], events(state)[other]
    first.time, second.time = second.time, first.time
    first.kind, second.kind = second.kind, first.kind
    first.serial, second.serial = second.serial, first.serial
    first.of, second.of = second.of, first.of
    first.token, second.token = second.token, first.token


@compiled
def push(state: Any, time: float, kind: int, of: int, token: int) -> None:
    """Later, `kind` happens to replica or node `of`, unless it is not the one with that token any more."""
    place = state.events
    event = events(state)[place]
    event.time = time
    event.kind = kind
    event.serial = state.event_serial
    event.of = of
    event.token = token
    state.event_serial += 1
    state.events += 1
    while place > 0:
        above = (place - 1) // 2
        if _before(events(state)[above], events(state)[place]):
            break
        _swap(state, above, place)
        place = above


@compiled
def pop(state: Any) -> tuple[int, int, int]:
    """Kind, number and token of the first event, which is gone then."""
    first = events(state)[0]
    kind, of, token = first.kind, first.of, first.token
    state.events -= 1
    size = state.events
    _swap(state, 0, size)
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and _before(events(state)[below + 1], events(state)[below]):
            below += 1
        if _before(events(state)[place], events(state)[below]):
            break
        _swap(state, place, below)
        place = below
    return kind, of, token
