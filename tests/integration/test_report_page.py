"""The report in a real browser: on a desk, on a phone and on paper, and with nobody to ask for anything.

The page is measured from a frame around it, since it runs no script of its own. Without Chromium the tests are skipped.
"""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from genai_finops.planner.present import html
from genai_finops.planner.report import page as report
from genai_finops.planner.report.drawing import draw
from tests.unit.planner.present import samples

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine"),
]

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--allow-file-access-from-files", "--enable-logging=stderr", "--hide-scrollbars",
)  # fmt: skip

FRAME = """<!doctype html><body style="margin:0"><iframe id="page" src="page.html"
style="border:0;width:{width}px;height:900px"></iframe><pre id="found"></pre><script>
const seen = element => element.getClientRects().length > 0;
document.getElementById("page").onload = event => {{
  const inner = event.target.contentDocument, window_ = event.target.contentWindow;
  const drawings = [...inner.querySelectorAll(".chart svg")].filter(seen);
  const clipped = [], overlapping = [], cut = [];
  for (const drawing of drawings) {{
    const frame = drawing.getBoundingClientRect();
    const texts = [...drawing.querySelectorAll("text")].filter(text => text.textContent.trim() && seen(text)
      && window_.getComputedStyle(text).opacity !== "0");
    const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()]);
    cut.push(...boxes.map(([text]) => text).filter(text => text.includes("…")));
    for (const [text, box] of boxes)
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
          || box.bottom > frame.bottom + 1) clipped.push(text);
    boxes.forEach(([text, box], index) => boxes.slice(index + 1).forEach(([other, second]) => {{
      const across = Math.min(box.right, second.right) - Math.max(box.left, second.left);
      const down = Math.min(box.bottom, second.bottom) - Math.max(box.top, second.top);
      if (across > 2 && down > 4) overlapping.push(text + " / " + other);
    }}));
  }}
  document.getElementById("found").textContent = JSON.stringify({{
    width: inner.documentElement.scrollWidth, charts: drawings.length, clipped, overlapping, cut,
    smallest: Math.min(...drawings.flatMap(drawing => [...drawing.querySelectorAll("text")]
      .map(text => parseFloat(window_.getComputedStyle(text).fontSize) * drawing.getBoundingClientRect().width
        / drawing.viewBox.baseVal.width))),
    background: window_.getComputedStyle(inner.body).backgroundColor,
  }});
}};
</script></body>"""


def page() -> str:
    found = report.Report(samples.simulation(samples.model()), (samples.comparison(),), samples.sensitivity())
    return html.render(report.page(found), draw)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "page.html").write_text(page(), encoding="utf-8")
    return folder


def browse(folder: Path, file: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def measured(folder: Path, width: int, *flags: str) -> dict:
    frame = folder / f"frame-{width}.html"
    frame.write_text(FRAME.format(width=width), encoding="utf-8")
    done = browse(folder, frame, "--dump-dom", "--virtual-time-budget=5000", "--window-size=1300,1000", *flags)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    return json.loads(unescape(found[1]))


@pytest.mark.parametrize("width", [1280, 768, 375])
def test_the_page_fits_its_window_and_no_label_is_cut_or_covered(folder, width):
    found = measured(folder, width)
    assert found["width"] <= width
    assert found["charts"] == 6
    assert found["cut"] == []
    assert found["clipped"] == []
    assert found["overlapping"] == []
    assert found["smallest"] >= 10


def test_the_page_asks_for_nothing_and_complains_of_nothing(folder):
    done = browse(folder, folder / "page.html", "--dump-dom")
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []


def test_a_page_that_asked_for_something_would_be_noticed(folder):
    asking = folder / "asking.html"
    asking.write_text(page().replace("<main>", '<main><img src="https://example.com/x.png" alt="">'), encoding="utf-8")
    done = browse(folder, asking, "--dump-dom")
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_the_page_is_dark_where_that_is_preferred(folder):
    light = measured(folder, 1280)
    dark = measured(folder, 1280, "--blink-settings=preferredColorScheme=0")
    assert light["background"] == "rgb(255, 255, 255)"
    assert dark["background"] == "rgb(15, 20, 25)"


def test_the_page_can_be_printed(folder):
    paper = folder / "page.pdf"
    browse(folder, folder / "page.html", f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF-")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 12
