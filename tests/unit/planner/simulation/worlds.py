"""Scenarios and traffic for the tests of the simulation, and a look at what happened to each request and node."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from genai_finops.planner.performance.replica import ReplicaPerformance
from genai_finops.planner.provenance import Origin
from genai_finops.planner.simulation.layout import World
from genai_finops.planner.simulation.run import run_world
from genai_finops.planner.simulation.scenario import (
    Nodes,
    Objective,
    ScalePolicy,
    Scaling,
    Scenario,
    SpotRisk,
)
from genai_finops.planner.simulation.start import new_world
from genai_finops.planner.traffic.requests import Requests, Traffic

START = datetime(2026, 3, 2, tzinfo=UTC)
ASSUMED = Origin("assumed", 0.2, "made for the tests")

CHUNKED = ReplicaPerformance(
    model="test",
    instance="g6e.xlarge",
    tensor_parallel_size=1,
    step_seconds=0.01,
    step_seconds_per_sequence=0.0002,
    step_seconds_per_token=1e-7,
    prefill="chunked",
    prefill_seconds=0.002,
    prefill_seconds_per_token=5e-5,
    buckets=(),
    chunk_tokens=1024,
    max_sequences=64,
    max_tokens=8192,
    cache_tokens=200_000,
    block_tokens=16,
    decode_origin=ASSUMED,
    prefill_origin=ASSUMED,
)
SERIAL = replace(
    CHUNKED,
    instance="inf2.xlarge",
    step_seconds=0.02,
    step_seconds_per_sequence=0.0006,
    prefill="serial",
    prefill_seconds=0.1,
    buckets=(512, 1024, 4096),
    chunk_tokens=0,
    max_sequences=8,
    max_tokens=4096,
    cache_tokens=8 * 4096,
    block_tokens=4096,
)
FIXED = Scaling(1, 1, 10, 64, None, ScalePolicy(0, 100, 15), ScalePolicy(300, 10, 60))
ELASTIC = Scaling(1, 10, 4, 16, None, ScalePolicy(0, 100, 15), ScalePolicy(300, 100, 60))
NODES = Nodes(
    replicas_per_node=1,
    purchases=("on-demand",),
    max_nodes=None,
    launch_seconds=60,
    start_seconds_fresh=240,
    start_seconds_warm=90,
    consolidate_after_seconds=120,
    drain_seconds=120,
)
SCENARIO = Scenario(
    performance=CHUNKED,
    scaling=FIXED,
    nodes=NODES,
    spot=SpotRisk(0),
    objective=Objective(2, 0.1),
    start=START,
)


@dataclass(frozen=True)
class List:
    """Traffic that is in memory."""

    requests: Requests
    duration_seconds: float
    chunk: int = 1000
    name: str = "list"
    start: datetime = START

    def chunks(self) -> Iterator[Requests]:
        whole = self.requests
        for first in range(0, len(whole), self.chunk):
            part = slice(first, first + self.chunk)
            yield Requests(whole.arrival_seconds[part], whole.input_tokens[part], whole.output_tokens[part])


def traffic(
    arrivals: Sequence[float], inputs: Any = 100, outputs: Any = 20, *, duration: float | None = None, chunk: int = 1000
) -> List:
    """At these seconds; one number of tokens for all, or one for each."""
    times = np.asarray(arrivals, dtype=np.float64)
    count = len(times)
    requests = Requests(
        times,
        np.broadcast_to(np.asarray(inputs, dtype=np.int32), (count,)).copy(),
        np.broadcast_to(np.asarray(outputs, dtype=np.int32), (count,)).copy(),
    )
    return List(requests, duration if duration is not None else float(times[-1]) if count else 0.0, chunk)


def poisson(
    rate: float,
    seconds: float,
    *,
    seed: int = 1,
    inputs: tuple[int, int] = (100, 900),
    outputs: tuple[int, int] = (20, 200),
) -> List:
    """Independent arrivals, lengths spread evenly."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.uniform(0, seconds, generator.poisson(rate * seconds)))
    return traffic(
        times,
        generator.integers(*inputs, len(times)),
        generator.integers(*outputs, len(times)),
        duration=seconds,
    )


def looked_into(scenario: Scenario, requests: Traffic, *, seed: int = 0, log: int = 10_000) -> World:
    """A run with a log of every request and every node."""
    world = new_world(scenario, requests.duration_seconds, seed=seed, requests=log, nodes=log)
    return run_world(world, scenario, requests)
