"""What a page consists of, whatever it is shown on: blocks of text, figures and tables, without any layout.

A command's result is turned into a document by one function; a renderer for each format knows all blocks and no
command. So a terminal, a pull request and a web page say the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from genai_finops.planner.provenance import Provenance

Tone = Literal["plain", "good", "bad", "quiet", "strong"]

MARKS: Final[Mapping[Provenance, str]] = {"measured": "m", "fitted": "f", "extrapolated": "e", "assumed": "a"}
"""One letter behind a number says where it comes from; each page that uses one explains them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value, formatted.

    Attributes:
        origin: where the number comes from; shown as its mark.
    """

    text: str
    tone: Tone = "plain"
    origin: Provenance | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """What stands in one column.

    Attributes:
        unit: of all its numbers, shown with the head.
        wraps: long text that may be broken over lines.
    """

    head: str
    unit: str = ""
    align: Literal["left", "right"] = "left"
    wraps: bool = False


def number(head: str, unit: str = "") -> Column:
    """A column of numbers, which end under each other."""
    return Column(head, unit, "right")


@dataclass(frozen=True, slots=True)
class Row:
    """Cells in the order of the columns.

    Attributes:
        kind: a total is set apart from what it sums up; a group is the head of the rows below it.
    """

    cells: tuple[Cell, ...]
    kind: Literal["plain", "total", "group"] = "plain"


def row(*cells: str | Cell, kind: Literal["plain", "total", "group"] = "plain", tone: Tone = "plain") -> Row:
    """A row of texts and cells; `tone` is that of the texts."""
    return Row(tuple(cell if isinstance(cell, Cell) else Cell(cell, tone) for cell in cells), kind)


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns.

    Attributes:
        caption: says what the table shows; read out before it, and its title in every format.
        keys: columns from the left that say what a row is about.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    keys: int = 1

    def __post_init__(self) -> None:
        wrong = [each for each in self.rows if len(each.cells) != len(self.columns)]
        if wrong:
            raise ValueError(f"{self.caption}: {len(wrong[0].cells)} cells for {len(self.columns)} columns: {wrong[0]}")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that answers a question.

    Attributes:
        note: what it is compared with, or what it means.
    """

    label: str
    value: Cell
    note: str = ""


@dataclass(frozen=True, slots=True)
class KeyFigures:
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Alert:
    """Something to act on: a warning, or an objective that does not hold."""

    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Alerts:
    title: str
    alerts: tuple[Alert, ...]


@dataclass(frozen=True, slots=True)
class Notes:
    """Assumptions and sources, in small print."""

    title: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Text to be copied as it is."""

    caption: str
    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, and in one sentence what it shows.

    Attributes:
        takeaway: computed from the data; all that a format without pictures shows.
        description: what is drawn, for those who cannot see it.
        wide, narrow: Vega-Lite specifications for a window and for a phone; empty where there is nothing to draw.
    """

    title: str
    takeaway: str
    description: str
    wide: Mapping[str, Any] = field(repr=False)
    narrow: Mapping[str, Any] = field(repr=False)


Block = Heading | Paragraph | Table | KeyFigures | Alerts | Notes | Listing | Chart


@dataclass(frozen=True, slots=True)
class Document:
    """A page.

    Attributes:
        subtitle: what was asked: the file, the traffic, the month.
    """

    title: str
    subtitle: str
    blocks: tuple[Block, ...]

    @property
    def origins(self) -> tuple[Provenance, ...]:
        """Those that stand behind a number anywhere, from the best known to the least."""
        found = {cell.origin for cell in self._cells()}
        return tuple(origin for origin in MARKS if origin in found)

    @property
    def legend(self) -> str:
        """Explains the marks that are used; empty without any."""
        marks = [f"{MARKS[origin]} {origin}" for origin in self.origins]
        return f"Behind a number: {', '.join(marks)}. ± is the error bar of its performance." if marks else ""

    def _cells(self) -> Iterator[Cell]:
        for block in self.blocks:
            if isinstance(block, Table):
                for each in block.rows:
                    yield from each.cells
            elif isinstance(block, KeyFigures):
                yield from (figure.value for figure in block.figures)
