"""Custom resources as typed constructs: what Karpenter, KEDA, Prometheus and the load balancer are told.

Each takes what varies here and writes the rest of the shape, so a chart cannot misspell a field. Plain values
go in, since every object that crosses into jsii costs more than the YAML it stands for.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import yaml
from cdk8s import ApiObject, ApiObjectMetadata, JsonPatch
from constructs import Construct

from genai_finops import versions
from genai_finops.spec import names
from k8s_charts import labels

Json: TypeAlias = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | bool


class CustomResource(ApiObject):
    """An object with a `spec` of its own kind."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        api_version: str,
        kind: str,
        name: str,
        spec: Mapping[str, Json],
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        metadata = ApiObjectMetadata(name=name, namespace=namespace, labels=labels)
        super().__init__(scope, id, api_version=api_version, kind=kind, metadata=metadata)
        plain = json.loads(json.dumps(spec))  # jsii takes lists, and refuses tuples
        self.add_json_patch(JsonPatch.add("/spec", plain))


# Karpenter


@dataclass(frozen=True, slots=True)
class RootVolume:
    size_gib: int
    iops: int
    throughput_mib_s: int


@dataclass(frozen=True, slots=True)
class ImageVolume:
    """A second disk, filled from a snapshot at a rate that is paid for."""

    snapshot: str
    initialization_mib_s: int


class EC2NodeClass(CustomResource):
    """How a node is launched: image, network, disks, identity."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        role: str,
        discovery: str,
        volume: RootVolume,
        images: ImageVolume | None,
        joins_local_disks: bool,
        user_data: str,
        tags: Mapping[str, str],
    ) -> None:
        speed: dict[str, Json] = {
            "volumeType": "gp3",
            "iops": volume.iops,
            "throughput": volume.throughput_mib_s,
            "encrypted": True,
            "deleteOnTermination": True,
        }
        root: dict[str, Json] = {
            "deviceName": "/dev/xvda",
            "ebs": {**speed, "volumeSize": f"{volume.size_gib}Gi"},
        }
        disks = [root]
        if images:
            filled: dict[str, Json] = {
                "snapshotID": images.snapshot,
                "volumeInitializationRate": images.initialization_mib_s,
            }
            root["rootVolume"] = True  # on this one, of the two, Karpenter counts the room for pods
            disks.append({"deviceName": "/dev/xvdb", "ebs": {**speed, **filled}})
        discovered: Json = [{"tags": {names.DISCOVERY_TAG: discovery}}]
        spec: dict[str, Json] = {
            "amiSelectorTerms": [{"alias": versions.AL2023_AMI_ALIAS}],
            "role": role,
            "subnetSelectorTerms": discovered,
            "securityGroupSelectorTerms": discovered,
            "blockDeviceMappings": disks,
            # One hop: a pod that is not on the host network cannot reach the node's credentials.
            "metadataOptions": {
                "httpEndpoint": "enabled",
                "httpProtocolIPv6": "disabled",
                "httpPutResponseHopLimit": 1,
                "httpTokens": "required",
            },
            "userData": user_data,
            "tags": tags,
        }
        if joins_local_disks:
            spec["instanceStorePolicy"] = "RAID0"
        super().__init__(scope, id, api_version=versions.KARPENTER_AWS_API, kind="EC2NodeClass", name=name, spec=spec)


@dataclass(frozen=True, slots=True)
class Disruption:
    """How many nodes of a pool may go at once, for a reason."""

    nodes: str
    reason: Literal["Empty", "Drifted"]


class NodePool(CustomResource):
    """Which nodes Karpenter may launch, how many, and when it takes them away."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        node_class: str,
        weight: int,
        node_labels: Mapping[str, str],
        taint: str,
        requirements: Mapping[str, Sequence[str]],
        limits: Mapping[str, str],
        consolidate_after_minutes: int,
        expire_after_hours: int,
        termination_grace_minutes: int,
        budgets: Sequence[Disruption],
    ) -> None:
        group = versions.KARPENTER_AWS_API.partition("/")[0]
        spec: dict[str, Json] = {
            "weight": weight,
            "template": {
                "metadata": {"labels": node_labels},
                "spec": {
                    "nodeClassRef": {"group": group, "kind": "EC2NodeClass", "name": node_class},
                    "requirements": [
                        {"key": key, "operator": "In", "values": values} for key, values in requirements.items()
                    ],
                    "taints": [{"key": taint, "value": labels.TAINT_VALUE, "effect": labels.TAINT_EFFECT}],
                    "expireAfter": f"{expire_after_hours}h",
                    "terminationGracePeriod": f"{termination_grace_minutes}m",
                },
            },
            "limits": limits,
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": f"{consolidate_after_minutes}m",
                "budgets": [{"nodes": budget.nodes, "reasons": [budget.reason]} for budget in budgets],
            },
        }
        super().__init__(scope, id, api_version=versions.KARPENTER_API, kind="NodePool", name=name, spec=spec)


