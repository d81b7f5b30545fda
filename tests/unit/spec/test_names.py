"""Names that others refer to: derived from the file, the same wherever they are needed, and within their limits."""

import re

import pytest
from hypothesis import HealthCheck, given, settings

from genai_finops.spec import names
from tests import strategies
from tests.unit.spec.files import ON_GPU, accepted

KUBERNETES_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


@pytest.mark.parametrize(
    ("changes", "resource", "label"),
    [({}, "aws.amazon.com/neuron", "aws-neuron"), (ON_GPU, "nvidia.com/gpu", "nvidia-gpu")],
    ids=["Neuron", "NVIDIA"],
)
def test_devices_are_asked_for_by_the_name_of_their_vendor(changes, resource, label):
    vendor = accepted(changes).models[0].vendor
    assert (names.device_resource(vendor), names.accelerator_label(vendor)) == (resource, label)


def test_an_addon_has_the_default_version_unless_it_is_pinned():
    platform = accepted({"cluster.addon_versions": {"vpc-cni": "v1.20.4-eksbuild.1", "coredns": "default"}})
    versions = [platform.addon_version(name) for name in ("vpc-cni", "coredns", "kube-proxy")]
    assert versions == ["v1.20.4-eksbuild.1", None, None]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(strategies.platforms())
def test_derived_names_are_valid_and_tell_platforms_models_and_families_apart(platform):
    of_kubernetes = [
        *(names.deployment(model) for model in platform.models),
        *(names.horizontal_pod_autoscaler(model) for model in platform.models),
        *(
            name(family)
            for family in platform.families
            for name in (names.node_class, names.spot_node_pool, names.on_demand_node_pool)
        ),
    ]
    assert all(KUBERNETES_LABEL.fullmatch(name) and len(name) <= 63 for name in of_kubernetes)
    assert len(set(of_kubernetes)) == len(of_kubernetes)
    of_aws = [
        names.stack(platform, "operations"),
        names.karpenter_node_role(platform),
        names.karpenter_controller_role(platform),
        names.interruption_queue(platform),
        names.alerts_topic(platform),
        names.api_key_secret(platform),
    ]
    assert all(name.startswith(platform.name) and len(name) <= 64 for name in of_aws)
    assert len(set(of_aws)) == len(of_aws)
