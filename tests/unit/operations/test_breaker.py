"""Spot of a pool rests after a storm, longer each time, and never flaps."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_finops.operations.breaker import BreakerPolicy, Closed, Open, open_pools, shuts, state
from genai_finops.operations.losses import Pool, Sign, SignKind
from tests.unit.operations.worlds import DAY, HOUR, MINUTE, NOW, OTHER_POOL, POOL, SECOND, losses, sign, storm

POLICY = BreakerPolicy()


def breaker(signs, now=NOW, policy=POLICY):
    return state(losses(*signs), policy, now)


def test_five_warnings_within_half_an_hour_open_it():
    """Case 7."""
    assert breaker(storm(5, first=NOW - 20 * MINUTE, every=5 * MINUTE)) == Open(NOW, NOW + HOUR, 1)


def test_four_do_not():
    assert breaker(storm(4)) == Closed()


def test_five_over_more_than_half_an_hour_do_not():
    assert breaker(storm(5, first=NOW - 30 * MINUTE, every=7.5 * MINUTE)) == Closed()


def test_thirty_rebalance_recommendations_do_not():
    """Case 6."""
    assert breaker(storm(30, every=SECOND, kind=SignKind.REBALANCE)) == Closed()


def test_one_loss_reported_as_rebalance_warning_and_state_change_counts_once():
    several = [
        sign(one.instance_id, kind, one.at + seconds * SECOND)
        for one in storm(4)
        for seconds, kind in enumerate((SignKind.REBALANCE, SignKind.WARNING, SignKind.GONE))
    ]
    assert breaker(several) == Closed()


def test_nodes_that_scale_in_do_not():
    assert breaker(storm(30, every=SECOND, kind=SignKind.GONE, voluntary=True)) == Closed()


def test_it_closes_after_its_cooldown():
    last = storm()[-1].at
    assert breaker(storm(), last + HOUR - SECOND) == Open(last, last + HOUR, 1)
    assert breaker(storm(), last + HOUR) == Closed()


def test_losses_while_it_rests_prolong_the_rest_of_the_same_storm():
    more = storm(10, every=3 * MINUTE)
    assert breaker(more, more[-1].at) == Open(more[4].at, more[-1].at + HOUR, 1)


def test_a_pool_that_trips_again_rests_twice_as_long():
    first, second = storm(first=NOW - 4 * HOUR), storm(first=NOW - 8 * MINUTE, name="again")
    assert breaker([*first, *second]) == Open(NOW, NOW + 2 * HOUR, 2)


def test_the_rest_doubles_a_limited_number_of_times():
    storms = [one for hours in range(0, 20, 2) for one in storm(first=NOW - hours * HOUR - 8 * MINUTE, name=hours)]
    assert breaker(storms) == Open(NOW - 14 * HOUR, NOW + 8 * HOUR, 10)


def test_yesterday_s_storm_is_forgotten():
    first, second = storm(first=NOW - DAY - 8 * MINUTE), storm(first=NOW - 8 * MINUTE, name="again")
    assert breaker([*first, *second]) == Open(NOW, NOW + HOUR, 1)


def test_what_happens_later_does_not_change_what_was_true():
    assert breaker([*storm(4), sign("i-5", at=NOW + SECOND)]) == Closed()


def test_pools_are_judged_one_by_one():
    half = [*storm(4), *storm(4, pool=OTHER_POOL)]
    assert open_pools(losses(*half), POLICY, NOW) == {}
    whole = losses(*storm(5), *storm(4, pool=OTHER_POOL))
    assert set(open_pools(whole, POLICY, NOW)) == {POOL}


def test_losses_of_instances_that_nobody_knows_open_nothing():
    unknown = [Sign(f"i-{number}", SignKind.WARNING, NOW, "e") for number in range(9)]
    assert open_pools(losses(*unknown), POLICY, NOW) == {}


def test_a_policy_may_be_as_strict_as_one_loss():
    strict = BreakerPolicy(window_minutes=1, limit=1, cooldown_minutes=1)
    assert breaker([sign()], policy=strict) == Open(NOW, NOW + MINUTE, 1)


@pytest.mark.parametrize(
    ("resting", "zones", "is_shut"),
    [
        ([POOL], "ab", True),
        ([POOL], "abc", True),
        ([POOL], "abcd", False),
        ([POOL, OTHER_POOL], "abcd", True),
        ([POOL, Pool("inf2.8xlarge", "us-east-1a")], "abcd", False),
        ([Pool("g6e.xlarge", "us-east-1a")], "ab", False),
        ([Pool("inf2.xlarge", "us-east-1f")], "ab", False),
        ([], "ab", False),
    ],
)
def test_a_node_pool_is_shut_when_a_third_of_its_zones_are_bad(resting, zones, is_shut):
    opened = dict.fromkeys(resting, Open(NOW, NOW + HOUR, 1))
    assert (shuts(opened, "inf2", [f"us-east-1{zone}" for zone in zones], POLICY) is not None) is is_shut


@pytest.mark.parametrize(
    "wrong",
    [
        {"window_minutes": 0},
        {"limit": 0},
        {"cooldown_minutes": 0},
        {"max_doublings": -1},
        {"max_doublings": 11},
        {"shut_percent_of_zones": 0},
        {"shut_percent_of_zones": 101},
    ],
)
def test_a_policy_without_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=r"breaker needs|1 to 100"):
        BreakerPolicy(**wrong)


SHORT = BreakerPolicy(window_minutes=30, limit=3, cooldown_minutes=60, max_doublings=2)


@st.composite
def histories(draw):
    """Warnings over some days, in bursts and alone."""
    minutes = draw(st.lists(st.integers(-4 * 1440, 0), max_size=30))
    burst = draw(st.lists(st.integers(-4 * 1440, 0), max_size=6))
    minutes += [start + offset for start in burst for offset in (0, 4, 9)]
    return [sign(f"i-{number}", at=NOW + minute * MINUTE) for number, minute in enumerate(minutes)]


@given(histories(), st.data())
def test_order_of_arrival_never_matters(history, data):
    assert breaker(data.draw(st.permutations(history)), policy=SHORT) == breaker(history, policy=SHORT)


@given(histories(), st.integers(0, 3 * 1440))
def test_a_replay_gives_the_same_answer(history, minutes):
    then = NOW - minutes * MINUTE
    known = [one for one in history if one.at <= then]
    assert breaker(history, then, SHORT) == breaker(known, then, SHORT)


@given(histories())
def test_what_a_store_may_forget_changes_nothing(history):
    kept = [one for one in history if one.at > NOW - SHORT.memory]
    full, short = breaker(history, policy=SHORT), breaker(kept, policy=SHORT)
    assert (getattr(full, "until", None), getattr(full, "storm", None)) == (
        getattr(short, "until", None),
        getattr(short, "storm", None),
    )


@settings(max_examples=50)
@given(histories())
def test_it_never_flaps(history):
    """Between opening and closing lies a cooldown, and every opening has a full window of losses behind it."""
    moments = sorted({one.at + offset for one in history for offset in (0 * MINUTE, SECOND)})
    moments += [moment + hours * HOUR for moment in moments for hours in (1, 2, 4)]
    timeline = [(moment, isinstance(breaker(history, moment, SHORT), Open)) for moment in sorted(set(moments))]
    turns = [
        (after[0], after[1]) for before, after in pairwise([(NOW - 5 * DAY, False), *timeline]) if before[1] != after[1]
    ]
    for (opened, is_open), (closed, _) in pairwise(turns):
        if is_open:
            assert closed - opened >= SHORT.cooldown
    for opened, is_open in turns:
        if is_open:
            assert sum(opened - SHORT.window < one.at <= opened for one in history) >= SHORT.limit
