"""Will AWS and Kubernetes accept what surrounds the models: region, zones, names, networks, budget?"""

import re
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network, ip_network
from math import ceil
from typing import Final

from genai_finops.catalog import families, instance_types, kubernetes_versions, regions, zones
from genai_finops.catalog.instances import GIB
from genai_finops.spec import names, placement
from genai_finops.spec.model import Model
from genai_finops.spec.platform import ADDON_DEFAULT, Budget, NodePool, Platform
from genai_finops.spec.problems import Problem, one_of, path_of

MAX_VOLUME_THROUGHPUT_PER_IOPS: Final = 0.25
"""MiB/s of gp3 throughput per provisioned IOPS (Amazon EBS documentation)."""

FAST_PULL_MIB_S: Final = 600
"""Throughput of the root volume below which the SOCI snapshotter slows a pull down (AWS, EKS AMI documentation)."""

MAX_BUDGET_ALERTS: Final = 5

REGIONS_WITHOUT_BUDGETS: Final = ("eu-north-1",)
"""Where CloudFormation has no AWS::Budgets::Budget (its resource specification, 2026-12-01)."""

_PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
"""RFC 1918 and RFC 6598: what a VPC can use without hiding a part of the internet."""

_TAG: Final = re.compile(r"[\w .:/=+@-]*")
_RESERVED_TAGS: Final = (
    "aws:",
    "kubernetes.io/",
    "karpenter.sh/",
    "karpenter.k8s.aws/",
    "eks:",
    "genai-finops:",
)
_MAX_TAGS: Final = 40


def problems(platform: Platform) -> Iterator[Problem]:
    yield from _region(platform)
    yield from _names(platform)
    yield from _network(platform)
    yield from _cluster(platform)
    yield from _pools(platform)
    yield from _gateway(platform)
    yield from _budget(platform)
    yield from _cost_report(platform)
    yield from _unique("notifications.emails[{}]", platform.notifications.emails, "address")
    yield from _tags(platform)


def _region(platform: Platform) -> Iterator[Problem]:
    if platform.region not in regions():
        yield Problem(
            "region",
            f"is {platform.region!r}",
            "The catalog does not have that region.",
            f"Use {one_of(regions())}.",
        )
        return
    allowed = zones(platform.region)
    for index, zone in enumerate(platform.zones):
        if zone not in allowed:
            yield Problem(
                f"zones[{index}]",
                f"is {zone!r}",
                f"{platform.region} has no such zone for new subnets.",
                f"Use {one_of(allowed)}.",
            )
    yield from _unique("zones[{}]", platform.zones, "zone")


def _names(platform: Platform) -> Iterator[Problem]:
    worst: dict[str, names.DerivedName] = {}
    for name in names.derived(platform):
        if name.excess > 0 and (name.path not in worst or name.excess > worst[name.path].excess):
            worst[name.path] = name
    for name in worst.values():
        yield Problem(
            name.path,
            f"is {name.excess} characters too long",
            f"It makes the {name.what} {name.value}, which has {len(name.value)} characters; {name.limit} are allowed.",
            f"Shorten it by {name.excess}.",
        )
    same_names = list(_unique("models[{}].name", [model.name for model in platform.models], "name"))
    yield from same_names
    if not same_names:
        yield from _unique("models[{}].served_name", [model.served_as for model in platform.models], "served name")


def _unique(path: str, values: list[str] | tuple[str, ...], what: str) -> Iterator[Problem]:
    for value, count in Counter(values).items():
        if count > 1:
            index = len(values) - 1 - values[::-1].index(value)
            yield Problem(
                path.format(index),
                f"is {value!r}",
                f"Another entry has the same {what}.",
                "Give each its own.",
            )


def _network(platform: Platform) -> Iterator[Problem]:
    yield from _networks("network.cidr", [platform.network.cidr])
    block = _parse(platform.network.cidr)
    if block is not None and not 16 <= block.prefixlen <= 20:
        yield Problem(
            "network.cidr",
            f"is {platform.network.cidr!r}",
            "Each zone gets a private subnet, and each pod an address of it.",
            "Use a private IPv4 block from /16 to /20.",
        )
    elif block is not None and not any(block.subnet_of(private) for private in _PRIVATE):
        yield Problem(
            "network.cidr",
            f"is {platform.network.cidr!r}",
            "Those addresses belong to others, who could not be reached from inside.",
            f"Use a block of {one_of(_PRIVATE)}.",
        )
    if platform.network.nat_gateways > len(platform.zones):
        yield Problem(
            "network.nat_gateways",
            f"is {platform.network.nat_gateways}",
            f"There are {len(platform.zones)} zones, and a zone has at most one.",
            f"Use 1 to {len(platform.zones)}.",
        )
    yield from _unique("network.interface_endpoints[{}]", platform.network.interface_endpoints, "service")


