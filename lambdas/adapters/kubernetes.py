"""The API server over urllib3, with the four calls that are needed: get, list, merge patch, GET through a Service.

Client libraries take 116 to 689 ms to import and bring 9 to 104 MB along; urllib3 is in Lambda's runtime already.
"""

import json
import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, SSLError

from lambdas.adapters import aws
from lambdas.adapters.eks import EksToken, Endpoint, find_endpoint
from lambdas.adapters.kubernetes_errors import (
    ConflictError,
    ForbiddenError,
    GoneError,
    KubernetesError,
    NotFoundError,
    RejectedError,
    ServerError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)

CONNECT_SECONDS: Final = 2.5
"""To connect to the API server, all its addresses together."""

READ_SECONDS: Final = 10.0
TOTAL_SECONDS: Final = 20.0
"""No further attempt begins after this."""

ATTEMPTS: Final = 4
PROXY_ATTEMPTS: Final = 2
"""Through a Service: what stands behind it is a help to us and never a condition, so it is not waited for."""

UPDATE_ATTEMPTS: Final = 5
FIRST_DELAY_SECONDS: Final = 0.2
LONGEST_DELAY_SECONDS: Final = 5.0

IDLE_SECONDS: Final = 30.0
"""A connection that rested longer is not used again: Lambda freezes between invocations, and misses that the other
side has hung up."""

PAGE_SIZE: Final = 500
FIELD_MANAGER: Final = "genai-finops"
"""Who has set a field, in the object's `metadata.managedFields`."""

Object: TypeAlias = Mapping[str, Any]
Patch: TypeAlias = Mapping[str, Any]
"""A JSON merge patch (RFC 7386): null takes a field away."""

T = TypeVar("T")


class Versioned(Protocol):
    """What an object must be remembered by to be changed later."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str | None: ...
    @property
    def resource_version(self) -> str: ...


V = TypeVar("V", bound=Versioned)


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object, by where the API server keeps it: `v1` or `group/version`, and the plural."""

    api: str
    plural: str

    def __str__(self) -> str:
        """As in RBAC and kubectl: `pods`, `scaledobjects.keda.sh`."""
        group, slash, _ = self.api.partition("/")
        return f"{self.plural}.{group}" if slash else self.plural

    def path(self, *, namespace: str | None = None, name: str | None = None) -> str:
        parts = ["apis" if "/" in self.api else "api", *self.api.split("/")]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural] if name is None else [self.plural, name]
        return "/" + "/".join(quote(part, safe=":") for part in parts)


@dataclass(frozen=True, slots=True)
class Timing:
    """Time and chance: real ones, or a test's."""

    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def delay(self, attempt: int) -> float:
        """Seconds before another attempt: up to a bound that doubles, anywhere below it, so that callers spread."""
        return self.chance() * min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0**attempt)


@dataclass(frozen=True, slots=True)
class _Call:
    """A request, and in the words of RBAC what it wants."""

    verb: str
    resource: str
    path: str
    namespace: str | None = None
    name: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    patch: Patch | None = None
    attempts: int = ATTEMPTS

    @property
    def url(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f' {self.name}' if self.name else ''}{self.where}"

    @property
    def where(self) -> str:
        return f" in namespace {self.namespace}" if self.namespace else ""


