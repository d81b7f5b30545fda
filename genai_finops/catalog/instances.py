"""Instance types: what the hardware has, what a pod can get of it, and what an hour costs in us-east-1."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from genai_finops.catalog import _files

Vendor = Literal["neuron", "nvidia"]

GIB: Final = 1024**3
MIB: Final = 1024**2


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator model, as a pod and a memory check see it.

    Attributes:
        memory_bytes: of one device.
        cores: that a tensor-parallel rank can be placed on, per device. A Neuron device has two with half of the
            memory each; a GPU is one.
    """

    name: str
    vendor: Vendor
    memory_bytes: int
    cores: int

    @property
    def core_memory_bytes(self) -> int:
        return self.memory_bytes // self.cores


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One EC2 instance type.

    Attributes:
        allocatable_cpu_millis: what the kubelet offers to pods, system pods included.
        allocatable_memory_mib: likewise.
        devices: accelerators of the type, 0 when it has none.
        on_demand_usd_hour: us-east-1 list price; None where the catalog does not know it.
        spot_usd_hour: us-east-1 Spot price of the day the catalog names; None where unknown.
        interruption_band: of the Spot Instance Advisor, for example "<5%"; empty where unknown.
    """

    name: str
    vcpu: int
    memory_mib: int
    allocatable_cpu_millis: int
    allocatable_memory_mib: int
    accelerator: Accelerator | None
    devices: int
    network_mbps: int
    ebs_mbps: int
    local_nvme_gb: int
    on_demand_usd_hour: Decimal | None
    spot_usd_hour: Decimal | None
    interruption_band: str

    @property
    def family(self) -> str:
        return self.name.split(".", 1)[0]

    @property
    def size(self) -> str:
        return self.name.split(".", 1)[1]

    @property
    def cores(self) -> int:
        """Accelerator cores of the whole instance."""
        return self.devices * self.accelerator.cores if self.accelerator else 0


_NEURON_MEMORY: Final = {"inferentia2": 32 * GIB, "trainium": 32 * GIB, "trainium2": 96 * GIB}
"""HBM of one device (AWS instance-type documentation, 2026-12-01)."""


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Every instance type of the catalog, by name."""
    lines = (line for line in _files.text("instances.csv").splitlines() if not line.startswith("#"))
    return MappingProxyType({row["instance_type"]: _read(row) for row in csv.DictReader(lines)})


def instance_type(name: str) -> InstanceType:
    """The instance type called `name`.

    Raises:
        KeyError: when the catalog does not have it.
    """
    return instance_types()[name]


@cache
def families() -> Mapping[str, tuple[InstanceType, ...]]:
    """Instance families that carry accelerators, each with its types from the smallest to the largest."""
    grouped: dict[str, list[InstanceType]] = {}
    for instance in instance_types().values():
        if instance.accelerator:
            grouped.setdefault(instance.family, []).append(instance)
    return MappingProxyType(
        {family: tuple(sorted(types, key=lambda i: (i.devices, i.vcpu))) for family, types in grouped.items()}
    )


def _read(row: Mapping[str, str]) -> InstanceType:
    return InstanceType(
        name=row["instance_type"],
        vcpu=int(row["vcpu"]),
        memory_mib=int(row["memory_mib"]),
        allocatable_cpu_millis=int(row["allocatable_cpu"].removesuffix("m")),
        allocatable_memory_mib=int(row["allocatable_memory"].removesuffix("Mi")),
        accelerator=_accelerator(row),
        devices=int(row["accelerators"] or 0),
        network_mbps=int(row["network_mbps"]),
        ebs_mbps=int(row["ebs_mbps"]),
        local_nvme_gb=int(row["local_nvme_gb"] or 0),
        on_demand_usd_hour=_dollars(row["on_demand_usd_h"]),
        spot_usd_hour=_dollars(row["spot_usd_h"]),
        interruption_band=row["spot_interruption_band"],
    )


def _accelerator(row: Mapping[str, str]) -> Accelerator | None:
    if row["neuron"]:
        name = row["accelerator"]
        return Accelerator(name, "neuron", _NEURON_MEMORY[name], int(row["neuroncore"]) // int(row["neuron"]))
    if row["nvidia_gpu"]:
        return Accelerator(row["accelerator"], "nvidia", int(row["accelerator_memory_mib"]) * MIB, 1)
    return None


def _dollars(cell: str) -> Decimal | None:
    return Decimal(cell) if cell else None