def _networks(path: str, blocks: list[str] | tuple[str, ...]) -> Iterator[Problem]:
    for index, block in enumerate(blocks):
        if _parse(block) is None:
            where = path if path == "network.cidr" else f"{path}[{index}]"
            yield Problem(
                where,
                f"is {block!r}",
                "It is not an IPv4 network.",
                "Use a block such as 10.0.0.0/16, no host bits set.",
            )
    if path != "network.cidr":
        yield from _unique(f"{path}[{{}}]", blocks, "network")


def _parse(block: str) -> IPv4Network | None:
    """The network, when it is written as AWS takes it: address/length."""
    try:
        network = ip_network(block)
    except ValueError:
        return None
    return network if isinstance(network, IPv4Network) and str(network) == block else None


def _cluster(platform: Platform) -> Iterator[Problem]:
    cluster = platform.cluster
    if cluster.version not in kubernetes_versions():
        yield Problem(
            "cluster.version",
            f"is {cluster.version!r}",
            "The catalog has no support dates for that Kubernetes version on EKS.",
            f"Use {one_of(kubernetes_versions())}, in quotes.",
        )
    yield from _networks("cluster.public_access_cidrs", cluster.public_access_cidrs)
    if "0.0.0.0/0" in cluster.public_access_cidrs:
        yield Problem(
            "cluster.public_access_cidrs",
            "has 0.0.0.0/0",
            "The API server would be open to the internet.",
            "List the networks you work from, or none and reach it from inside the VPC.",
        )
    nodes = cluster.system_nodes
    known = [name for name, instance in instance_types().items() if instance.accelerator is None]
    if nodes.instance_type not in known:
        yield Problem(
            "cluster.system_nodes.instance_type",
            f"is {nodes.instance_type!r}",
            "System nodes are Graviton instances without accelerators that the catalog knows.",
            f"Use {one_of(known)}.",
        )
    if nodes.count > nodes.max_count:
        yield Problem(
            "cluster.system_nodes.count",
            f"is {nodes.count}",
            f"max_count is {nodes.max_count}.",
            f"Use at most {nodes.max_count}, or raise max_count.",
        )
    yield from _unique("cluster.admin_roles[{}]", cluster.admin_roles, "role")
    for addon, version in cluster.addon_versions.items():
        if version != ADDON_DEFAULT and not re.fullmatch(r"v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+", version):
            yield Problem(
                f"cluster.addon_versions.{addon}",
                f"is {version!r}",
                "It is not a version of an EKS add-on.",
                "Use a version such as v1.20.4-eksbuild.1, or default.",
            )


def _pools(platform: Platform) -> Iterator[Problem]:
    for family in platform.families:
        yield from _room_for_a_node(platform.node_pool(family), platform.models_on(family))
    for family, pool in platform.node_pools.items():
        path = path_of(("node_pools", family))
        if family not in platform.families:
            yield Problem(
                path,
                "is set",
                "No model runs on that family.",
                f"Families in use: {one_of(platform.families)}.",
            )
        volume = pool.volume
        if volume.throughput_mib_s > volume.iops * MAX_VOLUME_THROUGHPUT_PER_IOPS:
            yield Problem(
                f"{path}.volume.throughput_mib_s",
                f"is {volume.throughput_mib_s}",
                f"gp3 gives at most 0.25 MiB/s for each of the {volume.iops} IOPS.",
                f"Use at most {int(volume.iops * MAX_VOLUME_THROUGHPUT_PER_IOPS)}, or raise iops to "
                f"{int(volume.throughput_mib_s / MAX_VOLUME_THROUGHPUT_PER_IOPS)}.",
            )
        yield from _images(pool, path)
        if family in platform.families:
            yield from _cache(pool, platform.models_on(family), path)


def _images(pool: NodePool, path: str) -> Iterator[Problem]:
    preload = pool.image_preload
    if pool.fast_image_pull and preload.snapshot:
        yield Problem(
            f"{path}.fast_image_pull",
            "is true",
            "It keeps images in a folder of its own, where those of image_preload.snapshot are not found.",
            "Leave one of them out; with the snapshot nothing is pulled.",
        )
    elif pool.fast_image_pull and pool.volume.throughput_mib_s < FAST_PULL_MIB_S:
        yield Problem(
            f"{path}.fast_image_pull",
            "is true",
            f"Below {FAST_PULL_MIB_S} MiB/s it is slower than without; volume.throughput_mib_s is "
            f"{pool.volume.throughput_mib_s}.",
            f"Raise it to {FAST_PULL_MIB_S} or more, and iops to {4 * FAST_PULL_MIB_S}, or leave fast_image_pull out.",
        )
    if "initialization_mib_s" in preload.model_fields_set and not preload.snapshot:
        yield Problem(
            f"{path}.image_preload.initialization_mib_s",
            f"is {preload.initialization_mib_s}",
            "It says how fast a volume is filled from a snapshot, and none is named.",
            "Set image_preload.snapshot, or leave it out.",
        )


