"""Can it be run: scaling bounds, the stop that must fit the Spot notice, schedules, objectives."""

from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache
from typing import Final
from zoneinfo import available_timezones

from genai_finops.spec.checks.engine import source_problems
from genai_finops.spec.model import TIME_TO_FIRST_TOKEN_BUCKETS, Model, Schedule
from genai_finops.spec.problems import Problem, one_of

SPOT_NOTICE_SECONDS: Final = 120
"""EC2 gives two minutes between the interruption warning and the loss."""

DRAIN_SAFETY_SECONDS: Final = 20
"""From the warning to the first SIGTERM (Karpenter's drain), and from the last answer to a stopped server (assumed)."""


def problems(model: Model, path: str) -> Iterator[Problem]:
    yield from source_problems(model, path)
    yield from _replicas(model, path)
    yield from _drain(model, path)
    yield from _supply(model, path)
    yield from _schedule(model, path)
    yield from _objective(model, path)


def _replicas(model: Model, path: str) -> Iterator[Problem]:
    scaling = model.scaling
    if scaling.min_replicas < 1:
        yield Problem(
            f"{path}.scaling.min_replicas",
            f"is {scaling.min_replicas}",
            "The queue is measured by the server itself, so at zero replicas the metric is gone and nothing wakes the "
            "model again.",
            "Use 1 or more, and a schedule for the hours in which the model may sleep.",
        )
    if scaling.min_replicas > scaling.max_replicas:
        yield Problem(
            f"{path}.scaling.min_replicas",
            f"is {scaling.min_replicas}",
            f"max_replicas is {scaling.max_replicas}.",
            f"Use at most {scaling.max_replicas}, or raise max_replicas.",
        )


def _drain(model: Model, path: str) -> Iterator[Problem]:
    longest = SPOT_NOTICE_SECONDS - DRAIN_SAFETY_SECONDS
    if model.drain_seconds > longest:
        yield Problem(
            f"{path}.drain_seconds",
            f"is {model.drain_seconds}",
            f"A Spot instance is gone {SPOT_NOTICE_SECONDS} s after its warning, and {DRAIN_SAFETY_SECONDS} s go to "
            "noticing it and stopping the server. The pod's termination grace period is the same limit.",
            f"Use at most {longest}.",
        )


def _supply(model: Model, path: str) -> Iterator[Problem]:
    if model.spot == "only" and not model.compile.spot:
        yield Problem(
            f"{path}.compile.spot",
            "is false",
            "The model's spot is only, so no node on demand may be launched for it.",
            "Leave it out, or use spot: prefer.",
        )
    warm = model.warm_capacity
    if warm.kind == "buffer" and model.schedule:
        yield Problem(
            f"{path}.warm_capacity.kind",
            "is 'buffer'",
            "A CapacityBuffer does not sleep with the model: its nodes would be paid for in hours without a server.",
            "Use placeholder for a model with a schedule.",
        )
    elif warm.kind == "buffer" and not warm.replicas:
        yield Problem(
            f"{path}.warm_capacity.kind",
            "is 'buffer'",
            "There is no room for it to hold: warm_capacity.replicas is 0.",
            "Set warm_capacity.replicas, or leave it out.",
        )


def _schedule(model: Model, path: str) -> Iterator[Problem]:
    schedule = model.schedule
    if schedule is None:
        return
    if schedule.time_zone not in _time_zones():
        yield Problem(
            f"{path}.schedule.time_zone",
            f"is {schedule.time_zone!r}",
            "It is not an IANA time zone.",
            "Use a name such as Europe/Berlin, America/New_York or UTC.",
        )
    for index, window in enumerate(schedule.awake):
        try:
            window.window()
        except ValueError as error:
            yield Problem(
                f"{path}.schedule.awake[{index}]",
                f"is {window.days} {window.start} to {window.end}",
                f"{error}.",
                'For example days: Mon-Fri, start: "07:00", end: "19:00".',
            )
    yield from _exceptions(schedule, f"{path}.schedule.exceptions")


def _exceptions(schedule: Schedule, path: str) -> Iterator[Problem]:
    taken: dict[date, int] = {}
    for index, exception in enumerate(schedule.exceptions):
        last = exception.last or exception.first
        found = f"is {exception.first}" + (f" to {last}" if exception.last else "")
        example = 'For example first: 2026-12-24, last: 2026-12-26, or awake: [{start: "10:00", end: "14:00"}].'
        try:
            special = exception.special_days()
        except ValueError as error:
            yield Problem(f"{path}[{index}]", found, f"{error}.", example)
            continue
        days = [special.first + timedelta(days=offset) for offset in range((special.last - special.first).days + 1)]
        twice = next((day for day in days if day in taken), None)
        if twice:
            why = f"exceptions[{taken[twice]}] has hours for {twice} already."
            yield Problem(f"{path}[{index}]", found, why, "Merge the two entries, or give them other dates.")
        taken |= dict.fromkeys(days, index)


@cache
def _time_zones() -> frozenset[str]:
    """Reading them takes as long as all other checks of a model together."""
    return frozenset(available_timezones())


def _objective(model: Model, path: str) -> Iterator[Problem]:
    seconds = model.objective.time_to_first_token_seconds
    if seconds not in TIME_TO_FIRST_TOKEN_BUCKETS:
        yield Problem(
            f"{path}.objective.time_to_first_token_seconds",
            f"is {seconds:g}",
            "Requests can only be counted at the bounds of vLLM's histogram.",
            f"Use {one_of(f'{bound:g}' for bound in TIME_TO_FIRST_TOKEN_BUCKETS)}.",
        )
