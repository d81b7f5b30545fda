"""A scenario as the kernel's arrays, before anything has happened."""

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from genai_finops.planner.simulation import hpa, layout
from genai_finops.planner.simulation.histogram import edges
from genai_finops.planner.simulation.layout import CLASSES, NONE, World, larger, zeros
from genai_finops.planner.simulation.scenario import Scenario

REQUESTS: Final = 256
PURCHASES: Final = {"spot": layout.SPOT, "on-demand": layout.ON_DEMAND}


def new_world(
    scenario: Scenario, duration_seconds: float, *, seed: int = 0, requests: int = 0, nodes: int = 0
) -> World:
    """Room for a small run; the kernel asks for more.

    Args:
        requests, nodes: how many of them to keep a log of.
    """
    state = zeros(1, layout.STATE)
    for name, value in _parameters(scenario, duration_seconds, seed):
        state[0][name] = value
    performance, scaling = scenario.performance, scenario.scaling
    sequences = int(state[0]["max_sequences"])
    serial = int(state[0]["serial"])
    block_tokens = 1 if serial else performance.block_tokens
    replicas = 2 * max(scaling.max_replicas, scenario.initial_replicas) + 4
    all_nodes = 2 * (max(scaling.max_replicas, scenario.initial_replicas) + scenario.nodes.placeholders) + 4
    buckets = int(duration_seconds / scenario.bucket_seconds) + 4
    open_buckets, rolling = _open_buckets(scenario, duration_seconds)
    state[0]["rolling"] = rolling
    memory = hpa.memory(scaling)
    return World(
        state=state,
        prompts=np.array(performance.buckets if serial else (), dtype=np.int64),
        requests=_linked(zeros(REQUESTS, layout.REQUEST), 0),
        replicas=_scheduled(zeros(replicas, layout.REPLICA), 0),
        completions=zeros(replicas * max(1, sequences), layout.COMPLETION),
        residues=zeros(replicas * block_tokens, "i8"),
        journal=np.zeros((replicas, 2 * int(state[0]["journal_room"]) + 64), dtype=layout.JOURNAL),
        order=np.arange(replicas, dtype=np.int64),
        ready_list=zeros(replicas, "i8"),
        edges=edges(),
        counts=np.zeros((4, CLASSES), dtype=np.int64),
        first_token_ring=np.zeros((open_buckets, CLASSES), dtype=np.int64),
        gap_ring=np.zeros((open_buckets, CLASSES), dtype=np.int64),
        nodes=zeros(all_nodes, layout.NODE),
        events=zeros(16 * all_nodes + 64, layout.EVENT),
        levels=zeros(layout.LEVELS, layout.LEVEL),
        areas=np.zeros((buckets, layout.LEVELS)),
        bucket_counts=np.zeros((buckets, layout.COUNTS), dtype=np.int64),
        bucket_quantiles=np.full((buckets, 3), np.nan),
        awake_edges=np.array(_edges(scenario), dtype=np.float64),
        recommendations=memory.recommendations,
        changes=memory.changes,
        request_log=zeros(requests, layout.REQUEST_LOG),
        node_log=zeros(nodes, layout.NODE_LOG),
    )


