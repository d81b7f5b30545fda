"""What a budget may do by itself when a level is reached: only what the user asked for, only until it is lifted.

Nothing here is remembered: a guardrail is in force while its level is reached (`budget.levels`), so it lifts by itself
when the month is over, when the budget is raised above it, or when the threshold is taken out of the file.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from genai_finops.operations.budget import Action, Level

WORDS: Final[dict[Action, str]] = {
    "notify": "nothing but this alert",
    "cap_replicas": "non-critical models run at most {replicas} replicas",
    "on_demand_off": "no new on-demand nodes, except where a critical model may need them",
    "sleep_non_critical": "non-critical models sleep",
}


@dataclass(frozen=True, slots=True)
class Guardrails:
    """What is in force.

    Attributes:
        cap: most replicas of a non-critical model; None for no cap. The lowest of several counts.
        on_demand_off_since, sleep_since: None when not in force.
        levels: those whose action is.
    """

    cap: int | None = None
    on_demand_off_since: datetime | None = None
    sleep_since: datetime | None = None
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True)
class Announcement:
    """A guardrail that came into force or was lifted, to be told once."""

    key: str
    guardrail: str
    lifted: bool


def in_force(levels: Iterable[Level]) -> Guardrails:
    """The guardrails of the levels reached."""
    acting = tuple(level for level in levels if level.acts_from is not None)

    def since(action: Action) -> datetime | None:
        return min(
            (level.acts_from for level in acting if level.acts_from and level.threshold.action == action), default=None
        )

    caps = [level.threshold.replicas for level in acting if level.threshold.replicas is not None]
    return Guardrails(min(caps, default=None), since("on_demand_off"), since("sleep_non_critical"), acting)


def describe(level: Level) -> str:
    return WORDS[level.threshold.action].format(replicas=level.threshold.replicas)


def announcements(present: Guardrails, told: Iterable[str]) -> tuple[Announcement, ...]:
    """What has come into force or been lifted since it was last told.

    Args:
        told: keys of all earlier announcements that are still kept.
    """
    known = set(told)
    active = {f"{level.key}/{level.threshold.action}": level for level in present.levels}
    on = (Announcement(f"on {name}", describe(level), lifted=False) for name, level in active.items())
    # A name that comes back (a budget lowered to what it was) would be silent; rare, and the digest shows it.
    off = (
        Announcement(f"off {name}", _lifted(name), lifted=True)
        for name in sorted(key.removeprefix("on ") for key in known if key.startswith("on "))
        if name not in active
    )
    return tuple(one for one in (*on, *off) if one.key not in known)


def _lifted(name: str) -> str:
    """From a key: the level itself may be of a month or a budget that is no more."""
    month, basis, percent, usd, action = name.split("/")
    return f"{action.replace('_', ' ')}, in force since {percent}% ({basis}) of ${usd} was reached in {month}"
