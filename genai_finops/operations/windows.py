"""When a model is awake: weekly windows of local time.

A window belongs to the day it starts on, so `22:00`–`06:00` on Friday ends on Saturday morning, and a window whose
end equals its start lasts a whole day. Windows may overlap; what counts is their union.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MINUTES_A_DAY: Final = 24 * 60
MINUTES_A_WEEK: Final = 7 * MINUTES_A_DAY

_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True, slots=True)
class Window:
    """A weekly window in local time.

    Attributes:
        days: the days it starts on, 0 is Monday.
        start_minute: of the day, 0 to 1439.
        end_minute: of the day, 0 to 1440; at or before the start means the next day.

    Raises:
        ValueError: when a minute is not of a day.
    """

    days: frozenset[int]
    start_minute: int
    end_minute: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_minute < MINUTES_A_DAY:
            raise ValueError("A window starts from 00:00 to 23:59; 24:00 is 00:00 of the next day")
        if not 0 <= self.end_minute <= MINUTES_A_DAY:
            raise ValueError("A window ends from 00:00 to 24:00")

    @property
    def length_minutes(self) -> int:
        length = self.end_minute - self.start_minute
        return length if length > 0 else length + MINUTES_A_DAY


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
    spans: list[tuple[int, int]] = []
    for window in windows:
        for day in window.days:
            start = day * MINUTES_A_DAY + window.start_minute
            end = start + window.length_minutes
            spans.append((start, min(end, MINUTES_A_WEEK)))
            if end > MINUTES_A_WEEK:
                spans.append((0, end - MINUTES_A_WEEK))
    covered, reached = 0, 0
    for start, end in sorted(spans):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered
