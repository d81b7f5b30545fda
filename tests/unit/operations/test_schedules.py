"""When a model is awake, against clocks of real places, minute by minute. Numbers are those of operations-cases.md."""

from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_finops.operations.windows import (
    ALL_DAY,
    MINUTES_A_DAY,
    Hours,
    Schedule,
    SpecialDays,
    Window,
    boundaries,
    instant,
    is_awake,
    next_change,
    parse_days,
    parse_time,
    status,
)

ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "Asia/Kolkata",  # none, and half an hour off the hour
    "Pacific/Apia",  # a whole day skipped in 2011
    "Pacific/Auckland",
    "Pacific/Kiritimati",  # a day ahead of Hawaii
    "Africa/Casablanca",  # negative, around Ramadan
    "UTC",
]
MINUTE = timedelta(minutes=1)
LONG = datetime(2026, 1, 1, tzinfo=UTC)


def window(days, start, end):
    return Window(parse_days(days), parse_time(start), parse_time(end))


def schedule(zone, *windows, special=(), lead=0):
    return Schedule(zone, tuple(window(*one) for one in windows), tuple(special), lead)


def local(zone, text):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "windows", "at", "awake"),
    [
        pytest.param("Pacific/Auckland", [("Mon-Fri", "06:00", "20:00")], "2026-03-02T06:30", True, id="10"),
        pytest.param("Europe/Berlin", [("Mon-Sun", "22:00", "06:00")], "2026-03-02T23:30", True, id="11-evening"),
        pytest.param("Europe/Berlin", [("Mon-Sun", "22:00", "06:00")], "2026-03-02T02:00", True, id="11-night"),
        pytest.param("Europe/Berlin", [("Mon-Sun", "22:00", "06:00")], "2026-03-02T06:00", False, id="11-morning"),
        pytest.param(
            "Europe/Berlin",
            [("Mon", "08:00", "24:00"), ("Tue-Thu", "00:00", "24:00"), ("Fri", "00:00", "18:00")],
            "2026-03-03T00:01",
            True,
            id="12",
        ),
        pytest.param("Europe/Berlin", [("Sun-Fri", "08:00", "20:00")], "2026-03-02T12:00", True, id="13"),
        pytest.param("Europe/Berlin", [("Sun-Fri", "08:00", "20:00")], "2026-03-07T12:00", False, id="13-saturday"),
        pytest.param("Europe/Berlin", [("Sun", "22:00", "06:00")], "2026-03-02T05:59", True, id="over-the-weekend"),
        pytest.param("Europe/Berlin", [("Mon", "08:00", "08:00")], "2026-03-03T07:59", True, id="a-whole-day"),
        pytest.param("Europe/Berlin", [], "2026-03-03T07:59", False, id="no-window"),
    ],
)
def test_a_model_is_awake_within_its_windows(zone, windows, at, awake):
    assert is_awake(schedule(zone, *windows), local(zone, at)) is awake


def test_the_start_is_awake_and_the_end_is_asleep():
    office = schedule("Europe/Berlin", ("Mon", "08:00", "20:00"))
    assert not is_awake(office, local("Europe/Berlin", "2026-03-02T07:59:59"))
    assert is_awake(office, local("Europe/Berlin", "2026-03-02T08:00"))
    assert is_awake(office, local("Europe/Berlin", "2026-03-02T19:59:59"))
    assert not is_awake(office, local("Europe/Berlin", "2026-03-02T20:00"))


def test_the_lead_is_subtracted_from_the_moment_not_from_the_clock():
    """Case 33: 45 minutes before 03:00 would be a time that does not exist."""
    early = schedule("America/New_York", ("Sun", "03:00", "12:00"), lead=45)
    assert next_change(early, utc("2026-03-08T00:00")) == utc("2026-03-08T06:15")


