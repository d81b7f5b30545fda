"""What models have served, asked of Prometheus through the API server.

One query answers for all models: vLLM labels its series with `model_name`, the name that clients ask for.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from genai_finops.operations.tokens import Tokens
from lambdas.adapters.kubernetes import KubernetesClient
from lambdas.adapters.kubernetes_errors import (
    KubernetesError,
    NotFoundError,
    RejectedError,
    ServerError,
    ThrottledError,
    UnreachableError,
)

PROMPT_TOKENS: Final = "vllm:prompt_tokens_total"
GENERATION_TOKENS: Final = "vllm:generation_tokens_total"
RUNNING: Final = "vllm:num_requests_running"
WAITING: Final = "vllm:num_requests_waiting"
MODEL_NAME: Final = "model_name"


class PrometheusUnreachableError(Exception):
    """Prometheus, or the way to it, does not answer. Whoever asks goes on without it."""


class PrometheusError(Exception):
    """Prometheus has refused a query."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests in all replicas of a model: being served, and waiting to be."""

    running: int
    waiting: int


class Prometheus:
    """Instant queries.

    Args:
        namespace: of Prometheus; the role needs `get` on `services/proxy` there.
        models_namespace: where the servers run; series from elsewhere do not count.
    """

    def __init__(
        self, client: KubernetesClient, *, service: str, port: int, namespace: str, models_namespace: str
    ) -> None:
        self._client = client
        self._service = service
        self._port = port
        self._namespace = namespace
        self._selector = f"{{namespace={json.dumps(models_namespace)}}}"

    def tokens(self, window: timedelta, *, at: datetime) -> dict[str, Tokens]:
        """Tokens by model that were served in the window before `at`; a model without series is not in it.

        Prometheus extrapolates, and what a replica serves before it is first scraped is lost: good for a price, not for
        a bill.

        Raises:
            PrometheusUnreachableError, PrometheusError, ForbiddenError, UnauthorizedError
        """
        prompt, generation = (
            self._by_model(f"increase({metric}{self._selector}[{int(window.total_seconds())}s])", at)
            for metric in (PROMPT_TOKENS, GENERATION_TOKENS)
        )
        return {
            model: Tokens(prompt.get(model, 0), generation.get(model, 0)) for model in sorted({*prompt, *generation})
        }

    def load(self, *, at: datetime | None = None) -> dict[str, Load]:
        """Requests by model, now unless another time is given; a model without series is not in it: it may be asleep,
        or not be scraped, and only the cluster can tell.

        Raises:
            PrometheusUnreachableError, PrometheusError, ForbiddenError, UnauthorizedError
        """
        running, waiting = (self._by_model(f"{metric}{self._selector}", at) for metric in (RUNNING, WAITING))
        return {model: Load(running.get(model, 0), waiting.get(model, 0)) for model in sorted({*running, *waiting})}

    def query(self, expression: str, *, at: datetime | None = None) -> list[tuple[Mapping[str, str], float]]:
        """Labels and values of an instant vector; values that are not finite are left out.

        Raises:
            PrometheusUnreachableError: when there is no answer, or none from Prometheus.
            PrometheusError: when it does not understand the query.
            ForbiddenError, UnauthorizedError: when the role may not ask; waiting does not help then.
        """
        query = {"query": expression}
        if at is not None:
            query["time"] = f"{at.timestamp():.3f}"
        answer = self._ask(query)
        if answer.get("status") != "success" or answer.get("data", {}).get("resultType") != "vector":
            raise PrometheusError(_refusal(answer, expression))
        samples = ((sample["metric"], float(sample["value"][1])) for sample in answer["data"]["result"])
        return [(labels, value) for labels, value in samples if math.isfinite(value)]

    def _ask(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        try:
            answer = self._client.proxied_get(
                self._service, self._port, "/api/v1/query", namespace=self._namespace, query=query
            )
        except (RejectedError, ServerError) as error:
            refusal = _json_object(error.body)
            if refusal.get("status") == "error":
                raise PrometheusError(_refusal(refusal, query["query"])) from error
            raise PrometheusUnreachableError(self._unreachable(error)) from error
        except (NotFoundError, ThrottledError, UnreachableError) as error:
            raise PrometheusUnreachableError(self._unreachable(error)) from error
        return answer if isinstance(answer, dict) else {}

    def _by_model(self, series: str, at: datetime | None) -> dict[str, int]:
        samples = self.query(f"sum by ({MODEL_NAME}) ({series})", at=at)
        return {labels[MODEL_NAME]: round(value) for labels, value in samples if labels.get(MODEL_NAME)}

    def _unreachable(self, error: KubernetesError) -> str:
        return f"Prometheus ({self._namespace}/{self._service}:{self._port}) does not answer: {error}"


def _refusal(answer: Mapping[str, Any], expression: str) -> str:
    return f"Prometheus refuses {expression}: {answer.get('errorType', 'unknown')}: {answer.get('error', answer)}"


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
