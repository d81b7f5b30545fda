"""The way in: one Application Load Balancer, which AWS's controller makes from Gateway API objects."""

from typing import Final

from cdk8s import Chart
from constructs import Construct

from genai_finops.spec import Model, Platform, names
from k8s_charts import labels, vllm
from k8s_charts.custom import (
    Gateway,
    GatewayClass,
    HealthCheck,
    HTTPRoute,
    Listener,
    LoadBalancerConfiguration,
    TargetGroupConfiguration,
)

IDLE_SECONDS: Final = 600
"""A request that is queued, or not streamed, sends nothing until its answer is there; the default gives up
after 60."""

TLS_POLICY: Final = "ELBSecurityPolicy-TLS13-1-2-2021-06"
"""TLS 1.3 and 1.2 with forward secrecy."""

API_PATH: Final = "/v1"
"""All that is routed of a server. Outside of it vLLM asks for no key, and it answers there too: /invocations
generates text, /metrics tells of it."""


class GatewayChart(Chart):
    """The load balancer, and a path for every model."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "gateway", labels=labels.COMMON)
        listener = _listener(platform)
        self._load_balancer(platform, listener)
        for model in platform.models:
            ModelRoute(self, model.name, model=model, listener=listener)

    def _load_balancer(self, platform: Platform, listener: Listener) -> None:
        gateway = platform.gateway
        GatewayClass(self, "class", name=names.GATEWAY_CLASS)
        LoadBalancerConfiguration(
            self,
            "configuration",
            name=names.GATEWAY,
            namespace=names.MODEL_NAMESPACE,
            scheme=gateway.scheme,
            source_ranges=gateway.allowed_cidrs or [platform.network.cidr],
            certificate_arn=gateway.certificate_arn,
            tls_policy=TLS_POLICY,
            tags={**platform.tags, names.PLATFORM_TAG: platform.name, names.COMPONENT_TAG: "gateway"},
            attributes={
                "deletion_protection.enabled": str(platform.termination_protection).lower(),
                "idle_timeout.timeout_seconds": str(IDLE_SECONDS),
                "routing.http.drop_invalid_header_fields.enabled": "true",
            },
        )
        Gateway(
            self,
            "gateway",
            name=names.GATEWAY,
            namespace=names.MODEL_NAMESPACE,
            gateway_class=names.GATEWAY_CLASS,
            configuration=names.GATEWAY,
            listener=listener,
        )


class ModelRoute(Construct):
    """`/<model>/v1` to the model's Service. vLLM is told its path, so nothing rewrites it."""

    def __init__(self, scope: Construct, id: str, *, model: Model, listener: Listener) -> None:
        super().__init__(scope, id)
        TargetGroupConfiguration(
            self,
            "targets",
            name=names.deployment(model),
            namespace=names.MODEL_NAMESPACE,
            labels=labels.of(model),
            service=names.deployment(model),
            health_check=HealthCheck(
                path=vllm.HEALTH_PATH,
                interval_seconds=10,
                timeout_seconds=vllm.PROBE_TIMEOUT_SECONDS,
                healthy_after=2,
                unhealthy_after=3,
            ),
            attributes={
                "deregistration_delay.timeout_seconds": str(model.drain_seconds),
                # Answers differ in length by orders of magnitude: taking turns would queue behind the long
                # ones.
                "load_balancing.algorithm.type": "least_outstanding_requests",
            },
        )
        HTTPRoute(
            self,
            "route",
            name=names.deployment(model),
            namespace=names.MODEL_NAMESPACE,
            labels=labels.of(model),
            gateway=names.GATEWAY,
            listener=listener,
            path=names.route_path(model) + API_PATH,
            service=names.deployment(model),
            service_port=vllm.SERVICE_PORT,
        )


def _listener(platform: Platform) -> Listener:
    hostname = platform.gateway.hostname
    if platform.gateway.certificate_arn:
        return Listener("HTTPS", 443, hostname)
    return Listener("HTTP", 80, hostname)
