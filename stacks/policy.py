"""IAM policies as tables: a statement says what, on what, under which condition, and why a wildcard is right.

cdk-nag then finds no wildcard that has no reason, because a statement with one cannot be written without it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.base import acknowledge

MANAGED_POLICY_CHARACTERS: Final = 6144
"""What IAM takes in a managed policy, spaces not counted."""

_PSEUDO_PARAMETER: Final = re.compile(r"\$\{Token\[AWS\.(\w+)\.\d+\]\}")


@dataclass(frozen=True, slots=True)
class Statement:
    """One allowed thing.

    Attributes:
        sid: what it is for.
        conditions: operator to key to value, as IAM writes them.
        wildcard: why a `*` in the resources grants no more than is needed; required where there is one.
    """

    sid: str
    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    wildcard: str = ""

    def __post_init__(self) -> None:
        if any("*" in action for action in self.actions):
            raise ValueError(f"{self.sid}: name each action")
        if any("*" in resource for resource in self.resources) and not self.wildcard:
            raise ValueError(f"{self.sid}: say why its resources have a wildcard")


def grant(scope: Construct, id: str, role: iam.Role, statements: Sequence[Statement]) -> iam.ManagedPolicy:
    """Attaches `statements` to `role` as one customer managed policy."""
    policy = iam.ManagedPolicy(
        scope,
        id,
        roles=[role],
        statements=[
            iam.PolicyStatement(
                sid=statement.sid,
                actions=list(statement.actions),
                resources=list(statement.resources),
                conditions={operator: dict(keys) for operator, keys in statement.conditions.items()},
            )
            for statement in statements
        ],
    )
    for statement in statements:
        for resource in statement.resources:
            if "*" in resource:
                acknowledge(policy, {f"AwsSolutions-IAM5[Resource::{_as_reported(resource)}]": statement.wildcard})
    return policy


def size(statements: Sequence[Statement]) -> int:
    """Characters of a policy with these statements, at most: what CDK fills in later is shorter than its place."""
    written = [
        {
            "Sid": statement.sid,
            "Effect": "Allow",
            "Action": list(statement.actions),
            "Resource": list(statement.resources),
            "Condition": {operator: dict(keys) for operator, keys in statement.conditions.items()},
        }
        for statement in statements
    ]
    return len(json.dumps({"Version": "2012-10-17", "Statement": written}, separators=(",", ":")))


def _as_reported(resource: str) -> str:
    """cdk-nag reports pseudo parameters as `<AWS::AccountId>`."""
    return _PSEUDO_PARAMETER.sub(r"<AWS::\1>", resource)
