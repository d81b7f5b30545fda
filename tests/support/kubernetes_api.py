"""A Kubernetes API server for tests, over real HTTP: as far as the platform's functions can tell, the real one.

It keeps objects with their resourceVersion and generation, lists them page by page, applies JSON merge patches
(RFC 7386), answers conflicts, missing objects and missing tokens with a `Status`, and hands requests for a Service's
proxy to a function. What real ones do on bad days, rules do here: see `Rule`.

    with KubernetesApi() as api:
        api.put(scaled_object("vllm-a"))
        api.inject(Answer(403), verb="patch", name="vllm-a", times=1)
        client = KubernetesClient(endpoint=lambda: Endpoint(api.url), ...)
"""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

MERGE_PATCH = "application/merge-patch+json"
NAMESPACED = {
    "pods": ("v1", "Pod"),
    "deployments": ("apps/v1", "Deployment"),
    "scaledobjects": ("keda.sh/v1alpha1", "ScaledObject"),
}
OF_THE_CLUSTER = {
    "nodes": ("v1", "Node"),
    "nodepools": ("karpenter.sh/v1", "NodePool"),
    "nodeclaims": ("karpenter.sh/v1", "NodeClaim"),
}
KINDS = {**NAMESPACED, **OF_THE_CLUSTER}


@dataclass(frozen=True)
class Request:
    """What the server was asked; `verb` is RBAC's: get, list, patch, and proxy for a GET through a Service."""

    verb: str
    resource: str
    namespace: str | None
    name: str | None
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    path: str


@dataclass(frozen=True)
class Answer:
    """What a rule answers instead of the truth.

    Attributes:
        status: of HTTP; None lets the request through, after the delay.
        body: JSON; a `Status` that fits when None.
        delay_seconds: before anything is said.
        hang_up: close the connection without a word.
    """

    status: int | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    hang_up: bool = False


@dataclass
class Rule:
    """An answer for matching requests; `times` is how often, None for always."""

    answer: Answer
    matches: Callable[[Request], bool]
    times: int | None = None


