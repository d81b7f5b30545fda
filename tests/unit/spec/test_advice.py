"""Warnings: what works but costs, with what it costs and what to do."""

from datetime import date, timedelta

import pytest

from genai_finops.catalog import end_of_standard_support
from genai_finops.spec import warnings
from tests.unit.spec.files import ALERTED, accepted

TODAY = date(2026, 12, 1)
MODEL = "models[0]"
COMPILES = {f"{MODEL}.engine.allow_compile_on_start": True}

QUIET = {
    "budget.monthly_usd": 5000,
    "notifications": ALERTED,
    f"{MODEL}.scaling": {"min_replicas": 2},
    f"{MODEL}.accelerator.sizes": ["xlarge", "8xlarge"],
}
"""Changes after which nothing is left to warn about."""


def advised(changes, today=TODAY):
    """Warnings by path."""
    return {warning.path: warning for warning in warnings(accepted({**QUIET, **changes}), today)}


def the_only_advice(changes, today=TODAY):
    found = advised(changes, today)
    assert len(found) == 1, found
    return next(iter(found.values()))


def test_a_platform_that_spends_well_has_no_warnings():
    assert advised({}) == {}


@pytest.mark.parametrize(("days_left", "warned"), [(91, False), (90, False), (89, True), (0, True), (-1, True)])
def test_a_version_is_warned_about_ninety_days_before_it_costs_more(days_left, warned):
    today = end_of_standard_support("1.35") - timedelta(days=days_left)
    assert ("cluster.version" in advised({}, today)) is warned


def test_extended_support_is_priced():
    warning = the_only_advice({"cluster.version": "1.34"}, date(2026, 12, 3))
    assert warning.path == "cluster.version"
    assert "left standard support on 2026-12-02" in warning.message
    assert "$0.60 instead of $0.10" in warning.message
    assert "$365.00 more a month" in warning.message
    assert "leaves standard support" in the_only_advice({"cluster.version": "1.34"}, date(2026, 12, 2)).message


def test_a_nat_gateway_per_zone_is_priced():
    warning = the_only_advice({"network.nat_gateways": 2})
    assert warning.path == "network.nat_gateways"
    assert "2 NAT gateways cost $65.70 a month; one costs $32.85" in warning.message


def test_no_budget_is_warned_about():
    changes = {key: value for key, value in QUIET.items() if not key.startswith(("budget", "notifications"))}
    assert [warning.path for warning in warnings(accepted(changes), TODAY)] == ["budget"]


@pytest.mark.parametrize("spot", ["prefer", "only"])
def test_one_replica_on_spot_is_a_single_point_of_failure(spot):
    warning = the_only_advice({f"{MODEL}.scaling": {"min_replicas": 1}, f"{MODEL}.spot": spot})
    assert warning.path == f"{MODEL}.scaling.min_replicas"
    assert "Set it to 2" in warning.remedy


def test_on_demand_only_is_priced_against_spot():
    warning = the_only_advice({f"{MODEL}.spot": "never"})
    assert warning.path == f"{MODEL}.spot"
    assert "inf2.xlarge costs $0.76 an hour on demand, about 83% less on Spot" in warning.message


def test_on_demand_only_is_warned_about_even_where_the_spot_price_is_not_known():
    changes = {
        f"{MODEL}.accelerator": {"family": "p5", "sizes": ["4xlarge"]},
        f"{MODEL}.spot": "never",
        f"{MODEL}.engine": {},
    }
    assert the_only_advice(changes).message == "llama3-8b never runs on Spot."


def test_one_replica_on_demand_is_not_a_spot_risk():
    assert list(advised({f"{MODEL}.scaling": {"min_replicas": 1}, f"{MODEL}.spot": "never"})) == [f"{MODEL}.spot"]


def test_an_8xlarge_where_an_xlarge_would_serve_is_the_largest_lever():
    warning = the_only_advice({f"{MODEL}.accelerator.sizes": ["8xlarge"]})
    assert warning.path == f"{MODEL}.accelerator.sizes"
    assert "inf2.xlarge has the same accelerator as inf2.8xlarge for 39% of the price" in warning.message
    assert "from the model store: $883.05 less a month" in warning.message
    assert warning.remedy == "Add xlarge to the sizes; it is still compiled on a larger one."


