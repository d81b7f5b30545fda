"""Each chart says one true sentence, and draws whatever the numbers are."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_finops.planner.present.document import Chart
from genai_finops.planner.report import charts
from genai_finops.planner.report.drawing import draw

START = datetime(2026, 11, 2, tzinfo=UTC)


def interval(hour: int, **changes: float) -> charts.Interval:
    plain = charts.Interval(START + timedelta(hours=hour), 3600.0, 100, 0.0, 0, 1.0, 0.0, 1.0, 0.0, 0)
    return replace(plain, **changes)


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg)


def drawn(chart: Chart) -> None:
    assert chart.wide
    assert chart.narrow
    for spec in (chart.wide, chart.narrow):
        svg = draw(spec)
        assert svg.startswith("<svg")
        assert not [text for text in texts(svg) if re.search(r"nan|undefined|null|infinity", text, re.IGNORECASE)]
        assert "NaN" not in svg


def test_the_longest_queue_is_named_with_its_time():
    found = charts.replicas_and_queue([interval(0), interval(1, waiting_max=7), interval(2, waiting_max=3)])
    assert "the longest queue was 7 requests, in the interval from Mon 2 Nov 01:00 UTC" in found.takeaway
    drawn(found)


def test_no_queue_is_said():
    assert "no request ever waited" in charts.replicas_and_queue([interval(0)]).takeaway


def test_replicas_are_averaged_over_time_not_over_rows():
    found = charts.replicas_and_queue([interval(0, ready_mean=4.0), interval(1, ready_mean=1.0, length_seconds=900.0)])
    assert found.takeaway.startswith("3.40 replicas were ready on average, at most 4")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "100% of 2 node hours were on Spot; none was interrupted."),
        ({"interruptions": 1}, "EC2 took 2 Spot nodes away"),
        ({"spot_nodes": 0.0, "on_demand_nodes": 2.0}, "All 4 node hours were on demand."),
        ({"spot_nodes": 0.0}, "No node was paid for."),
        ({"on_demand_nodes": 3.0}, "25% of 8 node hours were on Spot"),
    ],
)
def test_nodes_are_told_by_purchase(changes, sentence):
    found = charts.nodes_by_purchase([interval(0, **changes), interval(1, **changes)])
    assert sentence in found.takeaway
    drawn(found)


def test_costs_are_told_by_what_serves_and_what_does_not():
    parts = [
        charts.Part("busy", "serving", 60.0), charts.Part("idle", "ready", 30.0), charts.Part("empty", "empty", 10.0),
        charts.Part("starting", "cold starts", 0.0),
    ]  # fmt: skip
    found = charts.cost_by_component(parts, "a month")
    assert found.takeaway == "Of $100 a month, 60% pays for serving requests; of the rest, most goes to: ready, $30.00."
    assert not [text for text in texts(draw(found.wide)) if "cold starts" in text]
    drawn(found)


def test_nothing_paid_is_said():
    assert (
        charts.cost_by_component([charts.Part("busy", "serving", 0.0)], "a month").takeaway
        == "Nothing is paid a month."
    )


def alternative(label: str, usd: float, low: float, high: float | None) -> charts.Alternative:
    return charts.Alternative(label, usd, low, high)


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        ([], "the only alternative"),
        ([alternative("b", 10.0, 9.0, 11.0)], "50% below b, further than the error bars reach"),
        ([alternative("b", 7.0, 5.5, 8.5)], "its error bar reaches that of b: measure both"),
    ],
)
def test_a_winner_within_the_error_bars_is_not_one(others, sentence):
    found = charts.cost_per_million([*others, alternative("a", 5.0, 4.0, 6.0)])
    assert found.takeaway.startswith("a is cheapest, $5.00")
    assert sentence in found.takeaway
    drawn(found)


def test_a_winner_that_misses_at_its_slow_end_is_to_be_measured():
    found = charts.cost_per_million([alternative("a", 5.0, 4.0, None), alternative("b", 50.0, 49.0, 51.0)])
    assert "measure both" in found.takeaway


def distribution(counts: list[int], objective: float | None) -> charts.Distribution:
    edges = [0.01 * 1.05**index for index in range(len(counts) + 1)]
    return charts.Distribution("Time to first token", edges, counts, {0.5: edges[1], 0.95: edges[-2]}, objective)


def test_the_share_within_the_objective_is_that_of_the_histogram():
    found = charts.latency_distribution([distribution([60, 30, 10], 0.01 * 1.05**2)])
    assert "90.0% within the objective of 11.025 ms" in found.takeaway
    drawn(found)


def test_no_latency_is_said():
    found = charts.latency_distribution([charts.Distribution("Time to first token", [], [], {}, 2.0)])
    assert found.takeaway == "No request was completed, so there is no latency."


@settings(max_examples=15)
@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=120).filter(sum),
    st.none() | st.floats(1e-4, 600),
)
def test_any_histogram_can_be_drawn(counts, objective):
    drawn(charts.latency_distribution([distribution(counts, objective)]))


@settings(max_examples=15)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=30), st.floats(60, 86400))
def test_any_time_can_be_drawn(queues, length):
    rows = [
        replace(interval(0), start=START + timedelta(seconds=index * length), length_seconds=length, waiting_max=queue)
        for index, queue in enumerate(queues)
    ]
    drawn(charts.replicas_and_queue(rows))
    drawn(charts.nodes_by_purchase(rows))


def points(*usd: float, fails_from: float = 9.0) -> list[charts.Point]:
    return [charts.Point(float(index), each, index < fails_from) for index, each in enumerate(usd, 1)]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (points(100.0, 150.0), "traffic × 2: 50% more a month; the objective holds throughout."),
        (points(100.0, 100.0), "traffic × 2: no change in cost; the objective holds throughout."),
        (points(100.0, 150.0, fails_from=2), "the objective is missed at × 2."),
        (points(100.0, 150.0, fails_from=0), "the objective is missed throughout."),
        ([], "traffic: prices are not known."),
    ],
)
def test_sensitivity_is_told_against_what_is_given(line, sentence):
    found = charts.sensitivity({"traffic": line, "Spot price": points(1.0, 2.0)})
    assert sentence in found.takeaway
    drawn(found)
