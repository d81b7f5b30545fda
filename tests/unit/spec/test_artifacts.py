"""The key of compiled graphs: changed by what shapes them, by nothing else, and the same on every machine."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.spec import artifacts
from tests import strategies
from tests.platform_files import ROOT, platform
from tests.unit.spec.files import ON_GPU, SHAPE_OF_LLAMA, accepted

MODEL = "models[0]"

SHAPES_THE_GRAPHS = {
    "source": {f"{MODEL}.source": "hf://NousResearch/Meta-Llama-3-8B-Instruct", f"{MODEL}.shape": SHAPE_OF_LLAMA},
    "revision": {f"{MODEL}.revision": "0" * 40},
    "image": {f"{MODEL}.engine.image": "example.com/vllm:1"},
    "accelerator": {f"{MODEL}.accelerator": {"family": "trn1"}},
    "tensor_parallel_size": {
        f"{MODEL}.accelerator": {"family": "inf2", "sizes": ["24xlarge"], "tensor_parallel_size": 4}
    },
    "max_model_len": {f"{MODEL}.engine.max_model_len": 2048},
    "max_num_seqs": {f"{MODEL}.engine.max_num_seqs": 4},
    "dtype": {f"{MODEL}.engine.dtype": "float16"},
    "quantization": {f"{MODEL}.engine.quantization": "int8"},
    "context buckets": {f"{MODEL}.engine.buckets.context_encoding": [1024, 4096]},
    "token buckets": {f"{MODEL}.engine.buckets.token_generation": [4096]},
    "neuron_config": {f"{MODEL}.engine.neuron_config": {"fused_qkv": True}},
    "a nested neuron_config": {f"{MODEL}.engine.neuron_config": {"on_device_sampling_config": {"top_k": 1}}},
    "extra_args": {f"{MODEL}.engine.extra_args": ["--enable-lora"]},
    "the order of extra_args": {f"{MODEL}.engine.extra_args": ["--seed", "7", "--enable-lora"]},
    "a compiler variable": {f"{MODEL}.engine.env": {"NEURON_CC_FLAGS": "-O1"}},
}

LEAVES_THEM = {
    "the platform": {"name": "another", "region": "us-west-2", "zones": ["us-west-2a", "us-west-2b"]},
    "name": {f"{MODEL}.name": "other"},
    "served_name": {f"{MODEL}.served_name": "other/name"},
    "sizes": {f"{MODEL}.accelerator.sizes": ["xlarge", "24xlarge"]},
    "the compile job": {f"{MODEL}.compile": {"size": "24xlarge", "spot": False, "timeout_minutes": 30, "retries": 0}},
    "allow_compile_on_start": {f"{MODEL}.engine.allow_compile_on_start": True},
    "resources": {f"{MODEL}.resources": {"cpu": 4, "memory_gib": 40, "shared_memory_gib": 3}},
    "scaling": {f"{MODEL}.scaling": {"min_replicas": 3, "max_replicas": 7, "queue_per_replica": 9}},
    "spot": {f"{MODEL}.spot": "never"},
    "warm capacity": {f"{MODEL}.warm_capacity.replicas": 2},
    "schedule": {
        f"{MODEL}.schedule": {"time_zone": "UTC", "awake": [{"days": "Mon-Fri", "start": "08:00", "end": "18:00"}]}
    },
    "critical": {f"{MODEL}.critical": True},
    "probes": {f"{MODEL}.probes.startup_seconds": 900},
    "drain": {f"{MODEL}.drain_seconds": 10},
    "objective": {f"{MODEL}.objective.percent": 99},
    "the shape, which only says whether it fits": {f"{MODEL}.shape": SHAPE_OF_LLAMA},
    "the runtime's variables": {f"{MODEL}.engine.env": {"NEURON_RT_LOG_LEVEL": "INFO", "VLLM_LOGGING_LEVEL": "DEBUG"}},
    "a default spelled out": {
        f"{MODEL}.engine": {
            "max_model_len": 4096,
            "max_num_seqs": 8,
            "dtype": "bfloat16",
            "buckets": {"context_encoding": [512, 1024, 2048, 4096]},
            "prefix_caching": False,
            "block_size": 4096,
            "num_gpu_blocks_override": 8,
        }
    },
    "the pool": {"node_pools.inf2": {"max_devices": 12, "volume": {"size_gib": 300}, "cache_gib": 100}},
    "the store": {"model_store": {"noncurrent_days": 7}},
}


def key(changes=None):
    return artifacts.key(accepted(changes).models[0])


def test_the_key_of_the_articles_model_has_not_moved():
    """Another value here means that whoever upgrades compiles every model once more: say so in the notes."""
    assert artifacts.key(platform("default").models[0]) == "1d6f110e82d6924bb1ed"


@pytest.mark.parametrize("changes", SHAPES_THE_GRAPHS.values(), ids=SHAPES_THE_GRAPHS)
def test_what_shapes_the_graphs_changes_the_key(changes):
    assert key(changes) != key()


def test_no_two_of_these_changes_have_the_same_key():
    assert len({key(changes) for changes in SHAPES_THE_GRAPHS.values()}) == len(SHAPES_THE_GRAPHS)


@pytest.mark.parametrize("changes", LEAVES_THEM.values(), ids=LEAVES_THEM)
def test_what_does_not_shape_the_graphs_leaves_the_key(changes):
    assert key(changes) == key()


@given(strategies.platforms())
def test_a_key_is_a_function_of_the_recipe_and_fits_into_names(found):
    keys = {}
    for model in found.models:
        assert keys.setdefault(artifacts.key(model), artifacts.recipe(model)) == artifacts.recipe(model)
        assert len(artifacts.key(model)) == artifacts.KEY_CHARACTERS
        assert int(artifacts.key(model), 16) >= 0


@given(strategies.platforms(), st.data())
def test_every_entry_of_the_recipe_counts(found, data):
    """The text that is hashed has all of it: no entry can change without the key."""
    model = found.models[0]
    recipe = artifacts.recipe(model)
    assert json.loads(artifacts.recipe_text(model)) == recipe
    name = data.draw(st.sampled_from(sorted(recipe)))
    changed = json.dumps({**recipe, name: "another"}, sort_keys=True, separators=(",", ":"))
    assert changed != artifacts.recipe_text(model)


def test_the_order_of_a_mapping_in_the_file_does_not_count():
    one = {f"{MODEL}.engine.neuron_config": {"a": 1, "b": {"x": 1, "y": 2}}}
    other = {f"{MODEL}.engine.neuron_config": {"b": {"y": 2, "x": 1}, "a": 1}}
    assert key(one) == key(other)


def test_another_process_finds_the_same_key_whatever_its_hash_seed_and_locale():
    program = (
        "from pathlib import Path; from genai_finops.spec import artifacts, load_platform;"
        "print(artifacts.key(load_platform(Path('platform.yaml')).models[0]))"
    )
    variables = {**os.environ, "PYTHONHASHSEED": "42", "LC_ALL": "C", "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=variables, check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == artifacts.key(platform("default").models[0])


@pytest.mark.parametrize(
    ("source", "prefix"),
    [
        ("hf://meta-llama/Meta-Llama-3-8B-Instruct", "weights/meta-llama/Meta-Llama-3-8B-Instruct/{revision}"),
        ("s3://bucket/team/llama", "weights/s3.bucket/team/llama/{revision}"),
        ("s3://bucket", "weights/s3.bucket/{revision}"),
    ],
)
def test_weights_stand_under_their_source_and_revision(source, prefix):
    model = accepted({f"{MODEL}.source": source, f"{MODEL}.shape": SHAPE_OF_LLAMA}).models[0]
    assert artifacts.weights_prefix(model) == prefix.format(revision=model.revision)


@given(strategies.platforms())
def test_models_share_weights_exactly_when_source_and_revision_are_the_same(found):
    by_prefix = {}
    for model in found.models:
        origin = (model.source, model.revision)
        assert by_prefix.setdefault(artifacts.weights_prefix(model), origin) == origin


def test_artifacts_stand_under_their_key():
    model = accepted().models[0]
    assert artifacts.artifacts_prefix(model) == f"artifacts/{artifacts.key(model)}"


def test_only_on_neuron_graphs_are_compiled_and_only_where_servers_do_not_compile_them():
    assert accepted().models[0].is_precompiled
    assert not accepted(ON_GPU).models[0].is_precompiled
    assert not accepted({f"{MODEL}.engine.allow_compile_on_start": True}).models[0].is_precompiled
