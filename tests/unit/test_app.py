"""app.py as people run it: by itself, from anywhere, with good files and bad ones."""

import shutil

import pytest

import app
from tests.checkout import Checkout, templates
from tests.platform_files import FILES, ROOT, platform

LIBRARIES = {"aws_cdk", "cdk8s", "cdk_nag", "constructs", "jsii"}

BROKEN = """\
name: demo
region: mars-1
zones: [mars-1a, mars-1b]
models:
  - {name: a, source: hf://Qwen/Qwen3-8B, revision: main, accelerator: {family: inf2}}
nonsense: 1
"""


def assets(folder):
    return {file.name: file.stat().st_ino for file in folder.glob("asset.*.zip")}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A folder with a space in its name and the shipped platform in it, under a name with another one."""
    folder = tmp_path_factory.mktemp("some where")
    shutil.copy(ROOT / "platform.yaml", folder / "my platform.yaml")
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return Checkout(tmp_path_factory.mktemp("app") / "checkout")


@pytest.fixture(scope="module")
def first(checkout, elsewhere):
    """A run from another folder, in another time zone and locale, with another order of hashes."""
    return checkout.run(
        cwd=elsewhere,
        PLATFORM=str(elsewhere / "my platform.yaml"),
        TZ="Pacific/Kiritimati",
        LC_ALL="C",
        PYTHONHASHSEED="4711",
    )


@pytest.mark.slow
def test_a_valid_file_exits_with_0_and_says_what_was_made_and_what_it_costs(first):
    assert first.returncode == 0, first.stderr
    assert "Traceback" not in first.stderr
    for expected in ("eks-genai-cluster-network", "eks-genai-cluster-serving", "cdk.out", "dist/manifests", "$"):
        assert expected in first.stdout


@pytest.mark.slow
def test_a_valid_file_writes_templates_and_manifests_beside_itself_and_nothing_else(first, checkout, elsewhere):
    assert (checkout.assembly / "manifest.json").exists()
    assert sorted(file.stem for file in checkout.manifests.iterdir()) == [
        "automation",
        "gateway",
        "karpenter",
        "keda",
        "monitoring",
        "namespace",
        "supply",
        "vllm",
    ]
    assert checkout.left_over() == []
    assert [path.name for path in elsewhere.iterdir()] == ["my platform.yaml"]


@pytest.mark.slow
@pytest.mark.synth
def test_templates_are_the_same_bytes_whatever_the_folder_time_zone_locale_and_hash_seed(first, checkout, assemblies):
    assert templates(checkout.assembly) == templates(assemblies["default"].folder)


@pytest.mark.slow
def test_a_run_with_nothing_changed_makes_nothing_again_and_says_the_same(first, checkout, elsewhere):
    before = {file: file.stat().st_mtime_ns for file in checkout.assembly.rglob("*")}
    # The same settings of the CDK as the first run; where it is started from does not matter.
    again = checkout.run("-X", "importtime", cwd=elsewhere, PLATFORM="my platform.yaml")
    assert again.returncode == 0, again.stderr
    assert {file: file.stat().st_mtime_ns for file in checkout.assembly.rglob("*")} == before
    assert again.stdout.count(", unchanged") == 2
    assert first.stdout.splitlines()[3:10] == again.stdout.splitlines()[3:10]
    read = {line.rsplit("|", 1)[1].split()[0] for line in again.stderr.splitlines() if "import time:" in line}
    assert not LIBRARIES & {name.split(".")[0] for name in read}


@pytest.mark.slow
def test_a_run_after_a_change_that_means_nothing_makes_the_same_and_copies_no_asset_again(first, checkout, elsewhere):
    before, linked = templates(checkout.assembly), assets(checkout.assembly)
    manifests = {file.name: file.read_bytes() for file in checkout.manifests.iterdir()}
    with (elsewhere / "my platform.yaml").open("a") as file:
        file.write("# a comment\n")
    again = checkout.run(cwd=elsewhere, PLATFORM="my platform.yaml")
    assert again.returncode == 0, again.stderr
    assert templates(checkout.assembly) == before
    assert {file.name: file.read_bytes() for file in checkout.manifests.iterdir()} == manifests
    assert linked
    assert assets(checkout.assembly) == linked
    assert checkout.left_over() == []


@pytest.fixture
def bad(tmp_path):
    file = tmp_path / "platform.yaml"
    file.write_text(BROKEN)
    return file


@pytest.fixture
def fresh(tmp_path):
    """A checkout with outputs of an earlier run."""
    fresh = Checkout(tmp_path / "checkout")
    for folder in (fresh.assembly, fresh.manifests):
        folder.mkdir(parents=True)
        (folder / "earlier").touch()
    return fresh


def test_a_bad_file_exits_with_1_and_names_every_mistake_on_stderr_only(fresh, bad):
    result = fresh.run(PLATFORM=str(bad))
    assert (result.returncode, result.stdout) == (1, "")
    for path in ("region", "models[0].revision", "nonsense"):
        assert f"{bad}: {path} " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bad_file_leaves_earlier_outputs_alone(fresh, bad):
    before = fresh.outputs()
    fresh.run(PLATFORM=str(bad))
    assert fresh.outputs() == before
    assert fresh.left_over() == []


def test_a_bad_file_is_refused_before_any_heavy_library_is_read(fresh, bad):
    result = fresh.run("-X", "importtime", PLATFORM=str(bad))
    read = {line.rsplit("|", 1)[1].split()[0] for line in result.stderr.splitlines() if "import time:" in line}
    assert "genai_finops.spec" in read
    assert not LIBRARIES & {name.split(".")[0] for name in read}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "does not exist"),
        (b"", "platform.yaml"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"name: [", "platform.yaml"),
    ],
    ids=["missing", "empty", "not text", "not YAML"],
)
def test_a_file_that_cannot_be_read_is_explained(fresh, tmp_path, content, expected):
    file = tmp_path / "platform.yaml"
    if content is not None:
        file.write_bytes(content)
    result = fresh.run(PLATFORM=str(file))
    assert (result.returncode, result.stdout) == (1, "")
    assert expected in result.stderr
    assert str(file) in result.stderr
    assert "Traceback" not in result.stderr


def test_a_folder_in_place_of_a_file_is_explained(fresh, tmp_path):
    result = fresh.run(PLATFORM=str(tmp_path))
    assert (result.returncode, result.stdout) == (1, "")
    assert "cannot be read" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bad_file_is_refused_for_the_cdk_cli_as_well(fresh, bad, tmp_path):
    result = fresh.run(PLATFORM=str(bad), CDK_OUTDIR=str(tmp_path / "out"))
    assert (result.returncode, result.stdout) == (1, "")
    assert not (tmp_path / "out").exists()


@pytest.mark.synth
@pytest.mark.parametrize(
    "broken", ["stacks.application.build", "k8s_charts.write_yaml", "stacks.application.resource_counts"]
)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_synth_that_stops_half_way_leaves_earlier_outputs_and_no_staging_folders(
    tmp_path, monkeypatch, capsys, broken, error
):
    def stop(*_, **__):
        raise error

    for folder in (tmp_path / "cdk.out", tmp_path / "dist" / "manifests"):
        folder.mkdir(parents=True)
        (folder / "earlier").touch()
    monkeypatch.setattr(broken, stop)
    with pytest.raises(error):
        app.synthesize(platform("minimal"), FILES["minimal"], tmp_path)
    files = [str(file.relative_to(tmp_path)) for file in sorted(tmp_path.rglob("*")) if file.is_file()]
    assert files == ["cdk.out/earlier", "dist/manifests/earlier"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cdk.out", "dist"]
    assert capsys.readouterr().out == ""


@pytest.mark.synth
def test_the_cdk_cli_has_the_output_to_itself(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PLATFORM", str(FILES["minimal"]))
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path))
    assert app.main() == 0
    assert capsys.readouterr().out == ""
