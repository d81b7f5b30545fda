"""The page of `calibrate`: how far the fitted profile is from what was measured, the tail included."""

from genai_finops.planner.present import common, values
from genai_finops.planner.present.document import (
    Cell,
    Column,
    Document,
    Figure,
    KeyFigures,
    Row,
    Table,
    number,
    row,
)
from genai_finops.planner.results import Calibration, CalibrationError


def page(result: Calibration) -> Document:
    worst = max(result.errors, key=lambda error: abs(error.relative_error), default=None)
    failed = f"{values.count(result.failed)} failed and left out" if result.failed else "none failed"
    figures: tuple[Figure, ...] = (
        Figure("Requests", Cell(values.count(result.requests)), failed),
        Figure("Error bar of decoding", Cell(f"± {values.percent(result.decode_relative_error)}", origin="measured")),
        Figure("Error bar of prefill", Cell(f"± {values.percent(result.prefill_relative_error)}", origin="measured")),
    )
    if worst is not None:
        where = f"{_LATENCIES[worst.latency]}, {worst.statistic}, {worst.file}"
        figures += (Figure("Furthest off", Cell(_signed(worst.relative_error)), where),)
    return Document(
        f"Measured: {result.model} on {result.instance}",
        f"Tensor parallel size {result.tensor_parallel_size}; {', '.join(result.formats)}.",
        (
            KeyFigures(figures),
            Table(
                "Measured and fitted",
                (
                    Column("Result"),
                    number("At once"),
                    Column("Latency"),
                    Column(""),
                    number("Measured", "ms"),
                    number("Fitted", "ms"),
                    number("Error"),
                ),
                tuple(_row(error, result) for error in result.errors),
            ),
            common.notes("How it was read", result.notes),
        ),
    )


_LATENCIES = {
    "time to first token": "first token",
    "inter token": "between tokens, each gap",
    "request inter token": "between tokens, mean of a request",
    "end to end": "end to end",
}


def _row(error: CalibrationError, result: Calibration) -> Row:
    """An error beyond both error bars stands out: there the profile promises more than it knows."""
    bar = max(result.decode_relative_error, result.prefill_relative_error)
    beyond = abs(error.relative_error) >= bar
    return row(
        error.file,
        "" if error.concurrency is None else f"{error.concurrency:g}",
        _LATENCIES[error.latency],
        error.statistic,
        values.milliseconds(error.measured_seconds),
        values.milliseconds(error.fitted_seconds),
        Cell(_signed(error.relative_error), "bad" if beyond else "plain"),
    )


def _signed(share: float) -> str:
    text = values.percent(share)
    return text if share <= 0 else f"+{text}"
