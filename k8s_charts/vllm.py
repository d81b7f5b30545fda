"""The servers: for every model its Deployment, and what lets others reach it and nothing else."""

from math import ceil
from typing import Any, Final

from cdk8s import Chart
from cdk8s_plus_28 import k8s
from constructs import Construct

from genai_finops.spec import Model, Platform, engine, names, placement
from genai_finops.spec.checks.serving import DRAIN_SAFETY_SECONDS
from k8s_charts import labels, namespace, network, placing, supply
from k8s_charts.values import number, port_name, quantity

SERVICE_PORT: Final = 80
HEALTH_PATH: Final = "/health"
HUB_CACHE_PATH: Final = "/models/hub"
ARTIFACTS_VARIABLE: Final = "NEURON_COMPILED_ARTIFACTS"
COMPILED_HERE: Final = "/models/compiled"
"""Where a server that compiles keeps its graphs, for as long as its pod lives."""

STOP_SECONDS: Final = DRAIN_SAFETY_SECONDS // 2
"""From SIGTERM to a stopped server. The other half of the safety passes before the drain begins."""


STARTUP_PERIOD_SECONDS: Final = 10
PROBE_TIMEOUT_SECONDS: Final = 5
"""One second, the default, is missed by a busy but healthy server."""

READINESS_FAILURES: Final = 3


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
                progress_deadline_seconds=model.probes.startup_seconds + supply.NODE_SECONDS,
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
        clients = [network.block(self._platform.network.cidr), network.namespace(names.MONITORING_NAMESPACE)]
        k8s.KubeNetworkPolicy(
            self,
            "network-policy",
            metadata=self._metadata(),
            spec=k8s.NetworkPolicySpec(
                pod_selector=self._selector(),
                policy_types=["Ingress", "Egress"],
                ingress=[k8s.NetworkPolicyIngressRule(from_=clients, ports=[network.port(names.SERVER_PORT)])],
                egress=network.to_aws(),
            ),
        )


