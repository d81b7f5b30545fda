"""The cluster: closed by default, on standard support, encrypted, logged, and with add-ons at known versions."""

import json

import pytest

from genai_finops.spec import names
from tests.assemblies import of_type, text

pytestmark = pytest.mark.synth

NODE_POLICIES = {
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
}


@pytest.fixture
def cluster(assembly):
    return assembly.one("AWS::EKS::Cluster", "cluster")["Properties"]


def addons(assembly):
    found = of_type(assembly.templates["cluster"], "AWS::EKS::Addon").values()
    return {addon["Properties"]["AddonName"]: addon for addon in found}


def system_node_template(assembly):
    return assembly.one("AWS::EC2::LaunchTemplate", "cluster")["Properties"]


def test_name_and_version_are_those_of_the_file(assembly, cluster):
    assert (cluster["Name"], cluster["Version"]) == (assembly.platform.name, assembly.platform.cluster.version)


def test_a_forgotten_cluster_never_slides_into_extended_support(cluster):
    assert cluster["UpgradePolicy"] == {"SupportType": "STANDARD"}


def test_access_is_by_access_entries_and_whoever_deploys_is_no_administrator(cluster):
    assert cluster["AccessConfig"] == {
        "AuthenticationMode": "API",
        "BootstrapClusterCreatorAdminPermissions": False,
    }


def test_no_auto_mode(cluster):
    assert cluster["ComputeConfig"] == {"Enabled": False}
    assert cluster["StorageConfig"] == {"BlockStorage": {"Enabled": False}}
    assert cluster["KubernetesNetworkConfig"]["ElasticLoadBalancing"] == {"Enabled": False}


def test_secrets_are_encrypted_with_a_key_that_rotates(assembly, cluster):
    [encryption] = cluster["EncryptionConfig"]
    assert encryption["Resources"] == ["secrets"]
    assert assembly.referred("cluster", encryption["Provider"]["KeyArn"])["EnableKeyRotation"] is True


def test_all_five_control_plane_logs_are_kept_as_long_as_the_file_says(assembly, cluster):
    enabled = {entry["Type"] for entry in cluster["Logging"]["ClusterLogging"]["EnabledTypes"]}
    assert enabled == {"api", "audit", "authenticator", "controllerManager", "scheduler"}
    [group] = [
        group["Properties"]
        for group in of_type(assembly.templates["cluster"], "AWS::Logs::LogGroup").values()
        if group["Properties"].get("LogGroupName") == f"/aws/eks/{assembly.platform.name}/cluster"
    ]
    assert group["RetentionInDays"] == assembly.platform.cluster.log_retention_days


def test_the_log_group_is_there_before_eks_would_make_one_that_keeps_for_ever(assembly):
    cluster = assembly.one("AWS::EKS::Cluster", "cluster")
    groups = of_type(assembly.templates["cluster"], "AWS::Logs::LogGroup")
    assert set(cluster["DependsOn"]) & set(groups)


@pytest.mark.parametrize("name", ["default", "minimal"])
def test_the_api_server_is_private_by_default(assemblies, name):
    access = assemblies[name].one("AWS::EKS::Cluster", "cluster")["Properties"]["ResourcesVpcConfig"]
    assert (access["EndpointPrivateAccess"], access["EndpointPublicAccess"]) == (True, False)
    assert "PublicAccessCidrs" not in access


def test_public_access_is_limited_to_the_networks_of_the_file(assemblies):
    access = assemblies["rich"].one("AWS::EKS::Cluster", "cluster")["Properties"]["ResourcesVpcConfig"]
    assert access["EndpointPrivateAccess"] is True
    assert access["PublicAccessCidrs"] == ["203.0.113.0/24"]


