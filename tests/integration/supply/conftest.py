"""A store that can fail, and a node whose pods use it."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.integration.supply.faulty_s3 import FaultyS3
from tests.integration.supply.pods import Bucket, Node
from tests.support.aws_api import moto_server

_numbers = count()


@pytest.fixture(scope="session")
def supply_moto_url() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def s3(supply_moto_url: str) -> Iterator[FaultyS3]:
    with FaultyS3(supply_moto_url) as proxy:
        yield proxy


@pytest.fixture
def bucket(supply_moto_url: str) -> Bucket:
    return Bucket(f"model-store-{next(_numbers)}", supply_moto_url)


@pytest.fixture
def node(tmp_path, s3: FaultyS3, bucket: Bucket) -> Node:
    return Node(tmp_path, s3, bucket)
