"""One served model: where its weights come from, what it runs on, how it scales and when it sleeps."""

from datetime import date
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from genai_finops.catalog import InstanceType, ModelShape, families, instance_type, model_shape
from genai_finops.catalog.instances import Vendor
from genai_finops.operations.windows import MINUTES_A_DAY, Hours, SpecialDays, Window, parse_days, parse_time
from genai_finops.spec.base import Section
from genai_finops.spec.forms import DNS_LABEL, SERVED_NAME

TIME_TO_FIRST_TOKEN_BUCKETS: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0)
"""Bounds of vLLM's `vllm:time_to_first_token_seconds` histogram that make sense as an objective: a burn rate can only
be counted at a bound."""

HUB: Final = "hf://"
S3: Final = "s3://"

Spot = Literal["prefer", "only", "never"]
DnsLabel = Annotated[str, StringConstraints(pattern=DNS_LABEL.pattern)]


class Shape(Section):
    """The numbers from a model's config.json, for a model that the catalog does not know."""

    parameters: int = Field(gt=0)
    """All weights, embeddings included."""
    layers: int = Field(gt=0)
    """num_hidden_layers."""
    attention_heads: int = Field(gt=0)
    """num_attention_heads."""
    key_value_heads: int = Field(gt=0)
    """num_key_value_heads; the same as attention_heads in a model without grouped queries."""
    head_dimension: int = Field(gt=0)
    """head_dim, or hidden_size divided by num_attention_heads."""
    max_position_embeddings: int = Field(gt=0)
    """The longest sequence the model was trained for, in tokens."""


class Accelerator(Section):
    """The instances a model may run on."""

    family: str
    """Instance family, such as inf2, trn1, g6e or p5."""
    sizes: tuple[str, ...] = ()
    """Sizes Karpenter may choose from, such as xlarge. Default: the smallest that the model fits."""
    tensor_parallel_size: int | None = Field(default=None, ge=1)
    """Cores (Neuron) or GPUs (NVIDIA) one replica is split over. Default: 2 on Neuron, 1 on NVIDIA."""


class Buckets(Section):
    """Sequence lengths that the graphs are compiled for. Prompts are padded to the next one."""

    context_encoding: tuple[int, ...] = ()
    """Default: powers of two from 512 up to max_model_len."""
    token_generation: tuple[int, ...] = ()
    """Default: the same."""


class Engine(Section):
    """How vLLM runs the model."""

    image: str | None = None
    """Default: the pinned vLLM image for the accelerator."""
    max_model_len: int = Field(default=4096, ge=128)
    """Longest prompt plus answer, in tokens."""
    max_num_seqs: int | None = Field(default=None, ge=1)
    """Requests served at once by a replica. Default: 8 on Neuron, 128 on NVIDIA."""
    dtype: Literal["bfloat16", "float16"] = "bfloat16"
    """Type of the weights, unless they are quantized, and of the KV cache."""
    quantization: Literal["int8", "fp8"] | None = None
    """int8 weights on Neuron, fp8 on NVIDIA."""
    buckets: Buckets = Buckets()
    """Neuron only."""
    prefix_caching: bool | None = None
    """Default: off on Neuron, on on NVIDIA."""
    block_size: int | None = Field(default=None, ge=1)
    """Tokens per block of the KV cache. Default: max_model_len on Neuron, vLLM's choice on NVIDIA."""
    num_gpu_blocks_override: int | None = Field(default=None, ge=1)
    """Blocks of the KV cache. Default: max_num_seqs on Neuron, measured by vLLM on NVIDIA."""
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=0.98)
    """Share of GPU memory that vLLM takes. NVIDIA only; default 0.9."""
    neuron_config: dict[str, Any] = Field(default_factory=dict)
    """Further keys of override_neuron_config. Neuron only."""
    allow_compile_on_start: bool = False
    """Neuron only. Each server compiles its graphs as it starts, for a quarter of an hour or more and on a host large
    enough for it, instead of starting from those of the model store. Off, one that finds none fails at once and says
    what to run."""
    extra_args: tuple[str, ...] = ()
    """Further arguments of `vllm serve`."""
    env: dict[str, str] = Field(default_factory=dict)
    """Further environment variables of the server."""


class Compile(Section):
    """The job that compiles a model's graphs into the model store, once for each configuration. Neuron only."""

    size: str | None = None
    """Instance size of the model's family. Default: the smallest with the devices and the host memory that it takes."""
    spot: bool = True
    """Whether it may run on Spot. It runs on demand where the model's own spot is never."""
    timeout_minutes: int = Field(default=120, ge=10, le=1440)
    """How long one attempt may take, from its start."""
    retries: int = Field(default=3, ge=0, le=10)
    """Further attempts after one that failed. A Spot interruption is not counted."""


