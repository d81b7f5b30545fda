"""The daily look at what AWS has charged: few questions, honest numbers, each alert once, guardrails that undo."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from genai_finops.operations.budget import Budget, Threshold
from genai_finops.operations.pauses import PAUSED_REPLICAS
from lambdas.budget_alerts.prices import PRICE
from lambdas.budget_alerts.report import ReportError
from lambdas.memory import REPORT
from tests.integration.lambdas.events import fixture_event
from tests.integration.lambdas.world import model
from tests.support.kubernetes_api import Answer

TENTH = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)
FORECAST = {"Total": {"Amount": "410.5", "Unit": "USD"}, "ForecastResultsByTime": []}
NO_FORECAST = (400, {"__type": "DataUnavailableException", "message": "not enough data"})


def page(*lines, rest=None):
    """Lines are day, component, record type and amount."""
    results = [
        {
            "TimePeriod": {"Start": day, "End": day},
            "Total": {},
            "Groups": [
                {
                    "Keys": [f"genai-finops:component${component}", record],
                    "Metrics": {"UnblendedCost": {"Amount": amount, "Unit": "USD"}},
                }
            ],
            "Estimated": True,
        }
        for day, component, record, amount in lines
    ]
    return {"ResultsByTime": results, **({"NextPageToken": rest} if rest else {})}


def usage(amount, day="2026-03-08", component="serving-inf2"):
    return (day, component, "Usage", amount)


NOTHING = {
    "ResultsByTime": [
        {
            "TimePeriod": {"Start": "2026-03-01", "End": "2026-03-10"},
            "Total": {"UnblendedCost": {"Amount": "0", "Unit": "N/A"}},
            "Groups": [],
            "Estimated": True,
        }
    ]
}
UNTAGGED_ACCOUNT = {
    "ResultsByTime": [
        {
            "TimePeriod": {"Start": "2026-03-01", "End": "2026-03-10"},
            "Total": {},
            "Groups": [
                {
                    "Keys": ["genai-finops:platform$", "Usage"],
                    "Metrics": {"UnblendedCost": {"Amount": "812.5", "Unit": "USD"}},
                }
            ],
            "Estimated": True,
        }
    ]
}


@pytest.fixture
def world(world):
    world.clock.time = TENTH
    world.start(budget=Budget(Decimal(1000), (Threshold("actual", 80), Threshold("forecast", 100))))
    return world


def alert_subjects(world):
    return [subject for subject, _ in world.mail()]


def test_a_quiet_day_asks_twice_and_says_nothing(world):
    run = world.look_at_costs(page(usage("100")), FORECAST)
    assert [name for name, _ in run.requests] == ["GetCostAndUsage", "GetCostForecast"]
    assert run.result == {"gross_usd": "100", "alerts": []}
    assert world.mail() == []


def test_month_to_date_ends_where_the_forecast_begins(world):
    run = world.look_at_costs(page(usage("1")), FORECAST)
    periods = [request["TimePeriod"] for _, request in run.requests]
    assert periods == [{"Start": "2026-03-01", "End": "2026-03-10"}, {"Start": "2026-03-10", "End": "2026-04-01"}]


def test_on_the_first_day_of_a_month_nothing_is_asked_but_the_forecast(world):
    """Case 24."""
    world.clock.time = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
    run = world.look_at_costs(FORECAST)
    assert [name for name, _ in run.requests] == ["GetCostForecast"]
    assert run.result["gross_usd"] == "0"


def test_the_forecast_of_january_ends_on_the_first_of_february(world):
    """Case 26."""
    world.clock.time = datetime(2026, 1, 10, 9, 0, tzinfo=UTC)
    run = world.look_at_costs(page(usage("1", "2026-01-05")), FORECAST)
    assert run.requests[1][1]["TimePeriod"]["End"] == "2026-02-01"


def test_without_a_forecast_the_run_rate_stands_in_and_the_alert_goes_out(world):
    """Case 25."""
    lines = [usage("100", f"2026-03-0{day}") for day in range(1, 10)]
    run = world.look_at_costs(page(*lines), NO_FORECAST)
    assert run.result["alerts"] == ["2026-03/actual/80/1000", "2026-03/forecast/100/1000"]
    ((_, text),) = world.mail()
    assert "estimate from the run rate" in text
    assert "80% reached: $900.00 spent" in text


def test_a_forecast_that_fails_keeps_no_alert_back_and_fails_the_run(world):
    run = world.look_at_costs(page(usage("900")), (400, {"__type": "AccessDeniedException", "message": "no"}))
    assert isinstance(run.result, ReportError)
    assert "no forecast" in str(run.result)
    assert len(world.mail()) == 1


def test_all_pages_are_summed(world):
    """Case 27."""
    run = world.look_at_costs(page(usage("30"), rest="t2"), page(usage("12.5")), FORECAST)
    assert run.result["gross_usd"] == "42.5"
    assert run.requests[1][1]["NextPageToken"] == "t2"


def test_alerts_look_at_the_gross_and_show_the_net(world):
    """Case 28."""
    credit = ("2026-03-08", "", "Credit", "-900")
    run = world.look_at_costs(page(usage("900"), credit), FORECAST)
    assert run.result["gross_usd"] == "900"
    ((_, text),) = world.mail()
    assert "Month to date: $900.00, after credits $0.00" in text
    assert run.requests[1][1]["Filter"]["And"][1]["Not"]["Dimensions"]["Values"] == ["Credit", "Refund"]


def test_tiny_negative_amounts_in_scientific_notation_are_numbers(world):
    run = world.look_at_costs(page(usage("12.34"), usage("-3.1E-9")), FORECAST)
    assert Decimal(run.result["gross_usd"]) == Decimal("12.34") - Decimal("3.1E-9")


def test_a_tag_that_nobody_activated_is_said_so_once_a_month_and_is_no_zero_all_well(world):
    """Case 29: nothing carries the platform's tag, and the account spends."""
    for _ in range(2):
        run = world.look_at_costs(NOTHING, FORECAST, UNTAGGED_ACCOUNT)
        assert [name for name, _ in run.requests] == ["GetCostAndUsage", "GetCostForecast", "GetCostAndUsage"]
        assert run.result == {"gross_usd": "0", "alerts": []}
    ((_, text),) = world.mail()
    assert "$812.50 of this month carry no cost-allocation tag" in text


