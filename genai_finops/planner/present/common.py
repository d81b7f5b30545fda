"""What the pages of several commands share: verdicts, error bars, warnings and where prices come from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeVar

from genai_finops.catalog import Purchase
from genai_finops.planner.present import values
from genai_finops.planner.present.document import Alert, Alerts, Cell, Column, Figure, Notes, Row, Table, Tone, row
from genai_finops.planner.provenance import Origin, Provenance, worst
from genai_finops.planner.results import ModelSimulation, ObjectiveTarget, PriceUsed, Run, TrafficSummary, Verdict
from genai_finops.spec import Warning
from genai_finops.spec.advice import HOURS_A_MONTH

PURCHASES: Final[Mapping[Purchase, str]] = {"spot": "Spot", "on-demand": "on demand"}
_TONES: Final[Mapping[Verdict, Tone]] = {
    "holds": "good",
    "holds at nominal only": "bad",
    "holds, slow end not run": "plain",
    "does not hold": "bad",
    "no requests": "quiet",
}

T = TypeVar("T")


def verdict(found: Verdict | None) -> Cell:
    """Whether the objective is met; a dash where nothing was simulated."""
    return Cell("–", "quiet") if found is None else Cell(found, _TONES[found])


def bought(instance: str, purchases: Sequence[Purchase]) -> str:
    """`inf2.xlarge, Spot then on demand`."""
    return f"{instance}, {' then '.join(PURCHASES[purchase] for purchase in purchases)}"


def interval(low: Decimal | None, high: Decimal | None) -> str:
    """`$3.30–5.00`: both ends of an error bar; a slow end that does not meet the objective has no cost."""
    if low is None or high is None:
        return f"from {values.usd(low)}" if low is not None else ""
    first, second = values.usd(low), values.usd(high)
    return "" if first == second else f"{first}–{second.removeprefix('$')}"


def objective(target: ObjectiveTarget) -> str:
    """`first token within 2 s and 50 ms between tokens for 99% of requests`."""
    parts = [f"first token within {values.stated(target.time_to_first_token_seconds)}"]
    if target.inter_token_seconds is not None:
        parts.append(f"{values.stated(target.inter_token_seconds)} between tokens")
    return f"{' and '.join(parts)}, for {target.percent:g}% of requests"


def traffic(found: TrafficSummary) -> str:
    """What was simulated, in one line."""
    mean = found.requests / found.duration_seconds if found.duration_seconds else 0.0
    tokens = f"{values.count(found.input_tokens)} tokens in, {values.count(found.output_tokens)} out"
    return (
        f"{found.name}: {values.plural(found.requests, 'request')} in {values.duration(found.duration_seconds)} from "
        f"{found.start:%Y-%m-%d %H:%M %Z}, {tokens}; {values.significant(mean)} a second, "
        f"{values.significant(found.peak_requests_per_second)} in the busiest minute."
    )


def alerts(warnings: Iterable[Warning]) -> Iterator[Alerts]:
    """One block, or none; what is said twice is shown once."""
    found = dict.fromkeys((warning.path, warning.message, warning.remedy) for warning in warnings)
    shown = tuple(Alert(f"{path}: {message}" if path else message, remedy) for path, message, remedy in found)
    if shown:
        yield Alerts(values.plural(len(shown), "warning"), shown)


def price_notes(prices: Iterable[PriceUsed]) -> Iterator[str]:
    """Where prices come from and of which day they are, one line for each list."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for price in prices:
        if price.usd_hour is None:
            continue
        day = f" of {price.checked}" if price.checked else ""
        found.setdefault((price.source, day, price.region), {})[price.instance] = None
    for (source, day, region), instances in found.items():
        yield f"Prices of {', '.join(instances)}: {source}{day}, {region}."


def performance_notes(name: str, decode: Origin, prefill: Origin) -> Iterator[str]:
    """How far the performance behind a result is known."""
    for what, origin in (("decoding", decode), ("prefill", prefill)):
        yield f"{name}, {what}: {origin.provenance}, ± {origin.relative_error:.0%}; {origin.source}."


def month_note(price_region: str, region: str) -> str:
    return f"A month has {HOURS_A_MONTH} hours. {region_note(price_region, region)}"


def region_note(price_region: str, region: str) -> str:
    differs = f"; {region} differs" if region != price_region else ""
    return f"Prices are of {price_region}{differs}."


def unit_costs(model: ModelSimulation) -> tuple[Figure, ...]:
    """Dollars for tokens and for a request served well, with their error bars."""

    def figure(label: str, name: str, note: str = "") -> Figure:
        def value(run: Run) -> Decimal | None:
            found: Decimal | None = getattr(run.unit_cost, name)
            return found

        bar = model.band(value)
        text = values.usd(value(model.nominal))
        ends = interval(bar[0], bar[2]) if bar else ""
        return Figure(label, Cell(text, origin=origin(model)), "; ".join(filter(None, (ends, note))))

    return (
        figure("1M input tokens", "usd_per_million_input_tokens"),
        figure("1M output tokens", "usd_per_million_output_tokens"),
        figure("1M tokens, in and out", "usd_per_million_total_tokens"),
        figure("A request that met its objective", "usd_per_good_request"),
    )


def origin(model: ModelSimulation) -> Provenance:
    """What can be said of everything that was simulated with this performance."""
    return worst(model.decode_origin.provenance, model.prefill_origin.provenance)


def by_reason(caption: str, head: str, ruled_out: Iterable[tuple[str, str]]) -> Iterator[Table]:
    """Names that share a reason in one row; no table without any."""
    reasons: dict[str, list[str]] = {}
    for name, reason in ruled_out:
        names = reasons.setdefault(reason, [])
        if name not in names:
            names.append(name)
    rows: tuple[Row, ...] = tuple(row(", ".join(names), reason) for reason, names in reasons.items())
    if rows:
        yield Table(caption, (Column(head, wraps=True), Column("Why not", wraps=True)), rows)


def notes(title: str, found: Iterable[str]) -> Notes:
    """Each once."""
    return Notes(title, tuple(dict.fromkeys(found)))
