"""When a Spot pool loses capacity too often, stop asking it for a while.

Interruptions come in storms: the instance that replaces a reclaimed one is often reclaimed too, and a model that
takes minutes to load never gets to serve. The breaker trades the Spot discount for an hour of peace.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from genai_finops.operations.losses import Loss, Pool

DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When a pool is given a rest, and for how long.

    Attributes:
        window_minutes: losses this close together belong to one storm.
        limit: as many within the window open the breaker (ours; a pool of five nodes is then all gone).
        cooldown_minutes: of the first storm of a day. Karpenter avoids a pool for 3 minutes, far less than a load.
        max_doublings: the cooldown doubles with every further storm of a day, this often at most.
        shut_percent_of_zones: see `shuts`.

    Raises:
        ValueError: when a number makes no sense.
    """

    window_minutes: int = 30
    limit: int = 5
    cooldown_minutes: int = 60
    max_doublings: int = 3
    shut_percent_of_zones: int = 33

    def __post_init__(self) -> None:
        if min(self.window_minutes, self.limit, self.cooldown_minutes) < 1 or not 0 <= self.max_doublings <= 10:
            raise ValueError("A breaker needs a window, a limit and a cooldown of at least 1, and 0 to 10 doublings")
        if not 0 < self.shut_percent_of_zones <= 100:
            raise ValueError("shut_percent_of_zones is 1 to 100")

    @property
    def window(self) -> timedelta:
        return timedelta(minutes=self.window_minutes)

    @property
    def cooldown(self) -> timedelta:
        return timedelta(minutes=self.cooldown_minutes)

    @property
    def longest_cooldown(self) -> timedelta:
        return timedelta(minutes=self.cooldown_minutes << self.max_doublings)

    @property
    def memory(self) -> timedelta:
        """Losses older than this never change the answer, so a store may forget them."""
        return self.longest_cooldown + DAY + self.cooldown + self.window


@dataclass(frozen=True, slots=True)
class Open:
    """The pool rests.

    Attributes:
        since: when it began to.
        until: it may be asked again from then on.
        storm: 1 for the first within a day.
    """

    since: datetime
    until: datetime
    storm: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The pool may be used."""


BreakerState = Open | Closed


def state(losses: Iterable[Loss], policy: BreakerPolicy, now: datetime) -> BreakerState:
    """Open while the pool's losses within the window reach the limit, and for a cooldown after.

    The cooldown doubles with each storm within a day, so a pool that keeps failing is asked less and less often.
    A storm ends when the window has not been full for a cooldown. Rebalance recommendations are not losses: EC2 sends
    them on a hunch, and most never come true.

    Everything is counted from the losses alone and never from what an earlier evaluation said, so a loss that is
    reported late, twice or in another order leads to the same state; and each opening lasts a cooldown at least, so
    the breaker cannot flap.

    Args:
        losses: of this pool, any order; one per instance counts.
        now: aware; losses after it are ignored, so that a replay gives the same answer.
    """
    opened: Open | None = None
    starts: deque[datetime] = deque()
    before: datetime | None = None
    for moment in _full_windows(losses, policy, now):
        if before is None or moment - before > policy.cooldown:
            starts.append(moment)
        before = moment
        while len(starts) > 1 and starts[0] <= moment - DAY:
            starts.popleft()
        rest = policy.cooldown * 2 ** min(len(starts) - 1, policy.max_doublings)
        if opened and moment < opened.until:
            opened = Open(opened.since, max(opened.until, moment + rest), len(starts))
        else:
            opened = Open(moment, moment + rest, len(starts))
    return opened if opened and now < opened.until else Closed()


def open_pools(losses: Iterable[Loss], policy: BreakerPolicy, now: datetime) -> dict[Pool, Open]:
    """The pools that rest at `now`, from the losses of all pools."""
    by_pool: dict[Pool, list[Loss]] = {}
    for loss in losses:
        if loss.pool and loss.spot_lost_at:
            by_pool.setdefault(loss.pool, []).append(loss)
    states = ((pool, state(of_pool, policy, now)) for pool, of_pool in by_pool.items() if len(of_pool) >= policy.limit)
    return {pool: found for pool, found in states if isinstance(found, Open)}


def shuts(
    resting: Mapping[Pool, Open], family: str, zones: Collection[str], policy: BreakerPolicy
) -> dict[Pool, Open] | None:
    """The resting pools that are reason enough to shut a whole NodePool of Spot; None when it stays open.

    Karpenter can be told to leave a NodePool alone, and neither a type nor a zone of it (requirements would replace
    every node). The sizes of a family are cut from the same hosts, so a zone counts as bad when any of its pools
    rests. The NodePool is shut when at least `shut_percent_of_zones` of its zones are bad: with three zones or
    fewer one is enough, since the next launch would meet it at least every third time and a load takes longer than
    the three minutes for which Karpenter itself stays away; with more zones, the others are worth their discount.
    Nodes that run are not touched either way.
    """
    bad = {pool: opened for pool, opened in resting.items() if pool.family == family and pool.zone in zones}
    bad_zones = {pool.zone for pool in bad}
    if not bad or len(bad_zones) * 100 < policy.shut_percent_of_zones * len(set(zones)):
        return None
    return bad


def _full_windows(losses: Iterable[Loss], policy: BreakerPolicy, now: datetime) -> list[datetime]:
    """Moments of the losses that, with those within the window before, reach the limit."""
    first: dict[str, datetime] = {}
    for loss in losses:
        at = loss.spot_lost_at
        if at and at <= now:
            first[loss.instance_id] = min(at, first.get(loss.instance_id, at))
    recent: deque[datetime] = deque()
    full = []
    for at in sorted(first.values()):
        recent.append(at)
        while recent[0] <= at - policy.window:
            recent.popleft()
        if len(recent) >= policy.limit:
            full.append(at)
    return full
