"""One replica at work: what it does next, and what becomes of its requests."""

import math
from typing import Any, Final

from genai_finops.planner.simulation.addresses import (
    bucket_counts,
    completions,
    counts,
    edges,
    first_token_ring,
    gap_ring,
    prompts,
    replicas,
    request_log,
    requests,
)
from genai_finops.planner.simulation.batch import (
    append_to_batch,
    append_to_queue,
    begin_decoding,
    blocks_for,
    growth,
    growth_over,
    leave_batch,
    prepend_to_queue,
    release,
    remove_from_batch,
    remove_from_queue,
    steps_that_fit,
    unlink_living,
)
from genai_finops.planner.simulation.compiled import compiled
from genai_finops.planner.simulation.histogram import class_of
from genai_finops.planner.simulation.integrals import change, change_use
from genai_finops.planner.simulation.layout import (
    ASTRAY,
    BUSY,
    BUSY_REPLICAS,
    COMPLETED,
    DECODING,
    DRAINING,
    END_TO_END,
    EVICTED,
    FIRST_TOKEN,
    FREE,
    GAP,
    GOOD,
    IDLE,
    INPUT_TOKENS,
    LOST,
    MEAN_GAP,
    MIXED,
    NONE,
    OUTPUT_TOKENS,
    PREFILL,
    QUEUED,
    READY,
    RESUMED,
    ROUSED,
    RUNNING,
    SERVED,
    STEPS,
    TIMED_OUT,
    WAITING,
)
from genai_finops.planner.simulation.order import reschedule
from genai_finops.planner.simulation.steps import duration, interrupt, note, steps_before, take_back_gaps, take_steps

NEVER: Final = math.inf


@compiled
def give_token(state: Any, number: int, index: int, now: float) -> None:
    """The one that comes out of a prefill."""
    replica = replicas(state)[number]
    request = requests(state)[index]
    request.made += 1
    if request.first < 0:
        request.first = now
        request.journal = replica.journal_end
    else:
        counts(state)[GAP, class_of(edges(state), now - request.last)] += 1
        note(state, number, now, now - request.last, 0.0, RESUMED, index)
    replica.prefilling = request.next
    if request.made < request.output:
        begin_decoding(state, number, index)
        if state.serial:
            replica.fresh += 1
        elif replica.decoding == 1:
            replica.last_token = now
        return
    if not state.serial:
        replica.used -= blocks_for(request.prompt, state.block_tokens)
    remove_from_batch(state, replica, index)
    complete(state, index, now)


@compiled
def evict(state: Any, number: int, index: int, now: float) -> None:
    """Back to the head of the queue; what it has written will be a part of its prompt."""
    replica = replicas(state)[number]
    request = requests(state)[index]
    decoded = request.where == DECODING
    leave_batch(state, number, index)
    if decoded:
        request.last = now
        note(state, number, now, 0.0, 0.0, EVICTED, index)
    state.evictions += 1
    state.wasted += request.made
    prepend_to_queue(state, replica, index)
    state.waiting += 1
    state.most_waiting = max(state.most_waiting, state.waiting)
    change(state, WAITING, 1, now)
    change(state, RUNNING, -1, now)


# --- ends ------------------------------------------------------------------------------------------------------------


@compiled
def end(state: Any, index: int, fate: int, now: float) -> None:
    """It counts no longer; its place is released by whoever holds it."""
    request = requests(state)[index]
    unlink_living(state, request)
    if request.number < len(request_log(state)):
        entry = request_log(state)[request.number]
        entry.first = request.first
        entry.end = now
        entry.fate = fate


@compiled
def complete(state: Any, index: int, now: float) -> None:
    """All tokens are out; it has left the batch."""
    request = requests(state)[index]
    end(state, index, COMPLETED, now)
    change(state, RUNNING, -1, now)
    first = request.first - request.arrival
    ring = request.bucket % state.first_token_ring_length
    place = class_of(edges(state), first)
    counts(state)[FIRST_TOKEN, place] += 1
    first_token_ring(state)[ring, place] += 1
    state.first_token_total += first
    good = first <= state.first_token_goal
    if request.output > 1:
        gap = (now - request.first) / (request.output - 1)
        place = class_of(edges(state), gap)
        counts(state)[MEAN_GAP, place] += 1
        gap_ring(state)[ring, place] += 1
        state.mean_gap_total += gap
        state.gap_total += now - request.first
        good = good and gap <= state.gap_goal
    whole = now - request.arrival
    counts(state)[END_TO_END, class_of(edges(state), whole)] += 1
    state.end_to_end_total += whole
    state.completed += 1
    state.input_tokens += request.input
    state.output_tokens += request.output
    row = bucket_counts(state)[request.bucket]
    row[SERVED] += 1
    row[INPUT_TOKENS] += request.input
    row[OUTPUT_TOKENS] += request.output
    if good:
        state.good += 1
        row[GOOD] += 1
    release(state, index)


