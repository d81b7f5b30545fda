"""From what the cluster and Prometheus show to what the rules read: counted by model, joined by name."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, cast, get_args

from genai_finops.operations import observed as rules
from genai_finops.operations.config import ModelConfig, OperationsConfig
from genai_finops.operations.losses import CapacityType
from lambdas.adapters.cluster import ClusterState, Deployment, Node, ScaledObject
from lambdas.adapters.prometheus import Load

APP_LABEL: Final = "app"
"""Has the name of its Deployment on every server's pod; placeholders of a model have another."""


def observed(state: ClusterState, config: OperationsConfig, load: Mapping[str, Load] | None) -> rules.Observed:
    """What the rules read.

    Args:
        load: by the name that clients ask for; None when Prometheus did not answer.
    """
    scaled_objects = {found.name: found for found in state.scaled_objects}
    deployments = {found.name: found for found in state.deployments}
    models_of = {model.deployment: model.name for model in config.models}
    replicas: dict[str, Counter[str]] = {}
    draining: dict[str, Counter[str]] = {}
    leaving: Counter[str] = Counter()
    for pod in state.pods:
        model = models_of.get(pod.labels.get(APP_LABEL, ""))
        if model is None or pod.is_finished:
            continue
        leaving[model] += pod.is_terminating
        if pod.node:
            (draining if pod.is_terminating else replicas).setdefault(pod.node, Counter())[model] += 1
    return rules.Observed(
        models={
            model.name: _model(model, scaled_objects, deployments, leaving[model.name], load) for model in config.models
        },
        nodes=tuple(
            _node(node, replicas.get(node.name, {}), draining.get(node.name, {}))
            for node in state.nodes
            if node.node_pool and node.capacity_type in get_args(CapacityType)
        ),
        node_pools={
            pool.name: rules.ObservedNodePool(pool.limits.get("nodes"), pool.resource_version)
            for pool in state.node_pools
        },
    )


def _model(
    model: ModelConfig,
    scaled_objects: Mapping[str, ScaledObject],
    deployments: Mapping[str, Deployment],
    draining: int,
    load: Mapping[str, Load] | None,
) -> rules.ObservedModel:
    deployment = deployments.get(model.deployment)
    placeholder = deployments.get(model.placeholder_deployment or "")
    return rules.ObservedModel(
        scaled_object=_scaled_object(scaled_objects.get(model.deployment)),
        replicas=_replicas(deployment, draining),
        requests=_requests(model, deployment, load),
        placeholders=placeholder.wanted if placeholder else None,
    )


def _scaled_object(found: ScaledObject | None) -> rules.ScaledObject | None:
    if found is None:
        return None
    return rules.ScaledObject(found.annotations, found.min_replicas, found.max_replicas, found.resource_version)


def _replicas(found: Deployment | None, draining: int) -> rules.Replicas:
    if found is None:
        return rules.Replicas(draining=draining)
    return rules.Replicas(found.wanted, found.total, found.ready, draining)


def _requests(model: ModelConfig, deployment: Deployment | None, load: Mapping[str, Load] | None) -> int | None:
    """Without a ready replica nobody is served. With one that has no series, nobody can say."""
    if load is None:
        return None
    if model.served_as in load:
        return load[model.served_as].running + load[model.served_as].waiting
    return None if deployment and deployment.ready else 0


def _node(node: Node, replicas: Mapping[str, int], draining: Mapping[str, int]) -> rules.Node:
    return rules.Node(
        name=node.name,
        instance_id=node.instance_id,
        instance_type=node.instance_type,
        zone=node.zone,
        capacity_type=cast(CapacityType, node.capacity_type),
        node_pool=node.node_pool,
        replicas=dict(replicas),
        draining=dict(draining),
    )
