"""What a traffic amounts to, and the same traffic more or less of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.planner.loads import kept, measured
from genai_finops.planner.sensitivity import multiplied, sensitivity
from tests.platform_files import platform
from tests.unit.planner.services.service_worlds import NAME, TODAY, Made, poisson


def arrivals(traffic):
    chunks = [chunk.arrival_seconds for chunk in traffic.chunks()]
    return np.concatenate(chunks) if chunks else np.array([])


def test_sums_and_means_are_those_of_the_requests():
    load = measured(Made([0, 10, 20], [100, 200, 300], [1, 2, 3], duration=60))
    assert (load.summary.requests, load.summary.input_tokens, load.summary.output_tokens) == (3, 600, 6)
    assert (load.mean.input_tokens, load.mean.output_tokens) == (200, 2)
    assert load.requests_per_second == 3 / 60


def test_the_peak_is_the_busiest_minute():
    load = measured(Made([0, 1, 61, 62, 63, 130], duration=600))
    assert load.summary.peak_requests_per_second == 3 / 60
    assert load.compared().peak_requests_per_second == 3 / 60


@given(st.integers(1, 50))
def test_figures_do_not_hang_on_how_the_traffic_is_cut(chunk):
    whole, cut = (measured(poisson(1, 120, chunk=size)) for size in (10_000, chunk))
    assert whole == cut


def test_a_traffic_without_requests_has_no_mean():
    load = measured(Made([], duration=60))
    assert load.mean is None
    with pytest.raises(ValueError, match="no requests"):
        load.compared()


def test_the_first_minutes_are_measured_by_themselves():
    load = measured(Made([*range(300), 1000.0], duration=3600))
    assert load.first_requests_per_second == 1.0


def test_quiet_is_the_twentieth_part_of_whole_ten_minutes():
    every_second = Made([*range(3600), 3700.0], duration=3700)
    assert measured(every_second).quiet_requests_per_second == 1.0  # the last 100 s do not count
    with_a_lull = Made([at for at in range(3600) if not 600 <= at < 1200], duration=3600)
    assert measured(with_a_lull).quiet_requests_per_second == 0.0
    assert measured(Made([0, 1], duration=10)).quiet_requests_per_second == 0.2


def test_lengths_are_counted_by_class_and_rounded_down():
    load = measured(Made([0, 1, 2, 3], [100, 1000, 5000, 200_000], 24))
    assert load.share_within(124) == 0
    assert load.share_within(128) == 0.25
    assert load.share_within(1024) == 0.5
    assert load.share_within(8192) == 0.75


def test_what_is_kept_is_the_same_traffic():
    traffic = poisson(1, 120)
    same = kept(traffic)
    assert (same.name, same.start, same.duration_seconds) == (traffic.name, traffic.start, traffic.duration_seconds)
    assert (arrivals(same) == arrivals(traffic)).all()
    assert (arrivals(same) == arrivals(same)).all()


@given(st.sampled_from([0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.7]), st.integers(1, 60))
def test_multiplied_traffic_has_so_many_times_the_requests_in_the_same_time(factor, chunk):
    traffic = poisson(1, 300, chunk=chunk)
    more = multiplied(traffic, factor)
    times = arrivals(more)
    assert abs(len(times) - factor * len(arrivals(traffic))) <= 1
    assert (np.diff(times) >= 0).all()
    assert more.duration_seconds == traffic.duration_seconds
    assert times[-1] <= traffic.duration_seconds
    assert all(len(part) for part in more.chunks())


def test_multiplied_traffic_keeps_its_hours():
    times = arrivals(multiplied(Made([10.0, 20.0, 3000.0, 3001.0]), 2))
    assert (times < 30).sum() + (times >= 3000).sum() + ((times > 20) & (times < 3000)).sum() == 8
    assert (times >= 3000).sum() == 4


def test_the_cost_follows_the_spot_price_and_never_falls_with_it():
    found = sensitivity(
        platform("default"), {NAME: poisson(0.1, 600)}, today=TODAY, spot_factors=(2, 0.5, 1), traffic_factors=(1, 4)
    )
    assert [point.factor for point in found.spot_price] == [0.5, 1, 2]
    costs = [point.monthly_usd for point in found.spot_price]
    assert costs == sorted(costs)
    assert costs[0] < costs[2]
    assert found.traffic[0].monthly_usd == costs[1]


@pytest.mark.parametrize("factor", [0, -1, float("inf"), float("nan")])
def test_a_factor_that_is_none_is_refused(factor):
    with pytest.raises(ValueError, match="above 0"):
        sensitivity(platform("default"), {NAME: poisson(1, 60)}, today=TODAY, spot_factors=(factor,))
