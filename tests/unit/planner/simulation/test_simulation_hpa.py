"""The autoscaler against its documented algorithm, case by case."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.planner.simulation import hpa
from genai_finops.planner.simulation.scenario import ScalePolicy
from tests.unit.planner.simulation.worlds import ELASTIC

NO_LIMITS = replace(ELASTIC, scale_up=ScalePolicy(0, 10_000, 15), scale_down=ScalePolicy(0, 100, 15))


@pytest.mark.parametrize(
    ("total", "target", "current", "expected"),
    [
        (0, 10, 1, 0),  # an empty queue asks for none; the minimum is somebody else's rule
        (10, 10, 1, 1),
        (11, 10, 1, 1),  # ten percent above is within the tolerance
        (11.5, 10, 1, 2),
        (20, 10, 1, 2),
        (21, 10, 1, 3),
        (31, 10, 3, 3),  # 3.3 % above
        (34, 10, 3, 4),
        (27, 10, 3, 3),  # 10 % below is within the tolerance
        (26, 10, 3, 3),  # beyond it, but rounded up
        (20, 10, 3, 2),
        (2.4000000000000004, 0.8, 5, 3),  # three replicas at the target, not four for a rounding error
        (0.81, 0.8, 5, 2),
    ],
)
def test_a_metric_asks_for_its_total_over_the_target_rounded_up_unless_it_is_near(total, target, current, expected):
    assert hpa.proposed(total, target, current, 0.1) == expected


def decisions(scaling, proposals, *, start, minimum=1, maximum=100, every=15.0):
    """Counts after each sync."""
    memory, rules = hpa.memory(scaling), hpa.rules(scaling)
    found, current = [], start
    for turn, proposal in enumerate(proposals):
        current = hpa.decide(memory, rules, turn * every, current, minimum, maximum, proposal)
        found.append(current)
    return found


CASES = {
    "up at once to what is asked for": (NO_LIMITS, [5], 1, {}, [5]),
    "never above the maximum": (NO_LIMITS, [50], 1, {"maximum": 8}, [8]),
    "never below the minimum": (NO_LIMITS, [0], 4, {"minimum": 2}, [2]),
    "above the maximum comes down without a metric": (NO_LIMITS, [-1], 9, {"maximum": 6}, [6]),
    "below the minimum goes up without a metric, whatever the policies": (
        replace(ELASTIC, scale_up=ScalePolicy(300, 10, 60)),
        [-1],
        1,
        {"minimum": 6},
        [6],
    ),
    "no reading changes nothing": (NO_LIMITS, [-1, -1], 3, {}, [3, 3]),
    "doubling each period": (replace(NO_LIMITS, scale_up=ScalePolicy(0, 100, 15)), [9, 9, 9, 9], 1, {}, [2, 4, 8, 9]),
    "doubling each minute": (
        replace(NO_LIMITS, scale_up=ScalePolicy(0, 100, 60)),
        [9] * 9,
        1,
        {},
        [2, 2, 2, 2, 4, 4, 4, 4, 8],
    ),
    "a tenth more is at least one more": (replace(NO_LIMITS, scale_up=ScalePolicy(0, 10, 15)), [9, 9], 2, {}, [3, 4]),
    "a tenth more is rounded up": (replace(NO_LIMITS, scale_up=ScalePolicy(0, 10, 15)), [50], 25, {}, [28]),
    "a tenth less of one replica leaves none, and the minimum holds": (
        replace(NO_LIMITS, scale_down=ScalePolicy(0, 10, 60)),
        [0],
        1,
        {},
        [1],
    ),
    "a tenth less is at least one less": (
        replace(NO_LIMITS, scale_down=ScalePolicy(0, 10, 15)),
        [0, 0],
        5,
        {},
        [4, 3],
    ),
    "a tenth less of twenty-five is three less in a minute": (
        replace(NO_LIMITS, scale_down=ScalePolicy(0, 10, 60)),
        [0] * 5,
        25,
        {},
        [22, 22, 22, 22, 19],
    ),
    "down only to the highest wish of the window, which holds what there was": (
        replace(NO_LIMITS, scale_down=ScalePolicy(60, 100, 15)),
        [2, 2, 1, 1, 1, 1],
        6,
        {},
        [6, 6, 6, 6, 2, 1],
    ),
    "up only to the lowest wish of the window": (
        replace(NO_LIMITS, scale_up=ScalePolicy(30, 10_000, 15)),
        [9, 9, 5, 9, 9],
        2,
        {},
        [2, 2, 5, 5, 9],
    ),
    "a short peak is not followed through a window": (
        replace(NO_LIMITS, scale_up=ScalePolicy(60, 10_000, 15)),
        [2, 2, 2, 2, 9, 2, 2],
        2,
        {},
        [2] * 7,
    ),
}


@pytest.mark.parametrize(("scaling", "proposals", "start", "bounds", "expected"), CASES.values(), ids=CASES.keys())
def test_the_documented_algorithm(scaling, proposals, start, bounds, expected):
    assert decisions(scaling, proposals, start=start, **bounds) == expected


@given(st.lists(st.integers(-1, 30), min_size=1, max_size=40), st.integers(1, 12), st.integers(1, 300))
def test_the_count_stays_within_its_bounds_and_its_pace(proposals, start, percent):
    scaling = replace(ELASTIC, scale_up=ScalePolicy(30, percent, 30), scale_down=ScalePolicy(45, 50, 30))
    counts = [start, *decisions(scaling, proposals, start=start, minimum=1, maximum=12)]
    for turn, after in enumerate(counts):
        recent = counts[max(0, turn - 2) : turn + 1]
        assert 1 <= after <= 12
        assert after <= -(-min(recent[-3:]) * (100 + percent) // 100) + 1


def test_the_compiled_rules_are_the_ones_that_python_runs():
    memory, rules = hpa.memory(ELASTIC), hpa.rules(ELASTIC)
    assert hpa.proposed.py_func(21, 10, 1, 0.1) == hpa.proposed(21, 10, 1, 0.1) == 3
    assert hpa.limited.py_func(memory, rules, 0.0, 2, 1, 9, 7) == hpa.limited(memory, rules, 0.0, 2, 1, 9, 7) == 4
