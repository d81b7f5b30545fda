"""What the compile job runs in tests, in place of vLLM: makes graphs from weights, or fails in the ways one can.

    stand_in_compiler.py WEIGHTS RUNS [fail|hang|nothing|killed]

Each run leaves a line in RUNS.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

weights, runs, how = Path(sys.argv[1]), Path(sys.argv[2]), (sys.argv[3] if len(sys.argv) > 3 else "")
output = Path(os.environ["NEURON_COMPILED_ARTIFACTS"])
with runs.open("a") as file:
    file.write(f"{os.getpid()}\n")
print("compiling every bucket", flush=True)
if how == "fail":
    print("[NCC_EVRF007] the graph does not fit", file=sys.stderr)
    raise SystemExit(70)
if how == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "hang":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"])
    with runs.open("a") as file:
        file.write(f"{child.pid}\n")
    time.sleep(600)
if how != "nothing":
    seed = b"".join(path.read_bytes() for path in sorted(weights.resolve().rglob("*.safetensors")))
    (output / "weights").mkdir()
    (output / "model.pt").write_bytes(hashlib.sha256(seed).digest())
    for rank in range(2):
        (output / "weights" / f"tp{rank}_sharded_checkpoint.safetensors").write_bytes(seed[rank::2])
