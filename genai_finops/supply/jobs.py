"""Stage or compile a model now and wait for it: `make stage MODEL=…`, `make compile MODEL=…`.

The job is the one that a deploy applies, from the manifests that `make synth` wrote; its name says what it is made of,
so the deploy that follows finds it done and leaves it. kubectl does the talking, with the access of whoever runs this.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from genai_finops.spec import names

MANIFESTS: Final = Path("dist/manifests/supply.yaml")
POLL_SECONDS: Final = 10.0
LOG_LINES: Final = 20

Kubectl = Callable[[Sequence[str], str], str]
"""Arguments and standard input to standard output; raises JobError."""


class JobError(Exception):
    """Why the step is not done, and what to do."""


def find(manifests: str, step: str, model: str) -> dict[str, Any]:
    """The job of a step of a model.

    Raises:
        JobError: when there is none, naming the models that have one.
    """
    jobs = {
        manifest["metadata"]["labels"][names.MODEL_LABEL]: manifest
        for manifest in yaml.safe_load_all(manifests)
        if manifest["kind"] == "Job" and manifest["metadata"]["labels"][names.SUPPLY_LABEL] == step
    }
    if model not in jobs:
        raise JobError(f"No model {model!r} has a step {step!r}. It is there for: {', '.join(jobs) or 'none'}.")
    return dict(jobs[model])


def run(job: dict[str, Any], kubectl: Kubectl, say: Callable[[str], None], sleep: Callable[[float], None]) -> None:
    """Apply the job and wait for its end.

    Raises:
        JobError: when it fails, with the last lines it wrote.
    """
    name = job["metadata"]["name"]
    kubectl(["apply", "-f", "-"], json.dumps(job))
    say(f"{name} is applied; waiting for it")
    while True:
        conditions = _conditions(kubectl(_of(name, "get", "job", "-o", "json"), ""))
        if "Complete" in conditions:
            say(_log(name, kubectl))
            say(f"{name} is done")
            return
        if "Failed" in conditions:
            raise JobError(f"{_log(name, kubectl)}\n{name} has failed: {conditions['Failed']}")
        sleep(POLL_SECONDS)


def _of(name: str, *arguments: str) -> list[str]:
    verb, kind, *rest = arguments
    return [verb, "--namespace", names.MODEL_NAMESPACE, kind, name, *rest]


def _conditions(job: str) -> dict[str, str]:
    """Those that are true, with their messages."""
    found = json.loads(job).get("status", {}).get("conditions", ())
    return {one["type"]: one.get("message", "") for one in found if one["status"] == "True"}


def _log(name: str, kubectl: Kubectl) -> str:
    """The last lines, where there still are any: the pod of a job that ran out of time is gone."""
    try:
        arguments = ["logs", "--namespace", names.MODEL_NAMESPACE, f"job/{name}", "--tail", str(LOG_LINES)]
        return kubectl(arguments, "").rstrip()
    except JobError as error:
        return str(error)


def call(arguments: Sequence[str], given: str) -> str:
    """Run kubectl.

    Raises:
        JobError: with what it says, or that it is not there.
    """
    try:
        done = subprocess.run(["kubectl", *arguments], input=given, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise JobError("kubectl is not installed; it is what this speaks to the cluster with.") from None
    if done.returncode:
        raise JobError(done.stderr.strip() or f"kubectl ended with status {done.returncode}")
    return done.stdout


def main(step: str, model: str = "") -> None:
    """Do a step for a model."""
    try:
        job = find(MANIFESTS.read_text(encoding="utf-8"), step, model)
        run(job, call, lambda text: print(text, flush=True), time.sleep)
    except JobError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
