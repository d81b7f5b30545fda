"""What the cluster should look like, and why."""

from dataclasses import replace

import pytest

from genai_finops.operations.budget import Threshold
from genai_finops.operations.desired import Rule, desired_state
from genai_finops.operations.holds import HOLD
from genai_finops.operations.losses import SignKind
from genai_finops.operations.observed import Observed, Replicas
from genai_finops.operations.pauses import FORCE_ACTIVATION, PAUSED_REPLICAS, asleep
from tests.unit.operations.worlds import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    OFFICE,
    ON_DEMAND,
    OTHER_POOL,
    POOL,
    SECOND,
    SPOT_POOL,
    budget,
    config,
    facts,
    model,
    node,
    observed,
    report,
    shown,
    sign,
    storm,
)

EVENING = NOW.replace(hour=20)
SLEEP = Threshold("actual", 80, "sleep_non_critical")
CAP = Threshold("actual", 80, "cap_replicas", 3)
ON_DEMAND_OFF = Threshold("actual", 80, "on_demand_off")


def desired(given=None, known=(), seen=None, now=NOW):
    return desired_state(given or config(), facts(*known), seen or observed(), now)


def chat(*args, **settings):
    return desired(*args, **settings).models["chat"]


def rules(found):
    return [reason.rule for reason in found.reasons]


def held(text):
    return observed(shown({HOLD: text}))


def until(moment):
    return f"until {moment.isoformat()}"


office = config(model(schedule=OFFICE))


# Schedule


def test_within_its_hours_a_model_is_awake_and_as_the_file_says():
    found = chat(office)
    assert (found.asleep, found.minimum, found.maximum) == (False, 1, 10)
    assert found.reasons[0].until == EVENING


def test_outside_its_hours_it_sleeps():
    found = chat(office, now=EVENING)
    assert found.asleep
    assert found.annotations[PAUSED_REPLICAS] == "0"


def test_a_model_without_a_schedule_is_always_awake():
    assert not chat(now=NOW + 15 * HOUR).asleep


def test_a_model_woken_by_hand_outside_its_hours_sleeps_again_at_the_next_evaluation():
    """Case 14."""
    by_hand = observed(shown({}, replicas=2, requests=9))
    assert chat(office, seen=by_hand, now=EVENING + 2 * HOUR).asleep


def test_prometheus_is_not_needed_to_wake():
    """Case 20."""
    sleeping = shown({k: v for k, v in asleep({}).annotations.items() if v}, replicas=0, requests=None)
    found = chat(office, seen=observed(sleeping))
    assert found.waking
    assert found.annotations[FORCE_ACTIVATION] == "true"
    assert Rule.WAKING in rules(found)


# Requests in flight


@pytest.mark.parametrize("requests", [1, None])
def test_a_busy_model_finishes_before_it_sleeps(requests):
    busy = observed(shown(requests=requests))
    found = chat(office, seen=busy, now=EVENING + 14 * MINUTE)
    assert not found.asleep
    assert found.reasons[-1].rule is Rule.BUSY
    assert found.reasons[-1].until == EVENING + 15 * MINUTE


def test_an_idle_one_sleeps_at_once():
    assert chat(office, seen=observed(shown(requests=0)), now=EVENING).asleep


def test_a_model_that_never_gets_idle_sleeps_at_the_limit():
    assert chat(office, seen=observed(shown(requests=9)), now=EVENING + 15 * MINUTE).asleep


def test_the_limit_is_never_less_than_a_drain():
    impatient = config(model(schedule=OFFICE, sleep_busy_limit_minutes=0, drain_seconds=90))
    busy = observed(shown(requests=9))
    assert not chat(impatient, seen=busy, now=EVENING + 89 * SECOND).asleep
    assert chat(impatient, seen=busy, now=EVENING + 90 * SECOND).asleep


def test_a_model_that_sleeps_already_is_not_woken_by_requests_that_wait():
    sleeping = shown({k: v for k, v in asleep({}).annotations.items() if v}, requests=9)
    assert chat(office, seen=observed(sleeping), now=EVENING + MINUTE).asleep


def test_after_a_hold_requests_may_finish_too():
    busy = shown({HOLD: f"awake {until(EVENING + 3 * HOUR)}"}, requests=5)
    assert not chat(office, seen=observed(busy), now=EVENING + 3 * HOUR + 14 * MINUTE).asleep
    assert chat(office, seen=observed(busy), now=EVENING + 3 * HOUR + 15 * MINUTE).asleep


def test_a_hold_that_ended_before_the_hours_did_adds_no_wait():
    busy = shown({HOLD: f"awake {until(EVENING - HOUR)}"}, requests=5)
    assert not chat(office, seen=observed(busy), now=EVENING + 14 * MINUTE).asleep
    assert chat(office, seen=observed(busy), now=EVENING + 15 * MINUTE).asleep


