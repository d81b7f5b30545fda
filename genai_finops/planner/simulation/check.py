"""What must hold before a run and after it."""

import math

import numpy as np

from genai_finops.planner.simulation.layout import World
from genai_finops.planner.simulation.scenario import Scenario
from genai_finops.planner.traffic.requests import Requests


class SimulationError(ValueError):
    """A scenario or traffic that makes no sense, or a result that does not add up."""


def check_scenario(scenario: Scenario) -> None:
    """Raises SimulationError on the first value that no run could make sense of."""
    performance, scaling, nodes, spot = scenario.performance, scenario.scaling, scenario.nodes, scenario.spot
    positive = {
        "the time of a decode step": performance.step_seconds + performance.step_seconds_per_sequence,
        "performance.block_tokens": performance.block_tokens,
        "performance.max_tokens": performance.max_tokens,
        "performance.max_sequences": performance.max_sequences,
        "scaling.queue_per_replica": scaling.queue_per_replica,
        "scaling.running_per_replica": scaling.running_per_replica,
        "scaling.scrape_seconds": scaling.scrape_seconds,
        "scaling.polling_seconds": scaling.polling_seconds,
        "scaling.sync_seconds": scaling.sync_seconds,
        "scaling.max_replicas": scaling.max_replicas,
        "nodes.replicas_per_node": nodes.replicas_per_node,
        "objective.timeout_seconds": scenario.objective.timeout_seconds,
        "bucket_seconds": scenario.bucket_seconds,
    }
    if performance.prefill == "chunked":
        positive["performance.chunk_tokens"] = performance.chunk_tokens
    if scaling.kv_cache_target is not None:
        positive["scaling.kv_cache_target"] = scaling.kv_cache_target
    not_negative = {
        "performance.step_seconds": performance.step_seconds,
        "performance.step_seconds_per_sequence": performance.step_seconds_per_sequence,
        "performance.step_seconds_per_token": performance.step_seconds_per_token,
        "performance.prefill_seconds": performance.prefill_seconds,
        "performance.prefill_seconds_per_token": performance.prefill_seconds_per_token,
        "performance.cache_tokens": performance.cache_tokens,
        "nodes.launch_seconds": nodes.launch_seconds,
        "nodes.start_seconds_fresh": nodes.start_seconds_fresh,
        "nodes.start_seconds_warm": nodes.start_seconds_warm,
        "nodes.consolidate_after_seconds": nodes.consolidate_after_seconds,
        "nodes.drain_seconds": nodes.drain_seconds,
        "nodes.placeholders": nodes.placeholders,
        "spot.interruptions_per_hour": spot.interruptions_per_hour,
        "spot.notice_seconds": spot.notice_seconds,
        "spot.rebalance_lead_seconds": spot.rebalance_lead_seconds,
        "initial_replicas": scenario.initial_replicas,
    }
    for name, value in positive.items():
        if not 0 < value < math.inf:
            raise SimulationError(f"{name} is {value}: a finite number above 0 is needed")
    for name, value in not_negative.items():
        if not 0 <= value < math.inf:
            raise SimulationError(f"{name} is {value}: a finite number, 0 or more, is needed")
    for name, share in (
        ("spot.rebalance_share", spot.rebalance_share),
        ("spot.unavailable_share", spot.unavailable_share),
    ):
        if not 0 <= share <= 1:
            raise SimulationError(f"{name} is {share}: a share is from 0 to 1")
    if not 1 <= scaling.min_replicas <= scaling.max_replicas:
        raise SimulationError(
            f"scaling.min_replicas is {scaling.min_replicas}: from 1 to scaling.max_replicas ({scaling.max_replicas})"
        )
    if not 1 <= len(nodes.purchases) <= 2 or len(set(nodes.purchases)) != len(nodes.purchases):
        raise SimulationError(f"nodes.purchases is {nodes.purchases}: one or both of spot and on-demand")
    for start, end in scenario.awake or ():
        if not start < end:
            raise SimulationError(f"awake has an interval from {start} to {end}: it must end after it starts")


def check_chunk(chunk: Requests, number: int, before: float, duration_seconds: float) -> None:
    """Raises SimulationError for requests that are out of order, outside the traffic's time or without tokens.

    Args:
        number: of the chunk's first request.
        before: arrival of the request before it.
    """
    arrivals = chunk.arrival_seconds
    if not len(arrivals):
        raise SimulationError(f"a chunk of the traffic is empty, after request {number}")
    late = np.flatnonzero(~(np.diff(arrivals, prepend=before) >= 0))
    if len(late):
        raise SimulationError(
            f"request {number + late[0]} arrives at {arrivals[late[0]]} s, before the one before it: "
            "arrivals must be in order, from 0 on"
        )
    if not arrivals[-1] <= duration_seconds:
        raise SimulationError(f"a request arrives at {arrivals[-1]} s, after the traffic's end at {duration_seconds} s")
    for name, tokens in (("input", chunk.input_tokens), ("output", chunk.output_tokens)):
        if tokens.min() < 1:
            row = int(tokens.argmin())
            raise SimulationError(f"request {number + row} has {tokens[row]} {name} tokens: at least 1 is needed")


def check_balance(world: World) -> None:
    """Raises SimulationError unless every request that arrived has ended in exactly one way."""
    state = world.state[0]
    ended = state["completed"] + state["refused"] + state["timed_out"] + state["lost"]
    if state["arrived"] != ended or state["alive"] or state["waiting"]:
        raise SimulationError(
            f"{state['arrived']} requests arrived, and {ended} ended: {state['completed']} completed, "
            f"{state['refused']} refused, {state['timed_out']} timed out, {state['lost']} lost"
        )
