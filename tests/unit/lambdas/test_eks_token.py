"""The token is what EKS takes, and is renewed before EKS stops taking it."""

from base64 import b64encode, urlsafe_b64decode
from datetime import timedelta
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, NoCredentialsError

from lambdas.adapters.eks import EksToken, Endpoint, find_endpoint
from lambdas.adapters.kubernetes_errors import UnreachableError
from tests.support.aws_api import client


def signed_url(token: str) -> str:
    assert token.startswith("k8s-aws-v1.")
    encoded = token.removeprefix("k8s-aws-v1.")
    assert "=" not in encoded
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


def test_the_token_is_a_presigned_url_of_sts_in_the_region(token):
    url = urlsplit(signed_url(token.current()))
    query = parse_qs(url.query)
    assert (url.scheme, url.netloc, url.path) == ("https", "sts.us-east-1.amazonaws.com", "/")
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["Version"] == ["2011-06-15"]
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Credential"][0].endswith("/us-east-1/sts/aws4_request")
    assert len(query["X-Amz-Signature"][0]) == 64


def test_the_cluster_is_part_of_what_is_signed(clock, token):
    (signed,) = parse_qs(urlsplit(signed_url(token.current())).query)["X-Amz-SignedHeaders"]
    assert "x-k8s-aws-id" in signed.split(";")


def test_a_session_token_goes_along():
    temporary = Credentials("AKIDEXAMPLE", "secret", "session/token+=")
    token = EksToken(cluster="genai", region="eu-west-1", credentials=lambda: temporary)
    assert parse_qs(urlsplit(signed_url(token.current())).query)["X-Amz-Security-Token"] == ["session/token+="]


def counting(clock):
    signatures = []

    def credentials():
        signatures.append(clock.now())
        return Credentials("AKIDEXAMPLE", "secret")

    return EksToken(cluster="genai", region="us-east-1", credentials=credentials, now=clock.now), signatures


def test_one_signature_serves_until_it_is_well_inside_its_fifteen_minutes(clock):
    token, signatures = counting(clock)
    for _ in range(60):
        token.current()
        clock.pass_(minutes=1)
    ages = [later - earlier for earlier, later in pairwise(signatures)]
    assert set(ages) == {timedelta(minutes=10)}


def test_a_clock_that_was_set_back_does_not_keep_a_token_forever(clock):
    token, signatures = counting(clock)
    token.current()
    clock.pass_(hours=-3)
    token.current()
    assert len(signatures) == 2


def test_without_credentials_it_says_so():
    with pytest.raises(NoCredentialsError):
        EksToken(cluster="genai", region="us-east-1", credentials=lambda: None).current()


def test_the_endpoint_and_its_authority_come_from_eks(moto_url):
    eks = client("eks", moto_url)
    network = {"subnetIds": ["subnet-1"]}
    eks.create_cluster(name="genai", roleArn="arn:aws:iam::123456789012:role/eks", resourcesVpcConfig=network)
    described = eks.describe_cluster(name="genai")["cluster"]
    found = find_endpoint(eks, "genai")
    assert found.url == described["endpoint"]
    assert b64encode(found.certificate_authority).decode() == described["certificateAuthority"]["data"]


def test_a_cluster_that_does_not_exist_is_named(moto_url):
    with pytest.raises(ClientError, match="other"):
        find_endpoint(client("eks", moto_url), "other")


class Creating:
    def describe_cluster(self, name):
        return {"cluster": {"name": name, "status": "CREATING"}}


def test_a_cluster_that_is_being_created_has_no_endpoint_yet():
    with pytest.raises(UnreachableError, match="CREATING"):
        find_endpoint(Creating(), "genai")


def test_plain_http_needs_no_authority():
    assert Endpoint("http://127.0.0.1:1").certificate_authority is None