def test_after_a_hold_over_a_long_weekend_requests_may_finish_too():
    sunday_night = EVENING + 4 * DAY + 2 * HOUR
    busy = shown({HOLD: f"awake {until(sunday_night)}"}, requests=5)
    assert not chat(office, seen=observed(busy), now=sunday_night + 14 * MINUTE).asleep
    assert chat(office, seen=observed(busy), now=sunday_night + 15 * MINUTE).asleep


def test_a_guardrail_adds_no_wait_to_a_night_that_has_begun_before():
    guarded = config(model(schedule=OFFICE), budget=budget(SLEEP))
    late = EVENING + HOUR
    assert chat(guarded, [report(800, late)], observed(shown(requests=9)), late + MINUTE).asleep


# Holds


def test_a_hold_keeps_a_model_awake_until_it_expires_and_not_a_second_longer():
    seen = held(f"awake {until(EVENING + HOUR)}")
    assert not chat(office, seen=seen, now=EVENING + HOUR - SECOND).asleep
    assert chat(office, seen=seen, now=EVENING + HOUR).asleep


def test_a_hold_keeps_a_model_asleep_until_it_expires_and_not_a_second_longer():
    seen = held(f"asleep {until(NOW + HOUR)}")
    assert chat(office, seen=seen, now=NOW + HOUR - SECOND).asleep
    assert not chat(office, seen=seen, now=NOW + HOUR).asleep


def test_a_person_may_put_a_critical_model_to_sleep():
    assert chat(config(model(critical=True)), seen=held(f"asleep {until(NOW + HOUR)}")).asleep


def test_a_bad_hold_is_told_and_not_obeyed():
    found = desired(office, seen=held("awake until tomorrow"), now=EVENING)
    assert found.models["chat"].asleep
    assert "'tomorrow' is not a time" in found.notices[0].text


# Guardrails


def over(*thresholds, **settings):
    return config(model(**settings), budget=budget(*thresholds))


def test_a_guardrail_puts_models_to_sleep_that_are_not_critical():
    found = chat(over(SLEEP), [report(800, NOW - HOUR)])
    assert found.asleep
    assert Rule.GUARDRAIL in rules(found)


def test_no_guardrail_touches_a_critical_model():
    thrifty = over(SLEEP, CAP, ON_DEMAND_OFF, critical=True)
    assert chat(thrifty, [report(5000, NOW - HOUR)]) == chat(thrifty)


def test_a_guardrail_caps_the_maximum():
    assert chat(over(CAP), [report(800)]).maximum == 3
    assert chat(over(CAP, max_replicas=2), [report(800)]).maximum == 2


def test_a_cap_never_goes_below_the_minimum():
    found = chat(over(CAP, min_replicas=5), [report(800)])
    assert (found.minimum, found.maximum) == (5, 5)


def test_a_hold_goes_before_a_guardrail_that_would_put_it_to_sleep_and_not_before_its_cap():
    found = chat(over(SLEEP, CAP), [report(800)], held(f"awake {until(NOW + HOUR)}"))
    assert (found.asleep, found.maximum) == (False, 3)


def test_guardrails_are_lifted_when_the_month_begins():
    spent = [report(800, NOW)]
    end = NOW.replace(month=4, day=1, hour=0)
    assert chat(over(SLEEP), spent, now=end - SECOND).asleep
    assert not chat(over(SLEEP), spent, now=end).asleep


def test_guardrails_are_lifted_by_raising_the_budget():
    raised = config(model(), budget=budget(SLEEP, monthly="2000"))
    assert not chat(raised, [report(800)]).asleep


def test_warm_capacity_is_the_first_thing_to_give_up():
    warm = {"placeholders": 2, "placeholder_deployment": "chat-warm"}
    assert chat(config(model(**warm))).placeholders == 2
    assert chat(over(CAP, **warm), [report(800)]).placeholders == 0
    assert chat(over(CAP, critical=True, **warm), [report(800)]).placeholders == 2


def test_warm_capacity_sleeps_with_its_model_even_while_that_is_busy():
    warm = config(model(schedule=OFFICE, placeholders=2, placeholder_deployment="chat-warm"))
    found = chat(warm, seen=observed(shown(requests=3)), now=EVENING)
    assert (found.asleep, found.placeholders) == (False, 0)


# Losses


def test_a_warning_raises_the_minimum_of_the_models_on_the_node():
    """Case 8."""
    found = chat(known=[sign()], seen=observed(nodes=[node(replicas={"chat": 2})]))
    assert found.minimum == 3
    assert rules(found) == [Rule.SCHEDULE, Rule.LOSS]


def test_a_raised_minimum_stays_below_the_guardrail_s_cap():
    found = chat(over(CAP), [report(800), sign()], observed(nodes=[node(replicas={"chat": 8})]))
    assert (found.minimum, found.maximum) == (3, 3)


def test_a_sleeping_model_is_not_warmed():
    found = chat(office, [sign(at=EVENING)], observed(nodes=[node(replicas={"chat": 1})]), now=EVENING)
    assert (found.asleep, found.minimum) == (True, 1)


