"""Replicas and nodes: where a replica finds room, how long it takes to get ready, and when a node goes.

Deployment, scheduler and Karpenter in one: the scheduler takes room that is there, then that of a placeholder, then
waits for a node that is being launched, and for the rest Karpenter launches one.
"""

import math
from typing import Any, Final

from genai_finops.planner.simulation import chance
from genai_finops.planner.simulation.addresses import levels, node_log, nodes, ready_list, replicas, requests
from genai_finops.planner.simulation.compiled import compiled
from genai_finops.planner.simulation.events import push
from genai_finops.planner.simulation.integrals import change, change_use
from genai_finops.planner.simulation.layout import (
    ABSENT,
    ANY_READY,
    ASTRAY,
    AT_LIMIT,
    BUSY,
    BUSY_REPLICAS,
    CONSOLIDATE,
    DOOMED,
    DRAIN_OVER,
    DRAINING,
    EMPTY,
    FREE,
    HELD,
    IDLE,
    LAUNCHING,
    LOADING,
    NODE_GONE,
    NODE_UP,
    NODES,
    NONE,
    ON_DEMAND,
    PENDING,
    READY,
    READY_REPLICAS,
    REBALANCE,
    REPLICA_READY,
    RETRY,
    SATURATED,
    SPOT,
    STARTING,
    STARTING_REPLICAS,
    UP,
    USE_KINDS,
    USES,
    WARNING,
)
from genai_finops.planner.simulation.order import reschedule
from genai_finops.planner.simulation.serving import NEVER, lose_all, take

BLOCKED_SECONDS: Final = 180.0
"""Karpenter does not ask again for so long where EC2 had no capacity."""


@compiled
def set_level(state: Any, level: int, value: float, now: float) -> None:
    change(state, level, value - levels(state)[level].value, now)


@compiled
def note_saturation(state: Any, now: float) -> None:
    saturated = 1.0 if state.blocked_replicas > 0 and state.ready > 0 else 0.0
    if levels(state)[SATURATED].value != saturated:
        set_level(state, SATURATED, saturated, now)


# --- replicas --------------------------------------------------------------------------------------------------------


@compiled
def route(state: Any) -> int:
    """The ready replica with the fewest requests; of equals the next one in turn."""
    best = NONE
    fewest = 1 << 60
    place = state.turn
    chosen = 0
    for _ in range(state.ready):
        if place >= state.ready:
            place = 0
        number = ready_list(state)[place]
        replica = replicas(state)[number]
        outstanding = replica.waiting + replica.running
        if outstanding < fewest:
            fewest = outstanding
            best = number
            chosen = place
            if outstanding == 0:
                break
        place += 1
    state.turn = chosen + 1
    return int(best)


@compiled
def add_replica(state: Any, now: float) -> int:
    """Wanted, and nowhere yet. Room is certain: the kernel has seen to it."""
    number = 0
    while replicas(state)[number].being != ABSENT:
        number += 1
    replica = replicas(state)[number]
    replica.being = PENDING
    replica.doing = IDLE
    replica.serial = state.replica_serial
    replica.node = NONE
    replica.steps = 0
    replica.context = 0
    replica.used = 0
    replica.decoding = 0
    replica.running = 0
    replica.waiting = 0
    replica.fresh = 0
    replica.blocked = 0
    replica.gap_class = 0
    replica.journal_first = 0
    replica.journal_end = 0
    replica.queue_first = replica.queue_last = NONE
    replica.batch_first = replica.batch_last = NONE
    replica.prefilling = NONE
    replica.aborted = NONE
    replica.last_token = now
    state.replica_serial += 1
    state.present += 1
    state.pending += 1
    return number


@compiled
def begin_serving(state: Any, number: int, now: float) -> None:
    """Ready: the gateway knows it from now on, and whoever found none before comes again."""
    replica = replicas(state)[number]
    replica.being = READY
    change(state, STARTING_REPLICAS, -1, now)
    change_use(state, replica, LOADING, FREE, now)
    add_to_ready(state, number, now)
    while state.astray_first != NONE:
        index = state.astray_first
        state.astray_first = requests(state)[index].next
        state.astray -= 1
        take(state, route(state), index, now)
    state.astray_last = NONE


@compiled
def add_to_ready(state: Any, number: int, now: float) -> None:
    ready_list(state)[state.ready] = number
    replicas(state)[number].ready_place = state.ready
    state.ready += 1
    change(state, READY_REPLICAS, 1, now)
    set_level(state, ANY_READY, 1, now)


