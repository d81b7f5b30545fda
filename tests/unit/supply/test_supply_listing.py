"""`make artifacts`: what is there of each model, what is not, and what nobody asks for."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from genai_finops.spec import artifacts
from genai_finops.supply.listing import Store, entries, render
from tests.platform_files import platform

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
DEFAULT = platform("default").models[0]


class Bucket:
    """As much of S3 as is asked: objects by key."""

    def __init__(self, objects, refuses=None):
        self.objects = objects
        self.refuses = refuses

    def get_object(self, **asked):
        if self.refuses or asked["Key"] not in self.objects:
            raise ClientError({"Error": {"Code": self.refuses or "NoSuchKey"}}, "GetObject")
        return {"Body": Body(self.objects[asked["Key"]])}

    def get_paginator(self, _):
        return self

    def paginate(self, **asked):
        prefix = asked["Prefix"]
        found = sorted({key.split("/")[1] for key in self.objects if key.startswith(prefix)})
        return [{"CommonPrefixes": [{"Prefix": f"{prefix}{name}/"}]} for name in found] or [{}]


class Body:
    def __init__(self, text):
        self.text = text

    def read(self):
        return self.text.encode()


def manifest(gib, age=timedelta(days=3)):
    created = (NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"created": created, "files": [{"size": gib * 2**29}, {"size": gib * 2**29}]})


def listed(objects):
    return list(entries(platform("default"), Store(Bucket(objects), "bucket")))


def test_an_empty_store_names_what_to_run():
    text = render(listed({}), NOW)
    assert f"artifacts/{artifacts.key(DEFAULT)}" in text
    assert "make stage MODEL=llama3-8b" in text
    assert "make compile MODEL=llama3-8b" in text


def test_what_is_there_is_shown_with_size_and_age_and_nothing_is_left_to_do():
    found = listed(
        {
            f"{artifacts.weights_prefix(DEFAULT)}/manifest.json": manifest(15),
            f"{artifacts.artifacts_prefix(DEFAULT)}/manifest.json": manifest(16, timedelta(hours=5)),
        }
    )
    text = render(found, NOW)
    assert "15.0 GiB  3 d" in text
    assert "16.0 GiB  5 h" in text
    assert "make" not in text


def test_files_without_their_manifest_are_not_there():
    weights, graphs = listed({f"{artifacts.artifacts_prefix(DEFAULT)}/model.pt": ""})
    assert (weights.stored, graphs.stored) == (None, None)


def test_graphs_that_no_model_asks_for_are_shown_as_such():
    *_, orphan = listed({"artifacts/0123456789abcdef0123/manifest.json": manifest(16)})
    assert (orphan.model, orphan.prefix) == ("", "artifacts/0123456789abcdef0123")
    assert "(no model)" in render([orphan], NOW)
    assert "make" not in render([orphan], NOW)


def test_models_on_gpus_have_weights_only():
    kinds = [(one.model, one.what) for one in entries(platform("rich"), Store(Bucket({}), "bucket"))]
    assert kinds == [
        ("llama3-8b", "weights"),
        ("llama3-8b", "graphs"),
        ("llama3-70b", "weights"),
        ("mistral-7b", "weights"),
    ]


def test_a_store_that_may_not_be_read_is_not_an_empty_one():
    with pytest.raises(ClientError):
        list(entries(platform("default"), Store(Bucket({}, refuses="AccessDenied"), "bucket")))
