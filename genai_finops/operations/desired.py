"""From what is known and what the cluster shows, what the cluster should look like now.

Nothing is remembered between evaluations but what can be read again, so an event that is lost, doubled, late or out of
order is put right by the next evaluation.

Who decides whether a model sleeps, first to last: a person's hold until it expires; a guardrail that puts non-critical
models to sleep; the schedule. A hold comes first because a person who can see the guardrail's announcement has decided
against it, knowingly and for a limited time; the caps of a guardrail hold all the same, since a hold says nothing
about how many. No guardrail touches a critical model.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from genai_finops.operations import breaker, budget, guardrails, holds, losses, pauses, prewarm, windows
from genai_finops.operations.breaker import Open
from genai_finops.operations.config import ModelConfig, NodePoolConfig, OperationsConfig
from genai_finops.operations.facts import Facts
from genai_finops.operations.guardrails import Guardrails
from genai_finops.operations.holds import Hold, HoldError
from genai_finops.operations.losses import Pool
from genai_finops.operations.observed import Observed, ObservedModel
from genai_finops.operations.prewarm import AtRisk

SHUT: Final = "0"
"""`spec.limits.nodes` of a NodePool that launches nothing; what runs stays."""


class Rule(StrEnum):
    """What a decision comes from."""

    SCHEDULE = "schedule"
    HOLD = "hold"
    GUARDRAIL = "guardrail"
    BUSY = "busy"
    LOSS = "loss"
    BREAKER = "breaker"
    WAKING = "waking"
    SOMEONE = "someone"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, for people; `until` when the decision is known to change by itself."""

    rule: Rule
    text: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know and that no patch can mend; `key` to tell it once."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class DesiredModel:
    """What one model should look like.

    Attributes:
        asleep: no replicas. False while a busy model is waited for.
        waking: forced or pinned until Ready.
        annotations: of its ScaledObject; None is absent, names that are not here are not ours.
        minimum, maximum: of its ScaledObject.
        placeholders: replicas of its placeholder Deployment; None when it has none.
        someone: someone else's pause is in force and respected.
    """

    config: ModelConfig
    asleep: bool
    waking: bool
    annotations: Mapping[str, str | None]
    minimum: int
    maximum: int
    placeholders: int | None
    someone: bool = False
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class DesiredNodePool:
    """`nodes_limit` is `spec.limits.nodes`: SHUT, or None for absent."""

    config: NodePoolConfig
    nodes_limit: str | None
    reasons: tuple[Reason, ...] = ()

    @property
    def is_shut(self) -> bool:
        return self.nodes_limit == SHUT


@dataclass(frozen=True, slots=True)
class Desired:
    """The whole cluster, by name."""

    models: Mapping[str, DesiredModel]
    node_pools: Mapping[str, DesiredNodePool]
    notices: tuple[Notice, ...] = ()
    at_risk: Mapping[str, AtRisk] = field(default_factory=dict)
    resting: Mapping[Pool, Open] = field(default_factory=dict)
    guardrails: Guardrails = field(default_factory=Guardrails)


@dataclass(frozen=True, slots=True)
class _Sleep:
    """Whether a model should sleep; `since` when, None for so long that nothing is waited for."""

    wanted: bool
    reason: Reason
    since: datetime | None = None


def desired_state(config: OperationsConfig, facts: Facts, observed: Observed, now: datetime) -> Desired:
    """What the cluster should look like at `now` (aware), with a reason for each decision.

    The order of facts and repetitions make no difference; facts after `now` are ignored. Models and NodePools that
    the cluster does not show yet are left out, with a notice.
    """
    lost = losses.merge(facts.signs, until=now)
    in_force = Guardrails()
    if config.budget:
        in_force = guardrails.in_force(budget.levels(config.budget, facts.reports, now))
    at_risk = prewarm.at_risk(lost, {node.instance_id: node for node in observed.nodes}, config.prewarm, now)
    resting = breaker.open_pools(lost, config.breaker, now)
    notices: list[Notice] = []
    models = {}
    for model in config.models:
        shown = observed.models.get(model.name)
        if shown is None or shown.scaled_object is None:
            notices.append(Notice(f"{model.name}/missing", f"{model.name} has no ScaledObject {model.deployment}"))
            continue
        models[model.name] = _model(model, shown, in_force, at_risk.get(model.name), now, notices)
    pools = _node_pools(config, observed, in_force, resting, notices)
    return Desired(models, pools, tuple(notices), at_risk, resting, in_force)


