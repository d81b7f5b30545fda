"""Servers and clocks that the tests of all adapters share."""

from collections.abc import Iterator

import pytest
from botocore.credentials import Credentials

from lambdas.adapters.eks import EksToken, Endpoint
from lambdas.adapters.kubernetes import KubernetesClient
from tests.support.aws_api import moto_server
from tests.support.clock import FakeClock
from tests.support.kubernetes_api import KubernetesApi


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi() as server:
        yield server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def token(clock: FakeClock) -> EksToken:
    return EksToken(
        cluster="genai", region="us-east-1", credentials=lambda: Credentials("AKIDEXAMPLE", "secret"), now=clock.now
    )


@pytest.fixture
def kubernetes(api: KubernetesApi, token: EksToken, clock: FakeClock) -> KubernetesClient:
    return KubernetesClient(endpoint=lambda: Endpoint(api.url), token=token, timing=clock.timing())
