"""The arrows of the design point one way, rules are pure, and a fact stands in one place.

Reads the source with `ast`; imports inside functions, relative ones and `import_module("...")` count as well.
"""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from genai_finops import versions
from tests.platform_files import ROOT

LIBRARY = {
    f"genai_finops.{name}"
    for name in ("catalog", "operations", "spec", "planner", "supply", "rehearsal", "cli", "summary")
}
APPLICATION = {"k8s_charts", "stacks", "lambdas", "app"}
AROUND = {"tests", "benchmarks", "tools"}
EVERYTHING = LIBRARY | APPLICATION | AROUND

FREE_FOR_ALL = {"genai_finops", "genai_finops.versions"}

MAY_IMPORT = {
    "genai_finops": set(),
    "genai_finops.versions": set(),
    "genai_finops.catalog": set(),
    "genai_finops.operations": {"genai_finops.catalog"},
    "genai_finops.spec": {"genai_finops.catalog", "genai_finops.operations"},
    "genai_finops.planner": {"genai_finops.spec", "genai_finops.catalog", "genai_finops.operations"},
    "genai_finops.supply": {"genai_finops.spec", "genai_finops.catalog"},
    "genai_finops.rehearsal": LIBRARY,
    "genai_finops.__main__": {"genai_finops.cli"},
    "genai_finops.cli": EVERYTHING - AROUND,
    "genai_finops.summary": EVERYTHING - AROUND,
    "k8s_charts": {"genai_finops.spec", "genai_finops.catalog"},
    "stacks": {"k8s_charts", "genai_finops.spec", "genai_finops.catalog"},
    "lambdas": {"genai_finops.operations", "genai_finops.catalog"},
    "app": EVERYTHING - AROUND,
    "tests": EVERYTHING,
    "benchmarks": EVERYTHING,
    "tools": EVERYTHING,
}
"""The table of the design: what each room may import of ours, besides itself and FREE_FOR_ALL."""


@cache
def files(*endings: str) -> tuple[Path, ...]:
    """What is in the repository or about to be: tracked files, and new ones that are not ignored."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git repository")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    found = [ROOT / name for name in names if name.endswith(endings) and (ROOT / name).is_file()]
    return tuple(dict.fromkeys(found))


def module_of(file: Path) -> str:
    """`a/b/c.py` is `a.b.c`, `a/b/__init__.py` is `a.b.__init__`: the package itself, for relative imports."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def room_of(module: str) -> str:
    """The row of the table that a module, or a name imported from one, belongs to; the module when there is none."""
    parts = module.removesuffix(".__init__").split(".")
    if parts[0] != "genai_finops":
        return parts[0]
    room = ".".join(parts[:2])
    is_name_in_package = len(parts) == 2 and not any((ROOT / "genai_finops").glob(f"{parts[1]}*"))
    return "genai_finops" if is_name_in_package else room


def imports(module: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(module.split(".")[: -node.level]) if node.level else ""
            origin = ".".join(filter(None, (package, node.module)))
            yield from ((node.lineno, f"{origin}.{alias.name}".removesuffix(".*")) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def forbidden_arrows(module: str, source: str) -> list[str]:
    """`line: room -> room` of every import that the table does not have."""
    room = room_of(module)
    allowed = MAY_IMPORT[room] | FREE_FOR_ALL | {room}
    targets = ((line, room_of(name)) for line, name in imports(module, source))
    ours = {name.split(".")[0] for name in MAY_IMPORT}
    return [
        f"{line}: {room} -> {target}"
        for line, target in targets
        if target.split(".")[0] in ours and target not in allowed
    ]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_what_the_design_allows(room):
    found = []
    for file in files(".py"):
        module = module_of(file)
        if room_of(module) == room:
            found += [f"{module}:{arrow}" for arrow in forbidden_arrows(module, file.read_text(encoding="utf-8"))]
    assert found == []


def test_every_python_file_is_in_a_room_of_the_design():
    homeless = [str(file.relative_to(ROOT)) for file in files(".py") if room_of(module_of(file)) not in MAY_IMPORT]
    assert homeless == [], "a new folder needs a row in the design's table, and in MAY_IMPORT"


def test_the_arrows_have_no_cycle():
    remaining = {room: {other for other in allowed if other != room} for room, allowed in MAY_IMPORT.items()}
    for around in AROUND:  # nothing imports them
        assert not any(around in allowed for room, allowed in remaining.items() if room not in AROUND)
    entrances = AROUND | {"app", "genai_finops.cli", "genai_finops.summary", "genai_finops.rehearsal"}
    remaining = {room: allowed - entrances for room, allowed in remaining.items() if room not in entrances}
    while remaining:
        leaves = {room for room, allowed in remaining.items() if not allowed & set(remaining)}
        assert leaves, f"a cycle among {sorted(remaining)}"
        remaining = {room: allowed for room, allowed in remaining.items() if room not in leaves}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("genai_finops.catalog.prices", "from genai_finops.spec import Platform"),
        ("genai_finops.catalog.prices", "from ..spec import Platform"),
        ("genai_finops.catalog.__init__", "from ..spec import Platform"),
        ("genai_finops.catalog.prices", "from .. import spec"),
        ("genai_finops.catalog.prices", "import genai_finops.spec.load as load"),
        ("genai_finops.operations.windows", "def late():\n    from genai_finops.planner import cost"),
        ("genai_finops.operations.windows", "from genai_finops import planner"),
        ("genai_finops.spec.load", "import importlib\nimportlib.import_module('stacks.network')"),
        ("genai_finops.spec.load", "if False:\n    __import__('k8s_charts')"),
        ("k8s_charts.vllm", "from stacks import network"),
        ("k8s_charts.vllm", "from genai_finops.operations import windows"),
        ("stacks.network", "from genai_finops.planner import fixed_cost"),
        ("lambdas.budget_alerts.handler", "from genai_finops.spec import Platform"),
        ("genai_finops.planner.report", "from tests import strategies"),
    ],
)
def test_an_arrow_against_the_design_is_seen_however_it_is_written(module, source):
    assert len(forbidden_arrows(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("genai_finops.catalog.prices", "from genai_finops.catalog import _files\nfrom . import regions\nimport json"),
        ("genai_finops.spec.load", "from genai_finops import versions\nimport genai_finops"),
        ("genai_finops.spec.load", "from genai_finops import __doc__"),
        ("genai_finops.spec.model", "from genai_finops.operations.windows import Window"),
        ("stacks.serving", "from k8s_charts import vllm\nfrom stacks.base import Base\nfrom aws_cdk import Stack"),
        ("app", "from genai_finops.summary import render\nfrom stacks import application"),
    ],
)
def test_an_arrow_of_the_design_is_allowed(module, source):
    assert forbidden_arrows(module, source) == []


