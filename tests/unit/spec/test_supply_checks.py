"""Settings of the model supply and of warm capacity: what cannot work is refused, with the way out."""

import pytest

from genai_finops.spec import placement
from tests.unit.spec.files import ON_GPU, accepted, assert_says, only, refused

MODEL = "models[0]"
COMPILE = f"{MODEL}.compile"
WARM = f"{MODEL}.warm_capacity"
POOL = "node_pools.inf2"
SNAPSHOT = {"snapshot": "snap-0123456789abcdef0"}
SCHEDULE = {"time_zone": "UTC", "awake": [{"days": "Mon-Fri", "start": "08:00", "end": "18:00"}]}


def compile_type(changes=None):
    return placement.compile_instance(accepted(changes).models[0]).name


def test_graphs_are_compiled_on_the_smallest_host_with_the_memory():
    assert compile_type({f"{MODEL}.accelerator.sizes": ["xlarge"]}) == "inf2.8xlarge"
    assert compile_type({f"{COMPILE}.size": "24xlarge"}) == "inf2.24xlarge"
    seventy = {
        f"{MODEL}.source": "hf://meta-llama/Meta-Llama-3-70B-Instruct",
        f"{MODEL}.accelerator": {"family": "inf2", "sizes": ["48xlarge"], "tensor_parallel_size": 16},
    }
    assert compile_type(seventy) == "inf2.48xlarge"


def test_a_host_too_small_to_compile_is_refused_with_those_that_are_not():
    assert_says({f"{COMPILE}.size": "xlarge"}, f"{COMPILE}.size", "is 'xlarge'", "Use 8xlarge, 24xlarge or 48xlarge")
    assert_says({f"{COMPILE}.size": "2xlarge"}, f"{COMPILE}.size", "is '2xlarge'", "inf2 has xlarge, 8xlarge")


@pytest.mark.parametrize("field", ["size", "spot", "timeout_minutes", "retries"])
def test_on_a_gpu_there_is_nothing_to_compile(field):
    value = {"size": "xlarge", "spot": False, "timeout_minutes": 60, "retries": 1}[field]
    assert_says({**ON_GPU, f"{COMPILE}.{field}": value}, f"{COMPILE}.{field}", "is set", "Leave it out.")


def test_a_model_on_spot_only_is_not_compiled_on_demand():
    assert_says({f"{MODEL}.spot": "only", f"{COMPILE}.spot": False}, f"{COMPILE}.spot", "is false", "spot: prefer")
    accepted({f"{MODEL}.spot": "prefer", f"{COMPILE}.spot": False})


def test_a_pool_lets_the_compile_job_in():
    changes = {f"{COMPILE}.size": "24xlarge", f"{POOL}.max_devices": 5}
    problem = only(refused(changes))
    assert problem.path == f"{POOL}.max_devices"
    assert "compiled on inf2.24xlarge" in problem.why
    assert problem.fix == "Use 6 or more."


def test_a_buffer_is_for_models_that_never_sleep():
    buffer = {WARM: {"replicas": 1, "kind": "buffer"}}
    accepted(buffer)
    assert_says({**buffer, f"{MODEL}.schedule": SCHEDULE}, f"{WARM}.kind", "is 'buffer'", "Use placeholder")
    accepted({WARM: {"replicas": 1}, f"{MODEL}.schedule": SCHEDULE})


def test_a_buffer_holds_something():
    assert_says({WARM: {"kind": "buffer"}}, f"{WARM}.kind", "is 'buffer'", "Set warm_capacity.replicas")


def test_only_placeholders_are_pods():
    assert accepted({WARM: {"replicas": 2}}).models[0].warm_capacity.placeholders == 2
    assert accepted({WARM: {"replicas": 2, "kind": "buffer"}}).models[0].warm_capacity.placeholders == 0


@pytest.mark.parametrize("snapshot", ["snap-1", "ami-0123456789abcdef0", "snap-0123456789ABCDEF0", ""])
def test_a_snapshot_is_named_by_its_id(snapshot):
    problem = only(refused({f"{POOL}.image_preload.snapshot": snapshot}))
    assert "the id of an EBS snapshot" in problem.fix + problem.why


def test_images_of_a_snapshot_are_looked_for_where_they_are():
    changes = {f"{POOL}.fast_image_pull": True, f"{POOL}.image_preload": SNAPSHOT}
    assert_says(changes, f"{POOL}.fast_image_pull", "is true", "Leave one of them out")


@pytest.mark.parametrize(("throughput", "fits"), [(599, False), (600, True)])
def test_unpacking_side_by_side_needs_a_fast_volume(throughput, fits):
    changes = {f"{POOL}.fast_image_pull": True, f"{POOL}.volume.throughput_mib_s": throughput}
    if fits:
        accepted(changes)
    else:
        assert_says(changes, f"{POOL}.fast_image_pull", "is true", "Raise it to 600 or more, and iops to 2400")


def test_a_rate_without_a_snapshot_fills_nothing():
    path = f"{POOL}.image_preload.initialization_mib_s"
    assert_says({path: 100}, path, "is 100", "Set image_preload.snapshot")
    accepted({f"{POOL}.image_preload": {**SNAPSHOT, "initialization_mib_s": 100}})


def test_a_cache_leaves_room_for_the_image():
    assert_says({f"{POOL}.cache_gib": 131}, f"{POOL}.cache_gib", "is 131", "Use at most 130")
    accepted({f"{POOL}.cache_gib": 130})


def test_a_cache_holds_the_largest_model_as_a_whole():
    """15 GiB of weights and as much of graphs with the weights as each core loads them."""
    assert_says({f"{POOL}.cache_gib": 29}, f"{POOL}.cache_gib", "is 29", "Use 30 or more")
    accepted({f"{POOL}.cache_gib": 30})


@pytest.mark.parametrize(("size_gib", "cached"), [(150, 110), (60, 30), (40, 30)])
def test_by_default_the_cache_is_what_the_volume_leaves_and_never_too_small(size_gib, cached):
    found = accepted({f"{POOL}.volume.size_gib": size_gib})
    assert placement.cache_gib(found.node_pool("inf2"), found.models_on("inf2")) == cached


def test_serving_on_the_small_host_and_compiling_on_the_large_opens_the_pool_to_both():
    model = accepted({f"{MODEL}.accelerator.sizes": ["xlarge"]}).models[0]
    assert [instance.name for instance in placement.instances(model)] == ["inf2.xlarge"]
    assert [instance.name for instance in placement.pool_instances(model)] == ["inf2.xlarge", "inf2.8xlarge"]
