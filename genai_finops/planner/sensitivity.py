"""How a platform's cost follows what nobody controls: the price of Spot, and how many requests come.

Traffic is multiplied request by request: some are left out, or each comes several times before the next. So mornings
stay mornings and bursts stay bursts; only within the gap between two requests is it smoother than real traffic.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import numpy as np

from genai_finops.planner.evaluate import Progress, simulate_platform
from genai_finops.planner.loads import kept
from genai_finops.planner.performance.model import MeasuredProfile
from genai_finops.planner.results import PlatformSimulation, Sensitivity, SensitivityPoint, Verdict
from genai_finops.planner.traffic.requests import Requests, Traffic
from genai_finops.spec import Platform

SPOT_FACTORS: Final = (0.5, 1.0, 1.5, 2.0, 3.0)
TRAFFIC_FACTORS: Final = (0.25, 0.5, 1.0, 1.5, 2.0)

_FROM_BEST: Final[tuple[Verdict, ...]] = (
    "no requests", "holds", "holds, slow end not run", "holds at nominal only", "does not hold",
)  # fmt: skip


def sensitivity(
    platform: Platform,
    traffic: Mapping[str, Traffic],
    *,
    today: date,
    seed: int = 0,
    profiles: Sequence[MeasuredProfile] = (),
    inter_token_seconds: float | None = None,
    spot_factors: Sequence[float] = SPOT_FACTORS,
    traffic_factors: Sequence[float] = TRAFFIC_FACTORS,
    progress: Progress | None = None,
) -> Sensitivity:
    """The platform simulated again with the Spot price, and with the traffic, multiplied.

    Raises:
        ValueError: for a factor that is not above 0.
    """
    factors = [
        *((factor, 1.0) for factor in sorted(spot_factors)),
        *((1.0, factor) for factor in sorted(traffic_factors)),
    ]
    if any(not 0 < factor < float("inf") for pair in factors for factor in pair):
        raise ValueError("A factor is a finite number above 0")
    held = {name: kept(each) for name, each in traffic.items()}
    points = []
    for done, (spot, load) in enumerate(factors, 1):
        result = simulate_platform(
            platform,
            {name: multiplied(each, load) for name, each in held.items()},
            today=today,
            seed=seed,
            profiles=profiles,
            inter_token_seconds=inter_token_seconds,
            spot_factor=Decimal(repr(spot)),
        )
        points.append(SensitivityPoint(spot * load, result.total_monthly_usd, _worst(result)))
        if progress:
            progress(done, len(factors))
    return Sensitivity(tuple(points[: len(spot_factors)]), tuple(points[len(spot_factors) :]))


def _worst(result: PlatformSimulation) -> Verdict:
    return max((model.verdict for model in result.models), key=_FROM_BEST.index, default="no requests")


class _Multiplied:
    """A traffic with every request left out, kept or repeated, so that evenly over all `factor` of each are there."""

    def __init__(self, traffic: Traffic, factor: float) -> None:
        self._traffic, self._factor = traffic, factor

    @property
    def name(self) -> str:
        return f"{self._traffic.name} x {self._factor:g}"

    @property
    def start(self) -> datetime:
        return self._traffic.start

    @property
    def duration_seconds(self) -> float:
        return self._traffic.duration_seconds

    def chunks(self) -> Iterator[Requests]:
        before = 0
        for chunk in self._traffic.chunks():
            edges = np.floor(np.arange(before, before + len(chunk) + 1) * self._factor).astype(np.int64)
            before += len(chunk)
            times = np.diff(edges)
            total = int(times.sum())
            if not total:
                continue
            # The n-th copy comes n parts of the gap to the next request later.
            gaps = np.diff(chunk.arrival_seconds, append=chunk.arrival_seconds[-1])
            which = np.repeat(np.arange(len(chunk)), times)
            copy = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
            arrivals = chunk.arrival_seconds[which] + gaps[which] * copy / times[which]
            yield Requests(arrivals, chunk.input_tokens[which], chunk.output_tokens[which])


def multiplied(traffic: Traffic, factor: float) -> Traffic:
    """`factor` times the requests in the same time; the traffic itself for 1."""
    return traffic if factor == 1 else _Multiplied(traffic, factor)
