"""AWS on the loopback: moto, with what it lacks for Karpenter to feel at home."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import boto3
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami
from moto.server import ThreadedMotoServer
from moto.ssm.models import Parameter, ssm_backends

from genai_finops import versions
from genai_finops.rehearsal import fleet
from genai_finops.rehearsal.fleet import Capacity
from genai_finops.rehearsal.processes import free_ports

ACCOUNT: Final = "123456789012"
"""moto's."""

CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "rehearsal", "AWS_SECRET_ACCESS_KEY": "rehearsal"}

_PARAMETERS: Final = "/aws/service/eks/optimized-ami"
_RELEASED: Final = datetime(2026, 7, 14, tzinfo=UTC)
_VARIANTS: Final = {"x86_64": ("standard", "nvidia", "neuron"), "arm64": ("standard", "nvidia")}
"""Architectures and kinds of EKS's images for Amazon Linux 2023."""


@dataclass(slots=True)
class Cloud:
    """One account in one region.

    Attributes:
        capacity: of EC2; a scenario makes it short.
    """

    region: str
    capacity: Capacity = field(default_factory=Capacity)
    _server: ThreadedMotoServer | None = None
    _port: int = 0

    @property
    def endpoint(self) -> str:
        """By the name `localhost`, as the CDK's command asks for it."""
        return f"http://localhost:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """With which any AWS client finds it."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": self.region}

    def start(self) -> None:
        fleet.install(self.capacity)
        [self._port] = free_ports(1)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self._port, verbose=False)
        self._server.start()
        self._images()

    def stop(self) -> None:
        if self._server:
            self._server.stop()
            self._server = None

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name=self.region,
            endpoint_url=self.endpoint,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )

    def _images(self) -> None:
        """EKS's images, and the public parameters that name them."""
        backend = ec2_backends[ACCOUNT][self.region]
        parameters = ssm_backends[ACCOUNT][self.region]._parameters
        version = versions.AL2023_AMI_ALIAS.partition("@")[2]
        for architecture, variants in _VARIANTS.items():
            for variant in variants:
                name = f"amazon-eks-node-al2023-{architecture}-{variant}-{versions.KUBERNETES}-{version}"
                number = len(backend.amis) + 1
                image = Ami(
                    backend,
                    f"ami-{number:017x}",
                    name=name,
                    owner_id="amazon",
                    owner_alias="amazon",
                    public=True,
                    architecture=architecture,
                    virtualization_type="hvm",
                    state="available",
                )
                image.creation_date = _RELEASED
                backend.amis[image.id] = image
                path = f"{_PARAMETERS}/{versions.KUBERNETES}/amazon-linux-2023/{architecture}/{variant}/{name}/image_id"
                # Written past the API, which keeps these names for AWS.
                parameters[path].append(_parameter(path, image.id))


def _parameter(name: str, value: str) -> Parameter:
    return Parameter(  # type: ignore[abstract]
        account_id=ACCOUNT,
        name=name,
        value=value,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=_RELEASED,
        version=1,
        data_type="text",
    )


def interruption(instance_id: str, region: str) -> dict[str, Any]:
    """EventBridge's event two minutes before a Spot instance is taken back."""
    return _event("EC2 Spot Instance Interruption Warning", instance_id, region, {"instance-action": "terminate"})


def rebalance(instance_id: str, region: str) -> dict[str, Any]:
    """EventBridge's event for a Spot instance that may be taken back."""
    return _event("EC2 Instance Rebalance Recommendation", instance_id, region, {})


def _event(detail_type: str, instance_id: str, region: str, more: dict[str, str]) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "version": "0",
        "id": f"rehearsal-{instance_id}-{now.timestamp():.6f}",
        "detail-type": detail_type,
        "source": "aws.ec2",
        "account": ACCOUNT,
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "region": region,
        "resources": [f"arn:aws:ec2:{region}:{ACCOUNT}:instance/{instance_id}"],
        "detail": {"instance-id": instance_id, **more},
    }


def put(sqs: Any, queue_url: str, events: Sequence[dict[str, Any]]) -> None:
    for event in events:
        sqs.send_message(QueueUrl=queue_url, MessageBody=json.dumps(event))