def _parameters(scenario: Scenario, duration_seconds: float, seed: int) -> Iterator[tuple[str, Any]]:
    performance, scaling, nodes = scenario.performance, scenario.scaling, scenario.nodes
    spot, objective = scenario.spot, scenario.objective
    """By field of the state. An event may write a step into a journal, and a line for all it evicts and resumes."""
    serial = performance.prefill == "serial"
    sequences = performance.max_sequences
    if serial:
        sequences = min(sequences, performance.cache_tokens // performance.max_tokens)
    yield from {
        "duration": duration_seconds,
        "step_seconds": performance.step_seconds,
        "step_seconds_per_sequence": performance.step_seconds_per_sequence,
        "step_seconds_per_token": performance.step_seconds_per_token,
        "prefill_seconds": performance.prefill_seconds,
        "prefill_seconds_per_token": performance.prefill_seconds_per_token,
        "serial": serial,
        "chunk_tokens": performance.chunk_tokens,
        "max_sequences": sequences,
        "max_tokens": performance.max_tokens,
        "blocks": performance.cache_tokens // performance.block_tokens,
        "block_tokens": performance.block_tokens,
        "journal_room": 4 if serial else 2 * sequences + 4,
        "first_token_goal": objective.time_to_first_token_seconds,
        "gap_goal": math.inf if objective.inter_token_seconds is None else objective.inter_token_seconds,
        "timeout": objective.timeout_seconds,
        **hpa.rules(scaling)._asdict(),
        "min_replicas": scaling.min_replicas,
        "max_replicas": scaling.max_replicas,
        "queue_target": scaling.queue_per_replica,
        "running_target": scaling.running_per_replica,
        "cache_target": scaling.kv_cache_target or 0,
        "scrape_seconds": scaling.scrape_seconds,
        "polling_seconds": scaling.polling_seconds,
        "sync_seconds": scaling.sync_seconds,
        "initial_replicas": scenario.initial_replicas,
        "awake": _is_awake_at_first(scenario),
        "slots": nodes.replicas_per_node,
        "first_purchase": PURCHASES[nodes.purchases[0]],
        "second_purchase": PURCHASES[nodes.purchases[1]] if len(nodes.purchases) > 1 else NONE,
        "max_nodes": NONE if nodes.max_nodes is None else nodes.max_nodes,
        "launch_seconds": nodes.launch_seconds,
        "fetch_seconds": max(0, nodes.start_seconds_fresh - nodes.start_seconds_warm),
        "load_seconds": nodes.start_seconds_warm,
        "consolidate_seconds": nodes.consolidate_after_seconds,
        "drain_seconds": nodes.drain_seconds,
        "placeholders": nodes.placeholders,
        "hazard": spot.interruptions_per_hour / 3600,
        "notice_seconds": spot.notice_seconds,
        "rebalance_share": spot.rebalance_share,
        "rebalance_lead": spot.rebalance_lead_seconds,
        "unavailable_share": spot.unavailable_share,
        "seed": seed & (2**64 - 1),
        "automated": scenario.automation is not None,
        "oldest": NONE,
        "newest": NONE,
        "astray_first": NONE,
        "astray_last": NONE,
        "bucket_seconds": scenario.bucket_seconds,
    }.items()


def _open_buckets(scenario: Scenario, duration_seconds: float) -> tuple[int, bool]:
    """Buckets whose requests may still be alive at one time, and whether their histograms have to be reused."""
    with_arrivals = int(duration_seconds / scenario.bucket_seconds) + 1
    alive = math.ceil(scenario.objective.timeout_seconds / scenario.bucket_seconds) + 2
    return min(with_arrivals, alive), alive < with_arrivals


def _is_awake_at_first(scenario: Scenario) -> bool:
    return scenario.awake is None or any(start <= 0 < end for start, end in scenario.awake)


def _edges(scenario: Scenario) -> list[float]:
    """When the model falls asleep or wakes after second 0; intervals that touch are one."""
    found: list[float] = []
    for start, end in sorted(scenario.awake or ()):
        if found and start <= found[-1]:
            found[-1] = max(found[-1], end)
        else:
            found += [start, end]
    return [edge for edge in found if edge > 0]


def _linked(requests: layout.Array, first: int) -> layout.Array:
    """The places from `first` on as a list of free ones."""
    requests["next"][first:] = np.arange(first + 1, len(requests) + 1)
    requests["next"][-1] = NONE
    return requests


def _scheduled(replicas: layout.Array, first: int) -> layout.Array:
    replicas["event"][first:] = math.inf
    replicas["order"][first:] = np.arange(first, len(replicas))
    return replicas


def with_more_requests(world: World) -> World:
    """All places are taken: twice as many."""
    before = len(world.requests)
    world.state[0]["free_request"] = before
    return world._replace(requests=_linked(larger(world.requests, 2 * before), before))


def with_longer_journals(world: World) -> World:
    """Entries keep their number, so each goes to where that number falls in a ring twice as long."""
    replicas, length = world.journal.shape
    journal = np.zeros((replicas, 2 * length), dtype=layout.JOURNAL)
    for number in range(replicas):
        rows = np.arange(world.replicas[number]["journal_first"], world.replicas[number]["journal_end"])
        journal[number, rows % (2 * length)] = world.journal[number, rows % length]
    return world._replace(journal=journal)


def with_more_room(world: World) -> World:
    """Twice the replicas, nodes, events and buckets."""
    replicas = len(world.replicas)
    buckets = 2 * len(world.areas)
    quantiles = np.full((buckets, 3), np.nan)
    quantiles[: len(world.bucket_quantiles)] = world.bucket_quantiles
    return world._replace(
        replicas=_scheduled(larger(world.replicas, 2 * replicas), replicas),
        completions=larger(world.completions, 2 * len(world.completions)),
        residues=larger(world.residues, 2 * len(world.residues)),
        journal=larger(world.journal, 2 * replicas),
        order=np.concatenate([world.order, np.arange(replicas, 2 * replicas)]),
        ready_list=larger(world.ready_list, 2 * replicas),
        nodes=larger(world.nodes, 2 * len(world.nodes)),
        events=larger(world.events, 2 * len(world.events)),
        areas=larger(world.areas, buckets),
        bucket_counts=larger(world.bucket_counts, buckets),
        bucket_quantiles=quantiles,
    )