class KubernetesApi:
    """The server; a context manager. Plain HTTP, or TLS with a certificate."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.accepts_token: Callable[[str], bool] = lambda token: token.startswith("k8s-aws-v1.")
        self._objects: dict[tuple[str, str | None, str], dict[str, Any]] = {}
        self._services: dict[tuple[str, str], Callable[[Request], tuple[int, Any]]] = {}
        self._rules: list[Rule] = []
        self._remainders: dict[str, list[dict[str, Any]]] = {}
        self._version = 1000
        self._before_patch: list[Callable[[], None]] = []
        self._lock = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, name="kubernetes-api", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    # What tests arrange

    def put(self, *objects: Mapping[str, Any]) -> None:
        """Create or replace objects, as somebody else would."""
        with self._lock:
            for found in objects:
                plural = next(plural for plural, (_, kind) in KINDS.items() if kind == found["kind"])
                made = deepcopy(dict(found))
                made["metadata"] = {
                    "creationTimestamp": "2026-03-01T00:00:00Z",
                    "generation": 1,
                    **made["metadata"],
                    "resourceVersion": self._next_version(),
                }
                metadata = made["metadata"]
                self._objects[plural, metadata.get("namespace"), metadata["name"]] = made

    def read(self, plural: str, name: str, namespace: str | None = None) -> dict[str, Any]:
        """An object as it is now."""
        with self._lock:
            return deepcopy(self._objects[plural, namespace, name])

    def change(self, plural: str, name: str, patch: Any, namespace: str | None = None) -> None:
        """Merge a patch into an object, as somebody else would."""
        with self._lock:
            self._patch((plural, namespace, name), patch)

    def delete(self, plural: str, name: str, namespace: str | None = None) -> None:
        with self._lock:
            del self._objects[plural, namespace, name]

    def serve(self, service: str, handler: Callable[[Request], tuple[int, Any]], *, namespace: str) -> None:
        """Put a handler behind a Service (`name:port`); it returns status and JSON."""
        self._services[namespace, service] = handler

    def inject(
        self,
        answer: Answer,
        *,
        verb: str | None = None,
        resource: str | None = None,
        name: str | None = None,
        times: int | None = None,
    ) -> None:
        """Answer this to matching requests, before any earlier rule."""
        wanted = {"verb": verb, "resource": resource, "name": name}
        wanted = {key: value for key, value in wanted.items() if value is not None}

        def matches(request: Request) -> bool:
            return all(getattr(request, key) == value for key, value in wanted.items())

        self._rules.insert(0, Rule(answer, matches, times))

    def before_next_patch(self, act: Callable[[], None]) -> None:
        """Do something between the moment a patch arrives and the moment it is looked at: a race that is never won."""
        self._before_patch.append(act)

    def asked(self, verb: str | None = None, resource: str | None = None) -> list[Request]:
        """Requests so far."""
        return [
            request
            for request in self.requests
            if verb in (None, request.verb) and resource in (None, request.resource)
        ]

    def expire_continues(self) -> None:
        """Forget the rest of every list that was begun."""
        self._remainders.clear()

    # What clients see

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            rule = next((rule for rule in self._rules if rule.matches(request) and rule.times != 0), None)
            if rule and rule.times:
                rule.times -= 1
        if rule:
            time.sleep(rule.answer.delay_seconds)
            if rule.answer.hang_up or rule.answer.status is not None:
                status = rule.answer.status or 0
                body = _status(status, "injected by the test") if rule.answer.body is None else rule.answer.body
                return Answer(status, body, rule.answer.headers, hang_up=rule.answer.hang_up)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not self.accepts_token(token):
            return _refusal(401, "Unauthorized")
        if request.verb == "proxy":
            return self._proxied(request)
        if request.verb == "patch":
            while self._before_patch:
                self._before_patch.pop()()
        with self._lock:
            return self._truth(request)

    def _proxied(self, request: Request) -> Answer:
        service = self._services.get((request.namespace or "", request.name or ""))
        if service is None:
            return _refusal(503, f'no endpoints available for service "{request.name}"')
        return Answer(*service(request))

    def _truth(self, request: Request) -> Answer:
        if request.resource not in KINDS:
            return _refusal(404, "the server could not find the requested resource")
        if request.verb == "list":
            return self._list(request)
        key = (request.resource, request.namespace, request.name or "")
        if key not in self._objects:
            return _refusal(404, f'{request.resource} "{request.name}" not found')
        if request.verb == "get":
            return Answer(200, self._objects[key])
        if request.headers.get("content-type") != MERGE_PATCH:
            return _refusal(415, "the body of the request was in an unknown format")
        wanted = request.body.get("metadata", {}).get("resourceVersion")
        if wanted not in (None, self._objects[key]["metadata"]["resourceVersion"]):
            return _refusal(409, f'Operation cannot be fulfilled on {request.resource} "{request.name}": modified')
        return Answer(200, self._patch(key, request.body))

    def _patch(self, key: tuple[str, str | None, str], patch: Any) -> dict[str, Any]:
        before = self._objects[key]
        after = merge(before, patch)
        for fixed in ("name", "namespace", "creationTimestamp", "generation", "resourceVersion"):
            if fixed in before["metadata"]:
                after["metadata"][fixed] = before["metadata"][fixed]
        if after != before:
            after["metadata"]["resourceVersion"] = self._next_version()
            if after.get("spec") != before.get("spec"):
                after["metadata"]["generation"] += 1
            self._objects[key] = after
        return deepcopy(self._objects[key])

    def _list(self, request: Request) -> Answer:
        api, kind = KINDS[request.resource]
        token = request.query.get("continue")
        if token:
            if token not in self._remainders:
                return _refusal(410, "The provided continue parameter is too old")
            items = self._remainders.pop(token)
        else:
            items = [
                deepcopy(found)
                for (plural, namespace, _), found in sorted(
                    self._objects.items(), key=lambda entry: (entry[0][1] or "", entry[0][2])
                )
                if plural == request.resource
                and request.namespace in (None, namespace)
                and _selected(found, request.query.get("labelSelector", ""))
            ]
        limit = int(request.query.get("limit", "0")) or len(items)
        metadata: dict[str, Any] = {"resourceVersion": str(self._version)}
        if items[limit:]:
            metadata["continue"] = f"rest-{self._next_version()}"
            metadata["remainingItemCount"] = len(items) - limit
            self._remainders[metadata["continue"]] = items[limit:]
        # As the real one, without kind and apiVersion in each item.
        page = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in items]
        return Answer(200, {"kind": f"{kind}List", "apiVersion": api, "metadata": metadata, "items": page[:limit]})

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386, as the pseudocode of its section 2 says it."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    merged = deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


class DeadEndpoint:
    """An address that takes no connection and refuses none: the queue of its socket is full. A context manager."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._fillers: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(self._listener.getsockname())
            self._fillers.append(filler)
        return self

    def __exit__(self, *_: object) -> None:
        for opened in (*self._fillers, self._listener):
            opened.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"


def _refusal(status: int, message: str) -> Answer:
    return Answer(status, _status(status, message))


def _status(status: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status}


def _selected(found: Mapping[str, Any], selector: str) -> bool:
    """`key`, `!key`, `key=value` and `key!=value`, joined by commas."""
    labels = found["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        key, operator, value = term.partition("!=") if "!=" in term else term.partition("=")
        if not operator:
            if (term.lstrip("!") in labels) == term.startswith("!"):
                return False
        elif (labels.get(key) == value.removeprefix("=")) == (operator == "!="):
            return False
    return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    api: KubernetesApi

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or does not trust us, is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        self._handle("get")

    def do_PATCH(self) -> None:
        self._handle("patch")

    def _handle(self, verb: str) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        answer = self.server.api.answer(self._request(verb, json.loads(body) if body else None))
        if answer.hang_up:
            self.close_connection = True
            return
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        assert answer.status is not None
        self.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _request(self, verb: str, body: Any) -> Request:
        url = urlsplit(self.path)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource, name = rest[0], rest[1] if len(rest) > 1 else None
        path = url.path
        if resource == "services" and rest[2:3] == ["proxy"]:
            verb, path = "proxy", "/" + "/".join(rest[3:])
        elif name is None:
            verb = "list"
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        headers = {key.lower(): value for key, value in self.headers.items()}
        return Request(verb, resource, namespace, name, query, headers, body, path)

    def log_message(self, format: str, *args: object) -> None:
        """Not into the tests' output."""
