"""Decode steps, taken many at a time, and the gaps between tokens that they make.

Between two changes of the batch every step gives each sequence one token and grows the context by as much, so that the
n-th of a row of steps takes `gap + slope * n`: a whole row is one event. What arrives within a row ends it at the next
step, as it would in the engine.
"""

import math
from typing import Any

from genai_finops.planner.simulation.addresses import counts, edges, journal, replicas, requests
from genai_finops.planner.simulation.batch import growth_over
from genai_finops.planner.simulation.compiled import compiled
from genai_finops.planner.simulation.histogram import add_row, class_of
from genai_finops.planner.simulation.layout import DECODING, GAP, NONE, RESUMED, STEPS, Array
from genai_finops.planner.simulation.order import reschedule

# --- the journal -----------------------------------------------------------------------------------------------------


@compiled
def note(state: Any, number: int, began: float, gap: float, slope: float, steps: int, index: int) -> None:
    replica = replicas(state)[number]
    length = state.journal_width
    entry = journal(state)[number, replica.journal_end % length]
    entry.began = began
    entry.gap = gap
    entry.slope = slope
    entry.steps = steps
    entry.request = index
    replica.journal_end += 1


@compiled
def has_journal_room(state: Any, number: int) -> bool:
    """After dropping what is older than every request that could ask for it.

    The batch and what was evicted from it stand in the order of their first tokens, so the first one counts.
    """
    replica = replicas(state)[number]
    length = state.journal_width
    if replica.journal_end - replica.journal_first + state.journal_room <= length:
        return True
    first = replica.batch_first if replica.batch_first != NONE else replica.queue_first
    if first != NONE and requests(state)[first].first >= 0:
        replica.journal_first = requests(state)[first].journal
    else:
        replica.journal_first = replica.journal_end
    return bool(replica.journal_end - replica.journal_first + state.journal_room <= length)


@compiled
def take_back_gaps(state: Any, number: int, index: int) -> None:
    """A request that ends without its answer leaves nothing in the histogram of gaps: it is taken out, class by class,
    as it was put in."""
    replica = replicas(state)[number]
    request = requests(state)[index]
    if request.first < 0:
        return
    gaps = counts(state)[GAP]
    length = state.journal_width
    last = request.first
    decodes = True
    guess = 0
    for row in range(request.journal, replica.journal_end):
        entry = journal(state)[number, row % length]
        if entry.steps > 0:
            if decodes:
                guess = add_steps(edges(state), gaps, guess, entry, last, -1)
                last = entry.began + duration(entry.gap, entry.slope, entry.steps)
        elif entry.request == index:
            decodes = entry.steps == RESUMED
            if decodes:
                gaps[class_of(edges(state), entry.gap)] -= 1
                last = entry.began


# --- steps -----------------------------------------------------------------------------------------------------------


@compiled
def duration(gap: float, slope: float, steps: int) -> float:
    return steps * gap + slope * (0.5 * steps * (steps - 1))


@compiled
def steps_to(replica: Any, moment: float) -> int:
    """Steps of the present row that are over when the first step after `moment`, or at it, ends."""
    gap, slope = replica.gap, replica.slope
    asked = moment - replica.began
    half = gap - 0.5 * slope
    steps = int(2 * asked / (half + math.sqrt(half * half + 2 * slope * asked)))
    steps = max(1, min(steps, replica.plan))
    while steps > 1 and replica.began + duration(gap, slope, steps - 1) >= moment:
        steps -= 1
    while steps < replica.plan and replica.began + duration(gap, slope, steps) < moment:
        steps += 1
    return int(steps)


@compiled
def steps_before(replica: Any, moment: float) -> int:
    """Steps of the present row that are over at `moment`."""
    steps = steps_to(replica, moment)
    if replica.began + duration(replica.gap, replica.slope, steps) > moment:
        steps -= 1
    return steps


@compiled
def interrupt(state: Any, number: int, now: float) -> None:
    """Somebody waits for the next step boundary."""
    replica = replicas(state)[number]
    if replica.doing != STEPS or replica.plan == 1:
        return
    steps = steps_to(replica, now)
    if steps < replica.plan:
        replica.plan = steps
        reschedule(state, number, replica.began + duration(replica.gap, replica.slope, steps))


@compiled
def add_steps(classes: Array, gaps: Array, guess: int, row: Any, last: float, weight: int) -> int:
    """The gaps of sequences that got their last token at `last`: the first of the row may hold a pause before it."""
    steps = row.steps
    if last == row.began:
        return add_row(classes, gaps, guess, row.gap, row.slope, 0, steps, weight)
    gaps[class_of(classes, row.began + row.gap - last)] += weight
    if steps > 1:
        return add_row(classes, gaps, guess, row.gap, row.slope, 1, steps, weight)
    return guess


@compiled
def take_steps(state: Any, number: int, steps: int) -> None:
    """Every decoding sequence gets that many tokens, of the row that the replica is in."""
    replica = replicas(state)[number]
    gaps = counts(state)[GAP]
    note(state, number, replica.began, replica.gap, replica.slope, steps, NONE)
    entry = journal(state)[number, (replica.journal_end - 1) % state.journal_width]
    index = replica.batch_last
    fresh = replica.fresh
    while fresh > 0:
        request = requests(state)[index]
        if request.where == DECODING and request.joined == replica.steps:
            add_steps(edges(state), gaps, replica.gap_class, entry, request.first, 1)
            fresh -= 1
        index = request.previous
    settled = replica.decoding - replica.fresh
    if settled:
        replica.gap_class = add_steps(edges(state), gaps, replica.gap_class, entry, replica.last_token, settled)
    replica.fresh = 0
    if not state.serial:
        replica.used += growth_over(state, number, steps)
    replica.steps += steps
    replica.context += steps * replica.decoding
    replica.last_token = replica.began + duration(replica.gap, replica.slope, steps)
