"""What the functions are made of: all that they need, little else, the same bytes for the same content."""

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from genai_finops.operations.config import OperationsConfig
from genai_finops.spec.automation import operations_config
from stacks import lambda_bundle
from stacks.lambda_bundle import BundleError, bundle
from tests.platform_files import ROOT, platform

MAX_MIB = 15
CONFIG = operations_config(platform("rich")).to_json()
FUNCTIONS = ("budget_alerts", "scheduled_scaling", "spot_interruption")

IN_THE_RUNTIME = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
"""https://docs.aws.amazon.com/lambda/latest/dg/python-package.html: the SDK and what it needs."""

# Compiled for Lambda's processor and Python; here this machine's own stand in for them.
COMPILED = ("pydantic_core", "wrapt")

IMPORT_ALL = """
import importlib, json, pkgutil, sys
import lambdas
for module in pkgutil.walk_packages(lambdas.__path__, "lambdas."):
    importlib.import_module(module.name)
from genai_finops.operations.config import OperationsConfig
from pathlib import Path
config = OperationsConfig.from_json(Path(sys.argv[1], "platform.json").read_text())
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
print(json.dumps({"files": files, "platform": config.platform}))
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    file = tmp_path_factory.mktemp("bundle") / "functions.zip"
    bundle(CONFIG).write(file)
    return file


@pytest.fixture(scope="module")
def unpacked(archive):
    folder = archive.parent / "task"
    with ZipFile(archive) as opened:
        opened.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    """A folder with what the bundle does not have to bring: what Lambda has, and this machine's compiled packages."""
    folder = tmp_path_factory.mktemp("stand-ins")
    [site] = {Path(path) for path in sys.path if path.endswith("site-packages")}
    for name in (*IN_THE_RUNTIME, *COMPILED):
        found = site / name if (site / name).exists() else site / f"{name}.py"
        (folder / found.name).symlink_to(found)
    return folder


@pytest.fixture(scope="module")
def imported(unpacked, stand_ins):
    """Module to file, of everything that importing all of `lambdas` from the bundle alone has loaded."""
    path = os.pathsep.join((str(stand_ins), str(unpacked)))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "LAMBDA_TASK_ROOT": str(unpacked)}
    # Without the packages of this virtual environment (-S), and without leaving anything behind (-B).
    command = [sys.executable, "-B", "-S", "-c", IMPORT_ALL, str(unpacked)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=stand_ins, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["platform"] == "rich"
    return found["files"]


def test_every_handler_imports_from_the_bundle_alone(imported, unpacked):
    for function in FUNCTIONS:
        assert imported[f"lambdas.{function}.handler"] == str(unpacked / "lambdas" / function / "handler.py")


def test_what_lambda_has_itself_is_not_brought_along(unpacked):
    assert not [name for name in IN_THE_RUNTIME if (unpacked / name).exists() or (unpacked / f"{name}.py").exists()]


def test_nothing_of_the_project_comes_along_that_the_functions_do_not_import(unpacked):
    assert {path.name for path in (unpacked / "genai_finops").iterdir()} == {
        "__init__.py",
        "versions.py",
        "operations",
    }
    ours = {path.name for path in unpacked.iterdir()} & {path.name for path in ROOT.iterdir()}
    assert ours == {"genai_finops", "lambdas"}


def test_compiled_parts_are_for_lambdas_processor_and_python(unpacked):
    libraries = [file.name for file in unpacked.rglob("*.so")]
    assert libraries
    assert all(name.endswith(".cpython-313-aarch64-linux-gnu.so") for name in libraries), libraries


def test_it_is_small_and_holds_nothing_that_python_compiles(archive):
    with ZipFile(archive) as opened:
        entries = opened.infolist()
    assert sum(entry.file_size for entry in entries) <= MAX_MIB * 1024**2
    names = [entry.filename for entry in entries]
    assert len(names) == len(set(names))
    assert not [name for name in names if name.endswith(".pyc") or "__pycache__" in name]


def test_it_can_be_read_by_whoever_runs_it(archive):
    with ZipFile(archive) as opened:
        assert {entry.external_attr >> 16 for entry in opened.infolist()} == {0o100644}


def test_it_holds_the_platform(unpacked):
    assert OperationsConfig.from_json((unpacked / "platform.json").read_text()) == operations_config(platform("rich"))


def test_the_same_content_is_the_same_to_the_byte(archive, tmp_path):
    again = tmp_path / "again.zip"
    bundle(CONFIG).write(again)
    assert again.read_bytes() == archive.read_bytes()


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A project of one file."""
    (tmp_path / "lambdas").mkdir()
    (tmp_path / "lambdas" / "handler.py").write_text("ANSWER = 42\n")
    monkeypatch.setattr(lambda_bundle, "ROOT", tmp_path)
    monkeypatch.setattr(lambda_bundle, "SOURCES", ("lambdas",))
    return tmp_path / "lambdas"


def test_the_hash_changes_with_the_content(sources):
    before = bundle(CONFIG).content_hash
    (sources / "handler.py").write_text("ANSWER = 43\n")
    changed = bundle(CONFIG).content_hash
    (sources / "more.py").touch()
    assert len({before, changed, bundle(CONFIG).content_hash, bundle("{}").content_hash}) == 4


def test_the_hash_does_not_change_with_times_or_with_what_python_compiles(sources):
    before = bundle(CONFIG).content_hash
    os.utime(sources / "handler.py", (0, 0))
    (sources / "__pycache__").mkdir()
    (sources / "__pycache__" / "handler.cpython-311.pyc").write_bytes(b"compiled")
    assert bundle(CONFIG).content_hash == before


def test_the_hash_changes_with_the_lock(sources, tmp_path, monkeypatch):
    before = bundle(CONFIG).content_hash
    lock = tmp_path / "lambdas.txt"
    lock.write_text("pydantic==3\n")
    monkeypatch.setattr(lambda_bundle, "LOCK", lock)
    with pytest.raises(BundleError, match=r"setup_env\.py lambdas"):
        bundle(CONFIG)
    stamp = tmp_path / "stamp"
    stamp.write_text(lambda_bundle.sha256(lock.read_bytes()).hexdigest())
    monkeypatch.setattr(lambda_bundle, "STAMP", stamp)
    assert bundle(CONFIG).content_hash != before


def test_without_the_packages_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(lambda_bundle, "STAMP", tmp_path / "missing")
    with pytest.raises(BundleError, match=r"python3 tools/setup_env\.py lambdas"):
        bundle(CONFIG)


def test_the_functions_run_with_the_versions_that_the_tests_run_with():
    pins = {
        name: {
            line.split()[0]
            for line in (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
            if "==" in line and not line.startswith((" ", "#"))
        }
        for name in ("lambdas", "dev")
    }
    assert pins["lambdas"]
    assert {pin.split(";")[0] for pin in pins["lambdas"]} <= {pin.split(";")[0] for pin in pins["dev"]}
