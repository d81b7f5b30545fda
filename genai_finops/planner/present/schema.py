"""Writes the JSON schema of the planner's answers: `python -m genai_finops.planner.present.schema`.

Made from the types of the results and from what their docstrings say of each field, so that it cannot say anything else
than `as_json` writes.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from genai_finops.planner import results
from genai_finops.planner.present.as_json import SCHEMA_VERSION
from genai_finops.planner.report.page import Report

SCHEMA_FILE: Final = Path("docs/planner-output.schema.json")

ANSWERS: Final[Mapping[str, type]] = {
    "compare": results.Comparison,
    "plan": results.Plan,
    "simulate": results.PlatformSimulation,
    "diff": results.Difference,
    "calibrate": results.Calibration,
    "report": Report,
}
"""By command."""

_AMOUNT: Final = {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}
_PLAIN: Final[Mapping[Any, Mapping[str, Any]]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    Decimal: {**_AMOUNT, "description": "exact, as text"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    type(None): {"type": "null"},
    object: {},
    Any: {},
}


def schema() -> dict[str, Any]:
    """One schema for all commands: `schema` says which answer `result` is."""
    definitions: dict[str, Any] = {}
    pages = [
        {
            "type": "object",
            "properties": {
                "schema": {"const": f"genai-finops/{command}/{SCHEMA_VERSION}"},
                "exit_code": {"enum": [results.FINE, results.VIOLATED]},
                "result": result,
            },
            "required": ["schema", "exit_code", "result"],
            "additionalProperties": False,
        }
        for command, answer in ANSWERS.items()
        if (result := _form(answer, definitions))
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of genai-finops with --format json",
        "oneOf": pages,
        "$defs": dict(sorted(definitions.items())),
    }


def _form(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """What JSON holds for a value of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if origin in (Union, UnionType):
        return {"anyOf": [_form(each, definitions) for each in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple and arguments[1:] == (...,):
        return {"type": "array", "items": _form(arguments[0], definitions)}
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # now, for types that hold themselves
            definitions[kind.__name__] = _fields(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise TypeError(f"{kind} has no form in JSON")


def _fields(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    summary, said = _documented(kind)
    hints = get_type_hints(kind, localns=_names())
    properties = {}
    for field in fields(kind):
        form = _form(hints[field.name], definitions)
        properties[field.name] = {**form, "description": said[field.name]} if field.name in said else form
    return {
        "type": "object",
        "description": summary,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _names() -> dict[str, Any]:
    """What results name only for type checkers, since they load without numpy."""
    from genai_finops.planner.simulation.outcome import Counts, NodeUse

    return {"Counts": Counts, "NodeUse": NodeUse}


def _documented(kind: type) -> tuple[str, dict[str, str]]:
    """The summary of a class, and what it says of its attributes; several that share a line share its text."""
    text = kind.__doc__ or ""
    summary, _, attributes = text.partition("Attributes:")
    said = {}
    for names, meaning in re.findall(r"^\s+([a-z_][\w, .]*?): (.+(?:\n {12,}.+)*)", attributes, re.MULTILINE):
        for name in re.split(r",\s*(?:\.\.)?", names):
            said[name] = " ".join(meaning.split())
    return " ".join(summary.split()), said


def write(root: Path = Path()) -> None:
    (root / SCHEMA_FILE).write_text(f"{json.dumps(schema(), indent=2, ensure_ascii=False)}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
