"""A benchmark's result becomes a profile, or is refused with the reason."""

import io
import json

import pytest

from genai_finops.planner.performance.calibrate import UnusableResultError, calibrate, read_profile, write_profile

STEP, MORE, TOKEN = 0.045, 0.002, 0.0005
INPUT, OUTPUT = 1000, 201


def vllm(concurrency, **changes):
    """What `vllm bench serve` writes of a server with exactly these steps."""
    step, prefill = STEP + MORE * concurrency, TOKEN * INPUT
    mean_gap = step + (concurrency - 1) * prefill / (OUTPUT - 1)
    first = prefill + (step / 2 if concurrency > 1 else 0)
    tail = step + prefill if concurrency > 3 else step
    return {
        "num_prompts": 40,
        "completed": 40,
        "failed": 0,
        "max_concurrency": concurrency,
        "duration": 100.0,
        "total_input_tokens": 40 * INPUT,
        "total_output_tokens": 40 * OUTPUT,
        "mean_ttft_ms": 1000 * first,
        "median_ttft_ms": 1000 * first,
        "p99_ttft_ms": 1000 * first,
        "mean_tpot_ms": 1000 * mean_gap,
        "median_tpot_ms": 1000 * mean_gap,
        "mean_itl_ms": 1000 * mean_gap,
        "median_itl_ms": 1000 * step,
        "p99_itl_ms": 1000 * tail,
        "mean_e2el_ms": 1000 * (first + mean_gap * (OUTPUT - 1)),
    } | changes


def guidellm(*concurrencies):
    def values(seconds, unit=1000):
        percentiles = dict.fromkeys(("p50", "p90", "p95", "p99"), seconds * unit)
        return {"successful": {"mean": seconds * unit, "percentiles": percentiles}}

    benchmarks = []
    for concurrency in concurrencies:
        step = STEP + MORE * concurrency
        benchmarks.append(
            {
                "request_totals": {"successful": 40, "errored": 1, "incomplete": 2, "total": 43},
                "metrics": {
                    "time_to_first_token_ms": values(TOKEN * INPUT),
                    "inter_token_latency_ms": values(step),
                    "time_per_output_token_ms": values(step * 1.3),
                    "request_latency": values(TOKEN * INPUT + step * (OUTPUT - 1), 1),
                    "request_concurrency": values(concurrency, 1),
                    "prompt_token_count": values(INPUT, 1),
                    "output_token_count": values(OUTPUT, 1),
                },
            }
        )
    return {"benchmarks": benchmarks}


@pytest.fixture
def written(tmp_path):
    def write(*documents):
        files = []
        for number, document in enumerate(documents):
            file = tmp_path / f"results-{number}.json"
            file.write_text(document if isinstance(document, str) else json.dumps(document))
            files.append(file)
        return files

    return write


def calibrated(files, **options):
    given = {"model": "llama3-8b", "instance": "inf2.xlarge", "tensor_parallel_size": None} | options
    return calibrate(files, **given)


def test_the_steps_that_a_result_was_made_with_are_found_again(written):
    profile, result = calibrated(written(vllm(8), vllm(1), vllm(4)))
    assert profile.step_seconds == pytest.approx(STEP)
    assert profile.step_seconds_per_sequence == pytest.approx(MORE)
    assert (profile.prefill_seconds, profile.prefill_seconds_per_token) == (0, pytest.approx(TOKEN))
    assert (profile.decode_relative_error, profile.prefill_relative_error) == pytest.approx((0, 0), abs=1e-9)
    assert (result.requests, result.failed, result.formats) == (120, 0, ("vllm bench serve",))
    assert max(abs(error.relative_error) for error in result.errors) < 1e-9


def test_the_tail_is_part_of_the_errors(written):
    _, result = calibrated(written(vllm(1), vllm(4, p99_itl_ms=3000)))
    [tail] = [error for error in result.errors if error.statistic == "p99" and error.measured_seconds == 3]
    assert tail.relative_error < -0.5


def test_the_error_bar_is_the_largest_deviation_of_mean_and_median(written):
    profile, _ = calibrated(written(vllm(1), vllm(4), vllm(8, mean_tpot_ms=1000 * 0.05)))
    assert profile.decode_relative_error > 0.3


