"""What surrounds the models: region, zones, names, networks, cluster, pools, gateway, budget, tags."""

from typing import Any

import pytest

from genai_finops.spec import names
from tests.unit.spec.files import ALERTED, MISSING, accepted, assert_says, only, refused

CERTIFICATE = "arn:aws:acm:us-east-1:111122223333:certificate/11111111-2222-3333-4444-555555555555"
PUBLIC = {"scheme": "internet-facing", "certificate_arn": CERTIFICATE, "allowed_cidrs": ["203.0.113.0/24"]}
SECOND_MODEL = {
    "name": "other",
    "source": "hf://Qwen/Qwen3-8B",
    "revision": "0" * 40,
    "accelerator": {"family": "inf2", "sizes": ["8xlarge"]},
}


def case(rule: str, changes: dict[str, Any], path: str, found: str, fix: str) -> Any:
    return pytest.param(changes, path, found, fix, id=rule)


@pytest.mark.parametrize(
    ("changes", "path", "found", "fix"),
    [
        case("a region must be known", {"region": "mars-1"}, "region", "'mars-1'", "us-east-1, us-east-2"),
        case(
            "a zone belongs to the region",
            {"zones": ["us-east-1a", "us-west-2a"]},
            "zones[1]",
            "'us-west-2a'",
            "us-east-1a, us-east-1b",
        ),
        case(
            "a zone that takes no new subnets is refused",
            {"region": "ap-northeast-1", "zones": ["ap-northeast-1a", "ap-northeast-1b"]},
            "zones[1]",
            "'ap-northeast-1b'",
            "ap-northeast-1a, ap-northeast-1c or ap-northeast-1d",
        ),
        case(
            "a zone is named once",
            {"zones": ["us-east-1a", "us-east-1b", "us-east-1a"]},
            "zones[2]",
            "'us-east-1a'",
            "each its own",
        ),
        case(
            "two zones at least", {"zones": ["us-east-1a"]}, "zones", "has 1 entry", "At least two availability zones"
        ),
        case(
            "model names are unique",
            {"models[1]": {**SECOND_MODEL, "name": "llama3-8b"}},
            "models[1].name",
            "'llama3-8b'",
            "each its own",
        ),
        case(
            "served names are unique, also against the default",
            {"models[1]": {**SECOND_MODEL, "served_name": "llama3-8b"}},
            "models[1].served_name",
            "'llama3-8b'",
            "each its own",
        ),
        case("a block is IPv4", {"network.cidr": "fd00::/16"}, "network.cidr", "'fd00::/16'", "10.0.0.0/16"),
        case("a block has no host bits", {"network.cidr": "10.0.0.1/16"}, "network.cidr", "10.0.0.1/16", "host bits"),
        case(
            "a block is written with a length, not a mask",
            {"network.cidr": "10.0.0.0/255.255.0.0"},
            "network.cidr",
            "255.255.0.0",
            "10.0.0.0/16",
        ),
        case("a block is not too small", {"network.cidr": "10.0.0.0/21"}, "network.cidr", "/21", "from /16 to /20"),
        case("a block is not too large", {"network.cidr": "10.0.0.0/15"}, "network.cidr", "/15", "from /16 to /20"),
        case("a block is private", {"network.cidr": "8.8.0.0/16"}, "network.cidr", "8.8.0.0/16", "192.168.0.0/16"),
        case(
            "a zone has at most one NAT gateway",
            {"network.nat_gateways": 3},
            "network.nat_gateways",
            "is 3",
            "Use 1 to 2.",
        ),
        case(
            "an endpoint is named once",
            {"network.interface_endpoints": ["sts", "sts"]},
            "network.interface_endpoints[1]",
            "'sts'",
            "each its own",
        ),
        case(
            "a Kubernetes version must be known",
            {"cluster.version": "1.29"},
            "cluster.version",
            "'1.29'",
            "1.35 or 1.36, in quotes",
        ),
        case(
            "the API server is not open to the internet",
            {"cluster.public_access_cidrs": ["0.0.0.0/0"]},
            "cluster.public_access_cidrs",
            "0.0.0.0/0",
            "List the networks you work from",
        ),
        case(
            "one address is written as a network of one",
            {"cluster.public_access_cidrs": ["203.0.113.7"]},
            "cluster.public_access_cidrs[0]",
            "'203.0.113.7'",
            "10.0.0.0/16",
        ),
        case(
            "a network is listed once",
            {"cluster.public_access_cidrs": ["203.0.113.0/24", "203.0.113.0/24"]},
            "cluster.public_access_cidrs[1]",
            "'203.0.113.0/24'",
            "each its own",
        ),
        case(
            "system nodes have no accelerators",
            {"cluster.system_nodes.instance_type": "inf2.xlarge"},
            "cluster.system_nodes.instance_type",
            "'inf2.xlarge'",
            "m7g.large",
        ),
        case(
            "system nodes start within their maximum",
            {"cluster.system_nodes": {"count": 5, "max_count": 4}},
            "cluster.system_nodes.count",
            "is 5",
            "Use at most 4",
        ),
        case(
            "an administrator is named once",
            {"cluster.admin_roles": ["arn:aws:iam::111122223333:role/Admin"] * 2},
            "cluster.admin_roles[1]",
            "role/Admin",
            "each its own",
        ),
        case(
            "an administrator is one role, not a pattern",
            {"cluster.admin_roles": ["arn:aws:iam::111122223333:role/*"]},
            "cluster.admin_roles[0]",
            "role/*",
            "arn:aws:iam::111122223333:role/Admin",
        ),
        case(
            "an add-on version is one of EKS",
            {"cluster.addon_versions": {"vpc-cni": "1.20.4"}},
            "cluster.addon_versions.vpc-cni",
            "'1.20.4'",
            "v1.20.4-eksbuild.1",
        ),
        case(
            "an add-on must be one that the platform installs",
            {"cluster.addon_versions": {"vpc-cny": "default"}},
            "cluster.addon_versions.vpc-cny",
            "is not a setting",
            "Did you mean vpc-cni?",
        ),
        case(
            "a pool without a model is a mistake",
            {"node_pools.g6e.max_devices": 8},
            "node_pools.g6e",
            "is set",
            "Families in use: inf2",
        ),
        case(
            "throughput needs IOPS",
            {"node_pools.inf2.volume": {"throughput_mib_s": 1000, "iops": 3999}},
            "node_pools.inf2.volume.throughput_mib_s",
            "is 1000",
            "Use at most 999, or raise iops to 4000.",
        ),
        case(
            "a pool has room for one node",
            {"node_pools.inf2.max_devices": 5, "models[0].accelerator.sizes": ["24xlarge"]},
            "node_pools.inf2.max_devices",
            "is 5",
            "Use 6 or more.",
        ),
        case(
            "a public gateway speaks HTTPS",
            {"gateway": {**PUBLIC, "certificate_arn": None}},
            "gateway.certificate_arn",
            "is missing",
            "scheme: internal",
        ),
        case(
            "a public gateway asks for a key",
            {"gateway": {**PUBLIC, "api_key": False}},
            "gateway.api_key",
            "is false",
            "Leave it true",
        ),
        case(
            "a public gateway says who may connect",
            {"gateway": {**PUBLIC, "allowed_cidrs": []}},
            "gateway.allowed_cidrs",
            "is missing",
            "0.0.0.0/0 if really everyone",
        ),
        case(
            "a certificate is of the same region",
            {"gateway.certificate_arn": CERTIFICATE.replace("us-east-1", "eu-west-1")},
            "gateway.certificate_arn",
            "eu-west-1",
            "one in us-east-1",
        ),
        case(
            "a gateway's networks are networks",
            {"gateway.allowed_cidrs": ["10.0.0.0/8", "office"]},
            "gateway.allowed_cidrs[1]",
            "'office'",
            "10.0.0.0/16",
        ),
        case(
            "thresholds ascend",
            {"budget": {"monthly_usd": 1, "actual_thresholds_percent": [100, 50, 50]}, "notifications": ALERTED},
            "budget.actual_thresholds_percent",
            "[100, 50, 50]",
            "Use [50, 100].",
        ),
        case(
            "a budget has five alerts at most",
            {
                "budget": {"monthly_usd": 1, "actual_thresholds_percent": [10, 20, 30, 40, 50]},
                "notifications": ALERTED,
            },
            "budget",
            "has 6 thresholds",
            "Leave out 1.",
        ),
        case(
            "CloudFormation makes no budget in every region",
            {
                "region": "eu-north-1",
                "zones": ["eu-north-1a", "eu-north-1b"],
                "budget": {"monthly_usd": 1},
                "notifications": ALERTED,
            },
            "budget",
            "is set",
            "in the console",
        ),
        case(
            "someone hears of a spent budget",
            {"budget": {"monthly_usd": 1}},
            "notifications",
            "names nobody",
            "notifications.emails or notifications.slack",
        ),
        case(
            "an address is named once",
            {"notifications.emails": ["a@example.com", "a@example.com"]},
            "notifications.emails[1]",
            "'a@example.com'",
            "each its own",
        ),
        case("tags of AWS are reserved", {"tags": {"AWS:team": "x"}}, "tags", "'AWS:team'", "Rename"),
        case("tags of the platform are reserved", {"tags": {"genai-finops:platform": "x"}}, "tags", "finops", "Rename"),
        case("a tag's key has letters AWS takes", {"tags": {"a*b": "x"}}, "tags", "'a*b'", "Rename"),
        case("a tag's value has letters AWS takes", {"tags": {"a": "x\ny"}}, "tags.a", r"'x\ny'", "another value"),
        case("a tag's value is not empty", {"tags": {"a": ""}}, "tags.a", "''", "leave the tag out"),
        case("a tag's value has 256 letters at most", {"tags": {"a": "x" * 257}}, "tags.a", "xxx", "another value"),
        case("a tag's key has 128 letters at most", {"tags": {"k" * 129: "x"}}, "tags", "kkk", "Rename"),
        case(
            "there are 40 tags at most",
            {"tags": {f"key-{number}": "x" for number in range(41)}},
            "tags",
            "has 41 entries",
            "Use at most 40.",
        ),
    ],
)  # fmt: skip
def test_is_refused_with_the_way_out(changes, path, found, fix):
    assert_says(changes, path, found, fix)


