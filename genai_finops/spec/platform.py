"""The whole platform file."""

from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from genai_finops import versions
from genai_finops.spec.base import Section
from genai_finops.spec.model import DnsLabel, Model

EndpointService = Literal[
    "autoscaling", "ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "elasticloadbalancing", "logs", "secretsmanager",
    "sqs", "ssm", "sts",
]  # fmt: skip

AddonName = Literal[
    "aws-ebs-csi-driver", "aws-secrets-store-csi-driver-provider", "coredns", "eks-pod-identity-agent", "kube-proxy",
    "metrics-server", "vpc-cni",
]  # fmt: skip

ADDON_DEFAULT: Final = "default"

RoleArn = Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/.+$")]


class Network(Section):
    """The VPC."""

    cidr: str = "10.0.0.0/16"
    nat_gateways: int = Field(default=1, ge=1)
    """One is the cheapest; one per zone survives the loss of a zone."""
    interface_endpoints: tuple[EndpointService, ...] = ()
    """AWS services reached without NAT. Each costs per zone and hour."""
    flow_log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 180, 365] = 14


class SystemNodes(Section):
    """The small Graviton group that runs everything but models."""

    instance_type: str = "m7g.large"
    count: int = Field(default=2, ge=2, le=20)
    max_count: int = Field(default=4, ge=2, le=40)


class Cluster(Section):
    """The EKS cluster."""

    version: str = versions.KUBERNETES
    """In quotes: 1.30 without them is the number 1.3."""
    public_access_cidrs: tuple[str, ...] = ()
    """Networks that may reach the API server from outside the VPC. Default: none, the endpoint is private."""
    admin_roles: tuple[RoleArn, ...] = ()
    """IAM roles that administer the cluster."""
    system_nodes: SystemNodes = SystemNodes()
    addon_versions: dict[AddonName, str] = Field(default_factory=dict)
    """Pinned versions of EKS add-ons. Default: the default version for this Kubernetes version."""
    log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 180, 365] = 30


class Volume(Section):
    """The gp3 root volume of an accelerator node: image layers, weights and compiled graphs."""

    size_gib: int = Field(default=150, ge=40, le=16384)
    throughput_mib_s: int = Field(default=1000, ge=125, le=2000)
    iops: int = Field(default=4000, ge=3000, le=80000)


class NodePool(Section):
    """The Karpenter pools of one instance family."""

    max_devices: int = Field(default=64, ge=1)
    """Accelerator devices that may run at once, all models of the family together."""
    consolidate_after_minutes: int = Field(default=10, ge=1)
    """How long a node may stand empty. Shorter than a load takes, and the next request pays the load again."""
    expire_after_hours: int = Field(default=720, ge=1)
    volume: Volume = Volume()


class Gateway(Section):
    """The way in: one load balancer, one path per model."""

    enabled: bool = True
    scheme: Literal["internal", "internet-facing"] = "internal"
    certificate_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate/.+$")
    """ACM certificate; with it the listener speaks HTTPS."""
    hostname: str | None = Field(default=None, pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$")
    allowed_cidrs: tuple[str, ...] = ()
    """Networks that may connect. Default: the VPC's for an internal load balancer."""
    api_key: bool = True
    """Clients must send the key that the stack makes in Secrets Manager."""


class Monitoring(Section):
    """Prometheus and Grafana in the cluster."""

    scrape_interval_seconds: int = Field(default=15, ge=5, le=120)
    retention_days: int = Field(default=15, ge=1, le=365)
    storage_gib: int = Field(default=50, ge=10, le=2000)


class Budget(Section):
    """What the platform may cost."""

    monthly_usd: Decimal
    actual_thresholds_percent: tuple[Annotated[int, Field(gt=0, le=1000)], ...] = (50, 80, 100)
    forecast_thresholds_percent: tuple[Annotated[int, Field(gt=0, le=1000)], ...] = (100,)


class Slack(Section):
    workspace_id: str = Field(pattern=r"^[0-9A-Z]{1,255}$")
    channel_id: str = Field(pattern=r"^[A-Za-z0-9]{1,255}$")


class Notifications(Section):
    """Who hears of alerts."""

    emails: tuple[Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")], ...] = ()
    slack: Slack | None = None


class Platform(Section):
    """Everything that is wanted: one file, one platform."""

    name: DnsLabel
    """Names the cluster; everything in the account is derived from it."""
    region: str
    zones: tuple[str, ...] = Field(min_length=2)
    """At least two availability zones that offer the instance families used."""
    network: Network = Network()
    cluster: Cluster = Cluster()
    models: tuple[Model, ...] = Field(min_length=1)
    node_pools: dict[str, NodePool] = Field(default_factory=dict)
    """Settings of the Karpenter pools, by instance family."""
    gateway: Gateway = Gateway()
    hub_token_secret: str | None = Field(default=None, pattern=r"^[A-Za-z0-9/_+=.@-]{1,512}$")
    """Name of a Secrets Manager secret that holds a Hugging Face token, for gated models."""
    monitoring: Monitoring = Monitoring()
    budget: Budget | None = None
    notifications: Notifications = Notifications()
    tags: dict[str, str] = Field(default_factory=dict)
    """AWS tags on everything, including what Karpenter launches."""
    termination_protection: bool = True
    """Stacks refuse to be deleted until this is false and deployed."""

    @property
    def families(self) -> tuple[str, ...]:
        """Instance families in use, in the order they first appear."""
        return tuple(dict.fromkeys(model.accelerator.family for model in self.models))

    def models_on(self, family: str) -> tuple[Model, ...]:
        return tuple(model for model in self.models if model.accelerator.family == family)

    def node_pool(self, family: str) -> NodePool:
        return self.node_pools.get(family, NodePool())

    def addon_version(self, name: AddonName) -> str | None:
        """The pinned version of an EKS add-on; None for the default of this Kubernetes version."""
        version = self.cluster.addon_versions.get(name, ADDON_DEFAULT)
        return None if version == ADDON_DEFAULT else version
