"""Writes what is derived from the types of the platform file: `python -m genai_finops.spec.schema`.

`platform.schema.json` is what editors check a file against, `docs/platform.md` what people look settings up
in.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from genai_finops.spec.load import parse_platform
from genai_finops.spec.platform import Platform
from genai_finops.spec.problems import PlatformError
from genai_finops.spec.wording import Location, annotation_of, field_of, is_section, words

SCHEMA_FILE: Final = Path("platform.schema.json")
REFERENCE_FILE: Final = Path("docs/platform.md")

SMALLEST: Final = """\
name: demo
region: us-west-2
zones: [us-west-2a, us-west-2b]
models:
  - name: qwen3-8b
    source: hf://Qwen/Qwen3-8B
    revision: 0123456789abcdef0123456789abcdef01234567
    accelerator: {family: inf2}
"""

_WRONG: Final = """\
name: demo
regoin: us-west-2
zones: [us-west-2a, us-west-2b]
models:
  - name: qwen3-8b
    source: hf://Qwen/Qwen3-8B
    revision: main
    accelerator: {family: inf2, sizes: [8xlarge], tensor_parallel_size: 4}
"""

_INTRODUCTION: Final = """\
# platform.yaml

Every setting of the platform file. Written by `make schema` from `genai_finops/spec/`; do not edit.

The smallest file that is valid:

```yaml
{smallest}```

What is wrong is said all at once, before anything is written: the path, what was found, why it cannot work,
what to do. With `regoin`, a branch for a revision and more cores than the instance has:

```
{errors}
```

Values are read as YAML 1.2 does: `on`, `no` and `22:00` are texts, only `true` and `false` are switches.
Anchors and merge keys work. For checks and completion while typing, begin the file with
`# yaml-language-server: $schema=./platform.schema.json`.
"""


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the platform file."""
    schema = Platform.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def render() -> str:
    """The text of `platform.schema.json`."""
    return json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"


def reference() -> str:
    """The text of `docs/platform.md`."""
    introduction = _INTRODUCTION.format(smallest=SMALLEST, errors=_errors(_WRONG))
    return "\n".join([introduction, *_section(())]).rstrip() + "\n"


def _errors(text: str) -> str:
    try:
        parse_platform(text)
    except PlatformError as error:
        return error.render()
    raise AssertionError("the example of a wrong file is valid")


def _section(location: Location) -> Iterator[str]:
    """A heading, a table of the settings, then the sections among them."""
    section = annotation_of(location)
    if location:
        yield f"## `{_heading(location)}`\n"
        yield f"{_one_line(section.__doc__)}\n"
    else:
        yield "## The whole file\n"
    yield "| setting | value | default | meaning |\n|---|---|---|---|"
    inner: list[Location] = []
    for name in section.model_fields:
        here: Location = (*location, name)
        below = _section_at(here)
        yield f"| `{name}` | {_value(here, below)} | {_default(here)} | {_meaning(here, below)} |"
        if below:
            inner.append(below)
    yield ""
    for below in inner:
        yield from _section(below)


def _section_at(location: Location) -> Location | None:
    """The section that a setting holds, itself or as its entries."""
    for candidate in (location, (*location, 0), (*location, "<family>")):
        if is_section(annotation_of(candidate)):
            return candidate
    return None


def _heading(location: Location) -> str:
    return "".join("[]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _value(location: Location, below: Location | None) -> str:
    if below is None:
        return words(location).removeprefix("a ")
    kind = "section"
    if below != location:
        kind = "list of sections" if isinstance(below[-1], int) else "sections by name"
    return f"{kind}, [below](#{_anchor(below)})"


def _anchor(location: Location) -> str:
    """GitHub's: lower case, without punctuation."""
    return re.sub(r"[^a-z0-9_-]", "", _heading(location).lower())


def _default(location: Location) -> str:
    field = field_of(location)
    assert field is not None
    if field.is_required():
        return "**required**"
    default = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple) and default:
        return f"`{list(default)}`"
    if isinstance(default, int | float | str):
        return f"`{default}`"
    return "" if is_section(type(default)) else "none"


def _meaning(location: Location, below: Location | None) -> str:
    field = field_of(location)
    assert field is not None
    text = field.description or (annotation_of(below).__doc__ if below else "")
    return _one_line(text).replace("|", r"\|").replace("<", "&lt;")


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


if __name__ == "__main__":
    SCHEMA_FILE.write_text(render(), encoding="utf-8")
    REFERENCE_FILE.write_text(reference(), encoding="utf-8")
