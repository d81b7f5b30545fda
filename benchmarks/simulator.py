"""How fast the simulator is, how much memory it takes, and what it answers beside the best published one.

    python -m benchmarks.simulator [trace.csv]

The trace is one of Azure's (TIMESTAMP, ContextTokens, GeneratedTokens); without one, arrivals and lengths of its shape
are drawn. Seconds are of CPU, so that whatever else runs counts for little. Each memory figure is of a process of its
own that has compiled the kernel before.
"""

import csv
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from genai_finops.planner.performance.replica import ReplicaPerformance
from genai_finops.planner.provenance import Origin
from genai_finops.planner.simulation.outcome import Latencies, Outcome
from genai_finops.planner.simulation.run import Run, simulate, simulate_many
from genai_finops.planner.simulation.scenario import Nodes, Objective, ScalePolicy, Scaling, Scenario, SpotRisk
from genai_finops.planner.traffic.requests import Requests, Traffic

CHUNK: Final = 1 << 16
START: Final = datetime(2026, 3, 2, tzinfo=UTC)
HOUR: Final = 3600.0
ORIGIN: Final = Origin("fitted", 0.1, "steps of 10.9 ms and 0.07 ms per sequence; prefill at 40 % of 989 TFLOPS")

H100: Final = ReplicaPerformance(
    model="llama-3.1-8b",
    instance="p5.4xlarge",
    tensor_parallel_size=1,
    step_seconds=0.0109,
    step_seconds_per_sequence=0.00007,
    step_seconds_per_token=0,
    prefill="chunked",
    prefill_seconds=0,
    prefill_seconds_per_token=2 * 8.03e9 / (0.4 * 989e12),
    buckets=(),
    chunk_tokens=2048,
    max_sequences=256,
    max_tokens=16_384,
    cache_tokens=400_000,
    block_tokens=16,
    decode_origin=ORIGIN,
    prefill_origin=ORIGIN,
)
INF2: Final = replace(
    H100,
    instance="inf2.xlarge",
    tensor_parallel_size=2,
    step_seconds=0.032,
    step_seconds_per_sequence=0.0006,
    prefill="serial",
    prefill_seconds=0.29,
    prefill_seconds_per_token=0,
    buckets=(1024, 2048, 4096, 8192),
    chunk_tokens=0,
    max_sequences=8,
    max_tokens=8192,
    cache_tokens=8 * 8192,
    block_tokens=8192,
)

PUBLISHED: Final = {
    "time to first token, mean": 31.5,
    "time to first token, p99": 41.0,
    "inter-token, mean": 9.1,
    "inter-token, p99": 12.7,
    "end to end, mean": 1950.0,
    "end to end, p99": 4070.0,
}
"""Milliseconds that the best public simulator answers for the comparison workload."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Traffic that is in memory."""

    name: str
    requests: Requests
    duration_seconds: float
    start: datetime = START

    def chunks(self) -> Iterator[Requests]:
        whole = self.requests
        for first in range(0, len(whole), CHUNK):
            part = slice(first, first + CHUNK)
            yield Requests(whole.arrival_seconds[part], whole.input_tokens[part], whole.output_tokens[part])


@dataclass(frozen=True, slots=True)
class Repeated:
    """One hour again and again, without more memory."""

    hour: Columns
    times: int
    name: str = "repeated"
    start: datetime = START

    @property
    def duration_seconds(self) -> float:
        return self.times * HOUR

    def chunks(self) -> Iterator[Requests]:
        for turn in range(self.times):
            for chunk in self.hour.chunks():
                yield Requests(chunk.arrival_seconds + turn * HOUR, chunk.input_tokens, chunk.output_tokens)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent arrivals, drawn chunk by chunk; normal lengths."""

    rate: float
    duration_seconds: float
    name: str = "poisson"
    start: datetime = START

    def chunks(self) -> Iterator[Requests]:
        generator = np.random.default_rng(1)
        now = 0.0
        while True:
            arrivals = now + np.cumsum(generator.exponential(1 / self.rate, CHUNK))
            now = float(arrivals[-1])
            kept = int(np.searchsorted(arrivals, self.duration_seconds))
            if kept:
                yield Requests(
                    arrivals[:kept], _lengths(generator, 1155, 400, kept), _lengths(generator, 211, 100, kept)
                )
            if kept < CHUNK:
                return


def _lengths(generator: np.random.Generator, mean: float, deviation: float, count: int) -> NDArray[np.int32]:
    return np.maximum(1, np.rint(generator.normal(mean, deviation, count))).astype(np.int32)


def conversation(trace: Path | None) -> Columns:
    """The hour of Azure's conversation trace, or one like it: 19,366 requests, 1,155 tokens in and 211 out."""
    if trace is None:
        [requests] = Poisson(19_366 / 3502, 3502).chunks()
        return Columns("drawn", requests, HOUR)
    with trace.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    times = np.array([np.datetime64(row["TIMESTAMP"][:26]) for row in rows]).astype("datetime64[us]").astype(np.int64)
    return Columns(
        trace.stem,
        Requests(
            (times - times[0]) / 1e6,
            np.array([row["ContextTokens"] for row in rows], dtype=np.int32),
            np.array([row["GeneratedTokens"] for row in rows], dtype=np.int32),
        ),
        HOUR,
    )


