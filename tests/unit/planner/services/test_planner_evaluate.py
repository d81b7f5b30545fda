"""A platform under traffic: three runs each, priced, judged, and the same form whatever happens."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from genai_finops.planner.evaluate import simulate_platform
from genai_finops.planner.fixed_cost import fixed_monthly_cost, serving_cost
from genai_finops.planner.objectives import verdict
from genai_finops.planner.present.as_json import encoded
from genai_finops.spec.platform import Budget
from tests.platform_files import platform
from tests.unit.planner.services.service_worlds import NAME, TODAY, Made, changed, poisson, scaled

QUIET = poisson(0.1, 7200)
TOO_MUCH = poisson(6.0, 1800, output_tokens=400)


def simulated(of, traffic, **more):
    return simulate_platform(of, {NAME: traffic}, today=TODAY, **more)


@pytest.fixture(scope="module")
def quiet():
    return simulated(platform("default"), QUIET)


def test_the_total_is_the_fixed_cost_and_every_model(quiet):
    (model,) = quiet.models
    assert quiet.fixed_monthly_usd == fixed_monthly_cost(platform("default"), TODAY).monthly_usd
    assert sum(line.monthly_usd for line in quiet.fixed_lines) == quiet.fixed_monthly_usd
    assert quiet.serving_monthly_usd == model.nominal.monthly.total_usd
    assert quiet.total_monthly_usd == quiet.fixed_monthly_usd + quiet.serving_monthly_usd
    assert quiet.total_low_monthly_usd <= quiet.total_monthly_usd <= quiet.total_high_monthly_usd


def test_one_replica_all_month_costs_what_the_arithmetic_without_traffic_says(quiet):
    (cost,) = serving_cost(platform("default"))
    assert float(quiet.serving_monthly_usd) == pytest.approx(float(cost.at_min_usd("spot")), rel=1e-6)


def test_intervals_add_up_to_the_run(quiet):
    (model,) = quiet.models
    run = model.nominal
    assert sum(each.usd for each in model.intervals) == pytest.approx(run.simulated.total_usd)
    assert sum(each.arrived for each in model.intervals) == run.counts.arrived
    hours = sum(cost.node_hours for each in model.intervals for cost in each.costs)
    assert hours == pytest.approx(run.spot_node_hours + run.on_demand_node_hours)
    for each in model.intervals:
        for cost in each.costs:
            assert cost.usd == pytest.approx(cost.node_hours * (cost.usd_hour + cost.volume_usd_hour))


def test_a_load_that_is_carried_holds_and_the_exit_code_says_so(quiet):
    (model,) = quiet.models
    assert model.verdict == "holds"
    assert model.nominal.attainment_share == model.nominal.counts.good / model.nominal.counts.arrived
    assert quiet.exit_code == 0


def test_a_load_that_is_not_carried_does_not_hold_and_the_exit_code_says_so():
    answer = simulated(scaled(max_replicas=1), TOO_MUCH)
    (model,) = answer.models
    assert model.verdict == "does not hold"
    assert answer.exit_code == 2
    assert any("max_replicas" in warning.path for warning in model.warnings)
    assert any("not completed" in warning.message for warning in model.warnings)


def test_near_saturation_a_percentile_is_a_band_with_its_reason(quiet):
    assert quiet.models[0].band_reason == ""
    (model,) = simulated(scaled(max_replicas=1), TOO_MUCH).models
    assert "of what the ready replicas can carry" in model.band_reason
    band = model.band(lambda run: run.time_to_first_token.p95_seconds)
    assert band[0] <= band[1] <= band[2]


def test_the_error_bar_shows_in_the_latency(quiet):
    (model,) = quiet.models
    fast, nominal, slow = (run.time_to_first_token.mean_seconds for run in (model.fast, model.nominal, model.slow))
    assert fast < nominal < slow


def test_a_higher_spot_price_never_lowers_the_cost():
    costs = [
        simulated(platform("default"), QUIET, spot_factor=Decimal(factor)).total_monthly_usd
        for factor in ("0.5", "1", "2", "10")
    ]
    assert costs == sorted(costs)
    assert len(set(costs)) == 4


def test_the_same_seed_gives_the_same_answer():
    assert simulated(platform("default"), QUIET, seed=3) == simulated(platform("default"), QUIET, seed=3)


@pytest.mark.parametrize(
    "traffic",
    [Made([], duration=3600), Made([0.0]), Made([0.0, 1.0], input_tokens=9000), poisson(0.1, 600, output_tokens=1)],
    ids=["no requests", "one request", "none that fits", "one token each"],
)
def test_whatever_happens_the_form_is_the_same_and_no_number_is_infinite(traffic, quiet):
    answer = simulated(platform("default"), traffic)
    text = json.dumps(encoded(answer), allow_nan=False)
    again = json.loads(text)

    def form(value):
        return {key: form(each) for key, each in value.items()} if isinstance(value, dict) else None

    expected = json.loads(json.dumps(encoded(quiet)))
    for part in ("counts", "monthly", "unit_cost", "simulated"):
        assert form(again["models"][0]["nominal"][part]) == form(expected["models"][0]["nominal"][part])
    assert form(again) == form(expected)


def test_without_a_request_there_is_no_verdict_and_a_cost_all_the_same():
    (model,) = simulated(platform("default"), Made([], duration=3600)).models
    assert model.verdict == "no requests"
    assert model.nominal.attainment_share is None
    assert model.nominal.monthly.total_usd > 0
    assert model.nominal.unit_cost.usd_per_million_output_tokens is None


def test_when_nothing_was_completed_it_says_so():
    (model,) = simulated(platform("default"), Made([0.0, 1.0], input_tokens=9000)).models
    assert model.nominal.counts.refused == 2
    assert model.verdict == "does not hold"
    assert any("Not one was completed of 2" in warning.message for warning in model.warnings)


def test_models_without_traffic_are_priced_at_their_minimum():
    of = platform("rich")
    answer = simulate_platform(of, {NAME: QUIET}, today=TODAY)
    assert [each.model for each in answer.without_traffic] == ["llama3-70b", "mistral-7b"]
    least = sum(cost.at_min_usd("spot") for cost in serving_cost(of) if cost.model != NAME)
    assert sum(each.at_min_monthly_usd for each in answer.without_traffic) == least
    serving = answer.models[0].nominal.monthly.total_usd + least
    assert answer.total_monthly_usd == pytest.approx(answer.fixed_monthly_usd + serving)


def test_a_budget_that_is_passed_is_a_violation():
    of = platform("default").model_copy(update={"budget": Budget(monthly_usd=Decimal(10))})
    answer = simulated(of, QUIET)
    assert answer.is_over_budget
    assert answer.exit_code == 2


def test_an_unknown_price_spreads_to_every_total_and_is_told():
    base = platform("default").models[0]
    accelerator = base.accelerator.model_copy(
        update={"family": "trn2", "sizes": ("48xlarge",), "tensor_parallel_size": 4}
    )
    of = changed(accelerator=accelerator, spot="never").model_copy(update={"node_pools": {}})
    answer = simulated(of, QUIET)
    (model,) = answer.models
    assert model.nominal.monthly.total_usd is answer.serving_monthly_usd is answer.total_monthly_usd is None
    assert model.nominal.unit_cost.usd_per_million_output_tokens is None
    assert any("trn2.48xlarge" in warning.message for warning in model.warnings)
    assert not answer.is_over_budget


def test_in_another_region_the_prices_are_an_indication():
    of = platform("default").model_copy(update={"region": "eu-west-1", "zones": ("eu-west-1a", "eu-west-1b")})
    answer = simulated(of, QUIET)
    assert answer.price_region == "us-east-1"
    assert any(warning.path == "region" for warning in answer.warnings)


def test_models_of_one_family_that_want_more_than_its_limit_together_are_told():
    of = platform("rich")
    pools = {**of.node_pools, "inf2": of.node_pool("inf2").model_copy(update={"max_devices": 12})}
    traffic = {NAME: QUIET, "llama3-70b": poisson(0.01, 7200)}
    awake = tuple(model.model_copy(update={"schedule": None}) for model in of.models)
    answer = simulate_platform(of.model_copy(update={"node_pools": pools, "models": awake}), traffic, today=TODAY)
    assert any("together" in warning.message for warning in answer.warnings)


def test_traffic_for_a_model_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"no such model\. The models are: llama3-8b"):
        simulate_platform(platform("default"), {"other": QUIET}, today=TODAY)


def test_progress_ends_at_its_total():
    told = []
    simulated(platform("default"), QUIET, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)


def test_histograms_hold_every_request(quiet):
    run = quiet.models[0].nominal
    for latency in (run.time_to_first_token, run.end_to_end):
        assert sum(latency.counts) == latency.count == run.counts.completed
        assert len(latency.edges_seconds) == len(latency.counts) + 1
        assert list(latency.edges_seconds) == sorted(latency.edges_seconds)
        assert latency.edges_seconds[0] <= latency.p50_seconds <= latency.edges_seconds[-1]


def test_an_attainment_that_is_just_reached_holds(quiet):
    (model,) = quiet.models
    exact = replace(model.nominal, attainment_share=0.95)
    below = replace(model.nominal, attainment_share=0.9499)
    assert verdict(model.objective, exact, exact) == "holds"
    assert verdict(model.objective, exact, below) == "holds at nominal only"
    assert verdict(model.objective, below, below) == "does not hold"
