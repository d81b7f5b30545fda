"""Warm capacity: room on nodes that are there already, for replicas that are not.

Placeholders ask for what a replica asks for, at a negative priority: a real replica takes their place at once, and
Karpenter launches the next node for the placeholder that was pushed out. They bring the model's files to their node
as they start, so that what is left of a replica's start is the load. A CapacityBuffer does the first half without pods.
"""

from collections.abc import Sequence
from typing import Final

from cdk8s import Chart
from cdk8s_plus_28 import k8s
from constructs import Construct

from genai_finops import versions
from genai_finops.spec import Model, Platform, engine, names
from k8s_charts import labels, placing
from k8s_charts.custom import CapacityBuffer
from k8s_charts.values import number, percent
from k8s_charts.vllm import ServerPod

WARM: Final = "warm"

_LINUX_USER_NOBODY: Final = 65534


class WarmChart(Chart):
    """Deployments of placeholders. How many there are at a time is the automation's to say."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "warm", labels=labels.COMMON)
        for model in platform.models:
            if model.warm_capacity.placeholders:
                self._placeholders(platform, model)

    def _placeholders(self, platform: Platform, model: Model) -> None:
        """All are replaced at once: two generations side by side would lease twice the accelerators."""
        pods = {labels.APP: names.warm_deployment(model)}
        marks = {names.SUPPLY_LABEL: WARM}  # the network policy of those who only bring files
        metadata = k8s.ObjectMeta(labels={**labels.COMMON, **labels.of(model), **marks, **pods})
        k8s.KubeDeployment(
            self,
            model.name,
            metadata=k8s.ObjectMeta(
                name=names.warm_deployment(model), namespace=names.MODEL_NAMESPACE, labels=labels.of(model)
            ),
            spec=k8s.DeploymentSpec(
                replicas=model.warm_capacity.placeholders,
                revision_history_limit=1,
                selector=k8s.LabelSelector(match_labels=pods),
                strategy=k8s.DeploymentStrategy(
                    type="RollingUpdate",
                    rolling_update=k8s.RollingUpdateDeployment(max_surge=number(0), max_unavailable=percent(100)),
                ),
                template=k8s.PodTemplateSpec(
                    metadata=metadata, spec=ServerPod(platform, model).placeholder(_pause(model))
                ),
            ),
        )


def _pause(model: Model) -> k8s.Container:
    return k8s.Container(
        name="pause",
        image=versions.PAUSE_IMAGE,
        image_pull_policy="IfNotPresent",
        resources=placing.resources(model, devices=True),
        security_context=k8s.SecurityContext(
            allow_privilege_escalation=False,
            capabilities=k8s.Capabilities(drop=["ALL"]),
            read_only_root_filesystem=True,
            run_as_non_root=True,
            run_as_user=_LINUX_USER_NOBODY,
        ),
    )


class BufferChart(Chart):
    """What Karpenter keeps by itself, behind its feature gate."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "buffer", labels=labels.COMMON)
        for model in platform.models:
            if model.warm_capacity.kind == "buffer":
                CapacityBuffer(
                    self,
                    model.name,
                    name=names.warm_deployment(model),
                    namespace=names.MODEL_NAMESPACE,
                    labels=labels.of(model),
                    deployment=names.deployment(model),
                    replicas=model.warm_capacity.replicas,
                )


class ImagesChart(Chart):
    """For families that want it, pods on every node of theirs that pull what its servers will ask for.

    Without requests: what they took of a node's CPU would be missing where a server takes all that is left of it.
    """

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "images", labels=labels.COMMON)
        for family in platform.families:
            if platform.node_pool(family).image_preload.pull_ahead:
                self._puller(family, platform.models_on(family))

    def _puller(self, family: str, models: Sequence[Model]) -> None:
        name = names.image_puller(family)
        pods = {labels.APP: name}
        images = dict.fromkeys(engine.image(model) for model in models)
        pulls = [_idle(f"pull-{number}", image, ["true"]) for number, image in enumerate(images)]
        vendor = models[0].vendor
        k8s.KubeDaemonSet(
            self,
            family,
            metadata=k8s.ObjectMeta(name=name, namespace=names.MODEL_NAMESPACE),
            spec=k8s.DaemonSetSpec(
                selector=k8s.LabelSelector(match_labels=pods),
                update_strategy=k8s.DaemonSetUpdateStrategy(
                    type="RollingUpdate", rolling_update=k8s.RollingUpdateDaemonSet(max_unavailable=percent(100))
                ),
                template=k8s.PodTemplateSpec(
                    metadata=k8s.ObjectMeta(labels={**labels.COMMON, **pods}),
                    spec=k8s.PodSpec(
                        automount_service_account_token=False,
                        enable_service_links=False,
                        node_selector={**labels.node(vendor), labels.INSTANCE_FAMILY: family},
                        tolerations=[placing.tolerated(models[0])],
                        priority_class_name=names.WARM_PRIORITY_CLASS,
                        termination_grace_period_seconds=0,
                        security_context=k8s.PodSecurityContext(
                            seccomp_profile=k8s.SeccompProfile(type="RuntimeDefault")
                        ),
                        init_containers=pulls,
                        containers=[_idle("pause", versions.PAUSE_IMAGE)],
                    ),
                ),
            ),
        )


def _idle(name: str, image: str, command: Sequence[str] | None = None) -> k8s.Container:
    return k8s.Container(
        name=name,
        image=image,
        image_pull_policy="IfNotPresent",
        command=command,
        security_context=k8s.SecurityContext(
            allow_privilege_escalation=False,
            capabilities=k8s.Capabilities(drop=["ALL"]),
            read_only_root_filesystem=True,
        ),
    )
