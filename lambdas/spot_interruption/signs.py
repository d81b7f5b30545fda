"""From what EC2 says of an instance to a sign: with what the cluster, or else EC2, knows of the instance."""

from collections.abc import Iterable
from functools import cached_property
from typing import Final, cast, get_args

from botocore.exceptions import BotoCoreError, ClientError

from genai_finops.operations import observed as rules
from genai_finops.operations.losses import CapacityType, Pool, Sign, SignKind
from lambdas.adapters.cluster import ClusterState, Node
from lambdas.adapters.instances import Instance, Instances
from lambdas.adapters.kubernetes_errors import KubernetesError
from lambdas.adapters.observability import logger
from lambdas.adapters.observed import observed
from lambdas.runtime import Runtime
from lambdas.spot_interruption.events import Told

MAY_BE_OURS: Final = frozenset({SignKind.GONE, SignKind.REBALANCE})
"""Signs that a node may also give because the cluster itself is removing it. A warning or a planned change never is of
our making, and Karpenter marks the node within a second of it, often before we look."""


class Scene:
    """The cluster as one invocation sees it: looked at once, and only when something asks."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @cached_property
    def state(self) -> ClusterState | None:
        """None when the cluster does not answer: what EC2 said is worth keeping all the same."""
        try:
            return self._runtime.cluster.observe()
        except KubernetesError as error:
            logger.warning("recording without a look at the cluster", error=str(error))
            return None

    def signs(self, told: Iterable[Told]) -> list[Sign]:
        """Signs of this cluster's instances; those of others are left out."""
        found = list(told)
        nodes = self.state.nodes_by_instance if self.state else {}
        missing = [id for _, id, _, _ in found if id not in nodes]
        instances = self._find(missing) if missing else {}
        signs = []
        for one in found:
            id = one[1]
            instance = instances.get(id)
            if id in nodes:
                signs.append(self._of_node(one, nodes[id]))
            elif instance and not instance.belongs_to(self._runtime.cluster_name):
                logger.info("not of this cluster", instance_id=id)
            else:
                if instance is None:
                    logger.warning("unknown to the cluster and to EC2", instance_id=id)
                signs.append(_of_instance(one, instance))
        return signs

    @cached_property
    def _shown(self) -> rules.Observed:
        assert self.state
        return observed(self.state, self._runtime.config, None)

    @cached_property
    def _nodes(self) -> dict[str, rules.Node]:
        return {node.instance_id: node for node in self._shown.nodes}

    def _find(self, ids: list[str]) -> dict[str, Instance]:
        try:
            return Instances(self._runtime.aws("ec2")).find(ids)
        except (ClientError, BotoCoreError) as error:
            logger.warning("EC2 does not say whose instances these are", instance_ids=ids, error=str(error))
            return {}

    def _of_node(self, told: Told, node: Node) -> Sign:
        kind, id, at, event_id = told
        known = self._nodes.get(id)
        replicas = dict(known.replicas) if known else {}
        return Sign(
            instance_id=id,
            kind=kind,
            at=at,
            event_id=event_id,
            pool=Pool(node.instance_type, node.zone),
            node=node.name,
            node_pool=node.node_pool or None,
            capacity_type=_capacity_type(node.capacity_type),
            replicas=replicas,
            serving={model: self._shown.models[model].replicas.wanted for model in replicas},
            voluntary=node.is_leaving and kind in MAY_BE_OURS,
        )


def _of_instance(told: Told, instance: Instance | None) -> Sign:
    """Of an instance without a node: it runs nothing of ours now.

    A state change that comes when the node has gone says nothing about whose wish that was; every node that scales in
    ends so. What EC2 takes has been announced by a warning, mostly.
    """
    kind, id, at, event_id = told
    voluntary = kind is SignKind.GONE
    if instance is None:
        return Sign(id, kind, at, event_id, voluntary=voluntary)
    return Sign(
        instance_id=id,
        kind=kind,
        at=at,
        event_id=event_id,
        pool=Pool(instance.instance_type, instance.zone),
        node_pool=instance.node_pool or None,
        capacity_type="spot" if instance.is_spot else "on-demand",
        voluntary=voluntary,
    )


def _capacity_type(label: str) -> CapacityType | None:
    return cast(CapacityType, label) if label in get_args(CapacityType) else None