IMPURE_MODULES = {
    "aiohttp", "asyncio", "boto3", "botocore", "fileinput", "glob", "http", "httpx", "io", "kubernetes", "logging",
    "multiprocessing", "os", "pathlib", "random", "requests", "secrets", "shutil", "signal", "socket", "ssl",
    "subprocess", "sys", "tempfile", "threading", "time", "urllib", "urllib3", "uuid",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint"}
CLOCKS = {"now", "utcnow", "today"}


def impurities(source: str) -> list[str]:
    """What a rule must not use: clocks, files, networks, randomness."""
    found = [name for _, name in imports("x", source) if name.split(".")[0] in IMPURE_MODULES]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            found.append(f"{node.lineno}: .{node.attr}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            found.append(f"{node.lineno}: {node.func.id}()")
    return found


def test_the_rules_of_operations_know_no_clock_no_network_and_no_files():
    found = {
        module_of(file): impurities(file.read_text(encoding="utf-8"))
        for file in files(".py")
        if room_of(module_of(file)) == "genai_finops.operations"
    }
    assert found
    assert not any(found.values()), found


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from os import environ",
        "import boto3",
        "def f():\n    import requests",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\nclock = datetime.datetime.utcnow",
        "from datetime import date\ndate.today()",
        "open('x')",
        "import random",
    ],
)
def test_an_impure_rule_is_seen(source):
    assert impurities(source)


def pins() -> Iterator[str]:
    """Version strings that stand in versions.py and may stand nowhere else."""
    for name, value in vars(versions).items():
        if isinstance(value, versions.HelmChart):
            yield value.version
        elif isinstance(value, str) and name.endswith("_IMAGE"):
            yield value.rpartition(":")[2]
        elif name == "AL2023_AMI_ALIAS":
            yield value.partition("@")[2]


def apis() -> Iterator[str]:
    return (value for name, value in vars(versions).items() if isinstance(value, str) and name.endswith("_API"))


def occurrences(text: str, places: tuple[Path, ...]) -> list[str]:
    whole = re.compile(rf"(?<![\w.]){re.escape(text)}(?![\w.]*\w)")
    return [f"{file.relative_to(ROOT)}: {text}" for file in places if whole.search(file.read_text(encoding="utf-8"))]


def places_of_code() -> tuple[Path, ...]:
    skipped = ("snapshots", "__snapshots__")
    found = (file for file in files(".py", ".yaml", ".yml") if not set(skipped) & set(file.parts))
    return tuple(file for file in found if file != ROOT / "genai_finops" / "versions.py")


def test_a_pinned_version_stands_in_one_place():
    assert len(set(pins())) >= 10
    found = [place for pin in sorted(set(pins())) for place in occurrences(pin, places_of_code())]
    assert found == []


def test_the_version_of_an_api_stands_in_one_place():
    """Tests may spell it out: they say what a manifest must have."""
    code = tuple(file for file in places_of_code() if file.relative_to(ROOT).parts[0] != "tests")
    assert [place for api in sorted(set(apis())) for place in occurrences(f'"{api}"', code)] == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on():
    folders = [*("/".join(("", *parts)) for parts in (("work", "main"), ("work", "shared"), ("tmp", "lab"))), str(ROOT)]
    personal = re.compile(r"/(?:(?:home|Users)/\w+|root)/")
    endings = (".py", ".yaml", ".yml", ".json", ".toml", ".md", ".txt", ".cfg", ".sh", ".ambr", "Makefile", "run")
    found = []
    for file in files(*endings):
        text = file.read_text(encoding="utf-8", errors="replace")
        found += [f"{file.relative_to(ROOT)}: {folder}" for folder in folders if folder in text]
        found += [f"{file.relative_to(ROOT)}: {match}" for match in personal.findall(text)]
    assert found == []
