"""What the engine is told: lengths, buckets, blocks, arguments, environment, image, and where weights come from."""

import json

import pytest

from genai_finops.spec import engine as engine_arguments
from genai_finops.spec.checks import engine as checks
from tests.unit.spec.files import ON_GPU, SHAPE_OF_LLAMA, accepted, assert_says, only, refused

ENGINE = "models[0].engine"
IN_S3 = {"models[0].source": "s3://bucket/llama", "models[0].shape": SHAPE_OF_LLAMA}


def test_a_sequence_is_at_most_as_long_as_the_model_was_trained_for():
    accepted({f"{ENGINE}.max_model_len": 8192, f"{ENGINE}.max_num_seqs": 2})
    problem = only(refused({f"{ENGINE}.max_model_len": 8193, f"{ENGINE}.max_num_seqs": 2}))
    assert (problem.path, problem.found) == (f"{ENGINE}.max_model_len", "is 8193")
    assert problem.why == "Llama-3-8B was trained for at most 8192 tokens."
    assert problem.fix == "Use 8192 or less."


@pytest.mark.parametrize("kind", ["context_encoding", "token_generation"])
@pytest.mark.parametrize(
    "buckets", [[4096, 512], [512, 512, 4096], [512, 2048], [512, 4096, 8192], [0, 4096], [-1, 4096]], ids=str
)
def test_buckets_ascend_and_end_at_the_longest_sequence(kind, buckets):
    assert_says({f"{ENGINE}.buckets": {kind: buckets}}, f"{ENGINE}.buckets.{kind}", f"is {buckets}", "512, 1024, 2048")


@pytest.mark.parametrize("buckets", [[4096], [1, 4096], [], [100, 200, 4096]], ids=str)
def test_any_ascending_buckets_will_do(buckets):
    accepted({f"{ENGINE}.buckets.context_encoding": buckets})


@pytest.mark.parametrize(
    ("longest", "ladder"),
    [
        (128, (128,)),
        (512, (512,)),
        (513, (512, 513)),
        (4096, (512, 1024, 2048, 4096)),
        (5000, (512, 1024, 2048, 4096, 5000)),
    ],
)
def test_default_buckets_double_from_512_and_end_at_the_longest_sequence(longest, ladder):
    assert engine_arguments.default_buckets(longest) == ladder


@pytest.mark.parametrize(("field", "right", "wrong"), [("block_size", 4096, 16), ("num_gpu_blocks_override", 8, 9)])
def test_without_prefix_caching_a_sequence_owns_one_block(field, right, wrong):
    accepted({f"{ENGINE}.{field}": right})
    assert_says({f"{ENGINE}.{field}": wrong}, f"{ENGINE}.{field}", f"is {wrong}", f"Use {right}, or leave it out.")


def test_prefix_caching_is_for_gpus():
    accepted({**ON_GPU, f"{ENGINE}.prefix_caching": True})
    accepted({f"{ENGINE}.prefix_caching": False})
    assert_says({f"{ENGINE}.prefix_caching": True}, f"{ENGINE}.prefix_caching", "is true", "use an NVIDIA family")


@pytest.mark.parametrize(
    ("setting", "value", "found", "fix"),
    [
        ("gpu_memory_utilization", 0.8, "is 0.8", "Leave it out."),
        ("quantization", "fp8", "is 'fp8'", "Use int8"),
    ],
)
def test_on_neuron_what_does_nothing_is_refused(setting, value, found, fix):
    assert_says({f"{ENGINE}.{setting}": value}, f"{ENGINE}.{setting}", found, fix)


@pytest.mark.parametrize(
    ("setting", "value", "found", "fix"),
    [
        ("quantization", "int8", "is 'int8'", "Use fp8"),
        ("buckets.context_encoding", [4096], "is set", "Leave it out."),
        ("buckets.token_generation", [4096], "is set", "Leave it out."),
        ("neuron_config", {"fused_qkv": True}, "is set", "Leave it out."),
        ("allow_compile_on_start", True, "is set", "Leave it out."),
    ],
)
def test_on_a_gpu_what_is_for_neuron_is_refused(setting, value, found, fix):
    assert_says({**ON_GPU, f"{ENGINE}.{setting}": value}, f"{ENGINE}.{setting}", found, fix)


@pytest.mark.parametrize(("key", "setting"), checks._OWNED_NEURON_CONFIG.items())
def test_a_neuron_key_that_a_setting_writes_is_refused_with_that_setting(key, setting):
    assert_says({f"{ENGINE}.neuron_config": {key: 1}}, f"{ENGINE}.neuron_config.{key}", "is set", setting)


