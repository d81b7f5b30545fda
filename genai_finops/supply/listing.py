"""What the store has of each model, and what it has that no model asks for: `genai-finops artifacts`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from genai_finops.spec import Platform, artifacts, names

MANIFEST: Final = "manifest.json"
"""Written last: what has one is whole."""

_MISSING: Final = ("NoSuchKey", "404")
_NOT_THERE: Final = "-"


class StoreError(ValueError):
    """The store cannot be read; says what AWS says."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Something whole in the store."""

    size: int
    created: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """A model's weights or graphs, by prefix; `stored` is None for what has to be made yet."""

    model: str
    what: str
    prefix: str
    stored: Stored | None


class Store:
    """The platform's bucket, read with the credentials of whoever asks."""

    def __init__(self, s3: Any, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def find(self, prefix: str) -> Stored | None:
        """What stands under a prefix; None when it is not there, or not whole.

        Raises:
            ClientError: when it cannot be looked up.
        """
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=f"{prefix}/{MANIFEST}")
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise
        manifest = json.loads(answer["Body"].read())
        created = datetime.fromisoformat(manifest["created"])
        return Stored(sum(file["size"] for file in manifest["files"]), created)

    def graph_keys(self) -> list[str]:
        """Of all compiled graphs, also of those that were never finished."""
        prefix = f"{artifacts.ARTIFACTS}/"
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
        found = [common["Prefix"] for page in pages for common in page.get("CommonPrefixes", ())]
        return [name.removeprefix(prefix).rstrip("/") for name in found]


def entries(platform: Platform, store: Store) -> Iterator[Entry]:
    """What each model needs, in the order of the file, then graphs that none of them asks for."""
    wanted = set()
    for model in platform.models:
        prefix = artifacts.weights_prefix(model)
        yield Entry(model.name, "weights", prefix, store.find(prefix))
        if model.is_precompiled:
            prefix = artifacts.artifacts_prefix(model)
            wanted.add(artifacts.key(model))
            yield Entry(model.name, "graphs", prefix, store.find(prefix))
    for key in store.graph_keys():
        if key not in wanted:
            prefix = f"{artifacts.ARTIFACTS}/{key}"
            yield Entry("", "graphs", prefix, store.find(prefix))


def render(found: Sequence[Entry], now: datetime) -> str:
    """A table, and under it what to do."""
    rows = [("MODEL", "WHAT", "IN THE STORE AS", "SIZE", "AGE"), *(_row(entry, now) for entry in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    steps = {"weights": "stage", "graphs": "compile"}
    todo = [f"make {steps[entry.what]} MODEL={entry.model}" for entry in found if entry.model and not entry.stored]
    if todo:
        lines += ["", "Not there yet:", *(f"  {command}" for command in todo)]
    return "\n".join(lines)


def _row(entry: Entry, now: datetime) -> tuple[str, ...]:
    model = entry.model or "(no model)"
    if entry.stored is None:
        return (model, entry.what, entry.prefix, _NOT_THERE, _NOT_THERE)
    size = f"{entry.stored.size / 2**30:.1f} GiB"
    return (model, entry.what, entry.prefix, size, _age(now - entry.stored.created))


def _age(age: timedelta) -> str:
    return f"{age.days} d" if age.days else f"{age.seconds // 3600} h"


def connect(platform: Platform) -> Store:
    """The store of the account that the credentials are of."""
    session = boto3.Session(region_name=platform.region)
    account = session.client("sts").get_caller_identity()["Account"]
    return Store(session.client("s3"), names.model_store_bucket(platform, account))


def listed(platform: Platform) -> str:
    """What the store of a platform has, as a table.

    Raises:
        StoreError: when it cannot be read.
    """
    try:
        return render(list(entries(platform, connect(platform))), datetime.now(UTC))
    except (BotoCoreError, ClientError) as error:
        raise StoreError(f"The model store cannot be read: {error}") from None
