"""What the run-time automation needs to know of a platform: `python -m genai_finops.spec.automation platform.yaml`.

The functions carry this in their bundle instead of the file, its models and its checks.
"""

import sys
from pathlib import Path

from genai_finops.operations import budget as rules
from genai_finops.operations.breaker import BreakerPolicy
from genai_finops.operations.config import ModelConfig, NodePoolConfig, OperationsConfig
from genai_finops.operations.prewarm import PrewarmPolicy
from genai_finops.operations.tokens import InstancePrice
from genai_finops.operations.windows import Schedule
from genai_finops.spec import names, placement
from genai_finops.spec.load import load_platform
from genai_finops.spec.model import Model
from genai_finops.spec.platform import Budget, Platform
from genai_finops.spec.problems import PlatformError


def operations_config(platform: Platform) -> OperationsConfig:
    """The configuration of a valid platform."""
    breaker, prewarm = platform.interruptions.breaker, platform.interruptions.prewarm
    return OperationsConfig(
        platform=platform.name,
        region=platform.region,
        models=tuple(map(_model, platform.models)),
        node_pools=tuple(pool for family in platform.families for pool in _node_pools(platform, family)),
        prices=_prices(platform),
        breaker=BreakerPolicy(
            window_minutes=breaker.window_minutes,
            limit=breaker.interruptions,
            cooldown_minutes=breaker.cooldown_minutes,
            max_doublings=breaker.max_doublings,
            shut_percent_of_zones=breaker.shut_percent_of_zones,
        ),
        prewarm=PrewarmPolicy(hold_seconds=prewarm.hold_seconds),
        budget=_budget(platform.budget) if platform.budget else None,
        output_token_weight=platform.cost_report.output_token_weight,
        daily_digest=platform.cost_report.daily_digest,
        first_of_month=platform.cost_report.first_of_month,
    )


def _model(model: Model) -> ModelConfig:
    schedule = model.schedule
    return ModelConfig(
        name=model.name,
        deployment=names.deployment(model),
        namespace=names.MODEL_NAMESPACE,
        served_as=model.served_as,
        family=model.accelerator.family,
        min_replicas=model.scaling.min_replicas,
        max_replicas=model.scaling.max_replicas,
        critical=model.critical,
        spot=model.spot,
        drain_seconds=model.drain_seconds,
        startup_seconds=model.probes.startup_seconds,
        schedule=_schedule(model),
        sleep_busy_limit_minutes=schedule.sleep_busy_limit_minutes if schedule else 0,
        placeholders=model.warm_capacity.placeholders,
        placeholder_deployment=names.warm_deployment(model) if model.warm_capacity.placeholders else None,
    )


def _schedule(model: Model) -> Schedule | None:
    if model.schedule is None:
        return None
    return Schedule(
        zone=model.schedule.time_zone,
        windows=tuple(window.window() for window in model.schedule.awake),
        special_days=tuple(exception.special_days() for exception in model.schedule.exceptions),
        wake_lead_minutes=model.schedule.wake_lead_minutes,
    )


def _node_pools(platform: Platform, family: str) -> list[NodePoolConfig]:
    """As in `k8s_charts.karpenter`; a test compares the two."""
    models = platform.models_on(family)
    minutes = platform.node_pool(family).consolidate_after_minutes
    found = []
    if any(model.spot != "never" for model in models):
        found.append(NodePoolConfig(names.spot_node_pool(family), family, "spot", platform.zones, minutes))
    if any(model.spot != "only" for model in models):
        found.append(NodePoolConfig(names.on_demand_node_pool(family), family, "on-demand", platform.zones, minutes))
    return found


def _prices(platform: Platform) -> dict[str, InstancePrice]:
    types = {instance.name: instance for model in platform.models for instance in placement.pool_instances(model)}
    return {
        name: InstancePrice(instance.on_demand_usd_hour, instance.spot_usd_hour)
        for name, instance in sorted(types.items())
    }


def _budget(budget: Budget) -> rules.Budget:
    acts = {(guardrail.basis, guardrail.percent): guardrail for guardrail in budget.guardrails}
    bases: tuple[tuple[rules.Basis, tuple[int, ...]], ...] = (
        ("actual", budget.actual_thresholds_percent),
        ("forecast", budget.forecast_thresholds_percent),
    )
    thresholds = []
    for basis, percents in bases:
        for percent in percents:
            guardrail = acts.get((basis, percent))
            if guardrail:
                thresholds.append(rules.Threshold(basis, percent, guardrail.action, guardrail.replicas))
            else:
                thresholds.append(rules.Threshold(basis, percent))
    return rules.Budget(budget.monthly_usd, tuple(thresholds))


def main(file: str) -> None:
    """Print the configuration of a platform file."""
    try:
        print(operations_config(load_platform(Path(file))).to_json(), end="")
    except PlatformError as error:
        sys.exit(error.render())


if __name__ == "__main__":
    main(*sys.argv[1:] or ["platform.yaml"])
