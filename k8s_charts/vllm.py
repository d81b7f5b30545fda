"""The servers: for every model its Deployment, and what lets others reach it and nothing else."""

from math import ceil
from typing import Final

from cdk8s import Chart
from cdk8s_plus_28 import k8s
from constructs import Construct

from genai_finops import versions
from genai_finops.spec import Model, Platform, engine, names, placement
from genai_finops.spec.checks.serving import DRAIN_SAFETY_SECONDS
from genai_finops.spec.model import S3
from k8s_charts import labels, namespace
from k8s_charts.values import number, port_name, quantity

SERVICE_PORT: Final = 80
HEALTH_PATH: Final = "/health"
HUB_CACHE_PATH: Final = "/models/hub"
ARTIFACTS_VARIABLE: Final = "NEURON_COMPILED_ARTIFACTS"

STOP_SECONDS: Final = DRAIN_SAFETY_SECONDS // 2
"""From SIGTERM to a stopped server. The other half of the safety passes before the drain begins."""

NODE_SECONDS: Final = 900
"""For a node to be launched and the image and weights to arrive before the server's own start counts
(measured: four and a half minutes on an idle day)."""

STARTUP_PERIOD_SECONDS: Final = 10
PROBE_TIMEOUT_SECONDS: Final = 5
"""One second, the default, is missed by a busy but healthy server."""

READINESS_FAILURES: Final = 3

_DNS_PORT: Final = 53
_HTTPS_PORT: Final = 443
_POD_IDENTITY_AGENT: Final = "169.254.170.23/32"
_MODELS: Final = "/models"
_SCRIPTS: Final = "/scripts"


class VllmChart(Chart):
    """All servers."""

    def __init__(self, scope: Construct, *, platform: Platform) -> None:
        super().__init__(scope, "vllm", labels=labels.COMMON)
        for model in platform.models:
            ModelServer(self, model.name, platform=platform, model=model)


class ModelServer(Construct):
    """One model: replicas that KEDA counts, one address, and the rules for interrupting and reaching them."""

    def __init__(self, scope: Construct, id: str, *, platform: Platform, model: Model) -> None:
        super().__init__(scope, id)
        self._platform = platform
        self._model = model
        self._deployment()
        self._service()
        self._disruption_budget()
        self._network_policy()

    def _metadata(self) -> k8s.ObjectMeta:
        return k8s.ObjectMeta(
            name=names.deployment(self._model),
            namespace=names.MODEL_NAMESPACE,
            labels=labels.pod(self._model),
        )

    def _selector(self) -> k8s.LabelSelector:
        return k8s.LabelSelector(match_labels=labels.selector(self._model))

    def _deployment(self) -> None:
        """No `replicas`: KEDA owns the number, and a deploy that set it would undo what KEDA has decided.

        A rollout adds one replica before it takes one away: a percentage would lease several accelerators at
        once, and taking one away first would leave a model with one replica silent for as long as it loads.
        """
        model = self._model
        k8s.KubeDeployment(
            self,
            "deployment",
            metadata=self._metadata(),
            spec=k8s.DeploymentSpec(
                selector=self._selector(),
                revision_history_limit=3,
                progress_deadline_seconds=model.probes.startup_seconds + NODE_SECONDS,
                strategy=k8s.DeploymentStrategy(
                    type="RollingUpdate",
                    rolling_update=k8s.RollingUpdateDeployment(
                        max_surge=number(1),
                        max_unavailable=number(0),
                    ),
                ),
                template=k8s.PodTemplateSpec(
                    metadata=k8s.ObjectMeta(labels=labels.pod(model)),
                    spec=ServerPod(self._platform, model).spec(),
                ),
            ),
        )

    def _service(self) -> None:
        port = k8s.ServicePort(
            name=names.SERVER_PORT_NAME,
            port=SERVICE_PORT,
            target_port=port_name(names.SERVER_PORT_NAME),
        )
        k8s.KubeService(
            self,
            "service",
            metadata=self._metadata(),
            spec=k8s.ServiceSpec(type="ClusterIP", selector=labels.selector(self._model), ports=[port]),
        )

    def _disruption_budget(self) -> None:
        k8s.KubePodDisruptionBudget(
            self,
            "disruption-budget",
            metadata=self._metadata(),
            spec=k8s.PodDisruptionBudgetSpec(
                selector=self._selector(),
                max_unavailable=number(1),
                # A server that is still loading serves nobody: it must not hold up the drain of its node.
                unhealthy_pod_eviction_policy="AlwaysAllow",
            ),
        )

    def _network_policy(self) -> None:
        """In: the load balancer, which sends from the VPC's own addresses, and Prometheus. Out: names, HTTPS,
        identity.

        With the VPC CNI pods have addresses of the VPC too, so the block also admits clients inside the
        cluster.
        """
        into_server = [_port(names.SERVER_PORT)]
        k8s.KubeNetworkPolicy(
            self,
            "network-policy",
            metadata=self._metadata(),
            spec=k8s.NetworkPolicySpec(
                pod_selector=self._selector(),
                policy_types=["Ingress", "Egress"],
                ingress=[
                    k8s.NetworkPolicyIngressRule(
                        from_=[_block(self._platform.network.cidr), _namespace(names.MONITORING_NAMESPACE)],
                        ports=into_server,
                    )
                ],
                egress=[
                    k8s.NetworkPolicyEgressRule(
                        to=[_namespace(names.SYSTEM_NAMESPACE, k8s_app="kube-dns")],
                        ports=[_port(_DNS_PORT, "UDP"), _port(_DNS_PORT)],
                    ),
                    k8s.NetworkPolicyEgressRule(to=[_block("0.0.0.0/0")], ports=[_port(_HTTPS_PORT)]),
                    k8s.NetworkPolicyEgressRule(to=[_block(_POD_IDENTITY_AGENT)], ports=[_port(80)]),
                ],
            ),
        )


