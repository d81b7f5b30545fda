"""Pictures of the planner's pages for the documentation: `.venv/bin/python tools/screenshots.py`.

Makes the report of platform.yaml and photographs it with Chromium, in a window in both schemes and as a phone shows it.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TRAFFIC = "article"

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--allow-file-access-from-files",
)  # fmt: skip

# In a frame, since no window of Chromium is as narrow as a phone.
FRAME = '<!doctype html><body style="margin:0"><iframe src="{page}" style="border:0;width:{width}px;height:{height}px">'


@dataclass(frozen=True)
class Picture:
    """Part of the page from its top, in pixels."""

    name: str
    width: int
    height: int
    is_dark: bool = False


PICTURES = (
    Picture("report.png", 1200, 1500),
    Picture("report-dark.png", 1200, 1500, is_dark=True),
    Picture("report-phone.png", 390, 1500),
)


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("Chromium is not installed: no pictures were made.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = folder / "page.html"
        command = [sys.executable, "-m", "genai_finops", "report", "platform.yaml", "--traffic", TRAFFIC]
        made = subprocess.run([*command, "--out-file", str(page)], cwd=ROOT, check=False)
        if not page.exists():  # an objective that is missed is a page all the same
            return made.returncode
        for picture in PICTURES:
            photograph(browser, folder, page, picture)
            print(f"docs/{picture.name}")
    return 0


def photograph(browser: str, folder: Path, page: Path, picture: Picture) -> None:
    frame = folder / f"{picture.name}.html"
    frame.write_text(FRAME.format(page=page.name, width=picture.width, height=picture.height), encoding="utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if picture.is_dark else []
    size = [f"--window-size={picture.width},{picture.height}", f"--screenshot={ROOT / 'docs' / picture.name}"]
    profile = f"--user-data-dir={folder / 'profile'}"
    subprocess.run(
        [browser, *FLAGS, *scheme, *size, profile, frame.as_uri()], check=True, capture_output=True, timeout=120
    )


if __name__ == "__main__":
    sys.exit(main())
