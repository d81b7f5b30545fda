"""Numbers are written so that nobody reads more, or less, into them than there is."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.planner.present import values

amounts = st.decimals("-1e9", "1e9", places=4)


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        ("1416.96", "$1,416.96"),
        ("13.6128", "$13.61"),
        ("0.125", "$0.13"),
        ("0.00384", "$0.0038"),
        ("-3.5", "−$3.50"),
        ("0", "$0.00"),
        ("-0.000000001", "$0.000000"),
    ],
)
def test_amounts_have_cents_and_small_prices_two_digits_that_say_something(amount, written):
    assert values.usd(Decimal(amount)) == written


@given(amounts)
def test_an_amount_is_never_further_off_than_half_its_last_digit(amount):
    written = Decimal(values.usd(amount).replace("−", "-").replace("$", "").replace(",", ""))
    assert abs(written - amount) <= Decimal(10) ** written.as_tuple().exponent / 2


def test_what_is_unknown_is_never_zero():
    assert {values.usd(None), values.usd_change(None), values.percent(None), values.count(None)} == {"unknown"}
    assert values.percent(float("nan")) == "unknown"
    assert values.significant(float("inf")) == "unknown"


def test_a_latency_nobody_had_is_none():
    assert {values.seconds(None), values.milliseconds(None), values.duration(None)} == {"none"}
    assert values.seconds(float("nan")) == "none"


@given(st.floats(0, 1))
def test_all_and_nothing_are_said_only_when_they_are_meant(share):
    written = values.percent(share)
    assert (written in ("0%", "0.0%")) == (share == 0)
    assert (written in ("100%", "100.0%")) == (share == 1)


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        ("100", "112", "+12%"),
        ("100", "96.5", "−3.5%"),
        ("100", "100.01", "0%"),
        ("0", "5", "new"),
        ("0", "0", "0%"),
        ("5", "0", "−100%"),
    ],
)
def test_changes_have_their_sign(before, after, written):
    assert values.percent_change(Decimal(before), Decimal(after)) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.0316, "31.6 ms"),
        (2.41, "2.41 s"),
        (61, "1 min 1 s"),
        (750, "12 min 30 s"),
        (3600, "1 h"),
        (11100, "3 h 5 min"),
        (90061, "1 d 1 h"),
        (604800, "7 d"),
        (59.999, "1 min"),
        (0.9999, "1.00 s"),
    ],
)
def test_a_duration_is_written_with_its_unit(seconds, written):
    assert values.duration(seconds) == written


@given(st.floats(1e-6, 1e12))
def test_three_digits_are_within_half_a_percent(value):
    assert float(values.significant(value).replace(",", "")) == pytest.approx(value, rel=0.00501)


def test_whole_numbers_stay_whole():
    assert values.significant(1155) == "1,155"
    assert values.count(19366) == "19,366"


def test_counted_things_agree_with_their_number():
    assert (values.plural(1, "model"), values.plural(1200, "model")) == ("1 model", "1,200 models")
