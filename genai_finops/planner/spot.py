"""How often Spot nodes are taken away, and what they cost over time."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Final

from genai_finops.catalog import InstanceType
from genai_finops.planner.simulation.scenario import SpotRisk
from genai_finops.planner.traffic.errors import TrafficError

HOURS_OF_A_BAND: Final = 720
"""The Spot Instance Advisor counts interruptions of the trailing month."""

BANDS: Final[Mapping[str, float]] = {"<5%": 0.05, "5-10%": 0.10, "10-15%": 0.15, "15-20%": 0.20, ">20%": 0.30}
"""Upper ends, read as the probability that a node is reclaimed within a month; that of the open band is assumed."""

UNKNOWN_BAND: Final = BANDS[">20%"]

REBALANCE_SHARE: Final = 0.5
REBALANCE_LEAD_SECONDS: Final = 600.0
"""Assumed: a recommendation comes before every second interruption, by ten minutes. AWS promises neither."""

COLUMNS: Final = ("timestamp", "instance_type", "usd_hour")


def spot_risk(instance: InstanceType) -> SpotRisk:
    """Of one node of a type, by its band of interruptions; a type without one is taken for the worst."""
    share = BANDS.get(instance.interruption_band, UNKNOWN_BAND)
    return SpotRisk(
        interruptions_per_hour=-math.log1p(-share) / HOURS_OF_A_BAND,
        rebalance_share=REBALANCE_SHARE,
        rebalance_lead_seconds=REBALANCE_LEAD_SECONDS,
    )


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """A price that holds from each of its moments until the next; the first one also before, the last one for ever.

    Attributes:
        moments: aware, ascending.
    """

    moments: tuple[datetime, ...]
    usd_hour: tuple[Decimal, ...]

    def mean_usd_hour(self, start: datetime, end: datetime) -> Decimal:
        """Over the half-open period, weighted by time; at a moment, the price that holds then."""
        if end <= start:
            return self._at(start)
        edges = [start, *(moment for moment in self.moments if start < moment < end), end]
        total = sum((self._at(one) * _microseconds(other - one) for one, other in _pairs(edges)), Decimal(0))
        return total / _microseconds(end - start)

    def _at(self, moment: datetime) -> Decimal:
        price = self.usd_hour[0]
        for since, usd in zip(self.moments, self.usd_hour, strict=True):
            if since > moment:
                break
            price = usd
        return price


def _pairs(edges: Sequence[datetime]) -> Iterable[tuple[datetime, datetime]]:
    return pairwise(edges)


def _microseconds(length: timedelta) -> Decimal:
    return Decimal(length // timedelta(microseconds=1))


def read_prices(file: Path) -> dict[str, PriceHistory]:
    """Histories by instance type, from a CSV file with timestamp, instance_type and usd_hour.

    Raises:
        TrafficError: with the line, what it holds, and what is allowed.
        OSError: when there is no such file.
    """
    rows: dict[str, list[tuple[datetime, Decimal]]] = {}
    with file.open(encoding="utf-8-sig", newline="") as opened:
        try:
            reader = csv.DictReader(opened)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                found = ", ".join(reader.fieldnames or ("nothing",))
                raise TrafficError(file, "line 1", f"has the columns {found[:200]}", f"Give {', '.join(COLUMNS)}.")
            for row in reader:
                line = f"line {reader.line_num}"
                of_type = rows.setdefault(row["instance_type"] or "", [])
                moment = _moment(file, line, row["timestamp"])
                if of_type and moment <= of_type[-1][0]:
                    raise TrafficError(
                        file, line, f"is not after the line of {row['instance_type']} before it", "Sort by time."
                    )
                of_type.append((moment, _price(file, line, row["usd_hour"])))
        except (UnicodeDecodeError, csv.Error) as error:
            raise TrafficError(file, "", f"cannot be read: {error}", "Give a CSV file in UTF-8.") from None
    if not rows:
        raise TrafficError(file, "", "holds no prices", "Give at least one.")
    return {
        name: PriceHistory(tuple(at for at, _ in found), tuple(usd for _, usd in found)) for name, found in rows.items()
    }


def _moment(file: Path, line: str, text: str | None) -> datetime:
    try:
        found = datetime.fromisoformat((text or "").strip())
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise TrafficError(file, line, f"has the time {text!r}", "Use times with a zone, such as 2026-01-05T09:00:00Z.")
    return found.astimezone(UTC)


def _price(file: Path, line: str, text: str | None) -> Decimal:
    try:
        found = Decimal((text or "").strip())
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0:
        raise TrafficError(file, line, f"has usd_hour {text!r}", "Use US dollars an hour, from 0 on.")
    return found
