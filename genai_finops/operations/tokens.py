"""What a million tokens cost, and what runs right now costs an hour.

Two kinds of numbers, never mixed: AWS's bill, which is right and a day late, and an estimate from running nodes at
catalog prices, which is now and leaves out everything but nodes. Each says which it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import Final

from genai_finops.operations.losses import CapacityType
from genai_finops.operations.observed import Node

MILLION: Final = Decimal(1_000_000)

OUTPUT_WEIGHT: Final = 4
"""An output token's price in input tokens, where one bill is split over both (ours: public price lists of open models
charge 1 to 5 times as much for output; what it really is depends on lengths and batching)."""

BELIEVED_FACTOR: Final = 100
"""A price that jumps by this factor is a fault of the numbers until somebody has looked."""

_ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class InstancePrice:
    """US dollars an hour; None where the catalog has none."""

    on_demand: Decimal | None = None
    spot: Decimal | None = None

    def of(self, capacity_type: CapacityType) -> Decimal | None:
        """Reserved capacity is valued at the on-demand price: it is paid for whether used or not."""
        return self.spot if capacity_type == "spot" else self.on_demand


@dataclass(frozen=True, slots=True)
class Tokens:
    """Served in the same time as the cost."""

    prompt: int
    generated: int


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars per million tokens; None is n/a: none were served.

    Attributes:
        doubt: why the numbers are not to be believed; None when they are.
    """

    input: Decimal | None
    output: Decimal | None
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class LiveEstimate:
    """US dollars an hour of the nodes that run, at catalog prices: no volumes, traffic or control plane.

    Attributes:
        by_model: each node's price by the share of its replicas.
        idle: nodes without a replica.
        unpriced: types and capacity types of nodes that the catalog has no price for; they are in no sum.
    """

    total: Decimal
    by_model: Mapping[str, Decimal]
    by_capacity_type: Mapping[str, Decimal]
    idle: Decimal
    unpriced: tuple[str, ...]


def token_price(
    cost_usd: Decimal,
    tokens: Tokens,
    *,
    earlier: Iterable[TokenPrice] = (),
    output_weight: int = OUTPUT_WEIGHT,
) -> TokenPrice:
    """Cost per million input and output tokens.

    One bill pays for both: an output token counts as `output_weight` input tokens.

    Args:
        cost_usd: of the model, over the time in which the tokens were served.
        earlier: prices of earlier days, to tell whether this one can be believed.
    """
    weighted = tokens.prompt + output_weight * tokens.generated
    if weighted <= 0 or cost_usd < 0:
        doubt = "the cost is negative" if cost_usd < 0 else None
        return TokenPrice(None, None, doubt)
    unit = cost_usd * MILLION / weighted
    found = TokenPrice(unit if tokens.prompt else None, unit * output_weight if tokens.generated else None)
    return TokenPrice(found.input, found.output, _doubt(found, earlier))


def shares(total_usd: Decimal, weights: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """A bill for several models (a family's nodes) by what each used, such as device-hours; empty without any use."""
    whole = sum(weights.values(), _ZERO)
    if whole <= 0:
        return {}
    return {model: total_usd * weight / whole for model, weight in weights.items()}


def live_estimate(nodes: Iterable[Node], prices: Mapping[str, InstancePrice]) -> LiveEstimate:
    """What the nodes that run cost an hour.

    A node is split over models by replicas: sizes are chosen so that a node holds replicas of like size.
    """
    total, idle = _ZERO, _ZERO
    by_model: dict[str, Decimal] = {}
    by_capacity_type: dict[str, Decimal] = {}
    unpriced: set[str] = set()
    for node in nodes:
        price = node_price(node, prices)
        if price is None:
            unpriced.add(f"{node.instance_type} {node.capacity_type}")
            continue
        total += price
        by_capacity_type[node.capacity_type] = by_capacity_type.get(node.capacity_type, _ZERO) + price
        replicas = {
            model: node.replicas.get(model, 0) + node.draining.get(model, 0)
            for model in {*node.replicas, *node.draining}
        }
        everything = sum(replicas.values())
        if not everything:
            idle += price
        for model, count in sorted(replicas.items()):
            if count:
                by_model[model] = by_model.get(model, _ZERO) + price * count / everything
    return LiveEstimate(total, by_model, by_capacity_type, idle, tuple(sorted(unpriced)))


def node_price(node: Node, prices: Mapping[str, InstancePrice]) -> Decimal | None:
    """US dollars an hour; None when the catalog has no price for it."""
    return prices.get(node.instance_type, InstancePrice()).of(node.capacity_type)


def _doubt(found: TokenPrice, earlier: Iterable[TokenPrice]) -> str | None:
    before = [price for price in earlier if price.doubt is None]
    for name in ("input", "output"):
        value = getattr(found, name)
        known = [getattr(price, name) for price in before if getattr(price, name)]
        if not value or not known:
            continue
        usual = median(known)
        if value >= usual * BELIEVED_FACTOR or value * BELIEVED_FACTOR <= usual:
            return (
                f"${value:.4f} per 1M {name} tokens where ${usual:.4f} is usual: are cost and tokens of the same days?"
            )
    return None
