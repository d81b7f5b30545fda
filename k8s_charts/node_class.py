"""How nodes of a family are launched: disks, what is on them from the start, and how images are pulled.

Whatever changes here replaces nodes (Karpenter calls it drift), one at a time.
"""

from typing import Any, Final

import yaml
from constructs import Construct

from genai_finops.spec import Platform, names, placement
from genai_finops.spec.platform import NodePool
from k8s_charts.custom import EC2NodeClass, ImageVolume, RootVolume

NODE_CONFIG_API: Final = "node.eks.aws/v1alpha1"

IMAGES_LABEL: Final = "images"
"""Of the file system in a snapshot of images; docs/model-supply.md makes it."""

BOUNDARY: Final = "//"

MOUNT_IMAGES: Final = f"""\
#!/bin/bash
# Runs before the node's agent starts containerd. Without the volume nothing is lost but time: images are pulled.
udevadm settle --timeout=30
mount -o noatime LABEL={IMAGES_LABEL} /var/lib/containerd || echo "no volume of images" >&2
"""


def add_node_class(scope: Construct, platform: Platform, family: str) -> None:
    """The EC2NodeClass of a family."""
    pool = platform.node_pool(family)
    volume, preload = pool.volume, pool.image_preload
    EC2NodeClass(
        scope,
        "class",
        name=names.node_class(family),
        role=names.karpenter_node_role(platform),
        discovery=platform.name,
        volume=RootVolume(volume.size_gib, volume.iops, volume.throughput_mib_s),
        images=ImageVolume(preload.snapshot, preload.initialization_mib_s) if preload.snapshot else None,
        joins_local_disks=has_local_disks(platform, family),
        user_data=user_data(pool, local_disks=has_local_disks(platform, family)),
        tags={
            **platform.tags,
            names.PLATFORM_TAG: platform.name,
            names.COMPONENT_TAG: f"serving-{family}",
        },
    )


def has_local_disks(platform: Platform, family: str) -> bool:
    models = platform.models_on(family)
    return any(instance.local_nvme_gb for model in models for instance in placement.pool_instances(model))


def user_data(pool: NodePool, *, local_disks: bool) -> str:
    """What Karpenter hands to the node's agent beside its own: MIME parts where a script is among them."""
    config = _mapping_text(_node_config(pool, local_disks=local_disks))
    if not pool.image_preload.snapshot:
        return config
    parts = (("text/x-shellscript; charset=us-ascii", MOUNT_IMAGES), ("application/node.eks.aws", config))
    written = "".join(f"--{BOUNDARY}\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts)
    return f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{BOUNDARY}"\n\n{written}--{BOUNDARY}--\n'


def _node_config(pool: NodePool, *, local_disks: bool) -> dict[str, Any]:
    at_once = pool.parallel_image_pulls
    kubelet: dict[str, Any] = {"serializeImagePulls": at_once == 1}
    if at_once > 1:
        kubelet["maxParallelImagePulls"] = at_once
    spec: dict[str, Any] = {"kubelet": {"config": kubelet}}
    if pool.fast_image_pull:
        spec["featureGates"] = {"FastImagePull": True}
    if pool.image_preload.snapshot and local_disks:
        # Joined disks would be mounted over the images.
        spec["instance"] = {"localStorage": {"strategy": "RAID0", "disabledMounts": ["Containerd"]}}
    return {"apiVersion": NODE_CONFIG_API, "kind": "NodeConfig", "spec": spec}


def _mapping_text(mapping: dict[str, Any]) -> str:
    return yaml.safe_dump(mapping, sort_keys=False)
