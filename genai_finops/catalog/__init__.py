"""Facts with their provenance: instance types, prices, model shapes, regions, Kubernetes support dates.

The data stands in `data/` as files a person can review line by line; this package only reads them. Nothing here
decides anything.
"""

from genai_finops.catalog.instances import Accelerator, InstanceType, families, instance_type, instance_types
from genai_finops.catalog.models import ModelShape, model_shape, model_shapes
from genai_finops.catalog.prices import Price, Purchase, instance_price, price
from genai_finops.catalog.regions import regions, zones
from genai_finops.catalog.support import end_of_standard_support, kubernetes_versions
from genai_finops.catalog.system_pods import SystemPod, system_pods

__all__ = [
    "Accelerator",
    "InstanceType",
    "ModelShape",
    "Price",
    "Purchase",
    "SystemPod",
    "end_of_standard_support",
    "families",
    "instance_price",
    "instance_type",
    "instance_types",
    "kubernetes_versions",
    "model_shape",
    "model_shapes",
    "price",
    "regions",
    "system_pods",
    "zones",
]
