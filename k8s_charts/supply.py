"""How models come to their servers: the jobs that fill the store, and how a pod brings from it what it needs.

For each model one job stages its weights and, on Neuron, another compiles its graphs. A job's name says what it is made
of, so that a change makes a new one and everything else leaves it alone: the pods of a Job cannot change. What is in
the store already ends a job at once, so a deploy may apply them again and again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cdk8s import Chart
from cdk8s_plus_28 import k8s
from constructs import Construct

from genai_finops.catalog import InstanceType
from genai_finops.spec import Model, Platform, artifacts, engine, names, placement
from genai_finops.spec.model import S3, Spot
from k8s_charts import labels, namespace, network, placing
from k8s_charts.custom import CustomResource

MODELS: Final = "/models"
CACHE: Final = "/cache"
SCRIPTS: Final = "/scripts"
WORK: Final = "/work"

BUCKET_VARIABLE: Final = "MODEL_STORE_BUCKET"
CACHE_VARIABLE: Final = "MODEL_CACHE"

STAGE: Final = "stage"
COMPILE: Final = "compile"

STAGE_RETRIES: Final = 5
"""The hub breaks connections off; a further attempt goes on where the last one stopped."""

STAGE_SECONDS: Final = 6 * 3600
"""All attempts together: a hundred gigabytes from a slow hub."""

AWAIT_SECONDS: Final = 3600
"""How long a compile job waits for weights, on a node that is paid for; then it is tried again."""

STAGE_MEMORY: Final = "4Gi"
LARGEST_FILES: Final = 2
"""That pass over the pod's disk at once."""

LARGEST_FILE_GIB: Final = 10
"""Of a checkpoint; hubs split them at five to ten gigabytes."""

NODE_SECONDS: Final = 900
"""For a node to be launched and the image and weights to arrive before what runs in the pod counts
(measured: four and a half minutes on an idle day)."""

KEPT_SECONDS: Final = 86_400
"""A finished job stays a day, so that its log can be read."""

_VOLUMES: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "models": (MODELS, {"emptyDir": {}}),
    "cache": (CACHE, {"persistentVolumeClaim": {"claimName": names.MODEL_CACHE}}),
    "scripts": (
        SCRIPTS,
        {"projected": {"sources": [{"configMap": {"name": name}} for name in (namespace.SCRIPTS, names.MODEL_SUPPLY)]}},
    ),
    "work": (WORK, {"emptyDir": {}}),
}


# What every pod that brings from the store has


def bring_command(platform: Platform, model: Model) -> list[str]:
    """Weights and graphs from the store to the node's disk, and links to them where the server looks.

    The graphs have the weights as each core loads them, so of the checkpoint only configuration and tokenizer come.
    """
    pool = platform.node_pool(model.accelerator.family)
    command = [
        "python3", f"{SCRIPTS}/fetch.py",
        "--weights", weights(model),
        "--weights-link", engine.WEIGHTS_PATH,
        "--stage-command", make(STAGE, model),
        "--cache-limit-gib", str(placement.cache_gib(pool, platform.models_on(model.accelerator.family))),
    ]  # fmt: skip
    if model.is_precompiled:
        command += [
            "--no-tensors",
            "--artifacts", artifacts.key(model),
            "--artifacts-link", engine.ARTIFACTS_PATH,
            "--recipe", artifacts.recipe_text(model),
            "--compile-command", make(COMPILE, model),
        ]  # fmt: skip
    return command


def weights(model: Model) -> str:
    """As the scripts name them."""
    return f"{artifacts.weights_name(model)}@{model.revision}"


def make(step: str, model: Model) -> str:
    """What a person types for a step."""
    return f"make {step} MODEL={model.name}"


def store_variables(platform: Platform) -> list[k8s.EnvVar]:
    """Where the store is: the stack that makes the bucket writes its name into a ConfigMap."""
    bucket = k8s.ConfigMapKeySelector(name=names.MODEL_STORE, key=names.BUCKET_KEY)
    return [
        k8s.EnvVar(name=BUCKET_VARIABLE, value_from=k8s.EnvVarSource(config_map_key_ref=bucket)),
        k8s.EnvVar(name=CACHE_VARIABLE, value=CACHE),
        k8s.EnvVar(name="AWS_REGION", value=platform.region),
    ]


# The jobs


