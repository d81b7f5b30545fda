"""From one platform to another as changes of the file: what stands where, what shall stand there, and as YAML.

A setting that gets its default back is taken out, since nobody wants to read what is the default anyway.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

import yaml

from genai_finops.planner.results import Change
from genai_finops.spec import Model, Platform
from genai_finops.spec.model import Accelerator
from genai_finops.spec.problems import path_of, steps

_MODELS: Final = "models"


def changes(before: Platform, after: Platform) -> tuple[Change, ...]:
    """What to change in the file of `before` so that it describes `after`; both have the same models in order.

    Raises:
        ValueError: when they do not.
    """
    if [model.name for model in before.models] != [model.name for model in after.models]:
        raise ValueError("Only platforms with the same models differ by settings alone")
    found: list[Change] = []
    for index, (old, new) in enumerate(zip(before.models, after.models, strict=True)):
        found += _differences((_MODELS, index), _values(old), _values(new), _written(old), _values(_plain(new)))
    pools = ("node_pools",)
    before_pools, after_pools = _values(before)["node_pools"], _values(after)["node_pools"]
    for family in dict.fromkeys((*before_pools, *after_pools)):
        if family not in after_pools:
            found.append(Change(path_of((*pools, family)), _written(before)["node_pools"][family], None))
        elif family not in before_pools:
            found.append(Change(path_of((*pools, family)), None, _written(after)["node_pools"][family]))
    return tuple(found)


def _plain(model: Model) -> Model:
    """The model with nothing but what every model must have: its values are the defaults."""
    return Model(
        name=model.name,
        source=model.source,
        revision=model.revision,
        accelerator=Accelerator(family=model.accelerator.family),
    )


def _values(section: Model | Platform) -> dict[str, Any]:
    return section.model_dump(mode="json")


def _written(section: Model | Platform) -> dict[str, Any]:
    """What its file says, without defaults that nobody wrote."""
    return section.model_dump(mode="json", exclude_unset=True)


def _differences(location: tuple[str | int, ...], old: Any, new: Any, written: Any, default: Any) -> Iterator[Change]:
    if isinstance(old, Mapping) and isinstance(new, Mapping) and isinstance(default, Mapping):
        for key in dict.fromkeys((*old, *new)):
            inner = written.get(key) if isinstance(written, Mapping) else None
            yield from _differences((*location, key), old.get(key), new.get(key), inner, default.get(key))
    elif old != new:
        wanted = None if new == default and location[-1] != "family" else new
        yield Change(path_of(location), written, wanted)


def applied(document: Mapping[str, Any], wanted: Sequence[Change]) -> dict[str, Any]:
    """A copy of the file's values with the changes made; sections that this leaves empty go."""
    changed = deepcopy(dict(document))
    for change in wanted:
        *parents, last = steps(change.path)
        node: Any = changed
        above: list[tuple[Any, str | int]] = []
        for step in parents:
            above.append((node, step))
            node = node.setdefault(step, {}) if isinstance(node, dict) else node[step]
        if change.new is not None:
            node[last] = deepcopy(change.new)
            continue
        node.pop(last, None)
        for parent, step in reversed(above):
            if parent[step] == {}:
                del parent[step]
    return changed


def fragment(platform: Platform, wanted: Sequence[Change]) -> str:
    """The changes as YAML that stands where it would in the file; what goes is named in comments."""
    if not wanted:
        return ""
    kept: dict[str, Any] = {}
    named: dict[int, dict[str, Any]] = {}
    gone = []
    for change in wanted:
        first, *rest = steps(change.path)
        if change.new is None:
            gone.append(change.path)
        elif first == _MODELS:
            index = int(rest[0])
            named.setdefault(index, {"name": platform.models[index].name})
            _put(named[index], rest[1:], change.new)
        else:
            _put(kept, [first, *rest], change.new)
    if named:
        kept = {_MODELS: [named[index] for index in sorted(named)], **kept}
    text = yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, default_flow_style=None) if kept else ""
    return "".join((*(f"# Take out {path}.\n" for path in gone), text))


def _put(section: dict[str, Any], location: Sequence[str | int], value: Any) -> None:
    *parents, last = location
    for step in parents:
        section = section.setdefault(str(step), {})
    section[str(last)] = value
