"""The page is well-formed, needs nothing from elsewhere, and shows what was read from files as text."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from genai_finops.planner.present import html, style
from genai_finops.planner.report.drawing import draw
from tests.unit.planner.present.pages import HOSTILE, page

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Elements(HTMLParser):
    """Opening tags with their attributes; complains about what is closed twice or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def elements(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_in_a_file_becomes_text_and_nothing_else(hostile):
    assert shapes(html.render(page(hostile))) == shapes(html.render(page()))


def shapes(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Elements with the names of their attributes; what a line break becomes is left out."""
    found = elements(text).found
    return [(tag, tuple(attributes)) for tag, attributes in found if tag not in ("br", "ins", "del")]


def test_the_page_needs_nothing_from_elsewhere():
    text = html.render(page(), draw)
    names = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink")
    without_names = text
    for name in names:
        without_names = without_names.replace(name, "")
    assert "://" not in without_names
    assert "url(" not in re.sub(r"url\(#c\d+-", "", text)
    assert not {tag for tag, _ in elements(text).found} & {"script", "link", "img", "iframe", "object", "embed"}
    assert "default-src 'none'" in text


def test_names_are_unique_over_all_charts_and_each_reference_has_its_target():
    text = html.render(page(), draw)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)


def test_every_chart_table_and_field_can_be_heard():
    found = elements(html.render(page(), draw)).found
    pictures = [attributes for tag, attributes in found if attributes.get("role") == "img"]
    assert len(pictures) == 2
    assert all(attributes["aria-label"] for attributes in pictures)
    tags = [tag for tag, _ in found]
    assert tags.count("caption") == tags.count("table") == 1
    assert ("html", {"lang": "en"}) in found
    assert tags.count("h1") == 1
    headings = [tag for tag in tags if re.fullmatch(r"h\d", tag)]
    assert all(int(after[1]) - int(before[1]) <= 1 for before, after in pairwise(headings))


def test_without_charts_their_sentence_remains():
    assert "<svg" not in html.render(page())


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def schemes() -> list[dict[str, str]]:
    """The colours of the light and of the dark scheme, by name."""
    blocks = re.findall(r":root\{([^}]*)\}", style.STYLE)[:2]
    return [dict(re.findall(r"--([\w-]+):(#\w{6})", block)) for block in blocks]


@pytest.mark.parametrize("scheme", schemes(), ids=["light", "dark"])
def test_text_stands_out_from_its_background(scheme):
    pairs = [
        *((text, page) for text in ("ink", "quiet", "accent", "good", "bad") for page in ("page", "panel")),
        ("bad", "bad-page"), ("quiet", "bad-page"), ("ink", "warn-page"), ("warn", "warn-page"), ("quiet", "warn-page"),
    ]  # fmt: skip
    weak = [(text, page) for text, page in pairs if contrast(scheme[text], scheme[page]) < 4.5]
    assert weak == []
