"""Says in words what pydantic refuses: the path, the value as it is written, what is allowed, what to do."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from genai_finops.spec.document import Document
from genai_finops.spec.forms import FORMS
from genai_finops.spec.platform import Platform
from genai_finops.spec.problems import Problem, one_of, path_of

Location = tuple[int | str, ...]

_LONGEST_SHOWN: Final = 100


def location_of(detail: Any) -> Location:
    """Where in the file one of pydantic's errors is."""
    return tuple(part for part in detail["loc"] if part != "[key]")


def problem(detail: Any, document: Document) -> Problem:
    """One of pydantic's errors as a problem."""
    location = location_of(detail)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return Problem(path_of(location), "is missing", "It is required.", _advice(location, "Give"))
    if kind == "extra_forbidden" or detail["loc"][-1] == "[key]":
        return _unknown_key(location)
    value = _at(document.values, location)
    if value is None:
        return Problem(path_of(location), "is empty", f"It must be {words(location)}.", _advice(location, "Give"))
    found = f"is {_shown(value, document.written(location))}"
    if kind == "literal_error":
        allowed = [str(choice) for choice in get_args(annotation_of(location))]
        return Problem(path_of(location), found, "", f"{_did_you_mean(str(value), allowed)}Use {one_of(allowed)}.")
    if kind == "too_short":
        least = context["min_length"]
        few = "has no entries" if not value else f"has {len(value)} entr{'y' if len(value) == 1 else 'ies'}"
        return Problem(path_of(location), few, f"It must have at least {least}.", _advice(location, "Give"))
    if kind == "string_type" and isinstance(value, bool | int | float):
        written = document.written(location)
        return Problem(
            path_of(location),
            f"is {written}" if isinstance(value, bool) else f"is the number {written}",
            "It must be a text.",
            f'Write it in quotes: "{written}".',
        )
    if kind == "string_pattern_mismatch":
        form = FORMS[context["pattern"]]
        return Problem(path_of(location), found, f"It must be {form.words}.", f"For example {form.example}.")
    if kind in ("tuple_type", "list_type") and not isinstance(value, dict):
        fix = f"Write it as a list: [{document.written(location)}]."
        return Problem(path_of(location), found, f"It must be {words(location)}.", fix)
    allowed_words = words(location)
    if kind == "finite_number":
        allowed_words = allowed_words.replace("a number", "a finite number")
    return Problem(path_of(location), found, f"It must be {allowed_words}.", _advice(location, "Use"))


def _shown(value: Any, written: str | None) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value) if isinstance(value, str) else str(written)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _at(node: Any, location: Location) -> Any:
    for part in location:
        node = node[part]
    return node


def _unknown_key(location: Location) -> Problem:
    key = str(location[-1])
    parent = annotation_of(location[:-1])
    if not is_section(parent):  # a mapping with a fixed set of names
        known = [str(name) for name in get_args(get_args(parent)[0])]
    else:
        known = list(parent.model_fields)
        for name in known:
            for inside in ((name,), (name, 0), (name, "*")):
                inner = annotation_of((*location[:-1], *inside))
                if is_section(inner) and key in inner.model_fields:
                    where = f"an entry of {name}" if len(inside) > 1 else name
                    return Problem(
                        path_of(location), "is not a setting", f"It belongs to {where}.", f"Write it under {where}."
                    )
    return Problem(
        path_of(location),
        "is not a setting",
        "",
        f"{_did_you_mean(key, known)}Known here: {', '.join(known)}.",
    )


def _did_you_mean(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word.lower(), known, n=1, cutoff=0.7)
    return f"Did you mean {close[0]}? " if close else ""


def _advice(location: Location, verb: str) -> str:
    """What the setting is for, from its documentation; else what kind of value it takes."""
    field = field_of(location)
    otherwise = ""
    if field is not None and not field.is_required() and not isinstance(location[-1], int):
        default = field.get_default(call_default_factory=True, validated_data={})
        plain = isinstance(default, int | float | str)
        otherwise = f" Left out, it is {str(default).lower()}." if plain else " Or leave it out."
    if field is not None and field.description:
        meaning = " ".join(field.description.split())
        return meaning if "Default: " in meaning else f"{meaning}{otherwise}"
    section = annotation_of(location)
    if is_section(section):
        return f"It has {', '.join(section.model_fields)}.{otherwise}"
    return f"{verb} {words(location)}.{otherwise}"


def words(location: Location) -> str:
    """What a setting must be; completes "It must be ..."."""
    annotation = annotation_of(location)
    range_ = _range(location)
    if annotation is int:
        return f"a whole number{range_}"
    if annotation in (float, Decimal):
        return f"a number{range_}"
    if annotation is bool:
        return "true or false"
    if annotation is date:
        return "a date such as 2026-12-24"
    if annotation is str:
        patterns = [getattr(constraint, "pattern", None) for constraint in _constraints(location)]
        return next((FORMS[pattern].words for pattern in patterns if pattern), "a text")
    if get_origin(annotation) is Literal:
        return one_of(get_args(annotation))
    if get_origin(annotation) is tuple:
        return f"a list, each entry {words((*location, 0))}"
    if is_section(annotation):
        required = [name for name, field in annotation.model_fields.items() if field.is_required()]
        return f"a section with {', '.join(required)}" if required else "a section"
    if get_origin(annotation) is dict and get_args(annotation)[1] is not Any:
        return f"a mapping, each value {words((*location, '*'))}"
    return "a mapping"


def _range(location: Location) -> str:
    bounds: dict[str, Any] = {}
    for constraint in _constraints(location):
        for name in ("ge", "gt", "le", "lt", "decimal_places"):
            limit = getattr(constraint, name, None)
            if limit is not None:
                bounds[name] = limit
    if "ge" in bounds and "le" in bounds:
        return f" from {bounds['ge']:,} to {bounds['le']:,}"
    said = {
        "ge": "of at least",
        "gt": "above",
        "le": "of at most" if "gt" not in bounds else "at most",
        "lt": "below",
    }
    words = [f"{said[name]} {bounds[name]:,}" for name in said if name in bounds]
    cents = " in whole cents" if "decimal_places" in bounds else ""
    return f"{' ' if words else ''}{' and '.join(words)}{cents}"


def _constraints(location: Location) -> list[Any]:
    field = field_of(location)
    if field is None:
        return []
    if not isinstance(location[-1], int):
        return list(field.metadata)
    item = get_args(field.annotation)[0]
    found: list[Any] = []
    for metadata in getattr(item, "__metadata__", ()):
        found += metadata.metadata if isinstance(metadata, FieldInfo) else [metadata]
    return found


def field_of(location: Location) -> FieldInfo | None:
    """The field that a location leads to; for an entry of a list, the list."""
    if location and isinstance(location[-1], int):
        location = location[:-1]
    section = annotation_of(location[:-1])
    return section.model_fields.get(str(location[-1])) if location and is_section(section) else None


def annotation_of(location: Location) -> Any:
    """The type that the file must have at a location; None where there is no setting."""
    annotation: Any = Platform
    for part in location:
        if is_section(annotation):
            field = annotation.model_fields.get(str(part))
            annotation = field.annotation if field else None
        else:
            arguments = get_args(annotation)
            annotation = arguments[0 if isinstance(part, int) else 1] if len(arguments) > 1 else None
        annotation = _bare(annotation)
    return annotation


def _bare(annotation: Any) -> Any:
    """Without `| None` and `Annotated`."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (UnionType, Union):
        return _bare(next(argument for argument in get_args(annotation) if argument is not type(None)))
    return annotation


def is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