class KubernetesClient:
    """Whatever can be tried again is: connections and 5xx with jitter, 429 as long as it asks for, 401 once.

    A patch may be tried again like a read: with a precondition a repeated one is a conflict, without one it says the
    same again.

    Args:
        endpoint: finds the API server; asked at the first request, and again after it could not be reached.
    """

    def __init__(self, *, endpoint: Callable[[], Endpoint], token: EksToken, timing: Timing | None = None) -> None:
        self._endpoint = endpoint
        self._token = token
        self._timing = timing or Timing()
        self._found: Endpoint | None = None
        self._pool: urllib3.HTTPConnectionPool | None = None
        self._used_at = 0.0

    def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        """One object.

        Raises:
            KubernetesError: one of its kinds, as for all methods.
        """
        path = resource.path(namespace=namespace, name=name)
        found: Object = self._json(_Call("get", str(resource), path, namespace, name))
        return found

    def list_as(
        self, resource: Resource, view: Callable[[Object], T], *, namespace: str | None = None, labels: str = ""
    ) -> list[T]:
        """All objects of a kind, page by page, each turned into what is wanted of it.

        The objects themselves are let go with their page: those of a large cluster would fill a function's memory.

        Args:
            labels: a label selector; empty for all.
        """
        try:
            return self._pages(resource, view, namespace, labels, limit=PAGE_SIZE)
        except GoneError:
            # The rest was kept for five minutes only. In one piece there is no rest.
            return self._pages(resource, view, namespace, labels, limit=0)

    def merge_patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
    ) -> Object:
        """Change an object, and return it as it is then.

        Args:
            resource_version: the version that the patch was made for.

        Raises:
            ConflictError: when the object has another version by now.
        """
        if resource_version is not None:
            patch = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": resource_version}}
        path = resource.path(namespace=namespace, name=name)
        query = {"fieldManager": FIELD_MANAGER}
        changed: Object = self._json(_Call("patch", str(resource), path, namespace, name, query, patch))
        return changed

    def update(
        self, resource: Resource, read: V, change: Callable[[V], Patch | None], *, view: Callable[[Object], V]
    ) -> V:
        """Change what was read, unless somebody else has: then read again, and ask again for the change.

        Args:
            change: the patch for the object as it is, None when it is as it should be. Asked once per attempt.
            view: turns an object into what `read` is.

        Raises:
            ConflictError: when somebody else was faster five times.
        """
        for attempt in count():
            patch = change(read)
            if patch is None:
                return read
            try:
                return view(
                    self.merge_patch(
                        resource,
                        read.name,
                        patch,
                        namespace=read.namespace,
                        resource_version=read.resource_version,
                    )
                )
            except ConflictError:
                if attempt + 1 >= UPDATE_ATTEMPTS:
                    raise
            self._timing.sleep(self._timing.delay(attempt))
            read = view(self.get(resource, read.name, namespace=read.namespace))
        raise AssertionError("count() does not end")

    def proxied_get(
        self, service: str, port: int, path: str, *, namespace: str, query: Mapping[str, str] | None = None
    ) -> Any:
        """JSON from a Service, fetched for us by the API server, so that no other network path is needed.

        Raises:
            ForbiddenError: when the role may not `get` on `services/proxy`.
            NotFoundError, ServerError: from the API server or from the service; `body` tells.
        """
        name = f"{service}:{port}"
        root = Resource("v1", "services").path(namespace=namespace, name=name)
        call = _Call("get", "services/proxy", f"{root}/proxy{path}", namespace, name, query or {}, None, PROXY_ATTEMPTS)
        return self._json(call)

    # Pages and answers

    def _pages(
        self, resource: Resource, view: Callable[[Object], T], namespace: str | None, labels: str, *, limit: int
    ) -> list[T]:
        found: list[T] = []
        query = {"limit": str(limit)} if limit else {}
        if labels:
            query["labelSelector"] = labels
        while True:
            page = self._json(_Call("list", str(resource), resource.path(namespace=namespace), namespace, None, query))
            found += map(view, page.get("items") or ())
            rest = page.get("metadata", {}).get("continue")
            if not rest:
                return found
            query = {**query, "continue": rest}

    def _json(self, call: _Call) -> Any:
        response = self._answer(call)
        try:
            return json.loads(response.data)
        except ValueError as error:
            raise ServerError(f"{call}: the answer is not JSON", status=response.status, body=response.data) from error

    # One request and its repetitions

    def _answer(self, call: _Call) -> urllib3.BaseHTTPResponse:
        started = self._timing.seconds()
        signed_again = False
        for attempt in count():
            wait_seconds = 0.0
            cause: Exception | None = None
            failure: KubernetesError
            try:
                response = self._send(call)
            except HTTPError as error:
                cause, failure = error, self._unreachable(call, error)
                # The time for connecting is used up, and a certificate does not get better.
                again = not _is_timeout_of_connecting(error) and not isinstance(error, SSLError)
            else:
                if response.status < HTTPStatus.BAD_REQUEST:
                    return response
                if response.status == HTTPStatus.UNAUTHORIZED and not signed_again:
                    signed_again = True
                    self._token.renew()
                    continue
                failure = self._failure(call, response)
                again = isinstance(failure, (ThrottledError, ServerError))
                wait_seconds = _retry_after(response)
            delay = wait_seconds + self._timing.delay(attempt)
            too_late = self._timing.seconds() + delay - started > TOTAL_SECONDS
            if not again or attempt + 1 >= call.attempts or too_late:
                raise failure from cause
            self._timing.sleep(delay)
        raise AssertionError("count() does not end")

    def _send(self, call: _Call) -> urllib3.BaseHTTPResponse:
        headers = {"accept": "application/json", "accept-encoding": "gzip"}
        headers["authorization"] = f"Bearer {self._token.current()}"
        body = None
        if call.patch is not None:
            headers["content-type"] = "application/merge-patch+json"
            body = json.dumps(call.patch).encode()
        pool = self._connected()
        method = "GET" if call.patch is None else "PATCH"
        try:
            return pool.urlopen(method, call.url, body=body, headers=headers, retries=False, redirect=False)
        finally:
            self._used_at = self._timing.seconds()

    def _connected(self) -> urllib3.HTTPConnectionPool:
        if self._pool and self._timing.seconds() - self._used_at > IDLE_SECONDS:
            self._disconnect()
        if self._pool is None:
            found = self._found or self._endpoint()
            self._pool, self._found = _pool(found), found
        return self._pool

    def _disconnect(self) -> None:
        if self._pool:
            self._pool.close()
        self._pool = None

    # What went wrong, in words

    def _unreachable(self, call: _Call, error: HTTPError) -> UnreachableError:
        where = self._found.url if self._found else "the API server"
        self._disconnect()
        self._found = None
        if _is_timeout_of_connecting(error):
            advice = (
                f"no connection within {CONNECT_SECONDS:g} s. A private endpoint is reached only from its VPC, and "
                "only when the cluster's security group lets the function in on port 443"
            )
        elif isinstance(error, SSLError):
            advice = f"its certificate is not of the cluster's authority ({error})"
        else:
            advice = str(error)
        return UnreachableError(f"{call}: {where} does not answer: {advice}")

    def _failure(self, call: _Call, response: urllib3.BaseHTTPResponse) -> KubernetesError:
        kind, advice = self._meaning(call, response.status)
        message = _message(response.data)
        text = f"{call}: {response.status}: {advice}" + (f" ({message})" if message else "")
        return kind(text, status=response.status, body=response.data)

    def _meaning(self, call: _Call, status: int) -> tuple[type[KubernetesError], str]:
        match status:
            case HTTPStatus.UNAUTHORIZED:
                advice = "a fresh token is refused; has the role an access entry of cluster"
                return UnauthorizedError, f"{advice} {self._token.cluster}?"
            case HTTPStatus.FORBIDDEN:
                return ForbiddenError, f"the role needs {call.verb} on {call.resource}{call.where}"
            case HTTPStatus.NOT_FOUND:
                return NotFoundError, "not found"
            case HTTPStatus.CONFLICT:
                return ConflictError, "somebody else has changed it"
            case HTTPStatus.GONE:
                return GoneError, "no longer kept"
            case HTTPStatus.TOO_MANY_REQUESTS:
                return ThrottledError, "too many requests"
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return ServerError, "the server failed"
        return RejectedError, "the request was refused"