def test_a_local_time_that_happens_twice_is_acted_on_once():
    """Case 34: New York, 2026-11-01, 01:30 comes at 05:30Z and again at 06:30Z."""
    night = schedule("America/New_York", ("Sun", "01:30", "12:00"))
    assert changes(night, utc("2026-11-01T00:00"), days=1) == [utc("2026-11-01T05:30"), utc("2026-11-01T17:00")]
    evening = schedule("America/New_York", ("Sat", "20:00", "01:30"))
    assert changes(evening, utc("2026-11-01T00:00"), days=1)[-1] == utc("2026-11-01T05:30")


def test_a_local_time_that_is_skipped_comes_when_the_clock_jumps_over_it():
    night = schedule("America/New_York", ("Sun", "02:30", "12:00"))
    assert next_change(night, utc("2026-03-08T00:00")) == utc("2026-03-08T07:00")


def test_a_window_within_the_skipped_hour_does_not_happen():
    night = schedule("America/New_York", ("Sun", "02:10", "02:50"))
    assert next_change(night, utc("2026-03-08T00:00")) == utc("2026-03-15T06:10")


def test_half_an_hour_of_daylight_saving():
    """Lord Howe, 2026-04-05: 01:30 to 02:00 comes twice, at 14:30Z and at 15:00Z of the day before."""
    zone = "Australia/Lord_Howe"
    assert instant(zone, date(2026, 4, 5), 105) == utc("2026-04-04T14:45")
    assert instant(zone, date(2026, 4, 5), 120) == utc("2026-04-04T15:30")
    assert instant(zone, date(2026, 10, 4), 135) == utc("2026-10-03T15:30"), "02:00 to 02:30 is skipped"


def test_a_date_that_a_place_has_skipped():
    """Apia had no 30 December 2011: a window on that Friday starts and ends at once."""
    friday = schedule("Pacific/Apia", ("Fri", "08:00", "20:00"))
    assert not any(changes(friday, utc("2011-12-28T00:00"), days=5))


@pytest.mark.parametrize(
    ("special", "at", "awake"),
    [
        (SpecialDays(date(2026, 12, 25), date(2026, 12, 25)), "2026-12-25T12:00", False),
        (SpecialDays(date(2026, 12, 25), date(2026, 12, 25)), "2026-12-24T23:59", True),
        (SpecialDays(date(2026, 12, 25), date(2026, 12, 25)), "2026-12-25T00:00", False),
        (SpecialDays(date(2026, 12, 25), date(2026, 12, 25)), "2026-12-26T01:00", False),
        (SpecialDays(date(2026, 12, 25), date(2026, 12, 27)), "2026-12-27T23:00", False),
        (SpecialDays(date(2026, 12, 26), date(2026, 12, 26), (ALL_DAY,)), "2026-12-26T12:00", True),
        (SpecialDays(date(2026, 12, 26), date(2026, 12, 26), (Hours(600, 720),)), "2026-12-26T11:59", True),
        (SpecialDays(date(2026, 12, 26), date(2026, 12, 26), (Hours(600, 720),)), "2026-12-26T05:00", False),
        (SpecialDays(date(2026, 12, 26), date(2026, 12, 26), (Hours(1200, 120),)), "2026-12-27T01:59", True),
    ],
)
def test_a_special_day_is_governed_by_its_own_hours_from_midnight_to_midnight(special, at, awake):
    nights = schedule("Europe/Berlin", ("Mon-Fri", "18:00", "06:00"), special=[special])
    assert is_awake(nights, local("Europe/Berlin", at)) is awake


def test_the_lead_reaches_into_the_day_before_a_special_day():
    launch = SpecialDays(date(2026, 3, 7), date(2026, 3, 7), (Hours(10, 60),))
    assert next_change(schedule("UTC", special=[launch], lead=30), utc("2026-03-01T00:00")) == utc("2026-03-06T23:40")


