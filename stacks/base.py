"""What every stack of the platform has in common: where it goes, how it is tagged, and how findings are answered."""

from collections.abc import Iterable, Mapping
from functools import cache

from aws_cdk import Environment, Stack, Tags, Validations
from constructs import Construct, IConstruct

from genai_finops.spec import Platform, names


class PlatformStack(Stack):
    """A stack of the platform, in its region, protected and tagged for cost allocation.

    The account stays open: it is the one that the CDK CLI has credentials for, so a synth needs none.
    """

    def __init__(self, scope: Construct, part: str, *, platform: Platform, description: str) -> None:
        super().__init__(
            scope,
            part,
            stack_name=names.stack(platform, part),
            env=Environment(region=platform.region),
            description=description,
            termination_protection=platform.termination_protection,
        )
        self.platform = platform
        for key, value in {**platform.tags, names.PLATFORM_TAG: platform.name, names.COMPONENT_TAG: part}.items():
            Tags.of(self).add(key, value)


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Answers findings of cdk-nag on `construct` and what is below it: rule or finding id to the reason it is right.

    Written to the metadata directly, since `Validations.acknowledge` refuses ids with more than one `::`.
    """
    node = construct.node
    for finding, reason in reasons.items():
        node.add_metadata(_acknowledged(), {finding: reason})


@cache
def _acknowledged() -> str:
    """Asked for once: each question to the CDK goes through a pipe to Node."""
    return Validations.ACKNOWLEDGED_RULES_METADATA_KEY


def acknowledge_managed_policies(construct: IConstruct, policies: Iterable[str], reason: str) -> None:
    """Answers the finding that roles below `construct` use policies which AWS maintains."""
    prefix = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/"
    acknowledge(construct, {f"{prefix}{policy}]": reason for policy in policies})
