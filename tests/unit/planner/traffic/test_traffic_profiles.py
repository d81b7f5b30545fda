"""Generated traffic has the statistics that were asked for, and is the same for the same seed."""

import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_finops.planner.traffic import profile as rules
from genai_finops.planner.traffic.errors import TrafficError
from genai_finops.planner.traffic.files import open_traffic
from genai_finops.planner.traffic.profile import Generated, profile_of, read_profile
from genai_finops.planner.traffic.trace import read_trace
from tests.platform_files import ROOT

LENGTHS = {"input_tokens": {"mean": 1000}, "output_tokens": {"mean": 200}}
TRACES = Path(os.environ.get("AZURE_TRACES", ROOT.parent / "shared" / "data" / "traces"))


def generated(seed=0, **settings):
    document = {"name": "test", "requests_per_day": 200_000, "days": 1, **LENGTHS} | settings
    return Generated(profile_of(document, "test"), seed)


def columns(traffic):
    chunks = list(traffic.chunks())
    return [
        np.concatenate([getattr(chunk, name) for chunk in chunks])
        for name in ("arrival_seconds", "input_tokens", "output_tokens")
    ]


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    one, again, other = columns(generated(7)), columns(generated(7)), columns(generated(8))
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert (one[0][:100] != other[0][:100]).any()


def test_arrivals_ascend_and_stay_within_the_duration():
    traffic = generated(burstiness=8)
    arrivals, _, _ = columns(traffic)
    assert (np.diff(arrivals) >= 0).all()
    assert arrivals[0] >= 0
    assert arrivals[-1] <= traffic.duration_seconds


@pytest.mark.parametrize("burstiness", [0, 0.5, 1, 3])
def test_gaps_vary_as_asked(burstiness):
    arrivals, _, _ = columns(generated(burstiness=burstiness))
    gaps = np.diff(arrivals)
    assert gaps.std() / gaps.mean() == pytest.approx(burstiness, rel=0.03, abs=1e-6)
    assert gaps.mean() == pytest.approx(86400 / 200_000, rel=0.01 * max(1, burstiness))


@pytest.mark.parametrize("distribution", ["lognormal", "normal"])
@pytest.mark.parametrize("limits", [{}, {"maximum": 1500}, {"minimum": 300, "maximum": 4000}])
def test_lengths_have_the_mean_asked_for_whatever_the_limits(distribution, limits):
    length = {"mean": 1000, "variation": 0.6, "distribution": distribution, **limits}
    _, given_tokens, _ = columns(generated(input_tokens=length))
    assert given_tokens.mean() == pytest.approx(1000, rel=0.01)
    assert given_tokens.min() >= limits.get("minimum", 1)
    assert given_tokens.max() <= limits.get("maximum", 10**7)


def test_without_limits_lengths_vary_as_asked():
    _, given_tokens, _ = columns(generated(input_tokens={"mean": 1000, "variation": 0.8}))
    assert given_tokens.std() / given_tokens.mean() == pytest.approx(0.8, rel=0.04)


def test_tokens_a_day_are_prompts_and_answers():
    traffic = generated(requests_per_day=None, tokens_per_day=240_000_000)
    _, given_tokens, made = columns(traffic)
    assert given_tokens.sum() + made.sum() == pytest.approx(240_000_000, rel=0.02)


