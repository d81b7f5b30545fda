"""Random platform files, valid by construction or with one mistake, for property tests of any room.

    @given(strategies.platforms())              # a Platform that loads
    @given(strategies.documents())              # the same as the content of its file
    @given(strategies.invalid_platforms())      # (document, the path that must be refused)

What fits on what is not guessed and filtered: `_layouts` asks `genai_finops.spec` once for every combination
of a model, a family and a split, and documents are drawn from those that work.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import product
from math import ceil
from typing import Any

import yaml
from hypothesis import strategies as st

from genai_finops.catalog import (
    ModelShape,
    families,
    kubernetes_versions,
    model_shapes,
    regions,
    zones,
)
from genai_finops.catalog.instances import GIB
from genai_finops.operations.windows import DAYS
from genai_finops.spec import Platform, parse_platform, placement
from genai_finops.spec.checks import hardware
from genai_finops.spec.checks.account import REGIONS_WITHOUT_BUDGETS
from genai_finops.spec.model import TIME_TO_FIRST_TOKEN_BUCKETS, Model

Document = dict[str, Any]

MOST_STORED_GIB = 2000
"""No model of the catalog takes more in a node's cache."""

LARGEST_NODE_DEVICES = max(instances[-1].devices for instances in families().values())

_SPLITS = (None, 1, 2, 4, 8, 16)
_LENGTHS = (4096, 8192)
_COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class Layout:
    """A way to run a model on a family, and all sizes that it works on."""

    shape: ModelShape
    accelerator: Document
    engine: Document
    sizes: tuple[str, ...]
    neuron: bool
    cpu: int
    """Cores that a replica may ask for on every one of the sizes."""
    memory_gib: tuple[int, int]
    """The same, from the least it needs."""
    compile_sizes: tuple[str, ...]
    """Where its graphs can be compiled."""
    stored_gib: int
    """What its weights and graphs take."""


@cache
def _layouts(family: str) -> tuple[Layout, ...]:
    neuron = families()[family][0].accelerator.vendor == "neuron"
    quantizations = (None, "int8" if neuron else "fp8")
    compile_on_start = (None, True) if neuron else (None,)
    found = []
    for shape, split, *engine in product(model_shapes(), _SPLITS, _LENGTHS, quantizations, compile_on_start):
        settings = dict(zip(("max_model_len", "quantization", "allow_compile_on_start"), engine, strict=True))
        layout = _layout(family, neuron, shape, split, settings)
        if layout is None and neuron:
            layout = _layout(family, neuron, shape, split, settings | {"max_num_seqs": 1})
        if layout is not None:
            found.append(layout)
    return tuple(found)


def _layout(family: str, neuron: bool, shape: ModelShape, split: int | None, engine: Document) -> Layout | None:
    given = {key: value for key, value in engine.items() if value is not None}
    accelerator: Document = {"family": family} | ({"tensor_parallel_size": split} if split else {})
    model = _model(shape, accelerator, given)
    if model.engine.max_model_len > shape.max_position_embeddings or list(hardware.problems(model, "")):
        return None
    able = [instance for instance in families()[family] if placement.serves_on(model, instance)]
    shares = [placement.node_share(model, instance) for instance in able]
    least = max(placement.compile_host_memory_gib(model), 4)
    return Layout(
        shape=shape,
        accelerator=accelerator,
        engine=given,
        sizes=tuple(instance.size for instance in able),
        neuron=neuron,
        cpu=min(share.cpu_millis for share in shares) // 1000,
        memory_gib=(least, min(share.memory_mib for share in shares) // 1024),
        compile_sizes=tuple(
            instance.size for instance in families()[family] if neuron and placement.compiles_on(model, instance)
        ),
        stored_gib=ceil(placement.stored_bytes(model) / GIB),
    )


def _model(shape: ModelShape, accelerator: Document, engine: Document) -> Model:
    return Model.model_validate(
        {
            "name": "m",
            "source": f"hf://{shape.repositories[0]}",
            "revision": _COMMIT,
            "accelerator": accelerator,
            "engine": engine,
        }
    )


def platforms() -> st.SearchStrategy[Platform]:
    """Valid platforms."""
    return documents().map(load)


def load(document: Document) -> Platform:
    """The platform in a document, by way of its YAML.

    Raises:
        PlatformError: when it is not valid.
    """
    return parse_platform(text_of(document))


def text_of(document: Document) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True)


