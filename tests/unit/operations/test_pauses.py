"""Sleeping and waking through KEDA's annotations, without losing what others wrote there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations import pauses
from genai_finops.operations.observed import Replicas
from genai_finops.operations.pauses import FORCE_ACTIVATION, MEMORY, PAUSED, PAUSED_REPLICAS, PIN_AFTER
from tests.unit.operations.worlds import MINUTE, NOW, SECOND

NONE, TWO = Replicas(), Replicas(2, 2, 2)


def applied(annotations, wanted):
    merged = {**annotations, **wanted.annotations}
    return {name: value for name, value in merged.items() if value is not None}


def sleep(annotations):
    return applied(annotations, pauses.asleep(annotations))


def wake(annotations, replicas=NONE, now=NOW, minimum=2):
    return applied(annotations, pauses.awake(annotations, replicas, minimum=minimum, raised_minimum=minimum, now=now))


def woken(annotations):
    """All the way: asked, served, let go."""
    return wake(wake(annotations), TWO)


def test_a_model_without_annotations_sleeps_and_wakes_and_has_none_again():
    """Case 16."""
    asleep = sleep({})
    assert asleep[PAUSED_REPLICAS] == "0"
    assert woken(asleep) == {}


def test_someone_s_pause_is_saved_and_restored():
    """Case 16."""
    theirs = {PAUSED_REPLICAS: "2", "team": "search"}
    assert sleep(theirs)[PAUSED_REPLICAS] == "0"
    assert wake(sleep(theirs)) == theirs


def test_two_sleeps_in_a_row_restore_the_original_and_not_zero():
    """Case 15."""
    theirs = {PAUSED_REPLICAS: "2"}
    assert sleep(sleep(theirs)) == sleep(theirs)
    assert wake(sleep(sleep(theirs))) == theirs


def test_someone_s_zero_stays_theirs():
    assert wake(sleep({PAUSED_REPLICAS: "0"})) == {PAUSED_REPLICAS: "0"}
    assert wake({PAUSED_REPLICAS: "0"}) == {PAUSED_REPLICAS: "0"}


def test_a_pin_set_while_asleep_is_theirs_from_then_on():
    assert wake({**sleep({}), PAUSED_REPLICAS: "3"}) == {PAUSED_REPLICAS: "3"}
    assert wake(sleep({**sleep({}), PAUSED_REPLICAS: "3"})) == {PAUSED_REPLICAS: "3"}


def test_a_pause_taken_away_by_hand_is_not_put_back_on_waking():
    by_hand = {name: value for name, value in sleep({PAUSED_REPLICAS: "2"}).items() if name != PAUSED_REPLICAS}
    assert PAUSED_REPLICAS not in wake(by_hand)
    assert sleep(by_hand)[PAUSED_REPLICAS] == "0"


def test_waking_does_not_need_the_metric():
    """Case 20: with Prometheus unreachable it wakes all the same."""
    waking = wake(sleep({}))
    assert PAUSED_REPLICAS not in waking
    assert waking[FORCE_ACTIVATION] == "true"


def test_it_is_forced_until_the_minimum_is_ready_and_no_longer():
    waking = wake(sleep({}))
    assert wake(waking, Replicas(2, 2, 1)) == waking
    assert wake(waking, TWO) == {}


def test_someone_s_force_stays():
    assert woken(sleep({FORCE_ACTIVATION: "true"})) == {FORCE_ACTIVATION: "true"}


def test_what_does_not_move_is_pinned_at_its_minimum_until_ready():
    waking = wake(sleep({}))
    assert PAUSED_REPLICAS not in wake(waking, NONE, NOW + PIN_AFTER - SECOND)
    pinned = wake(waking, NONE, NOW + PIN_AFTER)
    assert pinned[PAUSED_REPLICAS] == "2"
    assert wake(pinned, Replicas(2, 2, 1), NOW + 9 * MINUTE) == pinned
    assert wake(pinned, TWO, NOW + 10 * MINUTE) == {}


def test_what_moves_is_not_pinned_however_long_it_loads():
    waking = wake(sleep({}))
    assert wake(waking, Replicas(2, 2, 0), NOW + 3 * PIN_AFTER) == waking


def test_a_model_that_someone_has_frozen_wakes_to_its_minimum_and_stays_frozen():
    frozen = {PAUSED: "true"}
    waking = wake(sleep(frozen))
    assert waking[PAUSED_REPLICAS] == "2"
    assert wake(waking, TWO) == frozen


@pytest.mark.parametrize(("value", "frozen"), [("false", False), ("true", True), ("yes", True), ("", True)])
def test_any_value_but_false_freezes(value, frozen):
    """Case 19."""
    assert pauses.is_frozen({PAUSED: value}) is frozen
    assert pauses.is_frozen({}) is False


def test_a_model_that_is_awake_and_at_zero_is_woken():
    assert wake({}, NONE)[FORCE_ACTIVATION] == "true"
    assert wake({}, TWO) == {}
    assert wake({PAUSED: "true"}, NONE) == {PAUSED: "true"}, "someone has frozen it there"


def test_a_model_that_may_run_none_is_not_forced():
    assert wake(sleep({}), NONE, minimum=0) == {}


def test_a_model_that_goes_to_sleep_while_waking_is_not_taken_for_someone_s():
    pinned = wake(wake(sleep({})), NONE, NOW + PIN_AFTER)
    again = sleep(pinned)
    assert again == sleep({})


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"pinned": 0}', "null", '{"pinned": "0", "surprise": 1}'])
def test_a_memory_that_cannot_be_read_does_not_keep_a_model_asleep(broken):
    waking = wake({PAUSED_REPLICAS: "0", MEMORY: broken})
    assert waking.get(PAUSED_REPLICAS) != "0"
    assert woken({PAUSED_REPLICAS: "0", MEMORY: broken}) == {}


def test_the_memory_is_plain_json():
    assert json.loads(sleep({PAUSED_REPLICAS: "2"})[MEMORY]) == {
        "pinned": "0",
        "before": "2",
        "waking_since": None,
        "forced": False,
    }


others = st.dictionaries(
    st.sampled_from([PAUSED_REPLICAS, PAUSED, FORCE_ACTIVATION, "team"]), st.sampled_from(["0", "2", "true", "false"])
)


@given(others, st.integers(1, 3), st.integers(0, 3))
def test_whatever_others_wrote_is_there_again_after_any_number_of_evaluations(theirs, sleeps, looks):
    annotations = theirs
    for _ in range(sleeps):
        annotations = sleep(annotations)
    for number in range(looks):
        annotations = wake(annotations, NONE, NOW + number * MINUTE)
    assert woken(annotations) == theirs
