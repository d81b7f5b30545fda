"""Whatever platform is valid becomes manifests that are valid, meet each other, and leave run time alone."""

import pytest
from hypothesis import HealthCheck, given, settings

from k8s_charts import split_runtime_owned, synthesize
from k8s_charts.runtime_owned import runtime_owned_fields
from tests import strategies
from tests.schema.validators import core_problem, crd_problems, documented_problems, is_core
from tests.unit.k8s_charts.charts import flat
from tests.unit.k8s_charts.references import dangling

pytestmark = pytest.mark.synth


@given(strategies.platforms())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_manifests_of_any_valid_platform_validate_and_refer_to_each_other(platform):
    manifests = flat(synthesize(platform))
    assert dangling(manifests) == []
    for manifest in manifests:
        bare, _ = split_runtime_owned(manifest)
        assert runtime_owned_fields(bare) == []
        if is_core(manifest):
            assert core_problem(manifest) is None
        else:
            assert crd_problems(manifest) in (None, [])
            assert documented_problems(manifest) in (None, [])