@compiled
def remove_from_ready(state: Any, number: int, now: float) -> None:
    replica = replicas(state)[number]
    state.ready -= 1
    last = ready_list(state)[state.ready]
    ready_list(state)[replica.ready_place] = last
    replicas(state)[last].ready_place = replica.ready_place
    change(state, READY_REPLICAS, -1, now)
    if replica.doing != IDLE:
        change(state, BUSY_REPLICAS, -1, now)
    if state.ready == 0:
        set_level(state, ANY_READY, 0, now)


@compiled
def stop(state: Any, number: int, now: float) -> None:
    """Nothing runs on it any more; its place on the node is free."""
    replica = replicas(state)[number]
    use = LOADING if replica.being == STARTING else FREE
    if replica.being == STARTING:
        change(state, STARTING_REPLICAS, -1, now)
    change_use(state, replica, use, EMPTY, now)
    replica.being = ABSENT
    reschedule(state, number, NEVER)
    node = replica.node
    nodes(state)[node].replicas -= 1
    moved(state, node, now)


@compiled
def kill(state: Any, number: int, now: float) -> None:
    """Its time to drain is over, or its node is gone: what it serves is lost."""
    replica = replicas(state)[number]
    lose_all(state, number, now)
    change_use(state, replica, BUSY, FREE, now)
    stop(state, number, now)


@compiled
def remove_replica(state: Any, number: int, now: float, deadline: float) -> None:
    """In good order: what it serves may finish until the deadline, and nothing new comes."""
    replica = replicas(state)[number]
    state.present -= 1
    if replica.being == PENDING:
        replica.being = ABSENT
        state.pending -= 1
    elif replica.being == STARTING:
        stop(state, number, now)
    else:
        remove_from_ready(state, number, now)
        if replica.doing == IDLE:
            stop(state, number, now)
        else:
            replica.being = DRAINING
            push(state, deadline, DRAIN_OVER, number, replica.serial)


@compiled
def least_useful(state: Any) -> int:
    """What a ReplicaSet would delete: first what has no node, then what is not ready, then the newest."""
    best = NONE
    for number in range(len(replicas(state))):
        replica = replicas(state)[number]
        if replica.being not in (PENDING, STARTING, READY):
            continue
        if (
            best == NONE
            or replica.being < replicas(state)[best].being
            or (replica.being == replicas(state)[best].being and replica.serial > replicas(state)[best].serial)
        ):
            best = number
    return best


@compiled
def scale_to(state: Any, target: int, now: float) -> None:
    state.target = target
    while state.present < target:
        add_replica(state, now)
    while state.present > target:
        remove_replica(state, least_useful(state), now, now + state.drain_seconds)


# --- nodes -----------------------------------------------------------------------------------------------------------


@compiled
def node_count(state: Any, purchase: int) -> int:
    return int(state.spot_nodes if purchase == SPOT else state.on_demand_nodes)


@compiled
def add_node(state: Any, purchase: int, now: float) -> int:
    """Paid from now on."""
    number = 0
    while nodes(state)[number].being != ABSENT:
        number += 1
    node = nodes(state)[number]
    node.being = LAUNCHING
    node.purchase = purchase
    node.born = now
    node.warm_at = math.inf
    node.serial = state.node_serial
    node.replicas = 0
    node.held = 0
    node.version += 1
    state.node_serial += 1
    if purchase == SPOT:
        state.spot_nodes += 1
        foresee_interruption(state, number, now)
    else:
        state.on_demand_nodes += 1
    change(state, NODES + purchase, 1, now)
    change(state, USES + USE_KINDS * purchase + EMPTY, state.slots, now)
    state.peak_nodes = max(state.peak_nodes, state.spot_nodes + state.on_demand_nodes)
    if node.serial < len(node_log(state)):
        node_log(state)[node.serial].born = now
        node_log(state)[node.serial].purchase = purchase
        node_log(state)[node.serial].gone = math.inf
    return number


@compiled
def foresee_interruption(state: Any, number: int, now: float) -> None:
    """When EC2 will warn of this node, and whether it recommends to leave before."""
    if state.hazard <= 0:
        return
    serial = nodes(state)[number].serial
    warning = now - math.log(chance.uniform(state.seed, chance.INTERRUPTION, serial)) / state.hazard
    push(state, warning, WARNING, number, serial)
    if chance.uniform(state.seed, chance.REBALANCE, serial) < state.rebalance_share:
        push(state, max(now, warning - state.rebalance_lead), REBALANCE, number, serial)


