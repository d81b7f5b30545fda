"""The difference as patches, and whether the cluster then shows what was asked for."""

from dataclasses import replace

from genai_finops.operations.budget import Threshold
from genai_finops.operations.changes import changes
from genai_finops.operations.desired import desired_state
from genai_finops.operations.observed import Replicas, ScaledObject
from genai_finops.operations.pauses import MEMORY, PAUSED_REPLICAS, asleep
from genai_finops.operations.verify import RETRY_AFTER, TELL_AFTER, Fault, follow_up, second_road, verify
from k8s_charts.runtime_owned import runtime_owned_fields
from tests.unit.operations.worlds import (
    HOUR,
    MINUTE,
    NOW,
    OFFICE,
    SPOT_POOL,
    budget,
    config,
    facts,
    model,
    node,
    observed,
    report,
    shown,
    sign,
    storm,
)

NIGHT = NOW.replace(hour=23)
ASLEEP = {name: value for name, value in asleep({}).annotations.items() if value is not None}
OFFICE_MODEL = model(schedule=OFFICE, placeholders=1, placeholder_deployment="chat-warm")


def both(given=None, seen=None, known=(), now=NOW):
    seen = seen or observed()
    return desired_state(given or config(), facts(*known), seen, now), seen


def patches(*args, **settings):
    return changes(*both(*args, **settings))


def faults(*args, **settings):
    return [deviation.fault for deviation in verify(*both(*args, **settings))]


def test_what_is_as_it_should_be_is_not_patched():
    assert patches() == ()


def test_sleep_is_one_patch_with_what_stood_there_before():
    (patch,) = patches(config(model(schedule=OFFICE)), observed(shown({PAUSED_REPLICAS: "2", "team": "x"})), now=NIGHT)
    assert (patch.kind, patch.namespace, patch.name, patch.resource_version) == (
        "ScaledObject",
        "genai-inference",
        "vllm-chat",
        "7",
    )
    assert set(patch.body) == {"metadata"}
    assert set(patch.body["metadata"]["annotations"]) == {PAUSED_REPLICAS, MEMORY}


def test_an_annotation_that_goes_is_null_as_merge_patches_have_it():
    waking, _ = both(seen=observed(shown(ASLEEP, replicas=0)))
    (patch,) = changes(waking, observed(shown(ASLEEP, replicas=0)))
    assert patch.body["metadata"]["annotations"][PAUSED_REPLICAS] is None


def test_a_storm_patches_the_node_pool_and_its_end_takes_the_limit_away():
    (patch,) = patches(known=storm())
    assert (patch.kind, patch.namespace, patch.name, patch.body) == (
        "NodePool",
        None,
        SPOT_POOL.name,
        {"spec": {"limits": {"nodes": "0"}}},
    )
    (patch,) = patches(seen=observed(limits={SPOT_POOL.name: "0"}))
    assert patch.body == {"spec": {"limits": {"nodes": None}}}


def test_a_loss_raises_the_minimum_and_its_end_lowers_it():
    (patch,) = patches(known=[sign()], seen=observed(nodes=[node(replicas={"chat": 2})]))
    assert patch.body == {"spec": {"minReplicaCount": 3}}
    (patch,) = patches(seen=observed(shown(minimum=3)))
    assert patch.body == {"spec": {"minReplicaCount": 1}}


def test_placeholders_are_a_deployment_of_their_own():
    seen = observed(shown(placeholders=1))
    assert [(patch.kind, patch.name, patch.body) for patch in patches(config(OFFICE_MODEL), seen, now=NIGHT)][-1] == (
        "Deployment",
        "chat-warm",
        {"spec": {"replicas": 0}},
    )


def test_patches_hold_only_what_a_deploy_leaves_alone_and_our_own_memory():
    guarded = config(OFFICE_MODEL, budget=budget(Threshold("actual", 80, "cap_replicas", 3)))
    known = [sign(), report(900), *storm()]
    found = [
        *patches(guarded, observed(shown(placeholders=0), [node(replicas={"chat": 2})]), known),
        *patches(guarded, observed(shown(placeholders=1)), known, NIGHT),
        *patches(guarded, observed(shown(ASLEEP, replicas=0, placeholders=0)), known),
    ]
    kinds = set()
    for patch in found:
        kinds.add(patch.kind)
        manifest = {"kind": patch.kind, **patch.body}
        leaves = {path for path in _leaves(patch.body) if path[-1] != MEMORY}
        assert leaves <= set(runtime_owned_fields(manifest))
    assert kinds == {"ScaledObject", "NodePool", "Deployment"}


def _leaves(fields, path=()):
    for key, value in fields.items():
        yield from _leaves(value, (*path, key)) if isinstance(value, dict) else [(*path, key)]


# What the cluster shows


def test_a_model_that_sleeps_and_has_no_replica_is_as_it_should_be():
    assert faults(config(model(schedule=OFFICE)), observed(shown(ASLEEP, replicas=0)), now=NIGHT) == []


def test_paused_with_a_replica_left_is_no_success():
    """Case 18."""
    assert faults(config(model(schedule=OFFICE)), observed(shown(ASLEEP, replicas=1)), now=NIGHT) == [
        Fault.STILL_RUNNING
    ]


