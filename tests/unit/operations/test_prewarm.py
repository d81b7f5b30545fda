"""At the first sign a replacement is asked for, once per replica, for a limited time."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations.losses import SignKind
from genai_finops.operations.prewarm import PrewarmPolicy, at_risk
from tests.unit.operations.worlds import HOUR, MINUTE, NOW, SECOND, losses, node, sign, signs_of

POLICY = PrewarmPolicy(hold_seconds=1200)
HOLD = timedelta(seconds=1200)


def risk(signs, nodes, now=NOW, model="chat"):
    by_instance = {one.instance_id: one for one in nodes}
    return at_risk(losses(*signs), by_instance, POLICY, now).get(model)


def minimum(signs, nodes, now=NOW, *, least=1, most=10):
    found = risk(signs, nodes, now)
    return found.minimum(least, most) if found else least


@pytest.mark.parametrize("kind", list(SignKind))
def test_the_first_sign_of_any_kind_asks_for_a_replacement_at_once(kind):
    """Case 8."""
    assert minimum([sign(kind=kind)], [node(replicas={"chat": 1})]) == 2


def test_ten_losses_in_a_minute_add_up():
    signs = [sign(f"i-{number}", at=NOW - number * 6 * SECOND) for number in range(10)]
    nodes = [node(f"i-{number}", {"chat": 1}) for number in range(10)]
    assert minimum(signs, nodes, most=20) == 11


def test_never_above_the_maximum():
    assert minimum([sign()], [node(replicas={"chat": 8})], most=4) == 4


def test_the_same_loss_seen_as_three_events_counts_once():
    signs = [sign(kind=kind) for kind in (SignKind.REBALANCE, SignKind.WARNING, SignKind.GONE)]
    assert minimum(signs, [node(replicas={"chat": 1})]) == 2


def test_a_model_that_load_has_scaled_up_is_replaced_too():
    """From one to three would go unnoticed by a model that runs eight."""
    assert minimum([sign(serving={"chat": 8})], [node(replicas={"chat": 2})]) == 10


def test_a_second_loss_adds_its_own_replicas_and_not_those_warmed_for_the_first():
    signs = [sign("i-1", at=NOW - MINUTE, serving={"chat": 5}), sign("i-2", serving={"chat": 6})]
    assert minimum(signs, [node("i-1", {"chat": 1}), node("i-2", {"chat": 1})]) == 7


def test_a_replica_that_has_gone_needs_no_raised_minimum():
    """Its ReplicaSet has asked for another one already."""
    assert minimum([sign()], [node(replicas={}, draining={"chat": 1})]) == 1
    assert minimum([sign()], []) == 1


def test_an_instance_first_heard_of_when_it_is_gone_warms_nothing():
    """Case 3."""
    assert minimum([sign(kind=SignKind.GONE)], [node("i-other", {"chat": 1})]) == 1


def test_a_sign_is_believed_for_a_limited_time():
    nodes = [node(replicas={"chat": 1})]
    assert minimum([sign()], nodes, NOW + HOLD - SECOND) == 2
    assert minimum([sign()], nodes, NOW + HOLD) == 1


def test_a_warning_long_after_a_recommendation_is_believed_anew():
    signs = [sign(kind=SignKind.REBALANCE, at=NOW - HOUR), sign()]
    assert minimum(signs, [node(replicas={"chat": 1})], NOW + 19 * MINUTE) == 2


def test_a_recommendation_that_is_repeated_is_not_believed_longer():
    signs = [sign(kind=SignKind.REBALANCE, at=NOW - minutes * MINUTE, event_id=str(minutes)) for minutes in range(30)]
    assert minimum(signs, [node(replicas={"chat": 1})]) == 1


def test_a_node_that_the_cluster_itself_removes_warms_nothing():
    assert minimum([sign(kind=SignKind.GONE, voluntary=True)], [node(replicas={"chat": 1})]) == 1


def test_models_on_other_nodes_are_not_touched():
    assert risk([sign()], [node(replicas={"chat": 1}), node("i-2", {"code": 1})], model="code") is None


def test_what_is_told_of_the_risk():
    found = risk([sign()], [node(replicas={"chat": 2})])
    assert (found.replicas, found.until, found.instance_ids) == (2, NOW + HOLD, ("i-1",))


def test_the_risk_lasts_as_long_as_the_latest_sign_is_believed():
    signs = [sign(kind=SignKind.REBALANCE, at=NOW - 10 * MINUTE), sign("i-2"), sign("i-3", at=NOW - MINUTE)]
    nodes = [node("i-1", {"chat": 1}), node("i-2", {"chat": 1}), node("i-3", {"chat": 1})]
    assert risk(signs, nodes).until == NOW + HOLD


def test_a_time_too_short_for_any_load_is_refused():
    with pytest.raises(ValueError, match="60 seconds at least, not 59"):
        PrewarmPolicy(59)
    assert PrewarmPolicy(60).hold == MINUTE


@given(st.lists(signs_of("i-1", "i-2", "i-3"), max_size=8), st.data())
def test_order_of_arrival_and_repetition_never_matter(signs, data):
    nodes = [node("i-1", {"chat": 1, "code": 1}), node("i-2", {"chat": 2})]
    shuffled = data.draw(st.permutations([*signs, *signs]))
    assert risk(shuffled, nodes) == risk(signs, nodes)


@given(st.lists(signs_of("i-1", "i-2", "i-3"), max_size=8), st.integers(0, 5), st.integers(1, 9))
def test_between_the_minimum_and_the_maximum_and_by_no_more_than_is_at_risk(signs, least, more):
    nodes = [node("i-1", {"chat": 1}), node("i-2", {"chat": 2})]
    found = minimum(signs, nodes, least=least, most=least + more)
    served = max([least, *(one.serving.get("chat", 0) for one in signs)])
    assert least <= found <= min(least + more, served + 3)
