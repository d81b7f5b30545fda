"""Two platforms side by side: every line once, and the lines add up."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.planner.difference import difference
from genai_finops.planner.fixed_cost import fixed_monthly_cost, serving_cost
from genai_finops.spec.platform import Budget
from tests.platform_files import platform
from tests.unit.planner.services.service_worlds import NAME, TODAY, changed, poisson, scaled

NAMES = st.sampled_from(["default", "minimal", "rich"])


@given(NAMES, NAMES)
def test_lines_add_up_to_both_totals_and_to_the_change(before, after):
    found = difference(platform(before), platform(after), today=TODAY)
    for name, total, amounts in (
        (before, found.before_usd, [line.before_usd for line in found.lines if line.sign != "+"]),
        (after, found.after_usd, [line.after_usd for line in found.lines if line.sign != "-"]),
    ):
        of = platform(name)
        serving = sum(cost.at_min_usd("spot") for cost in serving_cost(of))
        assert total == sum(amounts) == pytest.approx(fixed_monthly_cost(of, TODAY).monthly_usd + serving)
    assert found.change_usd == pytest.approx(sum(line.change_usd for line in found.lines))


def test_a_platform_does_not_differ_from_itself():
    found = difference(platform("rich"), platform("rich"), today=TODAY)
    assert {line.sign for line in found.lines} == {" "}
    assert found.change_usd == 0
    assert found.exit_code == 0


def test_the_other_way_round_every_sign_and_change_turns():
    one = difference(platform("default"), platform("rich"), today=TODAY)
    other = difference(platform("rich"), platform("default"), today=TODAY)
    turned = {"+": "-", "-": "+", "~": "~", " ": " "}
    assert sorted((turned[line.sign], line.group, -line.change_usd) for line in one.lines) == sorted(
        (line.sign, line.group, line.change_usd) for line in other.lines
    )


def test_a_line_whose_count_changed_is_changed_and_not_new():
    network = platform("default").network.model_copy(update={"nat_gateways": 2})
    found = difference(platform("default"), platform("default").model_copy(update={"network": network}), today=TODAY)
    (line,) = [line for line in found.lines if line.name.startswith("NAT gateways")]
    assert line.sign == "~"
    assert line.after_usd == 2 * line.before_usd
    assert line.change_share == 1.0


def test_a_model_that_is_gone_is_taken_off():
    of = platform("rich")
    without = of.model_copy(update={"models": of.models[:1], "node_pools": {"inf2": of.node_pool("inf2")}})
    found = difference(of, without, today=TODAY)
    gone = {line.group for line in found.lines if line.sign == "-"}
    assert {"llama3-70b", "mistral-7b"} <= gone


def test_a_price_that_is_not_known_makes_the_totals_unknown():
    accelerator = (
        platform("default")
        .models[0]
        .accelerator.model_copy(update={"family": "trn2", "sizes": ("48xlarge",), "tensor_parallel_size": 4})
    )
    found = difference(platform("default"), changed(accelerator=accelerator), today=TODAY)
    (line,) = [line for line in found.lines if line.group == NAME]
    assert (line.sign, line.after_usd, line.change_usd, line.change_share) == ("~", None, None, None)
    assert found.before_usd is not None
    assert found.after_usd is found.change_usd is found.change_share is None


def test_a_budget_that_the_new_platform_passes_is_a_violation():
    of = platform("default").model_copy(update={"budget": Budget(monthly_usd=Decimal(100))})
    found = difference(platform("default"), of, today=TODAY)
    assert found.is_over_budget
    assert found.exit_code == 2


def test_the_ceiling_is_shown_beside():
    found = difference(scaled(max_replicas=2), scaled(max_replicas=5), today=TODAY)
    assert found.change_usd == 0
    assert found.after_ceiling_usd > found.before_ceiling_usd


def test_with_traffic_both_are_simulated_on_it():
    traffic = {NAME: poisson(0.1, 3600)}
    found = difference(platform("default"), scaled(min_replicas=3), today=TODAY, traffic=traffic)
    assert found.basis == "simulated"
    assert found.change_usd == pytest.approx(2 * serving_cost(platform("default"))[0].at_min_usd("spot"))
    (service,) = found.service
    assert service.before_verdict == service.after_verdict == "holds"
    assert found.exit_code == 0


def test_an_objective_that_breaks_is_a_violation():
    traffic = {NAME: poisson(4.0, 900, output_tokens=300)}
    found = difference(scaled(min_replicas=8), scaled(max_replicas=1), today=TODAY, traffic=traffic)
    assert found.service[0].after_verdict == "does not hold"
    assert found.exit_code == 2


def test_traffic_for_a_model_in_neither_is_refused():
    with pytest.raises(ValueError, match="no such model"):
        difference(platform("default"), platform("rich"), today=TODAY, traffic={"other": poisson(1, 60)})