@compiled
def drop_from_batch(state: Any, number: int, index: int) -> None:
    """Without an answer: the tokens so far are wasted, and its gaps count for nothing."""
    leave_batch(state, number, index)
    state.wasted += requests(state)[index].made
    take_back_gaps(state, number, index)
    release(state, index)


@compiled
def drop_aborted(state: Any, number: int) -> None:
    replica = replicas(state)[number]
    index = replica.aborted
    while index != NONE:
        following = requests(state)[index].newer
        drop_from_batch(state, number, index)
        index = following
    replica.aborted = NONE


@compiled
def leave_queue(state: Any, number: int, index: int, now: float) -> None:
    """Out of a replica's queue without an answer."""
    replica = replicas(state)[number]
    remove_from_queue(state, replica, index)
    if requests(state)[index].first >= 0:
        take_back_gaps(state, number, index)
    state.waiting -= 1
    change(state, WAITING, -1, now)
    release(state, index)


@compiled
def give_up(state: Any, index: int, now: float) -> None:
    """The client has waited long enough. What runs is dropped by the engine at the end of its step."""
    request = requests(state)[index]
    end(state, index, TIMED_OUT, now)
    state.timed_out += 1
    number = request.replica
    if request.where == ASTRAY:
        leave_astray(state, index, now)
        return
    replica = replicas(state)[number]
    if request.where == QUEUED:
        leave_queue(state, number, index, now)
        if not replica.waiting:
            set_blocked(state, replica, 0)
        elif replica.doing == STEPS and fits(state, replica, replica.queue_first):
            interrupt(state, number, now)
        return
    request.aborted = 1
    change(state, RUNNING, -1, now)
    request.newer = replica.aborted
    replica.aborted = index
    interrupt(state, number, now)


@compiled
def leave_astray(state: Any, index: int, now: float) -> None:
    """Those without a replica stand in the order of arrival, and the first one gives up first."""
    request = requests(state)[index]
    state.astray_first = request.next
    if request.next == NONE:
        state.astray_last = NONE
    state.astray -= 1
    state.waiting -= 1
    change(state, WAITING, -1, now)
    release(state, index)


@compiled
def lose_all(state: Any, number: int, now: float) -> None:
    """The replica ends with all that it holds."""
    replica = replicas(state)[number]
    if replica.doing == STEPS:
        steps = steps_before(replica, now)
        if steps:
            take_steps(state, number, steps)
    replica.doing = IDLE
    drop_aborted(state, number)
    while replica.batch_last != NONE:
        index = replica.batch_last
        end(state, index, LOST, now)
        state.lost += 1
        change(state, RUNNING, -1, now)
        drop_from_batch(state, number, index)
    while replica.queue_last != NONE:
        index = replica.queue_last
        end(state, index, LOST, now)
        state.lost += 1
        leave_queue(state, number, index, now)
    set_blocked(state, replica, 0)


# --- what next -------------------------------------------------------------------------------------------------------


@compiled
def set_blocked(state: Any, replica: Any, blocked: int) -> None:
    """Whether requests wait that the last step could not take: no place, no cache, no time for their prompts."""
    state.blocked_replicas += blocked - replica.blocked
    replica.blocked = blocked


@compiled
def fits(state: Any, replica: Any, index: int) -> bool:
    """Whether the next in the queue could be admitted."""
    if replica.running >= state.max_sequences:
        return False
    if state.serial:
        return True
    request = requests(state)[index]
    return bool(blocks_for(request.input + request.made, state.block_tokens) <= state.blocks - replica.used)


@compiled
def admit(state: Any, replica: Any, now: float) -> int:
    """The first in the queue joins the batch."""
    index = replica.queue_first
    remove_from_queue(state, replica, index)
    append_to_batch(state, replica, index)
    request = requests(state)[index]
    request.prompt = request.input + request.made
    request.prefilled = 0
    if not state.serial:
        replica.used += blocks_for(request.prompt, state.block_tokens)
    state.waiting -= 1
    change(state, WAITING, -1, now)
    change(state, RUNNING, 1, now)
    return int(index)


@compiled
def decode_seconds(state: Any, replica: Any) -> float:
    if not replica.decoding:
        return 0.0
    return float(
        state.step_seconds
        + state.step_seconds_per_sequence * replica.decoding
        + state.step_seconds_per_token * replica.context
    )


@compiled
def plan(state: Any, number: int, now: float) -> None:
    """At a step boundary: what the engine does next."""
    replica = replicas(state)[number]
    replica.began = now
    if plan_serial_prefill(state, number, now) if state.serial else plan_mixed_step(state, number, now):
        return
    if replica.decoding:
        replica.doing = STEPS
        replica.gap = decode_seconds(state, replica)
        replica.slope = state.step_seconds_per_token * replica.decoding
        steps = completions(state)[number * state.max_sequences].step - replica.steps
        if not state.serial:
            steps = steps_that_fit(state, number, steps)
        replica.plan = steps
        reschedule(state, number, now + duration(replica.gap, replica.slope, steps))
    else:
        replica.doing = IDLE
        reschedule(state, number, NEVER)


