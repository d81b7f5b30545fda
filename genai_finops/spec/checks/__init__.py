"""Every check that can be made before AWS is asked: errors that rule a platform out."""

from collections.abc import Iterator

from genai_finops.catalog import families
from genai_finops.spec.checks import account, engine, hardware, serving
from genai_finops.spec.platform import Platform
from genai_finops.spec.problems import Problem


def problems(platform: Platform) -> Iterator[Problem]:
    """All problems of a platform whose every value has the right type."""
    yield from account.problems(platform)
    for index, model in enumerate(platform.models):
        path = f"models[{index}]"
        yield from hardware.problems(model, path)
        if model.accelerator.family in families():  # else nobody knows what the engine runs on
            yield from engine.problems(model, path)
        yield from serving.problems(model, path)
