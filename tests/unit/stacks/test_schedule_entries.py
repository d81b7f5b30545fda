"""When models that sleep by the clock are looked at: at every boundary, in few entries."""

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from genai_finops.operations import windows
from genai_finops.spec.automation import operations_config
from stacks.schedules import MOST, Look, looks
from tests.platform_files import platform
from tests.unit.k8s_charts.charts import varied

EVENING = {"start": "20:00", "end": "02:00"}


def scheduled(zone="Europe/Berlin", awake=(("Mon-Fri", "07:00", "19:00"),), lead=0, exceptions=()):
    return {
        "schedule": {
            "time_zone": zone,
            "awake": [{"days": days, "start": start, "end": end} for days, start, end in awake],
            "wake_lead_minutes": lead,
            "exceptions": list(exceptions),
        }
    }


def looks_of(*models):
    return looks(varied(*models).models)


def test_a_model_that_never_sleeps_needs_no_look():
    assert looks_of({}) == []


def test_start_with_its_lead_and_end_in_the_models_own_zone():
    found = looks_of(scheduled(lead=15))
    assert found == [Look("Europe/Berlin", 6, (45,)), Look("Europe/Berlin", 19, (0,))]
    assert [look.expression for look in found] == ["cron(45 6 * * ? *)", "cron(0 19 * * ? *)"]


def test_a_lead_over_midnight_and_an_end_at_midnight():
    found = looks_of(scheduled(awake=[("Mon-Sun", "00:10", "24:00")], lead=20))
    assert found == [Look("Europe/Berlin", 0, (0,)), Look("Europe/Berlin", 23, (50,))]


def test_models_with_the_same_hours_share_entries_and_zones_do_not():
    found = looks_of(scheduled(), scheduled(), scheduled("Asia/Kathmandu"))
    assert [(look.zone, look.hour) for look in found] == [
        ("Asia/Kathmandu", 7),
        ("Asia/Kathmandu", 19),
        ("Europe/Berlin", 7),
        ("Europe/Berlin", 19),
    ]


def test_minutes_of_an_hour_share_an_entry():
    [look, _] = looks_of(scheduled(), scheduled(awake=[("Sat", "07:30", "19:00")]))
    assert look.expression == "cron(0,30 7 * * ? *)"


@pytest.mark.parametrize(
    ("zone", "name"),
    [("Etc/GMT+3", "Etc-GMT_plus_3-07"), ("Etc/GMT-3", "Etc-GMT-3-07"), ("America/Argentina/Buenos_Aires", None)],
)
def test_names_are_such_as_eventbridge_takes(zone, name):
    found = Look(zone, 7, (0,)).name
    assert re.fullmatch(r"[0-9a-zA-Z-_.]{1,64}", found)
    assert found == name or name is None


def test_names_of_zones_never_collide():
    names = [Look(zone, 7, (0,)).name for zone in available_timezones()]
    assert len(names) == len(set(names))


def test_however_many_models_there_are_the_entries_are_few_and_the_most_used_ones():
    zones = ["Europe/Berlin", "America/New_York", "Asia/Tokyo", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]
    zones += ["Asia/Kathmandu", "America/Los_Angeles", "America/Sao_Paulo", "Africa/Cairo"]
    models = [
        scheduled(zone, [("Mon-Fri", f"{hour:02}:{minute:02}", f"{(hour + 8) % 24:02}:30")])
        for zone in zones
        for hour in range(24)
        for minute in (0, 15)
    ]
    crowd = [scheduled("Pacific/Auckland")] * 10
    found = looks([model for some in (models, crowd) for model in varied(*some).models])
    assert len(found) == MOST
    assert {look.hour for look in found if look.zone == "Pacific/Auckland"} == {7, 19}


CAREFUL = scheduled(
    "America/New_York",
    [("Mon-Fri", "07:00", "19:00"), ("Fri", "22:00", "06:00")],
    lead=45,
    exceptions=[{"first": "2026-12-24", "last": "2026-12-26"}, {"first": "2026-07-03", "awake": [EVENING]}],
)


@pytest.mark.parametrize("of", [platform("rich"), varied(CAREFUL)], ids=["rich", "careful"])
def test_every_change_of_a_year_has_its_entry_or_is_at_most_a_tick_away(of):
    """Against the rules themselves. On the two days on which clocks change, the tick finds what no entry hits."""
    entries = {(look.zone, look.hour, minute) for look in looks(of.models) for minute in look.minutes}
    counted = 0
    for model in operations_config(of).models:
        if model.schedule is None:
            continue
        zone = ZoneInfo(model.schedule.zone)
        for moment in changes(model.schedule, date(2026, 1, 1), days=366):
            local = moment.astimezone(zone)
            if local.utcoffset() == (moment - timedelta(days=1)).astimezone(zone).utcoffset():
                assert (model.schedule.zone, local.hour, local.minute) in entries
                counted += 1
    assert counted > 300


def changes(schedule, first, *, days):
    """Moments at which the model falls asleep or wakes, found step by step."""
    moment = datetime(first.year, first.month, first.day, tzinfo=UTC)
    awake = windows.is_awake(schedule, moment)
    for _ in range(days * 24 * 12):
        moment += timedelta(minutes=5)
        now = windows.is_awake(schedule, moment)
        if now != awake:
            awake = now
            yield moment
