"""Every policy statement of an assembly, whoever it is attached to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.assemblies import Assembly, many, text


@dataclass(frozen=True)
class Granted:
    """One statement of a policy in a template."""

    stack: str
    policy: str
    kind: str
    statement: dict[str, Any]

    @property
    def sid(self) -> str:
        return str(self.statement.get("Sid", ""))

    @property
    def allows(self) -> bool:
        return bool(self.statement["Effect"] == "Allow")

    @property
    def actions(self) -> list[str]:
        return many(self.statement["Action"])

    @property
    def resources(self) -> list[str]:
        return [text(resource) for resource in many(self.statement.get("Resource", []))]

    @property
    def conditions(self) -> dict[str, Any]:
        """Condition keys and values, whatever the operator."""
        return {key: value for keys in self.statement.get("Condition", {}).values() for key, value in keys.items()}

    @property
    def services(self) -> list[str]:
        principal = self.statement.get("Principal", {})
        return many(principal.get("Service", [])) if isinstance(principal, dict) else []


_DOCUMENTS = {
    "AWS::IAM::ManagedPolicy": "PolicyDocument",
    "AWS::IAM::Policy": "PolicyDocument",
    "AWS::IAM::Role": "AssumeRolePolicyDocument",
    "AWS::KMS::Key": "KeyPolicy",
    "AWS::S3::BucketPolicy": "PolicyDocument",
    "AWS::SNS::TopicPolicy": "PolicyDocument",
    "AWS::SQS::QueuePolicy": "PolicyDocument",
}


def granted(assembly: Assembly, *kinds: str) -> Iterator[Granted]:
    """Statements of policies of these types; of all types without any."""
    for kind in kinds or _DOCUMENTS:
        for stack, logical_id, resource in assembly.all(kind):
            for statement in resource["Properties"][_DOCUMENTS[kind]]["Statement"]:
                yield Granted(stack, logical_id, kind, statement)


def identity_policies(assembly: Assembly) -> Iterator[Granted]:
    """What roles may do."""
    return granted(assembly, "AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
