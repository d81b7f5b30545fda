"""A statement cannot be written carelessly."""

import json

import pytest

from stacks.policy import Statement, size


def test_an_action_with_a_wildcard_is_refused():
    with pytest.raises(ValueError, match="Wide: name each action"):
        Statement("Wide", ["s3:*"], ["arn:aws:s3:::bucket"])


def test_a_resource_with_a_wildcard_needs_a_reason():
    with pytest.raises(ValueError, match="Wide: say why"):
        Statement("Wide", ["s3:GetObject"], ["*"])
    assert Statement("Wide", ["s3:GetObject"], ["*"], wildcard="Because.").wildcard == "Because."


def test_size_counts_what_iam_counts():
    statement = Statement("Read", ["s3:GetObject"], ["arn:aws:s3:::b/a"], {"StringLike": {"s3:prefix": ["a"]}})
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Read",
                "Effect": "Allow",
                "Action": ["s3:GetObject"],
                "Resource": ["arn:aws:s3:::b/a"],
                "Condition": {"StringLike": {"s3:prefix": ["a"]}},
            }
        ],
    }
    assert size([statement]) == len(json.dumps(policy).replace(" ", ""))