@st.composite
def documents(draw: st.DrawFn, most_models: int = 3) -> Document:
    """Contents of valid platform files: all families, Neuron and NVIDIA, hub and S3, every section."""
    region = draw(st.sampled_from(regions()))
    in_region = zones(region)
    chosen_zones = draw(st.lists(st.sampled_from(in_region), min_size=2, max_size=3, unique=True))
    models = [draw(_models(index)) for index in range(draw(st.integers(1, most_models)))]
    document = {
        "name": draw(st.sampled_from(["demo", "a", "genai-prod-2", "x" * 43])),
        "region": region,
        "zones": chosen_zones,
        "models": models,
    }
    used = list(dict.fromkeys(model["accelerator"]["family"] for model in models))
    sections = {
        "network": _network(len(chosen_zones)),
        "cluster": _cluster(),
        "node_pools": _node_pools(used),
        "model_store": _subset(noncurrent_days=st.integers(1, 365), unfinished_upload_days=st.integers(1, 30)),
        "gateway": _gateway(region),
        "hub_token_secret": st.just("genai/hugging-face-token"),
        "monitoring": _subset(
            scrape_interval_seconds=st.integers(5, 120),
            retention_days=st.integers(1, 365),
            storage_gib=st.integers(10, 2000),
        ),
        "tags": st.dictionaries(st.sampled_from(["team", "cost-center", "Größe"]), st.sampled_from(["a", "4711"])),
        "termination_protection": st.booleans(),
        "interruptions": _interruptions(),
        "cost_report": _subset(output_token_weight=st.integers(1, 100)),
    }
    # A copy, since hypothesis gives the same object again, and who draws a document may change it.
    budget = draw(_budget()) if region not in REGIONS_WITHOUT_BUDGETS else {}
    return deepcopy(document | draw(st.fixed_dictionaries({}, optional=sections)) | budget)


def _subset(**settings: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=settings)


def _network(zone_count: int) -> st.SearchStrategy[Document]:
    return _subset(
        cidr=st.sampled_from(["10.0.0.0/16", "172.31.0.0/20", "192.168.0.0/16", "100.64.0.0/18"]),
        nat_gateways=st.integers(1, zone_count),
        interface_endpoints=st.lists(st.sampled_from(["ecr.api", "ecr.dkr", "sts", "sqs", "ec2"]), unique=True),
        flow_log_retention_days=st.sampled_from([1, 14, 365]),
    )


def _cluster() -> st.SearchStrategy[Document]:
    return _subset(
        version=st.sampled_from(kubernetes_versions()),
        public_access_cidrs=st.lists(st.sampled_from(["203.0.113.0/24", "198.51.100.7/32"]), unique=True),
        admin_roles=st.just(["arn:aws:iam::111122223333:role/platform/Admin"]),
        system_nodes=st.fixed_dictionaries(
            {"count": st.integers(2, 5), "max_count": st.integers(5, 40)},
            optional={"instance_type": st.sampled_from(["m7g.large", "m7g.xlarge", "t4g.large"])},
        ),
        addon_versions=st.dictionaries(
            st.sampled_from(["vpc-cni", "coredns", "kube-proxy"]), st.sampled_from(["default", "v1.20.4-eksbuild.1"])
        ),
        log_retention_days=st.sampled_from([1, 30, 365]),
    )


def _node_pools(used: list[str]) -> st.SearchStrategy[Document]:
    volume = st.builds(
        lambda size, throughput, spare: {
            "size_gib": size,
            "throughput_mib_s": throughput,
            "iops": max(3000, 4 * throughput) + spare,
        },
        st.integers(40, 2000),
        st.integers(125, 2000),
        st.integers(0, 1000),
    )
    snapshot = st.fixed_dictionaries(
        {"snapshot": st.just("snap-0123456789abcdef0")},
        optional={"initialization_mib_s": st.integers(100, 300), "pull_ahead": st.booleans()},
    )
    cached = st.builds(
        lambda cache, spare: {"cache_gib": cache, "volume": {"size_gib": cache + 20 + spare}},
        st.integers(MOST_STORED_GIB, 3000),
        st.integers(0, 100),
    )
    settings = {
        "max_devices": st.integers(LARGEST_NODE_DEVICES, 500),
        "consolidate_after_minutes": st.integers(1, 60),
        "expire_after_hours": st.integers(1, 720),
        "parallel_image_pulls": st.integers(1, 10),
    }
    plain = settings | {"volume": volume, "image_preload": snapshot | _subset(pull_ahead=st.booleans())}
    fast = settings | {"fast_image_pull": st.just(True), "image_preload": _subset(pull_ahead=st.booleans())}
    pool = _subset(**plain) | _subset(**fast) | st.builds(dict.__or__, _subset(**settings), cached)
    return st.fixed_dictionaries({}, optional=dict.fromkeys(used, pool))


