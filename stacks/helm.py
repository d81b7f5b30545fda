"""Helm releases through the cluster's kubectl handler, from the pins in one place."""

from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import Duration
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from genai_finops.versions import HelmChart

SYSTEM_TOLERATION: Final = {"key": "CriticalAddonsOnly", "operator": "Exists"}


def release(
    scope: Construct,
    name: str,
    *,
    cluster: eks.ICluster,
    chart: HelmChart,
    namespace: str,
    values: Mapping[str, Any],
    create_namespace: bool = False,
) -> eks.HelmChart:
    """One release, waited for: what comes next may rely on its webhooks and definitions."""
    repository = chart.chart if chart.is_oci else chart.repository
    return eks.HelmChart(
        scope,
        name,
        cluster=cluster,
        release=name,
        chart=chart.chart.rsplit("/", 1)[-1],
        repository=repository,
        version=chart.version,
        namespace=namespace,
        create_namespace=create_namespace,
        values=dict(values),
        wait=True,
        timeout=Duration.minutes(14),
    )
