"""When a model is awake: weekly windows of local time, special days, and what a change of clocks does to them.

A window belongs to the day it starts on, so `22:00`–`06:00` on Friday ends on Saturday morning, and a window whose
end equals its start lasts a whole day. Windows may overlap; what counts is their union.

A local time happens once: at the first moment the local clock shows it or a later one. So a boundary in the hour that
spring skips comes when the clock jumps over it, and one in the hour that autumn repeats comes the first time only.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MINUTES_A_DAY: Final = 24 * 60
MINUTES_A_WEEK: Final = 7 * MINUTES_A_DAY

MAX_SPECIAL_DAYS: Final = 3660
"""Ten years in one entry is a slip of the keyboard."""

_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_ONE_DAY: Final = timedelta(days=1)
_TWO_WEEKS_AND_THEIR_EDGES: Final = 16
"""A week may have none of its changes: clocks can jump over a window as a whole."""


def _check_minutes(start_minute: int, end_minute: int) -> None:
    if not 0 <= start_minute < MINUTES_A_DAY:
        raise ValueError("A window starts from 00:00 to 23:59; 24:00 is 00:00 of the next day")
    if not 0 <= end_minute <= MINUTES_A_DAY:
        raise ValueError("A window ends from 00:00 to 24:00")


def _length(start_minute: int, end_minute: int) -> int:
    length = end_minute - start_minute
    return length if length > 0 else length + MINUTES_A_DAY


@dataclass(frozen=True, slots=True)
class Window:
    """A weekly window in local time.

    Attributes:
        days: the days it starts on, 0 is Monday.
        start_minute: of the day, 0 to 1439.
        end_minute: of the day, 0 to 1440; at or before the start means the next day.

    Raises:
        ValueError: when a minute or a day is not one.
    """

    days: frozenset[int]
    start_minute: int
    end_minute: int

    def __post_init__(self) -> None:
        _check_minutes(self.start_minute, self.end_minute)
        if not self.days <= frozenset(range(7)):
            raise ValueError("Days are 0 (Monday) to 6 (Sunday)")

    @property
    def length_minutes(self) -> int:
        return _length(self.start_minute, self.end_minute)


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of one special day; the same rules as for a window.

    Raises:
        ValueError: when a minute is not of a day.
    """

    start_minute: int
    end_minute: int

    def __post_init__(self) -> None:
        _check_minutes(self.start_minute, self.end_minute)

    @property
    def length_minutes(self) -> int:
        return _length(self.start_minute, self.end_minute)


ALL_DAY: Final = Hours(0, MINUTES_A_DAY)


