"""What tests of every room share: settings of hypothesis, and platforms synthesized once per test run."""

import fcntl
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from genai_finops.spec import Platform
from tests.assemblies import Assembly, synthesize
from tests.platform_files import FILES, platform

# jsii runs on the Node of the virtual environment, as in app.py.
os.environ.setdefault("JSII_NODE", str(Path(sys.prefix) / "bin" / "node"))

settings.register_profile("default", deadline=None)
# The same examples in every run; a failure prints what reproduces it.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if "CI" in os.environ else "default")


@pytest.fixture(scope="session")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Assembly]:
    """`default`, `minimal` and `rich`, synthesized once per test run: by the first worker that asks.

    The others only read JSON, and need no Node process for it.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, done = shared / "assemblies", shared / "assemblies.done"
    with _locked(shared / "assemblies.lock"):
        if not done.exists():
            for name in FILES:
                synthesize(platform(name), folder / name)
            done.touch()
    return {name: Assembly(platform(name), folder / name) for name in FILES}


@pytest.fixture(params=list(FILES))
def assembly(request: pytest.FixtureRequest, assemblies: Mapping[str, Assembly]) -> Assembly:
    """Each of the three platforms."""
    return assemblies[request.param]


@pytest.fixture(scope="session")
def synthesized(
    assemblies: Mapping[str, Assembly], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Platform], Assembly]:
    """Synthesizes another platform, in this process."""
    folder, numbers = tmp_path_factory.mktemp("synthesized"), count()
    earlier = assemblies["default"].folder
    return lambda wanted: synthesize(wanted, folder / str(next(numbers)), earlier=earlier)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