def test_a_pod_that_is_kept_from_stopping_is_draining_and_not_asleep():
    """Case 21."""
    held_up = observed(shown(ASLEEP, replicas=Replicas(0, 0, 0, draining=1)))
    assert faults(config(model(schedule=OFFICE)), held_up, now=NIGHT) == [Fault.DRAINING]


def test_nodes_that_run_for_nobody_are_no_success():
    left = observed(shown(ASLEEP, replicas=0), [node("i-1"), node("i-2")])
    found = verify(*both(config(model(schedule=OFFICE)), left, now=NIGHT))
    assert [one.text for one in found] == ["2 nodes of inf2 run for nobody: all its models sleep"]


def test_nodes_of_a_family_that_still_serves_are_its_own_business():
    seen = observed({"chat": shown(ASLEEP, replicas=0), "code": shown()}, [node("i-1")])
    assert faults(config(model(schedule=OFFICE), model("code")), seen, now=NIGHT) == []


def test_a_model_that_should_serve_and_does_not_is_no_success():
    assert faults(seen=observed(shown(replicas=Replicas(1, 1, 0)))) == [Fault.NOT_READY]


def test_what_someone_has_pinned_is_not_held_against_it():
    assert faults(seen=observed(shown({PAUSED_REPLICAS: "0"}, replicas=0))) == []


def test_a_patch_that_was_not_made_is_a_deviation():
    assert faults(known=storm()) == [Fault.NOT_APPLIED]


def test_it_is_retried_after_a_while_and_told_once():
    """Case 18: retried, then alerted."""
    stuck = verify(*both(config(model(schedule=OFFICE)), observed(shown(ASLEEP, replicas=1)), now=NIGHT))
    first = follow_up(stuck, {}, (), NIGHT)
    assert (first.retry, first.tell) == ((), ())
    later = follow_up(stuck, first.first_seen, first.told, NIGHT + RETRY_AFTER)
    assert (later.retry, later.tell) == (stuck, ())
    told = follow_up(stuck, later.first_seen, later.told, NIGHT + TELL_AFTER)
    assert told.tell == stuck
    again = follow_up(stuck, told.first_seen, told.told, NIGHT + 9 * HOUR)
    assert (again.retry, again.tell) == (stuck, ())
    gone = follow_up((), again.first_seen, again.told, NIGHT + 10 * HOUR)
    assert (gone.recovered, gone.first_seen, gone.told) == (("chat/still-running",), {}, frozenset())


def test_a_load_and_an_empty_node_are_given_the_time_they_are_allowed():
    slow = config(model(startup_seconds=7200))
    (loading,) = verify(*both(slow, observed(shown(replicas=Replicas(1, 1, 0)))))
    assert loading.patience == 2 * HOUR + 15 * MINUTE
    pools = (replace(SPOT_POOL, consolidate_after_minutes=60),)
    left = observed(shown(ASLEEP, replicas=0), [node("i-1")])
    (standing,) = verify(*both(config(model(schedule=OFFICE), node_pools=pools), left, now=NIGHT))
    assert standing.patience == 75 * MINUTE


def test_a_deviation_that_comes_back_is_given_its_time_again():
    stuck = verify(*both(config(model(schedule=OFFICE)), observed(shown(ASLEEP, replicas=1)), now=NIGHT))
    gone = follow_up((), {"chat/still-running": NIGHT}, (), NIGHT + MINUTE)
    back = follow_up(stuck, gone.first_seen, gone.told, NIGHT + TELL_AFTER)
    assert (back.retry, back.tell) == ((), ())


def test_the_second_road_asks_the_deployment_for_what_keda_was_told():
    wanted, seen = both(config(model(schedule=OFFICE)), observed(shown(ASLEEP, replicas=1)), now=NIGHT)
    (patch,) = second_road(verify(wanted, seen), wanted, seen)
    assert (patch.kind, patch.name, patch.body) == ("Deployment", "vllm-chat", {"spec": {"replicas": 0}})
    wanted, seen = both(config(model(min_replicas=2)), observed(shown(ASLEEP, replicas=0, minimum=2)))
    (patch,) = second_road(verify(wanted, seen)[1:], wanted, seen)
    assert patch.body == {"spec": {"replicas": 2}}


def test_the_second_road_leaves_alone_what_only_needs_time():
    loading = observed(shown(replicas=Replicas(1, 1, 0)))
    wanted, seen = both(seen=loading)
    assert second_road(verify(wanted, seen), wanted, seen) == ()


def test_one_object_that_cannot_be_patched_does_not_stand_in_the_way_of_another():
    """Case 17: each object is a patch of its own."""
    seen = observed({"chat": shown(minimum=9), "code": shown(minimum=9)})
    assert [patch.subject for patch in patches(config(model(), model("code")), seen)] == ["chat", "code"]


def test_fields_that_are_absent_are_set():
    bare = replace(shown(), scaled_object=ScaledObject())
    (patch,) = patches(seen=observed(bare))
    assert patch.body == {"spec": {"minReplicaCount": 1, "maxReplicaCount": 10}}
