"""Importing a function is quick and opens nothing: it brings what this function needs, and nothing of the others."""

import json
import os
import subprocess
import sys

import pytest

from tests.platform_files import ROOT

PROGRAM = """
import importlib, json, socket, sys
import botocore.session
opened = []
botocore.session.Session.create_client = lambda *a, **k: opened.append("client")
socket.socket.connect = lambda *a, **k: opened.append("connection")
importlib.import_module(sys.argv[1])
print(json.dumps([opened, sorted(sys.modules)]))
"""
NEVER = {"genai_finops.spec", "genai_finops.catalog", "yaml", "aws_cdk", "cdk8s", "kubernetes", "requests"}
OTHERS = {
    "spot_interruption": {"lambdas.adapters.cost_explorer"},
    "scheduled_scaling": {"lambdas.adapters.cost_explorer", "lambdas.adapters.instances"},
    "budget_alerts": {"lambdas.adapters.instances"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_function_imports_only_what_it_needs_and_opens_nothing(name):
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), "LAMBDA_TASK_ROOT": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, f"lambdas.{name}.handler"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT)
    opened, modules = json.loads(done.stdout.splitlines()[-1])
    assert opened == []
    assert set(modules) & (NEVER | OTHERS[name]) == set()
    others = {f"lambdas.{other}" for other in OTHERS if other != name}
    assert set(modules) & others == set()
