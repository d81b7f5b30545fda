"""Time `make synth`: run app.py several times and print how long each run took.

Usage: .venv/bin/python tools/bench.py [runs]
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(runs: int) -> None:
    seconds = []
    for run in range(1, runs + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "app.py"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
        print(f"run {run}: {seconds[-1]:.2f} s", flush=True)
    print(f"median of {runs}: {statistics.median(seconds):.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
