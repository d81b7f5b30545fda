"""Prices, each with the day it was checked and where."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, Final, Literal

from genai_finops.catalog import _files
from genai_finops.catalog.instances import InstanceType

Purchase = Literal["spot", "on-demand"]
"""How an instance is bought; the values are Karpenter's `karpenter.sh/capacity-type`."""

HOUR: Final = "hour"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per unit, for one region, as checked on one day."""

    usd: Decimal
    unit: str
    source: str
    checked: date
    region: str


@cache
def _prices() -> dict[str, Price]:
    document = _files.document("prices.yaml")
    return {
        name: Price(Decimal(entry["usd"]), entry["unit"], entry["source"], document["checked"], document["region"])
        for name, entry in document["prices"].items()
    }


def price(name: str) -> Price:
    """The price called `name` in `data/prices.yaml`.

    Raises:
        KeyError: when there is no such price.
    """
    return _prices()[name]


@cache
def _instance_prices() -> dict[str, Any]:
    return dict(_files.document("instance_prices.yaml"))


def instance_price(instance: InstanceType, purchase: Purchase) -> Price | None:
    """An hour of `instance`; None where the catalog has no price for it."""
    usd = instance.spot_usd_hour if purchase == "spot" else instance.on_demand_usd_hour
    if usd is None:
        return None
    document = _instance_prices()
    return Price(usd, HOUR, document[purchase]["source"], document[purchase]["checked"], document["region"])
