"""A real control plane, started once per test run and only where Go is there to build it."""

import pytest

from genai_finops.rehearsal import definitions
from genai_finops.rehearsal.binaries import BuildError, find_go
from genai_finops.rehearsal.control_plane import ControlPlane
from genai_finops.rehearsal.processes import Programs


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory):
    """With the definitions of everything that the platform installs, and no nodes."""
    try:
        find_go()
    except BuildError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("rehearsal")
    with Programs(folder / "logs") as programs:
        plane = ControlPlane(programs, folder / "control-plane")
        plane.start(print)
        plane.define(definitions.files())
        plane.apply(definitions.stand_ins())
        yield plane
