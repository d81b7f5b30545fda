"""The handlers among servers: moto's for AWS, over HTTP, and one that behaves like the Kubernetes API."""

from collections.abc import Iterator

import pytest

from lambdas.adapters import aws
from tests.integration.lambdas.world import World
from tests.support.aws_api import moto_server
from tests.support.kubernetes_api import KubernetesApi


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    aws._session.cache_clear()
    with moto_server() as url:
        yield url
    aws._session.cache_clear()


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi() as server:
        yield server


@pytest.fixture
def world(api: KubernetesApi, moto_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> World:
    """A platform with one model, chat, on one Spot node; nothing is wrong with it."""
    return World(api, moto_url, monkeypatch, tmp_path)
