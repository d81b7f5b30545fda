"""Where the simulation keeps what it knows: arrays of records, so that compiled code works on them without objects.

Everything that grows with the number of requests in flight, of replicas or of nodes is an array with spare room; the
kernel asks for a larger one before it runs out. Nothing grows with the length of the traffic but a row per bucket.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

NONE: Final = -1
"""No such request, replica or node, where an index is expected."""

# Why the kernel came back.
DONE: Final = 0
NEEDS_ARRIVALS: Final = 1
SIGN: Final = 2
NEEDS_REQUESTS: Final = 3
NEEDS_JOURNAL: Final = 4
NEEDS_ROOM: Final = 5

# How a request ends; 0 is still alive.
COMPLETED: Final = 1
REFUSED: Final = 2
TIMED_OUT: Final = 3
LOST: Final = 4

# Where a request is.
ASTRAY: Final = 0
"""No replica is ready: the client retries."""
QUEUED: Final = 1
PREFILLING: Final = 2
DECODING: Final = 3

# What a replica does.
IDLE: Final = 0
STEPS: Final = 1
"""Decode steps with one make-up of the batch, taken in one jump."""
MIXED: Final = 2
"""One step with pieces of prompts."""
PREFILL: Final = 3
"""One prompt alone, while decoding stands still."""
ROUSED: Final = 4
"""Idle until now: it looks at its queue when all that arrive in this moment are in it."""

# What a replica is.
ABSENT: Final = 0
PENDING: Final = 1
"""Wanted, and no node has room."""
STARTING: Final = 2
READY: Final = 3
DRAINING: Final = 4

# What a node is.
LAUNCHING: Final = 1
UP: Final = 2
DOOMED: Final = 3

SPOT: Final = 0
ON_DEMAND: Final = 1

# Events of the control plane, in the order in which those of one moment are handled. The autoscaler comes before the
# scrape: what it sees is always one scrape old.
NEXT_BUCKET: Final = 0
NODE_UP: Final = 1
REPLICA_READY: Final = 2
REBALANCE: Final = 3
WARNING: Final = 4
STEERED: Final = 5
DOOM: Final = 6
DRAIN_OVER: Final = 7
NODE_GONE: Final = 8
CONSOLIDATE: Final = 9
RETRY: Final = 10
EDGE: Final = 11
WAKE: Final = 12
SYNC: Final = 13
SCRAPE: Final = 14

# Quantities whose integral over time is kept.
WAITING: Final = 0
RUNNING: Final = 1
READY_REPLICAS: Final = 2
STARTING_REPLICAS: Final = 3
ASLEEP: Final = 4
NODES: Final = 5  # and on demand after it
BUSY_REPLICAS: Final = 7
ANY_READY: Final = 8
SATURATED: Final = 9
AT_LIMIT: Final = 10
USES: Final = 11  # slots of Spot nodes by use, then of on-demand nodes
LEVELS: Final = 21

BUSY: Final = 0
FREE: Final = 1
LOADING: Final = 2
HELD: Final = 3
EMPTY: Final = 4
USE_KINDS: Final = 5

# Histograms over the whole run.
FIRST_TOKEN: Final = 0
GAP: Final = 1
MEAN_GAP: Final = 2
END_TO_END: Final = 3
CLASSES: Final = 2400
"""Up to 25 days."""

# Columns of counts per bucket, of requests that arrived in it (interruptions: that happened in it).
ARRIVED: Final = 0
SERVED: Final = 1
GOOD: Final = 2
INPUT_TOKENS: Final = 3
OUTPUT_TOKENS: Final = 4
INTERRUPTIONS: Final = 5
MOST_WAITING: Final = 6
COUNTS: Final = 7

_ARRAYS: Final = (
    "prompts",
    "requests",
    "replicas",
    "completions",
    "residues",
    "order",
    "ready_list",
    "edges",
    "nodes",
    "events",
    "levels",
    "awake_edges",
    "request_log",
    "node_log",
)
_TABLES: Final = (
    "journal",
    "counts",
    "first_token_ring",
    "gap_ring",
    "areas",
    "bucket_counts",
    "bucket_quantiles",
    "recommendations",
    "changes",
)

STATE = np.dtype(
    [
        ("now", "f8"),
        ("duration", "f8"),
        # performance of a replica
        ("step_seconds", "f8"),
        ("step_seconds_per_sequence", "f8"),
        ("step_seconds_per_token", "f8"),
        ("prefill_seconds", "f8"),
        ("prefill_seconds_per_token", "f8"),
        ("serial", "i8"),
        ("chunk_tokens", "i8"),
        ("max_sequences", "i8"),
        ("max_tokens", "i8"),
        ("blocks", "i8"),
        ("block_tokens", "i8"),
        ("journal_room", "i8"),
        # objective
        ("first_token_goal", "f8"),
        ("gap_goal", "f8"),
        ("timeout", "f8"),
        # scaling
        ("tolerance", "f8"),
        ("up_stabilization", "f8"),
        ("up_percent", "f8"),
        ("up_period", "f8"),
        ("down_stabilization", "f8"),
        ("down_percent", "f8"),
        ("down_period", "f8"),
        ("min_replicas", "i8"),
        ("max_replicas", "i8"),
        ("queue_target", "f8"),
        ("running_target", "f8"),
        ("cache_target", "f8"),
        ("scrape_seconds", "f8"),
        ("polling_seconds", "f8"),
        ("sync_seconds", "f8"),
        ("raised_minimum", "i8"),
        ("raised_until", "f8"),
        ("seen", "i8"),
        ("seen_waiting", "f8"),
        ("seen_running", "f8"),
        ("seen_cache", "f8"),
        ("target", "i8"),
        ("present", "i8"),
        ("ready", "i8"),
        ("pending", "i8"),
        ("turn", "i8"),
        ("replica_serial", "i8"),
        ("initial_replicas", "i8"),
        ("begun", "i8"),
        ("awake", "i8"),
        ("edge", "i8"),
        # nodes
        ("slots", "i8"),
        ("first_purchase", "i8"),
        ("second_purchase", "i8"),
        ("max_nodes", "i8"),
        ("launch_seconds", "f8"),
        ("fetch_seconds", "f8"),
        ("load_seconds", "f8"),
        ("consolidate_seconds", "f8"),
        ("drain_seconds", "f8"),
        ("placeholders", "i8"),
        ("held", "i8"),
        ("spot_nodes", "i8"),
        ("on_demand_nodes", "i8"),
        ("node_serial", "i8"),
        ("node_version", "i8"),
        # Spot
        ("hazard", "f8"),
        ("notice_seconds", "f8"),
        ("rebalance_share", "f8"),
        ("rebalance_lead", "f8"),
        ("unavailable_share", "f8"),
        ("spot_shut_until", "f8"),
        ("spot_blocked_until", "f8"),
        ("attempts", "i8"),
        ("seed", "u8"),
        ("automated", "i8"),
        ("sign_node", "i8"),
        ("sign_is_warning", "i8"),
        ("sign_replicas", "i8"),
        # traffic
        ("cursor", "i8"),
        ("over", "i8"),
        ("number", "i8"),
        ("last_arrival", "f8"),
        # requests
        ("free_request", "i8"),
        ("oldest", "i8"),
        ("newest", "i8"),
        ("alive", "i8"),
        ("astray_first", "i8"),
        ("astray_last", "i8"),
        ("astray", "i8"),
        ("waiting", "i8"),
        ("blocked_replicas", "i8"),
        # events
        ("events", "i8"),
        ("event_serial", "i8"),
        # results
        ("bucket", "i8"),
        ("bucket_seconds", "f8"),
        ("rolling", "i8"),
        ("most_waiting", "i8"),
        ("arrived", "i8"),
        ("completed", "i8"),
        ("refused", "i8"),
        ("timed_out", "i8"),
        ("lost", "i8"),
        ("good", "i8"),
        ("input_tokens", "i8"),
        ("output_tokens", "i8"),
        ("wasted", "i8"),
        ("evictions", "i8"),
        ("first_token_total", "f8"),
        ("gap_total", "f8"),
        ("mean_gap_total", "f8"),
        ("end_to_end_total", "f8"),
        ("interruptions", "i8"),
        ("launches", "i8"),
        ("on_demand_launches", "i8"),
        ("peak_replicas", "i8"),
        ("peak_nodes", "i8"),
        # where the arrays are
        *((f"{name}_address", "u8") for name in _ARRAYS + _TABLES),
        *((f"{name}_length", "i8") for name in _ARRAYS + _TABLES),
        *((f"{name}_width", "i8") for name in _TABLES),
    ],
    align=True,
)
"""One record: the parameters, the counters and the heads of all lists."""

REQUEST = np.dtype(
    [
        ("arrival", "f8"),
        ("first", "f8"),
        ("last", "f8"),
        ("joined", "i8"),
        ("journal", "i8"),
        ("number", "i8"),
        ("input", "i8"),
        ("output", "i8"),
        ("made", "i8"),
        ("prompt", "i8"),
        ("prefilled", "i8"),
        ("replica", "i8"),
        ("next", "i8"),
        ("previous", "i8"),
        ("newer", "i8"),
        ("older", "i8"),
        ("place", "i8"),
        ("bucket", "i8"),
        ("where", "i8"),
        ("aborted", "i8"),
    ],
    align=True,
)
"""A request that has not ended.

