"""Frozen dataclasses to plain JSON and back.

The stack writes the configuration into the Lambdas' bundle and the Lambdas write facts into a table; both are read
back strictly, since a misspelt key that is silently ignored is a rule that silently does not apply.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class ShapeError(ValueError):
    """Data that does not have the shape of its class; the message lists every mistake, one a line, with its path."""


class _Refused:
    """Stands where a value could not be read; its problem is in the list."""


_REFUSED: Final = _Refused()


def encode(value: Any) -> Any:
    """Plain JSON values: Decimal as a string without exponent, times in UTC, sets sorted.

    Raises:
        TypeError: when a part is of a type that `decode` would not read back.
        ValueError: when a time has no zone, since nobody could tell later what it meant.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return aware(value).astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, frozenset):
        return [encode(item) for item in sorted(value)]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in sorted(value.items())}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def decode(kind: type[T], data: Any) -> T:
    """The object that `encode` wrote.

    Keys may be missing where the class has a default; unknown keys are refused.

    Raises:
        ShapeError: with all mistakes at once.
    """
    problems: list[str] = []
    found = _read(kind, data, "", problems)
    if problems:
        raise ShapeError("\n".join(problems))
    result: T = found
    return result


def aware(moment: datetime) -> datetime:
    """The moment itself.

    Raises:
        ValueError: when it has no zone.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} has no zone; add one, such as +01:00 or Z")
    return moment


def _read(kind: Any, data: Any, path: str, problems: list[str]) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if data is None and NoneType in arguments:
            return None
        (wanted,) = (argument for argument in arguments if argument is not NoneType)
        return _read(wanted, data, path, problems)
    if origin is Literal:
        return data if data in arguments else _refuse(path, data, f"one of {_listed(arguments)}", problems)
    if origin in (tuple, frozenset):
        if not isinstance(data, list):
            return _refuse(path, data, "a list", problems)
        items = [_read(arguments[0], item, f"{path}[{index}]", problems) for index, item in enumerate(data)]
        return _REFUSED if _REFUSED in items else origin(items)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            return _refuse(path, data, "an object", problems)
        return {key: _read(arguments[1], item, _below(path, key), problems) for key, item in data.items()}
    if is_dataclass(kind):
        return _read_object(kind, data, path, problems)
    return _read_value(kind, data, path, problems)


def _read_object(kind: Any, data: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(data, dict):
        return _refuse(path, data, "an object", problems)
    known = _fields(kind)
    before = len(problems)
    for key in data:
        if key not in known:
            problems.append(f"{_below(path, key)} is not known; use {_listed(tuple(known))}")
    values = {}
    for name, (hint, is_required) in known.items():
        if name in data:
            values[name] = _read(hint, data[name], _below(path, name), problems)
        elif is_required:
            problems.append(f"{_below(path, name)} is missing")
    if len(problems) > before:
        return _REFUSED
    try:
        return kind(**values)
    except ValueError as error:
        problems.append(f"{path or kind.__name__}: {error}")
        return _REFUSED


def _read_value(kind: Any, data: Any, path: str, problems: list[str]) -> Any:
    if kind is bool or kind is int:
        return (
            data
            if type(data) is kind
            else _refuse(path, data, "true or false" if kind is bool else "a whole number", problems)
        )
    if not isinstance(data, str):
        return _refuse(path, data, _EXPECTED.get(kind, "a text"), problems)
    if kind is str:
        return data
    try:
        if kind is Decimal:
            amount = Decimal(data)
            return amount if amount.is_finite() else _refuse(path, data, _EXPECTED[kind], problems)
        if kind is datetime:
            return aware(datetime.fromisoformat(data)).astimezone(UTC)
        if kind is date:
            return date.fromisoformat(data)
        return kind(data)
    except (ValueError, InvalidOperation):
        expected = _EXPECTED.get(kind) or f"one of {_listed(tuple(member.value for member in kind))}"
        return _refuse(path, data, expected, problems)


_EXPECTED: Final[dict[Any, str]] = {
    Decimal: 'a decimal number in quotes, such as "12.50"',
    datetime: "a time with its zone, such as 2026-03-01T18:00:00+01:00",
    date: "a date, such as 2026-12-24",
    str: "a text",
}


def _refuse(path: str, data: Any, expected: str, problems: list[str]) -> _Refused:
    problems.append(f"{path or 'the document'} is {data!r}; use {expected}")
    return _REFUSED


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(str(value) for value in values)


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Type of each field, and whether it must be given."""
    hints = get_type_hints(kind)
    return {
        field.name: (hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
        if field.init
    }