def _cache(pool: NodePool, models: tuple[Model, ...], path: str) -> Iterator[Problem]:
    if pool.cache_gib is None:
        return
    most = pool.volume.size_gib - placement.IMAGE_GIB
    if pool.cache_gib > most:
        yield Problem(
            f"{path}.cache_gib",
            f"is {pool.cache_gib}",
            f"Image and system take about {placement.IMAGE_GIB} of the volume's {pool.volume.size_gib} GiB.",
            f"Use at most {most}, or raise volume.size_gib.",
        )
        return
    for model in models:
        needed = ceil(placement.stored_bytes(model) / GIB)
        if needed > pool.cache_gib:
            yield Problem(
                f"{path}.cache_gib",
                f"is {pool.cache_gib}",
                f"{model.name} alone takes {needed} GiB: it would never be on the node as a whole.",
                f"Use {needed} or more, or leave it out.",
            )
            return


def _room_for_a_node(pool: NodePool, models: tuple[Model, ...]) -> Iterator[Problem]:
    """Karpenter launches no node that would exceed the limit, not even the first."""
    for model in models:
        known = {instance.size: instance for instance in families().get(model.accelerator.family, ())}
        if model.known_shape is None or not known:
            continue  # another check says so
        able = [known[size] for size in placement.sizes(model) if size in known]
        compiling = placement.compile_instance(model) if model.is_precompiled else None
        if able and compiling and compiling.devices > pool.max_devices:
            yield Problem(
                f"node_pools.{model.accelerator.family}.max_devices",
                f"is {pool.max_devices}",
                f"{model.name} is compiled on {compiling.name}, which has {compiling.devices} devices: no node of it "
                "would ever be launched.",
                f"Use {compiling.devices} or more.",
            )
            continue
        smallest = min(able, key=lambda instance: instance.devices, default=None)
        if smallest is not None and smallest.devices > pool.max_devices:
            yield Problem(
                f"node_pools.{model.accelerator.family}.max_devices",
                f"is {pool.max_devices}",
                f"{model.name} runs on {smallest.name}, which has {smallest.devices} devices: no node of it "
                "would ever be launched.",
                f"Use {smallest.devices} or more.",
            )


def _gateway(platform: Platform) -> Iterator[Problem]:
    gateway = platform.gateway
    yield from _networks("gateway.allowed_cidrs", gateway.allowed_cidrs)
    if gateway.certificate_arn is not None and gateway.certificate_arn.split(":")[3] != platform.region:
        yield Problem(
            "gateway.certificate_arn",
            f"is {gateway.certificate_arn!r}",
            f"A load balancer takes certificates of its own region, {platform.region}.",
            f"Request or import one in {platform.region}.",
        )
    if gateway.scheme == "internet-facing":
        if gateway.certificate_arn is None:
            yield Problem(
                "gateway.certificate_arn",
                "is missing",
                "Prompts and the API key would cross the internet in clear text.",
                "Give the ARN of an ACM certificate, or use scheme: internal.",
            )
        if not gateway.api_key:
            yield Problem(
                "gateway.api_key",
                "is false",
                "Anyone on the internet could spend your accelerators.",
                "Leave it true, or use scheme: internal.",
            )
        if not gateway.allowed_cidrs:
            yield Problem(
                "gateway.allowed_cidrs",
                "is missing",
                "An internet-facing load balancer must say who may connect.",
                "List networks; 0.0.0.0/0 if really everyone.",
            )


