"""What becomes of a launched instance: it boots from its user data and registers as a node, as nodeadm would have it.

The node is one in every respect that a controller looks at; nothing runs on it.
"""

import base64
import contextlib
import email
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from genai_finops.catalog import instance_type
from genai_finops.catalog.instances import InstanceType
from genai_finops.rehearsal.cloud import Cloud
from genai_finops.rehearsal.control_plane import ControlPlane, KubectlError

NODE_CONFIG: Final = "application/node.eks.aws"
DEVICES: Final = {"neuron": ("aws.amazon.com/neuron", "aws.amazon.com/neuroncore"), "nvidia": ("nvidia.com/gpu",)}

_LOOK_SECONDS: Final = 0.3
_HEARTBEAT_SECONDS: Final = 10
_SYSTEM_PODS: Final = 110


@dataclass(frozen=True, slots=True)
class Registration:
    """What user data says that a node registers with."""

    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]


def registration(user_data: str) -> Registration:
    """Read from the MIME document, in Base64 as EC2 keeps it, that Karpenter writes for Amazon Linux 2023.

    Raises:
        ValueError: when there is no NodeConfig in it.
    """
    message = email.message_from_bytes(base64.b64decode(user_data))
    labels: dict[str, str] = {}
    taints: list[Mapping[str, str]] = []
    found = False
    for part in message.walk():
        if part.get_content_type() != NODE_CONFIG:
            continue
        found = True
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        kubelet = (yaml.safe_load(content)["spec"]).get("kubelet", {})
        taints += (kubelet.get("config") or {}).get("registerWithTaints") or []
        for flag in kubelet.get("flags") or []:
            name, _, value = flag.partition("=")
            value = value.strip('"')
            if name == "--node-labels":
                labels |= dict(pair.split("=", 1) for pair in value.split(",") if pair)
            elif name == "--register-with-taints":
                taints += [_taint(text) for text in value.split(",") if text]
    if not found:
        raise ValueError("The user data holds no NodeConfig")
    return Registration(labels, tuple(taints))


def _taint(text: str) -> dict[str, str]:
    """`key=value:effect`, as kubelet's flag has it."""
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def node(instance: Mapping[str, Any], found: Registration, kind: InstanceType) -> dict[str, Any]:
    """The Node that a kubelet on `instance` registers."""
    zone = instance["Placement"]["AvailabilityZone"]
    name = instance["PrivateDnsName"]
    devices = _devices(kind)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                **found.labels,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64" if "64" in instance.get("Architecture", "x86_64") else "arm64",
                "node.kubernetes.io/instance-type": kind.name,
                "topology.kubernetes.io/zone": zone,
                "topology.kubernetes.io/region": zone[:-1],
            },
        },
        "spec": {
            "providerID": f"aws:///{zone}/{instance['InstanceId']}",
            "taints": [dict(taint) for taint in found.taints],
        },
        "status": {
            "capacity": {"cpu": str(kind.vcpu), "memory": f"{kind.memory_mib}Mi", "pods": str(_SYSTEM_PODS)} | devices,
            "allocatable": {
                "cpu": f"{kind.allocatable_cpu_millis}m",
                "memory": f"{kind.allocatable_memory_mib}Mi",
                "pods": str(_SYSTEM_PODS),
                "ephemeral-storage": "100Gi",
                **devices,
            },
            "conditions": _conditions(),
        },
    }


def _devices(kind: InstanceType) -> dict[str, str]:
    if kind.accelerator is None:
        return {}
    resources = DEVICES[kind.accelerator.vendor]
    counts = (kind.devices, kind.cores)
    return {resource: str(count) for resource, count in zip(resources, counts, strict=False)}


def _conditions() -> list[dict[str, Any]]:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "rehearsed"}
    return [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}]


@dataclass(slots=True)
class Machines:
    """Boots what EC2 launches, and takes the nodes of ended instances away as the cloud's controller does.

    Attributes:
        boot_seconds: from launch to registration.
        told: hears what happens.
    """

    cloud: Cloud
    plane: ControlPlane
    boot_seconds: float = 1
    told: Callable[[str], None] = lambda line: None
    _nodes: dict[str, str] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _heard: float = 0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="machines", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        ec2 = self.cloud.client("ec2")
        while not self._ended.wait(_LOOK_SECONDS):
            pages = ec2.get_paginator("describe_instances").paginate()
            for page in pages:
                for reservation in page["Reservations"]:
                    for instance in reservation["Instances"]:
                        self._look_at(instance)
            if time.monotonic() - self._heard > _HEARTBEAT_SECONDS:
                self._heard = time.monotonic()
                self._beat()

    def _look_at(self, instance: Mapping[str, Any]) -> None:
        id, state = instance["InstanceId"], instance["State"]["Name"]
        if state == "running" and id not in self._nodes:
            age = (datetime.now(UTC) - instance["LaunchTime"]).total_seconds()
            if age >= self.boot_seconds:
                self._register(instance)
        elif state not in ("pending", "running") and id in self._nodes:
            name = self._nodes.pop(id)
            self.told(f"{name} is gone")
            self.plane.kubectl("delete", "node", name, "--ignore-not-found", "--wait=false")

    def _register(self, instance: Mapping[str, Any]) -> None:
        id = instance["InstanceId"]
        data = self.cloud.client("ec2").describe_instance_attribute(InstanceId=id, Attribute="userData")
        wanted = node(instance, registration(data["UserData"]["Value"]), instance_type(instance["InstanceType"]))
        name = wanted["metadata"]["name"]
        self.plane.kubectl("create", "-f", "-", objects=[wanted])
        self._set_status(name, wanted["status"])
        self._nodes[id] = name
        self.told(f"{name} is {instance['InstanceType']} in {instance['Placement']['AvailabilityZone']}")

    def _set_status(self, name: str, status: Mapping[str, Any]) -> None:
        patch = json.dumps({"status": status})
        self.plane.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", patch)

    def _beat(self) -> None:
        for name in list(self._nodes.values()):
            with contextlib.suppress(KubectlError):  # gone in between; the next look finds it
                self._set_status(name, {"conditions": _conditions()})
