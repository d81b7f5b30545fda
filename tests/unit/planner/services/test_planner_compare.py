"""The article's table to the cent, and the comparison that answers its question."""

import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from math import ceil

import pytest

from genai_finops.catalog import instance_type
from genai_finops.planner.compare import article_load, article_model, article_table, compare
from genai_finops.planner.objectives import target_of
from genai_finops.planner.performance.model import replica_performance
from genai_finops.planner.results import ObjectiveTarget
from genai_finops.planner.steady_state import Load, state
from tests.platform_files import ROOT

MODEL = article_model()
LOAD = article_load()
BUSY = replace(LOAD, mean_requests_per_second=5.0, peak_requests_per_second=12.0)
"""A load that one replica of nothing carries."""


@pytest.fixture(scope="module")
def answer():
    return compare(MODEL, BUSY, target_of(MODEL))


def test_the_articles_table_is_reproduced_to_the_cent():
    table = article_table()
    baseline, optimized = table.baseline, table.optimized
    assert (baseline.instance, optimized.instance) == ("g5.12xlarge", "inf2.8xlarge")
    assert (baseline.hours, baseline.million_tokens) == (720, 300)
    assert (baseline.monthly_usd, baseline.usd_per_million_tokens) == (Decimal("4083.84"), Decimal("13.61"))
    assert (optimized.monthly_usd, optimized.usd_per_million_tokens) == (Decimal("1416.96"), Decimal("4.72"))
    assert f"{table.saved_share:.1%}" == "65.3%"


def test_its_assumption_is_said_and_its_errors_are_corrected_beside_it():
    table = article_table()
    assert "One instance of either serves 10M tokens a day" in table.assumption
    assert "720 hours" in table.assumption
    assert "Ecstaticloud" in table.source
    hourly = next(each for each in table.corrections if "47 %" in each.claim)
    assert "65.3 %" in hourly.right
    assert len(table.corrections) == 5


def test_its_load_is_its_tokens_a_day():
    tokens = LOAD.mean_requests_per_second * 86400 * (LOAD.mean_input_tokens + LOAD.mean_output_tokens)
    assert tokens == pytest.approx(10_000_000)
    assert LOAD.peak_requests_per_second > LOAD.mean_requests_per_second


def test_the_winner_is_the_cheapest_of_all_that_hold(answer):
    feasible = [each for each in answer.alternatives if each.is_feasible]
    assert len(feasible) > 20
    assert answer.winner == answer.alternatives[0]
    assert answer.winner.monthly_usd == min(each.monthly_usd for each in feasible)
    assert answer.winner.reason == ""
    assert all(each.reason for each in answer.alternatives[1:])
    costs = [each.usd_per_million_output_tokens for each in feasible]
    assert costs == sorted(costs)
    assert answer.exit_code == 0


def test_every_row_is_whole_nodes_times_price_times_730_hours(answer):
    requests = Decimal(5) * 730 * 3600
    for each in answer.alternatives:
        if not each.is_feasible:
            continue
        assert each.nodes == ceil(each.replicas / each.replicas_per_node)
        hourly = each.price.usd_hour + each.price.volume_usd_hour
        assert each.node_usd_hour == hourly
        assert each.monthly_usd == each.nodes * hourly * 730
        assert each.usd_per_million_output_tokens * requests * 211 / 1_000_000 == pytest.approx(each.monthly_usd)
        assert each.usd_per_million_input_tokens * requests * 1155 / 1_000_000 == pytest.approx(each.monthly_usd)
        assert each.usd_per_million_total_tokens * requests * 1366 / 1_000_000 == pytest.approx(each.monthly_usd)


def test_replicas_carry_the_peak_within_the_bound_and_one_fewer_would_not(answer):
    for each in answer.alternatives:
        if each.is_feasible:
            assert each.peak_utilization_share <= 1
            assert (each.replicas - 1) * each.capacity_requests_per_second < 12


def test_the_error_bar_reaches_around_the_cost(answer):
    feasible = [each for each in answer.alternatives if each.is_feasible]
    for each in feasible:
        assert each.monthly_low_usd <= each.monthly_usd
        assert each.monthly_high_usd is None or each.monthly_usd <= each.monthly_high_usd
        assert each.provenance is not None
        assert each.performance_source
    assert any(each.monthly_low_usd < each.monthly_usd for each in feasible)


