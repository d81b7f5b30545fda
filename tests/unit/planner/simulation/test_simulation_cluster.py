"""Replicas, nodes, Spot, sleep and placeholders, and the node time that is paid for them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from genai_finops.planner.simulation import layout
from genai_finops.planner.simulation.outcome import NODE_USES
from genai_finops.planner.simulation.result import outcome_of
from genai_finops.planner.simulation.run import simulate
from genai_finops.planner.simulation.scenario import Objective, ScalePolicy, SpotRisk, Steering
from tests.unit.planner.simulation.worlds import CHUNKED, ELASTIC, FIXED, NODES, SCENARIO, looked_into, poisson, traffic

BOTH = ("spot", "on-demand")
SLOW = replace(CHUNKED, max_sequences=4, step_seconds=0.05)
"""Four at a time, some 80 tokens a second: a few requests a second are too many for one."""

GROWING = replace(
    SCENARIO,
    performance=SLOW,
    scaling=replace(ELASTIC, queue_per_replica=2, running_per_replica=4),
    objective=Objective(5, None, 600),
    bucket_seconds=60,
)
BURST = traffic(np.arange(0, 60, 0.25), 100, 100, duration=1800)
STREAM = traffic(np.arange(0, 900, 0.5), 100, 100, duration=1800)
"""Goes on long enough for new replicas to take part: a request stays at the replica that it was sent to."""

USE = {use: place for place, use in enumerate(NODE_USES)}


def paid(outcome):
    return outcome.timeline.spot_node_seconds.sum() + outcome.timeline.on_demand_node_seconds.sum()


def lifetimes(world):
    """Node-seconds again, from when each node came and went."""
    count = int(world.state[0]["node_serial"])
    log = world.node_log[:count]
    return (np.minimum(log["gone"], world.state[0]["now"]) - log["born"]).sum()


def use(outcome, name):
    timeline = outcome.timeline
    return (timeline.spot_node_seconds + timeline.on_demand_node_seconds)[:, USE[name]].sum()


# --- growing and shrinking ---


def test_replicas_come_after_launch_and_start_and_go_when_the_queue_is_gone():
    timeline = simulate(GROWING, BURST).timeline
    assert timeline.starting_mean[1] > 0
    before_any_can_be_ready = timeline.start_seconds + 60 <= 15 + 60 + 240
    assert (timeline.ready_mean[before_any_can_be_ready] == 1).all()
    assert timeline.ready_mean.max() > 2
    assert timeline.ready_mean[-1] == 1
    assert timeline.on_demand_nodes_mean[-1] == 1


def test_replicas_that_are_still_loading_are_not_ordered_again():
    quick = simulate(GROWING, BURST)
    slow = simulate(replace(GROWING, nodes=replace(NODES, start_seconds_fresh=400)), BURST)
    assert quick.peak_replicas == slow.peak_replicas <= 10
    assert slow.launches <= 9


def test_a_count_that_is_asked_for_once_is_launched_once():
    """Twelve wait for a replica that takes one: with two per replica six are wanted, whatever the loads take."""
    one = replace(SLOW, max_sequences=1)
    scaling = replace(ELASTIC, queue_per_replica=2, running_per_replica=1, scale_up=ScalePolicy(0, 10_000, 15))
    requests = traffic([0.0] * 13, 100, 4000, duration=600)
    outcome = simulate(replace(GROWING, performance=one, scaling=scaling), requests)
    assert outcome.launches == 5


def test_the_slower_nodes_come_the_longer_the_tail():
    tails = [
        simulate(replace(GROWING, nodes=replace(NODES, launch_seconds=seconds)), STREAM).end_to_end.quantile_seconds(
            0.95
        )
        for seconds in (1, 60, 300, 3000)
    ]
    assert tails == sorted(tails)
    assert len(set(tails)) == 4


def test_a_limit_on_nodes_binds_and_is_reported():
    free = simulate(GROWING, STREAM)
    bound = simulate(replace(GROWING, nodes=replace(NODES, max_nodes=2)), STREAM)
    assert free.at_limit_seconds == 0
    assert bound.at_limit_seconds > 0
    assert bound.peak_nodes == bound.peak_replicas == 2
    assert bound.timeline.ready_mean.max() <= 2
    assert bound.end_to_end.mean_seconds > free.end_to_end.mean_seconds


def test_a_limit_of_each_purchase_sends_the_rest_on_demand():
    outcome = simulate(replace(GROWING, nodes=replace(NODES, purchases=BOTH, max_nodes=2)), BURST)
    assert outcome.timeline.spot_nodes_mean.max() == 2
    assert outcome.timeline.on_demand_nodes_mean.max() == 2
    assert outcome.peak_nodes == 4


def test_replicas_share_a_node():
    outcome = simulate(replace(GROWING, nodes=replace(NODES, replicas_per_node=4)), BURST)
    assert outcome.peak_replicas > 4
    assert outcome.peak_nodes == -(-outcome.peak_replicas // 4)


def test_a_replica_on_a_node_that_has_the_model_starts_sooner():
    nodes = replace(NODES, replicas_per_node=10)
    timeline = simulate(replace(GROWING, nodes=nodes), BURST).timeline
    assert timeline.ready_mean[1] > 1 or timeline.ready_mean[2] > 1  # 90 s after the first sync, not 300


def test_an_empty_node_is_kept_for_a_while_and_then_ended():
    waits = [
        simulate(replace(GROWING, nodes=replace(NODES, consolidate_after_seconds=seconds)), BURST)
        for seconds in (0, 300)
    ]
    assert use(waits[0], "empty") == 0
    assert use(waits[1], "empty") > 300
    assert paid(waits[0]) < paid(waits[1])


def test_nodes_are_paid_from_launch_to_end_and_each_slot_is_used_for_one_thing():
    for per_node in (1, 3):
        scenario = replace(
            GROWING,
            nodes=replace(NODES, purchases=BOTH, replicas_per_node=per_node, placeholders=1),
            spot=SpotRisk(8, 30, 0.5, 60, 0.2),
        )
        world = looked_into(scenario, poisson(4, 1500), seed=3)
        outcome = outcome_of(world)
        assert outcome.interruptions > 0
        assert paid(outcome) == pytest.approx(lifetimes(world), rel=1e-9)
        timeline = outcome.timeline
        nodes = (timeline.spot_nodes_mean + timeline.on_demand_nodes_mean) * timeline.length_seconds
        assert nodes.sum() == pytest.approx(paid(outcome), rel=1e-9)


def test_boot_and_load_are_paid():
    outcome = simulate(GROWING, BURST)
    assert use(outcome, "starting") == pytest.approx(300 * outcome.launches, rel=0.2)


def test_busy_time_is_the_time_in_which_something_is_served():
    requests = traffic([0.0, 100.0], 100, 100, duration=1000)
    world = looked_into(SCENARIO, requests)
    log = world.request_log[:2]
    outcome = outcome_of(world)
    busy = (log["end"] - requests.requests.arrival_seconds).sum()
    assert use(outcome, "busy") == pytest.approx(busy)
    assert use(outcome, "idle") == pytest.approx(1000 - busy)
    assert outcome.utilization == pytest.approx(busy / 1000)


def test_a_run_ends_with_its_last_request_not_at_a_tick():
    world = looked_into(SCENARIO, traffic([0.0, 10.0], 100, 2000, duration=10))
    assert outcome_of(world).end_seconds == world.request_log["end"][:2].max()


def test_replicas_that_go_finish_what_they_serve():
    scaling = replace(ELASTIC, queue_per_replica=2, running_per_replica=4, scale_down=ScalePolicy(0, 100, 15))
    outcome = simulate(replace(GROWING, scaling=scaling), BURST)
    assert outcome.timeline.ready_mean[-1] == 1
    assert outcome.counts.lost == 0


def test_what_is_not_done_when_the_drain_is_over_is_lost():
    nodes = replace(NODES, drain_seconds=5)
    outcome = simulate(
        replace(SCENARIO, nodes=nodes, awake=((0, 50),), performance=SLOW), traffic([40.0], 100, 1000, duration=100)
    )
    assert outcome.counts.lost == 1
    assert outcome.counts.wasted_output_tokens == pytest.approx(15 / 0.0502, abs=2)
    assert outcome.inter_token.count == 0
    assert outcome.inter_token.counts.max() == 0


# --- sleep ---


def test_asleep_there_is_nothing_and_requests_wait_until_they_give_up():
    scenario = replace(SCENARIO, awake=((0, 100), (1000, 2000)), objective=Objective(1, None, 50), bucket_seconds=100)
    outcome = simulate(scenario, traffic([10.0, 500.0, 1500.0], duration=2000))
    assert (outcome.counts.completed, outcome.counts.timed_out) == (2, 1)
    timeline = outcome.timeline
    assert timeline.asleep_share.tolist() == [0] + [1] * 9 + [0] * 10
    assert timeline.ready_mean[1:10].sum() == 0
    assert timeline.on_demand_nodes_mean[3:10].sum() == 0
    assert timeline.starting_mean[10:13].sum() == pytest.approx(3, abs=0.2)
    assert timeline.ready_mean[14] == 1


def test_who_comes_before_the_first_replica_is_ready_waits_for_it():
    scenario = replace(SCENARIO, awake=((1000, 2000),))
    world = looked_into(scenario, traffic([900.0], duration=2000))
    ready = 1005 + 60 + 240  # the first poll of KEDA after waking is at 1,005
    assert world.request_log[0]["first"] == pytest.approx(ready + 0.002 + 100 * 5e-5)


def test_intervals_that_touch_are_one():
    one = simulate(replace(SCENARIO, awake=((0, 2000),)), poisson(1, 1000))
    two = simulate(replace(SCENARIO, awake=((0, 500), (500, 2000))), poisson(1, 1000))
    assert one.end_to_end.total_seconds == two.end_to_end.total_seconds
    assert two.timeline.asleep_share.sum() == 0


def test_a_busy_replica_that_is_put_to_sleep_finishes_first():
    scenario = replace(SCENARIO, awake=((0, 50),), performance=SLOW)
    world = looked_into(scenario, traffic([49.0], 100, 400, duration=300))
    assert outcome_of(world).counts.completed == 1
    assert world.request_log[0]["end"] > 60


# --- placeholders ---


def test_a_placeholder_saves_the_launch_and_the_fetch_and_is_renewed():
    held = replace(GROWING, nodes=replace(NODES, placeholders=1))
    without, with_one = simulate(GROWING, STREAM), simulate(held, STREAM)
    assert with_one.timeline.ready_mean[2] > 1  # 90 s after the second sync, which sees the first scrape with a queue
    assert without.timeline.ready_mean[2] == 1
    assert use(with_one, "placeholder") > 1000
    assert with_one.peak_nodes == with_one.peak_replicas + 1
    assert with_one.end_to_end.mean_seconds < without.end_to_end.mean_seconds


def test_no_placeholder_is_held_asleep():
    scenario = replace(SCENARIO, awake=((0, 300),), nodes=replace(NODES, placeholders=2), bucket_seconds=300)
    timeline = simulate(scenario, traffic([0.0], duration=1200)).timeline
    assert timeline.on_demand_node_seconds[:, USE["placeholder"]].tolist() == [600, 0, 0, 0]
    assert timeline.on_demand_nodes_mean[2] == 0


# --- Spot ---

SPOT = replace(SCENARIO, nodes=replace(NODES, purchases=("spot",)), spot=SpotRisk(10), bucket_seconds=600)


def test_interruptions_come_as_often_as_the_rate_says():
    hours = 200
    scenario = replace(SPOT, spot=SpotRisk(2), nodes=replace(NODES, purchases=("spot",), launch_seconds=0))
    found = simulate(scenario, traffic([0.0], duration=3600 * hours)).interruptions
    assert found == pytest.approx(2 * hours, abs=4 * (2 * hours) ** 0.5)


def test_an_interrupted_replica_is_replaced_at_the_warning():
    outcome = simulate(SPOT, poisson(0.5, 7200))
    assert outcome.interruptions > 3
    assert outcome.launches == outcome.interruptions
    assert outcome.timeline.ready_mean.mean() > 0.1


def test_what_runs_longer_than_the_notice_is_lost():
    long = replace(SLOW, step_seconds=0.5)
    scenario = replace(SPOT, performance=long, spot=SpotRisk(10, notice_seconds=20))
    outcome = simulate(scenario, traffic(np.arange(0, 7200, 60.0), 100, 100, duration=7200))
    assert outcome.counts.lost > 0
    assert outcome.inter_token.count == outcome.counts.output_tokens - outcome.counts.completed
    with_time = simulate(
        replace(scenario, spot=SpotRisk(10, notice_seconds=700), nodes=replace(SPOT.nodes, drain_seconds=700)),
        traffic(np.arange(0, 7200, 60.0), 100, 100, duration=7200),
    )
    assert with_time.counts.lost == 0


def test_a_spot_node_is_paid_until_it_is_drained_or_taken():
    world = looked_into(replace(SPOT, spot=SpotRisk(10, notice_seconds=100)), traffic([0.0], duration=7200))
    assert outcome_of(world).interruptions > 3
    count = int(world.state[0]["node_serial"])
    log = world.node_log[:count]
    assert all(later["born"] <= earlier["gone"] + 1e-9 for earlier, later in pairwise(log))  # idle: gone at the warning


def test_without_spot_capacity_nodes_come_on_demand():
    nodes = replace(NODES, purchases=BOTH)
    outcome = simulate(replace(GROWING, nodes=nodes, spot=SpotRisk(0, unavailable_share=1)), BURST)
    assert outcome.launches == outcome.on_demand_launches > 0
    assert outcome.timeline.spot_nodes_mean.max() == 1  # the one that was there


def test_with_spot_alone_replicas_wait_for_capacity():
    scarce = replace(GROWING, nodes=replace(NODES, purchases=("spot",)), spot=SpotRisk(0, unavailable_share=0.9))
    none = replace(scarce, spot=SpotRisk(0, unavailable_share=1))
    assert simulate(none, BURST).launches == 0
    assert simulate(none, BURST).at_limit_seconds == 0
    assert 0 < simulate(scarce, BURST, seed=1).launches < simulate(GROWING, BURST).launches


def test_the_same_seed_interrupts_the_same_nodes_whatever_else_is_different():
    one = looked_into(SPOT, traffic([0.0], duration=3600), seed=5)
    other = looked_into(replace(SPOT, performance=SLOW), poisson(1, 3600), seed=5)
    assert one.node_log[0]["gone"] == pytest.approx(other.node_log[0]["gone"], abs=120)


class Remembering:
    """Automation that shuts Spot and raises the minimum from the first sign on."""

    def __init__(self, minimum=1, shut=0.0):
        self.minimum, self.shut, self.signs = minimum, shut, []

    def __call__(self):
        return self.asked

    def asked(self, signs, at_seconds):
        assert all(sign.at_seconds == at_seconds for sign in signs)
        self.signs.extend(signs)
        return Steering(self.minimum, at_seconds + 900, at_seconds + self.shut)


def test_automation_hears_each_sign_with_what_is_at_risk():
    automation = Remembering()
    scenario = replace(
        SPOT, automation=automation, spot=SpotRisk(10, 120, rebalance_share=1, rebalance_lead_seconds=60)
    )
    outcome = simulate(scenario, traffic([0.0], duration=7200))
    warnings = [sign for sign in automation.signs if sign.kind == "warning"]
    assert len(warnings) == outcome.interruptions > 0
    assert {(sign.replicas, sign.serving) for sign in automation.signs} == {(1, 1)}
    for warning in warnings:
        before = [sign for sign in automation.signs if sign.kind == "rebalance" and sign.node == warning.node]
        assert len(before) == 1
        assert 0 <= warning.at_seconds - before[0].at_seconds <= 60


def test_a_raised_minimum_has_the_replacement_ready_when_the_node_goes():
    risk = SpotRisk(3, 120, rebalance_share=1, rebalance_lead_seconds=600)
    scaling = replace(FIXED, max_replicas=3)
    requests = traffic(np.arange(0, 20_000, 50.0), 100, 20, duration=20_000)
    plain = simulate(replace(SPOT, spot=risk, scaling=scaling), requests)
    warmed = simulate(replace(SPOT, spot=risk, scaling=scaling, automation=Remembering(minimum=2)), requests)
    assert warmed.time_to_first_token.quantile_seconds(0.99) < plain.time_to_first_token.quantile_seconds(0.99)
    assert warmed.timeline.ready_mean.mean() > plain.timeline.ready_mean.mean()


def test_while_spot_is_shut_nodes_come_on_demand_and_spot_again_after_that():
    scenario = replace(SPOT, nodes=replace(NODES, purchases=BOTH), automation=Remembering(shut=1e9))
    outcome = simulate(scenario, traffic([0.0], duration=7200))
    assert (outcome.interruptions, outcome.on_demand_launches) == (1, 1)
    alone = simulate(replace(SPOT, automation=Remembering(shut=1000.0)), traffic([0.0], duration=7200))
    assert 1 < alone.interruptions - 1 <= alone.launches <= alone.interruptions
    assert (
        alone.timeline.starting_mean.sum() < simulate(SPOT, traffic([0.0], duration=7200)).timeline.starting_mean.sum()
    )


def test_the_hundredth_replica_finds_room_in_larger_arrays():
    scaling = replace(ELASTIC, max_replicas=100, queue_per_replica=1, running_per_replica=1)
    world = looked_into(
        replace(GROWING, scaling=scaling, nodes=replace(NODES, purchases=("spot",)), spot=SpotRisk(20, 20)),
        traffic(np.arange(0, 300, 0.05), 100, 100, duration=2000),
    )
    outcome = outcome_of(world)
    assert outcome.peak_replicas == 100
    assert paid(outcome) == pytest.approx(lifetimes(world), rel=1e-9)
    assert not world.replicas["running"].any()
    assert (world.replicas["being"] != layout.DRAINING).all()


# --- what the autoscaler sees, and where requests go ---


def test_the_gauge_of_the_cache_is_right_in_the_middle_of_a_row_of_steps():
    performance = replace(CHUNKED, step_seconds_per_token=0)
    world = looked_into(replace(SCENARIO, performance=performance), traffic([0.0], 100, 2000))
    tokens = 100 + int((15 - 0.007) / 0.0102)  # at the scrape at 15 s, the only one while it is served but the first
    blocks = -(-tokens // 16)
    assert world.state[0]["seen_cache"] == blocks / (200_000 // 16)
    assert world.state[0]["seen_running"] == 1


def test_a_full_cache_asks_for_more_where_queue_and_batch_do_not():
    performance = replace(CHUNKED, cache_tokens=4096, step_seconds=0.05)
    requests = traffic(np.arange(0, 1200, 10.0), 2000, 1000)
    scaling = replace(ELASTIC, queue_per_replica=100, running_per_replica=64)
    blind = simulate(replace(SCENARIO, performance=performance, scaling=scaling), requests)
    seeing = simulate(
        replace(SCENARIO, performance=performance, scaling=replace(scaling, kv_cache_target=0.6)), requests
    )
    assert blind.peak_replicas == 1
    assert seeing.peak_replicas > 1


def test_a_request_goes_to_the_replica_with_the_fewest():
    """Two long ones on one replica of two would mean that it was sent a second before the other had any."""
    scaling = replace(FIXED, min_replicas=2, max_replicas=2)
    scenario = replace(SCENARIO, scaling=scaling, initial_replicas=2, performance=replace(CHUNKED, max_sequences=1))
    world = looked_into(scenario, traffic([0.0, 1.0, 2.0, 2.5], 100, [1000, 10, 1000, 10]))
    ends = world.request_log["end"][:4]
    assert ends[1] < 2  # beside the first
    assert ends[2] < ends[0] + 3  # the other replica was free again
    assert ends[3] > ends[0]  # one on each, so behind the older one or the younger
