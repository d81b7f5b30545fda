"""The loop: take what comes first, until there is nothing left or something is missing.

Of one moment the control plane comes first, then arrivals, then the replicas, then those who give up: a request that
arrives at a step boundary takes part in it, and one whose answer comes at its last moment has got it.
"""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from genai_finops.planner.simulation import hpa
from genai_finops.planner.simulation.addresses import (
    areas,
    awake_edges,
    bucket_counts,
    bucket_quantiles,
    changes,
    events,
    first_token_ring,
    gap_ring,
    levels,
    nodes,
    order,
    prompts,
    recommendations,
    replicas,
    request_log,
    requests,
)
from genai_finops.planner.simulation.batch import blocks_for
from genai_finops.planner.simulation.cluster import (
    begin_serving,
    come_up,
    doom,
    end_node,
    fall_asleep,
    furnish,
    go_astray,
    kill,
    lose_node,
    note_saturation,
    route,
    scale_to,
    set_level,
    settle,
    stop,
)
from genai_finops.planner.simulation.compiled import compiled, compiled_and_kept
from genai_finops.planner.simulation.events import pop, push
from genai_finops.planner.simulation.histogram import quantile
from genai_finops.planner.simulation.integrals import change
from genai_finops.planner.simulation.layout import (
    ABSENT,
    ARRIVED,
    ASLEEP,
    CONSOLIDATE,
    DONE,
    DOOM,
    DRAIN_OVER,
    DRAINING,
    EDGE,
    INTERRUPTIONS,
    LAUNCHING,
    LEVELS,
    MOST_WAITING,
    NEEDS_ARRIVALS,
    NEEDS_JOURNAL,
    NEEDS_REQUESTS,
    NEEDS_ROOM,
    NEXT_BUCKET,
    NODE_GONE,
    NODE_UP,
    NONE,
    READY,
    REFUSED,
    REPLICA_READY,
    RETRY,
    SCRAPE,
    SIGN,
    STARTING,
    STEERED,
    SYNC,
    UP,
    WAITING,
    WAKE,
    WARNING,
    Array,
)
from genai_finops.planner.simulation.serving import NEVER, cache_share, give_up, reach, take
from genai_finops.planner.simulation.steps import has_journal_room

# --- arrivals --------------------------------------------------------------------------------------------------------


@compiled
def can_be_served(state: Any, input_tokens: int, output_tokens: int) -> bool:
    """Whether an empty replica could do it."""
    if input_tokens + output_tokens > state.max_tokens or state.max_sequences == 0:
        return False
    if state.serial:
        return bool(len(prompts(state)) == 0 or input_tokens <= prompts(state)[-1])
    return bool(blocks_for(input_tokens + output_tokens - 1, state.block_tokens) <= state.blocks)


@compiled
def arrive(state: Any, now: float, input_tokens: int, output_tokens: int) -> None:
    row = bucket_counts(state)[state.bucket]
    number = state.number
    state.number += 1
    state.arrived += 1
    row[ARRIVED] += 1
    if not can_be_served(state, input_tokens, output_tokens):
        state.refused += 1
        if number < len(request_log(state)):
            request_log(state)[number].first = -1
            request_log(state)[number].end = now
            request_log(state)[number].fate = REFUSED
        return
    index = state.free_request
    request = requests(state)[index]
    state.free_request = request.next
    request.arrival = now
    request.first = -1.0
    request.number = number
    request.input = input_tokens
    request.output = output_tokens
    request.made = 0
    request.bucket = state.bucket
    request.aborted = 0
    request.replica = NONE
    request.newer = NONE
    request.older = state.newest
    if state.newest != NONE:
        requests(state)[state.newest].newer = index
    else:
        state.oldest = index
    state.newest = index
    state.alive += 1
    state.waiting += 1
    state.most_waiting = max(state.most_waiting, state.waiting)
    change(state, WAITING, 1, now)
    if state.ready:
        take(state, route(state), index, now)
    else:
        go_astray(state, index)


# --- the control plane -----------------------------------------------------------------------------------------------


@compiled
def minimum(state: Any, now: float) -> int:
    """The raised one while it holds, within the maximum."""
    raised = state.raised_minimum if now < state.raised_until else 0
    return int(min(max(state.min_replicas, raised), state.max_replicas))


@compiled
def scrape(state: Any, now: float) -> None:
    """Prometheus reads every replica that runs, those that drain included."""
    state.seen = 0
    state.seen_waiting = state.seen_running = state.seen_cache = 0.0
    for number in range(len(replicas(state))):
        replica = replicas(state)[number]
        if replica.being == READY or replica.being == DRAINING:
            state.seen += 1
            state.seen_waiting += replica.waiting
            state.seen_running += replica.running
            state.seen_cache += cache_share(state, number, now)


