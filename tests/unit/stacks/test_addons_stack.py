"""Add-ons: the pinned releases that are needed, told the names and networks that the other stacks use."""

import pytest

from genai_finops import versions
from genai_finops.spec import names
from tests.assemblies import of_type, text

pytestmark = pytest.mark.synth

RELEASES = {
    "karpenter-crd": versions.KARPENTER_CRDS,
    "karpenter": versions.KARPENTER,
    "kube-prometheus-stack": versions.KUBE_PROMETHEUS_STACK,
    "keda": versions.KEDA,
    "neuron": versions.NEURON,
    "nvidia-device-plugin": versions.NVIDIA_DEVICE_PLUGIN,
    "secrets-store": versions.SECRETS_STORE,
    "gateway-api-crds": versions.GATEWAY_API_CRDS,
    "aws-load-balancer-controller": versions.AWS_LOAD_BALANCER_CONTROLLER,
}


def test_each_release_is_the_pinned_version_of_its_chart(assembly):
    for name, release in assembly.releases().items():
        pin = RELEASES[name]
        assert release["Version"] == pin.version
        assert release["Repository"] == (pin.chart if pin.is_oci else pin.repository)
        assert release["Chart"] == pin.chart.rsplit("/", 1)[-1]


def test_each_release_is_waited_for_within_what_a_lambda_function_may_take(assembly):
    for release in assembly.releases().values():
        assert release["Wait"] is True
        assert int(release["Timeout"].removesuffix("s")) < 15 * 60


def test_only_device_plugins_of_vendors_in_use(assemblies):
    plugins = {"neuron", "nvidia-device-plugin"}
    assert plugins & assemblies["default"].releases().keys() == {"neuron"}
    assert plugins & assemblies["minimal"].releases().keys() == {"neuron"}
    assert plugins & assemblies["rich"].releases().keys() == plugins


def test_device_plugins_run_on_tainted_nodes(assemblies):
    releases = assemblies["rich"].releases()
    tolerate_all = [{"operator": "Exists"}]
    assert releases["neuron"]["Values"]["devicePlugin"]["tolerations"] == tolerate_all
    assert releases["nvidia-device-plugin"]["Values"]["tolerations"] == tolerate_all


def test_the_nvidia_plugin_runs_on_the_nodes_that_karpenter_labels(assemblies):
    rich = assemblies["rich"]
    selector = rich.releases()["nvidia-device-plugin"]["Values"]["nodeSelector"]
    pools = [
        manifest["spec"]["template"]["metadata"]["labels"]
        for _, _, manifest in rich.applied()
        if manifest["kind"] == "NodePool" and "g6e" in manifest["metadata"]["name"]
    ]
    assert pools
    assert all(selector.items() <= labels.items() for labels in pools)


def test_pods_that_share_a_node_ask_for_the_scheduler_that_is_installed(assembly):
    scheduler = assembly.releases()["neuron"]["Values"]["scheduler"]
    assert scheduler["enabled"] is True
    asked = {
        manifest["spec"]["template"]["spec"].get("schedulerName")
        for _, _, manifest in assembly.applied()
        if manifest["kind"] == "Deployment"
    } - {None}
    assert asked <= {scheduler["customScheduler"]["fullnameOverride"]}
    if assembly.platform.name == "eks-genai-cluster":
        assert asked


def test_the_load_balancer_controller_is_told_this_cluster_and_this_vpc(assembly):
    values = assembly.releases()["aws-load-balancer-controller"]["Values"]
    assert values["clusterName"] == assembly.one("AWS::EKS::Cluster", "cluster")["Properties"]["Name"]
    assert values["region"] == assembly.platform.region
    [vpc] = of_type(assembly.templates["network"], "AWS::EC2::VPC")
    assert vpc in values["vpcId"]


def test_the_load_balancer_controller_starts_after_definitions_and_identity(assembly):
    template = assembly.templates["add-ons"]
    [controller] = [
        resource
        for resource in of_type(template, "Custom::AWSCDK-EKS-HelmChart").values()
        if resource["Properties"]["Release"] == "aws-load-balancer-controller"
    ]
    before = [template["Resources"][logical_id] for logical_id in controller["DependsOn"]]
    assert {resource["Properties"].get("Release") for resource in before} >= {"gateway-api-crds"}
    assert {resource["Type"] for resource in before} >= {"AWS::EKS::PodIdentityAssociation"}


