"""What the charts give to the stacks and to people: names, order, ownership, files."""

import re

import pytest
import yaml

from genai_finops import versions
from genai_finops.spec import names
from k8s_charts import model_of, synthesize, to_yaml, write_yaml
from tests.platform_files import platform
from tests.unit.k8s_charts.charts import PLATFORMS, built, charts, flat, manifests, of_kind, varied
from tests.unit.k8s_charts.references import dangling

pytestmark = pytest.mark.synth

CLUSTER_SCOPED = (
    "ClusterRole",
    "ClusterRoleBinding",
    "EC2NodeClass",
    "GatewayClass",
    "Namespace",
    "NodePool",
    "PersistentVolume",
    "PriorityClass",
)
SHARED_NAMESPACES = (names.MONITORING_NAMESPACE,)
"""Made by the Helm charts that live in them."""

SECRET_WORDS = re.compile(r"hf_[A-Za-z0-9]{8,}|AKIA[0-9A-Z]{16}|BEGIN [A-Z ]*PRIVATE KEY")


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_reference_leads_somewhere(name):
    assert dangling(manifests(name)) == []


def test_charts_come_in_the_order_of_application():
    assert list(charts("rich")) == [
        "namespace", "karpenter", "automation", "supply", "vllm", "warm", "buffer", "images", "keda", "monitoring",
        "gateway",
    ]  # fmt: skip
    order = ["namespace", "karpenter", "automation", "supply", "vllm", "keda", "monitoring", "gateway"]
    assert list(charts("default")) == order


def test_the_namespace_is_the_first_object():
    assert charts("default")["namespace"][0]["kind"] == "Namespace"


def test_no_gateway_chart_without_a_gateway():
    assert "gateway" not in synthesize(varied(gateway={"enabled": False}))


@pytest.mark.parametrize("name", PLATFORMS)
def test_objects_of_a_model_carry_its_label_and_shared_ones_do_not(name):
    served = [model.name for model in platform(name).models]
    for manifest in manifests(name):
        owner = model_of(manifest)
        name = manifest["metadata"]["name"]
        expected = [model for model in served if name in (f"vllm-{model}", f"warm-{model}")]
        if manifest["kind"] == "Job":
            expected = [model for model in served if re.fullmatch(rf"(stage|compile)-{model}-[0-9a-f]{{10}}", name)]
        assert [owner] == (expected or [None]), manifest["metadata"]


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_model_has_one_of_each(name):
    kinds = [
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "ScaledObject",
        "PodMonitor",
        "PrometheusRule",
        "TargetGroupConfiguration",
        "HTTPRoute",
    ]
    for model in platform(name).models:
        warm = {"placeholder": "Deployment", "buffer": "CapacityBuffer"}[model.warm_capacity.kind]
        wanted = [*kinds, *["Job"] * (2 if model.is_precompiled else 1), *[warm] * bool(model.warm_capacity.replicas)]
        owned = [manifest["kind"] for manifest in manifests(name) if model_of(manifest) == model.name]
        assert sorted(owned) == sorted(wanted)


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_namespaced_object_names_a_namespace_that_exists(name):
    made = [manifest["metadata"]["name"] for manifest in of_kind(manifests(name), "Namespace")]
    for manifest in manifests(name):
        namespace = manifest["metadata"].get("namespace")
        if manifest["kind"] in CLUSTER_SCOPED:
            assert namespace is None
        else:
            assert namespace in [*made, *SHARED_NAMESPACES]


@pytest.mark.parametrize("name", PLATFORMS)
def test_no_two_objects_share_kind_namespace_and_name(name):
    keys = [
        (manifest["kind"], manifest["metadata"].get("namespace"), manifest["metadata"]["name"])
        for manifest in manifests(name)
    ]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", PLATFORMS)
def test_images_are_pinned_and_come_from_the_versions_module(name):
    known = {value for value in vars(versions).values() if isinstance(value, str)}
    for manifest in manifests(name):
        pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
        for container in [*pod.get("containers", []), *pod.get("initContainers", [])]:
            assert container["image"] in known
            assert re.fullmatch(r".+:[^:/]*\d[^:/]*", container["image"])


@pytest.mark.parametrize("name", PLATFORMS)
def test_no_secret_stands_in_a_manifest(name):
    assert not of_kind(manifests(name), "Secret")
    assert not SECRET_WORDS.search(to_yaml(manifests(name)))


def test_synthesis_depends_on_nothing_but_the_platform():
    assert synthesize(platform("rich")) == charts("rich")


def test_files_hold_what_was_synthesized(tmp_path):
    write_yaml(charts("rich"), tmp_path / "manifests")
    written = {file.stem: list(yaml.safe_load_all(file.read_text())) for file in tmp_path.glob("*/*.yaml")}
    assert written == charts("rich")


def test_files_have_no_aliases_and_no_flow_style():
    text = to_yaml(manifests("rich"))
    assert not re.search(r"^[^'\"|]*: [&*]\w+$", text, re.MULTILINE)
    assert not re.search(r"^ *(- )?[\w./-]+: [\[{](?![\]}])", text, re.MULTILINE)


@pytest.mark.parametrize(
    "text", ["12345e67", "1e5", "0o17", "0123", "true", "no", "null", "1_000", "4711", ".5", "infinity"]
)
def test_text_that_some_parser_reads_as_something_else_is_quoted(text):
    assert f'"{text}"' in to_yaml([{"kind": text}])


def test_scripts_and_queries_are_readable_blocks():
    text = to_yaml(charts("default")["namespace"])
    assert "drain.py: |" in text


def test_the_file_of_a_platform_with_many_models_stays_in_the_order_of_the_file():
    models = [{"name": f"m-{index}"} for index in (3, 1, 2)]
    found = [model_of(manifest) for manifest in of_kind(built(*models), "Deployment")]
    assert found == ["m-3", "m-1", "m-2"]


def test_every_object_can_be_listed_by_one_label():
    for manifest in flat(charts("rich")):
        assert manifest["metadata"]["labels"]["app.kubernetes.io/part-of"] == "genai-finops"
