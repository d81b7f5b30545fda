"""What is applied: all that the charts made, in an order that converges, and nothing that belongs to run time."""

import json
from collections import Counter

import pytest

from genai_finops.spec import names
from k8s_charts import model_of, split_runtime_owned
from k8s_charts.runtime_owned import runtime_owned_fields
from tests.assemblies import of_type

pytestmark = pytest.mark.synth

DEFINED_BY = {
    "karpenter.sh": "karpenter-crd",
    "karpenter.k8s.aws": "karpenter-crd",
    "autoscaling.x-k8s.io": "karpenter-crd",
    "keda.sh": "keda",
    "monitoring.coreos.com": "kube-prometheus-stack",
    "secrets-store.csi.x-k8s.io": "secrets-store",
    "gateway.networking.k8s.io": "gateway-api-crds",
    "gateway.k8s.aws": "aws-load-balancer-controller",
}
"""The release that brings the definitions of an API group."""

OF_KUBERNETES = {"apps", "batch", "policy", "networking.k8s.io", "scheduling.k8s.io", "rbac.authorization.k8s.io"}


def key(manifest):
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace"), metadata["name"]


def group(manifest):
    return manifest["apiVersion"].rpartition("/")[0]


def charts(assembly):
    return [manifest for chart in assembly.manifests.values() for manifest in chart]


def patches(assembly):
    return [
        {**patch["Properties"], "stack": stack, "after": patch.get("DependsOn", [])}
        for stack, _, patch in assembly.all("Custom::AWSCDK-EKS-KubernetesPatch")
    ]


def before(template, logical_id):
    """Everything in a template that is finished before a resource begins."""
    found, queue = set(), [logical_id]
    while queue:
        for earlier in template["Resources"][queue.pop()].get("DependsOn", []):
            if earlier not in found:
                found.add(earlier)
                queue.append(earlier)
    return found


def stacks_before(assembly, stack):
    found, queue = set(), [stack]
    while queue:
        for earlier in assembly.stacks[queue.pop()]["dependencies"]:
            if earlier in assembly.stacks and earlier not in found:
                found.add(earlier)
                queue.append(earlier)
    return found


def of_the_charts(assembly):
    """What is applied but for what only the stack can say: the name of the bucket, which has the account in it."""
    return [manifest for _, _, manifest in assembly.applied() if manifest["metadata"]["name"] != names.MODEL_STORE]


def test_everything_that_the_charts_made_is_applied_once_and_unchanged_but_for_what_run_time_owns(assembly):
    applied = of_the_charts(assembly)
    assert len(applied) == len(charts(assembly))
    wanted = {key(manifest): split_runtime_owned(manifest)[0] for manifest in charts(assembly)}
    assert {key(manifest): manifest for manifest in applied} == wanted


def test_a_deploy_takes_back_nothing_that_was_set_at_run_time(assembly):
    for _, _, manifest in assembly.applied():
        assert runtime_owned_fields(manifest) == []


def test_replica_bounds_are_set_by_a_patch_of_their_own_and_nothing_else_is(assembly):
    """A patch runs again only when its own properties change: when the file changes them."""
    found = {patch["ResourceName"]: json.loads(patch["ApplyPatchJson"]) for patch in patches(assembly)}
    bounds = {
        f"scaledobject/{names.deployment(model)}": {
            "spec": {
                "minReplicaCount": model.scaling.min_replicas,
                "maxReplicaCount": model.scaling.max_replicas,
            }
        }
        for model in assembly.platform.models
    }
    placeholders = {
        f"deployment/{names.warm_deployment(model)}": {"spec": {"replicas": model.warm_capacity.placeholders}}
        for model in assembly.platform.models
        if model.warm_capacity.placeholders
    }
    assert found == bounds | placeholders


