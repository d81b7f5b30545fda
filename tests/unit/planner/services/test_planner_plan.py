"""The winner is the cheapest that holds, by a simulation of its own; its change is one the file takes."""

from dataclasses import replace
from decimal import Decimal

import pytest
import yaml

from genai_finops.planner.changes import applied
from genai_finops.planner.evaluate import simulate_platform
from genai_finops.planner.plan import Search, plan
from genai_finops.spec import parse_platform
from genai_finops.spec.document import read
from tests.platform_files import FILES, platform
from tests.unit.planner.services.service_worlds import NAME, TODAY, Made, changed, poisson

TRAFFIC = poisson(1.5, 1800, seed=11, input_tokens=400, output_tokens=80)


def planned(of=None, traffic=TRAFFIC, **more):
    (model,) = plan(of or platform("default"), {NAME: traffic}, **more).models
    return model


@pytest.fixture(scope="module")
def found():
    return planned()


@pytest.fixture(scope="module")
def changed_platform(found):
    document = read(FILES["default"].read_text(encoding="utf-8"), "platform.yaml").values
    return parse_platform(yaml.safe_dump(applied(document, found.changes), sort_keys=False))


def test_the_change_makes_a_file_that_passes_every_check(changed_platform, found):
    model = changed_platform.models[0]
    setting = found.winner.setting
    assert (model.accelerator.family, model.accelerator.sizes) == (setting.family, (setting.size,))
    assert model.tensor_parallel_size == setting.tensor_parallel_size
    assert (model.scaling.min_replicas, model.scaling.max_replicas) == (setting.min_replicas, setting.max_replicas)
    assert (model.spot, model.max_num_seqs) == (setting.spot, setting.max_num_seqs)


def test_the_winner_holds_and_costs_what_is_said_in_a_simulation_of_its_own(changed_platform, found):
    (again,) = simulate_platform(changed_platform, {NAME: TRAFFIC}, today=TODAY).models
    assert again.nominal.attainment_share * 100 >= found.objective.percent
    assert again.nominal.attainment_share == found.winner.attainment_share
    assert again.nominal.monthly.total_usd == pytest.approx(found.winner.monthly_usd)
    assert again.verdict == found.winner.verdict


def test_no_candidate_that_holds_and_needs_nothing_else_is_cheaper(found):
    for each in found.candidates:
        if each.stage == "simulated" and each.verdict != "does not hold":
            assert found.winner.monthly_usd <= each.monthly_usd + Decimal("0.01")


def test_floors_rule_out_nothing_that_would_have_won(found):
    everything = planned(search=Search(candidates=10_000, prunes=False))
    assert everything.simulated > found.simulated
    assert everything.winner.monthly_usd == pytest.approx(found.winner.monthly_usd)
    floors = {each.setting: each for each in everything.candidates if each.stage == "simulated"}
    ruled_out = [each for each in found.candidates if "before anything scales" in each.reason]
    assert ruled_out
    for each in ruled_out:
        other = floors[each.setting]
        assert other.monthly_usd >= found.winner.monthly_usd - Decimal("0.01")


def test_every_loser_says_why_it_lost_and_the_winner_nothing(found):
    assert found.winner.reason == ""
    assert all(each.reason for each in found.candidates if each != found.winner)
    reasons = " ".join(each.reason for each in found.candidates)
    assert "dearer" in reasons
    assert "GiB per core" in reasons
    assert "no price" in reasons


def test_ranks_count_from_one_over_what_was_simulated(found):
    ranks = [each.rank for each in found.candidates if each.stage == "simulated"]
    assert ranks == list(range(1, found.simulated + 1))
    assert found.simulated + found.screened == len(found.candidates)
    assert all(each.rank is None for each in found.candidates if each.stage == "screened")


def test_what_the_file_says_is_among_them_and_the_saving_is_against_it(found):
    (current,) = [each for each in found.candidates if each.is_current]
    assert current == found.current
    assert current.setting.instance == "inf2.8xlarge"
    assert found.saves_monthly_usd == current.monthly_usd - found.winner.monthly_usd


def test_the_winner_is_run_at_both_ends_of_its_error_bars(found):
    assert found.winner.verdict in ("holds", "holds at nominal only")
    assert found.winner.attainment_slow_share is not None
    assert found.winner.monthly_low_usd <= found.winner.monthly_usd <= found.winner.monthly_high_usd


def test_the_same_seed_gives_the_same_plan(found):
    assert planned() == found


def test_what_is_best_already_needs_no_change(changed_platform):
    again = planned(changed_platform)
    assert again.changes == ()
    assert again.yaml == ""
    assert again.winner == again.current


def test_an_objective_that_nothing_meets_has_no_winner():
    of = changed(objective=platform("default").models[0].objective.model_copy(update={"percent": 99.999}))
    hopeless = Made([0.0] * 1000, input_tokens=7900, output_tokens=200, duration=600)
    answer = plan(of, {NAME: hopeless}, search=Search(candidates=20))
    (model,) = answer.models
    assert model.winner is None
    assert model.changes == ()
    assert answer.exit_code == 2
    assert any("No configuration" in warning.message for warning in model.warnings)
    assert any("not completed" in each.reason for each in model.candidates if each.stage == "simulated")


def test_requests_longer_than_the_file_allows_are_given_room():
    long = poisson(0.5, 900, input_tokens=5000, output_tokens=50)
    found = planned(traffic=long)
    assert found.winner.setting.max_model_len == 8192
    assert found.current.verdict == "does not hold"


def test_a_search_that_ends_early_says_so():
    few = planned(search=Search(candidates=2))
    assert few.simulated == 2
    assert not few.is_complete
    assert any("not simulated" in each.reason for each in few.candidates)
    assert any("Not every candidate" in warning.message for warning in few.warnings)


def test_progress_ends_at_its_total():
    told = []
    planned(progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_never_on_spot_stays_on_demand():
    found = planned(changed(spot="never"))
    assert {each.setting.spot for each in found.candidates} == {"never"}


def test_only_on_spot_stays_on_spot():
    found = planned(changed(spot="only"))
    assert {each.setting.spot for each in found.candidates} == {"only"}


@pytest.mark.parametrize(
    ("traffic", "said"),
    [
        ({}, "No model has traffic"),
        ({"other": TRAFFIC}, "no such model"),
        ({NAME: Made([], duration=60)}, "no requests"),
    ],
)
def test_traffic_that_cannot_be_planned_for_is_refused(traffic, said):
    with pytest.raises(ValueError, match=said):
        plan(platform("default"), traffic)


@pytest.mark.parametrize("bad", [{"candidates": 0}, {"seconds": 0.0}])
def test_a_search_of_nothing_is_refused(bad):
    with pytest.raises(ValueError, match="at least"):
        replace(Search(), **bad)
