"""Waiting times against queueing theory: with steps of one length whatever the batch, a replica is a server."""

from dataclasses import replace
from math import factorial

import numpy as np
import pytest

from genai_finops.planner.simulation.scenario import Objective
from tests.unit.planner.simulation.worlds import CHUNKED, SCENARIO, looked_into, traffic

REQUESTS = 300_000
BATCHES = 30
STEPS = 5000
"""Of a mean service; a service begins at a step boundary, so it is off by a five-thousandth at most."""

SERVER = replace(
    CHUNKED,
    step_seconds=1 / STEPS,
    step_seconds_per_sequence=0,
    step_seconds_per_token=0,
    prefill_seconds=0,
    prefill_seconds_per_token=0,
    max_tokens=10**9,
    cache_tokens=10**12,
)


def waits(load, servers, services):
    """Of requests that arrive independently; a mean service takes a second."""
    generator = np.random.default_rng(round(1000 * load) + servers)
    arrivals = np.cumsum(generator.exponential(1 / (load * servers), REQUESTS))
    outputs = 1 + np.maximum(1, np.rint(services(generator) * STEPS)).astype(np.int32)
    scenario = replace(SCENARIO, performance=replace(SERVER, max_sequences=servers), objective=Objective(1, None, 1e7))
    log = looked_into(scenario, traffic(arrivals, 1, outputs, chunk=10**5), log=REQUESTS).request_log
    assert (log["end"] > 0).all()
    return log["first"] - arrivals


def assert_mean(values, expected):
    """Within four standard errors, found from the means of batches, and those are small enough to say something."""
    means = values.reshape(BATCHES, -1).mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(BATCHES)
    assert error < 0.06 * expected
    assert values.mean() == pytest.approx(expected, abs=4 * error + 2 / STEPS)


def exponential(generator):
    return generator.exponential(1, REQUESTS)


def erlang_c(load, servers):
    """Mean wait in an M/M/c queue with a mean service of a second."""
    offered = load * servers
    busy = offered**servers / factorial(servers) / (1 - load)
    waits = busy / (sum(offered**k / factorial(k) for k in range(servers)) + busy)
    return waits / (servers * (1 - load))


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.9])
def test_exponential_services_wait_as_in_m_m_1(load):
    assert_mean(waits(load, 1, exponential), load / (1 - load))


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.9])
def test_equal_services_wait_as_in_m_d_1(load):
    assert_mean(waits(load, 1, lambda generator: np.ones(REQUESTS)), load / (2 * (1 - load)))


# Eight servers at 0.3 hardly ever make anybody wait: too few to say something.
@pytest.mark.parametrize(
    ("load", "servers"), [(0.3, 2), *((load, servers) for load in (0.5, 0.7, 0.9) for servers in (2, 8))]
)
def test_several_places_in_the_batch_wait_as_in_m_m_c(load, servers):
    assert_mean(waits(load, servers, exponential), erlang_c(load, servers))
