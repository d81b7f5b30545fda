"""AWS over HTTP: moto's server for what moto knows, and answers from a list for what it does not."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import boto3
from botocore.config import Config

REGION = "us-east-1"


@contextmanager
def moto_server() -> Iterator[str]:
    """The URL of a moto server of this process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def client(service: str, url: str) -> Any:
    """A real boto3 client for a server of ours; it tries once, so that what a test counts is what it sees."""
    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=url,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
    )


class AnswersInOrder:
    """A service of the JSON 1.1 protocol that gives the answers of a list, one after the other; a context manager.

    An answer is a dict, or an error: a status with a dict that has `__type`. `requests` has operation and body.
    """

    def __init__(self, *answers: Mapping[str, Any] | tuple[int, Mapping[str, Any]]) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


def _handler(service: AnswersInOrder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            service.requests.append((self.headers["x-amz-target"].rpartition(".")[2], body))
            # A call that no test expected is an error, not a wait for one.
            unexpected = (400, {"__type": "ValidationException", "message": "no more answers"})
            found = service.answers.pop(0) if service.answers else unexpected
            status, answer = found if isinstance(found, tuple) else (200, found)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/x-amz-json-1.1")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Not into the tests' output."""

    return Handler
