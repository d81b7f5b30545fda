"""A small platform for the tests of rules: short ways to say what has happened and what the cluster shows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from genai_finops.operations.budget import Budget, SpendReport, Threshold
from genai_finops.operations.config import ModelConfig, NodePoolConfig, OperationsConfig
from genai_finops.operations.facts import Facts
from genai_finops.operations.losses import Loss, Pool, Sign, SignKind, merge
from genai_finops.operations.observed import Node, Observed, ObservedModel, ObservedNodePool, Replicas, ScaledObject
from genai_finops.operations.tokens import InstancePrice
from genai_finops.operations.windows import Schedule, Window, parse_days, parse_time

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
"""A Wednesday."""
LATER = NOW + timedelta(days=365)

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

POOL = Pool("inf2.xlarge", "us-east-1a")
OTHER_POOL = Pool("inf2.xlarge", "us-east-1b")
SPOT_POOL = NodePoolConfig("inf2-spot", "inf2", "spot", ("us-east-1a", "us-east-1b"))
ON_DEMAND = NodePoolConfig("inf2-on-demand", "inf2", "on-demand", ("us-east-1a", "us-east-1b"))
PRICES = {"inf2.xlarge": InstancePrice(Decimal("0.76"), Decimal("0.30"))}

OFFICE = Schedule("UTC", (Window(parse_days("Mon-Fri"), parse_time("08:00"), parse_time("20:00")),))


def model(name="chat", **settings):
    given = {"deployment": f"vllm-{name}", "namespace": "genai-inference", "served_as": name, "family": "inf2"}
    return ModelConfig(name=name, **(given | {"min_replicas": 1, "max_replicas": 10} | settings))


def config(*models, **settings):
    given = {"models": models or (model(),), "node_pools": (SPOT_POOL, ON_DEMAND), "prices": PRICES}
    return OperationsConfig(platform="demo", region="us-east-1", **(given | settings))


def sign(instance="i-1", kind=SignKind.WARNING, at=NOW, **settings):
    given = {"event_id": f"{instance}-{kind}", "pool": POOL, "node": f"node-{instance}", "node_pool": SPOT_POOL.name}
    return Sign(instance, kind, at, **(given | {"capacity_type": "spot"} | settings))


def losses(*signs) -> tuple[Loss, ...]:
    return merge(signs, until=LATER)


def node(instance="i-1", replicas=None, **settings):
    given = {"name": f"node-{instance}", "instance_type": POOL.instance_type, "zone": POOL.zone}
    given |= {"capacity_type": "spot", "node_pool": SPOT_POOL.name, "replicas": replicas or {}}
    return Node(instance_id=instance, **(given | settings))


def shown(annotations=None, *, replicas=None, minimum=1, maximum=10, requests=0, **settings):
    """A model as the cluster shows it; `replicas` as a number runs and serves them."""
    if not isinstance(replicas, Replicas):
        count = 1 if replicas is None else replicas
        replicas = Replicas(count, count, count)
    return ObservedModel(ScaledObject(annotations or {}, minimum, maximum, "7"), replicas, requests, **settings)


def observed(models=None, nodes=(), limits=None):
    """`models` by name, or one called chat; `limits` are those of NodePools that have any."""
    if models is None or isinstance(models, ObservedModel):
        models = {"chat": models or shown()}
    pools = {pool.name: ObservedNodePool((limits or {}).get(pool.name), "3") for pool in (SPOT_POOL, ON_DEMAND)}
    return Observed(models, tuple(nodes), pools)


def facts(*given):
    return Facts(
        tuple(one for one in given if isinstance(one, Sign)),
        tuple(one for one in given if isinstance(one, SpendReport)),
    )


def report(gross, at=NOW, **settings):
    return SpendReport(at, Decimal(gross), Decimal(gross), **settings)


def budget(*thresholds, monthly="1000"):
    return Budget(Decimal(monthly), tuple(thresholds) or (Threshold("actual", 80),))


def storm(count=5, *, first=NOW - 20 * MINUTE, every=2 * MINUTE, pool=POOL, name="storm", **settings):
    return tuple(
        sign(f"i-{name}-{pool.zone}-{number}", at=first + number * every, pool=pool, **settings)
        for number in range(count)
    )


def signs_of(*instances, around=NOW, span=3 * HOUR, kinds=tuple(SignKind)):
    """Any sign of these instances, up to `span` before and after; the same event id may come twice."""
    return st.builds(
        lambda instance, kind, offset, pool, replicas, serving, voluntary: replace(
            sign(instance, kind, around + offset),
            pool=pool,
            replicas=replicas,
            serving=serving,
            voluntary=voluntary,
        ),
        st.sampled_from(instances),
        st.sampled_from(kinds),
        st.integers(-int(span.total_seconds()), int(span.total_seconds())).map(lambda seconds: seconds * SECOND),
        st.sampled_from([None, POOL, OTHER_POOL]),
        st.dictionaries(st.sampled_from(["chat", "code"]), st.integers(0, 3), max_size=2),
        st.dictionaries(st.sampled_from(["chat", "code"]), st.integers(0, 9), max_size=2),
        st.booleans(),
    )
