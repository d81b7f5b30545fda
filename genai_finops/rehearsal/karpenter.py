"""Karpenter itself, with what its chart would tell it."""

from typing import Final

from genai_finops.rehearsal.binaries import built
from genai_finops.rehearsal.cloud import Cloud
from genai_finops.rehearsal.control_plane import START_SECONDS, ControlPlane
from genai_finops.rehearsal.processes import Program, Programs, free_ports, listens
from genai_finops.spec import Platform, names

BATCH_IDLE_SECONDS: Final = 1
BATCH_MAX_SECONDS: Final = 10
"""How long it waits for further pods before it launches: its own defaults."""


def start(programs: Programs, plane: ControlPlane, cloud: Cloud, platform: Platform) -> Program:
    """The controller, ready.

    Raises:
        BuildError: when it cannot be built.
        ProcessError: when it does not start.
    """
    metrics, health = free_ports(2)
    settings = {
        "KUBECONFIG": str(plane.kubeconfig),
        "CLUSTER_NAME": platform.name,
        "CLUSTER_ENDPOINT": plane.address,
        "INTERRUPTION_QUEUE": names.interruption_queue(platform),
        "SYSTEM_NAMESPACE": names.KARPENTER_NAMESPACE,
        "ISOLATED_VPC": "true",  # the price list of AWS is not emulated; Karpenter has one of its own
        "DISABLE_LEADER_ELECTION": "true",
        "BATCH_IDLE_DURATION": f"{BATCH_IDLE_SECONDS}s",
        "BATCH_MAX_DURATION": f"{BATCH_MAX_SECONDS}s",
        "METRICS_PORT": str(metrics),
        "HEALTH_PROBE_PORT": str(health),
    }
    program = programs.start("karpenter", [built(["karpenter"])["karpenter"]], {**cloud.environment, **settings})
    programs.wait_for(program, lambda: listens(health), START_SECONDS)
    return program