def test_spend_without_a_component_is_told_likewise(world):
    """Case 29: the platform's tag is active, the component's is not."""
    world.look_at_costs(page(usage("100", component="")), FORECAST)
    ((_, text),) = world.mail()
    assert "Activate genai-finops:platform and genai-finops:component" in text


def test_four_hundred_tag_values_are_one_question(world):
    """Case 30."""
    lines = [usage("1", component=f"part-{number}") for number in range(400)]
    run = world.look_at_costs(page(*lines), FORECAST)
    assert len(run.requests) == 2
    assert run.result["gross_usd"] == "400"
    assert run.requests[0][1]["GroupBy"] == [
        {"Type": "TAG", "Key": "genai-finops:component"},
        {"Type": "DIMENSION", "Key": "RECORD_TYPE"},
    ]


def test_the_fixture_answers_of_aws_are_understood(world):
    answer = fixture_event("ce_forecast")
    run = world.look_at_costs(page(usage("100")), answer)
    assert world.facts(REPORT)[0].what.forecast_usd == Decimal("510.5")
    assert not run.left


# Alerts and guardrails


def test_each_level_is_told_once_a_month(world):
    world.look_at_costs(page(usage("850")), FORECAST)
    world.pass_(hours=12)
    world.look_at_costs(page(usage("870")), FORECAST)
    assert alert_subjects(world) == ["demo: 80% of the budget of $1,000.00 spent"]
    world.clock.time = datetime(2026, 4, 10, 9, 0, tzinfo=UTC)
    world.look_at_costs(page(usage("850", "2026-04-08")), FORECAST)
    assert alert_subjects(world) == ["demo: 80% of the budget of $1,000.00 spent"]


def test_a_budget_that_is_raised_and_reached_again_is_news(world):
    world.look_at_costs(page(usage("850")), FORECAST)
    world.start(budget=Budget(Decimal(1050), world.config.budget.thresholds))
    world.look_at_costs(page(usage("850")), FORECAST)
    assert len(world.mail()) == 2


def guarded(world, *thresholds, **settings):
    world.serve("vip")
    models = (model(), model("vip", critical=True))
    world.start(models=models, budget=Budget(Decimal(1000), thresholds), **settings)


def test_a_guardrail_puts_non_critical_models_to_sleep_and_announces_it(world):
    guarded(world, Threshold("actual", 80, "sleep_non_critical"))
    world.look_at_costs(page(usage("850")), FORECAST)
    assert world.annotations("chat")[PAUSED_REPLICAS] == "0"
    assert world.annotations("vip") == {}
    assert sorted(alert_subjects(world)) == [
        "demo: 80% of the budget of $1,000.00 spent",
        "demo: budget guardrails in force",
    ]


def test_a_guardrail_caps_replicas_and_the_month_lifts_it(world):
    guarded(world, Threshold("actual", 80, "cap_replicas", 2))
    world.look_at_costs(page(usage("850")), FORECAST)
    maxima = [world.scaled(name)["spec"]["maxReplicaCount"] for name in ("chat", "vip")]
    assert maxima == [2, 4]
    world.mail()
    world.clock.time = datetime(2026, 4, 1, 0, 5, tzinfo=UTC)
    world.tick()
    world.tick()
    assert world.scaled("chat")["spec"]["maxReplicaCount"] == 4
    assert alert_subjects(world) == ["demo: budget guardrails lifted"]


