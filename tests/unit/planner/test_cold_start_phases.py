"""How long a replica takes to be ready: phase by phase, with where each figure comes from."""

import pytest
from hypothesis import HealthCheck, given, settings

from genai_finops.catalog import instance_type
from genai_finops.planner.cold_start import ARTICLE_SECONDS, cold_start
from genai_finops.spec import placement
from genai_finops.spec.platform import NodePool
from tests import strategies
from tests.platform_files import platform

PLATFORM = platform("default")
[MODEL] = PLATFORM.models


def start(instance="inf2.8xlarge", *, model=MODEL, **pool):
    pools = {**PLATFORM.node_pools, "inf2": NodePool.model_validate(PLATFORM.node_pool("inf2").model_dump() | pool)}
    return cold_start(PLATFORM.model_copy(update={"node_pools": pools}), model, instance_type(instance))


def phase(found, name):
    return next(each for each in found.phases if each.name == name)


def test_the_default_platform_is_ready_within_three_minutes_when_the_image_is_on_the_nodes_disk():
    found = start()
    assert found.with_image_seconds < 180 <= ARTICLE_SECONDS[0]
    snapshot = start(image_preload={"snapshot": "snap-0123456789abcdef0"})
    assert snapshot.total_seconds == pytest.approx(found.with_image_seconds)
    assert found.total_seconds > 180


def test_the_parts_make_up_the_whole():
    found = start()
    assert found.launch_seconds + found.fresh_seconds == pytest.approx(sum(each.seconds for each in found.phases))
    assert found.warm_seconds < found.fresh_seconds


def test_a_slow_volume_is_waited_for_and_a_fast_network_does_not_help():
    slow = phase(start(volume={"size_gib": 150, "throughput_mib_s": 125, "iops": 4000}), "artifacts")
    fast = phase(start(), "artifacts")
    assert slow.seconds == pytest.approx(placement.artifact_bytes(MODEL) / (125 * 2**20))
    assert slow.seconds > 120 > fast.seconds
    assert "volume" in slow.origin.source


def test_the_smaller_host_waits_for_its_network():
    found = phase(start("inf2.xlarge"), "artifacts")
    assert found.seconds == pytest.approx(placement.artifact_bytes(MODEL) / (2083e6 / 8))
    assert "network" in found.origin.source


def test_compiling_at_start_is_a_quarter_of_an_hour_more_on_every_node():
    compiling = MODEL.model_copy(update={"engine": MODEL.engine.model_copy(update={"allow_compile_on_start": True})})
    found = start(model=compiling)
    assert found.warm_seconds > 900
    assert phase(found, "weights").seconds > 0


def test_a_gpu_has_no_graphs_to_bring_and_loads_from_local_disks():
    of = platform("rich")
    model = next(each for each in of.models if not each.is_neuron)
    found = cold_start(of, model, placement.instances(model)[0])
    assert "artifacts" not in [each.name for each in found.phases]
    assert phase(found, "weights").seconds > 0


def test_every_figure_says_where_it_comes_from_and_the_total_what_is_assumed():
    found = start()
    assert all(each.origin.source for each in found.phases)
    assert found.origin.provenance == "assumed"
    assert 0 < found.origin.relative_error < 1


@given(strategies.platforms())
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_any_platform_has_a_cold_start_on_each_of_its_types(found):
    for model in found.models:
        for instance in placement.instances(model):
            phases = cold_start(found, model, instance)
            assert all(each.seconds >= 0 for each in phases.phases)
            assert phases.warm_seconds <= phases.fresh_seconds
