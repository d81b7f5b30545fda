"""What AWS says it cost, in as few paid questions as possible.

Cost Explorer takes a cent per answer, lags by a day or more, and answers in several shapes; here they become one. Dates
are days of UTC, and ends are exclusive: month to date ends where the forecast begins, so no day counts twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from botocore.exceptions import ClientError

METRIC: Final = "UnblendedCost"
FORECAST_METRIC: Final = "UNBLENDED_COST"
"""The same, as GetCostForecast spells it."""

USD_PER_CALL: Final = Decimal("0.01")
"""https://aws.amazon.com/aws-cost-management/aws-cost-explorer/pricing/; a call that fails is free."""

MOST_PAGES: Final = 50
"""Of one answer. Hundreds of tag values over a month fit into a few; more is a loop that costs money."""

RECORD_TYPE: Final = "RECORD_TYPE"
GIVEN_BACK: Final = ("Credit", "Refund")
"""Record types that hide what is spent, until they run out. AWS Budgets is told to leave out the same two."""

Filter: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Period:
    """Days from `start` until before `end`."""

    start: date
    end: date

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise ValueError(f"{self.start} is after {self.end}")

    @classmethod
    def month_of(cls, day: date) -> "Period":
        """The whole month; that of January ends on February 1st."""
        first = day.replace(day=1)
        return cls(first, (first + timedelta(days=31)).replace(day=1))

    @classmethod
    def month_to(cls, today: date) -> "Period":
        """From the first until before today; no day at all on the first."""
        return cls(today.replace(day=1), today)

    @classmethod
    def rest_of_month(cls, today: date) -> "Period":
        """From today until the month ends; never empty."""
        return cls(today, cls.month_of(today).end)

    @property
    def is_empty(self) -> bool:
        return self.start == self.end

    def request(self) -> dict[str, str]:
        return {"Start": self.start.isoformat(), "End": self.end.isoformat()}


@dataclass(frozen=True, slots=True)
class Tag:
    """Group by a cost-allocation tag."""

    key: str

    def request(self) -> dict[str, str]:
        return {"Type": "TAG", "Key": self.key}

    def value(self, group_key: str) -> str:
        """Of `key$value`, where the value may hold `$` as well; empty for what has no such tag."""
        return group_key.removeprefix(f"{self.key}$")


@dataclass(frozen=True, slots=True)
class Dimension:
    """Group by something AWS knows, such as `SERVICE` or `RECORD_TYPE`."""

    key: str

    def request(self) -> dict[str, str]:
        return {"Type": "DIMENSION", "Key": self.key}

    def value(self, group_key: str) -> str:
        return group_key


BY_RECORD_TYPE: Final = Dimension(RECORD_TYPE)

Group: TypeAlias = Tag | Dimension


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount in dollars of one group in one day or month; negative for what is given back.

    Attributes:
        start: its first day.
        values: one for each thing that was grouped by, in that order; empty for a missing tag.
    """

    start: date
    values: tuple[str, ...]
    usd: Decimal


@dataclass(frozen=True, slots=True)
class Costs:
    """An answer, all pages of it.

    Attributes:
        is_estimated: AWS has not closed the books on all of it.
    """

    period: Period
    groups: tuple[Group, ...]
    costs: tuple[Cost, ...]
    is_estimated: bool = False

    @property
    def net(self) -> Decimal:
        """What will be on the bill. The same as gross unless the answer is grouped by record type."""
        return _sum(self.costs)

    @property
    def gross(self) -> Decimal:
        """What was used, without credits and refunds. Alert on this.

        Raises:
            ValueError: when the answer is not grouped by record type, so that nobody can tell.
        """
        return _sum(self._gross())

    def gross_by(self, group: Group) -> dict[str, Decimal]:
        """Gross by value; the empty value is what has no such tag.

        Raises:
            ValueError: when the answer is not grouped by record type, or not by this.
        """
        return self._by(group, self._gross())

    def net_by(self, group: Group) -> dict[str, Decimal]:
        """Net by value.

        Raises:
            ValueError: when the answer is not grouped by this.
        """
        return self._by(group, self.costs)

    def looks_inactive(self, tag: Tag) -> bool:
        """Whether there is spend and none of it has the tag: as when nobody has activated the tag for cost allocation.

        An answer that was filtered by the same tag is empty then, and tells nothing.
        """
        index = self._index(tag)
        spend = [cost for cost in self.costs if cost.usd]
        return bool(spend) and not any(cost.values[index] for cost in spend)

    def _gross(self) -> Iterator[Cost]:
        index = self._index(BY_RECORD_TYPE)
        return (cost for cost in self.costs if cost.values[index] not in GIVEN_BACK)

    def _by(self, group: Group, costs: Iterable[Cost]) -> dict[str, Decimal]:
        index = self._index(group)
        found: dict[str, Decimal] = {}
        for cost in costs:
            value = cost.values[index]
            found[value] = found.get(value, Decimal()) + cost.usd
        return found

    def _index(self, group: Group) -> int:
        if group not in self.groups:
            raise ValueError(f"the answer is not grouped by {group.key}")
        return self.groups.index(group)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Dollars that a period will cost, with the bounds of the prediction interval."""

    period: Period
    usd: Decimal
    low_usd: Decimal
    high_usd: Decimal


