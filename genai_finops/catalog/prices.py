"""List prices of what is not an instance, each with the day it was checked and where."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache

from genai_finops.catalog import _files


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