@compiled
def wish(state: Any) -> int:
    """The largest proposal of all triggers; negative without a reading."""
    if state.seen == 0:
        return -1
    tolerance = state.tolerance
    found = hpa.proposed(state.seen_waiting, state.queue_target, state.target, tolerance)
    found = max(found, hpa.proposed(state.seen_running, state.running_target, state.target, tolerance))
    if state.cache_target > 0:
        found = max(found, hpa.proposed(state.seen_cache, state.cache_target, state.target, tolerance))
    return found


@compiled
def memory(state: Any) -> hpa.Memory:
    return hpa.Memory(recommendations(state), changes(state))


@compiled
def rules(state: Any) -> hpa.Rules:
    return hpa.Rules(
        state.tolerance,
        state.up_stabilization,
        state.up_percent,
        state.up_period,
        state.down_stabilization,
        state.down_percent,
        state.down_period,
    )


@compiled
def sync(state: Any, now: float) -> None:
    """The autoscaler, which does nothing for a Deployment that has been scaled to zero."""
    if state.awake and state.target > 0:
        wanted = hpa.decide(
            memory(state), rules(state), now, state.target, minimum(state, now), state.max_replicas, wish(state)
        )
        if wanted != state.target:
            scale_to(state, wanted, now)


@compiled
def pass_edge(state: Any, now: float) -> None:
    """From awake to asleep or back. KEDA notices that it may scale again at its next poll."""
    state.edge += 1
    if state.edge < state.awake_edges_length:
        push(state, awake_edges(state)[state.edge], EDGE, NONE, 0)
    if state.awake:
        fall_asleep(state, now)
        set_level(state, ASLEEP, 1, now)
    else:
        state.awake = 1
        hpa.forget(memory(state))
        set_level(state, ASLEEP, 0, now)
        push(state, math.ceil(now / state.polling_seconds) * state.polling_seconds, WAKE, NONE, state.edge)


@compiled
def turn_bucket(state: Any, now: float) -> None:
    """The row of one bucket is done and the next one begins."""
    close_areas(state, now)
    state.bucket += 1
    state.most_waiting = state.waiting
    length = state.first_token_ring_length
    if state.rolling and state.bucket >= length:
        close_rings(state, state.bucket - length)
    push(state, (state.bucket + 1) * state.bucket_seconds, NEXT_BUCKET, NONE, 0)


@compiled
def close_areas(state: Any, now: float) -> None:
    for level in range(LEVELS):
        change(state, level, 0, now)
        areas(state)[state.bucket, level] = levels(state)[level].area
        levels(state)[level].area = 0.0
    bucket_counts(state)[state.bucket, MOST_WAITING] = state.most_waiting


@compiled
def close_rings(state: Any, bucket: int) -> None:
    """All that arrived in that bucket have ended."""
    ring = bucket % state.first_token_ring_length
    bucket_quantiles(state)[bucket, 0] = quantile(first_token_ring(state)[ring], 0.5)
    bucket_quantiles(state)[bucket, 1] = quantile(first_token_ring(state)[ring], 0.95)
    bucket_quantiles(state)[bucket, 2] = quantile(gap_ring(state)[ring], 0.95)
    first_token_ring(state)[ring] = 0
    gap_ring(state)[ring] = 0


@compiled
def finish(state: Any, now: float) -> None:
    state.now = now
    close_areas(state, now)
    length = state.first_token_ring_length
    first = max(0, state.bucket + 1 - length) if state.rolling else 0
    for bucket in range(first, min(state.bucket + 1, first + length)):
        close_rings(state, bucket)


@compiled
def serving_on(state: Any, node: int) -> int:
    """Replicas on a node that are not on their way out."""
    found = 0
    for number in range(len(replicas(state))):
        replica = replicas(state)[number]
        if replica.node == node and (replica.being == STARTING or replica.being == READY):
            found += 1
    return found


@compiled
def give_sign(state: Any, number: int, kind: int, now: float) -> bool:
    """EC2 says something about a node. Returns whether automation has to be asked before anything else happens."""
    if kind == WARNING:
        state.interruptions += 1
        bucket_counts(state)[state.bucket, INTERRUPTIONS] += 1
        push(state, now, DOOM, number, nodes(state)[number].serial)
    if not state.automated:
        return False
    state.sign_node = nodes(state)[number].serial
    state.sign_is_warning = 1 if kind == WARNING else 0
    state.sign_replicas = serving_on(state, number)
    push(state, now, STEERED, NONE, 0)
    return True


@compiled
def control(state: Any, now: float) -> bool:
    """One event. Returns whether it was a sign that automation has to be asked about."""
    kind, of, token = pop(state)
    asked = False
    if kind == NEXT_BUCKET:
        turn_bucket(state, now)
    elif kind == SCRAPE:
        scrape(state, now)
        push(state, now + state.scrape_seconds, SCRAPE, NONE, 0)
    elif kind == SYNC:
        sync(state, now)
        push(state, now + state.sync_seconds, SYNC, NONE, 0)
    elif kind == EDGE:
        pass_edge(state, now)
    elif kind == WAKE:
        if state.awake and token == state.edge:
            scale_to(state, minimum(state, now), now)
    elif kind == STEERED:
        if state.spot_shut_until > now:
            push(state, state.spot_shut_until, RETRY, NONE, 0)
    elif kind == REPLICA_READY:
        if replicas(state)[of].being == STARTING and replicas(state)[of].serial == token:
            begin_serving(state, of, now)
    elif kind == DRAIN_OVER:
        if replicas(state)[of].being == DRAINING and replicas(state)[of].serial == token:
            kill(state, of, now)
    elif kind == CONSOLIDATE:
        if nodes(state)[of].being == UP and nodes(state)[of].version == token:
            end_node(state, of, now)
    elif kind != RETRY and nodes(state)[of].being != ABSENT and nodes(state)[of].serial == token:
        asked = node_event(state, kind, of, now)
    settle(state, now)
    return asked