def _model(
    model: ModelConfig,
    shown: ObservedModel,
    in_force: Guardrails,
    risk: AtRisk | None,
    now: datetime,
    notices: list[Notice],
) -> DesiredModel:
    assert shown.scaled_object
    annotations = shown.scaled_object.annotations
    hold = holds.read(annotations)
    if isinstance(hold, HoldError):
        notices.append(Notice(f"{model.name}/hold", f"{model.name}: not obeyed: {hold}"))
        hold = None
    sleep = _sleep(model, hold, in_force, now)
    reasons = [sleep.reason]
    busy_until = _busy_until(model, shown, sleep.since, now) if sleep.wanted else None
    if busy_until:
        unknown = "nobody can say whether it is busy" if shown.requests is None else f"{shown.requests} requests"
        reasons.append(Reason(Rule.BUSY, f"sleeps when idle: {unknown}", busy_until))
    is_asleep = sleep.wanted and busy_until is None
    maximum = _maximum(model, in_force, reasons)
    minimum = model.min_replicas
    if risk and not sleep.wanted:
        minimum = risk.minimum(minimum, maximum)
        reasons.append(Reason(Rule.LOSS, f"{risk.replicas} replicas run on nodes that EC2 takes away", risk.until))
    if is_asleep:
        wanted = pauses.asleep(annotations)
    elif busy_until:
        wanted = pauses.as_it_is(annotations)
    else:
        wanted = pauses.awake(annotations, shown.replicas, minimum=model.min_replicas, raised_minimum=minimum, now=now)
    if wanted.waking:
        reasons.append(Reason(Rule.WAKING, f"{shown.replicas.ready} of {model.min_replicas} replicas are Ready"))
    if wanted.someone:
        reasons.append(Reason(Rule.SOMEONE, wanted.someone))
        notices.append(Notice(f"{model.name}/someone", f"{model.name} is {wanted.someone}; left alone while awake"))
    return DesiredModel(
        config=model,
        asleep=is_asleep,
        waking=wanted.waking,
        annotations=wanted.annotations,
        minimum=minimum,
        maximum=maximum,
        placeholders=_placeholders(model, sleep.wanted, in_force),
        someone=wanted.someone is not None,
        reasons=tuple(reasons),
    )


def _sleep(model: ModelConfig, hold: Hold | None, in_force: Guardrails, now: datetime) -> _Sleep:
    if hold and hold.holds(now):
        return _Sleep(hold.state == "asleep", Reason(Rule.HOLD, f"held {hold.state}", hold.until))
    found = _scheduled(model, now)
    if in_force.sleep_since and not model.critical:
        reason = Reason(Rule.GUARDRAIL, "the budget's guardrail puts non-critical models to sleep")
        since = in_force.sleep_since
        if found.wanted:  # asleep already: what has begun earlier counts
            since_both = None if found.since is None else min(found.since, since)
            found = _Sleep(True, reason, since_both)
        else:
            found = _Sleep(True, reason, since)
    if hold and found.wanted and hold.state == "awake":
        since_hold = hold.until if found.since is None else max(found.since, hold.until)
        return _Sleep(True, found.reason, since_hold)
    return found


def _scheduled(model: ModelConfig, now: datetime) -> _Sleep:
    if model.schedule is None:
        return _Sleep(False, Reason(Rule.SCHEDULE, "always awake"))
    status = windows.status(model.schedule, now)
    reason = Reason(Rule.SCHEDULE, "within its hours" if status.awake else "outside its hours", status.until)
    return _Sleep(not status.awake, reason, status.since)


def _busy_until(model: ModelConfig, shown: ObservedModel, since: datetime | None, now: datetime) -> datetime | None:
    """Until when sleep waits for requests to finish; None when it does not.

    A model of which nobody can say whether it is busy counts as busy: it costs minutes, not requests. Beyond the
    limit the pods' own grace period lets requests in flight finish.
    """
    assert shown.scaled_object
    if since is None or shown.replicas.total == 0 or shown.requests == 0:
        return None
    if pauses.is_asleep(shown.scaled_object.annotations):
        return None
    limit = since + timedelta(seconds=max(model.drain_seconds, model.sleep_busy_limit_minutes * 60))
    return limit if now < limit else None


def _maximum(model: ModelConfig, in_force: Guardrails, reasons: list[Reason]) -> int:
    """The file's, or the guardrail's cap; never below the minimum, which the file promises while awake."""
    if model.critical or in_force.cap is None or in_force.cap >= model.max_replicas:
        return model.max_replicas
    reasons.append(Reason(Rule.GUARDRAIL, f"the budget's guardrail caps non-critical models at {in_force.cap}"))
    return max(in_force.cap, model.min_replicas)


