"""Cost Explorer's answers, the ugly ones included, over HTTP to a real boto3 client."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from lambdas.adapters import cost_explorer as module
from lambdas.adapters.cost_explorer import (
    BY_RECORD_TYPE,
    CostExplorer,
    Dimension,
    Forecast,
    Period,
    Tag,
    both,
    gross_only,
    tagged,
)
from tests.support.aws_api import AnswersInOrder, client

MARCH = Period(date(2026, 3, 1), date(2026, 3, 3))
APP = Tag("app")


def usd(amount, unit="USD"):
    return {"UnblendedCost": {"Amount": amount, "Unit": unit}}


def result(*groups, total=None, start="2026-03-01", end="2026-03-02", estimated=True):
    return {
        "TimePeriod": {"Start": start, "End": end},
        "Total": total if total is not None else {},
        "Groups": [{"Keys": list(keys), "Metrics": usd(amount)} for keys, amount in groups],
        "Estimated": estimated,
    }


def page(*results, rest=None):
    return {"ResultsByTime": list(results), **({"NextPageToken": rest} if rest else {})}


def ask(*answers, **question):
    """The answer, the requests and the number of paid calls."""
    with AnswersInOrder(*answers) as service:
        explorer = CostExplorer(client("ce", service.url))
        return explorer.costs(question.pop("period", MARCH), **question), service.requests, explorer.paid_calls


# Periods


@pytest.mark.parametrize(
    ("day", "start", "end"),
    [
        (date(2026, 1, 31), date(2026, 1, 1), date(2026, 2, 1)),
        (date(2026, 12, 1), date(2026, 12, 1), date(2027, 1, 1)),
        (date(2028, 2, 29), date(2028, 2, 1), date(2028, 3, 1)),
    ],
)
def test_a_month_ends_on_the_first_of_the_next(day, start, end):
    assert Period.month_of(day) == Period(start, end)


@given(st.dates(max_value=date(9998, 1, 1)))
def test_month_to_date_and_the_rest_are_the_month_and_no_day_counts_twice(today):
    before, after = Period.month_to(today), Period.rest_of_month(today)
    assert before.end == after.start == today
    assert Period(before.start, after.end) == Period.month_of(today)
    assert not after.is_empty
    assert before.is_empty == (today.day == 1)
    assert (after.end - timedelta(days=1)).month == today.month


def test_a_period_does_not_run_backwards():
    with pytest.raises(ValueError, match="is after"):
        Period(date(2026, 3, 2), date(2026, 3, 1))


# Asking


def test_the_first_of_the_month_costs_nothing_and_neither_does_asking():
    costs, requests, paid = ask(period=Period.month_to(date(2026, 3, 1)), group_by=[APP, BY_RECORD_TYPE])
    assert (costs.net, costs.gross, requests, paid) == (0, 0, [], 0)


def test_what_is_asked_is_what_was_wanted():
    where = both(tagged("genai-finops:platform", "genai"), gross_only())
    _, requests, _ = ask(page(), group_by=[APP, Dimension("SERVICE")], where=where, granularity="DAILY")
    assert requests == [
        (
            "GetCostAndUsage",
            {
                "TimePeriod": {"Start": "2026-03-01", "End": "2026-03-03"},
                "Granularity": "DAILY",
                "Metrics": ["UnblendedCost"],
                "GroupBy": [{"Type": "TAG", "Key": "app"}, {"Type": "DIMENSION", "Key": "SERVICE"}],
                "Filter": {
                    "And": [
                        {
                            "Tags": {
                                "Key": "genai-finops:platform",
                                "Values": ["genai"],
                                "MatchOptions": ["EQUALS"],
                            }
                        },
                        {"Not": {"Dimensions": {"Key": "RECORD_TYPE", "Values": ["Credit", "Refund"]}}},
                    ]
                },
            },
        )
    ]


def test_a_third_thing_to_group_by_is_refused_before_it_is_paid_for():
    with pytest.raises(ValueError, match="two things at most"):
        ask(group_by=[APP, BY_RECORD_TYPE, Dimension("SERVICE")])


def test_pages_are_followed_summed_and_counted():
    costs, requests, paid = ask(
        page(result((["app$a"], "1.10")), rest="t2"),
        page(result((["app$a"], "2.20"), (["app$b"], "3")), rest="t3"),
        page(result(start="2026-03-02", end="2026-03-03", total=usd("0"))),
        group_by=[APP],
    )
    assert costs.net_by(APP) == {"a": Decimal("3.30"), "b": Decimal(3)}
    assert [body.get("NextPageToken") for _, body in requests] == [None, "t2", "t3"]
    assert [body["GroupBy"] for _, body in requests] == [[{"Type": "TAG", "Key": "app"}]] * 3
    assert paid == 3


def test_an_answer_without_end_is_not_paid_for_without_end(monkeypatch):
    monkeypatch.setattr(module, "MOST_PAGES", 3)
    with AnswersInOrder(*[page(rest="again")] * 9) as service:
        explorer = CostExplorer(client("ce", service.url))
        with pytest.raises(RuntimeError, match="more than 3 pages"):
            explorer.costs(MARCH)
        assert len(service.requests) == explorer.paid_calls == 3


def test_400_tag_values_are_one_question():
    groups = [([f"app$model-{number}"], "0.01") for number in range(400)]
    costs, requests, paid = ask(page(result(*groups)), group_by=[APP])
    assert (len(costs.net_by(APP)), costs.net, len(requests), paid) == (400, Decimal("4.00"), 1, 1)


def test_a_call_that_fails_is_an_error_and_is_not_counted():
    failure = (400, {"__type": "AccessDeniedException", "message": "not authorized to perform ce:GetCostAndUsage"})
    with AnswersInOrder(failure) as service:
        explorer = CostExplorer(client("ce", service.url))
        with pytest.raises(ClientError, match="ce:GetCostAndUsage"):
            explorer.costs(MARCH)
        assert explorer.paid_calls == 0


# Reading


def test_amounts_are_exact_also_tiny_and_negative_ones():
    costs, _, _ = ask(page(result((["app$a"], "12.3400000000"), (["app$b"], "-3.1E-9"))), group_by=[APP])
    assert costs.net_by(APP) == {"a": Decimal("12.34"), "b": Decimal("-0.0000000031")}


def test_an_ungrouped_answer_has_a_total():
    costs, _, _ = ask(page(result(total=usd("1.5")), result(total=usd("2"), start="2026-03-02", end="2026-03-03")))
    assert costs.net == Decimal("3.5")
    assert [cost.start for cost in costs.costs] == [date(2026, 3, 1), date(2026, 3, 2)]


def test_nothing_spent_is_zero_whatever_its_unit():
    costs, _, _ = ask(page(result(total=usd("0", unit="N/A"))))
    assert costs.net == 0


def test_the_total_of_a_grouped_answer_is_not_counted_beside_its_groups():
    costs, _, _ = ask(page(result((["app$a"], "1"), total=usd("1"))), group_by=[APP])
    assert costs.net == 1


def test_one_estimated_day_makes_the_answer_an_estimate():
    closed, open_ = result(total=usd("1"), estimated=False), result(total=usd("1"))
    assert ask(page(closed, open_))[0].is_estimated
    assert not ask(page(closed, closed))[0].is_estimated


tag_keys = st.text(st.characters(codec="ascii", categories=("L", "N"), include_characters=":-_/.+=@ "), min_size=1)


@given(key=tag_keys, value=st.text(max_size=20))
def test_whatever_a_tag_value_holds_it_is_read_whole(key, value):
    assert Tag(key).value(f"{key}${value}") == value


@pytest.mark.parametrize(
    ("found", "value"), [("app$", ""), ("app$pay$eu", "pay$eu"), ("app$$", "$"), ("app$app$app", "app$app")]
)
def test_dollars_in_a_tag_value_are_its_own(found, value):
    assert APP.value(found) == value


# Gross and net


def test_credits_hide_nothing_from_the_gross():
    groups = ((["app$a", "Usage"], "30"), (["app$a", "Credit"], "-30"), (["app$b", "Refund"], "-1"))
    costs, _, _ = ask(page(result(*groups)), group_by=[APP, BY_RECORD_TYPE])
    assert (costs.gross, costs.net) == (30, -1)
    assert costs.gross_by(APP) == {"a": Decimal(30)}
    assert costs.net_by(APP) == {"a": Decimal(0), "b": Decimal(-1)}
    assert costs.net_by(BY_RECORD_TYPE)["Credit"] == -30


def test_what_a_savings_plan_covers_counts_once():
    groups = (
        (["SavingsPlanCoveredUsage"], "10"),
        (["SavingsPlanNegation"], "-10"),
        (["SavingsPlanRecurringFee"], "6"),
        (["Tax"], "1"),
    )
    costs, _, _ = ask(page(result(*groups)), group_by=[BY_RECORD_TYPE])
    assert costs.gross == costs.net == 7


def test_gross_is_not_claimed_where_nobody_can_tell():
    costs, _, _ = ask(page(result((["app$a"], "1"))), group_by=[APP])
    with pytest.raises(ValueError, match="not grouped by RECORD_TYPE"):
        _ = costs.gross
    with pytest.raises(ValueError, match="not grouped by SERVICE"):
        costs.net_by(Dimension("SERVICE"))


# Tags


def test_spend_without_any_tag_looks_like_a_tag_that_is_not_active():
    costs, _, _ = ask(page(result((["app$", "Usage"], "40"), (["app$", "Tax"], "2"))), group_by=[APP, BY_RECORD_TYPE])
    assert costs.looks_inactive(APP)
    assert costs.gross_by(APP) == {"": Decimal(42)}


@pytest.mark.parametrize(
    "groups",
    [
        ((["app$"], "40"), (["app$a"], "0.01")),
        ((["app$"], "0"),),
        (),
    ],
)
def test_one_tagged_cent_or_no_spend_at_all_is_no_sign_of_that(groups):
    costs, _, _ = ask(page(result(*groups)), group_by=[APP])
    assert not costs.looks_inactive(APP)


# Forecast

REST = Period(date(2026, 3, 2), date(2026, 4, 1))
FORECAST = {
    "Total": {"Amount": "410.5", "Unit": "USD"},
    "ForecastResultsByTime": [
        {
            "TimePeriod": {"Start": "2026-03-02", "End": "2026-04-01"},
            "MeanValue": "410.5",
            "PredictionIntervalLowerBound": "350.1",
            "PredictionIntervalUpperBound": "471.9",
        }
    ],
}


def test_a_forecast_has_a_middle_and_bounds():
    with AnswersInOrder(FORECAST) as service:
        explorer = CostExplorer(client("ce", service.url))
        forecast = explorer.forecast(REST, where=gross_only())
        assert forecast == Forecast(REST, Decimal("410.5"), Decimal("350.1"), Decimal("471.9"))
        assert explorer.paid_calls == 1
        ((operation, body),) = service.requests
    assert operation == "GetCostForecast"
    assert body["TimePeriod"] == {"Start": "2026-03-02", "End": "2026-04-01"}
    assert (body["Metric"], body["PredictionIntervalLevel"]) == ("UNBLENDED_COST", 80)
    assert body["Filter"] == gross_only()


def test_a_forecast_without_bounds_is_its_middle():
    with AnswersInOrder({"Total": {"Amount": "7", "Unit": "USD"}}) as service:
        forecast = CostExplorer(client("ce", service.url)).forecast(REST)
    assert (forecast.low_usd, forecast.usd, forecast.high_usd) == (7, 7, 7)


def test_a_new_account_has_no_forecast_and_that_is_no_error():
    unavailable = (400, {"__type": "DataUnavailableException", "message": "Insufficient amount of historical data"})
    with AnswersInOrder(unavailable) as service:
        explorer = CostExplorer(client("ce", service.url))
        assert explorer.forecast(REST) is None
        assert explorer.paid_calls == 0


def test_any_other_refusal_of_a_forecast_is_an_error():
    refusal = (400, {"__type": "ValidationException", "message": "Start must be today"})
    with AnswersInOrder(refusal) as service, pytest.raises(ClientError, match="Start must be today"):
        CostExplorer(client("ce", service.url)).forecast(REST)


def test_nothing_is_forecast_for_no_time():
    with pytest.raises(ValueError, match="nothing to forecast"):
        CostExplorer(None).forecast(Period(date(2026, 3, 1), date(2026, 3, 1)))
