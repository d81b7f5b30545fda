"""Whether a model fits: instances, cores, heads, device memory, and the host around them."""

import pytest

from genai_finops.catalog import families, instance_type
from genai_finops.spec import placement
from tests.unit.spec.files import LLAMA, SHAPE_OF_LLAMA, accepted, assert_says, only, refused

MODEL = "models[0]"
SIZES = f"{MODEL}.accelerator.sizes"
SPLIT = f"{MODEL}.accelerator.tensor_parallel_size"
COMPILES = {f"{MODEL}.engine.allow_compile_on_start": True}
LLAMA_70B = {f"{MODEL}.source": "hf://meta-llama/Meta-Llama-3-70B-Instruct"}


@pytest.mark.parametrize("family", ["inf1", "m7g", "inf2.xlarge", ""])
def test_a_family_has_accelerators(family):
    assert_says(
        {f"{MODEL}.accelerator": {"family": family}}, f"{MODEL}.accelerator.family", repr(family), "g6e, inf2, p4d"
    )


def test_a_size_exists_and_is_named_once():
    assert_says(
        {SIZES: ["8xlarge", "2xlarge"]}, f"{SIZES}[1]", "'2xlarge'", "inf2 has xlarge, 8xlarge, 24xlarge or 48xlarge"
    )
    assert_says({SIZES: ["8xlarge", "8xlarge"]}, f"{SIZES}[1]", "'8xlarge'", "Leave it out once.")


def test_a_model_the_catalog_does_not_know_needs_its_shape():
    changes = {f"{MODEL}.source": "hf://example/unknown"}
    assert_says(changes, f"{MODEL}.shape", "is missing", "config.json")
    accepted({**changes, f"{MODEL}.shape": SHAPE_OF_LLAMA})


def test_a_model_in_s3_needs_its_shape():
    assert_says({f"{MODEL}.source": "s3://bucket/x"}, f"{MODEL}.shape", "is missing", LLAMA)


def test_heads_are_split_evenly():
    problem = only(refused({SPLIT: 3}))
    assert (problem.path, problem.found) == (SPLIT, "is 3")
    assert "32 attention heads and 8 key-value heads" in problem.why
    assert problem.fix.startswith("Use 1, 2, 4, 8, 16 or 32.")
    assert "On inf2.8xlarge (2 cores) the largest that fits is 2." in problem.fix


def test_key_value_heads_are_copied_when_there_are_fewer_than_cores():
    """8 heads over 16 cores: two copies of each."""
    accepted({**LLAMA_70B, SPLIT: 16, SIZES: ["48xlarge"], f"{MODEL}.engine.max_num_seqs": 1})


def test_every_key_value_head_serves_as_many_attention_heads():
    shape = {**SHAPE_OF_LLAMA, "key_value_heads": 5}
    assert_says({f"{MODEL}.shape": shape}, f"{MODEL}.shape.key_value_heads", "is 5", "config.json")


def test_a_size_has_enough_cores():
    accepted({SPLIT: 2})
    assert_says({SPLIT: 4}, SPLIT, "is 4", "Use at most 2, or take 8xlarge out")


def test_without_sizes_the_largest_of_the_family_is_the_limit():
    changes = {f"{MODEL}.accelerator": {"family": "inf2", "tensor_parallel_size": 32}}
    assert_says(changes, SPLIT, "is 32", "Use at most 24, or another family.")


def test_a_family_on_which_nothing_fits_is_refused_with_all_ways_out():
    problem = only(refused({**LLAMA_70B, f"{MODEL}.accelerator": {"family": "g5"}}))
    assert problem.path == f"{MODEL}.accelerator.family"
    for way in ("tensor_parallel_size", "max_model_len", "max_num_seqs", "quantization", "family with more"):
        assert way in problem.fix


@pytest.mark.parametrize(("quantization", "most"), [(None, 3), ("int8", 4)])
def test_published_points_of_llama_3_8b_at_8192_tokens(quantization, most):
    """AWS Neuron benchmarks: TP2, 8,192 tokens: 3 sequences in bf16, 4 with int8 weights (platform-facts.md)."""
    engine = {"max_model_len": 8192, "max_num_seqs": most}
    accepted({f"{MODEL}.engine": {**engine, **({"quantization": quantization} if quantization else {})}})


def test_sequences_beyond_the_memory_of_a_core_are_refused_with_the_most_that_fit():
    engine = {"max_model_len": 8192, "max_num_seqs": 13}
    problem = only(refused({f"{MODEL}.engine": engine}))
    assert (problem.path, problem.found) == (f"{MODEL}.engine.max_num_seqs", "is 13")
    assert "each core has 16.0 GiB" in problem.why
    assert "7.5 of weights" in problem.why
    assert problem.fix.startswith("At most 12 sequences fit.")
    accepted({f"{MODEL}.engine": {**engine, "max_num_seqs": 12}})


def test_when_only_one_sequence_fits_it_says_so():
    long = {**SHAPE_OF_LLAMA, "max_position_embeddings": 200_000}
    changes = {f"{MODEL}.shape": long, f"{MODEL}.engine": {"max_model_len": 90_000, "max_num_seqs": 2}}
    assert only(refused(changes)).fix.startswith("At most 1 sequence fits.")
    changes[f"{MODEL}.engine"]["max_model_len"] = 199_999
    assert only(refused(changes)).fix.startswith("Not one sequence fits beside the weights.")


def test_when_the_weights_alone_are_too_large_it_says_so():
    problems = refused({**LLAMA_70B, SIZES: ["24xlarge"], SPLIT: 8})
    assert only(problems).fix.startswith("The weights alone do not fit.")


