"""Two questions to Cost Explorer, three when the answers look too good: what the month has cost, and what it will."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from genai_finops.operations import budget
from genai_finops.operations.budget import Spending
from lambdas.adapters.cost_explorer import (
    BY_RECORD_TYPE,
    CostExplorer,
    Costs,
    Period,
    Tag,
    both,
    gross_only,
    tagged,
)
from lambdas.adapters.observability import logger

PLATFORM_TAG: Final = "genai-finops:platform"
COMPONENT_TAG: Final = "genai-finops:component"
SERVING: Final = "serving-"
"""With the family: the component of nodes that serve. As in `genai_finops.spec.names` and `k8s_charts.karpenter`."""

COMPONENT: Final = Tag(COMPONENT_TAG)
PLATFORM: Final = Tag(PLATFORM_TAG)


@dataclass(frozen=True, slots=True)
class Spend:
    """What was asked and answered.

    Attributes:
        costs: by day, component and record type.
        problems: what could not be asked, in words; the rest was.
    """

    spending: Spending
    costs: tuple[budget.Cost, ...]
    problems: tuple[str, ...] = ()

    def serving_usd(self, family: str, day: date) -> Decimal | None:
        """Gross cost of a family's nodes on a day; None when there is none, such as before the tag was active."""
        lines = [
            cost.usd
            for cost in self.costs
            if (cost.day, cost.tag) == (day, f"{SERVING}{family}") and cost.record_type not in budget.CREDITS
        ]
        return sum(lines, Decimal()) if lines else None


def ask(explorer: CostExplorer, platform: str, now: datetime) -> Spend:
    """What the platform has cost this month, and will.

    Raises:
        botocore.exceptions.ClientError: when the costs themselves cannot be had.
    """
    today = now.astimezone(UTC).date()
    ours = tagged(PLATFORM_TAG, platform)
    period = Period.month_to(today)
    answer = explorer.costs(period, group_by=(COMPONENT, BY_RECORD_TYPE), where=ours, granularity="DAILY")
    forecast_usd, problems = _forecast(explorer, platform, today)
    lines = tuple(_lines(answer))
    spending = budget.spending(lines, forecast_usd, now)
    if not any(line.usd for line in lines) and not period.is_empty:
        spending = _doubted(explorer, period, spending)
    return Spend(spending, lines, problems)


def _forecast(explorer: CostExplorer, platform: str, today: date) -> tuple[Decimal | None, tuple[str, ...]]:
    """For the rest of the month; without one the run rate stands in, and month to date is told all the same."""
    where = both(tagged(PLATFORM_TAG, platform), gross_only())
    try:
        found = explorer.forecast(Period.rest_of_month(today), where=where)
    except (ClientError, BotoCoreError) as error:
        logger.error("no forecast", extra={"error": str(error)})
        return None, (f"Cost Explorer gives no forecast: {error}",)
    return (found.usd if found else None), ()


def _doubted(explorer: CostExplorer, period: Period, spending: Spending) -> Spending:
    """Nothing at all carries the platform's tag. Either nothing runs, or nobody has activated the tag."""
    account = explorer.costs(period, group_by=(PLATFORM, BY_RECORD_TYPE))
    if not account.looks_inactive(PLATFORM):
        return spending
    return replace(spending, untagged_usd=account.gross, tag_looks_inactive=True)


def _lines(answer: Costs) -> Iterator[budget.Cost]:
    for cost in answer.costs:
        component, record_type = cost.values
        yield budget.Cost(cost.start, cost.usd, component, record_type, answer.is_estimated)
