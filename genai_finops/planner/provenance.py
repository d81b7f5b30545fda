"""Where a number comes from, and how far it may be off: no figure of the planner travels without both."""

from dataclasses import dataclass
from typing import Final, Literal

Provenance = Literal["measured", "fitted", "extrapolated", "assumed"]
"""measured: read off a benchmark of this model on this hardware. fitted: a model's value where measured points lie
around it. extrapolated: the same model, away from every point. assumed: nobody has published a measurement."""

_FROM_BEST: Final[tuple[Provenance, ...]] = ("measured", "fitted", "extrapolated", "assumed")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a number comes from.

    Attributes:
        relative_error: half of the width of its error bar, as a share of the number: 0.2 is plus or minus 20 %.
        source: publication, command or reasoning, short enough for a footnote.
    """

    provenance: Provenance
    relative_error: float
    source: str

    def __post_init__(self) -> None:
        if not 0 <= self.relative_error < 1:
            raise ValueError(f"A relative error is from 0 to below 1, not {self.relative_error}")


def worst(*found: Provenance) -> Provenance:
    """What can be said of a result that several numbers went into."""
    return max(found, key=_FROM_BEST.index)
