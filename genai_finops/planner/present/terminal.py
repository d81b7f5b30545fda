"""A document as text that stays whole wherever it lands: a terminal, a pipe, a log, an ASCII locale.

No cell is ever cut. A table too wide for the window goes on in a second one, or becomes a list of its
rows. Colour adds nothing that is not in the words.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Final, TextIO

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text

from genai_finops.planner.present.document import (
    MARKS,
    Alerts,
    Block,
    Cell,
    Chart,
    Column,
    Document,
    Heading,
    KeyFigures,
    Listing,
    Notes,
    Paragraph,
    Row,
    Table,
    Tone,
)

DEFAULT_WIDTH: Final = 100
"""Where nothing says how wide the output is: a pipe, a log."""

NARROWEST: Final = 60
WIDEST: Final = 140
"""Longer lines are hard to read, however wide the terminal."""

LEAST_WRAPPED: Final = 24
"""Columns of the window that running text in a table needs at least."""

GAP: Final = 2
"""Between two columns of a table."""

_RULES: Final = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
"""A line under the head, nothing else."""

_ASCII: Final[Mapping[str, str]] = {
    "─": "-", "×": "x", "–": "-", "−": "-", "→": "->", "±": "+/-", "≤": "<=", "≥": ">=", "…": "...", "·": "-",
}  # fmt: skip

_STYLES: Final[Mapping[Tone, str]] = {"plain": "", "good": "green", "bad": "bold red", "quiet": "dim", "strong": "bold"}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def render(document: Document, *, width: int = DEFAULT_WIDTH, color: bool = False, ascii_only: bool = False) -> str:
    """The document as text that ends with a newline.

    Args:
        width: columns, kept within 60 and 140.
        color: whether to write ANSI escape codes.
        ascii_only: writes `+/-` for ± and the like.
    """
    return _Terminal(min(max(width, NARROWEST), WIDEST), color, ascii_only).text(document)


def window_width() -> int:
    """COLUMNS, else the terminal's width, else 100."""
    return shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns


