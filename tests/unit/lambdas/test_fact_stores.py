"""Both stores keep the same promises: DynamoDB over HTTP, and the one that tests use."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import count, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.adapters.facts import Fact, InMemoryFacts, Kind, once
from lambdas.adapters.facts_table import TTL_ATTRIBUTE, ContentionError, TableFacts
from tests.support.aws_api import client
from tests.support.clock import START, FakeClock


@dataclass(frozen=True)
class Loss:
    rank: int = 0
    usd_per_hour: Decimal = Decimal("0.10")
    seen_at: datetime | None = None
    replicas: Mapping[str, int] = field(default_factory=dict)


LOSS = Kind("loss", Loss)
_numbers = count()


@pytest.fixture(scope="module")
def dynamodb(moto_url):
    return client("dynamodb", moto_url)


def table(dynamodb):
    name = f"facts-{next(_numbers)}"
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


@pytest.fixture(params=["table", "memory"])
def store(request, clock):
    if request.param == "memory":
        return InMemoryFacts(now=clock.now)
    dynamodb = request.getfixturevalue("dynamodb")
    return TableFacts(dynamodb, table(dynamodb), now=clock.now)


def loss(id="i-1", *, at=START, days=2, **what):
    return Fact(kind=LOSS, id=id, at=at, until=at + timedelta(days=days), what=Loss(**what))


def worst(stored, come):
    """The earliest time and the highest rank: the same in every order."""
    what = max(stored.what, come.what, key=lambda loss: loss.rank)
    return replace(stored, at=min(stored.at, come.at), until=max(stored.until, come.until), what=what)


# Facts


def test_a_fact_is_news_once(store):
    assert store.put(loss()).is_news
    assert not store.put(loss()).is_news
    assert store.since(LOSS, START) == [loss()]


def test_what_is_known_is_kept_unless_a_merge_says_otherwise(store):
    store.put(loss(rank=1))
    kept = store.put(loss(rank=2))
    assert not kept.is_news
    assert kept.fact.what.rank == 1


@pytest.mark.parametrize("order", list(permutations((0, 1, 2))))
def test_three_events_of_one_loss_leave_one_fact_whatever_their_order(store, order):
    events = [loss(rank=rank, at=START + timedelta(seconds=rank)) for rank in range(3)]
    for number in order:
        store.put(events[number], merge=worst)
    (known,) = store.since(LOSS, START)
    assert (known.at, known.until, known.what.rank) == (START, START + timedelta(days=2, seconds=2), 2)


def test_a_merge_that_says_something_new_is_news_and_counted(store):
    first = store.put(loss(rank=1), merge=worst)
    second = store.put(loss(rank=2), merge=worst)
    third = store.put(loss(rank=1), merge=worst)
    assert (first.is_news, second.is_news, third.is_news) == (True, True, False)
    assert (first.fact.version, second.fact.version, third.fact.version) == (1, 2, 2)


def test_a_merge_may_not_make_another_fact_of_it(store):
    store.put(loss())
    with pytest.raises(ValueError, match="may not turn loss i-1 into loss i-2"):
        store.put(loss(), merge=lambda stored, come: replace(stored, id="i-2"))


def test_facts_are_asked_for_by_kind_and_time_and_come_in_order(store):
    for minutes in (30, 10, 20, 0):
        store.put(loss(f"i-{minutes}", at=START + timedelta(minutes=minutes)))
    store.put(replace(loss("other"), kind=Kind("hold", Loss)))
    found = store.since(LOSS, START + timedelta(minutes=10))
    assert [fact.id for fact in found] == ["i-10", "i-20", "i-30"]


def test_times_of_any_zone_are_compared_as_moments(store):
    there = timezone(timedelta(hours=13))
    store.put(loss("east", at=START.astimezone(there)))
    assert [fact.id for fact in store.since(LOSS, START)] == ["east"]
    assert store.since(LOSS, (START + timedelta(microseconds=1)).astimezone(there)) == []


def test_a_fact_that_no_longer_matters_is_not_there_even_before_it_is_deleted(store, clock):
    store.put(loss(rank=1, days=1))
    clock.pass_(days=1)
    assert store.get(LOSS, "i-1") is None
    assert store.since(LOSS, START) == []
    again = store.put(loss(rank=2, at=clock.now()), merge=lambda stored, come: stored)
    assert again.is_news
    assert again.fact.what.rank == 2


def test_a_fact_can_be_asked_for_by_its_id(store):
    store.put(loss())
    assert store.get(LOSS, "i-1") == loss()
    assert store.get(LOSS, "i-2") is None
    assert store.get(Kind("hold", Loss), "i-1") is None


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="no zone"):
        Fact(kind=LOSS, id="x", at=datetime(2026, 3, 1), until=START, what=Loss())  # noqa: DTZ001


@pytest.fixture(scope="module")
def both_stores(dynamodb):
    return [InMemoryFacts(now=lambda: START), TableFacts(dynamodb, table(dynamodb), now=lambda: START)]


amounts = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9) | st.sampled_from(
    [Decimal("-3.1E-9"), Decimal("0.10"), Decimal("1E+3"), Decimal("-0")]
)
moments = st.datetimes(
    min_value=datetime(2000, 1, 1),  # noqa: DTZ001
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
known = st.builds(
    Loss,
    rank=st.integers(),
    usd_per_hour=amounts,
    seen_at=st.none() | moments,
    replicas=st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=3),
)


@given(what=known, at=moments)
def test_what_is_remembered_is_what_was_learned(both_stores, what, at):
    fact = Fact(kind=LOSS, id=f"i-{next(_numbers)}", at=at, until=datetime(2200, 1, 1, tzinfo=UTC), what=what)
    for store in both_stores:
        store.put(fact)
        assert store.get(LOSS, fact.id) == fact


# What only a table can show


def raw(dynamodb, name):
    return dynamodb.scan(TableName=name)["Items"]


def test_the_table_can_forget_by_itself(dynamodb, clock):
    name = table(dynamodb)
    facts = TableFacts(dynamodb, name, now=clock.now)
    until = START + timedelta(days=2, microseconds=1)
    facts.put(replace(loss(), until=until))
    facts.claim("alert")
    for item in raw(dynamodb, name):
        assert set(item) >= {"pk", "sk", TTL_ATTRIBUTE}
        assert item[TTL_ATTRIBUTE]["N"].isdecimal()
    (fact,) = (item for item in raw(dynamodb, name) if item["pk"]["S"] == "fact#loss")
    assert int(fact[TTL_ATTRIBUTE]["N"]) == int(until.timestamp()) + 1


def test_a_kind_that_fills_pages_is_read_to_its_end(dynamodb, clock):
    """A page of DynamoDB holds a megabyte."""
    facts = TableFacts(dynamodb, table(dynamodb), now=clock.now)
    for number in range(12):
        facts.put(loss(f"i-{number:02}", replicas={"x" * 150_000: 1}))
    assert [fact.id for fact in facts.since(LOSS, START)] == [f"i-{number:02}" for number in range(12)]


class Racing:
    """A DynamoDB where somebody else is faster: before each write, something happens."""

    def __init__(self, dynamodb, before_put):
        self._dynamodb, self._before_put = dynamodb, before_put
        self.requests = []

    def put_item(self, **request):
        self.requests.append(request)
        if self._before_put:
            self._before_put.pop(0)()
        return self._dynamodb.put_item(**request)

    def __getattr__(self, name):
        return getattr(self._dynamodb, name)


def test_two_who_merge_at_once_lose_nothing(dynamodb, clock):
    name = table(dynamodb)
    other = TableFacts(dynamodb, name, now=clock.now)
    add = lambda stored, come: replace(stored, what=Loss(replicas={**stored.what.replicas, **come.what.replicas}))  # noqa: E731
    races = [lambda n=n: other.put(loss(replicas={f"other-{n}": n}), merge=add) for n in range(3)]
    facts = TableFacts(Racing(dynamodb, races), name, now=clock.now)
    facts.put(loss(replicas={"ours": 9}), merge=add)
    assert facts.get(LOSS, "i-1").what.replicas == {"ours": 9, "other-0": 0, "other-1": 1, "other-2": 2}


def test_a_fact_that_is_deleted_while_it_is_merged_is_written_anew(dynamodb, clock):
    name = table(dynamodb)
    TableFacts(dynamodb, name, now=clock.now).put(loss(rank=1))
    delete = lambda: dynamodb.delete_item(TableName=name, Key={"pk": {"S": "fact#loss"}, "sk": {"S": "i-1"}})  # noqa: E731
    facts = TableFacts(Racing(dynamodb, [lambda: None, delete]), name, now=clock.now)
    assert facts.put(loss(rank=2), merge=worst).fact.what.rank == 2


def test_a_writer_that_always_loses_says_so(dynamodb, clock):
    name = table(dynamodb)
    other = TableFacts(dynamodb, name, now=clock.now)
    races = [lambda n=n: other.put(loss(rank=n), merge=worst) for n in range(20)]
    with pytest.raises(ContentionError, match="loss i-1"):
        TableFacts(Racing(dynamodb, races), name, now=clock.now).put(loss(rank=99), merge=worst)


# Claims


def test_of_many_who_claim_at_once_one_may(store):
    won = []
    threads = [threading.Thread(target=lambda: won.append(store.claim("budget/2026-03/80"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]


def test_a_claim_is_for_one_key(store):
    assert store.claim("a")
    assert store.claim("b")


def test_a_claim_that_was_not_settled_passes_to_the_next(store, clock):
    assert store.claim("a", lease=timedelta(seconds=60))
    clock.pass_(seconds=59)
    assert not store.claim("a")
    clock.pass_(seconds=1)
    assert store.claim("a")


def test_a_settled_claim_is_closed_until_its_time(store, clock):
    store.claim("a")
    store.settle("a", until=START + timedelta(days=30))
    clock.pass_(days=29)
    assert not store.claim("a")
    clock.pass_(days=1)
    assert store.claim("a")


def test_a_release_that_comes_late_does_not_take_the_claim_of_another(store, clock, request):
    store.claim("a", lease=timedelta(seconds=10))
    slow = store
    clock.pass_(seconds=20)
    if isinstance(store, TableFacts):
        other = TableFacts(store._dynamodb, store._table, now=clock.now)
        assert other.claim("a")
        slow.release("a")
        assert not other.claim("a")


def test_an_alert_is_sent_once(store):
    sent = []
    for _ in range(3):
        once(store, "budget/2026-03/80", lambda: sent.append(1), until=START + timedelta(days=30))
    assert sent == [1]


def test_an_alert_that_could_not_be_sent_is_tried_by_the_next(store):
    def fail():
        raise ConnectionError

    with pytest.raises(ConnectionError):
        once(store, "a", fail, until=START + timedelta(days=30))
    sent = []
    assert once(store, "a", lambda: sent.append(1), until=START + timedelta(days=30))
    assert sent == [1]


def test_a_crash_after_the_claim_delays_an_alert_and_does_not_lose_it(store, clock):
    store.claim("a")  # and the function dies
    sent = []
    assert not once(store, "a", lambda: sent.append(1), until=START + timedelta(days=30))
    clock.pass_(minutes=2)
    assert once(store, "a", lambda: sent.append(1), until=START + timedelta(days=30))


def test_a_table_that_does_not_exist_is_an_error_and_not_an_empty_one(dynamodb):
    facts = TableFacts(dynamodb, "missing", now=FakeClock().now)
    for act in (lambda: facts.put(loss()), lambda: facts.claim("a"), lambda: facts.since(LOSS, START)):
        with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
            act()