def test_the_control_plane_and_nodes_are_in_private_subnets(assembly, cluster):
    nodes = assembly.one("AWS::EKS::Nodegroup", "cluster")["Properties"]
    for subnets in (cluster["ResourcesVpcConfig"]["SubnetIds"], nodes["Subnets"]):
        assert len(subnets) == len(assembly.platform.zones)
        for subnet in subnets:
            tags = assembly.referred("cluster", subnet)["Tags"]
            assert {"Key": "aws-cdk:subnet-type", "Value": "Private"} in tags


def test_deletion_protection_follows_termination_protection(assemblies):
    for name, protected in (("default", True), ("minimal", True), ("rich", False)):
        assembly = assemblies[name]
        assert assembly.platform.termination_protection is protected
        cluster = assembly.one("AWS::EKS::Cluster", "cluster")["Properties"]
        assert cluster["DeletionProtection"] is protected
        for stack in assembly.stacks.values():
            assert stack["properties"].get("terminationProtection", False) is protected


def test_administrators_are_the_roles_of_the_file_and_the_kubectl_handler(assembly):
    administrators = []
    for stack, _, entry in assembly.all("AWS::EKS::AccessEntry"):
        principal, policies = entry["Properties"]["PrincipalArn"], entry["Properties"].get("AccessPolicies")
        if policies:
            [policy] = policies
            assert text(policy["PolicyArn"]).endswith(":cluster-access-policy/AmazonEKSClusterAdminPolicy")
            administrators.append(principal if isinstance(principal, str) else assembly.target(stack, principal)[1])
    [handler, *roles] = sorted(administrators, key=lambda principal: principal.startswith("arn:"))
    assert "KubectlProviderHandler" in handler
    assert roles == list(assembly.platform.cluster.admin_roles)


def test_every_addon_that_the_platform_relies_on_is_there(assembly):
    assert set(addons(assembly)) == {
        "vpc-cni",
        "kube-proxy",
        "coredns",
        "eks-pod-identity-agent",
        "aws-ebs-csi-driver",
        "metrics-server",
    }


def test_addon_versions_are_pinned_by_the_file_or_left_to_eks(assembly):
    pinned = {
        name: version for name, version in assembly.platform.cluster.addon_versions.items() if version != "default"
    }
    found = {name: addon["Properties"].get("AddonVersion") for name, addon in addons(assembly).items()}
    assert {name: version for name, version in found.items() if version} == pinned
    assert assembly.platform.name != "rich" or pinned


def test_network_policies_are_enforced(assembly):
    settings = json.loads(addons(assembly)["vpc-cni"]["Properties"]["ConfigurationValues"])
    assert settings["enableNetworkPolicy"] == "true"


def test_networking_comes_before_nodes_and_what_needs_nodes_after_them(assembly):
    template = assembly.templates["cluster"]
    [(nodes_id, nodes)] = of_type(template, "AWS::EKS::Nodegroup").items()
    before = {template["Resources"][logical_id]["Properties"]["AddonName"] for logical_id in nodes["DependsOn"]}
    assert before == {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}
    for name in set(addons(assembly)) - before:
        assert nodes_id in addons(assembly)[name]["DependsOn"]


def test_prometheus_finds_a_default_storage_class(assembly):
    settings = json.loads(addons(assembly)["aws-ebs-csi-driver"]["Properties"]["ConfigurationValues"])
    assert settings == {"defaultStorageClass": {"enabled": True}}


def test_pods_on_system_nodes_cannot_take_the_credentials_of_the_node(assembly):
    options = system_node_template(assembly)["LaunchTemplateData"]["MetadataOptions"]
    assert (options["HttpTokens"], options["HttpPutResponseHopLimit"]) == ("required", 1)


def test_volumes_of_system_nodes_are_encrypted(assembly):
    [mapping] = system_node_template(assembly)["LaunchTemplateData"]["BlockDeviceMappings"]
    assert mapping["Ebs"]["Encrypted"] is True


