"""A stopping server keeps what it accepted: the script itself, against a real server."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from genai_finops.spec import names
from k8s_charts.scripts import drain
from tests.platform_files import ROOT

SCRIPT = ROOT / "k8s_charts" / "scripts" / "drain.py"


def metrics(running: float, waiting: float, *, engine: str = "0") -> str:
    labels = f'{{engine="{engine}",model_name="meta-llama/Meta Llama {{8B}}"}}'
    return "\n".join(
        [
            "# HELP vllm:num_requests_running Number of requests in model execution batches.",
            "# TYPE vllm:num_requests_running gauge",
            f"vllm:num_requests_running{labels} {running}",
            "# TYPE vllm:num_requests_waiting gauge",
            f"vllm:num_requests_waiting{labels} {waiting}",
            f"vllm:num_requests_waiting_by_reason{labels} 7.0",
        ]
    )


class FakeServer:
    """Answers /metrics with a number of running requests that a test changes."""

    def __init__(self) -> None:
        self.running = 0.0
        self.waiting = 0.0
        self.status = 200
        self.delay_seconds = 0.0
        self.asked = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked += 1
                time.sleep(server.delay_seconds)
                self.send_response(server.status if self.path == "/metrics" else 404)
                self.end_headers()
                self.wfile.write(metrics(server.running, server.waiting).encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/metrics"

    def start(self) -> None:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@contextmanager
def serving() -> Iterator[FakeServer]:
    server = FakeServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(drain, "POLL_SECONDS", 0.05)


def after(seconds: float, change) -> None:
    threading.Timer(seconds, change).start()


def test_it_ends_when_the_last_request_is_answered():
    with serving() as server:
        server.running, server.waiting = 3, 2
        after(0.4, lambda: setattr(server, "waiting", 0))
        after(0.8, lambda: setattr(server, "running", 0))
        started = time.monotonic()
        outcome = drain.drain(server.url, timeout_seconds=10, settle_seconds=0.1)
        assert 0.8 <= time.monotonic() - started < 5
        assert outcome.startswith("idle")


def test_it_ends_at_the_timeout_whatever_is_in_flight():
    with serving() as server:
        server.running = 1
        started = time.monotonic()
        outcome = drain.drain(server.url, timeout_seconds=0.5, settle_seconds=0.1)
        assert 0.5 <= time.monotonic() - started < 1.5
        assert outcome.startswith("out of time")


def test_it_waits_for_the_world_to_notice_before_it_looks():
    with serving() as server:
        drain.drain(server.url, timeout_seconds=0.2, settle_seconds=5)
        assert server.asked == 0


def test_one_quiet_look_is_not_enough():
    with serving() as server:
        drain.drain(server.url, timeout_seconds=5, settle_seconds=0)
        assert server.asked == drain.QUIET_POLLS


def test_a_dead_server_is_not_waited_for():
    with serving() as server:
        url = server.url
    assert drain.drain(url, timeout_seconds=30, settle_seconds=0) == "the server is gone"


def test_a_server_that_dies_meanwhile_is_not_waited_for():
    with serving() as server:
        server.running = 5
        after(0.3, server.stop)
        assert drain.drain(server.url, timeout_seconds=30, settle_seconds=0) == "the server is gone"


@pytest.mark.parametrize("fault", [{"status": 500}, {"delay_seconds": 5.0}])
def test_a_server_that_cannot_say_is_given_its_time(fault):
    with serving() as server:
        for name, value in fault.items():
            setattr(server, name, value)
        assert drain.drain(server.url, timeout_seconds=0.6, settle_seconds=0).startswith("out of time")


def test_all_engines_of_a_server_count():
    text = metrics(1, 0) + "\n" + metrics(0, 2, engine="1")
    assert drain.requests_in_flight(text) == 3


def test_a_text_without_the_metrics_says_nothing():
    assert drain.requests_in_flight("# HELP up\nup 1\n") is None


def test_a_proxy_of_the_pod_is_not_asked(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with serving() as server:
        assert drain.drain(server.url, timeout_seconds=5, settle_seconds=0).startswith("idle")


def test_it_looks_at_the_port_of_the_server():
    assert f"http://127.0.0.1:{names.SERVER_PORT}/metrics" == drain.METRICS_URL


@pytest.mark.parametrize("python", [sys.executable])
def test_it_runs_as_the_container_runs_it(python, tmp_path: Path):
    copy = tmp_path / "drain.py"
    copy.write_bytes(SCRIPT.read_bytes())
    with serving() as server:
        done = subprocess.run(
            [python, "-I", str(copy), "--timeout", "20", "--settle", "0", "--url", server.url],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 0
    assert "idle" in done.stderr


def test_no_time_to_drain_means_none_is_taken():
    started = time.monotonic()
    drain.drain("http://127.0.0.1:9/metrics", timeout_seconds=0, settle_seconds=5)
    assert time.monotonic() - started < 0.2
