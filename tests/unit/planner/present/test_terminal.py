"""A terminal, a pipe, a log: nothing is cut, nothing steers the terminal, colour adds nothing."""

import io
import re

import pytest

from genai_finops.planner.present import terminal
from genai_finops.planner.present.document import Column, Document, Table, number, row
from tests.unit.planner.present.pages import HOSTILE, page

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 100, 120, 140])
@pytest.mark.parametrize("color", [False, True])
def test_no_line_is_wider_than_the_window_and_nothing_is_cut(width, color):
    text = ESCAPE.sub("", terminal.render(page("a-name-of-a-model-that-goes-on-and-on"), width=width, color=color))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for figure in ("$1,416.96 f", "1,428.96", "4.72 ± 20% e", "12.00", "+ new:", "730 h a month."):
        assert figure in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_colour_changes_no_word(width):
    plain = terminal.render(page(), width=width)
    colored = terminal.render(page(), width=width, color=True)
    assert "\x1b" not in plain
    assert ESCAPE.search(colored)
    assert words(ESCAPE.sub("", colored)) == words(plain)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_in_a_file_does_not_steer_the_terminal(hostile):
    text = terminal.render(page(hostile), width=120)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text)


def test_an_ascii_locale_gets_ascii():
    text = terminal.render(page("–×−→±≤≥…"), width=80, ascii_only=True)
    assert text.isascii()
    assert "4.72 +/- 20% e" in text
    assert "?" not in text


def test_numbers_end_under_each_other_marked_or_not():
    text = terminal.render(page(), width=100)
    lines = [line for line in text.splitlines() if ("1,416.96" in line and "4.72" in line) or "1,428.96" in line]
    ends = {line.index(".96") for line in lines}
    assert len(lines) == 2
    assert len(ends) == 1


def wide(name: str = "inf2.xlarge") -> Document:
    columns = (Column("Instance"), *(number(f"A rather long head {index}", "USD") for index in range(5)))
    rows = tuple(row(f"{name}-{each}", *(f"{index},{each:03}.00" for index in range(5))) for each in range(2))
    return Document("x", "", (Table("Wide", columns, rows),))


def test_a_table_too_wide_goes_on_in_another_with_its_first_column():
    text = terminal.render(wide(), width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("inf2.xlarge-0") == text.count("inf2.xlarge-1") > 1
    assert [f"{index},{each:03}.00" in text for index in range(5) for each in range(2)] == [True] * 10
    assert text.count("Wide") == 1


def test_a_table_whose_names_leave_no_room_becomes_a_list():
    text = terminal.render(wide("a-very-long-name-" * 3), width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert [f"{index},000.00 USD" in text for index in range(5)] == [True] * 5


def test_an_empty_table_says_so():
    assert "Nothing here\nNone." in terminal.render(page())


@pytest.mark.parametrize(
    ("environment", "terminal_like", "colored"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_is_for_terminals_that_welcome_it(monkeypatch, environment, terminal_like, colored):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    stream.isatty = lambda: terminal_like
    assert terminal.shows_color(stream) is colored


def test_an_encoding_that_cannot_hold_the_signs_is_known():
    assert [terminal.takes(encoding) for encoding in ("utf-8", "ascii", "latin-1", None)] == [True, False, False, True]


def test_the_marks_are_explained_where_they_are_used():
    assert "f fitted, e extrapolated" in words(terminal.render(page(), width=100))
    assert "extrapolated" not in terminal.render(Document("x", "", ()))