@compiled
def node_event(state: Any, kind: int, number: int, now: float) -> bool:
    if kind == NODE_UP:
        if nodes(state)[number].being == LAUNCHING:
            come_up(state, number, now)
    elif kind == DOOM:
        doom(state, number, now)
    elif kind == NODE_GONE:
        lose_node(state, number, now)
    else:
        return give_sign(state, number, kind, now)
    return False


@compiled
def has_room(state: Any) -> bool:
    """For whatever one event of the control plane may make: as many replicas as may be wanted, each on its own node."""
    more = state.max_replicas + state.placeholders + 1
    free_replicas = 0
    for number in range(len(replicas(state))):
        free_replicas += replicas(state)[number].being == ABSENT
    free_nodes = 0
    for number in range(len(nodes(state))):
        free_nodes += nodes(state)[number].being == ABSENT
    return bool(
        free_replicas >= state.max_replicas
        and free_nodes >= more
        and state.events + 8 * more + 8 <= len(events(state))
        and state.bucket + 2 < len(areas(state))
    )


@compiled
def begin(state: Any) -> None:
    """Second 0: what is there by then is ready, on nodes that have its image and weights."""
    state.begun = 1
    push(state, state.bucket_seconds, NEXT_BUCKET, NONE, 0)
    push(state, 0.0, SCRAPE, NONE, 0)
    push(state, state.sync_seconds, SYNC, NONE, 0)
    if state.awake_edges_length:
        push(state, awake_edges(state)[0], EDGE, NONE, 0)
    if not state.awake:
        set_level(state, ASLEEP, 1, 0.0)
        return
    scale_to(state, state.initial_replicas, 0.0)
    furnish(state)
    settle(state, 0.0)


# --- the loop --------------------------------------------------------------------------------------------------------


@compiled
def _advance(state: Any, arrivals: Array, input_tokens: Array, output_tokens: Array) -> int:
    if not state.begun:
        begin(state)
    while True:
        if state.cursor < len(arrivals):
            arrival = arrivals[state.cursor]
        elif state.over:
            arrival = NEVER
        else:
            return NEEDS_ARRIVALS
        first = order(state)[0]
        serves = replicas(state)[first].event
        controls = events(state)[0].time
        gives_up = NEVER if state.oldest == NONE else requests(state)[state.oldest].arrival + state.timeout
        if state.alive == 0 and arrival == NEVER:
            end = max(state.duration, state.now)
            if serves == NEVER and controls >= end:
                finish(state, end)
                return DONE
        if controls <= arrival and controls <= serves and controls <= gives_up:
            if not has_room(state):
                return NEEDS_ROOM
            state.now = controls
            if control(state, controls):
                return SIGN
        elif arrival <= serves and arrival <= gives_up:
            if state.free_request == NONE:
                return NEEDS_REQUESTS
            state.now = arrival
            arrive(state, arrival, int(input_tokens[state.cursor]), int(output_tokens[state.cursor]))
            state.cursor += 1
            note_saturation(state, arrival)
        elif serves <= gives_up:
            if not has_journal_room(state, first):
                return NEEDS_JOURNAL
            state.now = serves
            if reach(state, first, serves):
                stop(state, first, serves)
            note_saturation(state, serves)
        else:
            state.now = gives_up
            give_up(state, state.oldest, gives_up)
            note_saturation(state, gives_up)


def _of_these_sources(fingerprint: int) -> Callable[[Array, Array, Array, Array], int]:
    """The loop as one compiled function that is kept for as long as no file of this folder changes."""

    def advance(states: Array, arrivals: Array, input_tokens: Array, output_tokens: Array) -> int:
        """Go on until something is missing or all is done; why it came back is one of the constants of the layout.

        Args:
            arrivals, input_tokens, output_tokens: a chunk of the traffic, of which `state.cursor` have been read.
        """
        return _advance(states[0], arrivals, input_tokens, output_tokens) if fingerprint else DONE

    return compiled_and_kept(advance)


def _fingerprint() -> int:
    content = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    return int.from_bytes(hashlib.sha256(content).digest()[:4], "big") | 1


advance: Final = _of_these_sources(_fingerprint())
EMPTY_TIMES: Final = np.zeros(0, dtype=np.float64)
EMPTY_TOKENS: Final = np.zeros(0, dtype=np.int32)