# NodePools


def shut(*args, **settings):
    return {name for name, pool in desired(*args, **settings).node_pools.items() if pool.is_shut}


def test_a_storm_shuts_spot_off_until_the_cooldown_is_over():
    """Case 7."""
    assert shut(known=storm()) == {SPOT_POOL.name}
    assert shut(known=storm(), now=storm()[-1].at + HOUR) == set()


def test_spot_rests_until_the_last_of_its_pools_may_be_asked_again():
    first, second = storm(), storm(pool=OTHER_POOL, first=NOW - 10 * MINUTE)
    found = desired(known=[*first, *second]).node_pools[SPOT_POOL.name]
    assert found.reasons[0].until == second[-1].at + HOUR


def test_thirty_recommendations_shut_nothing():
    """Case 6."""
    assert shut(known=storm(30, every=SECOND, kind=SignKind.REBALANCE)) == set()


def test_a_family_s_last_node_pool_is_never_shut_by_the_breaker():
    found = desired(config(node_pools=(SPOT_POOL,)), storm())
    assert not found.node_pools[SPOT_POOL.name].is_shut
    assert "has no other NodePool open" in found.notices[-1].text


def test_with_on_demand_off_a_storm_does_not_leave_a_family_without_nodes():
    assert shut(over(ON_DEMAND_OFF), [report(800), *storm()]) == {ON_DEMAND.name}


def test_models_that_only_run_on_spot_are_named_when_it_is_shut():
    found = desired(config(model(spot="only"), model("code")), storm(), observed({"chat": shown(), "code": shown()}))
    assert [notice.text for notice in found.notices] == [
        "chat may only run on Spot and gets no new nodes while inf2-spot rests"
    ]


def test_on_demand_is_turned_off_by_a_guardrail():
    found = desired(over(ON_DEMAND_OFF), [report(800)])
    assert {name for name, pool in found.node_pools.items() if pool.is_shut} == {ON_DEMAND.name}
    assert found.notices == ()


def test_models_that_never_run_on_spot_are_named_when_on_demand_is_off():
    found = desired(over(ON_DEMAND_OFF, spot="never"), [report(800)])
    assert found.node_pools[ON_DEMAND.name].is_shut
    assert [notice.text for notice in found.notices] == [
        "chat never runs on Spot and gets no new nodes while inf2-on-demand is shut"
    ]


def test_on_demand_stays_where_a_critical_model_may_need_it():
    critical = config(model(), model("code", critical=True), budget=budget(ON_DEMAND_OFF))
    found = desired(critical, [report(800)], observed({"chat": shown(), "code": shown()}))
    assert not any(pool.is_shut for pool in found.node_pools.values())
    assert "code is critical and may need it" in found.notices[-1].text


def test_someone_s_limit_of_nodes_is_left_alone_until_a_storm():
    seen = observed(limits={SPOT_POOL.name: "40"})
    assert desired(seen=seen).node_pools[SPOT_POOL.name].nodes_limit == "40"
    assert shut(known=storm(), seen=seen) == {SPOT_POOL.name}


# The cluster is not always complete


def test_what_the_cluster_does_not_have_is_told():
    found = desired(seen=Observed())
    assert (found.models, found.node_pools) == ({}, {})
    assert [notice.key for notice in found.notices] == [
        "chat/missing",
        "inf2-spot/missing",
        "inf2-on-demand/missing",
    ]


def test_someone_s_pause_is_left_alone_while_awake_and_told():
    found = desired(seen=observed(shown({PAUSED_REPLICAS: "2"})))
    assert found.models["chat"].annotations[PAUSED_REPLICAS] == "2"
    assert found.models["chat"].someone
    assert "pinned by autoscaling.keda.sh/paused-replicas: '2'" in found.notices[0].text


def test_facts_of_the_future_are_not_known():
    later = [sign(at=NOW + SECOND), report(5000, NOW + SECOND), *storm(first=NOW + SECOND)]
    assert desired(over(SLEEP), later) == desired(over(SLEEP), [])


def test_another_zone_s_storm_counts_for_the_node_pools_that_use_it():
    assert shut(known=storm(pool=OTHER_POOL)) == {SPOT_POOL.name}
    elsewhere = [replace(SPOT_POOL, zones=("us-east-1c",)), ON_DEMAND]
    assert shut(config(node_pools=tuple(elsewhere)), storm(pool=POOL)) == set()


def test_a_model_that_still_runs_ahead_of_its_hours_is_not_pinned_while_busy():
    finishing = shown({}, replicas=Replicas(0, 1, 1), requests=2)
    found = chat(office, seen=observed(finishing), now=EVENING + MINUTE)
    assert (found.asleep, found.waking) == (False, False)


def test_a_level_reached_days_ago_waits_for_no_request():
    found = chat(over(SLEEP), [report(800, NOW - DAY)], observed(shown(requests=9)))
    assert found.asleep