class WarmCapacity(Section):
    """Room for further replicas on nodes that are there already, so that the next one starts without waiting for a
    node. Bought as the model's spot says."""

    replicas: int = Field(default=0, ge=0, le=100)
    """Replicas there is room for. Each costs what an idle replica costs while the model is awake."""
    kind: Literal["placeholder", "buffer"] = "placeholder"
    """placeholder: pods of negative priority, which sleep with the model. buffer: a CapacityBuffer, which Karpenter
    keeps without pods; alpha, and it never sleeps."""

    @property
    def placeholders(self) -> int:
        """Pods that hold the room; none where Karpenter itself does."""
        return self.replicas if self.kind == "placeholder" else 0


class Resources(Section):
    """What one replica asks of its node beside the accelerator."""

    cpu: int | None = Field(default=None, ge=1)
    """Cores requested. Default: what one replica's share of the smallest node allows, at most 8."""
    memory_gib: int | None = Field(default=None, ge=1)
    """Requested and limited. Default: what one replica's share of the smallest node allows, at most 64."""
    shared_memory_gib: int = Field(default=2, ge=1)
    """Size of the memory-backed /dev/shm; counts towards memory_gib."""


class ScaleUp(Section):
    """How fast replicas are added."""

    stabilization_seconds: int = Field(default=0, ge=0, le=3600)
    """The lowest count wanted within this time is taken."""
    percent: int = Field(default=100, ge=1, le=10_000)
    """Of the replicas there are, added in one period at most."""
    period_seconds: int = Field(default=15, ge=1, le=1800)
    """Length of a period."""


class ScaleDown(Section):
    """How fast replicas are removed."""

    stabilization_seconds: int = Field(default=300, ge=0, le=3600)
    """The highest count wanted within this time is taken."""
    percent: int = Field(default=10, ge=1, le=100)
    """Of the replicas there are, removed in one period at most."""
    period_seconds: int = Field(default=60, ge=1, le=1800)
    """Length of a period."""


class Scaling(Section):
    """When replicas are added and removed."""

    min_replicas: int = Field(default=1, ge=0)
    """Replicas while the model is awake; at least 1, since a model at zero has no queue that could wake it."""
    max_replicas: int = Field(default=10, ge=1, le=10_000)
    """Replicas at the busiest."""
    queue_per_replica: int = Field(default=5, ge=1, le=10_000)
    """Requests waiting per replica at which another one is added."""
    kv_cache_target: float | None = Field(default=None, gt=0, lt=1)
    """Average use of the KV cache at which another replica is added. Default: not used."""
    polling_interval_seconds: int = Field(default=15, ge=5, le=300)
    """How often KEDA looks."""
    cooldown_seconds: int = Field(default=300, ge=0, le=86_400)
    """KEDA's wait after the last activity before it scales to zero."""
    scale_up: ScaleUp = ScaleUp()
    scale_down: ScaleDown = ScaleDown()


class AwakeWindow(Section):
    """A weekly window in which the model serves."""

    days: str
    """Such as Mon-Fri or Sat,Sun: the days the window starts on."""
    start: str
    """HH:MM, local time."""
    end: str
    """HH:MM, local time; at or before the start means the next day."""

    def window(self) -> Window:
        """The window in minutes.

        Raises:
            ValueError: when the days or a time do not parse.
        """
        return Window(parse_days(self.days), parse_time(self.start), parse_time(self.end))


class AwakeHours(Section):
    """Hours of one special day in which the model serves."""

    start: str
    """HH:MM, local time."""
    end: str
    """HH:MM, local time; at or before the start means the next day."""

    def hours(self) -> Hours:
        """The hours in minutes.

        Raises:
            ValueError: when a time does not parse.
        """
        return Hours(parse_time(self.start), parse_time(self.end))


class SpecialDay(Section):
    """Dates on which the weekly windows do not hold, from midnight to midnight: a holiday, a launch."""

    first: date
    """YYYY-MM-DD, local date."""
    last: date | None = None
    """YYYY-MM-DD, this day included. Default: first."""
    awake: tuple[AwakeHours, ...] = ()
    """Hours of each of these days. Default: none, asleep all day."""

    def special_days(self) -> SpecialDays:
        """The dates with their hours.

        Raises:
            ValueError: when the dates or a time make no sense.
        """
        return SpecialDays(self.first, self.last or self.first, tuple(hours.hours() for hours in self.awake))


