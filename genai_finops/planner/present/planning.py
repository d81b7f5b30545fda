"""The page of `plan`: the cheapest configuration that holds, why each other lost, and what to change."""

from collections.abc import Iterator, Sequence
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
    Listing,
    Paragraph,
    Row,
    Table,
    number,
    row,
)
from genai_finops.planner.results import Candidate, ModelPlan, Plan, Setting

MOST_CANDIDATES: Final = 20
"""Of those simulated, in the table; JSON has all."""


def page(result: Plan) -> Document:
    return Document(
        f"The cheapest that holds: {result.platform}",
        f"{result.region}, {values.plural(len(result.models), 'model')} with traffic, seed {result.seed}.",
        (
            *(block for model in result.models for block in _model(model)),
            common.notes("Assumptions", (*result.notes, common.region_note(result.price_region, result.region))),
        ),
    )


def _model(model: ModelPlan) -> Iterator[Block]:
    yield Heading(model.model)
    yield Paragraph(f"Objective: {common.objective(model.objective)}. {common.traffic(model.traffic)}")
    yield KeyFigures(tuple(_figures(model)))
    yield from common.alerts(model.warnings)
    if model.yaml:
        yield Table(
            "What to change in the platform file",
            (Column("Setting", wraps=True), Column("From", wraps=True), Column("To", wraps=True)),
            tuple(row(change.path, _written(change.old), _written(change.new)) for change in model.changes),
        )
        yield Listing("As it stands there afterwards", model.yaml, "yaml")
    elif model.winner:
        yield Paragraph("The platform file has it already: nothing to change.", "good")
    yield from _candidates(model)


def _figures(model: ModelPlan) -> Iterator[Figure]:
    winner, current = model.winner, model.current
    if winner is None:
        yield Figure("Cheapest that holds", Cell("none", "bad"), "no candidate meets the objective")
    else:
        yield Figure("Cheapest that holds", Cell(winner.setting.instance, "good"), setting(winner.setting))
        bar = common.interval(winner.monthly_low_usd, winner.monthly_high_usd)
        yield Figure("A month", Cell(values.usd(winner.monthly_usd), origin=winner.provenance), bar)
    if current is not None:
        verdict = current.verdict or f"not simulated: {current.reason}"
        yield Figure("Today", Cell(values.usd(current.monthly_usd), origin=current.provenance), verdict)
    if model.saves_monthly_usd is not None and current is not None:
        change = values.percent_change(current.monthly_usd, winner.monthly_usd if winner else None)
        yield Figure("Change a month", Cell(values.usd_change(-model.saves_monthly_usd)), change)
    searched = f"{values.count(model.simulated)} simulated, {values.count(model.screened)} ruled out before"
    complete = "" if model.is_complete else "; the search ended before all were looked at"
    yield Figure("Candidates", Cell(values.count(model.simulated + model.screened)), f"{searched}{complete}")


def setting(found: Setting) -> str:
    """Everything that a candidate sets, in one line."""
    parts = [
        f"TP {found.tensor_parallel_size}",
        f"{found.max_num_seqs} at once",
        f"{found.max_model_len:,} tokens",
        f"{found.min_replicas}–{found.max_replicas} replicas",
        f"queue {found.queue_per_replica}",
        f"Spot: {found.spot}",
    ]
    if found.warm_replicas:
        parts.append(f"{found.warm_replicas} warm")
    if found.schedule:
        parts.append(f"awake {found.schedule}")
    return ", ".join(parts)


def _written(value: object) -> str:
    """A setting as it stands in the file."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_written(each)}' for key, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return str(value)


def _candidates(model: ModelPlan) -> Iterator[Block]:
    simulated = [each for each in model.candidates if each.stage == "simulated"]
    shown = [each for index, each in enumerate(simulated) if index < MOST_CANDIDATES or each.is_current]
    yield Table(
        "Candidates that were simulated"
        + (f", {len(shown)} of {len(simulated)}" if len(shown) < len(simulated) else ""),
        (
            number("Rank"),
            Column("Instance"),
            Column("Settings", wraps=True),
            number("A month", "USD"),
            number("Good", "of requests"),
            Column("Why not", wraps=True),
            number("error bar", "USD a month"),
            number("1M output", "USD"),
            number("Good, slow end", "of requests"),
            number("First token", "p95 ms"),
            number("Between", "p95 ms"),
            number("Taken", "nodes a month"),
        ),
        tuple(map(_row, shown)),
        keys=2,
    )
    yield from _screened([each for each in model.candidates if each.stage == "screened"])


def _screened(candidates: Sequence[Candidate]) -> Iterator[Table]:
    """One row for each instance type, with the reason of the first of its settings; JSON has each."""
    reasons: dict[str, list[str]] = {}
    for each in candidates:
        reasons.setdefault(each.setting.instance, []).append(each.reason)
    if reasons:
        yield Table(
            "Ruled out without a simulation",
            (Column("Instance"), number("Settings"), Column("Why not the first of them", wraps=True)),
            tuple(row(instance, values.count(len(found)), found[0]) for instance, found in reasons.items()),
        )


def _row(each: Candidate) -> Row:
    reason = each.reason or Cell("the winner", "good")
    here = " (today)" if each.is_current else ""
    cost = each.unit_cost.usd_per_million_output_tokens if each.unit_cost else None
    return row(
        str(each.rank or ""),
        f"{each.setting.instance}{here}",
        setting(each.setting),
        Cell(values.usd(each.monthly_usd).replace("$", ""), origin=each.provenance),
        Cell(_share(each.attainment_share), "bad" if each.verdict == "does not hold" else "plain"),
        reason,
        common.interval(each.monthly_low_usd, each.monthly_high_usd).replace("$", ""),
        values.usd(cost).replace("$", ""),
        Cell(_share(each.attainment_slow_share), "bad" if each.verdict == "holds at nominal only" else "plain"),
        values.milliseconds(each.time_to_first_token_p95_seconds),
        values.milliseconds(each.inter_token_p95_seconds),
        "" if each.interruptions_a_month is None else values.significant(each.interruptions_a_month, 2),
    )


def _share(share: float | None) -> str:
    return "" if share is None else values.percent(share)