@compiled
def plan_serial_prefill(state: Any, number: int, now: float) -> bool:
    """A prompt goes before decoding, as long as one waits and a place is free."""
    replica = replicas(state)[number]
    if replica.waiting and replica.running < state.max_sequences:
        request = requests(state)[admit(state, replica, now)]
        padded = request.prompt
        for row in range(len(prompts(state))):
            if prompts(state)[row] >= padded:
                padded = prompts(state)[row]
                break
        replica.doing = PREFILL
        set_blocked(state, replica, 1 if replica.waiting else 0)
        reschedule(state, number, now + state.prefill_seconds + state.prefill_seconds_per_token * padded)
        return True
    set_blocked(state, replica, 1 if replica.waiting else 0)
    return False


@compiled
def plan_mixed_step(state: Any, number: int, now: float) -> bool:
    """Room for the step, evicting the youngest if there is none; then prompts, if any, up to the size of a chunk."""
    replica = replicas(state)[number]
    crowded = False
    while replica.decoding and growth(state, number, replica.steps) > state.blocks - replica.used:
        evict(state, number, replica.batch_last, now)
        crowded = True
    if replica.prefilling == NONE and not replica.waiting:
        set_blocked(state, replica, 0)
        return False
    needed = growth(state, number, replica.steps) if replica.decoding else 0
    replica.used += needed
    room = state.chunk_tokens
    seconds = 0.0
    index = replica.prefilling
    while index != NONE and room:
        request = requests(state)[index]
        room -= prefill_piece(request, room)
        index = request.next
    blocked = crowded
    while replica.waiting and room and not blocked:
        if not fits(state, replica, replica.queue_first):
            blocked = True
        else:
            request = requests(state)[admit(state, replica, now)]
            seconds += state.prefill_seconds
            room -= prefill_piece(request, room)
    set_blocked(state, replica, 1 if replica.waiting else 0)
    replica.used -= needed
    tokens = state.chunk_tokens - room
    if not tokens:
        return False
    replica.doing = MIXED
    replica.plan = 1
    replica.slope = 0.0
    replica.gap = decode_seconds(state, replica) + seconds + state.prefill_seconds_per_token * tokens
    reschedule(state, number, now + replica.gap)
    return True


@compiled
def prefill_piece(request: Any, room: int) -> int:
    piece = min(request.prompt - request.prefilled, room)
    request.prefilled += piece
    return int(piece)


@compiled
def reach(state: Any, number: int, now: float) -> bool:
    """What the replica did is done. Returns whether it is empty now."""
    replica = replicas(state)[number]
    doing = replica.doing
    if replica.decoding and doing != PREFILL:
        take_steps(state, number, replica.plan)
    drop_aborted(state, number)
    if doing == PREFILL:
        if replica.prefilling != NONE:
            give_token(state, number, replica.prefilling, now)
    elif doing == MIXED:
        while replica.prefilling != NONE:
            request = requests(state)[replica.prefilling]
            if request.prefilled < request.prompt:
                break
            give_token(state, number, replica.prefilling, now)
    base = number * state.max_sequences
    while replica.decoding and completions(state)[base].step == replica.steps:
        index = completions(state)[base].request
        leave_batch(state, number, index)
        complete(state, index, now)
    plan(state, number, now)
    return rest(state, number, now)


@compiled
def rest(state: Any, number: int, now: float) -> bool:
    """Note it when the replica has nothing left to do."""
    replica = replicas(state)[number]
    if replica.doing != IDLE:
        return False
    change_use(state, replica, BUSY, FREE, now)
    if replica.being == READY:
        change(state, BUSY_REPLICAS, -1, now)
    return bool(replica.being == DRAINING)


@compiled
def take(state: Any, number: int, index: int, now: float) -> None:
    """A request comes from the gateway; it counts as waiting already."""
    replica = replicas(state)[number]
    requests(state)[index].replica = number
    append_to_queue(state, replica, index)
    if replica.doing == IDLE:
        change_use(state, replica, FREE, BUSY, now)
        change(state, BUSY_REPLICAS, 1, now)
        replica.doing = ROUSED
        reschedule(state, number, now)
    elif replica.doing == STEPS and replica.waiting == 1:
        if fits(state, replica, index):
            interrupt(state, number, now)
        else:
            set_blocked(state, replica, 1)


@compiled
def cache_share(state: Any, number: int, now: float) -> float:
    """The gauge of the KV cache, as it stands in the middle of a row of steps."""
    replica = replicas(state)[number]
    if not replica.running:
        return 0.0
    if state.serial:
        return float(replica.running / state.max_sequences)
    used = replica.used
    if replica.doing == STEPS:
        used += growth_over(state, number, steps_before(replica, now))
    return float(used / state.blocks)
