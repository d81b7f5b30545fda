"""What the functions may do in the cluster: what they do, and nothing else."""

import ast

import pytest

from genai_finops.spec import names
from k8s_charts.automation import GROUP
from lambdas import runtime
from lambdas.adapters.cluster import PATCHED, Deployment, Node, NodePool, Pod, ScaledObject
from tests.platform_files import ROOT
from tests.unit.k8s_charts.charts import PLATFORMS, charts, of_kind

pytestmark = pytest.mark.synth

MODELS, PROMETHEUS, ANYWHERE = names.MODEL_NAMESPACE, names.MONITORING_NAMESPACE, None
CHANGING = {"create", "update", "delete", "deletecollection", "bind", "escalate", "impersonate", "*"}


@pytest.fixture(params=PLATFORMS)
def chart(request):
    return charts(request.param)["automation"]


def rules(chart):
    """Namespace, API group, resource, verb and the names it is limited to, of all that the group may do."""
    for binding in (*of_kind(chart, "RoleBinding"), *of_kind(chart, "ClusterRoleBinding")):
        assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP}]
        namespace = binding["metadata"].get("namespace")
        reference = binding["roleRef"]
        [role] = [
            role
            for role in of_kind(chart, reference["kind"])
            if role["metadata"]["name"] == reference["name"] and role["metadata"].get("namespace") == namespace
        ]
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield namespace, group, resource, verb, tuple(rule.get("resourceNames", ()))


def of(view, namespace, verb):
    """What RBAC calls a call of the adapter."""
    group, slash, _ = view.api.partition("/")
    return namespace, group if slash else "", view.plural, verb


def test_the_verbs_are_those_of_the_adapter_and_no_others(chart):
    used = {
        of(ScaledObject.RESOURCE, MODELS, "list"),
        of(Deployment.RESOURCE, MODELS, "list"),
        of(Pod.RESOURCE, MODELS, "list"),
        of(Node.RESOURCE, ANYWHERE, "list"),
        of(NodePool.RESOURCE, ANYWHERE, "list"),
        *(of(view, ANYWHERE if kind == "NodePool" else MODELS, "patch") for kind, view in PATCHED.items()),
        (PROMETHEUS, "", "services/proxy", "get"),
    }
    assert {(namespace, group, resource, verb) for namespace, group, resource, verb, _ in rules(chart)} == used


def test_the_adapter_lists_just_these(chart):
    """A list that the adapter learns needs a verb here: five of them today."""
    source = ast.parse((ROOT / "lambdas" / "adapters" / "cluster.py").read_text(encoding="utf-8"))
    listed = {
        node.args[0].id
        for node in ast.walk(source)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "_all"
        and isinstance(node.args[0], ast.Name)
    }
    assert listed == {"ScaledObject", "Deployment", "Pod", "Node", "NodePool"}
    assert len([verb for *_, verb, _ in rules(chart) if verb == "list"]) == len(listed)


def test_it_can_make_nothing_take_nothing_away_and_read_no_secret(chart):
    for _, group, resource, verb, _ in rules(chart):
        assert verb not in CHANGING
        assert "*" not in (group, resource)
        assert resource not in ("secrets", "configmaps", "pods/exec", "serviceaccounts/token")


@pytest.mark.parametrize("name", PLATFORMS)
def test_only_node_pools_of_the_platform_are_patched(name):
    pools = {manifest["metadata"]["name"] for manifest in of_kind(charts(name)["karpenter"], "NodePool")}
    [limited] = [
        only
        for *_, resource, verb, only in rules(charts(name)["automation"])
        if (resource, verb) == ("nodepools", "patch")
    ]
    assert pools <= set(limited)
    families = {pool.partition("-")[0] for pool in pools}
    assert {pool.partition("-")[0] for pool in limited} == families


def test_only_prometheus_is_reached_through_the_api_server(chart):
    [only] = [only for _, _, resource, _, only in rules(chart) if resource == "services/proxy"]
    # As the adapter asks for it: with its port, which is a part of the name that RBAC compares.
    assert only == (f"{runtime.PROMETHEUS_SERVICE}:{runtime.PROMETHEUS_PORT}",)
    assert runtime.PROMETHEUS_NAMESPACE == PROMETHEUS


def test_the_group_is_one_that_eks_lets_an_access_entry_have():
    assert not GROUP.startswith(("eks:", "aws:", "amazon:", "iam:", "system:"))
    assert len(GROUP) <= 63


@pytest.mark.parametrize("name", PLATFORMS)
def test_it_stands_before_the_models_do(name):
    order = list(charts(name))
    assert order.index("namespace") < order.index("automation") < order.index("vllm")
