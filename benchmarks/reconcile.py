"""CPU time of a whole reconcile: 500 models, 2,000 nodes, over HTTP to a server that behaves like the Kubernetes API.

    python -m benchmarks.reconcile

The server runs in a process of its own, so that only what a function does is counted.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any, Final

from botocore.credentials import Credentials

from genai_finops.operations.config import ModelConfig, NodePoolConfig, OperationsConfig
from lambdas.adapters.cluster import Cluster
from lambdas.adapters.eks import EksToken, Endpoint
from lambdas.adapters.facts import InMemoryFacts
from lambdas.adapters.kubernetes import KubernetesClient
from lambdas.adapters.notifications import Notifier
from lambdas.adapters.prometheus import Prometheus
from lambdas.reconcile import reconcile
from lambdas.runtime import PROMETHEUS_NAMESPACE, PROMETHEUS_PORT, PROMETHEUS_SERVICE, Runtime
from tests.support import kubernetes_objects as objects
from tests.support.kubernetes_api import KubernetesApi, Request

MODELS: Final = 500
NODES: Final = 2000
FAMILY: Final = "inf2"


def _prometheus(request: Request) -> tuple[int, Any]:
    vector = [{"metric": {"model_name": f"m{number}"}, "value": [0, "0"]} for number in range(MODELS)]
    return 200, {"status": "success", "data": {"resultType": "vector", "result": vector}}


def _serve(connection: Connection) -> None:
    with KubernetesApi() as api:
        api.put(objects.node_pool("inf2-spot"), objects.node_pool("inf2-on-demand"))
        for number in range(MODELS):
            name = f"vllm-m{number}"
            api.put(objects.scaled_object(name), objects.deployment(name, replicas=4, total=4, ready=4))
        for number in range(NODES):
            api.put(objects.node(f"n{number}", instance=f"i-{number:017x}", images=20))
            pod = objects.pod(f"p{number}", model=f"m{number % MODELS}", node=f"n{number}")
            pod["metadata"]["labels"]["app"] = f"vllm-m{number % MODELS}"
            api.put(pod)
        api.serve(f"{PROMETHEUS_SERVICE}:{PROMETHEUS_PORT}", _prometheus, namespace=PROMETHEUS_NAMESPACE)
        connection.send(api.url)
        connection.recv()
        connection.send(len(api.asked("list")))


@contextmanager
def _server() -> Iterator[tuple[str, Connection]]:
    here, there = Pipe()
    process = Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv(), here
    finally:
        process.join(timeout=5)


def _runtime(url: str) -> Runtime:
    token = EksToken(cluster="demo", region="us-east-1", credentials=lambda: Credentials("AKIDEXAMPLE", "secret"))
    client = KubernetesClient(endpoint=lambda: Endpoint(url), token=token)
    models = tuple(
        ModelConfig(f"m{number}", f"vllm-m{number}", objects.NAMESPACE, f"m{number}", FAMILY, 1, 4)
        for number in range(MODELS)
    )
    pools = (
        NodePoolConfig("inf2-spot", FAMILY, "spot", ("us-east-1a", "us-east-1b")),
        NodePoolConfig("inf2-on-demand", FAMILY, "on-demand", ("us-east-1a", "us-east-1b")),
    )
    return Runtime(
        cluster_name="demo",
        region="us-east-1",
        config=OperationsConfig("demo", "us-east-1", models, pools),
        facts=InMemoryFacts(),
        cluster=Cluster(client, namespace=objects.NAMESPACE),
        prometheus=Prometheus(
            client,
            service=PROMETHEUS_SERVICE,
            port=PROMETHEUS_PORT,
            namespace=PROMETHEUS_NAMESPACE,
            models_namespace=objects.NAMESPACE,
        ),
        notifier=Notifier(None, None),
    )


def main() -> None:
    logging.disable()
    with _server() as (url, connection):
        runtime = _runtime(url)
        print(f"{MODELS} models, {NODES} nodes and pods")
        for name in ("first", "second", "third"):
            cpu, wall = process_time(), perf_counter()
            reconcile(runtime, because="benchmark")
            print(f"{name:8} {process_time() - cpu:6.2f} s of CPU {perf_counter() - wall:6.2f} s in all")
        connection.send("done")
        print(f"{connection.recv()} pages of lists")


if __name__ == "__main__":
    main()