def test_system_nodes_are_the_graviton_nodes_of_the_file(assembly):
    nodes, wanted = assembly.one("AWS::EKS::Nodegroup", "cluster")["Properties"], assembly.platform.cluster.system_nodes
    assert nodes["AmiType"] == "AL2023_ARM_64_STANDARD"
    assert nodes["InstanceTypes"] == [wanted.instance_type]
    assert nodes["ScalingConfig"] == {
        "MinSize": wanted.count,
        "DesiredSize": wanted.count,
        "MaxSize": wanted.max_count,
    }


def test_what_tolerates_nothing_may_still_run_on_system_nodes(assembly):
    """CoreDNS from its add-on, or the pods of somebody else's chart, would otherwise have no place at all."""
    [taint] = assembly.one("AWS::EKS::Nodegroup", "cluster")["Properties"]["Taints"]
    assert taint["Effect"] == "PREFER_NO_SCHEDULE"


@pytest.mark.parametrize(("stack", "kind"), [("cluster", "SystemNodeRole"), ("karpenter", "NodeRole")])
def test_node_roles_have_exactly_the_policies_that_eks_requires(assembly, stack, kind):
    [role] = [
        role["Properties"]
        for logical_id, role in of_type(assembly.templates[stack], "AWS::IAM::Role").items()
        if logical_id.startswith(kind)
    ]
    assert {text(arn).rsplit("/", 1)[1] for arn in role["ManagedPolicyArns"]} == NODE_POLICIES
    assert len(role["ManagedPolicyArns"]) == 4
    assert "Policies" not in role


def test_node_classes_select_the_one_security_group_that_the_controllers_expect(assembly):
    """By tag, and nothing but it: two groups with the cluster's tag on a node confuse the load balancer controller."""
    groups = {
        logical_id: {tag["Key"]: tag["Value"] for tag in group["Properties"]["Tags"]}
        for _, logical_id, group in assembly.all("AWS::EC2::SecurityGroup")
    }
    for manifest in assembly.manifests["karpenter"]:
        if manifest["kind"] == "EC2NodeClass":
            [term] = manifest["spec"]["securityGroupSelectorTerms"]
            [selected] = [group for group, tags in groups.items() if term["tags"].items() <= tags.items()]
            assert groups[selected][f"kubernetes.io/cluster/{assembly.platform.name}"] == "owned"
            assert term["tags"] == {names.DISCOVERY_TAG: assembly.platform.name}


def test_nodes_and_control_plane_reach_each_other_and_nobody_else_reaches_nodes(assembly):
    rules = [
        rule["Properties"] for rule in of_type(assembly.templates["cluster"], "AWS::EC2::SecurityGroupIngress").values()
    ]
    ends = {(text(rule["SourceSecurityGroupId"]), text(rule["GroupId"])) for rule in rules}
    [(node_group, _)] = [
        (logical_id, group)
        for logical_id, group in of_type(assembly.templates["cluster"], "AWS::EC2::SecurityGroup").items()
        if logical_id.startswith("NodeSecurityGroup")
    ]
    [cluster_id] = of_type(assembly.templates["cluster"], "AWS::EKS::Cluster")
    nodes, control_plane = f"${{{node_group}.GroupId}}", f"${{{cluster_id}.ClusterSecurityGroupId}}"
    assert ends == {(nodes, nodes), (control_plane, nodes), (nodes, control_plane)}
    for _, _, group in assembly.all("AWS::EC2::SecurityGroup"):
        for rule in group["Properties"].get("SecurityGroupIngress", []):
            assert rule["CidrIp"] == assembly.platform.network.cidr


def test_lambda_functions_run_inside_the_vpc_where_the_private_endpoint_is(assembly):
    [handler] = [
        function["Properties"]
        for logical_id, function in of_type(assembly.templates["cluster"], "AWS::Lambda::Function").items()
        if logical_id.startswith("ClusterKubectlProviderHandler")
    ]
    assert len(handler["VpcConfig"]["SubnetIds"]) == len(assembly.platform.zones)
