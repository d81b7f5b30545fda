"""Traffic drawn from a description: how many tokens a day, when, how bursty, how long. Same seed, same requests.

Arrivals are a renewal process with gamma gaps, in a clock that runs as fast as the traffic is dense: so the shape of
day and week holds exactly, and the burstiness is the same in a quiet hour and in a busy one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from genai_finops.planner.traffic.errors import TrafficError
from genai_finops.planner.traffic.requests import Requests
from genai_finops.planner.traffic.trace import MOST_TOKENS

BLOCK_REQUESTS: Final = 65_536
HOUR_SECONDS: Final = 3600
_METRONOME: Final = 0.001
"""Below, gaps differ by less than anything that is measured here."""

_GRID: Final = 2048
"""Points at which a distribution is looked at to make its mean right."""

Shape = Literal["flat", "office", "worldwide"]

HOURS: Final[dict[Shape, tuple[float, ...]]] = {
    "flat": (1.0,) * 24,
    "office": (
        0.2, 0.15, 0.1, 0.1, 0.1, 0.2, 0.4, 0.9, 1.6, 2.0, 2.1, 2.0, 1.6, 1.8, 2.1, 2.1, 1.9, 1.6, 1.1, 0.8, 0.6, 0.5,
        0.4, 0.3,
    ),
    "worldwide": tuple(round(1 + 0.4 * math.sin((hour - 9) / 24 * 2 * math.pi), 3) for hour in range(24)),
}  # fmt: skip
"""Weights of the hours of a day (assumed)."""

WEEKDAYS: Final[dict[Shape, tuple[float, ...]]] = {
    "flat": (1.0,) * 7,
    "office": (1.0, 1.05, 1.05, 1.0, 0.9, 0.25, 0.2),
    "worldwide": (1.0, 1.0, 1.0, 1.0, 1.0, 0.85, 0.85),
}

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Length(Section):
    """Tokens of prompts, or of answers."""

    mean: float = Field(gt=0, le=MOST_TOKENS)
    """Of what is drawn, after the limits."""
    variation: float = Field(default=0.9, ge=0, le=20)
    """Standard deviation over mean, before the limits."""
    distribution: Literal["lognormal", "normal"] = "lognormal"
    minimum: int = Field(default=1, ge=1, le=MOST_TOKENS)
    maximum: int = Field(default=MOST_TOKENS, ge=1, le=MOST_TOKENS)
    """Longer ones are drawn again, never cut."""

    @model_validator(mode="after")
    def _is_possible(self) -> "Length":
        if not self.minimum <= self.mean <= self.maximum:
            raise ValueError(
                f"mean is {self.mean:g}: use one between minimum {self.minimum} and maximum {self.maximum}"
            )
        return self


class Profile(Section):
    """A description of traffic."""

    name: str = Field(min_length=1)
    start: datetime = datetime(2026, 1, 5)  # noqa: DTZ001
    """With a zone, or without one in time_zone."""
    time_zone: str = "UTC"
    days: float = Field(default=7, gt=0, le=3660)
    tokens_per_day: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Prompts and answers; this or requests_per_day."""
    requests_per_day: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    shape: Shape = "flat"
    hours: tuple[Weight, ...] | None = None
    """24 weights of the hours of a local day, in place of the shape's."""
    weekdays: tuple[Weight, ...] | None = None
    """7 weights, Monday first, in place of the shape's."""
    burstiness: float = Field(default=1, ge=0, le=50)
    """Standard deviation over mean of the gaps between requests: 0 a metronome, 1 chance, more comes in bursts."""
    input_tokens: Length
    output_tokens: Length

    @model_validator(mode="after")
    def _is_whole(self) -> "Profile":
        if (self.tokens_per_day is None) == (self.requests_per_day is None):
            raise ValueError("give tokens_per_day or requests_per_day, and not both")
        for name, wanted in (("hours", 24), ("weekdays", 7)):
            weights = getattr(self, name)
            if weights is not None and (len(weights) != wanted or sum(weights) <= 0):
                raise ValueError(f"{name}: give {wanted} weights, not all of them 0")
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"time_zone is {self.time_zone!r}: use an IANA name such as Europe/Berlin") from None
        return self

    @property
    def begins(self) -> datetime:
        """Aware."""
        return self.start if self.start.tzinfo else self.start.replace(tzinfo=ZoneInfo(self.time_zone))

    @property
    def mean_requests_per_day(self) -> float:
        if self.requests_per_day is not None:
            return self.requests_per_day
        assert self.tokens_per_day is not None
        return self.tokens_per_day / (self.input_tokens.mean + self.output_tokens.mean)


