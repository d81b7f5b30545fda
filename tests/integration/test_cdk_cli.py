"""`cdk synth` by hand: the CDK CLI, through cdk.json."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import Checkout, templates
from tests.platform_files import FILES, ROOT


@pytest.mark.slow
@pytest.mark.synth
def test_the_cdk_cli_gets_the_same_templates(tmp_path, assemblies):
    checkout = Checkout(tmp_path / "checkout")
    # With CI set the CLI itself writes to stdout, where only the application's silence is looked for.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    result = subprocess.run(
        [ROOT / "node_modules" / ".bin" / "cdk", "synth", "--quiet", "--no-notices", "--output", tmp_path / "out"],
        cwd=checkout.folder,
        env=environment
        | {
            "PATH": f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PLATFORM": str(FILES["minimal"]),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert templates(tmp_path / "out") == templates(assemblies["minimal"].folder)
    assert not checkout.assembly.exists()
    assert not checkout.manifests.exists()
