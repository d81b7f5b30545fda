"""The engine that jumps against the twin that takes every step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genai_finops.planner.simulation import layout
from genai_finops.planner.simulation.outcome import GROWTH, LOWEST_SECONDS
from genai_finops.planner.simulation.result import outcome_of
from genai_finops.planner.simulation.scenario import Objective
from tests.unit.planner.simulation.twin import Replica, Request
from tests.unit.planner.simulation.worlds import CHUNKED, SCENARIO, SERIAL, looked_into, traffic

FATES = {
    layout.COMPLETED: "completed",
    layout.REFUSED: "refused",
    layout.TIMED_OUT: "timed out",
    layout.LOST: "lost",
}


def both(performance, arrivals, inputs, outputs, timeout):
    """The engine's world, and the twin after serving the same."""
    scenario = replace(SCENARIO, performance=performance, objective=Objective(1, 0.05, timeout))
    world = looked_into(scenario, traffic(arrivals, inputs, outputs, chunk=7))
    twin = Replica(performance, timeout)
    requests = twin.serve(
        [Request(number, *each) for number, each in enumerate(zip(arrivals, inputs, outputs, strict=True))]
    )
    return world, twin, requests


def assert_agree(world, twin, requests):
    log = world.request_log[: len(requests)]
    assert [FATES[fate] for fate in log["fate"]] == [request.fate for request in requests]
    served = [request for request in requests if request.fate == "completed"]
    numbers = [request.number for request in served]
    np.testing.assert_allclose(log["end"][numbers], [request.end for request in served], rtol=1e-9)
    np.testing.assert_allclose(log["first"][numbers], [request.tokens[0] for request in served], rtol=1e-9)
    outcome = outcome_of(world)
    assert outcome.counts.evictions == twin.evictions
    assert outcome.counts.output_tokens == sum(request.output for request in served)
    assert_same_gaps(outcome.inter_token, [gap for request in served for gap in np.diff(request.tokens)])
    assert_consistent(world)


def assert_same_gaps(found, gaps):
    """Class by class, but that a gap at the edge of one may be counted in the next."""
    assert found.counts.min() >= 0
    assert found.count == len(gaps)
    assert found.total_seconds == pytest.approx(sum(gaps), rel=1e-9)
    edges = LOWEST_SECONDS * GROWTH ** np.arange(len(found.counts) - 1)
    for narrower in (1 - 1e-7, 1 + 1e-7):
        expected = np.searchsorted(np.sort(gaps), edges * narrower, side="right")
        counted = np.cumsum(found.counts)[:-1]
        assert (counted >= expected).all() if narrower < 1 else (counted <= expected).all()


def assert_consistent(world):
    """Nothing is left behind in the replica's books."""
    for name in ("running", "waiting", "used", "context", "decoding", "blocked"):
        assert not world.replicas[name].any(), name
    assert not world.residues.any()


@st.composite
def loads(draw, longest_input, longest_output):
    """Bursts and pauses; arrivals that coincide with no step boundary."""
    count = draw(st.integers(1, 30))
    seed = draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    gaps = generator.exponential(draw(st.sampled_from([0.002, 0.05, 0.5])), count)
    gaps[generator.random(count) < draw(st.sampled_from([0.0, 0.6]))] = 0
    arrivals = np.cumsum(gaps).tolist()
    inputs = generator.integers(1, longest_input, count).tolist()
    outputs = generator.integers(1, longest_output, count).tolist()
    return arrivals, inputs, outputs


QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(
    load=loads(300, 60),
    chunk=st.sampled_from([16, 50, 256, 1024]),
    sequences=st.sampled_from([1, 3, 64]),
    cache=st.sampled_from([360, 512, 1500, 100_000]),
    block=st.sampled_from([1, 16, 100]),
    timeout=st.sampled_from([0.4, 2.0, 600]),
)
def test_chunked_prefill_agrees_with_the_twin_whatever_is_evicted_or_gives_up(
    load, chunk, sequences, cache, block, timeout
):
    performance = replace(
        CHUNKED, chunk_tokens=chunk, max_sequences=sequences, cache_tokens=cache, block_tokens=block, max_tokens=340
    )
    assert_agree(*both(performance, *load, timeout))


@QUICK
@given(
    load=loads(300, 60),
    buckets=st.sampled_from([(), (64, 400), (128, 256)]),
    sequences=st.sampled_from([1, 2, 8]),
    per_token=st.sampled_from([0.0, 1e-6, 1e-4]),
    timeout=st.sampled_from([0.5, 3.0, 600]),
)
def test_serial_prefill_agrees_with_the_twin_and_everybody_feels_the_pause(
    load, buckets, sequences, per_token, timeout
):
    performance = replace(
        SERIAL, buckets=buckets, max_sequences=sequences, step_seconds_per_token=per_token, max_tokens=340
    )
    assert_agree(*both(performance, *load, timeout))


def test_a_step_that_grows_with_the_context_spreads_its_gaps_over_the_classes():
    performance = replace(CHUNKED, step_seconds_per_token=1e-3)
    assert_agree(*both(performance, [0.0], [10], [2000], 1e6))


def test_the_cache_that_holds_little_more_than_one_request_still_serves_all_of_them():
    performance = replace(CHUNKED, cache_tokens=352, block_tokens=16, max_tokens=340)
    world, twin, requests = both(performance, [0.0] * 12, [100] * 12, [200] * 12, 1e6)
    assert twin.evictions > 0
    assert all(request.fate == "completed" for request in requests)
    assert_agree(world, twin, requests)
