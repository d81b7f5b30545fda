"""The kernel's arrays as an outcome."""

import numpy as np
from numpy.typing import NDArray

from genai_finops.planner.simulation import layout
from genai_finops.planner.simulation.layout import USE_KINDS, USES, World
from genai_finops.planner.simulation.outcome import Counts, Latencies, Outcome, Timeline


def outcome_of(world: World) -> Outcome:
    """Of a run that is over."""
    state = world.state[0]
    areas = world.areas[: int(state["bucket"]) + 1].sum(axis=0)
    return Outcome(
        counts=Counts(
            arrived=int(state["arrived"]),
            completed=int(state["completed"]),
            refused=int(state["refused"]),
            timed_out=int(state["timed_out"]),
            lost=int(state["lost"]),
            good=int(state["good"]),
            input_tokens=int(state["input_tokens"]),
            output_tokens=int(state["output_tokens"]),
            wasted_output_tokens=int(state["wasted"]),
            evictions=int(state["evictions"]),
        ),
        timeline=_timeline(world),
        time_to_first_token=_latencies(world, layout.FIRST_TOKEN, "first_token_total"),
        inter_token=_latencies(world, layout.GAP, "gap_total"),
        request_inter_token=_latencies(world, layout.MEAN_GAP, "mean_gap_total"),
        end_to_end=_latencies(world, layout.END_TO_END, "end_to_end_total"),
        end_seconds=float(state["now"]),
        interruptions=int(state["interruptions"]),
        launches=int(state["launches"]),
        on_demand_launches=int(state["on_demand_launches"]),
        utilization=_share(areas[layout.BUSY_REPLICAS], areas[layout.READY_REPLICAS]),
        peak_replicas=int(state["peak_replicas"]),
        peak_nodes=int(state["peak_nodes"]),
        at_limit_seconds=float(areas[layout.AT_LIMIT]),
        saturated_share=_share(areas[layout.SATURATED], areas[layout.ANY_READY]),
    )


def _latencies(world: World, kind: int, total: str) -> Latencies:
    return Latencies(world.counts[kind].copy(), float(world.state[0][total]))


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _timeline(world: World) -> Timeline:
    """Without the bucket that a run ends at the very start of."""
    state = world.state[0]
    end, bucket_seconds = float(state["now"]), float(state["bucket_seconds"])
    starts = np.arange(int(state["bucket"]) + 1, dtype=np.float64) * bucket_seconds
    lengths = np.minimum(starts + bucket_seconds, end) - starts
    rows = len(starts)
    counts = world.bucket_counts[:rows]
    areas = world.areas[:rows]
    node_seconds = areas[:, USES:] / float(state["slots"])

    def mean(level: int) -> NDArray[np.float64]:
        found = np.zeros(rows)
        np.divide(areas[:, level], lengths, out=found, where=lengths > 0)
        return found

    return Timeline(
        start_seconds=starts,
        length_seconds=lengths,
        arrived=counts[:, layout.ARRIVED].copy(),
        completed=counts[:, layout.SERVED].copy(),
        good=counts[:, layout.GOOD].copy(),
        input_tokens=counts[:, layout.INPUT_TOKENS].copy(),
        output_tokens=counts[:, layout.OUTPUT_TOKENS].copy(),
        waiting_mean=mean(layout.WAITING),
        waiting_max=counts[:, layout.MOST_WAITING].copy(),
        running_mean=mean(layout.RUNNING),
        ready_mean=mean(layout.READY_REPLICAS),
        starting_mean=mean(layout.STARTING_REPLICAS),
        asleep_share=mean(layout.ASLEEP),
        spot_nodes_mean=mean(layout.NODES + layout.SPOT),
        on_demand_nodes_mean=mean(layout.NODES + layout.ON_DEMAND),
        spot_node_seconds=node_seconds[:, :USE_KINDS].copy(),
        on_demand_node_seconds=node_seconds[:, USE_KINDS:].copy(),
        interruptions=counts[:, layout.INTERRUPTIONS].copy(),
        time_to_first_token_p50_seconds=world.bucket_quantiles[:rows, 0].copy(),
        time_to_first_token_p95_seconds=world.bucket_quantiles[:rows, 1].copy(),
        inter_token_p95_seconds=world.bucket_quantiles[:rows, 2].copy(),
    )