def test_patches_come_after_their_object_and_leave_bounds_alone_when_a_model_goes(assembly):
    for patch in patches(assembly):
        assert patch["RestorePatchJson"] == patch["ApplyPatchJson"]
        assert patch["ResourceNamespace"] == names.MODEL_NAMESPACE
        kind, _, name = patch["ResourceName"].partition("/")
        [where] = [
            logical_id
            for stack, logical_id, manifest in assembly.applied()
            if stack == patch["stack"] and (manifest["kind"].lower(), manifest["metadata"]["name"]) == (kind, name)
        ]
        assert where in patch["after"]


def test_a_nested_stack_for_each_model_with_its_objects_and_no_others(assembly):
    models = [model.name for model in assembly.platform.models]
    assert list(assembly.model_templates) == [f"model-{name}" for name in models]
    for stack, _, manifest in assembly.applied():
        model = model_of(manifest)
        assert stack == ("serving" if model is None else f"model-{model}")


def test_each_concern_of_a_model_is_a_resource_of_its_own(assembly):
    for template in assembly.model_templates.values():
        found = of_type(template, "Custom::AWSCDK-EKS-KubernetesResource").values()
        kinds = [{manifest["kind"] for manifest in json.loads(one["Properties"]["Manifest"])} for one in found]
        alone = ({"Job"}, {"Deployment"}, {"CapacityBuffer"})  # jobs, placeholders, a buffer
        [server] = [of_one for of_one in kinds if "Service" in of_one]
        assert "Deployment" in server
        assert sum("ScaledObject" in of_one for of_one in kinds) == 1
        assert not any({"Deployment", "ScaledObject"} <= of_one for of_one in kinds)
        for of_one in kinds:
            assert of_one in alone or not of_one & {"Job", "CapacityBuffer"}


def test_shared_objects_come_before_models(assembly):
    template = assembly.templates["serving"]
    shared = set(of_type(template, "Custom::AWSCDK-EKS-KubernetesResource"))
    nested = of_type(template, "AWS::CloudFormation::Stack")
    assert len(nested) == len(assembly.platform.models)
    for logical_id in nested:
        assert shared <= before(template, logical_id)


def test_the_namespace_comes_before_everything_in_it(assembly):
    template = assembly.templates["serving"]
    where = {key(manifest): logical_id for stack, logical_id, manifest in assembly.applied() if stack == "serving"}
    namespace = where["Namespace", None, names.MODEL_NAMESPACE]
    for (_, in_namespace, _), logical_id in where.items():
        if in_namespace == names.MODEL_NAMESPACE and logical_id != namespace:
            assert namespace in before(template, logical_id)


KUBECTL_PRUNES = {"ConfigMap", "DaemonSet", "Deployment", "Job", "Namespace", "Service"}
"""Of the kinds that are applied, those in the default list of `kubectl apply --prune`, with which CDK applies."""


def test_an_object_that_goes_from_the_file_goes_from_the_cluster(assembly):
    """Either kubectl prunes it, or it is a resource of its own, or it goes with all of its model."""
    together = Counter(logical_id for stack, logical_id, _ in assembly.applied() if stack == "serving")
    for stack, logical_id, manifest in assembly.applied():
        if stack == "serving" and manifest["kind"] not in KUBECTL_PRUNES:
            assert together[logical_id] == 1, manifest["kind"]


def test_every_model_has_the_same_kinds_so_that_none_can_be_left_behind(assemblies):
    """But for those that kubectl prunes, and those that are the whole of a resource, which goes with them."""
    found = set()
    for assembly in assemblies.values():
        for stack in assembly.model_templates:
            by_resource = {}
            for where, logical_id, manifest in assembly.applied():
                if where == stack:
                    by_resource.setdefault(logical_id, []).append(manifest["kind"])
            together = [kinds for kinds in by_resource.values() if set(kinds) != {"CapacityBuffer"}]
            found.add(tuple(sorted(kind for kinds in together for kind in kinds if kind not in KUBECTL_PRUNES)))
    assert len(found) == 1


