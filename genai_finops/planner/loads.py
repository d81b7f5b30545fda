"""What a traffic amounts to: its sums, its peak and what it begins with, read once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from genai_finops.planner.results import ComparedLoad, TrafficSummary
from genai_finops.planner.steady_state import UTILIZATION_BOUND, Load
from genai_finops.planner.traffic.requests import Requests, Traffic

PEAK_SECONDS: Final = 60
"""The peak is the busiest minute: shorter ones pass before anything could scale."""

QUIET_MINUTES: Final = 10
QUIET_SHARE: Final = 0.05

LENGTH_CLASS: Final = 128
LONGEST: Final = 131_072
"""Tokens. Longer requests are counted as one class."""

FIRST_SECONDS: Final = 300
"""What the first replicas are counted for."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A traffic's figures.

    Attributes:
        mean: tokens of a request; None without any.
        first_requests_per_second: mean of the first five minutes.
        quiet_requests_per_second: mean of a quiet ten minutes: one in twenty is quieter.
        lengths: requests by length, prompt and answer, in classes of LENGTH_CLASS tokens; the last holds all above.
    """

    summary: TrafficSummary
    mean: Load | None
    first_requests_per_second: float
    quiet_requests_per_second: float
    lengths: tuple[int, ...]

    def share_within(self, tokens: int) -> float:
        """Requests whose prompt and answer fit into `tokens`, of all; to a class of lengths, rounded down."""
        return sum(self.lengths[: tokens // LENGTH_CLASS]) / self.summary.requests if self.summary.requests else 1.0

    @property
    def requests_per_second(self) -> float:
        return self.summary.requests / self.summary.duration_seconds if self.summary.duration_seconds else 0.0

    def compared(self, bound: float = UTILIZATION_BOUND) -> ComparedLoad:
        """What `compare` sizes replicas for.

        Raises:
            ValueError: when there is no request.
        """
        if self.mean is None:
            raise ValueError(f"{self.summary.name} has no requests: there is nothing to size replicas for")
        return ComparedLoad(
            name=self.summary.name,
            mean_requests_per_second=self.requests_per_second,
            peak_requests_per_second=max(self.summary.peak_requests_per_second, self.requests_per_second),
            mean_input_tokens=self.mean.input_tokens,
            mean_output_tokens=self.mean.output_tokens,
            utilization_bound_share=bound,
        )


KEPT_REQUESTS: Final = 5_000_000
"""Requests that are held in memory to be simulated again and again: 80 MB. A longer traffic is read anew each time."""


class _Kept:
    """A traffic in memory: hundreds of runs read or draw it once."""

    def __init__(self, traffic: Traffic, chunks: tuple[Requests, ...]) -> None:
        self.name, self.start, self.duration_seconds = traffic.name, traffic.start, traffic.duration_seconds
        self._chunks = chunks

    def chunks(self) -> Iterator[Requests]:
        return iter(self._chunks)


def kept(traffic: Traffic) -> Traffic:
    """The same traffic, in memory where it is not too long for that."""
    chunks: list[Requests] = []
    requests = 0
    for chunk in traffic.chunks():
        chunks.append(chunk)
        requests += len(chunk)
        if requests > KEPT_REQUESTS:
            return traffic
    return _Kept(traffic, tuple(chunks))


def measured(traffic: Traffic) -> Measured:
    """Reads `traffic` from start to end."""
    requests = input_tokens = output_tokens = 0
    minutes = np.zeros(1, np.int64)
    lengths = np.zeros(LONGEST // LENGTH_CLASS + 1, np.int64)
    for chunk in traffic.chunks():
        requests += len(chunk)
        input_tokens += int(chunk.input_tokens.sum(dtype=np.int64))
        output_tokens += int(chunk.output_tokens.sum(dtype=np.int64))
        tokens = chunk.input_tokens.astype(np.int64) + chunk.output_tokens
        classes = np.minimum((tokens - 1) // LENGTH_CLASS, len(lengths) - 1)
        lengths += np.bincount(classes, minlength=len(lengths))
        minutes = _added(minutes, np.bincount((chunk.arrival_seconds // PEAK_SECONDS).astype(np.int64)))
    duration = traffic.duration_seconds
    first_minutes = minutes[: FIRST_SECONDS // PEAK_SECONDS]
    first_seconds = min(FIRST_SECONDS, duration) or PEAK_SECONDS
    return Measured(
        summary=TrafficSummary(
            name=traffic.name,
            start=traffic.start,
            duration_seconds=duration,
            requests=requests,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            peak_requests_per_second=float(minutes.max()) / PEAK_SECONDS,
        ),
        mean=Load(input_tokens / requests, output_tokens / requests) if requests else None,
        first_requests_per_second=float(first_minutes.sum()) / first_seconds,
        quiet_requests_per_second=_quiet(minutes, duration),
        lengths=tuple(lengths.tolist()),
    )


def _quiet(minutes: NDArray[np.int64], duration_seconds: float) -> float:
    """Of whole periods only: the last, shorter one would look quiet."""
    whole = int(duration_seconds // (60 * QUIET_MINUTES))
    if not whole:
        return float(minutes.sum()) / (duration_seconds or PEAK_SECONDS)
    filled = _added(minutes, np.zeros(whole * QUIET_MINUTES, np.int64))[: whole * QUIET_MINUTES]
    periods = np.sort(filled.reshape(whole, QUIET_MINUTES).sum(axis=1))
    return float(periods[int(QUIET_SHARE * whole)]) / (60 * QUIET_MINUTES)


def _added(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    longest = np.zeros(max(len(one), len(other)), np.int64)
    longest[: len(one)] += one
    longest[: len(other)] += other
    return longest
