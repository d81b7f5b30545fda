"""The same loss seen as several events is one fact, whatever came first."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations.losses import Sign, SignKind, merge
from tests.unit.operations.worlds import MINUTE, NOW, POOL, losses, sign, signs_of


def test_a_rebalance_a_warning_and_a_state_change_of_one_instance_are_one_loss():
    (loss,) = losses(
        sign(kind=SignKind.GONE, at=NOW + 5 * MINUTE),
        sign(kind=SignKind.REBALANCE, at=NOW),
        sign(kind=SignKind.WARNING, at=NOW + 3 * MINUTE),
    )
    assert (loss.kind, loss.at, loss.first_at) == (SignKind.GONE, NOW + 5 * MINUTE, NOW)
    assert loss.spot_lost_at == NOW + 3 * MINUTE


def test_a_worse_sign_wins_even_when_it_comes_first():
    (loss,) = losses(sign(at=NOW), sign(kind=SignKind.REBALANCE, at=NOW + MINUTE))
    assert loss.kind is SignKind.WARNING


def test_the_same_sign_again_changes_nothing():
    """Case 9: the same event id twice, and again after a crash, when the node has already begun to drain."""
    first = sign(replicas={"chat": 2}, serving={"chat": 4})
    again = replace(first, at=NOW + MINUTE, replicas={"chat": 1}, serving={"chat": 6}, voluntary=True)
    assert losses(first, first, again, again) == losses(first)
    assert losses(again, first) == losses(first)


def test_an_event_has_one_name_in_a_store():
    assert sign().key == replace(sign(), at=NOW + MINUTE, replicas={"chat": 1}).key
    assert len({sign().key, sign(kind=SignKind.GONE).key, sign("i-2").key, sign(event_id="x").key}) == 4


def test_an_instance_that_nobody_knows_is_recorded_all_the_same():
    """Case 1."""
    (loss,) = losses(Sign("i-unknown", SignKind.WARNING, NOW, "e"))
    assert (loss.pool, loss.node, loss.node_pool, loss.capacity_type, loss.replicas) == (None, None, None, None, {})


def test_what_one_sign_does_not_know_another_tells():
    (loss,) = losses(Sign("i-1", SignKind.REBALANCE, NOW, "e"), sign(replicas={"chat": 1}))
    assert (loss.pool, loss.node, loss.replicas) == (POOL, "node-i-1", {"chat": 1})


def test_what_has_not_happened_yet_is_not_known():
    assert merge([sign(at=NOW + MINUTE)], until=NOW) == ()


@pytest.mark.parametrize(
    ("given_sign", "lost"),
    [
        (sign(), True),
        (sign(capacity_type=None), True),
        (sign(kind=SignKind.REBALANCE), False),
        (sign(kind=SignKind.SCHEDULED_CHANGE), False),
        (sign(kind=SignKind.RESERVATION, capacity_type="reserved"), False),
        (sign(kind=SignKind.GONE), True),
        (sign(kind=SignKind.GONE, voluntary=True), False),
        (sign(kind=SignKind.GONE, capacity_type="on-demand"), False),
        (sign(kind=SignKind.GONE, capacity_type=None), False),
    ],
)
def test_spot_is_lost_by_a_warning_or_when_an_instance_goes_that_nobody_here_has_ended(given_sign, lost):
    (loss,) = losses(given_sign)
    assert (loss.spot_lost_at is not None) is lost


def test_a_sign_without_a_zone_in_its_time_is_refused():
    with pytest.raises(ValueError, match="has no zone; add one"):
        sign(at=NOW.replace(tzinfo=None))


@given(st.lists(signs_of("i-1", "i-2", "i-3"), max_size=12), st.data())
def test_order_of_arrival_and_repetition_never_matter(signs, data):
    repeated = [*signs, *data.draw(st.lists(st.sampled_from(signs), max_size=5) if signs else st.just([]))]
    assert losses(*data.draw(st.permutations(repeated))) == losses(*signs)


@given(st.lists(signs_of("i-1", "i-2", "i-3"), max_size=12))
def test_each_instance_is_lost_once(signs):
    assert sorted(loss.instance_id for loss in losses(*signs)) == sorted({one.instance_id for one in signs})
