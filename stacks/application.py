"""The whole application: manifests from the charts, stacks around them, checked by cdk-nag when it synthesizes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import App, Stack, Validations
from cdk_nag import AwsSolutionsChecks

import k8s_charts
from genai_finops.spec import Platform
from k8s_charts import Manifest
from stacks.addons import AddOnsStack
from stacks.automation import AutomationStack
from stacks.cluster import ClusterStack
from stacks.karpenter import KarpenterStack
from stacks.model_store import ModelStoreStack
from stacks.network import NetworkStack
from stacks.operations import OperationsStack
from stacks.serving import ServingStack

CDK_JSON = Path(__file__).parent.parent / "cdk.json"


@dataclass(frozen=True, slots=True)
class Application:
    """A built application, ready to synthesize."""

    app: App
    stacks: tuple[Stack, ...]
    manifests: Mapping[str, Sequence[Manifest]]


def build(platform: Platform, *, outdir: Path | None = None) -> Application:
    """All stacks of a valid platform.

    Args:
        outdir: where the cloud assembly goes; None leaves it to the CDK CLI.
    """
    app = App(
        outdir=str(outdir) if outdir else None, context=_context(), analytics_reporting=False, tree_metadata=False
    )
    manifests = k8s_charts.synthesize(platform)
    network = NetworkStack(app, platform=platform)
    cluster = ClusterStack(app, platform=platform, vpc=network.vpc)
    karpenter = KarpenterStack(app, platform=platform, cluster=cluster.cluster)
    hears = platform.notifications.emails or platform.notifications.slack
    operations = OperationsStack(app, platform=platform) if hears else None
    addons = AddOnsStack(
        app,
        platform=platform,
        cluster=cluster.cluster,
        vpc=network.vpc,
        alerts=operations.topic if operations else None,
    )
    store = ModelStoreStack(app, platform=platform)
    serving = ServingStack(app, platform=platform, cluster=cluster.cluster, manifests=manifests)
    automation = AutomationStack(
        app,
        platform=platform,
        cluster=cluster.cluster,
        vpc=network.vpc,
        alerts=operations.topic if operations else None,
    )
    addons.add_stack_dependency(karpenter, "Karpenter makes room for what does not fit the system nodes")
    serving.add_stack_dependency(addons, "Definitions come before objects")
    serving.add_stack_dependency(store, "Jobs find the store that they fill")
    automation.add_stack_dependency(serving, "Functions come into the cluster with a role that stands there")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    stacks = (network, cluster, karpenter, *([operations] if operations else []), addons, store, serving, automation)
    return Application(app, stacks, manifests)


def _context() -> dict[str, Any]:
    """CDK's feature flags from cdk.json and the CLI's defaults, so that a synth without it gives the same templates."""
    flags: dict[str, Any] = json.loads(CDK_JSON.read_text(encoding="utf-8"))["context"]
    return {**flags, "aws:cdk:enable-path-metadata": True, "aws:cdk:enable-asset-metadata": True}


def resource_counts(assembly: Path) -> dict[str, int]:
    """Resources of each stack in a cloud assembly, those of its nested stacks included, in deployment order."""
    artifacts = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    return {
        artifact["properties"]["stackName"]: _resources(assembly, artifact["properties"]["templateFile"])
        for artifact in artifacts.values()
        if artifact["type"] == "aws:cloudformation:stack"
    }


def _resources(assembly: Path, template_file: str) -> int:
    resources = json.loads((assembly / template_file).read_text(encoding="utf-8"))["Resources"].values()
    nested = [
        resource["Metadata"]["aws:asset:path"]
        for resource in resources
        if resource["Type"] == "AWS::CloudFormation::Stack"
    ]
    return len(resources) + sum(_resources(assembly, file) for file in nested)
