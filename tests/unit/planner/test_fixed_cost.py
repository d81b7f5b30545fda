"""What the platform costs before the first request; sums are recomputed here from quantities and prices."""

import ast
from datetime import date
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.catalog import instance_price, instance_type, instance_types
from genai_finops.planner.fixed_cost import (
    AUTOMATION_METRICS,
    AUTOMATION_RUNS_AN_HOUR,
    CostLine,
    budget_check,
    budget_use,
    dollars,
    fixed_monthly_cost,
    serving_cost,
)
from genai_finops.spec import Model, Platform
from genai_finops.spec.model import AwakeWindow, Schedule, WarmCapacity
from genai_finops.spec.platform import Budget, EndpointService, NodePool, Notifications, Volume
from stacks import schedules
from tests.platform_files import ROOT, platform

TODAY = date(2026, 12, 1)
LLAMA_GIB = Decimal(8_030_261_248) * 2 / 2**30
FAR = Decimal("1e-15")
IDLE_AUTOMATION = (
    30 * 730 * Decimal("0.0000133334")  # a run every two minutes: two seconds of half a gigabyte
    + 9 * Decimal("0.30")  # metrics
    + 8 * Decimal("0.10")  # alarms
)
WITH_A_BUDGET = 2 * Decimal("0.10") + 6 * Decimal(730) / 24 * Decimal("0.01")
"""More alarms, and what Cost Explorer takes for its answers."""

LOGS_A_DAY_KEPT = Decimal(24) / 730 * Decimal("0.03")
"""What each GB a month costs for each day that it is kept."""


def line(of: Platform, start: str, today: date = TODAY) -> CostLine:
    (found,) = [line for line in fixed_monthly_cost(of, today).lines if line.name.startswith(start)]
    return found


def names_of(of: Platform) -> list[str]:
    return [line.name for line in fixed_monthly_cost(of, TODAY).lines]


def changed(of: Platform, **sections: dict[str, Any]) -> Platform:
    """The platform with settings of some sections replaced."""
    return of.model_copy(
        update={name: getattr(of, name).model_copy(update=fields) for name, fields in sections.items()}
    )


def serving(**changes: Any) -> Platform:
    """The default platform with its one model changed."""
    default = platform("default")
    return default.model_copy(update={"models": (default.models[0].model_copy(update=changes),)})


def scaled(**changes: Any) -> Platform:
    return serving(scaling=platform("default").models[0].scaling.model_copy(update=changes))


def budgeted(usd: str, of: Platform | None = None) -> Platform:
    return (of or platform("default")).model_copy(update={"budget": Budget(monthly_usd=Decimal(usd))})


def test_the_default_platform_costs_what_its_parts_cost() -> None:
    hours = 730 * (
        Decimal("0.10")  # control plane
        + 2 * Decimal("0.0816")  # m7g.large
        + Decimal("0.045")  # NAT gateway
        + Decimal("0.005")  # its address
        + Decimal("0.0225")  # load balancer
    )
    gib = (2 * 20 + 50) * Decimal("0.08") + 2 * LLAMA_GIB * Decimal("0.023")  # weights, and graphs with weights
    logs = 20 * Decimal("0.50") + (15 * 30 + 5 * 14) * LOGS_A_DAY_KEPT
    expected = hours + gib + Decimal("1.00") + Decimal("0.40") + logs + IDLE_AUTOMATION
    assert abs(fixed_monthly_cost(platform("default"), TODAY).monthly_usd - expected) < FAR


def test_the_rich_platform_costs_what_its_parts_cost() -> None:
    hours = 730 * (
        Decimal("0.10")
        + 3 * Decimal("0.1632")  # m7g.xlarge
        + 3 * Decimal("0.045")
        + 3 * Decimal("0.005")
        + 4 * 3 * Decimal("0.01")  # four endpoints in three zones
        + Decimal("0.0225")
        + 3 * Decimal("0.005")  # the load balancer's addresses, one a zone
    )
    large, mistral = (Decimal(n) * 2 / 2**30 for n in (70_553_706_496, 7_248_023_552))
    stored = LLAMA_GIB + LLAMA_GIB / 2 + large + mistral  # of the first the graphs too, in int8
    gib = (3 * 20 + 100) * Decimal("0.08") + stored * Decimal("0.023")
    logs = 20 * Decimal("0.50") + (15 * 90 + 5 * 30) * LOGS_A_DAY_KEPT
    expected = hours + gib + 2 * Decimal("1.00") + Decimal("0.40") + logs + IDLE_AUTOMATION + WITH_A_BUDGET
    assert abs(fixed_monthly_cost(platform("rich"), TODAY).monthly_usd - expected) < FAR


