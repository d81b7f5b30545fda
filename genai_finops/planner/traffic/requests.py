"""Requests as the simulator takes them: columns, in chunks, so that a week needs no more memory than a minute."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Requests:
    """Some requests, in order of arrival.

    Attributes:
        arrival_seconds: float64, shape (n,), since the traffic's start; never descending.
        input_tokens: int32, shape (n,), at least 1.
        output_tokens: int32, shape (n,), at least 1: what is generated, the first token included.
    """

    arrival_seconds: NDArray[np.float64]
    input_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.arrival_seconds)


class Traffic(Protocol):
    """A source of requests that can be read again from the start, with the same result to the bit."""

    @property
    def name(self) -> str:
        """For headings: the file's name, or the profile's."""

    @property
    def start(self) -> datetime:
        """Aware: when the clock of `arrival_seconds` shows 0. Schedules and prices are read against it."""

    @property
    def duration_seconds(self) -> float:
        """The time that the traffic stands for: what is scaled to a month. At least the last arrival."""

    def chunks(self) -> Iterator[Requests]:
        """From the start, in order of arrival; none of them empty."""
