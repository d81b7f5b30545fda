"""What simulated node time costs: seconds times prices, in Decimal from here on.

A node is paid from its launch to its end, boot and drain included, with its root volume. A price that the catalog does
not know makes the amount None, and None spreads to every total it goes into: an unknown is never shown as nothing.
Node time that was never bought at an unknown price costs nothing of it, and its total stays known.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Protocol

from genai_finops.catalog import InstanceType, Purchase, instance_price
from genai_finops.planner.fixed_cost import volume_usd_month
from genai_finops.planner.results import CostSplit, PriceUsed, UnitCost
from genai_finops.spec import Model, Platform
from genai_finops.spec.advice import HOURS_A_MONTH

if TYPE_CHECKING:
    from genai_finops.planner.simulation.outcome import Counts, NodeUse, Outcome

SECONDS_AN_HOUR: Final = 3600
MILLION: Final = 1_000_000

_MICROSECOND: Final = Decimal("0.000001")
_EXACT: Final = Decimal("1e-12")
"""Relative difference between two ways to add up exact amounts that rounding at 28 digits explains."""


class PriceOverTime(Protocol):
    """A price that moves, such as the history of a Spot pool."""

    def mean_usd_hour(self, start: datetime, end: datetime) -> Decimal:
        """Over a half-open period with zones."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Node time of one use within one period, bought in one way.

    Attributes:
        start, end: half-open, aware.
        node_seconds: of whole nodes; a slot's share of its node.
        usd: instance and volume; None where the price is not known.
    """

    start: datetime
    end: datetime
    purchase: Purchase
    use: "NodeUse"
    node_seconds: Decimal
    usd_hour: Decimal | None
    volume_usd_hour: Decimal
    usd: Decimal | None


def prices(
    platform: Platform, model: Model, instance: InstanceType, *, spot_factor: Decimal = Decimal(1)
) -> dict[Purchase, PriceUsed]:
    """What an hour of `instance` costs for `model`, bought in each way that the model allows.

    Args:
        spot_factor: multiplies the Spot price, to see what depends on it.
    """
    volume = volume_usd_month(platform.node_pool(model.accelerator.family).volume) / HOURS_A_MONTH
    return {
        purchase: price_used(platform.region, instance, purchase, volume, spot_factor=spot_factor)
        for purchase in purchases(model)
    }


def unknown_price(price: PriceUsed) -> str:
    """What to say of a price that is not known: type, purchase, region, and the way out."""
    return (
        f"The catalog has no {price.purchase} price for {price.instance} in {price.region}, so its cost and every "
        "total that it goes into are unknown."
    )


UNKNOWN_PRICE_REMEDY: Final = "Choose another size or purchase, or add the price to the catalog's instances.csv."


def purchases(model: Model) -> tuple[Purchase, ...]:
    """In the order in which they are tried."""
    return {"prefer": ("spot", "on-demand"), "only": ("spot",), "never": ("on-demand",)}[model.spot]  # type: ignore[return-value]


def price_used(
    region: str,
    instance: InstanceType,
    purchase: Purchase,
    volume_usd_hour: Decimal = Decimal(0),
    *,
    spot_factor: Decimal = Decimal(1),
) -> PriceUsed:
    """An hour of `instance`, or the fact that the catalog has no price for it; `region` is named in that case."""
    price = instance_price(instance, purchase)
    if price is None:
        return PriceUsed(instance.name, purchase, None, volume_usd_hour, region, "not in the catalog", None)
    usd, source = price.usd, price.source
    if purchase == "spot" and spot_factor != 1:
        usd, source = usd * spot_factor, f"{source}, times {spot_factor}"
    return PriceUsed(instance.name, purchase, usd, volume_usd_hour, price.region, source, price.checked)


def entries(
    outcome: "Outcome",
    start: datetime,
    paid: Mapping[Purchase, PriceUsed],
    spot_series: PriceOverTime | None = None,
) -> tuple[Entry, ...]:
    """Every node second of a run, priced.

    Args:
        start: aware, of second 0.
        spot_series: takes the place of the constant Spot price.

    Raises:
        KeyError: when node time was bought in a way that has no entry in `paid`.
    """
    from genai_finops.planner.simulation.outcome import NODE_USES

    timeline = outcome.timeline
    found = []
    for purchase, columns in (("spot", timeline.spot_node_seconds), ("on-demand", timeline.on_demand_node_seconds)):
        for begin, length, uses in zip(
            timeline.start_seconds.tolist(), timeline.length_seconds.tolist(), columns.tolist(), strict=True
        ):
            if not any(uses):
                continue
            price = paid[purchase]  # type: ignore[index] # the two literals above
            first = start + timedelta(seconds=begin)
            last = first + timedelta(seconds=length)
            hourly = price.usd_hour
            if purchase == "spot" and spot_series is not None:
                hourly = spot_series.mean_usd_hour(first, last)
            for use, seconds in zip(NODE_USES, uses, strict=True):
                if seconds > 0:
                    exact = Decimal(seconds).quantize(_MICROSECOND)
                    found.append(_entry(first, last, price, use, exact, hourly))
    return tuple(found)


def _entry(
    start: datetime, end: datetime, price: PriceUsed, use: "NodeUse", seconds: Decimal, hourly: Decimal | None
) -> Entry:
    usd = None if hourly is None else seconds * (hourly + price.volume_usd_hour) / SECONDS_AN_HOUR
    return Entry(start, end, price.purchase, use, seconds, hourly, price.volume_usd_hour, usd)


def overlap_seconds(one: tuple[datetime, datetime], other: tuple[datetime, datetime]) -> float:
    """Common length of two half-open periods; 0 where they only touch."""
    return max(0.0, (min(one[1], other[1]) - max(one[0], other[0])).total_seconds())


def within(found: Iterable[Entry], start: datetime, end: datetime) -> Iterator[Entry]:
    """What falls into a half-open period; an entry over its edge is cut in proportion."""
    for entry in found:
        length = (entry.end - entry.start).total_seconds()
        common = overlap_seconds((entry.start, entry.end), (start, end))
        if common == length:
            yield entry
        elif common > 0:
            yield _cut(entry, max(entry.start, start), min(entry.end, end))


def _cut(entry: Entry, start: datetime, end: datetime) -> Entry:
    share = Decimal((end - start) / timedelta(microseconds=1)) / Decimal(
        (entry.end - entry.start) / timedelta(microseconds=1)
    )
    usd = None if entry.usd is None else entry.usd * share
    return Entry(
        start,
        end,
        entry.purchase,
        entry.use,
        entry.node_seconds * share,
        entry.usd_hour,
        entry.volume_usd_hour,
        usd,
    )


def month_start(moment: datetime) -> datetime:
    """Midnight UTC of the first day of the month that an aware moment is in."""
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def total(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum; None as soon as one is not known."""
    added = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        added += amount
    return added


