"""How fast accelerators serve, and the published rows that this can be held against."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from genai_finops.catalog import _files

Provenance = Literal["fitted", "assumed"]
Role = Literal["fit", "held out", "excluded"]


@dataclass(frozen=True, slots=True)
class AcceleratorPerformance:
    """One accelerator model; the fields are explained at the head of data/performance.yaml.

    Attributes:
        gigabytes_per_second: of one device, by its memory in MiB.
        efficiency: by devices that a replica is split over.
    """

    accelerator: str
    bf16_tflops: float
    gigabytes_per_second: Mapping[int, float]
    is_static: bool
    layer_ms: float
    efficiency: Mapping[int, float]
    sequence_ms: float
    split_layer_ms: float
    prefill_mfu: float
    prefill_mfu_growth: float
    measured_splits: tuple[int, ...]
    fitted_error: float
    extrapolated_error: float
    prefill_error: float
    provenance: Provenance
    source: str

    def bytes_per_second(self, memory_bytes: int) -> float:
        """Of the variant with the memory nearest to `memory_bytes`."""
        memory_mib = memory_bytes / 2**20
        nearest = min(self.gigabytes_per_second, key=lambda size: abs(size - memory_mib))
        return self.gigabytes_per_second[nearest] * 1e9

    def efficiency_over(self, devices: float) -> float:
        """Read on a logarithmic scale between two given numbers of devices, and as the nearest outside of them."""
        given = sorted(self.efficiency)
        below = max((count for count in given if count <= devices), default=given[0])
        above = min((count for count in given if count >= devices), default=given[-1])
        if below >= above:
            return self.efficiency[above]
        share = math.log(devices / below) / math.log(above / below)
        return self.efficiency[below] + share * (self.efficiency[above] - self.efficiency[below])


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One published measurement of one replica; None where it does not say.

    Attributes:
        bytes_per_parameter: 1 with int8 weights, 2 without.
        prompts: that the time to the first token was waited for, one after the other.
        padded_tokens: of each, where it is not the next power of two.
    """

    model: str
    accelerator: str
    devices: int
    split: int
    bytes_per_parameter: int
    sequences: int | None
    context_tokens: int | None
    prompt_tokens: int | None
    decode_ms: float | None
    first_token_ms: float | None
    prompts: int | None
    padded_tokens: int | None
    role: Role
    reason: str
    source: str


@cache
def accelerator_performance() -> Mapping[str, AcceleratorPerformance]:
    """By accelerator, as in `instances.csv`."""
    entries = _files.document("performance.yaml")
    return {
        entry["accelerator"]: AcceleratorPerformance(**{**entry, "measured_splits": tuple(entry["measured_splits"])})
        for entry in entries
    }


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """All rows, in the order of the file."""
    lines = (line for line in _files.text("published_rows.csv").splitlines() if not line.startswith("#"))
    return tuple(_row(row) for row in csv.DictReader(lines))


def _row(row: Mapping[str, str]) -> PublishedRow:
    def whole(name: str) -> int | None:
        return int(row[name]) if row[name] else None

    def number(name: str) -> float | None:
        return float(row[name]) if row[name] else None

    return PublishedRow(
        model=row["model"],
        accelerator=row["accelerator"],
        devices=int(row["devices"]),
        split=int(row["split"]),
        bytes_per_parameter=int(row["bytes_per_parameter"]),
        sequences=whole("sequences"),
        context_tokens=whole("context_tokens"),
        prompt_tokens=whole("prompt_tokens"),
        decode_ms=number("decode_ms"),
        first_token_ms=number("first_token_ms"),
        prompts=whole("prompts"),
        padded_tokens=whole("padded_tokens"),
        role=row["role"],  # type: ignore[arg-type]
        reason=row["reason"],
        source=row["source"],
    )
