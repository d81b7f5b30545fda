"""What is fetched from S3 is there, or the pod says so and stops."""

import os
import subprocess

from tests.platform_files import ROOT

SCRIPT = ROOT / "k8s_charts" / "scripts" / "fetch.sh"


def fetch(tmp_path, aws):
    """Run the script with a stand-in for the AWS CLI."""
    program = tmp_path / "bin" / "aws"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{aws}\n")
    program.chmod(0o755)
    target = tmp_path / "weights"
    done = subprocess.run(
        ["sh", str(SCRIPT), "s3://bucket/prefix/", str(target)],
        env={"PATH": f"{program.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    return done, target


def test_it_copies_the_prefix(tmp_path):
    copy = 'test "$1 $2 $3 $4" = "s3 sync --only-show-errors s3://bucket/prefix/" && mkdir -p "$5" && echo x > "$5/w"'
    done, target = fetch(tmp_path, copy)
    assert done.returncode == 0, done.stderr
    assert (target / "w").read_text() == "x\n"


def test_nothing_under_the_prefix_is_a_failure_with_a_reason(tmp_path):
    done, _ = fetch(tmp_path, "exit 0")
    assert done.returncode == 1
    assert "Nothing is stored under s3://bucket/prefix/" in done.stderr


def test_a_failed_copy_is_a_failure(tmp_path):
    done, _ = fetch(tmp_path, 'mkdir -p "$5"; echo half > "$5/w"; echo AccessDenied >&2; exit 3')
    assert done.returncode == 3
    assert "AccessDenied" in done.stderr
