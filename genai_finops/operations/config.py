"""What the automation needs to know of the platform, as plain data.

The stack writes it from `platform.yaml` into the Lambdas' bundle as JSON, so that they carry neither pydantic models of
the file nor the catalog. No secrets: the bundle can be read by whoever may read the function.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from genai_finops.operations import codec
from genai_finops.operations.breaker import BreakerPolicy
from genai_finops.operations.budget import Budget
from genai_finops.operations.losses import CapacityType
from genai_finops.operations.prewarm import PrewarmPolicy
from genai_finops.operations.tokens import OUTPUT_WEIGHT, InstancePrice
from genai_finops.operations.windows import MINUTES_A_DAY, Schedule

SpotPolicy = Literal["prefer", "only", "never"]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model.

    Attributes:
        deployment: name of its Deployment and of its ScaledObject.
        served_as: `model_name` of its metrics.
        family: instance family it runs on.
        critical: no guardrail touches it.
        drain_seconds: what requests in flight may take.
        startup_seconds: what a server may take from its start to its first healthy answer.
        schedule: None is always awake.
        sleep_busy_limit_minutes: how long sleep waits for a busy model; never less than drain_seconds, at most a day.
        placeholders: pods that hold warm capacity while it is awake.
        placeholder_deployment: their Deployment, in the same namespace; None when there is none.

    Raises:
        ValueError: when numbers contradict each other.
    """

    name: str
    deployment: str
    namespace: str
    served_as: str
    family: str
    min_replicas: int
    max_replicas: int
    critical: bool = False
    spot: SpotPolicy = "prefer"
    drain_seconds: int = 90
    startup_seconds: int = 1800
    schedule: Schedule | None = None
    sleep_busy_limit_minutes: int = 15
    placeholders: int = 0
    placeholder_deployment: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.min_replicas <= self.max_replicas or self.max_replicas < 1:
            raise ValueError(f"{self.name}: replicas from {self.min_replicas} to {self.max_replicas} are none")
        if min(self.drain_seconds, self.startup_seconds) < 0 or not 0 <= self.sleep_busy_limit_minutes <= MINUTES_A_DAY:
            raise ValueError(f"{self.name}: waiting times are not negative, and sleep waits a day at most")
        if self.placeholders < 0 or (self.placeholders and not self.placeholder_deployment):
            raise ValueError(f"{self.name}: placeholders need a Deployment, and are not negative")


@dataclass(frozen=True, slots=True)
class NodePoolConfig:
    """One Karpenter NodePool.

    Attributes:
        capacity_type: what it launches. The breaker shuts pools of Spot, a guardrail those on demand.
        zones: where.
        consolidate_after_minutes: how long an empty node of it stands.
    """

    name: str
    family: str
    capacity_type: CapacityType
    zones: tuple[str, ...]
    consolidate_after_minutes: int = 10


@dataclass(frozen=True, slots=True)
class OperationsConfig:
    """Everything, for one platform.

    Attributes:
        prices: by instance type, for estimates.
        budget: None when the file has none.
        output_token_weight: see `tokens.OUTPUT_WEIGHT`.
        daily_digest: a message a day with the spend.
        first_of_month: the same, once a month.

    Raises:
        ValueError: when a name stands twice.
    """

    platform: str
    region: str
    models: tuple[ModelConfig, ...]
    node_pools: tuple[NodePoolConfig, ...] = ()
    prices: Mapping[str, InstancePrice] = field(default_factory=dict)
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    prewarm: PrewarmPolicy = field(default_factory=PrewarmPolicy)
    budget: Budget | None = None
    output_token_weight: int = OUTPUT_WEIGHT
    daily_digest: bool = False
    first_of_month: bool = False

    def __post_init__(self) -> None:
        for what, names in (
            ("model", [model.name for model in self.models]),
            ("deployment", [f"{model.namespace}/{model.deployment}" for model in self.models]),
            ("node pool", [pool.name for pool in self.node_pools]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
            if twice:
                raise ValueError(f"The {what} {', '.join(twice)} stands twice")

    def to_json(self) -> str:
        """Sorted and indented, so that the bundle's hash changes only with the meaning."""
        return json.dumps(codec.encode(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "OperationsConfig":
        """What `to_json` wrote.

        Raises:
            ShapeError: when it is not that, with every mistake and its path.
        """
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise codec.ShapeError(f"The configuration is not JSON: {error}") from None
        return codec.decode(cls, data)
