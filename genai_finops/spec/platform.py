"""The whole platform file."""

from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from genai_finops import versions
from genai_finops.operations.budget import Basis
from genai_finops.operations.tokens import OUTPUT_WEIGHT
from genai_finops.spec import forms
from genai_finops.spec.base import Section
from genai_finops.spec.model import DnsLabel, Model

EndpointService = Literal[
    "autoscaling", "ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "elasticloadbalancing", "logs", "secretsmanager",
    "sqs", "ssm", "sts",
]  # fmt: skip

AddonName = Literal[
    "aws-ebs-csi-driver", "coredns", "eks-pod-identity-agent", "kube-proxy",
    "metrics-server", "vpc-cni",
]  # fmt: skip

ADDON_DEFAULT: Final = "default"

SYSTEM_NODE_VOLUME_GIB: Final = 20
"""Root volume of a system node, gp3."""

GuardrailAction = Literal["cap_replicas", "on_demand_off", "sleep_non_critical"]

RoleArn = Annotated[str, StringConstraints(pattern=forms.ROLE_ARN.pattern)]


class Network(Section):
    """The VPC."""

    cidr: str = "10.0.0.0/16"
    """A private IPv4 block from /16 to /20."""
    nat_gateways: int = Field(default=1, ge=1)
    """One is the cheapest; one per zone survives the loss of a zone."""
    interface_endpoints: tuple[EndpointService, ...] = ()
    """AWS services reached without NAT. Each costs per zone and hour."""
    flow_log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 180, 365] = 14
    """How long the log of connections is kept."""


class SystemNodes(Section):
    """The small Graviton group that runs everything but models."""

    instance_type: str = "m7g.large"
    """A Graviton type without accelerators."""
    count: int = Field(default=2, ge=2, le=20)
    """Nodes to start with; two survive the loss of one."""
    max_count: int = Field(default=4, ge=2, le=40)
    """Nodes at most."""


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
    """How long control-plane logs are kept."""


class Volume(Section):
    """The gp3 root volume of an accelerator node: image layers, weights and compiled graphs."""

    size_gib: int = Field(default=150, ge=40, le=16384)
    """Holds the server's image (about 20 GiB) and the weights of every replica on the node."""
    throughput_mib_s: int = Field(default=1000, ge=125, le=2000)
    """How fast weights are read; at most a quarter of iops."""
    iops: int = Field(default=4000, ge=3000, le=80000)
    """3000 are free."""


class ImagePreload(Section):
    """How the server's image gets onto a node before a server asks for it. Default: it is pulled when one does."""

    snapshot: str | None = Field(default=None, pattern=forms.SNAPSHOT.pattern)
    """EBS snapshot of a containerd folder that has the image: every node starts with it. docs/model-supply.md says how
    to make one."""
    initialization_mib_s: int = Field(default=300, ge=100, le=300)
    """How fast a volume is filled from the snapshot, which EBS bills by the GiB."""
    pull_ahead: bool = False
    """A DaemonSet pulls the images of all the family's models as soon as a node is there: for nodes that are kept warm,
    and for models that share one."""


class NodePool(Section):
    """The Karpenter pools of one instance family."""

    max_devices: int = Field(default=64, ge=1, le=100_000)
    """Accelerator devices that each of the family's pools may run, all models together."""
    consolidate_after_minutes: int = Field(default=10, ge=1, le=1440)
    """How long a node may stand empty. Shorter than a load takes, and the next request pays the load again."""
    expire_after_hours: int = Field(default=720, ge=1, le=8760)
    """Age at which a node is replaced by one with today's patches."""
    volume: Volume = Volume()
    cache_gib: int | None = Field(default=None, ge=1, le=16384)
    """Weights and compiled graphs that a node keeps for its next pods; what was not used for longest goes first.
    Default: what the volume leaves beside images and system."""
    parallel_image_pulls: int = Field(default=3, ge=1, le=10)
    """Images that a node pulls at once, so that small ones need not wait for the server's."""
    fast_image_pull: bool = False
    """Unpacks the layers of an image side by side, with the SOCI snapshotter. Experimental in AL2023; needs a volume of
    600 MiB/s or more, below which it is slower."""
    image_preload: ImagePreload = ImagePreload()


class ModelStore(Section):
    """The bucket with the weights and compiled graphs that models are served from."""

    noncurrent_days: int = Field(default=30, ge=1, le=365)
    """How long a file that was replaced or deleted can be brought back."""
    unfinished_upload_days: int = Field(default=3, ge=1, le=30)
    """How long parts of an upload that nobody finished are kept."""


class Gateway(Section):
    """The way in: one load balancer, one path per model."""

    enabled: bool = True
    """Without it models are reached from inside the cluster only."""
    scheme: Literal["internal", "internet-facing"] = "internal"
    """internet-facing needs a certificate, the API key and allowed_cidrs."""
    certificate_arn: str | None = Field(default=None, pattern=forms.CERTIFICATE_ARN.pattern)
    """ACM certificate; with it the listener speaks HTTPS."""
    hostname: str | None = Field(default=None, pattern=forms.HOSTNAME.pattern)
    """The name that clients use. Default: any."""
    allowed_cidrs: tuple[str, ...] = ()
    """Networks that may connect. Default: the VPC's for an internal load balancer."""
    api_key: bool = True
    """Clients must send the key that the stack makes in Secrets Manager."""


