"""Putting a model to sleep and waking it through KEDA's annotations, without losing what others wrote there.

KEDA has one annotation that pins a model's replicas, and people use it too. So what stood there before is kept beside
it, in an annotation of our own in the same patch, and comes back when the model wakes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from genai_finops.operations import codec
from genai_finops.operations.observed import Replicas

PAUSED_REPLICAS: Final = "autoscaling.keda.sh/paused-replicas"
"""Pins the replicas; wins over PAUSED."""

PAUSED: Final = "autoscaling.keda.sh/paused"
"""Freezes the replicas where they are. Never ours."""

FORCE_ACTIVATION: Final = "autoscaling.keda.sh/force-activation"
"""Wakes a model whose own metric cannot."""

MEMORY: Final = "genai-finops/automation"
"""What we have set and what stood there before; present exactly while one of the annotations above is ours."""

ASLEEP: Final = "0"

PIN_AFTER: Final = timedelta(minutes=5)
"""KEDA polls every 5 minutes at the slowest; a model that has not been asked to run by then has not noticed."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What is ours.

    Attributes:
        pinned: the value of PAUSED_REPLICAS that we have set; None when we have taken it away.
        before: the value of someone else that it replaced.
        waking_since: None while asleep.
        forced: FORCE_ACTIVATION is ours.
    """

    pinned: str | None
    before: str | None = None
    waking_since: datetime | None = None
    forced: bool = False

    def annotation(self) -> str:
        return json.dumps(codec.encode(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Values of the annotations that we may touch; None is absent.

    Attributes:
        waking: on the way, not yet Ready.
        someone: how someone else holds the model, in words; None when nobody does.
    """

    annotations: Mapping[str, str | None]
    waking: bool = False
    someone: str | None = None


def is_frozen(annotations: Mapping[str, str]) -> bool:
    """Whether PAUSED is in force: KEDA takes any value but "false" for a yes."""
    return annotations.get(PAUSED, "false") != "false"


def is_asleep(annotations: Mapping[str, str]) -> bool:
    """Whether the model has been put to sleep by us, and nobody has changed it since."""
    memory = _memory(annotations)
    return memory is not None and memory.pinned == ASLEEP == annotations.get(PAUSED_REPLICAS)


def asleep(annotations: Mapping[str, str]) -> Wanted:
    """Zero replicas; what someone else had pinned is remembered, however often this is asked for."""
    memory = _memory(annotations)
    pinned = annotations.get(PAUSED_REPLICAS)
    is_theirs = pinned is not None and (memory is None or pinned != memory.pinned)
    before = pinned if is_theirs else memory.before if memory else None
    return Wanted(
        {
            PAUSED_REPLICAS: ASLEEP,
            FORCE_ACTIVATION: _force_without_ours(annotations, memory),
            MEMORY: Memory(ASLEEP, before).annotation(),
        }
    )


def as_it_is(annotations: Mapping[str, str]) -> Wanted:
    """Nothing changes: a model that finishes its requests before it sleeps is neither woken nor pinned."""
    return Wanted({name: annotations.get(name) for name in (PAUSED_REPLICAS, FORCE_ACTIVATION, MEMORY)})


def awake(
    annotations: Mapping[str, str], replicas: Replicas, *, minimum: int, raised_minimum: int, now: datetime
) -> Wanted:
    """Scaled by KEDA again, or as someone else had pinned it; forced, then pinned, until it serves.

    KEDA is asked to activate the model whatever its metric says, since the metric of a model at zero is gone. If
    nothing has moved after PIN_AFTER (removing the pause has been reported to go unnoticed), or someone's PAUSED
    would freeze it at zero, it is pinned at its minimum instead. Both end when the minimum is Ready.

    Args:
        minimum: replicas that must be Ready before the model scales by itself.
        raised_minimum: what is asked for while it is pinned.
    """
    memory = _memory(annotations)
    pinned = annotations.get(PAUSED_REPLICAS)
    freely = {
        PAUSED_REPLICAS: None,
        FORCE_ACTIVATION: _force_without_ours(annotations, memory),
        MEMORY: None,
    }
    if pinned is not None and (memory is None or pinned != memory.pinned):
        return Wanted({**freely, PAUSED_REPLICAS: pinned}, someone=_pinned(pinned))
    if memory and memory.before is not None and pinned == memory.pinned:
        return Wanted({**freely, PAUSED_REPLICAS: memory.before}, someone=_pinned(memory.before))
    frozen = is_frozen(annotations)
    someone = f"frozen by {PAUSED}: {annotations[PAUSED]!r}" if frozen else None
    is_woken = pinned != ASLEEP and replicas.ready >= minimum
    needs_nothing = replicas.wanted > 0 or frozen  # at zero by nobody's wish, it would stay there
    if minimum == 0 or (is_woken if memory else needs_nothing):
        return Wanted(freely, someone=someone)
    since = memory.waking_since if memory and memory.waking_since else now
    was_pinned = memory is not None and memory.pinned not in (None, ASLEEP)
    is_stuck = now - since >= PIN_AFTER and replicas.wanted < minimum
    pin = str(raised_minimum) if frozen or was_pinned or is_stuck else None
    forced = (memory is not None and memory.forced) or FORCE_ACTIVATION not in annotations
    return Wanted(
        {
            PAUSED_REPLICAS: pin,
            FORCE_ACTIVATION: "true" if forced else annotations[FORCE_ACTIVATION],
            MEMORY: Memory(pin, None, since, forced).annotation(),
        },
        waking=True,
        someone=someone,
    )


def _memory(annotations: Mapping[str, str]) -> Memory | None:
    text = annotations.get(MEMORY)
    if text is None:
        return None
    try:
        return codec.decode(Memory, json.loads(text))
    except ValueError:
        # It was ours once. Taking the pin for someone else's would leave the model asleep for good.
        return Memory(annotations.get(PAUSED_REPLICAS), forced=FORCE_ACTIVATION in annotations)


def _force_without_ours(annotations: Mapping[str, str], memory: Memory | None) -> str | None:
    return None if memory and memory.forced else annotations.get(FORCE_ACTIVATION)


def _pinned(value: str) -> str:
    return f"pinned by {PAUSED_REPLICAS}: {value!r}"