def test_the_hours_of_a_day_have_their_shares():
    hours = [0.0] * 8 + [1.0] * 8 + [3.0] * 8
    arrivals, _, _ = columns(generated(hours=hours))
    shares = np.bincount((arrivals // 3600).astype(int), minlength=24) / len(arrivals)
    assert shares[:8].sum() == 0
    assert shares[8:16].sum() == pytest.approx(0.25, abs=0.01)
    assert shares[16:].sum() == pytest.approx(0.75, abs=0.01)


def test_hours_are_those_of_the_named_zone():
    only_nine = [1.0 if hour == 9 else 0.0 for hour in range(24)]
    arrivals, _, _ = columns(generated(hours=only_nine, time_zone="Asia/Kolkata", start="2026-01-05T00:00:00+05:30"))
    assert arrivals.min() >= 9 * 3600
    assert arrivals.max() <= 10 * 3600


def test_the_days_of_a_week_have_their_shares():
    arrivals, _, _ = columns(generated(days=7, requests_per_day=20_000, weekdays=[1, 1, 1, 1, 1, 0, 0]))
    per_day = np.bincount((arrivals // 86400).astype(int), minlength=7)
    assert per_day[5:].sum() == 0
    assert per_day[:5].sum() == pytest.approx(140_000, rel=0.02)


def test_a_long_traffic_comes_in_chunks(monkeypatch):
    monkeypatch.setattr(rules, "BLOCK_REQUESTS", 1000)
    sizes = [len(chunk) for chunk in generated(requests_per_day=5500).chunks()]
    assert set(sizes[:-1]) == {1000}
    assert len(sizes) in (5, 6)


@given(st.integers(0, 2**63), st.floats(0, 10), st.floats(1, 3000))
@settings(max_examples=30)
def test_whatever_is_asked_for_is_traffic_that_the_simulator_takes(seed, burstiness, mean):
    traffic = generated(
        seed, burstiness=burstiness, requests_per_day=3000, input_tokens={"mean": mean, "maximum": 4000}
    )
    for chunk in traffic.chunks():
        assert len(chunk) > 0
        assert chunk.input_tokens.min() >= 1
        assert chunk.input_tokens.max() <= 4000
        assert np.isfinite(chunk.arrival_seconds).all()
        assert chunk.arrival_seconds.max() <= traffic.duration_seconds


@pytest.mark.parametrize(("name", "file"), [("azure-conversation", "conv"), ("azure-code", "code")])
def test_the_built_in_profiles_are_like_the_traces_they_are_named_after(name, file):
    path = TRACES / f"AzureLLMInferenceTrace_{file}.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there; AZURE_TRACES names the folder")
    real, drawn = columns(read_trace(path)), columns(open_traffic(name, 0))
    assert len(drawn[0]) / 3600 == pytest.approx(len(real[0]) / real[0][-1], rel=0.25)
    for column in (1, 2):
        assert drawn[column].mean() == pytest.approx(real[column].mean(), rel=0.05)
        assert drawn[column].max() <= real[column].max()


def test_the_articles_traffic_is_ten_million_tokens_a_day():
    arrivals, given_tokens, made = columns(open_traffic("article", 0))
    assert (given_tokens.sum() + made.sum()) / 7 == pytest.approx(10_000_000, rel=0.03)
    assert arrivals[-1] > 6.5 * 86400


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"requests_per_day": 0}, r"requests_per_day: Input should be greater than 0 \(is 0\)"),
        ({"requests_per_day": None}, "give tokens_per_day or requests_per_day"),
        ({"tokens_per_day": 1}, "and not both"),
        ({"hours": [1] * 23}, "hours: give 24 weights"),
        ({"weekdays": [0] * 7}, "weekdays: give 7 weights"),
        ({"time_zone": "Mars/Olympus"}, "time_zone is 'Mars/Olympus'"),
        ({"input_tokens": {"mean": 10, "maximum": 5}}, "input_tokens: (.|\n)*use one between minimum 1 and maximum 5"),
        ({"burstiness": -1}, "burstiness"),
        ({"burst": 1}, r"burst: Extra inputs"),
        ({"shape": "square"}, "shape"),
        ({"days": float("inf")}, "days"),
    ],
)
def test_what_is_wrong_with_a_profile_is_said(change, expected):
    with pytest.raises(TrafficError, match=expected):
        generated(**change)


def test_a_profile_is_read_from_yaml(tmp_path):
    file = tmp_path / "profile.yaml"
    file.write_text(yaml.safe_dump({"name": "mine", "requests_per_day": 500, **LENGTHS}))
    assert read_profile(file, 1).name == "mine"
    for content, expected in (("name: [", "is not YAML"), ("- 1", "is not a profile"), ("\xff", "is not a profile")):
        file.write_text(content)
        with pytest.raises(TrafficError, match=expected):
            read_profile(file, 1)
