"""Least privilege, as a reviewer would check it: every statement of every policy in every template."""

import json
import re

import pytest

from genai_finops.spec import names
from tests.assemblies import of_type, strings, text
from tests.unit.stacks.policies import granted, identity_policies

pytestmark = pytest.mark.synth

READS = ("Describe", "Get", "List")

WITHOUT_CONDITION = {
    "AllowScopedEC2InstanceAccessActions": (
        "Upstream's: a launch refers to images, subnets and security groups. It also needs the statement on instances, "
        "which asks for the cluster's tags."
    ),
    "Trace": "X-Ray knows no resource that a trace could be limited to, and no tag.",
    "AttachToVpc": "Lambda itself makes and removes a function's interfaces, as under its own managed policy.",
    "WriteWeights": "One folder of the platform's own bucket, which only the job's role may write.",
    "WriteArtifacts": "The same, for what is compiled.",
    "": "CDK's provider framework, which calls any version of the one handler it wraps.",
}
"""Statements that change something, on a wildcard, under no condition: by statement id, with the reason."""

LAMBDA_ITSELF = "AttachToVpc"
"""What Lambda does for a function that runs in a VPC, with the interfaces it makes."""

KEY_ADMINISTRATION = "kms:*"
"""AWS requires that a key's policy gives the account the key; without it nobody could ever change it."""


def test_no_wildcard_action_is_ever_allowed(assembly):
    for statement in granted(assembly):
        if statement.allows and statement.actions != [KEY_ADMINISTRATION]:
            assert not [action for action in statement.actions if "*" in action], statement


def test_a_key_belongs_to_its_account_and_to_nobody_else(assembly):
    for statement in granted(assembly, "AWS::KMS::Key"):
        if KEY_ADMINISTRATION in statement.actions:
            assert text(statement.statement["Principal"]["AWS"]) == "arn:aws:iam::${AWS::AccountId}:root"


def test_whatever_changes_something_is_limited_by_resource_or_by_condition(assembly):
    exceptions = set()
    for statement in identity_policies(assembly):
        changes = [action for action in statement.actions if not action.partition(":")[2].startswith(READS)]
        anything = any("*" in resource for resource in statement.resources)
        if changes and anything and not statement.conditions:
            exceptions.add(statement.sid)
            if not statement.sid:
                assert changes == ["lambda:InvokeFunction"]
    assert exceptions == set(WITHOUT_CONDITION)


def test_every_controller_changes_only_what_carries_the_tag_of_this_cluster(assembly):
    """A condition on the region, say, would not keep two clusters of one account apart."""
    for statement in identity_policies(assembly):
        changes = [action for action in statement.actions if not action.partition(":")[2].startswith(READS)]
        anything = [resource for resource in statement.resources if "*" in resource]
        if (
            statement.stack == "serving"
            or statement.sid == LAMBDA_ITSELF
            or not (changes and anything and statement.conditions)
        ):
            continue
        tags = {
            key: value
            for key, value in statement.conditions.items()
            if key.startswith(("aws:RequestTag/", "aws:ResourceTag/"))
        }
        assert any(assembly.platform.name in (value, key.rsplit("/", 1)[-1]) for key, value in tags.items()), statement


def test_reading_everything_is_limited_to_the_region_where_aws_can(assembly):
    for statement in identity_policies(assembly):
        ec2 = any(action.startswith("ec2:") for action in statement.actions)
        if statement.resources == ["*"] and ec2 and statement.sid != LAMBDA_ITSELF:
            assert statement.conditions == {"aws:RequestedRegion": assembly.platform.region}


def test_what_lambda_does_itself_is_about_interfaces_only(assembly):
    """No condition: whether Lambda's own check at creation would pass one is not documented."""
    found = [statement for statement in identity_policies(assembly) if statement.sid == LAMBDA_ITSELF]
    assert found
    for statement in found:
        assert all(re.search("NetworkInterface|PrivateIpAddresses|DescribeSubnets", one) for one in statement.actions)


def test_every_wildcard_resource_of_ours_has_a_reason(assembly):
    """Acknowledged for cdk-nag on the very policy, in a sentence."""
    reasons = acknowledged(assembly)
    for statement in identity_policies(assembly):
        policy = assembly.templates[statement.stack]["Resources"][statement.policy]["Metadata"]["aws:cdk:path"]
        for resource in statement.resources:
            if "*" in resource and "lambda:InvokeFunction" not in statement.actions:
                reported = resource.replace("${", "<").replace("}", ">")
                reason = reasons[policy.removesuffix("/Resource")][f"AwsSolutions-IAM5[Resource::{reported}]"]
                assert reason.endswith(".")
                assert len(reason.split()) > 3


