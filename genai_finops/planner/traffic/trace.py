"""Traces of requests, read as a stream: a file of gigabytes needs no more memory than one of kilobytes.

Three forms, told apart by their header: Azure's LLM inference traces, BurstGPT, and the planner's own, in which any
traffic can be written and is read back the same to the bit. A trace is read twice: once to check every line before
anything is computed, and then as often as it is asked for.
"""

import csv
import gzip
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Final, TextIO

import numpy as np

from genai_finops.planner.traffic.errors import TrafficError
from genai_finops.planner.traffic.requests import Requests, Traffic

CHUNK_REQUESTS: Final = 65_536
MOST_TOKENS: Final = 10_000_000
"""Of one prompt or answer: no model takes as many."""

UNDATED_START: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday, for traces that say how long after their start requests came, and not on what day."""

_NANOSECONDS: Final = 1_000_000_000
_TEXT_TIME: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?")
_OWN_HEAD: Final = re.compile(r"# start: (\S+), duration_seconds: (\S+)")
_OWN_COLUMNS: Final = ("arrival_seconds", "input_tokens", "output_tokens")

Moment = int | float
"""Nanoseconds since 1970 where the file has text times or decimal seconds; seconds since the start in our own form."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of trace."""

    name: str
    arrival: str
    input_tokens: str
    output_tokens: str


FORMS: Final = (
    Form("Azure LLM inference trace", "TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    Form("BurstGPT", "Timestamp", "Request tokens", "Response tokens"),
    Form("own", *_OWN_COLUMNS),
)


@dataclass(frozen=True, slots=True)
class Trace:
    """A checked file.

    Attributes:
        left_out: rows without tokens, which nothing was generated for: requests that failed where they were recorded.
    """

    file: Path
    form: Form
    start: datetime
    duration_seconds: float
    requests: int
    left_out: int
    _first: Moment = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.file.name} without {self.left_out} empty rows" if self.left_out else self.file.name

    def chunks(self) -> Iterator[Requests]:
        arrivals: list[float] = []
        inputs: list[int] = []
        outputs: list[int] = []
        for row in _rows(self.file, self.form):
            if row is None:
                continue
            moment, input_tokens, output_tokens = row
            arrivals.append(_seconds(moment, self._first))
            inputs.append(input_tokens)
            outputs.append(output_tokens)
            if len(arrivals) == CHUNK_REQUESTS:
                yield _chunk(arrivals, inputs, outputs)
                arrivals, inputs, outputs = [], [], []
        if arrivals:
            yield _chunk(arrivals, inputs, outputs)


def read_trace(file: Path) -> Trace:
    """Checks every line.

    Raises:
        TrafficError: with the line, what it holds, and what is allowed.
        OSError: when there is no such file.
    """
    form, head = _form(file)
    first: Moment | None = None
    last: Moment | None = None
    requests = left_out = 0
    for row in _rows(file, form):
        if row is None:
            left_out += 1
            continue
        first = row[0] if first is None else first
        last = row[0]
        requests += 1
    if first is None or last is None:
        raise TrafficError(file, "", "holds no requests", "Give a trace with at least two requests.")
    if form.name == "own":
        start, duration = head or (UNDATED_START, None)
        first = 0.0
        duration = float(last) if duration is None else duration
        if duration < last:
            raise TrafficError(
                file, "line 1", f"has a duration of {duration:g} s, and the last request comes after {last:g} s",
                "Make it at least as long.",
            )  # fmt: skip
    else:
        start = _day(first) if form.arrival == "TIMESTAMP" else UNDATED_START
        duration = _seconds(last, first)
    if duration <= 0:
        raise TrafficError(
            file,
            "",
            f"holds {requests} request{'s' if requests > 1 else ''} at one moment",
            "No rate can be read from that: give a trace that lasts.",
        )
    return Trace(file, form, start, duration, requests, left_out, first)


def write_trace(traffic: Traffic, stream: TextIO) -> None:
    """In the planner's own form: read back, it is the same traffic to the bit."""
    stream.write(f"# start: {traffic.start.isoformat()}, duration_seconds: {traffic.duration_seconds!r}\n")
    stream.write(",".join(_OWN_COLUMNS) + "\n")
    for chunk in traffic.chunks():
        columns = zip(
            chunk.arrival_seconds.tolist(), chunk.input_tokens.tolist(), chunk.output_tokens.tolist(), strict=True
        )
        stream.writelines(f"{arrival!r},{given},{generated}\n" for arrival, given, generated in columns)


