"""The manifests, applied in an order that converges the first time and every time.

Each model is a nested stack: removing it from the file removes it from the cluster, a hundred of them stay under
CloudFormation's limits, and a change to one touches no other. Within a model each concern is a resource of its own, so
a new image does not touch its autoscaling.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from aws_cdk import ArnFormat, Aws, NestedStack, RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IConstruct

from genai_finops.spec import Model, Platform, names
from genai_finops.spec.model import S3
from k8s_charts import Manifest, model_of, split_runtime_owned
from stacks.base import PlatformStack, acknowledge
from stacks.pod_identity import associate, pod_identity_role
from stacks.policy import MANAGED_POLICY_CHARACTERS, Statement, grant, size

_PRUNED: Final = frozenset({"ConfigMap", "DaemonSet", "Deployment", "Namespace", "Service"})
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
        previous: IConstruct = self._identity(platform, cluster)
        for chart, objects in manifests.items():
            shared = [manifest for manifest in objects if model_of(manifest) is None]
            for id, group in _deletable(chart, shared):
                applied = eks.KubernetesManifest(self, id, cluster=cluster, manifest=group)
                applied.node.add_dependency(previous)
                previous = applied
        for model in platform.models:
            of_model = {
                chart: [manifest for manifest in objects if model_of(manifest) == model.name]
                for chart, objects in manifests.items()
            }
            nested = ModelStack(self, model, cluster=cluster, manifests=of_model)
            nested.node.add_dependency(previous)

    def _identity(self, platform: Platform, cluster: eks.ICluster) -> Construct:
        """What a model's pods may read: the weights named in the file, and the two secrets."""
        role = pod_identity_role(self, "ServingRole")
        policies = [
            grant(self, f"WeightsPolicy{index}", role, weights) for index, weights in enumerate(_weights(platform))
        ]
        if secrets := self._secrets(platform):
            policies.append(grant(self, "SecretsPolicy", role, secrets))
        return associate(
            self,
            "ServingIdentity",
            cluster_name=cluster.cluster_name,
            namespace=names.MODEL_NAMESPACE,
            service_account=names.SERVING_SERVICE_ACCOUNT,
            role=role,
            policies=policies,
        )

    def _secrets(self, platform: Platform) -> list[Statement]:
        read = ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"]
        statements = []
        if platform.gateway.enabled and platform.gateway.api_key:
            key = secretsmanager.Secret(
                self,
                "ApiKey",
                secret_name=names.api_key_secret(platform),
                description=f"Key that clients of {platform.name} send",
                generate_secret_string=secretsmanager.SecretStringGenerator(
                    exclude_punctuation=True, password_length=48
                ),
                removal_policy=RemovalPolicy.DESTROY,
            )
            acknowledge(
                key, {"AwsSolutions-SMG4": "Clients hold the key; replacing it is a decision, not a timer's business."}
            )
            statements.append(Statement("ReadApiKey", read, [key.secret_arn]))
        if platform.hub_token_secret:
            arn = self.format_arn(
                service="secretsmanager",
                resource="secret",
                resource_name=f"{platform.hub_token_secret}-??????",
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            statements.append(Statement("ReadHubToken", read, [arn]))
        return statements


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
            parts = [split_runtime_owned(manifest) for manifest in objects]
            applied: IConstruct = eks.KubernetesManifest(
                self, chart, cluster=cluster, manifest=[manifest for manifest, _ in parts]
            )
            if previous is not None:
                applied.node.add_dependency(previous)
            previous = applied
            for manifest, initial in parts:
                if initial is not None:
                    patch = _initial_values(self, manifest, initial, cluster)
                    patch.node.add_dependency(applied)


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


def _weights(platform: Platform) -> list[list[Statement]]:
    """Read access to the buckets and prefixes that the file names, one policy of statements for each few of them."""
    addresses = sorted(
        {
            address.removeprefix(S3).rstrip("/")
            for model in platform.models
            for address in (model.source, model.engine.compiled_artifacts or "")
            if address.startswith(S3)
        }
    )
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
                f"ListWeights{index}",
                ["s3:ListBucket"],
                [f"arn:{Aws.PARTITION}:s3:::{bucket}"],
                {"StringLike": {"s3:prefix": found}},
            )
            for index, (bucket, found) in enumerate(prefixes.items())
        ),
        Statement(
            "ReadWeights",
            ["s3:GetObject"],
            [f"arn:{Aws.PARTITION}:s3:::{address}/*" for address in addresses],
            wildcard="The files of a model under the prefix that the platform file names.",
        ),
    ]
