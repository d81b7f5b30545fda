"""Models wake and sleep by the clock, by a person's hold, by what the cluster shows: never by what an event says."""

import json
import threading
from datetime import UTC, date, datetime

import pytest

from genai_finops.operations.holds import HOLD
from genai_finops.operations.pauses import FORCE_ACTIVATION, MEMORY, PAUSED, PAUSED_REPLICAS
from genai_finops.operations.windows import Schedule, SpecialDays, Window, parse_days, parse_time
from lambdas import runtime as runtimes
from lambdas.memory import FOLLOWING
from lambdas.reconcile import ReconcileError, reconcile
from lambdas.scheduled_scaling import handler as module
from tests.integration.lambdas.events import fixture_event
from tests.integration.lambdas.world import NIGHTS, NOW, OFFICE, Context, model, server
from tests.support import kubernetes_objects as objects
from tests.support.kubernetes_api import Answer, DeadEndpoint

SCHEDULER_DEFAULT = {
    "version": "0",
    "id": "x",
    "detail-type": "Scheduled Event",
    "source": "aws.scheduler",
    "detail": "{}",
}


def asleep(world, name="chat"):
    return world.annotations(name).get(PAUSED_REPLICAS) == "0"


def nightly(world, **settings):
    """The model serves at night only, so that it should sleep now."""
    world.start(models=(model(schedule=NIGHTS, **settings),))


def schedule(zone, days, start, end, **settings):
    return Schedule(zone, (Window(parse_days(days), parse_time(start), parse_time(end)),), **settings)


@pytest.mark.parametrize("name", ["scheduler_custom_input", "scheduler_default"])
def test_any_event_of_the_scheduler_leads_to_the_same_look(world, name):
    """Case 31, with the fixtures."""
    nightly(world)
    assert world.tick(fixture_event(name)) == {"changed": ["ScaledObject vllm-chat"]}
    assert asleep(world)


@pytest.mark.parametrize("event", [SCHEDULER_DEFAULT, {"action": "wake", "model": "chat"}, {}, {"action": 7}])
def test_what_the_event_says_makes_no_difference(world, event):
    """Case 31."""
    nightly(world)
    world.tick(event)
    assert asleep(world)


def at(month, day, hour, minute=0):
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


NEW_YORK = schedule("America/New_York", "Sun", "03:00", "20:00", wake_lead_minutes=45)
HOLIDAY = SpecialDays(date(2026, 3, 2), date(2026, 3, 2))
HOURS = {
    "case 10": (at(3, 1, 17, 30), schedule("Pacific/Auckland", "Mon-Fri", "06:00", "20:00"), True),
    "case 11, before midnight": (at(3, 2, 23, 30), schedule("UTC", "Mon", "22:00", "06:00"), True),
    "case 11, after it": (at(3, 3, 2), schedule("UTC", "Mon", "22:00", "06:00"), True),
    "case 13": (at(3, 2, 12), schedule("UTC", "Sun-Fri", "08:00", "18:00"), True),
    "case 33": (at(3, 8, 6, 15), NEW_YORK, True),
    "case 33, a minute earlier": (at(3, 8, 6, 14), NEW_YORK, False),
    "case 34, the second 01:30": (at(11, 1, 6, 30), schedule("America/New_York", "Sun", "00:00", "01:30"), False),
    "a holiday": (NOW, schedule("UTC", "Mon-Fri", "08:00", "18:00", special_days=(HOLIDAY,)), False),
}


@pytest.mark.parametrize(("when", "found", "is_awake"), HOURS.values(), ids=HOURS)
def test_a_model_sleeps_outside_its_hours_and_only_there(world, when, found, is_awake):
    world.clock.time = when
    world.start(models=(model(schedule=found),))
    world.tick()
    assert asleep(world) is not is_awake


def test_a_model_of_several_days_is_awake_in_the_nights_between(world):
    """Case 12: Mon 08:00 to Fri 18:00."""
    windows = (
        Window(parse_days("Mon"), parse_time("08:00"), parse_time("24:00")),
        Window(parse_days("Tue-Thu"), 0, parse_time("24:00")),
        Window(parse_days("Fri"), 0, parse_time("18:00")),
    )
    world.clock.time = datetime(2026, 3, 3, 0, 1, tzinfo=UTC)
    world.start(models=(model(schedule=Schedule("UTC", windows)),))
    world.tick()
    assert not asleep(world)


def test_a_model_woken_by_hand_sleeps_again_and_a_hold_keeps_it_awake(world):
    """Case 14."""
    nightly(world)
    world.tick()
    world.change("scaledobjects", {"metadata": {"annotations": {PAUSED_REPLICAS: None, MEMORY: None}}})
    world.tick()
    assert asleep(world)
    world.change("scaledobjects", {"metadata": {"annotations": {HOLD: "awake until 2026-03-02T12:00:00Z"}}})
    world.tick()
    assert not asleep(world)
    world.pass_(hours=3)
    world.tick()
    assert asleep(world)