def shows_color(stream: TextIO) -> bool:
    """Whether colour is welcome: on a terminal that is not dumb, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def takes(encoding: str | None) -> bool:
    """Whether text in this encoding can hold what we write."""
    try:
        "".join(_ASCII).encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class _Terminal:
    def __init__(self, width: int, color: bool, ascii_only: bool) -> None:
        self._ascii_only, self._color = ascii_only, color
        self._console = Console(
            file=StringIO(),
            width=width,
            height=100,  # not used; given, so that the environment is not asked
            force_terminal=color,
            color_system="standard" if color else None,
            no_color=not color,
            force_jupyter=False,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def text(self, document: Document) -> str:
        for part in self._parts(document):
            self._console.print(part)
        assert isinstance(self._console.file, StringIO)
        text = self._console.file.getvalue()
        if self._ascii_only:  # what rich itself drew
            text = text.replace("─", "-").encode("ascii", "replace").decode("ascii")
        return text if self._color else "\n".join(line.rstrip() for line in text.split("\n"))

    def _parts(self, document: Document) -> Iterator[RenderableType]:
        yield Text.assemble((self._plain(document.title), "bold cyan"))
        if document.subtitle:
            yield Text(self._plain(document.subtitle))
        for block in document.blocks:
            yield ""
            yield from self._block(block)
        if document.legend:
            yield ""
            yield self._text(document.legend, "quiet")

    def _block(self, block: Block) -> Iterator[RenderableType]:
        match block:
            case Heading():
                yield Rule(Text(self._plain(block.text), "bold"), align="left", style="dim", characters="─")
            case Paragraph():
                yield self._text(block.text, block.tone)
            case KeyFigures():
                yield self._figures(block)
            case Table():
                yield from self._table(block)
            case Alerts():
                yield from self._alerts(block)
            case Notes():
                if block.title:
                    yield self._text(block.title, "strong")
                yield self._bulleted(block.notes)
            case Listing():
                yield self._text(block.caption, "strong")
                yield Padding(Text(self._plain(block.text.rstrip("\n")), overflow="fold", no_wrap=False), (0, 0, 0, 2))
            case Chart():
                yield self._text(block.title, "strong")
                yield self._text(block.takeaway, "plain")

    def _figures(self, block: KeyFigures) -> Grid:
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(overflow="fold")
        grid.add_column(justify="right", no_wrap=True)
        grid.add_column(overflow="fold", ratio=1)
        for figure in block.figures:
            value = Text(self._plain(_marked(figure.value)), _STYLES[figure.value.tone] or "bold")
            grid.add_row(self._plain(figure.label), value, self._text(figure.note, "quiet"))
        return grid

    def _table(self, block: Table) -> Iterator[RenderableType]:
        if block.caption:
            yield self._text(block.caption, "strong")
        if not block.rows:
            yield self._text("None.", "quiet")
            return
        parts = self._parts_that_fit(block)
        if not parts:
            yield from self._list(block)
        for index, part in enumerate(parts):
            if index:
                yield ""
            yield self._columns(part)

    def _parts_that_fit(self, block: Table) -> list[Table]:
        """The table, or its columns in as many tables as it takes, each with the key columns; none that fits is a list.

        Columns that may wrap are left enough room to be read.
        """
        widths = [self._needed(block, index) for index in range(len(block.columns))]
        keys = list(range(block.keys))
        room = self._console.width - sum(widths[key] + GAP for key in keys)
        parts: list[list[int]] = [[]]
        left = room
        for index in range(block.keys, len(block.columns)):
            if widths[index] > room:
                return []
            if widths[index] > left:
                parts.append([])
                left = room
            parts[-1].append(index)
            left -= widths[index] + GAP
        return [_with_columns(block, [*keys, *part]) for part in parts] if room >= 0 else []

    def _needed(self, block: Table, index: int) -> int:
        """Columns of the window that a column needs."""
        column = block.columns[index]
        texts = [self._head(column), *(self._plain(_marked(each.cells[index])) for each in block.rows)]
        widest = max(cell_len(line) for text in texts for line in text.split("\n"))
        if any(each.cells[index].origin for each in block.rows):
            widest = max(widest, *(cell_len(f"{each.cells[index].text}  ") for each in block.rows))
        return min(widest, LEAST_WRAPPED) if column.wraps else widest

    def _columns(self, block: Table) -> Grid:
        grid = Grid(
            box=_RULES,
            show_edge=False,
            pad_edge=False,
            padding=(0, GAP - 1, 0, 0),  # the box adds one
            header_style="bold",
            border_style="dim",
            collapse_padding=True,
        )
        for column in block.columns:
            grid.add_column(
                self._head(column),
                justify=column.align,
                no_wrap=not column.wraps,
                overflow="fold",
                vertical="top",
            )
        marked = [any(each.cells[index].origin for each in block.rows) for index in range(len(block.columns))]
        for each in block.rows:
            style = {"total": "bold", "group": "bold", "plain": ""}[each.kind]
            grid.add_row(*self._cells(each, marked), style=style)
        return grid

    def _cells(self, each: Row, marked: Sequence[bool]) -> Iterator[Text]:
        for cell, has_marks in zip(each.cells, marked, strict=True):
            text = _marked(cell) if cell.origin or not has_marks else f"{cell.text}  "
            yield Text(self._plain(text), _STYLES[cell.tone], overflow="fold")

    def _head(self, column: Column) -> str:
        return self._plain(f"{column.head}\n{column.unit}" if column.unit else column.head)

    def _list(self, block: Table) -> Iterator[RenderableType]:
        """The same as a table, for a window too narrow for it: a row's first value is its head."""
        for each in block.rows:
            first, *others = each.cells
            style = _STYLES[first.tone] if first.tone != "plain" else "cyan"
            yield Text(self._plain(_marked(first)), style)
            facts = Grid.grid(padding=(0, 2))
            facts.add_column(style="dim", no_wrap=True)
            facts.add_column(overflow="fold")
            for cell, column in zip(others, block.columns[1:], strict=True):
                if cell.text:
                    value = f"{_marked(cell)} {column.unit}".rstrip()
                    head = self._plain(column.head.replace("\n", " "))
                    facts.add_row(head, Text(self._plain(value), _STYLES[cell.tone], overflow="fold"))
            yield Padding(facts, (0, 0, 0, 2))

    def _alerts(self, block: Alerts) -> Iterator[RenderableType]:
        yield Text(self._plain(block.title), "bold yellow")
        lines = Grid.grid(padding=(0, 1))
        lines.add_column(justify="right", style="bold yellow", no_wrap=True)
        lines.add_column(overflow="fold")
        for index, alert in enumerate(block.alerts, 1):
            lines.add_row(f"{index}.", Text(self._plain(alert.message), overflow="fold"))
            if alert.remedy:
                lines.add_row("", Text(self._plain(f"→ {alert.remedy}"), overflow="fold"))
        yield lines

    def _bulleted(self, notes: Iterable[str]) -> Grid:
        lines = Grid.grid(padding=(0, 1))
        lines.add_column(style="dim", no_wrap=True)
        lines.add_column(style="dim", overflow="fold")
        for note in notes:
            lines.add_row("-", Text(self._plain(note), overflow="fold"))
        return lines

    def _text(self, text: str, tone: Tone) -> Text:
        return Text(self._plain(text), _STYLES[tone], overflow="fold")

    def _plain(self, text: str) -> str:
        """What is in a file must not steer the terminal that shows it."""
        text = _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
        if self._ascii_only:
            for mark, written in _ASCII.items():
                text = text.replace(mark, written)
        return text


def _marked(cell: Cell) -> str:
    return f"{cell.text} {MARKS[cell.origin]}" if cell.origin else cell.text


def _with_columns(block: Table, chosen: Sequence[int]) -> Table:
    """The table with some of its columns."""
    rows = tuple(Row(tuple(each.cells[index] for index in chosen), each.kind) for each in block.rows)
    return Table(block.caption, tuple(block.columns[index] for index in chosen), rows, block.keys)