def test_the_gateway_is_deleted_before_what_it_refers_to(assembly):
    """Its controller holds the class and the configuration until the load balancer is gone."""
    template = assembly.templates["serving"]
    where = {manifest["kind"]: logical_id for stack, logical_id, manifest in assembly.applied() if stack == "serving"}
    assert {where["GatewayClass"], where["LoadBalancerConfiguration"]} <= before(template, where["Gateway"])


def test_pods_find_their_identity_when_they_start(assembly):
    template = assembly.templates["serving"]
    identities = set(of_type(template, "AWS::EKS::PodIdentityAssociation"))
    assert len(identities) == 3
    for logical_id in of_type(template, "AWS::CloudFormation::Stack"):
        assert identities <= before(template, logical_id)


def test_pods_find_the_name_of_the_store_when_they_start(assembly):
    template = assembly.templates["serving"]
    [(where, manifest)] = [
        (logical_id, manifest)
        for _, logical_id, manifest in assembly.applied()
        if manifest["metadata"]["name"] == names.MODEL_STORE
    ]
    assert manifest["metadata"]["namespace"] == names.MODEL_NAMESPACE
    assert manifest["data"] == {names.BUCKET_KEY: names.model_store_bucket(assembly.platform, "${AWS::AccountId}")}
    for logical_id in of_type(template, "AWS::CloudFormation::Stack"):
        assert where in before(template, logical_id)


def test_a_deployment_comes_before_what_scales_it(assembly):
    for stack, template in assembly.model_templates.items():
        where = {
            (manifest["kind"], manifest["metadata"]["name"]): logical_id
            for found, logical_id, manifest in assembly.applied()
            if found == stack
        }
        name = names.deployment(next(m for m in assembly.platform.models if stack == f"model-{m.name}"))
        assert where["Deployment", name] in before(template, where["ScaledObject", name])


def test_definitions_come_before_objects(assembly):
    """By the order of stacks: a release is waited for, and its stack is complete before the next one begins."""
    installed = {
        resource["Properties"]["Release"]: stack for stack, _, resource in assembly.all("Custom::AWSCDK-EKS-HelmChart")
    }
    earlier = stacks_before(assembly, "serving")
    custom = {group(manifest) for _, _, manifest in assembly.applied()} - OF_KUBERNETES - {""}
    assert custom
    for api_group in custom:
        assert installed[DEFINED_BY[api_group]] in earlier


def test_stacks_are_deployed_from_the_network_up(assembly):
    everything = {"network", "cluster", "karpenter", "add-ons", "store"}
    if "operations" in assembly.stacks:
        everything.add("operations")
    assert stacks_before(assembly, "serving") == everything
    assert stacks_before(assembly, "karpenter") == {"network", "cluster"}
    assert stacks_before(assembly, "add-ons") >= {"network", "cluster", "karpenter"}
    assert stacks_before(assembly, "network") == stacks_before(assembly, "store") == set()


def test_stacks_are_named_after_the_platform_and_need_no_account(assembly):
    for part, stack in assembly.stacks.items():
        assert stack["properties"]["stackName"] == f"{assembly.platform.name}-{part}"
        assert stack["environment"] == f"aws://unknown-account/{assembly.platform.region}"
        assert stack["properties"]["validateOnSynth"] is False


def test_objects_of_a_model_that_goes_are_deleted_and_so_is_its_stack(assembly):
    for kind in ("AWS::CloudFormation::Stack", "Custom::AWSCDK-EKS-KubernetesResource", "Custom::AWSCDK-EKS-HelmChart"):
        for _, logical_id, resource in assembly.all(kind):
            assert resource["DeletionPolicy"] == "Delete", logical_id


def test_the_load_balancer_is_internal_unless_asked_for(assemblies):
    schemes = {
        name: [
            manifest["spec"]["scheme"]
            for _, _, manifest in assembly.applied()
            if manifest["kind"] == "LoadBalancerConfiguration"
        ]
        for name, assembly in assemblies.items()
    }
    assert schemes == {"default": ["internal"], "minimal": ["internal"], "rich": ["internet-facing"]}
