"""The simulator asks the rules that run in the account, and gets their answers."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations import windows
from genai_finops.planner.automation import automation_factory, awake_seconds
from genai_finops.planner.simulation.scenario import Sign
from genai_finops.spec.model import Schedule
from tests.platform_files import platform

PLATFORM = platform("default")
[MODEL] = PLATFORM.models
START = datetime(2026, 3, 2, tzinfo=UTC)
BREAKER = PLATFORM.interruptions.breaker


def rules(**changes):
    model = MODEL.model_copy(update=changes)
    return automation_factory(PLATFORM.model_copy(update={"models": (model,)}), model, START)()


def warning(node, at, replicas=1, serving=1, kind="warning"):
    return Sign(at, node, kind, replicas, serving)


def test_a_sign_raises_the_minimum_by_the_replicas_at_risk_for_the_time_it_is_believed():
    found = rules()([warning(1, 100, serving=3)], 100)
    assert found.min_replicas == 4
    assert found.raised_until_seconds == 100 + PLATFORM.interruptions.prewarm.hold_seconds
    assert found.spot_shut_until_seconds == 0


def test_a_raised_minimum_never_exceeds_the_maximum():
    scaling = MODEL.scaling.model_copy(update={"max_replicas": 2})
    assert rules(scaling=scaling)([warning(1, 0, replicas=3, serving=2)], 0).min_replicas == 2


def test_one_node_that_is_recommended_and_then_warned_of_counts_once():
    asked = rules()
    first = asked([warning(1, 0, serving=2, kind="rebalance")], 0)
    assert asked([warning(1, 300, serving=3)], 300).min_replicas == first.min_replicas == 3


def test_nodes_that_are_gone_are_no_risk_any_more():
    asked = rules()
    asked([warning(1, 0)], 0)
    assert asked([warning(2, 500)], 500).min_replicas == 2


def test_a_storm_shuts_spot_for_the_cooldown_and_recommendations_do_not():
    limit = BREAKER.interruptions
    storm = [warning(2 * number, number) for number in range(limit)]  # all in one of two zones
    shut = rules()(storm, limit)
    assert shut.spot_shut_until_seconds == pytest.approx(limit - 1 + BREAKER.cooldown_minutes * 60)
    hunches = [warning(2 * number, number, kind="rebalance") for number in range(4 * limit)]
    assert rules()(hunches, 4 * limit).spot_shut_until_seconds == 0


def test_a_family_without_on_demand_keeps_asking_for_spot():
    storm = [warning(2 * number, number) for number in range(BREAKER.interruptions)]
    assert rules(spot="only")(storm, 60).spot_shut_until_seconds == 0


def test_a_model_that_never_runs_on_spot_needs_no_rules():
    model = MODEL.model_copy(update={"spot": "never"})
    assert automation_factory(PLATFORM, model, START) is None


def test_each_run_begins_with_nothing_remembered():
    factory = automation_factory(PLATFORM, MODEL, START)
    factory()([warning(2 * number, number) for number in range(BREAKER.interruptions)], 60)
    assert factory()([warning(1, 60)], 60).spot_shut_until_seconds == 0


def scheduled(**schedule):
    return MODEL.model_copy(update={"schedule": Schedule.model_validate(schedule)})


OFFICE = {"time_zone": "Europe/Berlin", "awake": [{"days": "Mon-Fri", "start": "08:00", "end": "20:00"}]}


def test_without_a_schedule_a_model_is_always_awake():
    assert awake_seconds(MODEL, START, 86400) is None


def test_awake_hours_are_counted_from_the_start_with_the_lead():
    # Midnight UTC on a Monday in March is 01:00 in Berlin.
    assert awake_seconds(scheduled(**OFFICE), START, 86400) == ((7 * 3600, 19 * 3600),)
    led = scheduled(**OFFICE, wake_lead_minutes=30)
    assert awake_seconds(led, START, 86400) == ((6.5 * 3600, 19 * 3600),)


def test_a_model_asleep_all_the_time_has_no_awake_hours():
    saturday = datetime(2026, 3, 7, 12, tzinfo=UTC)
    assert awake_seconds(scheduled(**OFFICE), saturday, 3600) == ()


@given(st.integers(0, 366 * 24 * 4), st.integers(1, 10 * 24 * 4), st.integers(0, 90))
def test_intervals_say_the_same_as_the_rules_minute_by_minute(offset, quarters, lead):
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=15 * offset)
    model = scheduled(
        time_zone="America/New_York",
        awake=[
            {"days": "Mon-Thu", "start": "22:15", "end": "06:30"},
            {"days": "Sat", "start": "10:00", "end": "12:00"},
        ],
        wake_lead_minutes=lead,
    )
    found = awake_seconds(model, start, quarters * 900.0)
    schedule = windows.Schedule(
        zone="America/New_York",
        windows=tuple(window.window() for window in model.schedule.awake),
        wake_lead_minutes=lead,
    )
    for quarter in range(quarters):
        moment = quarter * 900.0
        awake = any(begin <= moment < end for begin, end in found)
        assert awake == windows.is_awake(schedule, start + timedelta(seconds=moment))
