"""The rules that run in the account, asked by the simulator: windows, breaker and pre-warming are not written twice."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from genai_finops.operations import breaker, losses, prewarm, windows
from genai_finops.operations.config import OperationsConfig
from genai_finops.operations.losses import Pool, SignKind
from genai_finops.operations.observed import Node
from genai_finops.planner.simulation.scenario import AutomationFactory, Sign, Steering
from genai_finops.spec import Model, Platform, names, placement
from genai_finops.spec.automation import operations_config

NOTICE: Final = timedelta(seconds=120)
"""From the warning until the node is gone."""

_KINDS: Final = {"rebalance": SignKind.REBALANCE, "warning": SignKind.WARNING}


@dataclass(slots=True)
class RunTimeRules:
    """What the functions would ask of the cluster, from the signs of one run.

    Zones are given to nodes in turn, since the simulator has none: a storm then falls on all of them alike.
    """

    platform: Platform
    config: OperationsConfig
    model: Model
    start: datetime
    _signs: list[losses.Sign] = field(default_factory=list)

    def __call__(self, signs: Sequence[Sign], at_seconds: float) -> Steering:
        now = self.start + timedelta(seconds=at_seconds)
        self._signs += [self._sign(sign) for sign in signs]
        config = self.config
        lost = losses.merge(self._signs, until=now)
        family = self.model.accelerator.family
        resting = breaker.open_pools(lost, config.breaker, now)
        shut = breaker.shuts(resting, family, self.platform.zones, config.breaker)
        is_last = self.model.spot == "only" and all(model.spot == "only" for model in self.platform.models_on(family))
        until = max((opened.until for opened in (shut or {}).values()), default=None)
        risk = prewarm.at_risk(lost, self._nodes(now), config.prewarm, now).get(self.model.name)
        scaling = self.model.scaling
        minimum = risk.minimum(scaling.min_replicas, scaling.max_replicas) if risk else scaling.min_replicas
        return Steering(
            min_replicas=minimum,
            raised_until_seconds=(risk.until - self.start).total_seconds() if risk else at_seconds,
            spot_shut_until_seconds=(until - self.start).total_seconds() if until and not is_last else 0.0,
        )

    def _sign(self, sign: Sign) -> losses.Sign:
        return losses.Sign(
            instance_id=f"i-{sign.node:08x}",
            kind=_KINDS[sign.kind],
            at=self.start + timedelta(seconds=sign.at_seconds),
            event_id=f"{sign.kind}-{sign.node}",
            pool=Pool(self._instance_type, self._zone(sign.node)),
            node=f"node-{sign.node}",
            node_pool=names.spot_node_pool(self.model.accelerator.family),
            capacity_type="spot",
            replicas={self.model.name: sign.replicas},
            serving={self.model.name: sign.serving},
        )

    def _nodes(self, now: datetime) -> dict[str, Node]:
        """Those that a sign was seen of and that EC2 has not ended yet."""
        ended = {sign.instance_id for sign in self._signs if sign.kind is SignKind.WARNING and sign.at + NOTICE <= now}
        return {
            sign.instance_id: Node(
                name=sign.node or "",
                instance_id=sign.instance_id,
                instance_type=self._instance_type,
                zone=sign.pool.zone if sign.pool else "",
                capacity_type="spot",
                node_pool=sign.node_pool or "",
                replicas=sign.replicas,
            )
            for sign in self._signs
            if sign.instance_id not in ended
        }

    @property
    def _instance_type(self) -> str:
        return placement.instances(self.model)[0].name

    def _zone(self, node: int) -> str:
        return self.platform.zones[node % len(self.platform.zones)]


def automation_factory(platform: Platform, model: Model, start: datetime) -> AutomationFactory | None:
    """Rules that forget everything between runs; None for a model that Spot cannot be taken away from."""
    if model.spot == "never":
        return None
    config = operations_config(platform)
    return lambda: RunTimeRules(platform, config, model, start)


def awake_seconds(model: Model, start: datetime, duration_seconds: float) -> tuple[tuple[float, float], ...] | None:
    """Half-open intervals since `start` in which the model is awake, wake lead included; None when it always is.

    Args:
        start: aware.
    """
    if model.schedule is None:
        return None
    schedule = windows.Schedule(
        zone=model.schedule.time_zone,
        windows=tuple(window.window() for window in model.schedule.awake),
        special_days=tuple(exception.special_days() for exception in model.schedule.exceptions),
        wake_lead_minutes=model.schedule.wake_lead_minutes,
    )
    found: list[tuple[float, float]] = []
    end = start + timedelta(seconds=duration_seconds)
    moment = start
    while moment < end:
        change = windows.next_change(schedule, moment)
        until = end if change is None else min(change, end)
        if windows.is_awake(schedule, moment):
            found.append(((moment - start).total_seconds(), (until - start).total_seconds()))
        moment = until
    return tuple(found)
