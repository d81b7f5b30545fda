"""Whether a model can be run: replicas, the stop, the schedule, the objective."""

import pytest

from genai_finops.spec.checks.serving import DRAIN_SAFETY_SECONDS, SPOT_NOTICE_SECONDS
from genai_finops.spec.model import TIME_TO_FIRST_TOKEN_BUCKETS
from tests.unit.spec.files import accepted, assert_says, only, refused

MODEL = "models[0]"
OFFICE_HOURS = {"days": "Mon-Fri", "start": "07:00", "end": "19:00"}


def scheduled(time_zone="Europe/Berlin", **window):
    return {f"{MODEL}.schedule": {"time_zone": time_zone, "awake": [{**OFFICE_HOURS, **window}]}}


def test_a_model_does_not_scale_to_zero_by_its_own_queue():
    path = f"{MODEL}.scaling.min_replicas"
    assert_says({path: 0}, path, "is 0", "a schedule for the hours")


def test_the_minimum_is_at_most_the_maximum():
    path = f"{MODEL}.scaling.min_replicas"
    accepted({f"{MODEL}.scaling": {"min_replicas": 3, "max_replicas": 3}})
    assert_says({f"{MODEL}.scaling": {"min_replicas": 4, "max_replicas": 3}}, path, "is 4", "Use at most 3")


def test_draining_ends_before_spot_takes_the_instance():
    path = f"{MODEL}.drain_seconds"
    longest = SPOT_NOTICE_SECONDS - DRAIN_SAFETY_SECONDS
    accepted({path: longest})
    accepted({path: 0})
    assert_says({path: longest + 1}, path, f"is {longest + 1}", f"Use at most {longest}.")


@pytest.mark.parametrize("zone", ["Mars/Phobos", "europe/berlin", "CEST", "UTC+1", "", "/etc/passwd", "../UTC"])
def test_a_time_zone_is_one_of_iana(zone):
    path = f"{MODEL}.schedule.time_zone"
    assert_says(scheduled(zone), path, f"is {zone!r}", "Europe/Berlin, America/New_York or UTC")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/GMT+5"])
def test_every_zone_of_iana_will_do(zone):
    accepted(scheduled(zone))


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ({"days": "Monday"}, "'Monday' is not a day"),
        ({"days": "Mon-"}, "'Mon-' is not a day"),
        ({"days": ""}, "'' is not a day"),
        ({"start": "7:00"}, "'7:00' is not a time of day"),
        ({"start": "24:00"}, "24:00 is 00:00 of the next day"),
        ({"end": "24:01"}, "'24:01' is not a time of day"),
        ({"end": "19.00"}, "'19.00' is not a time of day"),
    ],
)
def test_a_window_that_does_not_parse_is_shown_with_an_example(window, said):
    problem = only(refused(scheduled(**window)))
    assert problem.path == f"{MODEL}.schedule.awake[0]"
    assert said in problem.why
    assert 'start: "07:00"' in problem.fix
    assert {**OFFICE_HOURS, **window}["days"] in problem.found


@pytest.mark.parametrize(
    "window", [{"end": "24:00"}, {"end": "00:00"}, {"start": "22:00", "end": "06:00"}, {"days": "Fri-Mon"}]
)
def test_a_window_may_run_over_midnight_and_over_the_weekend(window):
    accepted(scheduled(**window))


def test_a_schedule_has_a_window():
    problem = only(refused({f"{MODEL}.schedule": {"time_zone": "UTC", "awake": []}}))
    assert (problem.path, problem.found) == (f"{MODEL}.schedule.awake", "has no entries")
    assert problem.why == "It must have at least 1."


@pytest.mark.parametrize("seconds", TIME_TO_FIRST_TOKEN_BUCKETS)
def test_an_objective_is_a_bound_of_the_histogram(seconds):
    accepted({f"{MODEL}.objective.time_to_first_token_seconds": seconds})


@pytest.mark.parametrize("seconds", [0, 0.3, 2, 30, float("inf"), float("nan")])
def test_an_objective_between_two_bounds_cannot_be_counted(seconds):
    path = f"{MODEL}.objective.time_to_first_token_seconds"
    assert_says({path: seconds}, path, f"is {seconds:g}", "0.1, 0.25, 0.5")
