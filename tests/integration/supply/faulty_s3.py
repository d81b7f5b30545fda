"""S3 on a bad day: passes requests on to moto's server, and cuts, holds, slows or denies those that a test names."""

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit

CHUNK_BYTES = 64 * 1024
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "server", "date"}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    range: str | None

    @property
    def key(self) -> str:
        return self.path.lstrip("/").partition("/")[2]


@dataclass
class Fault:
    """What happens to requests of a method whose key ends in `ending`, at most `times` times."""

    method: str
    ending: str
    times: float = float("inf")
    deny: bool = False
    cut_after: int | None = None
    bytes_per_second: float | None = None
    hold: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


class FaultyS3:
    """A context manager; `url` is the endpoint, `requests` all that came."""

    def __init__(self, moto_url: str) -> None:
        self.requests: list[Request] = []
        self.answered = 0
        self._target = urlsplit(moto_url).netloc
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self._faults:
            fault.released.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def on(self, method: str, ending: str, **what: Any) -> Fault:
        fault = Fault(method, ending, **what)
        self._faults.append(fault)
        return fault

    def heal(self) -> None:
        for fault in self._faults:
            fault.released.set()
        self._faults.clear()

    def seen(self, method: str, ending: str = "") -> list[Request]:
        return [one for one in self.requests if one.method == method and one.key.endswith(ending)]

    def fault_of(self, request: Request) -> Fault | None:
        with self._lock:
            self.requests.append(request)
            for fault in self._faults:
                if fault.method == request.method and request.key.endswith(fault.ending) and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self._target, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        self.answered += 1
        return answer


def _handler(s3: FaultyS3) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            request = Request(self.command, unquote(urlsplit(self.path).path), self.headers.get("range"))
            fault = s3.fault_of(request)
            if fault and fault.hold:
                fault.reached.set()
                fault.released.wait(60)
            if fault and fault.deny:
                self._deny()
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
            self._pass_back(s3.forward(self.command, self.path, headers, body), fault)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815

        def _deny(self) -> None:
            content = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            self.send_response(403)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _pass_back(self, answer: http.client.HTTPResponse, fault: Fault | None) -> None:
            content = answer.read()
            length = answer.headers["content-length"] if self.command == "HEAD" else str(len(content))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("content-length", length or "0")
            self.end_headers()
            try:
                self._send(content, fault)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _send(self, content: bytes, fault: Fault | None) -> None:
            if fault and fault.cut_after is not None:
                self.wfile.write(content[: fault.cut_after])
                self.close_connection = True
                return
            for start in range(0, len(content), CHUNK_BYTES):
                chunk = content[start : start + CHUNK_BYTES]
                self.wfile.write(chunk)
                if fault and fault.bytes_per_second:
                    time.sleep(len(chunk) / fault.bytes_per_second)

        def log_message(self, format: str, *args: object) -> None:
            """Not into the tests' output."""

    return Handler


def until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)
