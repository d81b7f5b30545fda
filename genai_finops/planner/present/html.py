"""A document as one web page that needs nothing else: no script, no font, no request.

It is read in a window, on a phone and on paper, in light and in dark, and by those who hear it. Colours live in the
style sheet alone; a chart's own are replaced there by attribute, so that one drawing serves both.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, Final

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
)
from genai_finops.planner.present.style import STYLE

Draw = Callable[[Mapping[str, Any]], str]
"""A Vega-Lite specification as an SVG element."""

STACKED_FROM: Final = 4
"""Columns from which a table is shown row by row on a phone."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def render(document: Document, draw: Draw | None = None) -> str:
    """The whole page. Everything that was read from files is escaped.

    Args:
        draw: for the charts; without it only their takeaways are shown.
    """
    page = _Page(draw)
    parts = [part for block in document.blocks for part in page.block(block)]
    contents = _contents(document)
    legend = f'<p class="legend">{_text(document.legend)}</p>' if document.legend else ""
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{_text(document.title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<header><h1>{_text(document.title)}</h1>",
            f'<p class="subtitle">{_text(document.subtitle)}</p></header>',
            *contents,
            *parts,
            legend,
            "</main>",
            "</body>",
            "</html>",
            "",
        )
    )


def _contents(document: Document) -> Iterator[str]:
    headings = [block for block in document.blocks if isinstance(block, Heading)]
    if len(headings) > 2:
        links = "".join(
            f'<li><a href="#s{index}">{_text(heading.text)}</a></li>' for index, heading in enumerate(headings, 1)
        )
        yield f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


class _Page:
    def __init__(self, draw: Draw | None) -> None:
        self._draw, self._headings, self._charts = draw, 0, 0

    def block(self, block: Block) -> Iterator[str]:
        match block:
            case Heading():
                self._headings += 1
                yield f'<h2 id="s{self._headings}">{_text(block.text)}</h2>'
            case Paragraph():
                yield f'<p class="{block.tone}">{_text(block.text)}</p>'
            case KeyFigures():
                yield _figures(block)
            case Table():
                yield _table(block)
            case Alerts():
                yield _alerts(block)
            case Notes():
                title = f'<p class="title">{_text(block.title)}</p>' if block.title else ""
                notes = "".join(f"<li>{_text(note)}</li>" for note in block.notes)
                yield f'<section class="notes">{title}<ul>{notes}</ul></section>'
            case Listing():
                code = f'<pre tabindex="0"><code>{_lines(block.text)}</code></pre>'
                yield f'<figure class="listing"><figcaption>{_text(block.caption)}</figcaption>{code}</figure>'
            case Chart():
                yield self._chart(block)

    def _chart(self, block: Chart) -> str:
        heading = f"<h3>{_text(block.title)}</h3>"
        takeaway = f"<figcaption>{_text(block.takeaway)}</figcaption>"
        if self._draw is None or not block.wide:
            return f"<figure>{heading}{takeaway}</figure>"
        drawn = "".join(
            self._drawn(spec, width, block.description)
            for spec, width in ((block.wide, "wide"), (block.narrow, "narrow"))
        )
        return f'<figure class="chart">{heading}{takeaway}{drawn}</figure>'

    def _drawn(self, spec: Mapping[str, Any], width: str, description: str) -> str:
        assert self._draw is not None
        self._charts += 1
        svg = _own_names(self._draw(spec), f"c{self._charts}-")
        return f'<div class="{width}" role="img" aria-label="{_text(description)}">{svg}</div>'


def _own_names(svg: str, prefix: str) -> str:
    """Names are of the whole page, and each chart calls its first clipping path the same."""
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = svg.replace("url(#", f"url(#{prefix}")
    return re.sub(r'href="#', f'href="#{prefix}', svg)


def _figures(block: KeyFigures) -> str:
    figures = "".join(
        f'<div class="figure {figure.value.tone}"><dt>{_text(figure.label)}</dt>'
        f"<dd>{_cell(figure.value)}</dd>"
        + (f'<dd class="note">{_text(figure.note)}</dd>' if figure.note else "")
        + "</div>"
        for figure in block.figures
    )
    return f'<dl class="figures">{figures}</dl>'


def _table(block: Table) -> str:
    if not block.rows:
        return f"<p><strong>{_text(block.caption)}</strong><br>None.</p>"
    stacked = " stacked" if len(block.columns) >= STACKED_FROM else ""
    heads = "".join(
        f'<th role="columnheader" scope="col" class="{column.align}">{_head(column)}</th>' for column in block.columns
    )
    rows = "".join(_row(each, block.columns) for each in block.rows)
    # The roles hold where the style sheet shows rows as blocks, which takes the table away from who hears the page.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(block.caption)}">'
        f'<table role="table" class="data{stacked}"><caption>{_text(block.caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div>'
    )


def _head(column: Column) -> str:
    unit = f' <span class="unit">{_text(column.unit)}</span>' if column.unit else ""
    return f"{_text(column.head)}{unit}"


def _row(each: Row, columns: tuple[Column, ...]) -> str:
    cells = []
    for index, (cell, column) in enumerate(zip(each.cells, columns, strict=True)):
        head = f"{column.head} {column.unit}".strip()
        classes = f"{column.align} {cell.tone}{' wraps' if column.wraps else ''}"
        indent = len(cell.text) - len(cell.text.lstrip())
        style = f' style="padding-left:{indent * 0.6 + 0.5:.1f}em"' if indent else ""
        empty = "" if cell.text else " empty"
        if index == 0:
            cells.append(f'<th role="rowheader" scope="row" class="{classes}"{style}>{_cell(cell)}</th>')
        else:
            label = _text(head)
            cells.append(
                f'<td role="cell" class="{classes}{empty}" data-head="{label}"><span>{_cell(cell)}</span></td>'
            )
    return f'<tr role="row" class="{each.kind}">{"".join(cells)}</tr>'


def _alerts(block: Alerts) -> str:
    alerts = "".join(
        f"<li>{_text(alert.message)}"
        + (f'<br><span class="remedy">→ {_text(alert.remedy)}</span>' if alert.remedy else "")
        + "</li>"
        for alert in block.alerts
    )
    return f'<section class="alerts" role="note"><p class="title">{_text(block.title)}</p><ol>{alerts}</ol></section>'


def _cell(cell: Cell) -> str:
    text = _text(cell.text.strip()).replace("\n", "<br>")
    if cell.origin is None:
        return text
    return f'{text} <abbr class="origin" title="{cell.origin}">{MARKS[cell.origin]}</abbr>'


def _lines(text: str) -> str:
    """With what was added and taken away in a diff set off."""
    marked = {"+": "ins", "-": "del"}
    parts = []
    for line in text.rstrip("\n").split("\n"):
        tag = marked.get(line[:1]) if not line.startswith(("+++", "---")) else None
        parts.append(f"<{tag}>{_text(line)}</{tag}>" if tag else _text(line))
    return "\n".join(parts)


def _text(text: str) -> str:
    return escape(_CONTROL.sub("", text), quote=True)
