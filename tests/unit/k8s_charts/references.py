"""Whether manifests that name each other really meet: selectors, ports, taints, mounts, routes, scale targets."""

from collections.abc import Iterator, Sequence
from typing import Any

from genai_finops.spec import names
from k8s_charts import Manifest
from tests.unit.k8s_charts.charts import of_kind

WORKLOADS = ("Deployment", "DaemonSet", "Job")

MADE_BY_THE_STACK = {("ConfigMap", names.MODEL_STORE): {names.BUCKET_KEY}}
"""Objects that are not in the charts, and their keys: the bucket's name has the account in it."""

POD_LABELS_OF_HELM_CHARTS = ({"app.kubernetes.io/name": "karpenter"},)
"""Pods that Helm charts make, which our objects may select."""

CLUSTER_PRIORITY_CLASSES = ("system-node-critical", "system-cluster-critical")


def dangling(manifests: Sequence[Manifest]) -> list[str]:
    """Every reference that leads nowhere, in words."""
    return [
        f"{manifest['kind']} {manifest['metadata']['name']}: {problem}"
        for manifest in manifests
        for problem in _problems(manifest, manifests)
    ]


def _problems(manifest: Manifest, everything: Sequence[Manifest]) -> Iterator[str]:
    spec = manifest.get("spec", {})
    match manifest["kind"]:
        case "Job":
            yield from _pod(spec["template"]["spec"], manifest, everything)
        case "Deployment" | "DaemonSet":
            yield from _pod(spec["template"]["spec"], manifest, everything)
            labels = spec["template"]["metadata"]["labels"]
            if not spec["selector"]["matchLabels"].items() <= labels.items():
                yield "its selector does not select its own pods"
        case "Service":
            for port in spec["ports"]:
                yield from _selected(manifest, spec["selector"], everything, port["targetPort"])
        case "PodDisruptionBudget":
            yield from _selected(manifest, spec["selector"]["matchLabels"], everything)
        case "NetworkPolicy":
            chosen = spec["podSelector"]
            if "matchExpressions" in chosen:
                yield from _selected_by_label(manifest, chosen["matchExpressions"], everything)
            elif chosen:
                for rule in spec["ingress"]:
                    for port in rule["ports"]:
                        yield from _selected(manifest, spec["podSelector"]["matchLabels"], everything, port["port"])
        case "PodMonitor":
            for endpoint in spec["podMetricsEndpoints"]:
                yield from _selected(manifest, spec["selector"]["matchLabels"], everything, endpoint["port"])
        case "PersistentVolumeClaim":
            volume = _exists(everything, "PersistentVolume", spec["volumeName"])
            if volume is None or volume["spec"]["claimRef"]["name"] != manifest["metadata"]["name"]:
                yield f"no PersistentVolume {spec['volumeName']} for it"
        case "CapacityBuffer":
            target = spec["scalableRef"]
            if not _exists(everything, target["kind"], target["name"], manifest):
                yield f"no {target['kind']} {target['name']}"
        case "ScaledObject":
            target = spec["scaleTargetRef"]
            if not _exists(everything, target["kind"], target["name"], manifest):
                yield f"no {target['kind']} {target['name']}"
        case "NodePool":
            reference = spec["template"]["spec"]["nodeClassRef"]
            if not _exists(everything, reference["kind"], reference["name"]):
                yield f"no {reference['kind']} {reference['name']}"
        case "Gateway":
            if not _exists(everything, "GatewayClass", spec["gatewayClassName"]):
                yield f"no GatewayClass {spec['gatewayClassName']}"
            reference = spec["infrastructure"]["parametersRef"]
            if not _exists(everything, reference["kind"], reference["name"], manifest):
                yield f"no {reference['kind']} {reference['name']}"
        case "HTTPRoute":
            yield from _route(manifest, everything)
        case "TargetGroupConfiguration":
            if not _exists(everything, "Service", spec["targetReference"]["name"], manifest):
                yield f"no Service {spec['targetReference']['name']}"


def _exists(everything: Sequence[Manifest], kind: str, name: str, beside: Manifest | None = None) -> Manifest | None:
    """The manifest of that kind and name, in the namespace of `beside` when given."""
    namespace = beside["metadata"]["namespace"] if beside else None
    for manifest in of_kind(everything, kind):
        metadata = manifest["metadata"]
        if metadata["name"] == name and metadata.get("namespace") == namespace:
            return manifest
    return None


def _selected(
    chooser: Manifest, selector: dict[str, str], everything: Sequence[Manifest], port: str | int | None = None
) -> Iterator[str]:
    """Problems of selecting exactly one workload's pods, and of a port that they lack."""
    if selector in POD_LABELS_OF_HELM_CHARTS:
        return
    found = [
        workload
        for kind in WORKLOADS
        for workload in of_kind(everything, kind)
        if selector.items() <= workload["spec"]["template"]["metadata"]["labels"].items()
        and workload["metadata"]["namespace"] == chooser["metadata"]["namespace"]
    ]
    if len(found) != 1:
        yield f"{selector} selects the pods of {len(found)} workloads"
        return
    containers = found[0]["spec"]["template"]["spec"]["containers"]
    ports = [port for container in containers for port in container.get("ports", [])]
    if port is not None and port not in [p["name"] for p in ports] + [p["containerPort"] for p in ports]:
        yield f"no port {port} on the pods it selects"


