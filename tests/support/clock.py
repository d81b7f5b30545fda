"""Time that passes only when a test, or what it tests, lets it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lambdas.adapters.kubernetes import Timing

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@dataclass
class FakeClock:
    """A clock that sleeping moves; `chance` is what every draw gives."""

    time: datetime = START
    chance: float = 1.0
    sleeps: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.time

    def pass_(self, **length: float) -> None:
        self.time += timedelta(**length)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.pass_(seconds=seconds)

    def timing(self) -> Timing:
        return Timing(seconds=lambda: self.time.timestamp(), sleep=self.sleep, chance=lambda: self.chance)