class ServerPod:
    """What a replica is made of, and what holds room for one."""

    def __init__(self, platform: Platform, model: Model) -> None:
        self._platform = platform
        self._model = model
        self._volumes: list[k8s.Volume] = []
        self._mounts: list[k8s.VolumeMount] = []

    def spec(self) -> k8s.PodSpec:
        model = self._model
        self._mount_supply()
        self._mount_memory()
        self._mount_secrets()
        return self._pod(
            priority_class_name=names.PRIORITY_CLASS,
            topology_spread_constraints=[
                self._spread(labels.ZONE, max_skew=1),
                self._spread(labels.HOST, max_skew=self._most_on_a_node()),
            ],
            termination_grace_period_seconds=model.drain_seconds + STOP_SECONDS,
            containers=[self._server()],
        )

    def placeholder(self, container: k8s.Container) -> k8s.PodSpec:
        """Where a replica could be, at a priority that any replica overrules, with the model's files brought
        along."""
        self._mount_supply()
        return self._pod(
            priority_class_name=names.WARM_PRIORITY_CLASS,
            termination_grace_period_seconds=0,
            containers=[container],
        )

    def _pod(self, **further: Any) -> k8s.PodSpec:
        model = self._model
        return k8s.PodSpec(
            service_account_name=names.SERVING_SERVICE_ACCOUNT,
            automount_service_account_token=False,
            # Otherwise every Service becomes VLLM_…_PORT in the environment, where vLLM looks for its
            # settings.
            enable_service_links=False,
            scheduler_name=placing.scheduler(model),
            node_selector=placing.node_labels(model, model.spot),
            affinity=placing.affinity(placement.instances(model)),
            tolerations=[placing.tolerated(model)],
            security_context=k8s.PodSecurityContext(
                seccomp_profile=k8s.SeccompProfile(type="RuntimeDefault"),
            ),
            init_containers=[self._fetcher()],
            volumes=self._volumes,
            **further,
        )

    # Where it runs

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

    def _mount_supply(self) -> None:
        """The node's cache, the pod's own links into it, and what fills both."""
        self._mount("models", supply.MODELS, volume=k8s.Volume(name="models", empty_dir=k8s.EmptyDirVolumeSource()))
        claim = k8s.PersistentVolumeClaimVolumeSource(claim_name=names.MODEL_CACHE)
        self._mount("cache", supply.CACHE, volume=k8s.Volume(name="cache", persistent_volume_claim=claim))
        scripts = k8s.ConfigMapVolumeSource(name=namespace.SCRIPTS)
        volume = k8s.Volume(name="scripts", config_map=scripts)
        self._mount("scripts", supply.SCRIPTS, read_only=True, volume=volume)

    def _mount_memory(self) -> None:
        shared_memory = k8s.EmptyDirVolumeSource(
            medium="Memory",
            size_limit=quantity(f"{self._model.resources.shared_memory_gib}Gi"),
        )
        self._mount("shm", "/dev/shm", volume=k8s.Volume(name="shm", empty_dir=shared_memory))

    def _mount_secrets(self) -> None:
        """The mirrored Kubernetes Secret exists only while some pod mounts the original."""
        for secret in self._secrets().values():
            source = k8s.CsiVolumeSource(
                driver=namespace.SECRETS_DRIVER,
                read_only=True,
                volume_attributes={"secretProviderClass": secret},
            )
            volume = k8s.Volume(name=secret, csi=source)
            self._mount(secret, f"/secrets/{secret}", read_only=True, volume=volume)

    def _secrets(self) -> dict[str, str]:
        """Environment variables that come from a Secret, and which."""
        is_there = names.API_KEY_SECRET in namespace.secrets(self._platform)
        return {"VLLM_API_KEY": names.API_KEY_SECRET} if is_there else {}

    # What it does

    def _fetcher(self) -> k8s.Container:
        """Runs before the server, in the server's own image, and may use all that the server has asked for.

        The server's container does the same once more as it begins: after a restart in place its files may
        have been evicted, and what it uses cannot be while it runs.
        """
        return k8s.Container(
            name="fetch",
            image=engine.image(self._model),
            image_pull_policy="IfNotPresent",
            command=supply.bring_command(self._platform, self._model),
            env=supply.store_variables(self._platform),
            resources=placing.resources(self._model, devices=False),
            security_context=_security_context(read_only_root=True),
            termination_message_policy="FallbackToLogsOnError",
            volume_mounts=[mount for mount in self._mounts if mount.name in ("models", "cache", "scripts")],
        )

    def _server(self) -> k8s.Container:
        """`vllm serve` is process 1, so that it and not a shell gets SIGTERM: what brings the files becomes it.

        The root file system stays writable: compilers and caches of vLLM, PyTorch and Neuron write below
        /root, /tmp and /var/tmp, in places that change with the version.
        """
        model = self._model
        drain = ["python3", f"{supply.SCRIPTS}/drain.py", "--timeout", str(model.drain_seconds)]
        return k8s.Container(
            name="vllm",
            image=engine.image(model),
            image_pull_policy="IfNotPresent",
            command=[*supply.bring_command(self._platform, model), "--", "vllm", "serve"],
            args=engine.serve_arguments(model),
            env=self._environment(),
            ports=[k8s.ContainerPort(name=names.SERVER_PORT_NAME, container_port=names.SERVER_PORT)],
            resources=placing.resources(model, devices=True),
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
        """Nothing is downloaded behind the platform's back: the files of the model are all there."""
        model = self._model
        plain = {"HF_HOME": HUB_CACHE_PATH, "HF_HUB_OFFLINE": "1"}
        if model.is_neuron:
            plain[ARTIFACTS_VARIABLE] = engine.ARTIFACTS_PATH if model.is_precompiled else COMPILED_HERE
        plain |= model.engine.env
        variables = [k8s.EnvVar(name=name, value=value) for name, value in plain.items()]
        for name, secret in self._secrets().items():
            key = k8s.SecretKeySelector(name=secret, key=names.SECRET_KEY)
            variables.append(k8s.EnvVar(name=name, value_from=k8s.EnvVarSource(secret_key_ref=key)))
        return [*variables, *supply.store_variables(self._platform)]

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
