"""The fixture events, where they are at hand; else the tests that need them are skipped, and say so."""

import json
import os
from pathlib import Path

import pytest

from tests.platform_files import ROOT


def fixture_event(name):
    """An event of the shared fixtures: beside the data that GENAI_FINOPS_SHARED_DATA names, or in ../shared."""
    data = os.environ.get("GENAI_FINOPS_SHARED_DATA")
    shared = Path(data).parent if data else ROOT.parent / "shared"
    file = shared / "fixtures" / "events" / f"{name}.json"
    if not file.exists():
        pytest.skip(f"no fixture events at {file.parent}; set GENAI_FINOPS_SHARED_DATA")
    return json.loads(file.read_text(encoding="utf-8"))
