"""Whatever retention the platform file may say, CloudWatch has it."""

from typing import get_args

import pytest

from genai_finops.spec.platform import Cluster, Network
from stacks.retention import days

pytestmark = pytest.mark.synth

ALLOWED = {
    *get_args(Network.model_fields["flow_log_retention_days"].annotation),
    *get_args(Cluster.model_fields["log_retention_days"].annotation),
}


def test_every_retention_that_the_file_may_give_has_a_member():
    assert len({days(count) for count in ALLOWED}) == len(ALLOWED) > 1
