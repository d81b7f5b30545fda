"""Clients wait no longer than a function lives, and find a cluster when it is needed."""

import pytest

from lambdas.adapters import aws
from lambdas.adapters.cluster import Node
from lambdas.adapters.kubernetes import connect
from lambdas.adapters.kubernetes_errors import UnreachableError
from tests.support.aws_api import REGION, client


@pytest.fixture(autouse=True)
def role(monkeypatch, moto_url):
    aws._session.cache_clear()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_SESSION_TOKEN": "testing",
        "AWS_ENDPOINT_URL": moto_url,
    }.items():
        monkeypatch.setenv(name, value)
    yield
    aws._session.cache_clear()


def test_a_client_gives_up_in_time():
    config = aws.client("dynamodb", region="eu-west-1").meta.config
    assert (config.connect_timeout, config.read_timeout) == (3, 10)
    assert config.retries["mode"] == "standard"
    assert config.retries["total_max_attempts"] == 4
    assert "genai-finops" in config.user_agent


def test_a_client_can_be_pointed_elsewhere_by_the_environment():
    tables = aws.client("dynamodb", region=REGION).list_tables()["TableNames"]
    assert isinstance(tables, list)


def test_a_cluster_is_looked_for_at_the_first_request(moto_url):
    kubernetes = connect("made-later", region=REGION)
    eks = client("eks", moto_url)
    role = "arn:aws:iam::123456789012:role/eks"
    eks.create_cluster(name="made-later", roleArn=role, resourcesVpcConfig={"subnetIds": ["subnet-1"]})
    # It was found: what moto gives as an authority is none, and without one nothing is believed.
    with pytest.raises(UnreachableError, match="authority is no certificate"):
        kubernetes.list_as(Node.RESOURCE, dict)
