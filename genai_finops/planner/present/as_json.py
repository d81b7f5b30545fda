"""A result as JSON: its fields by name, exact amounts as texts, no NaN, and the version of the form it has."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Any, Final

SCHEMA_VERSION: Final = 1
"""Rises when a field is renamed, removed or means something else; new fields do not raise it."""


def render(command: str, result: Any) -> str:
    """The result of a command as text that ends with a newline, ASCII only so that any locale can hold it."""
    page = {
        "schema": f"genai-finops/{command}/{SCHEMA_VERSION}",
        "exit_code": result.exit_code,
        "result": encoded(result),
    }
    return json.dumps(page, indent=2, allow_nan=False) + "\n"


def encoded(value: Any) -> Any:
    """What JSON can hold: dataclasses by their public fields, Decimal as text, times in ISO 8601; NaN is null.

    Raises:
        TypeError: for anything else.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Enum):
        return encoded(value.value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encoded(each) for key, each in value.items()}
    if isinstance(value, Sequence | frozenset):
        return [encoded(each) for each in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")