@dataclass(frozen=True)
class Generated:
    """The traffic of a profile and a seed."""

    profile: Profile
    seed: int

    @property
    def name(self) -> str:
        return self.profile.name

    @cached_property
    def start(self) -> datetime:
        return self.profile.begins.astimezone(UTC)

    @property
    def duration_seconds(self) -> float:
        return self.profile.days * 86400

    def chunks(self) -> Iterator[Requests]:
        edges, expected = self._clock
        total = float(expected[-1])
        given, generated = _Lengths(self.profile.input_tokens), _Lengths(self.profile.output_tokens)
        reached, block = 0.0, 0
        while True:
            random = np.random.Generator(np.random.Philox(key=np.array([self.seed, block], np.uint64)))
            ticks = reached + np.cumsum(_gaps(random, self.profile.burstiness, BLOCK_REQUESTS))
            reached = float(ticks[-1])
            inputs, outputs = given.draw(random, BLOCK_REQUESTS), generated.draw(random, BLOCK_REQUESTS)
            kept = int(np.searchsorted(ticks, total, side="right"))
            if kept:
                arrivals = np.minimum(np.interp(ticks[:kept], expected, edges), self.duration_seconds)
                yield Requests(arrivals, inputs[:kept], outputs[:kept])
            if kept < BLOCK_REQUESTS:
                return
            block += 1

    @cached_property
    def _clock(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Edges of hours in seconds, and requests expected until each."""
        profile = self.profile
        hours = np.array(profile.hours or HOURS[profile.shape])
        weekdays = np.array(profile.weekdays or WEEKDAYS[profile.shape])
        count = math.ceil(self.duration_seconds / HOUR_SECONDS)
        edges = np.minimum(np.arange(count + 1) * float(HOUR_SECONDS), self.duration_seconds)
        zone = ZoneInfo(profile.time_zone)
        base = self.start.timestamp()
        local = [datetime.fromtimestamp(base + float(edge), zone) for edge in edges[:-1]]
        weights = np.array([hours[moment.hour] * weekdays[moment.weekday()] for moment in local])
        mean = hours.mean() * weekdays.mean()
        rates = weights / mean * profile.mean_requests_per_day / 86400
        expected = np.concatenate([[0.0], np.cumsum(rates * np.diff(edges))])
        return edges, expected


def _gaps(random: np.random.Generator, burstiness: float, count: int) -> NDArray[np.float64]:
    """Mean 1."""
    if burstiness < _METRONOME:
        return np.ones(count)
    shape = burstiness**-2
    return random.gamma(shape, 1 / shape, count)


class _Lengths:
    """Draws whole numbers within limits, whose mean is the one asked for."""

    def __init__(self, wanted: Length) -> None:
        self._wanted = wanted
        self._middle = self._fitted()

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.int32]:
        wanted = self._wanted
        found = self._values(random.standard_normal(count), self._middle)
        for _ in range(200):
            outside = (found < wanted.minimum) | (found > wanted.maximum)
            missing = int(outside.sum())
            if not missing:
                break
            found[outside] = self._values(random.standard_normal(missing), self._middle)
        return np.clip(found, wanted.minimum, wanted.maximum).astype(np.int32)

    def _values(self, normal: NDArray[np.float64], middle: float) -> NDArray[np.float64]:
        wanted = self._wanted
        if wanted.distribution == "normal":
            return np.rint(middle + wanted.variation * wanted.mean * normal)
        spread = math.sqrt(math.log1p(wanted.variation**2))
        return np.rint(np.exp(np.clip(middle + spread * normal, -700, 60)))

    def _fitted(self) -> float:
        """Middle of the distribution, such that the mean within the limits is right."""
        grid = np.array([NormalDist().inv_cdf((point + 0.5) / _GRID) for point in range(_GRID)])
        low, high = (-50.0, 50.0)
        if self._wanted.distribution == "normal":
            low, high = (-50.0 * self._wanted.mean, 50.0 * self._wanted.mean)
        for _ in range(80):
            middle = (low + high) / 2
            if self._mean(grid, middle) < self._wanted.mean:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    def _mean(self, grid: NDArray[np.float64], middle: float) -> float:
        values = self._values(grid, middle)
        inside = values[(values >= self._wanted.minimum) & (values <= self._wanted.maximum)]
        if len(inside):
            return float(inside.mean())
        return float("-inf") if float(values.max()) < self._wanted.minimum else float("inf")


def read_profile(file: Path, seed: int) -> Generated:
    """The traffic of a YAML file.

    Raises:
        TrafficError: with every setting that is wrong.
        OSError: when there is no such file.
    """
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise TrafficError(file, "", "is not text", "Give YAML in UTF-8.") from None
    except yaml.YAMLError as error:
        raise TrafficError(file, "", f"is not YAML: {error}", "Correct it.") from None
    return Generated(profile_of(document, file), seed)


def profile_of(document: Any, file: Path | str) -> Profile:
    """A checked profile.

    Raises:
        TrafficError: with every setting that is wrong.
    """
    try:
        return Profile.model_validate(document)
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_url=False):
            place = ".".join(map(str, problem["loc"])) or "it"
            given = "" if problem["type"] in ("missing", "value_error") else f" (is {problem['input']!r})"
            lines.append(f"{place}: {problem['msg']}{given}")
        raise TrafficError(
            file, "", "is not a profile of traffic:\n  " + "\n  ".join(lines), "docs/planner.md has an example."
        ) from None
