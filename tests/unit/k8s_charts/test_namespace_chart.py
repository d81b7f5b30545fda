"""What all models share."""

import pytest
import yaml

from genai_finops.spec import names
from tests.unit.k8s_charts.charts import built, charts, manifests, named, of_kind

pytestmark = pytest.mark.synth


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
    [priority] = of_kind(manifests("default"), "PriorityClass")
    assert priority["metadata"]["name"] == names.PRIORITY_CLASS
    assert priority["value"] > 0
    assert not priority.get("globalDefault")


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
    [account] = of_kind(manifests("default"), "ServiceAccount")
    assert account["metadata"]["name"] == names.SERVING_SERVICE_ACCOUNT
    assert account["automountServiceAccountToken"] is False
