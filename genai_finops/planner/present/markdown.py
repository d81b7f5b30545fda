"""A document as GitHub's Markdown: for a pull request comment or a wiki page."""

import re
from collections.abc import Iterator
from typing import Final

from genai_finops.planner.present.document import (
    MARKS,
    Alerts,
    Block,
    Cell,
    Chart,
    Document,
    Heading,
    KeyFigures,
    Listing,
    Notes,
    Paragraph,
    Row,
    Table,
)

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#~@]|\$(?!\d))")
"""What GitHub gives a meaning within a line: @ calls a person, $ ends a formula, but not before a digit."""

_LINE_START: Final = re.compile(r"^(\s*)([-+]|\d+[.)])(?=\s)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def render(document: Document) -> str:
    """The document as text that ends with a newline. Everything that was read from files is escaped."""
    parts = [f"## {_inline(document.title)}"]
    if document.subtitle:
        parts.append(_line(document.subtitle))
    parts += [part for block in document.blocks for part in _block(block)]
    if document.legend:
        parts.append(f"<sub>{_inline(document.legend)}</sub>")
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"### {_inline(block.text)}"
        case Paragraph():
            text = _line(block.text)
            yield f"**{text}**" if block.tone in ("strong", "bad") else text
        case KeyFigures():
            yield "\n".join(
                f"- {_inline(figure.label)}: **{_cell(figure.value)}**"
                + (f" ({_inline(figure.note)})" if figure.note else "")
                for figure in block.figures
            )
        case Table():
            if block.caption:
                yield f"**{_inline(block.caption)}**"
            yield _table(block) if block.rows else "None."
        case Alerts():
            lines = [f"> [!WARNING]\n> **{_inline(block.title)}**", ">"]
            for index, alert in enumerate(block.alerts, 1):
                remedy = f" → {_inline(alert.remedy)}" if alert.remedy else ""
                lines.append(f"> {index}. {_inline(alert.message)}{remedy}")
            yield "\n".join(lines)
        case Notes():
            notes = "\n".join(f"- {_inline(note)}" for note in block.notes)
            yield f"<details><summary>{_inline(block.title or 'Notes')}</summary>\n\n{notes}\n\n</details>"
        case Listing():
            yield f"**{_inline(block.caption)}**"
            yield _fenced(block)
        case Chart():
            yield f"**{_inline(block.title)}**: {_inline(block.takeaway)}"


def _table(block: Table) -> str:
    heads = [_inline(f"{column.head} ({column.unit})" if column.unit else column.head) for column in block.columns]
    lines = [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join('---:' if column.align == 'right' else ':---' for column in block.columns)}|",
        *(f"| {' | '.join(_row(each))} |" for each in block.rows),
    ]
    return "\n".join(lines)


def _row(each: Row) -> Iterator[str]:
    for cell in each.cells:
        text = _cell(cell)
        strong = each.kind != "plain" or cell.tone in ("strong", "bad")
        yield f"**{text}**" if strong and text else text


def _cell(cell: Cell) -> str:
    indent = "&nbsp;" * (2 * (len(cell.text) - len(cell.text.lstrip())))
    text = indent + _inline(cell.text)
    return f"{text} <sup>{MARKS[cell.origin]}</sup>" if cell.origin else text


def _fenced(block: Listing) -> str:
    """As a block of code whose fence is longer than any within."""
    longest = max((len(run) for run in re.findall(r"`+", block.text)), default=0)
    fence = "`" * max(3, longest + 1)
    text = "\n".join(_CONTROL.sub(" ", line) for line in block.text.rstrip("\n").split("\n"))
    return f"{fence}{block.language}\n{text}\n{fence}"


def _line(text: str) -> str:
    """A text at the start of a line, where a dash would begin a list."""
    return _LINE_START.sub(r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    text = _CONTROL.sub(" ", text).strip()
    return _SPECIAL.sub(r"\\\1", text).replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\@", "&#64;")
