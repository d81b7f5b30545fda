"""The page of `compare`: the article's table, what is wrong with it, and what each alternative costs."""

from collections.abc import Iterator
from typing import Final

from genai_finops.planner.present import common, values
from genai_finops.planner.present.document import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    Heading,
    KeyFigures,
    Paragraph,
    Row,
    Table,
    number,
    row,
)
from genai_finops.planner.results import Alternative, ArticleColumn, ArticleTable, ComparedLoad, Comparison

MOST_ALTERNATIVES: Final = 20
"""In the table; JSON has all."""


def page(result: Comparison) -> Document:
    return Document(
        f"What 1M tokens cost: {result.model}",
        f"{load_of(result.load)} Objective: {common.objective(result.objective)}.",
        tuple(_blocks(result)),
    )


def load_of(load: ComparedLoad) -> str:
    return (
        f"{load.name}: {values.significant(load.mean_requests_per_second)} requests a second, "
        f"{values.significant(load.peak_requests_per_second)} at the peak, each with "
        f"{values.count(load.mean_input_tokens)} tokens in and {values.count(load.mean_output_tokens)} out."
    )


def _blocks(result: Comparison) -> Iterator[Block]:
    yield Heading("The article's table, and its corrections")
    yield from article(result.article)
    yield Heading("The same question, answered for this load")
    yield from alternatives(result)
    yield Table(
        "Published costs of other workloads, to be put beside these",
        (Column("Instance"), number("1M output", "USD"), Column("Source", wraps=True)),
        tuple(
            row(
                f"{each.instance} {common.PURCHASES[each.purchase]}",
                common.interval(each.usd_per_million_output_tokens_low, each.usd_per_million_output_tokens_high)
                or values.usd(each.usd_per_million_output_tokens_low),
                each.source,
            )
            for each in result.evidence
        ),
    )
    yield common.notes("Assumptions and sources", (*notes(result), f"Article: {result.article.source}."))


def notes(result: Comparison) -> Iterator[str]:
    """What was assumed, and where prices and performance come from."""
    yield from result.notes
    yield "No error bar: at both ends of it the load needs the same number of nodes."
    yield from common.price_notes(each.price for each in result.alternatives if each.is_feasible)
    yield from _performance(result)


def article(table: ArticleTable) -> Iterator[Block]:
    """The printed figures, to the cent, with what they assume, and each claim beside what is right."""
    sides = (table.baseline, table.optimized)
    yield Table(
        "As printed there, recomputed",
        (Column(""), *(number(side.instance) for side in sides)),
        (
            row("An hour, on demand", *(f"${side.usd_hour}" for side in sides)),
            row(f"A month of {table.baseline.hours} h", *(values.usd(side.monthly_usd) for side in sides)),
            row("Tokens a month", *(f"{side.million_tokens:,}M" for side in sides)),
            row("1M tokens", *map(_per_million, sides), kind="total"),
        ),
    )
    yield Paragraph(f"{values.percent(table.saved_share)} less. Assumed: {table.assumption}")
    yield Table(
        "What it says, and what is right",
        (Column("Claim", wraps=True), Column("Right", wraps=True)),
        tuple(row(each.claim, each.right) for each in table.corrections),
    )


def _per_million(side: ArticleColumn) -> str:
    return values.usd(side.usd_per_million_tokens)


def alternatives(result: Comparison) -> Iterator[Block]:
    """The ranked table, and why the others are no alternatives."""
    feasible = [each for each in result.alternatives if each.is_feasible]
    if result.winner is None:
        yield Paragraph("No instance type of the catalog serves this load within the objective.", "bad")
    else:
        yield KeyFigures(tuple(_winner(result, result.winner)))
        few = f", {MOST_ALTERNATIVES} of {len(feasible)}" if len(feasible) > MOST_ALTERNATIVES else ""
        caption = f"Alternatives, the cheapest first{few}"
        yield Table(
            caption,
            (
                Column("Instance"),
                number("Nodes"),
                number("1M output", "USD"),
                number("error bar", "USD"),
                Column("Dearer by"),
                number("1M input", "USD"),
                number("1M in+out", "USD"),
                number("A month", "USD"),
                number("First token", "s"),
                number("Between", "ms"),
                number("Interrupted", "a month"),
            ),
            tuple(map(_row, feasible[:MOST_ALTERNATIVES])),
        )
    yield from common.by_reason("No alternatives", "Instance", _ruled_out(result))


def _ruled_out(result: Comparison) -> Iterator[tuple[str, str]]:
    """`inf2.24xlarge TP 1/2` and the reason that these layouts share; either way to buy has it."""
    sizes: dict[tuple[str, str], dict[int, None]] = {}
    for each in result.alternatives:
        if not each.is_feasible:
            sizes.setdefault((each.instance, each.reason), {})[each.tensor_parallel_size] = None
    for (instance, reason), found in sizes.items():
        yield f"{instance} TP {'/'.join(map(str, found))}", reason


def _winner(result: Comparison, winner: Alternative) -> Iterator[Figure]:
    close = "its error bar overlaps the next one's: measure both" if result.is_close else "clear of the next one's"
    yield Figure("Cheapest", Cell(_name(winner), "strong"), close)
    yield Figure(
        "1M output tokens",
        Cell(values.usd(winner.usd_per_million_output_tokens), origin=winner.provenance),
        common.interval(winner.usd_per_million_output_tokens_low, winner.usd_per_million_output_tokens_high),
    )
    yield Figure(
        "1M tokens, in and out", Cell(values.usd(winner.usd_per_million_total_tokens), origin=winner.provenance)
    )
    yield Figure(
        "A month",
        Cell(values.usd(winner.monthly_usd), origin=winner.provenance),
        f"{winner.nodes or 0:,} × {winner.instance}, awake all the time",
    )


def _row(each: Alternative) -> Row:
    low, high = each.usd_per_million_output_tokens_low, each.usd_per_million_output_tokens_high
    return row(
        _name(each),
        f"{each.nodes or 0:,}",
        Cell(_amount(values.usd(each.usd_per_million_output_tokens)), origin=each.provenance),
        _amount(common.interval(low, high)),
        each.reason.removeprefix("dearer by ") or Cell("cheapest", "good"),
        _amount(values.usd(each.usd_per_million_input_tokens)),
        _amount(values.usd(each.usd_per_million_total_tokens)),
        _amount(values.usd(each.monthly_usd)),
        values.seconds(each.time_to_first_token_seconds),
        values.milliseconds(each.inter_token_seconds),
        each.interruption_band or "–",
    )


def _amount(text: str) -> str:
    """Without the sign, which is in the head of the column."""
    return text.replace("$", "")


def _name(each: Alternative) -> str:
    return f"{each.instance} {common.PURCHASES[each.purchase]}, TP {each.tensor_parallel_size}"


def _performance(result: Comparison) -> Iterator[str]:
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for each in result.alternatives:
        if each.is_feasible and each.provenance and each.relative_error is not None:
            key = (each.provenance, f"{each.relative_error:.0%}", each.performance_source)
            found.setdefault(key, {})[each.instance] = None
    for (provenance, error, source), instances in found.items():
        yield f"Performance of {', '.join(instances)}: {provenance}, ± {error}; {source}."