class CapacityBuffer(CustomResource):
    """Room for further replicas of a Deployment, which Karpenter keeps as if they were there."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        labels: Mapping[str, str],
        deployment: str,
        replicas: int,
    ) -> None:
        super().__init__(
            scope,
            id,
            api_version=versions.CAPACITY_BUFFER_API,
            kind="CapacityBuffer",
            name=name,
            namespace=namespace,
            labels=labels,
            spec={
                "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": deployment},
                "replicas": replicas,
            },
        )


# KEDA


@dataclass(frozen=True, slots=True)
class PrometheusTrigger:
    """Replicas = the query's value / threshold, rounded up (metric type AverageValue)."""

    name: str
    query: str
    threshold: float

    def spec(self) -> Json:
        return {
            "type": "prometheus",
            "name": self.name,
            "metricType": "AverageValue",
            "metadata": {
                "serverAddress": names.PROMETHEUS_URL,
                "query": self.query,
                "threshold": f"{self.threshold:g}",
                # An empty answer is a fault to fall back from, not a queue of length zero.
                "ignoreNullValues": "false",
            },
        }


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """At most `percent` of the replicas per `period_seconds`, once the wish has stood for
    `stabilization_seconds`."""

    stabilization_seconds: int
    percent: int
    period_seconds: int

    def spec(self) -> Json:
        return {
            "stabilizationWindowSeconds": self.stabilization_seconds,
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": self.percent, "periodSeconds": self.period_seconds}],
        }


class ScaledObject(CustomResource):
    """What KEDA turns into a HorizontalPodAutoscaler over a Deployment."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        labels: Mapping[str, str],
        deployment: str,
        autoscaler: str,
        min_replicas: int,
        max_replicas: int,
        polling_seconds: int,
        cooldown_seconds: int,
        failures_until_fallback: int,
        fallback_replicas: int,
        scale_up: ScalingPolicy,
        scale_down: ScalingPolicy,
        triggers: Sequence[PrometheusTrigger],
    ) -> None:
        spec: dict[str, Json] = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
            "minReplicaCount": min_replicas,
            "maxReplicaCount": max_replicas,
            "pollingInterval": polling_seconds,
            "cooldownPeriod": cooldown_seconds,
            "fallback": {
                "failureThreshold": failures_until_fallback,
                "replicas": fallback_replicas,
                "behavior": "currentReplicasIfHigher",
            },
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "name": autoscaler,
                    "behavior": {"scaleUp": scale_up.spec(), "scaleDown": scale_down.spec()},
                }
            },
            "triggers": [trigger.spec() for trigger in triggers],
        }
        super().__init__(
            scope,
            id,
            api_version=versions.KEDA_API,
            kind="ScaledObject",
            name=name,
            namespace=namespace,
            labels=labels,
            spec=spec,
        )


# Prometheus operator


class PodMonitor(CustomResource):
    """Which pods Prometheus scrapes, at the named port."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        pods: Mapping[str, str],
        port: str,
        interval_seconds: int,
        labels: Mapping[str, str] | None = None,
        pod_namespace: str | None = None,
    ) -> None:
        spec: dict[str, Json] = {
            "selector": {"matchLabels": pods},
            "podMetricsEndpoints": [{"port": port, "path": "/metrics", "interval": f"{interval_seconds}s"}],
        }
        if pod_namespace:
            spec["namespaceSelector"] = {"matchNames": [pod_namespace]}
        super().__init__(
            scope,
            id,
            api_version=versions.PROMETHEUS_API,
            kind="PodMonitor",
            name=name,
            namespace=namespace,
            labels=labels,
            spec=spec,
        )