@compiled
def launch(state: Any, now: float) -> int:
    """A node of the first purchase that can be had; NONE when there is none, NONE - 1 when a limit forbids it."""
    refusal = NONE
    for turn in range(2):
        purchase = state.first_purchase if turn == 0 else state.second_purchase
        if purchase == NONE:
            break
        if state.max_nodes >= 0 and node_count(state, purchase) >= state.max_nodes:
            refusal = NONE - 1
            continue
        if purchase == SPOT and not has_spot_capacity(state, now):
            continue
        number = add_node(state, purchase, now)
        state.launches += 1
        if purchase == ON_DEMAND and turn == 1:
            state.on_demand_launches += 1
        push(state, now + state.launch_seconds, NODE_UP, number, nodes(state)[number].serial)
        return number
    return refusal


@compiled
def has_spot_capacity(state: Any, now: float) -> bool:
    if now < state.spot_shut_until or now < state.spot_blocked_until:
        return False
    if state.unavailable_share <= 0:
        return True
    state.attempts += 1
    if chance.uniform(state.seed, chance.CAPACITY, state.attempts) >= state.unavailable_share:
        return True
    state.spot_blocked_until = now + BLOCKED_SECONDS
    push(state, state.spot_blocked_until, RETRY, NONE, 0)
    return False


@compiled
def moved(state: Any, number: int, now: float) -> None:
    """Somebody has moved in or out."""
    node = nodes(state)[number]
    state.node_version += 1
    node.version = state.node_version
    if node.replicas or node.held or node.being == LAUNCHING:
        return
    if node.being == DOOMED:
        end_node(state, number, now)
    elif node.being == UP:
        push(state, now + state.consolidate_seconds, CONSOLIDATE, number, node.version)


@compiled
def end_node(state: Any, number: int, now: float) -> None:
    """Empty, and paid no longer."""
    node = nodes(state)[number]
    node.being = ABSENT
    if node.purchase == SPOT:
        state.spot_nodes -= 1
    else:
        state.on_demand_nodes -= 1
    change(state, NODES + node.purchase, -1, now)
    change(state, USES + USE_KINDS * node.purchase + EMPTY, -state.slots, now)
    if node.serial < len(node_log(state)):
        node_log(state)[node.serial].gone = now


@compiled
def come_up(state: Any, number: int, now: float) -> None:
    """The node is there: who has been waiting for it begins to fetch and load."""
    node = nodes(state)[number]
    node.being = UP
    moved(state, number, now)
    if node.held:
        begin_fetching(state, number, now)
    for other in range(len(replicas(state))):
        replica = replicas(state)[other]
        if replica.being == STARTING and replica.node == number:
            load(state, other, now)


@compiled
def begin_fetching(state: Any, number: int, now: float) -> None:
    node = nodes(state)[number]
    if node.warm_at == math.inf:
        node.warm_at = now + state.fetch_seconds


@compiled
def load(state: Any, number: int, now: float) -> None:
    """Ready when image and weights are on the disk and have been loaded from it."""
    replica = replicas(state)[number]
    begin_fetching(state, replica.node, now)
    ready = max(now, nodes(state)[replica.node].warm_at) + state.load_seconds
    push(state, ready, REPLICA_READY, number, replica.serial)


@compiled
def doom(state: Any, number: int, now: float) -> None:
    """The warning: Karpenter drains at once, and what runs there is wanted elsewhere."""
    node = nodes(state)[number]
    node.being = DOOMED
    over = now + state.notice_seconds
    push(state, over, NODE_GONE, number, node.serial)
    drop_placeholders(state, number, node.held, now)
    deadline = min(over, now + state.drain_seconds)
    for other in range(len(replicas(state))):
        replica = replicas(state)[other]
        if replica.node == number and (replica.being == STARTING or replica.being == READY):
            remove_replica(state, other, now, deadline)
    if node.being == DOOMED:
        moved(state, number, now)
    scale_to(state, state.target, now)


@compiled
def lose_node(state: Any, number: int, now: float) -> None:
    """EC2 has taken it. The last replica that ends takes the node along."""
    serial = nodes(state)[number].serial
    for other in range(len(replicas(state))):
        replica = replicas(state)[other]
        if replica.being == DRAINING and replica.node == number:
            kill(state, other, now)
    if nodes(state)[number].being == DOOMED and nodes(state)[number].serial == serial:
        end_node(state, number, now)


# --- room ------------------------------------------------------------------------------------------------------------


@compiled
def drop_placeholders(state: Any, number: int, count: int, now: float) -> None:
    if count == 0:
        return
    node = nodes(state)[number]
    node.held -= count
    state.held -= count
    uses = USES + USE_KINDS * node.purchase
    change(state, uses + HELD, -count, now)
    change(state, uses + EMPTY, count, now)


@compiled
def room(state: Any, being: int, warm: bool, yielding: bool, now: float) -> int:
    """The first node of that state with a free slot, or with a placeholder that would yield one."""
    for number in range(len(nodes(state))):
        node = nodes(state)[number]
        if node.being != being or (warm and node.warm_at > now):
            continue
        free = node.held if yielding else state.slots - node.replicas - node.held
        if free > 0:
            return number
    return NONE