def _budget(platform: Platform) -> Iterator[Problem]:
    budget = platform.budget
    if budget is None:
        return
    for field in ("actual_thresholds_percent", "forecast_thresholds_percent"):
        thresholds = getattr(budget, field)
        if list(thresholds) != sorted(set(thresholds)):
            yield Problem(
                f"budget.{field}",
                f"is {list(thresholds)}",
                "Each threshold alerts once, in ascending order.",
                f"Use {sorted(set(thresholds))}.",
            )
    if platform.region in REGIONS_WITHOUT_BUDGETS:
        yield Problem(
            "budget",
            "is set",
            f"CloudFormation cannot make an AWS Budgets budget in {platform.region}.",
            "Leave it out and make the budget in the console; it is the same in every region.",
        )
    alerts = len(budget.actual_thresholds_percent) + len(budget.forecast_thresholds_percent)
    if alerts > MAX_BUDGET_ALERTS:
        yield Problem(
            "budget",
            f"has {alerts} thresholds",
            f"AWS Budgets takes {MAX_BUDGET_ALERTS} alerts per budget, actual and forecast together.",
            f"Leave out {alerts - MAX_BUDGET_ALERTS}.",
        )
    yield from _guardrails(platform, budget)
    if not platform.notifications.emails and platform.notifications.slack is None:
        yield Problem(
            "notifications",
            "names nobody",
            "There is a budget, and no one would hear that it is spent.",
            "Add notifications.emails or notifications.slack.",
        )


def _cost_report(platform: Platform) -> Iterator[Problem]:
    heard = platform.notifications.emails or platform.notifications.slack
    for field in ("daily_digest", "first_of_month"):
        if not getattr(platform.cost_report, field):
            continue
        if not heard:
            yield Problem(
                f"cost_report.{field}",
                "is true",
                "There is nobody to send it to.",
                "Add notifications.emails or notifications.slack, or leave it out.",
            )
        elif platform.budget is None:
            yield Problem(
                f"cost_report.{field}",
                "is true",
                "It says how spend stands against the budget, and there is none.",
                "Set budget.monthly_usd, or leave it out.",
            )


def _guardrails(platform: Platform, budget: Budget) -> Iterator[Problem]:
    taken: dict[tuple[str, int], int] = {}
    for index, guardrail in enumerate(budget.guardrails):
        path = f"budget.guardrails[{index}]"
        setting = f"{guardrail.basis}_thresholds_percent"
        allowed = getattr(budget, setting)
        threshold = (guardrail.basis, guardrail.percent)
        if guardrail.percent not in allowed:
            yield Problem(
                f"{path}.percent",
                f"is {guardrail.percent}",
                f"budget.{setting} does not have it, so it would never be reached.",
                f"Use {one_of(allowed)}, or add it there." if allowed else "Add it there.",
            )
        elif threshold in taken:
            yield Problem(
                f"{path}.percent",
                f"is {guardrail.percent}",
                f"budget.guardrails[{taken[threshold]}] acts at that threshold already.",
                "Leave one of them out, or add another threshold.",
            )
        taken.setdefault(threshold, index)
        if guardrail.action == "cap_replicas" and guardrail.replicas is None:
            yield Problem(
                f"{path}.replicas", "is missing", "cap_replicas needs to know how many.", "Give a number of at least 1."
            )
        elif guardrail.action != "cap_replicas" and guardrail.replicas is not None:
            yield Problem(
                f"{path}.replicas",
                f"is {guardrail.replicas}",
                f"{guardrail.action} has no use for it.",
                "Leave it out, or use cap_replicas.",
            )
        if guardrail.action != "on_demand_off" and all(model.critical for model in platform.models):
            yield Problem(
                f"{path}.action",
                f"is {guardrail.action}",
                "All models are critical, and no guardrail touches those.",
                "Leave it out, or take critical from a model that can wait.",
            )


def _tags(platform: Platform) -> Iterator[Problem]:
    if len(platform.tags) > _MAX_TAGS:
        yield Problem(
            "tags",
            f"has {len(platform.tags)} entries",
            "AWS allows 50, and the platform adds its own.",
            "Use at most 40.",
        )
    folded = Counter(key.lower() for key in platform.tags)
    for key, value in platform.tags.items():
        if folded[key.lower()] > 1:
            yield Problem(
                path_of(("tags", key)),
                "is there in upper and lower case",
                "IAM does not tell such keys apart.",
                "Leave one of them out.",
            )
        if key.lower().startswith(_RESERVED_TAGS) or not key or len(key) > 128 or not _TAG.fullmatch(key):
            yield Problem(
                "tags",
                f"has the key {key!r}",
                "Keys have 1 to 128 letters, digits, spaces and . : / = + - @ _, and do not start with "
                f"{one_of(_RESERVED_TAGS)}.",
                "Rename it.",
            )
        if not value or len(value) > 256 or not _TAG.fullmatch(value):
            yield Problem(
                path_of(("tags", key)),
                f"is {value!r}",
                "Values have 1 to 256 letters, digits, spaces and . : / = + - @ _; EKS add-ons refuse empty ones.",
                "Give another value, or leave the tag out.",
            )
