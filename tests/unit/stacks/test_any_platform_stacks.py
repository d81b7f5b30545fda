"""Whatever platform is valid becomes stacks that cdk-nag lets pass."""

import shutil

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests import strategies
from tests.assemblies import of_type

pytestmark = pytest.mark.synth


# Each example is a synth, and to shrink one takes dozens: a failure is reported as it was found.
@given(strategies.platforms())
@settings(
    max_examples=5,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
def test_stacks_of_any_valid_platform_synthesize(synthesized, platform):
    assembly = synthesized(platform)
    assert len(assembly.model_templates) == len(platform.models)
    assert len(of_type(assembly.templates["network"], "AWS::EC2::NatGateway")) == platform.network.nat_gateways
    assert ("operations" in assembly.stacks) == bool(platform.notifications.emails or platform.notifications.slack)
    shutil.rmtree(assembly.folder)