def test_what_is_restored_is_the_original_however_often_sleep_was_asked_for(world):
    """Cases 15 and 16."""
    world.change("scaledobjects", {"metadata": {"annotations": {PAUSED_REPLICAS: "2"}}})
    nightly(world)
    world.tick()
    world.tick()
    assert asleep(world)
    world.clock.time = datetime(2026, 3, 2, 21, 0, tzinfo=UTC)
    world.tick()
    assert world.annotations() == {PAUSED_REPLICAS: "2"}


def test_a_scaled_object_without_annotations_is_put_to_sleep_too(world):
    """Case 16."""
    assert "annotations" not in world.scaled()["metadata"]
    nightly(world)
    world.tick()
    assert asleep(world)


def test_one_patch_that_is_refused_does_not_stop_the_other_and_fails_the_invocation(world):
    """Case 17."""
    world.serve("code")
    world.start(models=(model(schedule=NIGHTS), model("code", schedule=NIGHTS)))
    world.api.inject(Answer(403), verb="patch", name="vllm-chat")
    with pytest.raises(ReconcileError, match=r"the role needs patch on scaledobjects\.keda\.sh"):
        world.tick()
    assert (asleep(world), asleep(world, "code")) == (False, True)


def test_a_pause_that_keda_does_not_follow_is_tried_by_another_road_and_told_once(world):
    """Case 18."""
    nightly(world)
    world.tick()
    world.change("scaledobjects", {"status": {"conditions": [{"type": "Paused", "status": "True"}]}})
    world.pass_(minutes=6)
    world.tick()
    assert ("deployments", "vllm-chat") in world.patches()
    assert world.mail() == []
    for _ in range(8):
        world.pass_(minutes=5)
        world.tick()
    ((subject, text),) = world.mail()
    assert subject == "demo: chat did not follow"
    assert "chat should sleep and runs 1 replicas" in text


def test_what_recovers_and_fails_again_is_told_again(world):
    nightly(world)
    for _ in range(2):
        for _ in range(9):
            world.pass_(minutes=5)
            world.tick()
        world.sleep()
        world.api.delete("nodes", "n1") if ("nodes", None, "n1") in world.api._objects else None
        world.tick()
        world.change("deployments", {"spec": {"replicas": 1}, "status": {"replicas": 1, "readyReplicas": 1}})
    assert [subject for subject, _ in world.mail()] == ["demo: chat did not follow"] * 2


def test_a_message_that_could_not_be_sent_is_sent_the_next_time(world):
    nightly(world)
    for _ in range(7):
        world.pass_(minutes=5)
        if world.clock.time.minute >= 30:
            break
        world.tick()
    good = world.runtime.notifier._topic_arn
    world.runtime.notifier._topic_arn = good + "-gone"
    world.pass_(minutes=5)
    with pytest.raises(ReconcileError, match="not told"):
        world.tick()
    world.runtime.notifier._topic_arn = good
    world.tick()
    assert [subject for subject, _ in world.mail()] == ["demo: chat did not follow"]


def test_paused_false_is_no_pause(world):
    """Case 19."""
    world.change("scaledobjects", {"metadata": {"annotations": {PAUSED: "false"}}})
    world.tick()
    assert world.patches() == []
    assert world.mail() == []


def slept(world):
    """Asleep since the morning, by us."""
    nightly(world)
    world.tick()
    world.sleep()
    world.clock.time = datetime(2026, 3, 2, 20, 30, tzinfo=UTC)


@pytest.mark.parametrize("status", [None, 503, 404, 403])
def test_a_model_wakes_whatever_prometheus_says(world, status):
    """Case 20."""
    slept(world)
    if status:
        world.api.inject(Answer(status), verb="proxy")
    world.tick()
    found = world.annotations()
    assert (found.get(PAUSED_REPLICAS), found[FORCE_ACTIVATION]) == (None, "true")
    world.change("deployments", {"spec": {"replicas": 1}, "status": {"replicas": 1, "readyReplicas": 1}})
    world.tick()
    assert world.annotations() == {}


def test_a_busy_model_finishes_first_and_then_sleeps(world):
    world.clock.time = datetime(2026, 3, 2, 20, 1, tzinfo=UTC)
    world.start(models=(model(schedule=OFFICE),))
    world.requests["chat"] = 3
    world.tick()
    assert not asleep(world)
    world.requests["chat"] = 0
    world.tick()
    assert asleep(world)


def test_a_busy_model_sleeps_at_its_limit(world):
    world.clock.time = datetime(2026, 3, 2, 20, 16, tzinfo=UTC)
    world.start(models=(model(schedule=OFFICE, sleep_busy_limit_minutes=15),))
    world.requests["chat"] = 3
    world.tick()
    assert asleep(world)


