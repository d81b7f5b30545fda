"""What happened in a simulation: counts that add up, latencies as histograms, and node time to be priced."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

LOWEST_SECONDS: Final = 1e-4
GROWTH: Final = 1.01
"""Each class of a latency histogram is one percent wider than the one before: a quantile is known to half a percent."""

NodeUse = Literal["busy", "idle", "starting", "placeholder", "empty"]
NODE_USES: Final[tuple[NodeUse, ...]] = ("busy", "idle", "starting", "placeholder", "empty")
"""What a slot of a node is paid for: serving requests; ready without any; launching, loading or draining without any;
held warm; nothing."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Values of one kind, by class; all in seconds.

    Attributes:
        counts: int64, shape (classes,): class i holds values up to LOWEST_SECONDS x GROWTH ** i, class 0 those below
            LOWEST_SECONDS.
        total_seconds: sum of all values, exact to rounding.
    """

    counts: NDArray[np.int64]
    total_seconds: float

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    @property
    def mean_seconds(self) -> float | None:
        """None without values."""
        return self.total_seconds / self.count if self.count else None

    def quantile_seconds(self, share: float) -> float | None:
        """The value that `share` of all do not exceed, to half a percent; None without values."""
        if not self.count:
            return None
        rank = max(1, int(np.ceil(share * self.count)))
        index = int(np.searchsorted(np.cumsum(self.counts), rank))
        return float(LOWEST_SECONDS * GROWTH ** (index - 0.5)) if index else LOWEST_SECONDS

    def share_within(self, seconds: float) -> float | None:
        """Share of the values up to `seconds`, to the resolution of the classes."""
        if not self.count:
            return None
        index = 0 if seconds <= LOWEST_SECONDS else int(np.floor(np.log(seconds / LOWEST_SECONDS) / np.log(GROWTH)))
        return float(self.counts[: index + 1].sum()) / self.count


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests and tokens; `arrived` is the sum of the four ways a request ends.

    Attributes:
        refused: could never be served: longer than the model takes, or larger than the KV cache.
        timed_out: gave up, waiting or running.
        lost: were at a replica, running or queued, when EC2 took its node away or its time to drain was over.
        good: completed within every part of the objective.
        input_tokens, output_tokens: of completed requests, each counted once.
        wasted_output_tokens: generated for requests that did not complete, or to be computed again after an eviction.
        evictions: from the KV cache, each to be run again.
    """

    arrived: int
    completed: int
    refused: int
    timed_out: int
    lost: int
    good: int
    input_tokens: int
    output_tokens: int
    wasted_output_tokens: int
    evictions: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Columns over buckets of time, shape (buckets,) unless said otherwise; means are over the bucket's time.

    Attributes:
        start_seconds: of each bucket.
        length_seconds: the last one may be shorter.
        arrived, completed, good, input_tokens, output_tokens: of requests that arrived in the bucket, whenever they
            end; tokens of those that complete.
        waiting_mean, running_mean: requests.
        ready_mean, starting_mean: replicas.
        asleep_share: of the time.
        spot_nodes_mean, on_demand_nodes_mean: that are paid.
        spot_node_seconds, on_demand_node_seconds: paid, shape (buckets, len(NODE_USES)), split by the use of slots.
        time_to_first_token_p50_seconds, ..p95: of completed requests that arrived in the bucket; NaN without any.
        inter_token_p95_seconds: the same of each request's mean gap, which is what the objective asks about.
    """

    start_seconds: NDArray[np.float64]
    length_seconds: NDArray[np.float64]
    arrived: NDArray[np.int64]
    completed: NDArray[np.int64]
    good: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    waiting_mean: NDArray[np.float64]
    waiting_max: NDArray[np.int64]
    running_mean: NDArray[np.float64]
    ready_mean: NDArray[np.float64]
    starting_mean: NDArray[np.float64]
    asleep_share: NDArray[np.float64]
    spot_nodes_mean: NDArray[np.float64]
    on_demand_nodes_mean: NDArray[np.float64]
    spot_node_seconds: NDArray[np.float64]
    on_demand_node_seconds: NDArray[np.float64]
    interruptions: NDArray[np.int64]
    time_to_first_token_p50_seconds: NDArray[np.float64]
    time_to_first_token_p95_seconds: NDArray[np.float64]
    inter_token_p95_seconds: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run, drained: it ends when every request has ended and the traffic's time is over.

    Attributes:
        end_seconds: of the run; at least the traffic's duration.
        time_to_first_token: of completed requests, from arrival, waits included.
        inter_token: one value per gap between two tokens that the user sees, of all such gaps of completed requests.
        request_inter_token: one value per completed request with two tokens or more: the mean of its gaps.
        end_to_end: of completed requests.
        utilization: share of the ready replicas' time in which at least one request was served.
        peak_replicas, peak_nodes: ready or starting; paid.
        launches, on_demand_launches: of nodes after second 0, and of them those on demand because Spot, which comes
            first, had no capacity, was shut or was at its limit.
        at_limit_seconds: time in which replicas were wanted that `max_nodes` forbade.
        saturated_share: share of the time with ready replicas in which requests waited that an engine could not take at
            its last step: no slot, no room in the cache, or no time for their prompts.
    """

    counts: Counts
    timeline: Timeline
    time_to_first_token: Latencies
    inter_token: Latencies
    request_inter_token: Latencies
    end_to_end: Latencies
    end_seconds: float
    interruptions: int
    launches: int
    on_demand_launches: int
    utilization: float
    peak_replicas: int
    peak_nodes: int
    at_limit_seconds: float
    saturated_share: float
