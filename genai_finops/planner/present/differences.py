"""The page of `diff`: what a change costs, line by line, as a table and as a pull-request comment."""

from collections.abc import Iterator
from decimal import Decimal

from genai_finops.planner.present import common, values
from genai_finops.planner.present.document import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    KeyFigures,
    Row,
    Table,
    Tone,
    number,
    row,
)
from genai_finops.planner.results import Difference, DifferenceLine, ServiceChange
from genai_finops.spec.advice import HOURS_A_MONTH


def page(result: Difference) -> Document:
    names = result.after if result.before == result.after else f"{result.before} → {result.after}"
    change = f"{values.usd_change(result.change_usd)} a month"
    if result.change_share is not None:
        change += f" ({values.percent_change(result.before_usd, result.after_usd)})"
    return Document(f"Monthly cost of {names}: {change}", _basis(result), tuple(_blocks(result)))


def _basis(result: Difference) -> str:
    if result.basis == "simulated":
        return f"Both simulated on the same traffic, a month of {HOURS_A_MONTH} hours of it."
    return (
        f"Models at min_replicas whenever awake, on Spot where allowed, {HOURS_A_MONTH} hours a month; "
        "with --traffic both are simulated."
    )


def _blocks(result: Difference) -> Iterator[Block]:
    yield KeyFigures(tuple(_figures(result)))
    yield from common.alerts(result.warnings)
    yield _lines(result)
    if result.service:
        yield _service(result.service)
    unchanged = sum(line.sign == " " for line in result.lines)
    yield common.notes(
        "Key",
        (
            "~ changed, + added, - removed; before → after.",
            f"{values.plural(unchanged, 'line')} without a change {'is' if unchanged == 1 else 'are'} left out.",
        ),
    )


def _figures(result: Difference) -> Iterator[Figure]:
    yield Figure("A month", Cell(_both(result.before_usd, result.after_usd), _tone(result.change_usd)))
    yield Figure("At most, all at max_replicas", Cell(_both(result.before_ceiling_usd, result.after_ceiling_usd)))
    if result.after_budget_usd is not None:
        tone: Tone = "bad" if result.is_over_budget else "good"
        word = "exceeded" if result.is_over_budget else "kept"
        yield Figure("Budget", Cell(values.usd(result.after_budget_usd), tone), word)


def _both(before: Decimal | None, after: Decimal | None) -> str:
    return f"{values.usd(before)} → {values.usd(after)}"


def _tone(change: Decimal | None) -> Tone:
    if not change:
        return "plain"
    return "bad" if change > 0 else "good"


def _lines(result: Difference) -> Table:
    rows: list[Row] = []
    for group in dict.fromkeys(line.group for line in result.lines):
        changed = [line for line in result.lines if line.group == group and line.sign != " "]
        if changed:
            rows.append(row(group, "", "", "", "", kind="group"))
            rows += map(_line, changed)
    if not rows:
        rows.append(row("No line changes.", "", "", "", "", tone="quiet"))
    rows.append(
        row(
            "OVERALL TOTAL",
            values.usd(result.before_usd),
            values.usd(result.after_usd),
            Cell(values.usd_change(result.change_usd), _tone(result.change_usd)),
            values.percent_change(result.before_usd, result.after_usd),
            kind="total",
        )
    )
    return Table(
        "What changes in a month",
        (Column("Item"), number("Before"), number("After"), number("Change"), number("")),
        tuple(rows),
    )


def _line(line: DifferenceLine) -> Row:
    before = "–" if line.sign == "+" else values.usd(line.before_usd)
    after = "–" if line.sign == "-" else values.usd(line.after_usd)
    share = {"+": "new", "-": "gone"}.get(line.sign) or values.percent_change(line.before_usd, line.after_usd)
    change = Cell(values.usd_change(line.change_usd), _tone(line.change_usd))
    return row(f"{line.sign} {line.name}", before, after, change, share)


def _service(service: tuple[ServiceChange, ...]) -> Table:
    return Table(
        "Objectives",
        (
            Column("Model"),
            Column("Before"),
            Column("After"),
            number("Good requests"),
            number("First token, p95", "ms"),
        ),
        tuple(
            row(
                each.model,
                common.verdict(each.before_verdict),
                common.verdict(each.after_verdict),
                f"{_share(each.before_attainment_share)} → {_share(each.after_attainment_share)}",
                f"{_time(each.before_time_to_first_token_p95_seconds)} → "
                f"{_time(each.after_time_to_first_token_p95_seconds)}",
            )
            for each in service
        ),
    )


def _share(share: float | None) -> str:
    return "–" if share is None else values.percent(share)


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else values.milliseconds(seconds)
