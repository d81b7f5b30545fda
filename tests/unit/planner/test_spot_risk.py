"""How often Spot is taken away, and what it costs over time."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.catalog import instance_type
from genai_finops.planner.spot import BANDS, UNKNOWN_BAND, PriceHistory, read_prices, spot_risk
from genai_finops.planner.traffic.errors import TrafficError

HEAD = "timestamp,instance_type,usd_hour\n"
START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_band_is_the_share_of_nodes_that_are_gone_within_its_month():
    rate = spot_risk(instance_type("inf2.xlarge")).interruptions_per_hour
    assert 1 - math.exp(-rate * 720) == pytest.approx(BANDS["<5%"])


def test_a_worse_band_is_interrupted_more_and_an_unknown_one_as_the_worst():
    rates = [
        spot_risk(instance_type(name)).interruptions_per_hour for name in ("inf2.xlarge", "inf2.48xlarge", "g5.xlarge")
    ]
    assert rates == sorted(rates)
    assert spot_risk(instance_type("p5.4xlarge")).interruptions_per_hour == pytest.approx(
        -math.log(1 - UNKNOWN_BAND) / 720
    )


HISTORY = PriceHistory((START, START + HOUR, START + 3 * HOUR), (Decimal(1), Decimal(3), Decimal(2)))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (START, START + HOUR, "1"),
        (START, START + 2 * HOUR, "2"),
        (START + 2 * HOUR, START + 4 * HOUR, "2.5"),
        (START - 5 * HOUR, START, "1"),
        (START + 9 * HOUR, START + 10 * HOUR, "2"),
        (START + HOUR, START + HOUR, "3"),
    ],
)
def test_a_price_holds_until_the_next(start, end, expected):
    assert HISTORY.mean_usd_hour(start, end) == Decimal(expected)


@given(st.integers(0, 300), st.integers(1, 300), st.integers(1, 300))
def test_the_mean_of_two_periods_is_that_of_their_parts(offset, first, second):
    one, two, three = (
        START + timedelta(minutes=minutes) for minutes in (offset, offset + first, offset + first + second)
    )
    parts = HISTORY.mean_usd_hour(one, two) * first + HISTORY.mean_usd_hour(two, three) * second
    assert float(HISTORY.mean_usd_hour(one, three) * (first + second)) == pytest.approx(float(parts))


def test_a_file_holds_the_history_of_several_types(tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text(
        HEAD + "2026-01-01T00:00:00Z,inf2.xlarge,0.12\n2026-01-01T00:00:00Z,inf2.8xlarge,0.52\n"
        "2026-01-01T02:00:00+01:00,inf2.xlarge,0.14\n"
    )
    found = read_prices(file)
    assert set(found) == {"inf2.xlarge", "inf2.8xlarge"}
    assert found["inf2.xlarge"].mean_usd_hour(START, START + 2 * HOUR) == Decimal("0.13")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,2\n", "line 1 has the columns a, b"),
        (HEAD, "holds no prices"),
        (HEAD + "2026-01-01T00:00:00,inf2.xlarge,1\n", "line 2 has the time '2026-01-01T00:00:00'"),
        (HEAD + "soon,inf2.xlarge,1\n", "line 2 has the time 'soon'"),
        (HEAD + "2026-01-01T00:00:00Z,inf2.xlarge,-1\n", "line 2 has usd_hour '-1'"),
        (HEAD + "2026-01-01T00:00:00Z,inf2.xlarge,NaN\n", "line 2 has usd_hour 'NaN'"),
        (HEAD + "2026-01-01T00:00:00Z,x,1\n2026-01-01T00:00:00Z,x,1\n", "line 3 is not after"),
    ],
)
def test_a_bad_line_is_named(tmp_path, content, expected):
    file = tmp_path / "prices.csv"
    file.write_text(content)
    with pytest.raises(TrafficError, match=expected):
        read_prices(file)