@dataclass(frozen=True, slots=True)
class SpecialDays:
    """Dates, first to last, on which the weekly windows do not hold: a holiday, a launch.

    A special day is governed by its own hours alone, from midnight to midnight: a window that began the evening
    before ends at midnight. Whoever writes "asleep on the 25th" means all of it.

    Attributes:
        hours: none is asleep all day, `ALL_DAY` awake all day. Hours over midnight reach into an ordinary next day.

    Raises:
        ValueError: when the last day is before the first, or absurdly far away.
    """

    first: date
    last: date
    hours: tuple[Hours, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= (self.last - self.first).days < MAX_SPECIAL_DAYS:
            raise ValueError(f"Special days run from the first to the last: {self.first} to {self.last} do not")


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a model is awake.

    Attributes:
        zone: IANA name, such as Europe/Berlin; it is the zone of all local times here.
        windows: by the week.
        special_days: in any order, no date twice.
        wake_lead_minutes: how long before a window's start the model is woken, so that it is Ready by then; at most
            a day.

    Raises:
        ValueError: when the zone is not known, the lead is no part of a day or a date is special twice.
    """

    zone: str
    windows: tuple[Window, ...]
    special_days: tuple[SpecialDays, ...] = ()
    wake_lead_minutes: int = 0

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{self.zone!r} is not an IANA time zone; use one such as Europe/Berlin") from None
        if not 0 <= self.wake_lead_minutes <= MINUTES_A_DAY:
            raise ValueError(f"A wake lead is 0 to {MINUTES_A_DAY} minutes, not {self.wake_lead_minutes}")
        ordered = sorted(self.special_days, key=lambda special: special.first)
        for before, after in pairwise(ordered):
            if after.first <= before.last:
                raise ValueError(f"{after.first} is a special day twice; merge the two entries")

    def special(self, day: date) -> SpecialDays | None:
        return next((special for special in self.special_days if special.first <= day <= special.last), None)


@dataclass(frozen=True, slots=True)
class Status:
    """Awake or asleep, and the changes next to it; None where none is within reach (see `status`)."""

    awake: bool
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Boundary:
    """A local time at which to look, for EventBridge Scheduler: by the week, or once on a date.

    Only a reason to look soon: the level-based tick finds the same state a few minutes later. EventBridge fires a
    skipped local time never and a repeated one once, which is then up to that tick.
    """

    zone: str
    minute: int
    wakes: bool
    days: frozenset[int] = frozenset()
    on: date | None = None

    @property
    def expression(self) -> str:
        """`ScheduleExpression`; `zone` is its `ScheduleExpressionTimezone`."""
        hour, minute = divmod(self.minute, 60)
        if self.on:
            return f"at({self.on.isoformat()}T{hour:02}:{minute:02}:00)"
        return f"cron({minute} {hour} ? * {','.join(DAYS[day].upper() for day in sorted(self.days))} *)"


def parse_days(text: str) -> frozenset[int]:
    """Days such as `Mon-Fri`, `Sat,Sun`, `Fri-Mon` or `Mon-Wed,Sat`; a range may run over the weekend.

    Raises:
        ValueError: when a part is not a day or a range of days.
    """
    days: set[int] = set()
    for part in (part.strip() for part in text.split(",")):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        if first not in DAYS or (dash and last not in DAYS):
            raise ValueError(
                f"{part!r} is not a day or a range of days; use {', '.join(DAYS)}, or a range like Mon-Fri"
            )
        start, end = DAYS.index(first), DAYS.index(last if dash else first)
        days.update((start + offset) % 7 for offset in range((end - start) % 7 + 1))
    return frozenset(days)


def parse_time(text: str) -> int:
    """Minutes since midnight of `HH:MM`; `24:00` is the end of the day.

    Raises:
        ValueError: when the text is not a time of day.
    """
    if text == "24:00":
        return MINUTES_A_DAY
    match = _TIME.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a time of day; use HH:MM from 00:00 to 24:00, in quotes")
    return int(match[1]) * 60 + int(match[2])


def awake_minutes_a_week(windows: Iterable[Window]) -> int:
    """Minutes of a week that at least one window covers, in a week without a clock change."""
    return sum(end - start for start, end in _week(windows, lead_minutes=0))


def is_awake(schedule: Schedule, now: datetime) -> bool:
    """Whether the model should be awake at `now` (aware), its lead included."""
    today = _local_date(schedule, now)
    return any(
        start <= now < end for offset in range(-2, 3) for start, end in _spans(schedule, today + offset * _ONE_DAY)
    )


def status(schedule: Schedule, now: datetime) -> Status:
    """Awake or asleep at `now` (aware), since when and until when in UTC; a change more than a day away may be None.

    Two days to either side is what the rules ask for: nothing waits longer than a day after a boundary.
    """
    today = _local_date(schedule, now)
    spans = _merged(schedule, today - 3 * _ONE_DAY, today + 3 * _ONE_DAY)
    edges = [edge for span in spans for edge in span]
    # The outermost edges may be those of what was looked at, not of the schedule.
    reach = [edge for edge in edges if abs(edge - now) <= timedelta(days=2)]
    return Status(
        awake=any(start <= now < end for start, end in spans),
        since=max((edge for edge in reach if edge <= now), default=None),
        until=min((edge for edge in reach if edge > now), default=None),
    )


def next_change(schedule: Schedule, after: datetime) -> datetime | None:
    """The first moment after `after` (aware) at which the model wakes or goes to sleep, in UTC; None when never."""
    today = _local_date(schedule, after)
    last_special = max((special.last for special in schedule.special_days), default=today)
    furthest = max(today, last_special) + _TWO_WEEKS_AND_THEIR_EDGES * _ONE_DAY
    horizon = _TWO_WEEKS_AND_THEIR_EDGES
    while True:
        end = min(today + horizon * _ONE_DAY, furthest)
        # What starts on days that were not looked at reaches back over the last day by the lead.
        trusted = instant(schedule.zone, end - _ONE_DAY, 0)
        spans = _merged(schedule, today - 3 * _ONE_DAY, end)
        found = min((edge for span in spans for edge in span if after < edge <= trusted), default=None)
        if found or end == furthest:
            return found
        horizon *= 2


def boundaries(schedule: Schedule) -> tuple[Boundary, ...]:
    """When to look: the weekly changes, and those that special days add.

    The lead is subtracted from the local time here, since a weekly entry has no other clock; on the two days a year
    where that is not the moment of `is_awake`, the tick decides.
    """
    weekly: dict[tuple[int, bool], set[int]] = {}
    for start, end in _week(schedule.windows, lead_minutes=schedule.wake_lead_minutes, on_a_ring=True):
        for minute, wakes in ((start, True), (end, False)):
            day, minute_of_day = divmod(minute % MINUTES_A_WEEK, MINUTES_A_DAY)
            weekly.setdefault((minute_of_day, wakes), set()).add(day)
    found = [Boundary(schedule.zone, minute, wakes, days=frozenset(days)) for (minute, wakes), days in weekly.items()]
    for moment, wakes in _changes_around_special_days(schedule):
        local = moment.astimezone(ZoneInfo(schedule.zone))
        minute = local.hour * 60 + local.minute
        if local.weekday() not in weekly.get((minute, wakes), ()):
            found.append(Boundary(schedule.zone, minute, wakes, on=local.date()))
    return tuple(sorted(found, key=lambda one: (one.on or date.min, one.minute, one.wakes)))


@lru_cache(maxsize=2**16)
def instant(zone: str, day: date, minute: int) -> datetime:
    """The first moment, in UTC, at which clocks in `zone` show `minute` (0 to 2880) of `day` or later."""
    wall = datetime.combine(day, time()) + timedelta(minutes=minute)
    there = ZoneInfo(zone)
    late = wall.replace(tzinfo=there).astimezone(UTC)
    if late.astimezone(there).replace(tzinfo=None) == wall:
        return late
    # Clocks jumped over it. The jump lies between what the time would be in the offset after and in the one before.
    early = wall.replace(tzinfo=there, fold=1).astimezone(UTC)
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        if middle.astimezone(there).replace(tzinfo=None) >= wall:
            late = middle
        else:
            early = middle
    return late


@lru_cache(maxsize=2**14)
def _spans(schedule: Schedule, day: date) -> tuple[tuple[datetime, datetime], ...]:
    """Awake time in UTC, lead included, of what starts on `day`."""
    special = schedule.special(day)
    hours: Iterable[Window | Hours] = (
        special.hours if special else (window for window in schedule.windows if day.weekday() in window.days)
    )
    latest = MINUTES_A_DAY if schedule.special(day + _ONE_DAY) else 2 * MINUTES_A_DAY
    lead = timedelta(minutes=schedule.wake_lead_minutes)
    found = []
    for one in hours:
        start = instant(schedule.zone, day, one.start_minute)
        end = instant(schedule.zone, day, min(one.start_minute + one.length_minutes, latest))
        if start < end:  # clocks can jump over a window as a whole
            found.append((start - lead, end))
    return tuple(found)


def _merged(schedule: Schedule, first: date, last: date) -> list[tuple[datetime, datetime]]:
    days = (first + offset * _ONE_DAY for offset in range((last - first).days + 1))
    merged: list[tuple[datetime, datetime]] = []
    for start, end in sorted(span for day in days for span in _spans(schedule, day)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _changes_around_special_days(schedule: Schedule) -> Iterator[tuple[datetime, bool]]:
    told: set[datetime] = set()
    for special in schedule.special_days:
        start = instant(schedule.zone, special.first - _ONE_DAY, 0)
        end = instant(schedule.zone, special.last + 2 * _ONE_DAY, 0)
        days = (special.first - 4 * _ONE_DAY, special.last + 4 * _ONE_DAY)
        for span in _merged(schedule, *days):
            for moment, wakes in zip(span, (True, False), strict=True):
                if start <= moment < end and moment not in told:
                    told.add(moment)
                    yield moment, wakes


def _week(windows: Iterable[Window], *, lead_minutes: int, on_a_ring: bool = False) -> list[tuple[int, int]]:
    """Merged spans in minutes of a week that starts on Monday.

    Cut at the week's ends, or `on_a_ring`: from any start to less than a week later, and none when always awake.
    """
    spans: list[tuple[int, int]] = []
    for window in windows:
        for day in window.days:
            start = day * MINUTES_A_DAY + window.start_minute - lead_minutes
            end = start + lead_minutes + window.length_minutes
            spans += [(start + shift, end + shift) for shift in (-MINUTES_A_WEEK, 0, MINUTES_A_WEEK)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    if on_a_ring:
        return [span for span in merged if 0 <= span[0] < MINUTES_A_WEEK and span[1] - span[0] < MINUTES_A_WEEK]
    cut = ((max(start, 0), min(end, MINUTES_A_WEEK)) for start, end in merged)
    return [(start, end) for start, end in cut if start < end]


def _local_date(schedule: Schedule, moment: datetime) -> date:
    return moment.astimezone(ZoneInfo(schedule.zone)).date()
