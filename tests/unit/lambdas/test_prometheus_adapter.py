"""Tokens and requests by model, asked through the API server; and what happens when nobody answers."""

from datetime import UTC, datetime, timedelta

import pytest

from genai_finops.operations.tokens import Tokens
from genai_finops.spec import names
from lambdas.adapters.kubernetes_errors import ForbiddenError, UnauthorizedError
from lambdas.adapters.prometheus import Load, Prometheus, PrometheusError, PrometheusUnreachableError
from tests.support.kubernetes_api import Answer

SERVICE = f"{names.PROMETHEUS_SERVICE}:{names.PROMETHEUS_PORT}"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def prometheus(kubernetes):
    return Prometheus(
        kubernetes,
        service=names.PROMETHEUS_SERVICE,
        port=names.PROMETHEUS_PORT,
        namespace=names.MONITORING_NAMESPACE,
        models_namespace=names.MODEL_NAMESPACE,
    )


def vector(*samples):
    result = [{"metric": labels, "value": [1772452800.0, value]} for labels, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def of_models(**values):
    return vector(*(({"model_name": model}, value) for model, value in values.items()))


class Answers:
    """A Prometheus that has an answer for each metric."""

    def __init__(self, api, by_metric, status=200):
        self.queries = []

        def answer(request):
            self.queries.append(request.query)
            found = next((body for metric, body in by_metric.items() if metric in request.query["query"]), vector())
            return status, found

        api.serve(SERVICE, answer, namespace=names.MONITORING_NAMESPACE)


def test_load_takes_two_questions_for_all_models(api, prometheus):
    answers = Answers(api, {"running": of_models(a="3", b="0"), "waiting": of_models(a="2", b="0")})
    assert prometheus.load() == {"a": Load(3, 2), "b": Load(0, 0)}
    assert len(answers.queries) == 2
    assert answers.queries[0] == {
        "query": f'sum by (model_name) (vllm:num_requests_running{{namespace="{names.MODEL_NAMESPACE}"}})'
    }


def test_the_way_is_the_proxy_of_the_api_server(api, prometheus):
    Answers(api, {})
    prometheus.load()
    request = api.asked("proxy")[0]
    assert (request.namespace, request.name) == ("monitoring", "prometheus-operated:9090")
    assert request.path == "/api/v1/query"


def test_tokens_are_the_increase_over_the_window_before_the_time(api, prometheus):
    answers = Answers(
        api, {"prompt_tokens": of_models(a="1000000.4"), "generation_tokens": of_models(a="2.5e5", c="7")}
    )
    served = prometheus.tokens(timedelta(days=1), at=NOON)
    assert served == {"a": Tokens(1_000_000, 250_000), "c": Tokens(0, 7)}
    assert {query["time"] for query in answers.queries} == {"1772452800.000"}
    assert "increase(vllm:prompt_tokens_total" in answers.queries[0]["query"]
    assert answers.queries[0]["query"].endswith("[86400s]))")


def test_models_may_be_called_what_clients_like(api, prometheus):
    Answers(api, {"running": vector(({"model_name": 'meta/llama "3"'}, "1"))})
    assert prometheus.load() == {'meta/llama "3"': Load(1, 0)}


def test_nothing_served_is_nothing_and_no_error(api, prometheus):
    Answers(api, {})
    assert prometheus.tokens(timedelta(hours=1), at=NOON) == {}
    assert prometheus.load() == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_values_that_are_no_numbers_are_left_out(api, prometheus, value):
    Answers(api, {"running": of_models(a=value, b="1")})
    assert prometheus.load() == {"b": Load(1, 0)}


def test_series_without_a_model_are_left_out(api, prometheus):
    Answers(api, {"running": vector(({}, "5"), ({"model_name": "a"}, "1"))})
    assert prometheus.load() == {"a": Load(1, 0)}


@pytest.mark.parametrize("status", [200, 400, 422, 503])
def test_a_query_that_is_refused_says_why(api, prometheus, status):
    refusal = {"status": "error", "errorType": "execution", "error": "query timed out"}
    Answers(api, {"": refusal}, status=status)
    with pytest.raises(PrometheusError, match="execution: query timed out"):
        prometheus.load()


def test_an_answer_of_another_shape_is_refused(api, prometheus):
    Answers(api, {"": {"status": "success", "data": {"resultType": "scalar", "result": [0, "1"]}}})
    with pytest.raises(PrometheusError):
        prometheus.load()


def test_a_service_without_pods_is_unreachable_and_not_waited_for(prometheus, clock):
    with pytest.raises(PrometheusUnreachableError, match="no endpoints available"):
        prometheus.load()
    assert sum(clock.sleeps) < 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404),
        Answer(429, headers={"retry-after": "60"}),
        Answer(500),
        Answer(502, b"<html>bad gateway</html>"),
        Answer(200, b"<html>a login page</html>"),
        Answer(hang_up=True),
    ],
)
def test_whatever_stands_in_the_way_is_one_error(api, prometheus, answer):
    api.inject(answer, verb="proxy")
    with pytest.raises(PrometheusUnreachableError, match="monitoring/prometheus-operated:9090"):
        prometheus.load()


def test_a_permission_that_is_missing_is_not_mistaken_for_an_outage(api, prometheus):
    api.inject(Answer(403), verb="proxy", times=1)
    with pytest.raises(ForbiddenError, match="the role needs get on services/proxy in namespace monitoring"):
        prometheus.load()
    api.inject(Answer(401))
    with pytest.raises(UnauthorizedError):
        prometheus.load()
