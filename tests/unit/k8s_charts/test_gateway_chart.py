"""The way in."""

import pytest

from tests.platform_files import platform
from tests.unit.k8s_charts.charts import built, manifests, named, of_kind, servers

pytestmark = pytest.mark.synth

CERTIFICATE = "arn:aws:acm:us-west-2:111122223333:certificate/11111111-2222-3333-4444-555555555555"


def attributes(pairs):
    return {pair["key"]: pair["value"] for pair in pairs}


def configuration(found):
    [only] = of_kind(found, "LoadBalancerConfiguration")
    return only["spec"]


def test_internal_by_default_and_open_to_the_vpc_only():
    spec = configuration(manifests("default"))
    assert spec["scheme"] == "internal"
    assert spec["sourceRanges"] == [platform("default").network.cidr]


def test_on_the_internet_only_when_asked_and_only_for_those_listed():
    spec = configuration(manifests("rich"))
    assert spec["scheme"] == "internet-facing"
    assert spec["sourceRanges"] == ["203.0.113.0/24", "198.51.100.0/24"]


def test_a_certificate_makes_it_https():
    found = built(gateway={"certificate_arn": CERTIFICATE})
    [listener] = of_kind(found, "Gateway")[0]["spec"]["listeners"]
    assert (listener["protocol"], listener["port"]) == ("HTTPS", 443)
    [tls] = configuration(found)["listenerConfigurations"]
    assert tls["protocolPort"] == "HTTPS:443"
    assert tls["defaultCertificate"] == CERTIFICATE
    assert "TLS13" in tls["sslPolicy"]


def test_without_one_it_is_http():
    [listener] = of_kind(manifests("default"), "Gateway")[0]["spec"]["listeners"]
    assert (listener["protocol"], listener["port"]) == ("HTTP", 80)
    assert "listenerConfigurations" not in configuration(manifests("default"))


def test_routes_of_other_namespaces_are_not_let_in():
    for name in ("default", "rich"):
        [listener] = of_kind(manifests(name), "Gateway")[0]["spec"]["listeners"]
        assert listener["allowedRoutes"] == {"namespaces": {"from": "Same"}}


def test_only_the_api_of_a_model_is_routed():
    # Outside /v1 vLLM asks for no key, and some of what is there generates text.
    for route in of_kind(manifests("rich"), "HTTPRoute"):
        [rule] = route["spec"]["rules"]
        model = route["metadata"]["name"].removeprefix("vllm-")
        assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": f"/{model}/v1"}}]
        assert "filters" not in rule


def test_the_route_and_the_server_agree_on_the_path():
    for deployment in servers(manifests("rich")):
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        root = container["args"][container["args"].index("--root-path") + 1]
        route = named(manifests("rich"), "HTTPRoute", deployment["metadata"]["name"])
        assert route["spec"]["rules"][0]["matches"][0]["path"]["value"] == f"{root}/v1"


def test_the_hostname_is_on_listener_and_routes():
    [listener] = of_kind(manifests("rich"), "Gateway")[0]["spec"]["listeners"]
    assert listener["hostname"] == "models.example.com"
    assert all(
        route["spec"]["hostnames"] == ["models.example.com"] for route in of_kind(manifests("rich"), "HTTPRoute")
    )
    assert all("hostnames" not in route["spec"] for route in of_kind(manifests("default"), "HTTPRoute"))


def test_answers_that_take_minutes_are_waited_for():
    found = attributes(configuration(manifests("default"))["loadBalancerAttributes"])
    assert int(found["idle_timeout.timeout_seconds"]) >= 300
    assert found["routing.http.drop_invalid_header_fields.enabled"] == "true"


@pytest.mark.parametrize(("name", "protected"), [("default", "true"), ("rich", "false")])
def test_deletion_is_refused_as_long_as_the_file_says(name, protected):
    found = attributes(configuration(manifests(name))["loadBalancerAttributes"])
    assert found["deletion_protection.enabled"] == protected


def test_the_load_balancer_is_tagged_for_cost_allocation():
    tags = configuration(manifests("rich"))["tags"]
    assert tags["genai-finops:platform"] == "rich"
    assert tags["team"] == "genai"


def test_targets_are_pods_that_drain_as_long_as_the_server_does():
    for targets in of_kind(manifests("rich"), "TargetGroupConfiguration"):
        spec = targets["spec"]["defaultConfiguration"]
        model = next(m for m in platform("rich").models if f"vllm-{m.name}" == targets["metadata"]["name"])
        assert spec["targetType"] == "ip"
        assert spec["healthCheckConfig"]["healthCheckPath"] == "/health"
        found = attributes(spec["targetGroupAttributes"])
        assert found["deregistration_delay.timeout_seconds"] == str(model.drain_seconds)
        assert found["load_balancing.algorithm.type"] == "least_outstanding_requests"


def test_aws_controller_makes_the_load_balancer():
    [gateway_class] = of_kind(manifests("default"), "GatewayClass")
    assert gateway_class["spec"]["controllerName"] == "gateway.k8s.aws/alb"
