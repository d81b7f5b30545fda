"""Markdown for a pull request: what GitHub makes of it is what was meant."""

import re

import pytest
from markdown_it import MarkdownIt

from genai_finops.planner.present import markdown
from genai_finops.planner.present.document import Document, Listing, Paragraph
from tests.unit.planner.present.pages import HOSTILE, page

GITHUB = MarkdownIt("commonmark").enable("table")


def as_html(text: str) -> str:
    return GITHUB.render(text)


def test_a_table_is_one_table_with_all_its_cells():
    shown = as_html(markdown.render(page()))
    assert shown.count("<table>") == 1
    assert shown.count("<tr>") == 4
    assert re.search(r"<td[^>]*>1,416.96</td>", shown)
    assert "<strong>OVERALL TOTAL</strong>" in shown


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_in_a_file_stays_text(hostile):
    text = markdown.render(page(hostile))
    shown = as_html(text)
    assert "<script" not in shown
    assert "<script" not in text.replace(listing(text), "")
    assert "<img" not in shown
    assert "<h1>" not in shown
    assert shown.count("<tr>") == 4
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text)
    assert "@everyone" not in text.replace(listing(text), "")


def listing(text: str) -> str:
    """The block of code: in it nothing has a meaning."""
    return re.search(r"`{3,}diff\n.*\n`{3,}\n", text, re.DOTALL)[0]


def test_a_fence_is_longer_than_any_within():
    text = markdown.render(Document("x", "", (Listing("y", "````\nz", "yaml"),)))
    assert "`````yaml\n````\nz\n`````" in text


def test_a_dash_at_the_start_is_no_list():
    assert "<li>" not in as_html(markdown.render(Document("x", "", (Paragraph("- 5 USD"),))))


def test_a_mark_is_raised_and_explained():
    text = markdown.render(page())
    assert "4.72 ± 20% <sup>e</sup>" in text
    assert "e extrapolated" in text
