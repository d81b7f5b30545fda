"""The cheapest configuration of each model that meets its objective, found by simulation.

Candidates come with a floor, what they cost at least. They are simulated from the lowest floor on, on the same traffic
with the same seed; once one meets the objective, all whose floor is above its cost are ruled out without a simulation,
since nothing could make them cheaper. So the winner is the cheapest of all that were thought of, not of those that
there was time for. The best are simulated again at the ends of their error bars.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from time import monotonic
from typing import Final

from genai_finops.catalog import price
from genai_finops.planner.changes import changes, fragment
from genai_finops.planner.evaluate import Progress, run_of, simulated
from genai_finops.planner.fixed_cost import dollars
from genai_finops.planner.loads import Measured, kept, measured
from genai_finops.planner.objectives import attained, target_of, verdict
from genai_finops.planner.performance.model import MeasuredProfile
from genai_finops.planner.provenance import worst
from genai_finops.planner.quiet import quiet_schedule
from genai_finops.planner.results import Candidate, ModelPlan, ObjectiveTarget, Plan, Run, Verdict
from genai_finops.planner.scenarios import Case, case_of, fresh_start_seconds
from genai_finops.planner.search import Proposal, proposals
from genai_finops.planner.traffic.requests import Traffic
from genai_finops.spec import Model, Platform, Warning
from genai_finops.spec.advice import HOURS_A_MONTH
from genai_finops.spec.model import Schedule

BATCH: Final = 16
"""Candidates simulated at once, before floors are looked at again: fixed, so that the answer depends on no clock."""

REFINED: Final = 12
"""The cheapest that meet the objective, simulated at the ends of their error bars too."""


@dataclass(frozen=True, slots=True)
class Search:
    """How much is searched.

    Attributes:
        candidates: most that are simulated for each model, at nominal.
        seconds: for each model, after which no further candidates are begun; None is no limit. An answer that ran out
            of time says so, and another machine may give another.
        prunes: False simulates those too whose floor rules them out.
    """

    candidates: int = 200
    seconds: float | None = None
    prunes: bool = True

    def __post_init__(self) -> None:
        if self.candidates < 1 or (self.seconds is not None and self.seconds <= 0):
            raise ValueError("A search looks at one candidate at least, and takes more than no time")


_CENT: Final = Decimal("0.01")
_ZERO: Final = Decimal(0)
_NEVER: Final = Decimal("Infinity")
_NOTES: Final = (
    f"A month has {HOURS_A_MONTH} hours of this traffic; the cluster's fixed cost is the same for all and left out.",
    "Spot capacity has its price of the day, and is interrupted at its published rate with the luck of the seed.",
    "Each model was planned by itself: models of one family share the devices that its pools may have.",
)


@dataclass(frozen=True, slots=True)
class _Tried:
    """A proposal and its runs; those at the ends of the error bars are None where they were not made."""

    proposal: Proposal
    case: Case
    nominal: Run
    fast: Run | None = None
    slow: Run | None = None

    @property
    def usd(self) -> Decimal:
        """Of a month, to the cent, since seconds are not exact; without a known price above everything."""
        known = self.nominal.monthly.total_usd
        return _NEVER if known is None else known.quantize(_CENT)

    @property
    def holds(self) -> bool:
        return attained(self.case.target, self.nominal)

    @property
    def can_win(self) -> bool:
        """Whether it meets the objective at a known price."""
        return self.holds and self.nominal.monthly.total_usd is not None


@dataclass(frozen=True, slots=True)
class _Task:
    """What is planned for one model, and with what."""

    platform: Platform
    index: int
    traffic: Traffic
    load: Measured
    target: ObjectiveTarget
    seed: int
    profiles: Sequence[MeasuredProfile]
    search: Search
    progress: Progress | None

    @property
    def model(self) -> Model:
        return self.platform.models[self.index]


def plan(
    platform: Platform,
    traffic: Mapping[str, Traffic],
    *,
    seed: int = 0,
    profiles: Sequence[MeasuredProfile] = (),
    inter_token_seconds: float | None = None,
    search: Search | None = None,
    progress: Progress | None = None,
) -> Plan:
    """The best configuration for each model that has traffic.

    Args:
        traffic: by the name of the model.
        profiles: measured performance that takes the place of the built-in one.
        inter_token_seconds: an objective for the mean gap of a request, which the platform file does not have.
        progress: told how many of a model's candidates are done; one that is ruled out is done.

    Raises:
        ValueError: for traffic of a model that is not there or without a request, or no traffic at all.
    """
    names = [model.name for model in platform.models]
    unknown = [name for name in traffic if name not in names]
    if unknown or not traffic:
        what = f"There is traffic for {unknown[0]!r}, and no such model" if unknown else "No model has traffic"
        raise ValueError(f"{what}. The models are: {', '.join(names)}.")
    tasks = [
        _task(platform, index, traffic[name], seed, profiles, inter_token_seconds, search or Search(), progress)
        for index, name in enumerate(names)
        if name in traffic
    ]
    return Plan(
        platform=platform.name,
        region=platform.region,
        price_region=price("eks_cluster_hour").region,
        seed=seed,
        models=tuple(map(_plan, tasks)),
        notes=_NOTES,
    )


def _task(
    platform: Platform,
    index: int,
    traffic: Traffic,
    seed: int,
    profiles: Sequence[MeasuredProfile],
    inter_token_seconds: float | None,
    search: Search,
    progress: Progress | None,
) -> _Task:
    traffic = kept(traffic)
    load = measured(traffic)
    if load.mean is None:
        raise ValueError(f"{load.summary.name} has no requests: there is nothing to plan for")
    target = target_of(platform.models[index], inter_token_seconds)
    return _Task(platform, index, traffic, load, target, seed, profiles, search, progress)


def _plan(task: _Task) -> ModelPlan:
    current, *others = proposals(
        task.platform, task.index, task.load, task.target, profiles=task.profiles, schedule=_schedule(task)
    )
    ruled_out = [proposal for proposal in others if proposal.reason]
    tried, unmade, is_complete = _simulate(task, [current, *(each for each in others if not each.reason)])
    ranked = sorted(_refined(task, tried), key=lambda each: _rank(each, task))
    winner = next((each for each in ranked if each.can_win), None)
    candidates = (
        *(_candidate(each, position, winner, task.target) for position, each in enumerate(ranked, 1)),
        *(_screened(proposal) for proposal in (*unmade, *ruled_out)),
    )
    chosen = next((each for each in candidates if winner and each.setting == winner.proposal.setting), None)
    today = next(each for each in candidates if each.is_current)
    wanted = changes(task.platform, winner.proposal.platform) if winner else ()
    return ModelPlan(
        model=task.model.name,
        objective=task.target,
        traffic=task.load.summary,
        candidates=candidates,
        winner=chosen,
        current=today,
        changes=wanted,
        yaml=fragment(task.platform, wanted),
        saves_monthly_usd=_saving(today, chosen),
        simulated=len(tried),
        screened=len(candidates) - len(tried),
        is_complete=is_complete,
        warnings=tuple(_warnings(task, ranked, winner, is_complete)),
    )


def _schedule(task: _Task) -> Schedule | None:
    """Hours to sleep in that the traffic suggests, for a model that the file never lets sleep."""
    if task.model.schedule is not None:
        return None
    return quiet_schedule(task.traffic, fresh_start_seconds(task.platform, task.model))


def _simulate(task: _Task, open_: Sequence[Proposal]) -> tuple[list[_Tried], list[Proposal], bool]:
    """From the lowest floor on, until floors, the number of candidates or the time end it.

    Returns:
        What was simulated, what was not with the reason, and whether nothing was left out for want of number or time.
    """
    began, tried, unmade = monotonic(), list[_Tried](), list[Proposal]()
    waiting, is_complete = list(open_), True
    while waiting:
        best = min((each.usd for each in tried if each.can_win), default=None)
        if task.search.prunes and best is not None:
            unmade += [replace(each, reason=_dearer_when_idle(each)) for each in waiting if _is_above(each, best)]
            waiting = [each for each in waiting if not _is_above(each, best)]
        room = task.search.candidates - len(tried)
        is_out_of_time = task.search.seconds is not None and monotonic() - began > task.search.seconds and bool(tried)
        if waiting and (room <= 0 or is_out_of_time):
            why = "time was up" if is_out_of_time else f"{task.search.candidates} candidates were allowed"
            unmade += [replace(each, reason=f"not simulated: {why}") for each in waiting]
            is_complete, waiting = False, []
        batch, waiting = waiting[: min(BATCH, room)], waiting[min(BATCH, room) :]
        tried += _run(task, batch)
        if task.progress:
            task.progress(len(tried) + len(unmade), len(open_))
    return tried, unmade, is_complete


def _is_above(proposal: Proposal, best: Decimal) -> bool:
    return not proposal.is_current and proposal.floor_usd is not None and proposal.floor_usd.quantize(_CENT) > best


def _dearer_when_idle(proposal: Proposal) -> str:
    assert proposal.floor_usd is not None
    return f"dearer than the best before anything scales: at least {dollars(proposal.floor_usd)} a month"


def _run(task: _Task, batch: Sequence[Proposal]) -> list[_Tried]:
    cases = [
        case_of(
            proposal.platform,
            task.index,
            task.traffic,
            task.load,
            inter_token_seconds=task.target.inter_token_seconds,
            performance=proposal.performance,
        )
        for proposal in batch
    ]
    outcomes = simulated([(case, 0) for case in cases], task.seed)
    return [
        _Tried(proposal, case, run_of(case, outcome))
        for proposal, case, outcome in zip(batch, cases, outcomes, strict=True)
    ]


def _refined(task: _Task, tried: Sequence[_Tried]) -> list[_Tried]:
    """With the ends of the error bars for the cheapest that hold, and for what the file says."""
    best = sorted((each for each in tried if each.holds), key=lambda each: _rank(each, task))[:REFINED]
    chosen = [each for each in tried if each.proposal.is_current or each in best]
    outcomes = simulated([(each.case, end) for each in chosen for end in (-1, 1)], task.seed)
    ends = {
        id(each): [run_of(each.case, outcome) for outcome in outcomes[2 * index : 2 * index + 2]]
        for index, each in enumerate(chosen)
    }
    return [
        replace(each, fast=ends[id(each)][0], slow=ends[id(each)][1]) if id(each) in ends else each for each in tried
    ]


def _rank(each: _Tried, task: _Task) -> tuple[bool, Decimal, float, bool, int, str]:
    """Those that hold first, the cheapest first; of the others those that miss by the least. Of what costs the same,
    first what holds at the slow end too, then what changes the file the least."""
    missed = 0.0 if each.holds else -(each.nominal.attainment_share or 0.0)
    is_sure = each.slow is not None and attained(task.target, each.slow)
    size = len(changes(task.platform, each.proposal.platform))
    return not each.holds, each.usd if each.holds else _ZERO, missed, not is_sure, size, repr(each.proposal.setting)


def _candidate(each: _Tried, rank: int, winner: _Tried | None, target: ObjectiveTarget) -> Candidate:
    runs = [run for run in (each.fast, each.nominal, each.slow) if run]
    costs = [run.monthly.total_usd for run in runs if run.monthly.total_usd is not None]
    performance = each.case.scenario.performance
    return Candidate(
        setting=each.proposal.setting,
        rank=rank,
        stage="simulated",
        is_current=each.proposal.is_current,
        verdict=verdict(target, each.nominal, each.slow) if each.slow else _without_end(each),
        monthly_usd=each.nominal.monthly.total_usd,
        monthly_low_usd=min(costs) if len(costs) == 3 else None,
        monthly_high_usd=max(costs) if len(costs) == 3 else None,
        unit_cost=each.nominal.unit_cost,
        attainment_share=each.nominal.attainment_share,
        attainment_slow_share=each.slow.attainment_share if each.slow else None,
        time_to_first_token_p95_seconds=each.nominal.time_to_first_token.p95_seconds,
        inter_token_p95_seconds=each.nominal.inter_token.p95_seconds,
        provenance=worst(performance.decode_origin.provenance, performance.prefill_origin.provenance),
        interruptions_a_month=_interruptions(each),
        reason=_reason(each, winner, target),
    )


def _interruptions(each: _Tried) -> float:
    hours = float(each.nominal.spot_node_hours)
    run_hours = each.nominal.end_seconds / 3600
    return each.case.scenario.spot.interruptions_per_hour * HOURS_A_MONTH * (hours / run_hours if run_hours else 0.0)


def _without_end(each: _Tried) -> Verdict:
    """What can be said without a run at the slow end."""
    return "holds, slow end not run" if each.holds else "does not hold"


def _reason(each: _Tried, winner: _Tried | None, target: ObjectiveTarget) -> str:
    """Why it is not the winner; empty for the winner."""
    if each is winner:
        return ""
    if not each.holds:
        return _miss(each, target)
    if each.nominal.monthly.total_usd is None:
        return "its price is not known"
    assert winner  # it holds at a known price
    more = each.usd - winner.usd
    size = f"{more / winner.usd:.1%} ({dollars(more)} a month)" if winner.usd else dollars(more)
    if more == 0:
        return "costs the same"
    high = winner.slow.monthly.total_usd if winner.slow else None
    low = each.fast.monthly.total_usd if each.fast else None
    close = high is not None and low is not None and low <= high
    return f"dearer by {size}{', within the error bars' if close else ''}"


def _miss(each: _Tried, target: ObjectiveTarget) -> str:
    run = each.nominal
    share, counts = run.attainment_share or 0.0, run.counts
    parts = [f"{share:.1%} of requests meet the objective, {target.percent:g} % are asked for"]
    first, between = run.time_to_first_token.p95_seconds, run.request_inter_token.p95_seconds
    if first is not None and first > target.time_to_first_token_seconds:
        parts.append(f"p95 to the first token {first:.2f} s > {target.time_to_first_token_seconds:g} s")
    if target.inter_token_seconds is not None and between is not None and between > target.inter_token_seconds:
        parts.append(f"p95 between tokens {between * 1000:.1f} ms > {target.inter_token_seconds * 1000:g} ms")
    unfinished = counts.refused + counts.timed_out + counts.lost
    if unfinished:
        parts.append(f"{unfinished:,} of {counts.arrived:,} requests not completed")
    if run.at_limit_seconds > 0:
        parts.append(f"at the limit of devices for {run.at_limit_seconds:,.0f} s")
    return "; ".join(parts)


def _screened(proposal: Proposal) -> Candidate:
    return Candidate(
        setting=proposal.setting,
        rank=None,
        stage="screened",
        is_current=proposal.is_current,
        verdict=None,
        monthly_usd=None,
        monthly_low_usd=None,
        monthly_high_usd=None,
        unit_cost=None,
        attainment_share=None,
        attainment_slow_share=None,
        time_to_first_token_p95_seconds=None,
        inter_token_p95_seconds=None,
        provenance=None,
        interruptions_a_month=None,
        reason=proposal.reason,
    )


def _saving(today: Candidate, chosen: Candidate | None) -> Decimal | None:
    if chosen is None or chosen.monthly_usd is None or today.monthly_usd is None:
        return None
    return today.monthly_usd - chosen.monthly_usd


def _warnings(task: _Task, ranked: Sequence[_Tried], winner: _Tried | None, is_complete: bool) -> Iterator[Warning]:
    path = f"models[{task.index}]"
    if winner is None:
        yield Warning(
            path,
            f"No configuration that was simulated meets the objective of {task.model.name}.",
            "Ask for less in objective, or allow more with node_pools.<family>.max_devices.",
        )
    elif winner.slow and not attained(task.target, winner.slow):
        sure = next((each for each in ranked if each.can_win and each.slow and attained(task.target, each.slow)), None)
        other = f" {sure.proposal.setting.instance} holds there too, for {dollars(sure.usd)} a month." if sure else ""
        yield Warning(
            path,
            f"The winner for {task.model.name} meets its objective as the numbers are, and misses it at the slow end "
            f"of their error bars.{other}",
            "Measure it with a benchmark and give that with `calibrate`, or take one that holds.",
        )
    if not is_complete:
        yield Warning(
            path,
            f"Not every candidate for {task.model.name} was simulated: the search ended before.",
            "Allow more candidates, or more time.",
        )