def split(found: Iterable[Entry]) -> CostSplit:
    """Adds entries up by what they were paid for.

    Raises:
        ArithmeticError: when the parts do not add up to what node hours times prices are.
    """
    kept = tuple(found)

    def use(name: str) -> Decimal | None:
        return total(entry.usd for entry in kept if entry.use == name)

    def bought(purchase: Purchase) -> Decimal | None:
        return total(entry.usd for entry in kept if entry.purchase == purchase)

    result = CostSplit(
        busy_usd=use("busy"),
        idle_usd=use("idle"),
        starting_usd=use("starting"),
        placeholder_usd=use("placeholder"),
        empty_usd=use("empty"),
        spot_usd=bought("spot"),
        on_demand_usd=bought("on-demand"),
        total_usd=total(entry.usd for entry in kept),
    )
    _check(result, recomputed(kept))
    return result


def recomputed(found: Iterable[Entry]) -> Decimal | None:
    """The same total another way: hours added up by price first, then multiplied."""
    seconds: dict[tuple[Decimal | None, Decimal], Decimal] = {}
    for entry in found:
        key = (entry.usd_hour, entry.volume_usd_hour)
        seconds[key] = seconds.get(key, Decimal(0)) + entry.node_seconds
    if any(usd_hour is None for usd_hour, _ in seconds):
        return None
    return sum(
        (time / SECONDS_AN_HOUR * ((usd_hour or Decimal(0)) + volume) for (usd_hour, volume), time in seconds.items()),
        Decimal(0),
    )


def _check(result: CostSplit, again: Decimal | None) -> None:
    by_use = total((result.busy_usd, result.idle_usd, result.starting_usd, result.placeholder_usd, result.empty_usd))
    by_purchase = total((result.spot_usd, result.on_demand_usd))
    for other in (by_use, by_purchase, again):
        if not _agree(result.total_usd, other):
            raise ArithmeticError(f"The parts of a cost add up to {other}, not to its total of {result.total_usd}")


def _agree(one: Decimal | None, other: Decimal | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _EXACT * max(abs(one), Decimal(1))


def scaled(cost: CostSplit, factor: Decimal) -> CostSplit:
    """Every amount times `factor`; unknown ones stay so."""

    def times(amount: Decimal | None) -> Decimal | None:
        return None if amount is None else amount * factor

    return CostSplit(
        busy_usd=times(cost.busy_usd),
        idle_usd=times(cost.idle_usd),
        starting_usd=times(cost.starting_usd),
        placeholder_usd=times(cost.placeholder_usd),
        empty_usd=times(cost.empty_usd),
        spot_usd=times(cost.spot_usd),
        on_demand_usd=times(cost.on_demand_usd),
        total_usd=times(cost.total_usd),
    )


def month_factor(duration_seconds: float) -> Decimal:
    """What a period is multiplied by to stand for a month of 730 hours."""
    return HOURS_A_MONTH * SECONDS_AN_HOUR / Decimal(repr(duration_seconds))


def unit_cost(usd: Decimal | None, counts: "Counts") -> UnitCost:
    """The cost over what was answered: tokens of completed requests, and requests that met the objective."""

    def over(quantity: int, unit: int) -> Decimal | None:
        return None if usd is None or not quantity else usd * unit / quantity

    return UnitCost(
        usd_per_million_input_tokens=over(counts.input_tokens, MILLION),
        usd_per_million_output_tokens=over(counts.output_tokens, MILLION),
        usd_per_million_total_tokens=over(counts.input_tokens + counts.output_tokens, MILLION),
        usd_per_good_request=over(counts.good, 1),
    )


def share(part: Decimal | None, whole: Decimal | None) -> float | None:
    """None where either is not known, or there is nothing to have a share of."""
    return None if part is None or not whole else float(part / whole)
