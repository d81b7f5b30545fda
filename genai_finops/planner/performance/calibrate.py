"""From a benchmark of your own to a measured profile: `vllm bench serve` and guidellm.

Their words differ. vLLM's `itl` is one value for each gap between two tokens, its `tpot` one for each request, the mean
of its gaps. guidellm's `inter_token_latency` is one for each request, and its `time_per_output_token` counts the first
token in. They are never mixed: steps are read from gaps where there are any, else from the requests' means.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, Literal, TextIO, cast

from genai_finops.catalog import families, instance_types
from genai_finops.planner.performance.model import MeasuredProfile
from genai_finops.planner.results import Calibration, CalibrationError

SCHEMA: Final = "genai-finops/performance-profile/1"

MOST_FAILED_SHARE: Final = 0.05
"""A benchmark with more failures measured something else than the model's speed."""

VLLM: Final = "vllm bench serve"
GUIDELLM: Final = "guidellm"

Latency = Literal["time to first token", "inter token", "request inter token", "end to end"]
Statistic = Literal["mean", "p50", "p90", "p95", "p99"]


class UnusableResultError(ValueError):
    """A result cannot be used; says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Point:
    """One benchmark at one load.

    Attributes:
        concurrency: requests in the server at once, on average.
        latencies: seconds, by what and which statistic; only those that the file gives.
    """

    file: str
    form: str
    concurrency: float
    input_tokens: float
    output_tokens: float
    completed: int
    failed: int
    latencies: Mapping[tuple[Latency, Statistic], float]

    def first(self, latency: Latency, *statistics: Statistic) -> float | None:
        return next((self.latencies[latency, one] for one in statistics if (latency, one) in self.latencies), None)

    @property
    def step_seconds(self) -> float | None:
        """What a decode step took: the middle gap, which no prefill stretches; else the requests' typical mean."""
        gaps = self.first("inter token", "p50", "mean")
        return self.first("request inter token", "p50", "mean") if gaps is None else gaps


def calibrate(
    files: Sequence[Path], *, model: str, instance: str, tensor_parallel_size: int | None
) -> tuple[MeasuredProfile, Calibration]:
    """The profile of one replica, and how far it is from what was measured.

    Args:
        files: results of one replica at different loads, one of them close to a single request at once.
        tensor_parallel_size: None is the smallest layout of the instance.

    Raises:
        UnusableResultError: naming the file and what is wrong with it.
        OSError: when a file cannot be read.
    """
    if instance not in instance_types() or instance_types()[instance].accelerator is None:
        known = ", ".join(sorted(family for family in families()))
        raise UnusableResultError(f"--instance {instance}: the catalog has no such type. Its families are {known}.")
    accelerator = instance_types()[instance].accelerator
    assert accelerator
    split = tensor_parallel_size or accelerator.cores
    points = sorted((point for file in files for point in _points(file)), key=lambda point: point.concurrency)
    _check(points)
    fixed, more = _line([(point.concurrency, point.step_seconds or 0.0) for point in points])
    base, per_token = _prefill(points)
    profile = MeasuredProfile(
        model=model,
        instance=instance,
        tensor_parallel_size=split,
        step_seconds=fixed,
        step_seconds_per_sequence=more,
        prefill_seconds=base,
        prefill_seconds_per_token=per_token,
        decode_relative_error=0.0,
        prefill_relative_error=0.0,
        measured=datetime.now(UTC).date(),
        source=", ".join(sorted({Path(point.file).name for point in points})),
    )
    errors = tuple(error for point in points for error in _errors(point, profile))
    decode = _largest(errors, ("inter token", "request inter token"), ("mean", "p50"))
    prefill = _largest(errors, ("time to first token",), ("mean", "p50"), points[0].concurrency)
    profile = MeasuredProfile(**{**_plain(profile), "decode_relative_error": decode, "prefill_relative_error": prefill})
    return profile, Calibration(
        model=model,
        instance=instance,
        tensor_parallel_size=split,
        formats=tuple(sorted({point.form for point in points})),
        requests=sum(point.completed for point in points),
        failed=sum(point.failed for point in points),
        decode_relative_error=decode,
        prefill_relative_error=prefill,
        errors=errors,
        notes=tuple(_notes(points)),
    )


