"""What people are told after an evaluation, each once: incidents, rests of Spot, guardrails, what does not follow.

A message that could not be sent is not remembered as sent, and never keeps the others from being sent.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from genai_finops.operations import alerts, guardrails, incidents, losses
from genai_finops.operations.desired import Desired
from genai_finops.operations.facts import Facts
from genai_finops.operations.losses import Pool
from genai_finops.operations.messages import Message
from genai_finops.operations.verify import FollowUp
from lambdas.adapters.facts import Fact, once
from lambdas.adapters.observability import logger
from lambdas.memory import GUARDRAIL, INCIDENT, OPENING, TOLD, Told, told
from lambdas.runtime import Runtime

RACE: Final = timedelta(minutes=30)
"""How long news that may come back are kept from being told twice by functions that look at the same time."""


@dataclass(frozen=True, slots=True)
class News:
    """One message.

    Attributes:
        key: names what it tells; two functions at once send it once.
        remember: facts that keep it from being told again.
        about: keys of the deviations or notices in it.
        quiet: how long the key is not used again.
    """

    key: str
    message: Message
    remember: tuple[Fact[Told], ...] = ()
    thread: str = ""
    about: frozenset[str] = frozenset()
    quiet: timedelta = TOLD


@dataclass(frozen=True, slots=True)
class Unsent:
    """A message that could not be sent, and why."""

    news: News
    error: str

    def __str__(self) -> str:
        return f"not told: {self.news.message.title}: {self.error}"


def tell(
    runtime: Runtime, desired: Desired, facts: Facts, follow: FollowUp, noticed: Iterable[str], now: datetime
) -> list[Unsent]:
    """Send what is news.

    Args:
        noticed: keys of notices that were told and still hold.

    Returns:
        What could not be sent; it is news again the next time.
    """
    news = [
        *_incidents(runtime, desired, facts, now),
        *_openings(runtime, desired, now),
        *_guardrails(runtime, desired, now),
        *_unfollowed(runtime, follow),
        *_notices(runtime, desired, frozenset(noticed)),
    ]
    return send(runtime, news, now)


def send(runtime: Runtime, news: Iterable[News], now: datetime) -> list[Unsent]:
    """Send each once; what could not be sent."""
    unsent = []
    for one in news:
        try:
            once(runtime.facts, f"told/{one.key}", _act(runtime, one), until=now + one.quiet)
        except (ClientError, BotoCoreError) as error:
            logger.error("not told", key=one.key, error=str(error))
            unsent.append(Unsent(one, str(error)))
    return unsent


def _act(runtime: Runtime, news: News) -> Callable[[], None]:
    def act() -> None:
        runtime.notifier.publish(news.message, thread=news.thread)
        logger.info("told", key=news.key, title=news.message.title)
        for fact in news.remember:
            runtime.facts.put(fact, merge=lambda stored, come: come)

    return act


def _incidents(runtime: Runtime, desired: Desired, facts: Facts, now: datetime) -> Iterator[News]:
    if not facts.signs:
        return
    known = {fact.id for fact in runtime.facts.since(INCIDENT, now - TOLD)}
    raised = {
        name: model.minimum
        for name, model in desired.models.items()
        if name in desired.at_risk and model.minimum > model.config.min_replicas
    }
    found = incidents.incidents(losses.merge(facts.signs, until=now))
    for incident in incidents.to_tell(found, known, now):
        pools = {loss.pool for loss in incident.losses}
        rests = [pool for pool in desired.resting if pool in pools]
        cost = incidents.cost(incident, runtime.config.prices, spot_rests=bool(rests))
        first = incident.losses[0].instance_id
        yield News(
            f"incident/{first}",
            alerts.incident(runtime.config, incident, cost, raised, rests),
            tuple(told(INCIDENT, id, now) for id in sorted(incident.instance_ids)),
            thread=f"incident-{first}",
        )


def _openings(runtime: Runtime, desired: Desired, now: datetime) -> Iterator[News]:
    if not desired.resting:
        return
    names = {_name(pool): pool for pool in desired.resting}
    earlier = {
        names[fact.id]: fact.what.until
        for fact in runtime.facts.since(OPENING, now - TOLD)
        if fact.id in names and fact.what.until
    }
    news = incidents.openings_to_tell(desired.resting, earlier)
    for pool, opened in desired.resting.items():
        fact = told(OPENING, _name(pool), now, until=opened.until)
        if pool in news:
            key = f"opening/{_name(pool)}/{opened.since.isoformat()}"
            yield News(key, alerts.breaker_opened(runtime.config, pool, opened), (fact,))
        elif earlier[pool] < opened.until:  # the same rest, longer
            runtime.facts.put(fact, merge=lambda stored, come: come)


def _guardrails(runtime: Runtime, desired: Desired, now: datetime) -> Iterator[News]:
    known = [fact.id for fact in runtime.facts.since(GUARDRAIL, now - TOLD)]
    changed = guardrails.announcements(desired.guardrails, known)
    if changed:
        key = _digest(one.key for one in changed)
        facts = tuple(told(GUARDRAIL, one.key, now) for one in changed)
        yield News(f"guardrails/{key}", alerts.guardrails_changed(runtime.config, changed), facts)


def _unfollowed(runtime: Runtime, follow: FollowUp) -> Iterator[News]:
    if follow.tell:
        keys = frozenset(one.key for one in follow.tell)
        message = alerts.unfollowed(runtime.config, follow.tell)
        yield News(f"unfollowed/{_digest(keys)}", message, about=keys, quiet=RACE)


def _notices(runtime: Runtime, desired: Desired, noticed: frozenset[str]) -> Iterator[News]:
    new = tuple(notice for notice in desired.notices if notice.key not in noticed)
    if new:
        keys = frozenset(notice.key for notice in new)
        yield News(f"notices/{_digest(keys)}", alerts.notices(runtime.config, new), about=keys, quiet=RACE)


def _digest(keys: Iterable[str]) -> str:
    """Of any number of keys one that fits into a table."""
    return sha256("\n".join(sorted(keys)).encode()).hexdigest()


def _name(pool: Pool) -> str:
    return f"{pool.instance_type}/{pool.zone}"
