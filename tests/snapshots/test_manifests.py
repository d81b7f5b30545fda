"""What changed in the manifests: a snapshot per chart and platform, to be read in a review.

They show change and prove nothing; what must hold is asserted in tests/unit/k8s_charts.
"""

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from k8s_charts import to_yaml
from tests.unit.k8s_charts.charts import PLATFORMS, charts

pytestmark = pytest.mark.synth

CHARTS = ("namespace", "karpenter", "automation", "vllm", "keda", "monitoring", "gateway")


class YamlFile(SingleFileSnapshotExtension):
    """One readable `.yaml` file per snapshot."""

    _write_mode = WriteMode.TEXT
    file_extension = "yaml"


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("name", PLATFORMS)
def test_manifests(name, chart, snapshot):
    text = to_yaml(charts(name)[chart])
    assert text == snapshot(extension_class=YamlFile)
