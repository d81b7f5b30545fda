"""Nodes: where models may run, at most how many, and what takes them away."""

import email
import subprocess

import pytest
import yaml

from genai_finops import versions
from genai_finops.catalog import instance_type
from genai_finops.spec import names
from k8s_charts.karpenter import limits, termination_grace_minutes
from tests.platform_files import platform
from tests.unit.k8s_charts.charts import PLATFORMS, built, manifests, named, of_kind, varied

pytestmark = pytest.mark.synth

G6E = {"family": "g6e", "sizes": ["xlarge"]}


def requirement(pool, key):
    [found] = [r for r in pool["spec"]["template"]["spec"]["requirements"] if r["key"] == key]
    assert found["operator"] == "In"
    return found["values"]


def capacity_types(found):
    return {
        pool["metadata"]["name"]: requirement(pool, "karpenter.sh/capacity-type") for pool in of_kind(found, "NodePool")
    }


def test_each_way_to_buy_has_a_pool_that_can_be_shut_alone():
    assert capacity_types(manifests("default")) == {
        "inf2-spot": ["spot"],
        "inf2-on-demand": ["on-demand"],
    }


def test_spot_is_asked_first():
    weights = {pool["metadata"]["name"]: pool["spec"]["weight"] for pool in of_kind(manifests("default"), "NodePool")}
    assert weights["inf2-spot"] > weights["inf2-on-demand"]


def test_models_that_never_run_on_spot_get_no_spot_pool():
    assert capacity_types(built({"spot": "never"})) == {"inf2-on-demand": ["on-demand"]}


def test_models_that_only_run_on_spot_get_no_on_demand_capacity():
    assert capacity_types(built({"spot": "only"})) == {"inf2-spot": ["spot"]}


def test_models_that_differ_in_what_they_may_use_open_both_pools():
    assert capacity_types(built({"spot": "only"}, {"spot": "never"})) == {
        "inf2-spot": ["spot"],
        "inf2-on-demand": ["on-demand"],
    }


def test_each_family_has_its_own_class_and_pools():
    found = manifests("rich")
    assert [m["metadata"]["name"] for m in of_kind(found, "EC2NodeClass")] == [
        "inf2-node-class",
        "g6e-node-class",
    ]
    for pool in of_kind(found, "NodePool"):
        [family] = requirement(pool, "karpenter.k8s.aws/instance-family")
        assert pool["metadata"]["name"].startswith(f"{family}-")
        assert pool["spec"]["template"]["spec"]["nodeClassRef"] == {
            "group": "karpenter.k8s.aws",
            "kind": "EC2NodeClass",
            "name": f"{family}-node-class",
        }


def test_sizes_are_those_of_all_models_of_the_family():
    pool = named(manifests("rich"), "NodePool", "inf2-spot")
    assert requirement(pool, "karpenter.k8s.aws/instance-size") == ["xlarge", "8xlarge", "48xlarge"]


@pytest.mark.parametrize("name", PLATFORMS)
def test_nodes_come_in_the_zones_of_the_file_and_fit_the_images(name):
    for pool in of_kind(manifests(name), "NodePool"):
        assert requirement(pool, "topology.kubernetes.io/zone") == list(platform(name).zones)
        assert requirement(pool, "kubernetes.io/arch") == ["amd64"]
        assert requirement(pool, "kubernetes.io/os") == ["linux"]


@pytest.mark.parametrize(
    ("pool", "taint", "accelerator"),
    [
        ("inf2-spot", "aws.amazon.com/neuron", "aws-neuron"),
        ("g6e-on-demand", "nvidia.com/gpu", "nvidia-gpu"),
    ],
)
def test_nodes_are_tainted_with_their_device_and_labelled_as_in_the_article(pool, taint, accelerator):
    template = named(manifests("rich"), "NodePool", pool)["spec"]["template"]
    assert template["spec"]["taints"] == [{"key": taint, "value": "true", "effect": "NoSchedule"}]
    assert template["metadata"]["labels"] == {
        "workload": "genai-vllm-inference",
        "accelerator": accelerator,
    }


