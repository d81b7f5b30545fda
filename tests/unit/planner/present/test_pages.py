"""What each command's page says, whatever it is shown on."""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from syrupy.assertion import SnapshotAssertion

from genai_finops.planner.present import (
    calibrations,
    comparison,
    differences,
    html,
    markdown,
    planning,
    simulation,
    terminal,
)
from genai_finops.planner.present.document import Document, Table
from genai_finops.planner.report import page as report
from genai_finops.spec import Warning
from tests.unit.planner.present import samples

PAGES: dict[str, Callable[[], Document]] = {
    "compare": lambda: comparison.page(samples.comparison()),
    "plan": lambda: planning.page(samples.plan()),
    "simulate": lambda: simulation.page(samples.simulation(samples.model(hours=4))),
    "diff": lambda: differences.page(samples.difference()),
    "calibrate": lambda: calibrations.page(samples.calibration()),
}
HOSTILE = "<script>alert(1)</script>|*x*\x1b[31m"


def words(text: str) -> str:
    return " ".join(text.split())


def tables(document: Document) -> dict[str, Table]:
    return {block.caption: block for block in document.blocks if isinstance(block, Table)}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", PAGES)
def test_in_a_terminal(name: str, width: int, snapshot: SnapshotAssertion) -> None:
    assert terminal.render(PAGES[name](), width=width) == snapshot


@pytest.mark.parametrize("name", ["diff", "plan"])
def test_as_a_comment(name: str, snapshot: SnapshotAssertion) -> None:
    assert markdown.render(PAGES[name]()) == snapshot


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_value_is_there_at_every_width(name, width):
    document = PAGES[name]()
    text = words(terminal.render(document, width=width))
    for table in tables(document).values():
        for each in table.rows:
            for cell, column in zip(each.cells, table.columns, strict=True):
                if not column.wraps:
                    assert words(cell.text) in text
    assert max(map(len, terminal.render(document, width=width).splitlines())) <= width


@pytest.mark.parametrize("name", PAGES)
def test_every_format_has_every_table(name):
    document = PAGES[name]()
    shown, comment = html.render(document), markdown.render(document)
    assert shown.count("<table") == len(tables(document)) == comment.count("\n|:-") + comment.count("\n|--")


def test_the_articles_figures_are_there_to_the_cent():
    text = terminal.render(PAGES["compare"](), width=120)
    for figure in ("$5.672", "$1.968", "$4,083.84", "$1,416.96", "$13.61", "$4.72", "65.3% less"):
        assert figure in text
    assert "Assumed: One instance of either serves 10M tokens a day" in words(text)


def test_instances_with_one_reason_share_a_row():
    rows = tables(PAGES["compare"]())["No alternatives"].rows
    assert len(rows) == 2
    assert "g4dn.xlarge" in rows[0].cells[0].text
    assert "g4dn.2xlarge" in rows[0].cells[0].text


def test_an_alternative_that_misses_at_the_slow_end_has_an_open_error_bar():
    assert "from 9.60" in terminal.render(PAGES["compare"](), width=140)


def test_no_winner_is_said_in_words():
    nothing = replace(samples.comparison(), winner=None, alternatives=samples.comparison().alternatives[3:])
    assert "No instance type of the catalog serves this load" in words(terminal.render(comparison.page(nothing)))


def test_an_unknown_price_is_unknown_in_every_total_it_touches():
    document = simulation.page(samples.simulation(samples.unpriced_model()))
    rows = {each.cells[0].text.strip(): each for each in tables(document)["A month"].rows}
    assert rows["OVERALL TOTAL"].cells[1].text == "unknown"
    assert "$0.00" not in terminal.render(document, width=120)


def test_a_run_without_requests_has_a_page():
    text = words(terminal.render(simulation.page(samples.simulation(samples.idle_model())), width=120))
    assert "no requests" in text
    assert "nan" not in text.lower()
    assert "none" in text


@pytest.mark.parametrize(("hours", "rows", "caption"), [(24, 24, "Hour by hour"), (24 * 21, 21, "Day by day")])
def test_a_long_time_is_shown_by_the_day(hours, rows, caption):
    table = simulation.over_time(samples.intervals(hours))
    assert len(table.rows) == rows
    assert table.caption.startswith(caption)
    arrived = [column.head for column in table.columns].index("Arrived")
    shown = sum(int(each.cells[arrived].text.replace(",", "")) for each in table.rows)
    assert shown == sum(each.arrived for each in samples.intervals(hours))


