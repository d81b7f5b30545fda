"""What the month has cost, what it will cost, and which levels of the budget that reaches.

Days and months are UTC, as AWS bills. Gross is what was used; credits and refunds lower what is paid (net) and say
nothing about what runs, so alerts look at the gross.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal

from genai_finops.operations.codec import aware

Basis = Literal["actual", "forecast"]
Action = Literal["notify", "cap_replicas", "on_demand_off", "sleep_non_critical"]
ForecastSource = Literal["aws", "run-rate"]

CREDITS: Final = frozenset({"Credit", "Refund"})
"""Values of Cost Explorer's RECORD_TYPE that pay a bill and are no use."""

RUN_RATE_DAYS_TRUSTED: Final = 3
"""A run rate over fewer complete days is told and not acted on (ours: one busy day is not a month)."""

UNTAGGED_SHARE_TOLD: Final = Decimal("0.9")
"""With this share of the spend untagged, the cost-allocation tag is more likely inactive than forgotten."""

_ONE_DAY: Final = timedelta(days=1)
_ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share of the budget, and what reaching it does beside the alert.

    Attributes:
        replicas: for cap_replicas, and only there: the most that a non-critical model may run.

    Raises:
        ValueError: when the percentage or the number of replicas makes no sense.
    """

    basis: Basis
    percent: int
    action: Action = "notify"
    replicas: int | None = None

    def __post_init__(self) -> None:
        if self.percent < 1:
            raise ValueError(f"A threshold is at least 1 percent, not {self.percent}")
        if (self.replicas is not None) != (self.action == "cap_replicas"):
            raise ValueError("cap_replicas, and nothing else, needs replicas")
        if self.replicas is not None and self.replicas < 1:
            raise ValueError("cap_replicas leaves a model at least 1 replica; to stop it use sleep_non_critical")


@dataclass(frozen=True, slots=True)
class Budget:
    """US dollars a month, gross.

    Raises:
        ValueError: when it is not positive, or a threshold stands twice.
    """

    monthly_usd: Decimal
    thresholds: tuple[Threshold, ...] = ()

    def __post_init__(self) -> None:
        if self.monthly_usd <= 0:
            raise ValueError(f"A budget is more than $0, not {self.monthly_usd}")
        if len(set(self.thresholds)) < len(self.thresholds):
            raise ValueError("A threshold stands twice")

    def amount(self, threshold: Threshold) -> Decimal:
        return self.monthly_usd * threshold.percent / 100


@dataclass(frozen=True, slots=True)
class Period:
    """Days for a Cost Explorer call: `end` is exclusive."""

    start: date
    end: date


@dataclass(frozen=True, slots=True)
class Cost:
    """One line of Cost Explorer's answer.

    Attributes:
        tag: value of the cost-allocation tag; empty for what carries none.
        record_type: value of RECORD_TYPE, such as Usage, Tax, Credit.
    """

    day: date
    usd: Decimal
    tag: str = ""
    record_type: str = "Usage"
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class SpendReport:
    """What one run found out; a fact, kept until its month is over.

    Attributes:
        at: aware; its month in UTC is the report's.
        forecast_usd: gross of the whole month; None when nobody can say yet.
        complete_days: days behind a run rate.

    Raises:
        ValueError: when the time has no zone, or a forecast no source.
    """

    at: datetime
    gross_usd: Decimal
    net_usd: Decimal
    forecast_usd: Decimal | None = None
    forecast_source: ForecastSource | None = None
    complete_days: int = 0

    def __post_init__(self) -> None:
        aware(self.at)
        if (self.forecast_usd is None) != (self.forecast_source is None):
            raise ValueError("A forecast has a source, and a source a forecast")

    @property
    def month(self) -> date:
        return month_of(self.at)

    def spent(self, basis: Basis) -> Decimal | None:
        return self.gross_usd if basis == "actual" else self.forecast_usd

    def is_acted_on(self, basis: Basis) -> bool:
        """A guess from a day or two is told and changes nothing."""
        return not (
            basis == "forecast" and self.forecast_source == "run-rate" and self.complete_days < RUN_RATE_DAYS_TRUSTED
        )


@dataclass(frozen=True, slots=True)
class Spending:
    """A report with where the money went.

    Attributes:
        daily_usd: run rate, gross; None without a complete day.
        by_tag: gross by tag value, largest first.
        estimated: AWS may still change the amounts.
        tag_looks_inactive: nearly all of the spend is untagged.
    """

    report: SpendReport
    daily_usd: Decimal | None
    by_tag: Mapping[str, Decimal] = field(default_factory=dict)
    untagged_usd: Decimal = _ZERO
    estimated: bool = False
    tag_looks_inactive: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A threshold that this month has reached.

    Attributes:
        reached_at: when a report first said so.
        usd: what that report said.
        source: of a forecast.
        acts_from: when its action came into force; None while only a guess says so, and for notify.
    """

    month: date
    threshold: Threshold
    budget_usd: Decimal
    reached_at: datetime
    usd: Decimal
    source: ForecastSource | None
    acts_from: datetime | None

    @property
    def key(self) -> str:
        """Names the alert: one per month and level. A budget that was raised and reached again is news."""
        return f"{self.month:%Y-%m}/{self.threshold.basis}/{self.threshold.percent}/{self.budget_usd:f}"


def month_of(moment: datetime) -> date:
    """The first day of its month, in UTC."""
    return moment.astimezone(UTC).date().replace(day=1)


