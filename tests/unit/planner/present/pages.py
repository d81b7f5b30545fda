"""A page with every kind of block, and one whose every text tries to break out of its place."""

from genai_finops.planner.present.document import (
    Alert,
    Alerts,
    Cell,
    Chart,
    Column,
    Document,
    Figure,
    Heading,
    KeyFigures,
    Listing,
    Notes,
    Paragraph,
    Table,
    number,
    row,
)

BAR = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "data": {"values": [{"a": "x", "b": 1}]},
    "mark": {"type": "bar", "clip": True},
    "encoding": {"x": {"field": "a", "type": "nominal"}, "y": {"field": "b", "type": "quantitative"}},
}

COLUMNS = (Column("Instance"), number("A month", "USD"), number("1M tokens", "USD"), Column("Why not", wraps=True))


def page(text: str = "llama3-8b") -> Document:
    """Every kind of block, with `text` wherever a text may come from a file."""
    return Document(
        f"What {text} costs",
        text,
        (
            KeyFigures((Figure(text, Cell("$1,416.96", "good", "fitted"), f"at 730 h, {text}"),)),
            Alerts("1 warning", (Alert(text, f"Do something about {text}."),)),
            Heading(text),
            Paragraph(text, "bad"),
            Table(
                text,
                (
                    Column("Instance"),
                    number("A month", "USD"),
                    number("1M tokens", "USD"),
                    Column("Why not", wraps=True),
                ),
                (
                    row(text, "1,416.96", Cell("4.72 ± 20%", origin="extrapolated"), f"costs more than {text}"),
                    row("  inf2.xlarge", Cell("12.00", "bad"), "", ""),
                    row("OVERALL TOTAL", "1,428.96", "", "", kind="total"),
                ),
            ),
            Table("Nothing here", (Column("Instance"),), ()),
            Heading("Third"),
            Heading("Fourth"),
            Chart("A chart", text, text, BAR, BAR),
            Listing(text, f"- old: {text}\n+ new: {text}\n", "diff"),
            Notes(text, (text, "730 h a month.")),
        ),
    )


HOSTILE = (
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "a | b | c",
    "```\n# heading",
    "\x1b[31mred\x1b[0m",
    "![x](https://example.com/x.png)",
    "@everyone",
    "\u202egnp.exe",
)
