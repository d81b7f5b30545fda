"""The client against a server that behaves, and against one that does not."""

import json
import ssl
import time
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from lambdas.adapters import kubernetes as module
from lambdas.adapters.cluster import Deployment, Node, Pod, ScaledObject
from lambdas.adapters.eks import EksToken, Endpoint
from lambdas.adapters.kubernetes import KubernetesClient, Resource, Timing
from lambdas.adapters.kubernetes_errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RejectedError,
    ServerError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from tests.support.kubernetes_api import Answer, DeadEndpoint, KubernetesApi
from tests.support.kubernetes_objects import NAMESPACE, node, pod, scaled_object

SCALED = ScaledObject.RESOURCE
PODS = Pod.RESOURCE
NODES = Node.RESOURCE


def get(client, name="vllm-a"):
    return client.get(SCALED, name, namespace=NAMESPACE)


# Reading


@pytest.mark.parametrize(
    ("resource", "where", "path"),
    [
        (NODES, {}, "/api/v1/nodes"),
        (NODES, {"name": "ip-10-0-0-1.ec2.internal"}, "/api/v1/nodes/ip-10-0-0-1.ec2.internal"),
        (PODS, {"namespace": "a"}, "/api/v1/namespaces/a/pods"),
        (Deployment.RESOURCE, {"namespace": "a", "name": "b"}, "/apis/apps/v1/namespaces/a/deployments/b"),
        (Resource("v1", "pods"), {"namespace": "a/../b"}, "/api/v1/namespaces/a%2F..%2Fb/pods"),
    ],
)
def test_objects_are_where_the_api_server_keeps_them(resource, where, path):
    assert resource.path(**where) == path


def test_an_object_is_read_with_a_token_in_the_header(api, kubernetes, token):
    api.put(scaled_object("vllm-a"))
    assert get(kubernetes)["metadata"]["name"] == "vllm-a"
    assert api.requests[0].headers["authorization"] == f"Bearer {token.current()}"


def test_what_is_not_there_is_named(kubernetes):
    with pytest.raises(NotFoundError, match=rf"get scaledobjects.keda.sh vllm-a in namespace {NAMESPACE}: 404"):
        get(kubernetes)


def test_a_list_is_read_page_by_page(api, kubernetes, monkeypatch):
    monkeypatch.setattr(module, "PAGE_SIZE", 10)
    api.put(*(pod(f"p-{number:03}") for number in range(35)))
    names = kubernetes.list_as(PODS, lambda found: found["metadata"]["name"], namespace=NAMESPACE)
    assert names == [f"p-{number:03}" for number in range(35)]
    assert [request.query["limit"] for request in api.asked("list")] == ["10"] * 4
    assert [("continue" in request.query) for request in api.asked("list")] == [False, True, True, True]


def test_an_empty_list_is_empty(kubernetes):
    assert kubernetes.list_as(NODES, dict) == []


def test_a_list_whose_rest_is_no_longer_kept_is_read_again_in_one_piece(api, kubernetes, monkeypatch):
    monkeypatch.setattr(module, "PAGE_SIZE", 10)
    api.put(*(pod(f"p-{number:03}") for number in range(25)))
    seen = []

    def view(found):
        seen.append(found)
        if len(seen) == 10:
            api.expire_continues()
        return found["metadata"]["name"]

    assert kubernetes.list_as(PODS, view, namespace=NAMESPACE) == [f"p-{number:03}" for number in range(25)]
    assert "limit" not in api.asked("list")[-1].query


def test_a_list_can_be_asked_for_by_label(api, kubernetes):
    api.put(pod("a", model="llama"), pod("b", model="qwen"), pod("c"))
    names = kubernetes.list_as(
        PODS, lambda found: found["metadata"]["name"], namespace=NAMESPACE, labels="genai-finops/model=qwen"
    )
    assert names == ["b"]


# Changing

plain = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
patches = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.none() | st.integers(-5, 5) | st.lists(st.integers(), max_size=2),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)


def rfc_7386(target, patch):
    """Written from the RFC's rules, and not from the server's code: a field is taken away, replaced or merged."""
    if not isinstance(patch, dict):
        return patch
    kept = {key: value for key, value in (target if isinstance(target, dict) else {}).items() if key not in patch}
    changed = {
        key: rfc_7386(target.get(key) if isinstance(target, dict) else None, value)
        for key, value in patch.items()
        if value is not None
    }
    return kept | changed


@pytest.fixture(scope="module")
def long_lived():
    token = EksToken(cluster="c", region="us-east-1", credentials=lambda: Frozen())
    with KubernetesApi() as api:
        yield api, KubernetesClient(endpoint=lambda: Endpoint(api.url), token=token)