def test_limits_are_the_articles_64_devices_and_what_comes_with_them():
    # 64 inf2.8xlarge: 32 vCPU and 128 GiB for each device; an inf2.24xlarge has 16 and 64 for each.
    assert limits(platform("default"), "inf2") == {
        "aws.amazon.com/neuron": "64",
        "cpu": "2048",
        "memory": "8192Gi",
    }


def test_limits_follow_the_type_richest_in_each_resource():
    two = varied({"accelerator": {"family": "inf2", "sizes": ["8xlarge", "48xlarge"]}})
    small = varied(
        {"accelerator": {"family": "inf2", "sizes": ["48xlarge"]}, "compile": {"size": "48xlarge"}},
        node_pools={"inf2": {"max_devices": 13}},
    )
    eight, large = instance_type("inf2.8xlarge"), instance_type("inf2.48xlarge")
    assert limits(two, "inf2")["cpu"] == str(64 * eight.vcpu)
    assert limits(small, "inf2")["cpu"] == str(-(-13 * large.vcpu // 12))


@pytest.mark.parametrize("name", PLATFORMS)
def test_both_pools_have_the_same_limits_and_none_counts_nodes(name):
    for family in platform(name).families:
        for pool in of_kind(manifests(name), "NodePool"):
            if pool["metadata"]["name"].startswith(f"{family}-"):
                assert pool["spec"]["limits"] == limits(platform(name), family)
                assert "nodes" not in pool["spec"]["limits"]


@pytest.mark.parametrize("name", PLATFORMS)
def test_only_empty_nodes_are_consolidated_and_drift_takes_one_at_a_time(name):
    for pool in of_kind(manifests(name), "NodePool"):
        disruption = pool["spec"]["disruption"]
        assert disruption["consolidationPolicy"] == "WhenEmpty"
        budgets = {reason: b["nodes"] for b in disruption["budgets"] for reason in b["reasons"]}
        assert budgets == {"Empty": "100%", "Drifted": "1"}


def test_waiting_and_expiry_come_from_the_file():
    pool = named(manifests("rich"), "NodePool", "inf2-spot")["spec"]
    assert pool["disruption"]["consolidateAfter"] == "5m"
    assert pool["template"]["spec"]["expireAfter"] == "336h"


def test_a_drain_may_take_as_long_as_one_replica_after_the_other_needs_to_load():
    # Six replicas of half an hour each on an inf2.24xlarge.
    assert termination_grace_minutes(platform("default").models) == 6 * 30


def node_class(found, family):
    return named(found, "EC2NodeClass", f"{family}-node-class")["spec"]


def test_volumes_come_from_the_file_and_are_encrypted():
    volume = platform("rich").node_pool("g6e").volume
    [device] = node_class(manifests("rich"), "g6e")["blockDeviceMappings"]
    assert device == {
        "deviceName": "/dev/xvda",
        "ebs": {
            "volumeType": "gp3",
            "volumeSize": f"{volume.size_gib}Gi",
            "iops": volume.iops,
            "throughput": volume.throughput_mib_s,
            "encrypted": True,
            "deleteOnTermination": True,
        },
    }


def test_a_snapshot_of_images_is_a_second_disk_filled_at_a_rate_and_mounted_before_containerd_starts():
    spec = node_class(manifests("rich"), "inf2")
    root, images = spec["blockDeviceMappings"]
    assert root["rootVolume"] is True
    assert images["deviceName"] == "/dev/xvdb"
    assert images["ebs"]["snapshotID"] == "snap-0123456789abcdef0"
    assert images["ebs"]["volumeInitializationRate"] == 200
    assert images["ebs"]["encrypted"] is True
    script, config = parts(spec["userData"])
    assert "mount -o noatime LABEL=images /var/lib/containerd" in script
    assert yaml.safe_load(config)["kind"] == "NodeConfig"


def test_the_script_that_mounts_images_is_sound(tmp_path):
    script = tmp_path / "mount.sh"
    script.write_text(parts(node_class(manifests("rich"), "inf2")["userData"])[0])
    assert subprocess.run(["bash", "-n", script], check=False, capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize(
    ("at_once", "kubelet"),
    [(1, {"serializeImagePulls": True}), (4, {"serializeImagePulls": False, "maxParallelImagePulls": 4})],
)
def test_images_are_pulled_as_many_at_once_as_the_file_says(at_once, kubelet):
    found = built(node_pools={"inf2": {"parallel_image_pulls": at_once}})
    config = yaml.safe_load(node_class(found, "inf2")["userData"])
    assert config["apiVersion"] == "node.eks.aws/v1alpha1"
    assert config["spec"]["kubelet"]["config"] == kubelet
    assert "featureGates" not in config["spec"]


def test_layers_are_unpacked_side_by_side_only_where_asked_for():
    config = yaml.safe_load(node_class(manifests("rich"), "g6e")["userData"])
    assert config["spec"]["featureGates"] == {"FastImagePull": True}


def test_local_disks_are_joined_where_a_type_has_them():
    assert node_class(manifests("rich"), "g6e")["instanceStorePolicy"] == "RAID0"
    assert "instanceStorePolicy" not in node_class(manifests("rich"), "inf2")


def test_joined_disks_do_not_hide_the_images_of_a_snapshot():
    preload = {"image_preload": {"snapshot": "snap-0123456789abcdef0"}}
    found = node_class(built({"accelerator": G6E}, node_pools={"g6e": preload}), "g6e")
    assert found["instanceStorePolicy"] == "RAID0"
    storage = yaml.safe_load(parts(found["userData"])[1])["spec"]["instance"]["localStorage"]
    assert storage == {"strategy": "RAID0", "disabledMounts": ["Containerd"]}


def test_a_pool_also_offers_the_size_that_graphs_are_compiled_on():
    found = built({"accelerator": {"family": "inf2", "sizes": ["xlarge"]}})
    assert requirement(named(found, "NodePool", "inf2-spot"), "karpenter.k8s.aws/instance-size") == [
        "xlarge",
        "8xlarge",
    ]


def parts(user_data):
    """The script and the configuration in a multi-part text, as cloud-init takes it apart."""
    message = email.message_from_string(user_data)
    assert message.is_multipart()
    script, config = message.get_payload()
    assert script.get_content_type() == "text/x-shellscript"
    assert config.get_content_type() == "application/node.eks.aws"
    return script.get_payload(), config.get_payload()


@pytest.mark.parametrize("name", PLATFORMS)
def test_nodes_are_found_by_the_platforms_own_tag_and_role(name):
    here = platform(name)
    for node_class in of_kind(manifests(name), "EC2NodeClass"):
        spec = node_class["spec"]
        terms = [{"tags": {"karpenter.sh/discovery": here.name}}]
        assert spec["subnetSelectorTerms"] == spec["securityGroupSelectorTerms"] == terms
        assert spec["role"] == names.karpenter_node_role(here)
        assert spec["amiSelectorTerms"] == [{"alias": versions.AL2023_AMI_ALIAS}]
        assert not versions.AL2023_AMI_ALIAS.endswith("@latest")


def test_pods_cannot_reach_the_nodes_credentials():
    for node_class in of_kind(manifests("rich"), "EC2NodeClass"):
        options = node_class["spec"]["metadataOptions"]
        assert options["httpTokens"] == "required"
        assert options["httpPutResponseHopLimit"] == 1


def test_what_karpenter_launches_is_tagged_for_cost_allocation():
    tags = named(manifests("rich"), "EC2NodeClass", "g6e-node-class")["spec"]["tags"]
    assert tags == {
        "team": "genai",
        "cost-center": "4711",
        names.PLATFORM_TAG: "rich",
        names.COMPONENT_TAG: "serving-g6e",
    }
