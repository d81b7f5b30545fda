"""The network: what is private stays private, weights do not pay for NAT, and what is looked up by tag is tagged."""

import json
from ipaddress import ip_network
from itertools import combinations

import pytest
import yaml
from aws_cdk import App

from genai_finops.spec import parse_platform
from stacks.network import NetworkStack
from tests.assemblies import of_type
from tests.platform_files import FILES

pytestmark = pytest.mark.synth


def tags(resource):
    return {tag["Key"]: tag["Value"] for tag in resource["Properties"]["Tags"]}


def subnets(assembly, kind):
    return {
        logical_id: subnet
        for logical_id, subnet in of_type(assembly.templates["network"], "AWS::EC2::Subnet").items()
        if tags(subnet)["aws-cdk:subnet-type"] == kind
    }


def test_one_private_and_one_public_subnet_per_zone_of_the_file(assembly):
    for kind in ("Private", "Public"):
        zones = [subnet["Properties"]["AvailabilityZone"] for subnet in subnets(assembly, kind).values()]
        assert zones == list(assembly.platform.zones)


def test_the_vpc_has_the_block_of_the_file(assembly):
    vpc = assembly.one("AWS::EC2::VPC", "network")["Properties"]
    assert vpc["CidrBlock"] == assembly.platform.network.cidr


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.0.0.0/18", "172.16.0.0/20"])
@pytest.mark.parametrize("letters", ["ab", "abc", "abcde", "abcdef"])
def test_subnets_of_any_number_of_zones_fit_the_block_side_by_side(tmp_path, cidr, letters):
    document = yaml.safe_load(FILES["default"].read_text(encoding="utf-8"))
    document |= {"network": {"cidr": cidr}, "zones": [f"us-east-1{letter}" for letter in letters]}
    app = App(outdir=str(tmp_path), analytics_reporting=False)
    NetworkStack(app, platform=parse_platform(json.dumps(document)))
    app.synth()
    template = json.loads((tmp_path / "network.template.json").read_text(encoding="utf-8"))
    blocks = [
        ip_network(subnet["Properties"]["CidrBlock"]) for subnet in of_type(template, "AWS::EC2::Subnet").values()
    ]
    assert len(blocks) == 2 * len(letters)
    assert all(block.subnet_of(ip_network(cidr)) for block in blocks)
    assert not any(one.overlaps(other) for one, other in combinations(blocks, 2))
    private = max(blocks, key=lambda block: block.num_addresses)
    assert private.num_addresses * len(letters) * 4 > ip_network(cidr).num_addresses


def test_nothing_gets_a_public_address_by_itself(assembly):
    for _, _, subnet in assembly.all("AWS::EC2::Subnet"):
        assert subnet["Properties"]["MapPublicIpOnLaunch"] is False


def test_node_classes_select_the_private_subnets_and_nothing_else(assembly):
    for manifest in assembly.manifests["karpenter"]:
        if manifest["kind"] == "EC2NodeClass":
            [term] = manifest["spec"]["subnetSelectorTerms"]
            for subnet in subnets(assembly, "Private").values():
                assert term["tags"].items() <= tags(subnet).items()
            for subnet in subnets(assembly, "Public").values():
                assert not term["tags"].items() <= tags(subnet).items()


def test_load_balancers_find_their_subnets(assembly):
    for subnet in subnets(assembly, "Private").values():
        assert tags(subnet)["kubernetes.io/role/internal-elb"] == "1"
        assert "kubernetes.io/role/elb" not in tags(subnet)
    for subnet in subnets(assembly, "Public").values():
        assert tags(subnet)["kubernetes.io/role/elb"] == "1"
        assert "kubernetes.io/role/internal-elb" not in tags(subnet)


@pytest.mark.parametrize(("name", "count"), [("default", 1), ("minimal", 1), ("rich", 3)])
def test_as_many_nat_gateways_as_the_file_says(assemblies, name, count):
    assert assemblies[name].platform.network.nat_gateways == count
    assert len(of_type(assemblies[name].templates["network"], "AWS::EC2::NatGateway")) == count


def test_every_private_subnet_leaves_through_nat_and_only_public_ones_through_the_internet_gateway(assembly):
    template = assembly.templates["network"]
    routes = [route["Properties"] for route in of_type(template, "AWS::EC2::Route").values()]
    private = private_route_tables(assembly)
    assert len(private) == len(assembly.platform.zones)
    for route in routes:
        assert route["DestinationCidrBlock"] == "0.0.0.0/0"
        assert ("NatGatewayId" in route) == (route["RouteTableId"]["Ref"] in private)
    assert {route["RouteTableId"]["Ref"] for route in routes} >= private


def test_private_route_tables_reach_s3_through_the_gateway_endpoint(assembly):
    [endpoint] = endpoints(assembly, "Gateway")
    assert {table["Ref"] for table in endpoint["RouteTableIds"]} >= private_route_tables(assembly)
    assert "s3" in str(endpoint["ServiceName"])


def test_interface_endpoints_only_when_asked_for(assemblies):
    assert endpoints(assemblies["default"], "Interface") == endpoints(assemblies["minimal"], "Interface") == []
    rich = assemblies["rich"]
    services = [endpoint["ServiceName"] for endpoint in endpoints(rich, "Interface")]
    assert services == [f"com.amazonaws.us-east-1.{service}" for service in rich.platform.network.interface_endpoints]


def test_interface_endpoints_answer_under_the_usual_names_and_only_to_the_vpc(assemblies):
    rich = assemblies["rich"]
    for endpoint in endpoints(rich, "Interface"):
        assert endpoint["PrivateDnsEnabled"] is True
        [group] = [rich.referred("network", group) for group in endpoint["SecurityGroupIds"]]
        [rule] = group["SecurityGroupIngress"]
        assert (rule["CidrIp"], rule["FromPort"], rule["ToPort"]) == (rich.platform.network.cidr, 443, 443)


def test_flow_logs_of_all_traffic_are_kept_as_long_as_the_file_says(assembly):
    flow_log = assembly.one("AWS::EC2::FlowLog", "network")["Properties"]
    assert (flow_log["ResourceType"], flow_log["TrafficType"]) == ("VPC", "ALL")
    group = assembly.referred("network", flow_log["LogGroupName"])
    assert group["RetentionInDays"] == assembly.platform.network.flow_log_retention_days


def endpoints(assembly, kind):
    return [
        endpoint["Properties"]
        for endpoint in of_type(assembly.templates["network"], "AWS::EC2::VPCEndpoint").values()
        if endpoint["Properties"]["VpcEndpointType"] == kind
    ]


def private_route_tables(assembly):
    associations = of_type(assembly.templates["network"], "AWS::EC2::SubnetRouteTableAssociation").values()
    return {
        association["Properties"]["RouteTableId"]["Ref"]
        for association in associations
        if association["Properties"]["SubnetId"]["Ref"] in subnets(assembly, "Private")
    }
