"""One run of the daily look: each part is done whatever becomes of the others, and what failed is said at the end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from aws_lambda_powertools.metrics import MetricUnit, single_metric
from botocore.exceptions import BotoCoreError, ClientError

from genai_finops.operations import alerts, budget, tokens
from genai_finops.operations.budget import Level, Spending
from genai_finops.operations.desired import Notice
from genai_finops.operations.tokens import LiveEstimate, TokenPrice
from lambdas import memory, telling
from lambdas.adapters.cost_explorer import USD_PER_CALL, CostExplorer
from lambdas.adapters.kubernetes_errors import KubernetesError
from lambdas.adapters.observability import NAMESPACE, logger, metrics
from lambdas.adapters.prometheus import PrometheusError, PrometheusUnreachableError
from lambdas.budget_alerts.prices import token_prices
from lambdas.budget_alerts.spend import Spend, ask
from lambdas.memory import LEVEL, TOLD, told
from lambdas.reconcile import Reconciled, evaluate
from lambdas.runtime import Runtime
from lambdas.telling import News

UNSEEN: Final = LiveEstimate(Decimal(), {}, {}, Decimal(), ("all nodes, since the cluster does not answer",))


class ReportError(Exception):
    """Parts could not be done, all named; everything else was."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What a run found.

    Attributes:
        alerts: keys of the levels that were told.
    """

    gross_usd: Decimal
    alerts: tuple[str, ...]


def report(runtime: Runtime) -> Reported:
    """Ask, remember, act, tell.

    Raises:
        ReportError: when something could not be done; the rest was.
    """
    now = runtime.now()
    problems: list[str] = []
    spend = _spend(runtime, now, problems)
    if spend:
        problems += spend.problems
        memory.record_report(runtime, spend.spending.report)
    found = _reconciled(runtime, problems)
    live = tokens.live_estimate(found.shown.nodes, runtime.config.prices) if found else UNSEEN
    due: tuple[Level, ...] = ()
    if spend:
        due = _due(runtime, now)
        prices = _prices(runtime, spend, found, now)
        _measure(runtime, spend.spending, live, prices)
        news = [*_alerts(runtime, due, spend.spending, live, now), *_tags(runtime, spend.spending, now)]
        news += _digests(runtime, spend.spending, live, prices, now)
        problems += map(str, telling.send(runtime, news, now))
    if problems:
        raise ReportError("\n".join(problems))
    assert spend
    return Reported(spend.spending.report.gross_usd, tuple(level.key for level in due))


def _spend(runtime: Runtime, now: datetime, problems: list[str]) -> Spend | None:
    explorer = CostExplorer(runtime.aws("ce"))
    try:
        return ask(explorer, runtime.config.platform, now)
    except (ClientError, BotoCoreError, RuntimeError) as error:
        logger.error("no costs", extra={"error": str(error)})
        problems.append(f"Cost Explorer does not say what was spent: {error}")
        return None
    finally:
        metrics.add_metric("CostExplorerCalls", MetricUnit.Count, explorer.paid_calls)
        metrics.add_metric("CostExplorerUsd", MetricUnit.NoUnit, float(explorer.paid_calls * USD_PER_CALL))


def _reconciled(runtime: Runtime, problems: list[str]) -> Reconciled | None:
    """An alert must go out while the cluster does not answer, and most of all then."""
    try:
        found = evaluate(runtime, because="budget")
    except KubernetesError as error:
        logger.error("no look at the cluster", extra={"error": str(error)})
        problems.append(str(error))
        return None
    problems += found.problems
    return found


def _prices(runtime: Runtime, spend: Spend, found: Reconciled | None, now: datetime) -> dict[str, TokenPrice]:
    """Without Prometheus there are none today: no reason to ask AWS, for money, all over again."""
    if found is None:
        return {}
    try:
        return token_prices(runtime.config, runtime.prometheus, runtime.facts, spend, found.shown.nodes, now)
    except (PrometheusUnreachableError, PrometheusError, KubernetesError) as error:
        logger.warning("no cost per token", extra={"error": str(error)})
        return {}


def _due(runtime: Runtime, now: datetime) -> tuple[Level, ...]:
    if runtime.config.budget is None:
        return ()
    reached = budget.levels(runtime.config.budget, memory.recall(runtime, now).reports, now)
    known = {fact.id for fact in runtime.facts.since(LEVEL, now - TOLD)}
    return budget.alerts_due(reached, known)


def _alerts(
    runtime: Runtime, due: tuple[Level, ...], spending: Spending, live: LiveEstimate, now: datetime
) -> Iterator[News]:
    if due:
        message = alerts.budget_alert(runtime.config, due, spending, live)
        facts = tuple(told(LEVEL, level.key, now) for level in due)
        yield News(f"levels/{'+'.join(level.key for level in due)}", message, facts)


def _tags(runtime: Runtime, spending: Spending, now: datetime) -> Iterator[News]:
    """Once a month: the cost-allocation tags have to be activated by hand."""
    if spending.tag_looks_inactive:
        text = (
            f"{alerts.usd(spending.untagged_usd)} of this month carry no cost-allocation tag. Activate "
            "genai-finops:platform and genai-finops:component in the Billing console; until then costs, alerts and "
            "guardrails look at less than what is spent"
        )
        message = alerts.notices(runtime.config, (Notice("cost/tags", text),))
        yield News(f"tags/{budget.month_of(now):%Y-%m}", message)


def _digests(
    runtime: Runtime,
    spending: Spending,
    live: LiveEstimate,
    prices: Mapping[str, TokenPrice],
    now: datetime,
) -> Iterator[News]:
    """One a day at most, whichever of the two asks for it."""
    message = alerts.digest(runtime.config, spending, live, prices, now)
    if runtime.config.daily_digest:
        yield News(f"digest/{now.astimezone(UTC):%Y-%m-%d}", message)
    elif runtime.config.first_of_month:
        yield News(f"digest/{now.astimezone(UTC):%Y-%m}", message)


def _measure(runtime: Runtime, spending: Spending, live: LiveEstimate, prices: Mapping[str, TokenPrice]) -> None:
    found = spending.report
    amounts = {
        "MonthToDateGrossUsd": found.gross_usd,
        "MonthToDateNetUsd": found.net_usd,
        "ForecastUsd": found.forecast_usd,
        "RunRateUsdPerDay": spending.daily_usd,
        "NodesUsdPerHourEstimate": live.total,
        "IdleNodesUsdPerHourEstimate": live.idle,
    }
    if runtime.config.budget:
        amounts["BudgetUsedPercent"] = 100 * found.gross_usd / runtime.config.budget.monthly_usd
    for name, amount in amounts.items():
        if amount is not None:
            metrics.add_metric(name, MetricUnit.NoUnit, float(amount))
    for model, price in prices.items():
        if price.doubt:
            logger.warning("a price that is not believed", extra={"model": model, "doubt": price.doubt})
            continue
        for kind, usd in (("Input", price.input), ("Output", price.output)):
            if usd is not None:
                name = f"UsdPerMillion{kind}Tokens"
                with single_metric(name, MetricUnit.NoUnit, float(usd), namespace=NAMESPACE) as metric:
                    metric.add_dimension("model", model)
