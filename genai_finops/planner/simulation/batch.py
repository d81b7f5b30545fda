"""The books of a replica: who waits, who is in the batch, who is done next, and how full the KV cache is.

Nothing here looks at a sequence more often than when it comes, moves and goes: the step at which one is done is known
when it begins to decode, and where in a block it writes stays the same relative to the count of steps.
"""

from typing import Any

from genai_finops.planner.simulation.addresses import completions, replicas, requests, residues
from genai_finops.planner.simulation.compiled import compiled
from genai_finops.planner.simulation.layout import DECODING, NONE, PREFILLING, QUEUED

# --- lists -----------------------------------------------------------------------------------------------------------


@compiled
def unlink_living(state: Any, request: Any) -> None:
    if request.older != NONE:
        requests(state)[request.older].newer = request.newer
    else:
        state.oldest = request.newer
    if request.newer != NONE:
        requests(state)[request.newer].older = request.older
    else:
        state.newest = request.older
    state.alive -= 1


@compiled
def release(state: Any, index: int) -> None:
    """Its place is free for another request."""
    requests(state)[index].next = state.free_request
    state.free_request = index


@compiled
def append_to_queue(state: Any, replica: Any, index: int) -> None:
    request = requests(state)[index]
    request.where = QUEUED
    request.next = NONE
    request.previous = replica.queue_last
    if replica.queue_last != NONE:
        requests(state)[replica.queue_last].next = index
    else:
        replica.queue_first = index
    replica.queue_last = index
    replica.waiting += 1


@compiled
def prepend_to_queue(state: Any, replica: Any, index: int) -> None:
    request = requests(state)[index]
    request.where = QUEUED
    request.previous = NONE
    request.next = replica.queue_first
    if replica.queue_first != NONE:
        requests(state)[replica.queue_first].previous = index
    else:
        replica.queue_last = index
    replica.queue_first = index
    replica.waiting += 1


@compiled
def remove_from_queue(state: Any, replica: Any, index: int) -> None:
    request = requests(state)[index]
    if request.previous != NONE:
        requests(state)[request.previous].next = request.next
    else:
        replica.queue_first = request.next
    if request.next != NONE:
        requests(state)[request.next].previous = request.previous
    else:
        replica.queue_last = request.previous
    replica.waiting -= 1


@compiled
def append_to_batch(state: Any, replica: Any, index: int) -> None:
    request = requests(state)[index]
    request.where = PREFILLING
    request.next = NONE
    request.previous = replica.batch_last
    if replica.batch_last != NONE:
        requests(state)[replica.batch_last].next = index
    else:
        replica.batch_first = index
    replica.batch_last = index
    if replica.prefilling == NONE:
        replica.prefilling = index
    replica.running += 1


@compiled
def remove_from_batch(state: Any, replica: Any, index: int) -> None:
    request = requests(state)[index]
    if replica.prefilling == index:
        replica.prefilling = request.next
    if request.previous != NONE:
        requests(state)[request.previous].next = request.next
    else:
        replica.batch_first = request.next
    if request.next != NONE:
        requests(state)[request.next].previous = request.previous
    else:
        replica.batch_last = request.previous
    replica.running -= 1


# --- completions: a heap per replica ---------------------------------------------------------------------------------


@compiled
def put(state: Any, base: int, place: int, step: int, index: int) -> None:
    entry = completions(state)[base + place]
    entry.step = step
    entry.request = index
    requests(state)[index].place = place


@compiled
def rise(state: Any, base: int, place: int, step: int, index: int) -> None:
    while place > 0:
        above = (place - 1) // 2
        entry = completions(state)[base + above]
        if entry.step <= step:
            break
        put(state, base, place, entry.step, entry.request)
        place = above
    put(state, base, place, step, index)


@compiled
def sink(state: Any, base: int, size: int, place: int, step: int, index: int) -> None:
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and completions(state)[base + below + 1].step < completions(state)[base + below].step:
            below += 1
        entry = completions(state)[base + below]
        if entry.step >= step:
            break
        put(state, base, place, entry.step, entry.request)
        place = below
    put(state, base, place, step, index)


@compiled
def remove_completion(state: Any, base: int, size: int, place: int) -> None:
    """Take one out of a heap of `size`; the last one fills its place."""
    last = completions(state)[base + size - 1]
    if place == size - 1:
        return
    step, index = last.step, last.request
    if place > 0 and completions(state)[base + (place - 1) // 2].step > step:
        rise(state, base, place, step, index)
    else:
        sink(state, base, size - 1, place, step, index)


# --- the KV cache ----------------------------------------------------------------------------------------------------


@compiled
def blocks_for(tokens: int, size: int) -> int:
    return (tokens + size - 1) // size


@compiled
def growth(state: Any, number: int, step: int) -> int:
    """New blocks that a step needs: of the sequences whose last block is full."""
    size = state.block_tokens
    return int(residues(state)[number * size + (1 - step) % size])


@compiled
def growth_over(state: Any, number: int, steps: int) -> int:
    """New blocks that the next steps need together."""
    replica = replicas(state)[number]
    size = state.block_tokens
    needed = (steps // size) * replica.decoding
    for step in range(steps % size):
        needed += growth(state, number, replica.steps + step)
    return int(needed)


@compiled
def steps_that_fit(state: Any, number: int, steps: int) -> int:
    """As many of the steps as the free blocks allow."""
    replica = replicas(state)[number]
    size = state.block_tokens
    free = state.blocks - replica.used
    if replica.decoding * blocks_for(steps, size) <= free:
        return steps
    cycles = free // replica.decoding
    possible = cycles * size
    free -= cycles * replica.decoding
    while possible < steps:
        free -= growth(state, number, replica.steps + possible)
        if free < 0:
            break
        possible += 1
    return int(min(possible, steps))


# --- the batch -------------------------------------------------------------------------------------------------------


@compiled
def begin_decoding(state: Any, number: int, index: int) -> None:
    """It has just got a token, and takes part in the next step."""
    replica = replicas(state)[number]
    request = requests(state)[index]
    request.where = DECODING
    request.joined = replica.steps
    context = request.input + request.made
    replica.context += context
    if not state.serial:
        size = state.block_tokens
        residues(state)[number * size + (context - replica.steps) % size] += 1
    rise(
        state,
        number * state.max_sequences,
        replica.decoding,
        replica.steps + request.output - request.made,
        index,
    )
    replica.decoding += 1


@compiled
def end_decoding(state: Any, number: int, index: int) -> None:
    """Between two steps: out of the step counts and of the cache."""
    replica = replicas(state)[number]
    request = requests(state)[index]
    if replica.fresh and request.joined == replica.steps:
        replica.fresh -= 1
    request.made += replica.steps - request.joined
    context = request.input + request.made
    replica.context -= context
    if not state.serial:
        size = state.block_tokens
        residues(state)[number * size + (context - replica.steps) % size] -= 1
        replica.used -= blocks_for(context - 1, size)
    remove_completion(state, number * state.max_sequences, replica.decoding, request.place)
    replica.decoding -= 1


@compiled
def leave_batch(state: Any, number: int, index: int) -> None:
    replica = replicas(state)[number]
    request = requests(state)[index]
    if request.where == DECODING:
        end_decoding(state, number, index)
    elif not state.serial:
        replica.used -= blocks_for(request.prompt, state.block_tokens)
    remove_from_batch(state, replica, index)
