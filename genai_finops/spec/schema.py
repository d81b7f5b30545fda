"""Writes the JSON schema that editors check a platform file against: `python -m genai_finops.spec.schema`."""

import json
from pathlib import Path
from typing import Any

from genai_finops.spec.platform import Platform

SCHEMA_FILE = Path("platform.schema.json")


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the platform file."""
    schema = Platform.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def render() -> str:
    return json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(render(), encoding="utf-8")
