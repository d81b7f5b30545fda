"""Run a scenario: arrays in, compiled loop, result out."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from genai_finops.planner.simulation import layout
from genai_finops.planner.simulation.addresses import at_hand
from genai_finops.planner.simulation.check import SimulationError, check_balance, check_chunk, check_scenario
from genai_finops.planner.simulation.kernel import EMPTY_TIMES, EMPTY_TOKENS, advance
from genai_finops.planner.simulation.layout import Array, World
from genai_finops.planner.simulation.outcome import Outcome
from genai_finops.planner.simulation.result import outcome_of
from genai_finops.planner.simulation.scenario import Automation, Scenario, Sign
from genai_finops.planner.simulation.start import new_world, with_longer_journals, with_more_requests, with_more_room
from genai_finops.planner.traffic.requests import Traffic

__all__ = ["Run", "SimulationError", "run_world", "simulate", "simulate_many"]


@dataclass(frozen=True, slots=True)
class Run:
    """One candidate."""

    scenario: Scenario
    traffic: Traffic
    seed: int = 0


def simulate(scenario: Scenario, traffic: Traffic, *, seed: int = 0) -> Outcome:
    """What happens, until the traffic's time is over and every request has ended.

    The same scenario, traffic and seed give the same outcome to the bit.

    Raises:
        SimulationError: a scenario or traffic that makes no sense, or a result that does not add up.
    """
    check_scenario(scenario)
    world = run_world(new_world(scenario, traffic.duration_seconds, seed=seed), scenario, traffic)
    check_balance(world)
    return outcome_of(world)


def simulate_many(runs: Sequence[Run], *, threads: int | None = None) -> list[Outcome]:
    """The outcomes in order; runs go side by side, since the compiled loop holds no lock.

    Args:
        threads: None is one for each processor.
    """
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        return list(pool.map(lambda run: simulate(run.scenario, run.traffic, seed=run.seed), runs))


def run_world(world: World, scenario: Scenario, traffic: Traffic) -> World:
    """The same world at its end, in larger arrays where it needed them."""
    world = at_hand(world)
    state = world.state[0]
    automation = None if scenario.automation is None else scenario.automation()
    chunks = _columns(traffic)
    chunk: tuple[Array, Array, Array] = (EMPTY_TIMES, EMPTY_TOKENS, EMPTY_TOKENS)
    while True:
        reason = advance(world.state, *chunk)
        if reason == layout.DONE:
            return world
        if reason == layout.NEEDS_ARRIVALS:
            following = next(chunks, None)
            state["over"] = following is None
            if following is not None:
                chunk = following
                state["cursor"] = 0
        elif reason == layout.SIGN and automation is not None:
            _ask(automation, world)
        elif reason == layout.NEEDS_REQUESTS:
            world = at_hand(with_more_requests(world))
        elif reason == layout.NEEDS_JOURNAL:
            world = at_hand(with_longer_journals(world))
        else:
            world = at_hand(with_more_room(world))


def _columns(traffic: Traffic) -> Iterator[tuple[Array, Array, Array]]:
    """Chunks in the one form that the kernel is compiled for."""
    before = 0.0
    number = 0
    for chunk in traffic.chunks():
        check_chunk(chunk, number, before, traffic.duration_seconds)
        number += len(chunk)
        before = float(chunk.arrival_seconds[-1])
        yield (
            np.require(chunk.arrival_seconds, np.float64, ["C", "W"]),
            np.require(chunk.input_tokens, np.int32, ["C", "W"]),
            np.require(chunk.output_tokens, np.int32, ["C", "W"]),
        )


def _ask(automation: Automation, world: World) -> None:
    """Tell automation what EC2 has said, and do as it asks."""
    state = world.state[0]
    now = float(state["now"])
    sign = Sign(
        at_seconds=now,
        node=int(state["sign_node"]),
        kind="warning" if state["sign_is_warning"] else "rebalance",
        replicas=int(state["sign_replicas"]),
        serving=int(state["target"]),
    )
    steering = automation((sign,), now)
    state["raised_minimum"] = steering.min_replicas
    state["raised_until"] = steering.raised_until_seconds
    state["spot_shut_until"] = steering.spot_shut_until_seconds