def _open(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _form(file: Path) -> tuple[Form, tuple[datetime, float | None] | None]:
    head: tuple[datetime, float | None] | None = None
    try:
        with _open(file) as opened:
            line = opened.readline()
            if line.startswith("#"):
                head = _own_head(file, line)
                line = opened.readline()
    except (UnicodeDecodeError, gzip.BadGzipFile):
        raise TrafficError(file, "", "is not text", "Give a CSV file in UTF-8, or one packed by gzip.") from None
    if not line.strip():
        raise TrafficError(file, "", "is empty", "Give a trace with a header and at least two requests.")
    columns = [name.strip() for name in next(csv.reader([line]))]
    for form in FORMS:
        if {form.arrival, form.input_tokens, form.output_tokens} <= set(columns):
            return form, head
    known = "; ".join(f"{form.arrival}, {form.input_tokens}, {form.output_tokens}" for form in FORMS)
    raise TrafficError(file, "line 1", f"has the columns {', '.join(columns)[:200]}", f"Known are: {known}.")


def _own_head(file: Path, line: str) -> tuple[datetime, float]:
    found = _OWN_HEAD.fullmatch(line.strip())
    try:
        if found is None:
            raise ValueError
        start, duration = datetime.fromisoformat(found[1]), float(found[2])
        if start.tzinfo is None or not math.isfinite(duration):
            raise ValueError
    except ValueError:
        raise TrafficError(
            file,
            "line 1",
            f"is {line.strip()[:100]!r}",
            "Write `# start: <time with zone>, duration_seconds: <number>`.",
        ) from None
    return start, duration


def _rows(file: Path, form: Form) -> Iterator[tuple[Moment, int, int] | None]:
    """Every request in turn, checked; None for a row without tokens."""
    moment_of = _moment_reader(file, form)
    with _open(file) as opened:
        reader = csv.reader(opened)
        try:
            columns = next(reader)
            if columns and columns[0].startswith("#"):
                columns = next(reader)
            names = [name.strip() for name in columns]
            places = [names.index(name) for name in (form.arrival, form.input_tokens, form.output_tokens)]
            before: Moment | None = None
            for row in reader:
                if not row:
                    continue
                line = reader.line_num
                if len(row) != len(names):
                    raise TrafficError(
                        file,
                        f"line {line}",
                        f"has {len(row)} values",
                        f"Give one for each of the {len(names)} columns.",
                    )
                moment = moment_of(row[places[0]], line)
                given, generated = (_tokens(file, line, names[place], row[place]) for place in places[1:])
                if before is not None and moment < before:
                    raise TrafficError(
                        file, f"line {line}", f"comes before the line above it ({row[places[0]]})",
                        "Sort the requests by their time; several at one moment are fine.",
                    )  # fmt: skip
                before = moment
                yield None if given == 0 or generated == 0 else (moment, given, generated)
        except UnicodeDecodeError:
            raise TrafficError(
                file, f"line {reader.line_num + 1}", "is not text", "Give a CSV file in UTF-8."
            ) from None
        except csv.Error as error:
            raise TrafficError(file, f"line {reader.line_num}", f"is not CSV: {error}", "Correct it.") from None
        except (EOFError, gzip.BadGzipFile):
            raise TrafficError(file, "", "is a broken gzip file", "Pack it again.") from None


def _tokens(file: Path, line: int, column: str, text: str) -> int:
    digits = text.strip()
    if not digits.isdecimal() or int(digits) > MOST_TOKENS:
        raise TrafficError(
            file,
            f"line {line}",
            f"has {column} {text.strip()[:40]!r}",
            f"Use a whole number from 0 to {MOST_TOKENS:,}.",
        )
    return int(digits)


def _moment_reader(file: Path, form: Form) -> Callable[[str, int], Moment]:
    if form.arrival == "TIMESTAMP":
        return _TextTimes(file).read
    if form.name == "own":
        return lambda text, line: _number(file, line, form.arrival, text)
    return lambda text, line: round(_number(file, line, form.arrival, text) * _NANOSECONDS)


def _number(file: Path, line: int, column: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0:
        raise TrafficError(file, f"line {line}", f"has {column} {text.strip()[:40]!r}", "Use seconds, from 0 on.")
    return found


class _TextTimes:
    """Reads text times: all with a zone, or none, which is UTC."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._zoned: bool | None = None
        self._days: dict[tuple[str, str, str], int] = {}

    def read(self, text: str, line: int) -> int:
        found = _TEXT_TIME.fullmatch(text.strip())
        if found is None:
            self._refuse(text, line, "Use times such as 2026-01-05 09:00:00.25, with or without a zone.")
        assert found
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        if self._zoned is None:
            self._zoned = zone is not None
        elif self._zoned != (zone is not None):
            self._refuse(text, line, "Give every time a zone, or none (which is UTC).")
        if hour > "23" or minute > "59" or second > "59":
            self._refuse(text, line, "Use hours up to 23, minutes and seconds up to 59.")
        days = self._days.get((year, month, day))
        if days is None:
            try:
                days = (date(int(year), int(month), int(day)) - date(1970, 1, 1)).days
            except ValueError:
                self._refuse(text, line, "There is no such day.")
                raise AssertionError from None
            self._days[year, month, day] = days
        seconds = days * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second) - _offset_seconds(zone)
        return seconds * _NANOSECONDS + int((fraction or "0").ljust(9, "0"))

    def _refuse(self, text: str, line: int, fix: str) -> None:
        raise TrafficError(self._file, f"line {line}", f"has the time {text.strip()[:60]!r}", fix)


def _offset_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds


def _day(nanoseconds: Moment) -> datetime:
    seconds, rest = divmod(int(nanoseconds), _NANOSECONDS)
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds, microseconds=rest // 1000)  # noqa: UP017


def _seconds(moment: Moment, first: Moment) -> float:
    if isinstance(moment, float):
        return moment - first
    return (moment - int(first)) / _NANOSECONDS


def _chunk(arrivals: list[float], inputs: list[int], outputs: list[int]) -> Requests:
    return Requests(np.array(arrivals, np.float64), np.array(inputs, np.int32), np.array(outputs, np.int32))
