"""Reads the catalog's data files from the installed package."""

from importlib.resources import files
from typing import Any

import yaml


def text(name: str) -> str:
    """The text of `data/<name>`."""
    return (files("genai_finops.catalog") / "data" / name).read_text(encoding="utf-8")


def document(name: str) -> Any:
    """The YAML document in `data/<name>`."""
    return yaml.load(text(name), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
