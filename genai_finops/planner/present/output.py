"""Where a page goes: to standard output as it can show it, or into a file that is there whole or not at all."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, TextIO

from genai_finops.planner.present.document import Document

Format = Literal["table", "json", "html", "markdown"]
FORMATS: Final[tuple[Format, ...]] = ("table", "json", "html", "markdown")


def rendered(
    document: Document, form: Literal["table", "html", "markdown"], *, stream: TextIO | None, color: bool, charts: bool
) -> str:
    """The document in one of its forms.

    Args:
        stream: that a table is for: its width, its characters, and colour on a terminal only; None is a file.
        color: False never writes colour.
        charts: draws them, which takes vl-convert; without, a chart is its sentence.
    """
    if form == "markdown":
        from genai_finops.planner.present import markdown

        return markdown.render(document)
    if form == "html":
        from genai_finops.planner.present import html

        if not charts:
            return html.render(document)
        from genai_finops.planner.report.drawing import draw

        return html.render(document, draw)
    from genai_finops.planner.present import terminal

    if stream is None:
        return terminal.render(document, width=terminal.window_width())
    return terminal.render(
        document,
        width=terminal.window_width(),
        color=color and terminal.shows_color(stream),
        ascii_only=not terminal.takes(stream.encoding),
    )


def write(text: str, file: Path | None) -> None:
    """Into `file`, replaced as a whole when all of it is there; to standard output without one.

    Raises:
        OSError: when the file cannot be written; what was there before is still there.
    """
    if file is None:
        _to_stdout(text)
    else:
        write_whole(file, lambda stream: stream.write(text))


def write_whole(file: Path, fill: Callable[[TextIO], object]) -> None:
    """Lets `fill` write a file beside `file` and puts it in its place.

    Raises:
        OSError: when it cannot be written. Whatever is raised, what was there before is still there.
    """
    file = file.resolve()  # a link stays one
    if file.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and not file.is_file():  # a pipe or a device has no whole to be replaced
        with file.open("w", encoding="utf-8") as stream:
            fill(stream)
        return
    number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    beside = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as stream:
            fill(stream)
        beside.chmod(file.stat().st_mode if file.exists() else 0o666 & ~_umask())
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _to_stdout(text: str) -> None:
    """As UTF-8 where the locale's own encoding cannot hold it: a page says itself that it is UTF-8."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.flush()