def test_guidellm_gives_one_value_for_each_request_and_is_read_as_that(written):
    profile, result = calibrated(written(guidellm(1, 4)))
    assert profile.step_seconds == pytest.approx(STEP)
    assert {error.latency for error in result.errors} == {"time to first token", "request inter token", "end to end"}
    assert result.failed == 2
    assert any("requests' means" in note for note in result.notes)


def test_prompts_of_two_lengths_tell_the_fixed_part_from_the_rest(written):
    def short(length, seconds):
        ms = 1000 * seconds
        return vllm(1, total_input_tokens=40 * length, mean_ttft_ms=ms, median_ttft_ms=ms, p99_ttft_ms=ms)

    profile, _ = calibrated(written(short(500, 0.4), short(2000, 0.7), vllm(8)))
    assert profile.prefill_seconds == pytest.approx(0.3)
    assert profile.prefill_seconds_per_token == pytest.approx(0.0002)


def test_an_open_load_is_placed_by_littles_law(written):
    rate = vllm(1)
    open_load = vllm(4, max_concurrency=None, duration=40 / (4 / (vllm(4)["mean_e2el_ms"] / 1000)))
    profile, result = calibrated(written(rate, open_load))
    assert profile.step_seconds_per_sequence == pytest.approx(MORE)
    assert max(error.concurrency for error in result.errors) == pytest.approx(4)


def test_the_smallest_layout_is_taken_when_none_is_named(written):
    files = written(vllm(1), vllm(4))
    assert calibrated(files)[0].tensor_parallel_size == 2
    assert calibrated(files, instance="g6e.xlarge")[0].tensor_parallel_size == 1
    assert calibrated(files, tensor_parallel_size=8)[0].tensor_parallel_size == 8


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([vllm(1, completed=30, failed=10), vllm(4)], "10 of 40 requests failed"),
        ([vllm(1, completed=0)], "completed is 0"),
        ([vllm(1), vllm(1)], r"two or more levels of --max-concurrency"),
        ([vllm(4), vllm(16)], r"Add a result with --max-concurrency 1"),
        (
            [vllm(1, mean_itl_ms=0, median_itl_ms=0, p99_itl_ms=0, mean_tpot_ms=0, median_tpot_ms=0)],
            "two tokens or more",
        ),
        ([vllm(1, mean_ttft_ms=-1)], "mean_ttft_ms is -1"),
        ([vllm(1, duration=float("nan"), max_concurrency=None)], "duration is nan"),
        (["{"], "is not JSON"),
        (["[]"], "is neither a result of"),
        ([{"benchmarks": [{}]}], r"benchmarks\[0\] has no metrics"),
        ([{"benchmarks": [{"metrics": {}}]}], "no request was successful"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(written, documents, expected):
    with pytest.raises(UnusableResultError, match=expected):
        calibrated(written(*documents))


def test_an_instance_that_the_catalog_does_not_have_is_refused(written):
    for name in ("inf9.xlarge", "m7g.large"):
        with pytest.raises(UnusableResultError, match=f"--instance {name}"):
            calibrated(written(vllm(1), vllm(4)), instance=name)


def test_a_profile_comes_back_as_it_was_written(written, tmp_path):
    profile, _ = calibrated(written(vllm(1), vllm(4)))
    stream = io.StringIO()
    write_profile(profile, stream)
    file = tmp_path / "profile.json"
    file.write_text(stream.getvalue())
    assert read_profile(file) == profile


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"schema": "other"}, "has the schema 'other'"),
        ({"step_seconds": -1}, "step_seconds is -1"),
        ({"step_seconds": "fast"}, "step_seconds is 'fast'"),
        ({"tensor_parallel_size": 0}, "tensor_parallel_size is 0"),
        ({"decode_relative_error": 1.5}, "use a share below 1"),
        ({"measured": "yesterday"}, "measured is 'yesterday'"),
        ({"more": 1}, "too many or too few: more"),
    ],
)
def test_a_profile_that_is_none_is_refused(written, tmp_path, change, expected):
    profile, _ = calibrated(written(vllm(1), vllm(4)))
    stream = io.StringIO()
    write_profile(profile, stream)
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(json.loads(stream.getvalue()) | change))
    with pytest.raises(UnusableResultError, match=expected):
        read_profile(file)
