"""Cost of a million tokens, and of what runs now."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations.tokens import InstancePrice, TokenPrice, Tokens, live_estimate, shares, token_price
from tests.unit.operations.worlds import PRICES, node

MILLION = 1_000_000


def test_one_bill_is_split_over_input_and_output():
    found = token_price(Decimal(12), Tokens(2 * MILLION, MILLION), output_weight=4)
    assert (found.input, found.output, found.doubt) == (2, 8, None)


def test_zero_tokens_is_not_available_and_no_division():
    """Case 32."""
    assert token_price(Decimal(12), Tokens(0, 0)) == TokenPrice(None, None)
    assert token_price(Decimal(12), Tokens(MILLION, 0)).output is None
    assert token_price(Decimal(12), Tokens(0, MILLION)).input is None


def test_tokens_without_cost_cost_nothing():
    assert token_price(Decimal(0), Tokens(MILLION, MILLION)) == TokenPrice(Decimal(0), Decimal(0))


def test_a_negative_cost_is_no_price():
    assert token_price(Decimal(-3), Tokens(MILLION, MILLION)).doubt == "the cost is negative"


@pytest.mark.parametrize(("cost", "believed"), [("2", True), ("199", True), ("200", False), ("0.02", False)])
def test_a_price_that_jumps_a_hundredfold_is_not_believed(cost, believed):
    usual = [token_price(Decimal(2), Tokens(MILLION, 0))] * 3
    found = token_price(Decimal(cost), Tokens(MILLION, 0), earlier=usual)
    assert (found.doubt is None) is believed


def test_prices_that_were_not_believed_are_no_measure():
    doubted = TokenPrice(Decimal(2000), None, "too much")
    assert token_price(Decimal(2), Tokens(MILLION, 0), earlier=[doubted]).doubt is None


@given(st.decimals(0, 10_000, places=2), st.integers(0, 10**9), st.integers(0, 10**9))
def test_the_prices_of_all_tokens_add_up_to_the_bill(cost, prompt, generated):
    found = token_price(cost, Tokens(prompt, generated))
    if prompt + generated:
        nothing = Decimal(0)
        total = ((found.input or nothing) * prompt + (found.output or nothing) * generated) / MILLION
        assert abs(total - cost) < Decimal("1e-9")


def test_a_family_s_bill_is_shared_by_use():
    assert shares(Decimal(9), {"chat": Decimal(2), "code": Decimal(1)}) == {"chat": 6, "code": 3}
    assert shares(Decimal(9), {"chat": Decimal(0)}) == {}


def test_what_runs_is_priced_by_how_it_was_bought():
    found = live_estimate(
        [
            node("i-1", {"chat": 1}),
            node("i-2", {"chat": 1, "code": 1}, capacity_type="on-demand"),
            node("i-3"),
            node("i-4", {"code": 1}, instance_type="inf9.xlarge"),
            node("i-5", draining={"code": 1}),
        ],
        PRICES,
    )
    assert found.total == Decimal("1.66")
    assert found.by_model == {"chat": Decimal("0.68"), "code": Decimal("0.68")}
    assert found.by_capacity_type == {"spot": Decimal("0.90"), "on-demand": Decimal("0.76")}
    assert found.idle == Decimal("0.30")
    assert found.unpriced == ("inf9.xlarge spot",), "a price that is not known is said, not taken for nothing"


def test_reserved_capacity_is_valued_at_the_on_demand_price():
    assert InstancePrice(Decimal(2), Decimal(1)).of("reserved") == 2