class Frozen:
    access_key, secret_key, token = "AKIDEXAMPLE", "secret", None

    def get_frozen_credentials(self):
        return self


@given(spec=st.dictionaries(st.sampled_from("abc"), plain, max_size=3), patch=patches)
def test_a_patch_does_what_the_rfc_says_and_null_takes_away(long_lived, spec, patch):
    api, client = long_lived
    api.put({**scaled_object("vllm-a"), "spec": spec})
    version = api.read("scaledobjects", "vllm-a", NAMESPACE)["metadata"]["resourceVersion"]
    changed = client.merge_patch(SCALED, "vllm-a", {"spec": patch}, namespace=NAMESPACE, resource_version=version)
    wanted = rfc_7386(spec, patch)
    assert changed["spec"] == wanted == api.read("scaledobjects", "vllm-a", NAMESPACE)["spec"]


def test_a_patch_keeps_its_own_metadata_beside_the_precondition(api, kubernetes):
    api.put(scaled_object("vllm-a", annotations={"theirs": "1", "gone": "2"}))
    version = get(kubernetes)["metadata"]["resourceVersion"]
    patch = {"metadata": {"annotations": {"ours": "3", "gone": None}}}
    changed = kubernetes.merge_patch(SCALED, "vllm-a", patch, namespace=NAMESPACE, resource_version=version)
    assert changed["metadata"]["annotations"] == {"theirs": "1", "ours": "3"}
    assert api.asked("patch")[0].query["fieldManager"] == "genai-finops"


def test_a_patch_for_an_older_version_is_a_conflict_and_changes_nothing(api, kubernetes):
    api.put(scaled_object("vllm-a"))
    version = get(kubernetes)["metadata"]["resourceVersion"]
    api.change("scaledobjects", "vllm-a", {"spec": {"maxReplicaCount": 9}}, NAMESPACE)
    with pytest.raises(ConflictError):
        kubernetes.merge_patch(
            SCALED, "vllm-a", {"spec": {"maxReplicaCount": 2}}, namespace=NAMESPACE, resource_version=version
        )
    assert get(kubernetes)["spec"]["maxReplicaCount"] == 9


def update(client, change):
    return client.update(SCALED, ScaledObject.of(get(client)), change, view=ScaledObject.of)


def test_an_update_that_loses_a_race_looks_again_and_decides_again(api, kubernetes):
    api.put(scaled_object("vllm-a", maximum=4))
    api.before_next_patch(lambda: api.change("scaledobjects", "vllm-a", {"spec": {"maxReplicaCount": 8}}, NAMESPACE))
    now = update(kubernetes, lambda seen: {"spec": {"maxReplicaCount": seen.max_replicas + 1}})
    assert now.max_replicas == 9
    assert len(api.asked("patch")) == 2


def test_an_update_ends_when_the_other_has_done_it(api, kubernetes):
    api.put(scaled_object("vllm-a", maximum=4))
    api.before_next_patch(lambda: api.change("scaledobjects", "vllm-a", {"spec": {"maxReplicaCount": 2}}, NAMESPACE))
    now = update(kubernetes, lambda seen: {"spec": {"maxReplicaCount": 2}} if seen.max_replicas != 2 else None)
    assert now.max_replicas == 2
    assert len(api.asked("patch")) == 1


def test_an_update_gives_up_when_somebody_else_is_always_faster(api, kubernetes):
    api.put(scaled_object("vllm-a"))
    api.inject(Answer(409), verb="patch")
    with pytest.raises(ConflictError, match="somebody else"):
        update(kubernetes, lambda seen: {"spec": {"maxReplicaCount": 2}})
    assert len(api.asked("patch")) == module.UPDATE_ATTEMPTS


def test_nothing_is_sent_when_an_object_is_right_already(api, kubernetes):
    api.put(scaled_object("vllm-a"))
    update(kubernetes, lambda seen: None)
    assert api.asked("patch") == []


# Refusals


def test_one_401_is_answered_with_a_new_signature(api, kubernetes, token, clock):
    api.put(scaled_object("vllm-a"))
    old = token.current()
    api.inject(Answer(401), times=1)
    token._token = old  # what the server no longer takes
    assert get(kubernetes)["metadata"]["name"] == "vllm-a"
    assert len(api.requests) == 2
    assert clock.sleeps == []


def test_an_expired_token_is_replaced(api, kubernetes, token):
    api.put(scaled_object("vllm-a"))
    token.current()
    token._token = "k8s-aws-v1.expired"
    api.accepts_token = lambda given: given != "k8s-aws-v1.expired"
    assert get(kubernetes)["metadata"]["name"] == "vllm-a"


