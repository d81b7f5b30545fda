"""Weekly windows: what they mean, and how much of a week they cover."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_finops.operations.windows import (
    DAYS,
    MINUTES_A_DAY,
    MINUTES_A_WEEK,
    Window,
    awake_minutes_a_week,
    parse_days,
    parse_time,
)

MON, TUE, WED, THU, FRI, SAT, SUN = range(7)
EVERY_DAY = frozenset(range(7))


def window(days, start, end):
    return Window(parse_days(days), parse_time(start), parse_time(end))


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Mon", {MON}),
        ("Sun", {SUN}),
        ("Mon-Fri", {MON, TUE, WED, THU, FRI}),
        ("Sat,Sun", {SAT, SUN}),
        ("Mon-Wed,Sat", {MON, TUE, WED, SAT}),
        ("Mon-Sun", EVERY_DAY),
        ("Tue-Mon", EVERY_DAY),
        ("Mon-Mon", {MON}),
        ("Mon,Mon,Mon-Tue", {MON, TUE}),
        (" Mon - Tue , Sun ", {MON, TUE, SUN}),
    ],
)
def test_days_are_days_and_ranges_of_days(text, days):
    assert parse_days(text) == days


@pytest.mark.parametrize(
    ("text", "days"), [("Fri-Mon", {FRI, SAT, SUN, MON}), ("Sun-Tue", {SUN, MON, TUE}), ("Sat-Fri", EVERY_DAY)]
)
def test_a_range_may_run_over_the_weekend(text, days):
    assert parse_days(text) == days


@pytest.mark.parametrize(
    "text", ["", "Monday", "mon", "Mon-", "-Mon", "Mon--Fri", "Mon-Fri-Sun", "Mon,,Tue", "Mon;Tue", "1-5"]
)
def test_what_is_not_a_day_is_shown_with_what_is(text):
    with pytest.raises(ValueError, match="is not a day or a range of days; use Mon, Tue, Wed, Thu, Fri, Sat, Sun"):
        parse_days(text)


@pytest.mark.parametrize(("text", "minutes"), [("00:00", 0), ("07:30", 450), ("23:59", 1439), ("24:00", MINUTES_A_DAY)])
def test_a_time_is_minutes_since_midnight(text, minutes):
    assert parse_time(text) == minutes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7:30",
        "07:60",
        "24:01",
        "25:00",
        "0730",
        "07:30:00",
        "07:3",
        "-1:00",
        "07:30 ",
        "07:30\n",
        "\u0660\u0667:\u0663\u0660",
    ],
)
def test_what_is_not_a_time_is_shown_with_what_is(text):
    with pytest.raises(ValueError, match="is not a time of day; use HH:MM from 00:00 to 24:00"):
        parse_time(text)


@pytest.mark.parametrize("start", [-1, MINUTES_A_DAY])
def test_a_window_starts_within_its_day(start):
    with pytest.raises(ValueError, match="starts from 00:00 to 23:59"):
        Window(EVERY_DAY, start, 60)


@pytest.mark.parametrize("end", [-1, MINUTES_A_DAY + 1])
def test_a_window_ends_within_a_day(end):
    with pytest.raises(ValueError, match="ends from 00:00 to 24:00"):
        Window(EVERY_DAY, 0, end)


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        ("08:00", "20:00", 12),
        ("22:00", "06:00", 8),
        ("08:00", "00:00", 16),
        ("08:00", "24:00", 16),
        ("08:00", "08:00", 24),
        ("00:00", "00:00", 24),
        ("00:00", "24:00", 24),
        ("23:59", "23:58", 24 - 1 / 60),
    ],
)
def test_an_end_at_or_before_the_start_is_on_the_next_day(start, end, hours):
    assert window("Mon", start, end).length_minutes == pytest.approx(hours * 60)


@pytest.mark.parametrize(
    ("windows", "hours"),
    [
        ([], 0),
        ([("Mon-Fri", "07:00", "20:00")], 65),
        ([("Fri", "22:00", "06:00")], 8),
        ([("Sun", "22:00", "06:00")], 8),
        ([("Mon-Sun", "00:00", "24:00")], 168),
        ([("Mon-Fri", "07:00", "20:00"), ("Sat,Sun", "10:00", "18:00")], 81),
    ],
)
def test_hours_of_a_week(windows, hours):
    assert awake_minutes_a_week(window(*given_) for given_ in windows) == hours * 60


def test_an_hour_in_two_windows_counts_once():
    assert awake_minutes_a_week([window("Mon", "08:00", "12:00"), window("Mon-Tue", "10:00", "14:00")]) == 10 * 60


def test_a_window_within_another_adds_nothing():
    assert awake_minutes_a_week([window("Mon", "08:00", "20:00"), window("Mon", "10:00", "11:00")]) == 12 * 60


def test_the_end_of_sunday_night_overlaps_monday_morning():
    assert awake_minutes_a_week([window("Sun", "22:00", "06:00"), window("Mon", "05:00", "07:00")]) == 9 * 60


def windows():
    return st.builds(
        Window,
        st.frozensets(st.integers(0, 6), min_size=1),
        st.integers(0, MINUTES_A_DAY - 1),
        st.integers(0, MINUTES_A_DAY),
    )


def minute_by_minute(some_windows):
    """Every minute that a window covers, one at a time, on a week that is a ring."""
    awake = set()
    for one in some_windows:
        for day in one.days:
            minute = day * MINUTES_A_DAY + one.start_minute
            while True:
                awake.add(minute % MINUTES_A_WEEK)
                minute += 1
                if minute % MINUTES_A_DAY == one.end_minute % MINUTES_A_DAY:
                    break
    return len(awake)


@settings(deadline=None)
@given(st.lists(windows(), max_size=4))
def test_the_minutes_of_a_week_are_those_one_would_count(some_windows):
    assert awake_minutes_a_week(some_windows) == minute_by_minute(some_windows)


@given(st.lists(windows(), max_size=4), windows())
def test_another_window_never_makes_a_week_shorter(some_windows, another):
    before, after = awake_minutes_a_week(some_windows), awake_minutes_a_week([*some_windows, another])
    assert before <= after <= min(MINUTES_A_WEEK, before + len(another.days) * another.length_minutes)


@given(
    st.permutations(
        [window("Mon", "08:00", "12:00"), window("Sun", "22:00", "09:00"), window("Mon-Fri", "11:00", "10:00")]
    )
)
def test_the_order_of_windows_does_not_matter(some_windows):
    assert awake_minutes_a_week(some_windows) == minute_by_minute(some_windows)


@given(st.integers(0, 6), st.integers(0, 6))
def test_a_range_begins_and_ends_with_its_days(first, last):
    days = parse_days(f"{DAYS[first]}-{DAYS[last]}")
    assert {first, last} <= days
    assert len(days) == (last - first) % 7 + 1
