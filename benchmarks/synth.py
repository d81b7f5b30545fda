"""Time and memory of a synth: against a bare CDK application, and for 1, 10 and 100 models.

Runs: .venv/bin/python benchmarks/synth.py [runs], or make bench. Everything is run in turn, so that the ratios hold
when the machine's speed drifts; quote those, not seconds. Before each run but that of "unchanged" the platform file
gets another comment, so that everything is made again.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parent
COUNTS = (1, 10, 100)
UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Run:
    wall_seconds: float
    cpu_seconds: float
    peak_mib: float


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        commands = {"bare": [str(HERE / "bare_app.py"), str(work / "bare")]}
        commands |= {
            f"{count} models": [str(HERE / "our_app.py"), str(platform_of(count, work)), str(work / f"out-{count}")]
            for count in COUNTS
        }
        commands[UNCHANGED] = [str(HERE / "our_app.py"), str(platform_of(1, work, "same")), str(work / "out-same")]
        for command in commands.values():
            measure(command)  # warm: bytecode, caches of the disk, assets to reuse
        results: dict[str, list[Run]] = {name: [] for name in commands}
        for turn in range(runs):
            for name, command in commands.items():
                if name not in ("bare", UNCHANGED):
                    with Path(command[1]).open("a", encoding="utf-8") as file:
                        file.write(f"# {turn}\n")
                results[name].append(measure(command))
    report(results)


def platform_of(count: int, folder: Path, name: str = "") -> Path:
    """The shipped platform with its model `count` times, under different names."""
    document = yaml.safe_load((ROOT / "platform.yaml").read_text(encoding="utf-8"))
    [model] = document["models"]
    document["models"] = [{**model, "name": f"model-{n}", "served_name": f"model-{n}"} for n in range(count)]
    document["node_pools"]["inf2"]["max_devices"] = 100 * count
    file = folder / f"platform-{count}{name}.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def measure(command: list[str]) -> Run:
    """One run of a Python script, children included: jsii's Node does half of the work."""
    environment = {**os.environ, "JSII_NODE": str(Path(sys.prefix) / "bin" / "node")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as in the Makefile
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"{' '.join(command)} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall, cpu, usage.ru_maxrss / 1024)


def report(results: dict[str, list[Run]]) -> None:
    print(f"{'':12}{'wall s':>10}{'CPU s':>10}{'peak MiB':>10}{'wall ÷ bare':>14}{'wall ÷ 1 model':>16}")
    for name, runs in results.items():
        print(
            f"{name:12}{median(runs, 'wall_seconds'):10.2f}{median(runs, 'cpu_seconds'):10.2f}"
            f"{median(runs, 'peak_mib'):10.0f}{ratio(runs, results['bare']):14.2f}"
            f"{ratio(runs, results['1 models']):16.2f}"
        )


def median(runs: list[Run], field: str) -> float:
    return statistics.median(getattr(run, field) for run in runs)


def ratio(runs: list[Run], to: list[Run]) -> float:
    """Median of the ratios pair by pair."""
    return statistics.median(a.wall_seconds / b.wall_seconds for a, b in zip(runs, to, strict=True))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