def _placeholders(model: ModelConfig, sleeps: bool, in_force: Guardrails) -> int | None:
    """Warm capacity is the first thing to give up: any guardrail that acts does, since it serves nobody yet."""
    if model.placeholder_deployment is None:
        return None
    return 0 if sleeps or (in_force.levels and not model.critical) else model.placeholders


def _node_pools(
    config: OperationsConfig,
    observed: Observed,
    in_force: Guardrails,
    resting: Mapping[Pool, Open],
    notices: list[Notice],
) -> dict[str, DesiredNodePool]:
    reasons = _reasons_to_shut(config, in_force, resting, notices)
    found = {}
    for pool in config.node_pools:
        shown = observed.node_pools.get(pool.name)
        if shown is None:
            notices.append(Notice(f"{pool.name}/missing", f"The NodePool {pool.name} does not exist"))
            continue
        is_theirs = shown.nodes_limit not in (None, SHUT)
        if is_theirs:
            text = f"{pool.name} has limits.nodes {shown.nodes_limit}, set by someone; left alone until it is shut"
            notices.append(Notice(f"{pool.name}/limit", text))
        limit = SHUT if reasons[pool.name] else shown.nodes_limit if is_theirs else None
        found[pool.name] = DesiredNodePool(pool, limit, tuple(reasons[pool.name]))
    return found


def _reasons_to_shut(
    config: OperationsConfig, in_force: Guardrails, resting: Mapping[Pool, Open], notices: list[Notice]
) -> dict[str, list[Reason]]:
    """Which NodePools launch nothing: on demand by a guardrail, Spot by the breaker; empty for those that do.

    The breaker never takes a family's last open NodePool: Spot that is often reclaimed serves more than none.
    """
    reasons: dict[str, list[Reason]] = {pool.name: [] for pool in config.node_pools}
    pools: dict[str, list[NodePoolConfig]] = {}
    for pool in config.node_pools:
        pools.setdefault(pool.family, []).append(pool)
    models: dict[str, list[ModelConfig]] = {}
    for model in config.models:
        models.setdefault(model.family, []).append(model)
    for family, of_family in pools.items():
        if in_force.on_demand_off_since:
            _shut_on_demand(of_family, models.get(family, []), reasons, notices)
        for pool in of_family:
            bad = breaker.shuts(resting, family, pool.zones, config.breaker) if pool.capacity_type == "spot" else None
            others = [other for other in of_family if other.name != pool.name and not reasons[other.name]]
            if bad and others:
                reasons[pool.name].append(_rests(bad))
                _tell_of_spot_only(pool, models.get(family, []), notices)
            elif bad:
                text = f"{pool.name} keeps asking for Spot in a storm: {family} has no other NodePool open"
                notices.append(Notice(f"{pool.name}/last", text))
    return reasons


def _shut_on_demand(
    pools: Iterable[NodePoolConfig],
    models: Iterable[ModelConfig],
    reasons: Mapping[str, list[Reason]],
    notices: list[Notice],
) -> None:
    needed_by = [model.name for model in models if model.critical and model.spot != "only"]
    stuck = [model.name for model in models if model.spot == "never"]
    for pool in pools:
        if pool.capacity_type == "spot":
            continue
        if needed_by:
            text = f"{pool.name} stays open: {', '.join(needed_by)} is critical and may need it"
            notices.append(Notice(f"{pool.name}/critical", text))
            continue
        reasons[pool.name].append(Reason(Rule.GUARDRAIL, "the budget's guardrail turns on demand off"))
        if stuck:
            text = f"{', '.join(stuck)} never runs on Spot and gets no new nodes while {pool.name} is shut"
            notices.append(Notice(f"{pool.name}/on-demand-only", text))


def _rests(bad: Mapping[Pool, Open]) -> Reason:
    places = ", ".join(sorted(f"{pool.instance_type} in {pool.zone}" for pool in bad))
    return Reason(
        Rule.BREAKER, f"Spot rests: too many interruptions of {places}", max(one.until for one in bad.values())
    )


def _tell_of_spot_only(pool: NodePoolConfig, models: Iterable[ModelConfig], notices: list[Notice]) -> None:
    waiting = [model.name for model in models if model.spot == "only"]
    if waiting:
        text = f"{', '.join(waiting)} may only run on Spot and gets no new nodes while {pool.name} rests"
        notices.append(Notice(f"{pool.name}/spot-only", text))
