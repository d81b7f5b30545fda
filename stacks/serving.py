"""The manifests, applied in an order that converges the first time and every time.

Each model is a nested stack: removing it from the file removes it from the cluster, a hundred of them stay under
CloudFormation's limits, and a change to one touches no other. Within a model each concern is a resource of its own, so
a new image does not touch its autoscaling.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import ArnFormat, Aws, NestedStack, RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IConstruct

from genai_finops.spec import Model, Platform, names
from genai_finops.spec.model import S3
from k8s_charts import Manifest, model_of, split_runtime_owned
from stacks import model_store
from stacks.base import PlatformStack, acknowledge
from stacks.pod_identity import associate, pod_identity_role
from stacks.policy import MANAGED_POLICY_CHARACTERS, Statement, grant, size

_READ_SECRET: Final = ("secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret")

_PRUNED: Final = frozenset({"ConfigMap", "DaemonSet", "Deployment", "Job", "Namespace", "Service"})
"""Kinds that `kubectl apply --prune` deletes when they are gone from a manifest: none that is a custom resource."""


class ServingStack(PlatformStack):
    def __init__(
        self,
        scope: Construct,
        *,
        platform: Platform,
        cluster: eks.ICluster,
        manifests: Mapping[str, Sequence[Manifest]],
    ) -> None:
        super().__init__(scope, "serving", platform=platform, description="Node pools and served models")
        previous: IConstruct = self._identities(platform, cluster)
        for chart, objects in manifests.items():
            shared = [manifest for manifest in objects if model_of(manifest) is None]
            for id, group in _deletable(chart, shared):
                applied = eks.KubernetesManifest(self, id, cluster=cluster, manifest=group)
                applied.node.add_dependency(previous)
                previous = applied
        previous = self._store(platform, cluster, after=previous)
        for model in platform.models:
            of_model = {
                chart: [manifest for manifest in objects if model_of(manifest) == model.name]
                for chart, objects in manifests.items()
            }
            nested = ModelStack(self, model, cluster=cluster, manifests=of_model)
            nested.node.add_dependency(previous)

    def _store(self, platform: Platform, cluster: eks.ICluster, *, after: IConstruct) -> IConstruct:
        """Tells pods the bucket's name, which has the account in it: manifests are made without knowing it."""
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.MODEL_STORE, "namespace": names.MODEL_NAMESPACE},
            "data": {names.BUCKET_KEY: model_store.bucket_name(platform)},
        }
        applied = eks.KubernetesManifest(self, names.MODEL_STORE, cluster=cluster, manifest=[manifest])
        applied.node.add_dependency(after)
        return applied

    def _identities(self, platform: Platform, cluster: eks.ICluster) -> Construct:
        """Who may do what: servers read the store, one job writes its weights, another its compiled graphs."""
        reading = [
            Statements("StorePolicy", model_store.may_read(platform)),
            Statements("SecretsPolicy", self._api_key(platform)),
        ]
        staging = [
            Statements("StagingPolicy", [*model_store.may_stage(platform), *self._hub_token(platform)]),
            *(Statements(f"SourcesPolicy{index}", found) for index, found in enumerate(_sources(platform))),
        ]
        compiling = [Statements("CompilePolicy", model_store.may_compile(platform))]
        accounts = {
            "Serving": (names.SERVING_SERVICE_ACCOUNT, reading),
            "Staging": (names.STAGING_SERVICE_ACCOUNT, staging),
            "Compile": (names.COMPILE_SERVICE_ACCOUNT, compiling),
        }
        previous: Construct | None = None
        for who, (service_account, granted) in accounts.items():
            role = pod_identity_role(self, f"{who}Role")
            association = associate(
                self,
                f"{who}Identity",
                cluster_name=cluster.cluster_name,
                namespace=names.MODEL_NAMESPACE,
                service_account=service_account,
                role=role,
                policies=[grant(self, one.id, role, one.statements) for one in granted if one.statements],
            )
            if previous is not None:
                association.node.add_dependency(previous)
            previous = association
        assert previous
        return previous

    def _api_key(self, platform: Platform) -> list[Statement]:
        if not (platform.gateway.enabled and platform.gateway.api_key):
            return []
        key = secretsmanager.Secret(
            self,
            "ApiKey",
            secret_name=names.api_key_secret(platform),
            description=f"Key that clients of {platform.name} send",
            generate_secret_string=secretsmanager.SecretStringGenerator(exclude_punctuation=True, password_length=48),
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(
            key, {"AwsSolutions-SMG4": "Clients hold the key; replacing it is a decision, not a timer's business."}
        )
        return [Statement("ReadApiKey", _READ_SECRET, [key.secret_arn])]

    def _hub_token(self, platform: Platform) -> list[Statement]:
        if not platform.hub_token_secret:
            return []
        arn = self.format_arn(
            service="secretsmanager",
            resource="secret",
            resource_name=f"{platform.hub_token_secret}-??????",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return [Statement("ReadHubToken", _READ_SECRET, [arn])]


@dataclass(frozen=True, slots=True)
class Statements:
    """A policy to be: its id, and what it allows."""

    id: str
    statements: Sequence[Statement]


class ModelStack(NestedStack):
    """Everything of one model: server, autoscaling, monitors, route."""

    def __init__(
        self, scope: Construct, model: Model, *, cluster: eks.ICluster, manifests: Mapping[str, Sequence[Manifest]]
    ) -> None:
        super().__init__(scope, f"model-{model.name}", description=f"Model {model.name}")
        previous: IConstruct | None = None
        for chart, objects in manifests.items():
            if not objects:
                continue
            for id, group in _by_job(chart, objects):
                parts = [split_runtime_owned(manifest) for manifest in group]
                applied: IConstruct = eks.KubernetesManifest(
                    self, id, cluster=cluster, manifest=[manifest for manifest, _ in parts]
                )
                if previous is not None:
                    applied.node.add_dependency(previous)
                previous = applied
                for manifest, initial in parts:
                    if initial is not None:
                        patch = _initial_values(self, manifest, initial, cluster)
                        patch.node.add_dependency(applied)


def _by_job(chart: str, manifests: Sequence[Manifest]) -> Iterator[tuple[str, list[Manifest]]]:
    """A chart's objects of a model, every job a resource of its own.

    A finished job is gone after a day. Applied again because another one has changed, it would run once more, and
    launch a node to find that there is nothing to do.
    """
    for manifest in manifests:
        if manifest["kind"] == "Job":
            yield f"{chart}-{manifest['metadata']['labels'][names.SUPPLY_LABEL]}", [manifest]
    others = [manifest for manifest in manifests if manifest["kind"] != "Job"]
    if others:
        yield chart, others


def _deletable(chart: str, manifests: Sequence[Manifest]) -> Iterator[tuple[str, list[Manifest]]]:
    """Groups of manifests, in order, such that an object that goes from the file goes from the cluster.

    What kubectl does not prune is a resource of its own, which CloudFormation deletes: a pool for Spot, say, that no
    model wants any more and that Karpenter would go on filling.
    """
    pruned = [manifest for manifest in manifests if manifest["kind"] in _PRUNED]
    if pruned:
        yield chart, pruned
    for manifest in manifests:
        if manifest["kind"] not in _PRUNED:
            yield f"{chart}-{manifest['kind']}-{manifest['metadata']['name']}", [manifest]


def _initial_values(
    scope: Construct, manifest: Manifest, initial: Mapping[str, object], cluster: eks.ICluster
) -> eks.KubernetesPatch:
    """Fields that automation moves at run time: set when the file changes them, left alone by every other deploy."""
    kind, metadata = manifest["kind"], manifest["metadata"]
    return eks.KubernetesPatch(
        scope,
        f"{kind}-bounds",
        cluster=cluster,
        resource_name=f"{kind.lower()}/{metadata['name']}",
        resource_namespace=metadata["namespace"],
        apply_patch=initial,
        restore_patch=initial,
        patch_type=eks.PatchType.MERGE,
    )


def _sources(platform: Platform) -> list[list[Statement]]:
    """Read access to the buckets and prefixes that weights are staged from, in policies of statements."""
    addresses = sorted({model.source.removeprefix(S3) for model in platform.models if model.source.startswith(S3)})
    return [_read(batch) for batch in _batches(addresses)]


def _batches(addresses: Sequence[str]) -> list[list[str]]:
    """As many addresses as fit a managed policy."""
    batches: list[list[str]] = []
    for address in addresses:
        if batches and size(_read([*batches[-1], address])) <= MANAGED_POLICY_CHARACTERS:
            batches[-1].append(address)
        else:
            batches.append([address])
    return batches


def _read(addresses: Sequence[str]) -> list[Statement]:
    prefixes: dict[str, list[str]] = {}
    for address in addresses:
        bucket, _, prefix = address.partition("/")
        prefixes.setdefault(bucket, []).append(f"{prefix}/*" if prefix else "*")
    return [
        *(
            Statement(
                f"ListSource{index}",
                ["s3:ListBucket"],
                [f"arn:{Aws.PARTITION}:s3:::{bucket}"],
                {"StringLike": {"s3:prefix": found}},
            )
            for index, (bucket, found) in enumerate(prefixes.items())
        ),
        Statement(
            "ReadSources",
            ["s3:GetObject"],
            [f"arn:{Aws.PARTITION}:s3:::{address}/*" for address in addresses],
            wildcard="The files of a model under the prefix that the platform file names.",
        ),
    ]
