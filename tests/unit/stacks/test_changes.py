"""What a change of the file touches: as little as possible. And how far the templates are from the limits."""

import json
from collections import Counter

import pytest
import yaml

from genai_finops.catalog import model_shape
from genai_finops.spec import parse_platform
from genai_finops.spec.model import Shape
from tests.assemblies import of_type, text
from tests.platform_files import FILES

pytestmark = pytest.mark.synth

OTHER_IMAGE = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.16.0-neuronx-py312-sdk2.31.1-ubuntu24.04"


def shipped(*models, **settings):
    """The platform as shipped with these models in place of its own, each a change of it."""
    document = yaml.safe_load(FILES["default"].read_text(encoding="utf-8")) | settings
    [plain] = document["models"]
    document["models"] = [{**plain, "served_name": f"example/{model['name']}", **model} for model in models]
    return parse_platform(json.dumps(document))


def smallest(**settings):
    return parse_platform(json.dumps(yaml.safe_load(FILES["minimal"].read_text(encoding="utf-8")) | settings))


FUNCTION = "AWS::Lambda::Function"

A, B, C = {"name": "a"}, {"name": "b"}, {"name": "c"}


@pytest.fixture(scope="module")
def two(synthesized):
    return synthesized(shipped(A, B))


def raw(assembly):
    return {name: (assembly.folder / file).read_bytes() for name, file in assembly.files.items()}


def changed_resources(old, new):
    """Stack and logical id of resources that are not the same in two assemblies, where a stack is in both."""
    return {
        (stack, logical_id)
        for stack in old.templates.keys() & new.templates.keys()
        for resources in [(old.templates[stack]["Resources"], new.templates[stack]["Resources"])]
        for logical_id in resources[0].keys() | resources[1].keys()
        if resources[0].get(logical_id) != resources[1].get(logical_id)
    }


def nested_stack(assembly, model):
    [logical_id] = [
        logical_id
        for logical_id, stack in of_type(assembly.templates["serving"], "AWS::CloudFormation::Stack").items()
        if stack["Metadata"]["aws:asset:path"] == assembly.files[f"model-{model}"]
    ]
    return "serving", logical_id


def functions(assembly):
    """The functions of the automation. Their bundle holds what they need of the file: some changes are new code."""
    return {("automation", logical_id) for logical_id in of_type(assembly.templates["automation"], FUNCTION)}


def test_adding_a_model_changes_no_existing_resource_and_removing_it_only_takes_its_stack_away(two, synthesized):
    three = synthesized(shipped(A, B, C))
    assert changed_resources(two, three) == {nested_stack(three, "c"), *functions(two)}
    without, with_c = raw(two), raw(three)
    assert with_c.keys() - without.keys() == {"model-c"}
    assert {stack for stack in without if without[stack] != with_c[stack]} == {"serving", "automation"}


def test_the_order_of_models_does_not_matter(two, synthesized):
    assert changed_resources(two, synthesized(shipped(B, A))) == set()


def applied_as(assembly, model, kind):
    """Where the objects of a kind are applied, of a model."""
    return {
        (stack, logical_id)
        for stack, logical_id, manifest in assembly.applied()
        if (stack, manifest["kind"]) == (f"model-{model}", kind)
    }


def server(assembly, model):
    [found] = applied_as(assembly, model, "Deployment")
    return found


def test_another_image_changes_the_server_and_the_jobs_of_that_model_and_nothing_else(two, synthesized):
    """Its graphs are compiled anew, by the image's compiler."""
    after = synthesized(
        shipped(A, {**B, "engine": {**two.platform.models[1].engine.model_dump(), "image": OTHER_IMAGE}})
    )
    jobs = applied_as(after, "b", "Job")
    assert len(jobs) == 2
    assert changed_resources(two, after) == {server(after, "b"), *jobs, nested_stack(after, "b")}


def test_other_replica_bounds_restart_nothing(two, synthesized):
    scaling = two.platform.models[1].scaling.model_dump()
    after = synthesized(shipped(A, {**B, "scaling": {**scaling, "min_replicas": 2, "max_replicas": 20}}))
    changed = changed_resources(two, after)
    assert {stack for stack, _ in changed - functions(two)} == {"serving", "model-b"}
    assert nested_stack(after, "b") in changed
    assert not {server(after, "b"), *applied_as(after, "b", "Job")} & changed


def test_another_timeout_launches_no_node_to_stage_what_is_staged(two, synthesized):
    after = synthesized(shipped(A, {**B, "compile": {"timeout_minutes": 60}}))
    changed = changed_resources(two, after) & applied_as(after, "b", "Job")
    assert len(changed) == 1


def test_a_spot_pool_that_no_model_wants_any_more_is_deleted(two, synthesized):
    """Karpenter would go on filling it first, for its weight, and kubectl would not prune it."""
    on_demand = synthesized(shipped({**A, "spot": "never"}, {**B, "spot": "never"}))
    [(_, pool, _)] = [found for found in two.applied() if found[2]["metadata"]["name"] == "inf2-spot"]
    assert pool not in on_demand.templates["serving"]["Resources"]


def test_without_a_gateway_there_is_no_controller_no_key_and_no_way_in(synthesized):
    closed = synthesized(smallest(gateway={"enabled": False}))
    assert not {"aws-load-balancer-controller", "gateway-api-crds"} & closed.releases().keys()
    assert "gateway" not in closed.manifests
    assert not list(closed.all("AWS::SecretsManager::Secret"))
    accounts = [found["Properties"]["ServiceAccount"] for _, _, found in closed.all("AWS::EKS::PodIdentityAssociation")]
    assert sorted(accounts) == ["karpenter", "model-compile", "model-staging", "vllm"]
    assert not [policy for _, policy, _ in closed.all("AWS::IAM::ManagedPolicy") if "LoadBalancer" in policy]
    assert not [policy for _, policy, _ in closed.all("AWS::IAM::ManagedPolicy") if "Secrets" in policy]