def test_a_gpu_must_hold_one_whole_sequence():
    changes = {
        f"{MODEL}.accelerator": {"family": "g5", "sizes": ["2xlarge"]},
        f"{MODEL}.shape": {**SHAPE_OF_LLAMA, "max_position_embeddings": 131_072},
    }
    accepted({**changes, f"{MODEL}.engine": {"max_model_len": 16_384}})
    problem = only(refused({**changes, f"{MODEL}.engine": {"max_model_len": 65_536}}))
    assert (problem.path, problem.found) == (f"{MODEL}.engine.max_model_len", "is 65536")
    assert "one sequence" in problem.why


def test_compiling_at_start_needs_the_memory_of_a_large_host():
    """16 GiB of host memory is too little to compile an 8B model, but enough to serve it (platform-facts.md)."""
    assert_says({SIZES: ["xlarge", "8xlarge"], **COMPILES}, SIZES, "inf2.xlarge", "Leave allow_compile_on_start out")
    accepted({SIZES: ["xlarge", "8xlarge"]})


def test_memory_given_by_hand_is_enough_to_compile():
    resources = f"{MODEL}.resources.memory_gib"
    accepted({resources: 30, **COMPILES})
    assert_says({resources: 29, **COMPILES}, resources, "is 29", "Use 30 or more")
    accepted({resources: 8})


@pytest.mark.parametrize(("resource", "most"), [("cpu", 31), ("memory_gib", 114)])
def test_a_pod_fits_beside_the_pods_of_the_platform(resource, most):
    path = f"{MODEL}.resources.{resource}"
    accepted({path: most})
    assert_says({path: most + 1}, path, f"is {most + 1}", f"Use at most {most}, or take 8xlarge out")


def test_the_default_size_has_room_for_the_resources_asked_for():
    on_neuron = {f"{MODEL}.accelerator": {"family": "inf2"}}
    sizes = lambda changes: placement.sizes(accepted({**on_neuron, **changes}).models[0])  # noqa: E731
    assert sizes({}) == ("xlarge", "8xlarge")
    assert sizes({f"{MODEL}.resources.cpu": 8}) == ("8xlarge",)
    assert sizes({f"{MODEL}.resources.memory_gib": 200}) == ("24xlarge",)


def test_resources_that_no_size_of_the_family_has_are_refused():
    changes = {f"{MODEL}.accelerator": {"family": "g6"}, f"{MODEL}.resources.cpu": 999}
    problems = refused(changes)
    assert {problem.path for problem in problems} == {f"{MODEL}.resources.cpu"}
    assert all("use a family with larger hosts" in problem.fix for problem in problems)


def test_shared_memory_is_a_part_of_the_memory():
    resources = {"memory_gib": 32, "shared_memory_gib": 31}
    accepted({f"{MODEL}.resources": resources})
    path = f"{MODEL}.resources.shared_memory_gib"
    assert_says(
        {f"{MODEL}.resources": {**resources, "shared_memory_gib": 32}}, path, "is 32", "smaller than memory_gib"
    )


def test_what_the_article_asks_for_is_refused():
    """Two devices, tensor parallel 4, on an inf2.8xlarge: it has one device with two cores (corrections, row 8)."""
    assert_says({SPLIT: 4, SIZES: ["8xlarge"]}, SPLIT, "is 4", "Use at most 2")


@pytest.mark.parametrize(
    ("size", "split", "replicas"),
    [
        ("xlarge", 2, 1),
        ("8xlarge", 2, 1),
        ("24xlarge", 2, 6),
        ("24xlarge", 4, 3),
        ("48xlarge", 2, 12),
        ("48xlarge", 4, 6),
        ("48xlarge", 8, 3),
    ],
)
def test_published_layouts_of_8b(size, split, replicas):
    """xlarge/8xlarge 1xTP2; 24xlarge 6xTP2 or 3xTP4; 48xlarge 12xTP2, 6xTP4 or 3xTP8 (platform-facts.md)."""
    model = accepted({SIZES: [size], SPLIT: split}).models[0]
    assert placement.replicas_per_node(model, instance_type(f"inf2.{size}")) == replicas


def test_a_pod_that_takes_a_whole_node_shares_none():
    assert not placement.shares_a_node(accepted({}).models[0])
    assert placement.shares_a_node(accepted({SIZES: ["8xlarge", "24xlarge"]}).models[0])


def test_without_sizes_the_fewest_devices_that_fit_are_taken():
    model = accepted(
        {**LLAMA_70B, f"{MODEL}.accelerator": {"family": "p5"}, f"{MODEL}.engine.quantization": "fp8"}
    ).models[0]
    assert placement.sizes(model) == ("4xlarge",)


@pytest.mark.parametrize("family", sorted(families()))
def test_a_small_model_fits_every_family(family):
    changes = {f"{MODEL}.source": "hf://meta-llama/Llama-3.2-1B-Instruct", f"{MODEL}.accelerator": {"family": family}}
    assert placement.sizes(accepted(changes).models[0])


@pytest.mark.parametrize("digits", [18, 30, 5000])
def test_absurd_numbers_are_refused_and_do_not_break_the_arithmetic(digits):
    number = "9" * digits
    for setting in ("engine.max_model_len", "engine.max_num_seqs", "accelerator.tensor_parallel_size"):
        document = refused({f"{MODEL}.{setting}": int(number) if digits <= 18 else number})
        assert any(problem.path == f"{MODEL}.{setting}" for problem in document)
