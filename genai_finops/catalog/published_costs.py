"""What others have published about cost: the article's table, and evidence to put beside computed figures."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

from genai_finops.catalog import _files
from genai_finops.catalog.prices import Purchase


@dataclass(frozen=True, slots=True)
class Claim:
    """What the article says, and what is right."""

    claim: str
    right: str


@dataclass(frozen=True, slots=True)
class ArticleSide:
    """One side of the article's table."""

    instance: str
    usd_hour: Decimal


@dataclass(frozen=True, slots=True)
class Article:
    """The article that the platform implements: what its cost table was computed from."""

    title: str
    publisher: str
    published: date
    model: str
    hours_a_month: int
    tokens_a_day: int
    days_a_month: int
    time_to_first_token_seconds: float
    baseline: ArticleSide
    optimized: ArticleSide
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class PublishedCost:
    """Dollars per million output tokens of an 8B model, on a workload of its own."""

    instance: str
    purchase: Purchase
    low_usd: Decimal
    high_usd: Decimal
    source: str


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Mean tokens of a request."""

    input_tokens: float
    output_tokens: float
    source: str


@cache
def _document() -> dict[str, Any]:
    return dict(_files.document("published_costs.yaml"))


@cache
def article() -> Article:
    """The article's figures as printed."""
    entry = _document()["article"]
    return Article(
        **{
            **entry,
            "baseline": _side(entry["baseline"]),
            "optimized": _side(entry["optimized"]),
            "claims": tuple(Claim(**claim) for claim in entry["claims"]),
        }
    )


def _side(entry: dict[str, str]) -> ArticleSide:
    return ArticleSide(entry["instance"], Decimal(entry["usd_hour"]))


@cache
def published_costs() -> tuple[PublishedCost, ...]:
    """Every published cost of the catalog."""
    return tuple(
        PublishedCost(
            entry["instance"], entry["purchase"], Decimal(entry["low"]), Decimal(entry["high"]), entry["source"]
        )
        for entry in _document()["evidence"]
    )


@cache
def conversation() -> RequestShape:
    """A request of a chat, as measured in public."""
    entry = _document()["conversation"]
    return RequestShape(entry["input_tokens"], entry["output_tokens"], entry["source"])