def _plain(profile: MeasuredProfile) -> dict[str, Any]:
    return {field.name: getattr(profile, field.name) for field in fields(profile)}


def _check(points: Sequence[Point]) -> None:
    for point in points:
        tried = point.completed + point.failed
        if point.failed > MOST_FAILED_SHARE * tried:
            raise UnusableResultError(
                f"{point.file}: {point.failed} of {tried} requests failed; at most {MOST_FAILED_SHARE:.0%} may. "
                "Find out why, and measure again: what is left says little about the server's speed."
            )
        if point.step_seconds is None:
            raise UnusableResultError(
                f"{point.file}: has no time between tokens. Answers need two tokens or more: raise the output length."
            )
        if point.first("time to first token", "p50", "mean") is None:
            raise UnusableResultError(f"{point.file}: has no time to the first token. Measure with streaming.")
    lowest, highest = points[0].concurrency, points[-1].concurrency
    if highest < 1.5 * lowest:
        raise UnusableResultError(
            f"All results have about {lowest:.1f} requests at once: a step's time cannot be told from what each "
            "request adds. Give results of two or more levels of --max-concurrency, such as 1, 4 and 8."
        )
    if lowest > 2:
        raise UnusableResultError(
            f"The least has {lowest:.1f} requests at once, so every time to the first token holds the wait for "
            "others. Add a result with --max-concurrency 1."
        )


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Least squares; a slope below nothing is noise, and counts as none."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = max(0.0, sum((x - mean_x) * (y - mean_y) for x, y in points) / spread) if spread else 0.0
    fixed = mean_y - slope * mean_x
    if fixed <= 0:
        slope = mean_y / mean_x
        fixed = 0.0
    return fixed, slope


def _prefill(points: Sequence[Point]) -> tuple[float, float]:
    """From the results with the fewest requests at once; a fixed part only where prompts differ in length."""
    fewest = points[0].concurrency
    alone = [point for point in points if point.concurrency <= 1.5 * fewest]
    waits = [(point.input_tokens, point.first("time to first token", "p50", "mean") or 0.0) for point in alone]
    lengths = [tokens for tokens, _ in waits]
    if max(lengths) >= 1.5 * min(lengths):
        return _line(waits)
    return 0.0, sum(seconds / tokens for tokens, seconds in waits) / len(waits)


def _errors(point: Point, profile: MeasuredProfile) -> Iterator[CalibrationError]:
    for (latency, statistic), measured in point.latencies.items():
        fitted = _fitted(point, profile, latency, statistic)
        yield CalibrationError(
            file=point.file,
            concurrency=point.concurrency,
            latency=latency,
            statistic=statistic,
            measured_seconds=measured,
            fitted_seconds=fitted,
            relative_error=fitted / measured - 1,
        )


def _fitted(point: Point, profile: MeasuredProfile, latency: Latency, statistic: Statistic) -> float:
    """What the profile says for requests of the mean length, in a server that always has as many.

    Each request sees the prefills of the others that come while it decodes; a share of its gaps holds one.
    """
    step = profile.step_seconds + profile.step_seconds_per_sequence * point.concurrency
    prefill = profile.prefill_seconds + profile.prefill_seconds_per_token * point.input_tokens
    gaps = max(point.output_tokens - 1, 1)
    others = max(point.concurrency - 1, 0)
    mean_gap = step + others * prefill / gaps
    first = prefill + (step / 2 if others else 0)
    if latency == "time to first token":
        return first
    if latency == "request inter token":
        return mean_gap
    if latency == "end to end":
        return first + mean_gap * gaps
    if statistic == "mean":
        return mean_gap
    share = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}[statistic]
    return step + prefill if 1 - share < min(1.0, others / gaps) else step