def connect(cluster: str, *, region: str) -> KubernetesClient:
    """A client for an EKS cluster, as the function's role; nothing is asked before the first request."""
    token = EksToken(cluster=cluster, region=region, credentials=aws.credentials)
    return KubernetesClient(
        endpoint=lambda: find_endpoint(aws.client("eks", region=region), cluster),
        token=token,
    )


def _pool(endpoint: Endpoint) -> urllib3.HTTPConnectionPool:
    address = urlsplit(endpoint.url)
    timeout = urllib3.Timeout(connect=_connect_seconds(address.hostname or "", address.port or 443), read=READ_SECONDS)
    if address.scheme == "http":
        return urllib3.HTTPConnectionPool(address.hostname or "", address.port, timeout=timeout)
    return urllib3.HTTPSConnectionPool(
        address.hostname or "", address.port, timeout=timeout, ssl_context=_trust(endpoint.certificate_authority)
    )


def _connect_seconds(host: str, port: int) -> float:
    """Of one address: urllib3 gives each the whole time, one after the other, and EKS has an address per zone."""
    try:
        addresses = {found[4] for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        return CONNECT_SECONDS  # connecting fails in a moment, with this reason
    return CONNECT_SECONDS / len(addresses)


def _trust(authority: bytes | None) -> ssl.SSLContext:
    """Only the cluster's own authority.

    EKS makes it without a key identifier, which RFC 5280 allows for a root and Python 3.13's strict mode refuses
    (kubernetes-client/python issue 2394). Chain, dates and name are checked as ever.
    """
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, ValueError) as error:
        raise UnreachableError(f"what EKS gives as the cluster's authority is no certificate: {error}") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _is_timeout_of_connecting(error: HTTPError) -> bool:
    """A refused connection and an unknown name are of the same class in urllib3, and are known at once."""
    return isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError)


def _retry_after(response: urllib3.BaseHTTPResponse) -> float:
    """Seconds; the API server never sends a date."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdecimal() else 0.0


def _message(body: bytes) -> str:
    """Of a `Status` of Kubernetes; empty for anything else."""
    try:
        status = json.loads(body)
    except ValueError:
        return ""
    message = status.get("message") if isinstance(status, dict) and status.get("kind") == "Status" else None
    return message if isinstance(message, str) else ""
