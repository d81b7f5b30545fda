"""Reads YAML as a person means it, and refuses what no platform file needs.

Values are read as YAML 1.2 does: `on`, `no`, `22:00` and `2026-01-01` are texts, only `true` and `false` are
switches.
Keys are always texts. A key given twice is refused, since the first value would be lost in silence; so are
values that contain themselves and files that unfold to far more than they look.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from genai_finops.spec.problems import PlatformError, Problem

MAX_VALUES: Final = 200_000
"""Values in a file after its anchors are unfolded: a hundred models with every setting have a tenth of it."""

_MERGE: Final = "tag:yaml.org,2002:merge"
_TEXT: Final = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: only mappings with texts as keys, lists, texts, numbers, booleans and None."""

    values: dict[str, Any]
    _root: yaml.Node

    def written(self, location: Sequence[int | str]) -> str | None:
        """How the value at a location is written in the file, such as `1.30`; None when it is not a single value."""
        node: yaml.Node | None = self._root
        for part in location:
            node = _child(node, part)
        return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def read(text: str, file: str) -> Document:
    """The document in a YAML text.

    Raises:
        PlatformError: when it is not YAML, not a mapping, or not something to load.
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is not None:
            _inspect(root, {})
        values = None if root is None else loader.construct_document(root)
    except yaml.YAMLError as error:
        raise PlatformError(file, [_syntax(error, text)]) from None
    except RecursionError:
        raise PlatformError(
            file,
            [Problem("", "is nested too deep", "No setting is deeper than a few levels.", "Flatten it.")],
        ) from None
    except (ValueError, KeyError, AttributeError) as error:
        raise PlatformError(
            file,
            [Problem("", "has a value that its YAML tag does not fit", f"{error}.", "Leave such tags out.")],
        ) from None
    if not isinstance(values, dict) or root is None or not values:
        what = "is a list" if isinstance(values, list) else "has no settings" if not values else "is a single value"
        raise PlatformError(
            file, [Problem("", what, "", "Start with name, region, zones and models; see docs/platform.md.")]
        )
    return Document(values, root)


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core schema, plus merge keys."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (as PyYAML declares it)
    yaml_constructors = {  # noqa: RUF012
        tag: constructor
        for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rsplit(":", 1)[-1] in ("null", "bool", "int", "float", "str", "seq", "map")
    }


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    # A leading zero or more digits than a number of ours can have: an account, a commit. They stay as
    # written.
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))"
        r"|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)


def _inspect(node: yaml.Node, sizes: dict[int, int | None]) -> int:
    """How many values a node unfolds to. Makes every key a text.

    Raises:
        yaml.YAMLError: for a repeated key, a key that is not a text, a value inside itself, or too many
        values.
    """
    known = sizes.get(id(node), -1)
    if known is None:
        raise _refused("a value contains itself", node)
    if known >= 0:
        return known
    sizes[id(node)] = None
    size = 1
    if isinstance(node, yaml.ScalarNode):
        if any("\ud800" <= character <= "\udfff" for character in node.value):
            raise _refused("half of a surrogate pair is not a character", node)
    elif isinstance(node, yaml.MappingNode):
        _name_keys(node)
        size += sum(_inspect(value, sizes) for _, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_inspect(value, sizes) for value in node.value)
    if size > MAX_VALUES:
        raise _refused(f"its anchors unfold to more than {MAX_VALUES} values", node)
    sizes[id(node)] = size
    return size


def _name_keys(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _refused("a key must be a text", key)
        if key.tag == _MERGE:
            continue
        key.tag = _TEXT
        if key.value in seen:
            raise _refused(f"the key {key.value!r} is given twice", key)
        seen.add(key.value)


def _refused(why: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=why, problem_mark=node.start_mark)


def _child(node: yaml.Node | None, part: int | str) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        child = node.value[part]
    elif isinstance(node, yaml.MappingNode):
        # Merged keys come first, so the last of a name is the one that counts.
        child = next((value for key, value in reversed(node.value) if key.value == part), None)
    else:
        return None
    return child if isinstance(child, yaml.Node) else None


def _syntax(error: yaml.YAMLError, text: str) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return Problem(
            "",
            f"is not valid YAML at line {line}",
            f"It has the control character #x{error.character:04x}.",
            "Take it out.",
        )
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    why = str(getattr(error, "problem", None) or error)
    if why.startswith("but "):
        why = f"{getattr(error, 'context', None)}, {why}"
    if r"'\t'" in why:
        return Problem("", f"is not valid YAML{where}", "There is a tab.", "Indent with spaces.")
    return Problem("", f"is not valid YAML{where}", f"{why[0].upper()}{why[1:]}.", "Mend the file there.")
