"""Where a cluster's API server is, and who we are to it.

EKS takes as a token a presigned URL of STS GetCallerIdentity: whoever can sign it has the role, and the signed header
`x-k8s-aws-id` ties it to one cluster. botocore signs it without a call and without an STS client.
"""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest

from lambdas.adapters.kubernetes_errors import UnreachableError

TOKEN_PREFIX: Final = "k8s-aws-v1."
URL_EXPIRES_SECONDS: Final = 60
"""What EKS asks for in the URL. The token that is made of it is good for 15 minutes from its signature."""

RENEW_AFTER: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An API server: its URL, and in PEM the authority that its certificate must come from (None: plain HTTP)."""

    url: str
    certificate_authority: bytes | None = None


def find_endpoint(eks: Any, cluster: str) -> Endpoint:
    """Ask EKS for the endpoint of a cluster.

    Args:
        eks: boto3 client of EKS; the role needs eks:DescribeCluster.

    Raises:
        UnreachableError: when the cluster has no endpoint yet, or no longer.
        botocore.exceptions.ClientError: when there is no such cluster, or asking is not allowed.
    """
    found = eks.describe_cluster(name=cluster)["cluster"]
    if not found.get("endpoint"):
        raise UnreachableError(f"cluster {cluster} has no endpoint: its status is {found.get('status')}")
    authority = found.get("certificateAuthority", {}).get("data")
    return Endpoint(found["endpoint"], b64decode(authority) if authority else None)


class EksToken:
    """A token that is renewed well before it is refused.

    Args:
        credentials: gives botocore's credentials, or None when there are none; asked at each signature, because a
            role's credentials change.
        now: aware; only the age of a token is read from it, the signature carries botocore's own time.
    """

    def __init__(
        self,
        *,
        cluster: str,
        region: str,
        credentials: Callable[[], Any],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._region = region
        self._credentials = credentials
        self._now = now
        self._token = ""
        self._signed_at: datetime | None = None

    @property
    def cluster(self) -> str:
        return self._cluster

    def current(self) -> str:
        """The token, signed anew when it is older than ten minutes."""
        if self._signed_at is None or not timedelta() <= self._now() - self._signed_at < RENEW_AFTER:
            return self.renew()
        return self._token

    def renew(self) -> str:
        """Sign a new token, whatever the age of the last one.

        Raises:
            botocore.exceptions.NoCredentialsError: when there is nothing to sign with.
        """
        url = f"https://sts.{self._region}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15"
        request = AWSRequest(method="GET", url=url, headers={"x-k8s-aws-id": self._cluster})
        credentials = self._credentials()
        frozen = credentials.get_frozen_credentials() if credentials else None
        SigV4QueryAuth(frozen, "sts", self._region, expires=URL_EXPIRES_SECONDS).add_auth(request)
        self._token = TOKEN_PREFIX + urlsafe_b64encode(request.url.encode()).rstrip(b"=").decode()
        self._signed_at = self._now()
        return self._token
