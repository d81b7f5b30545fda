"""What each way to serve a load costs: the article's table to the cent, and beside it what its question asks for.

The article divides two hourly prices. What a million tokens cost depends on how many replicas the load needs within
its objective, so that is computed here for every instance type that the model fits, at steady state and by arithmetic
alone: it answers at once. Replicas are counted for the peak and stand all month; `plan` lets them scale, and simulates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from math import ceil
from typing import Any, Final

from genai_finops.catalog import InstanceType, Purchase, published_costs
from genai_finops.planner import money
from genai_finops.planner.fixed_cost import volume_usd_month
from genai_finops.planner.layouts import Fit, fit, fits
from genai_finops.planner.objectives import slowness, target_of
from genai_finops.planner.performance.model import MeasuredProfile, replica_performance
from genai_finops.planner.performance.replica import ReplicaPerformance
from genai_finops.planner.provenance import worst
from genai_finops.planner.results import (
    Alternative,
    ArticleColumn,
    ArticleTable,
    ComparedLoad,
    Comparison,
    Correction,
    Evidence,
    ObjectiveTarget,
    PriceUsed,
)
from genai_finops.planner.steady_state import UTILIZATION_BOUND, Load, State, capacity, state
from genai_finops.spec import Model
from genai_finops.spec.advice import HOURS_A_MONTH
from genai_finops.spec.platform import Volume

PEAK_FACTOR: Final = 3.0
"""Peak over mean where no traffic says (assumed: an office day's shape)."""

_CENT: Final = Decimal("0.01")
_SECONDS_A_DAY: Final = 86400
_PURCHASES: Final[tuple[Purchase, ...]] = ("spot", "on-demand")


def article_table() -> ArticleTable:
    """The article's cost table, recomputed from what it was computed from."""
    article = published_costs.article()
    million_tokens = article.tokens_a_day * article.days_a_month // money.MILLION

    def column(side: published_costs.ArticleSide) -> ArticleColumn:
        monthly = side.usd_hour * article.hours_a_month
        return ArticleColumn(
            instance=side.instance,
            usd_hour=side.usd_hour,
            hours=article.hours_a_month,
            monthly_usd=_cents(monthly),
            million_tokens=million_tokens,
            usd_per_million_tokens=_cents(monthly / million_tokens),
        )

    return ArticleTable(
        baseline=column(article.baseline),
        optimized=column(article.optimized),
        saved_share=1 - article.optimized.usd_hour / article.baseline.usd_hour,
        assumption=(
            f"One instance of either serves {article.tokens_a_day // money.MILLION}M tokens a day, on demand, in a "
            f"month of {article.hours_a_month} hours."
        ),
        corrections=tuple(Correction(claim.claim, claim.right) for claim in article.claims),
        source=f"{article.publisher}, {article.title}, {article.published:%B %Y}",
    )


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(_CENT, ROUND_HALF_UP)


def article_model() -> Model:
    """The model that the article serves, on what it is served on there."""
    article = published_costs.article()
    family, size = article.optimized.instance.split(".")
    document: dict[str, Any] = {
        "name": "llama3-8b",
        "source": f"hf://{article.model}",
        "revision": "0" * 40,
        "accelerator": {"family": family, "sizes": (size,)},
    }
    return Model.model_validate(document)


def article_load() -> ComparedLoad:
    """The article's tokens a day, in requests of a chat; its peak is assumed."""
    article, shape = published_costs.article(), published_costs.conversation()
    mean = article.tokens_a_day / (shape.input_tokens + shape.output_tokens) / _SECONDS_A_DAY
    return ComparedLoad(
        name=f"{article.tokens_a_day // money.MILLION}M tokens a day",
        mean_requests_per_second=mean,
        peak_requests_per_second=mean * PEAK_FACTOR,
        mean_input_tokens=shape.input_tokens,
        mean_output_tokens=shape.output_tokens,
        utilization_bound_share=UTILIZATION_BOUND,
    )


def compare(
    model: Model,
    load: ComparedLoad,
    objective: ObjectiveTarget,
    *,
    region: str = "us-east-1",
    volume: Volume | None = None,
    profiles: Sequence[MeasuredProfile] = (),
) -> Comparison:
    """Every way to serve `load` with `model` within `objective`, the cheapest per output token first.

    Args:
        region: named where a price is not known; the catalog's prices are of one region.
        volume: of each node; None is the platform's default.
        profiles: measured performance that takes the place of the built-in one.
    """
    volume_usd_hour = volume_usd_month(volume or Volume()) / HOURS_A_MONTH
    found = [
        _alternative(fit, price, load, objective, profiles)
        for fit in fits(model)
        for price in _prices(fit, region, volume_usd_hour)
    ]
    feasible = sorted((each for each in found if each.is_feasible), key=_cost)
    ruled_out = sorted((each for each in found if not each.is_feasible), key=lambda each: each.instance)
    winner = feasible[0] if feasible else None
    ranked = [replace(each, reason=_behind(each, winner)) for each in feasible]
    return Comparison(
        article=article_table(),
        model=model.name,
        load=load,
        objective=objective,
        alternatives=(*ranked, *ruled_out),
        winner=ranked[0] if ranked else None,
        is_close=len(ranked) > 1 and _overlap(ranked[0], ranked[1]),
        evidence=tuple(evidence()),
        notes=tuple(_notes(load)),
    )


def as_it_is(
    model: Model,
    instance: InstanceType,
    purchase: Purchase,
    load: ComparedLoad,
    *,
    region: str,
    volume: Volume,
) -> Alternative:
    """The same for one way alone: a model in its layout, on one type, bought in one way."""
    volume_usd_hour = volume_usd_month(volume) / HOURS_A_MONTH
    price = money.price_used(region, instance, purchase, volume_usd_hour)
    return _alternative(fit(model, instance, model.tensor_parallel_size), price, load, target_of(model), ())


def evidence() -> Iterator[Evidence]:
    """Published costs, to be put beside the computed ones."""
    for each in published_costs.published_costs():
        yield Evidence(each.instance, each.purchase, each.low_usd, each.high_usd, each.source)


def _prices(fit: Fit, region: str, volume_usd_hour: Decimal) -> Iterator[PriceUsed]:
    """Both purchases where their price is known; the instance once where neither is, or where it does not fit."""
    known = [money.price_used(region, fit.instance, purchase, volume_usd_hour) for purchase in _PURCHASES]
    known = [price for price in known if price.usd_hour is not None] or known[1:]
    yield from known if fit.fits else known[-1:]


def _cost(each: Alternative) -> tuple[Decimal, str, int]:
    assert each.usd_per_million_output_tokens is not None
    return each.usd_per_million_output_tokens, each.instance, each.tensor_parallel_size


def _alternative(
    fit: Fit, price: PriceUsed, load: ComparedLoad, objective: ObjectiveTarget, profiles: Sequence[MeasuredProfile]
) -> Alternative:
    base = Alternative(
        instance=fit.instance.name,
        tensor_parallel_size=fit.tensor_parallel_size,
        replicas_per_node=fit.replicas_per_node,
        purchase=price.purchase,
        price=price,
        is_feasible=False,
        reason=fit.reason,
        interruption_band=fit.instance.interruption_band if price.purchase == "spot" else "",
    )
    if not fit.fits:
        return base
    performance = replica_performance(fit.model, fit.instance, profiles)
    base = replace(base, **_origin(performance))
    if price.usd_hour is None:
        return replace(base, reason=money.unknown_price(price))
    request = Load(load.mean_input_tokens, load.mean_output_tokens)
    carried = _carried(performance, request, load, objective)
    if carried is None:
        return replace(base, reason=_too_slow(performance, request, objective))
    return _sized(base, price, load, objective, performance, carried)


def _origin(performance: ReplicaPerformance) -> dict[str, Any]:
    """The worse of both halves of the step model: the cost hangs on either."""
    decode, prefill = performance.decode_origin, performance.prefill_origin
    return {
        "provenance": worst(decode.provenance, prefill.provenance),
        "relative_error": max(decode.relative_error, prefill.relative_error),
        "performance_source": "; ".join(dict.fromkeys((decode.source, prefill.source))),
    }


def _carried(
    performance: ReplicaPerformance, request: Load, load: ComparedLoad, objective: ObjectiveTarget
) -> State | None:
    return capacity(
        performance,
        request,
        time_to_first_token_seconds=objective.time_to_first_token_seconds,
        inter_token_seconds=objective.inter_token_seconds,
        share=objective.percent / 100,
        bound=load.utilization_bound_share,
    )


def _sized(
    base: Alternative,
    price: PriceUsed,
    load: ComparedLoad,
    objective: ObjectiveTarget,
    performance: ReplicaPerformance,
    carried: State,
) -> Alternative:
    """With as many replicas as the peak needs, at both ends of the error bars too."""
    assert price.usd_hour is not None
    node_usd_hour = price.usd_hour + price.volume_usd_hour
    request = Load(load.mean_input_tokens, load.mean_output_tokens)

    def nodes(found: State) -> int:
        return ceil(_replicas(load, found) / base.replicas_per_node)

    def monthly(end: float) -> Decimal | None:
        found = _carried(performance.scaled(end), request, load, objective)
        return None if found is None else nodes(found) * node_usd_hour * HOURS_A_MONTH

    requests = Decimal(repr(load.mean_requests_per_second)) * HOURS_A_MONTH * money.SECONDS_AN_HOUR

    def per_million(usd: Decimal | None, tokens: float) -> Decimal | None:
        return None if usd is None else usd * money.MILLION / (requests * Decimal(repr(tokens)))

    replicas = _replicas(load, carried)
    each = load.peak_requests_per_second / replicas
    at_peak = state(performance, request, each, objective.percent / 100)
    assert at_peak  # below the capacity
    nominal, low, high = nodes(carried) * node_usd_hour * HOURS_A_MONTH, monthly(-1), monthly(1)
    total = request.input_tokens + request.output_tokens
    return replace(
        base,
        is_feasible=True,
        replicas=replicas,
        nodes=nodes(carried),
        capacity_requests_per_second=carried.requests_per_second,
        peak_utilization_share=each / carried.requests_per_second,
        time_to_first_token_seconds=at_peak.time_to_first_token_seconds,
        inter_token_seconds=at_peak.inter_token_seconds,
        node_usd_hour=node_usd_hour,
        monthly_usd=nominal,
        monthly_low_usd=low,
        monthly_high_usd=high,
        usd_per_million_input_tokens=per_million(nominal, request.input_tokens),
        usd_per_million_output_tokens=per_million(nominal, request.output_tokens),
        usd_per_million_output_tokens_low=per_million(low, request.output_tokens),
        usd_per_million_output_tokens_high=per_million(high, request.output_tokens),
        usd_per_million_total_tokens=per_million(nominal, total),
        usd_per_million_total_tokens_low=per_million(low, total),
        usd_per_million_total_tokens_high=per_million(high, total),
    )


def _replicas(load: ComparedLoad, carried: State) -> int:
    return max(1, ceil(load.peak_requests_per_second / carried.requests_per_second))


def _too_slow(performance: ReplicaPerformance, request: Load, objective: ObjectiveTarget) -> str:
    """Why no number of replicas meets the objective."""
    return slowness(performance, request, objective) or (
        "a queue in front of one replica breaks the objective at any rate worth having"
    )


def _behind(each: Alternative, winner: Alternative | None) -> str:
    if winner is None or each is winner:
        return ""
    assert each.monthly_usd is not None
    assert winner.monthly_usd is not None
    more = each.monthly_usd / winner.monthly_usd - 1
    return f"dearer by {more:.0%}" if more else "costs as much"


def _overlap(first: Alternative, second: Alternative) -> bool:
    """Whether the error bars leave open which is cheaper; an end that does not hold at all leaves it open too."""
    high, low = first.usd_per_million_output_tokens_high, second.usd_per_million_output_tokens_low
    return high is None or low is None or low <= high


def _notes(load: ComparedLoad) -> Iterator[str]:
    bound = f"{load.utilization_bound_share:.0%}"
    yield (
        f"Replicas for the peak of {load.peak_requests_per_second:.3g} requests a second at most {bound} of what they "
        f"could carry, all awake for {HOURS_A_MONTH} hours; `plan` lets them scale."
    )
    yield (
        f"Every request has {load.mean_input_tokens:.0f} tokens in and {load.mean_output_tokens:.0f} out, the mean of "
        "the load."
    )
    yield "Spot is taken at its price of the day without interruptions; `simulate` has both."
    yield "The cluster's fixed cost is the same for all and left out; each node's volume is in."
