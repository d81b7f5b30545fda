"""Reads a platform file and refuses it with every mistake it has, not just the first.

A value of the wrong type must not hide the other mistakes. So what is wrong is replaced by something that
surely validates, the checks run on the rest, and what they say about the replaced parts, or because of them,
is left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from genai_finops.spec import checks, wording
from genai_finops.spec.document import Document, read
from genai_finops.spec.model import Model
from genai_finops.spec.platform import Platform
from genai_finops.spec.problems import PlatformError, Problem, path_of, steps
from genai_finops.spec.wording import Location

_PLACEHOLDERS: Final[Mapping[str, Any]] = {
    "name": "placeholder",
    "region": "us-east-1",
    "zones": ["us-east-1a", "us-east-1b"],
}

_MODEL_PLACEHOLDERS: Final[Mapping[str, Any]] = {
    "name": "placeholder",
    "source": "hf://meta-llama/Meta-Llama-3-8B-Instruct",
    "revision": "0" * 40,
    "accelerator": {"family": "inf2"},
}

_JUDGED_TOGETHER: Final = ("source", "shape", "accelerator", "engine", "resources")
"""Parts of a model that decide together whether it fits."""


def load_platform(path: Path) -> Platform:
    """The platform that a file describes.

    Raises:
        PlatformError: with every problem found.
    """
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlatformError(
            file,
            [Problem("", "does not exist", "", "Give another file with PLATFORM=<file>, or write this one.")],
        ) from None
    except UnicodeDecodeError as error:
        why = f"Byte {error.start} is not UTF-8."
        raise PlatformError(file, [Problem("", "cannot be read", why, "Save it as UTF-8.")]) from None
    except OSError as error:
        why = f"{error.strerror or error}."
        raise PlatformError(file, [Problem("", "cannot be read", why, "Give a text file.")]) from None
    return parse_platform(text, file)


def parse_platform(text: str, file: str = "platform.yaml") -> Platform:
    """The platform that a YAML text describes; `file` names it in messages.

    Raises:
        PlatformError: with every problem found.
    """
    document = read(text, file)
    platform, faults = _validated(document.values)
    wrong = [wording.location_of(fault) for fault in faults]
    problems = [wording.problem(fault, document) for fault in faults]
    if platform is None:
        platform, _ = _validated(_mended(document.values, wrong))
    if platform is not None:
        problems += _unclouded(checks.problems(platform), wrong)
    if problems:
        raise PlatformError(file, _in_file_order(problems, document))
    assert platform is not None
    return platform


def _validated(values: Mapping[str, Any]) -> tuple[Platform | None, list[Any]]:
    """The platform, or what pydantic found. Strict: "5" is not a number and 1 is not true."""
    try:
        return Platform.model_validate_json(json.dumps(values), strict=True), []
    except ValidationError as error:
        faults = error.errors(include_url=False)
        # pydantic does not count entries that are wrong themselves.
        return None, [fault for fault in faults if not (fault["type"] == "too_short" and _is_long_enough(fault))]


def _is_long_enough(fault: Any) -> bool:
    return len(fault["input"]) >= int(fault["ctx"]["min_length"])


def _mended(values: Mapping[str, Any], wrong: Iterable[Location]) -> dict[str, Any]:
    """The document with every part that has something wrong left out, or replaced where it is required."""
    mended = deepcopy(dict(values))
    for location in wrong:
        unit = _unit(location)
        if unit == ("models",):
            mended["models"] = [dict(_MODEL_PLACEHOLDERS)]
        elif unit[0] != "models":
            _replace(mended, str(unit[0]), _PLACEHOLDERS)
        else:
            index = int(unit[1])
            placeholders = {**_MODEL_PLACEHOLDERS, "name": f"placeholder-{index}"}
            if len(unit) == 2:
                mended["models"][index] = placeholders
            else:
                _replace(mended["models"][index], str(unit[2]), placeholders)
    return mended


def _replace(section: dict[str, Any], key: str, placeholders: Mapping[str, Any]) -> None:
    if key in placeholders:
        section[key] = placeholders[key]
    else:
        section.pop(key, None)


def _unit(location: Location) -> Location:
    """What is replaced as a whole: a setting of a model, or of the file."""
    return location[:3] if location[0] == "models" else location[:1]


def _unclouded(found: Iterator[Problem], wrong: Iterable[Location]) -> list[Problem]:
    """Problems that do not come from a replaced part."""
    clouded = {path for location in wrong for path in _clouds(_unit(location))}
    return [problem for problem in found if not any(_is_within(problem.path, path) for path in clouded)]


def _clouds(unit: Location) -> Iterator[str]:
    """The paths whose checks also look at a unit, itself included."""
    yield path_of(unit)
    if unit == ("region",):
        yield "zones"
    elif unit == ("zones",):
        yield "network.nat_gateways"
    elif unit[0] == "models":
        key = str(unit[2]) if len(unit) == 3 else ""
        # A setting that is not one of a model may be meant for any of its sections.
        if key in _JUDGED_TOGETHER or key not in Model.model_fields:
            yield from (path_of((*unit[:2], other)) for other in _JUDGED_TOGETHER)
            yield "node_pools"
        if key == "source":
            yield path_of((*unit[:2], "revision"))


def _is_within(path: str, parent: str) -> bool:
    return path == parent or path.startswith((f"{parent}.", f"{parent}["))


def _in_file_order(problems: list[Problem], document: Document) -> list[Problem]:
    return sorted(problems, key=lambda problem: _position(problem.path, document.values))


def _position(path: str, node: Any) -> tuple[int, ...]:
    """Where in the file a path is, as the position at each level; what is missing comes after what is there."""
    positions = []
    for step in steps(path):
        if isinstance(node, dict):
            keys = list(node)
            positions.append(keys.index(step) if step in keys else len(keys))
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int):
            positions.append(step)
            node = node[step] if step < len(node) else None
        else:
            break
    return tuple(positions)