@compiled
def settle_replica(state: Any, number: int, node_number: int, now: float) -> None:
    replica = replicas(state)[number]
    node = nodes(state)[node_number]
    if node.replicas + node.held >= state.slots:
        drop_placeholders(state, node_number, 1, now)
    replica.being = STARTING
    replica.node = node_number
    node.replicas += 1
    state.pending -= 1
    change_use(state, replica, EMPTY, LOADING, now)
    change(state, STARTING_REPLICAS, 1, now)
    moved(state, node_number, now)
    if node.being == UP:
        load(state, number, now)


@compiled
def settle_placeholder(state: Any, node_number: int, now: float) -> None:
    node = nodes(state)[node_number]
    node.held += 1
    state.held += 1
    uses = USES + USE_KINDS * node.purchase
    change(state, uses + EMPTY, -1, now)
    change(state, uses + HELD, 1, now)
    moved(state, node_number, now)
    if node.being == UP:
        begin_fetching(state, node_number, now)


@compiled
def oldest_pending(state: Any) -> int:
    best = NONE
    for number in range(len(replicas(state))):
        if replicas(state)[number].being == PENDING and (
            best == NONE or replicas(state)[number].serial < replicas(state)[best].serial
        ):
            best = number
    return best


@compiled
def find_room(state: Any, now: float) -> int:
    """Where the scheduler would put a replica, and failing that a node that Karpenter launches for it."""
    found = room(state, UP, True, False, now)
    if found == NONE:
        found = room(state, UP, False, False, now)
    if found == NONE:
        found = room(state, UP, True, True, now)
    if found == NONE:
        found = room(state, UP, False, True, now)
    if found == NONE:
        found = room(state, LAUNCHING, False, False, now)
    if found == NONE:
        found = room(state, LAUNCHING, False, True, now)
    return found if found != NONE else launch(state, now)


@compiled
def settle(state: Any, now: float) -> None:
    """Everybody who waits for a node gets one, if one can be had."""
    at_limit = 0.0
    while state.pending:
        found = find_room(state, now)
        if found < 0:
            at_limit = 1.0 if found < NONE else 0.0
            break
        settle_replica(state, oldest_pending(state), found, now)
    if levels(state)[AT_LIMIT].value != at_limit:
        set_level(state, AT_LIMIT, at_limit, now)
    while state.held < (state.placeholders if state.awake else 0):
        found = room(state, UP, False, False, now)
        if found == NONE:
            found = room(state, LAUNCHING, False, False, now)
        if found == NONE:
            found = launch(state, now)
        if found < 0:
            break
        settle_placeholder(state, found, now)
    state.peak_replicas = max(state.peak_replicas, state.ready + int(levels(state)[STARTING_REPLICAS].value))
    note_saturation(state, now)


@compiled
def fall_asleep(state: Any, now: float) -> None:
    """No replicas and no placeholders; what is being served may finish."""
    state.awake = 0
    scale_to(state, 0, now)
    for number in range(len(nodes(state))):
        if nodes(state)[number].being != ABSENT and nodes(state)[number].held:
            drop_placeholders(state, number, nodes(state)[number].held, now)
            moved(state, number, now)


@compiled
def go_astray(state: Any, index: int) -> None:
    """No replica is ready."""
    request = requests(state)[index]
    request.where = ASTRAY
    request.next = NONE
    if state.astray_last != NONE:
        requests(state)[state.astray_last].next = index
    else:
        state.astray_first = index
    state.astray_last = index
    state.astray += 1


@compiled
def furnish(state: Any) -> None:
    """Nodes that are there at second 0, for the first replicas and the placeholders."""
    while state.pending:
        found = standing_room(state)
        if found == NONE:
            break
        number = oldest_pending(state)
        settle_replica(state, number, found, 0.0)
        begin_serving(state, number, 0.0)
    while state.held < state.placeholders:
        found = standing_room(state)
        if found == NONE:
            break
        settle_placeholder(state, found, 0.0)


@compiled
def standing_room(state: Any) -> int:
    """A free slot at second 0, on another node if need be."""
    found = room(state, UP, False, False, 0.0)
    if found != NONE:
        return found
    for turn in range(2):
        purchase = state.first_purchase if turn == 0 else state.second_purchase
        if purchase != NONE and (state.max_nodes < 0 or node_count(state, purchase) < state.max_nodes):
            number = add_node(state, purchase, 0.0)
            nodes(state)[number].being = UP
            nodes(state)[number].warm_at = 0.0
            return number
    return NONE
