"""How long one evaluation takes: 500 models on 2,000 nodes, a storm going on.

    python -m benchmarks.operations

Prints CPU milliseconds of the parts of a reconcile that are computed here, the median of several runs. The issue asks
for a whole reconcile in less than 2 s of CPU; these rules should be a small part of that.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import median
from time import process_time
from typing import Any

from genai_finops.operations.budget import Budget, SpendReport, Threshold
from genai_finops.operations.changes import changes
from genai_finops.operations.config import ModelConfig, NodePoolConfig, OperationsConfig
from genai_finops.operations.desired import desired_state
from genai_finops.operations.facts import Facts
from genai_finops.operations.losses import Pool, Sign, SignKind
from genai_finops.operations.observed import Node, Observed, ObservedModel, ObservedNodePool, Replicas, ScaledObject
from genai_finops.operations.tokens import InstancePrice, live_estimate
from genai_finops.operations.verify import verify
from genai_finops.operations.windows import Schedule, Window, parse_days

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
PLACES = ("America/New_York", "Europe/Berlin", "Asia/Kolkata", "Pacific/Auckland", "Australia/Lord_Howe")
FAMILIES = ("inf2", "trn1", "g6e", "p5")


def platform(models: int) -> OperationsConfig:
    """Every model with a schedule of its own, over five zones and four families."""
    return OperationsConfig(
        platform="large",
        region="us-east-1",
        models=tuple(
            ModelConfig(
                name=f"model-{number}",
                deployment=f"vllm-model-{number}",
                namespace="genai-inference",
                served_as=f"model-{number}",
                family=FAMILIES[number % 4],
                min_replicas=1,
                max_replicas=20,
                critical=number % 7 == 0,
                schedule=Schedule(PLACES[number % 5], (Window(parse_days("Mon-Fri"), number, 1200),), (), number % 60),
            )
            for number in range(models)
        ),
        node_pools=tuple(
            NodePoolConfig(f"{family}-{capacity_type}", family, capacity_type, ZONES)
            for family in FAMILIES
            for capacity_type in ("spot", "on-demand")
        ),
        prices={f"{family}.xlarge": InstancePrice(Decimal("0.76"), Decimal("0.30")) for family in FAMILIES},
        budget=Budget(Decimal(100_000), (Threshold("actual", 80, "cap_replicas", 10), Threshold("forecast", 100))),
    )


def cluster(config: OperationsConfig, nodes: int) -> Observed:
    models = config.models
    return Observed(
        models={
            model.name: ObservedModel(ScaledObject({}, 1, 20, "1"), Replicas(4, 4, 4), requests=3) for model in models
        },
        nodes=tuple(
            Node(
                name=f"node-{number}",
                instance_id=f"i-{number}",
                instance_type=f"{models[number % len(models)].family}.xlarge",
                zone=ZONES[number % 3],
                capacity_type="spot",
                node_pool=f"{models[number % len(models)].family}-spot",
                replicas={models[number % len(models)].name: 1},
            )
            for number in range(nodes)
        ),
        node_pools={pool.name: ObservedNodePool() for pool in config.node_pools},
    )


def history(observed: Observed, lost: int) -> Facts:
    """Every sign of `lost` nodes over two days, the last of them now; three months of daily reports."""
    signs = tuple(
        Sign(
            instance_id=node.instance_id,
            kind=kind,
            at=NOW - timedelta(minutes=number % 2880),
            event_id=f"{node.instance_id}-{kind}",
            pool=Pool(node.instance_type, node.zone),
            node=node.name,
            node_pool=node.node_pool,
            capacity_type=node.capacity_type,
            replicas=node.replicas,
            serving=dict.fromkeys(node.replicas, 4),
        )
        for number, node in enumerate(observed.nodes[:lost])
        for kind in SignKind
    )
    reports = tuple(SpendReport(NOW - timedelta(days=day), Decimal(90_000), Decimal(90_000)) for day in range(90))
    return Facts(signs, reports)


def milliseconds(run: Callable[[], Any], times: int) -> float:
    taken = []
    for _ in range(times):
        start = process_time()
        run()
        taken.append((process_time() - start) * 1000)
    return median(taken)


def main() -> None:
    config = platform(500)
    text = config.to_json()
    observed = cluster(config, 2000)
    facts = history(observed, 1000)
    first = milliseconds(lambda: desired_state(config, facts, observed, NOW), 1)
    desired = desired_state(config, facts, observed, NOW)
    parts: dict[str, Callable[[], Any]] = {
        "read the configuration": lambda: OperationsConfig.from_json(text),
        "desired state, again": lambda: desired_state(config, facts, observed, NOW),
        "changes": lambda: changes(desired, observed),
        "verify": lambda: verify(desired, observed),
        "live estimate": lambda: live_estimate(observed.nodes, config.prices),
    }
    print(f"500 models, 2000 nodes, {len(facts.signs)} signs, {len(changes(desired, observed))} patches")
    print(f"{'desired state, cold':24} {first:8.1f} ms")
    for name, run in parts.items():
        print(f"{name:24} {milliseconds(run, 5):8.1f} ms")


if __name__ == "__main__":
    main()
