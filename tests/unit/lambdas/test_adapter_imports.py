"""Importing is for reading code: no client, no connection, no setting of ours, and little time."""

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from lambdas import adapters
from tests.platform_files import ROOT

MODULES = sorted(f"lambdas.adapters.{module.name}" for module in pkgutil.iter_modules(adapters.__path__))
NO_SETTINGS = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), "LAMBDA_TASK_ROOT": str(ROOT)}
"""As in Lambda. Elsewhere the X-Ray SDK makes a client when it is imported, which takes longer than all else."""

WATCH = """
import importlib, json, socket, sys
import botocore.session
seen = []
botocore.session.Session.create_client = lambda *a, **k: seen.append("client")
socket.socket.connect = lambda *a, **k: seen.append("connection")
sys.modules |= dict.fromkeys(json.loads(sys.argv[2]))
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(seen))
"""


def imported(*, without: tuple[str, ...] = ()) -> list[str]:
    """What importing all adapters opens, in an environment without settings."""
    command = [sys.executable, "-c", WATCH, json.dumps(MODULES), json.dumps(without)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=NO_SETTINGS, cwd=ROOT)
    opened: list[str] = json.loads(done.stdout.splitlines()[-1])
    return opened


def test_there_are_modules_to_look_at():
    assert len(MODULES) >= 12


def test_importing_opens_nothing_and_needs_no_setting():
    assert imported() == []


@pytest.mark.parametrize("name", MODULES)
def test_no_adapter_looks_for_settings_itself(name):
    source = (ROOT / Path(*name.split("."))).with_suffix(".py").read_text(encoding="utf-8")
    assert "import os" not in source
    assert "environ[" not in source


def test_what_the_bundle_does_not_hold_is_not_needed():
    missing = ("genai_finops.spec", "aws_cdk", "cdk8s", "constructs", "kubernetes", "requests", "rich", "yaml")
    assert imported(without=missing) == []