def _largest(
    errors: Sequence[CalibrationError],
    latencies: Sequence[Latency],
    statistics: Sequence[Statistic],
    concurrency: float | None = None,
) -> float:
    found = [
        abs(error.relative_error)
        for error in errors
        if error.latency in latencies
        and error.statistic in statistics
        and (concurrency is None or error.concurrency == concurrency)
    ]
    return min(0.99, max(found, default=0.99))


def _notes(points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        gaps = "the middle gap" if point.first("inter token", "p50", "mean") is not None else "the requests' means"
        yield f"{Path(point.file).name}: {point.form}, {point.concurrency:.1f} requests at once; steps from {gaps}"
    failed = sum(point.failed for point in points)
    if failed:
        yield f"{failed} failed requests are in no latency"


# Reading


def _points(file: Path) -> Iterator[Point]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UnusableResultError(f"{file}: is not text. Give the JSON that the benchmark wrote.") from None
    except json.JSONDecodeError as error:
        raise UnusableResultError(f"{file}: is not JSON: {error}. Give the file that the benchmark wrote.") from None
    if isinstance(document, dict) and isinstance(document.get("benchmarks"), list):
        for number, benchmark in enumerate(document["benchmarks"]):
            yield _guidellm(file, f"benchmarks[{number}]", benchmark)
    elif isinstance(document, dict) and "mean_ttft_ms" in document:
        yield _vllm(file, document)
    else:
        raise UnusableResultError(
            f"{file}: is neither a result of `vllm bench serve --save-result` (no mean_ttft_ms) nor of guidellm (no "
            "benchmarks)."
        )


def _vllm(file: Path, found: Mapping[str, Any]) -> Point:
    completed = int(_number(file, found, "completed"))
    tried = int(found.get("num_prompts") or completed)
    failed = int(found["failed"]) if isinstance(found.get("failed"), int) else max(0, tried - completed)
    if completed == 0:
        raise UnusableResultError(f"{file}: completed is 0: nothing was measured.")
    latencies: dict[tuple[Latency, Statistic], float] = {}
    kinds: tuple[tuple[Latency, str], ...] = (
        ("time to first token", "ttft"),
        ("inter token", "itl"),
        ("request inter token", "tpot"),
        ("end to end", "e2el"),
    )
    for latency, name in kinds:
        for statistic, prefix in (("mean", "mean"), ("p50", "median"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99")):
            value = found.get(f"{prefix}_{name}_ms")
            if value is not None:
                seconds = _number(file, found, f"{prefix}_{name}_ms") / 1000
                if seconds > 0:  # nothing to measure, such as gaps of answers with one token, is written as 0
                    latencies[latency, cast(Statistic, statistic)] = seconds
    inputs = _number(file, found, "total_input_tokens") / completed
    outputs = _number(file, found, "total_output_tokens") / completed
    return Point(
        str(file), VLLM, _concurrency(file, found, completed, outputs, latencies), inputs, outputs, completed, failed,
        latencies,
    )  # fmt: skip


def _concurrency(
    file: Path,
    found: Mapping[str, Any],
    completed: int,
    output_tokens: float,
    latencies: Mapping[tuple[Latency, Statistic], float],
) -> float:
    """As set; for an open load by Little's law, from rate and latency."""
    if found.get("max_concurrency"):
        return _number(file, found, "max_concurrency")
    duration = _number(file, found, "duration")
    if duration <= 0:
        raise UnusableResultError(f"{file}: duration is {duration:g}: nothing was measured.")
    length = latencies.get(("end to end", "mean"))
    if length is None:
        first = latencies.get(("time to first token", "mean"), 0.0)
        length = first + latencies.get(("request inter token", "mean"), 0.0) * max(output_tokens - 1, 0)
    return max(1.0, completed / duration * length)


def _guidellm(file: Path, place: str, benchmark: Any) -> Point:
    metrics = benchmark.get("metrics") if isinstance(benchmark, dict) else None
    if not isinstance(metrics, dict):
        raise UnusableResultError(f"{file}: {place} has no metrics.")
    totals = benchmark.get("request_totals") or metrics.get("request_totals") or {}
    completed = int(totals.get("successful") or 0)
    failed = int(totals.get("errored") or 0)
    if completed == 0:
        raise UnusableResultError(f"{file}: {place}: no request was successful.")
    latencies: dict[tuple[Latency, Statistic], float] = {}
    kinds: tuple[tuple[Latency, str, float], ...] = (
        ("time to first token", "time_to_first_token_ms", 1000),
        ("request inter token", "inter_token_latency_ms", 1000),
        ("end to end", "request_latency", 1),
    )
    for latency, name, per_second in kinds:
        values = (metrics.get(name) or {}).get("successful") or {}
        percentiles = values.get("percentiles") or {}
        given = {"mean": values.get("mean"), "p50": percentiles.get("p50", values.get("median"))}
        given |= {statistic: percentiles.get(statistic) for statistic in ("p90", "p95", "p99")}
        for statistic, value in given.items():
            if isinstance(value, int | float) and math.isfinite(value) and value > 0:
                latencies[latency, cast(Statistic, statistic)] = value / per_second

    def mean(name: str) -> float:
        value = ((metrics.get(name) or {}).get("successful") or {}).get("mean")
        if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise UnusableResultError(
                f"{file}: {place}.metrics.{name}.successful.mean is {value!r}: use a number above 0."
            )
        return float(value)

    return Point(
        f"{file}#{place}",
        GUIDELLM,
        max(1.0, mean("request_concurrency")),
        mean("prompt_token_count"),
        mean("output_token_count"),
        completed,
        failed,
        latencies,
    )


def _number(file: Path, found: Mapping[str, Any], name: str) -> float:
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise UnusableResultError(f"{file}: {name} is {value!r}: use a number from 0 on.")
    return float(value)


# Profiles


def write_profile(profile: MeasuredProfile, stream: TextIO) -> None:
    """As JSON, to be read by `read_profile`."""
    document = {"schema": SCHEMA, **asdict(profile), "measured": profile.measured.isoformat()}
    stream.write(json.dumps(document, indent=2) + "\n")


def read_profile(file: Path) -> MeasuredProfile:
    """What `write_profile` wrote.

    Raises:
        UnusableResultError: when it is not that.
        OSError: when there is no such file.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UnusableResultError(f"{file}: is not JSON: {error}. Give a profile that `calibrate` wrote.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise UnusableResultError(f"{file}: has the schema {found!r}: use {SCHEMA}, as `calibrate` writes it.")
    given = {key: value for key, value in document.items() if key != "schema"}
    names = {field.name for field in fields(MeasuredProfile)}
    if set(given) != names:
        wrong = ", ".join(sorted(set(given) ^ names))
        raise UnusableResultError(f"{file}: has these fields too many or too few: {wrong}.")
    for name in sorted(names - {"model", "instance", "measured", "source", "tensor_parallel_size"}):
        _number(file, given, name)
    if not isinstance(given["tensor_parallel_size"], int) or given["tensor_parallel_size"] < 1:
        raise UnusableResultError(f"{file}: tensor_parallel_size is {given['tensor_parallel_size']!r}: use 1 or more.")
    for name in ("decode_relative_error", "prefill_relative_error"):
        if given[name] >= 1:
            raise UnusableResultError(f"{file}: {name} is {given[name]!r}: use a share below 1.")
    try:
        given["measured"] = date.fromisoformat(given["measured"])
    except (TypeError, ValueError):
        raise UnusableResultError(f"{file}: measured is {given['measured']!r}: use a date.") from None
    return MeasuredProfile(**given)