@dataclass(frozen=True, slots=True)
class Alert:
    """An alerting rule. `runbook` is a heading of docs/operations.md, as its anchor."""

    name: str
    expression: str
    for_minutes: int
    severity: Literal["critical", "warning"]
    summary: str
    description: str
    runbook: str

    def spec(self, labels: Mapping[str, str]) -> Json:
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": f"{self.for_minutes}m",
            "labels": {"severity": self.severity, **labels},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook": f"docs/operations.md#{self.runbook}",
            },
        }


class PrometheusRule(CustomResource):
    """A group of alerts; `alert_labels` go on each alert that fires."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        alerts: Sequence[Alert],
        labels: Mapping[str, str] | None = None,
        alert_labels: Mapping[str, str] | None = None,
    ) -> None:
        spec: dict[str, Json] = {
            "groups": [{"name": name, "rules": [alert.spec(alert_labels or {}) for alert in alerts]}]
        }
        super().__init__(
            scope,
            id,
            api_version=versions.PROMETHEUS_API,
            kind="PrometheusRule",
            name=name,
            namespace=namespace,
            labels=labels,
            spec=spec,
        )


# Gateway API and AWS Load Balancer Controller

_GATEWAY_GROUP: Final = versions.GATEWAY_API.partition("/")[0]
_AWS_GATEWAY_GROUP: Final = versions.AWS_GATEWAY_API.partition("/")[0]
_LOAD_BALANCER_CONFIGURATION: Final = "LoadBalancerConfiguration"


def _attributes(attributes: Mapping[str, str]) -> Json:
    return [{"key": key, "value": value} for key, value in attributes.items()]


@dataclass(frozen=True, slots=True)
class Listener:
    protocol: Literal["HTTP", "HTTPS"]
    port: int
    hostname: str | None

    @property
    def name(self) -> str:
        return self.protocol.lower()


class GatewayClass(CustomResource):
    """Gateways of this class become Application Load Balancers."""

    def __init__(self, scope: Construct, id: str, *, name: str) -> None:
        super().__init__(
            scope,
            id,
            api_version=versions.GATEWAY_API,
            kind="GatewayClass",
            name=name,
            spec={"controllerName": "gateway.k8s.aws/alb"},
        )


class LoadBalancerConfiguration(CustomResource):
    """What the Gateway API has no words for: scheme, certificate, who may connect."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        scheme: Literal["internal", "internet-facing"],
        source_ranges: Sequence[str],
        certificate_arn: str | None,
        tls_policy: str,
        tags: Mapping[str, str],
        attributes: Mapping[str, str],
    ) -> None:
        spec: dict[str, Json] = {
            "scheme": scheme,
            "sourceRanges": source_ranges,
            "loadBalancerAttributes": _attributes(attributes),
            "tags": tags,
        }
        if certificate_arn:
            spec["listenerConfigurations"] = [
                {"protocolPort": "HTTPS:443", "defaultCertificate": certificate_arn, "sslPolicy": tls_policy}
            ]
        super().__init__(
            scope,
            id,
            api_version=versions.AWS_GATEWAY_API,
            kind=_LOAD_BALANCER_CONFIGURATION,
            name=name,
            namespace=namespace,
            spec=spec,
        )


