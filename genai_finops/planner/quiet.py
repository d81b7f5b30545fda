"""When a traffic is silent week after week: hours in which its model could sleep.

Only a traffic of a week or more can say so, and only hours of the week in which it never had a single request count. An
hour is the grain; silence of less than three hours between others is not worth a cold start.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from math import ceil
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from genai_finops.operations.windows import DAYS, MINUTES_A_DAY
from genai_finops.planner.traffic.requests import Traffic
from genai_finops.spec.model import AwakeWindow, Schedule

SHORTEST_SILENCE_HOURS: Final = 3
LEAST_ASLEEP_SHARE: Final = 0.05
"""Of the week. Less is not worth a schedule."""

_HOUR: Final = timedelta(hours=1)
_WEEK_HOURS: Final = 7 * 24


def quiet_schedule(traffic: Traffic, cold_start_seconds: float) -> Schedule | None:
    """A schedule that sleeps through the silent hours of the week and is awake in time; None without enough of them.

    Args:
        cold_start_seconds: on a fresh node: how long before a window the model must be woken.
    """
    if traffic.duration_seconds < _WEEK_HOURS * 3600:
        return None
    zone = traffic.start.tzinfo.key if isinstance(traffic.start.tzinfo, ZoneInfo) else "UTC"
    active = _without_short_gaps(_active_hours(traffic, zone))
    if not any(active) or sum(active) > (1 - LEAST_ASLEEP_SHARE) * _WEEK_HOURS:
        return None
    lead = min(MINUTES_A_DAY, ceil(cold_start_seconds / 60))
    return Schedule(time_zone=zone, awake=tuple(_windows(active)), wake_lead_minutes=lead)


def _active_hours(traffic: Traffic, zone: str) -> list[bool]:
    """By hour of the local week, from Monday's midnight: whether any request ever came."""
    hours = np.zeros(1, np.bool_)
    for chunk in traffic.chunks():
        found = np.unique((chunk.arrival_seconds // 3600).astype(np.int64))
        if found[-1] >= len(hours):
            hours = np.concatenate((hours, np.zeros(int(found[-1]) + 1 - len(hours), np.bool_)))
        hours[found] = True
    active = [False] * _WEEK_HOURS
    there = ZoneInfo(zone)
    for index in np.flatnonzero(hours).tolist():
        begin = traffic.start + index * _HOUR
        for moment in (begin, begin + _HOUR - timedelta(microseconds=1)):  # an hour of the traffic may lie across two
            local = moment.astimezone(there)
            active[local.weekday() * 24 + local.hour] = True
    return active


def _without_short_gaps(active: Sequence[bool]) -> list[bool]:
    """The week is a ring: Sunday night and Monday morning are one silence."""
    filled = list(active)
    if not any(active):
        return filled
    first = active.index(True)
    silence: list[int] = []
    for hour in ((first + offset) % _WEEK_HOURS for offset in range(1, _WEEK_HOURS + 1)):
        if not active[hour]:
            silence.append(hour)
            continue
        if len(silence) < SHORTEST_SILENCE_HOURS:
            for each in silence:
                filled[each] = True
        silence = []
    return filled


def _windows(active: Sequence[bool]) -> Iterator[AwakeWindow]:
    """Runs of active hours, cut at midnight; the same hours of several days are one window."""
    days: dict[tuple[int, int], list[int]] = {}
    for day in range(7):
        hours = active[day * 24 : day * 24 + 24]
        start = None
        for hour in range(25):
            if hour < 24 and hours[hour]:
                start = hour if start is None else start
            elif start is not None:
                days.setdefault((start, hour), []).append(day)
                start = None
    for (start, end), found in days.items():
        yield AwakeWindow(days=_day_words(found), start=f"{start:02}:00", end=f"{end:02}:00")


def _day_words(days: Sequence[int]) -> str:
    """`Mon-Fri,Sun`."""
    words = []
    start = previous = days[0]
    for day in (*days[1:], None):
        if day is not None and day == previous + 1:
            previous = day
            continue
        words.append(DAYS[start] if start == previous else f"{DAYS[start]}-{DAYS[previous]}")
        if day is not None:
            start = previous = day
    return ",".join(words)


def described(schedule: Schedule | None) -> str:
    """`Mon-Fri 07:00-19:00 Europe/Berlin`; empty when always awake."""
    if schedule is None:
        return ""
    windows = "; ".join(f"{window.days} {window.start}-{window.end}" for window in schedule.awake)
    return f"{windows} {schedule.time_zone}"