class ServerPod:
    """What a replica is made of."""

    def __init__(self, platform: Platform, model: Model) -> None:
        self._platform = platform
        self._model = model
        self._volumes: list[k8s.Volume] = []
        self._mounts: list[k8s.VolumeMount] = []

    def spec(self) -> k8s.PodSpec:
        model = self._model
        self._mount_files()
        self._mount_secrets()
        return k8s.PodSpec(
            service_account_name=names.SERVING_SERVICE_ACCOUNT,
            automount_service_account_token=False,
            # Otherwise every Service becomes VLLM_…_PORT in the environment, where vLLM looks for its
            # settings.
            enable_service_links=False,
            priority_class_name=names.PRIORITY_CLASS,
            scheduler_name=self._scheduler(),
            node_selector=self._node_labels(),
            affinity=self._affinity(),
            tolerations=[
                k8s.Toleration(
                    key=names.device_resource(model.vendor),
                    operator="Equal",
                    value=labels.TAINT_VALUE,
                    effect=labels.TAINT_EFFECT,
                )
            ],
            topology_spread_constraints=[
                self._spread(labels.ZONE, max_skew=1),
                self._spread(labels.HOST, max_skew=self._most_on_a_node()),
            ],
            termination_grace_period_seconds=model.drain_seconds + STOP_SECONDS,
            security_context=k8s.PodSecurityContext(
                seccomp_profile=k8s.SeccompProfile(type="RuntimeDefault"),
            ),
            init_containers=self._fetchers() or None,
            containers=[self._server()],
            volumes=self._volumes,
        )

    # Where it runs

    def _scheduler(self) -> str | None:
        """Replicas that share a Neuron node need devices that are neighbours, which only this scheduler looks
        at."""
        shares = self._model.is_neuron and placement.shares_a_node(self._model)
        return names.NEURON_SCHEDULER if shares else None

    def _node_labels(self) -> dict[str, str]:
        capacity_type = {"never": labels.ON_DEMAND, "only": labels.SPOT}.get(self._model.spot)
        chosen = {labels.CAPACITY_TYPE: capacity_type} if capacity_type else {}
        return {**labels.node(self._model.vendor), **chosen}

    def _affinity(self) -> k8s.Affinity:
        """Other models' sizes in the same pool may be too small for this one, or cost more than it needs."""
        term = k8s.NodeSelectorTerm(
            match_expressions=[
                k8s.NodeSelectorRequirement(key=key, operator="In", values=values)
                for key, values in (
                    (labels.INSTANCE_FAMILY, [self._model.accelerator.family]),
                    (labels.INSTANCE_SIZE, list(placement.sizes(self._model))),
                )
            ]
        )
        required = k8s.NodeSelector(node_selector_terms=[term])
        return k8s.Affinity(
            node_affinity=k8s.NodeAffinity(required_during_scheduling_ignored_during_execution=required)
        )

    def _most_on_a_node(self) -> int:
        """Karpenter honours even a soft spread while it can: with less it would lease a whole node per
        replica."""
        model = self._model
        return max(placement.replicas_per_node(model, instance) for instance in placement.instances(model))

    def _spread(self, topology: str, max_skew: int) -> k8s.TopologySpreadConstraint:
        return k8s.TopologySpreadConstraint(
            topology_key=topology,
            max_skew=max_skew,
            when_unsatisfiable="ScheduleAnyway",
            label_selector=k8s.LabelSelector(match_labels=labels.selector(self._model)),
        )

    # What it mounts

    def _mount(self, name: str, path: str, *, read_only: bool = False, volume: k8s.Volume) -> None:
        self._volumes.append(volume)
        self._mounts.append(k8s.VolumeMount(name=name, mount_path=path, read_only=read_only or None))

    def _mount_files(self) -> None:
        shared_memory = k8s.EmptyDirVolumeSource(
            medium="Memory",
            size_limit=quantity(f"{self._model.resources.shared_memory_gib}Gi"),
        )
        self._mount("shm", "/dev/shm", volume=k8s.Volume(name="shm", empty_dir=shared_memory))
        self._mount("models", _MODELS, volume=k8s.Volume(name="models", empty_dir=k8s.EmptyDirVolumeSource()))
        scripts = k8s.ConfigMapVolumeSource(name=namespace.SCRIPTS)
        self._mount("scripts", _SCRIPTS, read_only=True, volume=k8s.Volume(name="scripts", config_map=scripts))

    def _mount_secrets(self) -> None:
        """The mirrored Kubernetes Secret exists only while some pod mounts the original."""
        for secret in self._secrets().values():
            source = k8s.CsiVolumeSource(
                driver="secrets-store.csi.k8s.io",
                read_only=True,
                volume_attributes={"secretProviderClass": secret},
            )
            volume = k8s.Volume(name=secret, csi=source)
            self._mount(secret, f"/secrets/{secret}", read_only=True, volume=volume)

    def _secrets(self) -> dict[str, str]:
        """Environment variables that come from a Secret, and which."""
        available = namespace.secrets(self._platform)
        wanted = {"VLLM_API_KEY": names.API_KEY_SECRET}
        if self._model.repository:
            wanted["HF_TOKEN"] = names.HUB_TOKEN_SECRET
        return {variable: secret for variable, secret in wanted.items() if secret in available}

    # What it does

    def _fetchers(self) -> list[k8s.Container]:
        model = self._model
        fetchers = []
        if model.source.startswith(S3):
            source = f"{model.source.rstrip('/')}/{model.revision}/"
            fetchers.append(self._fetcher("weights", source, engine.WEIGHTS_PATH))
        if model.engine.compiled_artifacts:
            source = f"{model.engine.compiled_artifacts.rstrip('/')}/"
            fetchers.append(self._fetcher("artifacts", source, engine.ARTIFACTS_PATH))
        return fetchers

    def _fetcher(self, what: str, source: str, target: str) -> k8s.Container:
        """Runs before the server, so it may use all that the server has asked for."""
        variables = {"AWS_REGION": self._platform.region, "HOME": _MODELS}
        return k8s.Container(
            name=f"fetch-{what}",
            image=versions.AWS_CLI_IMAGE,
            image_pull_policy="IfNotPresent",
            command=["sh", f"{_SCRIPTS}/fetch.sh", source, target],
            env=[k8s.EnvVar(name=name, value=value) for name, value in variables.items()],
            resources=self._resources(devices=False),
            security_context=_security_context(read_only_root=True),
            termination_message_policy="FallbackToLogsOnError",
            volume_mounts=[mount for mount in self._mounts if mount.name in ("models", "scripts")],
        )

    def _server(self) -> k8s.Container:
        """`vllm serve` is process 1, so that it and not a shell gets SIGTERM.

        The root file system stays writable: compilers and caches of vLLM, PyTorch and Neuron write below
        /root, /tmp and /var/tmp, in places that change with the version.
        """
        model = self._model
        drain = ["python3", f"{_SCRIPTS}/drain.py", "--timeout", str(model.drain_seconds)]
        return k8s.Container(
            name="vllm",
            image=engine.image(model),
            image_pull_policy="IfNotPresent",
            command=["vllm", "serve"],
            args=engine.serve_arguments(model),
            env=self._environment(),
            ports=[k8s.ContainerPort(name=names.SERVER_PORT_NAME, container_port=names.SERVER_PORT)],
            resources=self._resources(devices=True),
            startup_probe=self._health(
                STARTUP_PERIOD_SECONDS, ceil(model.probes.startup_seconds / STARTUP_PERIOD_SECONDS)
            ),
            readiness_probe=self._health(model.probes.readiness_period_seconds, READINESS_FAILURES),
            liveness_probe=self._health(model.probes.liveness_period_seconds, model.probes.liveness_failures),
            lifecycle=k8s.Lifecycle(pre_stop=k8s.LifecycleHandler(exec=k8s.ExecAction(command=drain))),
            security_context=_security_context(read_only_root=False),
            termination_message_policy="FallbackToLogsOnError",
            volume_mounts=self._mounts,
        )

    def _environment(self) -> list[k8s.EnvVar]:
        model = self._model
        plain = {"HF_HOME": HUB_CACHE_PATH}
        if model.engine.compiled_artifacts:
            plain[ARTIFACTS_VARIABLE] = engine.ARTIFACTS_PATH
        plain |= model.engine.env
        variables = [k8s.EnvVar(name=name, value=value) for name, value in plain.items()]
        for name, secret in self._secrets().items():
            key = k8s.SecretKeySelector(name=secret, key=names.SECRET_KEY)
            variables.append(k8s.EnvVar(name=name, value_from=k8s.EnvVarSource(secret_key_ref=key)))
        return variables

    def _resources(self, *, devices: bool) -> k8s.ResourceRequirements:
        """CPU has no limit: throttling the loop that feeds the accelerator would idle what costs most."""
        model = self._model
        limits = {"memory": quantity(f"{placement.memory_gib(model)}Gi")}
        if devices:
            count = placement.devices_per_replica(model, placement.instances(model)[0])
            limits[names.device_resource(model.vendor)] = quantity(str(count))
        cpu = quantity(str(placement.cpu(model)))
        return k8s.ResourceRequirements(requests={"cpu": cpu, **limits}, limits=limits)

    def _health(self, period_seconds: int, failures: int) -> k8s.Probe:
        get = k8s.HttpGetAction(path=HEALTH_PATH, port=port_name(names.SERVER_PORT_NAME))
        return k8s.Probe(
            http_get=get,
            period_seconds=period_seconds,
            timeout_seconds=PROBE_TIMEOUT_SECONDS,
            failure_threshold=failures,
        )


def _security_context(*, read_only_root: bool) -> k8s.SecurityContext:
    return k8s.SecurityContext(
        allow_privilege_escalation=False,
        capabilities=k8s.Capabilities(drop=["ALL"]),
        read_only_root_filesystem=read_only_root,
    )


def _port(port: int, protocol: str = "TCP") -> k8s.NetworkPolicyPort:
    return k8s.NetworkPolicyPort(port=number(port), protocol=protocol)


def _block(cidr: str) -> k8s.NetworkPolicyPeer:
    return k8s.NetworkPolicyPeer(ip_block=k8s.IpBlock(cidr=cidr))


def _namespace(name: str, **pod_labels: str) -> k8s.NetworkPolicyPeer:
    pods = {label.replace("_", "-"): value for label, value in pod_labels.items()}
    return k8s.NetworkPolicyPeer(
        namespace_selector=k8s.LabelSelector(match_labels={labels.NAMESPACE_NAME: name}),
        pod_selector=k8s.LabelSelector(match_labels=pods) if pods else None,
    )
