"""What has been learned from events, kept until it no longer matters.

A fact is known by its id, so that an event that comes twice, or three events of one loss, leave one fact behind. What
comes later may say it better: a merge function decides, and must give the same in whatever order it is asked.

Claims are facts about ourselves: who is about to send an alert, and that it was sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from genai_finops.operations import codec

LEASE: Final = timedelta(seconds=60)
"""How long a claim holds without being settled. When a function dies between, the next one may send."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """Facts that are asked for together: a name, never to be changed, and the dataclass of what is known."""

    name: str
    type: type[T]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Generic[T]):
    """Something that was, and stays, true.

    Attributes:
        id: the same for every event that tells of it, such as the instance's id.
        at: when it became true; aware.
        until: when it no longer matters, and may be forgotten; aware.
        what: is known of it.
        version: how often it was written; the store counts.

    Raises:
        ValueError: when a time has no zone.
    """

    kind: Kind[T]
    id: str
    at: datetime
    until: datetime
    what: T
    version: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        codec.aware(self.at)
        codec.aware(self.until)


@dataclass(frozen=True, slots=True)
class Recorded(Generic[T]):
    """What the store holds after a `put`, and whether that was news to it."""

    fact: Fact[T]
    is_news: bool


Merge: TypeAlias = Callable[[Fact[T], Fact[T]], Fact[T]]
"""From what is stored and what has come, what is known. Called with facts of one kind and id."""


def keep_first(stored: Fact[T], come: Fact[T]) -> Fact[T]:
    """Nothing can be added to such a fact."""
    return stored


class FactStore(Protocol):
    """Where facts are kept. Reads see every write that has returned."""

    def put(self, fact: Fact[T], *, merge: Merge[T] = keep_first) -> Recorded[T]:
        """Remember a fact; what is known of it already is merged with it. The same fact again changes nothing."""

    def get(self, kind: Kind[T], id: str) -> Fact[T] | None:
        """A fact, unless it is not known or no longer matters."""

    def since(self, kind: Kind[T], time: datetime) -> list[Fact[T]]:
        """Facts that became true at `time` or later and still matter, the oldest first."""

    def claim(self, key: str, *, lease: timedelta = LEASE) -> bool:
        """Whether the caller, and for the length of the lease nobody else, may do what `key` stands for."""

    def settle(self, key: str, *, until: datetime) -> None:
        """It was done: no claim succeeds until then."""

    def release(self, key: str) -> None:
        """It was not done: the next claim succeeds, unless this one was lost to another meanwhile."""


def once(store: FactStore, key: str, act: Callable[[], None], *, until: datetime) -> bool:
    """Do what `key` stands for, unless it was done; remembered only when it was, so that a crash loses no alert.

    Two callers at once do it once. A caller that dies after it has acted and before that is remembered makes the next
    one do it again: an alert may come twice, but never not at all.

    Returns:
        Whether it was done now.
    """
    if not store.claim(key):
        return False
    try:
        act()
    except BaseException:
        store.release(key)
        raise
    store.settle(key, until=until)
    return True


def utc_now() -> datetime:
    return datetime.now(UTC)


class InMemoryFacts:
    """The store for tests: same promises, gone with the process."""

    def __init__(self, *, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._facts: dict[tuple[str, str], Fact[Any]] = {}
        self._claims: dict[str, datetime] = {}
        self._leases: dict[str, datetime] = {}
        self._lock = Lock()

    def put(self, fact: Fact[T], *, merge: Merge[T] = keep_first) -> Recorded[T]:
        come = replace(fact, what=codec.decode(fact.kind.type, codec.encode(fact.what)), version=1)
        with self._lock:
            stored = self.get(fact.kind, fact.id)
            known = merged(stored, come, merge) if stored else come
            if stored and known == stored:
                return Recorded(stored, is_news=False)
            self._facts[fact.kind.name, fact.id] = known
            return Recorded(known, is_news=True)

    def get(self, kind: Kind[T], id: str) -> Fact[T] | None:
        fact = self._facts.get((kind.name, id))
        return fact if fact and fact.until > self._now() else None

    def since(self, kind: Kind[T], time: datetime) -> list[Fact[T]]:
        now = self._now()
        facts = (fact for fact in self._facts.values() if fact.kind == kind and fact.at >= time and fact.until > now)
        return sorted(facts, key=by_time)

    def claim(self, key: str, *, lease: timedelta = LEASE) -> bool:
        with self._lock:
            now = self._now()
            if key in self._claims and self._claims[key] > now:
                return False
            self._claims[key] = self._leases[key] = now + lease
            return True

    def settle(self, key: str, *, until: datetime) -> None:
        self._claims[key] = until

    def release(self, key: str) -> None:
        with self._lock:
            if self._claims.get(key) == self._leases.pop(key, None):
                self._claims.pop(key, None)


def merged(stored: Fact[T], come: Fact[T], merge: Merge[T]) -> Fact[T]:
    """What is known from now on, as the next version of the stored fact.

    Raises:
        ValueError: when the merge makes another fact of it.
    """
    known = merge(stored, come)
    if (known.kind, known.id) != (stored.kind, stored.id):
        raise ValueError(f"a merge may not turn {stored.kind.name} {stored.id} into {known.kind.name} {known.id}")
    return replace(known, version=stored.version + 1)


def by_time(fact: Fact[Any]) -> tuple[datetime, str]:
    return fact.at, fact.id
