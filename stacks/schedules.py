"""When to look at models that sleep by the clock: every two minutes, and at each boundary of their windows.

The entries only save the minutes until the next look, and whoever looks finds by himself what is due. So they leave out
days and dates: a look on a Sunday finds nothing to do, and no entry has to know of holidays. What is left are the times
of day in each zone, and those of an hour share an entry.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from genai_finops.spec import Model

TICK: Final = "rate(2 minutes)"
"""A run takes a second or two, a thousandth of a cent; two minutes of a node that should be gone are some cents."""

DAILY: Final = "cron(30 11 * * ? *)"
"""UTC. By then AWS has mostly billed all of the day before."""

MOST: Final = 200
"""Entries, of the 500 resources that a stack may have. The hours of the most models come first, the tick does the
rest."""

_MINUTES_A_DAY: Final = 24 * 60
_MIDNIGHT: Final = 0


@dataclass(frozen=True, slots=True, order=True)
class Look:
    """An hour of a zone in which something may be due, with the minutes of it."""

    zone: str
    hour: int
    minutes: tuple[int, ...]

    @property
    def name(self) -> str:
        """`America-Argentina-Buenos_Aires-07`: EventBridge takes no slashes and no plus."""
        return f"{self.zone.replace('/', '-').replace('+', '_plus_')}-{self.hour:02}"

    @property
    def expression(self) -> str:
        """Of EventBridge Scheduler, in `zone`."""
        return f"cron({','.join(map(str, self.minutes))} {self.hour} * * ? *)"


def looks(models: Iterable[Model]) -> list[Look]:
    """One entry for each hour of each zone in which a model may have to wake or to sleep; at most MOST."""
    hours: dict[tuple[str, int], dict[int, int]] = {}
    for model in models:
        if model.schedule:
            for minute in set(_minutes(model)):
                hour, past = divmod(minute, 60)
                counted = hours.setdefault((model.schedule.time_zone, hour), {})
                counted[past] = counted.get(past, 0) + 1
    by_use = sorted(hours.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    return sorted(Look(zone, hour, tuple(sorted(minutes))) for (zone, hour), minutes in by_use[:MOST])


def _minutes(model: Model) -> Iterator[int]:
    """Of the local day, at which a window starts, with its lead, or ends."""
    schedule = model.schedule
    assert schedule
    for window in schedule.awake:
        yield from _edges(window.window().start_minute, window.window().end_minute, schedule.wake_lead_minutes)
    for exception in schedule.exceptions:
        # A special day is governed by its own hours from midnight to midnight.
        yield from _edges(_MIDNIGHT, _MIDNIGHT, schedule.wake_lead_minutes)
        for hours in exception.special_days().hours:
            yield from _edges(hours.start_minute, hours.end_minute, schedule.wake_lead_minutes)


def _edges(start: int, end: int, lead: int) -> Iterator[int]:
    yield (start - lead) % _MINUTES_A_DAY
    yield end % _MINUTES_A_DAY