class Schedule(Section):
    """When the model is awake. Outside these windows it sleeps at zero replicas and costs nothing."""

    time_zone: str
    """IANA zone, such as Europe/Berlin."""
    awake: tuple[AwakeWindow, ...] = Field(min_length=1)
    """Windows may overlap; the model is awake in all of them."""
    exceptions: tuple[SpecialDay, ...] = ()
    """Dates with hours of their own. Default: none."""
    wake_lead_minutes: int = Field(default=0, ge=0, le=MINUTES_A_DAY)
    """How long before a window the model is woken, so that it is Ready at its start. A load takes 6 to 11 minutes from
    compiled artifacts, and is paid for."""
    sleep_busy_limit_minutes: int = Field(default=15, ge=0, le=MINUTES_A_DAY)
    """How long sleep waits for requests of a busy model, and at least drain_seconds."""


class Probes(Section):
    """How long the server may take, and how often it is asked."""

    startup_seconds: int = Field(default=1800, ge=60, le=7200)
    """From container start to the first healthy answer: the load, and compilation where it is allowed."""
    readiness_period_seconds: int = Field(default=10, ge=1, le=60)
    """How often traffic is decided on."""
    liveness_period_seconds: int = Field(default=15, ge=5, le=120)
    """How often a hung server is looked for."""
    liveness_failures: int = Field(default=4, ge=1, le=20)
    """Failures in a row after which the server is restarted."""


class Objective(Section):
    """The service level that alerts are computed from."""

    time_to_first_token_seconds: float = 2.5
    """One of the bounds of vLLM's histogram."""
    percent: float = Field(default=95, gt=0, lt=100)
    """Share of requests that get their first token in that time."""


class Model(Section):
    """One model served by the platform."""

    name: DnsLabel
    """Lower-case name; resources and the URL path are derived from it."""
    source: str
    """hf://organisation/repository, or s3://bucket/prefix (weights under <prefix>/<revision>/)."""
    revision: str
    """Commit hash on the hub, or the folder under the S3 prefix: never a branch, which moves."""
    served_name: str | None = Field(default=None, pattern=SERVED_NAME.pattern)
    """The `model` that clients ask for. Default: name."""
    shape: Shape | None = None
    """Needed for models that the catalog does not know."""
    accelerator: Accelerator
    """What it runs on: at least a family."""
    engine: Engine = Engine()
    compile: Compile = Compile()
    resources: Resources = Resources()
    scaling: Scaling = Scaling()
    spot: Spot = "prefer"
    """prefer: Spot first, on demand when Spot has none. only: never on demand. never: on demand only."""
    warm_capacity: WarmCapacity = WarmCapacity()
    schedule: Schedule | None = None
    """Default: always awake."""
    critical: bool = False
    """No guardrail of the budget touches a critical model."""
    probes: Probes = Probes()
    drain_seconds: int = Field(default=90, ge=0)
    """Time for requests in flight when a replica is stopped."""
    objective: Objective = Objective()

    @property
    def repository(self) -> str:
        """`organisation/repository` on the hub; empty for weights in S3."""
        return self.source.removeprefix(HUB) if self.source.startswith(HUB) else ""

    @property
    def served_as(self) -> str:
        return self.served_name or self.name

    @property
    def known_shape(self) -> ModelShape | None:
        """The shape from the file, else from the catalog, else None (which the checks refuse)."""
        if self.shape:
            return ModelShape(name=self.repository or self.name, **self.shape.model_dump())
        return model_shape(self.repository)

    @property
    def vendor(self) -> Vendor:
        accelerator = families()[self.accelerator.family][0].accelerator
        assert accelerator  # families() lists only types that carry one
        return accelerator.vendor

    @property
    def is_neuron(self) -> bool:
        return self.vendor == "neuron"

    @property
    def is_precompiled(self) -> bool:
        """Whether it is served from graphs that were compiled before, by a job."""
        return self.is_neuron and not self.engine.allow_compile_on_start

    @property
    def tensor_parallel_size(self) -> int:
        return self.accelerator.tensor_parallel_size or (2 if self.is_neuron else 1)

    @property
    def max_num_seqs(self) -> int:
        return self.engine.max_num_seqs or (8 if self.is_neuron else 128)

    @property
    def prefix_caching(self) -> bool:
        return not self.is_neuron if self.engine.prefix_caching is None else self.engine.prefix_caching

    def instance_types(self, sizes: tuple[str, ...]) -> tuple[InstanceType, ...]:
        """The catalog's types of this model's family with these sizes, in the order given."""
        return tuple(instance_type(f"{self.accelerator.family}.{size}") for size in sizes)
