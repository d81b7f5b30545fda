"""Node time times prices, each way to add it up, and what a price that is not known does."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.catalog import instance_type
from genai_finops.planner import money
from genai_finops.planner.simulation.outcome import Counts
from tests.platform_files import platform
from tests.unit.planner.services.service_worlds import START, changed, outcome, paid, resized

HOUR = 3600.0
ROWS = st.lists(st.lists(st.floats(0, 1e6), min_size=5, max_size=5), min_size=1, max_size=4)
USD = st.decimals("0.0001", "1000", places=4)


def split(run, prices):
    return money.split(money.entries(run, START, prices))


def test_an_hour_of_a_node_costs_its_price_and_its_volume():
    cost = split(outcome(on_demand=[[HOUR, 0, 0, 0, 0]]), paid(on_demand="2", volume="0.02"))
    assert cost.total_usd == cost.busy_usd == cost.on_demand_usd == Decimal("2.02")
    assert cost.spot_usd == cost.idle_usd == 0


def test_n_nodes_cost_n_times_the_price():
    one, seven = (split(outcome(on_demand=[[count * HOUR, 0, 0, 0, 0]]), paid()).total_usd for count in (1, 7))
    assert seven == 7 * one


def test_each_use_of_a_node_is_paid_for_under_its_name():
    cost = split(outcome(spot=[[HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR]]), paid(spot="1"))
    parts = (cost.busy_usd, cost.idle_usd, cost.starting_usd, cost.placeholder_usd, cost.empty_usd)
    assert parts == (1, 2, 3, 4, 5)
    assert cost.spot_usd == cost.total_usd == 15


@given(ROWS, ROWS, USD, USD)
def test_the_parts_add_up_and_so_do_node_hours_times_prices(spot, on_demand, spot_usd, on_demand_usd):
    run, prices = outcome(spot, on_demand), paid(str(spot_usd), str(on_demand_usd))
    cost = split(run, prices)
    uses = (cost.busy_usd, cost.idle_usd, cost.starting_usd, cost.placeholder_usd, cost.empty_usd)
    by_hand = (
        Decimal(run.timeline.spot_node_seconds.sum()) * spot_usd
        + Decimal(run.timeline.on_demand_node_seconds.sum()) * on_demand_usd
    ) / 3600
    assert sum(uses) == pytest.approx(cost.total_usd)
    assert cost.spot_usd + cost.on_demand_usd == pytest.approx(cost.total_usd)
    assert abs(cost.total_usd - by_hand) <= Decimal("0.00001")


@given(ROWS, USD, st.integers(2, 50))
def test_cost_is_proportional_to_the_price(rows, usd, factor):
    one, more = (split(outcome(spot=rows), paid(spot=str(each))).total_usd for each in (usd, usd * factor))
    assert more == pytest.approx(factor * one)


def test_a_price_that_is_not_known_makes_every_total_unknown_that_it_goes_into():
    cost = split(outcome(spot=[[HOUR, 0, 0, 0, 0]], on_demand=[[0, HOUR, 0, 0, 0]]), paid(spot=None))
    assert cost.busy_usd is cost.spot_usd is cost.total_usd is None
    assert cost.idle_usd == cost.on_demand_usd == 2


def test_a_price_that_is_not_known_and_not_paid_leaves_the_total_known():
    assert split(outcome(on_demand=[[HOUR, 0, 0, 0, 0]]), paid(spot=None)).total_usd == 2


def test_a_price_that_is_not_known_is_told_with_type_purchase_and_region():
    price = money.price_used("eu-west-1", instance_type("trn2.48xlarge"), "spot")
    assert price.usd_hour is None
    said = money.unknown_price(price)
    assert all(word in said for word in ("trn2.48xlarge", "spot", "eu-west-1"))


def test_nothing_is_free_because_nothing_is_known_of_it():
    unknown = split(outcome(spot=[[HOUR, 0, 0, 0, 0]]), paid(spot=None))
    counts = Counts(1, 1, 0, 0, 0, 1, 100, 10, 0, 0)
    assert money.unit_cost(unknown.total_usd, counts).usd_per_million_output_tokens is None
    assert money.scaled(unknown, Decimal(2)).total_usd is None
    assert money.share(unknown.busy_usd, unknown.total_usd) is None


def test_without_anything_served_there_is_no_cost_for_each():
    cost = money.unit_cost(Decimal(10), Counts(5, 0, 0, 5, 0, 0, 0, 0, 0, 0))
    assert cost.usd_per_million_output_tokens is cost.usd_per_good_request is None


def test_the_cost_of_a_million_tokens_is_the_whole_cost_over_each_kind():
    cost = money.unit_cost(Decimal(6), Counts(10, 10, 0, 0, 0, 5, 2_000_000, 1_000_000, 0, 0))
    assert cost.usd_per_million_input_tokens == 3
    assert cost.usd_per_million_output_tokens == 6
    assert cost.usd_per_million_total_tokens == 2
    assert cost.usd_per_good_request == Decimal("1.2")


def test_a_price_over_time_is_asked_for_each_interval():
    class Rising:
        def mean_usd_hour(self, start, end):
            assert end - start == timedelta(hours=1)
            return Decimal(1 + (start - START) // timedelta(hours=1))

    run = outcome(spot=[[HOUR, 0, 0, 0, 0], [HOUR, 0, 0, 0, 0]])
    assert money.split(money.entries(run, START, paid(), Rising())).total_usd == 1 + 2


def test_a_month_is_730_hours_of_the_traffic():
    assert money.month_factor(3600) == 730
    assert money.month_factor(730 * 3600) == 1


@pytest.mark.parametrize(
    ("start", "end", "common"),
    [(0, 3600, 3600), (-3600, 0, 0), (3600, 7200, 0), (-10, 10, 10), (3500, 9000, 100), (-5, 9000, 3600), (20, 10, 0)],
)
def test_periods_are_half_open_and_common_time_is_never_negative(start, end, common):
    hour = (START, START + timedelta(hours=1))
    other = (START + timedelta(seconds=start), START + timedelta(seconds=end))
    assert money.overlap_seconds(hour, other) == common


def test_common_time_is_that_of_the_clock_not_of_the_zone():
    berlin = START.astimezone(ZoneInfo("Europe/Berlin"))
    assert money.overlap_seconds((START, START + timedelta(hours=1)), (berlin, berlin + timedelta(hours=1))) == 3600


@given(st.floats(0, 3600))
def test_what_is_cut_in_two_costs_the_same(seconds):
    paid_for = money.entries(outcome(spot=[[HOUR, 0, 0, 0, 0]]), START, paid())
    edge, end = START + timedelta(seconds=seconds), START + timedelta(hours=1)
    parts = [*money.within(paid_for, START, edge), *money.within(paid_for, edge, end)]
    assert sum(part.usd for part in parts) == pytest.approx(paid_for[0].usd)
    assert all(part.end <= end for part in parts)


def test_the_last_day_of_a_month_belongs_to_it():
    last = datetime(2026, 2, 28, 23, 59, 59, 999999, UTC)
    assert money.month_start(last) == datetime(2026, 2, 1, tzinfo=UTC)
    assert money.month_start(last + timedelta(microseconds=1)) == datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spot", "ways"), [("prefer", ("spot", "on-demand")), ("only", ("spot",)), ("never", ("on-demand",))]
)
def test_only_what_a_model_may_buy_is_priced(spot, ways):
    of = changed(spot=spot)
    assert money.purchases(of.models[0]) == ways
    assert tuple(money.prices(of, of.models[0], instance_type("inf2.8xlarge"))) == ways


def test_a_factor_on_spot_leaves_on_demand_alone_and_says_so():
    of = platform("default")
    plain = money.prices(of, of.models[0], instance_type("inf2.8xlarge"))
    twice = money.prices(of, of.models[0], instance_type("inf2.8xlarge"), spot_factor=Decimal(2))
    assert twice["spot"].usd_hour == 2 * plain["spot"].usd_hour
    assert twice["on-demand"] == plain["on-demand"]
    assert "times 2" in twice["spot"].source


def test_the_volume_is_that_of_the_family_the_model_runs_on():
    of = platform("default")
    model = resized(of.models[0], family="g6e", sizes=("xlarge",))
    here = money.prices(of, of.models[0], instance_type("inf2.8xlarge"))["spot"].volume_usd_hour
    there = money.prices(of, model, instance_type("g6e.xlarge"))["spot"].volume_usd_hour
    assert here == there > 0  # the file's volume for inf2 is the default's size and speed