class SupplyChart(Chart):
    """All jobs that fill the store."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "supply", labels=labels.COMMON)
        self._network_policy()
        scripts = namespace.scripts()
        k8s.KubeConfigMap(
            self,
            "scripts",
            metadata=k8s.ObjectMeta(name=names.MODEL_SUPPLY, namespace=names.MODEL_NAMESPACE),
            data={name: scripts[name] for name in namespace.ONLY_IN_JOBS},
        )
        for model in platform.models:
            _job(self, STAGE, model, stage_job(platform, model))
            if model.is_precompiled:
                _job(self, COMPILE, model, compile_job(platform, model), **{names.KEY_LABEL: artifacts.key(model)})

    def _network_policy(self) -> None:
        """Out: names, HTTPS, identity. In: nothing."""
        chosen = k8s.LabelSelectorRequirement(key=names.SUPPLY_LABEL, operator="Exists")
        k8s.KubeNetworkPolicy(
            self,
            "network-policy",
            metadata=k8s.ObjectMeta(name=names.MODEL_SUPPLY, namespace=names.MODEL_NAMESPACE),
            spec=k8s.NetworkPolicySpec(
                pod_selector=k8s.LabelSelector(match_expressions=[chosen]),
                policy_types=["Ingress", "Egress"],
                egress=network.to_aws(),
            ),
        )


def _job(chart: Chart, step: str, model: Model, spec: dict[str, Any], **further: str) -> None:
    """Named after all that it is made of."""
    marks = {**labels.of(model), names.SUPPLY_LABEL: step, **further}
    spec["template"]["metadata"] = {"labels": marks, "annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    name = names.supply_job(step, model, json.dumps(spec, sort_keys=True))
    CustomResource(
        chart,
        f"{step}-{model.name}",
        api_version="batch/v1",
        kind="Job",
        name=name,
        namespace=names.MODEL_NAMESPACE,
        labels=marks,
        spec=spec,
    )


def stage_job(platform: Platform, model: Model) -> dict[str, Any]:
    """On the smallest node of the model's own pool: its image is the server's, so a server may follow on the node."""
    source = f"{model.source}/{model.revision}" if model.source.startswith(S3) else f"hub:{model.repository}"
    command = [
        "python3", f"{SCRIPTS}/stage.py",
        "--name", artifacts.weights_name(model),
        "--revision", model.revision,
        "--source", source,
        "--work-dir", WORK,
    ]  # fmt: skip
    environment = [*_variables({"HF_HOME": f"{WORK}/hub", "HOME": WORK}), *_store(platform)]
    volumes = {"scripts": _VOLUMES["scripts"], "work": _VOLUMES["work"]}
    secret = names.HUB_TOKEN_SECRET
    if model.repository and secret in namespace.secrets(platform):
        environment.append({"name": "HF_TOKEN", "valueFrom": _secret_key(secret)})
        volumes[secret] = (f"/secrets/{secret}", _secret_volume(secret))
    disk = f"{LARGEST_FILES * LARGEST_FILE_GIB}Gi"
    asked = {"cpu": "2", "memory": STAGE_MEMORY, "ephemeral-storage": disk}
    container = _container(
        STAGE, model, command, environment, volumes,
        {"requests": asked, "limits": {"memory": STAGE_MEMORY}},
    )  # fmt: skip
    smallest = min(placement.pool_instances(model), key=lambda one: (one.devices, one.vcpu))
    return _spec(
        retries=STAGE_RETRIES,
        seconds=STAGE_SECONDS,
        pod=_pod(model, names.STAGING_SERVICE_ACCOUNT, model.spot, [smallest], volumes, [container]),
    )


def compile_job(platform: Platform, model: Model) -> dict[str, Any]:
    """On a node of its own, with the devices of a replica and all of the host's memory."""
    instance = placement.compile_instance(model)
    assert instance  # the checks of the file refuse a model without
    seconds = model.compile.timeout_minutes * 60
    memory = {"medium": "Memory", "sizeLimit": f"{model.resources.shared_memory_gib}Gi"}
    volumes = {**_VOLUMES, "shm": ("/dev/shm", {"emptyDir": memory})}
    environment = [
        *_variables({"HF_HOME": f"{MODELS}/hub", "HF_HUB_OFFLINE": "1", "HOME": WORK, **model.engine.env}),
        *_store(platform),
    ]
    wait = [
        "python3", f"{SCRIPTS}/await_weights.py",
        "--weights", weights(model),
        "--timeout", str(AWAIT_SECONDS),
        "--stage-command", make(STAGE, model),
    ]  # fmt: skip
    command = [
        "python3", f"{SCRIPTS}/compile.py",
        "--key", artifacts.key(model),
        "--recipe", artifacts.recipe_text(model),
        "--weights", weights(model),
        "--weights-link", engine.WEIGHTS_PATH,
        "--cache", CACHE,
        "--output", f"{WORK}/{artifacts.ARTIFACTS}",
        "--timeout", str(seconds),
        "--stage-command", make(STAGE, model),
        "--", "python3", f"{SCRIPTS}/compile_model.py", *engine.engine_arguments(model),
    ]  # fmt: skip
    asked = _whole_host(model, instance)
    resources = {"requests": {"cpu": asked["cpu"], **_without_cpu(asked)}, "limits": _without_cpu(asked)}
    spot: Spot = model.spot if model.compile.spot else "never"
    return _spec(
        retries=model.compile.retries,
        seconds=(model.compile.retries + 1) * (NODE_SECONDS + AWAIT_SECONDS + seconds),
        pod={
            **_pod(
                model,
                names.COMPILE_SERVICE_ACCOUNT,
                spot,
                [instance],
                volumes,
                [_container(COMPILE, model, command, environment, volumes, resources)],
            ),
            "initContainers": [
                _container("await-weights", model, wait, environment, volumes, {"limits": {"memory": "1Gi"}})
            ],
        },
    )