@pytest.mark.parametrize("value", [float("nan"), [1, {"deep": float("inf")}]], ids=str)
def test_a_neuron_key_is_json(value):
    problem = only(refused({f"{ENGINE}.neuron_config": {"x": value}}))
    assert problem.path == f"{ENGINE}.neuron_config"
    assert "finite" in problem.fix


@pytest.mark.parametrize(("flag", "setting"), checks._OWNED_ARGUMENTS.items())
def test_an_argument_that_a_setting_writes_is_refused_with_that_setting(flag, setting):
    for changes in ({}, ON_GPU):
        assert_says({**changes, f"{ENGINE}.extra_args": [flag, "x"]}, f"{ENGINE}.extra_args[0]", flag, setting)


@pytest.mark.parametrize("flag", checks._FORBIDDEN_ARGUMENTS)
def test_an_argument_that_breaks_the_platform_is_refused(flag):
    for changes in ({}, ON_GPU):
        assert_says(
            {**changes, f"{ENGINE}.extra_args": [f"{flag}=x"]}, f"{ENGINE}.extra_args[0]", flag, "Leave it out."
        )


@pytest.mark.parametrize("flag", checks._NEURON_ARGUMENTS)
def test_an_argument_that_does_nothing_on_neuron_is_refused_there_only(flag):
    assert_says({f"{ENGINE}.extra_args": [flag]}, f"{ENGINE}.extra_args[0]", flag, "Leave it out.")
    accepted({**ON_GPU, f"{ENGINE}.extra_args": [flag]})


@pytest.mark.parametrize(
    "argument",
    ["--max_model_len=4096", "--max-model-len=4096", "--additional-config.override_neuron_config.x=1", "-tp=2"],
)
def test_another_spelling_of_an_argument_is_the_same_argument(argument):
    """vLLM reads underscores as dashes, and dots as parts of a JSON argument."""
    assert only(refused({f"{ENGINE}.extra_args": [argument]})).path == f"{ENGINE}.extra_args[0]"


@pytest.mark.parametrize("argument", ["--seed 7", "--port 9000", ""])
def test_an_argument_and_its_value_are_two_entries(argument):
    assert_says({f"{ENGINE}.extra_args": [argument]}, f"{ENGINE}.extra_args[0]", repr(argument), '["--flag", "value"]')


def test_a_harmless_argument_goes_through_as_it_is():
    platform = accepted({f"{ENGINE}.extra_args": ["--seed", "7", '--chat-template={{ "a b" }}']})
    assert engine_arguments.serve_arguments(platform.models[0])[-3:] == ["--seed", "7", '--chat-template={{ "a b" }}']


def test_every_mistaken_argument_is_pointed_at_by_its_position():
    problems = refused({f"{ENGINE}.extra_args": ["--seed", "7", "--port", "1", "--dtype=half"]})
    assert [problem.path for problem in problems] == [f"{ENGINE}.extra_args[2]", f"{ENGINE}.extra_args[4]"]


@pytest.mark.parametrize("name", checks._DEAD_ENVIRONMENT)
def test_an_environment_variable_that_is_dead_or_dangerous_is_refused(name):
    assert_says({f"{ENGINE}.env": {name: "x"}}, f"{ENGINE}.env.{name}", "is set", "Leave it out.")


def test_the_name_of_an_environment_variable_is_one():
    accepted({f"{ENGINE}.env": {"VLLM_LOGGING_LEVEL": "DEBUG", "_x1": ""}})
    assert_says({f"{ENGINE}.env": {"1X": "x"}}, f"{ENGINE}.env.1X", "is set", "letters, digits and underscores")
    assert_says({f"{ENGINE}.env": {"A.B": "x"}}, f'{ENGINE}.env["A.B"]', "is set", "letters, digits and underscores")


@pytest.mark.parametrize(
    "image", ["vllm/vllm-openai", "vllm/vllm-openai:latest", "localhost:5000/vllm", "vllm", "two words:1", "", "-x:1"]
)
def test_an_image_is_pinned(image):
    problem = only(refused({f"{ENGINE}.image": image}))
    assert (problem.path, problem.found) == (f"{ENGINE}.image", f"is {image!r}")
    assert "tag" in problem.fix


@pytest.mark.parametrize(
    "image",
    ["vllm/vllm-openai:v1", "localhost:5000/vllm:1", f"vllm@sha256:{'0' * 64}", f"vllm:latest@sha256:{'0' * 64}"],
)
def test_a_tag_or_a_digest_pins_an_image(image):
    assert engine_arguments.image(accepted({f"{ENGINE}.image": image}).models[0]) == image


@pytest.mark.parametrize("revision", ["main", "v1.0", "5f0b02c", "5F0B02C75B57C5855DA9AE460CE51323EA669D8A", "0" * 41])
def test_a_hub_revision_is_a_commit(revision):
    assert_says({"models[0].revision": revision}, "models[0].revision", f"is {revision!r}", "40 hexadecimal digits")


