"""The three platforms that most tests look at: as shipped, the smallest, and one that uses everything."""

from functools import cache
from pathlib import Path

from genai_finops.spec import Platform, load_platform

ROOT = Path(__file__).parent.parent
FILES = {
    "default": ROOT / "platform.yaml",
    "minimal": ROOT / "tests" / "platforms" / "minimal.yaml",
    "rich": ROOT / "tests" / "platforms" / "rich.yaml",
}


@cache
def platform(name: str) -> Platform:
    """`default`, `minimal` or `rich`."""
    return load_platform(FILES[name])