def test_the_load_balancer_controller_makes_security_groups_in_this_vpc_only(assembly):
    [policy] = [
        policy["Properties"]["PolicyDocument"]["Statement"]
        for logical_id, policy in of_type(assembly.templates["add-ons"], "AWS::IAM::ManagedPolicy").items()
        if logical_id.startswith("LoadBalancerController")
    ]
    creating = {statement["Sid"]: statement for statement in policy if "ec2:CreateSecurityGroup" in statement["Action"]}
    [vpc] = of_type(assembly.templates["network"], "AWS::EC2::VPC")
    assert vpc in text(creating.pop("CreateSecurityGroupsInVpc")["Resource"])
    [tagged] = creating.values()
    assert tagged["Condition"] == {"StringEquals": {"aws:RequestTag/elbv2.k8s.aws/cluster": assembly.platform.name}}


def test_monitors_and_rules_of_all_namespaces_are_read(assembly):
    settings = assembly.releases()["kube-prometheus-stack"]["Values"]["prometheus"]["prometheusSpec"]
    for kind in ("serviceMonitor", "podMonitor", "rule"):
        assert settings[f"{kind}SelectorNilUsesHelmValues"] is False


def test_prometheus_keeps_what_the_file_says_and_never_fills_its_volume(assembly):
    monitoring = assembly.platform.monitoring
    settings = assembly.releases()["kube-prometheus-stack"]["Values"]["prometheus"]["prometheusSpec"]
    assert settings["retention"] == f"{monitoring.retention_days}d"
    assert settings["scrapeInterval"] == f"{monitoring.scrape_interval_seconds}s"
    claim = settings["storageSpec"]["volumeClaimTemplate"]["spec"]
    assert claim["resources"]["requests"]["storage"] == f"{monitoring.storage_gib}Gi"
    assert int(settings["retentionSize"].removesuffix("GB")) < monitoring.storage_gib


def test_scaled_objects_ask_the_prometheus_that_is_installed(assembly):
    release = assembly.releases()["kube-prometheus-stack"]
    addresses = {
        trigger["metadata"]["serverAddress"]
        for _, _, manifest in assembly.applied()
        if manifest["kind"] == "ScaledObject"
        for trigger in manifest["spec"]["triggers"]
        if trigger["type"] == "prometheus"
    }
    assert addresses == {f"http://prometheus-operated.{release['Namespace']}.svc.cluster.local:9090"}


def test_everything_in_the_cluster_tolerates_the_taint_of_system_nodes(assembly):
    tolerated = {"key": "CriticalAddonsOnly", "operator": "Exists"}
    releases = assembly.releases()
    prometheus = releases["kube-prometheus-stack"]["Values"]
    assert tolerated in releases["keda"]["Values"]["tolerations"]
    assert tolerated in releases["aws-load-balancer-controller"]["Values"]["tolerations"]
    assert tolerated in prometheus["prometheus"]["prometheusSpec"]["tolerations"]
    for part in ("grafana", "prometheusOperator", "kube-state-metrics"):
        assert tolerated in prometheus[part]["tolerations"]


def test_alerts_go_to_the_topic_when_somebody_is_to_be_notified(assemblies):
    for name in ("default", "minimal"):
        assert assemblies[name].releases()["kube-prometheus-stack"]["Values"]["alertmanager"] == {"enabled": False}
    rich = assemblies["rich"]
    config = rich.releases()["kube-prometheus-stack"]["Values"]["alertmanager"]["config"]
    receivers = {receiver["name"]: receiver for receiver in config["receivers"]}
    [topic] = receivers[config["route"]["receiver"]]["sns_configs"]
    [topic_id] = of_type(rich.templates["operations"], "AWS::SNS::Topic")
    assert topic_id in topic["topic_arn"]
    assert topic["sigv4"] == {"region": rich.platform.region}


def test_alerts_are_published_by_a_role_that_may_use_the_key_of_the_topic(assemblies):
    rich = assemblies["rich"]
    [statements] = [
        {statement["Sid"]: statement for statement in policy["Properties"]["PolicyDocument"]["Statement"]}
        for logical_id, policy in of_type(rich.templates["add-ons"], "AWS::IAM::ManagedPolicy").items()
        if logical_id.startswith("Alertmanager")
    ]
    assert statements["PublishAlerts"]["Action"] == "sns:Publish"
    topic = rich.referred("add-ons", statements["PublishAlerts"]["Resource"])
    assert topic["TopicName"] == names.alerts_topic(rich.platform)
    key = rich.target("add-ons", statements["EncryptAlerts"]["Resource"])
    assert key == rich.target("operations", topic["KmsMasterKeyId"])


def test_secrets_are_mirrored_for_the_pods_that_read_them(assembly):
    values = assembly.releases()["secrets-store"]["Values"]["secrets-store-csi-driver"]
    assert values["syncSecret"] == {"enabled": True}
    assert {"audience": "pods.eks.amazonaws.com"} in values["tokenRequests"]
