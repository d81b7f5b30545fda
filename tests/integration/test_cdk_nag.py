"""cdk-nag is alive: it fails the synth for what nobody has acknowledged, and passes for what somebody has."""

import json

import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs

from stacks.application import build
from stacks.base import acknowledge
from stacks.outputs import reuse_assets
from tests.platform_files import platform

pytestmark = pytest.mark.synth


@pytest.fixture
def application(assemblies, tmp_path):
    reuse_assets(assemblies["minimal"].folder, tmp_path)
    return build(platform("minimal"), outdir=tmp_path)


def findings(folder):
    report = json.loads((folder / "validation-report.json").read_text())
    return {
        (violation["ruleName"], construct["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    }


def test_the_platforms_have_no_finding_without_an_answer(assembly):
    """Synthesizing them would have failed; the report says the same."""
    assert findings(assembly.folder) == set()


def wide(stack):
    statement = iam.PolicyStatement(actions=["s3:GetObject"], resources=["arn:aws:s3:::somebody/*"])
    return iam.ManagedPolicy(stack, "Wide", statements=[statement])


def test_a_wildcard_that_nobody_answers_for_fails_the_synth(application, tmp_path):
    wide(application.stacks[-1])
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        application.app.synth()
    [(rule, path)] = findings(tmp_path)
    assert rule.startswith("AwsSolutions-IAM5")
    assert path == "automation/Wide/Resource"


def test_an_answer_for_one_wildcard_is_none_for_another(application, tmp_path):
    acknowledge(wide(application.stacks[-1]), {"AwsSolutions-IAM5[Resource::arn:aws:s3:::other/*]": "Another bucket."})
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        application.app.synth()


def test_an_answer_for_this_wildcard_lets_it_pass(application, tmp_path):
    acknowledge(wide(application.stacks[-1]), {"AwsSolutions-IAM5[Resource::arn:aws:s3:::somebody/*]": "It is public."})
    application.app.synth()
    assert findings(tmp_path) == set()


def test_rules_beside_iam_are_alive_too(application, tmp_path):
    sqs.Queue(application.stacks[0], "Plain")
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        application.app.synth()
    assert any(path == "network/Plain/Resource" for _, path in findings(tmp_path))
