"""The bucket that models are served from: closed, versioned, kept when everything else goes."""

import pytest

from genai_finops.spec import names, parse_platform
from tests.assemblies import many, of_type
from tests.platform_files import FILES
from tests.unit.stacks.policies import granted

pytestmark = pytest.mark.synth


def bucket(assembly):
    return assembly.one("AWS::S3::Bucket", "store")


def test_it_is_encrypted_versioned_and_closed_to_the_public(assembly):
    properties = bucket(assembly)["Properties"]
    [encryption] = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(properties["PublicAccessBlockConfiguration"]) == 4
    assert properties["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}


def test_nobody_reaches_it_without_tls(assembly):
    denied = [found for found in granted(assembly, "AWS::S3::BucketPolicy") if not found.allows]
    conditions = [found.conditions for found in denied]
    assert {"aws:SecureTransport": "false"} in conditions
    assert {"s3:TlsVersion": 1.2} in conditions
    for found in denied:
        assert found.statement["Principal"] == {"AWS": "*"}
        assert found.actions == ["s3:*"]
    assert not [found for found in granted(assembly, "AWS::S3::BucketPolicy") if found.allows]


def test_it_stays_when_the_stack_goes(assembly):
    assert bucket(assembly)["DeletionPolicy"] == "Retain"
    assert bucket(assembly)["UpdateReplacePolicy"] == "Retain"


def test_what_was_replaced_is_kept_as_long_as_the_file_says_and_parts_of_uploads_less_long(assembly):
    settings = assembly.platform.model_store
    rules = {rule["Id"]: rule for rule in bucket(assembly)["Properties"]["LifecycleConfiguration"]["Rules"]}
    replaced, unfinished = rules["forget-what-was-replaced"], rules["forget-unfinished-uploads"]
    assert replaced["NoncurrentVersionExpiration"] == {"NoncurrentDays": settings.noncurrent_days}
    assert unfinished["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": settings.unfinished_upload_days}


def test_what_is_in_use_never_expires_and_what_is_not_gets_cheaper(assembly):
    """By age a rule would take away the graphs that the next node asks for."""
    rules = bucket(assembly)["Properties"]["LifecycleConfiguration"]["Rules"]
    assert not any("ExpirationInDays" in rule or "ExpirationDate" in rule for rule in rules)
    [transition] = [one for rule in rules for one in many(rule.get("Transitions", []))]
    assert transition == {"StorageClass": "INTELLIGENT_TIERING", "TransitionInDays": 0}


def test_its_name_is_derived_so_that_a_platform_finds_it_again(assembly):
    name = bucket(assembly)["Properties"]["BucketName"]["Fn::Join"][1]
    prefix, account, region = name
    assert (prefix, account) == (f"{assembly.platform.name}-models-", {"Ref": "AWS::AccountId"})
    assert region == f"-{assembly.platform.region}"


@pytest.mark.parametrize("region", ["us-east-1", "ap-southeast-2"])
@pytest.mark.parametrize("length", [1, 20, 43])
def test_a_long_platform_name_gives_a_bucket_name_that_fits_and_is_its_own(length, region):
    text = FILES["minimal"].read_text(encoding="utf-8")
    one = parse_platform(text).model_copy(update={"name": "x" * length, "region": region})
    other = one.model_copy(update={"name": "x" * (length - 1) + "y"})
    found = names.model_store_bucket(one, "1" * 12)
    assert len(found) <= 63
    assert found != names.model_store_bucket(other, "1" * 12)
    assert found.startswith("x")
    assert found.endswith(f"-models-{'1' * 12}-{region}")


def test_the_stack_holds_the_bucket_and_nothing_that_could_be_lost_with_it(assembly):
    kinds = {resource["Type"] for resource in assembly.templates["store"]["Resources"].values()}
    assert kinds == {"AWS::S3::Bucket", "AWS::S3::BucketPolicy"}
    assert of_type(assembly.templates["store"], "AWS::S3::Bucket")
