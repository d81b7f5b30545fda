"""Servers: what they ask of a node, what they are told, who reaches them, and how they go."""

import json

import pytest

from genai_finops.spec import artifacts, engine, names, placement
from genai_finops.spec.checks.serving import DRAIN_SAFETY_SECONDS, SPOT_NOTICE_SECONDS
from tests.platform_files import platform
from tests.unit.k8s_charts.charts import PLATFORMS, built, manifests, model, named, of_kind, server

pytestmark = pytest.mark.synth

DEVICES = ("aws.amazon.com/neuron", "nvidia.com/gpu")


def deployments():
    return [
        pytest.param(name, served.name, id=f"{name}-{served.name}")
        for name in PLATFORMS
        for served in platform(name).models
    ]


def deployment(name, model_name):
    return named(manifests(name), "Deployment", f"vllm-{model_name}")


def pod(name, model_name):
    return deployment(name, model_name)["spec"]["template"]["spec"]


def environment(container):
    return {variable["name"]: variable for variable in container["env"]}


each_model = pytest.mark.parametrize(("name", "model_name"), deployments())


@each_model
def test_replicas_are_left_to_keda(name, model_name):
    assert "replicas" not in deployment(name, model_name)["spec"]


@each_model
def test_devices_and_memory_are_limited_to_what_is_requested_and_cpu_is_not_limited(name, model_name):
    resources = server(deployment(name, model_name))["resources"]
    wanted = model(name, model_name)
    assert {k: v for k, v in resources["requests"].items() if k != "cpu"} == resources["limits"]
    assert resources["limits"].keys() == {"memory", names.device_resource(wanted.vendor)}
    assert resources["requests"]["cpu"] == str(placement.cpu(wanted))
    assert resources["limits"]["memory"] == f"{placement.memory_gib(wanted)}Gi"


def test_the_article_corrected_one_device_for_two_cores():
    found = server(deployment("default", "llama3-8b"))
    assert found["resources"]["limits"]["aws.amazon.com/neuron"] == "1"
    arguments = found["args"]
    assert arguments[arguments.index("--tensor-parallel-size") + 1] == "2"


@each_model
def test_the_server_is_process_one(name, model_name):
    container = server(deployment(name, model_name))
    command = container["command"]
    assert command[:2] == ["python3", "/scripts/fetch.py"]  # which becomes, in the same process, what comes after --
    assert command[command.index("--") + 1 :] == ["vllm", "serve"]
    assert container["args"] == engine.serve_arguments(model(name, model_name))


@each_model
def test_it_listens_where_everyone_looks(name, model_name):
    container = server(deployment(name, model_name))
    assert container["ports"] == [{"name": "http", "containerPort": 8000}]
    assert container["args"][container["args"].index("--port") + 1] == "8000"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "http"}


@each_model
def test_a_start_may_take_what_the_file_allows_and_a_rollout_longer(name, model_name):
    spec = deployment(name, model_name)["spec"]
    startup = server(deployment(name, model_name))["startupProbe"]
    allowed = model(name, model_name).probes.startup_seconds
    assert allowed <= startup["failureThreshold"] * startup["periodSeconds"] < allowed + startup["periodSeconds"]
    assert spec["progressDeadlineSeconds"] > allowed


@each_model
def test_a_stop_fits_between_the_spot_notice_and_the_loss(name, model_name):
    grace = pod(name, model_name)["terminationGracePeriodSeconds"]
    drain = model(name, model_name).drain_seconds
    assert drain < grace <= drain + DRAIN_SAFETY_SECONDS
    assert grace < SPOT_NOTICE_SECONDS


@each_model
def test_requests_in_flight_are_drained_before_the_server_is_told_to_stop(name, model_name):
    command = server(deployment(name, model_name))["lifecycle"]["preStop"]["exec"]["command"]
    drain = model(name, model_name).drain_seconds
    assert command == ["python3", "/scripts/drain.py", "--timeout", str(drain)]
    assert "drain.py" in named(manifests(name), "ConfigMap", "serving-scripts")["data"]