class Monitoring(Section):
    """Prometheus and Grafana in the cluster."""

    scrape_interval_seconds: int = Field(default=15, ge=5, le=120)
    """How often metrics are read."""
    retention_days: int = Field(default=15, ge=1, le=365)
    """How long metrics are kept."""
    storage_gib: int = Field(default=50, ge=10, le=2000)
    """Volume that holds them."""


def _written_out(amount: Decimal) -> Decimal:
    """Without an exponent: AWS takes 1000, not 1E+3."""
    return Decimal(format(amount, "f"))


class Guardrail(Section):
    """What reaching a threshold of the budget does beside the alert, until the month is over or the budget raised."""

    basis: Basis
    """actual: what is spent. forecast: what is expected by the end of the month."""
    percent: int
    """One of actual_thresholds_percent or forecast_thresholds_percent."""
    action: GuardrailAction
    """cap_replicas: non-critical models run at most `replicas`. on_demand_off: no new on-demand nodes, except where a
    critical model may need them. sleep_non_critical: non-critical models sleep."""
    replicas: int | None = Field(default=None, ge=1, le=10_000)
    """Needed for cap_replicas, and only there. Default: none."""


class Budget(Section):
    """What the platform may cost."""

    monthly_usd: Annotated[Decimal, Field(gt=0, le=1_000_000_000, decimal_places=2), AfterValidator(_written_out)]
    """US dollars a month."""
    actual_thresholds_percent: tuple[Annotated[int, Field(gt=0, le=1000)], ...] = (50, 80, 100)
    """Alert when this share is spent. At most five thresholds, actual and forecast together."""
    forecast_thresholds_percent: tuple[Annotated[int, Field(gt=0, le=1000)], ...] = (100,)
    """Alert when AWS expects this share to be spent by the end of the month."""
    guardrails: tuple[Guardrail, ...] = ()
    """What thresholds do beside alerting, at most one each. Default: nothing."""


class Breaker(Section):
    """When Spot of a pool, an instance type in a zone, is given a rest because too much of it is reclaimed."""

    window_minutes: int = Field(default=30, ge=1, le=1440)
    """Interruptions this close together belong to one storm."""
    interruptions: int = Field(default=5, ge=1, le=1000)
    """As many within the window start the rest."""
    cooldown_minutes: int = Field(default=60, ge=1, le=1440)
    """Length of the first rest of a day."""
    max_doublings: int = Field(default=3, ge=0, le=10)
    """The rest doubles with every further storm of a day, this often at most."""
    shut_percent_of_zones: int = Field(default=33, ge=1, le=100)
    """A family's Spot NodePool launches nothing while at least this share of its zones has a resting pool."""


class Prewarm(Section):
    """Replacements are loaded at the first sign that EC2 takes a node away."""

    hold_seconds: int = Field(default=1200, ge=60, le=21_600)
    """How long a sign raises a model's minimum; twice what a load takes."""


class Interruptions(Section):
    """What is done when EC2 takes nodes away."""

    breaker: Breaker = Breaker()
    prewarm: Prewarm = Prewarm()


class CostReport(Section):
    """The daily look at what AWS has charged, and the cost per token."""

    daily_digest: bool = False
    """A message a day with the spend, without any alarm in it."""
    first_of_month: bool = False
    """The same message on the first run of each month."""
    output_token_weight: int = Field(default=OUTPUT_WEIGHT, ge=1, le=100)
    """Price of an output token in input tokens, where one bill pays for both."""


class Slack(Section):
    """A Slack channel, connected through Amazon Q Developer in chat applications."""

    workspace_id: str = Field(pattern=forms.SLACK_WORKSPACE.pattern)
    """Authorize the workspace in the AWS console once; it shows this id."""
    channel_id: str = Field(pattern=forms.SLACK_CHANNEL.pattern)
    """Shown at the end of the channel's details in Slack."""


class Notifications(Section):
    """Who hears of alerts."""

    emails: tuple[Annotated[str, StringConstraints(pattern=forms.EMAIL.pattern)], ...] = ()
    """Each gets a mail that asks to confirm."""
    slack: Slack | None = None


class Platform(Section):
    """Everything that is wanted: one file, one platform."""

    name: DnsLabel
    """Names the cluster; everything in the account is derived from it."""
    region: str
    """AWS region, such as us-east-1."""
    zones: tuple[str, ...] = Field(min_length=2)
    """At least two availability zones that offer the instance families used."""
    network: Network = Network()
    cluster: Cluster = Cluster()
    models: tuple[Model, ...] = Field(min_length=1)
    """At least one, each with name, source, revision and accelerator."""
    node_pools: dict[str, NodePool] = Field(default_factory=dict)
    """Settings of the Karpenter pools, by instance family."""
    model_store: ModelStore = ModelStore()
    gateway: Gateway = Gateway()
    hub_token_secret: str | None = Field(default=None, pattern=forms.SECRET_NAME.pattern)
    """Name of a Secrets Manager secret that holds a Hugging Face token, for gated models."""
    monitoring: Monitoring = Monitoring()
    budget: Budget | None = None
    """Default: none, and nothing says when spend runs away."""
    interruptions: Interruptions = Interruptions()
    cost_report: CostReport = CostReport()
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
