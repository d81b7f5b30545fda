"""The messages themselves: how much, where it goes, what happens next and what to do."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from genai_finops.operations.breaker import Open
from genai_finops.operations.budget import Level, Spending, month_after
from genai_finops.operations.config import OperationsConfig
from genai_finops.operations.desired import Notice
from genai_finops.operations.guardrails import Announcement, describe
from genai_finops.operations.incidents import Incident, IncidentCost
from genai_finops.operations.losses import Pool
from genai_finops.operations.messages import Message, listed
from genai_finops.operations.tokens import LiveEstimate, TokenPrice
from genai_finops.operations.verify import Deviation

TAGS_SHOWN: Final = 5


def usd(amount: Decimal) -> str:
    """`$1,234.50`; small amounts with as many places as they need to be more than nothing, up to four."""
    if amount and abs(amount) < Decimal("0.1"):
        return f"${amount:,.4f}" if amount > 0 else f"-${-amount:,.4f}"
    return f"${amount:,.2f}" if amount >= 0 else f"-${-amount:,.2f}"


def budget_alert(config: OperationsConfig, due: tuple[Level, ...], found: Spending, live: LiveEstimate) -> Message:
    """Levels that were reached since the last message, in one message.

    Args:
        due: at least one.
    """
    worst = max(due, key=lambda level: (level.threshold.basis == "actual", level.threshold.percent))
    verb = "spent" if worst.threshold.basis == "actual" else f"expected ({_source(worst)})"
    title = f"{config.platform}: {worst.threshold.percent}% of the budget of {usd(worst.budget_usd)} {verb}"
    effects = [
        f"From now on {describe(level)}, until {month_after(level.month)} or until the budget is raised"
        for level in due
        if level.acts_from
    ]
    unsure = [
        f"Not yet: {describe(level)}. That waits for AWS's forecast, or for a run rate over more days"
        for level in due
        if level.threshold.action != "notify" and level.acts_from is None
    ]
    return Message(
        title=title,
        severity="critical" if worst.threshold.basis == "actual" and worst.threshold.percent >= 100 else "warning",
        lines=(*(_reached(level) for level in due), *_amounts(found), *_running(live), *_warnings(found)),
        next_steps=(*effects, *unsure) or ("Nothing changes by itself: no guardrail is set for this level",),
        to_do=(
            "See what runs: kubectl get scaledobjects,nodeclaims -A",
            "Lower max_replicas or shorten the hours of what can wait, in platform.yaml",
            "If the spend is right, raise budget.monthly_usd and deploy: that lifts guardrails",
        ),
    )


def digest(
    config: OperationsConfig, found: Spending, live: LiveEstimate, prices: Mapping[str, TokenPrice], now: datetime
) -> Message:
    """The quiet daily message."""
    return Message(
        title=f"{config.platform}: {usd(found.report.gross_usd)} this month as of {now.astimezone(UTC):%Y-%m-%d}",
        lines=(*_amounts(found), *_running(live), *map(token_line, prices, prices.values()), *_warnings(found)),
    )


def token_line(model: str, price: TokenPrice) -> str:
    """Cost per 1M tokens of a model, `n/a` where none were served."""
    parts = [
        f"{'n/a' if amount is None else usd(amount)} {name}"
        for name, amount in (("input", price.input), ("output", price.output))
    ]
    doubt = f" (not believed: {price.doubt})" if price.doubt else ""
    return f"{model} per 1M tokens: {', '.join(parts)}{doubt}"


def guardrails_changed(config: OperationsConfig, changed: tuple[Announcement, ...]) -> Message:
    """Guardrails that came into force or were lifted; at least one."""
    on = [f"In force: {one.guardrail}" for one in changed if not one.lifted]
    critical = [model.name for model in config.models if model.critical]
    return Message(
        title=f"{config.platform}: budget guardrails {'in force' if on else 'lifted'}",
        severity="warning" if on else "info",
        lines=(*on, *(f"Lifted: {one.guardrail}" for one in changed if one.lifted)),
        next_steps=(f"Untouched, being critical: {listed(critical) or 'no model is marked so'}",),
        to_do=("Keep one model awake in spite of it: make hold MODEL=… UNTIL=…",) if on else (),
    )


def incident(
    config: OperationsConfig, found: Incident, cost: IncidentCost, raised: Mapping[str, int], resting: Iterable[Pool]
) -> Message:
    """What was lost, what was done, what it costs.

    Args:
        raised: the minimum in force, by model, of those that were raised.
        resting: pools whose breaker is open.
    """
    pools = sorted({f"{loss.pool.instance_type} in {loss.pool.zone}" for loss in found.losses if loss.pool})
    kinds = sorted({loss.kind.value for loss in found.losses})
    rests = sorted(f"{pool.instance_type} in {pool.zone}" for pool in resting)
    count = len(found.losses)
    unpriced = (f"No price for {listed(cost.unpriced)}: not counted",) if cost.unpriced else ()
    without_spot = (f"While Spot rests: {usd(cost.without_spot)} an hour more than before",) if rests else ()
    return Message(
        title=f"{config.platform}: {count} × {listed(pools) or 'an unknown type'} reclaimed",
        severity="warning",
        lines=(
            f"Since {found.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC, by {listed(kinds)}",
            *(f"{model}: {replicas} replicas on these nodes" for model, replicas in found.replicas.items()),
            *(f"{model}: at least {minimum} replicas while replacements load" for model, minimum in raised.items()),
            f"Replacements cost {usd(cost.doubled)} an hour (estimate at catalog prices)",
            *without_spot,
            *unpriced,
        ),
        next_steps=(
            "Minima go back by themselves once the nodes are gone, or after the configured time",
            *((f"Spot rests: {listed(rests)}",) if rests else ()),
        ),
        to_do=("If it repeats: more zones or sizes in platform.yaml, or spot: never for what must not wait",),
    )


def breaker_opened(config: OperationsConfig, pool: Pool, opened: Open) -> Message:
    """Spot of one pool rests."""
    return Message(
        title=f"{config.platform}: Spot of {pool.instance_type} in {pool.zone} rests until {_clock(opened.until)}",
        severity="warning",
        lines=(
            f"{config.breaker.limit} interruptions within {config.breaker.window_minutes} minutes; "
            f"storm {opened.storm} within a day",
        ),
        next_steps=("New nodes are on demand where the family allows it; running nodes stay", "It reopens by itself"),
        to_do=("If it repeats daily: more zones or sizes, so that Karpenter has somewhere else to go",),
    )


def unfollowed(config: OperationsConfig, found: tuple[Deviation, ...]) -> Message:
    """What was told to the cluster and did not happen; at least one."""
    return Message(
        title=f"{config.platform}: {listed(sorted({one.subject for one in found}))} did not follow",
        severity="warning",
        lines=tuple(one.text for one in found),
        next_steps=("It is tried again at every evaluation, and not told again until it has recovered",),
        to_do=(
            "Is KEDA healthy? kubectl -n keda get pods; kubectl describe scaledobject of the model",
            "Does a PodDisruptionBudget or a finalizer hold pods or nodes? kubectl get pods,nodeclaims -A",
        ),
    )


def notices(config: OperationsConfig, found: tuple[Notice, ...]) -> Message:
    """What no patch can mend; at least one."""
    return Message(
        title=f"{config.platform}: {len(found)} thing{'s' if len(found) > 1 else ''} to look at",
        severity="warning",
        lines=tuple(one.text for one in found),
    )


def _reached(level: Level) -> str:
    what = "spent" if level.threshold.basis == "actual" else f"expected by the end of the month ({_source(level)})"
    return f"{level.threshold.percent}% reached: {usd(level.usd)} {what}"


def _source(level: Level) -> str:
    return "AWS forecast" if level.source == "aws" else "estimate from the run rate"


def _amounts(found: Spending) -> list[str]:
    report = found.report
    unsettled = "; AWS may still change the last days" if found.estimated else ""
    lines = [f"Month to date: {usd(report.gross_usd)}, after credits {usd(report.net_usd)}{unsettled}"]
    if found.daily_usd is not None:
        lines.append(f"Run rate: {usd(found.daily_usd)} a day")
    if report.forecast_usd is None:
        lines.append("Forecast: n/a, too early to say")
    else:
        source = "AWS" if report.forecast_source == "aws" else f"run rate over {_days(report.complete_days)}"
        lines.append(f"Forecast for the month: {usd(report.forecast_usd)} ({source})")
    largest = list(found.by_tag.items())[:TAGS_SHOWN]
    lines += [f"{tag}: {usd(amount)}" for tag, amount in largest]
    rest = sum(list(found.by_tag.values())[TAGS_SHOWN:], Decimal(0))
    if rest:
        lines.append(f"{len(found.by_tag) - TAGS_SHOWN} others: {usd(rest)}")
    if found.untagged_usd:
        lines.append(f"Untagged: {usd(found.untagged_usd)}")
    return lines


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"


def _running(live: LiveEstimate) -> list[str]:
    kinds = ", ".join(f"{kind} {usd(amount)}" for kind, amount in sorted(live.by_capacity_type.items()))
    lines = [
        f"Nodes running now: {usd(live.total)} an hour{f' ({kinds})' if kinds else ''}, estimate at catalog prices"
    ]
    if live.idle:
        lines.append(f"Of that for nobody: {usd(live.idle)} an hour on nodes without a replica")
    if live.unpriced:
        lines.append(f"Not in it, for want of a price: {listed(live.unpriced)}")
    return lines


def _warnings(found: Spending) -> list[str]:
    if not found.tag_looks_inactive:
        return []
    return ["Nearly all of it is untagged: activate the cost-allocation tags in the Billing console (takes a day)"]


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
