"""Guardrails: what a level does, from when, and that it is announced once when it comes and when it goes."""

from genai_finops.operations.budget import Threshold, levels
from genai_finops.operations.guardrails import announcements, describe, in_force
from tests.unit.operations.worlds import HOUR, NOW, budget, report

CAP_SIX = Threshold("actual", 50, "cap_replicas", 6)
CAP_TWO = Threshold("actual", 80, "cap_replicas", 2)
SLEEP = Threshold("actual", 90, "sleep_non_critical")


def force(*reports, thresholds=(CAP_SIX, CAP_TWO, SLEEP), monthly="1000", now=NOW):
    return in_force(levels(budget(*thresholds, monthly=monthly), reports, now))


def test_nothing_is_in_force_by_default():
    found = force(report(5000), thresholds=(Threshold("actual", 50),))
    assert (found.cap, found.on_demand_off_since, found.sleep_since, found.levels) == (None, None, None, ())


def test_the_lowest_cap_counts():
    assert force(report(600)).cap == 6
    assert force(report(850)).cap == 2


def test_it_is_in_force_since_its_level_was_reached():
    assert force(report(950, NOW - HOUR), report(990)).sleep_since == NOW - HOUR


def test_each_is_announced_once_when_it_comes_and_once_when_it_goes():
    present = force(report(600))
    came = announcements(present, [])
    assert [(one.guardrail, one.lifted) for one in came] == [("non-critical models run at most 6 replicas", False)]
    told = [one.key for one in came]
    assert announcements(present, told) == ()
    went = announcements(force(report(600), monthly="2000"), told)
    assert [(one.guardrail, one.lifted) for one in went] == [
        ("cap replicas, in force since 50% (actual) of $1000 was reached in 2026-03", True)
    ]
    assert announcements(force(report(600), monthly="2000"), [*told, *(one.key for one in went)]) == ()


def test_it_is_announced_as_lifted_when_the_month_is_over():
    told = [one.key for one in announcements(force(report(950)), [])]
    assert [one.lifted for one in announcements(force(report(950), now=NOW.replace(month=4)), told)] == [True] * 3


def test_every_action_has_words():
    actions = [
        Threshold("actual", 1),
        Threshold("actual", 2, "on_demand_off"),
        Threshold("actual", 3, "cap_replicas", 4),
        SLEEP,
    ]
    assert [describe(level) for level in levels(budget(*actions), [report(999)], NOW)] == [
        "nothing but this alert",
        "no new on-demand nodes, except where a critical model may need them",
        "non-critical models run at most 4 replicas",
        "non-critical models sleep",
    ]