def test_every_acknowledgement_has_a_reason_and_names_one_finding(assembly):
    for findings in acknowledged(assembly).values():
        for finding, reason in findings.items():
            assert finding.startswith(("AwsSolutions-", "CloudFormation-Validate::"))
            assert len(reason.split()) > 3, finding


def test_only_aws_services_take_roles(assembly):
    for statement in granted(assembly, "AWS::IAM::Role"):
        [service] = statement.services
        assert statement.statement["Principal"].keys() == {"Service"}
        assert service.endswith(".amazonaws.com")


def test_pods_get_roles_by_pod_identity_and_nothing_else(assembly):
    for _, _, association in assembly.all("AWS::EKS::PodIdentityAssociation"):
        assert text(association["Properties"]["RoleArn"]).endswith(".Arn}")
    assert not list(assembly.all("AWS::IAM::OIDCProvider"))
    assert not [kind for kind in kinds(assembly) if "OpenIdConnect" in kind]


def test_pod_identities_are_for_the_service_accounts_that_charts_and_releases_make(assembly):
    releases = assembly.releases()
    made = {
        (manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        for _, _, manifest in assembly.applied()
        if manifest["kind"] == "ServiceAccount"
    }
    for name, values in (
        ("karpenter", ("serviceAccount",)),
        ("aws-load-balancer-controller", ("serviceAccount",)),
        ("kube-prometheus-stack", ("alertmanager", "serviceAccount")),
    ):
        found = releases.get(name, {}).get("Values", {})
        for key in values:
            found = found.get(key, {})
        if found:
            made.add((releases[name]["Namespace"], found["name"]))
    identities = {
        (identity["Properties"]["Namespace"], identity["Properties"]["ServiceAccount"])
        for _, _, identity in assembly.all("AWS::EKS::PodIdentityAssociation")
    }
    of_models = {("genai-inference", account) for account in ("vllm", "model-staging", "model-compile")}
    expected = {("kube-system", "karpenter"), *of_models}
    if assembly.platform.gateway.enabled:
        expected.add(("kube-system", "aws-load-balancer-controller"))
    if "operations" in assembly.stacks:
        expected.add(("monitoring", "kube-prometheus-stack-alertmanager"))
    assert identities == expected
    assert identities <= made


def test_pods_of_models_run_as_the_service_account_that_has_the_role(assembly):
    accounts = {"stage": names.STAGING_SERVICE_ACCOUNT, "compile": names.COMPILE_SERVICE_ACCOUNT}
    for _, _, manifest in assembly.applied():
        if manifest["kind"] in ("Deployment", "Job"):
            step = manifest["metadata"]["labels"].get(names.SUPPLY_LABEL)
            account = manifest["spec"]["template"]["spec"]["serviceAccountName"]
            assert account == accounts.get(step, names.SERVING_SERVICE_ACCOUNT)
            assert manifest["metadata"]["namespace"] == names.MODEL_NAMESPACE


def test_pod_identities_are_of_this_cluster(assembly):
    for stack, _, identity in assembly.all("AWS::EKS::PodIdentityAssociation"):
        cluster = assembly.referred(stack, identity["Properties"]["ClusterName"])
        assert cluster["Name"] == assembly.platform.name


def test_nothing_starts_before_its_role_may_do_what_it_needs(assembly):
    for stack, _, identity in assembly.all("AWS::EKS::PodIdentityAssociation"):
        _, role = assembly.target(stack, identity["Properties"]["RoleArn"])
        attached = {
            logical_id
            for logical_id, policy in of_type(assembly.templates[stack], "AWS::IAM::ManagedPolicy").items()
            if {"Ref": role} in policy["Properties"]["Roles"]
        }
        assert attached
        assert attached <= set(identity["DependsOn"])


SECRET = "arn:aws:secretsmanager:us-east-1:${AWS::AccountId}:secret:genai/hugging-face-token-??????"


def of_role(assembly, who):
    """Statements of the serving, staging or compile role, by id."""
    [(stack, role, _)] = [found for found in assembly.all("AWS::IAM::Role") if found[1].startswith(f"{who}Role")]
    return {
        statement.sid: statement
        for statement in identity_policies(assembly)
        if statement.stack == stack
        and {"Ref": role} in assembly.templates[stack]["Resources"][statement.policy]["Properties"]["Roles"]
    }


def on_the_store(assembly, who):
    """Action to the folders of the store, or "" for the bucket itself."""
    store = f"arn:${{AWS::Partition}}:s3:::{names.model_store_bucket(assembly.platform, '${AWS::AccountId}')}"
    found = {}
    for statement in of_role(assembly, who).values():
        for resource in statement.resources:
            if resource.startswith(store):
                assert not statement.conditions
                for action in statement.actions:
                    found.setdefault(action, set()).add(resource.removeprefix(store).lstrip("/"))
    return found


def test_servers_read_the_store_and_write_nothing(assembly):
    assert on_the_store(assembly, "Serving") == {
        "s3:ListBucket": {""},
        "s3:GetObject": {"weights/*", "artifacts/*"},
    }


def test_the_stage_job_writes_weights_and_the_compile_job_what_it_compiles_from_them(assembly):
    listing, writing = {"s3:ListBucket": {""}}, ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload")
    assert on_the_store(assembly, "Staging") == listing | {action: {"weights/*"} for action in writing}
    compiling = listing | {action: {"artifacts/*"} for action in writing}
    compiling["s3:GetObject"] = {"weights/*", "artifacts/*"}
    assert on_the_store(assembly, "Compile") == compiling


def test_weights_are_staged_from_the_sources_that_the_file_names_and_no_others(assemblies):
    statements = of_role(assemblies["rich"], "Staging")
    assert statements["ReadSources"].actions == ["s3:GetObject"]
    assert statements["ReadSources"].resources == ["arn:${AWS::Partition}:s3:::example-models/llama3-8b/*"]
    listing = statements["ListSource0"]
    assert listing.actions == ["s3:ListBucket"]
    assert listing.resources == ["arn:${AWS::Partition}:s3:::example-models"]
    assert listing.conditions == {"s3:prefix": ["llama3-8b/*"]}
    for name in ("default", "minimal"):
        assert "ReadSources" not in of_role(assemblies[name], "Staging")


def test_each_secret_is_read_by_those_who_need_it(assembly):
    """The API key by servers, the hub's token by the job that downloads."""
    readers = {
        (sid, who): found
        for who in ("Serving", "Staging", "Compile")
        for sid, found in of_role(assembly, who).items()
        if any(action.startswith("secretsmanager:") for action in found.actions)
    }
    token = {("ReadHubToken", "Staging")} if assembly.platform.hub_token_secret else set()
    assert readers.keys() == {("ReadApiKey", "Serving"), *token}
    for statement in readers.values():
        assert set(statement.actions) == {"secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"}
    [resource] = readers["ReadApiKey", "Serving"].statement["Resource"].values()
    assert assembly.templates["serving"]["Resources"][resource]["Properties"]["Name"] == names.api_key_secret(
        assembly.platform
    )
    if token:
        assert readers["ReadHubToken", "Staging"].resources == [SECRET]


def test_no_secret_value_stands_in_a_template_or_a_manifest(assembly):
    for _, _, secret in assembly.all("AWS::SecretsManager::Secret"):
        assert "SecretString" not in secret["Properties"]
        assert secret["Properties"]["GenerateSecretString"]["PasswordLength"] >= 32
    for _, _, manifest in assembly.applied():
        assert manifest["kind"] != "Secret"
        for variable in variables(manifest):
            assert not ("value" in variable and any(word in variable["name"] for word in ("KEY", "TOKEN", "PASSWORD")))
    for template in assembly.templates.values():
        for found in strings(template):
            assert "{{resolve:" not in found
            assert not re.search("hf_[A-Za-z0-9]{20}", found)
            assert "adminPassword" not in found


def variables(manifest):
    if manifest["kind"] in ("Deployment", "Job"):
        pod = manifest["spec"]["template"]["spec"]
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            yield from container.get("env", [])


def kinds(assembly):
    return {resource["Type"] for template in assembly.templates.values() for resource in template["Resources"].values()}


def acknowledged(assembly):
    """Finding to reason, by construct path."""
    found = {}
    for file in assembly.folder.glob("*.metadata.json"):
        for path, entries in json.loads(file.read_text()).items():
            for entry in entries:
                if entry["type"] == "aws:cdk:acknowledged-rules":
                    found.setdefault(path.removeprefix("/"), {}).update(entry["data"])
    return found