def _gateway(region: str) -> st.SearchStrategy[Document]:
    certificate = f"arn:aws:acm:{region}:111122223333:certificate/11111111-2222-3333-4444-555555555555"
    networks = st.lists(st.sampled_from(["203.0.113.0/24", "10.0.0.0/8", "0.0.0.0/0"]), min_size=1, unique=True)
    internal = _subset(
        enabled=st.booleans(),
        certificate_arn=st.just(certificate),
        hostname=st.just("models.example.com"),
        allowed_cidrs=networks,
        api_key=st.booleans(),
    )
    public = st.fixed_dictionaries(
        {"scheme": st.just("internet-facing"), "certificate_arn": st.just(certificate), "allowed_cidrs": networks},
        optional={"hostname": st.just("models.example.com")},
    )
    return internal | public


def _interruptions() -> st.SearchStrategy[Document]:
    return _subset(
        breaker=_subset(
            window_minutes=st.integers(1, 1440),
            interruptions=st.integers(1, 1000),
            cooldown_minutes=st.integers(1, 1440),
            max_doublings=st.integers(0, 10),
            shut_percent_of_zones=st.integers(1, 100),
        ),
        prewarm=_subset(hold_seconds=st.integers(60, 21_600)),
    )


def _budget() -> st.SearchStrategy[Document]:
    budget = st.fixed_dictionaries(
        {"monthly_usd": st.integers(1, 10**9) | st.sampled_from(["0.01", 99.5])},
        optional={
            "actual_thresholds_percent": st.lists(st.integers(1, 1000), max_size=3, unique=True).map(sorted),
            "forecast_thresholds_percent": st.lists(st.integers(1, 1000), max_size=2, unique=True).map(sorted),
        },
    )
    budget = st.builds(_guarded, budget, st.sampled_from([None, "on_demand_off"]))
    emails = st.just({"emails": ["finops@example.com"]})
    slack = st.just({"slack": {"workspace_id": "T0123456789", "channel_id": "C0123456789"}})
    digests = _subset(daily_digest=st.booleans(), first_of_month=st.booleans())
    heard = emails | slack | st.builds(dict.__or__, emails, slack)
    return st.just({}) | st.fixed_dictionaries(
        {"budget": budget, "notifications": heard}, optional={"cost_report": digests}
    )


def _guarded(budget: Document, action: str | None) -> Document:
    """With a guardrail at each threshold that stands in the file."""
    guardrails = [
        {"basis": basis, "percent": percent, "action": action}
        for basis in ("actual", "forecast")
        for percent in budget.get(f"{basis}_thresholds_percent", ())
    ]
    return budget | ({"guardrails": guardrails} if action else {})


@st.composite
def _models(draw: st.DrawFn, index: int) -> Document:
    layout = draw(st.sampled_from(_layouts(draw(st.sampled_from(sorted(families()))))))
    model = {
        "name": f"{draw(st.sampled_from(['m', 'llama3-8b', 'a' * 47]))}-{index}",
        **draw(_weights(layout.shape)),
        "accelerator": layout.accelerator | draw(_sizes(layout)),
        "engine": layout.engine | draw(_engine(layout)),
    }
    settings = {
        "served_name": st.sampled_from(["org/model", "Model_1.0"]).map(lambda name: f"{name}-{index}"),
        "resources": _resources(layout),
        "scaling": _scaling(),
        "spot": st.sampled_from(["prefer", "only", "never"]),
        "critical": st.booleans(),
        "probes": _subset(
            startup_seconds=st.integers(60, 7200),
            readiness_period_seconds=st.integers(1, 60),
            liveness_period_seconds=st.integers(5, 120),
            liveness_failures=st.integers(1, 20),
        ),
        "drain_seconds": st.integers(0, 100),
        "objective": _subset(
            time_to_first_token_seconds=st.sampled_from(TIME_TO_FIRST_TOKEN_BUCKETS),
            percent=st.sampled_from([50, 95, 99.9]),
        ),
    }
    model |= draw(st.fixed_dictionaries({}, optional=settings))
    model |= draw(_awake_and_warm())
    if layout.neuron:
        model |= draw(_subset(compile=_compile(layout, model.get("spot"))))
    return model