first, last: when the user saw its first token, negative before; and its last one before an eviction. joined: the
replica's step count when it began to decode; journal: where the replica's journal was at its first token. made: tokens
when it joined. prompt: what has to be prefilled, `prefilled` of it is. next, previous: in the queue or the batch, in
order of admission; newer, older: of all that live, in order of arrival. place: in the heap of completions.
"""

REPLICA = np.dtype(
    [
        ("event", "f8"),
        ("began", "f8"),
        ("gap", "f8"),
        ("slope", "f8"),
        ("last_token", "f8"),
        ("plan", "i8"),
        ("steps", "i8"),
        ("context", "i8"),
        ("used", "i8"),
        ("journal_first", "i8"),
        ("journal_end", "i8"),
        ("serial", "i8"),
        ("gap_class", "i8"),
        ("doing", "i8"),
        ("being", "i8"),
        ("decoding", "i8"),
        ("running", "i8"),
        ("waiting", "i8"),
        ("fresh", "i8"),
        ("queue_first", "i8"),
        ("queue_last", "i8"),
        ("batch_first", "i8"),
        ("batch_last", "i8"),
        ("prefilling", "i8"),
        ("aborted", "i8"),
        ("blocked", "i8"),
        ("node", "i8"),
        ("order", "i8"),
        ("ready_place", "i8"),
    ],
    align=True,
)
"""A replica.

