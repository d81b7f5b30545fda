"""What is simulated: one model's replicas, how they are counted, what they run on, and when they may be lost.

Plain numbers in seconds: whoever builds a scenario has read platform file, catalog and the rules of `operations`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from genai_finops.planner.performance.replica import ReplicaPerformance

Purchase = Literal["spot", "on-demand"]


@dataclass(frozen=True, slots=True)
class ScalePolicy:
    """One direction of the HPA's behaviour, one policy in percent as the ScaledObject has it."""

    stabilization_seconds: float
    percent: int
    period_seconds: float


@dataclass(frozen=True, slots=True)
class Scaling:
    """How replicas are counted: Prometheus scrapes, KEDA asks, the HPA decides.

    Attributes:
        queue_per_replica: waiting requests per replica wanted (trigger "queue").
        running_per_replica: running requests per replica wanted (trigger "running").
        kv_cache_target: share of the KV cache in use per replica wanted; None without that trigger.
        scrape_seconds: between two readings of each replica's gauges.
        polling_seconds: KEDA's own interval; with replicas running the HPA asks KEDA at each sync.
        sync_seconds: the HPA's period.
        tolerance: a wish this close to what is there changes nothing.
    """

    min_replicas: int
    max_replicas: int
    queue_per_replica: float
    running_per_replica: float
    kv_cache_target: float | None
    scale_up: ScalePolicy
    scale_down: ScalePolicy
    scrape_seconds: float = 15
    polling_seconds: float = 15
    sync_seconds: float = 15
    tolerance: float = 0.1


@dataclass(frozen=True, slots=True)
class Nodes:
    """What replicas run on.

    Attributes:
        replicas_per_node: that share one node.
        purchases: in the order they are tried; ("spot", "on-demand") is Spot first.
        max_nodes: of each purchase; None is no limit.
        launch_seconds: from a waiting pod to a node that takes it (provision and register).
        start_seconds_fresh: from there to a ready replica on a fresh node (image, weights, artifacts, load).
        start_seconds_warm: the same on a node that has served this model before (image and weights on its disk).
        consolidate_after_seconds: an empty node is ended this long after its last replica.
        drain_seconds: a replica that is stopped in good order finishes requests for at most so long.
        placeholders: slots held warm: each is room for one replica on a node that is there, image and weights on its
            disk, given up at once to a replica that needs it and then renewed.
    """

    replicas_per_node: int
    purchases: tuple[Purchase, ...]
    max_nodes: int | None
    launch_seconds: float
    start_seconds_fresh: float
    start_seconds_warm: float
    consolidate_after_seconds: float
    drain_seconds: float
    placeholders: int = 0


@dataclass(frozen=True, slots=True)
class SpotRisk:
    """How Spot capacity goes away.

    Attributes:
        interruptions_per_hour: of one node, a Poisson process.
        notice_seconds: from the warning to the end of the instance.
        rebalance_share: of interruptions that a rebalance recommendation comes before.
        rebalance_lead_seconds: how long before the warning.
        unavailable_share: of the attempts to launch on Spot that find no capacity.
    """

    interruptions_per_hour: float
    notice_seconds: float = 120
    rebalance_share: float = 0
    rebalance_lead_seconds: float = 600
    unavailable_share: float = 0


@dataclass(frozen=True, slots=True)
class Sign:
    """What the simulated EC2 says about one node."""

    at_seconds: float
    node: int
    kind: Literal["rebalance", "warning"]
    replicas: int
    serving: int


@dataclass(frozen=True, slots=True)
class Steering:
    """What run-time automation asks for, until it is asked again.

    Attributes:
        min_replicas: the raised minimum, and until when; the plain one after that.
        spot_shut_until: nothing is launched on Spot before that second; 0 when it is open.
    """

    min_replicas: int
    raised_until_seconds: float
    spot_shut_until_seconds: float


class Automation(Protocol):
    """The rules of `operations`, asked at each sign; what they remember starts anew with each run."""

    def __call__(self, signs: Sequence[Sign], at_seconds: float) -> Steering: ...


@dataclass(frozen=True, slots=True)
class Objective:
    """What counts as served well: a request all of whose parts hold.

    Attributes:
        time_to_first_token_seconds: from arrival.
        inter_token_seconds: the mean over the gaps of the request; None is not asked for.
        timeout_seconds: a request without an answer by then gives up, waiting or running.
    """

    time_to_first_token_seconds: float
    inter_token_seconds: float | None = None
    timeout_seconds: float = 600


@dataclass(frozen=True, slots=True)
class Scenario:
    """One model, one instance type.

    Attributes:
        awake: half-open intervals of seconds since the traffic's start, wake lead included; None is always. Outside
            them the model has no replicas, and requests wait for it until they time out.
        start: aware, of second 0.
        initial_replicas: ready at second 0 when awake then.
        bucket_seconds: length of a row of the result over time.
    """

    performance: ReplicaPerformance
    scaling: Scaling
    nodes: Nodes
    spot: SpotRisk
    objective: Objective
    start: datetime
    awake: tuple[tuple[float, float], ...] | None = None
    automation: "AutomationFactory | None" = None
    initial_replicas: int = 1
    bucket_seconds: float = 3600


class AutomationFactory(Protocol):
    def __call__(self) -> Automation: ...