def test_a_pod_that_cannot_end_is_reported_as_draining(world):
    """Case 21."""
    nightly(world)
    world.tick()
    world.sleep()
    world.api.put(server("chat-x", node="n1", ends_by="2026-03-02T10:05:00Z"))
    for _ in range(9):
        world.pass_(minutes=5)
        world.tick()
    ((_, text),) = world.mail()
    assert "chat sleeps as soon as 1 replicas have stopped; they still hold their nodes" in text


def test_a_token_refused_once_is_signed_again(world):
    """Case 22."""
    nightly(world)
    world.api.inject(Answer(401), times=1)
    world.tick()
    assert asleep(world)


def test_a_role_that_the_cluster_does_not_know_is_said_so_at_once(world):
    """Case 22: a clear error and no storm."""
    world.api.inject(Answer(401))
    with pytest.raises(Exception, match="has the role an access entry of cluster demo"):
        world.tick()
    assert len(world.api.requests) == 2


def test_an_api_server_that_does_not_answer_fails_within_seconds(world):
    """Case 23."""
    from moto.eks.models import eks_backends

    with DeadEndpoint() as dead:
        eks_backends["123456789012"]["us-east-1"].clusters["demo"].endpoint = dead.url
        world.start()
        started = datetime.now(UTC)
        with pytest.raises(Exception, match="no connection within"):
            world.tick()
        assert (datetime.now(UTC) - started).total_seconds() < 3


def test_a_model_without_its_scaled_object_is_told_once_and_the_others_are_served(world):
    world.start(models=(model("new"), model(schedule=NIGHTS)))
    world.tick()
    world.tick()
    assert asleep(world)
    ((_, text),) = world.mail()
    assert "new has no ScaledObject vllm-new" in text


def test_somebody_who_changes_the_object_meanwhile_is_not_overwritten(world):
    nightly(world)
    hold = {"metadata": {"annotations": {HOLD: "awake until 2026-03-02T18:00:00Z"}}}
    world.api.before_next_patch(lambda: world.change("scaledobjects", hold))
    world.tick()
    assert world.annotations() == hold["metadata"]["annotations"]


def test_somebody_who_never_stops_changing_it_ends_the_attempts(world):
    nightly(world)
    world.api.inject(Answer(409), verb="patch")
    with pytest.raises(ReconcileError, match="changed by somebody else 4 times"):
        world.tick()
    assert len(world.patches()) == 4


def test_two_reconciles_at_once_end_in_the_same_state_and_say_it_once(world):
    world.serve("code", annotations={PAUSED_REPLICAS: "2"})
    missing = model("missing")
    world.start(models=(model(schedule=NIGHTS), model("code", schedule=NIGHTS), missing))
    barrier, errors = threading.Barrier(4), []

    def run(runtime):
        barrier.wait()
        try:
            reconcile(runtime, because="test")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(world.another(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert asleep(world)
    assert json.loads(world.annotations("code")[MEMORY])["before"] == "2"
    assert len(world.mail()) == 1


def test_a_tick_that_changes_nothing_looks_once_and_writes_nothing(world):
    world.tick()
    world.api.requests.clear()
    world.tick()
    assert sorted(world.lists()) == ["deployments", "nodepools", "nodes", "pods", "scaledobjects"]
    assert world.patches() == []


def test_a_day_without_any_run_is_made_up_for_by_the_next(world):
    world.start(models=(model(schedule=OFFICE),))
    world.tick()
    world.pass_(hours=11)  # the boundary at 20:00 came while nothing ran
    world.tick()
    assert asleep(world)
    world.sleep()
    world.pass_(hours=13)
    world.tick()
    assert world.annotations()[FORCE_ACTIVATION] == "true"


def test_what_was_followed_is_forgotten_when_it_is_well(world):
    nightly(world)
    world.tick()
    assert world.facts(FOLLOWING)[0].what.first_seen
    world.sleep()
    world.api.delete("nodes", "n1")
    world.tick()
    assert not world.facts(FOLLOWING)[0].what.first_seen


def test_the_function_makes_its_runtime_of_its_environment_once(world, monkeypatch):
    monkeypatch.setattr(module, "runtime", runtimes.runtime)
    module.handler({}, Context())
    module.handler({}, Context())
    assert runtimes.runtime.cache_info().misses == 1
    assert len(world.lists()) == 10


def test_a_function_that_is_not_told_what_it_needs_names_it_all(world, monkeypatch):
    monkeypatch.setattr(module, "runtime", runtimes.runtime)
    monkeypatch.delenv("FACTS_TABLE")
    monkeypatch.delenv("CLUSTER_NAME")
    with pytest.raises(Exception, match=r"FACTS_TABLE is missing\n.*CLUSTER_NAME is missing"):
        module.handler({}, Context())


def test_placeholders_sleep_with_their_model(world):
    world.api.put(objects.deployment("warm-chat", replicas=2, total=2, ready=2))
    nightly(world, placeholders=2, placeholder_deployment="warm-chat")
    world.tick()
    assert world.api.read("deployments", "warm-chat", objects.NAMESPACE)["spec"]["replicas"] == 0
