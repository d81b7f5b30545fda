"""The scripts of the model supply as the images get them: one flat folder, no package, nothing to install."""

import ast
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.platform_files import ROOT

FOLDER = ROOT / "k8s_charts" / "scripts"
sys.path.append(str(FOLDER))  # as Python does for a script: its siblings are imported by their names

import supply  # noqa: E402
import supply_bring  # noqa: E402

SCRIPTS = sorted(FOLDER.glob("*.py"))
ENTRY_POINTS = ("fetch", "stage", "compile")

IN_THE_IMAGES = {"boto3", "botocore", "urllib3"}
"""Both images of vLLM have boto3: the Neuron one installs it, the other through runai-model-streamer-s3."""
WHERE_IT_IS_NEEDED = {"stage.py": {"huggingface_hub"}, "compile_model.py": {"vllm"}}
"""Only imported by functions, so that the other scripts do without."""

CONFIG_MAP_BYTES = 2**20


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_imports_only_what_the_images_have(script):
    tree = ast.parse(script.read_text())
    siblings = {path.stem for path in SCRIPTS}
    allowed = set(sys.stdlib_module_names) | siblings | IN_THE_IMAGES
    assert set(imported(tree.body)) <= allowed
    assert set(imported(ast.walk(tree))) - allowed <= WHERE_IT_IS_NEEDED.get(script.name, set())


def test_no_script_hides_a_module_that_others_import():
    """Its folder comes first on the path of a script, before the library and what the image has installed."""
    assert not {path.stem for path in SCRIPTS} & (set(sys.stdlib_module_names) | {"vllm", "torch", "boto3"})


def test_all_scripts_fit_into_one_config_map():
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < CONFIG_MAP_BYTES / 2


@pytest.mark.parametrize("script", ENTRY_POINTS)
def test_a_script_explains_itself(script):
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{script}.py"), "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0
    assert ast.get_docstring(ast.parse((FOLDER / f"{script}.py").read_text())).splitlines()[0] in done.stdout


names = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True)
files = st.builds(
    supply.File,
    path=st.lists(names, min_size=1, max_size=3).map("/".join).filter(lambda path: path != supply.MANIFEST),
    size=st.integers(0, 10**12),
    sha256=st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
)
recipes = st.dictionaries(names, st.one_of(st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=3)))
manifests = st.builds(
    supply.Manifest,
    kind=st.sampled_from(("weights", "artifacts")),
    name=names,
    files=st.lists(files, max_size=4).map(tuple),
    created=st.just("2026-12-01T00:00:00Z"),
    recipe=st.none() | recipes,
)


@given(manifests)
def test_a_manifest_that_was_written_is_read_again(manifest):
    assert supply.parse_manifest(manifest.to_json(), "s3://b/m") == manifest


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "manifest.json"])
def test_a_path_that_leaves_its_folder_is_no_manifest(path):
    listed = [{"path": path, "size": 1, "sha256": "0" * 64}]
    text = json.dumps({"version": 1, "kind": "weights", "name": "n", "created": "", "files": listed})
    with pytest.raises(supply.SupplyError, match="is not a manifest"):
        supply.parse_manifest(text, "s3://b/m")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 2, "files": []}', "\x00"])
def test_anything_else_is_no_manifest_either(text):
    with pytest.raises(supply.SupplyError):
        supply.parse_manifest(text, "s3://b/m")


@given(recipes, recipes)
def test_recipes_differ_in_exactly_the_fields_that_are_not_equal(stored, wanted):
    absent = object()
    fields = {field for field in {*stored, *wanted} if stored.get(field, absent) != wanted.get(field, absent)}
    assert [line.partition(":")[0] for line in supply_bring.recipe_differences(stored, wanted)] == sorted(fields)


def test_of_a_field_with_fields_only_those_that_differ_are_named():
    stored, wanted = ({"neuron_config": {"quantized": True, "buckets": buckets}} for buckets in ([512], [512, 1024]))
    assert supply_bring.recipe_differences(stored, wanted) == ["neuron_config.buckets: [512] -> [512, 1024]"]


@given(recipes)
def test_a_recipe_is_the_same_after_a_journey_through_json(recipe):
    """The manifest holds JSON and the pod's argument is JSON: no difference may come from that."""
    assert supply_bring.recipe_differences(json.loads(json.dumps(recipe)), recipe) == []


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a b", "", "a/../b", ".hidden", "x/"])
def test_a_name_is_no_way_out_of_the_store(name):
    with pytest.raises(supply.SupplyError):
        supply.weights_place(name, "r1")
    with pytest.raises(supply.SupplyError):
        supply.artifacts_place(name)


def test_weights_and_artifacts_stand_where_roles_and_rules_expect_them():
    assert supply.weights_place("org/model", "0123abc").prefix == "weights/org/model/0123abc"
    assert supply.artifacts_place("0123abc").prefix == "artifacts/0123abc"
