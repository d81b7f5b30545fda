"""What all models share."""

import ast

import pytest
import yaml

from genai_finops.spec import names
from k8s_charts import namespace
from tests.platform_files import ROOT
from tests.unit.k8s_charts.charts import built, charts, manifests, named, of_kind

pytestmark = pytest.mark.synth

SCRIPTS = ROOT / "k8s_charts" / "scripts"


def test_nothing_may_talk_unless_a_policy_allows_it():
    policy = named(charts("default")["namespace"], "NetworkPolicy", "default-deny")
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_pods_are_held_to_baseline_and_warned_about_restricted():
    [namespace] = of_kind(manifests("default"), "Namespace")
    labels = namespace["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert labels["pod-security.kubernetes.io/warn"] == "restricted"
    assert labels["pod-security.kubernetes.io/audit"] == "restricted"


def test_replicas_wait_for_the_load_balancer_only_where_there_is_one():
    gate = "elbv2.k8s.aws/pod-readiness-gate-inject"
    [behind] = of_kind(manifests("default"), "Namespace")
    [alone] = of_kind(built(gateway={"enabled": False}), "Namespace")
    assert behind["metadata"]["labels"][gate] == "enabled"
    assert gate not in alone["metadata"]["labels"]


def test_servers_outrank_pods_that_only_hold_capacity():
    found = {priority["metadata"]["name"]: priority for priority in of_kind(manifests("default"), "PriorityClass")}
    serving, warm = found[names.PRIORITY_CLASS], found[names.WARM_PRIORITY_CLASS]
    assert serving["value"] > 0 > warm["value"]
    assert warm["preemptionPolicy"] == "Never"
    assert not any(priority.get("globalDefault") for priority in found.values())


def test_secrets_are_named_and_not_held():
    found = {m["metadata"]["name"]: m["spec"] for m in of_kind(manifests("rich"), "SecretProviderClass")}
    addresses = {name: yaml.safe_load(spec["parameters"]["objects"])[0]["objectName"] for name, spec in found.items()}
    assert addresses == {"vllm-api-key": "rich/vllm-api-key", "hub-token": "genai/hugging-face-token"}
    for name, spec in found.items():
        assert spec["provider"] == "aws"
        assert spec["parameters"]["usePodIdentity"] == "true"
        assert spec["parameters"]["region"] == "us-east-1"
        [mirror] = spec["secretObjects"]
        [mounted] = yaml.safe_load(spec["parameters"]["objects"])
        assert mirror["data"] == [{"objectName": mounted["objectAlias"], "key": names.SECRET_KEY}]
        assert mirror["secretName"] == name


def test_the_service_account_is_the_one_with_the_identity():
    accounts = of_kind(manifests("default"), "ServiceAccount")
    assert {account["metadata"]["name"] for account in accounts} == {"vllm", "model-staging", "model-compile"}
    assert not any(account["automountServiceAccountToken"] for account in accounts)


def test_pods_of_a_node_share_a_folder_that_says_nothing_about_where_they_run():
    """Karpenter and the scheduler read a bound volume's node affinity, and nothing else of it."""
    [volume] = of_kind(manifests("default"), "PersistentVolume")
    [claim] = of_kind(manifests("default"), "PersistentVolumeClaim")
    assert volume["spec"]["hostPath"] == {"path": "/mnt/k8s-disks/0/models", "type": "DirectoryOrCreate"}
    assert "nodeAffinity" not in volume["spec"]
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == ""
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    reserved = volume["spec"]["claimRef"]
    assert (reserved["namespace"], reserved["name"]) == (names.MODEL_NAMESPACE, claim["metadata"]["name"])


def test_servers_have_every_script_that_theirs_import_and_jobs_have_all():
    serving = named(manifests("default"), "ConfigMap", namespace.SCRIPTS)["data"]
    jobs = named(manifests("default"), "ConfigMap", names.MODEL_SUPPLY)["data"]
    assert serving.keys() | jobs.keys() == {f"{path.stem}.py" for path in SCRIPTS.glob("*.py")}
    assert not serving.keys() & jobs.keys()
    assert {"drain.py", "fetch.py"} <= serving.keys()
    for text in serving.values():
        imported = {
            node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and not node.level
        }
        assert {f"{module}.py" for module in imported} & jobs.keys() == set()
