"""The arithmetic of one replica: its ends, its order, and the simulation it stands in for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from genai_finops.planner.simulation.run import simulate
from genai_finops.planner.simulation.scenario import Objective
from genai_finops.planner.steady_state import Load, alone, capacity, highest_rate, largest_batch, state
from tests.unit.planner.services.service_worlds import Made
from tests.unit.planner.simulation.worlds import CHUNKED, SCENARIO, SERIAL

LOADS = st.builds(Load, st.floats(1, 3000), st.floats(1, 900))
REPLICAS = st.sampled_from([CHUNKED, SERIAL])


def test_the_batch_is_bound_by_the_server_and_by_the_cache():
    assert largest_batch(CHUNKED, Load(100, 20)) == 64
    assert largest_batch(replace(CHUNKED, cache_tokens=1280), Load(100, 20)) == 1280 // 128
    assert largest_batch(SERIAL, Load(100, 20)) == 8
    assert largest_batch(CHUNKED, Load(8000, 200)) == 0


@given(REPLICAS, LOADS, st.floats(0.01, 0.99))
def test_batch_is_rate_times_gaps_times_step(replica, load, share):
    rate = share * highest_rate(replica, load)
    found = state(replica, load, rate, 0.95)
    assert found
    assert found.batch == pytest.approx(rate * (load.output_tokens - 1) * found.inter_token_seconds, abs=1e-9)
    assert found.batch <= largest_batch(replica, load) + 1e-6
    assert found.inter_token_seconds <= highest_step(replica, load) + 1e-9


def highest_step(replica, load):
    return state(replica, load, 0.999999 * highest_rate(replica, load), 0.95).inter_token_seconds


@given(REPLICAS, LOADS)
def test_at_the_highest_rate_a_queue_grows_without_end(replica, load):
    rate = highest_rate(replica, load)
    assert state(replica, load, rate, 0.95) is None
    assert state(replica, load, rate * 1.5, 0.95) is None


@given(REPLICAS, LOADS, st.floats(0.01, 0.98), st.floats(0.001, 0.01))
def test_more_requests_never_make_anything_faster(replica, load, share, more):
    rate = highest_rate(replica, load)
    less, much = (state(replica, load, rate * each, 0.95) for each in (share, share + more))
    assert much.inter_token_seconds >= less.inter_token_seconds
    assert much.time_to_first_token_seconds >= less.time_to_first_token_seconds
    assert alone(replica, load).time_to_first_token_seconds <= less.time_to_first_token_seconds + 1e-12


@given(REPLICAS, LOADS, st.floats(0.05, 10), st.floats(0.01, 0.2))
def test_capacity_is_the_edge_of_the_objective(replica, load, first, between):
    found = capacity(replica, load, time_to_first_token_seconds=first, inter_token_seconds=between, share=0.95)
    assume(found is not None)
    assert found.time_to_first_token_seconds <= first
    assert found.inter_token_seconds <= between
    most = 0.8 * highest_rate(replica, load)
    assert found.requests_per_second <= most * (1 + 1e-9)
    if found.requests_per_second < most * 0.999:
        beyond = state(replica, load, found.requests_per_second * 1.001, 0.95)
        assert beyond.time_to_first_token_seconds > first or beyond.inter_token_seconds > between


def test_a_slower_replica_carries_less():
    load = Load(500, 100)
    fast, slow = highest_rate(CHUNKED.scaled(-1), load), highest_rate(CHUNKED.scaled(1), load)
    assert slow < highest_rate(CHUNKED, load) < fast


def test_what_never_holds_has_no_capacity():
    wanted = {"inter_token_seconds": None, "share": 0.95}
    assert capacity(SERIAL, Load(500, 100), time_to_first_token_seconds=1e-4, **wanted) is None
    assert capacity(SERIAL, Load(9000, 100), time_to_first_token_seconds=100, **wanted) is None


@pytest.mark.parametrize("replica", [CHUNKED, SERIAL], ids=["chunked", "serial"])
@pytest.mark.parametrize("busy", [0.3, 0.6])
def test_the_simulation_agrees_on_the_time_between_tokens(replica, busy):
    load = Load(400, 120)
    rate = busy * highest_rate(replica, load)
    chance = np.random.default_rng(5)
    times = np.cumsum(chance.exponential(1 / rate, 3000))
    run = simulate(replace(SCENARIO, performance=replica, objective=Objective(60)), Made(times, 400, 120), seed=1)
    expected = state(replica, load, rate, 0.95).inter_token_seconds
    assert run.counts.completed == 3000
    assert run.inter_token.mean_seconds == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("replica", [CHUNKED, SERIAL], ids=["chunked", "serial"])
def test_above_the_highest_rate_the_simulation_is_swamped_and_below_it_is_not(replica):
    load = Load(400, 120)
    rate = highest_rate(replica, load)
    waits = []
    for factor in (0.85, 1.2):
        times = np.arange(4000) / (rate * factor)
        run = simulate(
            replace(SCENARIO, performance=replica, objective=Objective(60, None, 1e6)), Made(times, 400, 120)
        )
        waits.append(run.time_to_first_token.quantile_seconds(0.95))
    assert waits[1] > 20 * waits[0]
