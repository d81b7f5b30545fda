"""Every template, against the resource schemas that AWS publishes, in both regions that the platforms are for."""

import pytest
from cfnlint import ConfigMixIn
from cfnlint.config import ManualArgs
from cfnlint.runner import Runner

pytestmark = [pytest.mark.synth, pytest.mark.slow]

OF_CDK = ["W3005"]
"""Warnings about what CDK itself writes: a dependency that a reference would have made anyway."""


def problems(files, ignore=OF_CDK):
    # One runner for all files: it reads its rules once.
    given = ManualArgs(
        templates=[str(file) for file in files], regions=["us-east-1", "us-west-2"], ignore_checks=ignore
    )
    return [str(match) for match in Runner(ConfigMixIn([], **given)).run()]


def test_cfn_lint_finds_neither_errors_nor_warnings(assembly):
    assert problems(assembly.folder / file for file in assembly.files.values()) == []


def test_cfn_lint_would_find_them(tmp_path, assemblies):
    template = (assemblies["minimal"].folder / "network.template.json").read_text()
    (tmp_path / "network.json").write_text(template.replace('"AWS::EC2::NatGateway"', '"AWS::EC2::NatGatewayy"'))
    assert any("E3006" in problem for problem in problems([tmp_path / "network.json"]))
