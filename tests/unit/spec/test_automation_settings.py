"""Settings of the run-time automation: what they may be, what is said of mistakes, and that each reaches the rules."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings

from genai_finops.operations.breaker import BreakerPolicy
from genai_finops.operations.budget import Threshold
from genai_finops.operations.config import OperationsConfig
from genai_finops.operations.prewarm import PrewarmPolicy
from genai_finops.operations.windows import Hours, SpecialDays
from genai_finops.spec import automation, names
from genai_finops.spec.automation import operations_config
from lambdas import runtime
from lambdas.budget_alerts import spend
from tests import strategies
from tests.platform_files import FILES, platform
from tests.unit.spec.files import ALERTED, accepted, assert_says, only, refused

MODEL = "models[0]"
SCHEDULE = {"time_zone": "UTC", "awake": [{"days": "Mon-Fri", "start": "07:00", "end": "19:00"}]}
BUDGET = {"monthly_usd": 1000, "actual_thresholds_percent": [50, 80], "forecast_thresholds_percent": [100]}


def config(changes=None):
    return operations_config(accepted(changes))


def excepted(*exceptions, **more):
    return {f"{MODEL}.schedule": {**SCHEDULE, "exceptions": list(exceptions), **more}}


def guarded(*guardrails, **budget):
    return {"budget": {**BUDGET, "guardrails": list(guardrails), **budget}, "notifications": ALERTED}


def guardrail(basis="actual", percent=80, action="sleep_non_critical", **more):
    return {"basis": basis, "percent": percent, "action": action, **more}


# Into the configuration of the functions


@pytest.mark.parametrize("name", FILES)
def test_the_configuration_of_each_platform_reads_back_as_it_was(name):
    made = operations_config(platform(name))
    assert OperationsConfig.from_json(made.to_json()) == made


@given(strategies.platforms())
@settings(max_examples=40)
def test_the_configuration_of_any_platform_reads_back_as_it_was(any_platform):
    made = operations_config(any_platform)
    assert OperationsConfig.from_json(made.to_json()) == made
    assert [model.name for model in made.models] == [model.name for model in any_platform.models]
    assert {pool.family for pool in made.node_pools} == set(any_platform.families)


def test_what_the_smallest_file_leaves_out_is_what_the_rules_take_by_themselves():
    made = config()
    assert (made.breaker, made.prewarm, made.budget) == (BreakerPolicy(), PrewarmPolicy(), None)
    assert made.output_token_weight == OperationsConfig("x", "y", ()).output_token_weight
    (model,) = made.models
    assert (model.critical, model.schedule, model.placeholders) == (False, None, 0)
    assert (made.daily_digest, made.first_of_month) == (False, False)


def test_every_setting_of_interruptions_reaches_the_rules():
    breaker = {"window_minutes": 7, "interruptions": 3, "cooldown_minutes": 11, "max_doublings": 2}
    made = config(
        {"interruptions": {"breaker": breaker | {"shut_percent_of_zones": 50}, "prewarm": {"hold_seconds": 61}}}
    )
    assert made.breaker == BreakerPolicy(7, 3, 11, 2, 50)
    assert made.prewarm == PrewarmPolicy(61)


def test_every_setting_of_a_model_reaches_the_rules():
    hours = [{"start": "10:00", "end": "14:00"}]
    changes = excepted(
        {"first": "2026-12-24", "last": "2026-12-26"},
        {"first": "2026-12-31", "awake": hours},
        wake_lead_minutes=12,
        sleep_busy_limit_minutes=34,
    )
    (model,) = config({**changes, f"{MODEL}.critical": True, f"{MODEL}.spot": "only"}).models
    assert (model.critical, model.spot, model.sleep_busy_limit_minutes) == (True, "only", 34)
    assert model.schedule.wake_lead_minutes == 12
    assert model.schedule.special_days == (
        SpecialDays(date(2026, 12, 24), date(2026, 12, 26)),
        SpecialDays(date(2026, 12, 31), date(2026, 12, 31), (Hours(600, 840),)),
    )


def test_placeholders_are_steered_and_a_buffer_is_karpenters():
    [placeholders] = config({f"{MODEL}.warm_capacity.replicas": 2}).models
    assert (placeholders.placeholders, placeholders.placeholder_deployment) == (2, "warm-llama3-8b")
    [buffer] = config({f"{MODEL}.warm_capacity": {"replicas": 2, "kind": "buffer"}}).models
    [none] = config().models
    for model in (buffer, none):
        assert (model.placeholders, model.placeholder_deployment) == (0, None)


def test_a_threshold_only_notifies_unless_a_guardrail_says_more():
    made = config(guarded(guardrail(action="cap_replicas", replicas=2)))
    assert made.budget.monthly_usd == Decimal(1000)
    assert made.budget.thresholds == (
        Threshold("actual", 50),
        Threshold("actual", 80, "cap_replicas", 2),
        Threshold("forecast", 100),
    )


def test_the_messages_that_are_wanted_reach_the_function():
    report = {"daily_digest": True, "first_of_month": True, "output_token_weight": 3}
    found = accepted({"budget": {"monthly_usd": 1}, "cost_report": report, "notifications": ALERTED})
    made = operations_config(found)
    assert (made.daily_digest, made.first_of_month, made.output_token_weight) == (True, True, 3)


def test_prices_are_those_of_every_type_that_may_be_launched():
    made = config({f"{MODEL}.accelerator.sizes": ["8xlarge", "24xlarge"]})
    assert list(made.prices) == ["inf2.24xlarge", "inf2.8xlarge"]
    assert list(config({f"{MODEL}.accelerator.sizes": ["xlarge"]}).prices) == [
        "inf2.8xlarge",
        "inf2.xlarge",
    ]  # to compile
    assert all(price.on_demand > price.spot > 0 for price in made.prices.values())


@pytest.mark.parametrize(
    ("spot", "pools"),
    [
        ("prefer", [("inf2-spot", "spot"), ("inf2-on-demand", "on-demand")]),
        ("only", [("inf2-spot", "spot")]),
        ("never", [("inf2-on-demand", "on-demand")]),
    ],
)
def test_node_pools_are_those_of_the_charts(spot, pools):
    made = config({f"{MODEL}.spot": spot})
    assert [(pool.name, pool.capacity_type) for pool in made.node_pools] == pools


def test_the_command_prints_the_configuration_and_says_what_is_wrong_with_a_file(capsys, tmp_path):
    automation.main(str(FILES["minimal"]))
    assert OperationsConfig.from_json(capsys.readouterr().out) == operations_config(platform("minimal"))
    with pytest.raises(SystemExit, match="does not exist"):
        automation.main(str(tmp_path / "none.yaml"))


def test_names_that_the_functions_spell_out_are_those_of_the_platform():
    assert (runtime.PROMETHEUS_SERVICE, runtime.PROMETHEUS_PORT) == (names.PROMETHEUS_SERVICE, names.PROMETHEUS_PORT)
    assert runtime.PROMETHEUS_NAMESPACE == names.MONITORING_NAMESPACE
    assert (spend.PLATFORM_TAG, spend.COMPONENT_TAG) == (names.PLATFORM_TAG, names.COMPONENT_TAG)


# Mistakes


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("interruptions.breaker.interruptions", 0),
        ("interruptions.breaker.max_doublings", 11),
        ("interruptions.breaker.shut_percent_of_zones", 101),
        ("interruptions.prewarm.hold_seconds", 59),
        ("cost_report.output_token_weight", 0),
    ],
)
def test_numbers_out_of_range_are_refused_with_the_range(path, value):
    problem = only(refused({path: value}))
    assert (problem.path, problem.found) == (path, f"is {value}")
    assert "from" in problem.why


@pytest.mark.parametrize("field", ["wake_lead_minutes", "sleep_busy_limit_minutes"])
def test_a_wait_is_a_day_at_most(field):
    accepted(excepted(**{field: 1440}))
    assert only(refused(excepted(**{field: 1441}))).path == f"{MODEL}.schedule.{field}"


@pytest.mark.parametrize("written", ["2026-02-30", "24.12.2026", "tomorrow"])
def test_a_date_that_is_none_is_answered_with_one(written):
    problem = only(refused(excepted({"first": written})))
    assert (problem.path, problem.found) == (f"{MODEL}.schedule.exceptions[0].first", f"is {written!r}")
    assert problem.why == "It must be a date such as 2026-12-24."


@pytest.mark.parametrize(
    ("exception", "said"),
    [
        ({"first": "2026-12-26", "last": "2026-12-24"}, "run from the first to the last"),
        ({"first": "2026-12-24", "last": "2126-12-24"}, "run from the first to the last"),
        ({"first": "2026-12-24", "awake": [{"start": "24:00", "end": "24:00"}]}, "24:00 is 00:00 of the next day"),
    ],
)
def test_special_days_that_make_no_sense_are_shown_with_an_example(exception, said):
    problem = only(refused(excepted(exception)))
    assert problem.path == f"{MODEL}.schedule.exceptions[0]"
    assert said in problem.why
    assert "first: 2026-12-24" in problem.fix


def test_a_date_is_special_once():
    problem = only(refused(excepted({"first": "2026-12-24", "last": "2026-12-26"}, {"first": "2026-12-25"})))
    assert problem.path == f"{MODEL}.schedule.exceptions[1]"
    assert problem.why == "exceptions[0] has hours for 2026-12-25 already."


def test_a_guardrail_stands_at_a_threshold_that_there_is():
    changes = guarded(guardrail(percent=79))
    assert_says(changes, "budget.guardrails[0].percent", "is 79", "Use 50 or 80, or add it there.")
    changes = guarded(guardrail("forecast", 80), forecast_thresholds_percent=[])
    assert_says(changes, "budget.guardrails[0].percent", "is 80", "Add it there.")


def test_a_threshold_has_one_guardrail():
    changes = guarded(guardrail(), guardrail(action="on_demand_off"))
    assert_says(changes, "budget.guardrails[1].percent", "is 80", "add another threshold")


def test_a_cap_says_how_many_replicas_and_nothing_else_does():
    path = "budget.guardrails[0].replicas"
    assert_says(guarded(guardrail(action="cap_replicas")), path, "is missing", "at least 1")
    assert_says(guarded(guardrail(action="on_demand_off", replicas=2)), path, "is 2", "Leave it out")


def test_a_guardrail_that_could_touch_no_model_is_refused():
    changes = {**guarded(guardrail()), f"{MODEL}.critical": True}
    assert_says(changes, "budget.guardrails[0].action", "is sleep_non_critical", "take critical from a model")


def test_an_action_that_there_is_not_is_answered_with_those_there_are():
    problem = only(refused(guarded(guardrail(action="notify"))))
    assert problem.fix == "Use cap_replicas, on_demand_off or sleep_non_critical."


@pytest.mark.parametrize("field", ["daily_digest", "first_of_month"])
def test_a_digest_needs_somebody_to_read_it(field):
    path = f"cost_report.{field}"
    assert_says({path: True}, path, "is true", "Add notifications.emails")
    assert_says({path: True, "notifications": ALERTED}, path, "is true", "Set budget.monthly_usd")