def test_a_guardrail_is_lifted_by_raising_the_budget(world):
    guarded(world, Threshold("actual", 80, "cap_replicas", 2))
    world.look_at_costs(page(usage("850")), FORECAST)
    world.start(budget=Budget(Decimal(5000), world.config.budget.thresholds))
    world.tick()
    assert world.scaled("chat")["spec"]["maxReplicaCount"] == 4


def test_on_demand_is_turned_off_where_no_critical_model_needs_it(world):
    world.start(budget=Budget(Decimal(1000), (Threshold("actual", 80, "on_demand_off"),)))
    world.look_at_costs(page(usage("850")), FORECAST)
    assert world.limits("inf2-on-demand")["nodes"] == "0"
    assert "nodes" not in world.limits("inf2-spot")


def test_an_alert_goes_out_though_the_cluster_does_not_answer(world):
    world.api.inject(Answer(503))
    run = world.look_at_costs(page(usage("850")), FORECAST)
    assert isinstance(run.result, ReportError)
    ((_, text),) = world.mail()
    assert "the cluster does not answer" in text


def test_guardrails_stay_in_force_though_cost_explorer_does_not_answer(world):
    guarded(world, Threshold("actual", 80, "cap_replicas", 2))
    world.look_at_costs(page(usage("850")), FORECAST)
    world.change("scaledobjects", {"spec": {"maxReplicaCount": 4}})
    run = world.look_at_costs((400, {"__type": "AccessDeniedException", "message": "no"}))
    assert "does not say what was spent" in str(run.result)
    assert world.scaled("chat")["spec"]["maxReplicaCount"] == 2


# Tokens, digests


def prices(world):
    return {fact.what.model: fact.what.price for fact in world.facts(PRICE)}


def test_a_million_tokens_cost_what_aws_charged_on_the_day_they_were_served(world):
    world.tokens = {"chat": (1_000_000, 250_000)}
    world.look_at_costs(page(usage("50", "2026-03-08"), usage("999", "2026-03-07")), NO_FORECAST)
    assert prices(world)["chat"].input == Decimal(25)
    assert prices(world)["chat"].output == Decimal(100)
    asked = [request.query for request in world.api.asked("proxy") if "prompt_tokens" in request.query["query"]]
    assert asked[0]["time"] == f"{datetime(2026, 3, 9, tzinfo=UTC).timestamp():.3f}"


def test_without_tokens_the_price_is_not_available(world):
    """Case 32."""
    world.start(daily_digest=True)
    world.look_at_costs(page(usage("50")), FORECAST)
    assert (prices(world)["chat"].input, prices(world)["chat"].output) == (None, None)
    ((_, text),) = world.mail()
    assert "chat per 1M tokens: n/a input, n/a output" in text


def test_models_of_one_family_share_its_bill_by_the_hours_and_worth_of_their_replicas(world):
    world.serve("code", node="n2", instance="i-0000000000000002")
    world.start(models=(model(), model("code")))
    world.tokens = {"chat": (1_000_000, 0), "code": (1_000_000, 0)}
    world.samples = {"chat": 3000, "code": 1000}
    world.look_at_costs(page(usage("40")), FORECAST)
    assert {name: price.input for name, price in prices(world).items()} == {"chat": 30, "code": 10}


def test_a_price_that_jumps_a_hundredfold_is_not_believed(world):
    world.start(daily_digest=True)
    world.tokens = {"chat": (1_000_000, 0)}
    world.look_at_costs(page(usage("1")), FORECAST)
    world.pass_(days=1)
    world.look_at_costs(page(usage("500", "2026-03-09")), FORECAST)
    assert "not believed" in world.mail()[1][1]


def test_without_prometheus_costs_are_told_all_the_same(world):
    world.api.inject(Answer(503), verb="proxy")
    run = world.look_at_costs(page(usage("850")), FORECAST)
    assert run.result["gross_usd"] == "850"
    assert len(world.mail()) == 1


def test_what_runs_now_is_shown_as_an_estimate_beside_what_aws_says(world):
    world.start(daily_digest=True)
    world.look_at_costs(page(usage("50")), FORECAST)
    ((_, text),) = world.mail()
    assert "Nodes running now: $0.30 an hour (spot $0.30), estimate at catalog prices" in text


def test_a_digest_comes_once_a_day_when_asked_for(world):
    world.start(daily_digest=True, first_of_month=True)
    for _ in range(2):
        world.look_at_costs(page(usage("50")), FORECAST)
    world.pass_(days=1)
    world.look_at_costs(page(usage("50")), FORECAST)
    assert len(world.mail()) == 2


def test_the_first_message_of_a_month_comes_once_when_asked_for(world):
    world.start(first_of_month=True)
    for _ in range(2):
        world.look_at_costs(page(usage("50")), FORECAST)
        world.pass_(days=1)
    assert len(world.mail()) == 1


def test_a_platform_without_a_budget_still_knows_what_it_costs(world):
    world.start(budget=None)
    assert world.look_at_costs(page(usage("850")), FORECAST).result == {"gross_usd": "850", "alerts": []}
