"""Reads a platform file and refuses it with every mistake it has, not just the first."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_args

import yaml
from pydantic import BaseModel, ValidationError

from genai_finops.spec import checks
from genai_finops.spec.platform import Platform
from genai_finops.spec.problems import PlatformError, Problem

_PLACEHOLDERS: Final[Mapping[str, Any]] = {
    "name": "placeholder",
    "region": "us-east-1",
    "zones": ["us-east-1a", "us-east-1b"],
}
"""Stands in for a required setting of the wrong type, so that the rest of the file can still be checked."""

_PLACEHOLDER_MODEL: Final[Mapping[str, Any]] = {
    "name": "placeholder",
    "source": "hf://meta-llama/Meta-Llama-3-8B-Instruct",
    "revision": "0" * 40,
    "accelerator": {"family": "inf2"},
}


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
            file, [Problem("", "does not exist", "", "Give another file with PLATFORM=<file>, or write this one.")]
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlatformError(file, [Problem("", "cannot be read", str(error), "It must be a UTF-8 text file.")]) from None
    return parse_platform(text, file)


def parse_platform(text: str, file: str = "platform.yaml") -> Platform:
    """The platform that a YAML text describes; `file` names it in messages.

    Raises:
        PlatformError: with every problem found.
    """
    try:
        document = yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.YAMLError as error:
        raise PlatformError(file, [_syntax(error)]) from None
    if not isinstance(document, dict):
        raise PlatformError(
            file, [Problem("", "has no settings", "", "Start with name, region, zones and models; see docs/platform.md.")]
        )
    problems = [*_type_problems(document)]
    platform = _validated(_without(document, problems))
    if platform is not None:
        problems += _unhidden(checks.problems(platform), problems)
    if problems:
        raise PlatformError(file, _in_file_order(problems, document))
    assert platform is not None
    return platform


class _UniqueKeyLoader(yaml.SafeLoader):
    """A key given twice would silently lose its first value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} is given twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _syntax(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    why = str(getattr(error, "problem", None) or error)
    return Problem("", f"is not valid YAML{where}", f"{why[0].upper()}{why[1:]}.", "Mend the file there.")


def _type_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        Platform.model_validate(document)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield _problem(detail, document)


def _problem(detail: Any, document: Mapping[str, Any]) -> Problem:
    location = _location(detail["loc"], document)
    path = _path(location)
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    if kind == "missing":
        return Problem(path, "is missing", "It is required.", _described(location))
    if kind == "extra_forbidden":
        return _unknown_key(location)
    if kind == "literal_error":
        return Problem(path, f"is {value!r}", "", f"Use {context['expected'].replace(' or ', ' or ')}.")
    if kind == "too_short":
        return Problem(path, "has too few entries", "", f"Give at least {context['min_length']}.")
    if kind == "string_type" and isinstance(value, int | float):
        return Problem(path, f"is the number {value}", "It is a text.", f'Write it in quotes: "{value}".')
    return Problem(path, f"is {_shown(value)}", f"{detail['msg'].removeprefix('Value error, ')}.", _described(location))


def _location(location: Sequence[int | str], document: Any) -> list[int | str]:
    """pydantic's location without the parts that are not in the file, such as the names of union members."""
    kept: list[int | str] = []
    node: Any = document
    for position, part in enumerate(location):
        inside = isinstance(part, int) if isinstance(node, list) else isinstance(node, dict)
        if part == "[key]" or not (inside or position == len(location) - 1):
            break
        kept.append(part)
        if isinstance(node, dict):
            node = node.get(part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            node = None
    return kept


def _path(location: Sequence[int | str]) -> str:
    words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return words.removeprefix(".")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "empty" if value is None else repr(value)


def _unknown_key(location: Sequence[int | str]) -> Problem:
    key = str(location[-1])
    section = _section(location[:-1])
    known = list(section.model_fields) if section else []
    close = get_close_matches(key, known, n=1)
    hint = f"Did you mean {close[0]}? " if close else ""
    return Problem(
        _path(location), "is not a setting", "", f"{hint}Known here: {', '.join(known)}." if known else "Take it out."
    )


def _section(location: Sequence[int | str]) -> type[BaseModel] | None:
    """The section that a location leads to; None for a mapping with free keys."""
    section: type[BaseModel] | None = Platform
    for part in location:
        if section is None or isinstance(part, int):
            continue
        field = section.model_fields.get(str(part))
        section = _inner(field.annotation) if field else section
    return section


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, (_inner(argument) for argument in get_args(annotation))), None)


def _described(location: Sequence[int | str]) -> str:
    """What the setting is for, from its documentation."""
    while location and isinstance(location[-1], int):
        location = location[:-1]
    section = _section(location[:-1])
    field = section.model_fields.get(str(location[-1])) if section and location else None
    return field.description.split("\n\n")[0].replace("\n", " ") if field and field.description else ""


def _without(document: Mapping[str, Any], problems: Sequence[Problem]) -> dict[str, Any]:
    """The document with every section that has a wrong type replaced by one that surely validates."""
    mended = dict(document)
    for problem in problems:
        top = problem.path.split(".", 1)[0].split("[", 1)[0]
        index = _model_index(problem.path)
        if index is not None:
            models = list(mended["models"])
            models[index] = {**_PLACEHOLDER_MODEL, "name": f"placeholder-{index}"}
            mended["models"] = models
        elif top == "models":
            mended["models"] = [dict(_PLACEHOLDER_MODEL)]
        elif top in _PLACEHOLDERS:
            mended[top] = _PLACEHOLDERS[top]
        else:
            mended.pop(top, None)
    return mended


def _model_index(path: str) -> int | None:
    return int(path[len("models[") : path.index("]")]) if path.startswith("models[") else None


def _validated(document: Mapping[str, Any]) -> Platform | None:
    try:
        return Platform.model_validate(document)
    except ValidationError:
        return None


def _unhidden(found: Iterator[Problem], earlier: Sequence[Problem]) -> list[Problem]:
    """Problems that do not come from a placeholder."""
    replaced = {_root(problem.path) for problem in earlier}
    if "region" in replaced:
        replaced.add("zones")  # which zones are right depends on it
    return [problem for problem in found if _root(problem.path) not in replaced]


def _root(path: str) -> str:
    """The part of a path that is replaced as a whole: a model, or a top-level section."""
    index = _model_index(path)
    return f"models[{index}]" if index is not None else path.split(".", 1)[0].split("[", 1)[0]


def _in_file_order(problems: Sequence[Problem], document: Mapping[str, Any]) -> list[Problem]:
    order = {key: position for position, key in enumerate(document)}

    def key(problem: Problem) -> tuple[int, int]:
        return order.get(_root(problem.path).split("[", 1)[0], len(order)), _model_index(problem.path) or 0

    return sorted(problems, key=key)