event: when it next needs attention. began, gap, slope, plan: of what it does now: `plan` steps, the first of them takes
`gap`, each next one `slope` more. last_token: when its decoding sequences got their last one. context: tokens in the
cache in the next step. used: blocks. fresh: sequences prefilled since the last step. prefilling: the first in the
batch whose prompt is not done. aborted: a list of requests to drop at the end of the step.
"""

COMPLETION = np.dtype([("step", "i8"), ("request", "i8")], align=True)

JOURNAL = np.dtype([("began", "f8"), ("gap", "f8"), ("slope", "f8"), ("steps", "i8"), ("request", "i8")], align=True)
"""What a replica did, as far back as its oldest request: to take back the gaps of one that does not complete."""
EVICTED: Final = -1
RESUMED: Final = -2

NODE = np.dtype(
    [
        ("born", "f8"),
        ("warm_at", "f8"),
        ("serial", "i8"),
        ("version", "i8"),
        ("being", "i8"),
        ("purchase", "i8"),
        ("replicas", "i8"),
        ("held", "i8"),
    ],
    align=True,
)
"""warm_at: image and weights are on its disk; infinite before somebody fetches them. version: renewed whenever somebody
moves in or out, so that a consolidation that was due is known to be void."""

EVENT = np.dtype([("time", "f8"), ("kind", "i8"), ("serial", "i8"), ("of", "i8"), ("token", "i8")], align=True)
LEVEL = np.dtype([("value", "f8"), ("since", "f8"), ("area", "f8")], align=True)

REQUEST_LOG = np.dtype([("first", "f8"), ("end", "f8"), ("fate", "i8")], align=True)
NODE_LOG = np.dtype([("born", "f8"), ("gone", "f8"), ("purchase", "i8")], align=True)

Array = NDArray[Any]


class World(NamedTuple):
    """All arrays; the kernel changes them, and is called again with larger ones when it asks for room.

    Attributes:
        state: one record.
        prompts: lengths that serial prompts are padded to, ascending.
        completions: `max_sequences` places per replica, a heap by step.
        residues: `block_tokens` places per replica: decoding sequences by where in a block they write.
        journal: a ring per replica, all of the same length.
        order: heap of replicas by their next event.
        ready_list: replicas that the gateway sends requests to.
        edges: upper edges of the latency classes.
        counts: histograms over the run, shape (4, CLASSES).
        first_token_ring, gap_ring: histograms of the buckets that are still open, shape (buckets, CLASSES).
        areas, bucket_counts, bucket_quantiles: a row per bucket.
        awake_edges: moments at which sleep and wake alternate.
        recommendations, changes: the autoscaler's memory.
        request_log, node_log: by number; empty unless somebody wants to look.
    """

    state: Array
    prompts: Array
    requests: Array
    replicas: Array
    completions: Array
    residues: Array
    journal: Array
    order: Array
    ready_list: Array
    edges: Array
    counts: Array
    first_token_ring: Array
    gap_ring: Array
    nodes: Array
    events: Array
    levels: Array
    areas: Array
    bucket_counts: Array
    bucket_quantiles: Array
    awake_edges: Array
    recommendations: Array
    changes: Array
    request_log: Array
    node_log: Array


def zeros(size: int, kind: DTypeLike) -> Array:
    return np.zeros(size, dtype=kind)


def larger(array: Array, size: int) -> Array:
    """The same content in a longer array."""
    grown = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
