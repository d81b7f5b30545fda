"""What a change of the platform file does to its monthly cost and to its objectives, line by line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal

from genai_finops.planner import money
from genai_finops.planner.fixed_cost import CostLine, ServingCost, fixed_monthly_cost, serving_cost
from genai_finops.planner.results import (
    Difference,
    DifferenceLine,
    ModelSimulation,
    PlatformSimulation,
    ServiceChange,
)
from genai_finops.spec import Platform, Warning

if TYPE_CHECKING:  # without traffic nothing is simulated, and neither numpy nor numba needed
    from genai_finops.planner.evaluate import Progress
    from genai_finops.planner.performance.model import MeasuredProfile
    from genai_finops.planner.traffic.requests import Traffic

_COUNTED: Final = re.compile(r", (?=\d|extended support)")
"""What follows in the name of a fixed line is how many, or of which kind."""

_USES: Final = ("busy", "idle", "starting", "placeholder", "empty")


def difference(
    before: Platform,
    after: Platform,
    *,
    today: date,
    traffic: "Mapping[str, Traffic] | None" = None,
    seed: int = 0,
    profiles: "Sequence[MeasuredProfile]" = (),
    inter_token_seconds: float | None = None,
    progress: "Progress | None" = None,
) -> Difference:
    """Cost and service of both platforms.

    Args:
        traffic: by the name of the model, in either platform; without any, models are priced at min_replicas.

    Raises:
        ValueError: for traffic of a model that is in neither.
    """
    if not traffic:
        return _priced(before, after, today)
    from genai_finops.planner.evaluate import simulate_platform

    names = {model.name for model in (*before.models, *after.models)}
    unknown = sorted(set(traffic) - names)
    if unknown:
        raise ValueError(f"There is traffic for {unknown[0]!r}, and no such model: {', '.join(sorted(names))}.")
    old, new = (
        simulate_platform(
            platform,
            {model.name: traffic[model.name] for model in platform.models if model.name in traffic},
            today=today,
            seed=seed,
            profiles=profiles,
            inter_token_seconds=inter_token_seconds,
            progress=progress,
        )
        for platform in (before, after)
    )
    lines = (*_fixed_lines(before, after, today), *_lines(_simulated(old), _simulated(new)))
    return _result(before, after, today, "simulated", lines, tuple(_service(old, new)), new.warnings)


def _priced(before: Platform, after: Platform, today: date) -> Difference:
    old, new = (_at_min(serving_cost(platform)) for platform in (before, after))
    return _result(
        before, after, today, "min_replicas", (*_fixed_lines(before, after, today), *_lines(old, new)), (), ()
    )


Amounts = dict[tuple[str, str], Decimal | None]
"""Monthly dollars by group and name; None is not known."""


def _fixed_lines(before: Platform, after: Platform, today: date) -> Iterator[DifferenceLine]:
    """A line is the same though its name counts other things: two NAT gateways, then three."""
    old, new = (_named(fixed_monthly_cost(platform, today).lines) for platform in (before, after))
    for key in dict.fromkeys((*old, *new)):
        was, will = old.get(key), new.get(key)
        shown = will or was
        assert shown
        yield _line("fixed", shown.name, was is not None, will is not None, _usd(was), _usd(will))


def _named(lines: Iterable[CostLine]) -> dict[str, CostLine]:
    return {_COUNTED.split(line.name)[0]: line for line in lines}


def _usd(line: CostLine | None) -> Decimal | None:
    return None if line is None else line.monthly_usd


def _at_min(costs: Iterable[ServingCost]) -> Amounts:
    return {(cost.model, "nodes at min_replicas"): cost.at_min_usd("spot") for cost in costs}


def _simulated(result: PlatformSimulation) -> Amounts:
    """By what node time was paid for; models without traffic at their least."""
    found: Amounts = {}
    for model in result.models:
        cost = model.nominal.monthly
        for use in _USES:
            amount = getattr(cost, f"{use}_usd")
            if amount != 0:
                found[model.model, f"nodes, {use}"] = amount
    for each in result.without_traffic:
        found[each.model, "nodes at min_replicas"] = each.at_min_monthly_usd
    return found


def _lines(old: Amounts, new: Amounts) -> Iterator[DifferenceLine]:
    for group, name in dict.fromkeys((*old, *new)):
        key = (group, name)
        yield _line(group, name, key in old, key in new, old.get(key), new.get(key))


def _line(
    group: str, name: str, was_there: bool, is_there: bool, before: Decimal | None, after: Decimal | None
) -> DifferenceLine:
    sign: Literal["+", "-", "~", " "]
    if was_there and is_there:
        sign = " " if before == after and before is not None else "~"
    else:
        sign = "+" if is_there else "-"
    old, new = before if was_there else Decimal(0), after if is_there else Decimal(0)
    change = None if old is None or new is None else new - old
    return DifferenceLine(
        sign=sign,
        group=group,
        name=name,
        before_usd=before,
        after_usd=after,
        change_usd=change,
        change_share=_share(change, old),
    )


def _share(change: Decimal | None, before: Decimal | None) -> float | None:
    return None if change is None or not before else float(change / before)


def _result(
    before: Platform,
    after: Platform,
    today: date,
    basis: Literal["simulated", "min_replicas"],
    lines: tuple[DifferenceLine, ...],
    service: tuple[ServiceChange, ...],
    warnings: tuple[Warning, ...],
) -> Difference:
    was = money.total(line.before_usd for line in lines if line.sign != "+")
    will = money.total(line.after_usd for line in lines if line.sign != "-")
    change = None if was is None or will is None else will - was
    return Difference(
        before=before.name,
        after=after.name,
        basis=basis,
        lines=lines,
        before_usd=was,
        after_usd=will,
        change_usd=change,
        change_share=_share(change, was),
        before_ceiling_usd=_ceiling(before, today),
        after_ceiling_usd=_ceiling(after, today),
        service=service,
        after_budget_usd=after.budget.monthly_usd if after.budget else None,
        warnings=warnings,
    )


def _ceiling(platform: Platform, today: date) -> Decimal | None:
    fixed = fixed_monthly_cost(platform, today).monthly_usd
    return money.total((fixed, *(cost.ceiling_usd for cost in serving_cost(platform))))


def _service(old: PlatformSimulation, new: PlatformSimulation) -> Iterator[ServiceChange]:
    was = {model.model: model for model in old.models}
    will = {model.model: model for model in new.models}
    for name in dict.fromkeys((*was, *will)):
        before, after = was.get(name), will.get(name)
        yield ServiceChange(
            model=name,
            before_verdict=before.verdict if before else None,
            after_verdict=after.verdict if after else None,
            before_attainment_share=before.nominal.attainment_share if before else None,
            after_attainment_share=after.nominal.attainment_share if after else None,
            before_time_to_first_token_p95_seconds=_first_token(before),
            after_time_to_first_token_p95_seconds=_first_token(after),
        )


def _first_token(model: ModelSimulation | None) -> float | None:
    return model.nominal.time_to_first_token.p95_seconds if model else None