def _whole_host(model: Model, instance: InstanceType) -> dict[str, str]:
    cpu_millis, memory_mib = placement.host_share(instance)
    return {
        "cpu": str(max(1, cpu_millis // 1000)),
        "memory": f"{memory_mib // 1024}Gi",
        names.device_resource(model.vendor): str(placement.devices_per_replica(model, instance)),
    }


def _without_cpu(asked: Mapping[str, str]) -> dict[str, str]:
    return {resource: amount for resource, amount in asked.items() if resource != "cpu"}


def _spec(*, retries: int, seconds: int, pod: dict[str, Any]) -> dict[str, Any]:
    """A pod that EC2 or a drain takes away has not failed: it is tried again without being counted."""
    return {
        "backoffLimit": retries,
        "activeDeadlineSeconds": seconds,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "template": {"spec": pod},
    }


def _pod(
    model: Model,
    service_account: str,
    spot: Spot,
    instances: Sequence[InstanceType],
    volumes: Mapping[str, tuple[str, dict[str, Any]]],
    containers: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    rules = placing.instance_rules(instances)
    required = {"nodeSelectorTerms": [{"matchExpressions": rules}]}
    return {
        "restartPolicy": "Never",
        "serviceAccountName": service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": names.PRIORITY_CLASS,
        "nodeSelector": placing.node_labels(model, spot),
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [placing.toleration(model)],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": containers,
        "volumes": [{"name": name, **source} for name, (_, source) in volumes.items()],
    }


def _container(
    name: str,
    model: Model,
    command: Sequence[str],
    environment: Sequence[dict[str, Any]],
    volumes: Mapping[str, tuple[str, dict[str, Any]]],
    resources: dict[str, Any],
) -> dict[str, Any]:
    read_only = {"scripts", names.HUB_TOKEN_SECRET}
    return {
        "name": name,
        "image": engine.image(model),
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "env": environment,
        "resources": resources,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": volume, "mountPath": path, **({"readOnly": True} if volume in read_only else {})}
            for volume, (path, _) in volumes.items()
        ],
    }


def _variables(values: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _store(platform: Platform) -> list[dict[str, Any]]:
    bucket = {"configMapKeyRef": {"name": names.MODEL_STORE, "key": names.BUCKET_KEY}}
    return [{"name": BUCKET_VARIABLE, "valueFrom": bucket}, {"name": "AWS_REGION", "value": platform.region}]


def _secret_key(secret: str) -> dict[str, Any]:
    return {"secretKeyRef": {"name": secret, "key": names.SECRET_KEY}}


def _secret_volume(secret: str) -> dict[str, Any]:
    return {
        "csi": {
            "driver": namespace.SECRETS_DRIVER,
            "readOnly": True,
            "volumeAttributes": {"secretProviderClass": secret},
        }
    }
