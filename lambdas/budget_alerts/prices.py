"""What a million tokens have cost on the last day of which both are known: AWS's bill, and Prometheus' count.

A family's nodes carry one tag, whatever runs on them; a family with several models is split by the hours of their
replicas, each worth what its share of a node costs now.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

from genai_finops.operations import tokens
from genai_finops.operations.config import ModelConfig, OperationsConfig
from genai_finops.operations.observed import Node
from genai_finops.operations.tokens import TokenPrice, Tokens
from lambdas.adapters.facts import Fact, FactStore, Kind
from lambdas.adapters.prometheus import MODEL_NAME, RUNNING, Prometheus
from lambdas.budget_alerts.spend import Spend

LAG: Final = timedelta(days=2)
"""Cost Explorer is up to a day late, often more: of the day before yesterday it knows nearly all."""

REMEMBERED: Final = timedelta(days=60)
ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DayPrice:
    """A model's price on a day."""

    model: str
    day: date
    price: TokenPrice


PRICE: Final = Kind("token-price", DayPrice)


def settled_day(now: datetime) -> date | None:
    """The latest day of which the costs are known, None while it is not of this month, which is all that is asked."""
    today = now.astimezone(UTC).date()
    day = today - LAG
    return day if day.month == today.month else None


def token_prices(
    config: OperationsConfig,
    prometheus: Prometheus,
    facts: FactStore,
    spend: Spend,
    nodes: Sequence[Node],
    now: datetime,
) -> dict[str, TokenPrice]:
    """By model, those whose cost is known; `n/a` in it where no tokens were served. Remembered, to doubt later ones.

    Args:
        nodes: that run now, to tell what a replica of each model is worth.

    Raises:
        PrometheusUnreachableError, PrometheusError, KubernetesError: when nobody can say what was served.
    """
    day = settled_day(now)
    if day is None:
        return {}
    end = datetime.combine(day + ONE_DAY, time(), UTC)
    served = prometheus.tokens(ONE_DAY, at=end)
    usd = _by_model(config, spend, day, _samples(prometheus, config, end), _replica_rates(config, nodes))
    known = [fact.what for fact in facts.since(PRICE, now - REMEMBERED)]
    found = {}
    for model in config.models:
        if model.name not in usd:
            continue
        earlier = [one.price for one in known if one.model == model.name and one.day < day]
        price = tokens.token_price(
            usd[model.name],
            served.get(model.served_as, Tokens(0, 0)),
            earlier=earlier,
            output_weight=config.output_token_weight,
        )
        found[model.name] = price
        what = DayPrice(model.name, day, price)
        fact = Fact(kind=PRICE, id=f"{model.name}/{day}", at=end, until=end + REMEMBERED, what=what)
        facts.put(fact, merge=lambda stored, come: come)
    return found


def _by_model(
    config: OperationsConfig, spend: Spend, day: date, samples: Mapping[str, int], rates: Mapping[str, Decimal]
) -> dict[str, Decimal]:
    families: dict[str, list[ModelConfig]] = {}
    for model in config.models:
        families.setdefault(model.family, []).append(model)
    found: dict[str, Decimal] = {}
    for family, models in families.items():
        usd = spend.serving_usd(family, day)
        if usd is None:
            continue
        if len(models) == 1:
            found[models[0].name] = usd
            continue
        known = [rates[model.name] for model in models if model.name in rates]
        # A model that sleeps now has no rate: it is taken for one like the others.
        usual = sum(known, Decimal()) / len(known) if known else Decimal(1)
        weights = {model.name: samples.get(model.served_as, 0) * rates.get(model.name, usual) for model in models}
        found |= tokens.shares(usd, weights)
    return found


def _replica_rates(config: OperationsConfig, nodes: Sequence[Node]) -> dict[str, Decimal]:
    """US dollars an hour that a replica's share of its nodes costs now, by model."""
    replicas: Counter[str] = Counter()
    for node in nodes:
        if tokens.node_price(node, config.prices) is not None:
            replicas.update(node.replicas)
            replicas.update(node.draining)
    live = tokens.live_estimate(nodes, config.prices)
    return {model: usd / replicas[model] for model, usd in live.by_model.items() if usd and replicas[model]}


def _samples(prometheus: Prometheus, config: OperationsConfig, end: datetime) -> dict[str, int]:
    """By name that clients ask for: as many as scrapes of its replicas, so they weigh like hours."""
    selector = f"{{namespace={json.dumps(config.models[0].namespace)}}}"
    series = f"count_over_time({RUNNING}{selector}[{int(ONE_DAY.total_seconds())}s])"
    samples = prometheus.query(f"sum by ({MODEL_NAME}) ({series})", at=end)
    return {labels[MODEL_NAME]: round(value) for labels, value in samples if labels.get(MODEL_NAME)}