def _awake_and_warm() -> st.SearchStrategy[Document]:
    """A buffer does not sleep, so a model that does has none."""
    placeholders = _subset(replicas=st.integers(0, 5), kind=st.just("placeholder"))
    buffer = st.fixed_dictionaries({"replicas": st.integers(1, 5), "kind": st.just("buffer")})
    return _subset(schedule=_schedule(), warm_capacity=placeholders) | _subset(warm_capacity=buffer)


def _compile(layout: Layout, spot: str | None) -> st.SearchStrategy[Document]:
    return _subset(
        size=st.sampled_from(layout.compile_sizes),
        spot=st.just(True) if spot == "only" else st.booleans(),
        timeout_minutes=st.integers(10, 1440),
        retries=st.integers(0, 10),
    )


def _weights(shape: ModelShape) -> st.SearchStrategy[Document]:
    numbers = (
        "parameters",
        "layers",
        "attention_heads",
        "key_value_heads",
        "head_dimension",
        "max_position_embeddings",
    )
    own_shape = {name: getattr(shape, name) for name in numbers}
    hub = st.sampled_from(shape.repositories).map(lambda name: {"source": f"hf://{name}", "revision": _COMMIT})
    s3 = st.sampled_from([_COMMIT, "v1", "2026-01-01"]).map(
        lambda revision: {"source": "s3://example-models/weights", "revision": revision, "shape": own_shape}
    )
    return hub | s3


def _sizes(layout: Layout) -> st.SearchStrategy[Document]:
    some = st.lists(st.sampled_from(layout.sizes), min_size=1, unique=True)
    return st.just({}) | some.map(lambda sizes: {"sizes": sizes})


def _engine(layout: Layout) -> st.SearchStrategy[Document]:
    longest = layout.engine["max_model_len"]
    common = {
        "dtype": st.sampled_from(["bfloat16", "float16"]),
        "image": st.sampled_from(["example.com/vllm:1", f"example.com/vllm@sha256:{'0' * 64}"]),
        "extra_args": st.sampled_from([[], ["--seed", "7"], ["--disable-log-requests"]]),
        "env": st.sampled_from([{}, {"VLLM_LOGGING_LEVEL": "DEBUG"}, {"EMPTY": ""}]),
    }
    shorter = st.lists(st.integers(1, longest - 1), max_size=3, unique=True)
    ladder = shorter.map(lambda lengths: [*sorted(lengths), longest])
    neuron = {
        "buckets": _subset(context_encoding=ladder, token_generation=ladder),
        "prefix_caching": st.just(False),
        "block_size": st.just(longest),
        "neuron_config": st.sampled_from([{}, {"fused_qkv": True}, {"nested": {"list": [1, None, 0.5, "x"]}}]),
    }
    nvidia = {
        "max_num_seqs": st.integers(1, 512),
        "prefix_caching": st.booleans(),
        "block_size": st.sampled_from([16, 32]),
        "num_gpu_blocks_override": st.integers(1, 10_000),
        "gpu_memory_utilization": st.sampled_from([0.9, 0.95, 0.98]),
    }
    return st.fixed_dictionaries({}, optional=common | (neuron if layout.neuron else nvidia))


def _resources(layout: Layout) -> st.SearchStrategy[Document]:
    least, most = layout.memory_gib
    return _subset(
        cpu=st.integers(1, layout.cpu),
        memory_gib=st.integers(least, most),
        shared_memory_gib=st.integers(1, 3),
    )


def _scaling() -> st.SearchStrategy[Document]:
    replicas = st.builds(
        lambda least, more: {"min_replicas": least, "max_replicas": least + more}, st.integers(1, 5), st.integers(0, 20)
    )
    further = _subset(
        queue_per_replica=st.integers(1, 100),
        kv_cache_target=st.sampled_from([0.1, 0.8, 0.99]),
        polling_interval_seconds=st.integers(5, 300),
        cooldown_seconds=st.integers(0, 3600),
        scale_up=_subset(
            stabilization_seconds=st.integers(0, 3600), percent=st.integers(1, 900), period_seconds=st.integers(1, 1800)
        ),
        scale_down=_subset(
            stabilization_seconds=st.integers(0, 3600), percent=st.integers(1, 100), period_seconds=st.integers(1, 1800)
        ),
    )
    return st.builds(dict.__or__, replicas, further)


