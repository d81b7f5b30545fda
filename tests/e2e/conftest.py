"""Real control planes, only where Go is there to build them."""

from contextlib import contextmanager

import pytest

from genai_finops.rehearsal import definitions
from genai_finops.rehearsal.binaries import BuildError, find_go
from genai_finops.rehearsal.control_plane import ControlPlane
from genai_finops.rehearsal.processes import Programs


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    """Starts a control plane with the definitions of everything that the platform installs, and no nodes."""
    try:
        find_go()
    except BuildError as error:
        pytest.skip(str(error))

    @contextmanager
    def start(name):
        folder = tmp_path_factory.mktemp(name)
        with Programs(folder / "logs") as programs:
            plane = ControlPlane(programs, folder / "control-plane")
            plane.start(print)
            plane.define(definitions.files())
            plane.apply(definitions.stand_ins())
            yield plane, programs

    return start


@pytest.fixture(scope="module")
def control_plane(started):
    with started("control-plane") as (plane, _):
        yield plane