def test_a_second_401_is_the_end_and_says_what_is_missing(api, kubernetes, clock):
    api.inject(Answer(401))
    with pytest.raises(UnauthorizedError, match="access entry of cluster genai"):
        get(kubernetes)
    assert len(api.requests) == 2
    assert clock.sleeps == []


def test_403_names_the_permission_that_is_missing(api, kubernetes):
    api.inject(Answer(403))
    with pytest.raises(ForbiddenError, match=f"the role needs patch on scaledobjects.keda.sh in namespace {NAMESPACE}"):
        kubernetes.merge_patch(SCALED, "vllm-a", {}, namespace=NAMESPACE)
    with pytest.raises(ForbiddenError, match="the role needs list on nodes "):
        kubernetes.list_as(NODES, dict)
    assert len(api.requests) == 2


def test_a_request_that_is_wrong_is_not_repeated_and_the_reason_is_passed_on(api, kubernetes):
    message = "spec.maxReplicaCount: Invalid value"
    api.inject(Answer(422, {"kind": "Status", "message": message}))
    with pytest.raises(RejectedError, match=message) as refused:
        get(kubernetes)
    assert refused.value.status == 422
    assert len(api.requests) == 1


# Bad days


def test_429_waits_as_long_as_it_is_told_to(api, kubernetes, clock):
    api.put(scaled_object("vllm-a"))
    clock.chance = 0.0
    api.inject(Answer(429, headers={"retry-after": "3"}), times=2)
    get(kubernetes)
    assert clock.sleeps == [3.0, 3.0]


def test_429_for_longer_than_there_is_time_is_an_error_at_once(api, kubernetes, clock):
    api.inject(Answer(429, headers={"retry-after": "600"}))
    with pytest.raises(ThrottledError):
        get(kubernetes)
    assert clock.sleeps == []


@pytest.mark.parametrize("value", ["soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT", "²"])
def test_a_retry_after_that_is_no_number_of_seconds_is_as_good_as_none(api, kubernetes, clock, value):
    api.put(scaled_object("vllm-a"))
    api.inject(Answer(429, headers={"retry-after": value.encode().decode("latin-1")}), times=1)
    get(kubernetes)
    assert clock.sleeps == [pytest.approx(0.2)]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_that_fails_is_asked_again_with_growing_delays(api, kubernetes, clock, status):
    api.put(scaled_object("vllm-a"))
    api.inject(Answer(status, b"<html>bad gateway</html>"), times=3)
    get(kubernetes)
    assert clock.sleeps == [pytest.approx(0.2), pytest.approx(0.4), pytest.approx(0.8)]


def test_delays_are_drawn_below_their_bound_so_that_callers_spread():
    draws = [Timing(chance=lambda draw=draw: draw).delay(2) for draw in (0.0, 0.5, 1.0)]
    assert draws == [0.0, pytest.approx(0.4), pytest.approx(0.8)]
    assert Timing(chance=lambda: 1.0).delay(30) == module.LONGEST_DELAY_SECONDS


def test_a_server_that_keeps_failing_is_left_alone_after_four_attempts(api, kubernetes):
    api.inject(Answer(503))
    with pytest.raises(ServerError, match="503"):
        get(kubernetes)
    assert len(api.requests) == module.ATTEMPTS


def test_a_connection_that_breaks_is_made_again(api, kubernetes):
    api.put(scaled_object("vllm-a"))
    api.inject(Answer(hang_up=True), times=2)
    assert get(kubernetes)["metadata"]["name"] == "vllm-a"


def test_a_patch_whose_answer_was_lost_is_found_done(api, kubernetes):
    """The repeated patch is a conflict, and the second look shows that nothing is left to do."""
    api.put(scaled_object("vllm-a", maximum=4))
    seen = ScaledObject.of(get(kubernetes))
    api.change("scaledobjects", "vllm-a", {"spec": {"maxReplicaCount": 2}}, NAMESPACE)
    api.inject(Answer(hang_up=True), verb="patch", times=1)
    now = kubernetes.update(
        SCALED,
        seen,
        lambda it: None if it.max_replicas == 2 else {"spec": {"maxReplicaCount": 2}},
        view=ScaledObject.of,
    )
    assert now.max_replicas == 2


def test_an_answer_that_is_not_json_is_an_error_of_the_server(api, kubernetes):
    api.inject(Answer(200, b"<html>login</html>"))
    with pytest.raises(ServerError, match="not JSON"):
        get(kubernetes)


def real_time(url, **more):
    token = EksToken(cluster="genai", region="us-east-1", credentials=lambda: Frozen())
    return KubernetesClient(endpoint=lambda: Endpoint(url, **more), token=token)


