"""Platform files for the tests of the spec: a small valid one, changes to it by path, and what is said of it."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import yaml

from genai_finops.spec import Platform, PlatformError, Problem, parse_platform
from genai_finops.spec.problems import steps

MISSING: Final = object()
"""As a change: take the key out."""

LLAMA: Final = "hf://meta-llama/Meta-Llama-3-8B-Instruct"

SMALL: Final[Mapping[str, Any]] = {
    "name": "demo",
    "region": "us-east-1",
    "zones": ["us-east-1a", "us-east-1b"],
    "models": [
        {
            "name": "llama3-8b",
            "source": LLAMA,
            "revision": "5f0b02c75b57c5855da9ae460ce51323ea669d8a",
            "accelerator": {"family": "inf2", "sizes": ["8xlarge"]},
        }
    ],
}

ON_GPU: Final[Mapping[str, Any]] = {"models[0].accelerator": {"family": "g6e"}}
"""A change that moves the model to one L40S."""

SHAPE_OF_LLAMA: Final[Mapping[str, int]] = {
    "parameters": 8_030_261_248,
    "layers": 32,
    "attention_heads": 32,
    "key_value_heads": 8,
    "head_dimension": 128,
    "max_position_embeddings": 8192,
}

ALERTED: Final[Mapping[str, Any]] = {"emails": ["finops@example.com"]}


def changed(changes: Mapping[str, Any] | None = None, base: Mapping[str, Any] = SMALL) -> dict[str, Any]:
    """A copy of a document with values set, or taken out, by path such as `models[0].engine.dtype`."""
    document = deepcopy(dict(base))
    for path, value in (changes or {}).items():
        *parents, last = steps(path)
        node: Any = document
        for step in parents:
            node = node.setdefault(step, {}) if isinstance(node, dict) else node[step]
        if value is MISSING:
            del node[last]
        elif isinstance(node, list) and last == len(node):
            node.append(deepcopy(value))
        else:
            node[last] = deepcopy(value)
    return document


def text_of(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True)


def accepted(changes: Mapping[str, Any] | None = None) -> Platform:
    """The platform that the small file with these changes is."""
    return parse_platform(text_of(changed(changes)))


def refused(changes: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Everything that is said of the small file with these changes."""
    return problems_in(text_of(changed(changes)))


def problems_in(text: str) -> tuple[Problem, ...]:
    """Everything that is said of a file; nothing when it is valid."""
    try:
        parse_platform(text)
    except PlatformError as error:
        return error.problems
    return ()


def only(problems: tuple[Problem, ...]) -> Problem:
    """The one problem there is."""
    assert len(problems) == 1, [problem.render("platform.yaml") for problem in problems]
    return problems[0]


def assert_says(changes: Mapping[str, Any], path: str, found: str, fix: str) -> None:
    """The file with these changes has this one mistake, and the message names the way out."""
    problem = only(refused(changes))
    assert problem.path == path
    assert found in problem.found
    assert fix in problem.fix
