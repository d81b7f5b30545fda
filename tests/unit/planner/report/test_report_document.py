"""The report of whatever happened: nothing served, nothing priced, several models."""

from dataclasses import replace

import pytest

from genai_finops.planner.present import html, terminal
from genai_finops.planner.present.document import Chart, Document
from genai_finops.planner.report import page as report
from genai_finops.planner.report.drawing import draw
from genai_finops.planner.results import ModelSimulation, Sensitivity
from tests.unit.planner.present import samples


def document(*models: ModelSimulation, **changes: object) -> Document:
    found = report.Report(samples.simulation(*models), (samples.comparison(),), samples.sensitivity())
    return report.page(replace(found, **changes))


def charts(found: Document) -> list[str]:
    return [block.title for block in found.blocks if isinstance(block, Chart)]


def test_every_chart_of_the_report_is_there():
    assert charts(document()) == [
        "Where the money goes",
        "Requests, replicas and queue",
        "Nodes by purchase",
        "Latency",
        "Cost of 1M output tokens by alternative",
        "Monthly cost when prices or traffic change",
    ]


def test_every_model_has_its_charts():
    assert charts(document(samples.model("one"), samples.model("two"))).count("Latency") == 2


@pytest.mark.parametrize("model", [samples.idle_model, samples.unpriced_model])
def test_nothing_served_or_priced_is_drawn_without_inventing_anything(model):
    text = html.render(document(model(), comparisons=(), sensitivity=Sensitivity((), ())), draw)
    assert "NaN" not in text
    assert "undefined" not in text


def test_an_unknown_price_has_no_chart_of_the_cost():
    found = document(samples.unpriced_model())
    assert "Where the money goes" not in charts(found)
    assert "Some prices are not known" in terminal.render(found, width=120)


def test_without_pictures_each_chart_is_its_sentence():
    text = " ".join(terminal.render(document(), width=120).split())
    for block in document().blocks:
        if isinstance(block, Chart):
            assert block.takeaway in text