def test_where_a_server_may_compile_the_smaller_size_is_advised_with_the_store_alone():
    found = advised({f"{MODEL}.accelerator.sizes": ["8xlarge"], **COMPILES})
    assert list(found) == [f"{MODEL}.accelerator.sizes", f"{MODEL}.engine.allow_compile_on_start"]
    assert found[f"{MODEL}.accelerator.sizes"].remedy.startswith("Leave allow_compile_on_start out")


def test_a_smaller_size_is_not_advised_when_the_resources_do_not_fit_it():
    assert advised({f"{MODEL}.accelerator.sizes": ["8xlarge"], f"{MODEL}.resources": {"cpu": 8}}) == {}


def test_devices_that_memory_leaves_idle_are_warned_about():
    warning = the_only_advice({f"{MODEL}.accelerator.sizes": ["24xlarge"], f"{MODEL}.resources": {"memory_gib": 100}})
    assert warning.path == f"{MODEL}.resources"
    assert "3 replicas fit on inf2.24xlarge, whose devices would carry 6" in warning.message


def test_compiling_at_start_is_priced():
    warning = the_only_advice({f"{MODEL}.accelerator.sizes": ["24xlarge"], **COMPILES})
    assert warning.path == f"{MODEL}.engine.allow_compile_on_start"
    assert "15 minutes or more, $1.62 on demand for inf2.24xlarge" in warning.message


@pytest.mark.parametrize(("throughput", "warned"), [(125, True), (250, True), (251, False)])
def test_a_slow_volume_keeps_the_accelerator_waiting(throughput, warned):
    path = "node_pools.inf2.volume.throughput_mib_s"
    assert (path in advised({path: throughput})) is warned


def test_a_slow_volume_is_priced_per_node_hour_with_the_iops_it_needs():
    """875 MiB/s at $0.04 and 1,000 IOPS at $0.005 a month, over 730 hours."""
    warning = the_only_advice({"node_pools.inf2.volume": {"throughput_mib_s": 125, "iops": 3000}})
    assert "take 122 s to read" in warning.message
    assert "$0.055 more per node-hour" in warning.message


def test_a_volume_that_cannot_hold_the_weights_is_warned_about():
    changes = {
        f"{MODEL}.source": "hf://meta-llama/Meta-Llama-3-70B-Instruct",
        f"{MODEL}.accelerator": {"family": "inf2", "sizes": ["48xlarge"], "tensor_parallel_size": 16},
        f"{MODEL}.scaling": {"min_replicas": 2, "max_replicas": 2},
    }
    warning = the_only_advice(changes)
    assert warning.path == "node_pools.inf2.volume.size_gib"
    assert "263 GiB of weights and compiled graphs and the image take about 283 GiB" in warning.message
    assert advised({**changes, "node_pools.inf2.volume.size_gib": 283}) == {}


def test_replicas_of_a_node_share_what_is_on_its_disk():
    assert advised({f"{MODEL}.accelerator.sizes": ["48xlarge"]}) == {}


def test_pools_smaller_than_all_replicas_leave_pods_pending():
    changes = {f"{MODEL}.scaling": {"min_replicas": 2, "max_replicas": 10}, "node_pools.inf2.max_devices": 10}
    assert advised(changes) == {}
    changes["node_pools.inf2.max_devices"] = 9
    warning = the_only_advice(changes)
    assert warning.path == "node_pools.inf2.max_devices"
    assert "need 10 devices; the pools stop at 9" in warning.message


def test_every_warning_says_what_to_do():
    changes = {
        "network.nat_gateways": 2,
        "cluster.version": "1.34",
        f"{MODEL}.scaling": {"min_replicas": 1, "max_replicas": 100},
        f"{MODEL}.accelerator.sizes": ["8xlarge"],
        "node_pools.inf2.volume": {"throughput_mib_s": 125},
    }
    found = advised(changes)
    assert len(found) == 6
    assert all(warning.message.endswith(".") and warning.remedy.endswith(".") for warning in found.values())


def test_a_family_without_known_prices_has_no_price_to_compare():
    changes = {f"{MODEL}.accelerator": {"family": "trn2"}, "node_pools.trn2": {"volume": {"size_gib": 500}}}
    assert advised({**changes, f"{MODEL}.spot": "prefer"}) == {}
