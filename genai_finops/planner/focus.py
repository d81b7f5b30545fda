"""The simulated cost as a table with the columns of FOCUS, the FinOps Open Cost and Usage Specification 1.2.

So that an estimate can be laid beside a bill in the tool that reads the bill. A row is one use of nodes of one model in
one hour, bought in one way; its volume is a row of its own, and so is each fixed line in each month. An estimate has no
account and no invoice: their columns say so.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, TextIO

from genai_finops.catalog import instance_price, instance_type
from genai_finops.planner import money
from genai_finops.planner.results import Interval, ModelSimulation, MonthlyLine, NodeCost, PlatformSimulation
from genai_finops.spec.advice import HOURS_A_MONTH

VERSION: Final = "1.2"

COLUMNS: Final = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency",
    "ChargePeriodEnd", "ChargePeriodStart", "ConsumedQuantity", "ConsumedUnit", "ContractedCost",
    "ContractedUnitPrice", "EffectiveCost", "InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory",
    "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "RegionId", "ResourceId", "ResourceName",
    "ResourceType", "ServiceCategory", "ServiceName", "SkuId", "Tags",
)  # fmt: skip

ESTIMATE: Final = "estimate"
"""In columns that name an account or a resource, which an estimate has none of."""

_PROVIDER: Final = "AWS"
_COMPUTE: Final = ("Amazon Elastic Compute Cloud", "Compute")
_BLOCK_STORE: Final = ("Amazon Elastic Block Store", "Storage")
_CATEGORIES: Final[Mapping[str, str]] = {
    "Amazon EKS": "Compute",
    "Amazon VPC": "Networking",
    "AWS PrivateLink": "Networking",
    "Elastic Load Balancing": "Networking",
    "Amazon CloudWatch": "Management and Governance",
    "Amazon EBS": "Storage",
    "AWS KMS": "Security",
    "AWS Secrets Manager": "Security",
    "AWS Lambda": "Compute",
    "AWS Cost Explorer": "Management and Governance",
}
"""Of the services behind the fixed lines, by the price page that the catalog names."""


def write(simulation: PlatformSimulation, stream: TextIO) -> None:
    """The table as CSV, its columns in the order of COLUMNS.

    Raises:
        ValueError: when a price is not known: a bill has no unknown amounts.
    """
    table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows(simulation))


def rows(simulation: PlatformSimulation) -> Iterator[dict[str, str]]:
    """One by one, models first. Their BilledCost adds up to what the runs cost, and the fixed cost of the same time.

    Raises:
        ValueError: when a price is not known.
    """
    for model in simulation.models:
        for interval in model.intervals:
            for cost in interval.costs:
                yield from _node_rows(simulation, model, interval, cost)
    yield from _fixed_rows(simulation)


def _node_rows(
    simulation: PlatformSimulation, model: ModelSimulation, interval: Interval, cost: NodeCost
) -> Iterator[dict[str, str]]:
    if cost.usd is None or cost.usd_hour is None:
        price = next(price for price in model.prices if price.purchase == cost.purchase)
        raise ValueError(f"{money.unknown_price(price)} {money.UNKNOWN_PRICE_REMEDY}")
    begin, end = interval.start, interval.start + timedelta(seconds=interval.length_seconds)
    name = model.layout.instance
    on_demand = instance_price(instance_type(name), "on-demand")
    list_usd = on_demand.usd if on_demand else cost.usd_hour
    tags = {"estimate": "true", "model": model.model, "platform": simulation.platform, "use": cost.use}
    for start, stop, month in _by_month(begin, end):
        share = Decimal(repr((stop - start) / (end - begin)))
        hours = cost.node_hours * share
        shared = {
            **_period(start, stop, month),
            "ChargeFrequency": "Usage-Based",
            "ConsumedQuantity": _plain(hours),
            "ConsumedUnit": "Hours",
            "PricingQuantity": _plain(hours),
            "PricingUnit": "Hours",
            "RegionId": simulation.price_region,
            "ResourceId": f"{ESTIMATE}/{simulation.platform}/{model.model}",
            "ResourceName": model.model,
            "Tags": json.dumps(tags, sort_keys=True),
        }
        yield {
            **shared,
            **_amounts(hours, cost.usd_hour, list_usd),
            **_service(*_COMPUTE),
            "PricingCategory": "Dynamic" if cost.purchase == "spot" else "Standard",
            "ChargeDescription": f"{name}, {cost.purchase}, {cost.use}",
            "ResourceType": "Instance",
            "SkuId": f"{name}:{cost.purchase}",
        }
        if cost.volume_usd_hour:
            yield {
                **shared,
                **_amounts(hours, cost.volume_usd_hour, cost.volume_usd_hour),
                **_service(*_BLOCK_STORE),
                "PricingCategory": "Standard",
                "ChargeDescription": f"Root volume of {name}, {cost.use}",
                "ResourceType": "Volume",
                "SkuId": "gp3",
            }


def _fixed_rows(simulation: PlatformSimulation) -> Iterator[dict[str, str]]:
    """Each fixed line over the time that was simulated, by month."""
    times = [
        (each.start, each.start + timedelta(seconds=each.length_seconds))
        for model in simulation.models
        for each in model.intervals
    ]
    if not times:
        return
    begin, end = min(start for start, _ in times), max(stop for _, stop in times)
    for start, stop, month in _by_month(begin, end):
        hours = Decimal((stop - start) // timedelta(microseconds=1)) / 3_600_000_000
        for line in simulation.fixed_lines:
            yield _fixed_row(simulation, line, start, stop, month, line.quantity * hours / HOURS_A_MONTH)


def _fixed_row(
    simulation: PlatformSimulation,
    line: MonthlyLine,
    start: datetime,
    stop: datetime,
    month: tuple[datetime, datetime],
    quantity: Decimal,
) -> dict[str, str]:
    service = line.source.removesuffix(" pricing")
    known = service in _CATEGORIES
    unit = line.unit[:1].upper() + line.unit[1:]
    return {
        **_period(start, stop, month),
        **_amounts(quantity, line.usd_per_unit, line.usd_per_unit),
        **(_service(service, _CATEGORIES[service]) if known else _service(*_COMPUTE)),
        "ChargeFrequency": "Recurring",
        "ConsumedQuantity": _plain(quantity),
        "ConsumedUnit": unit,
        "PricingCategory": "Standard",
        "PricingQuantity": _plain(quantity),
        "PricingUnit": unit,
        "ChargeDescription": line.name,
        "RegionId": simulation.price_region,
        "ResourceId": f"{ESTIMATE}/{simulation.platform}",
        "ResourceName": simulation.platform,
        "ResourceType": "Platform",
        "SkuId": re.sub(r"[^a-z0-9]+", "-", line.name.lower()).strip("-"),
        "Tags": json.dumps({"estimate": "true", "platform": simulation.platform, "use": "fixed"}, sort_keys=True),
    }


def _by_month(begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime, tuple[datetime, datetime]]]:
    """The parts of a half-open period that lie in one calendar month in UTC, each with that month."""
    start = begin
    while start < end:
        first = money.month_start(start)
        following = money.month_start(first + timedelta(days=32))
        stop = min(end, following)
        yield start, stop, (first, following)
        start = stop


def _period(start: datetime, stop: datetime, month: tuple[datetime, datetime]) -> dict[str, str]:
    return {
        "BillingAccountId": ESTIMATE,
        "BillingAccountName": ESTIMATE,
        "BillingCurrency": "USD",
        "BillingPeriodStart": _time(month[0]),
        "BillingPeriodEnd": _time(month[1]),
        "ChargeCategory": "Usage",
        "ChargeClass": "",
        "ChargePeriodStart": _time(start),
        "ChargePeriodEnd": _time(stop),
    }


def _amounts(quantity: Decimal, paid_usd: Decimal, list_usd: Decimal) -> dict[str, str]:
    """Nothing is negotiated or committed, so three of the four costs are one; the list price of Spot is on demand's."""
    paid = _plain(quantity * paid_usd)
    return {
        "BilledCost": paid,
        "ContractedCost": paid,
        "ContractedUnitPrice": _plain(paid_usd),
        "EffectiveCost": paid,
        "ListCost": _plain(quantity * list_usd),
        "ListUnitPrice": _plain(list_usd),
    }


def _service(name: str, category: str) -> dict[str, str]:
    return {
        "InvoiceIssuerName": _PROVIDER,
        "ProviderName": _PROVIDER,
        "PublisherName": _PROVIDER,
        "ServiceCategory": category,
        "ServiceName": name,
    }


def _plain(amount: Decimal) -> str:
    """Without an exponent, and without zeros that say nothing."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _time(moment: datetime) -> str:
    return (
        moment.astimezone(UTC)
        .isoformat(timespec="seconds" if moment.microsecond == 0 else "microseconds")
        .replace("+00:00", "Z")
    )