def _selected_by_label(
    chooser: Manifest, expressions: Sequence[dict[str, str]], everything: Sequence[Manifest]
) -> Iterator[str]:
    """Problems of selecting pods that carry a label, whatever its value."""
    for expression in expressions:
        carriers = [job for job in of_kind(everything, "Job") if expression["key"] in _pod_labels(job)]
        if expression["operator"] != "Exists" or not carriers:
            yield f"{expression} selects no pods"


def _pod_labels(workload: Manifest) -> dict[str, str]:
    return dict(workload["spec"]["template"]["metadata"]["labels"])


def _route(route: Manifest, everything: Sequence[Manifest]) -> Iterator[str]:
    for parent in route["spec"]["parentRefs"]:
        gateway = _exists(everything, "Gateway", parent["name"], route)
        listeners = gateway["spec"]["listeners"] if gateway else []
        if parent["sectionName"] not in [listener["name"] for listener in listeners]:
            yield f"no listener {parent['sectionName']} on Gateway {parent['name']}"
    for rule in route["spec"]["rules"]:
        for backend in rule["backendRefs"]:
            service = _exists(everything, "Service", backend["name"], route)
            ports = [port["port"] for port in service["spec"]["ports"]] if service else []
            if backend["port"] not in ports:
                yield f"no port {backend['port']} on Service {backend['name']}"


def _pod(pod: dict[str, Any], owner: Manifest, everything: Sequence[Manifest]) -> Iterator[str]:
    if not any(_admits(pool, pod) for pool in of_kind(everything, "NodePool")):
        yield "no NodePool makes a node that it may run on"
    account = pod.get("serviceAccountName")
    if account and not _exists(everything, "ServiceAccount", account, owner):
        yield f"no ServiceAccount {account}"
    priority = pod["priorityClassName"]
    if priority not in CLUSTER_PRIORITY_CLASSES and not _exists(everything, "PriorityClass", priority):
        yield f"no PriorityClass {priority}"
    yield from _volumes(pod, owner, everything)


def _volumes(pod: dict[str, Any], owner: Manifest, everything: Sequence[Manifest]) -> Iterator[str]:
    mirrored = {}
    for volume in pod.get("volumes", []):
        for source in (volume, *volume.get("projected", {}).get("sources", [])):
            if "configMap" in source and not _exists(everything, "ConfigMap", source["configMap"]["name"], owner):
                yield f"no ConfigMap {source['configMap']['name']}"
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            if not _exists(everything, "PersistentVolumeClaim", claim, owner):
                yield f"no PersistentVolumeClaim {claim}"
        if "csi" in volume:
            name = volume["csi"]["volumeAttributes"]["secretProviderClass"]
            provider = _exists(everything, "SecretProviderClass", name, owner)
            if provider is None:
                yield f"no SecretProviderClass {name}"
                continue
            for secret in provider["spec"]["secretObjects"]:
                mirrored[secret["secretName"]] = [item["key"] for item in secret["data"]]
    volumes = [volume["name"] for volume in pod.get("volumes", [])]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"no volume {mount['name']}"
        for variable in container.get("env", []):
            bucket = variable.get("valueFrom", {}).get("configMapKeyRef")
            if bucket and bucket["key"] not in MADE_BY_THE_STACK.get(("ConfigMap", bucket["name"]), ()):
                yield f"no ConfigMap {bucket['name']} with a key {bucket['key']}"
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference and reference["key"] not in mirrored.get(reference["name"], []):
                yield f"no mounted Secret {reference['name']} with a key {reference['key']}"


def _admits(pool: Manifest, pod: dict[str, Any]) -> bool:
    """Whether a node of the pool can satisfy the pod's selectors, and the pod stands the pool's taints."""
    template = pool["spec"]["template"]
    offers = {key: [value] for key, value in template["metadata"]["labels"].items()}
    offers |= {r["key"]: r["values"] for r in template["spec"]["requirements"] if r["operator"] == "In"}
    wanted = {key: [value] for key, value in pod.get("nodeSelector", {}).items()}
    affinity = pod.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
    for term in required["nodeSelectorTerms"]:
        wanted |= {e["key"]: e["values"] for e in term["matchExpressions"]}
    fits = all(set(values) & set(offers.get(key, [])) for key, values in wanted.items())
    taints = template["spec"]["taints"]
    return fits and all(any(_tolerates(t, taint) for t in pod["tolerations"]) for taint in taints)


def _tolerates(toleration: dict[str, str], taint: dict[str, str]) -> bool:
    same = toleration["key"] == taint["key"] and toleration["effect"] == taint["effect"]
    return same and (toleration["operator"] == "Exists" or toleration["value"] == taint["value"])
