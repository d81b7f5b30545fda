"""Clients of AWS whose patience fits into the time a function has.

boto3's own defaults wait a minute for a connection and another for an answer: longer than most of our functions run.
"""

from functools import cache
from typing import Any, Final

from boto3.session import Session
from botocore.config import Config

CONNECT_SECONDS: Final = 3
READ_SECONDS: Final = 10
ATTEMPTS: Final = 4
"""With botocore's standard mode: throttling and passing faults are waited out with jitter, at most three times."""


def client(service: str, *, region: str) -> Any:
    """A client of an AWS service; AWS_ENDPOINT_URL and its like are honoured, as boto3 does by itself."""
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        user_agent_extra="genai-finops",
    )
    return _session().client(service, region_name=region, config=config)


def credentials() -> Any:
    """Of the function's role, as botocore keeps them fresh; None when there are none."""
    return _session().get_credentials()


@cache
def _session() -> Session:
    return Session()
