"""What the month has cost, what it will, and which levels that reaches. Numbers are those of operations-cases.md."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations.budget import (
    Budget,
    Cost,
    Period,
    SpendReport,
    Threshold,
    alerts_due,
    levels,
    month_to_date,
    rest_of_month,
    spending,
    whole_month,
)
from tests.unit.operations.worlds import DAY, HOUR, NOW, SECOND, budget, report

FIRST = datetime(2026, 3, 1, 9, tzinfo=UTC)
HALF = Threshold("actual", 50)
FORECAST = Threshold("forecast", 100)


def cost(day, usd, tag="serving-inf2", record_type="Usage", **settings):
    return Cost(date(2026, 3, day), Decimal(usd), tag, record_type, **settings)


def spent(*costs, forecast=None, now=NOW):
    return spending(costs, None if forecast is None else Decimal(forecast), now)


def reached(thresholds, *reports, now=NOW, monthly="1000"):
    return [
        (level.threshold.basis, level.threshold.percent)
        for level in levels(budget(*thresholds, monthly=monthly), reports, now)
    ]


# Days and months


def test_on_the_first_there_is_nothing_to_ask_and_nothing_spent():
    """Case 24."""
    assert month_to_date(FIRST) is None
    assert spent(now=FIRST).report == SpendReport(FIRST, Decimal(0), Decimal(0))


def test_month_to_date_and_the_rest_meet_today():
    assert month_to_date(NOW) == Period(date(2026, 3, 1), date(2026, 3, 4))
    assert rest_of_month(NOW) == Period(date(2026, 3, 4), date(2026, 4, 1))


@pytest.mark.parametrize(
    ("month", "end"),
    [((2026, 1), (2026, 2)), ((2026, 12), (2027, 1)), ((2028, 2), (2028, 3)), ((2026, 2), (2026, 3))],
)
def test_a_whole_month_ends_on_the_first_of_the_next(month, end):
    """Case 26: the whole of January ends on February 1st."""
    assert whole_month(date(*month, 17)) == Period(date(*month, 1), date(*end, 1))


def test_the_month_is_that_of_utc():
    tokyo_morning = datetime.fromisoformat("2026-04-01T08:00:00+09:00")
    assert rest_of_month(tokyo_morning) == Period(date(2026, 3, 31), date(2026, 4, 1))


# Amounts


def test_credits_and_refunds_lower_what_is_paid_and_not_what_was_used():
    """Case 28."""
    found = spent(cost(1, "30"), cost(1, "-20", record_type="Credit"), cost(2, "-10", record_type="Refund"))
    assert (found.report.gross_usd, found.report.net_usd) == (30, 0)


def test_every_line_counts_once_to_the_last_digit():
    found = spent(cost(1, "12.3400000000"), cost(1, "-3.1E-9", "pay$eu"), cost(2, "0.1"))
    assert found.report.gross_usd == Decimal("12.4399999969")
    assert found.by_tag["pay$eu"] == Decimal("-3.1E-9")


def test_lines_of_other_months_and_of_today_are_not_counted():
    today = Cost(NOW.date(), Decimal(5))
    assert spent(cost(1, "7"), today, Cost(date(2026, 2, 28), Decimal(9))).report.gross_usd == 7


def test_tags_come_largest_first_and_what_has_none_apart():
    found = spent(cost(1, "1", "a"), cost(1, "5", "b"), cost(2, "1", "a"), cost(2, "3", ""))
    assert list(found.by_tag.items()) == [("b", 5), ("a", 2)]
    assert (found.untagged_usd, found.tag_looks_inactive) == (3, False)


def test_a_tag_that_nothing_carries_looks_inactive():
    """Case 29."""
    assert spent(cost(1, "30", ""), cost(2, "1", "a")).tag_looks_inactive
    assert not spent().tag_looks_inactive


def test_amounts_that_may_change_are_marked():
    assert spent(cost(1, "1"), cost(2, "1", estimated=True)).estimated
    assert not spent(cost(1, "1")).estimated


# Forecast


def test_the_forecast_is_what_was_spent_and_what_aws_expects_of_the_rest():
    found = spent(cost(1, "10"), cost(2, "10"), forecast="410.5").report
    assert (found.forecast_usd, found.forecast_source) == (Decimal("430.5"), "aws")


def test_without_a_forecast_the_run_rate_stands_in_and_says_so():
    """Case 25."""
    found = spent(cost(1, "10"), cost(2, "14"), cost(3, "2"))
    assert found.daily_usd == 12, "the newest day is still filling up"
    assert (found.report.forecast_usd, found.report.forecast_source) == (12 * 31, "run-rate")
    assert found.report.complete_days == 2


def test_a_platform_younger_than_the_month_is_not_taken_for_a_cheap_one():
    found = spent(cost(2, "10"), cost(3, "1"))
    assert (found.daily_usd, found.report.forecast_usd) == (10, 10 + 10 * 29)


def test_before_the_first_costs_nobody_can_say():
    found = spent(now=NOW)
    assert (found.daily_usd, found.report.forecast_usd, found.report.forecast_source) == (None, None, None)


def test_a_forecast_is_never_below_what_is_spent():
    assert spent(cost(1, "1"), cost(3, "500")).report.forecast_usd == 501


# Levels


def test_a_level_is_reached_at_its_amount():
    assert reached([HALF], report("499.99")) == []
    assert reached([HALF], report(500)) == [("actual", 50)]


def test_a_level_stays_reached_when_the_forecast_falls():
    up, down = (
        report(1, NOW - DAY, forecast_usd=Decimal(1200), forecast_source="aws"),
        report(1, forecast_usd=Decimal(900), forecast_source="aws"),
    )
    assert reached([FORECAST], up, down) == [("forecast", 100)]


def test_a_new_month_starts_at_nothing():
    assert reached([HALF], report(999, datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC))) == []


def test_alerts_look_at_the_gross():
    """Case 28."""
    assert reached([HALF], SpendReport(NOW, Decimal(600), Decimal(0))) == [("actual", 50)]


def test_the_actual_alert_goes_out_without_any_forecast():
    """Case 25."""
    assert reached([HALF, FORECAST], report(600)) == [("actual", 50)]


@pytest.mark.parametrize(("days", "acts"), [(2, False), (3, True)])
def test_a_guess_from_a_day_or_two_is_told_and_changes_nothing(days, acts):
    guess = report(1, forecast_usd=Decimal(1200), forecast_source="run-rate", complete_days=days)
    (level,) = levels(budget(Threshold("forecast", 100, "on_demand_off")), [guess], NOW)
    assert level.source == "run-rate"
    assert (level.acts_from is not None) is acts


def test_each_alert_goes_out_once_per_month_and_level():
    found = levels(budget(HALF, Threshold("actual", 80)), [report(600, NOW - HOUR), report(850)], NOW)
    assert len(alerts_due(found, [])) == 2
    assert alerts_due(found, [found[0].key]) == (found[1],)
    assert alerts_due(found, [level.key for level in found]) == ()


def test_a_raised_budget_that_is_reached_again_is_news():
    (before,) = levels(budget(HALF), [report(600)], NOW)
    assert reached([HALF], report(600), monthly="2000") == []
    (after,) = levels(budget(HALF, monthly="2000"), [report(600), report(1100, NOW + SECOND)], NOW + SECOND)
    assert after.key != before.key


def test_next_month_s_alert_is_another():
    april = NOW.replace(month=4)
    (before,), (after,) = levels(budget(HALF), [report(600)], NOW), levels(budget(HALF), [report(600, april)], april)
    assert before.key == "2026-03/actual/50/1000"
    assert after.key == "2026-04/actual/50/1000"


reports = st.lists(
    st.builds(
        lambda usd, hours, forecast: report(
            usd, NOW - hours * HOUR, forecast_usd=forecast, forecast_source=forecast and "aws"
        ),
        st.integers(0, 2000),
        st.integers(-48, 24 * 40),
        st.one_of(st.none(), st.integers(1, 3000).map(Decimal)),
    ),
    max_size=8,
)


@given(reports, st.data())
def test_order_and_repetition_of_reports_never_matter(given_reports, data):
    several = budget(HALF, FORECAST, Threshold("actual", 80, "cap_replicas", 2))
    shuffled = data.draw(st.permutations([*given_reports, *given_reports]))
    assert levels(several, shuffled, NOW) == levels(several, given_reports, NOW)


@given(reports, reports)
def test_a_level_once_reached_stays_within_the_month(some, more):
    known = {level.key for level in levels(budget(HALF, FORECAST), some, NOW)}
    assert known <= {level.key for level in levels(budget(HALF, FORECAST), [*some, *more], NOW)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Threshold("actual", 0), "at least 1 percent, not 0"),
        (lambda: Threshold("actual", 80, "cap_replicas"), "needs replicas"),
        (lambda: Threshold("actual", 80, "notify", 3), "cap_replicas, and nothing else"),
        (lambda: Threshold("actual", 80, "cap_replicas", 0), "at least 1 replica; to stop it use sleep_non_critical"),
        (lambda: Budget(Decimal(0)), r"more than \$0, not 0"),
        (lambda: Budget(Decimal(1), (HALF, HALF)), "stands twice"),
        (lambda: report(1, forecast_usd=Decimal(1)), "has a source"),
        (lambda: report(1, NOW.replace(tzinfo=None)), "has no zone"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_does(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
