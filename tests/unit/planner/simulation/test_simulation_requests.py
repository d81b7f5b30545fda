"""What becomes of requests: all of them end once, and no number flatters."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genai_finops.planner.simulation import layout
from genai_finops.planner.simulation.outcome import Latencies, Timeline
from genai_finops.planner.simulation.run import Run, SimulationError, simulate, simulate_many
from genai_finops.planner.simulation.scenario import Objective, SpotRisk
from genai_finops.planner.traffic.requests import Requests
from tests.unit.planner.simulation.worlds import (
    CHUNKED,
    ELASTIC,
    FIXED,
    NODES,
    SCENARIO,
    SERIAL,
    List,
    looked_into,
    poisson,
    traffic,
)

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIELDS_THAT_MAY_BE_NAN = {
    "time_to_first_token_p50_seconds",
    "time_to_first_token_p95_seconds",
    "inter_token_p95_seconds",
}


def same(one, other):
    """Equal to the bit, arrays and all."""
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    if isinstance(one, np.ndarray):
        return one.tobytes() == other.tobytes()
    return one == other


def replicas(count, **changes):
    """So many, never more and never fewer."""
    return replace(
        SCENARIO, scaling=replace(FIXED, min_replicas=count, max_replicas=count), initial_replicas=count, **changes
    )


@FEW
@given(
    rate=st.sampled_from([0.05, 1, 8]),
    performance=st.sampled_from([CHUNKED, replace(CHUNKED, cache_tokens=2000, max_sequences=8), SERIAL]),
    timeout=st.sampled_from([3, 30, 600]),
    hazard=st.sampled_from([0, 6]),
    per_node=st.sampled_from([1, 3]),
    placeholders=st.sampled_from([0, 1]),
    awake=st.sampled_from([None, ((0, 200), (420, 1000))]),
    seed=st.integers(0, 1000),
)
def test_whatever_happens_each_request_ends_once_and_all_sums_agree(
    rate, performance, timeout, hazard, per_node, placeholders, awake, seed
):
    scenario = replace(
        SCENARIO,
        performance=performance,
        scaling=ELASTIC,
        nodes=replace(NODES, purchases=("spot", "on-demand"), replicas_per_node=per_node, placeholders=placeholders),
        spot=SpotRisk(hazard, notice_seconds=20, unavailable_share=0.3),
        objective=Objective(1, 0.05, timeout),
        awake=awake,
        bucket_seconds=100,
    )
    requests = poisson(rate, 600, seed=seed)
    if not len(requests.requests):
        return
    outcome = simulate(scenario, requests, seed=seed)
    counts, timeline = outcome.counts, outcome.timeline
    assert counts.arrived == len(requests.requests)
    assert counts.arrived == counts.completed + counts.refused + counts.timed_out + counts.lost
    assert counts.good <= counts.completed
    for name in ("arrived", "completed", "good", "input_tokens", "output_tokens"):
        assert getattr(timeline, name).sum() == getattr(counts, name)
    assert timeline.interruptions.sum() == outcome.interruptions
    for latencies in (outcome.time_to_first_token, outcome.end_to_end):
        assert latencies.count == counts.completed
    assert outcome.inter_token.count == counts.output_tokens - counts.completed
    assert outcome.inter_token.counts.min() >= 0
    assert outcome.end_seconds >= 600
    assert timeline.length_seconds.sum() == pytest.approx(outcome.end_seconds)
    for name in (each.name for each in fields(Timeline)):
        column = getattr(timeline, name)
        assert name in FIELDS_THAT_MAY_BE_NAN or (np.isfinite(column).all() and (column >= 0).all()), name


@FEW
@given(seed=st.integers(0, 2**64 - 1), chunk=st.integers(1, 400))
def test_the_same_seed_gives_the_same_outcome_to_the_bit_however_the_traffic_is_cut(seed, chunk):
    scenario = replace(
        SCENARIO, scaling=ELASTIC, nodes=replace(NODES, purchases=("spot",)), spot=SpotRisk(20, 10, 0.5, 30, 0.5)
    )
    requests = poisson(3, 200)
    again = replace(requests, chunk=chunk)
    assert same(simulate(scenario, requests, seed=seed), simulate(scenario, again, seed=seed))


def test_runs_side_by_side_give_what_they_give_alone():
    runs = [Run(replicas(count), poisson(5, 100), seed) for count in (1, 2) for seed in range(3)]
    together = simulate_many(runs, threads=2)
    assert all(
        same(outcome, simulate(run.scenario, run.traffic, seed=run.seed))
        for outcome, run in zip(together, runs, strict=True)
    )


def test_another_seed_is_another_history_of_interruptions():
    scenario = replace(SCENARIO, nodes=replace(NODES, purchases=("spot",)), spot=SpotRisk(20))
    requests = poisson(1, 2000)
    assert len({simulate(scenario, requests, seed=seed).counts.completed for seed in range(5)}) > 1


@pytest.mark.parametrize("performance", [CHUNKED, SERIAL])
def test_traffic_without_requests_has_the_same_result_with_zeros(performance):
    outcome = simulate(replace(SCENARIO, performance=performance), traffic([], duration=7200))
    assert outcome.counts.arrived == 0
    assert outcome.end_seconds == 7200
    assert outcome.time_to_first_token.mean_seconds is None
    assert outcome.time_to_first_token.quantile_seconds(0.99) is None
    assert outcome.utilization == 0
    assert outcome.saturated_share == 0
    assert outcome.timeline.start_seconds.tolist() == [0, 3600]
    assert outcome.timeline.on_demand_node_seconds.sum() == pytest.approx(7200)
    assert np.isnan(outcome.timeline.time_to_first_token_p50_seconds).all()


def test_traffic_of_no_time_at_all_is_a_run_too():
    outcome = simulate(SCENARIO, traffic([], duration=0))
    assert outcome.end_seconds == 0
    assert outcome.counts.arrived == 0


def test_one_request_takes_its_prefill_and_its_steps():
    world = looked_into(SCENARIO, traffic([0.0], 1000, 11))
    first, end = world.request_log[0]["first"], world.request_log[0]["end"]
    assert first == pytest.approx(0.002 + 1000 * 5e-5)
    steps = sum(0.01 + 0.0002 + 1e-7 * (1000 + made) for made in range(1, 11))
    assert end - first == pytest.approx(steps)


def test_a_prompt_longer_than_a_chunk_pays_for_its_start_once():
    world = looked_into(SCENARIO, traffic([0.0], 3000, 1))
    assert world.request_log[0]["first"] == pytest.approx(0.002 + 3000 * 5e-5)


def test_a_serial_prompt_is_padded_to_its_bucket():
    world = looked_into(replace(SCENARIO, performance=SERIAL), traffic([0.0], 513, 1))
    assert world.request_log[0]["end"] == pytest.approx(0.1 + 1024 * 5e-5)


def test_an_answer_of_one_token_has_no_gap():
    outcome = simulate(SCENARIO, traffic([0.0, 1.0], 10, [1, 2]))
    assert outcome.request_inter_token.count == outcome.inter_token.count == 1
    assert outcome.counts.completed == 2


@pytest.mark.parametrize(
    ("performance", "tokens"),
    [
        (CHUNKED, (8000, 193)),  # one more than the model takes
        (replace(CHUNKED, cache_tokens=160), (100, 62)),  # one more than the cache holds
        (SERIAL, (4096, 1)),
        (replace(SERIAL, buckets=(512,)), (513, 10)),
        (replace(SERIAL, cache_tokens=4000), (10, 10)),  # not one sequence
    ],
)
def test_what_can_never_be_served_is_refused_and_the_rest_is_not_held_up(performance, tokens):
    outcome = simulate(replace(SCENARIO, performance=performance), traffic([0.0], *tokens))
    assert outcome.counts.refused == 1
    assert outcome.end_to_end.count == 0


def test_what_just_fits_is_served():
    just = replace(CHUNKED, cache_tokens=160)
    assert simulate(replace(SCENARIO, performance=just), traffic([0.0], 100, 61)).counts.completed == 1
    assert simulate(SCENARIO, traffic([0.0], 8000, 192)).counts.completed == 1


def test_nothing_finishes_and_the_result_says_so():
    slow = replace(CHUNKED, step_seconds=1.0)
    outcome = simulate(
        replace(SCENARIO, performance=slow, objective=Objective(1, None, 5)), traffic([0, 1, 2], 10, 100)
    )
    assert outcome.counts.timed_out == 3
    assert outcome.counts.completed == outcome.counts.good == outcome.inter_token.count == 0
    assert outcome.inter_token.total_seconds == 0
    assert 0 < outcome.counts.wasted_output_tokens <= 3 * 6
    assert outcome.end_to_end.mean_seconds is None


@pytest.mark.parametrize("timeout", [2, 5, 20, 600])
@pytest.mark.parametrize("cache", [1500, 6000, 200_000])
def test_under_pressure_no_more_tokens_come_out_than_the_steps_can_make(timeout, cache):
    performance = replace(CHUNKED, cache_tokens=cache, max_sequences=32)
    outcome = simulate(
        replace(SCENARIO, performance=performance, objective=Objective(1, None, timeout)), poisson(40, 120)
    )
    ceiling = performance.max_sequences / (
        performance.step_seconds + performance.step_seconds_per_sequence * performance.max_sequences
    )
    assert outcome.counts.timed_out > 0 or timeout == 600
    assert outcome.counts.output_tokens / outcome.end_seconds < ceiling
    assert outcome.saturated_share > 0.5


def test_an_evicted_request_keeps_its_first_token_and_counts_each_token_once():
    performance = replace(CHUNKED, cache_tokens=512)
    world = looked_into(replace(SCENARIO, performance=performance), traffic([0.0] * 4, 100, 300))
    assert world.state[0]["evictions"] > 0
    assert world.state[0]["output_tokens"] == 1200
    assert world.request_log["first"][:4].max() < 1
    assert world.state[0]["wasted"] > 0


def test_all_wait_for_the_one_who_came_first_and_he_is_never_evicted():
    performance = replace(CHUNKED, cache_tokens=512)
    crowded = looked_into(replace(SCENARIO, performance=performance), traffic([0.0] * 4, 100, 300))
    ends = crowded.request_log["end"][:4]
    assert ends[0] == ends.min()


def test_mean_median_and_tail_of_one_latency_are_in_one_unit():
    outcome = simulate(SCENARIO, poisson(2, 300))
    for latencies in (outcome.time_to_first_token, outcome.inter_token, outcome.end_to_end):
        low, high = latencies.quantile_seconds(0), latencies.quantile_seconds(1)
        assert low <= latencies.quantile_seconds(0.5) <= latencies.quantile_seconds(0.99) <= high
        assert low * 0.99 <= latencies.mean_seconds <= high * 1.01


def test_the_histograms_tell_what_the_log_of_all_requests_tells():
    requests = poisson(6, 600)
    world = looked_into(SCENARIO, requests)
    log = world.request_log[: len(requests.requests)]
    first = log["first"] - requests.requests.arrival_seconds
    found = Latencies(world.counts[layout.FIRST_TOKEN], float(world.state[0]["first_token_total"]))
    assert found.mean_seconds == pytest.approx(first.mean(), rel=1e-9)
    for share in (0.5, 0.9, 0.99):
        assert found.quantile_seconds(share) == pytest.approx(np.quantile(first, share, method="higher"), rel=0.02)


def test_first_tokens_come_before_ends_on_average_since_both_are_of_the_same_requests():
    outcome = simulate(replace(SCENARIO, objective=Objective(1, None, 4)), poisson(30, 100))
    assert outcome.counts.timed_out > 0
    assert outcome.time_to_first_token.mean_seconds < outcome.end_to_end.mean_seconds


@pytest.mark.parametrize("performance", [CHUNKED, SERIAL])
def test_more_replicas_never_wait_longer(performance):
    requests = poisson(12, 400)
    waiting = [
        simulate(replicas(count, performance=performance), requests).timeline.waiting_mean.mean()
        for count in (1, 2, 3, 5, 8)
    ]
    assert waiting == sorted(waiting, reverse=True)


def test_littles_law_holds_between_the_integral_and_the_log():
    requests = poisson(6, 600)
    world = looked_into(SCENARIO, requests)
    log = world.request_log[: len(requests.requests)]
    time_inside = (log["end"] - requests.requests.arrival_seconds).sum()
    areas = world.areas.sum(axis=0)
    assert areas[layout.WAITING] + areas[layout.RUNNING] == pytest.approx(time_inside, rel=1e-9)


def test_a_buckets_numbers_are_of_the_requests_that_arrived_in_it():
    requests = traffic([0.0, 50.0, 99.9, 100.0], 500, [5, 5, 400, 1], duration=300)
    timeline = simulate(replace(SCENARIO, bucket_seconds=100), requests).timeline
    assert timeline.arrived.tolist() == [3, 1, 0]
    assert timeline.completed.tolist() == [3, 1, 0]
    assert timeline.output_tokens.tolist() == [410, 1, 0]
    assert np.isfinite(timeline.time_to_first_token_p50_seconds).tolist() == [True, True, False]
    assert np.isfinite(timeline.inter_token_p95_seconds).tolist() == [True, False, False]


def test_a_bucket_is_closed_only_when_its_last_request_has_ended():
    requests = poisson(30, 300)
    whole, rows = (
        simulate(replace(SCENARIO, bucket_seconds=bucket, objective=Objective(1, None, 100)), requests).timeline
        for bucket in (1000, 10)
    )
    assert whole.completed.sum() == rows.completed.sum()
    served = rows.completed > 0
    assert np.isfinite(rows.time_to_first_token_p95_seconds[served]).all()
    assert rows.time_to_first_token_p95_seconds[served].max() >= whole.time_to_first_token_p95_seconds[0]


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (traffic([0, 2, 1], duration=9), "request 2 arrives at 1.0 s, before"),
        (traffic([0, math.nan], duration=9), "request 1 arrives at nan"),
        (traffic([-1, 0], duration=9), "request 0 arrives at -1.0"),
        (traffic([0, 10], duration=9), "at 10.0 s, after the traffic's end at 9"),
        (traffic([0, 1], [5, 0]), "request 1 has 0 input tokens"),
        (traffic([0, 1], 5, [-3, 5]), "request 0 has -3 output tokens"),
        (traffic([0, 1, 2, 1], chunk=3, duration=9), "request 3 arrives at 1.0 s"),
    ],
)
def test_traffic_that_makes_no_sense_is_named(requests, message):
    with pytest.raises(SimulationError, match=message):
        simulate(SCENARIO, requests)


def test_an_empty_chunk_is_named():
    class Hollow(List):
        def chunks(self):
            yield Requests(np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))

    with pytest.raises(SimulationError, match="empty"):
        simulate(SCENARIO, Hollow(traffic([0.0]).requests, 1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scaling": replace(FIXED, min_replicas=3)}, "min_replicas is 3"),
        ({"scaling": replace(FIXED, min_replicas=0)}, "min_replicas is 0"),
        ({"scaling": replace(FIXED, sync_seconds=0)}, "sync_seconds is 0"),
        ({"objective": Objective(1, None, math.inf)}, "timeout_seconds is inf"),
        ({"nodes": replace(NODES, purchases=())}, "purchases"),
        ({"nodes": replace(NODES, launch_seconds=-1)}, "launch_seconds is -1"),
        ({"spot": SpotRisk(1, unavailable_share=1.5)}, "unavailable_share is 1.5"),
        ({"awake": ((5, 5),)}, "awake"),
        ({"performance": replace(CHUNKED, step_seconds=0, step_seconds_per_sequence=0)}, "decode step is 0"),
        ({"performance": replace(CHUNKED, chunk_tokens=0)}, "chunk_tokens is 0"),
    ],
)
def test_a_scenario_that_makes_no_sense_is_named(change, message):
    with pytest.raises(SimulationError, match=message):
        simulate(replace(SCENARIO, **change), traffic([0.0]))


def test_tokens_of_requests_that_got_no_answer_are_not_what_the_money_bought():
    outcome = simulate(SCENARIO, traffic([0.0, 1.0], [100, 10**6], [10, 10]))
    assert (outcome.counts.completed, outcome.counts.refused) == (1, 1)
    assert (outcome.counts.input_tokens, outcome.counts.output_tokens) == (100, 10)
