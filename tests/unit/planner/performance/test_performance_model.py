"""What a replica is expected to do, held against what others have measured."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.catalog import instance_type
from genai_finops.catalog.performance import accelerator_performance, published_rows
from genai_finops.planner.performance.evidence import evidence, main, middle, worst
from genai_finops.planner.performance.model import MeasuredProfile, replica_performance
from genai_finops.planner.provenance import worst as worst_of
from genai_finops.spec import Model
from tests.platform_files import platform

[MODEL] = platform("default").models

FIRST_TOKEN_OUTLIERS = {"Llama-2-13B"}
"""Eight prompts of 4,096 tokens, three times slower than every other row: attention grows with the square of a prompt,
which the model leaves out. docs/planner.md names it."""


def on(instance, *, split=None, engine=None, model=MODEL):
    accelerator = {"family": instance.split(".")[0], "sizes": [instance.split(".")[1]], "tensor_parallel_size": split}
    changed = model.model_dump(exclude_none=True) | {"accelerator": accelerator}
    changed["engine"] = {"max_model_len": 4096} | (engine or {})
    return replica_performance(Model.model_validate(changed), instance_type(instance))


@pytest.mark.parametrize(
    "found", evidence(), ids=lambda found: f"{found.row.model}-{found.row.accelerator}-{found.what}"
)
def test_each_published_row_lies_within_the_error_bar_that_a_result_carries(found):
    if found.what == "first token" and found.row.model in FIRST_TOKEN_OUTLIERS:
        return
    facts = accelerator_performance()[found.row.accelerator]
    bar = facts.fitted_error if found.what == "decode" else facts.prefill_error
    # A measurement within the bar of the prediction: predicted x (1 +- bar).
    assert found.predicted_ms * (1 - bar) <= found.published_ms <= found.predicted_ms * (1 + bar)


def test_rows_that_nothing_was_fitted_to_are_counted_apart():
    found = evidence()
    assert sum(each.row.role == "held out" for each in found) >= 10
    assert middle(found, "decode", "held out") < 0.10
    assert middle(found, "first token", "held out") < 0.10
    assert worst(found, "decode", "held out") < 0.5
    assert worst(found, "decode", "excluded") is None


def test_what_is_left_out_says_why():
    assert all(row.reason for row in published_rows() if row.role == "excluded")
    assert not any(row.reason for row in published_rows() if row.role != "excluded")


def test_the_table_of_errors_is_printed_with_each_row(capsys):
    main()
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) > len(evidence())
    assert "decode, held out: median" in printed
    assert "left out: Llama-3-8B on a10g" in printed


def test_neuron_pads_prompts_to_buckets_and_computes_all_compiled_sequences():
    found = on("inf2.xlarge", engine={"max_num_seqs": 8})
    assert (found.prefill, found.buckets[-1], found.max_sequences) == ("serial", 4096, 8)
    assert found.cache_tokens == 8 * 4096
    assert found.step_seconds_per_sequence == 0
    assert on("inf2.xlarge", engine={"max_num_seqs": 4}).step_seconds < found.step_seconds


def test_gpus_take_prompts_in_chunks_and_cache_what_memory_is_left():
    found = on("g6e.xlarge")
    assert (found.prefill, found.buckets, found.chunk_tokens) == ("chunked", (), 2048)
    # 45,776 MiB x 0.9, less the weights and what vLLM takes beside them, at 128 KiB a token.
    assert 150_000 < found.cache_tokens < 200_000
    assert on("p5.4xlarge").chunk_tokens == 8192
    assert on("p4de.24xlarge").chunk_tokens == 2048
    assert on("g6e.xlarge", engine={"extra_args": ["--max-num-batched-tokens", "512"]}).chunk_tokens == 512
    assert on("g6e.xlarge", engine={"extra_args": ["--max-num-batched-tokens=1024"]}).chunk_tokens == 1024


def test_where_nobody_has_measured_the_number_says_so():
    assert on("inf2.xlarge").decode_origin.provenance == "fitted"
    assert on("inf2.24xlarge", split=4).decode_origin.provenance == "extrapolated"
    assert on("g5.xlarge").decode_origin.provenance == "assumed"
    assert on("inf2.24xlarge", split=4).decode_origin.relative_error > on("inf2.xlarge").decode_origin.relative_error


def test_int8_weights_are_read_in_less_time():
    plain, quantized = on("inf2.xlarge"), on("inf2.xlarge", engine={"quantization": "int8"})
    assert quantized.step_seconds < 0.75 * plain.step_seconds


@pytest.mark.parametrize(("split", "more"), [(2, 4), (4, 8), (8, 16)])
def test_more_devices_never_make_a_step_slower(split, more):
    assert on("inf2.48xlarge", split=more).step_seconds < on("inf2.48xlarge", split=split).step_seconds


PROFILE = MeasuredProfile(
    model=MODEL.name,
    instance="inf2.xlarge",
    tensor_parallel_size=2,
    step_seconds=0.04,
    step_seconds_per_sequence=0.001,
    prefill_seconds=0.1,
    prefill_seconds_per_token=0.0002,
    decode_relative_error=0.05,
    prefill_relative_error=0.1,
    measured=date(2026, 12, 1),
    source="results.json",
)


def test_a_measurement_takes_the_place_of_the_model_for_its_layout_only():
    model = Model.model_validate(
        MODEL.model_dump(exclude_none=True) | {"accelerator": {"family": "inf2", "sizes": ["xlarge"]}}
    )
    found = replica_performance(model, instance_type("inf2.xlarge"), [PROFILE])
    assert (found.step_seconds, found.prefill_seconds) == (0.04, 0.1)
    assert found.decode_origin.provenance == "measured"
    assert "results.json" in found.decode_origin.source
    for other in (replace(PROFILE, instance="inf2.8xlarge"), replace(PROFILE, tensor_parallel_size=4)):
        assert replica_performance(model, instance_type("inf2.xlarge"), [other]).decode_origin.provenance != "measured"


def test_the_last_of_several_measurements_counts():
    model = Model.model_validate(
        MODEL.model_dump(exclude_none=True) | {"accelerator": {"family": "inf2", "sizes": ["xlarge"]}}
    )
    later = replace(PROFILE, step_seconds=0.03)
    assert replica_performance(model, instance_type("inf2.xlarge"), [PROFILE, later]).step_seconds == 0.03


@given(st.floats(-1, 1))
def test_the_ends_of_the_error_bars_are_as_far_as_they_say(share):
    found = on("inf2.xlarge")
    scaled = found.scaled(share)
    assert scaled.step_seconds == pytest.approx(found.step_seconds * (1 + share * found.decode_origin.relative_error))
    assert scaled.prefill_seconds_per_token == pytest.approx(
        found.prefill_seconds_per_token * (1 + share * found.prefill_origin.relative_error)
    )


def test_of_several_origins_the_worst_is_the_results():
    assert worst_of("measured", "assumed", "fitted") == "assumed"
    assert worst_of("measured") == "measured"


def test_efficiency_between_two_given_numbers_of_devices_lies_between_theirs():
    facts = accelerator_performance()["inferentia2"]
    assert facts.efficiency_over(1) == 0.42
    assert 0.42 < facts.efficiency_over(2) < 0.66
    assert facts.efficiency_over(12) == 0.66
    assert facts.efficiency_over(0.5) == 0.42
