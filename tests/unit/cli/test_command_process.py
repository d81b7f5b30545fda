"""The command as a process: what starts, what a pipe gets, what is left behind, and with which exit code it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platform_files import FILES, ROOT

DEFAULT = str(FILES["default"])
BUDGET = "budget: {monthly_usd: 500}\nnotifications: {emails: [finops@example.com]}"


def run(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(
        [sys.executable, "-m", "genai_finops", *arguments],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def dearer(tmp_path: Path) -> Path:
    """The shipped platform with a second replica, and a budget that it exceeds."""
    text = FILES["default"].read_text(encoding="utf-8").replace("min_replicas: 1", "min_replicas: 2")
    file = tmp_path / "dearer.yaml"
    file.write_text(f"{text}\n{BUDGET}\n", encoding="utf-8")
    return file


def loaded(*arguments: str) -> set[str]:
    """Modules that the command has loaded when it ends."""
    code = (
        "import sys\nfrom genai_finops.cli import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


HEAVY = {"numpy", "numba", "vl_convert", "aws_cdk", "jsii", "boto3"}


def test_help_loads_nothing_heavy():
    found = loaded("--help")
    assert found & (HEAVY | {"pydantic", "yaml", "rich"}) == set()
    assert "click" in found


@pytest.mark.parametrize("arguments", [("compare",), ("diff", DEFAULT, DEFAULT)])
def test_what_only_computes_loads_no_simulator(arguments):
    assert loaded(*arguments) & HEAVY == set()


def test_a_difference_within_the_budget_ends_with_0():
    done = run("diff", DEFAULT, DEFAULT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No line changes." in done.stdout


def test_a_budget_that_is_exceeded_ends_with_2(dearer):
    done = run("diff", DEFAULT, str(dearer))
    assert done.returncode == 2
    assert "exceeded" in done.stdout


def test_a_pipe_gets_plain_text():
    done = run("diff", DEFAULT, str(FILES["rich"]))
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_an_ascii_locale_gets_ascii():
    done = run("diff", DEFAULT, str(FILES["rich"]), PYTHONIOENCODING="ascii")
    assert done.stdout.isascii()
    assert "->" in done.stdout


def test_html_and_json_do_not_depend_on_the_locale():
    page = run("diff", DEFAULT, str(FILES["rich"]), "--format", "html", PYTHONIOENCODING="ascii")
    assert page.stdout.startswith("<!doctype html>")
    assert "→" in page.stdout
    assert json.loads(run("diff", DEFAULT, DEFAULT, "--format", "json", PYTHONIOENCODING="ascii").stdout)


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m genai_finops diff {DEFAULT} {FILES['rich']} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("Monthly cost")


@pytest.mark.parametrize(
    "arguments",
    [
        ("diff", DEFAULT),
        ("diff", DEFAULT, DEFAULT, "--format", "pdf"),
        ("diff", DEFAULT, DEFAULT, "--seed", "-1"),
        ("nothing",),
        ("compare", "--percent", "100"),
    ],
)
def test_a_mistake_in_the_command_line_ends_with_1(arguments):
    done = run(*arguments)
    assert done.returncode == 1
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_all_mistakes_of_a_platform_file_are_told_and_nothing_is_written(tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(FILES["minimal"].read_text(encoding="utf-8").replace("region:", "regoin:"), encoding="utf-8")
    target = tmp_path / "out.txt"
    target.write_text("before", encoding="utf-8")
    done = run("diff", DEFAULT, str(wrong), "--out-file", str(target))
    assert done.returncode == 1
    assert "regoin" in done.stderr
    assert "Did you mean region?" in done.stderr
    assert "nothing was written" in done.stderr
    assert "Traceback" not in done.stderr
    assert target.read_text(encoding="utf-8") == "before"
    assert {file.name for file in tmp_path.iterdir()} == {"wrong.yaml", "out.txt"}


def test_a_file_that_is_missing_is_told():
    done = run("simulate", "nowhere.yaml")
    assert done.returncode == 1
    assert "nowhere.yaml does not exist" in done.stderr


def test_an_out_file_holds_what_would_have_been_printed(tmp_path):
    target = tmp_path / "new" / "out.md"
    done = run("diff", DEFAULT, DEFAULT, "--format", "markdown", "--out-file", str(target))
    assert (done.returncode, done.stdout) == (0, "")
    assert target.read_text(encoding="utf-8") == run("diff", DEFAULT, DEFAULT, "--format", "markdown").stdout
    assert [file.name for file in target.parent.iterdir()] == ["out.md"]
    assert f"{target}: " in done.stderr


def test_an_out_file_that_cannot_be_written_is_told(tmp_path):
    done = run("diff", DEFAULT, DEFAULT, "--out-file", str(tmp_path))
    assert done.returncode == 1
    assert "Is a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dash_is_standard_output():
    assert "No line changes." in run("diff", DEFAULT, DEFAULT, "--out-file", "-").stdout


def test_without_a_command_there_is_help():
    done = run()
    assert done.returncode == 0
    for command in ("compare", "plan", "simulate", "diff", "report", "calibrate"):
        assert command in done.stdout
