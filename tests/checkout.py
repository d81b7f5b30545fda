"""The application as somebody has it on disk, in a folder of its own."""

import os
import shutil
import subprocess
import sys

from tests.platform_files import ROOT


class Checkout:
    """A copy of app.py, which writes beside itself, and links to what it imports."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name in ("app.py", "cdk.json", "platform.yaml"):
            shutil.copy(ROOT / name, folder)
        for name in ("genai_finops", "k8s_charts", "stacks", "lambdas", "requirements", ".venv"):
            (folder / name).symlink_to(ROOT / name)
        self.assembly, self.manifests = folder / "cdk.out", folder / "dist" / "manifests"

    def run(self, *options, cwd=None, **environment):
        inherited = {key: value for key, value in os.environ.items() if key not in ("PLATFORM", "CDK_OUTDIR")}
        return subprocess.run(
            [sys.executable, *options, str(self.folder / "app.py")],
            cwd=cwd or self.folder,
            env=inherited | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def outputs(self):
        """Every output file with what would change if anybody touched it."""
        return {
            file: (file.stat().st_ino, file.stat().st_mtime_ns)
            for folder in (self.assembly, self.manifests)
            for file in folder.rglob("*")
        }

    def left_over(self):
        """Staging folders that nobody took away."""
        return [path.name for folder in (self.folder, self.folder / "dist") for path in folder.glob(".*-*")]


def templates(folder):
    return {file.name: file.read_bytes() for file in folder.glob("*.template.json")}
