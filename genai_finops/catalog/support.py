"""Until when EKS supports a Kubernetes version at the standard price."""

from datetime import date
from functools import cache

from genai_finops.catalog import _files


@cache
def _calendar() -> dict[str, date]:
    return dict(_files.document("kubernetes.yaml")["end_of_standard_support"])


def kubernetes_versions() -> tuple[str, ...]:
    return tuple(_calendar())


def end_of_standard_support(version: str) -> date:
    """The last day before extended support, which costs six times as much.

    Raises:
        KeyError: when the catalog does not have the version.
    """
    return _calendar()[version]
