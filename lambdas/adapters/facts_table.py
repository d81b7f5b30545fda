"""Facts in DynamoDB, in one table with two keys and no index.

| pk | sk | what else |
|---|---|---|
| `fact#<kind>` | the fact's id | `at` (ISO 8601, UTC, sorts as text), `what` (JSON), `version`, `until`, `expires_at` |
| `claim` | what is claimed | `until`, `expires_at` |

`expires_at` is the table's TTL attribute, in whole epoch seconds. DynamoDB deletes up to days after it, so `until`, the
exact time, is asked for at each read. Asking by time filters the facts of one kind and reads them all: they live days,
and a thousand losses are a third of a megabyte. A local index would save that and could never be changed.

The role needs GetItem, PutItem, DeleteItem and Query.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from genai_finops.operations import codec
from lambdas.adapters.facts import LEASE, Fact, Kind, Merge, Recorded, T, by_time, keep_first, merged, utc_now

TTL_ATTRIBUTE: Final = "expires_at"
PUT_ATTEMPTS: Final = 8
"""Each that fails means that another writer has succeeded."""

CONDITION_FAILED: Final = "ConditionalCheckFailedException"

_CLAIM: Final = "claim"

_Item = dict[str, dict[str, Any]]


class ContentionError(Exception):
    """Others kept changing a fact while it was being written."""


class TableFacts:
    """Facts and claims in a DynamoDB table.

    Args:
        dynamodb: boto3 client.
        now: aware.
    """

    def __init__(self, dynamodb: Any, table: str, *, now: Callable[[], datetime] = utc_now) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._now = now
        self._leases: dict[str, str] = {}

    def put(self, fact: Fact[T], *, merge: Merge[T] = keep_first) -> Recorded[T]:
        """As promised by FactStore.

        Raises:
            ContentionError: when others changed the fact at every attempt.
        """
        come = _fact(fact.kind, _item(fact, version=1))
        stored: Fact[T] | None = None
        for _ in range(PUT_ATTEMPTS):
            known = merged(stored, come, merge) if stored else come
            if stored and known == stored:
                return Recorded(stored, is_news=False)
            is_written, stored = self._put_unless_changed(known, stored)
            if is_written:
                return Recorded(known, is_news=True)
        raise ContentionError(
            f"{fact.kind.name} {fact.id} was changed by others {PUT_ATTEMPTS} times while it was written"
        )

    def get(self, kind: Kind[T], id: str) -> Fact[T] | None:
        key = {"pk": {"S": _partition(kind)}, "sk": {"S": id}}
        item = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")
        fact = _fact(kind, item) if item else None
        return fact if fact and fact.until > self._now() else None

    def since(self, kind: Kind[T], time: datetime) -> list[Fact[T]]:
        return sorted((_fact(kind, item) for item in self._items(kind, time)), key=by_time)

    def claim(self, key: str, *, lease: timedelta = LEASE) -> bool:
        until = self._now() + lease
        try:
            self._dynamodb.put_item(TableName=self._table, Item=_claim(key, until), **self._unless_it_matters())
        except ClientError as error:
            if _code(error) == CONDITION_FAILED:
                return False
            raise
        self._leases[key] = _text(until)
        return True

    def settle(self, key: str, *, until: datetime) -> None:
        self._dynamodb.put_item(TableName=self._table, Item=_claim(key, until))

    def release(self, key: str) -> None:
        lease = self._leases.pop(key, None)
        if lease is None:
            return
        try:
            self._dynamodb.delete_item(
                TableName=self._table,
                Key={"pk": {"S": _CLAIM}, "sk": {"S": key}},
                ConditionExpression="#until = :lease",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":lease": {"S": lease}},
            )
        except ClientError as error:
            if _code(error) != CONDITION_FAILED:
                raise

    def _put_unless_changed(self, fact: Fact[T], stored: Fact[T] | None) -> tuple[bool, Fact[T] | None]:
        """Whether it was written, and if not, what is there instead. What no longer matters counts as not there."""
        request: dict[str, Any] = {"TableName": self._table, "Item": _item(fact, version=fact.version)}
        if stored:
            request["ConditionExpression"] = "version = :version"
            request["ExpressionAttributeValues"] = {":version": {"N": str(stored.version)}}
        else:
            request |= self._unless_it_matters()
        try:
            self._dynamodb.put_item(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        except ClientError as error:
            if _code(error) != CONDITION_FAILED:
                raise
            item = error.response.get("Item")
            return False, _fact(fact.kind, item) if item else None
        return True, None

    def _unless_it_matters(self) -> dict[str, Any]:
        return {
            "ConditionExpression": "attribute_not_exists(pk) OR #until <= :now",
            "ExpressionAttributeNames": {"#until": "until"},
            "ExpressionAttributeValues": {":now": {"S": _text(self._now())}},
        }

    def _items(self, kind: Kind[Any], time: datetime) -> Iterator[_Item]:
        request = {
            "TableName": self._table,
            "KeyConditionExpression": "pk = :pk",
            "FilterExpression": "#at >= :time AND #until > :now",
            "ExpressionAttributeNames": {"#at": "at", "#until": "until"},
            "ExpressionAttributeValues": {
                ":pk": {"S": _partition(kind)},
                ":time": {"S": _text(time)},
                ":now": {"S": _text(self._now())},
            },
            "ConsistentRead": True,
        }
        for page in self._dynamodb.get_paginator("query").paginate(**request):
            yield from page["Items"]


def _partition(kind: Kind[Any]) -> str:
    return f"fact#{kind.name}"


def _item(fact: Fact[Any], *, version: int) -> _Item:
    return {
        "pk": {"S": _partition(fact.kind)},
        "sk": {"S": fact.id},
        "at": {"S": _text(fact.at)},
        "what": {"S": json.dumps(codec.encode(fact.what), separators=(",", ":"), ensure_ascii=False)},
        "version": {"N": str(version)},
        **_lifetime(fact.until),
    }


def _fact(kind: Kind[T], item: Mapping[str, Mapping[str, Any]]) -> Fact[T]:
    return Fact(
        kind=kind,
        id=item["sk"]["S"],
        at=datetime.fromisoformat(item["at"]["S"]),
        until=datetime.fromisoformat(item["until"]["S"]),
        what=codec.decode(kind.type, json.loads(item["what"]["S"])),
        version=int(item["version"]["N"]),
    )


def _claim(key: str, until: datetime) -> _Item:
    return {"pk": {"S": _CLAIM}, "sk": {"S": key}, **_lifetime(until)}


def _lifetime(until: datetime) -> _Item:
    return {"until": {"S": _text(until)}, TTL_ATTRIBUTE: {"N": str(math.ceil(until.timestamp()))}}


def _text(time: datetime) -> str:
    """Always with microseconds, so that texts sort as times do."""
    return codec.aware(time).astimezone(UTC).isoformat(timespec="microseconds")


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])
