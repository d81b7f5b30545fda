"""`platform.yaml` as types, and every check that can be made before AWS is asked."""

from genai_finops.spec import names
from genai_finops.spec.advice import warnings
from genai_finops.spec.load import load_platform, parse_platform
from genai_finops.spec.model import Model
from genai_finops.spec.platform import Platform
from genai_finops.spec.problems import PlatformError, Problem, Warning

__all__ = [
    "Model",
    "Platform",
    "PlatformError",
    "Problem",
    "Warning",
    "load_platform",
    "names",
    "parse_platform",
    "warnings",
]
