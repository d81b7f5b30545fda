"""Asks every service for one platform, for the page that shows it all."""

from collections.abc import Mapping, Sequence
from datetime import date

from genai_finops.planner.compare import compare
from genai_finops.planner.evaluate import Progress, simulate_platform
from genai_finops.planner.loads import kept, measured
from genai_finops.planner.objectives import target_of
from genai_finops.planner.performance.model import MeasuredProfile
from genai_finops.planner.report.page import Report
from genai_finops.planner.results import Comparison
from genai_finops.planner.sensitivity import sensitivity
from genai_finops.planner.traffic.requests import Traffic
from genai_finops.spec import Platform


def build(
    platform: Platform,
    traffic: Mapping[str, Traffic],
    *,
    today: date,
    seed: int = 0,
    profiles: Sequence[MeasuredProfile] = (),
    inter_token_seconds: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """Simulates `platform`, compares the alternatives of each model with traffic, and varies price and traffic.

    Raises:
        ValueError: for traffic of a model that is not there, or one that cannot be simulated.
    """
    held = {name: kept(each) for name, each in traffic.items()}
    found = simulate_platform(
        platform, held, today=today, seed=seed, profiles=profiles, inter_token_seconds=inter_token_seconds
    )
    varied = sensitivity(
        platform,
        held,
        today=today,
        seed=seed,
        profiles=profiles,
        inter_token_seconds=inter_token_seconds,
        progress=progress,
    )
    return Report(found, tuple(_compared(platform, held, profiles, inter_token_seconds)), varied)


def _compared(
    platform: Platform,
    traffic: Mapping[str, Traffic],
    profiles: Sequence[MeasuredProfile],
    inter_token_seconds: float | None,
) -> list[Comparison]:
    """Models with at least one request: nothing can be sized for none."""
    found = []
    for model in platform.models:
        load = measured(traffic[model.name]) if model.name in traffic else None
        if load and load.mean is not None:
            volume = platform.node_pool(model.accelerator.family).volume
            target = target_of(model, inter_token_seconds)
            found.append(
                compare(model, load.compared(), target, region=platform.region, volume=volume, profiles=profiles)
            )
    return found
