"""Hold a stopping server until it has answered what it accepted.

Runs as the container's preStop hook, before SIGTERM: Kubernetes and the load balancer learn at the same
moment that the pod is going, so for some seconds new requests still arrive; after that only those in flight
matter. Ends early when there are none, and at the timeout whatever happens. Only the standard library: it
runs in any vLLM image.
"""

import argparse
import sys
import time
from http.client import HTTPException
from urllib.request import ProxyHandler, build_opener

METRICS_URL = "http://127.0.0.1:8000/metrics"
IN_FLIGHT = ("vllm:num_requests_running", "vllm:num_requests_waiting")

SETTLE_SECONDS = 5.0
"""Until endpoints and load balancer targets are gone (assumed; usually one to three seconds)."""

POLL_SECONDS = 1.0
QUIET_POLLS = 2
"""In a row, since a request can arrive between two polls."""


_opener = build_opener(ProxyHandler({}))  # the server is in this pod, whatever proxy the pod uses for the world


class ServerGoneError(Exception):
    """Nothing listens any more, so nothing is left to wait for."""


def requests_in_flight(metrics: str) -> float | None:
    """Requests running and waiting, over all engines; None when the text has no such metric."""
    values = [
        float(line.rsplit(" ", 1)[1])
        for line in metrics.splitlines()
        if line.split("{", 1)[0].split(" ", 1)[0] in IN_FLIGHT
    ]
    return sum(values) if values else None


def ask(url: str, timeout_seconds: float) -> float | None:
    """Requests in flight by the server's own account; None when it does not say.

    Raises:
        ServerGoneError: when nothing listens at the address.
    """
    try:
        with _opener.open(url, timeout=timeout_seconds) as answer:
            return requests_in_flight(answer.read().decode(errors="replace"))
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(getattr(error, "reason", error), ConnectionRefusedError):
            raise ServerGoneError from error
        return None


def drain(url: str, timeout_seconds: float, settle_seconds: float) -> str:
    """Wait until the server is idle, gone, or out of time; says which."""
    started = time.monotonic()
    deadline = started + timeout_seconds
    time.sleep(min(settle_seconds, timeout_seconds))
    quiet = 0
    while (left := deadline - time.monotonic()) > 0:
        try:
            in_flight = ask(url, timeout_seconds=min(5.0, left))
        except ServerGoneError:
            return "the server is gone"
        quiet = quiet + 1 if in_flight == 0 else 0
        if quiet == QUIET_POLLS:
            return f"idle after {time.monotonic() - started:.0f} s"
        time.sleep(max(0.0, min(POLL_SECONDS, deadline - time.monotonic())))
    return f"out of time after {timeout_seconds:g} s"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--timeout", type=float, required=True, help="seconds, all waiting included")
    arguments.add_argument("--settle", type=float, default=SETTLE_SECONDS, help="seconds before the first look")
    arguments.add_argument("--url", default=METRICS_URL)
    given = arguments.parse_args()
    print(f"drain: {drain(given.url, given.timeout, given.settle)}", file=sys.stderr)


if __name__ == "__main__":
    main()