def test_models_cost_nothing_while_asleep() -> None:
    many = scaled(min_replicas=50, max_replicas=60)
    assert fixed_monthly_cost(many, TODAY) == fixed_monthly_cost(platform("default"), TODAY)


@pytest.mark.parametrize(
    ("today", "hourly"),
    [(date(2027, 3, 27), "0.10"), (date(2027, 3, 28), "0.60"), (date(2030, 1, 1), "0.60")],
)
def test_the_control_plane_costs_six_times_as_much_after_standard_support(today: date, hourly: str) -> None:
    control_plane = line(platform("default"), "EKS control plane", today)
    assert control_plane.monthly_usd == 730 * Decimal(hourly)
    assert ("extended support" in control_plane.name) == (hourly == "0.60")


def test_only_an_internet_facing_load_balancer_has_public_addresses() -> None:
    assert not any("IPv4 for load balancer" in name for name in names_of(platform("default")))
    assert line(platform("rich"), "Public IPv4 for load balancer").quantity == 3 * 730


def test_without_a_gateway_there_is_no_load_balancer_and_no_key() -> None:
    closed = names_of(changed(platform("rich"), gateway={"enabled": False}))
    assert set(names_of(platform("rich"))) - set(closed) == {
        "Load balancer, no traffic",
        "Public IPv4 for load balancer, 3",
        "Secret, API key",
    }


def test_a_key_for_notifications_is_paid_only_when_somebody_is_notified() -> None:
    assert "KMS key, notifications" not in names_of(platform("default"))
    told = platform("default").model_copy(update={"notifications": Notifications(emails=("a@example.com",))})
    assert "KMS key, notifications" in names_of(told)


def test_an_assumption_is_called_one() -> None:
    lines = fixed_monthly_cost(platform("default"), TODAY).lines
    assumed = {line.name for line in lines if line.provenance == "assumed"}
    assert assumed == {
        "Logs written, assumed",
        "Logs kept, assumed",
        "Functions, idle, assumed",
    }


def test_steering_costs_some_dollars_a_month_and_asking_aws_for_the_bill_two_more() -> None:
    without = fixed_monthly_cost(platform("default"), TODAY).monthly_usd
    assert 3 < IDLE_AUTOMATION < 5
    assert abs(fixed_monthly_cost(budgeted("1000"), TODAY).monthly_usd - without - WITH_A_BUDGET) < FAR
    assert 1 < WITH_A_BUDGET < 3


def test_the_runs_that_are_paid_for_are_those_that_are_scheduled() -> None:
    assert f"rate({60 // AUTOMATION_RUNS_AN_HOUR} minutes)" == schedules.TICK


def test_the_metrics_that_are_paid_for_are_those_that_a_run_reports() -> None:
    source = ast.parse((ROOT / "lambdas" / "reconcile.py").read_text(encoding="utf-8"))
    [measure] = [node for node in ast.walk(source) if isinstance(node, ast.FunctionDef) and node.name == "_measure"]
    [counted] = [node for node in ast.walk(measure) if isinstance(node, ast.Dict) and None not in node.keys]
    assert len(counted.keys) == AUTOMATION_METRICS


@pytest.mark.parametrize("name", ["default", "minimal", "rich"])
def test_every_line_says_where_its_price_comes_from_and_which_setting_changes_it(name: str) -> None:
    for cost in fixed_monthly_cost(platform(name), TODAY).lines:
        assert cost.price.source
        assert cost.price.checked <= TODAY
        assert cost.price.region == "us-east-1"
        for path in cost.paths:
            found: Any = platform(name)
            for part in path.split("."):
                found = getattr(found, part)  # raises when there is no such setting
        assert cost.paths or cost.name.startswith(
            ("KMS key, cluster", "Logs written", "Functions", "Metrics", "Alarms")
        )