def test_without_secrets_no_secrets_store(synthesized):
    open_inside = synthesized(smallest(gateway={"api_key": False}))
    assert "secrets-store" not in open_inside.releases()
    assert not list(open_inside.all("AWS::SecretsManager::Secret"))
    assert "aws-load-balancer-controller" in open_inside.releases()


def test_slack_alone_is_somebody_to_be_notified_and_no_budget_is_no_budget(synthesized):
    slack = {"workspace_id": "T0123456789", "channel_id": "C0123456789"}
    told = synthesized(smallest(notifications={"slack": slack}))
    assert len(list(told.all("AWS::Chatbot::SlackChannelConfiguration"))) == 1
    assert not list(told.all("AWS::SNS::Subscription"))
    assert not list(told.all("AWS::Budgets::Budget"))


def test_weights_at_the_root_of_a_bucket_are_listed_too(synthesized):
    document = yaml.safe_load(FILES["rich"].read_text(encoding="utf-8"))
    document["models"][0]["source"] = "s3://all-mine"
    rooted = synthesized(parse_platform(json.dumps(document)))
    [statements] = [
        policy["Properties"]["PolicyDocument"]["Statement"]
        for _, logical_id, policy in rooted.all("AWS::IAM::ManagedPolicy")
        if logical_id.startswith("SourcesPolicy")
    ]
    listing = {text(one["Resource"]): one["Condition"] for one in statements if one["Action"] == "s3:ListBucket"}
    assert listing == {
        "arn:${AWS::Partition}:s3:::all-mine": {"StringLike": {"s3:prefix": ["*"]}},
    }


MEBIBYTE = 1024**2


@pytest.fixture(scope="module")
def hundred(synthesized):
    """A hundred models, each with its own weights in S3, under the longest name there may be."""
    llama = model_shape("meta-llama/Meta-Llama-3-8B-Instruct")
    shape = {field: getattr(llama, field) for field in Shape.model_fields}
    models = [
        {
            "name": f"model-number-{index:02d}-of-a-hundred",
            "source": f"s3://example-models-of-the-organisation/weights/of/a/longer/path/model-number-{index:02d}",
            "shape": shape,
        }
        for index in range(100)
    ]
    zones = ["ap-southeast-2a", "ap-southeast-2b"]
    return synthesized(shipped(*models, name="x" * 43, region="ap-southeast-2", zones=zones))


def test_a_hundred_models_stay_within_the_limits_of_a_template(hundred):
    assert len(hundred.model_templates) == 100
    for stack, template in hundred.templates.items():
        assert (hundred.folder / hundred.files[stack]).stat().st_size < MEBIBYTE
        assert len(template["Resources"]) < 500
        assert len(template.get("Parameters", {})) < 200
        assert len(template.get("Outputs", {})) < 200


def test_a_hundred_models_stay_within_what_one_deployment_of_nested_stacks_may_hold(hundred):
    assert sum(len(hundred.templates[name]["Resources"]) for name in ("serving", *hundred.model_templates)) < 2500


def test_custom_resources_stay_well_below_what_cloudformation_can_hand_to_a_function(hundred, assembly):
    """256 KiB, in an envelope, and an update carries the old properties too."""
    for found in (hundred, assembly):
        for template in found.templates.values():
            for logical_id, resource in template["Resources"].items():
                if resource["Type"].startswith("Custom::"):
                    assert len(json.dumps(resource["Properties"])) < 64 * 1024, logical_id


def test_policies_stay_within_what_iam_takes(hundred, assembly):
    """6,144 characters in a managed policy, spaces not counted, and ten of them on a role."""
    for found in (hundred, assembly):
        attached = Counter()
        for stack, logical_id, policy in found.all("AWS::IAM::ManagedPolicy"):
            written = json.dumps(filled_in(policy["Properties"]["PolicyDocument"]), separators=(",", ":"))
            assert len(written) <= 6144, logical_id
            attached.update((stack, role["Ref"]) for role in policy["Properties"]["Roles"])
        assert max(attached.values()) <= 10


def test_no_weights_are_left_out_when_they_need_several_policies(hundred):
    policies = [
        policy["Properties"]["PolicyDocument"]["Statement"]
        for _, logical_id, policy in hundred.all("AWS::IAM::ManagedPolicy")
        if logical_id.startswith("SourcesPolicy")
    ]
    assert len(policies) > 1
    readable = [
        text(resource)
        for statements in policies
        for statement in statements
        if statement["Action"] == "s3:GetObject"
        for resource in statement["Resource"]
    ]
    assert len(readable) == len(set(readable)) == 100


def filled_in(value):
    """As long as it gets when CloudFormation has filled in the account and what it refers to."""
    match value:
        case {"Fn::Join": _} | {"Ref": _} | {"Fn::GetAtt": _} | {"Fn::ImportValue": _}:
            written = text(value).replace("${AWS::Partition}", "aws").replace("${AWS::AccountId}", "1" * 12)
            return written if "${" not in written else written.ljust(120, "x")
        case dict():
            return {key: filled_in(inner) for key, inner in value.items()}
        case list():
            return [filled_in(inner) for inner in value]
    return value