def month_after(month: date) -> date:
    return (month.replace(day=1) + 31 * _ONE_DAY).replace(day=1)


def whole_month(month: date) -> Period:
    """All of a month: January ends on February 1st, exclusive."""
    return Period(month.replace(day=1), month_after(month))


def month_to_date(now: datetime) -> Period | None:
    """The month's days before today; None on the 1st, when there are none and Cost Explorer refuses to be asked."""
    day = now.astimezone(UTC).date()
    return Period(day.replace(day=1), day) if day.day > 1 else None


def rest_of_month(now: datetime) -> Period:
    """Today and the month's days after it, for the forecast; with `month_to_date` no day counts twice."""
    day = now.astimezone(UTC).date()
    return Period(day, month_after(day))


def spending(costs: Iterable[Cost], forecast_usd: Decimal | None, now: datetime) -> Spending:
    """Month to date, run rate and forecast.

    Args:
        costs: lines of this month; others are ignored, and so are lines of today, which the forecast covers.
        forecast_usd: AWS's forecast for `rest_of_month`; None when it gives none, and then the run rate stands in and
            says so.
        now: aware.
    """
    today = now.astimezone(UTC).date()
    month = today.replace(day=1)
    gross, net, untagged = _ZERO, _ZERO, _ZERO
    by_tag: dict[str, Decimal] = {}
    by_day: dict[date, Decimal] = {}
    estimated = False
    for cost in costs:
        if not month <= cost.day < today:
            continue
        net += cost.usd
        estimated = estimated or cost.estimated
        if cost.record_type in CREDITS:
            continue
        gross += cost.usd
        by_day[cost.day] = by_day.get(cost.day, _ZERO) + cost.usd
        if cost.tag:
            by_tag[cost.tag] = by_tag.get(cost.tag, _ZERO) + cost.usd
        else:
            untagged += cost.usd
    daily, complete_days = _run_rate(by_day)
    total, source = _forecast(gross, forecast_usd, daily, by_day, today)
    return Spending(
        report=SpendReport(now, gross, net, total, source, complete_days),
        daily_usd=daily,
        by_tag=dict(sorted(by_tag.items(), key=lambda item: (-item[1], item[0]))),
        untagged_usd=untagged,
        estimated=estimated,
        tag_looks_inactive=gross > 0 and untagged >= gross * UNTAGGED_SHARE_TOLD,
    )


def levels(budget: Budget, reports: Iterable[SpendReport], now: datetime) -> tuple[Level, ...]:
    """The thresholds that this month has reached, lowest first.

    A level once reached stays so until the month is over or the budget is raised above it. A forecast that falls
    again often falls because a guardrail works, and lifting that would raise it again.

    Args:
        reports: any order, any months, duplicates allowed; those after `now` are ignored.
    """
    month = month_of(now)
    relevant = sorted((report for report in reports if report.at <= now and report.month == month), key=_by_time)
    found = []
    for threshold in sorted(budget.thresholds, key=lambda one: (one.basis, one.percent, one.action)):
        reached = [
            (report, spent)
            for report in relevant
            if (spent := report.spent(threshold.basis)) is not None and spent >= budget.amount(threshold)
        ]
        if reached:
            first, spent = reached[0]
            acting = (report.at for report, _ in reached if report.is_acted_on(threshold.basis))
            found.append(
                Level(
                    month=month,
                    threshold=threshold,
                    budget_usd=budget.monthly_usd,
                    reached_at=first.at,
                    usd=spent,
                    source=first.forecast_source if threshold.basis == "forecast" else None,
                    acts_from=None if threshold.action == "notify" else next(acting, None),
                )
            )
    return tuple(found)


def alerts_due(reached: Iterable[Level], told: Iterable[str]) -> tuple[Level, ...]:
    """Levels that nobody has been told of; `told` are keys of earlier alerts."""
    known = set(told)
    return tuple(level for level in reached if level.key not in known)


def _by_time(report: SpendReport) -> tuple[datetime, Decimal, Decimal, str, int]:
    """Two runs may read different numbers at one moment; which was stored first must not matter."""
    return report.at, report.gross_usd, report.forecast_usd or _ZERO, report.forecast_source or "", report.complete_days


def _run_rate(by_day: Mapping[date, Decimal]) -> tuple[Decimal | None, int]:
    """US dollars a day, and over how many days: from the first with costs, since a platform may be younger than the
    month.

    Cost Explorer lags by a day or more, so the newest day with costs is still filling up; it is left out as soon as
    there is another.
    """
    days = [day for day, usd in by_day.items() if usd > 0]
    if not days:
        return None, 0
    first, newest = min(days), max(days)
    until = newest if newest > first else newest + _ONE_DAY
    counted = (until - first).days
    return sum((usd for day, usd in by_day.items() if first <= day < until), _ZERO) / counted, counted


def _forecast(
    gross: Decimal, forecast_usd: Decimal | None, daily: Decimal | None, by_day: Mapping[date, Decimal], today: date
) -> tuple[Decimal | None, ForecastSource | None]:
    if forecast_usd is not None:
        return gross + forecast_usd, "aws"
    if daily is None:
        return None, None
    newest = max(day for day, usd in by_day.items() if usd > 0)
    settled = sum((usd for day, usd in by_day.items() if day < newest), _ZERO)
    return max(gross, settled + daily * (month_after(today) - newest).days), "run-rate"
