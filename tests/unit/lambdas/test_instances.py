"""Whose an instance is, also when EC2 knows only some of those asked for."""

import pytest

from lambdas.adapters import instances as module
from lambdas.adapters.instances import Instances
from tests.support.aws_api import client


@pytest.fixture(scope="module")
def ec2(moto_url):
    return client("ec2", moto_url)


def launch(ec2, count=1, **tags):
    """Ids; the image is one that moto knows."""
    specification = {"ResourceType": "instance", "Tags": [{"Key": key, "Value": tags[key]} for key in tags]}
    more = {"TagSpecifications": [specification]} if tags else {}
    image = "ami-12c6146b"
    made = ec2.run_instances(ImageId=image, InstanceType="inf2.xlarge", MinCount=count, MaxCount=count, **more)
    return [instance["InstanceId"] for instance in made["Instances"]]


def test_an_instance_of_the_cluster_is_told_by_its_tags(ec2):
    (ours,) = launch(ec2, **{"kubernetes.io/cluster/genai": "owned", "karpenter.sh/nodepool": "inf2-spot"})
    (other,) = launch(ec2, **{"kubernetes.io/cluster/other": "owned"})
    found = Instances(ec2).find([ours, other])
    assert found[ours].belongs_to("genai")
    assert found[ours].node_pool == "inf2-spot"
    assert found[ours].instance_type == "inf2.xlarge"
    assert found[ours].zone.startswith("us-east-1")
    assert not found[other].belongs_to("genai")
    assert found[other].node_pool == ""


def test_one_that_ec2_does_not_know_hides_none_of_the_others(ec2):
    (known,) = launch(ec2)
    assert set(Instances(ec2).find(["i-0000000000000dead", known, known])) == {known}


def test_one_that_has_ended_is_still_known_for_a_while(ec2):
    (ended,) = launch(ec2)
    ec2.terminate_instances(InstanceIds=[ended])
    assert Instances(ec2).find([ended])[ended].state in ("shutting-down", "terminated")


def test_many_are_asked_for_in_parts(ec2, monkeypatch):
    monkeypatch.setattr(module, "FILTER_VALUES", 2)
    ids = set(launch(ec2, 5))
    assert set(Instances(ec2).find(ids)) == ids


def test_nobody_is_asked_about_nothing():
    class Silent:
        def get_paginator(self, name):
            return self

    assert Instances(Silent()).find([]) == {}
