"""The bucket that models are served from: weights by revision, compiled graphs by key.

It outlives the stack: what it holds took hours to make. Its name is derived, so that a platform which is deployed again
finds it (`make deploy ARGS=--import-existing-resources`).
"""

from typing import Final

from aws_cdk import Aws, CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from genai_finops.spec import Platform, artifacts, names
from stacks.base import PlatformStack, acknowledge
from stacks.policy import Statement

OLDEST_TLS: Final = 1.2


class ModelStoreStack(PlatformStack):
    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(
            scope, names.STORE_STACK, platform=platform, description="Weights and compiled graphs of the models"
        )
        settings = platform.model_store
        bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=bucket_name(platform),
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=OLDEST_TLS,
            versioned=True,
            removal_policy=RemovalPolicy.RETAIN,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="forget-what-was-replaced",
                    noncurrent_version_expiration=Duration.days(settings.noncurrent_days),
                    expired_object_delete_marker=True,
                ),
                s3.LifecycleRule(
                    id="forget-unfinished-uploads",
                    abort_incomplete_multipart_upload_after=Duration.days(settings.unfinished_upload_days),
                ),
                # By use and not by age: graphs that no node reads any more cost less and less, and what a node may
                # still ask for is never taken away.
                s3.LifecycleRule(
                    id="cheaper-when-unused",
                    transitions=[
                        s3.Transition(
                            storage_class=s3.StorageClass.INTELLIGENT_TIERING, transition_after=Duration.days(0)
                        )
                    ],
                ),
            ],
        )
        acknowledge(
            bucket,
            {"AwsSolutions-S1": "Three roles of one cluster use it, for files that anyone may download elsewhere."},
        )
        CfnOutput(self, "BucketName", value=bucket.bucket_name, description="The model store")


def bucket_name(platform: Platform) -> str:
    return names.model_store_bucket(platform, Aws.ACCOUNT_ID)


def may_read(platform: Platform) -> list[Statement]:
    """For servers: all of the store. Without the list S3 says of what is missing that it is forbidden."""
    return [
        _list(platform),
        _on("ReadModels", ["s3:GetObject"], platform, artifacts.WEIGHTS, artifacts.ARTIFACTS),
    ]


def may_stage(platform: Platform) -> list[Statement]:
    return [_list(platform), _on("WriteWeights", _WRITE, platform, artifacts.WEIGHTS)]


def may_compile(platform: Platform) -> list[Statement]:
    return [
        _list(platform),
        _on("ReadWeights", ["s3:GetObject"], platform, artifacts.WEIGHTS),
        _on("WriteArtifacts", _WRITE, platform, artifacts.ARTIFACTS),
    ]


_WRITE: Final = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload")
"""A writer also reads: to see what is there already, and that nobody has overwritten it."""


def _list(platform: Platform) -> Statement:
    return Statement("FindModels", ["s3:ListBucket"], [_arn(platform)])


def _on(sid: str, actions: tuple[str, ...] | list[str], platform: Platform, *folders: str) -> Statement:
    return Statement(
        sid,
        actions,
        [f"{_arn(platform)}/{folder}/*" for folder in folders],
        wildcard="One folder of the model store, whatever the models in it.",
    )


def _arn(platform: Platform) -> str:
    return f"arn:{Aws.PARTITION}:s3:::{bucket_name(platform)}"