def test_an_api_server_that_takes_no_connection_fails_within_three_seconds():
    with DeadEndpoint() as dead:
        started = time.monotonic()
        with pytest.raises(UnreachableError, match=r"no connection within 2\.5 s.*port 443"):
            get(real_time(dead.url))
        assert time.monotonic() - started < 3


def test_all_addresses_of_an_endpoint_share_the_time_to_connect(monkeypatch):
    addresses = [(2, 1, 6, "", (f"10.0.{zone}.9", 443)) for zone in range(4)]
    monkeypatch.setattr(module.socket, "getaddrinfo", lambda *_, **__: addresses)
    assert module._connect_seconds("api.example", 443) * 4 <= 3


def test_an_api_server_that_does_not_answer_in_time_is_unreachable(api, monkeypatch):
    monkeypatch.setattr(module, "READ_SECONDS", 0.1)
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    api.inject(Answer(delay_seconds=0.4))
    with pytest.raises(UnreachableError, match="timed out"):
        get(real_time(api.url))


def test_a_name_that_does_not_exist_and_a_port_that_is_closed_are_unreachable(clock, token):
    for url in ("http://api.invalid", "http://127.0.0.1:1"):
        client = KubernetesClient(endpoint=lambda url=url: Endpoint(url), token=token, timing=clock.timing())
        with pytest.raises(UnreachableError, match=url):
            get(client)


def test_an_endpoint_that_has_moved_is_found_again(clock, token):
    """A cluster that was made anew has another endpoint, and functions live on."""
    with KubernetesApi() as old, KubernetesApi() as new:
        new.put(scaled_object("vllm-a"))
        urls = iter(["http://127.0.0.1:1", new.url])
        client = KubernetesClient(endpoint=lambda: Endpoint(next(urls)), token=token, timing=clock.timing())
        assert get(client)["metadata"]["name"] == "vllm-a"
        assert old.requests == []


def test_where_the_api_server_is_is_asked_once(api, token, clock):
    api.put(scaled_object("vllm-a"))
    asked = []
    client = KubernetesClient(endpoint=lambda: asked.append(1) or Endpoint(api.url), token=token, timing=clock.timing())
    for _ in range(3):
        get(client)
        clock.pass_(minutes=5)  # frozen between invocations
    assert len(asked) == 1


def test_a_connection_that_rested_is_not_trusted(api, kubernetes, clock):
    api.put(scaled_object("vllm-a"))
    get(kubernetes)
    first = kubernetes._pool
    clock.pass_(seconds=10)
    get(kubernetes)
    assert kubernetes._pool is first
    clock.pass_(seconds=31)
    get(kubernetes)
    assert kubernetes._pool is not first


def test_no_error_shows_the_token(api, kubernetes, token):
    api.inject(Answer(403))
    with pytest.raises(ForbiddenError) as refused:
        get(kubernetes)
    assert token.current() not in str(refused.value)


# Trust


def authority(name):
    """As EKS makes them: no key identifiers."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return key, subject, sign(key, subject, key, subject, x509.BasicConstraints(ca=True, path_length=None))


def sign(issuer_key, issuer, key, subject, *extensions):
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    return builder.sign(issuer_key, hashes.SHA256())


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def trust(tmp_path_factory):
    """A server's TLS, and the PEM of its authority."""
    import ipaddress

    folder = tmp_path_factory.mktemp("tls")
    ca_key, ca_name, ca = authority("kubernetes")
    key = ec.generate_private_key(ec.SECP256R1())
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = sign(ca_key, ca_name, key, x509.Name([]), address)
    (folder / "tls.crt").write_bytes(pem(certificate))
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context, pem(ca)


def test_the_clusters_own_authority_is_trusted(trust):
    context, ca = trust
    with KubernetesApi(tls=context) as api:
        api.put(scaled_object("vllm-a"))
        client = real_time(api.url, certificate_authority=ca)
        assert get(client)["metadata"]["name"] == "vllm-a"


def test_any_other_authority_is_refused_at_once(trust):
    context, _ = trust
    _, _, other = authority("kubernetes")
    with KubernetesApi(tls=context) as api:
        with pytest.raises(UnreachableError, match="not of the cluster's authority"):
            get(real_time(api.url, certificate_authority=pem(other)))
        assert api.requests == []


def test_the_authority_that_eks_makes_is_trusted_by_python_3_13_as_well(trust):
    context = module._trust(trust[1])
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


# Size


def test_what_is_sent_is_json_of_the_right_kind(api, kubernetes):
    api.put(node("n"))
    kubernetes.merge_patch(NODES, "n", {"metadata": {"labels": {"a": "ü"}}})
    request = api.asked("patch")[0]
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert json.loads(json.dumps(request.body)) == {"metadata": {"labels": {"a": "ü"}}}