def _schedule() -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries(
        {
            "time_zone": st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
            "awake": st.lists(awake_windows(), min_size=1, max_size=3),
        },
        optional={
            "exceptions": st.lists(st.integers(0, 40), unique=True, max_size=3).flatmap(_exceptions),
            "wake_lead_minutes": st.integers(0, 1440),
            "sleep_busy_limit_minutes": st.integers(0, 1440),
        },
    )


def _exceptions(weeks: list[int]) -> st.SearchStrategy[list[Document]]:
    """Each in a week of its own, so that no date is special twice."""
    time = st.sampled_from(["00:00", "09:30", "23:59"])
    hours = st.lists(st.fixed_dictionaries({"start": time, "end": time | st.just("24:00")}), max_size=2)

    def one(week: int) -> st.SearchStrategy[Document]:
        first = date(2026, 3, 2) + timedelta(weeks=week)
        last = st.integers(0, 6).map(lambda days: (first + timedelta(days=days)).isoformat())
        return st.fixed_dictionaries({"first": st.just(first.isoformat())}, optional={"last": last, "awake": hours})

    return st.tuples(*map(one, weeks)).map(list)


def awake_windows() -> st.SearchStrategy[Document]:
    """Windows as the file has them."""
    day = st.sampled_from(DAYS)
    days = day | st.builds("{}-{}".format, day, day) | st.lists(day, min_size=1, max_size=3).map(",".join)
    time = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.sampled_from([0, 15, 59]))
    return st.fixed_dictionaries({"days": days, "start": time, "end": time | st.just("24:00")})


Mistake = Callable[[Document], str]
"""Makes a mistake in a valid document, and returns the path at which it must be refused."""


def _at(path: str, value: Any) -> Mistake:
    """A setting of the file or of its first model (`model.`) gets a value that is never valid."""

    def make(document: Document) -> str:
        keys = path.split(".")
        node: Any = document
        if keys[0] == "model":
            node, keys = document["models"][0], keys[1:]
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        node[keys[-1]] = deepcopy(value)
        return path.replace("model.", "models[0].", 1) if path.startswith("model.") else path

    return make


def _inside(path: str, value: Any, place: str) -> Mistake:
    """Like `_at`, for a mistake that is refused deeper than the value that holds it."""
    make = _at(path, value)
    return lambda document: make(document) + place


def _second_of_a_name(document: Document) -> str:
    document["models"].append({**document["models"][0], "served_name": "another"})
    return f"models[{len(document['models']) - 1}].name"


def _slow_volume(document: Document) -> str:
    family = document["models"][0]["accelerator"]["family"]
    volume = {"throughput_mib_s": 2000, "iops": 3000}
    document.setdefault("node_pools", {}).setdefault(family, {})["volume"] = volume
    return f"node_pools.{family}.volume.throughput_mib_s"


def _nobody_hears(document: Document) -> str:
    document["budget"] = {"monthly_usd": 1}
    document["notifications"] = {}
    return "notifications"


def _guardrail_of_no_threshold(document: Document) -> str:
    guardrail = {"basis": "actual", "percent": 79, "action": "on_demand_off"}
    document["budget"] = {"monthly_usd": 1, "actual_thresholds_percent": [80], "guardrails": [guardrail]}
    document["notifications"] = {"emails": ["finops@example.com"]}
    return "budget.guardrails[0].percent"


def _fast_pull_of_a_snapshot(document: Document) -> str:
    family = document["models"][0]["accelerator"]["family"]
    pool = {"fast_image_pull": True, "image_preload": {"snapshot": "snap-0123456789abcdef0"}}
    document.setdefault("node_pools", {})[family] = pool
    return f"node_pools.{family}.fast_image_pull"


def _cache_without_a_volume(document: Document) -> str:
    family = document["models"][0]["accelerator"]["family"]
    document.setdefault("node_pools", {})[family] = {"cache_gib": 1000, "volume": {"size_gib": 1000}}
    return f"node_pools.{family}.cache_gib"


def _buffer_of_nothing(document: Document) -> str:
    document["models"][0].pop("schedule", None)
    document["models"][0]["warm_capacity"] = {"kind": "buffer"}
    return "models[0].warm_capacity.kind"


def _no_certificate(document: Document) -> str:
    document["gateway"] = {"scheme": "internet-facing", "allowed_cidrs": ["0.0.0.0/0"]}
    return "gateway.certificate_arn"


