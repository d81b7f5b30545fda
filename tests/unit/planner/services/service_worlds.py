"""Traffic, node time and platforms for the tests of the planner's services."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from genai_finops.catalog import Purchase
from genai_finops.planner.results import PriceUsed
from genai_finops.planner.simulation.outcome import Counts, Latencies, Outcome, Timeline
from genai_finops.planner.traffic.requests import Requests
from genai_finops.spec import Platform
from genai_finops.spec.model import Model
from tests.platform_files import platform

TODAY = date(2026, 12, 1)
START = datetime(2026, 3, 2, tzinfo=UTC)
"""A Monday."""

NAME = "llama3-8b"
BUSY, IDLE, STARTING, PLACEHOLDER, EMPTY = range(5)


class Made:
    """Traffic made for a test."""

    def __init__(
        self,
        arrivals: Any,
        input_tokens: Any = 300,
        output_tokens: Any = 60,
        *,
        duration: float | None = None,
        start: datetime = START,
        name: str = "made",
        chunk: int = 1000,
    ) -> None:
        self._arrivals = np.asarray(arrivals, np.float64)
        size = len(self._arrivals)
        self._input = np.broadcast_to(np.asarray(input_tokens, np.int32), size).copy()
        self._output = np.broadcast_to(np.asarray(output_tokens, np.int32), size).copy()
        self._chunk = chunk
        self.name, self.start = name, start
        last = float(self._arrivals[-1]) if size else 0.0
        self.duration_seconds = last if duration is None else float(duration)

    def chunks(self):
        for first in range(0, len(self._arrivals), self._chunk):
            part = slice(first, first + self._chunk)
            yield Requests(self._arrivals[part], self._input[part], self._output[part])


def poisson(rate: float, seconds: float, seed: int = 7, **more: Any) -> Made:
    """Requests at a mean rate, with no memory."""
    chance = np.random.default_rng(seed)
    arrivals = np.cumsum(chance.exponential(1 / rate, int(rate * seconds)))
    return Made(arrivals[arrivals < seconds], duration=seconds, **more)


def changed(of: Platform | None = None, **changes: Any) -> Platform:
    """The shipped platform, or another, with its first model changed."""
    base = of or platform("default")
    model = base.models[0].model_copy(update=changes)
    return base.model_copy(update={"models": (model, *base.models[1:])})


def scaled(**changes: Any) -> Platform:
    return changed(scaling=platform("default").models[0].scaling.model_copy(update=changes))


def resized(model: Model, **changes: Any) -> Model:
    return model.model_copy(update={"accelerator": model.accelerator.model_copy(update=changes)})


def outcome(spot: Any = (), on_demand: Any = (), *, bucket: float = 3600, counts: Counts | None = None) -> Outcome:
    """A run of which only the node seconds are known: a row for each bucket, a column for each use."""
    rows = max(len(spot), len(on_demand))
    nothing = np.zeros(rows)
    none = np.zeros(rows, np.int64)

    def seconds(given: Any) -> Any:
        return np.array([*given, *[[0.0] * 5] * (rows - len(given))], np.float64).reshape(rows, 5)

    timeline = Timeline(
        start_seconds=np.arange(rows) * bucket,
        length_seconds=np.full(rows, float(bucket)),
        arrived=none, completed=none, good=none, input_tokens=none, output_tokens=none,
        waiting_mean=nothing, waiting_max=none, running_mean=nothing, ready_mean=nothing, starting_mean=nothing,
        asleep_share=nothing, spot_nodes_mean=nothing, on_demand_nodes_mean=nothing,
        spot_node_seconds=seconds(spot), on_demand_node_seconds=seconds(on_demand),
        interruptions=none,
        time_to_first_token_p50_seconds=np.full(rows, np.nan), time_to_first_token_p95_seconds=np.full(rows, np.nan),
        inter_token_p95_seconds=np.full(rows, np.nan),
    )  # fmt: skip
    latencies = Latencies(np.zeros(10, np.int64), 0.0)
    return Outcome(
        counts=counts or Counts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        timeline=timeline,
        time_to_first_token=latencies, inter_token=latencies, request_inter_token=latencies, end_to_end=latencies,
        end_seconds=rows * bucket,
        interruptions=0, launches=0, on_demand_launches=0, utilization=0.0, peak_replicas=0, peak_nodes=0,
        at_limit_seconds=0.0, saturated_share=0.0,
    )  # fmt: skip


def paid(spot: str | None = "0.5", on_demand: str | None = "2", volume: str = "0") -> Mapping[Purchase, PriceUsed]:
    """Prices of one instance type; None is not known."""

    def price(purchase: Purchase, usd: str | None) -> PriceUsed:
        known = None if usd is None else Decimal(usd)
        return PriceUsed("inf2.xlarge", purchase, known, Decimal(volume), "us-east-1", "made for the tests", TODAY)

    return {"spot": price("spot", spot), "on-demand": price("on-demand", on_demand)}
