"""What the functions have in common while they run: their settings and what they talk to, made once per environment."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Final

from genai_finops.operations.config import OperationsConfig
from lambdas.adapters import aws, kubernetes
from lambdas.adapters.cluster import Cluster
from lambdas.adapters.facts import FactStore, utc_now
from lambdas.adapters.facts_table import TableFacts
from lambdas.adapters.kubernetes import Timing
from lambdas.adapters.notifications import Notifier
from lambdas.adapters.prometheus import Prometheus
from lambdas.adapters.settings import Settings

PROMETHEUS_SERVICE: Final = "prometheus-operated"
PROMETHEUS_PORT: Final = 9090
PROMETHEUS_NAMESPACE: Final = "monitoring"
"""As in `genai_finops.spec.names`, which the bundle does not hold; a test compares them."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One platform, and everything around it.

    Attributes:
        now: aware.
        timing: of waits between attempts.
    """

    cluster_name: str
    region: str
    config: OperationsConfig
    facts: FactStore
    cluster: Cluster
    prometheus: Prometheus
    notifier: Notifier
    now: Callable[[], datetime] = utc_now
    timing: Timing = field(default_factory=Timing)

    def aws(self, service: str) -> Any:
        """A client of an AWS service, for what only one function needs."""
        return aws.client(service, region=self.region)


def build(settings: Settings, *, now: Callable[[], datetime] = utc_now, timing: Timing | None = None) -> Runtime:
    """From the settings of a function. Nothing is asked of anyone yet.

    Raises:
        ShapeError: when the platform's configuration is not one.
    """
    region = settings.region
    client = kubernetes.connect(settings.cluster_name, region=region)
    return Runtime(
        cluster_name=settings.cluster_name,
        region=region,
        config=OperationsConfig.from_json(settings.platform_config.read_text(encoding="utf-8")),
        facts=TableFacts(aws.client("dynamodb", region=region), settings.facts_table, now=now),
        cluster=Cluster(client, namespace=settings.model_namespace),
        prometheus=Prometheus(
            client,
            service=PROMETHEUS_SERVICE,
            port=PROMETHEUS_PORT,
            namespace=PROMETHEUS_NAMESPACE,
            models_namespace=settings.model_namespace,
        ),
        notifier=Notifier(aws.client("sns", region=region), settings.alerts_topic_arn),
        now=now,
        timing=timing or Timing(),
    )


@cache
def runtime() -> Runtime:
    """Of this environment: made at the first invocation, kept for the following ones.

    Raises:
        SettingsError: naming every variable that is missing or wrong.
    """
    return build(Settings.of(os.environ))
