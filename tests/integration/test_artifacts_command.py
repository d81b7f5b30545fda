"""`genai-finops artifacts` against S3 over HTTP: what is there, what is missing, and when nobody lets it look."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from genai_finops.spec import artifacts, names
from tests.platform_files import FILES, ROOT, platform
from tests.support.aws_api import client, moto_server

ACCOUNT = "123456789012"
[MODEL] = platform("default").models


@pytest.fixture(scope="module")
def endpoint():
    with moto_server() as url:
        yield url


def run(endpoint, file=FILES["default"]):
    environment = os.environ | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_MAX_ATTEMPTS": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "genai_finops", "artifacts", str(file)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_platform_without_a_store_yet_is_explained(endpoint):
    done = run(endpoint)
    assert (done.returncode, done.stdout) == (1, "")
    assert "The model store cannot be read: " in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_there_is_listed_and_what_is_missing_has_its_command(endpoint):
    s3 = client("s3", endpoint)
    bucket = names.model_store_bucket(platform("default"), ACCOUNT)
    s3.create_bucket(Bucket=bucket)
    created = (datetime.now(UTC) - timedelta(days=3, hours=1)).isoformat()
    manifest = {"created": created, "files": [{"path": "a", "size": 15 * 2**30, "sha256": "0"}]}
    s3.put_object(Bucket=bucket, Key=f"{artifacts.weights_prefix(MODEL)}/manifest.json", Body=json.dumps(manifest))
    done = run(endpoint)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if artifacts.weights_prefix(MODEL) in line]
    assert line.split()[-4:] == ["15.0", "GiB", "3", "d"]
    assert artifacts.key(MODEL) in done.stdout
    assert f"make compile MODEL={MODEL.name}" in done.stdout
    assert "make stage" not in done.stdout


def test_a_bad_platform_file_is_explained(endpoint, tmp_path):
    file = tmp_path / "platform.yaml"
    file.write_text("name: [")
    done = run(endpoint, file)
    assert (done.returncode, done.stdout) == (1, "")
    assert str(file) in done.stderr