def scenario(performance: ReplicaPerformance, *, most: int, queue: float = 8, spot: float = 0.01) -> Scenario:
    """Scaled by queue and load, on Spot first."""
    return Scenario(
        performance=performance,
        scaling=Scaling(
            1,
            most,
            queue_per_replica=queue,
            running_per_replica=performance.max_sequences * 0.7,
            kv_cache_target=0.8,
            scale_up=ScalePolicy(0, 100, 15),
            scale_down=ScalePolicy(300, 10, 60),
        ),
        nodes=Nodes(1, ("spot", "on-demand"), None, 90, 300, 120, 120, 120),
        spot=SpotRisk(spot),
        objective=Objective(2, 0.1),
        start=START,
    )


def timed(case: Scenario, traffic: Traffic) -> tuple[Outcome, float]:
    """CPU seconds, with the kernel compiled before."""
    begun = process_time()
    outcome = simulate(case, traffic)
    return outcome, process_time() - begun


def speed(hour: Columns) -> None:
    print(f"Autoscaled, 50 times the hour of {hour.name}")
    for name, case in (
        ("chunked prefill, H100", scenario(H100, most=10)),
        ("serial prefill, inf2.xlarge", scenario(INF2, most=40)),
    ):
        outcome, seconds = timed(case, Repeated(hour, 50))
        print(
            f"  {name:30} {outcome.counts.arrived / seconds:12,.0f} requests/s  {outcome.counts.arrived:,} in "
            f"{seconds:.2f} s, up to {outcome.peak_replicas} replicas"
        )


def week() -> None:
    case = replace(scenario(H100, most=40), initial_replicas=12)
    outcome, seconds = timed(case, Poisson(100, 7 * 24 * HOUR))
    print(f"A week at 100 requests a second: {outcome.counts.arrived:,} in {seconds:.0f} s, one core")


def candidates(hour: Columns) -> None:
    runs = [
        Run(scenario(performance, most=most, queue=queue), hour, seed)
        for performance in (H100, INF2)
        for most in (2, 5, 10, 20, 40)
        for queue in (2, 4, 8, 16, 32)
        for seed in range(4)
    ]
    begun = perf_counter()
    simulate_many(runs, threads=2)
    print(f"{len(runs)} candidates over the hour: {perf_counter() - begun:.1f} s, two threads")


def growth() -> None:
    """Each in a process of its own, so that its peak is its own."""
    print("Time and memory by length, H100 at 10 requests/s")
    for count in (10**4, 10**5, 10**6):
        command = [sys.executable, "-m", "benchmarks.simulator", "--alone", str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
        seconds, mebibytes = done.stdout.split()
        print(f"  {count:9,} requests  {float(seconds) * 1e6 / count:6.2f} µs each  peak {float(mebibytes):.1f} MiB")


def alone(count: int) -> None:
    case = scenario(H100, most=10)
    simulate(case, Poisson(10, 10))
    outcome, seconds = timed(case, Poisson(10, count / 10))
    print(seconds * count / outcome.counts.arrived, peak_mebibytes())


def peak_mebibytes() -> float:
    """Of this program alone; getrusage would count what the process that started it held at that time."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def comparison() -> None:
    fixed = scenario(H100, most=1, spot=0)
    outcome, _ = timed(fixed, Poisson(10, HOUR))
    ours = dict(zip(PUBLISHED, _milliseconds(outcome), strict=True))
    print("Llama-3.1-8B on H100, 10 requests/s, 1,155 ± 400 tokens in, 211 ± 100 out; milliseconds")
    print(f"  {'':28}{'ours':>9}{'published':>11}")
    for name, published in PUBLISHED.items():
        print(f"  {name:28}{ours[name]:9.1f}{published:11.1f}")


def _milliseconds(outcome: Outcome) -> Iterator[float]:
    kinds: tuple[Latencies, ...] = (outcome.time_to_first_token, outcome.inter_token, outcome.end_to_end)
    for kind in kinds:
        yield 1000 * (kind.mean_seconds or 0)
        yield 1000 * (kind.quantile_seconds(0.99) or 0)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--alone"]:
        alone(int(arguments[1]))
        return
    hour = conversation(Path(arguments[0]) if arguments else None)
    simulate(scenario(H100, most=1), hour)  # compiles, or reads what has been compiled
    speed(hour)
    candidates(hour)
    growth()
    comparison()
    week()


if __name__ == "__main__":
    main(sys.argv[1:])