def test_a_lead_may_be_a_whole_day():
    assert next_change(schedule("UTC", ("Wed", "08:00", "12:00"), lead=1440), utc("2026-03-02T00:00")) == utc(
        "2026-03-03T08:00"
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Schedule("Europe/Atlantis", ()), "'Europe/Atlantis' is not an IANA time zone; use one such as"),
        (lambda: Schedule("../etc/passwd", ()), "is not an IANA time zone"),
        (lambda: Schedule("", ()), "is not an IANA time zone"),
        (lambda: Schedule("UTC", (), (), -1), "0 to 1440 minutes, not -1"),
        (lambda: Schedule("UTC", (), (), 1441), "0 to 1440 minutes, not 1441"),
        (lambda: SpecialDays(date(2026, 1, 2), date(2026, 1, 1)), "2026-01-02 to 2026-01-01 do not"),
        (lambda: Window(frozenset({7}), 0, 60), "Days are 0"),
        (lambda: Hours(1440, 60), "starts from 00:00"),
        (
            lambda: Schedule(
                "UTC",
                (),
                (
                    SpecialDays(date(2026, 1, 1), date(2026, 1, 5)),
                    SpecialDays(date(2026, 1, 5), date(2026, 1, 6)),
                ),
            ),
            "2026-01-05 is a special day twice",
        ),
    ],
)
def test_what_is_no_schedule_is_refused_with_what_is(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


# The oracle: one minute after the other


@cache
def wall_clock(zone, first, days):
    """For every UTC minute the latest time that clocks in `zone` have shown so far, as (date ordinal, minute)."""
    there = ZoneInfo(zone)
    start = first - timedelta(days=3)
    begin = start.toordinal() * MINUTES_A_DAY + start.hour * 60 + start.minute
    latest, found = 0, []
    for number in range((days + 6) * MINUTES_A_DAY):
        if number % 15 == 0:  # no zone has changed its clocks at another minute since 1970
            offset = (start + number * MINUTE).astimezone(there).utcoffset() // MINUTE
        latest = max(latest, begin + number + offset)
        if number >= 3 * MINUTES_A_DAY:
            found.append(divmod(latest, MINUTES_A_DAY))
    return found


def starting_on(one, ordinal):
    """Whether there is special hours, and the minutes of that day and the next that are awake."""
    day = date.fromordinal(ordinal)
    special = [given for given in one.special_days if given.first <= day <= given.last]
    hours = special[0].hours if special else [given for given in one.windows if day.weekday() in given.days]
    awake = set()
    for hour in hours:
        minute = hour.start_minute
        while True:
            awake.add(minute)
            minute += 1
            if minute % MINUTES_A_DAY == hour.end_minute % MINUTES_A_DAY:
                break
    return bool(special), awake


def awake_minutes(one, first, days):
    """Brute force: for every minute since `first`, whether the model is awake."""
    by_day = {}
    found = []
    for ordinal, minute in wall_clock(one.zone, first, days + 2):
        if ordinal not in by_day:
            is_special, today = starting_on(one, ordinal)
            _, yesterday = starting_on(one, ordinal - 1)
            night = set() if is_special else {late - MINUTES_A_DAY for late in yesterday if late >= MINUTES_A_DAY}
            by_day[ordinal] = today | night
        found.append(minute in by_day[ordinal])
    lead, next_awake, led = one.wake_lead_minutes, len(found) + MINUTES_A_DAY * 9, [False] * len(found)
    for index in reversed(range(len(found))):
        if found[index]:
            next_awake = index
        led[index] = next_awake - index <= lead
    return led[: days * MINUTES_A_DAY]


def expected_changes(one, first, days):
    awake = awake_minutes(one, first, days)
    return [first + (index + 1) * MINUTE for index, (a, b) in enumerate(pairwise(awake)) if a != b]


def changes(one, first, days):
    end, found = first + timedelta(days=days), []
    moment = next_change(one, first)
    while moment and moment < end:
        found.append(moment)
        moment = next_change(one, moment)
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_a_whole_year_is_as_one_would_count_it_minute_by_minute(zone):
    one = schedule(
        zone,
        ("Mon-Fri", "01:45", "20:00"),
        ("Fri,Sat", "22:00", "02:15"),
        ("Sun", "00:30", "03:00"),
        special=[
            SpecialDays(date(2026, 3, 29), date(2026, 3, 29), (Hours(150, 165),)),
            SpecialDays(date(2026, 12, 24), date(2026, 12, 26)),
        ],
        lead=40,
    )
    assert changes(one, LONG, days=364) == expected_changes(one, LONG, days=364)


def windows():
    times = st.integers(0, 95).map(lambda quarter: quarter * 15)
    return st.builds(Window, st.frozensets(st.integers(0, 6), min_size=1, max_size=7), times, times)


def specials(year):
    days = st.integers(0, 360).map(lambda offset: date(year, 1, 1) + timedelta(days=offset))
    hours = st.builds(Hours, st.integers(0, 23).map(lambda hour: hour * 60), st.integers(0, 24).map(lambda h: h * 60))
    return st.builds(
        lambda first, length, own: SpecialDays(first, first + timedelta(days=length), tuple(own)),
        days,
        st.integers(0, 2),
        st.lists(hours, max_size=2),
    )


TURNS = [
    ("America/New_York", utc("2026-03-05T00:00")),
    ("America/New_York", utc("2026-10-30T00:00")),
    ("Europe/Berlin", utc("2026-03-27T00:00")),
    ("Europe/Berlin", utc("2026-10-23T00:00")),
    ("Australia/Lord_Howe", utc("2026-04-02T00:00")),
    ("Australia/Lord_Howe", utc("2026-10-01T00:00")),
    ("Pacific/Apia", utc("2011-12-27T00:00")),
    ("Pacific/Auckland", utc("2026-04-02T00:00")),
    ("Pacific/Auckland", utc("2026-09-24T00:00")),
    ("Africa/Casablanca", utc("2026-02-12T00:00")),
    ("Africa/Casablanca", utc("2026-03-19T00:00")),
    ("Asia/Kolkata", utc("2026-03-27T00:00")),
]


@settings(max_examples=120)
@given(st.data(), st.sampled_from(TURNS), st.lists(windows(), max_size=4), st.integers(0, 200))
def test_any_schedule_around_any_change_of_clocks_is_as_one_would_count_it(data, turn, some_windows, lead):
    zone, first = turn
    near = st.integers(0, 6).map(lambda offset: first.date() + timedelta(days=offset))
    hours = st.builds(Hours, st.integers(0, 1439), st.integers(0, 1440))
    special = st.builds(lambda day, own: SpecialDays(day, day, tuple(own)), near, st.lists(hours, max_size=2))
    chosen = data.draw(st.lists(special, max_size=2, unique_by=lambda given: given.first))
    one = Schedule(zone, tuple(some_windows), tuple(chosen), lead)
    assert changes(one, first, days=7) == expected_changes(one, first, days=7)


@settings(max_examples=60)
@given(st.sampled_from(TURNS), st.lists(windows(), min_size=1, max_size=3), st.integers(0, 120), st.integers(0, 10_000))
def test_being_awake_the_status_and_the_next_change_tell_the_same(turn, some_windows, lead, minutes):
    zone, first = turn
    one = Schedule(zone, tuple(some_windows), (), lead)
    now = first + minutes * MINUTE
    found = status(one, now)
    assert found.awake is is_awake(one, now)
    upcoming = next_change(one, now)
    if upcoming is not None:
        assert is_awake(one, upcoming - MINUTE) is found.awake
        assert is_awake(one, upcoming) is not found.awake
        assert found.until in (upcoming, None)
        assert found.until or upcoming - now > timedelta(days=2)
    if found.since:
        assert is_awake(one, found.since - MINUTE) is not found.awake
        assert is_awake(one, found.since) is found.awake


def test_the_status_changes_at_the_second_of_a_boundary():
    office = schedule("UTC", ("Mon", "08:00", "20:00"))
    start, end = utc("2026-03-02T08:00"), utc("2026-03-02T20:00")
    assert (status(office, start).awake, status(office, start).since, status(office, start).until) == (True, start, end)
    assert (status(office, end).awake, status(office, end).since) == (False, end)


@pytest.mark.parametrize("windows", [(), (("Mon-Sun", "00:00", "24:00"),), (("Mon-Sun", "06:00", "06:00"),)])
def test_a_schedule_that_never_changes_says_so(windows):
    assert next_change(schedule("Europe/Berlin", *windows), LONG) is None


def test_a_special_day_far_ahead_is_found():
    holiday = SpecialDays(date(2027, 12, 25), date(2027, 12, 25))
    long_ago = SpecialDays(date(2020, 1, 1), date(2020, 1, 1))
    always = schedule("UTC", ("Mon-Sun", "00:00", "24:00"), special=[long_ago, holiday])
    assert changes(always, LONG, days=800) == [utc("2027-12-25T00:00"), utc("2027-12-26T00:00")]


# Entries for EventBridge Scheduler


def test_there_is_an_entry_at_each_boundary_in_the_model_s_own_zone():
    office = schedule("Europe/Berlin", ("Mon-Fri", "08:00", "20:00"), lead=30)
    found = boundaries(office)
    assert [(one.expression, one.wakes) for one in found] == [
        ("cron(30 7 ? * MON,TUE,WED,THU,FRI *)", True),
        ("cron(0 20 ? * MON,TUE,WED,THU,FRI *)", False),
    ]
    assert {one.zone for one in found} == {"Europe/Berlin"}


def test_a_lead_may_begin_on_the_day_before():
    early = schedule("UTC", ("Mon", "00:10", "12:00"), lead=45)
    assert [one.expression for one in boundaries(early)] == ["cron(0 12 ? * MON *)", "cron(25 23 ? * SUN *)"]


def test_windows_that_touch_have_no_boundary_between_them():
    whole = schedule("UTC", ("Mon", "08:00", "24:00"), ("Tue-Thu", "00:00", "24:00"), ("Fri", "00:00", "18:00"))
    assert [one.expression for one in boundaries(whole)] == ["cron(0 8 ? * MON *)", "cron(0 18 ? * FRI *)"]


def test_what_is_always_awake_has_no_boundary():
    assert boundaries(schedule("UTC", ("Mon-Sun", "00:00", "24:00"))) == ()
    assert boundaries(schedule("UTC")) == ()


def test_a_special_day_adds_the_dates_that_the_week_does_not_have():
    christmas = SpecialDays(date(2026, 12, 25), date(2026, 12, 25), (Hours(600, 720),))
    office = schedule("Europe/Berlin", ("Mon-Fri", "08:00", "20:00"), special=[christmas])
    assert [(one.expression, one.wakes) for one in boundaries(office) if one.on] == [
        ("at(2026-12-25T10:00:00)", True),
        ("at(2026-12-25T12:00:00)", False),
    ]


@settings(max_examples=40)
@given(st.lists(windows(), max_size=3), st.integers(0, 120))
def test_every_change_of_an_ordinary_week_has_an_entry(some_windows, lead):
    one = Schedule("Asia/Kolkata", tuple(some_windows), (), lead)
    entries = {(day, entry.minute, entry.wakes) for entry in boundaries(one) for day in entry.days}
    there = ZoneInfo("Asia/Kolkata")
    found = set()
    for moment in changes(one, LONG, days=8):
        shown = moment.astimezone(there)
        found.add((shown.weekday(), shown.hour * 60 + shown.minute, is_awake(one, moment)))
    assert found <= entries
    assert {entry for entry in entries if entry not in found} == set()
