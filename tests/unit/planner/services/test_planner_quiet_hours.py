"""Hours to sleep in, read off a traffic that never used them."""

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
import yaml

from genai_finops.planner.quiet import described, quiet_schedule
from genai_finops.spec import Platform, parse_platform
from genai_finops.spec.model import Schedule
from tests.unit.planner.services.service_worlds import Made, changed

WEEK = 7 * 86400
HOUR = 3600


def at_hours(hours, weeks=1, **more):
    return Made(
        sorted(hour * HOUR + 60.0 + week * WEEK for hour in hours for week in range(weeks)),
        duration=weeks * WEEK,
        **more,
    )


OFFICE = [day * 24 + hour for day in range(5) for hour in range(8, 18)]


def test_an_office_week_sleeps_at_night_and_on_the_weekend():
    schedule = quiet_schedule(at_hours(OFFICE), 400)
    assert described(schedule) == "Mon-Fri 08:00-18:00 UTC"
    assert schedule.wake_lead_minutes == 7


def test_a_schedule_that_is_proposed_is_one_the_file_takes():
    schedule = quiet_schedule(at_hours(OFFICE), 400)
    document = changed(schedule=schedule).model_dump(mode="json", exclude_unset=True)
    document["models"][0]["schedule"] = schedule.model_dump(mode="json", exclude_defaults=True)
    parsed: Platform = parse_platform(yaml.safe_dump(document))
    assert isinstance(parsed.models[0].schedule, Schedule)


def test_a_request_in_any_week_keeps_its_hour_awake():
    night = Made(sorted([*(hour * HOUR + 1.0 for hour in OFFICE), WEEK + 3 * HOUR + 1.0]), duration=2 * WEEK)
    found = described(quiet_schedule(night, 60))
    assert "Mon 03:00-04:00" in found  # and not on to 08:00: four silent hours are worth a sleep
    assert "Mon-Fri 08:00-18:00" in found


@pytest.mark.parametrize(
    ("traffic", "why"),
    [
        (Made([60.0], duration=WEEK - 1), "shorter than a week"),
        (at_hours(range(7 * 24)), "never silent"),
        (at_hours(hour for hour in range(7 * 24) if hour % 24 not in (3, 4)), "only short silences"),
        (Made([], duration=WEEK), "no requests"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_schedule_is_proposed_without_reason(traffic, why):
    assert quiet_schedule(traffic, 60) is None, why


def test_hours_are_those_of_the_traffics_zone():
    berlin = datetime(2026, 3, 2, tzinfo=ZoneInfo("Europe/Berlin"))
    schedule = quiet_schedule(at_hours(OFFICE, start=berlin), 60)
    assert described(schedule) == "Mon-Fri 08:00-18:00 Europe/Berlin"


def test_a_night_shift_is_cut_at_midnight():
    shift = [day * 24 + hour for day in range(7) for hour in (22, 23, 0, 1)]
    schedule = quiet_schedule(at_hours(shift), 60)
    assert described(schedule) == "Mon-Sun 00:00-02:00; Mon-Sun 22:00-24:00 UTC"


def test_no_window_overlaps_another():
    schedule = quiet_schedule(at_hours([*OFFICE, 5 * 24 + 9, 6 * 24 + 22]), 60)
    spans = sorted(
        (day * 1440 + one.start_minute, day * 1440 + one.start_minute + one.length_minutes)
        for one in (window.window() for window in schedule.awake)
        for day in one.days
    )
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