def test_every_instance_that_may_be_a_system_node_has_a_price() -> None:
    plain = [instance for instance in instance_types().values() if instance.accelerator is None]
    assert plain
    assert all(instance_price(instance, "on-demand") for instance in plain)


def test_prices_of_the_two_ways_to_buy_have_their_own_days() -> None:
    instance = instance_type("inf2.xlarge")
    spot, on_demand = instance_price(instance, "spot"), instance_price(instance, "on-demand")
    assert spot
    assert on_demand
    assert (spot.usd, spot.checked) == (Decimal("0.1257"), date(2026, 8, 8))
    assert (on_demand.usd, on_demand.checked) == (Decimal("0.758200"), date(2026, 7, 20))


@st.composite
def platforms(draw: st.DrawFn) -> Platform:
    """The default platform with other numbers of everything that costs."""
    count = draw(st.integers(2, 20))
    varied = changed(
        platform("default"),
        network={
            "nat_gateways": draw(st.integers(1, 3)),
            "interface_endpoints": tuple(draw(st.sets(st.sampled_from(get_args(EndpointService))))),
            "flow_log_retention_days": draw(st.sampled_from([1, 14, 365])),
        },
        gateway={
            "enabled": draw(st.booleans()),
            "scheme": draw(st.sampled_from(["internal", "internet-facing"])),
            "api_key": draw(st.booleans()),
        },
        monitoring={"storage_gib": draw(st.integers(10, 2000))},
    )
    nodes = varied.cluster.system_nodes.model_copy(
        update={
            "count": count,
            "instance_type": draw(st.sampled_from(["m7g.large", "m7g.xlarge", "t4g.large"])),
        }
    )
    return changed(varied, cluster={"system_nodes": nodes, "log_retention_days": draw(st.sampled_from([1, 30, 365]))})


days = st.dates(date(2026, 1, 1), date(2030, 1, 1))


@given(platforms(), days)
def test_the_total_is_the_sum_of_its_lines_and_each_costs_something(varied: Platform, today: date) -> None:
    cost = fixed_monthly_cost(varied, today)
    assert cost.monthly_usd == sum(line.quantity * line.price.usd for line in cost.lines)
    assert all(line.monthly_usd > 0 for line in cost.lines)
    assert len({line.name for line in cost.lines}) == len(cost.lines)


@given(platforms(), days)
def test_another_nat_gateway_costs_itself_and_its_address(varied: Platform, today: date) -> None:
    more = changed(varied, network={"nat_gateways": varied.network.nat_gateways + 1})
    extra = fixed_monthly_cost(more, today).monthly_usd - fixed_monthly_cost(varied, today).monthly_usd
    assert abs(extra - Decimal("36.50")) < FAR


@given(platforms(), st.integers(1, 10))
def test_more_of_anything_is_never_cheaper(varied: Platform, more: int) -> None:
    nodes = varied.cluster.system_nodes
    grown = changed(
        varied,
        cluster={"system_nodes": nodes.model_copy(update={"count": nodes.count + more})},
        monitoring={"storage_gib": varied.monitoring.storage_gib + more},
    ).model_copy(update={"zones": (*varied.zones, "us-east-1c")})
    assert fixed_monthly_cost(grown, TODAY).monthly_usd > fixed_monthly_cost(varied, TODAY).monthly_usd


# --- models


VOLUME = 150 * Decimal("0.08") + (4000 - 3000) * Decimal("0.005") + (1000 - 125) * Decimal("0.040")
"""A month of the root volume of a default accelerator node: $52."""
RICH_VOLUME = VOLUME + 200 * Decimal("0.08")
"""The inf2 volume of the rich platform has 350 GiB."""


def test_a_model_that_is_always_awake_pays_730_hours_of_node_and_volume() -> None:
    (cost,) = serving_cost(platform("default"))
    assert cost.spot
    assert cost.on_demand
    assert cost.awake_hours == 730
    assert cost.asleep_hours == 0
    assert (cost.spot.instance, cost.on_demand.instance) == ("inf2.8xlarge", "inf2.8xlarge")
    assert cost.at_min_usd("spot") == 730 * Decimal("0.5201") + VOLUME
    assert cost.at_min_usd("on-demand") == 730 * Decimal("1.967860") + VOLUME
    assert cost.ceiling_usd == 10 * (730 * Decimal("1.967860") + VOLUME)


