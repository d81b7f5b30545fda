"""Cost allocation: everything that can carry a tag says which platform and which part of it pays for it."""

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from genai_finops.spec import names
from tests.assemblies import of_type

pytestmark = pytest.mark.synth

UNTAGGED = {
    "AWS::SSM::Parameter": "CDK's mark that kubectl is ready; such a parameter is free, and CDK takes no tags.",
}
"""Resources without tags, although CloudFormation would take some: by type, with the reason."""


def tags_of(resource):
    """Tags by key, in whichever form the resource has them."""
    properties = resource["Properties"]
    found = properties.get("Tags", properties.get("ResourceTags", {}))
    if "TagSpecifications" in properties:
        [specification] = properties["TagSpecifications"]
        found = specification["Tags"]
    return found if isinstance(found, dict) else {tag["Key"]: tag["Value"] for tag in found}


def taggable(kind):
    """By the schema that AWS publishes of the type."""
    properties = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema["properties"]
    return bool({"Tags", "ResourceTags", "TagSpecifications"} & properties.keys())


def test_every_resource_that_can_be_tagged_carries_platform_component_and_the_tags_of_the_file(assembly):
    untagged = set()
    for stack, template in assembly.templates.items():
        component = "serving" if stack.startswith("model-") else stack
        for logical_id, resource in template["Resources"].items():
            if resource["Type"].startswith("Custom::") or not taggable(resource["Type"]):
                continue
            tags = tags_of(resource)
            if not tags:
                untagged.add(resource["Type"])
                continue
            assert tags[names.PLATFORM_TAG] == assembly.platform.name, logical_id
            expected = "system-nodes" if resource["Type"] == "AWS::EC2::LaunchTemplate" else component
            assert tags[names.COMPONENT_TAG] == expected, logical_id
            assert tags.items() >= assembly.platform.tags.items(), logical_id
    assert untagged == set(UNTAGGED)


def test_what_the_node_group_launches_is_tagged(assembly):
    [template] = of_type(assembly.templates["cluster"], "AWS::EC2::LaunchTemplate").values()
    specifications = template["Properties"]["LaunchTemplateData"]["TagSpecifications"]
    assert {specification["ResourceType"] for specification in specifications} == {
        "instance",
        "volume",
        "network-interface",
    }
    for specification in specifications:
        tags = {tag["Key"]: tag["Value"] for tag in specification["Tags"]}
        assert tags[names.PLATFORM_TAG] == assembly.platform.name
        assert tags[names.COMPONENT_TAG] == "system-nodes"
        assert tags.items() >= assembly.platform.tags.items()


def test_what_karpenter_launches_is_tagged(assembly):
    classes = [manifest for _, _, manifest in assembly.applied() if manifest["kind"] == "EC2NodeClass"]
    assert len(classes) == len(assembly.platform.families)
    for node_class in classes:
        tags = node_class["spec"]["tags"]
        assert tags[names.PLATFORM_TAG] == assembly.platform.name
        assert tags[names.COMPONENT_TAG].startswith("serving-")
        assert tags.items() >= assembly.platform.tags.items()


def test_load_balancers_are_tagged(assembly):
    tags = assembly.releases()["aws-load-balancer-controller"]["Values"]["defaultTags"]
    assert tags == {
        **assembly.platform.tags,
        names.PLATFORM_TAG: assembly.platform.name,
        names.COMPONENT_TAG: "gateway",
    }


def test_the_budget_counts_exactly_what_carries_the_tag(assemblies):
    rich = assemblies["rich"]
    budget = rich.one("AWS::Budgets::Budget", "operations")["Properties"]["Budget"]
    assert budget["CostFilters"] == {"TagKeyValue": [f"user:{names.PLATFORM_TAG}${rich.platform.name}"]}
