"""What changed in the manifests: a snapshot per chart and platform, to be read in a review.

They show change and prove nothing; what must hold is asserted in tests/unit/k8s_charts.
"""

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from k8s_charts import to_yaml
from tests.unit.k8s_charts.charts import PLATFORMS, charts

pytestmark = pytest.mark.synth

CHARTS = ("namespace", "karpenter", "automation", "supply", "vllm", "keda", "monitoring", "gateway")
ONLY_IN_RICH = ("warm", "buffer", "images")


class YamlFile(SingleFileSnapshotExtension):
    """One readable `.yaml` file per snapshot."""

    _write_mode = WriteMode.TEXT
    file_extension = "yaml"


@pytest.mark.parametrize(
    ("name", "chart"),
    [*((name, chart) for name in PLATFORMS for chart in CHARTS), *(("rich", chart) for chart in ONLY_IN_RICH)],
)
def test_manifests(name, chart, snapshot):
    text = to_yaml(charts(name)[chart])
    assert text == snapshot(extension_class=YamlFile)


@pytest.mark.parametrize("name", PLATFORMS)
def test_no_chart_is_left_out(name):
    assert set(charts(name)) == {*CHARTS, *(ONLY_IN_RICH if name == "rich" else ())}