def test_a_schedule_pays_only_the_hours_awake_and_says_what_sleep_saves() -> None:
    cost = serving_cost(platform("rich"))[0]
    awake = Decimal(5 * 13 + 2 * 8) * 730 / 168
    whole_month = (2 + 2) * (730 * Decimal("0.1257") + RICH_VOLUME)  # replicas, and room for as many
    assert abs(cost.awake_hours - awake) < FAR
    assert abs(cost.awake_hours + cost.asleep_hours - 730) < FAR
    at_min, saved = cost.at_min_usd("spot"), cost.asleep_saves_usd("spot")
    assert at_min
    assert saved
    assert abs(at_min - whole_month * awake / 730) < FAR
    assert abs(at_min + saved - whole_month) < FAR


def test_windows_that_overlap_are_paid_once() -> None:
    window = AwakeWindow(days="Mon-Fri", start="08:00", end="18:00")
    once = serving(schedule=Schedule(time_zone="UTC", awake=(window,)))
    twice = serving(schedule=Schedule(time_zone="UTC", awake=(window, window)))
    assert serving_cost(once) == serving_cost(twice)


def test_a_model_that_may_scale_to_zero_costs_nothing_at_its_minimum() -> None:
    (cost,) = serving_cost(scaled(min_replicas=0))
    assert cost.at_min_usd("spot") == cost.at_min_usd("on-demand") == 0
    assert cost.ceiling_usd


def test_a_node_that_carries_several_replicas_is_paid_whole() -> None:
    only_large = platform("default").models[0].accelerator.model_copy(update={"sizes": ("24xlarge",)})
    node = 730 * Decimal("6.490630") + VOLUME
    for replicas, nodes in ((1, 1), (6, 1), (7, 2), (12, 2)):
        scaling = (
            platform("default").models[0].scaling.model_copy(update={"min_replicas": replicas, "max_replicas": 12})
        )
        (cost,) = serving_cost(serving(accelerator=only_large, scaling=scaling))
        assert cost.on_demand
        assert cost.on_demand.replicas_per_node == 6
        assert cost.at_min_usd("on-demand") == nodes * node
        assert abs(cost.on_demand.replica_usd_hour - cost.on_demand.node_usd_hour / 6) < FAR


def test_a_model_that_is_only_on_spot_has_no_other_price_and_its_ceiling_is_spot() -> None:
    cost = serving_cost(platform("rich"))[1]
    assert cost.on_demand is None
    assert cost.spot
    assert cost.at_min_usd("spot") == cost.at_min_usd("on-demand") == 730 * Decimal("2.6028") + RICH_VOLUME
    assert cost.ceiling_usd == 2 * (730 * Decimal("2.6028") + RICH_VOLUME)


def test_a_model_that_is_never_on_spot_has_no_spot_price() -> None:
    cost = serving_cost(platform("rich"))[2]
    volume = 200 * Decimal("0.08") + (750 - 125) * Decimal("0.040")
    node = 730 * Decimal("1.861000") + volume
    assert cost.spot is None
    assert cost.at_min_usd("spot") == cost.at_min_usd("on-demand") == 2 * node  # a replica, and room for another


def test_room_that_is_kept_warm_costs_what_replicas_would() -> None:
    def warm(replicas: int, size: str) -> Any:
        accelerator = platform("default").models[0].accelerator.model_copy(update={"sizes": (size,)})
        (cost,) = serving_cost(serving(accelerator=accelerator, warm_capacity=WarmCapacity(replicas=replicas)))
        return cost

    assert warm(0, "8xlarge").warm_usd("spot") == 0
    assert warm(2, "8xlarge").warm_usd("spot") == 2 * (730 * Decimal("0.5201") + VOLUME)
    assert warm(2, "24xlarge").warm_usd("spot") == 0  # on the node that is paid for already
    assert warm(2, "8xlarge").ceiling_usd == 12 * (730 * Decimal("1.967860") + VOLUME)


