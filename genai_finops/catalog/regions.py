"""Which zones a region has."""

from functools import cache

from genai_finops.catalog import _files


@cache
def regions() -> tuple[str, ...]:
    return tuple(_files.document("regions.yaml"))


@cache
def zones(region: str) -> tuple[str, ...]:
    """Zone names of a region, such as `us-east-1a`.

    Raises:
        KeyError: when the catalog does not have the region.
    """
    return tuple(f"{region}{letter}" for letter in _files.document("regions.yaml")[region])
