"""One notification per incident: what was lost, and what the answer costs."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations.breaker import Open
from genai_finops.operations.incidents import GAP, LONGEST, SETTLE, cost, incidents, openings_to_tell, to_tell
from genai_finops.operations.losses import Pool, SignKind
from tests.unit.operations.worlds import HOUR, MINUTE, NOW, OTHER_POOL, POOL, PRICES, SECOND, losses, sign, signs_of

ONE = {"chat": 1}


def found(*signs):
    return incidents(losses(*signs))


def test_losses_close_in_time_are_one_incident():
    near = sign("i-1", replicas=ONE), sign("i-2", at=NOW + GAP, replicas=ONE)
    far = sign("i-3", at=NOW + 2 * GAP + SECOND, replicas=ONE)
    assert [sorted(one.instance_ids) for one in found(*near, far)] == [["i-1", "i-2"], ["i-3"]]


def test_a_storm_of_hours_is_told_by_the_hour():
    storm = [sign(f"i-{number}", at=NOW + number * GAP, replicas=ONE) for number in range(20)]
    assert all(one.losses[-1].first_at - one.started <= LONGEST for one in found(*storm))
    assert len(found(*storm)) == 3


def test_an_instance_without_a_model_or_taken_away_by_the_cluster_is_no_incident():
    assert found(sign(), sign("i-2", SignKind.GONE, voluntary=True, replicas=ONE)) == ()


def test_it_is_told_once_when_it_has_settled():
    (incident,) = found(sign(replicas=ONE))
    assert to_tell([incident], [], NOW + SETTLE - SECOND) == ()
    assert to_tell([incident], [], NOW + SETTLE) == (incident,)
    assert to_tell([incident], incident.instance_ids, NOW + SETTLE) == ()


def test_a_loss_that_is_heard_of_late_joins_the_incident_without_a_second_message():
    (told,) = found(sign("i-1", replicas=ONE))
    (grown,) = found(sign("i-0", at=NOW - MINUTE, replicas=ONE), sign("i-1", replicas=ONE))
    assert to_tell([grown], told.instance_ids, NOW + HOUR) == ()


def test_the_replicas_of_all_its_nodes_are_counted():
    (incident,) = found(sign("i-1", replicas={"chat": 2, "code": 1}), sign("i-2", replicas=ONE))
    assert incident.replicas == {"chat": 3, "code": 1}


def test_replacements_cost_what_the_nodes_cost_or_more_while_spot_rests():
    (incident,) = found(sign("i-1", replicas=ONE), sign("i-2", replicas=ONE))
    spot = cost(incident, PRICES, spot_rests=False)
    assert (spot.doubled, spot.without_spot) == (Decimal("0.60"), 0)
    on_demand = cost(incident, PRICES, spot_rests=True)
    assert (on_demand.doubled, on_demand.without_spot) == (Decimal("1.52"), Decimal("0.92"))


def test_a_price_that_is_not_known_is_said():
    (incident,) = found(sign(pool=Pool("inf9.xlarge", "us-east-1a"), replicas=ONE))
    assert cost(incident, PRICES, spot_rests=False).unpriced == ("inf9.xlarge",)


def test_the_breaker_is_told_once_per_rest():
    """Case 7."""
    rest = {POOL: Open(NOW, NOW + HOUR, 1), OTHER_POOL: Open(NOW, NOW + HOUR, 1)}
    assert openings_to_tell(rest, {}) == rest
    assert openings_to_tell(rest, {POOL: NOW + HOUR}) == {OTHER_POOL: rest[OTHER_POOL]}
    again = {POOL: Open(NOW + 2 * HOUR, NOW + 4 * HOUR, 2)}
    assert openings_to_tell(again, {POOL: NOW + HOUR}) == again


@given(st.lists(signs_of("i-1", "i-2", "i-3", "i-4"), max_size=10), st.data())
def test_order_of_arrival_never_matters_and_every_instance_is_in_one_incident_at_most(signs, data):
    grouped = found(*signs)
    assert found(*data.draw(st.permutations(signs))) == grouped
    instances = [instance for one in grouped for instance in one.instance_ids]
    assert len(instances) == len(set(instances))
