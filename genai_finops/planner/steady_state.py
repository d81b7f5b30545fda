"""What one replica carries in the long run, by arithmetic: for the table that answers at once, and to rule out early.

Requests of one length arrive at a steady rate. A decode step then takes as long as its batch makes it, stretched by the
prompts that come in between; by Little's law the batch is rate x output x step. Both together give the rate of every
batch in closed form. Waiting is estimated with exponential tails, which is rough near saturation: what is close is
decided by simulation.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, exp, inf, lgamma, log
from typing import Final

from genai_finops.planner.performance.replica import ReplicaPerformance

UTILIZATION_BOUND: Final = 0.8
"""Of the highest rate that a replica could carry, the share it is asked to: above, small errors of the performance
decide whether a queue grows without end."""

_HALVINGS: Final = 40


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one length; tokens are means."""

    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class State:
    """A replica at one rate.

    Attributes:
        batch: sequences served at once, mean.
        time_to_first_token_seconds: that the asked share of requests does not exceed.
    """

    requests_per_second: float
    batch: float
    inter_token_seconds: float
    time_to_first_token_seconds: float


def largest_batch(replica: ReplicaPerformance, load: Load) -> float:
    """Sequences that fit at once: by the server's limit and by the KV cache; 0 when not one does."""
    length = load.input_tokens + load.output_tokens
    if length > replica.max_tokens:
        return 0
    owned = replica.max_tokens if replica.prefill == "serial" else _blocks(length, replica.block_tokens)
    return float(min(replica.max_sequences, replica.cache_tokens // owned))


def highest_rate(replica: ReplicaPerformance, load: Load, batch: float | None = None) -> float:
    """Requests a second at which `batch`, by default the largest, is in service all the time."""
    if batch is None:
        batch = largest_batch(replica, load)
    gaps = _gaps(load)
    growth = _seconds_per_sequence(replica, load)
    return batch / (gaps * replica.step_seconds + batch * (_prefill_seconds(replica, load) + gaps * growth))


def state(replica: ReplicaPerformance, load: Load, requests_per_second: float, share: float) -> State | None:
    """The replica at a steady rate; None where the queue would grow without end.

    Args:
        share: of the requests that the time to the first token is given for, such as 0.95.
    """
    most = largest_batch(replica, load)
    if most < 1 or requests_per_second >= highest_rate(replica, load, most):
        return None
    gaps, growth, prefill = _gaps(load), _seconds_per_sequence(replica, load), _prefill_seconds(replica, load)
    rate = requests_per_second
    # From batch = rate x gaps x step, with step = (step_seconds + growth x batch) / (1 - rate x prefill).
    batch = rate * gaps * replica.step_seconds / (1 - rate * (prefill + gaps * growth)) if gaps else 0.0
    decode = replica.step_seconds + growth * batch
    step = decode / (1 - rate * prefill)
    own = prefill + _pieces(replica, load) * (decode if batch else 0.0)
    wait = max(_queue_seconds(rate, own, share), _slot_seconds(rate, prefill + gaps * step, most, share))
    return State(rate, batch, step, own + wait)


def capacity(
    replica: ReplicaPerformance,
    load: Load,
    *,
    time_to_first_token_seconds: float,
    inter_token_seconds: float | None,
    share: float,
    bound: float = UTILIZATION_BOUND,
) -> State | None:
    """The highest rate within an objective and within `bound` of what is possible; None where no rate is."""

    def holds(found: State | None) -> bool:
        return (
            found is not None
            and found.time_to_first_token_seconds <= time_to_first_token_seconds
            and (inter_token_seconds is None or found.inter_token_seconds <= inter_token_seconds)
        )

    if largest_batch(replica, load) < 1:
        return None
    low, high = 0.0, highest_rate(replica, load) * bound
    best = state(replica, load, high, share)
    if holds(best):
        return best
    best = None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = state(replica, load, middle, share)
        if holds(found):
            low, best = middle, found
        else:
            high = middle
    return best


def alone(replica: ReplicaPerformance, load: Load) -> State:
    """A request with the replica to itself: nothing is ever faster."""
    step = replica.step_seconds + _seconds_per_sequence(replica, load)
    own = _prefill_seconds(replica, load)
    return State(0.0, 1.0, step, own)


def _blocks(tokens: float, block_tokens: int) -> int:
    return max(1, ceil(tokens / block_tokens)) * block_tokens


def _gaps(load: Load) -> float:
    """Decode steps that a request takes part in; prefill brings the first token."""
    return max(load.output_tokens - 1, 0.0)


def _seconds_per_sequence(replica: ReplicaPerformance, load: Load) -> float:
    """What one more sequence adds to a step, half-way through its answer."""
    context = load.input_tokens + load.output_tokens / 2
    return replica.step_seconds_per_sequence + replica.step_seconds_per_token * context


def _prefill_seconds(replica: ReplicaPerformance, load: Load) -> float:
    tokens = next((bucket for bucket in replica.buckets if bucket >= load.input_tokens), load.input_tokens)
    return replica.prefill_seconds + replica.prefill_seconds_per_token * tokens


def _pieces(replica: ReplicaPerformance, load: Load) -> int:
    """Decode steps that a prompt's pieces ride along with; one that is under way when it comes, on Neuron."""
    return 1 if replica.prefill == "serial" else max(1, ceil(load.input_tokens / replica.chunk_tokens))


def _queue_seconds(rate: float, service_seconds: float, share: float) -> float:
    """Waiting for the prompts ahead, one server: M/M/1's tail, which prompts of several lengths come close to."""
    busy = rate * service_seconds
    return inf if busy >= 1 else _tail_seconds(busy, (1 - busy) / service_seconds, share)


def _slot_seconds(rate: float, service_seconds: float, slots: float, share: float) -> float:
    """Waiting for one of the slots: M/M/c's tail."""
    offered = rate * service_seconds
    if offered >= slots:
        return inf
    return _tail_seconds(_erlang_c(offered, int(slots)), (slots - offered) / service_seconds, share)


def _tail_seconds(waits: float, decay: float, share: float) -> float:
    """What `share` do not exceed of a wait that a part of all have, exponentially distributed."""
    return max(0.0, log(waits / (1 - share)) / decay) if waits > 0 else 0.0


def _erlang_c(offered: float, servers: int) -> float:
    """The chance that all of `servers` are taken."""
    if offered <= 0:
        return 0.0
    full = exp(servers * log(offered) - lgamma(servers + 1) - log(1 - offered / servers))
    return full / (sum(_poisson_terms(offered, servers)) + full)


def _poisson_terms(offered: float, servers: int) -> Iterator[float]:
    term = 1.0
    for count in range(servers):
        yield term
        term *= offered / (count + 1)
