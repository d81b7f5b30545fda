"""A pod that must go answers what it has accepted: the preStop hook and SIGTERM, on a process like the server.

The script by itself is tested in tests/unit/k8s_charts/test_drain_script.py.
"""

import signal
import sys
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.integration.supply.faulty_s3 import until
from tests.integration.supply.pods import LIMIT_SECONDS, PREFIX, kill

SERVER = Path(__file__).with_name("stand_in_server.py")


class Server:
    """Started as in its pod: the script that brings the files becomes it."""

    def __init__(self, pod, seconds_per_request):
        self._pod = pod
        port_file = pod.folder / "port"
        self.process = pod.start_fetch("--", sys.executable, SERVER, port_file, seconds_per_request)
        until(lambda: port_file.exists() and port_file.read_text(), "the server")
        self._url = f"http://127.0.0.1:{port_file.read_text()}"

    def ask(self):
        """A client with a request in flight, and what it gets in the end."""
        got = []

        def send():
            try:
                with urlopen(f"{self._url}/v1/completions", timeout=LIMIT_SECONDS) as answer:
                    got.append(answer.status)
            except OSError as error:
                got.append(error)

        client = threading.Thread(target=send)
        client.start()
        return client, got

    def in_flight(self):
        with urlopen(f"{self._url}/metrics", timeout=LIMIT_SECONDS) as answer:
            return float(answer.read().rsplit(b" ", 1)[1])

    def stop_as_the_kubelet_does(self, timeout, settle=0.2):
        """The hook first, SIGTERM when it has ended."""
        hook = self._pod.run("drain.py", "--timeout", timeout, "--settle", settle, "--url", f"{self._url}/metrics")
        self.process.terminate()
        return hook


@pytest.fixture
def serve(bucket, node):
    bucket.has(PREFIX, {"config.json": b"{}"})
    servers = []

    def start(seconds_per_request):
        servers.append(Server(node.pod(), seconds_per_request))
        return servers[-1]

    yield start
    for server in servers:
        kill(server.process)


def test_requests_in_flight_are_answered_before_the_server_ends(serve):
    server = serve(seconds_per_request=2)
    clients = [server.ask() for _ in range(3)]
    until(lambda: server.in_flight() == 3, "three requests")
    assert server.stop_as_the_kubelet_does(timeout=30) == 0
    assert server.process.wait(10) == -signal.SIGTERM
    for client, got in clients:
        client.join()
        assert got == [200]


def test_without_the_hook_they_would_be_lost(serve):
    """So that the test above can fail."""
    server = serve(seconds_per_request=20)
    client, got = server.ask()
    until(lambda: server.in_flight() == 1, "the request")
    server.process.terminate()
    client.join()
    assert isinstance(got[0], OSError)


def test_what_arrives_while_the_world_learns_of_the_end_is_answered_too(serve):
    server = serve(seconds_per_request=0.5)
    late = []

    def arrive():
        late.append(server.ask())

    threading.Timer(0.5, arrive).start()
    assert server.stop_as_the_kubelet_does(timeout=30, settle=2) == 0
    ((client, got),) = late
    client.join()
    assert got == [200]


def test_a_request_longer_than_the_drain_does_not_hold_the_pod(serve):
    server = serve(seconds_per_request=600)
    client, got = server.ask()
    until(lambda: server.in_flight() == 1, "the request")
    server.stop_as_the_kubelet_does(timeout=1)
    assert server.process.wait(10) == -signal.SIGTERM
    client.join()
    assert isinstance(got[0], OSError)
