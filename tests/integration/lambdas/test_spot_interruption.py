"""EC2 takes nodes away: what the queue brings ends in facts, in a cluster that is ready, and in one message."""

import json
from datetime import timedelta

import pytest

from lambdas.adapters.facts import Fact
from lambdas.memory import SIGN
from lambdas.reconcile import ReconcileError
from tests.integration.lambdas.events import fixture_event
from tests.integration.lambdas.world import INSTANCE, NOW, event, health, model, rebalance, server, state_change
from tests.support import kubernetes_objects as objects
from tests.support.kubernetes_api import Answer


def test_at_a_warning_the_replacement_is_requested_in_the_same_invocation(world):
    """Case 8."""
    assert world.spot(event()) == []
    assert world.scaled()["spec"]["minReplicaCount"] == 2


@pytest.mark.parametrize("name", ["spot_itn", "rebalance", "capacity_reservation_itn", "health_scheduled"])
def test_any_announcement_of_a_loss_asks_for_a_replacement(world, name):
    assert world.spot(fixture_event(name)) == []
    assert world.scaled()["spec"]["minReplicaCount"] == 2


def test_a_state_change_of_a_running_node_is_a_sign_too(world):
    assert world.spot(fixture_event("state_change")) == []
    (fact,) = world.facts(SIGN)
    assert (fact.what.kind, fact.what.voluntary, fact.what.replicas) == ("state-change", False, {"chat": 1})


def test_an_instance_that_nobody_knows_is_recorded_and_harms_nothing(world):
    """Case 1."""
    assert world.spot(event(instance="i-0123456789abcdef9")) == []
    assert [fact.what.instance_id for fact in world.facts(SIGN)] == ["i-0123456789abcdef9"]
    assert world.patches() == []


def test_an_instance_of_another_cluster_is_ignored_and_acknowledged(world):
    """Case 2."""
    assert world.spot(event(instance=world.instance(cluster="theirs"))) == []
    assert world.facts(SIGN) == []
    assert world.lists().count("nodes") == 1


def test_an_instance_of_ours_without_a_node_is_known_by_what_ec2_says(world):
    assert world.spot(event(instance=world.instance())) == []
    (fact,) = world.facts(SIGN)
    assert (fact.what.pool.instance_type, fact.what.capacity_type) == ("inf2.xlarge", "spot")


def test_an_instance_that_has_gone_before_it_is_seen_is_recorded_and_nothing_is_warmed(world):
    """Case 3."""
    world.api.delete("nodes", "n1")
    assert world.spot(state_change("terminated", instance=world.instance())) == []
    assert len(world.facts(SIGN)) == 1
    assert world.patches() == []


@pytest.mark.parametrize("state", ["pending", "running"])
def test_an_instance_that_starts_is_no_loss(world, state):
    assert world.spot(state_change(state)) == []
    assert world.facts(SIGN) == []


def test_a_node_that_the_cluster_itself_removes_is_no_loss_of_spot(world):
    leaving = objects.node("n1", instance=INSTANCE, zone="eu-west-1b", taints=({"key": "karpenter.sh/disrupted"},))
    world.api.put(leaving)
    assert world.spot(state_change("shutting-down")) == []
    (fact,) = world.facts(SIGN)
    assert fact.what.voluntary


def test_a_warning_counts_though_karpenter_has_marked_the_node_already(world):
    world.api.put(objects.node("n1", instance=INSTANCE, taints=({"key": "karpenter.sh/disrupted"},)))
    assert world.spot(event()) == []
    assert world.scaled()["spec"]["minReplicaCount"] == 2


@pytest.mark.parametrize("changes", [{"service": "RDS"}, {"category": "accountNotification"}])
def test_health_events_of_other_services_and_kinds_are_dropped(world, changes):
    """Case 4."""
    assert world.spot(health(INSTANCE, **changes)) == []
    assert world.facts(SIGN) == []
    assert world.api.requests == []


def test_of_a_health_event_the_known_instance_is_acted_on_and_the_other_recorded(world):
    """Case 5."""
    assert world.spot(health(INSTANCE, "i-0ffffffffffffffff")) == []
    assert {fact.what.instance_id for fact in world.facts(SIGN)} == {INSTANCE, "i-0ffffffffffffffff"}
    assert world.scaled()["spec"]["minReplicaCount"] == 2


def nodes(world, count, zone="eu-west-1b"):
    ids = [f"i-{number:017x}" for number in range(1, count + 1)]
    for number, id in enumerate(ids):
        world.api.put(objects.node(f"s{number}", instance=id, zone=zone))
        world.api.put(server(f"chat-s{number}", node=f"s{number}"))
    return ids


def test_thirty_recommendations_alone_never_shut_spot(world):
    """Case 6."""
    ids = nodes(world, 30)
    assert world.spot(*(rebalance(instance=id) for id in ids)) == []
    assert "nodes" not in world.limits()
    assert world.scaled()["spec"]["minReplicaCount"] == 4  # capped at the maximum


