"""The documentation says what is there: links lead somewhere, commands exist, figures are computed."""

import re
from datetime import date
from pathlib import Path

import pytest
import yaml

from genai_finops.planner.performance.evidence import evidence, middle, worst
from genai_finops.planner.traffic.profile import profile_of
from genai_finops.summary import Synthesis, render
from tests.platform_files import ROOT, platform

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def section(page: Path, title: str) -> str:
    return text(page).split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text(page))
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z]+):", text(ROOT / "Makefile"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", text(page), re.MULTILINE))
    assert named <= targets


def test_what_the_readme_says_it_costs_is_what_make_synth_says():
    nothing = Synthesis(stacks={}, charts={}, outputs={}, platform_file="platform.yaml")
    shown = render(platform("default"), nothing, [], today=date(2026, 12, 1), console_width=120, color=False)
    figures = re.findall(r"\$[\d,]+\.\d\d", section(ROOT / "README.md", "What it costs idle"))
    assert len(figures) >= 4
    assert [figure for figure in figures if figure not in shown] == []


def test_the_article_has_22_corrections():
    numbers = re.findall(r"^\| (\d+) \|", text(ROOT / "docs" / "corrections.md"), re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, 23))


def test_every_alert_has_its_section_in_the_runbook():
    headings = set(re.findall(r"^## (.+)$", text(ROOT / "docs" / "operations.md"), re.MULTILINE))
    named = re.findall(r'runbook="([^"]+)"', text(ROOT / "k8s_charts" / "alerts.py"))
    assert named
    assert set(named) <= headings


def test_the_readme_quotes_the_errors_of_the_planner_that_it_prints():
    found = evidence()
    said = " ".join(section(ROOT / "README.md", "Plan before you pay").split())
    for what, sentence in (
        (
            "decode",
            "over {} published decode steps that nothing was fitted to the median error is {} % and the worst {} %",
        ),
        ("first token", "over {} times to the first token {} % and {} %"),
    ):
        count = sum(each.what == what and each.row.role == "held out" for each in found)
        errors = (middle(found, what, "held out"), worst(found, what, "held out"))
        assert sentence.format(count, *(f"{100 * error:.0f}" for error in errors)) in said


def test_what_the_readme_says_a_million_tokens_cost_is_what_make_synth_says():
    nothing = Synthesis(stacks={}, charts={}, outputs={}, platform_file="platform.yaml")
    shown = render(platform("default"), nothing, [], today=date(2026, 12, 1), console_width=120, color=False)
    figures = re.findall(r"\$[\d,]+\.\d\d", section(ROOT / "README.md", "Plan before you pay"))
    assert len(figures) == 3
    assert [figure for figure in figures if figure not in shown] == []


def test_the_profile_in_the_documentation_is_one():
    [example] = re.findall(r"```yaml\n(.*?)```", text(ROOT / "docs" / "planner.md"), re.DOTALL)
    assert profile_of(yaml.safe_load(example), "docs/planner.md").name == "office chat"