def test_weights_and_graphs_that_models_share_are_stored_once() -> None:
    default = platform("default")
    twin = default.models[0].model_copy(update={"name": "twin", "served_name": "twin"})
    twice = default.model_copy(update={"models": (*default.models, twin)})
    assert line(twice, "Model store") == line(default, "Model store")
    other = twin.model_copy(update={"engine": twin.engine.model_copy(update={"dtype": "float16"})})
    with_other = default.model_copy(update={"models": (*default.models, other)})
    assert line(with_other, "Model store").quantity == line(default, "Model store").quantity + LLAMA_GIB


def test_a_price_that_is_not_known_is_not_zero() -> None:
    cost = serving_cost(_on("g5", "4xlarge"))[0]
    assert cost.spot is None
    assert cost.at_min_usd("spot") is None
    assert cost.at_min_usd("on-demand")
    unpriced = serving_cost(_on("trn2", "48xlarge"))[0]
    assert (unpriced.spot, unpriced.on_demand, unpriced.ceiling_usd) == (None, None, None)


def _on(family: str, size: str) -> Platform:
    accelerator = platform("default").models[0].accelerator
    changes = {"family": family, "sizes": (size,), "tensor_parallel_size": 1}
    return serving(accelerator=accelerator.model_copy(update=changes))


@given(st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_more_replicas_never_cost_less_and_the_ceiling_is_the_most(low: int, more: int, spot: bool) -> None:
    changes = {"min_replicas": low, "max_replicas": max(1, low + more)}
    (cost,) = serving_cost(scaled(**changes))
    at_min = cost.at_min_usd("spot" if spot else "on-demand")
    assert at_min is not None
    assert cost.ceiling_usd is not None
    assert 0 <= at_min <= cost.ceiling_usd


def test_a_small_volume_within_what_gp3_includes_costs_its_size_only() -> None:
    pool = NodePool(volume=Volume(size_gib=100, throughput_mib_s=125, iops=3000))
    small = platform("default").model_copy(update={"node_pools": {"inf2": pool}})
    (cost,) = serving_cost(small)
    assert cost.spot
    assert cost.spot.volume_usd_month == 8


# --- budget


def test_without_a_budget_there_is_nothing_to_check() -> None:
    assert budget_use(platform("default"), TODAY) is None
    assert not list(budget_check(platform("default"), TODAY))


def test_a_budget_that_holds_is_not_warned_about() -> None:
    assert not list(budget_check(platform("rich"), TODAY))
    use = budget_use(platform("rich"), TODAY)
    assert use
    assert use.fixed_share == fixed_monthly_cost(platform("rich"), TODAY).monthly_usd / 20000


def test_a_fixed_cost_above_half_of_the_budget_names_the_settings_that_cost_most() -> None:
    (warning,) = budget_check(budgeted("500", scaled(min_replicas=0)), TODAY)
    assert warning.path == "budget.monthly_usd"
    assert "$270.68" in warning.message
    assert "54%" in warning.message
    assert "System nodes, 2 × m7g.large (cluster.system_nodes.count) $119.14" in warning.remedy
    assert "NAT gateways, 1 (network.nat_gateways) $32.85" in warning.remedy


def test_half_of_the_budget_is_where_the_fixed_cost_becomes_a_warning() -> None:
    asleep = scaled(min_replicas=0)  # the fixed cost is $270.6792...
    assert not list(budget_check(budgeted("541.36", asleep), TODAY))
    assert list(budget_check(budgeted("541.35", asleep), TODAY))


def test_minimum_replicas_beyond_the_budget_are_warned_about() -> None:
    (warning,) = budget_check(budgeted("600"), TODAY)
    assert "$702.35" in warning.message
    assert "$600.00" in warning.message
    assert not list(budget_check(budgeted("703"), TODAY))


def test_a_budget_below_the_fixed_cost_breaks_both_rules() -> None:
    assert len(list(budget_check(budgeted("100"), TODAY))) == 2


def test_a_model_without_a_price_cannot_hide_that_the_rest_exceeds_the_budget() -> None:
    extra: Model = _on("trn2", "48xlarge").models[0]
    both = platform("default").model_copy(update={"models": (*platform("default").models, extra)})
    (warning,) = budget_check(budgeted("600", both), TODAY)
    assert "at least" in warning.message


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("1416.96", "$1,416.96"),
        ("0", "$0.00"),
        ("0.005", "$0.01"),
        ("2.675", "$2.68"),
        ("1234567.8", "$1,234,567.80"),
    ],
)
def test_dollars_round_halves_up(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text