def tagged(key: str, value: str) -> Filter:
    """Only what carries a cost-allocation tag. Credits often carry none: what is net of them is then too much."""
    return {"Tags": {"Key": key, "Values": [value], "MatchOptions": ["EQUALS"]}}


def gross_only() -> Filter:
    """Without credits and refunds."""
    return {"Not": {"Dimensions": {"Key": RECORD_TYPE, "Values": list(GIVEN_BACK)}}}


def both(one: Filter, other: Filter) -> Filter:
    return {"And": [one, other]}


class CostExplorer:
    """Answers, and how many had to be paid for.

    Args:
        client: boto3 client of `ce`; the role needs ce:GetCostAndUsage and ce:GetCostForecast.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._paid_calls = 0

    @property
    def paid_calls(self) -> int:
        """Answers so far, pages and all; each costs USD_PER_CALL."""
        return self._paid_calls

    def costs(
        self,
        period: Period,
        *,
        group_by: Sequence[Group] = (),
        where: Filter | None = None,
        granularity: str = "MONTHLY",
    ) -> Costs:
        """Costs of a period, by at most two things. An empty period costs nothing, and neither does asking.

        Args:
            granularity: `DAILY` or `MONTHLY`.

        Raises:
            ValueError: for a third thing to group by, which AWS refuses.
            botocore.exceptions.ClientError: as AWS gives it.
        """
        groups = tuple(group_by)
        if len(groups) > 2:
            raise ValueError("Cost Explorer groups by two things at most")
        if period.is_empty:
            return Costs(period, groups, ())
        request: dict[str, Any] = {
            "TimePeriod": period.request(),
            "Granularity": granularity,
            "Metrics": [METRIC],
        }
        if groups:
            request["GroupBy"] = [group.request() for group in groups]
        if where:
            request["Filter"] = where
        results = list(self._results(request))
        return Costs(
            period,
            groups,
            tuple(cost for result in results for cost in _costs(result, groups)),
            any(result.get("Estimated", False) for result in results),
        )

    def forecast(self, period: Period, *, where: Filter | None = None, confidence_percent: int = 80) -> Forecast | None:
        """What a period will cost; None when AWS knows too little yet, as of a new account.

        Args:
            period: from today or later, in UTC, and not empty.

        Raises:
            ValueError: for an empty period.
            botocore.exceptions.ClientError: as AWS gives it.
        """
        if period.is_empty:
            raise ValueError("there is nothing to forecast for an empty period")
        request: dict[str, Any] = {
            "TimePeriod": period.request(),
            "Metric": FORECAST_METRIC,
            "Granularity": "MONTHLY",
            "PredictionIntervalLevel": confidence_percent,
        }
        if where:
            request["Filter"] = where
        try:
            answer = self._client.get_cost_forecast(**request)
        except ClientError as error:
            if error.response["Error"]["Code"] == "DataUnavailableException":
                return None
            raise
        self._paid_calls += 1
        results = answer.get("ForecastResultsByTime", ())
        usd = Decimal(answer["Total"]["Amount"])
        return Forecast(
            period,
            usd,
            sum((Decimal(result["PredictionIntervalLowerBound"]) for result in results), Decimal()) if results else usd,
            sum((Decimal(result["PredictionIntervalUpperBound"]) for result in results), Decimal()) if results else usd,
        )

    def _results(self, request: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Of all pages; boto3 has no paginator for this call."""
        for _ in range(MOST_PAGES):
            page = self._client.get_cost_and_usage(**request)
            self._paid_calls += 1
            yield from page["ResultsByTime"]
            token = page.get("NextPageToken")
            if not token:
                return
            request = {**request, "NextPageToken": token}
        raise RuntimeError(f"Cost Explorer's answer has more than {MOST_PAGES} pages, and each costs money")


def _costs(result: Mapping[str, Any], groups: tuple[Group, ...]) -> Iterator[Cost]:
    """Of one day or month. Of a grouped answer the groups count: its total is `{}`, or zero when there are none."""
    start = date.fromisoformat(result["TimePeriod"]["Start"])
    if not groups:
        yield Cost(start, (), _amount(result.get("Total", {})))
    for found in result.get("Groups", ()) if groups else ():
        values = tuple(group.value(key) for group, key in zip(groups, found["Keys"], strict=True))
        yield Cost(start, values, _amount(found["Metrics"]))


def _amount(metrics: Mapping[str, Any]) -> Decimal:
    """Dollars; of nothing AWS says 0 in the unit `N/A`."""
    return Decimal(metrics.get(METRIC, {}).get("Amount", "0"))


def _sum(costs: Iterable[Cost]) -> Decimal:
    return sum((cost.usd for cost in costs), Decimal())