class Gateway(CustomResource):
    """One load balancer with one listener, for routes of its own namespace."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        gateway_class: str,
        configuration: str,
        listener: Listener,
    ) -> None:
        listening: dict[str, Json] = {
            "name": listener.name,
            "protocol": listener.protocol,
            "port": listener.port,
            "allowedRoutes": {"namespaces": {"from": "Same"}},
        }
        if listener.hostname:
            listening["hostname"] = listener.hostname
        reference: Json = {
            "group": _AWS_GATEWAY_GROUP,
            "kind": _LOAD_BALANCER_CONFIGURATION,
            "name": configuration,
        }
        super().__init__(
            scope,
            id,
            api_version=versions.GATEWAY_API,
            kind="Gateway",
            name=name,
            namespace=namespace,
            spec={
                "gatewayClassName": gateway_class,
                "infrastructure": {"parametersRef": reference},
                "listeners": [listening],
            },
        )


class HTTPRoute(CustomResource):
    """Requests below a path go to a Service."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        labels: Mapping[str, str],
        gateway: str,
        listener: Listener,
        path: str,
        service: str,
        service_port: int,
    ) -> None:
        spec: dict[str, Json] = {
            "parentRefs": [{"group": _GATEWAY_GROUP, "kind": "Gateway", "name": gateway, "sectionName": listener.name}],
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": path}}],
                    "backendRefs": [{"kind": "Service", "name": service, "port": service_port}],
                }
            ],
        }
        if listener.hostname:
            spec["hostnames"] = [listener.hostname]
        super().__init__(
            scope,
            id,
            api_version=versions.GATEWAY_API,
            kind="HTTPRoute",
            name=name,
            namespace=namespace,
            labels=labels,
            spec=spec,
        )


@dataclass(frozen=True, slots=True)
class HealthCheck:
    path: str
    interval_seconds: int
    timeout_seconds: int
    healthy_after: int
    unhealthy_after: int


class TargetGroupConfiguration(CustomResource):
    """How the load balancer reaches the pods of a Service: by address, and only healthy ones."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        labels: Mapping[str, str],
        service: str,
        health_check: HealthCheck,
        attributes: Mapping[str, str],
    ) -> None:
        spec: dict[str, Json] = {
            "targetReference": {"kind": "Service", "name": service},
            "defaultConfiguration": {
                "targetType": "ip",
                "protocol": "HTTP",
                "healthCheckConfig": {
                    "healthCheckProtocol": "HTTP",
                    "healthCheckPath": health_check.path,
                    "healthCheckInterval": health_check.interval_seconds,
                    "healthCheckTimeout": health_check.timeout_seconds,
                    "healthyThresholdCount": health_check.healthy_after,
                    "unhealthyThresholdCount": health_check.unhealthy_after,
                    "matcher": {"httpCode": "200"},
                },
                "targetGroupAttributes": _attributes(attributes),
            },
        }
        super().__init__(
            scope,
            id,
            api_version=versions.AWS_GATEWAY_API,
            kind="TargetGroupConfiguration",
            name=name,
            namespace=namespace,
            labels=labels,
            spec=spec,
        )


# Secrets Store CSI driver


class SecretProviderClass(CustomResource):
    """A secret of Secrets Manager, mounted into pods and mirrored as the Kubernetes Secret of the same name.

    Only its address stands here. The pod's own identity fetches the value, on the node, when a pod mounts it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        region: str,
        secret_id: str,
    ) -> None:
        mounted = [{"objectName": secret_id, "objectType": "secretsmanager", "objectAlias": name}]
        spec: dict[str, Json] = {
            "provider": "aws",
            "parameters": {
                "region": region,
                "usePodIdentity": "true",
                "objects": yaml.safe_dump(mounted, sort_keys=False, width=math.inf),
            },
            "secretObjects": [
                {
                    "secretName": name,
                    "type": "Opaque",
                    "data": [{"objectName": name, "key": names.SECRET_KEY}],
                }
            ],
        }
        super().__init__(
            scope,
            id,
            api_version=versions.SECRETS_STORE_API,
            kind="SecretProviderClass",
            name=name,
            namespace=namespace,
            spec=spec,
        )