def test_a_day_with_an_unknown_amount_costs_an_unknown_amount():
    hours = list(samples.intervals(24 * 10))
    hours[30] = replace(hours[30], usd=None)
    table = simulation.over_time(hours)
    assert [each.cells[-1].text == "unknown" for each in table.rows] == [False, True] + [False] * 8


def test_a_column_that_says_nothing_is_left_out():
    heads = [column.head for column in simulation.over_time(samples.intervals(24)).columns]
    assert "Asleep" not in heads
    assert "Taken" in heads


def test_the_change_of_the_platform_file_can_be_copied():
    text = terminal.render(PAGES["plan"](), width=80)
    assert re.search(r"models\[0\]\.accelerator\.sizes +\[8xlarge, 24xlarge\] +\[xlarge\]", text)
    assert "  models:\n    - name: llama3-8b\n      accelerator:\n        sizes: [xlarge]\n" in text


def test_nothing_to_change_is_said():
    found = samples.plan()
    same = replace(found, models=(replace(found.models[0], yaml="", changes=()),))
    assert "nothing to change" in terminal.render(planning.page(same))


def test_of_many_candidates_the_best_and_todays_are_shown():
    table = next(table for name, table in tables(planning.page(samples.plan(60))).items() if "simulated" in name)
    assert table.caption == "Candidates that were simulated, 21 of 60"
    assert "(today)" in table.rows[-1].cells[1].text


def test_a_plan_without_a_winner_says_so():
    found = samples.plan()
    none = replace(found, models=(replace(found.models[0], winner=None, yaml="", changes=(), saves_monthly_usd=None),))
    text = words(terminal.render(planning.page(none)))
    assert "no candidate meets the objective" in text
    assert "nothing to change" not in text


@pytest.mark.parametrize("sign", ["~ NAT gateways, 3", "- nodes, placeholder", "+ nodes at min_replicas"])
def test_a_difference_has_its_sign(sign):
    assert sign in terminal.render(PAGES["diff"](), width=80)


def test_a_difference_ends_in_its_total_with_amount_and_percent():
    text = terminal.render(PAGES["diff"](), width=80)
    assert re.search(r"OVERALL TOTAL +\$1,405\.85 +\$801\.95 +−\$603\.90 +−43%", text)
    assert "1 line without a change is left out" in words(text)


def test_no_difference_is_said():
    found = samples.difference()
    same = replace(found, lines=found.lines[:1], change_usd=Decimal(0), after_usd=found.before_usd, service=())
    text = terminal.render(differences.page(same))
    assert "No line changes." in text
    assert "$0.00 a month" in text


def hostile_report() -> Document:
    model = replace(samples.model(HOSTILE, 4), traffic=samples.summary(HOSTILE))
    found = samples.simulation(model)
    found = replace(found, platform=HOSTILE, warnings=(Warning(HOSTILE, HOSTILE, HOSTILE),))
    compared = replace(samples.comparison(), model=HOSTILE, notes=(HOSTILE,))
    return report.page(report.Report(found, (compared,), samples.sensitivity()))


def test_names_from_files_are_text_in_every_format():
    document = hostile_report()
    assert "<script>alert" not in html.render(document)
    assert "<script>alert" not in markdown.render(document)
    assert "\x1b" not in terminal.render(document, width=120)
    assert "|\\*x\\*" not in markdown.render(document).replace("\\|\\*x\\*", "")


def test_a_calibration_shows_its_worst_error_and_each_of_the_tail():
    document = PAGES["calibrate"]()
    text = words(terminal.render(document, width=100))
    assert "Furthest off −31.0%" in text
    rows = {(each.cells[2].text, each.cells[3].text): each for each in tables(document)["Measured and fitted"].rows}
    assert rows["first token", "p99"].cells[6].tone == "bad"
    assert rows["first token", "p50"].cells[6].tone == "plain"


def test_a_warning_that_two_services_give_is_shown_once():
    twice = samples.simulation(samples.model(), samples.model())
    text = terminal.render(simulation.page(twice), width=120)
    assert text.count("No benchmark of llama3-8b") == 1