def test_five_warnings_in_one_pool_shut_spot_once_and_are_told_once(world):
    """Case 7."""
    ids = nodes(world, 5)
    assert world.spot(*(event(instance=id) for id in ids)) == []
    world.tick()
    assert world.limits()["nodes"] == "0"
    assert "nodes" not in world.limits("inf2-on-demand")
    rests = [subject for subject, _ in world.mail() if "rests until" in subject]
    assert len(rests) == 1
    world.pass_(hours=3)
    world.tick()
    assert "nodes" not in world.limits()


def test_an_incident_is_told_once_with_what_was_lost_and_done_and_costs(world):
    ids = nodes(world, 3)
    world.spot(*(event(instance=id) for id in ids[:2]))
    world.spot(rebalance(instance=ids[0]), event(instance=ids[2]))
    assert world.mail() == []  # it may still grow
    world.pass_(minutes=5)
    world.tick()
    world.tick()
    ((subject, text),) = world.mail()
    assert "3 x inf2.xlarge in eu-west-1b reclaimed" in subject
    assert "chat: 3 replicas on these nodes" in text
    assert "at least 4 replicas" in text
    assert "$0.90 an hour" in text


def test_an_event_that_comes_twice_has_one_effect(world):
    """Case 9."""
    warning = event()
    world.spot(warning)
    before = world.patches()
    assert world.spot(warning, warning) == []
    assert world.patches() == before
    assert len(world.facts(SIGN)) == 1


def test_after_a_crash_between_write_and_acknowledge_the_same_event_has_one_effect(world, monkeypatch):
    """Case 9: the fact is stored, the cluster is changed, and then the function dies."""

    def crash(*_, **__):
        raise SystemExit

    warning = event()
    with monkeypatch.context() as crashing:
        crashing.setattr("lambdas.reconcile._measure", crash)
        with pytest.raises(SystemExit):
            world.spot(warning)
    before = world.patches()
    assert world.spot(warning) == []
    assert world.patches() == before
    assert world.scaled()["spec"]["minReplicaCount"] == 2
    world.pass_(minutes=5)
    world.tick()
    assert len(world.mail()) == 1


def test_after_a_crash_before_anything_was_changed_the_next_run_does_it(world):
    world.api.inject(Answer(hang_up=True), verb="patch")
    with pytest.raises(ReconcileError):
        world.spot(event())
    world.api._rules.clear()
    world.tick()
    assert world.scaled()["spec"]["minReplicaCount"] == 2


def test_the_raised_minimum_goes_back_when_the_sign_has_not_come_true(world):
    world.spot(rebalance())
    world.pass_(minutes=21)
    world.tick()
    assert world.scaled()["spec"]["minReplicaCount"] == 1


@pytest.mark.parametrize("body", ["not json", json.dumps(event(detail={"nothing": 1}))])
def test_a_message_that_cannot_be_read_fails_alone(world, body):
    assert world.spot(body, event()) == ["message-0"]
    assert world.scaled()["spec"]["minReplicaCount"] == 2


def test_an_event_of_another_kind_is_acknowledged(world):
    assert world.spot({**event(), "detail-type": "Anomaly Detected", "source": "aws.ce"}) == []
    assert world.facts(SIGN) == []


def test_what_ec2_said_is_kept_though_the_cluster_does_not_answer(world):
    world.api.inject(Answer(503))
    with pytest.raises(Exception, match="503"):
        world.spot(event(instance=world.instance()))
    assert len(world.facts(SIGN)) == 1


def test_a_retry_adds_what_the_first_reader_could_not_see(world):
    warning = event()
    world.api.inject(Answer(503))
    with pytest.raises(Exception, match="503"):
        world.spot(warning)
    assert world.facts(SIGN)[0].what.pool is None
    world.api._rules.clear()
    world.spot(warning)
    (fact,) = world.facts(SIGN)
    assert (fact.what.node, fact.what.replicas, fact.what.serving) == ("n1", {"chat": 1}, {"chat": 1})


def test_ten_messages_take_one_look_before_and_one_after(world):
    ids = nodes(world, 10)
    world.spot(*(event(instance=id) for id in ids))
    assert sorted(world.lists()) == sorted(["deployments", "nodepools", "nodes", "pods", "scaledobjects"] * 2)


def test_a_replay_of_long_ago_changes_nothing(world):
    assert world.spot(event(at=NOW - timedelta(days=30))) == []
    assert world.patches() == []


def test_a_sleeping_model_loses_nothing(world):
    world.start(models=(model(schedule=None),))
    world.change(
        "scaledobjects", {"metadata": {"annotations": {"genai-finops/hold": "asleep until 2026-03-03T00:00Z"}}}
    )
    world.tick()
    world.sleep()
    world.spot(event())
    assert world.scaled()["spec"]["minReplicaCount"] == 1


def test_facts_survive_as_they_were_written(world):
    world.spot(event())
    (fact,) = world.facts(SIGN)
    assert isinstance(fact, Fact)
    assert (fact.at, fact.what.at) == (NOW, NOW)