def _missing(path: str) -> Mistake:
    def make(document: Document) -> str:
        key = path.removeprefix("models[0].")
        (document if key == path else document["models"][0]).pop(key)
        return path

    return make


_WINDOW = {"days": "Mon", "start": "08:00", "end": "25:00"}

MISTAKES: dict[str, Mistake] = {
    "an unknown region": _at("region", "mars-1"),
    "an unknown setting": _at("nonsense", 1),
    "an unknown setting of a model": _at("model.nonsense", 1),
    "an unknown setting of the engine": _at("model.engine.nonsense", 1),
    "a zone of another region": _inside("zones", ["mars-1a", "mars-1b"], "[0]"),
    "no name": _missing("name"),
    "no revision": _missing("models[0].revision"),
    "no models": _at("models", []),
    "a name in capitals": _at("name", "Demo"),
    "a name that is too long": _at("name", "x" * 44),
    "a model name that is too long": _at("model.name", "x" * 50),
    "two models of one name": _second_of_a_name,
    "a small network": _at("network.cidr", "10.0.0.0/24"),
    "more NAT gateways than zones": _at("network.nat_gateways", 9),
    "an old Kubernetes": _at("cluster.version", "1.20"),
    "an open API server": _at("cluster.public_access_cidrs", ["0.0.0.0/0"]),
    "a number for a text": _at("cluster.version", 1.35),
    "a text for a number": _at("model.engine.max_num_seqs", "many"),
    "a pool of no model": _at("node_pools.x9", {}),
    "a volume with too few IOPS": _slow_volume,
    "a snapshot that is not looked into": _fast_pull_of_a_snapshot,
    "a cache as large as its volume": _cache_without_a_volume,
    "a store that forgets at once": _at("model_store.noncurrent_days", 0),
    "a buffer that holds nothing": _buffer_of_nothing,
    "a compile job without an end": _at("model.compile.timeout_minutes", 0),
    "a weightless source": _at("model.source", "gs://bucket/x"),
    "an empty revision": _at("model.revision", ""),
    "an unknown family": _at("model.accelerator.family", "x9"),
    "an unknown size": _inside("model.accelerator.sizes", ["nano"], "[0]"),
    "a split that heads do not allow": _at("model.accelerator.tensor_parallel_size", 3),
    "a sequence longer than any model": _at("model.engine.max_model_len", 10**7),
    "a port of its own": _inside("model.engine.extra_args", ["--port", "1"], "[0]"),
    "a token in the environment": _inside("model.engine.env", {"HF_TOKEN": "x"}, ".HF_TOKEN"),
    "an image without a tag": _at("model.engine.image", "vllm/vllm-openai"),
    "more memory than any host has": _at("model.resources.memory_gib", 99_999),
    "a minimum of zero": _at("model.scaling.min_replicas", 0),
    "a minimum above the maximum": _at("model.scaling.min_replicas", 9_999),
    "a drain longer than the Spot notice": _at("model.drain_seconds", 101),
    "an unknown time zone": _at("model.schedule", {"time_zone": "Mars/Phobos", "awake": [_WINDOW | {"end": "12:00"}]}),
    "an hour that a day does not have": _at("model.schedule", {"time_zone": "UTC", "awake": [_WINDOW]}),
    "an objective that cannot be counted": _at("model.objective.time_to_first_token_seconds", 3.3),
    "a public gateway without a certificate": _no_certificate,
    "a budget of nothing": _at("budget", {"monthly_usd": 0}),
    "a budget that nobody hears of": _nobody_hears,
    "a guardrail of no threshold": _guardrail_of_no_threshold,
    "a rest of no length": _at("interruptions.breaker.cooldown_minutes", 0),
    "a tag that is reserved": _at("tags", {"aws:x": "y"}),
}

_REFUSED_DEEPER = {
    "an unknown time zone": "models[0].schedule.time_zone",
    "an hour that a day does not have": "models[0].schedule.awake[0]",
    "a budget of nothing": "budget.monthly_usd",
}


@st.composite
def invalid_platforms(draw: st.DrawFn) -> tuple[Document, str]:
    """A valid document with one mistake, and the path at which it must be refused."""
    document = draw(documents(most_models=2))
    mistake = draw(st.sampled_from(sorted(MISTAKES)))
    path = MISTAKES[mistake](document)
    return document, _REFUSED_DEEPER.get(mistake, path)
