"""How long importing each function takes, against what none can do without: boto3, and Powertools ready for use.

    .venv/bin/python benchmarks/cold_start.py

As in Lambda, with LAMBDA_TASK_ROOT set: anywhere else the X-Ray SDK makes a client of its own when it is imported. The
two are measured in turns, in fresh processes, and the least of each counts: whatever else runs only adds.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TIMES: Final = 9
LIMIT: Final = 1.3
BASE: Final = (
    "import boto3; from aws_lambda_powertools import Logger, Metrics, Tracer; "
    "from aws_lambda_powertools.utilities import parser"
)
READY: Final = f"{BASE}; Logger(service='x'); Metrics(namespace='x', service='x'); Tracer(patch_modules=('botocore',))"
"""A Tracer loads the X-Ray SDK when it is made, and every function makes one when it is imported."""

FUNCTIONS: Final = ("spot_interruption", "scheduled_scaling", "budget_alerts")
PROGRAM: Final = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def milliseconds(statement: str) -> float:
    """Once, in a process of its own."""
    environment = {**os.environ, "LAMBDA_TASK_ROOT": str(ROOT), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM.format(statement)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT)
    return float(done.stdout) * 1000


def measure(times: int = TIMES) -> dict[str, tuple[float, float]]:
    """By function, milliseconds and the ratio to the base: with a Tracer made."""
    statements = {
        "imports alone": BASE,
        "base": READY,
        **{name: f"import lambdas.{name}.handler" for name in FUNCTIONS},
    }
    least = dict.fromkeys(statements, float("inf"))
    for _ in range(times):
        for name, statement in statements.items():
            least[name] = min(least[name], milliseconds(statement))
    return {name: (least[name], least[name] / least["base"]) for name in statements}


def main() -> None:
    found = measure()
    for name, (taken, ratio) in found.items():
        print(f"{name:20} {taken:7.0f} ms  {ratio:5.2f} ×")
    too_slow = [name for name, (_, ratio) in found.items() if name in FUNCTIONS and ratio > LIMIT]
    if too_slow:
        sys.exit(f"more than {LIMIT} ×: {', '.join(too_slow)}")


if __name__ == "__main__":
    main()