@pytest.mark.parametrize(
    "changes",
    [
        {"network.cidr": "10.0.0.0/16"},
        {"network.cidr": "172.31.240.0/20"},
        {"network.cidr": "100.64.0.0/16"},
        {"network.nat_gateways": 2},
        {"cluster.public_access_cidrs": ["203.0.113.7/32"]},
        {"cluster.system_nodes": {"count": 4, "max_count": 4}},
        {"cluster.addon_versions": {"vpc-cni": "v1.20.4-eksbuild.12", "coredns": "default"}},
        {"cluster.admin_roles": ["arn:aws-us-gov:iam::111122223333:role/path/with+signs=,.@-_"]},
        {"node_pools.inf2.volume": {"throughput_mib_s": 1000, "iops": 4000}},
        {"node_pools.inf2.max_devices": 6, "models[0].accelerator.sizes": ["24xlarge"]},
        {"node_pools.inf2.max_devices": 1},
        {"gateway": PUBLIC},
        {"gateway": {**PUBLIC, "allowed_cidrs": ["0.0.0.0/0"]}},
        {"gateway": {"enabled": False}},
        {"budget": {"monthly_usd": "0.01"}, "notifications": ALERTED},
        {"budget": {"monthly_usd": 1_000_000_000}, "notifications": ALERTED},
        {"budget": {"monthly_usd": 1, "forecast_thresholds_percent": []}, "notifications": ALERTED},
        {
            "budget": {"monthly_usd": 1, "actual_thresholds_percent": [1, 2, 3, 1000]},
            "notifications": {"slack": {"workspace_id": "T1", "channel_id": "C1"}},
        },
        {"tags": {f"key-{number}": "x" for number in range(40)}},
        {"tags": {"k" * 128: "v" * 256, "Größe": "weiß + /=.:@-_"}},
        {"models[1]": {**SECOND_MODEL, "served_name": "something/else"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_just_fits_is_accepted(changes):
    accepted(changes)


@pytest.mark.parametrize(
    ("amount", "written"),
    [(0, "0"), (-5, "-5"), (float("nan"), ".nan"), (float("inf"), ".inf"), (1e400, ".inf")],
)
def test_a_budget_is_a_finite_amount_above_zero(amount, written):
    problem = only(refused({"budget.monthly_usd": amount, "notifications": ALERTED}))
    assert (problem.path, problem.found) == ("budget.monthly_usd", f"is {written}")
    assert "above 0 and at most 1,000,000,000 in whole cents" in problem.why
    assert problem.fix == "US dollars a month."


@pytest.mark.parametrize("amount", ["0.001", 1_000_000_000.01, 10**12])
def test_a_budget_is_in_whole_cents_and_not_absurd(amount):
    assert only(refused({"budget.monthly_usd": amount, "notifications": ALERTED})).path == "budget.monthly_usd"


def test_a_budget_is_handed_to_aws_without_an_exponent():
    platform = accepted({"budget.monthly_usd": "2E+4", "notifications": ALERTED})
    assert str(platform.budget.monthly_usd) == "20000"


def test_tags_that_differ_only_in_case_are_both_pointed_at():
    problems = refused({"tags": {"Team": "a", "team": "b", "other": "c"}})
    assert [problem.path for problem in problems] == ["tags.Team", "tags.team"]


def test_a_name_just_fits_the_longest_name_derived_from_it():
    longest = 64 - len("-karpenter-controller")
    accepted({"name": "a" * longest})
    problem = only(refused({"name": "a" * (longest + 3)}))
    assert (problem.path, problem.found) == ("name", "is 3 characters too long")
    assert "IAM role" in problem.why
    assert "64 are allowed" in problem.why
    assert problem.fix == "Shorten it by 3."


def test_a_model_name_just_fits_the_autoscaler_that_keda_makes():
    longest = 63 - len("keda-hpa-vllm-")
    accepted({"models[0].name": "a" * longest})
    problem = only(refused({"models[0].name": "a" * (longest + 1)}))
    assert (problem.path, problem.fix) == ("models[0].name", "Shorten it by 1.")


def test_every_derived_name_of_the_longest_valid_name_is_within_its_limit():
    platform = accepted({"name": "a" * 43, "models[0].name": "m" * 49})
    assert all(name.excess <= 0 for name in names.derived(platform))
    assert max(name.excess for name in names.derived(platform)) == 0


@pytest.mark.parametrize("name", ["Demo", "1demo", "demo_1", "demo-", "-demo", "dämo", "", "de mo"])
def test_a_name_that_kubernetes_would_refuse_is_explained_in_words(name):
    problem = only(refused({"name": name}))
    assert problem.found == f"is {name!r}"
    assert problem.why == (
        "It must be lower-case letters, digits and dashes, starting with a letter and not ending with a dash."
    )
    assert problem.fix == "For example llama3-8b."


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("models[0].served_name", "my model"),
        ("models[0].served_name", "x" * 129),
        ("gateway.hostname", "Models.example.com"),
        ("gateway.hostname", "localhost"),
        ("gateway.certificate_arn", "arn:aws:iam::111122223333:server-certificate/x"),
        ("hub_token_secret", "a secret"),
        ("notifications.emails", ["finops"]),
        ("notifications.slack", {"workspace_id": "t1", "channel_id": "C1"}),
        ("notifications.slack", {"workspace_id": "T1", "channel_id": "#general"}),
    ],
)
def test_a_text_of_the_wrong_form_is_answered_with_words_and_an_example(path, value):
    problem = only(refused({path: value}))
    assert problem.path.startswith(path)
    assert problem.why.startswith("It must be ")
    assert "pattern" not in problem.why
    assert problem.fix.startswith("For example ")


@pytest.mark.parametrize("path", ["name", "models[0].name", "models[0].served_name", "hub_token_secret"])
def test_a_line_break_within_a_name_is_refused_and_one_at_its_end_is_dropped(path):
    assert only(refused({path: "demo\nx"})).path == path
    accepted({path: "demo\n"})


def test_a_disabled_gateway_needs_no_settings():
    assert not accepted({"gateway.enabled": False}).gateway.enabled


def test_what_is_required_is_said_to_be_missing():
    for path in ("name", "region", "zones", "models"):
        problem = only(refused({path: MISSING}))
        assert (problem.path, problem.found) == (path, "is missing")
        assert problem.fix
