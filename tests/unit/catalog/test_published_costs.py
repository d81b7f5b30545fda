"""Published costs are pinned to what they were computed from: a rate, and a price of our own catalog."""

from decimal import Decimal

import pytest

from genai_finops.catalog import instance_type, model_shape
from genai_finops.catalog.published_costs import article, conversation, published_costs

RATES = {
    ("inf2.48xlarge", "on-demand"): (3 * 463, 1226.1),
    ("inf2.48xlarge", "spot"): (3 * 463, 1226.1),
    ("g6e.xlarge", "on-demand"): (1124, 1124),
    ("g6e.xlarge", "spot"): (1124, 1124),
    ("g6e.2xlarge", "on-demand"): (2776, 1637),
    ("p5.4xlarge", "on-demand"): (6956, 6956),
}
"""Output tokens a second of the whole instance, as published: for the low and the high end of the cost."""


@pytest.mark.parametrize("entry", published_costs(), ids=lambda entry: f"{entry.instance} {entry.purchase}")
def test_a_published_cost_is_a_published_rate_at_our_price(entry):
    instance = instance_type(entry.instance)
    usd_hour = instance.spot_usd_hour if entry.purchase == "spot" else instance.on_demand_usd_hour
    ends = [usd_hour / Decimal(str(rate)) / 3600 * 1_000_000 for rate in RATES[entry.instance, entry.purchase]]
    assert [round(end, 2) for end in ends] == [entry.low_usd, entry.high_usd]
    assert entry.source


def test_the_article_is_cited_with_its_figures():
    assert article().publisher == "Ecstaticloud"
    assert (article().hours_a_month, article().tokens_a_day, article().days_a_month) == (720, 10_000_000, 30)
    assert model_shape(article().model)
    for side in (article().baseline, article().optimized):
        assert abs(instance_type(side.instance).on_demand_usd_hour - side.usd_hour) < Decimal("0.001")


def test_the_shape_of_a_request_names_its_source():
    assert (conversation().input_tokens, conversation().output_tokens) == (1155, 211)
    assert "CC-BY-4.0" in conversation().source