@each_model
def test_it_runs_only_on_sizes_that_were_checked(name, model_name):
    affinity = pod(name, model_name)["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    wanted = model(name, model_name)
    assert {e["key"]: e["values"] for e in term["matchExpressions"]} == {
        "karpenter.k8s.aws/instance-family": [wanted.accelerator.family],
        "karpenter.k8s.aws/instance-size": list(placement.sizes(wanted)),
    }


@pytest.mark.parametrize(("spot", "capacity_type"), [("prefer", None), ("only", "spot"), ("never", "on-demand")])
def test_spot_is_a_choice_per_model(spot, capacity_type):
    [found] = of_kind(built({"spot": spot}), "Deployment")
    selector = found["spec"]["template"]["spec"]["nodeSelector"]
    assert selector.get("karpenter.sh/capacity-type") == capacity_type


@pytest.mark.parametrize(
    ("name", "model_name", "scheduler"),
    [
        ("default", "llama3-8b", names.NEURON_SCHEDULER),  # up to six on an inf2.24xlarge
        ("rich", "llama3-8b", None),  # takes the only device of its node
        ("rich", "llama3-70b", names.NEURON_SCHEDULER),  # eight of twelve devices
        ("rich", "mistral-7b", None),
    ],
)
def test_the_neuron_scheduler_places_replicas_that_may_share_a_node(name, model_name, scheduler):
    assert pod(name, model_name).get("schedulerName") == scheduler


@each_model
def test_spreading_never_leases_a_node_per_replica(name, model_name):
    zones, hosts = pod(name, model_name)["topologySpreadConstraints"]
    assert zones["topologyKey"] == "topology.kubernetes.io/zone"
    assert hosts["topologyKey"] == "kubernetes.io/hostname"
    assert zones["whenUnsatisfiable"] == hosts["whenUnsatisfiable"] == "ScheduleAnyway"
    wanted = model(name, model_name)
    full = max(placement.replicas_per_node(wanted, i) for i in placement.instances(wanted))
    assert hosts["maxSkew"] == full


@each_model
def test_containers_can_do_no_more_than_they_need(name, model_name):
    spec = pod(name, model_name)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in context
    assert not any("hostPath" in volume for volume in spec["volumes"])


@each_model
def test_services_do_not_leak_into_vllms_settings(name, model_name):
    # A Service called vllm-x would set VLLM_X_PORT, and vLLM reads what starts with VLLM_.
    assert pod(name, model_name)["enableServiceLinks"] is False


@each_model
def test_shared_memory_is_in_memory_and_as_large_as_asked(name, model_name):
    [shm] = [volume for volume in pod(name, model_name)["volumes"] if volume["name"] == "shm"]
    gib = model(name, model_name).resources.shared_memory_gib
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": f"{gib}Gi"}
    mounts = server(deployment(name, model_name))["volumeMounts"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in mounts


def option(command, flag):
    return command[command.index(flag) + 1]


@each_model
def test_files_are_brought_before_the_server_starts_and_held_while_it_runs(name, model_name):
    [fetch] = pod(name, model_name)["initContainers"]
    container, wanted = server(deployment(name, model_name)), model(name, model_name)
    assert fetch["image"] == container["image"] == engine.image(wanted)
    assert fetch["command"] == container["command"][: container["command"].index("--")]
    assert option(fetch["command"], "--weights") == f"{artifacts.weights_name(wanted)}@{wanted.revision}"
    assert option(fetch["command"], "--weights-link") == engine.WEIGHTS_PATH == container["args"][0]
    assert option(fetch["command"], "--stage-command") == f"make stage MODEL={model_name}"
    for one in (fetch, container):
        assert {"name": "cache", "mountPath": "/cache"} in one["volumeMounts"]
        assert {"name": "models", "mountPath": "/models"} in one["volumeMounts"]
        variables = environment(one)
        assert variables["MODEL_CACHE"]["value"] == "/cache"
        assert variables["AWS_REGION"]["value"] == platform(name).region
        bucket = variables["MODEL_STORE_BUCKET"]["valueFrom"]["configMapKeyRef"]
        assert bucket == {"name": names.MODEL_STORE, "key": names.BUCKET_KEY}
    assert not set(fetch["resources"]["limits"]) & set(DEVICES)


@each_model
def test_a_cache_is_as_large_as_its_pool_says(name, model_name):
    here = platform(name)
    family = model(name, model_name).accelerator.family
    [fetch] = pod(name, model_name)["initContainers"]
    limit = placement.cache_gib(here.node_pool(family), here.models_on(family))
    assert option(fetch["command"], "--cache-limit-gib") == str(limit)


@each_model
def test_the_server_finds_everything_in_its_pod(name, model_name):
    assert environment(server(deployment(name, model_name)))["HF_HUB_OFFLINE"]["value"] == "1"


def test_on_neuron_graphs_come_by_key_with_the_weights_in_them():
    command = pod("default", "llama3-8b")["initContainers"][0]["command"]
    wanted = model("default", "llama3-8b")
    assert option(command, "--artifacts") == artifacts.key(wanted)
    assert json.loads(option(command, "--recipe")) == artifacts.recipe(wanted)
    assert option(command, "--artifacts-link") == engine.ARTIFACTS_PATH
    assert option(command, "--compile-command") == "make compile MODEL=llama3-8b"
    assert "--no-tensors" in command
    variables = environment(server(deployment("default", "llama3-8b")))
    assert variables["NEURON_COMPILED_ARTIFACTS"]["value"] == engine.ARTIFACTS_PATH


def test_a_server_that_compiles_gets_the_weights_and_keeps_its_graphs_to_itself():
    command = pod("rich", "llama3-70b")["initContainers"][0]["command"]
    assert not {"--artifacts", "--no-tensors"} & set(command)
    found = environment(server(deployment("rich", "llama3-70b")))["NEURON_COMPILED_ARTIFACTS"]["value"]
    assert found == "/models/compiled"
    assert "emptyDir" in next(v for v in pod("rich", "llama3-70b")["volumes"] if v["name"] == "models")


def test_on_a_gpu_weights_are_all_there_is():
    command = pod("rich", "mistral-7b")["initContainers"][0]["command"]
    assert not {"--artifacts", "--no-tensors"} & set(command)
    assert "NEURON_COMPILED_ARTIFACTS" not in environment(server(deployment("rich", "mistral-7b")))


@pytest.mark.parametrize(
    ("name", "model_name", "secrets"),
    [
        ("default", "llama3-8b", {"VLLM_API_KEY": "vllm-api-key"}),  # the hub's token is for the stage job
        ("minimal", "qwen3-8b", {"VLLM_API_KEY": "vllm-api-key"}),
    ],
)
def test_secrets_come_by_reference_and_only_where_they_are_used(name, model_name, secrets):
    variables = environment(server(deployment(name, model_name)))
    references = {
        key: variable["valueFrom"]["secretKeyRef"]
        for key, variable in variables.items()
        if "secretKeyRef" in variable.get("valueFrom", {})
    }
    assert references == {key: {"name": secret, "key": "value"} for key, secret in secrets.items()}
    csi = [volume["name"] for volume in pod(name, model_name)["volumes"] if "csi" in volume]
    assert csi == list(secrets.values())


def test_without_an_api_key_there_is_no_secret():
    found = built(gateway={"api_key": False})
    assert not of_kind(found, "SecretProviderClass")
    [served] = of_kind(found, "Deployment")
    assert "VLLM_API_KEY" not in environment(server(served))


def test_variables_of_the_file_reach_the_server():
    assert environment(server(deployment("rich", "mistral-7b")))["VLLM_LOGGING_LEVEL"]["value"] == "WARNING"


@each_model
def test_a_rollout_adds_before_it_takes_away_and_leases_one_more(name, model_name):
    assert deployment(name, model_name)["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }


@each_model
def test_one_replica_at_a_time_is_interrupted_and_one_that_loads_holds_up_nothing(name, model_name):
    budget = named(manifests(name), "PodDisruptionBudget", f"vllm-{model_name}")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@each_model
def test_only_the_load_balancer_and_prometheus_reach_a_server(name, model_name):
    [rule] = named(manifests(name), "NetworkPolicy", f"vllm-{model_name}")["spec"]["ingress"]
    assert rule == {
        "from": [
            {"ipBlock": {"cidr": platform(name).network.cidr}},
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}},
        ],
        "ports": [{"port": 8000, "protocol": "TCP"}],
    }


@each_model
def test_a_server_reaches_names_https_and_its_identity(name, model_name):
    egress = named(manifests(name), "NetworkPolicy", f"vllm-{model_name}")["spec"]["egress"]
    ports = {(port["protocol"], port["port"]) for rule in egress for port in rule["ports"]}
    assert ports == {("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 80)}
    [identity] = [rule for rule in egress if rule["ports"][0]["port"] == 80]
    assert identity["to"] == [{"ipBlock": {"cidr": "169.254.170.23/32"}}]


@each_model
def test_the_service_leads_to_the_named_port(name, model_name):
    service = named(manifests(name), "Service", f"vllm-{model_name}")["spec"]
    assert service["type"] == "ClusterIP"
    assert service["ports"] == [{"name": "http", "port": 80, "targetPort": "http"}]