def test_each_row_holds_the_objective_at_the_peak(answer):
    target = answer.objective
    for each in answer.alternatives:
        if each.is_feasible:
            assert each.time_to_first_token_seconds <= target.time_to_first_token_seconds


def test_an_alternative_that_no_count_of_replicas_saves_says_why():
    answer = compare(MODEL, LOAD, ObjectiveTarget(0.0001, None, 95))
    assert answer.winner is None
    assert answer.exit_code == 2
    slow = [each for each in answer.alternatives if "first token takes" in each.reason]
    assert slow
    assert all(each.monthly_usd is None for each in slow)


def test_a_gap_between_tokens_that_is_asked_for_rules_out_what_is_slower():
    loose = compare(MODEL, LOAD, ObjectiveTarget(2.5, None, 95))
    tight = compare(MODEL, LOAD, ObjectiveTarget(2.5, 0.015, 95))
    kept = [each for each in tight.alternatives if each.is_feasible]
    assert 0 < len(kept) < sum(each.is_feasible for each in loose.alternatives)
    assert all(each.inter_token_seconds <= 0.015 for each in kept)
    assert any("a token takes" in each.reason for each in tight.alternatives)


def test_a_type_without_a_price_is_unknown_and_not_free():
    answer = compare(MODEL, LOAD, target_of(MODEL), region="us-west-2")
    rows = [each for each in answer.alternatives if each.instance == "trn2.48xlarge"]
    assert rows
    assert all(not each.is_feasible and each.monthly_usd is None for each in rows)
    said = next(each.reason for each in rows if "price" in each.reason)
    assert "trn2.48xlarge" in said
    assert "us-west-2" in said


def on_smallest(answer, split):
    """A row of inf2.xlarge."""
    rows = [each for each in answer.alternatives if each.instance == "inf2.xlarge"]
    return next(each for each in rows if each.tensor_parallel_size == split)


def test_what_does_not_fit_says_how_much_memory_it_needs(answer):
    row = on_smallest(answer, 1)
    assert not row.is_feasible
    assert "GiB per core" in row.reason


def test_the_smallest_instance_with_the_accelerator_is_an_alternative(answer):
    assert on_smallest(answer, 2).is_feasible


def test_more_load_never_costs_less():
    def cost(factor):
        load = replace(LOAD, mean_requests_per_second=factor, peak_requests_per_second=factor)
        found = compare(MODEL, load, target_of(MODEL)).alternatives
        return {
            (each.instance, each.tensor_parallel_size, each.purchase): each.monthly_usd
            for each in found
            if each.is_feasible
        }

    little, more = cost(1.0), cost(7.0)
    assert all(more[key] >= little[key] for key in little)
    assert any(more[key] > little[key] for key in little)


def test_published_costs_stand_beside_with_their_source(answer):
    assert {each.instance for each in answer.evidence} >= {"inf2.48xlarge", "g6e.xlarge", "p5.4xlarge"}
    assert all(each.source for each in answer.evidence)
    assert all(
        each.usd_per_million_output_tokens_low <= each.usd_per_million_output_tokens_high for each in answer.evidence
    )


def test_steady_state_is_asked_of_the_performance_that_is_shown(answer):
    row = next(each for each in answer.alternatives if each.is_feasible)
    assert row.instance in instance_type(row.instance).name
    moved = article_model().model_copy(
        update={
            "accelerator": MODEL.accelerator.model_copy(
                update={
                    "family": instance_type(row.instance).family,
                    "sizes": (instance_type(row.instance).size,),
                    "tensor_parallel_size": row.tensor_parallel_size,
                }
            )
        }
    )
    performance = replica_performance(moved, instance_type(row.instance), ())
    at_peak = state(performance, Load(1155, 211), 12 / row.replicas, 0.95)
    assert at_peak.inter_token_seconds == pytest.approx(row.inter_token_seconds)


def test_it_answers_without_loading_what_is_heavy():
    code = (
        "import sys; from genai_finops.planner.compare import article_load, article_model, compare; "
        "from genai_finops.planner.objectives import target_of; "
        "model = article_model(); compare(model, article_load(), target_of(model)); "
        "print([name for name in ('numpy', 'numba', 'vl_convert', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
