"""The kinds of facts that the functions keep, with how long each matters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from genai_finops.operations import losses
from genai_finops.operations.budget import SpendReport
from genai_finops.operations.facts import MARGIN, Facts, keep_report_until, keep_sign_until
from genai_finops.operations.losses import Sign
from lambdas.adapters.facts import Fact, Kind, Recorded
from lambdas.runtime import Runtime

TOLD: Final = timedelta(days=70)
"""What was told is remembered for more than two months: a guardrail lasts one at most, and its end is told later."""


@dataclass(frozen=True, slots=True)
class Told:
    """That people were told. `until` is for what lasts: when it was to end."""

    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Following:
    """How long the cluster has differed from what it should be, and what was said about it.

    Attributes:
        first_seen: of deviations, by key.
        told: keys of those that were told.
        notices: keys of those that were told and still hold.
    """

    first_seen: Mapping[str, datetime] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


SIGN: Final = Kind("sign", Sign)
REPORT: Final = Kind("spend-report", SpendReport)
FOLLOWING: Final = Kind("following", Following)
INCIDENT: Final = Kind("told-incident", Told)
"""By instance id."""
OPENING: Final = Kind("told-opening", Told)
"""By pool, `inf2.xlarge/us-east-1a`."""
GUARDRAIL: Final = Kind("told-guardrail", Told)
"""By key of the announcement."""
LEVEL: Final = Kind("told-level", Told)
"""By key of the level."""


def record_sign(runtime: Runtime, sign: Sign) -> Recorded[Sign]:
    """Remember a sign; the same event again adds what it knows better and changes nothing else."""
    until = keep_sign_until(sign, runtime.config.breaker, runtime.config.prewarm)
    return runtime.facts.put(Fact(kind=SIGN, id=sign.key, at=sign.at, until=until, what=sign), merge=_same_sign)


def record_report(runtime: Runtime, report: SpendReport) -> None:
    id = report.at.isoformat()
    runtime.facts.put(Fact(kind=REPORT, id=id, at=report.at, until=keep_report_until(report), what=report))


def recall(runtime: Runtime, now: datetime) -> Facts:
    """All that matters at `now`."""
    breaker, prewarm = runtime.config.breaker, runtime.config.prewarm
    horizon = now - max(breaker.memory, 2 * prewarm.hold) - MARGIN
    month = now - timedelta(days=32)  # the rules take the month's own
    return Facts(
        signs=tuple(fact.what for fact in runtime.facts.since(SIGN, horizon)),
        reports=tuple(fact.what for fact in runtime.facts.since(REPORT, month)) if runtime.config.budget else (),
    )


def told(kind: Kind[Told], id: str, now: datetime, *, until: datetime | None = None) -> Fact[Told]:
    """The fact that something was told."""
    return Fact(kind=kind, id=id, at=now, until=now + TOLD, what=Told(until))


def _same_sign(stored: Fact[Sign], come: Fact[Sign]) -> Fact[Sign]:
    (loss,) = losses.merge((stored.what, come.what), until=max(stored.at, come.at))
    (sign,) = loss.signs
    return Fact(kind=SIGN, id=stored.id, at=stored.at, until=stored.until, what=sign)