@pytest.mark.parametrize("source", ["hf://llama", "hf://a/b/c", "hf://meta-llama/", "hf://méta/llama", "hf:///x"])
def test_a_hub_source_names_a_repository(source):
    problems = refused({"models[0].source": source, "models[0].shape": SHAPE_OF_LLAMA})
    assert only(problems).path == "models[0].source"
    assert only(problems).fix == "Use hf://organisation/repository."


@pytest.mark.parametrize(
    "source", ["meta-llama/Meta-Llama-3-8B", "gs://bucket/x", "/models", "https://x/y", "", "hf://"]
)
def test_a_source_is_on_the_hub_or_in_s3(source):
    problems = refused({"models[0].source": source, "models[0].shape": SHAPE_OF_LLAMA})
    assert only(problems).path == "models[0].source"
    assert only(problems).fix == "Use hf://organisation/repository or s3://bucket/prefix."


@pytest.mark.parametrize(
    "source",
    [
        "s3://Bucket/x",
        "s3://b/x",
        "s3://bucket/x/",
        "s3://bucket//x",
        "s3://bucket/*",
        "s3://bucket/it's",
        "s3://bucket/.x",
        "s3://",
    ],
)
def test_an_s3_source_can_be_used_as_it_is(source):
    problem = only(refused({**IN_S3, "models[0].source": source}))
    assert (problem.path, problem.found) == ("models[0].source", f"is {source!r}")
    assert "s3://bucket/prefix" in problem.fix


@pytest.mark.parametrize("source", ["s3://bucket", "s3://my.bucket-1/a/d_e.f-g"])
def test_an_s3_source_may_have_a_prefix(source):
    accepted({**IN_S3, "models[0].source": source, "models[0].revision": "2026-01-01"})


@pytest.mark.parametrize("revision", ["", "a/b", "..", "x" * 65, "a b"])
def test_an_s3_revision_is_one_folder(revision):
    problem = only(refused({**IN_S3, "models[0].revision": revision}))
    assert (problem.path, problem.found) == ("models[0].revision", f"is {revision!r}")
    assert "at most 64" in problem.fix


@pytest.mark.parametrize("source", [{}, IN_S3], ids=["from the hub", "from S3"])
def test_a_model_is_served_from_where_its_files_are_put(source):
    arguments = engine_arguments.serve_arguments(accepted(source).models[0])
    assert arguments[0] == engine_arguments.WEIGHTS_PATH
    assert not {"--revision", "--tokenizer-revision"} & set(arguments)


def argument_after(flag, model):
    arguments = engine_arguments.serve_arguments(model)
    return arguments[arguments.index(flag) + 1]


def test_on_neuron_the_configuration_is_one_json_argument_under_the_key_that_is_read():
    """`override_neuron_config`; a hyphenated spelling is silently ignored (platform-facts.md)."""
    changes = {f"{ENGINE}.quantization": "int8", f"{ENGINE}.neuron_config": {"fused_qkv": True}}
    model = accepted({**changes, f"{ENGINE}.max_model_len": 1024}).models[0]
    assert json.loads(argument_after("--additional-config", model)) == {
        "override_neuron_config": {
            "save_sharded_checkpoint": True,
            "enable_bucketing": True,
            "context_encoding_buckets": [512, 1024],
            "token_generation_buckets": [512, 1024],
            "quantized": True,
            "quantization_dtype": "int8",
            "quantization_type": "per_channel_symmetric",
            "fused_qkv": True,
        }
    }


def test_on_neuron_blocks_follow_from_the_lengths():
    """Without prefix caching the block is the longest sequence, and there are as many as sequences."""
    model = accepted({f"{ENGINE}.max_model_len": 2048, f"{ENGINE}.max_num_seqs": 4}).models[0]
    assert (argument_after("--block-size", model), argument_after("--num-gpu-blocks-override", model)) == ("2048", "4")
    assert "--no-enable-prefix-caching" in engine_arguments.serve_arguments(model)


def test_on_a_gpu_vllm_chooses_unless_told():
    arguments = engine_arguments.serve_arguments(accepted(ON_GPU).models[0])
    assert arguments[-3:] == ["--gpu-memory-utilization", "0.9", "--enable-prefix-caching"]
    told = {"block_size": 32, "num_gpu_blocks_override": 100, "quantization": "fp8", "prefix_caching": False}
    arguments = engine_arguments.serve_arguments(accepted({**ON_GPU, ENGINE: told}).models[0])
    for flag, value in (("--block-size", "32"), ("--num-gpu-blocks-override", "100"), ("--quantization", "fp8")):
        assert arguments[arguments.index(flag) + 1] == value
    assert "--no-enable-prefix-caching" in arguments
